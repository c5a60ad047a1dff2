//! The books of sessions for the stream family: what runs, what has finished and is remembered.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{JobReport, end_word};
use crate::daemon::Daemon;
use crate::daemon::judge::status_fields;
use crate::daemon::pages::PageSource;
use crate::daemon::sessions::command_for_lists;
use crate::limits::{
    FINISHED_JOBS_BYTES, FINISHED_JOBS_MAX, FINISHED_STREAM_BYTES, LISTED_JOB_COMMAND_BYTES,
    NS_PER_MS,
};
use crate::pure::rfc3339::format_utc_ms;
use crate::session::output::Source;
use crate::session::{Listing, Session, SessionId};
use crate::wire::RpcError;

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
    pub pid: i32,
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

/// What is remembered of a session that has finished.
#[derive(Debug)]
pub struct Finished {
    row: JobRow,
    report: JobReport,
    /// The last bytes of its output and the first one's offset, where no log has them.
    kept: Option<(Vec<u8>, u64)>,
    /// The same of its streams, where they were apart.
    streams: Option<[(Vec<u8>, u64); 2]>,
    /// Since when it is remembered.
    since_ns: u64,
}

impl Finished {
    /// About how much memory it takes.
    fn bytes(&self) -> usize {
        let report = &self.report;
        let texts = [&report.stdout, &report.stderr, &report.aggregated];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        let kept = self.kept.iter().chain(self.streams.iter().flatten());
        texts + kept.map(|(bytes, _)| bytes.len()).sum::<usize>()
    }
}

/// The sessions that have finished, by id, while they are remembered.
#[derive(Debug, Default)]
pub struct FinishedJobs(BTreeMap<SessionId, Finished>);

impl FinishedJobs {
    fn insert(&mut self, id: SessionId, finished: Finished) {
        self.0.insert(id, finished);
        let mut bytes: usize = self.0.values().map(Finished::bytes).sum();
        while self.0.len() > FINISHED_JOBS_MAX || bytes > FINISHED_JOBS_BYTES {
            let oldest = self.0.iter().min_by_key(|(_, one)| one.since_ns).map(|(id, _)| *id);
            let Some(gone) = oldest.and_then(|oldest| self.0.remove(&oldest)) else { break };
            bytes -= gone.bytes();
        }
    }

    /// Forgets what is remembered since before `since_ns`.
    fn expire(&mut self, since_ns: u64) {
        self.0.retain(|_, one| one.since_ns >= since_ns);
    }
}

impl Daemon {
    pub(super) fn expire_jobs(&mut self) {
        let ttl_ns = self.config.stream.ttl_ms * NS_PER_MS;
        self.finished_jobs.expire(self.now_ns.saturating_sub(ttl_ns));
    }

    /// What is remembered of a session that has finished.
    pub fn finished_job(&mut self, id: SessionId) -> Option<JobReport> {
        self.expire_jobs();
        self.finished_jobs.0.get(&id).map(|finished| {
            let mut report = finished.report.clone();
            report.aggregated = report.aggregated.or_else(|| report.stdout.clone());
            report
        })
    }

    /// The rows of list_processes: running first, then what has ended, newest first.
    pub fn job_rows(&mut self) -> Vec<JobRow> {
        self.expire_jobs();
        let known = |one: &&Session| one.job.is_some() || one.listing == Listing::Listed;
        let live = self.sessions.values().filter(known).map(|session| self.job_row(session));
        let mut rows: Vec<JobRow> =
            live.filter(|row| !self.finished_jobs.0.contains_key(&row.session_id)).collect();
        rows.extend(self.finished_jobs.0.values().map(|finished| finished.row.clone()));
        rows.sort_by_key(|row| {
            let newest = u64::MAX - row.ended_ns.unwrap_or(0);
            (row.ended_ns.is_some(), newest, u64::MAX - row.session_id)
        });
        rows
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
            pid: session.facts.pid,
            status: if over { end_word(session.status(), timed_out) } else { "running" },
            exit_code,
            signal,
            started_at: format_utc_ms(session.facts.started_wall_ms),
            ended_at: over.then(|| format_utc_ms(wall(duration_ms))),
            duration_ms,
            output_bytes: session.output_bytes_total(),
            stdin_mode: if session.facts.tty { "pty" } else { "pipe" },
            stdin_open: !over && !session.input.is_closed() && !session.input.is_broken(),
            log_path: self.log_path(session.id),
            ended_ns,
        }
    }

    /// Where the output of a process is to be read from, and whether nothing more will come.
    pub fn page_source(
        &mut self,
        id: SessionId,
        source: Option<Source>,
    ) -> Result<(PageSource, bool), RpcError> {
        self.expire_jobs();
        let unknown = self.unknown_job(id);
        if let Some(finished) = self.finished_jobs.0.get(&id) {
            let kept = match (source, &finished.streams) {
                (Some(source), Some(streams)) => Some(&streams[source as usize]),
                (Some(Source::Errors), None) => return Ok((PageSource::Memory(vec![], 0), true)),
                _ => finished.kept.as_ref(),
            };
            let from = match (kept, &finished.row.log_path) {
                (Some((bytes, starts_at)), _) => PageSource::Memory(bytes.clone(), *starts_at),
                (None, Some(path)) => PageSource::Log(file_name(path)),
                (None, None) => PageSource::Memory(vec![], finished.row.output_bytes),
            };
            return Ok((from, true));
        }
        let log_path = self.log_path(id);
        let session = self.live_job(id).ok_or(unknown)?;
        let over = session.life.finished();
        let (bytes, starts_at) = match (&session.job, source) {
            (Some(job), Some(_)) => job.kept(source),
            (None, Some(Source::Errors)) => (vec![], 0),
            (Some(job), None) if log_path.is_none() => job.kept(None),
            (_, None) if log_path.is_some() => {
                return Ok((PageSource::Log(file_name(&log_path.unwrap_or_default())), over));
            }
            _ => (session.tail.to_vec(), session.tail.starts_at()),
        };
        Ok((PageSource::Memory(bytes, starts_at), over))
    }

    /// Notes a session that has finished, once: it can be asked for until its time is over.
    pub(in crate::daemon) fn remember_finished(&mut self, id: SessionId) {
        if self.finished_jobs.0.contains_key(&id) {
            return;
        }
        let Some(session) = self.sessions.get(&id) else { return };
        if session.finished_ns.is_none() || !session.announced {
            return;
        }
        let row = self.job_row(session);
        let kept = self.config.logs.off.then(|| match &session.job {
            Some(job) => job.kept(None),
            None => (session.tail.to_vec(), session.tail.starts_at()),
        });
        let streams = session.job.as_ref().map(|job| {
            [Source::Output, Source::Errors].map(|source| newest(job.kept(Some(source))))
        });
        let mut report = self.final_report(id);
        if streams.is_none() {
            // One stream: the merged text is the same again.
            report.aggregated = None;
        }
        for text in [&mut report.stdout, &mut report.stderr, &mut report.aggregated] {
            text.iter_mut().for_each(String::shrink_to_fit);
        }
        self.expire_jobs();
        let since_ns = self.now_ns;
        self.finished_jobs.insert(id, Finished { row, report, kept, streams, since_ns });
    }
}

/// The last of the bytes that are kept, with the first one's offset.
fn newest((mut bytes, starts_at): (Vec<u8>, u64)) -> (Vec<u8>, u64) {
    let dropped = bytes.len().saturating_sub(FINISHED_STREAM_BYTES);
    bytes.drain(..dropped);
    bytes.shrink_to_fit();
    (bytes, starts_at + dropped as u64)
}

/// The name of a log in its directory.
fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}
