//! The results of exec_command, write_stdin and kill_session: their fields, and the header and
//! footer that a model reads. A field that does not apply is absent.

use serde::Serialize;

use super::listening::{self, Listening};
use super::state_report::StateReport;
use super::view::seconds;
use super::wait_report::WaitReport;
use crate::limits::NS_PER_MS;
use crate::pure::ledger::Event;
use crate::pure::text::truncate::Truncation;
use crate::pure::text::visible::one_line;
use crate::sys::proc::{self, ProcStat};

/// How a reply was cut.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TruncationReport {
    truncated: bool,
    truncated_by: &'static str,
    total_lines: usize,
    total_bytes: usize,
    output_lines: usize,
    output_bytes: usize,
    last_line_partial: bool,
    max_lines: usize,
    max_bytes: usize,
}

impl TruncationReport {
    /// The report of a truncation that cut something.
    pub fn new(cut: &Truncation) -> Option<Self> {
        Some(Self {
            truncated: true,
            truncated_by: cut.cut_by?.as_str(),
            total_lines: cut.total_lines,
            total_bytes: cut.total_bytes,
            output_lines: cut.output_lines,
            output_bytes: cut.output_bytes,
            last_line_partial: cut.last_line_partial,
            max_lines: cut.max_lines,
            max_bytes: cut.max_bytes,
        })
    }
}

/// How much a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderStyle<'a> {
    /// All that applies.
    Full,
    /// Only what tells something.
    Compact {
        /// The directory that a command has which asks for none.
        cwd: &'a str,
    },
}

impl HeaderStyle<'_> {
    /// Whether a command's directory is worth a line.
    fn tells_cwd(self, of_command: &str) -> bool {
        !matches!(self, Self::Compact { cwd } if cwd == of_command || of_command.is_empty())
    }
}

/// The result of exec_command and write_stdin. The fields' meanings are the specification's.
#[derive(Debug, Default, Serialize)]
#[allow(missing_docs)] // What has no comment is as in other replies (docs/methods.md).
pub struct ExecReport {
    /// The session; from `exec_command` and `write_stdin` only while something of it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The exit status; −1: the command could not be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the command, as `SIGTERM`; there is no `exit_code` then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// By whom the session was ended; absent where it ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed_by: Option<&'static str>,
    /// `killed`: somebody else has ended the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ms_ago: Option<u64>,
    /// What went wrong with the start, the log or the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    /// The log file; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    /// The first byte of the output that the log still has; absent while it has all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_from: Option<u64>,
    pub cwd: String,
    pub command: String,
    pub tty: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yield_time_ms: Option<u64>,
    pub wall_time_seconds: f64,
    pub chunk_id: String,
    /// Bytes of this call's output divided by 4, before the cut.
    pub original_token_count: u64,
    pub output_bytes_total: u64,
    /// Bytes since the last call that memory had no room for; the log has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    /// Clean text since the last call, cut to its end.
    pub output: String,
    /// How the text was cut, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<TruncationReport>,
    /// Why the wait ended: `completed`, `deadline_reached`, `absolute_deadline_reached`,
    /// `condition_met`, `cancelled` or `shutting_down`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_reason: Option<Box<str>>,
    /// `relative`, or `absolute` with `yield_until`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yield_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_wait_ms: Option<u64>,
    /// `wake` while a wake is armed, or when this reply used it up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_exit: Option<&'static str>,
    /// `armed`: a wake will tell the exit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_notification: Option<&'static str>,
    /// `direct`: this reply told the exit in place of the wake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_delivery: Option<&'static str>,
    /// `consumed`: this reply used up the wake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_exit_wake: Option<&'static str>,
    /// The host's clock, while any session runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_time_utc: Option<String>,
    /// What ended the wait, with `until` or `stop`, or where only input could have ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listening: Vec<Listening>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The shell's exit status, while other processes hold its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell_exit_code: Option<i32>,
    /// The process id of the shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// An eviction, or a table of sessions that is nearly full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// False: the log lacks something, or is not written yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_complete: Option<bool>,
    /// True: the log ended at a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_truncated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rss_kib: Option<u64>,
    #[serde(flatten)]
    pub doing: Option<StateReport>,
    /// With `events: true`: what this client was not told yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// Lines for a model, to put before `output`.
    pub header: String,
    /// A line for a model behind the output: what was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footer: Option<String>,
}

impl ExecReport {
    /// What the header says of a wait that something else ended than what it waited for.
    fn ended_early(&self) -> Option<String> {
        let word =
            self.wait_status.filter(|word| matches!(*word, "cancelled" | "shutting_down"))?;
        Some(match &self.wait_reason {
            Some(reason) => format!("{word} ({reason})"),
            None => word.to_owned(),
        })
    }

    /// The session took so long in all, in nanoseconds.
    pub fn took(&mut self, all_ns: u64) {
        self.wall_time_seconds = seconds(all_ns);
        self.effective_wait_ms = Some(all_ns / NS_PER_MS);
    }

    /// Nothing is left of the session: drops what tells of one that goes on, and writes the header.
    pub fn is_over(&mut self) {
        (self.session_id, self.pid, self.doing, self.shell_exit_code) = (None, None, None, None);
        (self.wait, self.tool_time_utc, self.completion_notification) = (None, None, None);
        self.listening.clear();
        self.wait_status = Some("completed");
        self.write_header(HeaderStyle::Full);
    }

    /// The log has another name by now.
    pub fn move_log(&mut self, path: String) {
        if let (Some(before), Some(footer)) = (&self.log_path, &mut self.footer) {
            *footer = footer.replace(before, &path);
        }
        self.log_path = Some(path);
        self.write_header(HeaderStyle::Full);
    }

    /// Whether the command failed, as far as is known.
    fn has_failed(&self) -> bool {
        self.exit_code.is_some_and(|code| code != 0)
            || self.signal.is_some()
            || self.failure_message.is_some()
    }

    /// Whether the log is worth a line: what is not in the answer is there.
    fn needs_log(&self) -> bool {
        let cut = self.truncation.is_some() || self.omitted_bytes.is_some();
        self.session_id.is_some() || cut || self.has_failed()
    }

    /// Writes the header from the other fields, in the specification's order.
    pub fn write_header(&mut self, style: HeaderStyle<'_>) {
        let mut lines =
            vec![if self.session_id.is_some() { "[still running]" } else { "[exited]" }.to_owned()];
        let full = matches!(style, HeaderStyle::Full);
        let mut line = |name: &str, value: Option<String>, tells: bool| {
            if let Some(value) = value.filter(|_| full || tells) {
                // A header line is one line, whatever a path or a message holds.
                lines.push(format!("{name}: {}", one_line(&value)));
            }
        };
        line("session_id", self.session_id.map(|id| id.to_string()), true);
        line("name", self.name.clone(), true);
        line("exit_code", self.exit_code.map(|code| code.to_string()), true);
        line("signal", self.signal.clone(), true);
        line("killed_by", self.killed_by.map(str::to_owned), true);
        line("failure", self.failure_message.clone(), true);
        line("note", self.note.clone(), true);
        // Who waits for what stands in the note then.
        let stuck = self.wait.as_ref().is_some_and(WaitReport::is_stuck);
        let wait_line = |wait: &WaitReport| match stuck {
            true => wait.outcome.to_owned(),
            false => wait.line.clone(),
        };
        let ended_early = self.ended_early();
        let outcome = self.wait.as_ref().filter(|_| ended_early.is_none());
        line("wait", outcome.map(wait_line), true);
        line("wait_status", ended_early, true);
        let doing = self.doing.as_ref();
        line("state", doing.and_then(|doing| doing.line.clone()).filter(|_| !stuck), true);
        let full_screen = doing.and_then(|doing| doing.full_screen);
        line("full_screen", full_screen.map(|on| on.to_string()), true);
        line("listening", listening::line(&self.listening), true);
        line("warning", self.warning.clone(), true);
        let needs_log = self.needs_log();
        line("log_path", self.log_path.clone(), needs_log);
        let total = self.output_bytes_total;
        let kept = self.log_from.map(|from| format!("bytes {from}– of {total} kept"));
        line("log", kept, needs_log);
        line("cwd", Some(self.cwd.clone()), style.tells_cwd(&self.cwd));
        line("wall_time_seconds", Some(format!("{:.3}", self.wall_time_seconds)), false);
        line("chunk_id", Some(self.chunk_id.clone()), false);
        line("original_token_count", Some(self.original_token_count.to_string()), false);
        line("output_bytes_total", Some(self.output_bytes_total.to_string()), false);
        line("omitted_bytes", self.omitted_bytes.map(|bytes| bytes.to_string()), true);
        line("completion_notification", self.completion_notification.map(str::to_owned), true);
        line("completion_delivery", self.completion_delivery.map(str::to_owned), true);
        line("tool_time_utc", self.tool_time_utc.clone(), true);
        line("tty", Some(self.tty.to_string()), self.tty);
        lines.extend(self.events.iter().map(|event| event.line.clone()));
        self.header = lines.join("\n");
    }
}

/// A process that is named in a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedProcess {
    /// Its process id.
    pub pid: i32,
    /// Its name.
    pub command: String,
    /// Why it is still there, for survivors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl NamedProcess {
    /// A process by its name; it may be gone by now.
    pub fn of(one: &ProcStat) -> Self {
        Self { pid: one.pid, command: proc::name(one.pid), reason: None }
    }
}

/// The result of kill_session.
#[derive(Debug, Default, Serialize)]
#[allow(missing_docs)] // What has no comment is as in other replies (docs/methods.md).
pub struct KillReport {
    /// False: there is no such session.
    pub found: bool,
    pub session_id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// The signal that its end began with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_signal: Option<String>,
    /// Whether SIGKILL had to follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ms_ago: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_complete: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_truncated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<TruncationReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footer: Option<String>,
    /// Processes that could not be ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<NamedProcess>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rule: unified-exec.md, exec_command, result: `wall_time_seconds` is a number, with three
    ///   decimals in the header
    /// rule: unified-exec.md, exec_command, result: The header's lines are in this order, each only
    ///   if present
    #[test]
    fn the_header_has_its_lines_in_order_and_only_what_applies() {
        let mut report = ExecReport {
            session_id: Some(1),
            log_path: Some("/tmp/a.log".into()),
            cwd: "/home/you".into(),
            wall_time_seconds: 0.502,
            chunk_id: "a4f2c1".into(),
            original_token_count: 37,
            output_bytes_total: 148,
            tool_time_utc: Some("2026-07-21T18:30:00.000Z".into()),
            ..ExecReport::default()
        };
        report.write_header(HeaderStyle::Full);
        assert_eq!(
            report.header,
            "[still running]\nsession_id: 1\nlog_path: /tmp/a.log\ncwd: /home/you\n\
             wall_time_seconds: 0.502\nchunk_id: a4f2c1\noriginal_token_count: 37\n\
             output_bytes_total: 148\ntool_time_utc: 2026-07-21T18:30:00.000Z\ntty: false"
        );
        report.session_id = None;
        report.signal = Some("SIGTERM".into());
        report.failure_message = Some("stdin write failed".into());
        report.note = Some("two\nlines".into());
        report.omitted_bytes = Some(5);
        report.log_from = Some(96);
        report.on_exit = Some("wake");
        report.completion_notification = Some("armed");
        report.write_header(HeaderStyle::Full);
        assert_eq!(
            report.header,
            "[exited]\nsignal: SIGTERM\nfailure: stdin write failed\nnote: two\\nlines\n\
             log_path: /tmp/a.log\nlog: bytes 96– of 148 kept\ncwd: /home/you\n\
             wall_time_seconds: 0.502\nchunk_id: a4f2c1\n\
             original_token_count: 37\noutput_bytes_total: 148\nomitted_bytes: 5\n\
             completion_notification: armed\ntool_time_utc: 2026-07-21T18:30:00.000Z\ntty: false"
        );
    }
}
