//! A session as bash and tmux see it: what is kept of its output, whether somebody waits
//! for the session or it runs in the background, and its polls. The texts that models read are made
//! in `text`.

use crate::limits::{NS_PER_MS, WINDOW_KEPT_FACTOR};
use crate::pure::buffer::head_tail::TailRing;
use crate::pure::text::clean::window_text;
use crate::pure::text::truncate::{CutBy, Truncation, truncate_tail};
use crate::pure::text::utf8::{ceil_boundary, incomplete_suffix_len};
use crate::pure::text::visible::one_line;
use crate::server::families::windows::text::{self, Inspector, Shown, notice};
use crate::server::session::view::Text;
use crate::server::session::wait_report::WaitReport;
use crate::server::session::{ClientId, SessionId};

/// Clients whose last look at a window is remembered: all that may be connected.
const PEEKERS_MAX: usize = 65;

/// Whose windows an action may see, or whose this one is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// pi's session.
    pub pi_session: Option<String>,
    /// The git root.
    pub git_root: Option<String>,
}

/// What a window was started with.
#[derive(Clone, Debug)]
pub struct WindowSpec {
    /// Its name.
    pub name: String,
    /// The client that started the window.
    pub client: ClientId,
    /// Its scope.
    pub scope: Scope,
    /// Foreground time before the command goes on in the background, or is ended.
    pub timeout_ms: u64,
    /// The command is ended when that time is over.
    pub kill_at_timeout: bool,
    /// The command runs in the background from its start.
    pub background: bool,
    /// Lines of foreground text.
    pub lines: usize,
    /// Lines of its completion.
    pub completed_lines: usize,
    /// Bytes of any of its texts.
    pub max_bytes: usize,
    /// The log's path is told although nothing was cut.
    pub always_log_path: bool,
    /// The window is forgotten when its end was reported.
    pub auto_close: bool,
    /// The poll that begins with its background.
    pub poll: Option<PollSpec>,
    /// How the tool that looks after windows is called.
    pub tool: String,
    /// What that tool may do, of what texts name.
    pub actions: Vec<&'static str>,
    /// The template of the command that attaches.
    pub attach: String,
}

/// How often a window is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollSpec {
    /// From one poll to the next.
    pub interval_ms: u64,
    /// Lines of each.
    pub lines: usize,
    /// Only people see it: then what has not changed is not sent again.
    pub display: bool,
}

/// A poll under way.
#[derive(Clone, Debug)]
pub struct Poll {
    /// How often.
    pub spec: PollSpec,
    /// When the next one is due.
    pub due_ns: u64,
    /// What was sent last.
    shown: String,
}

/// Where a window is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A request waits for the command.
    Foreground,
    /// The command runs in the background, and its end will be reported.
    Background,
    /// The command's end was reported, or told by a reply: what still runs in the window is listed.
    Told,
    /// The window was closed: nobody is told of it any more.
    Closed,
}

/// Why execd ended a foreground command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedFor {
    /// The command's time was over.
    Timeout,
    /// The caller cancelled it.
    Abort,
}

/// What the windows family keeps of a session.
#[derive(Debug)]
pub struct Window {
    /// What the window was started with.
    pub spec: WindowSpec,
    /// Where the window is in its life.
    pub stage: Stage,
    /// Why the command was ended, where execd ended it.
    pub ended_for: Option<EndedFor>,
    /// The poll under way.
    pub poll: Option<Poll>,
    /// What its clients have seen of it.
    pub looks: Looks,
    tape: Tape,
}

/// How far a client has seen a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    client: ClientId,
    /// Lines that were whole then.
    lines: u64,
    /// Bytes of output until then.
    bytes: u64,
}

/// What clients have seen of a window, and how much there is of it.
#[derive(Clone, Debug, Default)]
pub struct Looks {
    all: Vec<Look>,
    lines: u64,
    bytes: u64,
}

impl Looks {
    /// The client looks now. Gives its last look, where it has looked before.
    pub fn look(&mut self, client: ClientId) -> Option<Look> {
        let at = self.all.iter().position(|look| look.client == client);
        let before = at.map(|at| self.all.remove(at));
        if self.all.len() >= PEEKERS_MAX {
            self.all.remove(0);
        }
        self.all.push(Look { client, lines: self.lines, bytes: self.bytes });
        before
    }

    /// Whether nothing came since then.
    pub fn is_same(&self, before: Look) -> bool {
        self.bytes == before.bytes
    }
}

impl Window {
    /// A window that has written nothing yet.
    pub fn new(spec: WindowSpec) -> Self {
        let stage = if spec.background { Stage::Background } else { Stage::Foreground };
        let tape = Tape::new(spec.max_bytes.saturating_mul(WINDOW_KEPT_FACTOR));
        Self { spec, stage, ended_for: None, poll: None, looks: Looks::default(), tape }
    }

    /// Takes in output.
    pub fn push(&mut self, bytes: &[u8]) {
        self.tape.push(bytes);
    }

    /// Its text as far as it is kept. `last`: nothing will follow.
    pub fn clean(&self, last: bool) -> Clean {
        self.tape.clean(last)
    }

    /// What its clients have seen of it, with what there is by now.
    pub fn looks_now(&mut self) -> &mut Looks {
        let tape = &self.tape;
        (self.looks.lines, self.looks.bytes) = (tape.newlines, tape.ring.total_bytes());
        &mut self.looks
    }

    /// Bytes that its text is made of.
    pub fn kept_bytes(&self) -> usize {
        self.tape.kept_bytes()
    }

    /// Whether a text of it may be cut, so that it points at the log.
    pub fn may_be_cut(&self) -> bool {
        let tape = &self.tape;
        let lines = tape.newlines >= self.spec.lines as u64;
        lines || tape.ring.total_bytes() > self.spec.max_bytes as u64
    }

    /// Whether its end is still to be reported.
    pub fn will_report(&self) -> bool {
        self.stage == Stage::Background
    }

    /// Begins to poll it, in place of what polled it before.
    pub fn start_poll(&mut self, spec: PollSpec, now_ns: u64) {
        let due_ns = now_ns + spec.interval_ms * NS_PER_MS;
        self.poll = Some(Poll { spec, due_ns, shown: String::new() });
    }
}

impl WindowSpec {
    /// The text of a command that goes on in the background: because its time was over, or `by`
    /// what it was waited for.
    pub fn went_on(&self, id: SessionId, output: Shown<'_>, by: Option<&WaitReport>) -> String {
        let inspector = Inspector { tool: &self.tool, actions: &self.actions };
        let poll_ms = self.poll.map(|poll| poll.interval_ms);
        let after = by.is_none().then_some(self.timeout_ms);
        let asks = |wait: &WaitReport| wait.outcome == "cancelled" && wait.state.is_some();
        let text = if by.is_some_and(asks) || by.is_some_and(WaitReport::is_stuck) {
            text::awaits_input(output, id, inspector, poll_ms, &self.attach)
        } else {
            text::went_on(output, after, id, inspector, poll_ms)
        };
        let why = by.map(|wait| format!("wait: {}\n", one_line(&wait.line)));
        format!("{}{text}", why.unwrap_or_default())
    }
}

impl Poll {
    /// Moves on to the next time after `now_ns`; those that were missed are left out.
    pub fn advance(&mut self, now_ns: u64) {
        let interval_ns = (self.spec.interval_ms * NS_PER_MS).max(1);
        let behind = now_ns.saturating_sub(self.due_ns) / interval_ns;
        self.due_ns += (behind + 1) * interval_ns;
    }

    /// Whether `text` is to be sent: to a model always, to people where they see something else
    /// than before. `empty`: there is no output in it.
    pub fn wants(&mut self, text: &str, empty: bool) -> bool {
        if !self.spec.display {
            return true;
        }
        let changed = if self.shown.is_empty() { !empty } else { self.shown != text };
        if changed {
            text.clone_into(&mut self.shown);
        }
        changed
    }
}

/// The last of a window's output, and how much came before it.
#[derive(Debug)]
struct Tape {
    ring: TailRing,
    newlines: u64,
    /// Where the line that is being written begins, and the one before it.
    line_start: u64,
    line_before: u64,
}

/// Clean text, and how much came before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clean {
    /// The text.
    pub text: String,
    lines_before: usize,
    bytes_before: usize,
    /// Raw bytes of the last line, whether it is all here or not.
    line_bytes: usize,
}

/// The end of a text, and what was cut from it.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The text that is left.
    pub output: String,
    /// What was cut.
    pub truncation: Truncation,
    /// Bytes that were left out in its middle.
    pub omitted_bytes: u64,
    line_bytes: usize,
}

impl Tape {
    fn new(capacity_bytes: usize) -> Self {
        Self { ring: TailRing::new(capacity_bytes), newlines: 0, line_start: 0, line_before: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        let base = self.ring.total_bytes();
        if let Some(last) = memchr::memrchr(b'\n', bytes) {
            self.newlines += memchr::memchr_iter(b'\n', bytes).count() as u64;
            let before = memchr::memrchr(b'\n', &bytes[..last]);
            self.line_before = before.map_or(self.line_start, |at| base + at as u64 + 1);
            self.line_start = base + last as u64 + 1;
        }
        self.ring.push(bytes);
    }

    fn kept_bytes(&self) -> usize {
        usize::try_from(self.ring.total_bytes() - self.ring.starts_at()).unwrap_or(usize::MAX)
    }

    fn clean(&self, last: bool) -> Clean {
        let (bytes, starts_at) = (self.ring.to_vec(), self.ring.starts_at());
        let total = self.ring.total_bytes();
        let broken = starts_at > 0;
        let line_end = memchr::memchr(b'\n', &bytes).filter(|end| broken && end + 1 < bytes.len());
        // The broken first line is left out of a window's text.
        let skipped = line_end.map_or(0, |end| end + 1);
        let held = memchr::memchr_iter(b'\n', &bytes[skipped..]).count() as u64;
        let mut text = window_text(&bytes, broken);
        if last && incomplete_suffix_len(&bytes) > 0 {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        let open = self.line_start < total;
        let line = if open { total - self.line_start } else { total - self.line_before };
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        Clean {
            text,
            lines_before: size(self.newlines - held),
            bytes_before: size(starts_at) + skipped,
            line_bytes: size(line.saturating_sub(u64::from(!open))),
        }
    }
}

impl Clean {
    /// Its last lines within the limits, as pi's truncateTail cuts them.
    pub fn cut(&self, max_lines: usize, max_bytes: usize) -> Cut {
        let (output, mut truncation) = truncate_tail(&self.text, max_lines, max_bytes);
        truncation.total_lines += self.lines_before;
        truncation.total_bytes += self.bytes_before;
        if truncation.cut_by.is_none() && self.bytes_before > 0 {
            let bytes = truncation.total_bytes > max_bytes;
            truncation.cut_by = Some(if bytes { CutBy::Bytes } else { CutBy::Lines });
        }
        let line = self.text.strip_suffix('\n').unwrap_or(&self.text);
        let line = line.rsplit('\n').next().unwrap_or_default().len();
        let whole = self.bytes_before == 0 || self.text.trim_end_matches('\n').contains('\n');
        let line_bytes = if whole { line } else { self.line_bytes.max(line) };
        Cut { output: output.to_owned(), truncation, omitted_bytes: 0, line_bytes }
    }

    /// What of it has come since a look: from the line on that was not whole then.
    pub fn since(self, before: Look) -> Self {
        let seen = usize::try_from(before.lines).unwrap_or(usize::MAX);
        let skipped = seen.saturating_sub(self.lines_before);
        let mut ends = memchr::memchr_iter(b'\n', self.text.as_bytes());
        let from = match skipped {
            0 => 0,
            lines => ends.nth(lines - 1).map_or(0, |end| end + 1),
        };
        // What is no longer kept of it is told as what is cut.
        let lost = self.lines_before.saturating_sub(seen);
        let bytes_before = if lost > 0 { self.bytes_before } else { 0 };
        let text = self.text[from..].to_owned();
        Self { text, lines_before: lost, bytes_before, line_bytes: self.line_bytes }
    }

    /// The same text with no more than its last `max_bytes`.
    pub fn shortened(self, max_bytes: usize) -> Self {
        if self.text.len() <= max_bytes {
            return self;
        }
        let from = ceil_boundary(&self.text, self.text.len() - max_bytes);
        let line = self.text[from..].find('\n').map(|end| from + end + 1);
        let from = line.filter(|&line| line < self.text.len()).unwrap_or(from);
        let gone = memchr::memchr_iter(b'\n', &self.text.as_bytes()[..from]).count();
        let last = self.text.trim_end_matches('\n').rsplit('\n').next().unwrap_or_default().len();
        Self {
            text: self.text[from..].to_owned(),
            lines_before: self.lines_before + gone,
            bytes_before: self.bytes_before + from,
            line_bytes: self.line_bytes.max(last),
        }
    }
}

impl Cut {
    /// A text that has its beginning, whatever was left out behind that.
    pub fn with_head(text: Text) -> Self {
        let (_, truncation) = truncate_tail(&text.output, usize::MAX, usize::MAX);
        let Text { output, omitted_bytes, .. } = text;
        Self { output, truncation, omitted_bytes, line_bytes: 0 }
    }

    /// The line that says what was cut and where all of it is; with `always` also where nothing
    /// was.
    pub fn notice(&self, log_path: Option<&str>, always: bool) -> Option<String> {
        notice(&self.truncation, self.line_bytes, log_path, always)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tape(capacity: usize, pieces: &[&[u8]]) -> Tape {
        let mut tape = Tape::new(capacity);
        pieces.iter().for_each(|piece| tape.push(piece));
        tape
    }

    fn told(capacity: usize, pieces: &[&[u8]], lines: usize, bytes: usize) -> (String, String) {
        let cut = tape(capacity, pieces).clean(true).cut(lines, bytes);
        let notice = cut.notice(Some("LOG"), false).unwrap_or_default();
        (cut.output, notice)
    }

    /// rule: bash.md, bash and tmux: The tail, 2,000 lines or 50 KiB, with pi's notice that names
    ///   the log; counts of the whole output
    #[test]
    fn a_line_longer_than_what_is_kept_is_measured_as_it_was_written() {
        let line = "x".repeat(3_000);
        for (end, capacity) in [("", 1_000), ("\n", 1_000), ("", 9_000), ("\n", 9_000)] {
            let pieces = ["first\n".as_bytes(), line.as_bytes(), end.as_bytes()];
            let (output, notice) = told(capacity, &pieces, 10, 500);
            assert_eq!(output, "x".repeat(500), "{end:?} {capacity}");
            let expected = "[Showing last 500B of line 2 (line is 2.9KB). Full output: LOG]";
            assert_eq!(notice, expected, "{end:?} {capacity}");
        }
    }

    /// rule: bash.md, bash and tmux: The tail, 2,000 lines or 50 KiB, with pi's notice that names
    ///   the log; counts of the whole output
    #[test]
    fn what_was_lost_is_said_although_the_rest_is_short() {
        let bar: String = (0..500).map(|i| format!("\r{i}%")).collect();
        let (output, notice) = told(100, &[b"important\n", bar.as_bytes(), b"\ndone\n"], 10, 5_000);
        assert_eq!(output, "done\n");
        assert_eq!(notice, "[Showing lines 3-3 of 3. Full output: LOG]");
    }

    #[test]
    fn text_is_clean_and_an_unfinished_character_shows_at_the_end_only() {
        let tape = tape(100, &[b"\x1b[31mred\x1b[0m\r\n\xc3"]);
        assert_eq!(tape.clean(false).text, "red\n");
        assert_eq!(tape.clean(true).text, "red\n\u{fffd}");
        let whole = tape.clean(true).cut(10, 100);
        assert_eq!(whole.truncation.cut_by, None);
    }

    #[test]
    fn a_shortened_text_counts_as_the_whole_one() {
        let lines: String = (1..=100).map(|i| format!("line {i}\n")).collect();
        let whole = tape(10_000, &[lines.as_bytes()]).clean(true);
        let short = whole.clone().shortened(100);
        assert!(short.text.len() <= 100 && short.text.starts_with("line "), "{:?}", short.text);
        let (one, other) = (whole.cut(5, 90), short.cut(5, 90));
        assert_eq!((&one.output, &one.truncation), (&other.output, &other.truncation));
        let one_line = tape(10_000, &["x".repeat(500).as_bytes()]).clean(true).shortened(100);
        let cut = one_line.cut(5, 50);
        let expected = "[Showing last 50B of line 1 (line is 500B)]";
        assert_eq!(cut.notice(None, false).as_deref(), Some(expected));
    }
}
