//! What an answer says of its wait: what ended it (waits.md).

use serde::Serialize;

use super::asked::{Asked, Outcome, OutcomeKind};
use super::wait::{Wait, Why};
use super::{Session, SessionId};
use crate::limits::NS_PER_MS;
use crate::pure::until::{Condition, Pattern};

/// Declares a report of a wait, once for each way in which its fields are spelt.
macro_rules! wait_report {
    ($Name:ident, $case:literal, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Debug, Default, Serialize)]
        #[serde(rename_all = $case)]
        pub struct $Name {
            /// `matched`, `stopped`, `exited`, `impossible`, `deadline`, `cancelled` or
            /// `shutting_down`.
            pub outcome: &'static str,
            /// The field of `until` or `stop` that came true.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub by: Option<&'static str>,
            /// Which of several texts or patterns.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub index: Option<usize>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub session_id: Option<SessionId>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub text: Option<String>,
            /// The groups of the pattern.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub captures: Vec<Option<String>>,
            /// Where in the output the match begins.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub offset: Option<u64>,
            /// Where it ends.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub next_offset: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub port: Option<u16>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub address: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub pid: Option<i32>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub status: Option<u16>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub state: Option<&'static str>,
            /// True: it was so when the call began.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub present_at_entry: Option<bool>,
            /// Whether any output came during the wait.
            pub saw_new_output: bool,
            /// The time of the wait after clamping.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub effective_timeout_ms: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub why: Option<String>,
            /// The same in a line for people, without its name.
            #[serde(skip)]
            pub line: String,
        }
    };
}

wait_report!(WaitReport, "snake_case", "What an answer says of its wait.");
wait_report!(WaitReportCamel, "camelCase", "The same, as the stream and bash families spell it.");

impl From<WaitReport> for WaitReportCamel {
    fn from(report: WaitReport) -> Self {
        let WaitReport { outcome, by, index, session_id, text, captures, offset, .. } = report;
        let WaitReport { next_offset, port, address, pid, status, state, .. } = report;
        let WaitReport { present_at_entry, saw_new_output, effective_timeout_ms, .. } = report;
        let WaitReport { why, line, .. } = report;
        Self {
            outcome,
            by,
            index,
            session_id,
            text,
            captures,
            offset,
            next_offset,
            port,
            address,
            pid,
            status,
            state,
            present_at_entry,
            saw_new_output,
            effective_timeout_ms,
            why,
            line,
        }
    }
}

impl WaitReport {
    /// Whether the wait ended because nothing but input could end it: then the reply's note says
    /// who waits, and what to do.
    pub fn is_stuck(&self) -> bool {
        self.outcome == "impossible" && self.state.is_some()
    }

    /// What is said of the wait for a command that could not be started: it is over.
    pub fn not_started(timeout_ms: u64) -> Self {
        let (outcome, line) = ("exited", "exited".to_owned());
        Self { outcome, line, effective_timeout_ms: Some(timeout_ms), ..Self::default() }
    }
}

/// What ended a wait that neither its time nor an exit ended.
fn ended_by(wait: &Wait, why: Why) -> Option<&Outcome> {
    wait.outcome.as_deref().filter(|outcome| match why {
        // An exit that comes with the match is told beside it.
        Why::Completed => outcome.kind != OutcomeKind::Impossible,
        Why::Matched | Why::Stopped | Why::Impossible => true,
        _ => false,
    })
}

/// What the answer of a wait that is over says of it: nothing where nothing was asked for, unless
/// the wait ended because nothing could end it.
pub fn report(wait: &Wait, why: Why, core: &Session) -> Option<WaitReport> {
    let ended = ended_by(wait, why);
    let asked = wait.asked.is_some() || ended.is_some();
    asked.then(|| told(wait, why, core))
}

/// The same where it is told whatever was asked for.
pub fn told(wait: &Wait, why: Why, core: &Session) -> WaitReport {
    let ended = ended_by(wait, why);
    let timeout_ms = wait.due_ns.map(|due| due.saturating_sub(wait.since_ns) / NS_PER_MS);
    let word = match (ended.map(|outcome| outcome.kind), why) {
        (Some(OutcomeKind::Matched), _) => "matched",
        (Some(OutcomeKind::Stopped), _) => "stopped",
        (Some(OutcomeKind::Impossible), _) => "impossible",
        (None, Why::Completed) => "exited",
        (None, Why::Cancelled | Why::ShuttingDown) => "cancelled",
        (None, _) => "deadline",
    };
    let line = match (ended, word) {
        (Some(outcome), _) => outcome_line(wait.asked.as_deref(), outcome, word),
        (None, "deadline") => match timeout_ms {
            Some(ms) => format!("deadline after {ms} ms"),
            None => word.to_owned(),
        },
        (None, _) => word.to_owned(),
    };
    let cancelled_for = wait.cancel.reason.as_deref().filter(|_| why == Why::Cancelled);
    let outcome = ended.cloned().unwrap_or_default();
    let came_true = ended.is_some_and(|one| one.kind != OutcomeKind::Impossible);
    WaitReport {
        outcome: word,
        by: came_true.then_some(outcome.by),
        index: outcome.index,
        session_id: Some(core.id),
        text: outcome.text,
        captures: outcome.captures,
        offset: outcome.offset,
        next_offset: outcome.next_offset,
        port: outcome.port.as_ref().map(|one| one.port),
        pid: outcome.port.as_ref().map(|one| one.pid),
        address: outcome.port.map(|one| one.address),
        status: outcome.status,
        state: outcome.state,
        present_at_entry: came_true.then_some(outcome.present_at_entry),
        saw_new_output: core.output_bytes_total() > wait.began_total,
        effective_timeout_ms: timeout_ms,
        why: outcome
            .why
            .or_else(|| cancelled_for.map(str::to_owned))
            .or_else(|| wait.asked.as_ref().and_then(|asked| asked.left_words())),
        line,
    }
}

/// What ended a wait, in a line for people.
fn outcome_line(asked: Option<&Asked>, outcome: &Outcome, word: &str) -> String {
    let by_stop = outcome.kind == OutcomeKind::Stopped;
    if outcome.kind == OutcomeKind::Impossible {
        return format!("{word}: {}", outcome.why.as_deref().unwrap_or_default());
    }
    let word = if by_stop { "stopped by" } else { word };
    let condition = asked.and_then(|asked| asked.condition(by_stop));
    let command = outcome.port.as_ref().map(|one| one.command.as_str());
    let who = |command: Option<&str>| command.map_or(String::new(), |name| format!(" ({name})"));
    let port = outcome.port.as_ref().map_or(0, |one| one.port);
    match outcome.by {
        by @ ("text" | "regex") => {
            let first = outcome.captures.first().and_then(Option::as_deref);
            let shown = first.or(outcome.text.as_deref()).unwrap_or_default();
            let pattern = condition.zip(outcome.index).and_then(|(one, at)| shown_of(one, by, at));
            format!("{word} {} → {shown}", pattern.unwrap_or_else(|| by.to_owned()))
        }
        "port" => format!("{word} port {port}{}", who(command)),
        "http" => {
            let status = outcome.status.unwrap_or(0);
            format!("{word} http {status} on port {port}{}", who(command))
        }
        "input" => {
            let kind = match outcome.state {
                Some("waiting_for_password") => "a password",
                Some("waiting_for_key") => "a key",
                _ => "a line",
            };
            format!("{word} input: {kind}{}", who(outcome.command.as_deref()))
        }
        "idle_ms" => {
            let ms = condition.and_then(|one| one.idle_ms).unwrap_or(0);
            format!("{word} idle_ms {ms}")
        }
        by => format!("{word} {by}"),
    }
}

/// A pattern as a line for people shows it.
fn shown_of(condition: &Condition, by: &str, at: usize) -> Option<String> {
    condition.patterns.iter().find_map(|pattern| match pattern {
        Pattern::Text { index, text, .. } if by == "text" && *index == at => {
            Some(format!("\"{text}\""))
        }
        Pattern::Regex { index, source, .. } if by == "regex" && *index == at => {
            Some(format!("/{source}/"))
        }
        _ => None,
    })
}
