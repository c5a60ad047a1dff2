//! The window family's side of sessions (bash.md): the answers of bash, the word of a
//! background command's end, polls, and what tmux shows and ends.

pub mod bash;
pub mod name;
pub mod text;
pub mod tmux;
pub mod window;
pub mod window_context;

mod books;
mod notes;

pub use books::{FinishedWindows, PeekLimits, PollRow, Seen, WindowRow};
use serde::Serialize;

use self::text::{Held, Inspector, Named, Shown};
use crate::engine::Daemon;
use crate::engine::judge::status_fields;
use crate::engine::logs::LogStatus;
use crate::families::windows::window::{Cut, EndedFor, Stage, Window, WindowSpec};
use crate::limits::{KILL_GRACE_MS, NS_PER_MS, RUNNING_WINDOWS_MAX, WINDOW_UNREAD_BYTES};
use crate::pure::process::life::ExitStatus;
use crate::session::ending::{Ending, SIGKILL, SIGTERM};
use crate::session::report::{NamedProcess, TruncationReport};
use crate::session::view::{View, seconds};
use crate::session::wait::{Wait, WaitKind, Why};
use crate::session::{Session, SessionId};
use crate::wire::{Reason, RpcError};

/// The result of bash.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)] // docs/bash.md describes each.
pub struct BashReport {
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    pub output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<TruncationReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_complete: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_truncated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub still_running: Vec<NamedProcess>,
    pub wall_time_seconds: f64,
    pub text: String,
    pub is_error: bool,
}

/// What a request for a command led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It has ended.
    Ended,
    /// Its shell has, and others go on.
    Held,
    /// It goes on in the background.
    Background,
    /// execd ended it.
    EndedFor(EndedFor),
}

/// A window's id as texts and fields have it.
fn window_id(id: SessionId) -> String {
    format!("@{id}")
}

/// How a window's command ended; one that is not reaped yet was ended by us.
fn status_of(session: &Session) -> ExitStatus {
    session.status().unwrap_or(ExitStatus::Signal(SIGKILL))
}

/// The output of a window as a text shows it, with the line that says what was cut.
fn shown<'a>(cut: &'a Cut, notice: Option<&'a String>) -> Shown<'a> {
    Shown { output: &cut.output, notice: notice.map(String::as_str) }
}

impl Daemon {
    /// Makes a session that was just started a window.
    pub fn make_window(&mut self, id: SessionId, spec: WindowSpec) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.view = View::new(WINDOW_UNREAD_BYTES);
            session.window = Some(Box::new(Window::new(spec)));
        }
    }

    /// Refuses one more window when as many run as may.
    pub fn room_for_window(&self) -> Result<(), RpcError> {
        let runs = |session: &&Session| session.window.is_some() && !session.life.finished();
        let running = self.sessions.values().filter(runs).count();
        if running < RUNNING_WINDOWS_MAX.min(self.config.max_running) {
            return Ok(());
        }
        let message = format!(
            "{running} commands of bash run, as many as may at once: kill a background window, \
             or wait for one to end"
        );
        Err(RpcError::failed(Reason::TooManySessions, message))
    }

    /// The report of a command that could not be started.
    pub fn failed_window(&self, name: String, text: String) -> BashReport {
        let (status, exit_code, is_error) = ("failed", Some(-1), true);
        BashReport { status, name, exit_code, text, is_error, ..BashReport::default() }
    }

    /// Nobody waits for this one: its end is reported like that of one in the background.
    pub fn leave_in_background(&mut self, id: SessionId) {
        self.register(id);
        let now_ns = self.now_ns;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let goes_on = session.status().is_none();
        let open = |window: &&mut Box<Window>| window.stage != Stage::Closed;
        let Some(window) = session.window.as_mut().filter(open) else { return };
        window.stage = Stage::Background;
        if let Some(poll) = window.spec.poll.filter(|_| goes_on) {
            window.start_poll(poll, now_ns);
        }
        self.debug(format_args!("session {id}: in the background"));
        self.touch(id);
    }

    /// Step of a session's judgement: a foreground command that was cancelled or whose time is
    /// over is ended; a poll that is due is sent.
    pub(crate) fn step_window(&mut self, id: SessionId) {
        let now_ns = self.now_ns;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let (over, shell_gone) = (session.life.finished(), session.status().is_some());
        let Some(window) = &mut session.window else { return };
        let due = window.poll.as_ref().is_some_and(|poll| poll.due_ns <= now_ns);
        let wait = session.waits.iter_mut().find(|wait| wait.kind == WaitKind::Bash);
        if let Some(wait) = wait
            && window.ended_for.is_none()
            && window.stage == Stage::Foreground
            && !over
        {
            // A shell that has ended had its time: what it left behind is told of.
            let kills = window.spec.kill_at_timeout && !shell_gone;
            let late = wait.due_ns.is_some_and(|at| at <= now_ns) && kills;
            window.ended_for = if wait.cancelled {
                Some(EndedFor::Abort)
            } else {
                late.then_some(EndedFor::Timeout)
            };
            if window.ended_for.is_some() {
                wait.due_ns = None;
                // It now waits for all to be gone, not for the shell.
                wait.saw_leader = false;
                self.debug(format_args!("session {id}: cancelled, or its time is over"));
                self.begin_ending(id, SIGKILL, 0);
            }
        }
        if due {
            self.send_poll(id);
        }
    }

    /// Why a wait of bash is over.
    pub(crate) fn window_verdict(&self, session: &Session, wait: &Wait) -> Option<Why> {
        let window = session.window.as_ref()?;
        if wait.shut_down {
            return Some(Why::ShuttingDown);
        }
        if window.stage != Stage::Foreground {
            return Some(Why::Deadline);
        }
        if session.life.finished() {
            return Some(Why::Completed);
        }
        // What could not be ended is not waited for any longer.
        let given_up = |one: &Ending| one.over() && !one.all_gone();
        if window.ended_for.is_some() {
            return session.ending.as_ref().is_some_and(given_up).then_some(Why::Deadline);
        }
        let client = self.client_of(wait);
        let closing = self.closing.as_ref().is_some_and(|one| one.answers_pending(client));
        if session.is_left_to_holders(self.now_ns) && !closing {
            return Some(Why::ShellGone);
        }
        let shell_gone = session.status().is_some();
        if wait.due_ns.is_some_and(|due| due <= self.now_ns) {
            return Some(if shell_gone { Why::ShellGone } else { Why::Deadline });
        }
        if closing && shell_gone {
            // The command has ended by itself. Who holds its output is being ended: the answer
            // comes with that, or names who could not be.
            return session.ending.as_ref().is_none_or(given_up).then_some(Why::ShellGone);
        }
        closing.then_some(Why::ShuttingDown)
    }

    /// Answers a wait of the window family.
    pub(crate) fn answer_window(&mut self, id: SessionId, wait: &Wait, why: Why) {
        let Some(pending) = self.take_pending(wait.ticket) else { return };
        if wait.kind == WaitKind::WindowKill {
            let seen = self.killed_window(id, why);
            self.clients.reply(&pending, &seen);
            return self.tell_exit_with_reply(id);
        }
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(window) = &mut session.window else { return };
        let outcome = match (window.ended_for, why) {
            (Some(ended_for), _) => Outcome::EndedFor(ended_for),
            (None, Why::Completed) => Outcome::Ended,
            (None, Why::ShellGone) => Outcome::Held,
            (None, Why::ShuttingDown | Why::Cancelled) => Outcome::EndedFor(EndedFor::Abort),
            (None, Why::Deadline | Why::AbsoluteDeadline) => Outcome::Background,
        };
        match outcome {
            Outcome::Background => self.leave_in_background(id),
            Outcome::Held => {
                window.stage = Stage::Told;
                session.leave_to_holders();
                self.register(id);
            }
            Outcome::Ended => window.stage = Stage::Told,
            Outcome::EndedFor(_) => window.stage = Stage::Closed,
        }
        let report = self.bash_report(id, outcome);
        self.clients.reply(&pending, &report);
        self.tell_exit_with_reply(id);
    }

    /// The word of the exit of a session whose end a reply has just told.
    fn tell_exit_with_reply(&mut self, id: SessionId) {
        let told = |session: &Session| {
            let reports = session.window.as_ref().is_some_and(|window| window.will_report());
            session.life.finished() && !reports
        };
        if self.sessions.get(&id).is_some_and(told) {
            self.tell_exit(id, true);
        }
    }

    fn bash_report(&mut self, id: SessionId, outcome: Outcome) -> BashReport {
        let whole = LogStatus { complete: true, ..LogStatus::default() };
        let log = self.log_status(id).unwrap_or(whole);
        let now_ns = self.now_ns;
        let Some(session) = self.sessions.get(&id) else { return BashReport::default() };
        let Some(window) = &session.window else { return BashReport::default() };
        let spec = &window.spec;
        let cut = window.clean(session.life.finished()).cut(spec.lines, spec.max_bytes);
        let told_bytes = window.kept_bytes();
        let shown_log = log.shown(session.life.finished());
        let notice = cut.notice(shown_log.as_deref(), spec.always_log_path);
        let output = shown(&cut, notice.as_ref());
        let status = status_of(session);
        let held = outcome == Outcome::Held;
        let still_running = if held { self.named_holders(session) } else { Vec::new() };
        let text = match outcome {
            Outcome::Ended if session.start.failure().is_some() => {
                let why = session.start.failure().unwrap_or_default();
                start_failure_text(&session.facts.cwd, why)
            }
            Outcome::Ended => text::ended(output, status),
            Outcome::Held => {
                let (holders, log_path) = (holders_of(&still_running), shown_log.as_deref());
                let held = Held { id, holders: &holders, log_path };
                text::ended_but_held(output, status, held)
            }
            Outcome::EndedFor(EndedFor::Abort) => text::aborted(output),
            Outcome::EndedFor(EndedFor::Timeout) => text::timed_out(output, spec.timeout_ms),
            Outcome::Background if spec.background => {
                let named = Named { name: &spec.name, id };
                text::started(named, spec.poll.map(|poll| poll.interval_ms), &spec.attach)
            }
            Outcome::Background => {
                let inspector = Inspector { tool: &spec.tool, actions: &spec.actions };
                let poll_ms = spec.poll.map(|poll| poll.interval_ms);
                text::went_on(output, spec.timeout_ms, id, inspector, poll_ms)
            }
        };
        let word = match outcome {
            Outcome::Ended | Outcome::Held if status == ExitStatus::Code(0) => "completed",
            Outcome::Ended | Outcome::Held => "failed",
            Outcome::EndedFor(EndedFor::Abort) => "aborted",
            Outcome::EndedFor(EndedFor::Timeout) => "timed_out",
            Outcome::Background => "background",
        };
        let exited = session.status().filter(|_| outcome != Outcome::Background);
        let (exit_code, signal) = status_fields(exited);
        // What has not come yet is no output of a start.
        let starts = outcome == Outcome::Background && spec.background;
        // Of one that goes on the log is never complete, unless it has trouble.
        let goes_on = matches!(outcome, Outcome::Background | Outcome::Held);
        let incomplete = !log.complete && (!goes_on || log.failure.is_some());
        let report = BashReport {
            status: word,
            window: Some(window_id(id)),
            name: spec.name.clone(),
            exit_code,
            signal,
            truncation: TruncationReport::new(&cut.truncation).filter(|_| !starts),
            log_path: log.path,
            log_complete: incomplete.then_some(false),
            log_truncated: log.truncated.then_some(true),
            failure_message: log.failure,
            still_running,
            wall_time_seconds: seconds(now_ns - session.facts.started_ns),
            text,
            is_error: !matches!(word, "completed" | "background"),
            output: if starts { String::new() } else { cut.output },
        };
        self.window_text_bytes += told_bytes;
        report
    }

    /// Closes a window: it is listed no more, nobody is told of its end, and all in it is ended.
    /// The answer, where there is nothing to wait for.
    pub fn close_window(&mut self, id: SessionId, name: &str) -> Option<Seen> {
        self.finished_windows.forget(id);
        if let Some(window) = self.sessions.get_mut(&id).and_then(|one| one.window.as_mut()) {
            window.stage = Stage::Closed;
            window.poll = None;
            self.debug(format_args!("session {id}: its window is closed"));
            self.kill(id, SIGTERM, KILL_GRACE_MS);
            return None;
        }
        if self.readopt_left(id) {
            self.kill(id, SIGTERM, KILL_GRACE_MS);
            return Some(killed(name, id));
        }
        Some(Seen::text(format!("Closed background window: {name} @{id}. It had ended before.")))
    }

    /// The answer to who closed a window.
    fn killed_window(&self, id: SessionId, why: Why) -> Seen {
        let session = self.sessions.get(&id);
        let name = session.and_then(|one| one.window.as_ref()).map(|one| one.spec.name.clone());
        let name = name.unwrap_or_default();
        if why == Why::Completed {
            return killed(&name, id);
        }
        let ending = session.and_then(|one| one.ending.as_ref());
        let survivors = ending.filter(|one| one.over()).map(|one| one.survivors());
        let survivors: Vec<String> = survivors
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

/// How old something is, in whole seconds.
fn age_s(from_ns: u64, to_ns: u64) -> u64 {
    to_ns.saturating_sub(from_ns) / NS_PER_MS / 1_000
}
