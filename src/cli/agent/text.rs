//! What people and programs see of a run (docs/agent.md, From a shell): its events and its result,
//! from execd's JSON to text and to an exit status.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
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

/// How a run ended.
#[derive(Debug)]
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
    let report: Value = serde_json::from_str(result).unwrap_or_default();
    let reason = report["finish_reason"].as_str().unwrap_or_default();
    let status = match reason {
        _ if report["success"] == true => 0,
        "timeout" => EXIT_TIMEOUT,
        "cancelled" => EXIT_CANCELLED,
        _ => EXIT_FAILED,
    };
    let mut lines = Vec::new();
    if let Some(error) = report["error"].as_str() {
        lines.push(one_line(error));
        lines.extend(report["log_path"].as_str().map(|path| format!("log: {path}")));
    }
    lines.push(summary(reason, &report));
    RunEnd { lines, status }
}

/// A run in one line, for people.
fn summary(reason: &str, report: &Value) -> String {
    let number = |field: &str| report[field].as_u64().unwrap_or_default();
    let counted = |field: &str, what: &str| {
        let number = number(field);
        format!("{number} {what}{}", if number == 1 { "" } else { "s" })
    };
    format!(
        "{reason}: {}, {}, {} ({} in, {} out), ${:.4}, {}.{} s",
        counted("num_turns", "turn"),
        counted("tool_call_count", "tool call"),
        counted("total_tokens", "token"),
        number("input_tokens"),
        number("output_tokens") + number("reasoning_tokens"),
        report["cost_usd"].as_f64().unwrap_or_default(),
        number("duration_ms") / 1_000,
        number("duration_ms") % 1_000 / 100,
    )
}
