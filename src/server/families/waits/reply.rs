//! How the answer of wait_for is made (waits.md): a row for each session, and all of it as a text
//! for models.

use std::fmt::Write as _;

use serde::Serialize;

use super::group::{End, Group};
use super::row::Row;
use crate::limits::{LIST_COMMAND_CHARS, LISTED_COMMAND_BYTES};
use crate::pure::group::{One, Over};
use crate::pure::ledger::Event;
use crate::pure::text::visible::one_line;
use crate::server::engine::judge::status_fields;
use crate::server::engine::ledger;
use crate::server::engine::notices::command_for_lists;
use crate::server::families::{self, Cx, unified};
use crate::server::session::Session;
use crate::server::session::doing::{Seen, State};
use crate::server::session::listening;
use crate::server::session::report::TruncationReport;
use crate::server::session::state_report::StateReport;
use crate::server::session::view::Text;
use crate::server::session::wait::{Wait, Why};
use crate::server::session::wait_report::{WaitReport, told};

/// The answer.
#[derive(Debug, Serialize)]
pub struct Reply {
    wait: WaitReport,
    sessions: Vec<Row>,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_time_utc: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Event>,
}

/// The word for what has become of a session.
fn word(one: One) -> &'static str {
    match one {
        One::Waits => "pending",
        One::Stuck => "impossible",
        One::Matched => "matched",
        One::Stopped => "stopped",
        One::Exited { .. } => "exited",
    }
}

/// What a session is doing. Of one that can't go on a look that comes later may not say again who
/// waits, for want of time or of a second one: what was seen then is told.
fn doing(core: &mut Session, wait: &Wait, cx: &mut Cx) -> Seen {
    let now = cx.doing(core);
    let stuck = wait.outcome.as_ref().and_then(|outcome| outcome.seen.clone());
    stuck.filter(|_| matches!(now.state, None | Some(State::Running))).unwrap_or(now)
}

/// Makes the row of a session whose group is over.
pub fn row(
    (state, core): (&mut families::State, &mut Session),
    wait: &Wait,
    group: &mut Group,
    cx: &mut Cx,
) -> Row {
    let one = group.one(core.id);
    let exited = core.life.finished() || matches!(one, One::Exited { .. });
    let text = if group.tells(core.id) {
        state.tell(core, group.row_bytes(), cx)
    } else {
        Text::default()
    };
    group.saw_new_output |= core.output_bytes_total() > wait.began_total;
    let why = match one {
        One::Waits => None,
        One::Stuck => Some(Why::Impossible),
        One::Matched => Some(Why::Matched),
        One::Stopped => Some(Why::Stopped),
        One::Exited { .. } => Some(Why::Completed),
    };
    let mut report = why.map(|why| told(wait, why, core));
    if group.decided_by(core.id) {
        group.report = report.take();
    }
    let runs = !core.life.finished();
    let doing = runs.then(|| StateReport::from(&doing(core, wait, cx)));
    let log = cx.log_status(core).unwrap_or_default();
    let trouble = cx.log_trouble(core, core.life.finished());
    let (exit_code, signal) = status_fields(core.status().filter(|_| exited));
    Row {
        session_id: core.id,
        exited,
        // Where an end is an event before the output is over, the note tells it.
        tells_end: exited || (core.noted.end && core.life.shell_gone()),
        name: core.facts.name.clone(),
        command: command_for_lists(&core.facts.command, LISTED_COMMAND_BYTES),
        family: state.name(),
        state: doing.as_ref().map_or(Some("exited"), |doing| doing.state),
        full_screen: doing.as_ref().and_then(|doing| doing.full_screen),
        state_line: doing.as_ref().and_then(|doing| doing.line.clone()),
        state_detail: doing.and_then(|doing| doing.state_detail),
        listening: cx.listening(core),
        outcome: word(one),
        wait: report.filter(|_| !matches!(one, One::Exited { .. })),
        exit_code,
        signal,
        killed_by: if exited { core.killed_by() } else { None },
        failure_message: trouble.failure_message,
        note: unified::note(core, core.life.finished(), cx).or_else(|| wait.held_port_note()),
        log_from: log.from(),
        log_path: log.path,
        log_complete: trouble.log_complete,
        log_truncated: trouble.log_truncated,
        omitted_bytes: (text.omitted_bytes > 0).then_some(text.omitted_bytes),
        truncation: text.truncation.as_ref().and_then(TruncationReport::new),
        footer: text.footer,
        output: group.tells(core.id).then_some(text.output),
    }
}

/// A command or a name as a line shows it.
fn short(label: &str) -> String {
    let line = one_line(label);
    let cut: String = line.chars().take(LIST_COMMAND_CHARS).collect();
    if cut.len() == line.len() { cut } else { format!("{cut}…") }
}

/// The answer of a group whose rows are all made. It tells the host's clock where something still
/// runs, one of the group or (`others_run`) any other session.
pub fn reply(group: Group, events: Vec<Event>, others_run: bool) -> Reply {
    let mut wait = group.report.clone().unwrap_or_else(|| without_report(&group));
    wait.saw_new_output |= group.saw_new_output;
    wait.effective_timeout_ms = Some(group.timeout_ms);
    let (compact, note) = (group.compact, group.note.clone());
    let sessions = group.into_rows();
    let mut text = text(&wait, &sessions, &events, compact);
    let runs = others_run || sessions.iter().any(|row| !row.exited);
    let tool_time_utc = runs.then(unified::tool_time_utc);
    let note_line = note.iter().map(|note| format!("\nnote: {note}"));
    let clock_line = tool_time_utc.iter().map(|stamp| format!("\ntool_time_utc: {stamp}"));
    let at = text.find('\n').unwrap_or(text.len());
    text.insert_str(at, &note_line.chain(clock_line).collect::<String>());
    Reply { wait, sessions, text, note, tool_time_utc, events }
}

/// What is said of a wait that none of the sessions in the table has decided.
fn without_report(group: &Group) -> WaitReport {
    let (outcome, line) = match group.end() {
        Some(End::Early(Why::Cancelled | Why::ShuttingDown)) => ("cancelled", String::new()),
        Some(End::Early(_)) => ("deadline", format!("deadline after {} ms", group.timeout_ms)),
        Some(End::By(Over::Matched, _)) => ("matched", String::new()),
        Some(End::By(Over::Stopped, _)) => ("stopped", String::new()),
        Some(End::By(Over::Impossible, _)) => ("impossible", String::new()),
        Some(End::By(Over::Exited, _)) | None => ("exited", String::new()),
    };
    let why = group.cancel.reason.as_deref().map(str::to_owned);
    let line = match &why {
        _ if !line.is_empty() => line,
        Some(reason) => format!("{outcome} ({reason})"),
        None => outcome.to_owned(),
    };
    WaitReport { outcome, line, why, session_id: group.decider(), ..WaitReport::default() }
}

/// The answer as a model reads it: the wait, then each session, with its output below its lines.
fn text(wait: &WaitReport, sessions: &[Row], events: &[Event], compact: bool) -> String {
    let of = wait.session_id.map(|id| format!(" (session {id})")).unwrap_or_default();
    let mut text = format!("wait: {}{of}", one_line(&wait.line));
    text.push_str(&ledger::lines(events));
    if sessions.is_empty() {
        text.push_str("\nno session");
    }
    for row in sessions {
        let label = row.name.as_deref().unwrap_or(&row.command);
        let _ = write!(text, "\n\nsession {}: {} — {}", row.session_id, short(label), row.outcome);
        let mut line = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                let _ = write!(text, "\n{name}: {}", one_line(&value));
            }
        };
        let state = row.state_line.as_deref().or(row.state);
        line("state", state.filter(|state| *state != row.outcome).map(str::to_owned));
        line("listening", listening::line(&row.listening));
        line("exit_code", row.exit_code.map(|code| code.to_string()));
        line("signal", row.signal.clone());
        line("killed_by", row.killed_by.map(str::to_owned));
        // Of one that input alone moves on the state says who waits for what.
        let said = row.wait.as_ref().filter(|wait| !wait.is_stuck() || row.state_line.is_none());
        line("wait", said.map(|wait| wait.line.clone()));
        line("failure", row.failure_message.clone());
        line("note", row.note.clone());
        line("log_path", row.log_path.clone().filter(|_| !compact || row.needs_log()));
        if let Some(output) = row.output.as_deref().filter(|output| !output.is_empty()) {
            let _ = write!(text, "\n---\n{}", output.trim_end_matches('\n'));
        }
        if let Some(footer) = &row.footer {
            let _ = write!(text, "\n{footer}");
        }
    }
    text
}
