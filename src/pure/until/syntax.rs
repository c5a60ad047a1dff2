//! The syntax of regexes, and what it means here: a line at a time, by characters, with the
//! classes and cases of ASCII.
//!
//! `.`, negated classes and literals stand for whole characters of any script. `\w`, `\d`, `\s`,
//! `\b` and `(?i)` know ASCII only: the tables of Unicode would be larger than the engine.

use regex_syntax::ast::{
    self, Ast, ClassAscii, ClassAsciiKind, ClassBracketed, ClassPerl, ClassPerlKind, ClassSet,
    ClassSetItem, ClassSetRange, ClassSetUnion, Flag, Flags, FlagsItemKind, GroupKind, Literal,
    LiteralKind, Span,
};
use regex_syntax::hir::translate::TranslatorBuilder;
use regex_syntax::hir::{Capture, Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look};

use super::PatternError;
use crate::limits::REGEX_NEST;

/// A regex as it is compiled: it never matches across a newline, and `^` and `$` are the ends of
/// a line. Errors say where in the pattern they are.
pub(super) fn parse(pattern: &str) -> Result<Hir, PatternError> {
    let at = |span: &Span| Some(pattern[..span.start.offset].chars().count() + 1);
    let mut ast =
        ast::parse::ParserBuilder::new().nest_limit(REGEX_NEST).build().parse(pattern).map_err(
            |fault| PatternError { why: fault.kind().to_string(), at: at(fault.span()) },
        )?;
    Ascii { fold: false }.ast(&mut ast).map_err(|span| PatternError {
        why: "a newline is never matched: patterns are matched a line at a time".to_owned(),
        at: at(&span),
    })?;
    let hir = TranslatorBuilder::new()
        .build()
        .translate(pattern, &ast)
        .map_err(|fault| PatternError { why: fault.kind().to_string(), at: at(fault.span()) })?;
    Ok(of_a_line(hir))
}

/// Rewrites classes and cases to those of ASCII, so that no table of Unicode is asked for.
struct Ascii {
    /// Whether `(?i)` is in force.
    fold: bool,
}

impl Ascii {
    /// Gives the place of a newline that is asked for.
    fn ast(&mut self, ast: &mut Ast) -> Result<(), Span> {
        match ast {
            Ast::Flags(set) => self.flags(&mut set.flags),
            Ast::Literal(literal) if literal.c == '\n' => return Err(literal.span),
            Ast::Literal(literal) if self.fold && literal.c.is_ascii_alphabetic() => {
                let items = self.cases(literal);
                *ast = bracketed(literal.span, items);
            }
            Ast::ClassPerl(class) => *ast = bracketed(class.span, ascii_class(class)),
            Ast::ClassBracketed(class) => self.set(&mut class.kind),
            Ast::Repetition(repetition) => self.ast(&mut repetition.ast)?,
            Ast::Group(group) => {
                let before = self.fold;
                if let GroupKind::NonCapturing(flags) = &mut group.kind {
                    self.flags(flags);
                }
                self.ast(&mut group.ast)?;
                self.fold = before;
            }
            Ast::Alternation(parts) => {
                for part in &mut parts.asts {
                    self.ast(part)?;
                }
            }
            Ast::Concat(parts) => {
                for part in &mut parts.asts {
                    self.ast(part)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes note of `i`, and takes it out; `u` too, which has nothing to say here.
    fn flags(&mut self, flags: &mut Flags) {
        let mut given = true;
        for item in &flags.items {
            match item.kind {
                FlagsItemKind::Negation => given = false,
                FlagsItemKind::Flag(Flag::CaseInsensitive) => self.fold = given,
                FlagsItemKind::Flag(_) => {}
            }
        }
        flags.items.retain(|item| {
            let dropped = [Flag::CaseInsensitive, Flag::Unicode];
            !matches!(item.kind, FlagsItemKind::Flag(flag) if dropped.contains(&flag))
        });
    }

    fn set(&mut self, set: &mut ClassSet) {
        match set {
            ClassSet::Item(item) => self.item(item),
            ClassSet::BinaryOp(operation) => {
                self.set(&mut operation.lhs);
                self.set(&mut operation.rhs);
            }
        }
    }

    fn item(&mut self, item: &mut ClassSetItem) {
        match item {
            ClassSetItem::Perl(class) => *item = ascii_class(class),
            ClassSetItem::Literal(literal) if self.fold && literal.c.is_ascii_alphabetic() => {
                *item = self.cases(literal);
            }
            ClassSetItem::Range(range) if self.fold => *item = folded_range(range),
            ClassSetItem::Ascii(class) if self.fold => {
                if matches!(class.kind, ClassAsciiKind::Lower | ClassAsciiKind::Upper) {
                    class.kind = ClassAsciiKind::Alpha;
                }
            }
            ClassSetItem::Bracketed(class) => self.set(&mut class.kind),
            ClassSetItem::Union(union) => {
                for item in &mut union.items {
                    self.item(item);
                }
            }
            _ => {}
        }
    }

    /// Both cases of a letter.
    fn cases(&self, literal: &Literal) -> ClassSetItem {
        let one = |c: char| ClassSetItem::Literal(literal_of(literal.span, c));
        let cases = [literal.c.to_ascii_lowercase(), literal.c.to_ascii_uppercase()];
        union(literal.span, cases.map(one).into())
    }
}

fn literal_of(span: Span, c: char) -> Literal {
    Literal { span, kind: LiteralKind::Verbatim, c }
}

fn union(span: Span, items: Vec<ClassSetItem>) -> ClassSetItem {
    ClassSetItem::Union(ClassSetUnion { span, items })
}

fn bracketed(span: Span, item: ClassSetItem) -> Ast {
    Ast::class_bracketed(ClassBracketed { span, negated: false, kind: ClassSet::Item(item) })
}

/// `\d`, `\s` and `\w` of ASCII.
fn ascii_class(class: &ClassPerl) -> ClassSetItem {
    let kind = match class.kind {
        ClassPerlKind::Digit => ClassAsciiKind::Digit,
        ClassPerlKind::Space => ClassAsciiKind::Space,
        ClassPerlKind::Word => ClassAsciiKind::Word,
    };
    ClassSetItem::Ascii(ClassAscii { span: class.span, kind, negated: class.negated })
}

/// A range with the other case of its letters.
fn folded_range(range: &ClassSetRange) -> ClassSetItem {
    let mut items = vec![ClassSetItem::Range(range.clone())];
    for (first, last) in [('a', 'z'), ('A', 'Z')] {
        let (low, high) = (range.start.c.max(first), range.end.c.min(last));
        if low <= high {
            let other = |c: char| {
                if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
            };
            items.push(ClassSetItem::Range(ClassSetRange {
                span: range.span,
                start: literal_of(range.span, other(low)),
                end: literal_of(range.span, other(high)),
            }));
        }
    }
    union(range.span, items)
}

/// The same without newlines in classes, with the ends of lines for all ends, and with the word
/// boundaries of ASCII.
fn of_a_line(hir: Hir) -> Hir {
    match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(Class::Unicode(mut class)) => {
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(look) => Hir::look(match look {
            Look::Start | Look::StartLF | Look::StartCRLF => Look::StartLF,
            Look::End | Look::EndLF | Look::EndCRLF => Look::EndLF,
            Look::WordAscii | Look::WordUnicode => Look::WordAscii,
            Look::WordAsciiNegate | Look::WordUnicodeNegate => Look::WordAsciiNegate,
            Look::WordStartAscii | Look::WordStartUnicode => Look::WordStartAscii,
            Look::WordEndAscii | Look::WordEndUnicode => Look::WordEndAscii,
            Look::WordStartHalfAscii | Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
            Look::WordEndHalfAscii | Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
        }),
        HirKind::Repetition(mut repetition) => {
            repetition.sub = Box::new(of_a_line(*repetition.sub));
            Hir::repetition(repetition)
        }
        HirKind::Capture(Capture { index, name, sub }) => {
            Hir::capture(Capture { index, name, sub: Box::new(of_a_line(*sub)) })
        }
        HirKind::Concat(parts) => Hir::concat(parts.into_iter().map(of_a_line).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.into_iter().map(of_a_line).collect()),
    }
}
