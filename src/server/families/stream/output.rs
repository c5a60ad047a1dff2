//! The output of a session of bash_stream: stdout and stderr apart and merged,
//! the last of each, and what no stream call has told yet.

use super::live::Chunks;
use crate::limits::{
    ARRIVAL_RUNS_MAX, HEAD_TAIL_MAX_BYTES, JOB_RING_BYTES_MAX, MAX_CHAR_BYTES, WINDOW_LEAD_BYTES,
};
use crate::pure::buffer::arrival::Arrival;
use crate::pure::buffer::head_tail::TailRing;
use crate::pure::text::clean::{text_behind, window_text};
use crate::pure::text::utf8::{chars_in, incomplete_suffix_len};
use crate::server::session::Ticket;
use crate::server::session::output::Source;

/// Bytes before the unread ones that are read again, to know whether these begin inside an escape
/// sequence.
const UNREAD_LEAD_BYTES: usize = 4 * 1024;

/// What a stream was started with.
#[derive(Clone, Copy, Debug)]
pub struct StreamSpec {
    /// How long its first call waits.
    pub yield_ms: u64,
    /// The session is ended after so long.
    pub timeout_ms: Option<u64>,
    /// Characters of each text of a reply.
    pub max_chars: usize,
    /// Whether the session has a terminal: then there is one stream.
    pub pty: bool,
    /// Bytes of the beginning of each stream that are shown before what was left out.
    pub head_bytes: usize,
}

/// A call that is sent the output as it comes.
#[derive(Debug)]
pub struct Live {
    /// The call.
    pub ticket: Ticket,
    /// Its chunks.
    pub chunks: Chunks,
}

/// A text cut to its last characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capped {
    /// The text, with a first line that says what was left out.
    pub text: String,
    /// Characters left out.
    pub omitted_chars: u64,
}

/// One stream: the last of its output, and how much of it stream calls have told.
#[derive(Debug)]
struct Kept {
    ring: TailRing,
    /// The first bytes that came, of at most its capacity.
    first: Vec<u8>,
    /// Characters that came, told by their first bytes.
    chars: u64,
    /// Bytes that had come at the last call.
    seen_bytes: u64,
    /// Bytes and characters of them that calls have told: a character that had not come whole is
    /// told by the next one.
    told: (u64, u64),
}

/// What the stream family keeps of a session.
#[derive(Debug)]
pub struct Stream {
    /// What the session was started with.
    pub spec: StreamSpec,
    stdout: Kept,
    stderr: Kept,
    /// In which order the bytes of both came.
    arrival: Arrival,
    /// The session's time was over, and it was ended for that.
    pub timed_out: bool,
    /// The call that is sent what comes, while it waits.
    live: Option<Live>,
}

/// `text` cut to its last `max_chars` characters, of which `before` more came before it.
pub fn capped(text: String, before: u64, max_chars: usize, log_path: Option<&str>) -> Capped {
    // Counting is only for what may be over: a character has at least one byte.
    let chars = if text.len() > max_chars { text.chars().count() } else { 0 };
    let cut = chars.saturating_sub(max_chars);
    let omitted_chars = before + cut as u64;
    if omitted_chars == 0 {
        return Capped { text, omitted_chars };
    }
    let from = text.char_indices().nth(cut).map_or(text.len(), |(at, _)| at);
    let log = log_path.map_or_else(String::new, |path| format!("; full output: {path}"));
    let text = format!("[... {omitted_chars} characters omitted{log}]\n{}", &text[from..]);
    Capped { text, omitted_chars }
}

/// The clean text of output of which `newest` bytes and characters are wanted. `bytes` are its last
/// ones: fewer, or with more before them, which then only tell where the text begins. `last`:
/// nothing will follow, so that an unfinished character will stay so.
pub fn text_of(
    bytes: &[u8],
    newest: (u64, u64),
    max_chars: usize,
    last: bool,
    log_path: Option<&str>,
) -> Capped {
    let wanted = usize::try_from(newest.0).unwrap_or(usize::MAX);
    let (lead, before) = match bytes.len().checked_sub(wanted) {
        Some(before) => (before.min(UNREAD_LEAD_BYTES), before.saturating_sub(UNREAD_LEAD_BYTES)),
        None => {
            // The rings are longer by this, so that it costs no character of the cap; and not in
            // the middle of a character, of which four bytes are the most.
            let lead = WINDOW_LEAD_BYTES.min(bytes.len());
            let inside = bytes[lead..].iter().take(3).take_while(|&&byte| byte & 0xC0 == 0x80);
            (lead + inside.count(), 0)
        }
    };
    let bytes = &bytes[before..];
    let held = chars_in(&bytes[lead..]);
    let mut text = text_behind(bytes, lead);
    if last && incomplete_suffix_len(bytes) > 0 {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    capped(text, newest.1.saturating_sub(held), max_chars, log_path)
}

impl Kept {
    fn new(spec: &StreamSpec) -> Self {
        let (ring, first) = (TailRing::new(spec.ring_bytes()), Vec::with_capacity(spec.head_bytes));
        Self { ring, first, chars: 0, seen_bytes: 0, told: (0, 0) }
    }

    /// A text of all that came, with its beginning before what was left out.
    fn with_head(&self, mut all: Capped) -> Capped {
        if all.omitted_chars > 0 && !self.first.is_empty() {
            let head = window_text(
                &self.first[..self.first.len() - incomplete_suffix_len(&self.first)],
                false,
            );
            let end = if head.ends_with('\n') { "" } else { "\n" };
            all.text = format!("{head}{end}{}", all.text);
        }
        all
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = self.first.capacity() - self.first.len();
        self.first.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.chars += chars_in(bytes);
        self.ring.push(bytes);
    }

    fn whole(&self) -> (u64, u64) {
        (self.ring.total_bytes(), self.chars)
    }

    fn has_news(&self) -> bool {
        self.ring.total_bytes() > self.seen_bytes
    }

    /// Bytes and characters that no call has told.
    fn untold(&self) -> (u64, u64) {
        let (total, chars) = self.whole();
        (total - self.told.0, chars - self.told.1)
    }

    /// Whether neither what was told nor what came ends within a character.
    fn ends_with_a_character(&self) -> bool {
        let last = self.ring.last(MAX_CHAR_BYTES).0;
        self.told.0 == self.seen_bytes && incomplete_suffix_len(&last) == 0
    }

    /// The clean text of what came since the last call.
    fn take(&mut self, max_chars: usize, log_path: Option<&str>) -> Capped {
        let ((total, chars), newest) = (self.whole(), self.untold());
        let bytes = self.ring.to_vec();
        let unfinished = incomplete_suffix_len(&bytes) as u64;
        self.seen_bytes = total;
        self.told = (total - unfinished, chars - u64::from(unfinished > 0));
        let text = text_of(&bytes, newest, max_chars, false, log_path);
        if newest == (total, chars) { self.with_head(text) } else { text }
    }
}

impl Stream {
    /// A stream that has written nothing yet.
    pub fn new(spec: StreamSpec) -> Self {
        let kept = || Kept::new(&spec);
        Self {
            spec,
            stdout: kept(),
            stderr: kept(),
            arrival: Arrival::new(),
            timed_out: false,
            live: None,
        }
    }

    /// The call of this ticket is sent what comes, while it waits.
    pub fn send_live(&mut self, ticket: Ticket) {
        self.live = Some(Live { ticket, chunks: Chunks::new() });
    }

    /// The call that is sent what comes.
    pub fn live(&mut self) -> Option<&mut Live> {
        self.live.as_mut()
    }

    /// The call that is sent what comes, where it has this ticket: it is sent nothing more.
    pub fn take_live(&mut self, ticket: Ticket) -> Option<Live> {
        self.live.take_if(|live| live.ticket == ticket)
    }

    /// Takes in what came on `source`.
    pub fn push(&mut self, source: Source, bytes: &[u8]) {
        match source {
            Source::Output => self.stdout.push(bytes),
            Source::Errors => self.stderr.push(bytes),
        }
        self.arrival.push(source == Source::Errors, bytes.len());
    }

    /// Whether something came that no stream call has told.
    pub fn has_news(&self) -> bool {
        self.stdout.has_news() || self.stderr.has_news()
    }

    /// The clean text of what came on `source` since the last call.
    pub fn take(&mut self, source: Source, log_path: Option<&str>) -> Capped {
        let max_chars = self.spec.max_chars;
        match source {
            Source::Output => self.stdout.take(max_chars, log_path),
            Source::Errors => self.stderr.take(max_chars, log_path),
        }
    }

    /// The clean text of both streams, in the order in which it came: of their whole life where the
    /// session is `over`, else what came since the last call.
    pub fn take_both(&mut self, max_chars: usize, over: bool, log_path: Option<&str>) -> Capped {
        let both = [&self.stdout, &self.stderr];
        if !over && !both.iter().all(|kept| kept.ends_with_a_character()) {
            // What belongs to half a character can't be told by its place among the other's bytes.
            let (mut out, err) =
                (self.stdout.take(max_chars, log_path), self.stderr.take(max_chars, log_path));
            out.text.push_str(&err.text);
            return out;
        }
        let [out, err] = both.map(|kept| if over { kept.whole() } else { kept.untold() });
        let newest = (out.0 + err.0, out.1 + err.1);
        let text = text_of(&self.merged(), newest, max_chars, over, log_path);
        for kept in [&mut self.stdout, &mut self.stderr] {
            (kept.seen_bytes, kept.told) = (kept.ring.total_bytes(), kept.whole());
        }
        text
    }

    /// Bytes of both streams that no stream call has told.
    pub fn untold_bytes(&self) -> u64 {
        self.stdout.untold().0 + self.stderr.untold().0
    }

    /// The last bytes of both streams in the order in which they came.
    pub fn merged(&self) -> Vec<u8> {
        let rings = [&self.stdout.ring, &self.stderr.ring].map(TailRing::to_vec);
        self.arrival.merged(&rings[0], &rings[1], self.spec.ring_bytes())
    }

    /// The clean text of the whole life of `source`; of both streams merged without one. `last`: as
    /// above.
    pub fn life(&self, source: Option<Source>, last: bool, log_path: Option<&str>) -> Capped {
        let text =
            |bytes: &[u8], newest| text_of(bytes, newest, self.spec.max_chars, last, log_path);
        let Some(source) = source else {
            let (out, err) = (self.stdout.whole(), self.stderr.whole());
            return text(&self.merged(), (out.0 + err.0, out.1 + err.1));
        };
        let kept = self.kept(source);
        kept.with_head(text(&kept.ring.to_vec(), kept.whole()))
    }

    /// What is kept of the output of `source`.
    pub fn ring(&self, source: Source) -> &TailRing {
        &self.kept(source).ring
    }

    /// Whether anything has come on `source`.
    pub fn has_written(&self, source: Source) -> bool {
        self.ring(source).total_bytes() > 0
    }

    /// In which order the bytes of both came.
    pub const fn arrival(&self) -> &Arrival {
        &self.arrival
    }

    fn kept(&self, source: Source) -> &Kept {
        match source {
            Source::Output => &self.stdout,
            Source::Errors => &self.stderr,
        }
    }
}

impl StreamSpec {
    /// Bytes that are kept of each stream.
    fn ring_bytes(&self) -> usize {
        let text_bytes = self.max_chars.saturating_mul(MAX_CHAR_BYTES).min(JOB_RING_BYTES_MAX);
        text_bytes + WINDOW_LEAD_BYTES
    }

    /// What a stream leaves to unified-exec's unread output, so that it takes no more memory than
    /// any other session (architecture.md, Bounds).
    pub fn unified_bytes(&self) -> usize {
        let streams = if self.pty { 1 } else { 2 };
        let runs = ARRIVAL_RUNS_MAX * size_of::<u32>();
        HEAD_TAIL_MAX_BYTES - streams * self.ring_bytes() - runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(max_chars: usize, pty: bool) -> Stream {
        let (yield_ms, timeout_ms) = (1_000, None);
        Stream::new(StreamSpec { yield_ms, timeout_ms, max_chars, pty, head_bytes: 0 })
    }

    /// rule: bash-stream.md, The stream family: Caps by characters: the tail, with a first line
    ///   that counts what is missing
    #[test]
    fn the_cap_counts_characters_and_keeps_the_tail() {
        for (given, kept, omitted) in [("äbc", "äbc", 0), ("äbcd", "äbcd", 0), ("äbcde", "bcde", 1)]
        {
            let mut stream = stream(4, false);
            stream.push(Source::Output, given.as_bytes());
            let capped = stream.life(None, false, Some("/tmp/x.log"));
            assert_eq!(capped.omitted_chars, omitted, "{given}");
            let first = format!("[... {omitted} characters omitted; full output: /tmp/x.log]\n");
            let first = if omitted == 0 { "" } else { &first };
            assert_eq!(capped.text, format!("{first}{kept}"));
        }
    }

    /// rule: bash-stream.md, The stream family: Caps by characters: the tail, with a first line
    ///   that counts what is missing
    #[test]
    fn a_text_that_begins_inside_a_sequence_shows_nothing_of_it() {
        let mut stream = stream(10, false);
        // Whatever the ring begins with, it is somewhere in "\x1b[38;5;123mx".
        for _ in 0..1_000 {
            stream.push(Source::Output, b"\x1b[38;5;123mx");
        }
        let text = stream.life(None, false, None).text;
        let shown = text.lines().nth(1).unwrap_or_default();
        assert!(!shown.is_empty() && shown.chars().all(|one| one == 'x'), "{text}");
    }

    #[test]
    fn a_sequence_or_a_character_that_two_calls_share_is_whole_in_the_second() {
        let mut stream = stream(100, false);
        stream.push(Source::Output, b"red: \x1b[38;5;");
        assert_eq!(stream.take(Source::Output, None).text, "red: ");
        stream.push(Source::Output, b"1mx\xc3");
        assert_eq!(stream.take(Source::Output, None).text, "x");
        assert!(!stream.has_news(), "half a character is no news twice");
        assert_eq!(stream.take(Source::Output, None).text, "");
        stream.push(Source::Output, b"\xa4y");
        assert!(stream.has_news());
        assert_eq!(stream.take(Source::Output, None).text, "\u{e4}y");
        assert_eq!(stream.life(None, false, None).text, "red: x\u{e4}y");
    }

    #[test]
    fn what_is_kept_takes_no_more_than_any_session_has() {
        for (max_chars, pty) in [(1, false), (30_000, false), (150_000, false), (150_000, true)] {
            let spec = stream(max_chars, pty).spec;
            let streams = if pty { 1 } else { 2 };
            assert!(spec.unified_bytes() + streams * spec.ring_bytes() <= HEAD_TAIL_MAX_BYTES);
            assert!(spec.unified_bytes() >= 64 * 1024, "{max_chars}");
        }
    }
}
