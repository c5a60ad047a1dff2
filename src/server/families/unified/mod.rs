//! unified-exec: sessions that a call starts, feeds, polls and ends. Here are the
//! reports that its calls are answered with; each method has a file of its own. The table that its
//! sessions stand in, and who is evicted from it, is the engine's.

pub mod ended;
pub mod exec_command;
pub mod kill_session;
pub mod list_sessions;
pub(super) mod model;
pub mod resize_session;
pub mod set_on_exit;
pub mod write_stdin;

use std::cmp::Ordering;

use super::{Cx, Family, Method};
use crate::limits::{MAX_CONFIGURABLE_POLL_MS, MIN_EMPTY_YIELD_TIME_MS, NS_PER_MS};
use crate::pure::ledger::Event;
use crate::pure::process::doing::Input;
use crate::pure::process::life::ExitStatus;
use crate::pure::process::signal_names::signal_name;
use crate::pure::text::visible::{self, one_line};
use crate::pure::time::rfc3339::format_utc_ms;
use crate::server::engine::clients::STDIN_CLIENT;
use crate::server::engine::judge::status_fields;
use crate::server::engine::keeper_link::logs::LogStatus;
use crate::server::engine::ledger;
use crate::server::session::ending::{Ending, SIGKILL};
use crate::server::session::report::{ExecReport, HeaderStyle, KillReport, TruncationReport};
use crate::server::session::state_report::StateReport;
use crate::server::session::view::{Text, seconds};
use crate::server::session::wait::{Wait, WaitKind, Why};
use crate::server::session::wait_report;
use crate::server::session::{ClientId, Session};
use crate::sys::clock;
use crate::wire::Int;

/// The rows of the table of methods.
pub const METHODS: &[Method] = &[
    exec_command::METHOD,
    write_stdin::METHOD,
    kill_session::METHOD,
    list_sessions::METHOD,
    set_on_exit::METHOD,
    resize_session::METHOD,
];

/// What the reply says when the child closed its stdin.
pub const STDIN_LOST: &str =
    "stdin write failed: the child closed its stdin; bytes were not delivered";

/// What `until` is, in the table of params.
pub(super) const UNTIL_DOC: &str =
    "ends the wait when any of its fields comes true: outcome \"matched\"";
/// What `stop` is.
pub(super) const STOP_DOC: &str =
    "the same fields as until, for what marks a failure: outcome \"stopped\"";
/// What `on_impossible` is.
pub(super) const ON_IMPOSSIBLE_DOC: &str = "\"answer\" ends a wait that nothing but input can end any more; \
                                 \"wait\" waits on; default that of --on-impossible (answer)";

/// What to do about a session that waits for a password: no model is to make one up, or to have one
/// in its conversation.
pub(super) const PASSWORD_REMEDY: &str =
    "do without it (a key, an askpass program, sudo -n), or ask for another way";

/// What `tellPassword` is.
pub(super) const TELL_PASSWORD_DOC: &str =
    "true: password_asked tells when its terminal is asked for a password; default false";

/// What `until_password` is.
pub(super) const UNTIL_PASSWORD_DOC: &str = "true: the wait ends also when the session's terminal is asked for a password, as with until \
     {\"input\":\"password\"}, and is no longer for that; default false";

/// What `events` is.
pub(super) const EVENTS_DOC: &str =
    "true: the reply carries the events that this client was not told yet; default false";

/// What `header` is.
pub(super) const HEADER_DOC: &str = "\"compact\": the header, or the text, has only lines that \
                                     tell something; default \"full\"";
/// The words of `header`.
pub(super) const HEADER_WORDS: &[&str] = &["full", "compact"];

/// Whether `header` asks for a compact one.
pub(super) fn is_compact(header: Option<&str>) -> bool {
    header == Some("compact")
}

/// How much a header says; a command has execd's own directory unless it asks for another.
fn header_style(compact: bool, cx: &Cx) -> HeaderStyle<'_> {
    match compact.then(|| cx.cwd.to_str()).flatten() {
        Some(cwd) => HeaderStyle::Compact { cwd },
        None if compact => HeaderStyle::Compact { cwd: "" },
        None => HeaderStyle::Full,
    }
}

/// What unified-exec keeps of a session besides what every session has: nothing.
#[derive(Debug)]
pub struct Unified;

/// The host's clock as replies give it.
pub fn tool_time_utc() -> String {
    format_utc_ms(clock::wall_ms())
}

/// Several failures as one message; `None` when there is none.
fn joined(failures: [Option<String>; 3]) -> Option<String> {
    let all: Vec<String> = failures.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// What `max_empty_poll_ms` is.
pub(super) const CAP_DOC: &str = "the cap of a poll in ms; default execd's own (1800000)";

/// The cap of a poll in milliseconds: the one that the call has given, where it is above 0, else
/// execd's own.
pub(super) fn poll_cap_ms(given: Option<Int>, own_ms: u64) -> u64 {
    match given {
        Some(cap) if cap.0 > 0 => cap.clamped(MIN_EMPTY_YIELD_TIME_MS, MAX_CONFIGURABLE_POLL_MS),
        _ => own_ms,
    }
}

/// What is said of a time that was given and could not be had.
pub(super) fn clamp_note(name: &str, given: Option<Int>, ms: u64) -> Option<String> {
    let given = given?.0;
    let used = i64::try_from(ms).unwrap_or(i64::MAX);
    let bound = match given.cmp(&used) {
        Ordering::Equal => return None,
        Ordering::Greater => "most",
        Ordering::Less => "least",
    };
    Some(format!("{name} was {given}, the {bound} is {ms}"))
}

/// Whether a wait takes nothing of the output: a poll that was cancelled.
fn takes_nothing(wait: &Wait, why: Why) -> bool {
    wait.is_unheard(why) && wait.kind == WaitKind::Poll
}

impl Family for Unified {
    type Books = ();

    fn points_at_log(_own: Option<&Self>, core: &Session, wait: &Wait, why: Why, cx: &Cx) -> bool {
        let takes_text = !takes_nothing(wait, why);
        why == Why::Completed || (takes_text && core.view.may_be_cut(cx.config.text))
    }

    fn answer(
        _own: Option<&mut Self>,
        core: &mut Session,
        wait: Wait,
        why: Why,
        cx: &mut Cx,
    ) -> bool {
        let exited = why == Why::Completed;
        let Some(pending) = cx.take_pending(wait.ticket) else { return false };
        if wait.kind == WaitKind::Kill {
            let mut report = kill_report(core, &wait, why, cx);
            let ended = report.exit_code.is_some() || report.signal.is_some();
            cx.tell_own_to(pending.client, core.id, ended);
            report.events = events(&wait, why, pending.client, cx);
            if let Some(summary) = &mut report.summary {
                summary.push_str(&ledger::lines(&report.events));
            }
            cx.clients.reply(&pending, &report);
        } else {
            // The one object of `execd run --json` has all output: it is told at the session's end.
            let later = cx.passes_on(core.id) || (why == Why::ShellGone && cx.is_front(core.id));
            let takes = !takes_nothing(&wait, why) && !later;
            let mut report = exec_report(core, &wait, why, takes, cx);
            // Where an end is an event before the output is over, the note tells it.
            let noted = core.noted.end && core.life.shell_gone();
            cx.tell_own_to(pending.client, core.id, exited || noted);
            report.events = events(&wait, why, pending.client, cx);
            report.write_header(header_style(wait.compact, cx));
            if cx.front.is_some() && pending.client == STDIN_CLIENT {
                cx.front_ended(core, report);
            } else {
                cx.clients.reply(&pending, &report);
            }
        }
        core.observed |= exited;
        exited
    }
}

/// The events that an answer carries. One that nobody may look at carries none.
fn events(wait: &Wait, why: Why, client: ClientId, cx: &mut Cx) -> Vec<Event> {
    let carries = wait.tells_events && !wait.is_unheard(why);
    if carries { cx.take_events(client) } else { Vec::new() }
}

/// The unread output as this call's text; none where it `takes` none.
fn take_text(core: &mut Session, wait: &Wait, takes: bool, log: Option<&str>, cx: &mut Cx) -> Text {
    if !takes {
        return Text::default();
    }
    cx.text_bytes += core.view.retained_bytes();
    core.view.take(cx.config.text, wait.raw_output, core.life.finished(), log)
}

fn exec_report(core: &mut Session, wait: &Wait, why: Why, takes: bool, cx: &mut Cx) -> ExecReport {
    let log = cx.log_status(core).unwrap_or_else(LogStatus::whole);
    let log_from = log.from();
    let exited = why == Why::Completed;
    let text = take_text(core, wait, takes, log.in_footer(exited).as_deref(), cx);
    let doing = (!exited).then(|| StateReport::from(&cx.doing(core)));
    let note = stuck(core, wait, why).or_else(|| note(core, exited, cx));
    let note = joined([note, wait.note.clone(), wait.held_port_note()]);
    let warning = joined([wait.warning.clone(), log.warning(), None]);
    let (exit_code, signal) = status_fields(core.status().filter(|_| exited));
    let lost = std::mem::take(&mut core.input_lost).then(|| STDIN_LOST.to_owned());
    let waited_ns = cx.now_ns - wait.since_ns;
    // What fits an earlier moment of this log is no word about its completeness now.
    let matters = exited || log.unmade || text.truncation.is_some() || text.omitted_bytes > 0;
    let incomplete = !log.complete && (matters || log.failure.is_some());
    let mut report = ExecReport {
        session_id: (!exited).then_some(core.id),
        name: core.facts.name.clone(),
        exit_code,
        signal,
        killed_by: if exited { core.killed_by() } else { None },
        failure_message: joined([wait.failure.clone(), lost, log.failure]),
        log_from,
        log_path: log.path,
        cwd: core.facts.cwd.clone(),
        command: core.facts.command.clone(),
        tty: core.facts.tty,
        yield_time_ms: wait.yield_time_ms,
        wall_time_seconds: seconds(waited_ns),
        chunk_id: cx.chunk_id(),
        original_token_count: text.original_bytes.div_ceil(4),
        output_bytes_total: core.output_bytes_total(),
        omitted_bytes: (text.omitted_bytes > 0).then_some(text.omitted_bytes),
        output: text.output,
        truncation: text.truncation.as_ref().and_then(TruncationReport::new),
        wait_status: Some(why.wait_status()),
        wait_reason: wait.cancel.reason.clone().filter(|_| why == Why::Cancelled),
        wait_mode: Some(if wait.until.is_some() { "absolute" } else { "relative" }),
        yield_until: wait.until.as_ref().map(|until| until.stamp.clone()),
        effective_wait_ms: Some(waited_ns / NS_PER_MS),
        tool_time_utc: (!exited || wait.until.is_some() || cx.others_run(core.id))
            .then(tool_time_utc),
        wait: wait_report::report(wait, why, core),
        listening: if exited { Vec::new() } else { cx.listening(core) },
        note,
        doing,
        pid: (!exited).then_some(core.facts.pid),
        warning,
        log_complete: incomplete.then_some(false),
        log_truncated: log.truncated.then_some(true),
        footer: text.footer,
        ..ExecReport::default()
    };
    if exited {
        let ran = core.start.failure().is_none();
        report.cpu_seconds = ran.then(|| core.usage.cpu_seconds());
        report.max_rss_kib = ran.then_some(core.usage.max_rss_kib);
    } else if let (true, Some(ExitStatus::Code(code))) = (core.life.shell_gone(), core.status()) {
        report.shell_exit_code = Some(code);
    }
    if core.wake.is_some() {
        report.on_exit = Some("wake");
        if exited {
            report.completion_delivery = Some("direct");
            report.on_exit_wake = Some("consumed");
            core.wake = None;
        } else {
            report.completion_notification = Some("armed");
        }
    }
    report
}

/// What to do about a session that nothing but input moves on, in the answer of a wait that ended
/// for that.
fn stuck(core: &Session, wait: &Wait, why: Why) -> Option<String> {
    let outcome = wait.outcome.as_ref().filter(|one| why == Why::Impossible && one.state.is_some());
    let reason = outcome?.why.as_deref()?;
    let remedy = if asks_password(outcome?.state) {
        return Some(format!("{reason}: {PASSWORD_REMEDY}; kill_session ends it"));
    } else if core.facts.tty {
        "write to it (write_stdin), or end it (kill_session)"
    } else {
        "write to it with write_stdin, or run it again with stdin: \"null\""
    };
    Some(format!("{reason}: {remedy}"))
}

/// Whether a state is that of waiting for a password.
pub(super) fn asks_password(state: Option<&str>) -> bool {
    state == Some(Input::Password.state())
}

/// The note of a reply, where one applies.
pub fn note(core: &Session, exited: bool, cx: &Cx) -> Option<String> {
    if exited {
        let killed = core.status() == Some(ExitStatus::Signal(SIGKILL));
        return (killed && !core.killed_by_us).then(|| {
            "ended by a SIGKILL that execd did not send (often the out-of-memory killer)".into()
        });
    }
    if !core.life.shell_gone() {
        return None;
    }
    let end = match core.status()? {
        ExitStatus::Code(code) => format!("code {code}"),
        ExitStatus::Signal(signal) => signal_name(signal),
    };
    let holders: Vec<String> = cx
        .named_holders(core)
        .iter()
        .map(|holder| format!("{} {}", holder.pid, one_line(&holder.command)))
        .collect();
    let holders =
        if holders.is_empty() { "its output is held".to_owned() } else { holders.join(", ") };
    Some(format!(
        "shell exited ({end}); still running: {holders} — redirect its output to detach it, \
         or kill_session"
    ))
}

fn kill_report(core: &mut Session, wait: &Wait, why: Why, cx: &mut Cx) -> KillReport {
    let log = cx.log_status(core).unwrap_or_else(LogStatus::whole);
    let gone = why == Why::Completed;
    let log_from = log.from();
    let text = take_text(core, wait, gone, log.in_footer(gone).as_deref(), cx);
    let (exit_code, signal) = status_fields(core.status());
    let ending = core.ending.as_ref();
    let survivors = ending.filter(|ending| ending.over() && !gone).map(Ending::survivors);
    KillReport {
        found: true,
        session_id: core.id,
        killed: Some(gone),
        pid: Some(core.facts.pid),
        asked_signal: core.ending.as_ref().map(|ending| signal_name(ending.signal)),
        escalated: Some(ending.is_some_and(|ending| ending.escalated)),
        exit_code,
        signal,
        killed_by: core.killed_by(),
        failure_message: log.failure,
        log_from,
        log_path: log.path.or_else(|| core.closed_log_path.clone()),
        log_complete: (gone && !log.complete).then_some(false),
        log_truncated: log.truncated.then_some(true),
        final_output: Some(text.output),
        omitted_bytes: (text.omitted_bytes > 0).then_some(text.omitted_bytes),
        truncation: text.truncation.as_ref().and_then(TruncationReport::new),
        footer: text.footer,
        survivors: survivors.unwrap_or_default(),
        wait_status: (!gone).then(|| why.wait_status()),
        summary: Some(kill_summary(core, gone)),
        ..KillReport::default()
    }
}

fn kill_summary(core: &Session, gone: bool) -> String {
    let id = format!("{}{}", core.id, visible::name(core.facts.name.as_deref(), ""));
    let pid = core.facts.pid;
    let end = match core.status() {
        Some(ExitStatus::Code(code)) => format!("exit_code={code}"),
        Some(ExitStatus::Signal(signal)) => format!("signal={}", signal_name(signal)),
        None => "still running".to_owned(),
    };
    let before = core.finished_ns.zip(core.ending.as_ref().map(Ending::began_ns));
    let Some(ending) = core.ending.as_ref().filter(|_| before.is_none_or(|(a, b)| a > b)) else {
        return format!("Session {id} (pid {pid}) had already exited — {end}");
    };
    let sent = signal_name(ending.signal);
    if !ending.over() {
        return format!("Ending session {id} (pid {pid}) with {sent}, not done yet — {end}");
    }
    if !gone {
        return format!("Could not end all of session {id} (pid {pid}) with {sent} — {end}");
    }
    let escalated = if ending.escalated { " — escalated to SIGKILL" } else { "" };
    format!("Killed session {id} (pid {pid}) with {sent}{escalated} — {end}")
}
