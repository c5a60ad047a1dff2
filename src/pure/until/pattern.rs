//! Patterns: texts, and regexes of the `regex` crate, which are compiled within bounds.
//!
//! A regex is given a line at a time, so it never matches across a newline. `.`, negated classes
//! and literals stand for whole characters; `\w`, `\d`, `\s` and `\b` know ASCII only, because a
//! Unicode `\w` takes a tenth of what a compiled pattern may take, each time that it is written.

use std::fmt;
use std::ops::Range;

use memchr::memmem;
use regex::RegexBuilder;
use regex_syntax::ast::{self, Ast, ClassPerl, ClassPerlKind, ClassSetItem, Span, Visitor};
use regex_syntax::hir::Look;

/// The groups of such a regex are looked for in a match of at most so many bytes.
const REGEX_SMALL_MATCH_BYTES: usize = 1024;

/// A regex that takes more memory than this finds its groups slowly: it takes a step for each byte
/// of the match and each part of the regex.
const REGEX_SMALL_BYTES: usize = 16 * 1024;

/// Memory of one lazily built automaton of it: any regex of that size has room to run in it.
const REGEX_CACHE_BYTES: usize = 1024 * 1024;

/// Memory of one compiled regex: what one byte of output costs at worst grows with it.
const REGEX_BYTES: usize = 256 * 1024;

/// Groups of a regex that a reply tells.
const UNTIL_CAPTURES_MAX: usize = 16;

/// Bytes of one pattern.
const UNTIL_PATTERN_BYTES: usize = 4_096;

const NEWLINE: &str = "a newline is never matched: patterns are matched a line at a time";

/// Why a pattern can't be taken.
#[derive(Debug, PartialEq, Eq)]
pub struct PatternError {
    /// In words.
    pub why: String,
    /// The character where it is wrong, counted from 1.
    pub at: Option<usize>,
}

impl From<String> for PatternError {
    fn from(why: String) -> Self {
        PatternError { why, at: None }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "{} (character {at})", self.why),
            None => f.write_str(&self.why),
        }
    }
}

/// A text or a regex that is looked for in lines.
#[derive(Debug)]
pub enum Pattern {
    /// A string as it stands.
    Text {
        /// Its place in the list of texts.
        index: usize,
        /// The string.
        text: String,
        /// Looks for it.
        finder: Box<memmem::Finder<'static>>,
    },
    /// A regex.
    Regex {
        /// Its place in the list of regexes.
        index: usize,
        /// As it was given.
        source: String,
        /// Compiled.
        regex: LineRegex,
    },
}

impl Pattern {
    /// A text. Refused are those that are empty, too long, or of more than a line.
    pub fn text(index: usize, text: &str) -> Result<Self, PatternError> {
        check(text)?;
        let finder = Box::new(memmem::Finder::new(text).into_owned());
        Ok(Pattern::Text { index, text: text.to_owned(), finder })
    }

    /// A regex. Refused are those that are empty, too long, wrong, or too large when compiled.
    pub fn regex(index: usize, source: &str) -> Result<Self, PatternError> {
        check(source)?;
        Ok(Pattern::Regex { index, source: source.to_owned(), regex: LineRegex::new(source)? })
    }

    /// The name of the field that it was given in.
    pub fn by(&self) -> &'static str {
        match self {
            Pattern::Text { .. } => "text",
            Pattern::Regex { .. } => "regex",
        }
    }

    /// Its place in the list of that field.
    pub fn index(&self) -> usize {
        match self {
            Pattern::Text { index, .. } | Pattern::Regex { index, .. } => *index,
        }
    }

    /// As it was given.
    pub fn source(&self) -> &str {
        match self {
            Pattern::Text { text, .. } => text,
            Pattern::Regex { source, .. } => source,
        }
    }

    /// The start of the first line of a block that may match. A line that matches by itself matches
    /// in its block too, but where a regex asks for the beginning or the end of all.
    pub(super) fn first_line(&self, block: &str) -> Option<usize> {
        let at = match self {
            Pattern::Regex { regex, .. } if !regex.takes_blocks => return Some(0),
            _ => self.find(block, 0)?.start,
        };
        Some(memchr::memrchr(b'\n', &block.as_bytes()[..at]).map_or(0, |newline| newline + 1))
    }

    /// The first match in `line` that begins at `from` or later.
    pub(super) fn find(&self, line: &str, from: usize) -> Option<Range<usize>> {
        match self {
            Pattern::Text { text, finder, .. } => {
                let at = from + finder.find(&line.as_bytes()[from..])?;
                Some(at..at + text.len())
            }
            Pattern::Regex { regex, .. } => Some(regex.compiled.find_at(line, from)?.range()),
        }
    }

    /// Whether what was found in a line that goes on stays the same whatever comes: no match that
    /// begins there or before can need more than what has come.
    pub(super) fn is_final(&self, line: &str, found: &Range<usize>) -> bool {
        match self {
            Pattern::Text { .. } => true,
            Pattern::Regex { regex, .. } => {
                regex.reach_bytes.is_some_and(|reach| line.len() - found.start >= reach)
            }
        }
    }

    /// What the groups of a regex took of a match.
    pub(super) fn captures(&self, line: &str, found: &Range<usize>) -> Vec<Option<Range<usize>>> {
        match self {
            Pattern::Text { .. } => Vec::new(),
            Pattern::Regex { regex, .. } => regex.captures(line, found),
        }
    }
}

fn check(pattern: &str) -> Result<(), PatternError> {
    if pattern.is_empty() {
        return Err("a pattern must not be empty".to_owned().into());
    }
    if pattern.len() > UNTIL_PATTERN_BYTES {
        return Err(format!("{} bytes, at most {UNTIL_PATTERN_BYTES}", pattern.len()).into());
    }
    if let Some(at) = pattern.chars().position(|c| c == '\n') {
        return Err(PatternError { why: NEWLINE.to_owned(), at: Some(at + 1) });
    }
    Ok(())
}

/// A compiled regex.
#[derive(Debug)]
pub struct LineRegex {
    compiled: regex::Regex,
    /// Bytes from the beginning of a match to the last one that it depends on, at most; none where
    /// a match has no greatest length.
    reach_bytes: Option<usize>,
    /// Whether lines may be searched many at a time: a line that matches by itself matches there.
    takes_blocks: bool,
    /// Whether the groups of a long match are quick to find.
    is_small: bool,
}

impl LineRegex {
    fn new(source: &str) -> Result<Self, PatternError> {
        let in_ascii = with_ascii_classes(source)?;
        let parsed = regex_syntax::ParserBuilder::new().multi_line(true).build().parse(&in_ascii);
        let hir = parsed.map_err(|fault| match fault {
            regex_syntax::Error::Parse(fault) => PatternError::from(fault.kind().to_string()),
            regex_syntax::Error::Translate(fault) => PatternError {
                why: fault.kind().to_string(),
                at: (in_ascii == source).then(|| character_at(source, fault.span())),
            },
            fault => PatternError::from(fault.to_string()),
        })?;
        let facts = hir.properties();
        let ahead = usize::from(!facts.look_set().is_empty());
        let is_of_text = |look| facts.look_set().contains(look);
        let compile = |bytes| {
            let mut builder = RegexBuilder::new(&in_ascii);
            builder.multi_line(true).size_limit(bytes).dfa_size_limit(REGEX_CACHE_BYTES);
            builder.build()
        };
        let small = compile(REGEX_SMALL_BYTES);
        let is_small = small.is_ok();
        let compiled = small.or_else(|_| compile(REGEX_BYTES)).map_err(|_| {
            PatternError::from(format!(
                "compiles to more than {} KiB: repeat less of it, or by * instead of a number",
                REGEX_BYTES / 1024
            ))
        })?;
        Ok(LineRegex {
            compiled,
            reach_bytes: facts.maximum_len().map(|length| length + ahead),
            takes_blocks: !is_of_text(Look::Start) && !is_of_text(Look::End),
            is_small,
        })
    }

    fn captures(&self, line: &str, found: &Range<usize>) -> Vec<Option<Range<usize>>> {
        let groups = self.compiled.captures_len().min(UNTIL_CAPTURES_MAX + 1);
        if groups == 1 {
            return Vec::new();
        }
        if !self.is_small && found.len() > REGEX_SMALL_MATCH_BYTES {
            return vec![None; groups - 1];
        }
        let captures = self.compiled.captures_at(line, found.start);
        let group = |number| Some(captures.as_ref()?.get(number)?.range());
        (1..groups).map(group).collect()
    }
}

/// The number of the character at which a span begins, from 1.
fn character_at(source: &str, span: &Span) -> usize {
    source[..span.start.offset].chars().count() + 1
}

/// The regex with the classes and word boundaries of ASCII. The flag for that (`(?-u)`) would make
/// single bytes of `.` and of negated classes too.
fn with_ascii_classes(source: &str) -> Result<String, PatternError> {
    let parsed = ast::parse::Parser::new().parse(source).map_err(|fault| PatternError {
        why: fault.kind().to_string(),
        at: Some(character_at(source, fault.span())),
    })?;
    let edits = AsciiEdits { source, edits: Vec::new() };
    let edits = ast::visit(&parsed, edits).map_err(|newline| PatternError {
        why: NEWLINE.to_owned(),
        at: Some(character_at(source, &newline)),
    })?;
    let mut ascii = String::with_capacity(source.len());
    let mut copied_to = 0;
    for (span, edit) in edits {
        ascii.push_str(&source[copied_to..span.start]);
        ascii.push_str(&edit);
        copied_to = span.end;
    }
    ascii.push_str(&source[copied_to..]);
    Ok(ascii)
}

/// What stands where in a regex instead, in order.
struct AsciiEdits<'a> {
    source: &'a str,
    edits: Vec<(Range<usize>, String)>,
}

impl AsciiEdits<'_> {
    fn class(&mut self, class: &ClassPerl) {
        let name = match class.kind {
            ClassPerlKind::Digit => "digit",
            ClassPerlKind::Space => "space",
            ClassPerlKind::Word => "word",
        };
        let not = if class.negated { "^" } else { "" };
        self.edits.push((range_of(&class.span), format!("[{not}[:{name}:]]")));
    }
}

fn range_of(span: &Span) -> Range<usize> {
    span.start.offset..span.end.offset
}

impl Visitor for AsciiEdits<'_> {
    type Output = Vec<(Range<usize>, String)>;
    type Err = Span;

    fn finish(self) -> Result<Self::Output, Span> {
        Ok(self.edits)
    }

    fn visit_pre(&mut self, part: &Ast) -> Result<(), Span> {
        match part {
            Ast::Literal(literal) if literal.c == '\n' => return Err(literal.span),
            Ast::ClassPerl(class) => self.class(class),
            Ast::Assertion(assertion) => {
                let range = range_of(&assertion.span);
                let written = &self.source[range.clone()];
                // The others (`^`, `$`, `\A`, `\z`) know no classes.
                if [r"\b", r"\B", r"\<", r"\>"].iter().any(|word| written.starts_with(word)) {
                    self.edits.push((range, format!("(?-u:{written})")));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Span> {
        if let ClassSetItem::Perl(class) = item {
            self.class(class);
        }
        Ok(())
    }
}
