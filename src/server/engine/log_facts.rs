//! What the file of facts beside a log says of its session (logs.md, Facts beside each log): the
//! command as lists show it, never its environment and never its input.

use serde::Serialize;

use super::Engine;
use super::contract::Families;
use super::contract::cx::Cx;
use super::judge::status_fields;
use super::notices::command_for_lists;
use crate::limits::{LOG_FACTS_BYTES, NS_PER_MS};
use crate::server::session::{Session, SessionId};
use crate::sys::clock;
use crate::wire;

/// Bytes of the command in that line.
const LOG_FACTS_COMMAND_BYTES: usize = 2_000;

/// The line. Its names are those of list_sessions.
#[derive(Debug, Serialize)]
struct Line {
    session_id: SessionId,
    /// Absent of helpers of execd's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<&'static str>,
    command: String,
    cwd: String,
    pid: i32,
    started_at_ms: i64,
    execd_pid: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    killed_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_bytes: Option<u64>,
}

impl Line {
    /// Its JSON text; command and directory are cut where it would be too long.
    fn text(mut self) -> Vec<u8> {
        let mut most = LOG_FACTS_COMMAND_BYTES;
        loop {
            self.command = command_for_lists(&self.command, most);
            self.cwd = command_for_lists(&self.cwd, most);
            let text = wire::to_json(&self);
            if text.len() <= LOG_FACTS_BYTES || most == 0 {
                return text;
            }
            most /= 2;
        }
    }
}

impl<F: Families> Cx<F> {
    /// Tells the log writer the facts of a session, where it does not know them yet.
    pub(super) fn tell_facts(&mut self, core: &Session, family: Option<&'static str>) {
        let over = core.finished_ns.is_some();
        if !self.keeper.wants_facts(core.id, over) {
            return;
        }
        let (exit_code, signal) = status_fields(core.status().filter(|_| over));
        let since_ms = |at_ns: u64| (self.now_ns.saturating_sub(at_ns) / NS_PER_MS).cast_signed();
        let facts = &core.facts;
        let line = Line {
            session_id: core.id,
            family,
            command: facts.command.clone(),
            cwd: facts.cwd.clone(),
            pid: facts.pid,
            started_at_ms: facts.started_wall_ms,
            execd_pid: self.keeper.execd_pid(),
            ended_at_ms: core.finished_ns.map(|at_ns| clock::wall_ms() - since_ms(at_ns)),
            exit_code,
            signal,
            killed_by: if over { core.killed_by() } else { None },
            total_bytes: over.then(|| core.output_bytes_total()),
        };
        self.keeper.tell_facts(core.id, over, line.text());
    }
}

impl<F: Families> Engine<F> {
    /// Tells a new log writer the facts of all sessions that have a log.
    pub(super) fn tell_all_facts(&mut self) {
        for entry in self.sessions.iter() {
            self.cx.tell_facts(&entry.core, entry.family.family_name());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(command: &str, cwd: &str) -> String {
        let line = Line {
            session_id: 3,
            family: Some("unified"),
            command: command.to_owned(),
            cwd: cwd.to_owned(),
            pid: 41,
            started_at_ms: 1_700_000_000_000,
            execd_pid: 7,
            ended_at_ms: None,
            exit_code: None,
            signal: None,
            killed_by: None,
            total_bytes: None,
        };
        String::from_utf8(line.text()).unwrap()
    }

    /// rule: logs.md, Facts beside each log: The line has 4,000 bytes at most
    #[test]
    fn the_line_is_never_longer_than_a_block() {
        let said = r#"{"session_id":3,"family":"unified","command":"ls","cwd":"/tmp","pid":41,"#;
        assert!(line("ls", "/tmp").starts_with(said));
        for (command, cwd) in [
            ("x".repeat(100_000), "/".to_owned()),
            ("\u{1}".repeat(100_000), "/\u{1}".repeat(2_000)),
            ("é".repeat(3_000), "/é".repeat(1_500)),
        ] {
            let text = line(&command, &cwd);
            assert!(text.len() <= LOG_FACTS_BYTES, "{}", text.len());
            assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
        }
        assert!(line(&"x".repeat(100_000), "/").len() > LOG_FACTS_COMMAND_BYTES);
    }
}
