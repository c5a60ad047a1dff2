//! What has come of a part of a log. The log writer reads only so much of a log for one answer, and
//! each answer ends at a gap: a part is put together of several answers where it has to be. Values
//! in, values out; the requests are `line`'s.

use super::PartSpec;
use crate::keeper::range::{Head, Range, Wanted};
use crate::limits::LOG_PAGE_LOOKBACK_BYTES;
use crate::pure::text::page::last_lines;

/// How many times more output they are looked for in, each time that it has fewer.
const READ_LINES_WIDER: u64 = 4;

/// Output in which the last lines are looked for first.
const READ_LINES_FIRST_BYTES: u64 = 4 * 1024;

/// How often the log is asked again for one page, because what was found ends before the page
/// begins, or before the last lines: so often that a log of the default bound is read to its end,
/// 8 MiB an answer.
const READ_AGAIN_MAX: u32 = 128;

/// Some of a part, and from which byte on it was asked for.
type Piece = (u64, Range);

/// A part that is gathered.
#[derive(Debug)]
pub(super) struct Gather {
    /// The first byte that is looked for by now.
    from: u64,
    /// The first byte of what is asked for next.
    at: u64,
    /// A few bytes before it are wanted too.
    lead: bool,
    /// What has come from `from` on, or from behind a gap on, and does not reach the end yet.
    front: Option<Piece>,
    /// What has come and reaches the end, but has fewer lines than are wanted.
    fewer: Option<Piece>,
    /// How often the log writer may be asked again.
    again: u32,
}

/// What is to be done with a part.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The log writer is asked again.
    Ask,
    /// This has come, of what was asked for from this byte on.
    Done(u64, Range),
}

impl Gather {
    /// Nothing has come yet.
    pub(super) fn new(spec: &PartSpec) -> Self {
        // Lines may be scattered over a large log: the last ones are looked for from its end on.
        let near = spec.to.saturating_sub(READ_LINES_FIRST_BYTES);
        let from = if spec.lines.is_some() { near.max(spec.from) } else { spec.from };
        Self { from, at: from, lead: true, front: None, fewer: None, again: READ_AGAIN_MAX }
    }

    /// What the log writer is asked for.
    pub(super) fn wanted(&self, spec: &PartSpec) -> Wanted {
        let lead = if self.lead { LOG_PAGE_LOOKBACK_BYTES.min(self.at) } else { 0 };
        Wanted {
            only: spec.only,
            from: i64::try_from(self.at - lead).unwrap_or(i64::MAX),
            to: spec.to,
            max_bytes: spec.most + lead,
            total: Some(spec.total),
        }
    }

    /// Takes in an answer.
    pub(super) fn take(&mut self, spec: &PartSpec, came: Range) -> Next {
        let (reached, asked_at) = (came.head.to, self.at);
        let ends = spec.to.min(spec.total).min(came.head.known_total);
        let in_front = std::mem::take(&mut self.lead) && reached <= self.from;
        let short = reached < ends && (in_front || (spec.lines.is_some() && reached > asked_at));
        let joins = came.head.gap.0 >= came.head.gap.1;
        let (begins, came) = match self.front.take() {
            Some((begins, front)) if joins => (begins, joined(front, came)),
            _ => (asked_at, came),
        };
        if short && self.may_ask_again() {
            self.front = (!in_front).then_some((begins, came));
            self.at = self.from.max(reached);
            return Next::Ask;
        }
        let Some(lines) = spec.lines else { return Next::Done(begins, came) };
        if short {
            // Fewer lines are told rather than others than the last ones.
            let (begins, fewer) = self.fewer.take().unwrap_or_else(|| nothing_at(ends));
            return Next::Done(begins, fewer);
        }
        if last_lines(&came.bytes, lines) == 0 && self.from > spec.from && self.may_ask_again() {
            let span = (spec.to - self.from).saturating_mul(READ_LINES_WIDER);
            self.fewer = Some((begins, came));
            self.from = spec.to.saturating_sub(span).max(spec.from);
            (self.at, self.lead) = (self.from, true);
            return Next::Ask;
        }
        Next::Done(begins, came)
    }

    fn may_ask_again(&mut self) -> bool {
        let may = self.again > 0;
        self.again = self.again.saturating_sub(1);
        may
    }
}

/// Two answers, of which the second one goes on where the first one ends.
fn joined(mut front: Range, came: Range) -> Range {
    front.bytes.extend_from_slice(&came.bytes);
    front.head = Head { from: front.head.from, gap: front.head.gap, ..came.head };
    front
}

fn nothing_at(at: u64) -> Piece {
    let head = Head { from: at, to: at, gap: (at, at), ..Head::default() };
    (at, Range { head, bytes: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::session::output::Source;

    const TOTAL: u64 = 100_000;

    fn spec(from: u64, lines: Option<usize>) -> PartSpec {
        let (name, only, to, most) = (String::new(), Some(Source::Errors), TOTAL, 65_536);
        PartSpec { name, only, from, to, most, lines, total: TOTAL }
    }

    /// What a log has: lines of ten bytes, but for those bytes.
    fn byte(at: u64) -> u8 {
        if at % 10 == 9 { b'\n' } else { b'0' + u8::try_from(at / 10 % 10).expect("a digit") }
    }

    /// An answer of a log writer that reads so many bytes for one, of a log that lacks some.
    fn answer(wanted: &Wanted, most: u64, lacks: &[(u64, u64)]) -> Range {
        let begins = wanted.from.cast_unsigned();
        let mut from = begins;
        while let Some(gap) = lacks.iter().find(|gap| gap.0 <= from && from < gap.1) {
            from = gap.1;
        }
        let end = lacks.iter().map(|gap| gap.0).filter(|gap| *gap > from).min().unwrap_or(TOTAL);
        let to = end.min(from + most.min(wanted.max_bytes)).min(wanted.to).max(from);
        let gap = (begins, from);
        let head = Head { from, to, gap, log_from: 0, known_total: TOTAL };
        Range { head, bytes: (from..to).map(byte).collect() }
    }

    /// What is gathered, and how many answers that took.
    fn gathered(spec: &PartSpec, most: u64, lacks: &[(u64, u64)]) -> (Piece, u32) {
        let mut gather = Gather::new(spec);
        for count in 1.. {
            let range = answer(&gather.wanted(spec), most, lacks);
            if let Next::Done(begins, range) = gather.take(spec, range) {
                return ((begins, range), count);
            }
        }
        unreachable!()
    }

    /// Its lines, as an answer has them.
    fn lines_of((_, range): &Piece, lines: usize) -> (u64, u64) {
        let first = last_lines(&range.bytes, lines);
        let expected: Vec<u8> = (range.head.from..range.head.to).map(byte).collect();
        assert_eq!(range.bytes, expected, "nothing is left out between answers");
        (range.head.from + first as u64, range.head.to)
    }

    /// Answers of few bytes once ended with lines of the middle.
    /// rule: logs.md, Reading: with `lines` the last so many lines
    #[test]
    fn the_last_lines_are_those_of_the_end_however_little_an_answer_has() {
        for (lines, most, from) in [
            (3, 65_536, TOTAL - 30),
            (3, 40, TOTAL - 30),
            (400, 1_000, TOTAL - 4_000),
            (400, 100_000, TOTAL - 4_000),
            (500, 900, TOTAL - 5_000),
            (5_000, 4_000, TOTAL - 50_000),
        ] {
            let (found, count) = gathered(&spec(TOTAL - 65_536, Some(lines)), most, &[]);
            assert_eq!(lines_of(&found, lines), (from, TOTAL), "{lines} {most}");
            assert!(count <= READ_AGAIN_MAX + 1);
            if lines == 3 && most > 4_096 {
                assert_eq!(count, 1, "what is near the end is read at once");
            }
        }
    }

    /// rule: logs.md, Reading: with `lines` the last so many lines
    #[test]
    fn what_takes_too_many_answers_has_fewer_lines_and_never_others_than_the_last() {
        // 4,096 bytes of 40 each are read, and not four times as many.
        let (found, count) = gathered(&spec(TOTAL - 65_536, Some(5_000)), 40, &[]);
        let (from, to) = lines_of(&found, 5_000);
        assert_eq!((from, to, count), (TOTAL - 4_096 - 3, TOTAL, READ_AGAIN_MAX + 1));
        // Nor these.
        let (found, count) = gathered(&spec(TOTAL - 65_536, Some(5_000)), 4, &[]);
        assert_eq!(found, nothing_at(TOTAL));
        assert_eq!(count, READ_AGAIN_MAX + 1);
    }

    /// rule: logs.md, Reading: A gap is what the log has lost at its beginning, or what never got
    ///   there
    #[test]
    fn the_last_lines_stand_behind_the_last_gap_which_alone_is_told() {
        let gap = (TOTAL - 200, TOTAL - 50);
        for most in [65_536, 40] {
            let wanted = spec(TOTAL - 65_536, Some(20));
            let ((begins, range), _) = gathered(&wanted, most, &[(10, 90_000), gap]);
            assert_eq!((begins, range.head.from, range.head.to), (gap.0, gap.1, TOTAL), "{most}");
        }
        // Of what is lost at the end nothing is made up.
        let wanted = spec(TOTAL - 65_536, Some(20));
        let ((begins, range), _) = gathered(&wanted, 65_536, &[(TOTAL - 60, TOTAL)]);
        assert_eq!((begins, range.head.to, range.bytes.len()), (TOTAL - 60, TOTAL, 0));
    }

    #[test]
    fn a_page_is_one_answer_unless_that_has_only_what_lies_before_it() {
        let (found, count) = gathered(&spec(1_000, None), 500, &[]);
        assert_eq!((found.0, found.1.head.from, found.1.head.to), (1_000, 997, 1_497));
        assert_eq!(count, 1);
        for gap in [(999, 2_000), (1_000, 2_000)] {
            let (found, count) = gathered(&spec(1_000, None), 500, &[gap]);
            let head = found.1.head;
            assert_eq!((found.0, head.from, head.to, count), (1_000, 2_000, 2_500, 2));
        }
    }
}
