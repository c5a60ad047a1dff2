//! The stream family's side of sessions (bash-stream.md): its replies, its notifications, and
//! the books of what has finished.

mod books;
mod chunks;
mod kept;

pub use books::{FinishedJobs, Forgotten, JobRow};
use serde::Serialize;
use serde_json::value::RawValue;

use super::Daemon;
use super::judge::status_fields;
use super::launch::LaunchSpec;
use super::logs::LogTrouble;
use crate::limits::{
    JOB_TAIL_BYTES, MAX_CONFIGURABLE_POLL_MS, NS_PER_MS, POST_EXIT_CLOSE_WAIT_MS, RUNNING_JOBS_MAX,
};
use crate::pure::process::life::ExitStatus;
use crate::pure::text::utf8::{ceil_boundary, continuation_len, incomplete_suffix_len, lossy};
use crate::pure::time::rfc3339::format_utc_ms;
use crate::session::ending::SIGKILL;
use crate::session::job::{Capped, Job, JobSpec, text_of};
use crate::session::output::Source;
use crate::session::view::View;
use crate::session::wait::{Wait, WaitKind, Why};
use crate::session::{Listing, Session, SessionId};
use crate::sys::clock;
use crate::wire::{Reason, RpcError};

/// As good as never: from a signal to a SIGKILL that nobody asked for.
const NO_ESCALATION_MS: u64 = MAX_CONFIGURABLE_POLL_MS;

/// A reply of the stream family about one session.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // docs/bash-stream.md describes each.
pub struct JobReport {
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregated: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub background_pids: Vec<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    #[serde(flatten)]
    pub log: LogTrouble,
    /// Characters left out of stdout, stderr and aggregated.
    #[serde(skip)]
    pub omitted_chars: [u64; 3],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct YieldNote<'a> {
    #[serde(rename = "request_id")]
    request_id: &'a RawValue,
    session_id: SessionId,
    pid: i32,
    started_at: String,
    last_output_tail: String,
}

/// The last output of a session as the running forms tell it: raw text.
fn short_tail(session: &Session) -> String {
    let (all, starts_at) = session.tail.last(JOB_TAIL_BYTES);
    let mut bytes = all.as_slice();
    if starts_at > 0 {
        // The end of a character that begins before the tail.
        bytes = &bytes[continuation_len(bytes)..];
    }
    // An unfinished one comes with the next call.
    let text = lossy(&bytes[..bytes.len() - incomplete_suffix_len(bytes)]);
    // What is no UTF-8 has become longer.
    text[ceil_boundary(&text, text.len().saturating_sub(JOB_TAIL_BYTES))..].to_owned()
}

impl Daemon {
    /// Makes a session that was just started a job, and enters it into the table at once.
    pub fn make_job(&mut self, id: SessionId, spec: JobSpec) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.view = View::new(spec.unified_bytes());
            session.job = Some(Box::new(Job::new(spec)));
            session.listing = Listing::Listed;
            self.use_counter += 1;
            session.last_used = self.use_counter;
        }
        self.announce(id);
    }

    /// Refuses one more job when as many run as may.
    pub fn room_for_job(&self) -> Result<(), RpcError> {
        // One whose background children hold its output still takes its place.
        let runs = |session: &&Session| session.job.is_some() && !session.life.finished();
        let running = self.sessions.values().filter(runs).count();
        if running < RUNNING_JOBS_MAX.min(self.config.max_running) {
            return Ok(());
        }
        let message = format!(
            "{running} processes of bash_stream run, as many as may at once: kill_process one, or \
             wait for one to end"
        );
        Err(RpcError::failed(Reason::TooManySessions, message))
    }

    /// The session of this id, where the stream family knows it and it has not finished; else the
    /// error of an id that it does not know.
    pub fn live_job(&mut self, id: SessionId) -> Result<&mut Session, RpcError> {
        self.use_counter += 1;
        let used = self.use_counter;
        let known = |one: &&mut Session| one.job.is_some() || one.listing == Listing::Listed;
        let session = self.sessions.get_mut(&id).filter(known).ok_or_else(|| {
            let message = format!("unknown sessionId: {id}");
            RpcError::failed(Reason::UnknownSession, message)
        })?;
        session.last_used = used;
        Ok(session)
    }

    /// Step of a session's judgement: a job whose time is over is ended.
    pub(super) fn step_job(&mut self, id: SessionId) {
        let now_ns = self.now_ns;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let (started_ns, status) = (session.facts.started_ns, session.status());
        let Some(job) = &mut session.job else { return };
        // A command whose shell has ended had its time: its background is kill_process's.
        let timeout_ms = job.spec.timeout_ms.filter(|_| status.is_none() && !job.timed_out);
        if timeout_ms.is_some_and(|ms| started_ns + ms * NS_PER_MS <= now_ns) {
            job.timed_out = true;
            self.begin_ending(id, SIGKILL, 0);
        }
    }

    /// Step of a session's judgement: polls that were to end it when their time is over do so, and
    /// go on as the wait of a kill. Their reader is not asked: an end has no room to wait for.
    /// Where the command has ended in time, who still holds its output is waited for no longer.
    pub(super) fn step_late_polls(&mut self, id: SessionId) {
        let now_ns = self.now_ns;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let runs = session.status().is_none();
        // What lies in the pipe when a command ends is read first, as for all who wait.
        let left_ns = session.reaped_ns.unwrap_or(0) + POST_EXIT_CLOSE_WAIT_MS * NS_PER_MS;
        let (mut kills, mut leaves) = (false, false);
        for wait in session.waits.iter_mut().filter(|wait| wait.kills_now(now_ns)) {
            if runs {
                (wait.kind, wait.due_ns) = (WaitKind::JobKill, None);
                kills = true;
            } else if now_ns < left_ns {
                wait.due_ns = Some(left_ns);
            } else {
                leaves = true;
            }
        }
        if leaves {
            session.leave_to_holders();
        }
        if kills {
            self.signal_job(id, SIGKILL);
        }
    }

    /// Why a wait of the stream family is over, where that is not as for the others.
    pub(super) fn job_verdict(&self, session: &Session, wait: &Wait) -> Option<Why> {
        let polls = matches!(wait.kind, WaitKind::JobPoll | WaitKind::JobEnd { .. });
        if !polls || wait.cancelled {
            return None;
        }
        if session.job_over(self.now_ns) {
            return Some(Why::Completed);
        }
        if wait.kind != WaitKind::JobPoll {
            return None;
        }
        let told = session.output_bytes_total() > session.stream_told.0;
        let news = session.job.as_ref().map_or(told, |job| job.has_news());
        news.then_some(Why::Deadline)
    }

    /// Sends a signal to all of a job. One other than SIGKILL is not followed by SIGKILL: whoever
    /// sends it decides what comes next.
    pub fn signal_job(&mut self, id: SessionId, signal: i32) {
        self.begin_ending(id, signal, NO_ESCALATION_MS);
    }

    /// Answers a wait of the stream family.
    pub(super) fn answer_job(&mut self, id: SessionId, wait: &mut Wait) {
        let over = self.sessions.get(&id).is_some_and(|session| session.job_over(self.now_ns));
        if over && wait.live.is_some() {
            self.send_rest(id, wait);
        }
        let Some(pending) = self.take_pending(wait.ticket) else { return };
        let mut report = match wait.kind {
            // What is remembered stays the answer, whoever was ended since.
            _ if over => self.finished_job(id).unwrap_or_else(|| self.final_report(id)),
            WaitKind::Stream => {
                if let Some(session) = self.sessions.get(&id)
                    && let Ok(request_id) = serde_json::from_str(pending.id.as_json())
                {
                    let note = YieldNote {
                        request_id,
                        session_id: id,
                        pid: session.facts.pid,
                        started_at: format_utc_ms(session.facts.started_wall_ms),
                        last_output_tail: short_tail(session),
                    };
                    self.clients.notify(pending.client, "tool_execution_progress", &note);
                }
                self.running_report(id)
            }
            _ => self.drained_report(id),
        };
        let dropped = wait.live.as_ref().map_or(0, |live| live.dropped_total);
        report.dropped_bytes = (dropped > 0).then_some(dropped);
        self.clients.reply(&pending, &report);
    }

    /// The running form: who runs, and the last of what it wrote.
    pub fn running_report(&self, id: SessionId) -> JobReport {
        let Some(session) = self.sessions.get(&id) else { return JobReport::default() };
        JobReport {
            status: "running",
            session_id: Some(id),
            pid: Some(session.facts.pid),
            started_at: Some(format_utc_ms(session.facts.started_wall_ms)),
            tail: Some(short_tail(session)),
            log_path: self.log_path(id),
            log: self.log_trouble(id, false),
            ..JobReport::default()
        }
    }

    /// The running form with what came since the last call; the final one where it is over.
    pub fn drained_report(&mut self, id: SessionId) -> JobReport {
        let now_ns = self.now_ns;
        if self.sessions.get(&id).is_some_and(|session| session.job_over(now_ns)) {
            return self.final_report(id);
        }
        let mut report = self.running_report(id);
        let log_path = self.log_shown(id);
        let max_chars = self.config.stream.max_chars;
        let Some(session) = self.sessions.get_mut(&id) else { return report };
        let (out, err) = match &mut session.job {
            Some(job) => (
                job.take(Source::Output, log_path.as_deref()),
                job.take(Source::Errors, log_path.as_deref()),
            ),
            None => (take_tail(session, max_chars, log_path.as_deref()), Capped::default()),
        };
        let cut = out.omitted_chars + err.omitted_chars > 0;
        report.truncated = cut.then_some(true);
        report.stdout = Some(out.text);
        report.stderr = Some(err.text);
        report.duration_ms = Some((now_ns - session.facts.started_ns) / NS_PER_MS);
        report
    }

    /// The final form: how it ended, and the tails of its whole life.
    pub fn final_report(&self, id: SessionId) -> JobReport {
        let Some(session) = self.sessions.get(&id) else { return JobReport::default() };
        let (log_path, shown) = (self.log_path(id), self.log_shown(id));
        let (log, over) = (shown.as_deref(), session.job_over(self.now_ns));
        let (out, err, all) = match &session.job {
            Some(job) => (
                job.life(Some(Source::Output), over, log),
                job.life(Some(Source::Errors), over, log),
                job.life(None, over, log),
            ),
            None => {
                let text = tail_capped(session, self.config.stream.max_chars, log);
                (text.clone(), Capped::default(), text)
            }
        };
        let omitted_chars = [&out, &err, &all].map(|text| text.omitted_chars);
        let cut = omitted_chars.iter().any(|chars| *chars > 0);
        let timed_out = session.job.as_ref().is_some_and(|job| job.timed_out);
        let (exit_code, signal) = status_fields(session.status());
        let ended_ns = session.reaped_ns.unwrap_or(self.now_ns);
        JobReport {
            status: end_word(session.status(), timed_out),
            session_id: Some(id),
            pid: Some(session.facts.pid),
            started_at: Some(format_utc_ms(session.facts.started_wall_ms)),
            exit_code,
            signal,
            timed_out: timed_out.then_some(true),
            stdout: Some(out.text),
            stderr: Some(err.text),
            aggregated: Some(all.text),
            duration_ms: Some((ended_ns - session.facts.started_ns) / NS_PER_MS),
            truncated: cut.then_some(true),
            background_pids: self.background_pids(session),
            late: session.has_late_output().then_some(true),
            note: self.note(id, true),
            error: session.start.failure().map(str::to_owned),
            log: self.log_trouble(id, session.life.finished()),
            log_path,
            omitted_chars,
            ..JobReport::default()
        }
    }

    /// Who may still hold the output of a session whose shell is gone.
    fn background_pids(&self, session: &Session) -> Vec<i32> {
        if !session.life.shell_gone() {
            return Vec::new();
        }
        self.holders(session).iter().map(|holder| holder.pid).collect()
    }

    /// What is wrong with a session's log; `over`: all of its output has come.
    pub fn log_trouble(&self, id: SessionId, over: bool) -> LogTrouble {
        self.log_status(id).map(|status| status.trouble(over)).unwrap_or_default()
    }

    /// No session that starts from now on has an id up to this one; gives the next that is free.
    pub fn reserve_session_ids(&mut self, up_to: SessionId) -> SessionId {
        self.next_session_id = self.next_session_id.max(up_to + 1);
        self.next_session_id
    }

    /// The final form of a command that could not be started. It has an id like any other and is
    /// remembered under it.
    pub fn failed_job(&mut self, spec: &LaunchSpec, failure: String) -> JobReport {
        let id = self.next_session_id;
        self.next_session_id += 1;
        let report = JobReport {
            status: "failed",
            session_id: Some(id),
            started_at: Some(format_utc_ms(clock::wall_ms())),
            exit_code: Some(-1),
            error: Some(failure),
            stdout: Some(String::new()),
            stderr: Some(String::new()),
            aggregated: Some(String::new()),
            duration_ms: Some(0),
            ..JobReport::default()
        };
        self.remember_failed(id, spec, report.clone());
        report
    }
}

fn end_word(status: Option<ExitStatus>, timed_out: bool) -> &'static str {
    if status == Some(ExitStatus::Code(0)) && !timed_out { "completed" } else { "failed" }
}

/// The clean text of the last output of a session that bash_stream did not start.
fn tail_capped(session: &Session, max_chars: usize, log_path: Option<&str>) -> Capped {
    let newest = (session.output_bytes_total(), session.output_chars());
    let last = session.life.finished();
    text_of(&session.tail.to_vec(), newest, max_chars, last, log_path)
}

/// The same of what no stream call has told.
fn take_tail(session: &mut Session, max_chars: usize, log_path: Option<&str>) -> Capped {
    let whole = (session.output_bytes_total(), session.output_chars());
    let told = std::mem::replace(&mut session.stream_told, whole);
    let newest = (whole.0 - told.0, whole.1 - told.1);
    text_of(&session.tail.to_vec(), newest, max_chars, false, log_path)
}
