//! Splits a byte stream into lines of bounded length: the framing of the protocol.
//!
//! Source: protocol.md, Framing: what ends a line, that blank lines are ignored, and what becomes
//! of a line longer than `--max-line-bytes`.

use crate::limits::BUFFER_KEEP_BYTES;
use memchr::{memchr, memrchr};

/// One line of the input, or the fact that there was one which is too long to be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line<'a> {
    /// The bytes of a line without its `\n` and without one `\r` before it. Never blank: a line
    /// that is empty or holds only spaces and tabs is passed over.
    Text(&'a [u8]),
    /// A line over the maximum was skipped. Given once per such line, when its end is known.
    TooLong,
}

/// Takes bytes as they come and gives lines.
///
/// The line at `start` ends at `line_end`; the open line, whose end has not come, begins at
/// `tail`. Between the two lie complete lines that wait to be taken. Memory: while the owner
/// takes all lines between two pushes, at most the maximum, one push and two bytes are held.
#[derive(Clone, Debug)]
pub struct LineSplitter {
    max: usize,
    buf: Vec<u8>,
    start: usize,
    line_end: Option<usize>,
    tail: usize,
    /// The line at `start` is over the maximum and its bytes are gone already.
    lost: bool,
    /// How many lines have been found, blank ones included: the number of the line at `start`,
    /// where that one is complete.
    found: u64,
}

/// A place between two lines of a [`LineSplitter`].
#[derive(Clone, Copy, Debug)]
pub struct LineMark {
    start: usize,
    line_end: Option<usize>,
    lost: bool,
    found: u64,
}

impl LineSplitter {
    /// A splitter for lines of at most `max_line_bytes` bytes. The `\n` is not counted, a `\r`
    /// before it is: one byte more than the maximum makes the line [`Line::TooLong`].
    pub fn new(max_line_bytes: usize) -> Self {
        Self {
            max: max_line_bytes,
            buf: Vec::new(),
            start: 0,
            line_end: None,
            tail: 0,
            lost: false,
            found: 0,
        }
    }

    /// Takes the next bytes of the input. Bytes of a line that is already too long are dropped.
    /// Costs time in proportion to `bytes`, however long the open line is.
    pub fn push(&mut self, bytes: &[u8]) {
        self.tidy();
        let Some(first) = memchr(b'\n', bytes) else {
            self.append_to_open_line(bytes);
            return;
        };
        // The search from the back stops at the last newline, so the two searches never look
        // at the same byte, and the open line is never searched again.
        let last = memrchr(b'\n', bytes).unwrap_or(first);
        self.append_to_open_line(&bytes[..first]);
        let newline = self.buf.len();
        self.append(&bytes[first..=last]);
        self.tail = self.buf.len();
        if self.line_end.is_none() {
            // What lies before this newline has been searched by earlier pushes.
            self.find_line(newline);
        }
        self.append_to_open_line(&bytes[last + 1..]);
    }

    /// The next line, or None when no further line is complete. Blank lines are not given.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        let Some(end) = self.line_end else {
            self.tidy();
            return None;
        };
        let begin = self.start;
        let too_long = self.lost || end - begin > self.max;
        self.lost = false;
        self.start = end + 1;
        self.find_line(end + 1);
        if too_long {
            return Some(Line::TooLong);
        }
        Some(Line::Text(without_cr(&self.buf[begin..end])))
    }

    /// The number, from 1 and with blank lines counted, of the line that [`Self::next_line`] gives
    /// next; of no use while no line is complete.
    pub fn next_number(&self) -> u64 {
        self.found
    }

    /// Where the next line begins, for [`Self::go_back`].
    pub fn mark(&self) -> LineMark {
        LineMark { start: self.start, line_end: self.line_end, lost: self.lost, found: self.found }
    }

    /// The lines given since `mark` are given again. Nothing was pushed since then, and
    /// [`Self::next_line`] has not said that there is no more.
    pub fn go_back(&mut self, mark: LineMark) {
        LineMark {
            start: self.start,
            line_end: self.line_end,
            lost: self.lost,
            found: self.found,
        } = mark;
    }

    /// Says that the input has ended: what is left counts as a line, also without a newline
    /// (protocol.md, How execd ends). Calling it again changes nothing.
    pub fn finish(&mut self) {
        let open_line_is_lost = self.lost && self.line_end.is_none();
        if open_line_is_lost || self.tail < self.buf.len() {
            self.push(b"\n");
        }
    }

    /// How many bytes are held and not yet given as lines.
    pub fn buffered_bytes(&self) -> usize {
        self.buf.len() - self.start
    }

    /// Whether [`Self::next_line`] has something to give. Exact: blank lines don't count.
    pub fn has_complete_line(&self) -> bool {
        self.line_end.is_some()
    }

    /// Panics when an invariant is broken, which is a bug here and never the input's fault.
    /// Meant for tests and fuzzing: it reads the open line.
    pub fn check(&self) {
        assert!(self.start <= self.tail && self.tail <= self.buf.len());
        match self.line_end {
            Some(end) => {
                assert!(self.start <= end && end < self.tail);
                assert_eq!(memchr(b'\n', &self.buf[self.start..=end]), Some(end - self.start));
            }
            None => {
                assert_eq!(self.start, self.tail, "a complete line was not noticed");
                assert!(!self.lost || self.tail == self.buf.len(), "bytes after a lost line");
            }
        }
        assert_eq!(memchr(b'\n', &self.buf[self.tail..]), None);
        assert!(self.buf.len() - self.tail <= self.max.saturating_add(1));
    }

    /// Notes the end of the first line at `start` that is to be given, passing over blank
    /// ones. No newline lies between `start` and `from`.
    fn find_line(&mut self, mut from: usize) {
        self.line_end = None;
        while let Some(offset) = memchr(b'\n', &self.buf[from..self.tail]) {
            let end = from + offset;
            self.found += 1;
            let too_long = self.lost || end - self.start > self.max;
            if too_long || !is_blank(&self.buf[self.start..end]) {
                self.line_end = Some(end);
                return;
            }
            self.start = end + 1;
            from = self.start;
        }
    }

    /// Appends bytes without a newline to the open line, as far as they can matter: one byte
    /// over the maximum is kept, because it tells that the line is too long.
    fn append_to_open_line(&mut self, bytes: &[u8]) {
        if self.lost && self.line_end.is_none() {
            return;
        }
        let held = self.buf.len() - self.tail;
        let room = self.max.saturating_add(1).saturating_sub(held);
        self.append(&bytes[..bytes.len().min(room)]);
        self.drop_overlong_line();
    }

    /// Gives up the bytes of an open line that is too long. Only when no complete line waits
    /// before it: until then its length is what tells that it is too long.
    fn drop_overlong_line(&mut self) {
        if self.line_end.is_none() && self.buf.len() - self.tail > self.max {
            self.buf.truncate(self.tail);
            self.lost = true;
            self.release();
        }
    }

    /// Appends bytes. Growth doubles, so that many small pushes cost no more than one large,
    /// but not beyond what the longest line takes: a doubled 8 MiB would be 8 MiB for nothing.
    fn append(&mut self, bytes: &[u8]) {
        let need = self.buf.len().saturating_add(bytes.len());
        if need > self.buf.capacity() {
            let doubled = self.buf.capacity().saturating_mul(2).min(self.max.saturating_add(2));
            self.buf.reserve_exact(need.max(doubled) - self.buf.len());
        }
        self.buf.extend_from_slice(bytes);
    }

    /// Moves what is left to the front and gives back memory that a large line took.
    fn tidy(&mut self) {
        self.drop_overlong_line();
        // With no complete line left, what moves is the end of the last push, and it moves
        // once. Otherwise at most as much moves as was given since the last time.
        if self.start > 0 && (self.line_end.is_none() || self.start >= self.buf.len() / 2) {
            self.buf.drain(..self.start);
            self.tail -= self.start;
            self.line_end = self.line_end.map(|end| end - self.start);
            self.start = 0;
        }
        self.release();
    }

    /// Gives back the memory of a large line once little is held.
    fn release(&mut self) {
        if self.buf.capacity() <= BUFFER_KEEP_BYTES {
            return;
        }
        if self.buf.is_empty() {
            self.buf = Vec::new();
        } else if self.buf.len() <= BUFFER_KEEP_BYTES / 2 {
            self.buf.shrink_to(BUFFER_KEEP_BYTES);
        }
    }
}

/// The line without one `\r` at its end.
fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Whether a line without its `\n` holds nothing but spaces and tabs.
fn is_blank(line: &[u8]) -> bool {
    without_cr(line).iter().all(|byte| matches!(byte, b' ' | b'\t'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::Random;

    fn owned(line: Line<'_>) -> Option<Vec<u8>> {
        match line {
            Line::Text(text) => Some(text.to_vec()),
            Line::TooLong => None,
        }
    }

    /// None stands for a line that is too long.
    fn naive(input: &[u8], max: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = Vec::new();
        for piece in input.split(|byte| *byte == b'\n') {
            if piece.len() > max {
                lines.push(None);
                continue;
            }
            let text = piece.strip_suffix(b"\r").unwrap_or(piece);
            if text.iter().any(|byte| *byte != b' ' && *byte != b'\t') {
                lines.push(Some(text.to_vec()));
            }
        }
        lines
    }

    /// The numbers of these lines.
    fn naive_numbers(input: &[u8], max: usize) -> Vec<u64> {
        let pieces = (1..).zip(input.split(|byte| *byte == b'\n'));
        pieces
            .filter(|(_, piece)| !naive(piece, max).is_empty())
            .map(|(number, _)| number)
            .collect()
    }

    /// rule: protocol.md, Framing: A line ends with `\n`; a `\r` before it is dropped, blank lines
    ///   are ignored
    #[test]
    fn same_as_splitting_on_newline() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let alphabet = b"aab \t\r\n\n";
        for _ in 0..2_000 {
            let max = random.below(9);
            let size = random.below(90);
            let input: Vec<u8> =
                (0..size).map(|_| alphabet[random.below(alphabet.len())]).collect();
            let mut splitter = LineSplitter::new(max);
            let (mut lines, mut numbers) = (Vec::new(), Vec::new());
            let mut rest = &input[..];
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at(random.below(rest.len().min(20)) + 1);
                rest = after;
                splitter.push(chunk);
                splitter.check();
                let mut takes = random.below(5);
                while takes > 0 {
                    takes -= 1;
                    if splitter.has_complete_line() && random.below(3) == 0 {
                        let mark = splitter.mark();
                        splitter.next_line();
                        splitter.go_back(mark);
                        splitter.check();
                    }
                    let expected = splitter.has_complete_line();
                    numbers.extend(expected.then(|| splitter.next_number()));
                    let line = splitter.next_line().map(owned);
                    assert_eq!(line.is_some(), expected);
                    lines.extend(line);
                    splitter.check();
                }
            }
            splitter.finish();
            splitter.finish();
            splitter.check();
            while splitter.has_complete_line() {
                numbers.push(splitter.next_number());
                lines.extend(splitter.next_line().map(owned));
            }
            assert!(splitter.next_line().is_none());
            splitter.check();
            assert_eq!(numbers, naive_numbers(&input, max), "input {input:?} max {max}");
            assert_eq!(splitter.buffered_bytes(), 0);
            assert_eq!(lines, naive(&input, max), "input {input:?} max {max}");
        }
    }

    #[test]
    fn a_large_line_in_small_pushes_is_exact_and_its_memory_is_given_back() {
        let max = 8 * 1024 * 1024;
        let chunk = [b'x'; 4096];
        let mut splitter = LineSplitter::new(max);
        for round in 0..2 {
            for _ in 0..max / chunk.len() {
                splitter.push(&chunk);
                assert!(!splitter.has_complete_line() && splitter.next_line().is_none());
                assert!(splitter.buf.capacity() <= max + 2);
            }
            if round == 1 {
                splitter.push(b"x");
                assert_eq!(splitter.buffered_bytes(), 0);
                assert_eq!(splitter.buf.capacity(), 0, "an overlong line keeps no memory");
            }
            splitter.push(b"\nab");
            match (round, splitter.next_line()) {
                (0, Some(Line::Text(line))) => assert_eq!(line.len(), max),
                (1, Some(Line::TooLong)) => {}
                (_, line) => panic!("{:?}", line.map(owned)),
            }
            assert!(splitter.next_line().is_none());
            assert_eq!(splitter.buffered_bytes(), 2);
            assert!(splitter.buf.capacity() <= BUFFER_KEEP_BYTES);
            splitter.push(b"c\n");
            assert_eq!(splitter.next_line(), Some(Line::Text(b"abc")));
            assert!(splitter.next_line().is_none());
        }
    }

    #[test]
    fn an_endless_line_takes_no_more_memory_than_the_maximum() {
        let mut splitter = LineSplitter::new(10_000);
        splitter.push(b"first\n");
        for _ in 0..1_000 {
            // The waiting line keeps the overlong one from being dropped altogether.
            splitter.push(&[b'y'; 1000]);
            assert!(splitter.buf.capacity() <= 11_000 && splitter.buffered_bytes() <= 10_007);
        }
        assert_eq!(splitter.next_line(), Some(Line::Text(b"first")));
        assert_eq!(splitter.next_line(), None);
        assert_eq!(splitter.buffered_bytes(), 0);
        splitter.push(b"yy");
        splitter.push(b"y\nlast");
        splitter.finish();
        assert_eq!(splitter.next_line(), Some(Line::TooLong));
        assert_eq!(splitter.next_line(), Some(Line::Text(b"last")));
        assert_eq!(splitter.next_line(), None);
    }
}
