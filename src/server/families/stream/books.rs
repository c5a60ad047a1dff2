//! The books of sessions for the stream family: what runs, what has finished and is remembered, and
//! where a page of output is read from. What is remembered of one session is in `finished`.

use serde::Serialize;
use std::collections::BTreeMap;

use super::finished::Finished;
pub use super::finished::Row;
use super::kept::{ends_at, holds, stream_of};
use super::output::{Stream, capped};
use super::{Report, end_word, final_report};
use crate::limits::{FINISHED_JOBS_BYTES, NS_PER_MS};
use crate::pure::buffer::remembered::Remembered;
use crate::pure::time::rfc3339::format_utc_ms;
use crate::server::engine::judge::status_fields;
use crate::server::engine::launch::{LaunchSpec, Stdin};
use crate::server::engine::notices::command_for_lists;
use crate::server::engine::pages::{Found, KeptBytes, PageSource, PageSpec};
use crate::server::families::{Cx, Engine, Entry, waits};
use crate::server::session::output::Source;
use crate::server::session::state_report::StateReportCamel;
use crate::server::session::{Listing, Session, SessionId};
use crate::wire::RpcError;

/// Bytes of a command in a row of list_processes, which may have many more rows.
const LISTED_JOB_COMMAND_BYTES: usize = 1024;

/// How many ended sessions are remembered no more, and what bounds the memory of them.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forgotten {
    /// So many are forgotten since execd has started.
    pub forgotten: u64,
    /// So many are remembered at most.
    pub kept_max: usize,
    /// How long a session is remembered.
    pub kept_ms: u64,
}

/// What the stream family remembers.
#[derive(Debug, Default)]
pub struct Books {
    /// The sessions that have finished, while their time to live lasts.
    finished: Remembered<Finished>,
    /// How far stream calls have told the output of sessions that others started.
    told: BTreeMap<SessionId, (u64, u64)>,
}

impl Books {
    /// How far into the output of a session stream calls have told it, in bytes and characters,
    /// where bash_stream did not start it.
    pub(super) fn told(&self, id: SessionId) -> (u64, u64) {
        self.told.get(&id).copied().unwrap_or_default()
    }

    /// Notes that calls have told a session's output up to here; gives how far they had before.
    pub(super) fn tell(&mut self, id: SessionId, whole: (u64, u64)) -> (u64, u64) {
        self.told.insert(id, whole).unwrap_or_default()
    }

    /// Whether a session has finished and is remembered.
    fn has(&self, id: SessionId) -> bool {
        self.finished.get(id).is_some()
    }
}

fn expire(cx: &mut Cx) {
    let ttl_ns = cx.config.stream.ttl_ms * NS_PER_MS;
    cx.books.stream.finished.expire(cx.now_ns.saturating_sub(ttl_ns));
}

/// What is remembered of a session that has finished.
pub(super) fn finished(id: SessionId, cx: &mut Cx) -> Option<Report> {
    expire(cx);
    cx.books.stream.finished.get(id).map(Finished::report)
}

/// What wait_for tells of a session that has finished and is remembered; `most`: bytes of output.
pub fn finished_row(id: SessionId, most: usize, cx: &mut Cx) -> Option<waits::row::Row> {
    expire(cx);
    let finished = cx.books.stream.finished.get(id)?;
    let Report { exit_code, signal, killed_by, aggregated, log_path, log, note, .. } =
        finished.report();
    let all = aggregated.unwrap_or_default();
    Some(waits::row::Row {
        session_id: id,
        name: finished.row.name.clone(),
        command: finished.row.command.clone(),
        family: finished.family,
        exit_code,
        signal,
        killed_by,
        failure_message: log.failure_message.or(finished.report.error.clone()),
        note,
        log_complete: log.log_complete,
        log_truncated: log.log_truncated,
        output: Some(capped(all, 0, most, log_path.as_deref()).text),
        log_path,
        ..waits::row::Row::over()
    })
}

/// Whether a session has finished and is remembered.
pub(super) fn is_finished(id: SessionId, cx: &mut Cx) -> bool {
    expire(cx);
    cx.books.stream.has(id)
}

/// The rows of list_processes: running first, then what has ended, newest first. Looks since
/// `since_ns` tell the states.
pub(super) fn rows(engine: &mut Engine, since_ns: u64) -> Vec<Row> {
    expire(&mut engine.cx);
    let Engine { sessions, cx, .. } = engine;
    let known = |one: &&Entry| one.family.stream().is_some() || one.core.listing == Listing::Listed;
    let live = sessions.iter().filter(known).filter(|one| !cx.books.stream.has(one.core.id));
    let live: Vec<&Entry> = live.collect();
    let mut rows: Vec<Row> =
        live.into_iter().map(|one| row(one.family.stream(), &one.core, since_ns, cx)).collect();
    rows.extend(cx.books.stream.finished.values().map(|finished| finished.row.clone()));
    rows.sort_by_key(|row| {
        let newest = u64::MAX - row.ended_ns.unwrap_or(0);
        (row.ended_ns.is_some(), newest, u64::MAX - row.session_id)
    });
    rows
}

/// What list_processes says of those that are remembered no more, once there are any.
pub(super) fn forgotten(cx: &Cx) -> Option<Forgotten> {
    let forgotten = cx.books.stream.finished.forgotten();
    let (kept_max, kept_ms) = (cx.config.stream.jobs_kept, cx.config.stream.ttl_ms);
    (forgotten > 0).then_some(Forgotten { forgotten, kept_max, kept_ms })
}

/// How long a command has run until `ended_ns`: one that could not be started has never run.
pub(super) fn duration_ms(core: &Session, ended_ns: u64) -> u64 {
    let ran = core.start.failure().is_none();
    if ran { (ended_ns - core.facts.started_ns) / NS_PER_MS } else { 0 }
}

fn row(own: Option<&Stream>, core: &Session, since_ns: u64, cx: &mut Cx) -> Row {
    let over = core.is_over(cx.now_ns);
    let (exit_code, signal) = status_fields(core.status().filter(|_| over));
    let timed_out = own.is_some_and(|own| own.timed_out);
    let ran = core.start.failure().is_none();
    let ended_ns = over.then(|| core.reaped_ns.unwrap_or(cx.now_ns));
    let duration_ms = duration_ms(core, ended_ns.unwrap_or(cx.now_ns));
    let wall = |ms: u64| core.facts.started_wall_ms + i64::try_from(ms).unwrap_or(0);
    Row {
        session_id: core.id,
        name: core.facts.name.clone(),
        command: command_for_lists(&core.facts.command, LISTED_JOB_COMMAND_BYTES),
        cwd: core.facts.cwd.clone(),
        pid: ran.then_some(core.facts.pid),
        status: if over { end_word(core.status(), timed_out) } else { "running" },
        exit_code,
        signal,
        killed_by: if over { core.killed_by() } else { None },
        started_at: format_utc_ms(core.facts.started_wall_ms),
        ended_at: over.then(|| format_utc_ms(wall(duration_ms))),
        duration_ms,
        output_bytes: core.output_bytes_total(),
        doing: (!over).then(|| StateReportCamel::from(&core.seen_for_list(since_ns, cx.now_ns))),
        listening: core.listened_since(since_ns).filter(|_| !over).unwrap_or_default().to_vec(),
        stdin_mode: stdin_mode(core.facts.tty, core.input.is_null()),
        stdin_open: !over && !core.input.is_closed() && !core.input.is_broken(),
        log_path: cx.log_path(core.id),
        log_from: cx.log_from(core.id),
        ended_ns,
    }
}

/// Where a page is to be read from: memory while it is there, else the log.
pub(super) fn find_page(engine: &mut Engine, spec: &PageSpec) -> Result<Found, RpcError> {
    expire(&mut engine.cx);
    let (id, source) = (spec.id, spec.source);
    if let Some(one) = engine.cx.books.stream.finished.get(id) {
        let (from, log) = (one.page(spec), one.report.log.clone());
        let late_from = one.left_at.map(|left| left.of(source));
        return Ok(Found { from, finished: true, late_from, log });
    }
    super::live_session(engine, id)?;
    let Some(Entry { core, family }) = engine.sessions.get(id) else {
        return Err(engine.sessions.unknown_session(id));
    };
    // Where nobody has said yet whether there is a log, it is asked.
    let (own, log) = (family.stream(), engine.cx.keeper.readable(id));
    let late_from = core.left_at().map(|left| left.of(source));
    let wrote = |of: Source| own.is_some_and(|own| own.has_written(of));
    // While only one of them has written, its pages are those of the whole.
    let whole = match source {
        None => true,
        Some(Source::Output) => !wrote(Source::Errors),
        Some(Source::Errors) => wrote(Source::Errors) && !wrote(Source::Output),
    };
    let only = source.filter(|_| !whole);
    let kept = match only {
        None => (core.tail.to_vec(), core.tail.starts_at()),
        Some(source) => stream_of(own, core, source, log.is_none()),
    };
    let from = match log {
        Some(name) if !holds(&kept, spec) => PageSource::Log(name.to_owned(), only, ends_at(&kept)),
        _ => PageSource::Memory(kept.0, kept.1),
    };
    // Who reads that this is the end may look into the log next.
    let finished = engine.cx.is_over_and_logged(core);
    let log = engine.cx.log_trouble(core, finished);
    Ok(Found { from, finished, late_from, log })
}

/// What memory has of the stream that a page is asked of.
pub fn kept_of(
    live: Option<(Option<&Stream>, &Session)>,
    spec: &PageSpec,
    books: &super::super::Books,
) -> Option<KeptBytes> {
    let source = spec.source?;
    if let Some(one) = books.stream.finished.get(spec.id) {
        return one.stream(source);
    }
    live.map(|(own, core)| stream_of(own, core, source, false))
}

/// What memory has of a session that has finished.
pub fn kept_of_finished(spec: &PageSpec, books: &super::super::Books) -> KeptBytes {
    match books.stream.finished.get(spec.id).map(|one| one.page(spec)) {
        Some(PageSource::Memory(bytes, starts_at)) => (bytes, starts_at),
        _ => KeptBytes::default(),
    }
}

/// Notes a session that has finished, once: it can be asked for until its time is over.
pub(super) fn remember(own: Option<&Stream>, core: &Session, family: &'static str, cx: &mut Cx) {
    cx.books.stream.told.remove(&core.id);
    // The answer of bash_stream names a job that could not be started, which no event has named.
    let is_known = core.announced || (own.is_some() && core.start.failure().is_some());
    if cx.books.stream.has(core.id) || core.finished_ns.is_none() || !is_known {
        return;
    }
    let row = row(own, core, cx.now_ns, cx);
    let kept = cx.config.logs.off.then(|| core.tail.last(usize::MAX));
    let report = final_report(own, core, cx);
    let mut finished = Finished::new(row, report, kept);
    finished.log = cx.keeper.readable(core.id).map(str::to_owned);
    finished.family = family;
    finished.left_at = core.left_at();
    if let Some(own) = own {
        finished.keep_apart(own);
    }
    keep(core.id, finished, cx);
}

/// Notes one that could not be started.
pub(super) fn remember_failed(id: SessionId, spec: &LaunchSpec, report: Report, cx: &mut Cx) {
    let started_at = report.started_at.clone().unwrap_or_default();
    let row = Row {
        session_id: id,
        name: spec.name.clone(),
        command: command_for_lists(&spec.command, LISTED_JOB_COMMAND_BYTES),
        cwd: cx.resolved_cwd(spec.workdir.as_deref()),
        pid: None,
        status: report.status,
        exit_code: report.exit_code,
        signal: None,
        killed_by: None,
        ended_at: Some(started_at.clone()),
        started_at,
        duration_ms: 0,
        output_bytes: 0,
        doing: None,
        listening: Vec::new(),
        stdin_mode: stdin_mode(spec.tty.is_some(), spec.stdin == Stdin::Null),
        stdin_open: false,
        log_path: None,
        log_from: None,
        ended_ns: Some(cx.now_ns),
    };
    let finished = Finished::new(row, report, None);
    keep(id, finished, cx);
}

fn keep(id: SessionId, finished: Finished, cx: &mut Cx) {
    expire(cx);
    let all = &mut cx.books.stream.finished;
    all.insert(id, finished, cx.now_ns, cx.config.stream.jobs_kept);
    let mut bytes: usize = all.values().map(Finished::bytes).sum();
    while bytes > FINISHED_JOBS_BYTES
        && let Some(oldest) = all.oldest(|one| !one.shrunk)
    {
        bytes -= oldest.bytes();
        oldest.shrink();
        bytes += oldest.bytes();
    }
}

/// What stdin is, in the words of bash_stream.
fn stdin_mode(tty: bool, null: bool) -> &'static str {
    match (tty, null) {
        (true, _) => "pty",
        (false, true) => "null",
        (false, false) => "pipe",
    }
}
