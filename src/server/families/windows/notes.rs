//! What execd says of a window by itself: polls, and the end of a background command. All goes to
//! the client that started the window.

use serde::Serialize;

use super::books::age_s;
use super::window::{Stage, Window};
use super::{Held, Named, holders_of, shown, start_failure_text, status_of, window_id};
use crate::limits::{NS_PER_MS, WINDOW_COMMAND_BYTES};
use crate::server::engine::judge::status_fields;
use crate::server::engine::notices::command_for_lists;
use crate::server::families::Cx;
use crate::server::families::windows::text::{self, End};
use crate::server::session::Session;
use crate::server::session::report::{NamedProcess, TruncationReport};

/// The end of a background command of `bash`, once, to the client that started it.
#[derive(Serialize)]
struct ExitedNote {
    window: String,
    name: String,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    killed_by: Option<&'static str>,
    /// Clean text of the last lines.
    tail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncation: Option<TruncationReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_from: Option<u64>,
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

/// A poll of a window, to the client that started it.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    log_from: Option<u64>,
    age_seconds: u64,
    text: String,
}

impl Window {
    /// Sends the poll that is due. A poll that finds no room is left out: the next one says more.
    pub(super) fn send_poll(&mut self, core: &Session, cx: &mut Cx) {
        let goes_on = core.status().is_none();
        let Some(mut poll) = self.poll.take().filter(|_| goes_on) else { return };
        poll.advance(cx.now_ns);
        let spec = &self.spec;
        let room = cx.clients.has_room(spec.client);
        let cut = room.then(|| {
            cx.text_bytes += self.kept_bytes();
            self.clean(false).cut(poll.spec.lines, spec.max_bytes)
        });
        let command = command_for_lists(&core.facts.command, WINDOW_COMMAND_BYTES);
        let shown_log = cx.log_shown(core);
        let made = cut.map(|cut| {
            let notice = cut.notice(shown_log.as_deref(), false);
            let named = Named { name: &spec.name, id: core.id };
            let text = text::look("poll", named, &command, shown(&cut, notice.as_ref()));
            (cut, text)
        });
        let made = made.filter(|(cut, text)| poll.wants(text, cut.output.is_empty()));
        let display = poll.spec.display;
        self.poll = Some(poll);
        let Some((cut, text)) = made else { return };
        let note = PollNote {
            window: window_id(core.id),
            name: self.spec.name.clone(),
            command,
            delivery: if display { "display" } else { "model" },
            truncation: TruncationReport::new(&cut.truncation),
            tail: cut.output,
            log_path: cx.log_path(core.id),
            log_from: cx.log_from(core.id),
            age_seconds: age_s(core.facts.started_ns, cx.now_ns),
            text,
        };
        cx.clients.notify(self.spec.client, "window_poll", &note);
    }

    /// Reports the end of a background command, once, to the client that started it. What execd's
    /// own end has ended is not reported.
    pub(super) fn report_end(&mut self, core: &mut Session, cx: &mut Cx) {
        if self.stage != Stage::Background {
            return;
        }
        self.poll = None;
        self.stage = Stage::Told;
        if cx.closing.is_some() && core.ending.is_some() {
            self.stage = Stage::Closed;
            return;
        }
        let logged = cx.keeper.status(core.id);
        let log = logged.clone().unwrap_or_default();
        let spec = &self.spec;
        let finished = core.life.finished();
        let cut = self.clean(finished).cut(spec.completed_lines, spec.max_bytes);
        cx.text_bytes += self.kept_bytes();
        let shown_log = log.shown(finished);
        let notice = cut.notice(shown_log.as_deref(), spec.always_log_path);
        let still_running = if finished { Vec::new() } else { cx.named_holders(core) };
        let holders = holders_of(&still_running);
        let held = Held { id: core.id, holders: &holders, log_path: shown_log.as_deref() };
        let ended_ns = core.finished_ns.unwrap_or(cx.now_ns);
        let elapsed_ms = (ended_ns - core.facts.started_ns) / NS_PER_MS;
        let end = End { status: status_of(core), held: (!finished).then_some(held) };
        let text = match core.start.failure() {
            Some(why) => start_failure_text(&core.facts.cwd, why),
            None => text::completion(shown(&cut, notice.as_ref()), end),
        };
        let (exit_code, signal) = status_fields(core.status());
        let trouble = log.clone().trouble(finished && logged.is_some());
        let note = ExitedNote {
            window: window_id(core.id),
            name: spec.name.clone(),
            command: command_for_lists(&core.facts.command, WINDOW_COMMAND_BYTES),
            exit_code,
            signal,
            killed_by: core.killed_by(),
            truncation: TruncationReport::new(&cut.truncation),
            tail: cut.output,
            log_from: log.from(),
            log_path: log.path,
            log_complete: trouble.log_complete,
            log_truncated: trouble.log_truncated,
            failure_message: trouble.failure_message,
            still_running,
            elapsed_ms,
            text,
        };
        cx.clients.notify(spec.client, "window_exited", &note);
        cx.debug(format_args!("session {}: its end was reported", core.id));
    }
}
