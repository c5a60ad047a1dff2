//! What one family has not yet told of a session's output, and the text that a reply makes of that.

use crate::limits::{HEAD_TAIL_MAX_BYTES, NS_PER_MS};
use crate::pure::buffer::head_tail::{HeadTail, Kept};
use crate::pure::text::clean::Cleaner;
use crate::pure::text::truncate::{Truncation, footer, truncate_tail};
use crate::pure::text::utf8::{incomplete_suffix_len, lossy};
use crate::pure::until::TextWatch;

/// How much text a reply may hold.
#[derive(Clone, Copy, Debug)]
pub struct TextLimits {
    /// Lines at most.
    pub max_lines: usize,
    /// Bytes at most.
    pub max_bytes: usize,
    /// Of longer output the first fifth of the bytes is its beginning. It is cut further by whoever
    /// shows it: there is no limit of lines.
    pub keeps_head: bool,
}

/// How many of so many bytes are of the beginning, and how many of the end.
pub fn head_and_tail(bytes: usize) -> (usize, usize) {
    (bytes / 5, bytes - bytes / 5)
}

/// One call's text.
#[derive(Debug, Default)]
pub struct Text {
    /// What the model reads, truncated.
    pub output: String,
    /// Bytes of output this call stands for, before anything was dropped.
    pub original_bytes: u64,
    /// Bytes that the retention dropped.
    pub omitted_bytes: u64,
    /// What was cut, where the text is truncated.
    pub truncation: Option<Truncation>,
    /// The line that tells what was cut.
    pub footer: Option<String>,
}

/// The unread output of a session, as one family sees it.
#[derive(Debug)]
pub struct View {
    retained: HeadTail,
    capacity_bytes: usize,
    /// Made at the first use: an idle session should cost little.
    cleaner: Option<Box<Cleaner>>,
    /// The start of a character whose rest had not come when the last text was taken.
    unfinished: Vec<u8>,
}

/// The line that stands where retention dropped something.
fn gap_notice(omitted_bytes: u64, retention_bytes: usize) -> String {
    format!(
        "[... {omitted_bytes} bytes omitted here (output exceeded the {retention_bytes}-byte \
         in-memory retention between polls; the full stream is in the session log file) ...]"
    )
}

impl View {
    /// An empty view that keeps at most `capacity_bytes` of unread output.
    pub fn new(capacity_bytes: usize) -> Self {
        let retained = HeadTail::new(capacity_bytes);
        Self { retained, capacity_bytes, cleaner: None, unfinished: Vec::new() }
    }

    /// Takes in new output.
    pub fn push(&mut self, bytes: &[u8]) {
        self.retained.push(bytes);
    }

    /// Bytes of unread output that are held.
    pub fn retained_bytes(&self) -> usize {
        self.retained.len()
    }

    /// Bytes of output that came since the last text was taken.
    pub fn unread_bytes(&self) -> u64 {
        self.retained.total_bytes()
    }

    /// Shows a look-out all that the next text will be made of.
    pub fn show(&self, watch: &mut TextWatch) {
        let [head, older, newer] = self.retained.parts();
        watch.push(&self.unfinished);
        watch.push(head);
        match self.retained.omitted_bytes() {
            0 => {}
            omitted => watch.skip(omitted),
        }
        watch.push(older);
        watch.push(newer);
    }

    /// How many bytes the next text is made of, dropped ones among them.
    pub fn shown_bytes(&self) -> u64 {
        self.retained.total_bytes() + self.unfinished.len() as u64
    }

    /// Whether the next text will surely point at the log, or may: it is cut, or has a gap.
    pub fn may_be_cut(&self, limits: TextLimits) -> bool {
        let retained = self.retained.len() + self.unfinished.len();
        if self.retained.omitted_bytes() > 0 || retained > limits.max_bytes {
            return true;
        }
        // A line has at least one byte, so few bytes can't be many lines.
        if retained < limits.max_lines {
            return false;
        }
        let kept = self.retained.peek();
        let lines = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count();
        lines(&kept.head) + lines(&kept.tail) >= limits.max_lines
    }

    /// The text of all that is held, which stays unread.
    pub fn peek(&self, limits: TextLimits, last: bool) -> Text {
        let mut copy = Self { retained: self.retained.clone(), ..Self::new(self.capacity_bytes) };
        copy.take(limits, false, last, None)
    }

    /// Takes this call's text. `last`: the stream has ended, so an unfinished character will
    /// stay so. `log_path` is named in the footer.
    pub fn take(
        &mut self,
        limits: TextLimits,
        raw_output: bool,
        last: bool,
        log_path: Option<&str>,
    ) -> Text {
        let original_bytes = self.retained.total_bytes();
        let mut kept = self.retained.take();
        if !self.unfinished.is_empty() {
            kept.head.splice(0..0, self.unfinished.drain(..));
        }
        if !last {
            let end = if kept.tail.is_empty() { &mut kept.head } else { &mut kept.tail };
            let whole = end.len() - incomplete_suffix_len(end);
            self.unfinished = end.split_off(whole);
        }
        if limits.keeps_head {
            let (head_bytes, tail_bytes) = head_and_tail(limits.max_bytes);
            kept.shorten(head_bytes, tail_bytes);
        }
        let omitted_bytes = kept.omitted_bytes;
        let notice = match limits.keeps_head {
            true => format!("[... {omitted_bytes} bytes left out; the log has them ...]"),
            false => gap_notice(omitted_bytes, self.capacity_bytes),
        };
        let whole = if raw_output {
            raw_text(&kept, &notice)
        } else {
            self.cleaner.get_or_insert_default().call_text(&kept, &notice, last)
        };
        let most = if limits.keeps_head { usize::MAX } else { limits.max_bytes };
        let (output, truncation) = truncate_tail(&whole, limits.max_lines, most);
        let footer = footer(&truncation, log_path);
        let output = output.to_owned();
        let truncation = truncation.cut_by.is_some().then_some(truncation);
        Text { output, original_bytes, omitted_bytes, truncation, footer }
    }
}

impl Default for View {
    fn default() -> Self {
        Self::new(HEAD_TAIL_MAX_BYTES)
    }
}

/// The text unprocessed, but for what is no UTF-8, with the gap marked.
fn raw_text(kept: &Kept, notice: &str) -> String {
    if kept.omitted_bytes == 0 {
        return lossy(&[kept.head.as_slice(), kept.tail.as_slice()].concat());
    }
    let head = lossy(&kept.head);
    let newline = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{newline}{notice}\n{}", lossy(&kept.tail))
}

/// Nanoseconds as seconds with three decimals.
pub fn seconds(ns: u64) -> f64 {
    let ms = u32::try_from(ns / NS_PER_MS).unwrap_or(u32::MAX);
    f64::from(ms) / 1_000.0
}
