//! The last lines of clean text while it comes, for those who look for something in it: what
//! changed with each piece, and where in the raw bytes each line begins.

use std::borrow::Cow;
use std::collections::VecDeque;

use memchr::{memchr2, memrchr_iter};

use super::Cleaner;
use super::screen::Screen;
use crate::limits::{LIVE_LINE_BYTES, REDRAW_LINES};
use crate::pure::text::utf8::ceil_boundary;

/// Memory of the lines that a wait looks at.
const LIVE_TEXT_BYTES: usize = 128 * 1024;

/// Stands for the beginning of a line that was too long to be kept.
const CUT: &str = "…";

/// A line that is kept, and what its reader notes of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line<N> {
    /// The raw byte at which it begins.
    pub start: u64,
    /// The reader's note; the same for as long as the line is rewritten.
    pub note: N,
}

/// The lines that redraws may still reach, as they stand.
pub struct Live<N> {
    cleaner: Cleaner,
    screen: Screen,
    /// Of each line of the screen.
    lines: VecDeque<Line<N>>,
    /// The raw byte behind what came.
    at: u64,
}

impl<N> std::fmt::Debug for Live<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("at", &self.at).finish_non_exhaustive()
    }
}

impl<N: Copy + Default> Live<N> {
    /// Nothing yet, at this raw byte.
    pub fn new(at: u64) -> Self {
        let lines = VecDeque::from([Line { start: at, ..Line::default() }]);
        let screen = Screen::below(String::new());
        Live { cleaner: Cleaner::new(), screen, lines, at }
    }

    /// The raw byte behind what came.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Goes on, with nothing of it shown, where output ended that these were the last bytes of.
    pub fn goes_on_behind(&mut self, lead: &[u8]) {
        self.cleaner.read_over(lead);
    }

    /// Whether what comes is appended as it is: nothing is unfinished, nothing was rewritten.
    pub fn appends(&self) -> bool {
        self.cleaner.is_idle() && self.screen.appends()
    }

    /// Takes a piece of output; gives the first line that may not be what it was before.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let before = self.screen.line_count() - 1;
        let mut rest = bytes;
        let mut known = before + 1;
        while !rest.is_empty() {
            // A segment has one newline, at its end, or one sequence, at its beginning: so it is
            // known where each line begins.
            let end = match memchr2(b'\n', 0x1B, &rest[1..]) {
                _ if rest[0] == b'\n' => 1,
                Some(at) if rest[at + 1] == b'\n' => at + 2,
                Some(at) => at + 1,
                None => rest.len(),
            };
            let (segment, later) = rest.split_at(end);
            self.cleaner.feed(&mut self.screen, segment);
            let begun = self.at;
            self.at += segment.len() as u64;
            let count = self.screen.line_count();
            for number in known..count {
                let last = number + 1 == count && segment.ends_with(b"\n");
                self.begin(number, if last { self.at } else { begun });
            }
            known = count;
            rest = later;
        }
        self.lines.truncate(known);
        self.screen.take_edited().min(before).min(known - 1)
    }

    fn begin(&mut self, number: usize, start: u64) {
        match self.lines.get_mut(number) {
            // Erased in this piece, and written again.
            Some(line) => line.start = start,
            None => self.lines.push_back(Line { start, ..Line::default() }),
        }
    }

    /// The lines from `first` on, a newline between them; the last one may go on.
    pub fn text_from(&self, first: usize) -> Cow<'_, str> {
        self.screen.text_from(first)
    }

    /// How many lines there are.
    pub fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// A line's place and note.
    pub fn line(&self, number: usize) -> Line<N> {
        self.lines[number]
    }

    /// Notes something of a line.
    pub fn note(&mut self, number: usize, note: N) {
        self.lines[number].note = note;
    }

    /// Forgets what no redraw reaches any more, and the beginning of a last line that is too
    /// long; gives whether it did the latter.
    pub fn forget(&mut self) -> bool {
        self.screen.rest();
        let last = self.lines.len() - 1;
        let too_long = self.screen.text_from(last).len() > LIVE_LINE_BYTES;
        if !too_long && self.screen.held_bytes() <= LIVE_TEXT_BYTES {
            // Not line by line.
            if last >= 2 * REDRAW_LINES {
                self.screen.forget(last - REDRAW_LINES);
                self.lines.drain(..last + 1 - self.screen.line_count());
            }
            return false;
        }
        let text = self.screen.text_from(last);
        let from = ceil_boundary(&text, text.len().saturating_sub(LIVE_LINE_BYTES - CUT.len()));
        let kept = if too_long { format!("{CUT}{}", &text[from..]) } else { text.into_owned() };
        self.screen = Screen::begins_with(kept);
        self.lines.drain(..last);
        too_long
    }

    /// Goes on behind whole lines that did not pass through here and that end at the raw byte
    /// `at`; of the last of them, `text`, redraws may be to come. Text and raw bytes are the same.
    pub fn go_on_behind(&mut self, text: &str, at: u64) {
        let mut lines: VecDeque<Line<N>> = VecDeque::new();
        let first = at - text.len() as u64;
        for newline in memrchr_iter(b'\n', text.as_bytes()) {
            lines.push_front(Line { start: first + newline as u64 + 1, ..Line::default() });
        }
        lines.push_front(Line { start: first, ..Line::default() });
        self.screen = Screen::begins_with(text.to_owned());
        (self.lines, self.at) = (lines, at);
    }

    /// Starts anew at this raw byte: some are missing before it.
    pub fn start_at(&mut self, at: u64) {
        *self = Live::new(at);
    }
}
