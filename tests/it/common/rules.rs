//! Rules that hold for every line of execd, whoever asked.

use std::fmt::Write as _;

use serde_json::Value;

use super::assert_utc_stamp;
use execd::pure::text::visible::one_line;

/// What each line of execd's stdout keeps to, whoever asked.
pub fn check_line(line: &Value) {
    if let Some(batch) = line.as_array() {
        return batch.iter().for_each(check_line);
    }
    assert_eq!(line["jsonrpc"], "2.0", "{line}");
    if let Some(result) = line.get("result") {
        assert_no_null(result, line);
        if result.get("header").is_some() && result.get("chunk_id").is_some() {
            check_wait_result(result);
        }
    } else if line.get("method").is_some() {
        assert_no_null(&line["params"], line);
    } else {
        let error = &line["error"];
        assert!(error["code"].is_i64() && error["message"].is_string(), "{line}");
    }
}

/// A field that does not apply is left out, never null.
fn assert_no_null(value: &Value, line: &Value) {
    match value {
        Value::Null => panic!("a null in {line}"),
        Value::Array(items) => items.iter().for_each(|item| assert_no_null(item, line)),
        // The id of a request can be null, what a run of pi was called with, and a group of a
        // regex that took no part.
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "request_id" | "policy" | "captures"))
            .for_each(|(_, item)| assert_no_null(item, line)),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What each result of exec_command and write_stdin keeps to.
fn check_wait_result(result: &Value) {
    let running = result.get("session_id").is_some();
    let ends = ["exit_code", "signal"].iter().filter(|field| result.get(**field).is_some()).count();
    assert_eq!(ends, usize::from(!running), "session_id, or one of exit_code, signal: {result}");
    // A command that could not start was never waited for.
    if result["exit_code"] != -1 {
        assert_eq!(running, result["wait_status"] != "completed", "wait_status: {result}");
    }
    let header: Vec<&str> = result["header"]
        .as_str()
        .expect("header is text")
        .lines()
        .filter(|line| !UNCHECKED.iter().any(|name| line.starts_with(name)))
        .collect();
    check_wait(result);
    let full = expected_header(result);
    if header.iter().any(|line| line.starts_with("chunk_id: ")) {
        assert_eq!(header.join("\n"), full, "{result}");
    } else {
        // A compact one leaves lines out and changes none.
        let mut left = full.lines();
        assert!(header.iter().all(|line| left.any(|other| other == *line)), "{result}");
    }
    assert_eq!(result.get("footer").is_some(), result.get("truncation").is_some(), "{result}");
    if running {
        assert_utc_stamp(&result["tool_time_utc"]);
    }
    check_state(result);
}

/// Lines of the header that are checked by themselves, or depend on what cannot be known here.
const UNCHECKED: [&str; 5] = ["warning: ", "wait: ", "state: ", "full_screen: ", "event: "];

/// A session that runs has a state, where there was time to look, and who waits is named with a
/// state of waiting alone.
fn check_state(result: &Value) {
    let (state, runs) = (result.get("state"), result.get("session_id").is_some());
    assert!(runs || state.is_none(), "{result}");
    let waits = result["state"].as_str().is_some_and(|state| state.starts_with("waiting_for_"));
    assert_eq!(result.get("state_detail").is_some(), waits, "{result}");
    let header = result["header"].as_str().expect("header is text");
    let line = header.lines().find_map(|line| line.strip_prefix("state: waiting for "));
    let who = result["state_detail"]["command"].as_str();
    let told = line.map(|line| line.ends_with(')'));
    if is_stuck(result) {
        assert_eq!(told, None, "the note says it: {result}");
    } else {
        assert_eq!(told, who.map(|_| true), "{result}");
    }
}

/// Whether nothing but input could end the wait: the note says who waits, and why, and what to do.
fn is_stuck(result: &Value) -> bool {
    result["wait"]["outcome"] == "impossible" && result["wait"].get("state").is_some()
}

/// What ended a wait is told in the header, where it is told.
fn check_wait(result: &Value) {
    let header = result["header"].as_str().expect("header is text");
    let line = header.lines().find_map(|line| line.strip_prefix("wait: "));
    let outcome = result.get("wait").map(|wait| wait["outcome"].as_str().expect("an outcome"));
    let told = outcome.is_some() && !ended_early(result);
    assert_eq!(line.is_some(), told, "{result}");
    let (Some(line), Some(outcome)) = (line, outcome) else { return };
    assert!(line.starts_with(outcome), "{result}");
    if is_stuck(result) {
        let why = result["wait"]["why"].as_str().expect("why is text");
        assert!(result["note"].as_str().is_some_and(|note| note.starts_with(why)), "{result}");
        assert_eq!(header.matches(why).count(), 1, "said once: {result}");
    }
    let ended = ["matched", "stopped", "impossible"].contains(&outcome);
    if result.get("session_id").is_some() {
        assert_eq!(ended, result["wait_status"] == "condition_met", "wait_status: {result}");
    }
}

/// Whether `cancel` or the end of execd has ended the wait: the header has that in place of `wait`.
fn ended_early(result: &Value) -> bool {
    result["wait_status"] == "cancelled" || result["wait_status"] == "shutting_down"
}

/// The header that a reply has for these fields.
fn expected_header(result: &Value) -> String {
    let running = result.get("session_id").is_some();
    let mut header = String::from(if running { "[still running]" } else { "[exited]" });
    for field in HEADER_FIELDS {
        let text = match result.get(field) {
            None => continue,
            Some(_) if field == "wait_status" && !ended_early(result) => continue,
            Some(Value::String(text)) if field == "wait_status" => match &result["wait_reason"] {
                Value::String(reason) => format!("{text} ({reason})"),
                _ => text.clone(),
            },
            Some(Value::String(name)) if field == "name" => one_line(name),
            Some(Value::String(text)) => text.clone(),
            Some(from) if field == "log_from" => {
                header.push_str(&format!(
                    "\nlog: bytes {from}– of {} kept",
                    result["output_bytes_total"]
                ));
                continue;
            }
            Some(Value::Array(_)) if field == "listening" => ports_line(&result[field]),
            Some(Value::Number(seconds)) if field == "wall_time_seconds" => {
                format!("{:.3}", seconds.as_f64().expect("a finite number"))
            }
            Some(value) => value.to_string(),
        };
        let name = if field == "failure_message" { "failure" } else { field };
        let _ = write!(header, "\n{name}: {text}");
    }
    header
}

/// The ports that a session listens on, as the header names them: each once.
fn ports_line(listening: &Value) -> String {
    let mut line: Vec<String> = Vec::new();
    let mut last = None;
    for one in listening.as_array().expect("an array") {
        if last.replace(&one["port"]) != Some(&one["port"]) {
            line.push(format!("{} ({})", one["port"], one["command"].as_str().expect("a name")));
        }
    }
    line.join(", ")
}

/// The fields of the header in their order.
const HEADER_FIELDS: [&str; 21] = [
    "session_id",
    "name",
    "exit_code",
    "signal",
    "killed_by",
    "failure_message",
    "note",
    "wait_status",
    "listening",
    "log_path",
    "log_from",
    "cwd",
    "wall_time_seconds",
    "chunk_id",
    "original_token_count",
    "output_bytes_total",
    "omitted_bytes",
    "completion_notification",
    "completion_delivery",
    "tool_time_utc",
    "tty",
];
