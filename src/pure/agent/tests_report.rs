//! Tests of how a run is said to have ended: finish_reason, success and the words of its error.

use serde_json::{Value, json};

use super::tests::{answer, done, wire};
use super::{AgentRun, End, RunSettings, Stop};

/// A run whose assistant's messages ended like this.
fn ended(messages: &[Value]) -> AgentRun {
    let mut run = AgentRun::new(RunSettings::default());
    for message in messages {
        run.push(format!("{}\n", wire(&answer(message))).as_bytes(), 0, &mut |_| {});
    }
    run
}

fn report(run: &AgentRun, end: &End<'_>) -> Value {
    serde_json::to_value(run.report(end)).unwrap()
}

/// rule: agent.md, The result: finish_reason is the last settled stopReason, mapped; what is new
///   comes as it is
/// rule: agent.md, The result: success: exit 0 with stop, length or tool_calls
#[test]
fn stop_reasons_and_whether_they_are_a_success() {
    for (stop_reason, finish_reason, success) in [
        ("stop", "stop", true),
        ("endTurn", "stop", true),
        ("toolUse", "tool_calls", true),
        ("maxTokens", "length", true),
        ("refusal", "content_filter", false),
        ("aborted", "error", false),
        ("error", "error", false),
        ("deferred", "deferred", false),
        ("never_seen", "never_seen", false),
    ] {
        let told = report(&ended(&[json!({"stopReason": stop_reason})]), &done());
        assert_eq!(told["finish_reason"], finish_reason, "{stop_reason}");
        assert_eq!(told["success"], success, "{stop_reason}");
        assert_eq!(told.get("error").is_some(), !success, "{stop_reason}");
    }
}

/// rule: agent.md, The result: finish_reason is the last settled stopReason, mapped; what is new
///   comes as it is
#[test]
fn the_last_settled_stop_reason_counts() {
    let table: [(&[&str], &str); 5] = [
        (&["toolUse", "stop"], "stop"),
        (&["error", "stop"], "stop"),
        (&["stop", "pending"], "stop"),
        (&["pending"], "error"),
        (&[], "error"),
    ];
    for (reasons, finish_reason) in table {
        let messages: Vec<Value> = reasons.iter().map(|it| json!({"stopReason": it})).collect();
        let told = report(&ended(&messages), &done());
        assert_eq!(told["finish_reason"], finish_reason, "{reasons:?}");
    }
}

/// rule: agent.md, The result: A kill wins over the finish_reason that pi told
/// rule: agent.md, The result: A pi that died by a signal or exited with another code than 0 is
///   error, whatever came before
/// rule: agent.md, The result: wire_drift when an assistant message_end has no usage
/// rule: agent.md, The result: success: exit 0 with stop, length or tool_calls
#[test]
fn who_wins() {
    let well = json!({"stopReason": "stop"});
    let drift = json!({"stopReason": "stop", "usage": null});
    let exit = |code| End { exit_code: Some(code), ..done() };
    let stopped = |stop| End { stop: Some(stop), signal: Some("SIGTERM"), ..End::default() };
    let failure = End { failure: Some("not found"), exit_code: None, ..done() };
    for (message, end, finish_reason, success) in [
        (&well, exit(0), "stop", true),
        (&well, exit(1), "error", false),
        (&well, End { exit_code: None, signal: Some("SIGSEGV"), ..done() }, "error", false),
        (&drift, exit(1), "error", false),
        (&well, stopped(Stop::Lingered), "stop", true),
        (&well, stopped(Stop::Cancelled), "cancelled", false),
        (&well, failure, "error", false),
        (&drift, exit(0), "wire_drift", false),
        (&drift, stopped(Stop::Lingered), "wire_drift", false),
        (&drift, failure, "error", false),
        (&drift, stopped(Stop::IdleTimeout(1)), "timeout", false),
        (&drift, stopped(Stop::Tokens(1)), "token_exhausted", false),
    ] {
        let told = report(&ended(std::slice::from_ref(message)), &end);
        assert_eq!(told["finish_reason"], finish_reason, "{message} {end:?}");
        assert_eq!(told["success"], success, "{message} {end:?}");
    }
    let lingered = report(&ended(&[json!({"stopReason": "error"})]), &stopped(Stop::Lingered));
    assert_eq!(lingered["success"], false);
}

/// rule: agent.md, The result: wire_drift when an assistant message_end has no usage
#[test]
fn drift_of_the_wire_names_the_field_and_the_message() {
    let cost = json!({"total": 1});
    for (usage, words) in [
        (json!(null), "usage is not an object"),
        (json!({"output": 1, "cost": cost}), "usage.input is missing"),
        (json!({"input": 1, "output": "1", "cost": cost}), "usage.output is not a number"),
        (json!({"input": 1, "output": 1}), "usage.cost.total is missing"),
        (json!({"input": 1, "output": 1, "cost": {"total": null}}), "usage.cost.total is not"),
    ] {
        let second = json!({"stopReason": "stop", "usage": usage});
        let told = report(&ended(&[json!({"stopReason": "toolUse"}), second]), &done());
        assert_eq!(told["finish_reason"], "wire_drift", "{usage}");
        let error = told["error"].as_str().unwrap();
        assert!(error.starts_with(words) && error.contains("message 2"), "{error}");
    }
}

/// rule: agent.md, The result: Exit ≠ 0: no success, error has the last 4 KiB of stderr
#[test]
fn the_words_of_an_error() {
    let exit = |code, stderr| End { exit_code: Some(code), stderr, ..done() };
    let broken = json!({"stopReason": "error", "errorMessage": "529 overloaded"});
    let (well, odd) = (json!({"stopReason": "stop"}), json!({"stopReason": "odd"}));
    let killed = End { signal: Some("SIGKILL"), ..End::default() };
    let failure = Some("pi: not found, install it");
    let no_pi = End { failure, stderr: "execd: pi: not found, install it", ..End::default() };
    let late_words = "not done within 9 ms (timeout_ms); pi has told \"message_end\" last: bye";
    let late = End { stop: Some(Stop::HardTimeout(9)), ..exit(143, "bye") };
    let table: Vec<(Vec<Value>, End<'_>, &str)> = vec![
        (vec![], exit(1, "no key\n"), "pi ended without an answer (exit code 1): no key"),
        (vec![], exit(0, "oh no"), "pi ended without an answer (exit code 0): oh no"),
        (vec![], killed, "pi ended without an answer (SIGKILL)"),
        (vec![broken.clone()], exit(0, "overloaded"), "529 overloaded"),
        (vec![broken.clone()], exit(2, "at f"), "529 overloaded (exit code 2): at f"),
        (vec![broken, well.clone()], exit(3, ""), "pi failed after its answer (exit code 3)"),
        (vec![json!({"stopReason": "aborted"})], exit(0, ""), "pi has aborted"),
        (vec![json!({"stopReason": "safety"})], exit(0, ""), "the answer was refused or filtered"),
        (vec![odd], exit(0, ""), "pi stopped by \"odd\", which is no answer (exit code 0)"),
        (vec![well.clone()], no_pi, "pi: not found, install it"),
        (vec![well], late, late_words),
    ];
    for (messages, end, words) in table {
        assert_eq!(report(&ended(&messages), &end)["error"], words);
    }
    let long = format!("{}é{}", "x".repeat(100), "y".repeat(4095));
    let told = report(&ended(&[]), &exit(1, &long));
    let error = told["error"].as_str().unwrap();
    assert!(error.len() < 4096 && error.contains("exit code 1): y"), "{error}");
    assert_eq!(told["stderr_tail"], "y".repeat(4095));
}

/// A model that fails says so by an answer's end without usage: its own words were lost.
#[test]
fn the_error_of_an_answer_without_usage_has_the_words_of_the_model() {
    const DRIFT: &str = "usage is not an object in the message_end of the assistant's message 1: \
        tokens and costs would be wrong. Is this version of pi known?";
    let fine = json!({"stopReason": "stop"});
    for (stop_reason, message, words) in [
        ("error", json!("overloaded"), format!("overloaded; {DRIFT}")),
        ("aborted", json!("Request was aborted"), format!("Request was aborted; {DRIFT}")),
        ("error", json!(null), format!("the model failed; {DRIFT}")),
        ("stop", json!(null), DRIFT.to_owned()),
    ] {
        let failed = json!({"stopReason": stop_reason, "usage": null, "errorMessage": message});
        let told = report(&ended(std::slice::from_ref(&failed)), &done());
        assert_eq!((&told["error"], &told["finish_reason"]), (&json!(words), &json!("wire_drift")));
        // What went well in the end has no failure, but the sums are wrong still.
        let told = report(&ended(&[failed, fine.clone()]), &done());
        assert_eq!(told["error"], DRIFT);
    }
}
