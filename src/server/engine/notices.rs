//! What clients are told of sessions without asking: started, exited, and progress of what they
//! wait for (protocol.md, Notifications). The text of progress is the family's; what only one
//! family tells is in its own folder.

use serde::Serialize;
use serde_json::value::RawValue;

use super::contract::Families;
use super::contract::cx::Cx;
use super::judge::status_fields;
use crate::config::OnEof;
use crate::limits::{NS_PER_MS, STREAM_TAIL_BYTES};
use crate::pure::buffer::news::Item;
use crate::pure::text::clean::window_text;
use crate::pure::text::utf8::floor_boundary;
use crate::server::session::report::TruncationReport;
use crate::server::session::wait::Wait;
use crate::server::session::{Listing, Session, SessionId};
use crate::wire;

/// Bytes of a command in a notification.
const TOLD_COMMAND_BYTES: usize = 4 * 1024;

/// While a request with `stream: true` waits and output comes, at most four a second.
#[derive(Serialize)]
struct ProgressNote<'a> {
    /// The id of the waiting request, as it was sent.
    request_id: &'a RawValue,
    session_id: SessionId,
    pid: i32,
    /// Clean text of the last output.
    tail: &'a str,
    total_bytes: u64,
    elapsed_ms: u64,
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncation: Option<TruncationReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_from: Option<u64>,
}

/// When a session enters the table: 150 ms after its start, or with the first reply that names it.
#[derive(Serialize)]
struct StartedNote<'a> {
    session_id: SessionId,
    pid: i32,
    command: &'a str,
    tty: bool,
    cwd: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<&'a str>,
}

/// Once for each session that was announced, when it has ended.
#[derive(Serialize)]
struct ExitedNote<'a> {
    session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    killed_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_message: Option<String>,
    /// Whether a reply has told the exit.
    observed: bool,
    /// True: this is the wake that was armed.
    #[serde(skip_serializing_if = "Option::is_none")]
    wake: Option<bool>,
    elapsed_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_from: Option<u64>,
    /// With `--on-eof wait`, after the end of stdin: its last output.
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<String>,
}

/// The cleaned last output of a session.
pub fn tail_text(session: &Session) -> String {
    let (bytes, starts_at) = session.tail.last(STREAM_TAIL_BYTES);
    window_text(&bytes, starts_at > 0)
}

/// A command as a list shows it: whole, unless it is so long that all of them would be too much.
pub fn command_for_lists(command: &str, most_bytes: usize) -> String {
    let cut = floor_boundary(command, most_bytes);
    if cut == command.len() { command.to_owned() } else { format!("{}…", &command[..cut]) }
}

impl<F: Families> Cx<F> {
    /// Enters a session whose family has a cap of its own into the table, where it takes nobody's
    /// place.
    pub fn list(&mut self, core: &mut Session) {
        if core.listing == Listing::Early {
            core.listing = Listing::Listed;
            self.announce(core);
        }
    }

    /// Sends session_started: the session is in the table from now on.
    pub(super) fn announce(&mut self, core: &mut Session) {
        core.announced = true;
        let log_path = self.log_path(core.id);
        core.log_unnamed = log_path.is_none();
        let facts = &core.facts;
        let note = StartedNote {
            session_id: core.id,
            pid: facts.pid,
            command: &command_for_lists(&facts.command, TOLD_COMMAND_BYTES),
            tty: facts.tty,
            cwd: &facts.cwd,
            log_path,
            window: facts.window.as_deref(),
        };
        let text = wire::to_json(&note);
        self.clients.tell(Item { ended: false, text, own: None });
    }

    /// Sends progress to the waits that asked for it and are due: by output, or because a log has
    /// its name now that had none when the session was announced.
    pub(super) fn send_progress(&mut self, core: &mut Session, family: &F) {
        let now_ns = self.now_ns;
        let total = core.output_bytes_total();
        let named_late = core.log_unnamed && self.log_path(core.id).is_some();
        let due = |wait: &Wait| {
            let by_output = wait.progress_due_ns(total).is_some_and(|at| at <= now_ns);
            by_output || (named_late && wait.progress.is_some())
        };
        if core.finished_ns.is_some() || !core.waits.iter().any(due) {
            return;
        }
        let log_path = self.log_path(core.id);
        for at in 0..core.waits.len() {
            let wait = &core.waits[at];
            if !due(wait) {
                continue;
            }
            let Some(pending) = self.pending.get(&wait.ticket) else { continue };
            let (client, request) = (pending.client, pending.id.as_json().to_owned());
            let room = self.clients.has_room(client);
            if room && let Ok(request_id) = serde_json::from_str::<&RawValue>(&request) {
                let (tail, truncation) = family.progress(core, wait, self);
                let note = ProgressNote {
                    request_id,
                    session_id: core.id,
                    pid: core.facts.pid,
                    tail: &tail,
                    total_bytes: total,
                    elapsed_ms: (now_ns - core.facts.started_ns) / NS_PER_MS,
                    running: core.status().is_none(),
                    truncation,
                    log_path: log_path.as_deref(),
                    log_from: self.log_from(core.id),
                };
                self.clients.notify(client, "progress", &note);
                core.log_unnamed &= log_path.is_none();
            }
            if let Some(progress) = &mut core.waits[at].progress {
                progress.sent_ns = Some(now_ns);
                // Without room the notification was dropped, and the next one says it all.
                progress.sent_total = if room { total } else { progress.sent_total };
            }
        }
    }

    /// Sends password_asked to the waits that want it and were not told yet. Their session is in
    /// the table from then on, so that it can be given the password.
    pub(super) fn tell_passwords(&mut self, core: &mut Session) {
        let untold = |wait: &Wait| wait.password.is_some_and(|asked| !asked.told);
        if !core.waits.iter().any(untold) {
            return;
        }
        if core.ways.own_cap {
            self.list(core);
        }
        for wait in core.waits.iter_mut().filter(|wait| untold(wait)) {
            let Some(pending) = self.pending.get(&wait.ticket) else { continue };
            // Without room it is told at one of the next looks.
            let client = self.clients.get_mut(pending.client).filter(|client| client.has_room());
            if let (Some(client), Some(asked)) = (client, wait.password.as_mut()) {
                // A request's id is JSON as it was sent.
                let (request, id) = (pending.id.as_json(), core.id);
                let params = format!("{{\"request_id\":{request},\"session_id\":{id}}}");
                client.notify_json("password_asked", params.as_bytes());
                asked.told = true;
            }
        }
    }

    /// Sends session_exited, once, for a session that was announced.
    pub(super) fn tell_exit(&mut self, core: &mut Session, observed: bool) {
        let with_tail = self.clients.stdin.input_ended && self.config.on_eof == OnEof::Wait;
        if observed {
            core.wake = None;
        }
        if !core.announced || core.exit_told {
            return;
        }
        core.exit_told = true;
        let ended_ns = core.finished_ns.unwrap_or(self.now_ns);
        let (exit_code, signal) = status_fields(core.status());
        // Killed, evicted or ended with execd: no wake.
        let wakes = core.wake.take().filter(|_| core.ending.is_none() && !observed);
        if wakes.is_some() {
            self.note_wake(core);
        }
        let mut note = ExitedNote {
            session_id: core.id,
            name: core.facts.name.as_deref(),
            exit_code,
            signal,
            killed_by: core.killed_by(),
            failure_message: self.log_status(core).and_then(|log| log.failure),
            observed,
            wake: None,
            elapsed_ms: (ended_ns - core.facts.started_ns) / NS_PER_MS,
            log_path: self.log_path(core.id),
            log_from: self.log_from(core.id),
            tail: with_tail.then(|| tail_text(core)),
        };
        let text = wire::to_json(&note);
        note.wake = Some(true);
        let own = wakes.map(|client| (client, wire::to_json(&note)));
        self.clients.tell(Item { ended: true, text, own });
    }
}
