//! The books of windows, as tmux shows them: which there are, whose they are, what has ended and
//! stays listed.

use serde::Serialize;

use super::window::Window;
use super::{Named, shown, status_of, window_id};
use crate::limits::{FINISHED_WINDOW_BYTES, NS_PER_MS, WINDOW_COMMAND_BYTES};
use crate::pure::buffer::remembered::Remembered;
use crate::pure::process::life::ExitStatus;
use crate::server::engine::judge::status_fields;
use crate::server::engine::notices::command_for_lists;
use crate::server::families::windows::text::{self, Shown};
use crate::server::families::windows::window::{Clean, Look, Looks, PollSpec, Scope, Stage};
use crate::server::families::{Cx, Engine, Entry, State, waits};
use crate::server::session::report::TruncationReport;
use crate::server::session::state_report::StateReportCamel;
use crate::server::session::view::seconds;
use crate::server::session::{ClientId, Session, SessionId};

/// Text of a peek that shows what is new.
const PEEK_NEW_BYTES: usize = 5 * 1024;

/// Windows that have ended and stay listed where autoCloseWindowsOnCompletion is false.
const FINISHED_WINDOWS_MAX: usize = 64;

/// What tmux answers.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Seen {
    /// What the model reads.
    pub text: String,
    /// Whether the action could not be carried out.
    pub is_error: bool,
    /// Of a peek: the output in the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The windows of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<WindowRow>>,
    /// The polls of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polls: Option<Vec<PollRow>>,
}

/// One window of a list.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // What has no comment is as in other replies (docs/methods.md).
pub struct WindowRow {
    pub window: String,
    pub name: String,
    pub command: String,
    pub pid: i32,
    pub age_seconds: u64,
    #[serde(flatten)]
    pub doing: Option<StateReportCamel>,
    pub running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_from: Option<u64>,
    #[serde(skip)]
    id: SessionId,
    #[serde(skip)]
    ended: Option<ExitStatus>,
}

/// One poll of a list.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // What has no comment is as in other replies (docs/methods.md).
pub struct PollRow {
    pub window: String,
    pub name: String,
    pub interval_seconds: f64,
    pub lines: usize,
    /// `model` or `display`.
    pub delivery: &'static str,
}

/// Said of a window in which nothing has come since the last look.
const NOTHING_NEW: &str = "(nothing new)";

/// How much a peek shows.
#[derive(Clone, Copy, Debug)]
pub struct PeekLimits {
    /// Lines at most.
    pub lines: usize,
    /// Bytes at most.
    pub bytes: usize,
    /// Everything, not only what is new.
    pub all: bool,
}

/// A window that has ended and can still be looked into.
#[derive(Debug)]
pub struct FinishedWindow {
    row: WindowRow,
    /// The window stays in lists too.
    listed: bool,
    scope: Scope,
    clean: Clean,
    looks: Looks,
}

/// The windows that have ended and can still be looked into.
pub type Books = Remembered<FinishedWindow>;

impl Seen {
    /// An answer of text alone.
    pub fn text(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    /// The windows whose ends it tells.
    pub fn told_ends(&self) -> Vec<SessionId> {
        let rows = self.windows.iter().flatten();
        rows.filter(|row| row.exit_code.is_some() || row.signal.is_some())
            .map(|row| row.id)
            .collect()
    }

    /// An action that could not be carried out.
    pub fn error(text: String) -> Self {
        Self { text, is_error: true, ..Self::default() }
    }
}

/// How old something is, in whole seconds.
pub(super) fn age_s(from_ns: u64, to_ns: u64) -> u64 {
    to_ns.saturating_sub(from_ns) / NS_PER_MS / 1_000
}

/// The error of an id that names no window which the caller sees.
fn no_window(id: SessionId) -> Seen {
    Seen::error(format!("No background window @{id}."))
}

/// A window that is there, with its session.
type Live<'a> = (&'a Window, &'a Session);

/// The background windows that the caller sees, with their sessions.
fn seen_live<'a>(
    engine: &'a Engine,
    fits: &'a dyn Fn(&Scope) -> bool,
) -> impl Iterator<Item = Live<'a>> {
    let shown = |one: &'a Entry| {
        let own = one.family.windows().filter(|own| own.is_shown(&one.core));
        own.map(|own| (own, &one.core))
    };
    engine.sessions.iter().filter_map(shown).filter(|(own, _)| fits(&own.spec.scope))
}

/// The background window of this id that the caller sees.
fn seen_one<'a>(
    engine: &'a Engine,
    id: SessionId,
    fits: &dyn Fn(&Scope) -> bool,
) -> Option<Live<'a>> {
    let one = engine.sessions.get(id)?;
    let own = one.family.windows().filter(|own| own.is_shown(&one.core))?;
    fits(&own.spec.scope).then_some((own, &one.core))
}

/// The window of this id that has ended and can still be looked into.
fn seen_finished<'a>(
    engine: &'a Engine,
    id: SessionId,
    fits: &dyn Fn(&Scope) -> bool,
) -> Option<&'a FinishedWindow> {
    engine.cx.books.windows.get(id).filter(|one| fits(&one.scope))
}

/// The background windows whose scope fits, those that run first.
pub(super) fn list(engine: &Engine, since_ns: u64, fits: &dyn Fn(&Scope) -> bool) -> Seen {
    let live = seen_live(engine, fits);
    let mut rows: Vec<WindowRow> =
        live.map(|(own, core)| own.row(core, since_ns, &engine.cx)).collect();
    let finished = engine.cx.books.windows.values();
    let finished = finished.filter(|one| one.listed && fits(&one.scope));
    rows.extend(finished.map(|one| one.row.clone()));
    let line = |row: &WindowRow| {
        let named = Named { name: &row.name, id: row.id };
        text::listed(named, row.age_seconds, row.ended, row.doing_line())
    };
    let lines: Vec<String> = rows.iter().map(line).collect();
    Seen { windows: Some(rows), ..Seen::text(text::list(&lines)) }
}

/// A client looks into a window. Gives its last look, and whether nothing came since.
fn look(engine: &mut Engine, id: SessionId, client: ClientId) -> Option<(Look, bool)> {
    let Engine { sessions, cx, .. } = engine;
    let live = sessions.get_mut(id).and_then(|entry| match &mut entry.family {
        State::Window(own) => Some(own.looks_now()),
        _ => None,
    });
    let looks = match live {
        Some(looks) => looks,
        None => &mut cx.books.windows.get_mut(id)?.looks,
    };
    let before = looks.look(client)?;
    Some((before, looks.is_same(before)))
}

/// What is in a window now; of one that the client has looked into before what is new.
pub(super) fn peek(
    engine: &mut Engine,
    id: SessionId,
    client: ClientId,
    limits: PeekLimits,
    fits: &dyn Fn(&Scope) -> bool,
) -> Seen {
    let Engine { sessions, cx, .. } = engine;
    if let Some(entry) = sessions.get_mut(id) {
        cx.doing(&mut entry.core);
    }
    let (row, mut clean) = if let Some((own, core)) = seen_one(engine, id, fits) {
        (own.row(core, engine.cx.now_ns, &engine.cx), own.clean(core.life.finished()))
    } else if let Some(one) = seen_finished(engine, id, fits) {
        (one.row.clone(), one.clean.clone())
    } else {
        return no_window(id);
    };
    let before = look(engine, id, client).filter(|_| !limits.all);
    if let Some((before, _)) = before {
        clean = clean.since(before);
    }
    let most = if limits.all { limits.bytes } else { limits.bytes.min(PEEK_NEW_BYTES) };
    let cut = clean.cut(limits.lines, most);
    let mut notice = cut.notice(row.log_path.as_deref(), false);
    if row.late.is_some() {
        notice = Some(text::late_notice(notice, row.log_path.as_deref()));
    }
    if let Some(doing) = row.doing_line() {
        notice = Some(text::doing_notice(notice, doing));
    }
    let named = Named { name: &row.name, id };
    let shown = match before {
        Some((_, true)) => {
            Shown { output: NOTHING_NEW, notice: row.doing_line().and(notice.as_deref()) }
        }
        _ => shown(&cut, notice.as_ref()),
    };
    let word = if before.is_some() { "new in window" } else { "window" };
    let text = text::look(word, named, &row.command, shown);
    let output = (shown.output == cut.output).then_some(cut.output);
    Seen { windows: Some(vec![row]), output, ..Seen::text(text) }
}

/// What wait_for tells of a window that has ended and can still be looked into; `most`: bytes of
/// output.
pub fn finished_row(id: SessionId, most: usize, cx: &Cx) -> Option<waits::row::Row> {
    let one = cx.books.windows.get(id)?;
    let cut = one.clean.cut(cx.config.text.max_lines, cx.config.text.max_bytes.min(most));
    Some(waits::row::Row {
        session_id: id,
        name: Some(one.row.name.clone()),
        command: one.row.command.clone(),
        family: "windows",
        exit_code: one.row.exit_code,
        signal: one.row.signal.clone(),
        killed_by: one.row.killed_by,
        log_path: one.row.log_path.clone(),
        log_from: one.row.log_from,
        truncation: TruncationReport::new(&cut.truncation),
        footer: cut.notice(one.row.log_path.as_deref(), false),
        output: Some(cut.output),
        ..waits::row::Row::over()
    })
}

/// The name of a window that the caller may end, or why not.
pub(super) fn name_of(
    engine: &Engine,
    id: SessionId,
    fits: &dyn Fn(&Scope) -> bool,
) -> Result<String, Seen> {
    let live = seen_one(engine, id, fits).map(|(own, _)| &own.spec.name);
    let finished = seen_finished(engine, id, fits).map(|one| &one.row.name);
    live.or(finished).cloned().ok_or_else(|| no_window(id))
}

/// Begins to poll a window.
pub(super) fn poll(
    engine: &mut Engine,
    id: SessionId,
    spec: PollSpec,
    fits: &dyn Fn(&Scope) -> bool,
) -> Seen {
    let seen = seen_one(engine, id, fits);
    if seen.is_none_or(|(_, core)| core.status().is_some()) {
        let finished = seen.is_some() || seen_finished(engine, id, fits).is_some();
        let over = format!("Window @{id} has finished: there is nothing to poll.");
        return if finished { Seen::error(over) } else { no_window(id) };
    }
    let Some(Entry { core, family: State::Window(own) }) = engine.sessions.get_mut(id) else {
        return no_window(id);
    };
    own.start_poll(spec, engine.cx.now_ns);
    engine.cx.touch(core);
    let every = text::seconds(spec.interval_ms);
    Seen::text(format!("Polling {} every {every}s.", own.spec.name))
}

/// Polls a window no more.
pub(super) fn unpoll(engine: &mut Engine, id: SessionId, fits: &dyn Fn(&Scope) -> bool) -> Seen {
    let name = match name_of(engine, id, fits) {
        Ok(name) => name,
        Err(none) => return none,
    };
    let mut stopped = false;
    if let Some(Entry { core, family: State::Window(own) }) = engine.sessions.get_mut(id) {
        stopped = own.poll.take().is_some();
        engine.cx.touch(core);
    }
    Seen::text(if stopped {
        format!("Stopped polling {name}")
    } else {
        format!("No poller for {name}.")
    })
}

/// The polls under way.
pub(super) fn list_polls(engine: &Engine, fits: &dyn Fn(&Scope) -> bool) -> Seen {
    let windows = engine.sessions.iter().filter_map(|one| {
        let own = one.family.windows().filter(|own| fits(&own.spec.scope))?;
        Some((one.core.id, own, own.poll.as_ref()?.spec))
    });
    let active: Vec<_> = windows.collect();
    let rows: Vec<PollRow> = active
        .iter()
        .map(|(id, own, spec)| PollRow {
            window: window_id(*id),
            name: own.spec.name.clone(),
            interval_seconds: seconds(spec.interval_ms * NS_PER_MS),
            lines: spec.lines,
            delivery: if spec.display { "display" } else { "model" },
        })
        .collect();
    let lines: Vec<(String, u64, usize)> = active
        .iter()
        .map(|(_, own, spec)| (own.spec.name.clone(), spec.interval_ms, spec.lines))
        .collect();
    Seen { polls: Some(rows), ..Seen::text(text::polls(&lines)) }
}

impl WindowRow {
    /// What the window's session is doing, where that is more than to run.
    fn doing_line(&self) -> Option<&str> {
        self.doing.as_ref()?.line.as_deref()
    }
}

impl Window {
    fn row(&self, core: &Session, since_ns: u64, cx: &Cx) -> WindowRow {
        let doing = || StateReportCamel::from(&core.seen_for_list(since_ns, cx.now_ns));
        let ended = core.status();
        let (exit_code, signal) = status_fields(ended);
        let until_ns = core.finished_ns.unwrap_or(cx.now_ns);
        WindowRow {
            window: window_id(core.id),
            name: self.spec.name.clone(),
            command: command_for_lists(&core.facts.command, WINDOW_COMMAND_BYTES),
            pid: core.facts.pid,
            age_seconds: age_s(core.facts.started_ns, until_ns),
            running: !core.life.finished(),
            late: core.has_late_output().then_some(true),
            exit_code,
            signal,
            killed_by: core.killed_by(),
            log_path: cx.log_path(core.id),
            log_from: cx.log_from(core.id),
            doing: (!core.life.finished()).then(doing),
            id: core.id,
            // Where others go on, the window is not over.
            ended: ended.filter(|_| core.life.finished()),
        }
    }

    /// Keeps what a window that has ended shows, where it is not closed by itself, or shows what
    /// came later than an answer would have waited.
    pub(super) fn keep(&mut self, core: &Session, cx: &mut Cx) {
        let listed = !self.spec.auto_close;
        if !(listed || core.has_late_output()) || self.stage != Stage::Told {
            return;
        }
        let mut row = self.row(core, cx.now_ns, cx);
        row.ended = Some(status_of(core));
        let clean = self.clean(true).shortened(FINISHED_WINDOW_BYTES);
        let scope = self.spec.scope.clone();
        let looks = self.looks_now().clone();
        let finished = FinishedWindow { row, listed, scope, clean, looks };
        cx.books.windows.insert(core.id, finished, cx.now_ns, FINISHED_WINDOWS_MAX);
    }
}
