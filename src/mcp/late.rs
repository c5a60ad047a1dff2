//! What the next result of a tool tells besides its own: what calls have told that were cancelled,
//! how background windows have ended, and events. Of what there is no room for a line is kept.

use serde_json::Value;

use super::fields::{items, shown, str_of};
use crate::limits::MCP_LATE_BYTES;
use crate::pure::text::visible;

/// How many lines are kept at most of answers that there was no room for: one of each session.
const MCP_LATE_LINES: usize = 512;

/// Answers of cancelled calls that are kept for the next result.
const MCP_LATE_COUNT: usize = 8;

/// One answer that nobody has read.
#[derive(Debug)]
struct Answer {
    /// Its text, under a heading.
    said: String,
    /// A line for each of its sessions.
    lines: Vec<String>,
}

/// All that the next result tells besides its own.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// Oldest first.
    answers: Vec<Answer>,
    /// The lines of answers that there was no room for, oldest first.
    lines: Vec<String>,
    /// The events of sessions, each a line.
    events: String,
}

/// Where what a session has written is found, once its answer is not kept any more.
fn line(one: &Value) -> String {
    let first = |names: [&str; 3]| -> String {
        let mut all = names.iter().map(|name| shown(one, name));
        all.find(|text| !text.is_empty()).unwrap_or_default()
    };
    let id = first(["session_id", "sessionId", "window"]);
    let command: String = shown(one, "command").chars().take(80).collect();
    let log = first(["log_path", "logPath", ""]);
    let name = visible::name(one.get("name").and_then(Value::as_str), "");
    let who =
        if id.is_empty() { format!("command {command}") } else { format!("session {id}{name}") };
    match log.as_str() {
        "" => format!("{who}: its answer is not kept, and it has no log"),
        log => format!("{who}: see its log {log}"),
    }
}

/// What the lines of answers begin with that there was no room for.
const HEADING: &str = "\n\nOf calls that were cancelled and of windows before:";

/// Adds the first of these to a text, below a heading, and takes them out, as long as there is room
/// in `most` bytes: each whole, and none before an older one.
fn tell_first<T>(
    said: &mut String,
    mut heading: &str,
    before: &str,
    all: &mut Vec<T>,
    most: usize,
    text: fn(&T) -> &str,
) {
    let mut told = 0;
    for one in all.iter().map(text) {
        if said.len() + heading.len() + before.len() + one.len() > most {
            break;
        }
        *said += &[std::mem::take(&mut heading), before, one].concat();
        told += 1;
    }
    all.drain(..told);
}

impl Late {
    fn keep(&mut self, said: String, lines: Vec<String>) {
        self.answers.push(Answer { said, lines });
        let bytes = |all: &[Answer]| all.iter().map(|one| one.said.len()).sum::<usize>();
        while self.answers.len() > MCP_LATE_COUNT || bytes(&self.answers) > MCP_LATE_BYTES {
            self.lines.extend(self.answers.remove(0).lines);
        }
        let over = self.lines.len().saturating_sub(MCP_LATE_LINES);
        self.lines.drain(..over);
    }

    /// Keeps what a cancelled call has told: its output is told nowhere else.
    /// `end`: how its command was to end.
    pub(super) fn answered(&mut self, said: &str, reply: &Value, end: Option<&str>) {
        let rows = items(reply, "sessions");
        let lines =
            if rows.is_empty() { vec![line(reply)] } else { rows.iter().map(line).collect() };
        let command = match end {
            None => "",
            Some("kill") => ", with its command (SIGTERM),",
            Some(_) => ", with its command (SIGINT),",
        };
        let heading = format!("The call that was cancelled before{command} has answered:");
        self.keep(format!("{heading}\n{said}"), lines);
    }

    /// Keeps how a command in the background has ended.
    pub(super) fn window_exited(&mut self, note: &Value) {
        let (id, command) = (shown(note, "window"), shown(note, "command"));
        let said = format!("Window {id} ({command}): {}", str_of(note, "text"));
        self.keep(said, vec![line(note)]);
    }

    /// Keeps that another execd runs now.
    pub(super) fn lost_execd(&mut self, how: &str) {
        self.events += &format!(
            "\nevent: execd has ended ({how}) and was started again: all sessions before have ended \
             with it, and ids begin anew"
        );
    }

    /// Whether there are no events to tell: further ones are asked for only then.
    pub(super) fn has_no_events(&self) -> bool {
        self.events.is_empty()
    }

    /// Keeps the lines of events.
    pub(super) fn events(&mut self, reply: &Value) {
        let text = str_of(reply, "text");
        if !text.is_empty() {
            self.events += &format!("\n{text}");
        }
    }

    /// Adds to the text of a result what there is room for where that may have `most` bytes. The
    /// events are told at once, and the rest by the next results.
    pub(super) fn tell(&mut self, said: &mut String, most: usize) {
        said.push_str(&std::mem::take(&mut self.events));
        tell_first(said, HEADING, "\n", &mut self.lines, most, |line| line);
        if self.lines.is_empty() {
            tell_first(said, "", "\n\n", &mut self.answers, most, |answer| &answer.said);
        }
        let untold = self.lines.len() + self.answers.len();
        if untold > 0 {
            *said += &format!("\n\n[Of cancelled calls and windows {untold} more: next results]");
        }
    }
}
