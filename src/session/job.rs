//! A session as the stream family sees it (bash-stream.md): stdout and stderr apart and merged,
//! the last of each, and what no stream call has told yet.

use super::view::{TextLimits, View};
use crate::limits::{JOB_UNREAD_BYTES, MAX_CHAR_BYTES, WINDOW_LEAD_BYTES};
use crate::pure::clean::text_behind;
use crate::pure::head_tail::TailRing;
use crate::pure::utf8::incomplete_suffix_len;
use crate::session::output::Source;

/// Lines do not bound the stream family's texts, characters do.
const ANY_LINES: usize = usize::MAX;

/// What a job was started with.
#[derive(Clone, Copy, Debug)]
pub struct JobSpec {
    /// How long its first call waits.
    pub yield_ms: u64,
    /// It is ended after so long.
    pub timeout_ms: Option<u64>,
    /// Characters of each text of a reply.
    pub max_chars: usize,
    /// Whether it has a terminal: then there is one stream.
    pub pty: bool,
    /// Input that it takes over its life; `None`: any amount.
    pub stdin_cap_bytes: Option<u64>,
}

/// A text cut to its last characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capped {
    /// The text, with a first line that says what was left out.
    pub text: String,
    /// Characters left out.
    pub omitted_chars: u64,
}

/// The last output of one stream.
#[derive(Debug)]
struct Kept {
    ring: TailRing,
    /// Characters that came, told by their first bytes.
    chars: u64,
}

/// One stream, and what of it no stream call has told.
#[derive(Debug)]
struct Half {
    life: Kept,
    /// Knows how to go on where the last call's text ended.
    unread: View,
    /// Characters that had come at the last call.
    told_chars: u64,
}

/// The stream family's view of a session.
#[derive(Debug)]
pub struct Job {
    /// What it was started with.
    pub spec: JobSpec,
    stdout: Half,
    stderr: Half,
    /// Both in order of arrival; empty for a terminal, whose stdout it would repeat.
    merged: Kept,
    /// Its time was over: it was ended for that.
    pub timed_out: bool,
    /// It is over for this family: what its background children still write goes to the log.
    pub closed: bool,
    /// Bytes of input that were taken for it.
    pub stdin_bytes: u64,
}

/// The characters that begin in `bytes`.
fn chars_in(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u64
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

impl Kept {
    fn new(capacity_bytes: usize) -> Self {
        Self { ring: TailRing::new(capacity_bytes), chars: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.chars += chars_in(bytes);
        self.ring.push(bytes);
    }

    /// The clean text of the last `newest_bytes` that came, in which `newest_chars` characters
    /// began. `last`: nothing will follow, so that an unfinished character will stay so.
    fn text(&self, newest: (u64, u64), max_chars: usize, last: bool, log: Option<&str>) -> Capped {
        let (newest_bytes, newest_chars) = newest;
        let all = self.ring.to_vec();
        let wanted = usize::try_from(newest_bytes).unwrap_or(usize::MAX);
        let bytes = &all[all.len().saturating_sub(wanted)..];
        let broken = (bytes.len() as u64) < newest_bytes;
        // The ring is longer by this, so that it costs no character of the cap.
        let mut lead = if broken { WINDOW_LEAD_BYTES.min(bytes.len()) } else { 0 };
        while lead > 0 && bytes.get(lead).is_some_and(|byte| byte & 0xC0 == 0x80) {
            // Not in the middle of a character, of which four bytes are the most.
            lead += 1;
        }
        let held = chars_in(&bytes[lead..]);
        let mut text = text_behind(bytes, lead);
        if last && incomplete_suffix_len(bytes) > 0 {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        capped(text, newest_chars.saturating_sub(held), max_chars, log)
    }

    fn whole(&self) -> (u64, u64) {
        (self.ring.total_bytes(), self.chars)
    }
}

impl Half {
    fn new(kept_bytes: usize) -> Self {
        let (life, unread) = (Kept::new(kept_bytes), View::new(JOB_UNREAD_BYTES));
        Self { life, unread, told_chars: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.life.push(bytes);
        self.unread.push(bytes);
    }

    fn take(&mut self, max_chars: usize, last: bool, log_path: Option<&str>) -> Capped {
        let news = (self.unread.unread_bytes(), self.life.chars - self.told_chars);
        self.told_chars = self.life.chars;
        let max_bytes = max_chars.saturating_mul(MAX_CHAR_BYTES);
        let limits = TextLimits { max_lines: ANY_LINES, max_bytes };
        let text = self.unread.take(limits, false, last, log_path);
        if text.omitted_bytes > 0 || text.truncation.is_some() {
            // More came than is kept from call to call: the life's tail is what is left of it.
            return self.life.text(news, max_chars, last, log_path);
        }
        capped(text.output, 0, max_chars, log_path)
    }
}

impl Job {
    /// A job that has written nothing yet.
    pub fn new(spec: JobSpec) -> Self {
        let kept_bytes = spec.max_chars.saturating_mul(MAX_CHAR_BYTES) + WINDOW_LEAD_BYTES;
        Self {
            spec,
            stdout: Half::new(kept_bytes),
            stderr: Half::new(kept_bytes),
            merged: Kept::new(if spec.pty { 0 } else { kept_bytes }),
            timed_out: false,
            closed: false,
            stdin_bytes: 0,
        }
    }

    /// Takes in what came on `source`.
    pub fn push(&mut self, source: Source, bytes: &[u8]) {
        if self.closed {
            return;
        }
        match source {
            Source::Output => self.stdout.push(bytes),
            Source::Errors => self.stderr.push(bytes),
        }
        if !self.spec.pty {
            self.merged.push(bytes);
        }
    }

    /// Whether something came that no stream call has told.
    pub fn has_news(&self) -> bool {
        self.stdout.unread.unread_bytes() + self.stderr.unread.unread_bytes() > 0
    }

    /// The clean text of what came on `source` since the last call. `last`: nothing will follow.
    pub fn take(&mut self, source: Source, last: bool, log_path: Option<&str>) -> Capped {
        let max_chars = self.spec.max_chars;
        match source {
            Source::Output => self.stdout.take(max_chars, last, log_path),
            Source::Errors => self.stderr.take(max_chars, last, log_path),
        }
    }

    /// The clean text of the whole life of `source`; of both streams merged without one.
    pub fn life(&self, source: Option<Source>, log_path: Option<&str>) -> Capped {
        let kept = self.kept(source);
        kept.text(kept.whole(), self.spec.max_chars, self.closed, log_path)
    }

    /// What is kept of the output of `source`.
    pub fn ring(&self, source: Source) -> &TailRing {
        &self.kept(Some(source)).ring
    }

    fn kept(&self, source: Option<Source>) -> &Kept {
        match source {
            Some(Source::Errors) => &self.stderr.life,
            None if !self.spec.pty => &self.merged,
            _ => &self.stdout.life,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(max_chars: usize, pty: bool) -> Job {
        let (yield_ms, timeout_ms, stdin_cap_bytes) = (1_000, None, None);
        Job::new(JobSpec { yield_ms, timeout_ms, max_chars, pty, stdin_cap_bytes })
    }

    #[test]
    fn streams_are_kept_apart_and_merged() {
        let mut job = job(100, false);
        job.push(Source::Output, b"one\n");
        job.push(Source::Errors, b"two\n");
        job.push(Source::Output, b"three\n");
        assert_eq!(job.life(Some(Source::Output), None).text, "one\nthree\n");
        assert_eq!(job.life(Some(Source::Errors), None).text, "two\n");
        assert_eq!(job.life(None, None).text, "one\ntwo\nthree\n");
        assert!(job.has_news());
        assert_eq!(job.take(Source::Output, false, None).text, "one\nthree\n");
        assert!(job.has_news(), "stderr is not told yet");
        assert_eq!(job.take(Source::Errors, false, None).text, "two\n");
        assert!(!job.has_news());
        assert_eq!(job.life(None, None).text, "one\ntwo\nthree\n", "life is told again");
    }

    #[test]
    fn a_terminals_output_is_merged_by_itself() {
        let mut job = job(100, true);
        job.push(Source::Output, b"one\r\n");
        assert_eq!(job.life(None, None).text, "one\n");
    }

    #[test]
    fn the_cap_counts_characters_and_keeps_the_tail() {
        for (given, kept, omitted) in [("äbc", "äbc", 0), ("äbcd", "äbcd", 0), ("äbcde", "bcde", 1)]
        {
            let mut job = job(4, false);
            job.push(Source::Output, given.as_bytes());
            let capped = job.life(None, Some("/tmp/x.log"));
            assert_eq!(capped.omitted_chars, omitted, "{given}");
            let first = format!("[... {omitted} characters omitted; full output: /tmp/x.log]\n");
            let first = if omitted == 0 { "" } else { &first };
            assert_eq!(capped.text, format!("{first}{kept}"));
        }
    }

    #[test]
    fn what_the_ring_lost_counts_as_omitted() {
        let mut job = job(10, false);
        for _ in 0..100 {
            job.push(Source::Output, b"0123456789");
        }
        let capped = job.life(None, None);
        assert_eq!(capped.text, "[... 990 characters omitted]\n0123456789");
    }

    #[test]
    fn a_text_that_begins_inside_a_sequence_shows_nothing_of_it() {
        let mut job = job(10, false);
        // Whatever the ring begins with, it is somewhere in "\x1b[38;5;123mx".
        for _ in 0..1_000 {
            job.push(Source::Output, b"\x1b[38;5;123mx");
        }
        let text = job.life(None, None).text;
        let shown = text.lines().nth(1).unwrap_or_default();
        assert!(!shown.is_empty() && shown.chars().all(|one| one == 'x'), "{text}");
    }

    #[test]
    fn a_long_line_before_the_last_one_fills_the_cap() {
        let mut job = job(10, false);
        job.push(Source::Output, "ä".repeat(1_000).as_bytes());
        job.push(Source::Output, b"\nend\n");
        assert_eq!(job.life(None, None).text, "[... 995 characters omitted]\näääää\nend\n");
    }

    #[test]
    fn a_closed_job_takes_nothing_in() {
        let mut job = job(10, false);
        job.closed = true;
        job.push(Source::Output, b"late");
        assert_eq!(job.life(None, None).text, "");
    }
}
