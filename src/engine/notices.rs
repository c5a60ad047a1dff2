//! What clients are told of sessions without asking: started, exited, and progress of what they
//! wait for (protocol.md, Notifications).

use serde::Serialize;
use serde_json::value::RawValue;

use super::Daemon;
use super::judge::status_fields;
use super::sessions::command_for_lists;
use crate::config::OnEof;
use crate::limits::{NS_PER_MS, STREAM_TAIL_BYTES, TOLD_COMMAND_BYTES};
use crate::pure::buffer::news::Item;
use crate::pure::text::clean::window_text;
use crate::session::wait::{Progress, Wait, WaitKind};
use crate::session::{Session, SessionId};
use crate::wire;

#[derive(Serialize)]
struct ProgressNote<'a> {
    request_id: &'a RawValue,
    session_id: SessionId,
    pid: i32,
    tail: &'a str,
    total_bytes: u64,
    elapsed_ms: u64,
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_path: Option<&'a str>,
}

#[derive(Serialize)]
struct StartedNote<'a> {
    session_id: SessionId,
    pid: i32,
    command: &'a str,
    tty: bool,
    cwd: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_path: Option<String>,
    /// Of bash's: its id as a window.
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<String>,
}

#[derive(Serialize)]
struct ExitedNote {
    session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    observed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    wake: Option<bool>,
    elapsed_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<String>,
}

/// The cleaned last output of a session.
pub fn tail_text(session: &Session) -> String {
    let (bytes, starts_at) = session.tail.last(STREAM_TAIL_BYTES);
    window_text(&bytes, starts_at > 0)
}

impl Daemon {
    /// Sends session_started: the session is in the table from now on.
    pub(crate) fn announce(&mut self, id: SessionId) {
        let log_path = self.log_path(id);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.announced = true;
        let facts = &session.facts;
        let note = StartedNote {
            session_id: id,
            pid: facts.pid,
            command: &command_for_lists(&facts.command, TOLD_COMMAND_BYTES),
            tty: facts.tty,
            cwd: &facts.cwd,
            log_path,
            window: session.window.is_some().then(|| format!("@{id}")),
        };
        let text = wire::to_json(&note);
        self.clients.tell(Item { ended: false, text, own: None });
    }

    /// Sends progress to the waits that asked for it and are due.
    pub(crate) fn send_progress(&mut self, id: SessionId) {
        let now_ns = self.now_ns;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let pid = session.facts.pid;
        let total = session.output_bytes_total();
        let due = |wait: &Wait| {
            // What bash sends is another text: send_window_progress.
            wait.kind != WaitKind::Bash
                && wait.progress_due_ns(total).is_some_and(|at| at <= now_ns)
        };
        if session.finished_ns.is_some() || !session.waits.iter().any(due) {
            return;
        }
        let log = self.keeper.status(id).and_then(|status| status.path);
        // Made for the first who has room for it.
        let mut tail: Option<String> = None;
        let elapsed_ms = (now_ns - session.facts.started_ns) / NS_PER_MS;
        let running = session.life.status().is_none();
        let mut waits = std::mem::take(&mut session.waits);
        for wait in waits.iter_mut().filter(|wait| due(wait)) {
            let Some(pending) = self.pending.get(&wait.ticket) else { continue };
            if !self.clients.has_room(pending.client) {
                // Dropped; the next one says it all.
                if let Some(progress) = &mut wait.progress {
                    progress.sent_ns = Some(now_ns);
                }
                continue;
            }
            wait.progress =
                Some(Progress { sent_ns: Some(now_ns), sent_total: total, ..Progress::default() });
            let Ok(request_id) = serde_json::from_str::<&RawValue>(pending.id.as_json()) else {
                continue;
            };
            let note = ProgressNote {
                request_id,
                session_id: id,
                pid,
                tail: tail.get_or_insert_with(|| tail_text(session)),
                total_bytes: total,
                elapsed_ms,
                running,
                log_path: log.as_deref(),
            };
            self.clients.notify(pending.client, "progress", &note);
        }
        session.waits = waits;
    }

    /// Sends session_exited, once, for a session that was announced.
    pub(crate) fn tell_exit(&mut self, id: SessionId, observed: bool) {
        // The end of a background window comes first, whoever was told of it by a reply.
        self.report_window_end(id);
        let with_tail = self.clients.stdin.input_ended && self.config.on_eof == OnEof::Wait;
        let log_path = self.log_path(id);
        let now_ns = self.now_ns;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if observed {
            session.wake = None;
        }
        if !session.announced || session.exit_told {
            return;
        }
        session.exit_told = true;
        let ended_ns = session.finished_ns.unwrap_or(now_ns);
        let (exit_code, signal) = status_fields(session.status());
        // Killed, evicted or ended with execd: no wake (unified-exec.md, Wakes).
        let wakes = session.wake.take().filter(|_| session.ending.is_none() && !observed);
        let mut note = ExitedNote {
            session_id: id,
            exit_code,
            signal,
            observed,
            wake: None,
            elapsed_ms: (ended_ns - session.facts.started_ns) / NS_PER_MS,
            log_path,
            tail: with_tail.then(|| tail_text(session)),
        };
        let text = wire::to_json(&note);
        note.wake = Some(true);
        let own = wakes.map(|client| (client, wire::to_json(&note)));
        self.clients.tell(Item { ended: true, text, own });
    }
}
