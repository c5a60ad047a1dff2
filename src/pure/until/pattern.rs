//! Patterns: what one is, how a regex is compiled within bounds, and its matches in a line.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

use memchr::{memchr, memmem, memrchr};
use regex_automata::hybrid::{LazyStateID, dfa};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures, pikevm};
use regex_automata::util::captures::Captures;
use regex_automata::{Anchored, Input, MatchKind};

use super::needles::{Among, Needle, Run, needles};
use super::syntax;
use crate::limits::{
    REGEX_BACK_NFA_BYTES, REGEX_CACHE_BYTES, REGEX_LANE_BYTES, REGEX_LANES, REGEX_NEAR_BYTES,
    REGEX_NFA_BYTES, REGEX_RUN_MISSES, UNTIL_CAPTURES_MAX, UNTIL_PATTERN_BYTES,
};

/// Why a pattern can't be taken.
#[derive(Debug, PartialEq, Eq)]
pub struct PatternError {
    /// In words.
    pub why: String,
    /// The character where it is wrong, counted from 1.
    pub at: Option<usize>,
}

impl From<&str> for PatternError {
    fn from(why: &str) -> Self {
        PatternError { why: why.to_owned(), at: None }
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
        regex: Box<Regex>,
    },
}

impl Pattern {
    /// A text. Refused are those that are empty, too long, or of more than a line.
    pub fn text(index: usize, text: &str) -> Result<Self, PatternError> {
        check(text)?;
        if text.contains('\n') {
            let at = text.chars().position(|c| c == '\n').map(|at| at + 1);
            let why = "a newline is never matched: patterns are matched a line at a time";
            return Err(PatternError { why: why.to_owned(), at });
        }
        let finder = Box::new(memmem::Finder::new(text).into_owned());
        Ok(Pattern::Text { index, text: text.to_owned(), finder })
    }

    /// A regex. Refused are those that are empty, too long, wrong, or too large when compiled.
    pub fn regex(index: usize, source: &str) -> Result<Self, PatternError> {
        check(source)?;
        let regex = Box::new(Regex::new(source)?);
        Ok(Pattern::Regex { index, source: source.to_owned(), regex })
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

    /// How many searches it takes to know that nothing matches.
    pub(super) fn probes(&self) -> usize {
        match self {
            Pattern::Text { .. } => 1,
            Pattern::Regex { regex, .. } => regex.needles.len().max(1),
        }
    }

    /// A place in the first line, at or behind `from`, in which `probe` allows of a match. `from`
    /// is the start of a line.
    pub(super) fn probe(&self, probe: usize, text: &str, from: usize) -> Option<usize> {
        let rest = &text.as_bytes()[from..];
        match self {
            Pattern::Text { finder, .. } => finder.find(rest).map(|at| from + at),
            Pattern::Regex { regex, .. } => match regex.needles.get(probe) {
                Some(needle) => needle.find(rest).map(|at| from + at),
                None => regex.may_match(text.as_bytes(), from),
            },
        }
    }

    /// The first match in `line` that begins at `from` or later.
    pub(super) fn find(&self, line: &str, from: usize) -> Option<Range<usize>> {
        match self {
            Pattern::Text { text, finder, .. } => {
                let at = from + finder.find(&line.as_bytes()[from..])?;
                Some(at..at + text.len())
            }
            Pattern::Regex { regex, source, .. } => regex.find(line, from, source),
        }
    }

    /// Whether what `find` has found in a line that goes on stays the same whatever comes.
    pub(super) fn is_final(&self, line: &str, from: usize, found: &Range<usize>) -> bool {
        match self {
            Pattern::Text { .. } => true,
            Pattern::Regex { regex, .. } => regex.is_final(line, from, found),
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
        return Err("a pattern must not be empty".into());
    }
    if pattern.len() > UNTIL_PATTERN_BYTES {
        let why = format!("{} bytes, at most {UNTIL_PATTERN_BYTES}", pattern.len());
        return Err(PatternError { why, at: None });
    }
    Ok(())
}

/// A compiled regex. Its searches need memory that is kept between them; nothing else is.
pub struct Regex {
    /// A match has one of these; none: it is not known what it has.
    needles: Vec<Needle>,
    /// A match has this; none where it has a needle.
    run: Option<Run>,
    /// A match has a byte of each; none where it has a needle.
    among: Vec<Among>,
    dfa: dfa::DFA,
    cache: RefCell<Option<dfa::Cache>>,
    pike: pikevm::PikeVM,
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Regex").finish_non_exhaustive()
    }
}

impl Regex {
    fn new(source: &str) -> Result<Self, PatternError> {
        let hir = syntax::parse(source)?;
        let limits = thompson::Config::new().utf8(false).nfa_size_limit(Some(REGEX_NFA_BYTES));
        let too_large = "the compiled regex is too large";
        let nfa: NFA = thompson::Compiler::new()
            .configure(limits)
            .build_from_hir(&hir)
            .map_err(|_| PatternError::from(too_large))?;
        let dfa = automaton(nfa.clone(), MatchKind::LeftmostFirst);
        let dfa = dfa.ok_or_else(|| PatternError::from(too_large))?;
        let pike = pikevm::PikeVM::new_from_nfa(nfa).map_err(|_| PatternError::from(too_large))?;
        let needles = needles(&hir);
        let run = Run::required(&hir).filter(|_| needles.is_empty());
        let among = if needles.is_empty() { Among::required(&hir) } else { Vec::new() };
        Ok(Regex { needles, run, among, dfa, cache: RefCell::new(None), pike })
    }

    /// Runs with the automaton and its memory.
    fn with<T>(&self, run: impl FnOnce(&dfa::DFA, &mut dfa::Cache) -> T) -> T {
        let mut cache = self.cache.borrow_mut();
        run(&self.dfa, cache.get_or_insert_with(|| self.dfa.create_cache()))
    }

    /// Where the first match in `range` is known to be one. The automaton never gives up.
    fn occurs(&self, text: &[u8], range: Range<usize>) -> Option<usize> {
        let from = range.start;
        let input = Input::new(text).range(range).earliest(true);
        self.with(|dfa, cache| match dfa.try_search_fwd(cache, &input) {
            Ok(found) => found.map(|found| found.offset()),
            Err(_) => Some(from),
        })
    }

    /// A place in the first line that matches, of the lines from the one that begins at `from` on.
    fn may_match(&self, text: &[u8], from: usize) -> Option<usize> {
        let mut from = from;
        for among in &self.among {
            // No line before that one matches.
            let at = from + among.find(text.get(from..)?)?;
            from = memrchr(b'\n', &text[from..at]).map_or(from, |newline| from + newline + 1);
        }
        if let Some(run) = &self.run {
            for _ in 0..REGEX_RUN_MISSES {
                let at = from + run.find(text.get(from..)?)?;
                let start = memrchr(b'\n', &text[from..at]).map_or(from, |n| from + n + 1);
                let end = memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n);
                if self.occurs(text, start..end).is_some() {
                    return Some(at);
                }
                from = end + 1;
            }
        }
        if from > text.len() || self.with(|dfa, cache| has_none(dfa, cache, text, from)) {
            return None;
        }
        self.occurs(text, from..text.len())
    }

    /// The automaton finds the match's end, and what finds its start looks no further.
    fn find(&self, line: &str, from: usize, source: &str) -> Option<Range<usize>> {
        let input = Input::new(line).range(from..);
        let end = self.with(|dfa, cache| dfa.try_search_fwd(cache, &input));
        let end = end.map_or(Some(line.len()), |found| Some(found?.offset()))?;
        let far = || self.find_far(line, from..end, source);
        let far = if end - from > REGEX_NEAR_BYTES { far() } else { None };
        far.or_else(|| self.find_near(line, from..end))
    }

    /// By the threads of the regex.
    pub(super) fn find_near(&self, line: &str, range: Range<usize>) -> Option<Range<usize>> {
        let mut slots = [None; 2];
        let mut cache = self.pike.create_cache();
        let input = Input::new(line).range(range);
        self.pike.search_slots(&mut cache, &input, &mut slots)?;
        Some(slots[0]?.get()..slots[1]?.get())
    }

    /// By a second automaton, which goes from the match's end back to its start. The search above,
    /// in which each byte costs as much as the regex is large, stood in the way of all other
    /// sessions for seconds. The automaton is made when it is needed: a match ends most waits.
    /// None: it can't be had.
    pub(super) fn find_far(
        &self,
        line: &str,
        range: Range<usize>,
        source: &str,
    ) -> Option<Range<usize>> {
        let back = thompson::Config::new()
            .utf8(false)
            .reverse(true)
            .which_captures(WhichCaptures::None)
            .nfa_size_limit(Some(REGEX_BACK_NFA_BYTES));
        let hir = syntax::parse(source).ok()?;
        let nfa = thompson::Compiler::new().configure(back).build_from_hir(&hir).ok()?;
        let dfa = automaton(nfa, MatchKind::All)?;
        let input = Input::new(line).range(range.clone()).anchored(Anchored::Yes);
        let start = dfa.try_search_rev(&mut dfa.create_cache(), &input).ok()??.offset();
        Some(start..range.end)
    }

    /// Whether the match that a search from `from` finds is the same whatever comes behind the
    /// line: no thread of the automaton goes on, for each class of bytes that may come next. Says
    /// no where the memory was emptied on the way.
    fn is_final(&self, line: &str, from: usize, found: &Range<usize>) -> bool {
        let outcome = self.with(|dfa, cache| {
            let input = Input::new(line).range(from..);
            let mut state = dfa.start_state_forward(cache, &input).ok()?;
            for byte in &line.as_bytes()[from..] {
                state = dfa.next_state(cache, state, *byte).ok()?;
                if state.is_dead() {
                    return Some(true);
                }
            }
            let emptied = cache.clear_count();
            let mut step = |state, byte: u8| {
                let next = dfa.next_state(cache, state, byte).ok()?;
                (cache.clear_count() == emptied).then_some(next)
            };
            let classes = dfa.byte_classes().representatives(..);
            let next: Vec<u8> = classes.filter_map(|unit| unit.as_u8()).collect();
            for first in &next {
                let after = step(state, *first)?;
                if found.end < line.len() {
                    if !after.is_dead() {
                        return Some(false);
                    }
                    continue;
                }
                // A match is told one byte behind its end.
                if !after.is_match() {
                    return Some(false);
                }
                for second in &next {
                    if !step(after, *second)?.is_dead() {
                        return Some(false);
                    }
                }
            }
            Some(true)
        });
        outcome.unwrap_or(false)
    }

    fn captures(&self, line: &str, found: &Range<usize>) -> Vec<Option<Range<usize>>> {
        let mut cache = self.pike.create_cache();
        let mut captures = Captures::all(self.pike.get_nfa().group_info().clone());
        let input = Input::new(line).range(found.clone()).anchored(Anchored::Yes);
        self.pike.search(&mut cache, &input, &mut captures);
        let groups = captures.group_len().min(UNTIL_CAPTURES_MAX + 1);
        (1..groups).map(|group| captures.get_group(group).map(|span| span.range())).collect()
    }
}

/// The lazily built automaton of a regex, which never gives up.
fn automaton(nfa: NFA, kind: MatchKind) -> Option<dfa::DFA> {
    let config = dfa::Config::new()
        .match_kind(kind)
        .cache_capacity(REGEX_CACHE_BYTES)
        .skip_cache_capacity_check(true);
    dfa::Builder::new().configure(config).build_from_nfa(nfa).ok()
}

/// Whether nothing matches in the lines from the one that begins at `from` on; false also where
/// that is not known. A step of the automaton waits for the one before, so several parts of the
/// text, of whole lines each, are gone through at the same time: no match reaches across a line's
/// end.
fn has_none(dfa: &dfa::DFA, cache: &mut dfa::Cache, text: &[u8], from: usize) -> bool {
    let part = (text.len() - from) / REGEX_LANES;
    if part < REGEX_LANE_BYTES {
        return false;
    }
    let mut begins = [from; REGEX_LANES];
    for (lane, begin) in begins.iter_mut().enumerate().skip(1) {
        let near = from + lane * part;
        let Some(newline) = memchr(b'\n', &text[near..]) else { return false };
        *begin = near + newline + 1;
    }
    let end_of = |lane: usize| begins.get(lane + 1).copied().unwrap_or(text.len());
    let lanes: [&[u8]; REGEX_LANES] = std::array::from_fn(|lane| {
        let (begin, end) = (begins[lane], end_of(lane));
        &text[begin.min(end)..end]
    });
    let mut states = [LazyStateID::default(); REGEX_LANES];
    let emptied = cache.clear_count();
    for (state, begin) in states.iter_mut().zip(begins) {
        let Ok(start) = dfa.start_state_forward(cache, &Input::new(text).range(begin..)) else {
            return false;
        };
        *state = start;
    }
    let common = lanes.iter().map(|lane| lane.len()).min().unwrap_or(0);
    let known = cache.clear_count() == emptied && !states.iter().any(LazyStateID::is_tagged);
    // Long lines make parts of different length, of which only the common one is quick.
    if !known || common < part - part / 4 {
        return false;
    }
    let [a, b, c, d] = lanes.map(|lane| &lane[..common]);
    for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
        let bytes = [*a, *b, *c, *d];
        let next: [LazyStateID; REGEX_LANES] =
            std::array::from_fn(|lane| dfa.next_state_untagged(cache, states[lane], bytes[lane]));
        if next.iter().any(LazyStateID::is_tagged) {
            for (state, byte) in states.iter_mut().zip(bytes) {
                let Some(next) = step(dfa, cache, *state, byte) else { return false };
                *state = next;
            }
        } else {
            states = next;
        }
    }
    for (lane, state) in lanes.iter().zip(&mut states) {
        for byte in &lane[common..] {
            let Some(next) = step(dfa, cache, *state, *byte) else { return false };
            *state = next;
        }
    }
    let last = dfa.next_eoi_state(cache, states[REGEX_LANES - 1]);
    last.is_ok_and(|last| !last.is_match()) && cache.clear_count() == emptied
}

/// The state behind a byte. None: something matches, or the states are no longer known.
fn step(
    dfa: &dfa::DFA,
    cache: &mut dfa::Cache,
    state: LazyStateID,
    byte: u8,
) -> Option<LazyStateID> {
    let emptied = cache.clear_count();
    let next = dfa.next_state(cache, state, byte).ok()?;
    (!next.is_tagged() && cache.clear_count() == emptied).then_some(next)
}
