//! The text that one wait looks at, as it comes: clean, a line at a time (waits.md, What is looked
//! at).
//!
//! A line that goes on is looked at again from its beginning when more of it comes, so no search
//! has a state of its own; LIVE_LINE_BYTES bounds what that costs. A plain block of many lines is
//! searched whole first, and line by line only where something in it may match.

use std::ops::Range;
use std::rc::Rc;

use memchr::{memchr, memrchr, memrchr_iter};

use super::echo::{Echo, Echoes, InEcho};
use super::{Condition, Pattern};
use crate::limits::{LIVE_LINE_BYTES, REDRAW_LINES};
use crate::pure::text::clean::live::{Line, Live};
use crate::pure::text::clean::plain_len;
use crate::pure::text::utf8::{ceil_boundary, floor_boundary};

/// Matches of one pattern that are counted in one line.
const UNTIL_LINE_MATCHES_MAX: usize = 1_024;

/// So much of plain output is kept for redraws that come behind it.
const LIVE_REDRAW_BYTES: usize = 4 * 1024;

/// Plain output of at least so many bytes is looked at as it is; less goes line by line.
const LIVE_FAST_BYTES: usize = 512;

/// Bytes of a matched line, and of one capture, as a reply tells them.
const UNTIL_TEXT_BYTES: usize = 500;

/// A match that ends the wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Whether it is one of `stop`.
    pub by_stop: bool,
    /// The field: text or regex.
    pub by: &'static str,
    /// The pattern's place in the list of that field.
    pub index: usize,
    /// The line, or what is around the match where it is longer than UNTIL_TEXT_BYTES.
    pub text: String,
    /// What the groups took; none for a group that took no part.
    pub captures: Vec<Option<String>>,
    /// Where the line begins, in raw bytes of output.
    pub offset: u64,
    /// Behind what was looked at of that line.
    pub next_offset: u64,
}

/// How many matches of a line have been counted: of `until`, of `stop`.
type Counted = [usize; 2];

/// Looks for the patterns of `until` and `stop` in the output that is pushed.
#[derive(Debug)]
pub struct TextWatch {
    sides: Sides,
    /// How many matches of each are still to come.
    left: [u32; 2],
    live: Live<Counted>,
    echoes: Echoes,
    /// Whether the last line has a match that what comes may still change.
    open: bool,
    hit: Option<Hit>,
}

/// The two conditions.
#[derive(Debug)]
struct Sides {
    conditions: [Option<Rc<Condition>>; 2],
}

/// What judging has found: how many matches are left, and the one that ends the wait.
struct Tally<'a> {
    left: &'a mut [u32; 2],
    hit: &'a mut Option<Hit>,
}

/// A line as it is judged.
struct Judged<'a> {
    text: &'a str,
    /// Where in it the search begins.
    from: usize,
    /// Whether more of it may come, and what comes counts.
    goes_on: bool,
    start: u64,
    end: u64,
}

/// What is known of the last line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// More comes, or may come at once.
    GoesOn,
    /// Nothing more has come for a while.
    Rests,
    /// Nothing more will come.
    Ends,
}

/// A match in a line.
struct Found<'a> {
    side: usize,
    pattern: &'a Pattern,
    range: Range<usize>,
}

impl TextWatch {
    /// A watch of output that begins at the raw `offset`; none where nothing has patterns.
    pub fn new(
        until: Option<Rc<Condition>>,
        stop: Option<Rc<Condition>>,
        offset: u64,
    ) -> Option<Self> {
        let conditions = [until, stop];
        if !conditions.iter().flatten().any(|condition| condition.has_patterns()) {
            return None;
        }
        let left = [0, 1].map(|side: usize| {
            conditions[side].as_ref().map_or(1, |condition| condition.count.max(1))
        });
        let sides = Sides { conditions };
        let (live, echoes) = (Live::new(offset), Echoes::default());
        Some(TextWatch { sides, left, live, echoes, open: false, hit: None })
    }

    /// Takes the next bytes of output. What comes behind the first hit is ignored.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && self.hit.is_none() {
            let taken = self.fast(rest).unwrap_or_else(|| self.slow(rest));
            rest = &rest[taken..];
        }
    }

    /// So many bytes are missing here: matches do not go across.
    pub fn skip(&mut self, bytes: u64) {
        self.end();
        self.open = false;
        self.live.start_at(self.live.at() + bytes);
    }

    /// This was written to the session: its echo does not count.
    pub fn sent(&mut self, bytes: &[u8], echo: Echo) {
        let last = self.live.line_count() - 1;
        let column = self.live.text_from(last).len();
        self.echoes.sent(bytes, echo, self.live.line(last).start, column);
    }

    /// The output before what will be pushed ended so: a sequence may go on from there.
    pub fn goes_on_behind(&mut self, lead: &[u8]) {
        self.live.goes_on_behind(lead);
    }

    /// Output has been quiet for a while: a match that what comes might have changed counts.
    pub fn quiet(&mut self) {
        self.at_rest(true);
    }

    /// Whether there is a match that waits for quiet.
    pub fn wants_quiet(&self) -> bool {
        self.open && self.hit.is_none()
    }

    /// The output has ended.
    pub fn end(&mut self) {
        self.at_rest(false);
    }

    /// The match that ends the wait.
    pub fn hit(&self) -> Option<&Hit> {
        self.hit.as_ref()
    }

    fn at_rest(&mut self, goes_on: bool) {
        if self.open && self.hit.is_none() {
            let last = self.live.line_count() - 1;
            self.judge_from(last, if goes_on { Last::Rests } else { Last::Ends });
            self.open = false;
        }
    }

    /// Takes whole lines that need no cleaning, if the bytes begin with a good many of them and
    /// the last line is at its end.
    fn fast(&mut self, bytes: &[u8]) -> Option<usize> {
        if bytes.len() < LIVE_FAST_BYTES || self.echoes.expects() || !self.live.appends() {
            return None;
        }
        let last = self.live.line_count() - 1;
        if !self.live.text_from(last).is_empty() {
            return None;
        }
        let plain = plain_len(bytes);
        let end = memrchr(b'\n', &bytes[..plain])? + 1;
        let text = std::str::from_utf8(&bytes[..end]).ok().filter(|_| end >= LIVE_FAST_BYTES)?;
        let begun = self.live.at();
        let block = &text[..end - 1];
        let mut start = self.sides.first_line(block).unwrap_or(end);
        while start < end {
            let line_end = memchr(b'\n', &bytes[start..end]).map_or(end, |at| start + at);
            let line = &text[start..line_end];
            let from = ceil_boundary(line, line.len().saturating_sub(LIVE_LINE_BYTES));
            let (start_byte, end_byte) = (begun + start as u64, begun + line_end as u64 + 1);
            let judged =
                Judged { text: line, from, goes_on: false, start: start_byte, end: end_byte };
            let mut tally = Tally { left: &mut self.left, hit: &mut self.hit };
            self.sides.judge(&judged, &mut [0, 0], &InEcho::Nothing, &mut tally);
            if self.hit.is_some() {
                return Some(end);
            }
            start = line_end + 1;
        }
        let low = end.saturating_sub(LIVE_REDRAW_BYTES);
        let newlines = memrchr_iter(b'\n', &bytes[low..end]).take(REDRAW_LINES + 1);
        let kept = newlines.last().map_or(end, |newline| low + newline + 1);
        self.live.go_on_behind(&text[kept..], begun + end as u64);
        if self.sides.count() {
            // Redraws of these lines must not count them again.
            self.recount(0);
        }
        self.open = false;
        Some(end)
    }

    /// Takes bytes through the cleaner: all that a search may have at once, or up to where a fast
    /// way may begin.
    fn slow(&mut self, bytes: &[u8]) -> usize {
        let mut taken = bytes.len().min(LIVE_LINE_BYTES);
        if bytes.len() > LIVE_FAST_BYTES
            && let Some(newline) = memchr(b'\n', bytes)
        {
            // Behind a short rest of a line, a long plain block.
            let rest = &bytes[newline + 1..];
            if newline < taken
                && plain_len(&bytes[..newline + 1]) == newline + 1
                && plain_len(&rest[..rest.len().min(LIVE_FAST_BYTES)]) == LIVE_FAST_BYTES
                && self.live.appends()
                && !self.echoes.expects()
            {
                taken = newline + 1;
            }
        }
        let first = self.live.push(&bytes[..taken]);
        self.judge_from(first, Last::GoesOn);
        if self.hit.is_none() && self.live.forget() {
            self.recount(self.live.line_count() - 1);
        }
        taken
    }

    /// Judges the lines from `first` on.
    fn judge_from(&mut self, first: usize, last: Last) {
        let text = self.live.text_from(first).into_owned();
        self.open = false;
        // Echo is known by all lines in their order.
        let from = if self.echoes.expects() { Some(0) } else { self.sides.first_line(&text) };
        let mut start = 0;
        for (at, line) in text.split('\n').enumerate() {
            let begun = start;
            start += line.len() + 1;
            if from.is_none_or(|from| begun < from) {
                continue;
            }
            let number = first + at;
            let is_last = number + 1 == self.live.line_count();
            let Line { start: start_byte, note: mut counted } = self.live.line(number);
            let end = if is_last { self.live.at() } else { self.live.line(number + 1).start };
            let goes_on = is_last && last == Last::GoesOn;
            let judged = Judged { text: line, from: 0, goes_on, start: start_byte, end };
            let in_echo = self.echoes.see(line, start_byte, is_last && last != Last::Ends);
            let mut tally = Tally { left: &mut self.left, hit: &mut self.hit };
            self.open |= self.sides.judge(&judged, &mut counted, &in_echo, &mut tally);
            self.live.note(number, counted);
            if self.hit.is_some() {
                return;
            }
        }
    }

    /// Notes as counted what matches in the lines from `first` on.
    fn recount(&mut self, first: usize) {
        let text = self.live.text_from(first).into_owned();
        for (at, line) in text.split('\n').enumerate() {
            let number = first + at;
            let goes_on = number + 1 == self.live.line_count();
            let judged = Judged { text: line, from: 0, goes_on, start: 0, end: 0 };
            let (found, _) = self.sides.matches(&judged);
            let count = |side| found.iter().filter(|one| one.side == side).count();
            self.live.note(number, [count(0), count(1)]);
        }
    }
}

impl Sides {
    /// The start of the first line of a block that may match.
    fn first_line(&self, block: &str) -> Option<usize> {
        let patterns = self.conditions.iter().flatten().flat_map(|condition| &condition.patterns);
        patterns.filter_map(|pattern| pattern.first_line(block)).min()
    }

    /// Whether more than a first match is waited for.
    fn count(&self) -> bool {
        self.conditions.iter().flatten().any(|condition| condition.count > 1)
    }

    /// The matches of a line in their order, and whether one more may come of what it goes on
    /// with.
    fn matches(&self, line: &Judged<'_>) -> (Vec<Found<'_>>, bool) {
        let mut all = Vec::new();
        let mut open = false;
        for (side, condition) in self.conditions.iter().enumerate() {
            for pattern in condition.iter().flat_map(|condition| &condition.patterns) {
                let mut from = line.from;
                let mut count = 0;
                while count < UNTIL_LINE_MATCHES_MAX && from <= line.text.len() {
                    let Some(range) = pattern.find(line.text, from) else { break };
                    if line.goes_on && !pattern.is_final(line.text, &range) {
                        open = true;
                        break;
                    }
                    from = match range.is_empty() {
                        true => ceil_boundary(line.text, range.end + 1).max(range.end + 1),
                        false => range.end,
                    };
                    count += 1;
                    all.push(Found { side, pattern, range });
                }
            }
        }
        all.sort_by_key(|one| (one.range.start, one.side));
        (all, open)
    }

    /// Counts what is new in a line; gives whether a match waits for what comes.
    fn judge(
        &self,
        line: &Judged<'_>,
        counted: &mut Counted,
        in_echo: &InEcho,
        tally: &mut Tally<'_>,
    ) -> bool {
        let (found, mut open) = self.matches(line);
        let mut seen: Counted = [0, 0];
        for one in &found {
            seen[one.side] += 1;
            if seen[one.side] <= counted[one.side] {
                continue;
            }
            match in_echo {
                InEcho::Perhaps(echo) if contains(echo, &one.range) => {
                    // Whether it is echo is known when the line has gone on.
                    open = true;
                    break;
                }
                InEcho::All(echo) if contains(echo, &one.range) => {
                    counted[one.side] += 1;
                    continue;
                }
                _ => counted[one.side] += 1,
            }
            tally.left[one.side] -= 1;
            if tally.left[one.side] == 0 {
                *tally.hit = Some(hit_of(one, line));
                break;
            }
        }
        open
    }
}

fn contains(echo: &Range<usize>, found: &Range<usize>) -> bool {
    echo.start <= found.start && found.end <= echo.end
}

fn hit_of(found: &Found<'_>, line: &Judged<'_>) -> Hit {
    let cut = |range: Range<usize>| {
        let text = &line.text[range];
        text[..floor_boundary(text, UNTIL_TEXT_BYTES)].to_owned()
    };
    let captures = found.pattern.captures(line.text, &found.range);
    Hit {
        by_stop: found.side == 1,
        by: found.pattern.by(),
        index: found.pattern.index(),
        text: cut(around(line.text, &found.range)),
        captures: captures.into_iter().map(|range| range.map(cut)).collect(),
        offset: line.start,
        next_offset: line.end,
    }
}

/// The part of a line that is told of a match: all of it where it fits, else some of what stands
/// before the match, and what is behind.
fn around(line: &str, found: &Range<usize>) -> Range<usize> {
    let spare = UNTIL_TEXT_BYTES.saturating_sub(found.len());
    let start = found.start.saturating_sub(spare / 2);
    let start = start.min(line.len().saturating_sub(UNTIL_TEXT_BYTES));
    let start = ceil_boundary(line, start);
    start..floor_boundary(line, start + UNTIL_TEXT_BYTES)
}
