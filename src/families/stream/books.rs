//! The books of sessions for the stream family: what runs, what has finished and is remembered.

use std::collections::BTreeMap;

use serde::Serialize;

use super::kept::{KeptBytes, ends_at, file_name, furthest, holds, stream_of};
use super::{JobReport, end_word};
use crate::engine::Daemon;
use crate::engine::judge::status_fields;
use crate::engine::launch::{LaunchSpec, Stdin};
use crate::engine::pages::{Found, PageSource, PageSpec};
use crate::engine::sessions::command_for_lists;
use crate::families::stream::job::{Job, capped};
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
pub struct JobRow {
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
    row: JobRow,
    /// Its final form, but for the text of both streams.
    report: JobReport,
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
    fn new(row: JobRow, mut report: JobReport, kept: Option<KeptBytes>, since_ns: u64) -> Self {
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
    fn keep_apart(&mut self, job: &Job) {
        let rings = [Source::Output, Source::Errors].map(|source| job.ring(source));
        let both = self.kept.as_ref().map_or(&[][..], |(bytes, _)| bytes);
        self.streams = match rings.map(TailRing::total_bytes) {
            [_, 0] => Streams::One(Source::Output),
            [0, _] => Streams::One(Source::Errors),
            // Without a log there is more of both in one than there is of each.
            _ if self.kept.is_some() => {
                let apart = job.arrival().apart(both);
                let ends = [0, 1].map(|at| {
                    let all = rings[at].last(usize::MAX);
                    if all.0.len() > apart[at].len() { all } else { (vec![], ends_at(&all)) }
                });
                Streams::Mixed(job.arrival().clone(), ends)
            }
            _ => {
                let most = FINISHED_JOB_BYTES.saturating_sub(self.bytes()) / 2;
                Streams::Apart(rings.map(|ring| ring.last(most)))
            }
        };
    }

    /// Its final form.
    fn report(&self) -> JobReport {
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

/// The sessions that have finished, by id, while they are remembered.
#[derive(Debug, Default)]
pub struct FinishedJobs {
    by_id: BTreeMap<SessionId, Finished>,
    /// How many are remembered no more.
    forgotten: u64,
}

impl FinishedJobs {
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

impl Daemon {
    pub(crate) fn expire_jobs(&mut self) {
        let ttl_ns = self.config.stream.ttl_ms * NS_PER_MS;
        self.finished_jobs.expire(self.now_ns.saturating_sub(ttl_ns));
    }

    /// What is remembered of a session that has finished.
    pub fn finished_job(&mut self, id: SessionId) -> Option<JobReport> {
        self.expire_jobs();
        self.finished_jobs.by_id.get(&id).map(Finished::report)
    }

    /// Whether a session has finished and is remembered.
    pub fn is_finished_job(&mut self, id: SessionId) -> bool {
        self.expire_jobs();
        self.finished_jobs.by_id.contains_key(&id)
    }

    /// The rows of list_processes: running first, then what has ended, newest first.
    pub fn job_rows(&mut self) -> Vec<JobRow> {
        self.expire_jobs();
        let known = |one: &&Session| one.job.is_some() || one.listing == Listing::Listed;
        let live = self.sessions.values().filter(known).map(|session| self.job_row(session));
        let mut rows: Vec<JobRow> =
            live.filter(|row| !self.finished_jobs.by_id.contains_key(&row.session_id)).collect();
        rows.extend(self.finished_jobs.by_id.values().map(|finished| finished.row.clone()));
        rows.sort_by_key(|row| {
            let newest = u64::MAX - row.ended_ns.unwrap_or(0);
            (row.ended_ns.is_some(), newest, u64::MAX - row.session_id)
        });
        rows
    }

    /// What list_processes says of those that are remembered no more, once there are any.
    pub fn forgotten_jobs(&self) -> Option<Forgotten> {
        let forgotten = self.finished_jobs.forgotten;
        let (kept_max, kept_ms) = (self.config.stream.jobs_kept, self.config.stream.ttl_ms);
        (forgotten > 0).then_some(Forgotten { forgotten, kept_max, kept_ms })
    }

    fn job_row(&self, session: &Session) -> JobRow {
        let over = session.job_over(self.now_ns);
        let (exit_code, signal) = status_fields(session.status().filter(|_| over));
        let timed_out = session.job.as_ref().is_some_and(|job| job.timed_out);
        let ended_ns = over.then(|| session.reaped_ns.unwrap_or(self.now_ns));
        let duration_ms = (ended_ns.unwrap_or(self.now_ns) - session.facts.started_ns) / NS_PER_MS;
        let wall = |ms: u64| session.facts.started_wall_ms + i64::try_from(ms).unwrap_or(0);
        JobRow {
            session_id: session.id,
            name: session.facts.name.clone(),
            command: command_for_lists(&session.facts.command, LISTED_JOB_COMMAND_BYTES),
            cwd: session.facts.cwd.clone(),
            pid: Some(session.facts.pid),
            status: if over { end_word(session.status(), timed_out) } else { "running" },
            exit_code,
            signal,
            started_at: format_utc_ms(session.facts.started_wall_ms),
            ended_at: over.then(|| format_utc_ms(wall(duration_ms))),
            duration_ms,
            output_bytes: session.output_bytes_total(),
            stdin_mode: stdin_mode(session.facts.tty, session.input.is_null()),
            stdin_open: !over && !session.input.is_closed() && !session.input.is_broken(),
            log_path: self.log_path(session.id),
            ended_ns,
        }
    }

    /// Where a page is to be read from: memory while it is there, else the log.
    pub fn find_page(&mut self, spec: &PageSpec) -> Result<Found, RpcError> {
        self.expire_jobs();
        let (id, source) = (spec.id, spec.source);
        if let Some(one) = self.finished_jobs.by_id.get(&id) {
            let (from, log) = (one.page(spec), one.report.log.clone());
            let late_from = one.left_at.map(|left| left.of(source));
            return Ok(Found { from, finished: true, late_from, log });
        }
        let log_path = self.log_path(id);
        let log = self.log_trouble(id, false);
        let session = self.live_job(id)?;
        let finished = session.life.finished();
        let late_from = session.left_at().map(|left| left.of(source));
        let wrote = |of: Source| session.job.as_ref().is_some_and(|job| job.has_written(of));
        // While only one of them has written, its pages are those of the whole.
        let whole = match source {
            None => true,
            Some(Source::Output) => !wrote(Source::Errors),
            Some(Source::Errors) => wrote(Source::Errors) && !wrote(Source::Output),
        };
        let only = source.filter(|_| !whole);
        let kept = match only {
            None => (session.tail.to_vec(), session.tail.starts_at()),
            Some(source) => stream_of(session, source, log_path.is_none()),
        };
        let from = match log_path {
            Some(path) if !holds(&kept, spec) => PageSource::Log(file_name(&path), only),
            _ => PageSource::Memory(kept.0, kept.1),
        };
        Ok(Found { from, finished, late_from, log })
    }

    /// What memory has of the stream that a page is asked of.
    pub fn stream_memory(&self, spec: &PageSpec) -> Option<KeptBytes> {
        let source = spec.source?;
        if let Some(one) = self.finished_jobs.by_id.get(&spec.id) {
            return one.stream(source);
        }
        self.sessions.get(&spec.id).map(|session| stream_of(session, source, false))
    }

    /// Notes a session that has finished, once: it can be asked for until its time is over.
    pub(crate) fn remember_finished(&mut self, id: SessionId) {
        if self.finished_jobs.by_id.contains_key(&id) {
            return;
        }
        let Some(session) = self.sessions.get(&id) else { return };
        if session.finished_ns.is_none() || !session.announced {
            return;
        }
        let row = self.job_row(session);
        let kept = self.config.logs.off.then(|| session.tail.last(usize::MAX));
        let mut finished = Finished::new(row, self.final_report(id), kept, self.now_ns);
        finished.left_at = session.left_at();
        if let Some(job) = &session.job {
            finished.keep_apart(job);
        }
        self.expire_jobs();
        self.finished_jobs.insert(id, finished, self.config.stream.jobs_kept);
    }

    /// Notes a job that could not be started.
    pub(crate) fn remember_failed(&mut self, id: SessionId, spec: &LaunchSpec, report: JobReport) {
        let started_at = report.started_at.clone().unwrap_or_default();
        let row = JobRow {
            session_id: id,
            name: spec.name.clone(),
            command: command_for_lists(&spec.command, LISTED_JOB_COMMAND_BYTES),
            cwd: self.resolved_cwd(spec.workdir.as_deref()),
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
            ended_ns: Some(self.now_ns),
        };
        self.expire_jobs();
        let finished = Finished::new(row, report, None, self.now_ns);
        self.finished_jobs.insert(id, finished, self.config.stream.jobs_kept);
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
