//! The books of sessions for the stream family: what runs, what has finished and is remembered.

use std::collections::BTreeMap;

use serde::Serialize;

use super::kept::{ends_at, file_name, furthest, holds, stream_of};
use super::output::{Stream, capped};
use super::{Report, end_word, final_report};
use crate::engine::judge::status_fields;
use crate::engine::launch::{LaunchSpec, Stdin};
use crate::engine::notices::command_for_lists;
use crate::engine::pages::{Found, KeptBytes, PageSource, PageSpec};
use crate::families::{Cx, Engine, Entry};
use crate::limits::{
    FINISHED_JOB_BYTES, FINISHED_JOBS_BYTES, LISTED_JOB_COMMAND_BYTES, NS_PER_MS, SHRUNK_JOB_CHARS,
    STREAM_TAIL_BYTES,
};
use crate::pure::buffer::arrival::Arrival;
use crate::pure::buffer::head_tail::TailRing;
use crate::pure::text::interleave::Interleaving;
use crate::pure::time::rfc3339::format_utc_ms;
use crate::session::drain::Came;
use crate::session::output::Source;
use crate::session::{Listing, Session, SessionId};
use crate::wire::RpcError;

/// About what the texts of a row take besides its command and directory.
const ROW_TEXTS_BYTES: usize = 256;

/// One row of list_processes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // bash-stream.md describes each.
pub struct Row {
    pub session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub command: String,
    pub cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    pub started_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    pub duration_ms: u64,
    pub output_bytes: u64,
    pub stdin_mode: &'static str,
    pub stdin_open: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    #[serde(skip)]
    ended_ns: Option<u64>,
}

/// How many processes that have ended are remembered no more, and what bounds the memory of them.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forgotten {
    /// So many since execd has started.
    pub forgotten: u64,
    /// The most that are remembered.
    pub kept_max: usize,
    /// How long one is remembered.
    pub kept_ms: u64,
}

/// The text of both streams in order of arrival.
#[derive(Debug)]
enum Whole {
    /// It is that of this one, for the other wrote nothing.
    Same(Source),
    /// It is made of both.
    Mixed(Interleaving),
}

/// The streams of a session that has finished, for pages of one of them.
#[derive(Debug)]
enum Streams {
    /// Only this one wrote: its pages are those of the whole.
    One(Source),
    /// The ends of both.
    Apart([KeptBytes; 2]),
    /// Both in one, with the order in which they came; and the end of each where that reaches
    /// further back.
    Mixed(Arrival, [KeptBytes; 2]),
}

/// What is remembered of a session that has finished.
#[derive(Debug)]
struct Finished {
    row: Row,
    /// Its final form, but for the text of both streams.
    report: Report,
    whole: Whole,
    /// The last bytes of its output, where no log has them.
    kept: Option<KeptBytes>,
    streams: Streams,
    /// What had come when its output was left to others.
    left_at: Option<Came>,
    /// Since when it is remembered.
    since_ns: u64,
    /// Its texts were cut to make room for others.
    shrunk: bool,
}

impl Finished {
    /// `kept`: the last bytes of its output, where no log has them.
    fn new(row: Row, mut report: Report, kept: Option<KeptBytes>, since_ns: u64) -> Self {
        let texts = (report.stdout.as_deref(), report.stderr.as_deref());
        let (out, err) = (texts.0.unwrap_or_default(), texts.1.unwrap_or_default());
        let whole = match report.aggregated.take() {
            Some(whole) if whole != out && whole == err => Whole::Same(Source::Errors),
            Some(whole) if whole != out => Whole::Mixed(Interleaving::new(&whole, out, err)),
            _ => Whole::Same(Source::Output),
        };
        for text in [&mut report.stdout, &mut report.stderr] {
            text.iter_mut().for_each(String::shrink_to_fit);
        }
        let streams = Streams::One(Source::Output);
        Self { row, report, whole, kept, streams, left_at: None, since_ns, shrunk: false }
    }

    /// Cuts its texts to their ends: how it ended is told on, and where its log is.
    fn shrink(&mut self) {
        let mut report = self.report();
        let log_path = report.log_path.clone();
        let mut cut = false;
        let texts = [&mut report.stdout, &mut report.stderr, &mut report.aggregated];
        for (text, omitted_chars) in texts.into_iter().zip(&mut report.omitted_chars) {
            let Some(whole) = text.take() else { continue };
            let shown = match whole.split_once('\n').filter(|_| *omitted_chars > 0) {
                Some((_, shown)) => shown.to_owned(),
                None => whole,
            };
            let end = capped(shown, *omitted_chars, SHRUNK_JOB_CHARS, log_path.as_deref());
            cut |= end.omitted_chars > 0;
            (*text, *omitted_chars) = (Some(end.text), end.omitted_chars);
        }
        report.truncated = cut.then_some(true);
        let kept = self.kept.take().map(|(bytes, starts_at)| {
            let dropped = bytes.len().saturating_sub(STREAM_TAIL_BYTES);
            (bytes[dropped..].to_vec(), starts_at + dropped as u64)
        });
        let mut shrunk = Self::new(self.row.clone(), report, kept, self.since_ns);
        shrunk.shrunk = true;
        shrunk.left_at = self.left_at;
        shrunk.streams = match &self.streams {
            Streams::Apart(ends) => {
                let end = |(bytes, starts_at): &KeptBytes| (vec![], starts_at + bytes.len() as u64);
                Streams::Apart([end(&ends[0]), end(&ends[1])])
            }
            Streams::Mixed(order, ends) => {
                let end = |kept: &KeptBytes| (vec![], ends_at(kept));
                Streams::Mixed(order.clone(), [end(&ends[0]), end(&ends[1])])
            }
            Streams::One(only) => Streams::One(*only),
        };
        *self = shrunk;
    }

    /// Remembers the ends of both streams, as far as there is room.
    fn keep_apart(&mut self, own: &Stream) {
        let rings = [Source::Output, Source::Errors].map(|source| own.ring(source));
        let both = self.kept.as_ref().map_or(&[][..], |(bytes, _)| bytes);
        self.streams = match rings.map(TailRing::total_bytes) {
            [_, 0] => Streams::One(Source::Output),
            [0, _] => Streams::One(Source::Errors),
            // Without a log there is more of both in one than there is of each.
            _ if self.kept.is_some() => {
                let apart = own.arrival().apart(both);
                let ends = [0, 1].map(|at| {
                    let all = rings[at].last(usize::MAX);
                    if all.0.len() > apart[at].len() { all } else { (vec![], ends_at(&all)) }
                });
                Streams::Mixed(own.arrival().clone(), ends)
            }
            _ => {
                let most = FINISHED_JOB_BYTES.saturating_sub(self.bytes()) / 2;
                Streams::Apart(rings.map(|ring| ring.last(most)))
            }
        };
    }

    /// Its final form.
    fn report(&self) -> Report {
        let mut report = self.report.clone();
        let (out, err) = (report.stdout.as_deref(), report.stderr.as_deref());
        report.aggregated = match &self.whole {
            Whole::Same(Source::Output) => out.map(str::to_owned),
            Whole::Same(Source::Errors) => err.map(str::to_owned),
            Whole::Mixed(order) => {
                Some(order.text(out.unwrap_or_default(), err.unwrap_or_default()))
            }
        };
        report
    }

    /// What memory has of one stream, where both have written.
    fn stream(&self, source: Source) -> Option<KeptBytes> {
        match &self.streams {
            Streams::One(_) => None,
            Streams::Apart(ends) => Some(ends[source as usize].clone()),
            Streams::Mixed(order, ends) => {
                let both = self.kept.as_ref().map_or(&[][..], |(bytes, _)| bytes);
                Some(furthest(ends[source as usize].clone(), order, both, source))
            }
        }
    }

    /// Where a page comes from.
    fn page(&self, spec: &PageSpec) -> PageSource {
        if let Some((source, kept)) = spec.source.and_then(|one| Some((one, self.stream(one)?))) {
            return match &self.row.log_path {
                Some(path) if !holds(&kept, spec) => PageSource::Log(file_name(path), Some(source)),
                _ => PageSource::Memory(kept.0, kept.1),
            };
        }
        match (spec.source, &self.streams) {
            (Some(source), Streams::One(only)) if source != *only => PageSource::Memory(vec![], 0),
            _ => match (&self.kept, &self.row.log_path) {
                (Some((bytes, starts_at)), _) => PageSource::Memory(bytes.clone(), *starts_at),
                (None, Some(path)) => PageSource::Log(file_name(path), None),
                (None, None) => PageSource::Memory(vec![], self.row.output_bytes),
            },
        }
    }

    /// About how much memory it takes.
    fn bytes(&self) -> usize {
        let texts = [&self.report.stdout, &self.report.stderr].into_iter().flatten();
        let order = match &self.whole {
            Whole::Mixed(order) => order.heap_bytes(),
            Whole::Same(_) => 0,
        };
        let ends = match &self.streams {
            Streams::Apart(ends) => ends.iter().map(|(bytes, _)| bytes.len()).sum(),
            Streams::Mixed(order, [out, err]) => order.heap_bytes() + out.0.len() + err.0.len(),
            Streams::One(_) => 0,
        };
        let kept = self.kept.as_ref().map_or(0, |(bytes, _)| bytes.len());
        // The row's texts stand in the report once more, but for the command.
        let row = self.row.command.len() + 2 * (self.row.cwd.len() + ROW_TEXTS_BYTES);
        texts.map(String::len).sum::<usize>() + order + ends + kept + row
    }
}

/// What the stream family remembers: the sessions that have finished, by id, while their time to
/// live lasts.
#[derive(Debug, Default)]
pub struct Books {
    by_id: BTreeMap<SessionId, Finished>,
    /// How many are remembered no more.
    forgotten: u64,
    /// How far stream calls have told the output of sessions that others started.
    told: BTreeMap<SessionId, (u64, u64)>,
}

impl Books {
    fn insert(&mut self, id: SessionId, finished: Finished, most: usize) {
        self.by_id.insert(id, finished);
        while self.by_id.len() > most {
            let oldest = self.by_id.iter().min_by_key(|(_, one)| one.since_ns).map(|(id, _)| *id);
            let Some(_) = oldest.and_then(|oldest| self.by_id.remove(&oldest)) else { break };
            self.forgotten += 1;
        }
        let mut bytes: usize = self.by_id.values().map(Finished::bytes).sum();
        while bytes > FINISHED_JOBS_BYTES {
            let whole = self.by_id.values_mut().filter(|one| !one.shrunk);
            let Some(oldest) = whole.min_by_key(|one| one.since_ns) else { break };
            bytes -= oldest.bytes();
            oldest.shrink();
            bytes += oldest.bytes();
        }
    }

    /// Forgets what is remembered since before `since_ns`.
    fn expire(&mut self, since_ns: u64) {
        let before = self.by_id.len();
        self.by_id.retain(|_, one| one.since_ns >= since_ns);
        self.forgotten += (before - self.by_id.len()) as u64;
    }
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
        self.by_id.contains_key(&id)
    }
}

fn expire(cx: &mut Cx) {
    let ttl_ns = cx.config.stream.ttl_ms * NS_PER_MS;
    cx.books.stream.expire(cx.now_ns.saturating_sub(ttl_ns));
}

/// What is remembered of a session that has finished.
pub(super) fn finished(id: SessionId, cx: &mut Cx) -> Option<Report> {
    expire(cx);
    cx.books.stream.by_id.get(&id).map(Finished::report)
}

/// Whether a session has finished and is remembered.
pub(super) fn is_finished(id: SessionId, cx: &mut Cx) -> bool {
    expire(cx);
    cx.books.stream.has(id)
}

/// The rows of list_processes: running first, then what has ended, newest first.
pub(super) fn rows(engine: &mut Engine) -> Vec<Row> {
    expire(&mut engine.cx);
    let (cx, books) = (&engine.cx, &engine.cx.books.stream);
    let known = |one: &&Entry| one.family.stream().is_some() || one.core.listing == Listing::Listed;
    let live = engine.sessions.iter().filter(known).filter(|one| !books.has(one.core.id));
    let mut rows: Vec<Row> = live.map(|one| row(one.family.stream(), &one.core, cx)).collect();
    rows.extend(books.by_id.values().map(|finished| finished.row.clone()));
    rows.sort_by_key(|row| {
        let newest = u64::MAX - row.ended_ns.unwrap_or(0);
        (row.ended_ns.is_some(), newest, u64::MAX - row.session_id)
    });
    rows
}

/// What list_processes says of those that are remembered no more, once there are any.
pub(super) fn forgotten(cx: &Cx) -> Option<Forgotten> {
    let forgotten = cx.books.stream.forgotten;
    let (kept_max, kept_ms) = (cx.config.stream.jobs_kept, cx.config.stream.ttl_ms);
    (forgotten > 0).then_some(Forgotten { forgotten, kept_max, kept_ms })
}

fn row(own: Option<&Stream>, core: &Session, cx: &Cx) -> Row {
    let over = core.is_over(cx.now_ns);
    let (exit_code, signal) = status_fields(core.status().filter(|_| over));
    let timed_out = own.is_some_and(|own| own.timed_out);
    let ended_ns = over.then(|| core.reaped_ns.unwrap_or(cx.now_ns));
    let duration_ms = (ended_ns.unwrap_or(cx.now_ns) - core.facts.started_ns) / NS_PER_MS;
    let wall = |ms: u64| core.facts.started_wall_ms + i64::try_from(ms).unwrap_or(0);
    Row {
        session_id: core.id,
        name: core.facts.name.clone(),
        command: command_for_lists(&core.facts.command, LISTED_JOB_COMMAND_BYTES),
        cwd: core.facts.cwd.clone(),
        pid: Some(core.facts.pid),
        status: if over { end_word(core.status(), timed_out) } else { "running" },
        exit_code,
        signal,
        started_at: format_utc_ms(core.facts.started_wall_ms),
        ended_at: over.then(|| format_utc_ms(wall(duration_ms))),
        duration_ms,
        output_bytes: core.output_bytes_total(),
        stdin_mode: stdin_mode(core.facts.tty, core.input.is_null()),
        stdin_open: !over && !core.input.is_closed() && !core.input.is_broken(),
        log_path: cx.log_path(core.id),
        ended_ns,
    }
}

/// Where a page is to be read from: memory while it is there, else the log.
pub(super) fn find_page(engine: &mut Engine, spec: &PageSpec) -> Result<Found, RpcError> {
    expire(&mut engine.cx);
    let (id, source) = (spec.id, spec.source);
    if let Some(one) = engine.cx.books.stream.by_id.get(&id) {
        let (from, log) = (one.page(spec), one.report.log.clone());
        let late_from = one.left_at.map(|left| left.of(source));
        return Ok(Found { from, finished: true, late_from, log });
    }
    super::live_session(engine, id)?;
    let Some(Entry { core, family }) = engine.sessions.get(id) else {
        return Err(engine.sessions.unknown_session(id));
    };
    let (own, log_path) = (family.stream(), engine.cx.log_path(id));
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
        Some(source) => stream_of(own, core, source, log_path.is_none()),
    };
    let from = match log_path {
        Some(path) if !holds(&kept, spec) => PageSource::Log(file_name(&path), only),
        _ => PageSource::Memory(kept.0, kept.1),
    };
    let log = engine.cx.log_trouble(core, false);
    Ok(Found { from, finished: core.life.finished(), late_from, log })
}

/// What memory has of the stream that a page is asked of.
pub fn kept_of(
    live: Option<(Option<&Stream>, &Session)>,
    spec: &PageSpec,
    books: &super::super::Books,
) -> Option<KeptBytes> {
    let source = spec.source?;
    if let Some(one) = books.stream.by_id.get(&spec.id) {
        return one.stream(source);
    }
    live.map(|(own, core)| stream_of(own, core, source, false))
}

/// Notes a session that has finished, once: it can be asked for until its time is over.
pub(super) fn remember(own: Option<&Stream>, core: &Session, cx: &mut Cx) {
    cx.books.stream.told.remove(&core.id);
    if cx.books.stream.has(core.id) || core.finished_ns.is_none() || !core.announced {
        return;
    }
    let row = row(own, core, cx);
    let kept = cx.config.logs.off.then(|| core.tail.last(usize::MAX));
    let report = final_report(own, core, cx);
    let mut finished = Finished::new(row, report, kept, cx.now_ns);
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
        ended_at: Some(started_at.clone()),
        started_at,
        duration_ms: 0,
        output_bytes: 0,
        stdin_mode: stdin_mode(spec.tty.is_some(), spec.stdin == Stdin::Null),
        stdin_open: false,
        log_path: None,
        ended_ns: Some(cx.now_ns),
    };
    let finished = Finished::new(row, report, None, cx.now_ns);
    keep(id, finished, cx);
}

fn keep(id: SessionId, finished: Finished, cx: &mut Cx) {
    expire(cx);
    cx.books.stream.insert(id, finished, cx.config.stream.jobs_kept);
}

/// What stdin is, in the words of bash_stream.
fn stdin_mode(tty: bool, null: bool) -> &'static str {
    match (tty, null) {
        (true, _) => "pty",
        (false, true) => "null",
        (false, false) => "pipe",
    }
}
