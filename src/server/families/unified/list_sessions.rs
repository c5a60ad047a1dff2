//! list_sessions: the sessions in the table, and each exit once.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::{is_compact, tool_time_utc};
use crate::limits::{LIST_COMMAND_CHARS, LISTED_COMMAND_BYTES, NAMED_PROCESSES, NS_PER_MS};
use crate::pure::ledger::Event;
use crate::pure::text::visible::{self, one_line};
use crate::server::engine::contract::{Answer, Call};
use crate::server::engine::judge::status_fields;
use crate::server::engine::keeper_link::logs::LogStatus;
use crate::server::engine::ledger;
use crate::server::engine::notices::command_for_lists;
use crate::server::families::{Engine, Method};
use crate::server::session::listening::{self, Listening};
use crate::server::session::report::NamedProcess;
use crate::server::session::state_report::StateReport;
use crate::server::session::{Session, SessionId};
use crate::sys::proc::ProcStat;
use crate::wire::{self, Kind, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "list_sessions",
    summary: "Lists the sessions by id. An exited one is reported once and then removed.",
    params: Params::TABLE,
    other_params: None,
    waits: false,
    starts: false,
    while_closing: true,
    models: &[super::model::LIST_SESSIONS],
    check: wire::check::<Params>,
    call,
};

wire::params! {
    struct Params {
        peek "peek": bool = optional(
            Kind::Bool,
            "removes nothing and uses up no wake; default false",
        );
        header "header": Option<String> = optional(
            Kind::Choice(super::HEADER_WORDS),
            super::HEADER_DOC,
        );
        events "events": bool = optional(Kind::Bool, super::EVENTS_DOC);
    }
}

/// One session of the list.
#[derive(Debug, Serialize)]
#[allow(missing_docs)] // What has no comment is as in other replies (docs/methods.md).
pub struct Row {
    pub session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub command: String,
    pub cwd: String,
    pub tty: bool,
    pub pid: i32,
    pub started_at_ms: i64,
    pub elapsed_ms: u64,
    pub running: bool,
    #[serde(flatten)]
    pub doing: Option<StateReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    pub output_bytes_total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_from: Option<u64>,
    #[serde(skip)]
    pub log_kept: Option<String>,
    pub wake_armed: bool,
    /// Its id as a window, as `@3`; only of a command of `bash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// True: the shell is gone, and other processes hold its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell_exited: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listening: Vec<Listening>,
    /// Processes that left it by setsid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub detached: Vec<NamedProcess>,
}

impl Row {
    /// Whether the command failed, as far as is known.
    fn has_failed(&self) -> bool {
        self.exit_code.is_some_and(|code| code != 0)
            || self.signal.is_some()
            || self.failure_message.is_some()
    }
}

#[derive(Serialize)]
struct LeftRow {
    session_id: SessionId,
    pid: i32,
    command: String,
}

#[derive(Serialize)]
struct List {
    sessions: Vec<Row>,
    active_count: usize,
    /// Processes that outlive their session: `session_id`, `pid`, `command`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left: Vec<LeftRow>,
    text: String,
    tool_time_utc: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Event>,
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    let Some(since_ns) = engine.look_for_list(call, METHOD.name) else { return Ok(Answer::Waits) };
    let sessions = rows(engine, since_ns);
    let left = engine.sessions.left_members(&mut engine.cx);
    let left = left.into_iter().map(|(session_id, one)| LeftRow {
        session_id,
        pid: one.pid,
        command: one.command,
    });
    let left: Vec<LeftRow> = left.collect();
    let active_count = sessions.iter().filter(|row| row.running).count();
    let mut text = listing(&sessions, &left, params.peek, is_compact(params.header.as_deref()));
    let exited: Vec<SessionId> =
        sessions.iter().filter(|row| !row.running).map(|row| row.session_id).collect();
    let events = engine.cx.answer_tells(call, &exited, params.events);
    let tool_time_utc = tool_time_utc();
    if active_count > 0 {
        let _ = write!(text, "\ntool_time_utc: {tool_time_utc}");
    }
    text.push_str(&ledger::lines(&events));
    let list = List { sessions, active_count, left, text, tool_time_utc, events };
    let answer = Answer::of(&list);
    if !params.peek {
        engine.sessions.observe_exits(&exited, &mut engine.cx);
    }
    Ok(answer)
}

/// The rows of the list, by looks since then.
fn rows(engine: &Engine, since_ns: u64) -> Vec<Row> {
    let (cx, sessions) = (&engine.cx, &engine.sessions);
    let nobody = sessions.listed().all(|core| core.ways.own_cap);
    let mut away = if nobody { BTreeMap::new() } else { sessions.detached(cx) };
    let named = |some: Vec<ProcStat>| -> Vec<NamedProcess> {
        some.iter().take(NAMED_PROCESSES).map(NamedProcess::of).collect()
    };
    let mut row = |core: &Session| {
        let running = !core.life.finished();
        let log = cx.log_status(core);
        let (exit_code, signal) = status_fields(core.status().filter(|_| !running));
        let ended_ns = core.finished_ns.unwrap_or(cx.now_ns);
        Row {
            session_id: core.id,
            name: core.facts.name.clone(),
            command: command_for_lists(&core.facts.command, LISTED_COMMAND_BYTES),
            cwd: core.facts.cwd.clone(),
            tty: core.facts.tty,
            pid: core.facts.pid,
            started_at_ms: core.facts.started_wall_ms,
            elapsed_ms: (ended_ns - core.facts.started_ns) / NS_PER_MS,
            running,
            exit_code,
            signal,
            killed_by: if running { None } else { core.killed_by() },
            failure_message: log.as_ref().and_then(|log| log.failure.clone()),
            output_bytes_total: core.output_bytes_total(),
            log_from: log.as_ref().and_then(LogStatus::from),
            log_kept: log.as_ref().and_then(LogStatus::kept),
            log_path: log.and_then(|log| log.path),
            wake_armed: core.wake.is_some(),
            window: core.facts.window.clone(),
            shell_exited: core.life.shell_gone().then_some(true),
            listening: core.listened_since(since_ns).unwrap_or_default().to_vec(),
            doing: running.then(|| StateReport::from(&core.seen_for_list(since_ns, cx.now_ns))),
            detached: away.remove(&core.id).map(named).unwrap_or_default(),
        }
    };
    sessions.listed().map(&mut row).collect()
}

/// The listing a model reads.
fn listing(sessions: &[Row], left: &[LeftRow], peek: bool, compact: bool) -> String {
    let exited = sessions.iter().filter(|row| !row.running).count();
    let live = sessions.len() - exited;
    let mut out = format!("unified-exec sessions ({live} live, {exited} just exited):");
    for row in sessions {
        let kind = if row.tty { "tty" } else { "pipe" };
        let command = shortened(&row.command);
        let elapsed = elapsed(row.elapsed_ms);
        let name = visible::name(row.name.as_deref(), &row.command);
        let (id, pid) = (row.session_id, row.pid);
        let _ = write!(out, "\n  {id}{name} pid={pid} {kind} {elapsed} {command}");
        if !row.running {
            let end = match (&row.exit_code, &row.signal) {
                (Some(code), _) => format!("exit_code={code}"),
                (None, Some(signal)) => format!("signal={signal}"),
                (None, None) => "exit unknown".to_owned(),
            };
            let by = row.killed_by.map(|by| format!(", killed by {by}")).unwrap_or_default();
            let removed = if peek { "" } else { "; removed from store" };
            let _ = write!(out, " [exited {end}{by}{removed}]");
        } else if row.shell_exited == Some(true) {
            out.push_str(" [shell exited, output held]");
        } else if let Some(state) = row.doing.as_ref().and_then(|doing| doing.line.as_ref()) {
            let _ = write!(out, " [{state}]");
        }
        let needs_log = !compact || row.running || row.has_failed();
        if row.wake_armed {
            out.push_str(" [wake]");
        }
        if let Some(path) = row.log_path.as_ref().filter(|_| needs_log) {
            let _ = write!(out, "\n    log: {path}");
            if let Some(kept) = &row.log_kept {
                let _ = write!(out, " ({kept})");
            }
        }
        if let Some(line) = listening::line(&row.listening) {
            let _ = write!(out, "\n    listening: {line}");
        }
        for one in &row.detached {
            let _ = write!(out, "\n    detached: {} {}", one.pid, shortened(&one.command));
        }
    }
    if live == 0 {
        out.push_str("\n  (no live sessions)");
    }
    for one in left {
        let command = shortened(&one.command);
        let _ = write!(out, "\n  left of session {}: {} {command}", one.session_id, one.pid);
    }
    out
}

fn shortened(command: &str) -> String {
    let line = one_line(command);
    if line.chars().count() <= LIST_COMMAND_CHARS {
        return line;
    }
    let cut: String = line.chars().take(LIST_COMMAND_CHARS).collect();
    format!("{cut}…")
}

/// A duration as people say it: 41s, 3m05s, 2h10m.
fn elapsed(ms: u64) -> String {
    let s = ms * NS_PER_MS / 1_000_000_000;
    match s {
        0..60 => format!("{s}s"),
        60..3_600 => format!("{}m{:02}s", s / 60, s % 60),
        _ => format!("{}h{:02}m", s / 3_600, s % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(session_id: SessionId, running: bool) -> Row {
        Row {
            session_id,
            name: None,
            command: "x".repeat(61),
            cwd: "/".into(),
            tty: session_id == 2,
            pid: 40,
            started_at_ms: 0,
            elapsed_ms: 61_000,
            running,
            exit_code: (!running).then_some(0),
            signal: None,
            killed_by: None,
            failure_message: None,
            output_bytes_total: 0,
            log_path: Some("/tmp/a.log".into()),
            log_from: None,
            log_kept: None,
            wake_armed: false,
            window: None,
            shell_exited: None,
            listening: vec![],
            doing: None,
            detached: vec![],
        }
    }

    /// rule: unified-exec.md, Header and footer: the log of one that has ended well is left out
    #[test]
    fn a_compact_text_names_the_logs_of_those_that_run_or_have_failed() {
        let failed = Row { exit_code: Some(1), ..row(3, false) };
        let rows = [row(1, true), row(2, false), failed];
        let compact = listing(&rows, &[], false, true);
        assert_eq!(compact.matches("log: /tmp/a.log").count(), 2, "{compact}");
        let full = listing(&rows, &[], false, false);
        assert!(compact.lines().all(|line| full.lines().any(|other| other == line)), "{full}");
    }
}
