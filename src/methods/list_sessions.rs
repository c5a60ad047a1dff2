//! list_sessions: what is there, and each exit once (unified-exec.md).

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::{Answer, Call, Method};
use crate::daemon::Daemon;
use crate::daemon::answers::tool_time_utc;
use crate::limits::{LIST_COMMAND_CHARS, NS_PER_MS};
use crate::pure::text::visible::one_line;
use crate::session::SessionId;
use crate::session::report::NamedProcess;
use crate::wire::{self, Kind, Param, RpcError};

pub(super) const METHOD: Method = Method {
    name: "list_sessions",
    summary: "Lists the sessions by id. An exited one is reported once and then removed.",
    params: &[Param {
        name: "peek",
        kind: Kind::Bool,
        required: false,
        doc: "removes nothing and uses up no wake; default false",
    }],
    waits: false,
    while_closing: true,
    check,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    #[serde(default)]
    peek: bool,
}

/// One session of the list.
#[derive(Debug, Serialize)]
#[allow(missing_docs)] // docs/unified-exec.md describes each.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    pub output_bytes_total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    pub wake_armed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell_exited: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub detached: Vec<NamedProcess>,
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left: Vec<LeftRow>,
    text: String,
    tool_time_utc: String,
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    wire::read_params::<Params>(raw, METHOD.params).map(drop)
}

fn call(daemon: &mut Daemon, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params, METHOD.params)?;
    let sessions = daemon.rows();
    let left = daemon.left_members().into_iter().map(|(session_id, one)| LeftRow {
        session_id,
        pid: one.pid,
        command: one.command,
    });
    let left: Vec<LeftRow> = left.collect();
    let active_count = sessions.iter().filter(|row| row.running).count();
    let text = listing(&sessions, &left, params.peek);
    let exited: Vec<SessionId> =
        sessions.iter().filter(|row| !row.running).map(|row| row.session_id).collect();
    let list = List { sessions, active_count, left, text, tool_time_utc: tool_time_utc() };
    let answer = Answer::of(&list);
    if !params.peek {
        daemon.observe_exits(&exited);
    }
    Ok(answer)
}

/// The listing a model reads.
fn listing(sessions: &[Row], left: &[LeftRow], peek: bool) -> String {
    let exited = sessions.iter().filter(|row| !row.running).count();
    let live = sessions.len() - exited;
    let mut out = format!("unified-exec sessions ({live} live, {exited} just exited):");
    for row in sessions {
        let kind = if row.tty { "tty" } else { "pipe" };
        let command = shortened(&row.command);
        let elapsed = elapsed(row.elapsed_ms);
        let _ = write!(out, "\n  {} pid={} {kind} {elapsed} {command}", row.session_id, row.pid);
        if !row.running {
            let end = match (&row.exit_code, &row.signal) {
                (Some(code), _) => format!("exit_code={code}"),
                (None, Some(signal)) => format!("signal={signal}"),
                (None, None) => "exit unknown".to_owned(),
            };
            let removed = if peek { "" } else { "; removed from store" };
            let _ = write!(out, " [exited {end}{removed}]");
        } else if row.shell_exited == Some(true) {
            out.push_str(" [shell exited, output held]");
        }
        if let Some(path) = &row.log_path {
            let _ = write!(out, "\n    log: {path}");
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
            failure_message: None,
            output_bytes_total: 0,
            log_path: Some("/tmp/a.log".into()),
            wake_armed: false,
            window: None,
            shell_exited: None,
            detached: vec![],
        }
    }

    /// rule: unified-exec.md, list_sessions: `text` names each session on two lines
    #[test]
    fn the_text_names_each_session_and_its_log() {
        let text = listing(&[row(1, true), row(2, false)], &[], false);
        let cut = format!("{}…", "x".repeat(60));
        let expected = format!(
            "unified-exec sessions (1 live, 1 just exited):\n  1 pid=40 pipe 1m01s {cut}\n    \
             log: /tmp/a.log\n  2 pid=40 tty 1m01s {cut} [exited exit_code=0; removed from \
             store]\n    log: /tmp/a.log"
        );
        assert_eq!(text, expected);
        assert!(
            listing(&[], &[], false).ends_with("(0 live, 0 just exited):\n  (no live sessions)")
        );
    }

    #[test]
    fn durations() {
        for (ms, text) in [(0, "0s"), (59_999, "59s"), (185_000, "3m05s"), (7_800_000, "2h10m")] {
            assert_eq!(elapsed(ms), text);
        }
    }
}
