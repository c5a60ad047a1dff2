//! The echo of what a call wrote to a terminal: what comes back of it is not an answer (waits.md,
//! Echo).
//!
//! A line of input is expected back once, as a part of a line of output: behind a prompt, or where
//! the cursor stood. Until it has come, each line of output is held against it; a line in which it
//! stands is its echo. What was sent and never comes back is given up after ECHO_LINES lines.

use std::collections::VecDeque;
use std::ops::Range;

/// So much of the end of a long line of input is enough to know its echo.
const ECHO_RUN_BYTES: usize = 24;

/// Bytes of a line of input that are looked for.
const ECHO_LINE_BYTES: usize = 4_096;

/// Lines of input whose echo is expected at once.
const ECHO_SENT_MAX: usize = 256;

/// Lines of output in which an echo is expected.
const ECHO_LINES: usize = 64;

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

/// Which part of a line of output is echo.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InEcho {
    /// None of it.
    Nothing,
    /// This part, at the end, if it goes on like that.
    Perhaps(Range<usize>),
    /// This part.
    All(Range<usize>),
}

/// A line of input that is expected back.
#[derive(Debug)]
struct Expected {
    text: String,
    /// Whether its newline was sent.
    whole: bool,
    /// The line of output on which the cursor stood, by its raw byte, and the column.
    stood: (u64, usize),
    /// The line of output that it came back in.
    seen: Option<u64>,
}

/// The lines of input that are expected back, in order.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    expected: VecDeque<Expected>,
    /// The last line of output that was seen, and how many lines came since something was sent.
    last: u64,
    lines: usize,
}

impl Echoes {
    /// This was written while the cursor stood in `column` of the line that begins at `line`.
    pub(super) fn sent(&mut self, bytes: &[u8], echo: Echo, line: u64, column: usize) {
        if echo == Echo::Nothing {
            return;
        }
        self.lines = 0;
        let at = (line, column);
        let text = String::from_utf8_lossy(bytes);
        for c in text.chars() {
            match c {
                '\n' | '\r' => self.ends(),
                '\x7f' | '\x08' => {
                    self.open(at).text.pop();
                }
                '\x15' => self.open(at).text.clear(),
                '\x04' => {}
                '\t' if echo == Echo::Terminal => self.open(at).text.push('\t'),
                '\x03' | '\x1a' | '\x1c' => {
                    // What was typed before is thrown away; it has been shown.
                    self.typed(&shown(c), at);
                    self.ends();
                }
                c if c.is_control() && echo == Echo::Terminal => {
                    self.typed(&shown(c), at);
                }
                // Keys: what the program makes of them is not known.
                c if c.is_control() => self.ends(),
                c => self.typed(c.encode_utf8(&mut [0; 4]), at),
            }
        }
        self.expected.retain(|one| !one.text.is_empty());
    }

    fn typed(&mut self, text: &str, at: (u64, usize)) {
        let open = self.open(at);
        if open.text.len() < ECHO_LINE_BYTES {
            open.text.push_str(text);
        }
    }

    /// The line of input that goes on.
    fn open(&mut self, stood: (u64, usize)) -> &mut Expected {
        if self.expected.back().is_none_or(|last| last.whole) {
            if self.expected.len() == ECHO_SENT_MAX {
                self.expected.pop_front();
            }
            let text = String::new();
            self.expected.push_back(Expected { text, whole: false, stood, seen: None });
        }
        let last = self.expected.len() - 1;
        &mut self.expected[last]
    }

    fn ends(&mut self) {
        if let Some(last) = self.expected.back_mut() {
            last.whole = true;
        }
    }

    /// Whether something is expected: then every line must be shown to `see`, in order.
    pub(super) fn expects(&self) -> bool {
        !self.expected.is_empty()
    }

    /// Which part of this line of output, which begins at the raw byte `start`, is echo. `goes_on`:
    /// more of it may come.
    pub(super) fn see(&mut self, line: &str, start: u64, goes_on: bool) -> InEcho {
        if self.expected.is_empty() {
            return InEcho::Nothing;
        }
        if start > self.last {
            self.last = start;
            self.lines += 1;
        }
        // An echo is over with its line.
        while self.expected.front().is_some_and(|one| one.is_over(start)) {
            self.expected.pop_front();
        }
        if self.lines > ECHO_LINES {
            self.expected.clear();
            return InEcho::Nothing;
        }
        let part = self.expected.iter().enumerate().find_map(|(number, one)| {
            let here = one.seen.is_none_or(|seen| seen == start);
            here.then(|| one.part_of(line, start, goes_on))?.map(|part| (number, part))
        });
        let Some((number, part)) = part else { return InEcho::Nothing };
        if let InEcho::All(_) = part {
            // Input comes back in its order: what was sent before this does not come any more.
            self.expected.drain(..number);
            self.expected[0].seen = Some(start);
        }
        part
    }
}

impl Expected {
    /// Whether it has come back, in a line before this one.
    fn is_over(&self, start: u64) -> bool {
        self.seen.is_some_and(|seen| seen < start)
    }

    fn part_of(&self, line: &str, start: u64, goes_on: bool) -> Option<InEcho> {
        let from = if start == self.stood.0 { self.stood.1.min(line.len()) } else { 0 };
        let from = line.ceil_char_boundary(from);
        if let Some(at) = line[from..].find(&self.text) {
            return Some(InEcho::All(from + at..from + at + self.text.len()));
        }
        if let Some(run) = self.long_run(line) {
            return Some(InEcho::All(run));
        }
        let at = goes_on.then(|| self.begins_in(line, from))??;
        Some(InEcho::Perhaps(at..line.len()))
    }

    /// Where the longest end of the line is, behind `from`, that the input begins with.
    fn begins_in(&self, line: &str, from: usize) -> Option<usize> {
        let ends = line[from..].char_indices().map(|(at, _)| from + at);
        let mut ends = ends.skip_while(|at| line.len() - at > self.text.len());
        ends.find(|at| self.text.starts_with(&line[*at..]))
    }

    /// A long input is broken where the terminal's line ends: a good part of it is enough.
    fn long_run(&self, line: &str) -> Option<Range<usize>> {
        let (text, line) = (self.text.as_bytes(), line.as_bytes());
        if text.len() < 2 * ECHO_RUN_BYTES || line.len() < ECHO_RUN_BYTES {
            return None;
        }
        let end = &text[text.len() - ECHO_RUN_BYTES..];
        let at = memchr::memmem::find(line, end)?;
        // From the end of the input back, as far as both are the same.
        let same = line[..at + ECHO_RUN_BYTES].iter().rev().zip(text.iter().rev());
        let len = same.take_while(|(a, b)| a == b).count();
        let range = at + ECHO_RUN_BYTES - len..line.len();
        Some(range)
    }
}

/// How a terminal shows a control character (termios(3), ECHOCTL).
fn shown(c: char) -> String {
    let letter = u8::try_from(c).map_or('?', |byte| char::from(byte ^ 0x40));
    format!("^{letter}")
}
