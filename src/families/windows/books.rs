//! The books of windows: which there are, whose they are, what has ended and stays listed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Named, age_s, shown, status_of, window_id};
use crate::engine::Daemon;
use crate::engine::judge::status_fields;
use crate::engine::sessions::command_for_lists;
use crate::families::windows::text;
use crate::families::windows::window::{Clean, PollSpec, Scope, Stage};
use crate::limits::{FINISHED_WINDOW_BYTES, FINISHED_WINDOWS_MAX, NS_PER_MS, WINDOW_COMMAND_BYTES};
use crate::pure::process::life::ExitStatus;
use crate::session::view::seconds;
use crate::session::{Session, SessionId};

/// What tmux answers.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Seen {
    /// What the model reads.
    pub text: String,
    /// Whether the action could not be carried out.
    pub is_error: bool,
    /// The windows of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<WindowRow>>,
    /// The polls of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polls: Option<Vec<PollRow>>,
}

/// One window of a list.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // docs/protocol.md describes each.
pub struct WindowRow {
    pub window: String,
    pub name: String,
    pub command: String,
    pub pid: i32,
    pub age_seconds: u64,
    pub running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    #[serde(skip)]
    id: SessionId,
    #[serde(skip)]
    ended: Option<ExitStatus>,
}

/// One poll of a list.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // docs/protocol.md describes each.
pub struct PollRow {
    pub window: String,
    pub name: String,
    pub interval_seconds: f64,
    pub lines: usize,
    pub delivery: &'static str,
}

/// How much a peek shows.
#[derive(Clone, Copy, Debug)]
pub struct PeekLimits {
    /// Lines at most.
    pub lines: usize,
    /// Bytes at most.
    pub bytes: usize,
}

/// A window that has ended and can still be looked into.
#[derive(Debug)]
struct FinishedWindow {
    row: WindowRow,
    /// It stays in lists too.
    listed: bool,
    scope: Scope,
    clean: Clean,
    since_ns: u64,
}

/// The windows that have ended and can still be looked into, by id.
#[derive(Debug, Default)]
pub struct FinishedWindows(BTreeMap<SessionId, FinishedWindow>);

impl FinishedWindows {
    pub(crate) fn forget(&mut self, id: SessionId) {
        self.0.remove(&id);
    }

    fn insert(&mut self, id: SessionId, finished: FinishedWindow) {
        self.0.insert(id, finished);
        if self.0.len() > FINISHED_WINDOWS_MAX {
            let oldest = self.0.iter().min_by_key(|(_, one)| one.since_ns).map(|(id, _)| *id);
            oldest.and_then(|id| self.0.remove(&id));
        }
    }
}

impl Seen {
    /// An answer of text alone.
    pub fn text(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    /// An action that could not be carried out.
    pub fn error(text: String) -> Self {
        Self { text, is_error: true, ..Self::default() }
    }
}

/// The error of an id that names no window which the caller sees.
fn no_window(id: SessionId) -> Seen {
    Seen::error(format!("No background window @{id}."))
}

impl Daemon {
    /// The background windows whose scope fits, those that run first.
    pub fn list_windows(&self, fits: &dyn Fn(&Scope) -> bool) -> Seen {
        let seen = |session: &&Session| {
            session.background_window().is_some_and(|window| fits(&window.spec.scope))
        };
        let live = self.sessions.values().filter(seen);
        let mut rows: Vec<WindowRow> = live.map(|session| self.window_row(session)).collect();
        let finished = self.finished_windows.0.values();
        let finished = finished.filter(|one| one.listed && fits(&one.scope));
        rows.extend(finished.map(|one| one.row.clone()));
        let line = |row: &WindowRow| {
            let named = Named { name: &row.name, id: row.id };
            text::listed(named, row.age_seconds, row.ended)
        };
        let lines: Vec<String> = rows.iter().map(line).collect();
        Seen { windows: Some(rows), ..Seen::text(text::list(&lines)) }
    }

    fn window_row(&self, session: &Session) -> WindowRow {
        let name = session.window.as_ref().map(|one| one.spec.name.clone()).unwrap_or_default();
        let ended = session.status();
        let (exit_code, signal) = status_fields(ended);
        let until_ns = session.finished_ns.unwrap_or(self.now_ns);
        WindowRow {
            window: window_id(session.id),
            name,
            command: command_for_lists(&session.facts.command, WINDOW_COMMAND_BYTES),
            pid: session.facts.pid,
            age_seconds: age_s(session.facts.started_ns, until_ns),
            running: !session.life.finished(),
            late: session.has_late_output().then_some(true),
            exit_code,
            signal,
            log_path: self.log_path(session.id),
            id: session.id,
            // Where others go on, the window is not over.
            ended: ended.filter(|_| session.life.finished()),
        }
    }

    /// The session of a background window that the caller sees.
    fn seen_window(&self, id: SessionId, fits: &dyn Fn(&Scope) -> bool) -> Option<&Session> {
        let session = self.sessions.get(&id)?;
        fits(&session.background_window()?.spec.scope).then_some(session)
    }

    /// The same of one that has ended and can still be looked into.
    fn seen_finished(
        &self,
        id: SessionId,
        fits: &dyn Fn(&Scope) -> bool,
    ) -> Option<&FinishedWindow> {
        self.finished_windows.0.get(&id).filter(|one| fits(&one.scope))
    }

    /// What is in a window now.
    pub fn peek_window(
        &self,
        id: SessionId,
        limits: PeekLimits,
        fits: &dyn Fn(&Scope) -> bool,
    ) -> Seen {
        let (row, clean) = if let Some(session) = self.seen_window(id, fits) {
            let last = session.life.finished();
            let clean = session.window.as_ref().map(|window| window.clean(last));
            (self.window_row(session), clean.unwrap_or_default())
        } else if let Some(one) = self.seen_finished(id, fits) {
            (one.row.clone(), one.clean.clone())
        } else {
            return no_window(id);
        };
        let cut = clean.cut(limits.lines, limits.bytes);
        let mut notice = cut.notice(row.log_path.as_deref(), false);
        if row.late.is_some() {
            notice = Some(text::late_notice(notice, row.log_path.as_deref()));
        }
        let named = Named { name: &row.name, id };
        let shown = shown(&cut, notice.as_ref());
        let text = text::look("window", named, &row.command, shown);
        Seen { windows: Some(vec![row]), ..Seen::text(text) }
    }

    /// The name of a window that the caller may end, or why not.
    pub fn window_to_close(
        &self,
        id: SessionId,
        fits: &dyn Fn(&Scope) -> bool,
    ) -> Result<String, Seen> {
        let live = self.seen_window(id, fits).and_then(|one| one.window.as_ref());
        let name = live.map(|window| &window.spec.name);
        let finished = self.seen_finished(id, fits).map(|one| &one.row.name);
        name.or(finished).cloned().ok_or_else(|| no_window(id))
    }

    /// Begins to poll a window.
    pub fn poll_window(
        &mut self,
        id: SessionId,
        spec: PollSpec,
        fits: &dyn Fn(&Scope) -> bool,
    ) -> Seen {
        if self.seen_window(id, fits).is_none_or(|session| session.status().is_some()) {
            let finished =
                self.seen_window(id, fits).is_some() || self.seen_finished(id, fits).is_some();
            let over = format!("Window @{id} has finished: there is nothing to poll.");
            return if finished { Seen::error(over) } else { no_window(id) };
        }
        let now_ns = self.now_ns;
        let Some(window) = self.sessions.get_mut(&id).and_then(|one| one.window.as_mut()) else {
            return no_window(id);
        };
        window.start_poll(spec, now_ns);
        let text =
            format!("Polling {} every {}s.", window.spec.name, text::seconds(spec.interval_ms));
        self.touch(id);
        Seen::text(text)
    }

    /// Polls a window no more.
    pub fn unpoll_window(&mut self, id: SessionId, fits: &dyn Fn(&Scope) -> bool) -> Seen {
        let name = match self.window_to_close(id, fits) {
            Ok(name) => name,
            Err(none) => return none,
        };
        let window = self.sessions.get_mut(&id).and_then(|one| one.window.as_mut());
        let stopped = window.and_then(|window| window.poll.take()).is_some();
        self.touch(id);
        Seen::text(if stopped {
            format!("Stopped polling {name}")
        } else {
            format!("No poller for {name}.")
        })
    }

    /// The polls under way.
    pub fn list_polls(&self, fits: &dyn Fn(&Scope) -> bool) -> Seen {
        let windows = self.sessions.values().filter_map(|session| {
            let window = session.window.as_ref().filter(|window| fits(&window.spec.scope))?;
            Some((session.id, window, window.poll.as_ref()?.spec))
        });
        let active: Vec<_> = windows.collect();
        let rows: Vec<PollRow> = active
            .iter()
            .map(|(id, window, spec)| PollRow {
                window: window_id(*id),
                name: window.spec.name.clone(),
                interval_seconds: seconds(spec.interval_ms * NS_PER_MS),
                lines: spec.lines,
                delivery: if spec.display { "display" } else { "model" },
            })
            .collect();
        let lines: Vec<(String, u64, usize)> = active
            .iter()
            .map(|(_, window, spec)| (window.spec.name.clone(), spec.interval_ms, spec.lines))
            .collect();
        Seen { polls: Some(rows), ..Seen::text(text::polls(&lines)) }
    }

    /// Keeps what a window that has ended shows, where it is not closed by itself, or shows what
    /// came later than an answer would have waited.
    pub(crate) fn keep_window(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else { return };
        let Some(window) = &session.window else { return };
        let listed = !window.spec.auto_close;
        if !(listed || session.has_late_output()) || window.stage != Stage::Told {
            return;
        }
        let mut row = self.window_row(session);
        row.ended = Some(status_of(session));
        let clean = window.clean(true).shortened(FINISHED_WINDOW_BYTES);
        let scope = window.spec.scope.clone();
        let finished = FinishedWindow { row, listed, scope, clean, since_ns: self.now_ns };
        self.finished_windows.insert(id, finished);
    }
}
