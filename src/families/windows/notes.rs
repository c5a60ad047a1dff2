//! What execd says of a window by itself: progress of a foreground command, polls, the end of a
//! background command. All goes to the client that started the window.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{Held, Named, age_s, holders_of, shown, start_failure_text, status_of, window_id};
use crate::engine::Daemon;
use crate::engine::judge::status_fields;
use crate::engine::sessions::command_for_lists;
use crate::families::windows::text::{self, End};
use crate::families::windows::window::Stage;
use crate::limits::{NS_PER_MS, WINDOW_COMMAND_BYTES};
use crate::session::report::{NamedProcess, TruncationReport};
use crate::session::wait::{Progress, Wait, WaitKind};
use crate::session::{ClientId, Session, SessionId};

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
    truncation: Option<TruncationReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_path: Option<String>,
}

#[derive(Serialize)]
struct ExitedNote {
    window: String,
    name: String,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    tail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncation: Option<TruncationReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_complete: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_truncated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_message: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    still_running: Vec<NamedProcess>,
    elapsed_ms: u64,
    text: String,
}

#[derive(Serialize)]
struct PollNote {
    window: String,
    name: String,
    command: String,
    delivery: &'static str,
    tail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncation: Option<TruncationReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_path: Option<String>,
    age_seconds: u64,
    text: String,
}

impl Daemon {
    /// Tells a client something about a window of its own.
    fn tell_owner(&mut self, client: ClientId, method: &str, params: &impl Serialize) {
        self.clients.notify(client, method, params);
    }

    /// Sends progress to the request of bash that asked for it, when it is due: the text so far.
    pub(crate) fn send_window_progress(&mut self, id: SessionId) {
        let now_ns = self.now_ns;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let total = session.output_bytes_total();
        let due = |wait: &&mut Wait| {
            wait.kind == WaitKind::Bash
                && wait.progress_due_ns(total).is_some_and(|at| at <= now_ns)
        };
        let finished = session.finished_ns.is_some();
        let Some(window) = &session.window else { return };
        let Some(wait) = session.waits.iter_mut().find(due).filter(|_| !finished) else { return };
        let Some(progress) = &mut wait.progress else { return };
        progress.sent_ns = Some(now_ns);
        if !self.clients.has_room(window.spec.client) {
            // Dropped; the next one says it all.
            return;
        }
        *progress = Progress { sent_total: total, ..*progress };
        let cut = window.clean(false).cut(window.spec.lines, window.spec.max_bytes);
        self.window_text_bytes += window.kept_bytes();
        let client = window.spec.client;
        let Some(pending) = self.pending.get(&wait.ticket) else { return };
        let request = pending.id.as_json().to_owned();
        let Ok(request_id) = serde_json::from_str::<&RawValue>(&request) else { return };
        let note = ProgressNote {
            request_id,
            session_id: id,
            pid: session.facts.pid,
            tail: &cut.output,
            total_bytes: total,
            elapsed_ms: (now_ns - session.facts.started_ns) / NS_PER_MS,
            running: session.status().is_none(),
            truncation: TruncationReport::new(&cut.truncation),
            log_path: self.log_path(id),
        };
        self.tell_owner(client, "progress", &note);
    }

    /// Sends the poll that is due. One that finds no room is left out: the next one says more.
    pub(crate) fn send_poll(&mut self, id: SessionId) {
        let now_ns = self.now_ns;
        let (log_path, shown_log) = (self.log_path(id), self.log_shown(id));
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let client = session.window.as_ref().map(|window| window.spec.client);
        let room = client.is_some_and(|client| self.clients.has_room(client));
        let goes_on = session.status().is_none();
        let (started_ns, command) = (session.facts.started_ns, &session.facts.command);
        let Some(window) = &mut session.window else { return };
        let Some(mut poll) = window.poll.take().filter(|_| goes_on) else { return };
        poll.advance(now_ns);
        let spec = &window.spec;
        let cut = room.then(|| window.clean(false).cut(poll.spec.lines, spec.max_bytes));
        let command = command_for_lists(command, WINDOW_COMMAND_BYTES);
        let named = Named { name: &spec.name, id };
        let made = cut.map(|cut| {
            let notice = cut.notice(shown_log.as_deref(), false);
            let text = text::look("poll", named, &command, shown(&cut, notice.as_ref()));
            (cut, text)
        });
        let made = made.filter(|(cut, text)| poll.wants(text, cut.output.is_empty()));
        let display = poll.spec.display;
        let told_bytes = if room { window.kept_bytes() } else { 0 };
        window.poll = Some(poll);
        self.window_text_bytes += told_bytes;
        let Some((cut, text)) = made else { return };
        let note = PollNote {
            window: window_id(id),
            name: spec.name.clone(),
            command,
            delivery: if display { "display" } else { "model" },
            truncation: TruncationReport::new(&cut.truncation),
            tail: cut.output,
            log_path,
            age_seconds: age_s(started_ns, now_ns),
            text,
        };
        let client = spec.client;
        self.tell_owner(client, "window_poll", &note);
    }

    /// Whether the end of a background command is to be reported although others go on in its
    /// window: its shell has been gone for long enough.
    pub(crate) fn step_window_end(&mut self, id: SessionId) {
        let now_ns = self.now_ns;
        let held = |session: &Session| {
            let over = session.is_left_to_holders(now_ns);
            over && session.waits.is_empty() && session.finished_ns.is_none()
        };
        if self.sessions.get(&id).is_some_and(held) {
            self.report_window_end(id);
        }
    }

    /// Reports the end of a background command, once. What execd's own end has ended is not
    /// reported.
    pub(crate) fn report_window_end(&mut self, id: SessionId) {
        let log = self.keeper.status(id).unwrap_or_default();
        let with_us = self.closing.is_some();
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let ended_with_us = with_us && session.ending.is_some();
        let Some(window) = &mut session.window else { return };
        if window.stage != Stage::Background {
            return;
        }
        window.stage = Stage::Told;
        window.poll = None;
        if ended_with_us {
            window.stage = Stage::Closed;
            return;
        }
        let Some(session) = self.sessions.get(&id) else { return };
        let Some(window) = &session.window else { return };
        let spec = &window.spec;
        let finished = session.life.finished();
        let cut = window.clean(finished).cut(spec.completed_lines, spec.max_bytes);
        let told_bytes = window.kept_bytes();
        let shown_log = log.shown(finished);
        let notice = cut.notice(shown_log.as_deref(), spec.always_log_path);
        let still_running = if finished { Vec::new() } else { self.named_holders(session) };
        let holders = holders_of(&still_running);
        let held = Held { id, holders: &holders, log_path: shown_log.as_deref() };
        let ended_ns = session.finished_ns.unwrap_or(self.now_ns);
        let elapsed_ms = (ended_ns - session.facts.started_ns) / NS_PER_MS;
        let end = End {
            status: status_of(session),
            held: (!finished).then_some(held),
            wanted_input: finished && window.wanted_input(status_of(session), elapsed_ms),
        };
        let text = match session.start.failure() {
            Some(why) => start_failure_text(&session.facts.cwd, why),
            None => text::completion(shown(&cut, notice.as_ref()), end),
        };
        let (exit_code, signal) = status_fields(session.status());
        let trouble = log.clone().trouble(finished && self.keeper.status(id).is_some());
        let note = ExitedNote {
            window: window_id(id),
            name: spec.name.clone(),
            command: command_for_lists(&session.facts.command, WINDOW_COMMAND_BYTES),
            exit_code,
            signal,
            truncation: TruncationReport::new(&cut.truncation),
            tail: cut.output,
            log_path: log.path,
            log_complete: trouble.log_complete,
            log_truncated: trouble.log_truncated,
            failure_message: trouble.failure_message,
            still_running,
            elapsed_ms,
            text,
        };
        let client = spec.client;
        self.window_text_bytes += told_bytes;
        self.tell_owner(client, "window_exited", &note);
        self.debug(format_args!("session {id}: its end was reported"));
    }
}
