//! bash_stream and its tools: sessions whose output comes live, stdout and stderr
//! apart, and that are polled. Here are the reports that calls are answered with, and when their
//! waits are over; `books` has what is remembered of sessions that have ended.

pub mod asked;
pub mod bash_stream;
pub mod books;
pub mod chunks;
pub mod finished;
pub mod get_process_log;
pub mod job_input;
pub mod kept;
pub mod kill_process;
pub mod list_processes;
pub mod live;
pub(super) mod model;
pub mod output;
pub mod poll_process;

pub use books::{Books, kept_of};
pub use output::Stream;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Cx, Engine, Entry, Family, Method, unified};
use crate::limits::{NEVER_ESCALATES_MS, NS_PER_MS, RUNNING_JOBS_MAX};
use crate::pure::process::killed::KilledBy;
use crate::pure::process::life::ExitStatus;
use crate::pure::text::utf8::{ceil_boundary, continuation_len, incomplete_suffix_len, lossy};
use crate::pure::time::rfc3339::format_utc_ms;
use crate::server::engine::contract::Call;
use crate::server::engine::judge::status_fields;
use crate::server::engine::keeper_link::logs::LogTrouble;
use crate::server::engine::launch::LaunchSpec;
use crate::server::engine::sessions::past::PastSession;
use crate::server::session::asked::{Asked, Conditions};
use crate::server::session::ending::SIGKILL;
use crate::server::session::listening::Listening;
use crate::server::session::output::Source;
use crate::server::session::state_report::StateReportCamel;
use crate::server::session::view::Text;
use crate::server::session::wait::{Moment, Wait, WaitKind, Why};
use crate::server::session::wait_report::{self, WaitReportCamel};
use crate::server::session::{Listing, Session, SessionId};
use crate::sys::clock;
use crate::wire::{Reason, RpcError};
use output::{Capped, text_of};

/// The last output told by a call whose session goes on.
const JOB_TAIL_BYTES: usize = 2 * 1024;

/// The rows of the table of methods.
pub const METHODS: &[Method] = &[
    bash_stream::METHOD,
    poll_process::METHOD,
    kill_process::METHOD,
    list_processes::METHOD,
    get_process_log::METHOD,
];

/// A reply of the stream family about one session.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // What has no comment is as in other replies (docs/methods.md).
pub struct Report {
    /// `running`, `completed` (exit status 0) or `failed`.
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Clean text: since the last call while it runs, the end of all when it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Of an ended one: both, in the order of reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregated: Option<String>,
    /// Of a running one: its last 2 KiB of raw text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// Processes that hold the output of a shell that has exited.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub background_pids: Vec<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    /// Text of live chunks that was not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitReportCamel>,
    #[serde(flatten)]
    pub doing: Option<StateReportCamel>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listening: Vec<Listening>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    #[serde(flatten)]
    pub log: LogTrouble,
    /// Characters left out of stdout, stderr and aggregated.
    #[serde(skip)]
    pub omitted_chars: [u64; 3],
}

/// Right before a `bash_stream` answers that its command runs on.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct YieldNote<'a> {
    #[serde(rename = "request_id")]
    request_id: &'a RawValue,
    session_id: SessionId,
    pid: i32,
    started_at: String,
    /// The last 2 KiB of raw text.
    last_output_tail: String,
}

/// The last output of a session as the running forms tell it: raw text.
fn short_tail(core: &Session) -> String {
    let (all, starts_at) = core.tail.last(JOB_TAIL_BYTES);
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

impl Family for Stream {
    type Books = Books;

    fn take(
        own: Option<&mut Self>,
        core: &mut Session,
        (source, length): (Source, usize),
        cx: &mut Cx,
    ) {
        if let Some(own) = own {
            own.push(source, &cx.reading.buffer[..length]);
            own.send_chunks(core.id, source, length, cx);
        }
    }

    fn due_ns(&self, core: &Session) -> Option<u64> {
        let timeout_ms = self.spec.timeout_ms.filter(|_| !self.timed_out)?;
        core.status().is_none().then(|| core.facts.started_ns + timeout_ms * NS_PER_MS)
    }

    /// A session whose time is over is ended. One whose shell has ended had its time: its
    /// background is kill_process's.
    fn step(own: Option<&mut Self>, core: &mut Session, cx: &mut Cx) {
        if let Some(own) = own
            && own.due_ns(core).is_some_and(|at| at <= cx.now_ns)
        {
            own.timed_out = true;
            cx.begin_ending(core, SIGKILL, 0, KilledBy::Timeout.into());
        }
    }

    fn verdict(
        own: Option<&Self>,
        core: &Session,
        wait: &Wait,
        at: &Moment,
        cx: &Cx,
    ) -> Option<Why> {
        let polls = matches!(wait.kind, WaitKind::Poll | WaitKind::End { .. });
        // Who says what they wait for is not answered by less.
        if polls && !wait.cancelled && wait.asked.is_none() {
            if core.is_over(at.now_ns) {
                return Some(Why::Completed);
            }
            let told = || core.output_bytes_total() > cx.books.stream.told(core.id).0;
            if wait.kind == WaitKind::Poll && own.map_or_else(told, Self::has_news) {
                return Some(Why::Deadline);
            }
        }
        core.verdict(wait, at)
    }

    fn answer(
        mut own: Option<&mut Self>,
        core: &mut Session,
        wait: Wait,
        why: Why,
        cx: &mut Cx,
    ) -> bool {
        let over = core.is_over(cx.now_ns);
        let end = core.life.finished() && core.wake.is_none();
        // The reply tells the end also where its background goes on.
        core.observed |= own.is_some() && core.wake.is_none() && over;
        let mut live = own.as_mut().and_then(|own| own.take_live(wait.ticket));
        if let Some(live) = live.as_mut().filter(|_| over) {
            chunks::send_rest(live, core.id, cx);
        }
        let Some(pending) = cx.take_pending(wait.ticket) else { return false };
        // The three texts are made anew for each answer.
        cx.text_bytes += own.as_ref().map_or(0, |own| 3 * own.spec.max_chars);
        let mut report = match wait.kind {
            // What is remembered stays the answer, whoever was ended since.
            _ if over => books::finished(core.id, cx)
                .unwrap_or_else(|| final_report(own.as_deref(), core, cx)),
            WaitKind::Start => {
                if let Ok(request_id) = serde_json::from_str(pending.id.as_json()) {
                    let note = YieldNote {
                        request_id,
                        session_id: core.id,
                        pid: core.facts.pid,
                        started_at: format_utc_ms(core.facts.started_wall_ms),
                        last_output_tail: short_tail(core),
                    };
                    cx.clients.notify(pending.client, "tool_execution_progress", &note);
                }
                running_report(core, cx)
            }
            _ => drained_report(own, core, cx),
        };
        cx.tell_own_to(pending.client, core.id, over);
        let dropped = live.map_or(0, |live| live.chunks.dropped_total);
        report.dropped_bytes = (dropped > 0).then_some(dropped);
        report.wait = wait_report::report(&wait, why, core).map(WaitReportCamel::from);
        // Where nobody waits for input, none helps.
        let stuck = report.wait.as_ref().filter(|wait| wait.state.is_some());
        let stuck = stuck.and_then(|wait| Some((wait.why.as_deref()?, wait.state)));
        if let Some((why, state)) = stuck.filter(|_| !over && why == Why::Impossible) {
            report.note = Some(asked::what_to_do(core, why, state));
        }
        report.note = report.note.or_else(|| wait.held_port_note());
        cx.clients.reply(&pending, &report);
        end
    }

    fn asked(&self, core: &Session, conditions: Conditions, cx: &Cx) -> Option<Box<Asked>> {
        asked::of_untold(Some(self), core, conditions, cx)
    }

    fn tell(&mut self, core: &mut Session, most: usize, cx: &mut Cx) -> Text {
        cx.text_bytes += 3 * self.spec.max_chars;
        let (log, over) = (cx.log_shown(core), core.is_over(cx.now_ns));
        let max_chars = self.spec.max_chars.min(most);
        let text = self.take_both(max_chars, over, log.as_deref());
        Text { output: text.text, ..Text::default() }
    }

    fn remember(own: Option<&mut Self>, core: &mut Session, family: &'static str, cx: &mut Cx) {
        books::remember(own.as_deref(), core, family, cx);
    }
}

/// Refuses one more session when as many run as may.
fn room_for_one(engine: &Engine) -> Result<(), RpcError> {
    // One whose background children hold its output still takes its place.
    let running = engine.sessions.running(|family| family.stream().is_some());
    if running < RUNNING_JOBS_MAX.min(engine.cx.config.max_running) {
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
fn live_session(engine: &mut Engine, id: SessionId) -> Result<&mut Entry, RpcError> {
    let sessions = &mut engine.sessions;
    let used = sessions.next_use();
    let known =
        |one: &&mut Entry| one.family.stream().is_some() || one.core.listing == Listing::Listed;
    let entry = sessions.get_mut(id).filter(known).ok_or_else(|| {
        let message = format!("unknown sessionId: {id}");
        RpcError::failed(Reason::UnknownSession, message)
    })?;
    entry.core.last_used = used;
    Ok(entry)
}

/// Sends a signal to all of a session. One other than SIGKILL is not followed by SIGKILL: whoever
/// sends it decides what comes next.
fn signal_all(engine: &mut Engine, call: &Call<'_>, id: SessionId, signal: i32) {
    if let Some(entry) = engine.sessions.get_mut(id) {
        let by = call.by(KilledBy::KillProcess);
        engine.cx.begin_ending(&mut entry.core, signal, NEVER_ESCALATES_MS, by);
    }
}

/// The running form: who runs, and the last of what it wrote.
fn running_report(core: &mut Session, cx: &mut Cx) -> Report {
    Report {
        status: "running",
        doing: Some(StateReportCamel::from(&cx.doing(core))),
        listening: cx.listening(core),
        session_id: Some(core.id),
        name: core.facts.name.clone(),
        pid: Some(core.facts.pid),
        started_at: Some(format_utc_ms(core.facts.started_wall_ms)),
        tail: Some(short_tail(core)),
        log_path: cx.log_path(core.id),
        log: cx.log_trouble(core, false),
        ..Report::default()
    }
}

/// The running form with what came since the last call; the final one where it is over.
fn drained_report(own: Option<&mut Stream>, core: &mut Session, cx: &mut Cx) -> Report {
    if core.is_over(cx.now_ns) {
        return final_report(own.as_deref(), core, cx);
    }
    let report = running_report(core, cx);
    let shown = cx.log_shown(core);
    let log = shown.as_deref();
    let (out, err) = match own {
        Some(own) => (own.take(Source::Output, log), own.take(Source::Errors, log)),
        None => (take_tail(core, log, cx), Capped::default()),
    };
    let cut = out.omitted_chars + err.omitted_chars > 0;
    Report {
        truncated: cut.then_some(true),
        stdout: Some(out.text),
        stderr: Some(err.text),
        duration_ms: Some((cx.now_ns - core.facts.started_ns) / NS_PER_MS),
        ..report
    }
}

/// The final form: how it ended, and the tails of its whole life.
fn final_report(own: Option<&Stream>, core: &Session, cx: &Cx) -> Report {
    let (log_path, shown) = (cx.log_path(core.id), cx.log_shown(core));
    let (log, over) = (shown.as_deref(), core.is_over(cx.now_ns));
    let (out, err, all) = match own {
        Some(own) => {
            let [out, err, all] = [Some(Source::Output), Some(Source::Errors), None]
                .map(|source| own.life(source, over, log));
            (out, err, all)
        }
        None => {
            let text = tail_capped(core, cx.config.stream.max_chars, log);
            (text.clone(), Capped::default(), text)
        }
    };
    let omitted_chars = [&out, &err, &all].map(|text| text.omitted_chars);
    let cut = omitted_chars.iter().any(|chars| *chars > 0);
    let timed_out = own.is_some_and(|own| own.timed_out);
    let (exit_code, signal) = status_fields(core.status());
    let ended_ns = core.reaped_ns.unwrap_or(cx.now_ns);
    let error = core.start.failure();
    let trouble = |_: &&str| LogTrouble::default();
    Report {
        status: end_word(core.status(), timed_out),
        session_id: Some(core.id),
        name: core.facts.name.clone(),
        pid: error.is_none().then_some(core.facts.pid),
        started_at: Some(format_utc_ms(core.facts.started_wall_ms)),
        exit_code,
        signal,
        killed_by: core.killed_by(),
        timed_out: timed_out.then_some(true),
        stdout: Some(out.text),
        stderr: Some(err.text),
        aggregated: Some(all.text),
        duration_ms: Some(books::duration_ms(core, ended_ns)),
        truncated: cut.then_some(true),
        background_pids: background_pids(core, cx),
        late: core.has_late_output().then_some(true),
        note: unified::note(core, true, cx),
        error: error.map(str::to_owned),
        // The error tells what is wrong.
        log: error.as_ref().map_or_else(|| cx.log_trouble(core, core.life.finished()), trouble),
        log_path,
        omitted_chars,
        ..Report::default()
    }
}

/// Who may still hold the output of a session whose shell is gone.
fn background_pids(core: &Session, cx: &Cx) -> Vec<i32> {
    let gone = core.life.shell_gone();
    let holders = if gone { cx.holders(core) } else { Vec::new() };
    holders.iter().map(|holder| holder.pid).collect()
}

/// The final form of a command that could not be started. It has an id like any other and is
/// remembered under it.
fn failed(engine: &mut Engine, spec: &LaunchSpec, failure: String) -> Report {
    let id = engine.sessions.next_id;
    engine.sessions.next_id += 1;
    let report = Report {
        status: "failed",
        session_id: Some(id),
        started_at: Some(format_utc_ms(clock::wall_ms())),
        exit_code: Some(-1),
        error: Some(failure),
        stdout: Some(String::new()),
        stderr: Some(String::new()),
        aggregated: Some(String::new()),
        duration_ms: Some(0),
        ..Report::default()
    };
    engine.sessions.past.note(PastSession::failed(id, "stream", clock::wall_ms()));
    books::remember_failed(id, spec, report.clone(), &mut engine.cx);
    report
}

fn end_word(status: Option<ExitStatus>, timed_out: bool) -> &'static str {
    if status == Some(ExitStatus::Code(0)) && !timed_out { "completed" } else { "failed" }
}

/// The clean text of the last output of a session that bash_stream did not start.
fn tail_capped(core: &Session, max_chars: usize, log_path: Option<&str>) -> Capped {
    let newest = (core.output_bytes_total(), core.output_chars());
    let last = core.life.finished();
    text_of(&core.tail.to_vec(), newest, max_chars, last, log_path)
}

/// The same of what no stream call has told.
fn take_tail(core: &Session, log_path: Option<&str>, cx: &mut Cx) -> Capped {
    let whole = (core.output_bytes_total(), core.output_chars());
    let max_chars = cx.config.stream.max_chars;
    let told = cx.books.stream.tell(core.id, whole);
    let newest = (whole.0 - told.0, whole.1 - told.1);
    text_of(&core.tail.to_vec(), newest, max_chars, false, log_path)
}
