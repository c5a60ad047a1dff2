//! Building the answers of waits: from a session's state to the fields of its report.

pub mod exec_command;
pub mod kill_session;
pub mod list_sessions;
pub mod resize_session;
pub mod set_on_exit;
pub mod write_stdin;

use crate::engine::clients::STDIN_CLIENT;
use crate::engine::judge::status_fields;
use crate::engine::logs::LogStatus;
use crate::engine::{Daemon, Pending};
use crate::limits::{NAMED_PROCESSES, NS_PER_MS};
use crate::pure::process::life::ExitStatus;
use crate::pure::process::signal_names::signal_name;
use crate::pure::text::visible::one_line;
use crate::pure::time::rfc3339::format_utc_ms;
use crate::session::ending::{Ending, SIGKILL};
use crate::session::family::{Detached, Family};
use crate::session::report::{ExecReport, KillReport, NamedProcess, TruncationReport};
use crate::session::view::{Text, seconds};
use crate::session::wait::{Wait, WaitKind, Why};
use crate::session::{Session, SessionId};
use crate::sys::clock;
use crate::sys::proc::ProcStat;

/// What the reply says when the child closed its stdin.
pub const STDIN_LOST: &str =
    "stdin write failed: the child closed its stdin; bytes were not delivered";

/// The host's clock as replies give it.
pub fn tool_time_utc() -> String {
    format_utc_ms(clock::wall_ms())
}

/// Several failures as one message; `None` when there is none.
fn joined(failures: [Option<String>; 3]) -> Option<String> {
    let all: Vec<String> = failures.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}

impl Daemon {
    /// Answers one wait and forgets its request. `takes_output`: it is the first to be told.
    pub(crate) fn answer(&mut self, id: SessionId, wait: &Wait, why: Why, takes_output: bool) {
        let Some(pending) = self.take_pending(wait.ticket) else { return };
        let takes_nothing = why == Why::Cancelled && wait.kind == WaitKind::Poll;
        let running = matches!(why, Why::Completed | Why::Cancelled | Why::ShuttingDown);
        if !running || why == Why::Cancelled {
            // Its id is told: from now on it is in the table.
            self.register(id);
        }
        if wait.kind == WaitKind::Kill {
            let report = self.kill_report(id, wait, why, takes_output);
            self.clients.reply(&pending, &report);
        } else {
            let mut report = self.exec_report(id, wait, why, takes_output && !takes_nothing);
            report.write_header();
            if self.front.is_some() && pending.client == STDIN_CLIENT {
                return self.front_ended(report);
            }
            self.clients.reply(&pending, &report);
        }
    }

    /// Takes a waiting request off the books: it is answered now, exactly once.
    pub(crate) fn take_pending(&mut self, ticket: u64) -> Option<Pending> {
        let pending = self.pending.remove(&ticket);
        debug_assert!(pending.is_some(), "a wait without its request");
        if let Some(pending) = &pending
            && let Some(client) = self.clients.get_mut(pending.client)
        {
            client.in_flight.remove(&pending.id);
        }
        pending
    }

    /// The path of a session's log, once the file exists.
    pub fn log_path(&self, id: SessionId) -> Option<String> {
        self.keeper.status(id).and_then(|status| status.path)
    }

    /// The same as texts name it, with what it lacks.
    pub fn log_shown(&self, id: SessionId) -> Option<String> {
        let over = self.sessions.get(&id).is_none_or(|session| session.life.finished());
        self.keeper.status(id).and_then(|status| status.shown(over))
    }

    fn take_text(&mut self, id: SessionId, wait: &Wait, takes: bool, log: Option<&str>) -> Text {
        let limits = self.config.text;
        match self.sessions.get_mut(&id).filter(|_| takes) {
            Some(session) => {
                let last = session.life.finished();
                session.view.take(limits, wait.raw_output, last, log)
            }
            None => Text {
                output: String::new(),
                original_bytes: 0,
                omitted_bytes: 0,
                truncation: None,
                footer: None,
            },
        }
    }

    fn exec_report(&mut self, id: SessionId, wait: &Wait, why: Why, takes: bool) -> ExecReport {
        let logged = self.log_status(id);
        let log = logged.unwrap_or(LogStatus { complete: true, ..LogStatus::default() });
        let text = self.take_text(id, wait, takes, log.path.as_deref());
        let chunk_id = self.chunk_id();
        let now_ns = self.now_ns;
        let exited = why == Why::Completed;
        let note = self.note(id, exited);
        let warning = joined([wait.warning.clone(), log.warning(), None]);
        let Some(session) = self.sessions.get_mut(&id) else { return ExecReport::default() };
        let (exit_code, signal) = status_fields(session.status().filter(|_| exited));
        let lost = std::mem::take(&mut session.input_lost).then(|| STDIN_LOST.to_owned());
        let waited_ns = now_ns - wait.since_ns;
        // What fits an earlier moment of this log is no word about its completeness now.
        let matters = exited || text.truncation.is_some() || text.omitted_bytes > 0;
        let incomplete = !log.complete && (matters || log.failure.is_some());
        let mut report = ExecReport {
            session_id: (!exited).then_some(id),
            exit_code,
            signal,
            failure_message: joined([wait.failure.clone(), lost, log.failure]),
            log_path: log.path,
            cwd: session.facts.cwd.clone(),
            command: session.facts.command.clone(),
            tty: session.facts.tty,
            yield_time_ms: wait.yield_time_ms,
            wall_time_seconds: seconds(waited_ns),
            chunk_id,
            original_token_count: text.original_bytes.div_ceil(4),
            output_bytes_total: session.output_bytes_total(),
            omitted_bytes: (text.omitted_bytes > 0).then_some(text.omitted_bytes),
            output: text.output,
            truncation: text.truncation.as_ref().and_then(TruncationReport::new),
            wait_status: Some(why.wait_status()),
            wait_mode: Some(if wait.until.is_some() { "absolute" } else { "relative" }),
            yield_until: wait.until.as_ref().map(|until| until.stamp.clone()),
            effective_wait_ms: Some(waited_ns / NS_PER_MS),
            tool_time_utc: (!exited || wait.until.is_some()).then(tool_time_utc),
            note,
            pid: (!exited).then_some(session.facts.pid),
            warning,
            log_complete: incomplete.then_some(false),
            log_truncated: log.truncated.then_some(true),
            footer: text.footer,
            ..ExecReport::default()
        };
        if exited {
            report.cpu_seconds = Some(cpu_seconds(session));
            report.max_rss_kib = Some(session.usage.max_rss_kib);
        } else if let (true, Some(ExitStatus::Code(code))) =
            (session.life.shell_gone(), session.status())
        {
            report.shell_exit_code = Some(code);
        }
        if session.wake.is_some() {
            report.on_exit = Some("wake");
            if exited {
                report.completion_delivery = Some("direct");
                report.on_exit_wake = Some("consumed");
                session.wake = None;
            } else {
                report.completion_notification = Some("armed");
            }
        }
        report
    }

    /// The note of a reply, where one applies.
    pub(crate) fn note(&self, id: SessionId, exited: bool) -> Option<String> {
        let session = self.sessions.get(&id)?;
        if exited {
            let killed = session.status() == Some(ExitStatus::Signal(SIGKILL));
            return (killed && !session.killed_by_us).then(|| {
                "ended by a SIGKILL that execd did not send (often the out-of-memory killer)".into()
            });
        }
        if !session.life.shell_gone() {
            return None;
        }
        let end = match session.status()? {
            ExitStatus::Code(code) => format!("code {code}"),
            ExitStatus::Signal(signal) => signal_name(signal),
        };
        let holders = self.named_holders(session);
        let holders: Vec<String> = holders
            .iter()
            .map(|holder| format!("{} {}", holder.pid, one_line(&holder.command)))
            .collect();
        let holders =
            if holders.is_empty() { "its output is held".to_owned() } else { holders.join(", ") };
        Some(format!(
            "shell exited ({end}); still running: {holders} — redirect its output to detach it, \
             or kill_session"
        ))
    }

    /// Who may hold the output of a session whose shell is gone: its members, or else what
    /// detached itself from it.
    pub(crate) fn holders(&self, session: &Session) -> Vec<ProcStat> {
        let mut found = self.members(&self.family(session));
        if found.is_empty() {
            found = self.detached().remove(&session.id).unwrap_or_default();
        }
        found.truncate(NAMED_PROCESSES);
        found
    }

    /// Those by their pids and commands.
    pub(crate) fn named_holders(&self, session: &Session) -> Vec<NamedProcess> {
        self.named(&self.holders(session))
    }

    /// Processes by their pids and commands.
    pub fn named(&self, processes: &[ProcStat]) -> Vec<NamedProcess> {
        let pids: Vec<i32> = processes.iter().map(|one| one.pid).collect();
        let commands = self.lookout.borrow().looks.borrow_mut().commands(&pids);
        let named = |(pid, command)| NamedProcess { pid, command, reason: None };
        pids.into_iter().zip(commands).map(named).collect()
    }

    /// Whose end a session's end is.
    pub(crate) fn family(&self, session: &Session) -> Family {
        // A run of pi leaves nothing behind: its bash tool starts each command by setsid.
        let takes = session.is_pi() || session.was_pi || self.config.kill_detached;
        let mark = session.facts.run_mark;
        let detached = if takes { Detached::Taken(mark) } else { Detached::Spared };
        let facts = &session.facts;
        let (sid, start_ticks, number) = (facts.pid, facts.start_ticks, session.number);
        Family { sid, start_ticks, number, detached }
    }

    fn kill_report(&mut self, id: SessionId, wait: &Wait, why: Why, takes: bool) -> KillReport {
        let logged = self.log_status(id);
        let log = logged.unwrap_or(LogStatus { complete: true, ..LogStatus::default() });
        let takes = takes && why == Why::Completed;
        let text = self.take_text(id, wait, takes, log.path.as_deref());
        let Some(session) = self.sessions.get(&id) else { return KillReport::default() };
        let (exit_code, signal) = status_fields(session.status());
        let ending = session.ending.as_ref();
        let gone = why == Why::Completed;
        let survivors = ending.filter(|ending| ending.over() && !gone).map(|one| one.survivors());
        let escalated = ending.is_some_and(|ending| ending.escalated);
        let summary = kill_summary(session, gone);
        KillReport {
            found: true,
            session_id: id,
            killed: Some(gone),
            escalated: Some(escalated),
            exit_code,
            signal,
            failure_message: joined([log.failure, None, None]),
            log_path: log.path.or_else(|| session.closed_log_path.clone()),
            log_complete: (gone && !log.complete).then_some(false),
            log_truncated: log.truncated.then_some(true),
            final_output: Some(text.output),
            omitted_bytes: (text.omitted_bytes > 0).then_some(text.omitted_bytes),
            truncation: text.truncation.as_ref().and_then(TruncationReport::new),
            footer: text.footer,
            survivors: survivors.unwrap_or_default(),
            wait_status: (!gone).then(|| why.wait_status()),
            summary: Some(summary),
        }
    }
}

fn kill_summary(session: &Session, gone: bool) -> String {
    let (id, pid) = (session.id, session.facts.pid);
    let end = match session.status() {
        Some(ExitStatus::Code(code)) => format!("exit_code={code}"),
        Some(ExitStatus::Signal(signal)) => format!("signal={}", signal_name(signal)),
        None => "still running".to_owned(),
    };
    let before = session.finished_ns.zip(session.ending.as_ref().map(Ending::began_ns));
    let Some(ending) = session.ending.as_ref().filter(|_| before.is_none_or(|(a, b)| a > b)) else {
        return format!("Session {id} (pid {pid}) had already exited — {end}");
    };
    let sent = signal_name(ending.signal);
    if !ending.over() {
        return format!("Ending session {id} (pid {pid}) with {sent}, not done yet — {end}");
    }
    if !gone {
        return format!("Could not end all of session {id} (pid {pid}) with {sent} — {end}");
    }
    let escalated = if ending.escalated { " — escalated to SIGKILL" } else { "" };
    format!("Killed session {id} (pid {pid}) with {sent}{escalated} — {end}")
}

#[allow(clippy::cast_precision_loss)] // Microseconds of CPU time fit a float's mantissa.
fn cpu_seconds(session: &Session) -> f64 {
    session.usage.cpu_us as f64 / 1e6
}
