//! bash and tmux: commands that go on in background windows. A window is a session; there
//! is no tmux underneath. Here are the answers of bash and when its waits are over; `notes` tells
//! of polls and ends, `books` has what tmux shows.

pub mod bash;
pub mod books;
mod model;
pub mod name;
pub mod notes;
pub mod text;
pub mod tmux;
pub mod window;
pub mod window_context;

pub use books::Books;
use serde::Serialize;
pub use window::Window;

use self::text::{Held, Named, Shown};
use super::{Cx, Family, Method, Numbered};
use crate::pure::process::doing::Input;
use crate::pure::process::killed::KilledBy;
use crate::pure::process::life::ExitStatus;
use crate::server::engine::judge::status_fields;
use crate::server::engine::keeper_link::logs::LogStatus;
use crate::server::session::ending::{Ending, SIGKILL};
use crate::server::session::output::Source;
use crate::server::session::report::{NamedProcess, TruncationReport};
use crate::server::session::state_report::StateReportCamel;
use crate::server::session::view::seconds;
use crate::server::session::wait::{Moment, Wait, WaitKind, Why};
use crate::server::session::wait_report::{self, WaitReport, WaitReportCamel};
use crate::server::session::{Session, SessionId};
use books::Seen;
use window::{Cut, EndedFor, Stage};

/// The rows of the table of methods.
pub const METHODS: &[Method] = &[bash::METHOD, tmux::METHOD];

/// The result of bash.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)] // What has no comment is as in other replies (docs/methods.md).
pub struct BashReport {
    /// `completed`, `failed`, `timed_out`, `aborted` or `background`.
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed_by: Option<&'static str>,
    pub output: String,
    /// For a host of execd mcp: bytes that the text has no room for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<TruncationReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_complete: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_truncated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    /// Processes that go on though the shell has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub still_running: Vec<NamedProcess>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitReportCamel>,
    #[serde(flatten)]
    pub doing: Option<StateReportCamel>,
    pub wall_time_seconds: f64,
    /// What a model reads.
    pub text: String,
    pub is_error: bool,
}

/// What a request for a command led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The command has ended.
    Ended,
    /// The shell has ended, and others go on.
    Held,
    /// The command goes on in the background.
    Background,
    /// execd ended the command.
    EndedFor(EndedFor),
}

/// A window's id as texts and fields have it.
fn window_id(id: SessionId) -> String {
    format!("@{id}")
}

/// How a window's command ended; one that is not reaped yet was ended by us.
fn status_of(core: &Session) -> ExitStatus {
    core.status().unwrap_or(ExitStatus::Signal(SIGKILL))
}

/// The output of a window as a text shows it, with the line that says what was cut.
fn shown<'a>(cut: &'a Cut, notice: Option<&'a String>) -> Shown<'a> {
    Shown { output: &cut.output, notice: notice.map(String::as_str) }
}

impl Family for Window {
    type Books = Books;

    fn take(
        own: Option<&mut Self>,
        _core: &mut Session,
        (_, length): (Source, usize),
        cx: &mut Cx,
    ) {
        if let Some(own) = own {
            own.push(&cx.reading.buffer[..length]);
        }
    }

    /// A poll is due.
    fn due_ns(&self, core: &Session) -> Option<u64> {
        let poll = self.poll.as_ref().filter(|_| core.finished_ns.is_none());
        poll.map(|poll| poll.due_ns)
    }

    /// A foreground command that was cancelled or whose time is over is ended; a poll that is due
    /// is sent.
    fn step(own: Option<&mut Self>, core: &mut Session, cx: &mut Cx) {
        let Some(own) = own else { return };
        own.end_foreground(core, cx);
        if own.poll.as_ref().is_some_and(|poll| poll.due_ns <= cx.now_ns) {
            own.send_poll(core, cx);
        }
    }

    fn verdict(
        own: Option<&Self>,
        core: &Session,
        wait: &Wait,
        at: &Moment,
        _cx: &Cx,
    ) -> Option<Why> {
        match own.filter(|_| wait.kind == WaitKind::Start) {
            Some(own) => own.foreground_verdict(core, wait, at),
            None => core.verdict(wait, at),
        }
    }

    fn points_at_log(own: Option<&Self>, _core: &Session, wait: &Wait, why: Why, _cx: &Cx) -> bool {
        let shows = own.filter(|_| wait.kind == WaitKind::Start);
        why == Why::Completed || shows.is_some_and(Self::may_be_cut)
    }

    fn progress(
        own: Option<&Self>,
        _core: &Session,
        cx: &mut Cx,
    ) -> (String, Option<TruncationReport>) {
        let Some(own) = own else { return Default::default() };
        let cut = own.clean(false).cut(own.spec.lines, own.spec.max_bytes);
        cx.text_bytes += own.kept_bytes();
        (cut.output, TruncationReport::new(&cut.truncation))
    }

    fn answer(
        own: Option<&mut Self>,
        core: &mut Session,
        wait: Wait,
        why: Why,
        cx: &mut Cx,
    ) -> bool {
        let Some(pending) = cx.take_pending(wait.ticket) else { return false };
        let Some(own) = own else { return false };
        if wait.kind == WaitKind::Kill {
            if why == Why::Completed {
                cx.tell_end_to(pending.client, core.id);
            }
            cx.clients.reply(&pending, &own.killed(core, why));
        } else {
            let outcome = match (own.ended_for, why) {
                (Some(ended_for), _) => Outcome::EndedFor(ended_for),
                (None, Why::Completed) => Outcome::Ended,
                (None, Why::ShellGone) => Outcome::Held,
                (None, Why::Cancelled) if wait.cancel.leave => Outcome::Background,
                (None, Why::ShuttingDown | Why::Cancelled) => Outcome::EndedFor(EndedFor::Abort),
                (None, _) => Outcome::Background,
            };
            match outcome {
                Outcome::Background => own.leave_in_background(core, cx),
                Outcome::Held => {
                    own.stage = Stage::Told;
                    core.leave_to_holders();
                    cx.list(core);
                }
                Outcome::Ended => own.stage = Stage::Told,
                Outcome::EndedFor(_) => own.stage = Stage::Closed,
            }
            let said = said_of(&wait, why, core);
            let mut report = match core.start.failure().filter(|_| outcome == Outcome::Ended) {
                Some(why) => {
                    let text = start_failure_text(&core.facts.cwd, why);
                    let wait = said.map(WaitReportCamel::from);
                    BashReport { wait, ..failed(own.spec.name.clone(), text) }
                }
                None => own.report(core, outcome, said, cx),
            };
            if let Some(note) = wait.held_port_note() {
                report.text = format!("note: {note}\n{}", report.text);
            }
            let ended = report.exit_code.is_some() || report.signal.is_some();
            cx.tell_own_to(pending.client, core.id, ended);
            cx.clients.reply(&pending, &report);
        }
        core.life.finished() && !own.will_report()
    }

    /// The end of a background command is reported although others go on in its window, once its
    /// shell has been gone for long enough.
    fn settle(&mut self, core: &mut Session, cx: &mut Cx) {
        let over = core.is_left_to_holders(cx.now_ns) && core.finished_ns.is_none();
        if over && !core.is_awaited_now() {
            self.report_end(core, cx);
        }
    }

    fn tell_end(&mut self, core: &mut Session, cx: &mut Cx) {
        self.report_end(core, cx);
    }

    fn remember(own: Option<&mut Self>, core: &mut Session, _: &str, cx: &mut Cx) {
        if let Some(own) = own {
            own.report_end(core, cx);
            own.keep(core, cx);
        }
    }
}

/// The report of a command that could not be started.
fn failed(name: String, text: String) -> BashReport {
    let (status, exit_code, is_error) = ("failed", Some(-1), true);
    BashReport { status, name, exit_code, text, is_error, ..BashReport::default() }
}

/// What is said of a wait that is over: of one that was cancelled why, where its command goes on.
fn said_of(wait: &Wait, why: Why, core: &Session) -> Option<WaitReport> {
    if why != Why::Cancelled || !wait.cancel.leave {
        return wait_report::report(wait, why, core);
    }
    let mut said = wait_report::told(wait, why, core);
    // What the text advises depends on that.
    said.state = wait.password.map(|_| Input::Password.state());
    if let Some(reason) = &wait.cancel.reason {
        said.line = format!("{} ({reason})", said.outcome);
    }
    Some(said)
}

impl Window {
    /// Nobody waits for this one: its end is reported like that of one in the background.
    fn leave_in_background(&mut self, core: &mut Session, cx: &mut Cx) {
        cx.list(core);
        if self.stage == Stage::Closed {
            return;
        }
        self.stage = Stage::Background;
        if let Some(poll) = self.spec.poll.filter(|_| core.status().is_none()) {
            self.start_poll(poll, cx.now_ns);
        }
        cx.debug(format_args!("session {}: in the background", core.id));
        cx.touch(core);
    }

    /// Whether actions on background windows see it.
    fn is_shown(&self, core: &Session) -> bool {
        let runs = !core.life.finished();
        match self.stage {
            Stage::Background => true,
            Stage::Told => runs,
            // The window's client has gone, and nobody waits for the command any more.
            Stage::Foreground => runs && !core.waits.iter().any(|one| one.asked_by == Self::ID),
            Stage::Closed => false,
        }
    }

    /// Ends a foreground command that was cancelled or whose time is over.
    fn end_foreground(&mut self, core: &mut Session, cx: &mut Cx) {
        if self.ended_for.is_some() || self.stage != Stage::Foreground || core.life.finished() {
            return;
        }
        let shell_gone = core.status().is_some();
        let asked = |wait: &&mut Wait| wait.asked_by == Self::ID && wait.kind == WaitKind::Start;
        let Some(wait) = core.waits.iter_mut().find(asked) else { return };
        // A shell that has ended had its time: what it left behind is told of.
        let kills = self.spec.kill_at_timeout && !shell_gone && wait.cancel.end.is_none();
        let late = wait.due_ns.is_some_and(|at| at <= cx.now_ns) && kills;
        let timed_out = late.then_some(EndedFor::Timeout);
        let aborts = wait.cancelled && !wait.cancel.leave;
        let aborted = aborts.then_some(EndedFor::Abort);
        self.ended_for = aborted.or(timed_out);
        if self.ended_for.is_some() {
            wait.due_ns = None;
            // The wait is now for all processes to be gone, not for the shell.
            wait.saw_leader = false;
            cx.debug(format_args!("session {}: cancelled, or its time is over", core.id));
            let by = if aborted.is_some() { KilledBy::Cancel } else { KilledBy::Timeout };
            cx.begin_ending(core, SIGKILL, 0, by.into());
        }
    }

    /// Why the wait of a foreground command is over.
    fn foreground_verdict(&self, core: &Session, wait: &Wait, at: &Moment) -> Option<Why> {
        if wait.shut_down {
            return Some(Why::ShuttingDown);
        }
        if self.stage != Stage::Foreground && core.start.failure().is_none() {
            return Some(Why::Deadline);
        }
        if core.life.finished() {
            return Some(Why::Completed);
        }
        // What could not be ended is not waited for any longer.
        let given_up = |one: &Ending| one.over() && !one.all_gone();
        if self.ended_for.is_some() {
            return core.ending.as_ref().is_some_and(given_up).then_some(Why::Deadline);
        }
        if at.left_to_holders && !at.closing && wait.asked.is_none() {
            return Some(Why::ShellGone);
        }
        if wait.cancelled && wait.cancel.leave {
            return Some(Why::Cancelled);
        }
        // What has come true; times and the end of execd are judged as ever.
        let came = core.verdict(wait, at);
        if wait.outcome.is_some()
            && let Some(Why::Matched | Why::Stopped | Why::Impossible) = came
        {
            return came;
        }
        let shell_gone = core.status().is_some();
        if wait.due_ns.is_some_and(|due| due <= at.now_ns) {
            return Some(if shell_gone { Why::ShellGone } else { Why::Deadline });
        }
        if at.closing && shell_gone {
            // Who holds the output is being ended: the answer comes with that, or names the rest.
            return core.ending.as_ref().is_none_or(given_up).then_some(Why::ShellGone);
        }
        at.closing.then_some(Why::ShuttingDown)
    }

    /// The output as an answer shows it.
    fn reply_text(&self, core: &Session, cx: &Cx) -> Cut {
        let over = core.life.finished();
        if cx.config.text.keeps_head {
            return Cut::with_head(core.view.peek(cx.config.text, over));
        }
        self.clean(over).cut(self.spec.lines, self.spec.max_bytes)
    }

    fn report(
        &self,
        core: &mut Session,
        outcome: Outcome,
        wait: Option<WaitReport>,
        cx: &mut Cx,
    ) -> BashReport {
        let log = cx.log_status(core).unwrap_or_else(LogStatus::whole);
        let spec = &self.spec;
        let cut = self.reply_text(core, cx);
        cx.text_bytes += self.kept_bytes();
        let shown_log = log.shown(core.life.finished());
        let notice = cut.notice(shown_log.as_deref(), spec.always_log_path);
        let output = shown(&cut, notice.as_ref());
        let status = status_of(core);
        let held = outcome == Outcome::Held;
        let still_running = if held { cx.named_holders(core) } else { Vec::new() };
        let text = match outcome {
            Outcome::Ended => text::ended(output, status),
            Outcome::Held => {
                let (holders, log_path) = (holders_of(&still_running), shown_log.as_deref());
                let held = Held { id: core.id, holders: &holders, log_path };
                text::ended_but_held(output, status, held)
            }
            Outcome::EndedFor(EndedFor::Abort) => text::aborted(output),
            Outcome::EndedFor(EndedFor::Timeout) => text::timed_out(output, spec.timeout_ms),
            Outcome::Background if spec.background => {
                let named = Named { name: &spec.name, id: core.id };
                text::started(named, spec.poll.map(|poll| poll.interval_ms), &spec.attach)
            }
            Outcome::Background => {
                let by = wait.as_ref().filter(|wait| wait.outcome != "deadline");
                spec.went_on(core.id, output, by)
            }
        };
        let word = match outcome {
            Outcome::Ended | Outcome::Held if status == ExitStatus::Code(0) => "completed",
            Outcome::Ended | Outcome::Held => "failed",
            Outcome::EndedFor(EndedFor::Abort) => "aborted",
            Outcome::EndedFor(EndedFor::Timeout) => "timed_out",
            Outcome::Background => "background",
        };
        let exited = core.status().filter(|_| outcome != Outcome::Background);
        let (exit_code, signal) = status_fields(exited);
        // What has not come yet is no output of a start.
        let starts = outcome == Outcome::Background && spec.background;
        // Of one that goes on the log is never complete, unless it has trouble.
        let goes_on = matches!(outcome, Outcome::Background | Outcome::Held);
        let incomplete = !log.complete && (!goes_on || log.failure.is_some());
        BashReport {
            status: word,
            window: Some(window_id(core.id)),
            name: spec.name.clone(),
            exit_code,
            signal,
            killed_by: if exited.is_some() { core.killed_by() } else { None },
            truncation: TruncationReport::new(&cut.truncation).filter(|_| !starts),
            log_from: log.from(),
            log_path: log.path,
            log_complete: incomplete.then_some(false),
            log_truncated: log.truncated.then_some(true),
            failure_message: log.failure,
            still_running,
            doing: goes_on.then(|| StateReportCamel::from(&cx.doing(core))),
            wait: wait.map(WaitReportCamel::from),
            wall_time_seconds: seconds(cx.now_ns - core.facts.started_ns),
            text,
            is_error: !matches!(word, "completed" | "background"),
            omitted_bytes: (cut.omitted_bytes > 0 && !starts).then_some(cut.omitted_bytes),
            output: if starts { String::new() } else { cut.output },
        }
    }

    /// The answer to who closed the window.
    fn killed(&self, core: &Session, why: Why) -> Seen {
        let (name, id) = (&self.spec.name, core.id);
        if why == Why::Completed {
            return killed(name, id);
        }
        let ending = core.ending.as_ref().filter(|one| one.over());
        let survivors: Vec<String> = ending
            .map(Ending::survivors)
            .unwrap_or_default()
            .iter()
            .map(|one| {
                let reason = one.reason.as_deref().unwrap_or_default();
                format!("{}: {reason}", text::holder(&one.command, one.pid))
            })
            .collect();
        if survivors.is_empty() {
            return Seen::text(format!("Ending background window: {name} @{id}, not done yet."));
        }
        Seen::error(format!("Could not end all of window {name} @{id}: {}.", survivors.join("; ")))
    }
}

fn killed(name: &str, id: SessionId) -> Seen {
    Seen::text(format!("Killed background window: {name} @{id}."))
}

/// Who goes on, as texts name them.
fn holders_of(found: &[NamedProcess]) -> Vec<String> {
    found.iter().map(|one| text::holder(&one.command, one.pid)).collect()
}

/// The text of a command that could not be started; of a directory that is not there pi's.
pub fn start_failure_text(cwd: &str, failure: &str) -> String {
    if failure.starts_with("workdir ") && failure.contains("ENOENT") {
        return format!("Working directory does not exist: {cwd}\nCannot execute bash commands.");
    }
    failure.to_owned()
}
