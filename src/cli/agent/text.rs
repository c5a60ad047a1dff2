//! What people and programs see of a run (docs/agent.md, From a shell): its events and its result,
//! from execd's JSON to text and to an exit status.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::streams::Streams;
use crate::cli::say::{EXIT_FAILED, EXIT_TIMEOUT};
use crate::limits::AGENT_SHOWN_CHARS;
use crate::pure::text::visible::one_line;

/// The exit status after Ctrl-C or another cancel.
const EXIT_CANCELLED: i32 = 130;

/// An event, as far as people are shown it.
#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow, default)]
    delta: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
    #[serde(default)]
    attempt: u64,
    #[serde(default)]
    max_attempts: u64,
}

/// A result, as far as people are told it.
#[derive(Debug, Deserialize)]
struct Report {
    success: bool,
    #[serde(default)]
    error: Option<String>,
    finish_reason: String,
    duration_ms: u64,
    num_turns: u64,
    tool_call_count: u64,
    input_tokens: u64,
    output_tokens: u64,
    reasoning_tokens: u64,
    total_tokens: u64,
    cost_usd: f64,
    #[serde(default)]
    log_path: Option<String>,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// What people should know: what went wrong, and the run in one line.
    pub lines: Vec<String>,
    /// The exit status.
    pub status: i32,
}

/// The beginning of a text as one line.
fn shortened(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(AGENT_SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Shows an event to people: what the model says on stdout, what it does on stderr.
pub fn show(event: &str, streams: &mut Streams) {
    let Ok(event) = serde_json::from_str::<Event<'_>>(event) else { return };
    let Event { message, attempt, max_attempts, .. } = &event;
    match event.event.as_ref() {
        "text" => streams.push_text(&event.delta),
        "tool_use" => {
            let input = event.input.map_or("null", RawValue::get);
            streams.push_note(&shortened(&format!("{} {input}", event.name)));
        }
        "retry" => {
            let line = format!("retry {attempt} of {max_attempts}: {message}");
            streams.push_note(&shortened(&line));
        }
        "error" => streams.push_note(&shortened(&format!("error: {message}"))),
        _ => {}
    }
}

/// How a run ended, from its result.
pub fn end_of(result: &str) -> RunEnd {
    let report: Report = match serde_json::from_str(result) {
        Ok(report) => report,
        Err(fault) => {
            let lines = vec![format!("the result is not understood: {fault}")];
            return RunEnd { lines, status: EXIT_FAILED };
        }
    };
    let status = match report.finish_reason.as_str() {
        _ if report.success => 0,
        "timeout" => EXIT_TIMEOUT,
        "cancelled" => EXIT_CANCELLED,
        _ => EXIT_FAILED,
    };
    let mut lines = Vec::new();
    if let Some(error) = &report.error {
        lines.push(one_line(error));
        lines.extend(report.log_path.as_ref().map(|path| format!("log: {path}")));
    }
    lines.push(summary(&report));
    RunEnd { lines, status }
}

/// A run in one line, for people.
fn summary(report: &Report) -> String {
    let counted =
        |number: u64, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    format!(
        "{}: {}, {}, {} ({} in, {} out), ${:.4}, {}.{} s",
        report.finish_reason,
        counted(report.num_turns, "turn"),
        counted(report.tool_call_count, "tool call"),
        counted(report.total_tokens, "token"),
        report.input_tokens,
        report.output_tokens + report.reasoning_tokens,
        report.cost_usd,
        report.duration_ms / 1_000,
        report.duration_ms % 1_000 / 100,
    )
}
