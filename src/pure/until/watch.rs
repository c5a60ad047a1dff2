//! The text that one wait looks at, as it comes: clean, a line at a time (waits.md, What is looked
//! at).

use std::ops::Range;
use std::rc::Rc;

use super::{Condition, Pattern};
use crate::limits::UNTIL_TEXT_BYTES;
use crate::pure::buffer::head_tail::Kept;
use crate::pure::text::clean::Cleaner;
use crate::pure::text::utf8::{ceil_boundary, floor_boundary};

/// What a terminal makes of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// The terminal itself gives it back: canonical mode with echo.
    Terminal,
    /// The program may give it back: it reads in raw mode.
    Program,
    /// Nobody gives it back: a pipe, or no echo.
    Nothing,
}

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

/// Looks for the patterns of `until` and `stop` in the output that is pushed.
#[derive(Debug)]
pub struct TextWatch {
    until: Option<Rc<Condition>>,
    stop: Option<Rc<Condition>>,
    offset: u64,
    bytes: Vec<u8>,
    hit: Option<Hit>,
    open: bool,
}

struct Found<'a> {
    by_stop: bool,
    pattern: &'a Pattern,
    line: usize,
    range: Range<usize>,
}

impl TextWatch {
    /// A watch of output that begins at the raw `offset`; none where nothing has patterns.
    pub fn new(
        until: Option<Rc<Condition>>,
        stop: Option<Rc<Condition>>,
        offset: u64,
    ) -> Option<Self> {
        let has = |side: &Option<Rc<Condition>>| side.as_ref().is_some_and(|c| c.has_patterns());
        if !has(&until) && !has(&stop) {
            return None;
        }
        Some(TextWatch { until, stop, offset, bytes: Vec::new(), hit: None, open: false })
    }

    /// Takes the next bytes of output. What comes behind the first hit is ignored.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.hit.is_none() {
            self.bytes.extend_from_slice(bytes);
            self.judge(false);
        }
    }

    /// So many bytes are missing here: matches do not go across.
    pub fn skip(&mut self, bytes: u64) {
        self.end();
        self.offset += self.bytes.len() as u64 + bytes;
        self.bytes.clear();
    }

    /// This was written to the session: its echo does not count.
    pub fn sent(&mut self, _bytes: &[u8], _echo: Echo) {}

    /// Output has been quiet for a while: a match that what comes might have changed counts.
    pub fn quiet(&mut self) {
        self.end();
    }

    /// Whether there is a match that waits for quiet.
    pub fn wants_quiet(&self) -> bool {
        self.open && self.hit.is_none()
    }

    /// The output has ended.
    pub fn end(&mut self) {
        if self.hit.is_none() {
            self.judge(true);
        }
    }

    /// The match that ends the wait.
    pub fn hit(&self) -> Option<&Hit> {
        self.hit.as_ref()
    }

    fn judge(&mut self, ended: bool) {
        let kept = Kept { head: self.bytes.clone(), omitted_bytes: 0, tail: Vec::new() };
        let text = Cleaner::new().call_text(&kept, "", false);
        let lines: Vec<&str> = text.split('\n').collect();
        let sides = [(&self.until, false), (&self.stop, true)];
        let mut found = Vec::new();
        self.open = false;
        for (side, by_stop) in sides {
            let Some(side) = side else { continue };
            for (at, line) in lines.iter().enumerate() {
                for pattern in &side.patterns {
                    let mut from = 0;
                    while let Some(range) = pattern.find(line, from) {
                        let goes_on = at + 1 == lines.len() && !ended;
                        if goes_on && !pattern.is_final(line, from, &range) {
                            self.open = true;
                            break;
                        }
                        from = range.end.max(range.start + 1);
                        found.push(Found { by_stop, pattern, line: at, range });
                        if from > line.len() {
                            break;
                        }
                    }
                }
            }
        }
        found.sort_by_key(|one| (one.line, one.range.start, one.by_stop));
        let mut counts = [0_u32; 2];
        for one in found {
            let side = if one.by_stop { &self.stop } else { &self.until };
            let wanted = side.as_ref().map_or(1, |side| side.count.max(1));
            let count = &mut counts[usize::from(one.by_stop)];
            *count += 1;
            if *count < wanted {
                continue;
            }
            self.hit = Some(self.hit_of(&one, lines[one.line]));
            return;
        }
    }

    fn hit_of(&self, found: &Found<'_>, line: &str) -> Hit {
        let newlines = self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let ends: Vec<usize> = newlines.map(|(at, _)| at + 1).collect();
        let start = found.line.checked_sub(1).and_then(|at| ends.get(at)).copied().unwrap_or(0);
        let end = ends.get(found.line).copied().unwrap_or(self.bytes.len());
        let cut = |range: Range<usize>| {
            let text = &line[range];
            text[..floor_boundary(text, UNTIL_TEXT_BYTES)].to_owned()
        };
        let captures = found.pattern.captures(line, &found.range);
        Hit {
            by_stop: found.by_stop,
            by: found.pattern.by(),
            index: found.pattern.index(),
            text: cut(around(line, &found.range)),
            captures: captures.into_iter().map(|range| range.map(cut)).collect(),
            offset: self.offset + start as u64,
            next_offset: self.offset + end as u64,
        }
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
