//! Tests of how a run is said to have ended: finish_reason, success and the words of its error.

use serde_json::{Value, json};

use super::{AgentRun, End, Policy, RunSettings, Stop};

/// A run whose assistant's messages ended like this.
fn ended(messages: &[Value]) -> AgentRun {
    let mut run = AgentRun::new(RunSettings::default());
    for message in messages {
        let mut whole = json!({"role": "assistant", "content": [],
            "usage": {"input": 1, "output": 2, "cost": {"total": 0.5}}});
        for (name, value) in message.as_object().unwrap() {
            whole[name] = value.clone();
        }
        let line = format!("{}\n", json!({"type": "message_end", "message": whole}));
        run.push(line.as_bytes(), 0, &mut |_| {});
    }
    run
}

fn report(run: &AgentRun, end: &End<'_>) -> Value {
    serde_json::to_value(run.report(end)).unwrap()
}

const OK: End<'static> = End {
    stop: None,
    failure: None,
    exit_code: Some(0),
    signal: None,
    killed_by: None,
    stderr: "",
    duration_ms: 0,
    executor_version: None,
    log_path: None,
    log_from: None,
    started_at: "",
    cpu_seconds: None,
    max_rss_kib: None,
    policy: Policy { tools: None, extensions: &[], session: None, isolation: "shared" },
    args: &[],
    agent_dir: None,
    started_at_once: None,
};

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
        ("length", "length", true),
        ("refusal", "content_filter", false),
        ("safety", "content_filter", false),
        ("aborted", "error", false),
        ("error", "error", false),
        ("deferred", "deferred", false),
        ("never_seen", "never_seen", false),
    ] {
        let told = report(&ended(&[json!({"stopReason": stop_reason})]), &OK);
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
        assert_eq!(report(&ended(&messages), &OK)["finish_reason"], finish_reason, "{reasons:?}");
    }
    let mut run = ended(&[json!({"stopReason": "toolUse"})]);
    let turn =
        json!({"type": "turn_end", "message": {"role": "assistant", "stopReason": "length"}});
    run.push(format!("{turn}\n").as_bytes(), 0, &mut |_| {});
    assert_eq!(report(&run, &OK)["finish_reason"], "length");
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
    let exit = |code| End { exit_code: Some(code), ..OK };
    let stopped = |stop| End { stop: Some(stop), exit_code: None, signal: Some("SIGTERM"), ..OK };
    let failure = End { failure: Some("not found"), exit_code: None, ..OK };
    for (message, end, finish_reason, success) in [
        (&well, exit(0), "stop", true),
        (&well, exit(1), "error", false),
        (&well, End { exit_code: None, signal: Some("SIGSEGV"), ..OK }, "error", false),
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
        (json!([1]), "usage is not an object"),
        (json!({"output": 1, "cost": cost}), "usage.input is missing"),
        (json!({"input": 1, "output": "1", "cost": cost}), "usage.output is not a number"),
        (json!({"input": 1, "output": -1, "cost": cost}), "usage.output is not a number"),
        (json!({"input": 1, "output": 1}), "usage.cost.total is missing"),
        (json!({"input": 1, "output": 1, "cost": 5}), "usage.cost.total is missing"),
        (json!({"input": 1, "output": 1, "cost": {"total": null}}), "usage.cost.total is not"),
    ] {
        let second = json!({"stopReason": "stop", "usage": usage});
        let run = ended(&[json!({"stopReason": "toolUse"}), second, json!({"usage": 1})]);
        let told = report(&run, &OK);
        assert_eq!(told["finish_reason"], "wire_drift", "{usage}");
        let error = told["error"].as_str().unwrap();
        assert!(error.starts_with(words), "{error}");
        assert!(error.contains("message 2"), "{error}");
    }
    let mut run = AgentRun::new(RunSettings::default());
    let line = json!({"type": "message_end", "message": {"role": "assistant"}});
    let mut told = Vec::new();
    for _ in 0..2 {
        run.push(format!("{line}\n").as_bytes(), 0, &mut |event| {
            told.push(event.message.unwrap_or_default().to_owned());
        });
    }
    assert_eq!(told, ["usage is missing in the message_end of the assistant's message 1"]);
}

/// rule: agent.md, The result: Exit ≠ 0: no success, error has the last 4 KiB of stderr
#[test]
fn the_words_of_an_error() {
    let exit = |code, stderr| End { exit_code: Some(code), stderr, ..OK };
    let broken = json!({"stopReason": "error", "errorMessage": "529 overloaded"});
    let well = json!({"stopReason": "stop"});
    let table: Vec<(Vec<Value>, End<'_>, &str)> = vec![
        (vec![], exit(1, "no key\n"), "pi ended without an answer (exit code 1): no key"),
        (vec![], exit(0, "oh no"), "pi ended without an answer (exit code 0): oh no"),
        (
            vec![],
            End { exit_code: None, signal: Some("SIGKILL"), ..OK },
            "pi ended without an answer (SIGKILL)",
        ),
        (vec![broken.clone()], exit(0, "overloaded"), "529 overloaded"),
        (vec![broken.clone()], exit(2, "at f"), "529 overloaded (exit code 2): at f"),
        (vec![broken, well.clone()], exit(3, ""), "pi failed after its answer (exit code 3)"),
        (vec![json!({"stopReason": "aborted"})], exit(0, ""), "pi has aborted"),
        (vec![json!({"stopReason": "safety"})], exit(0, ""), "the answer was refused or filtered"),
        (
            vec![json!({"stopReason": "odd"})],
            exit(0, ""),
            "pi stopped by \"odd\", which is no answer (exit code 0)",
        ),
        (
            vec![well.clone()],
            End {
                failure: Some("pi: not found, install it"),
                exit_code: None,
                stderr: "execd: pi: not found, install it",
                ..OK
            },
            "pi: not found, install it",
        ),
        (
            vec![well],
            End { stop: Some(Stop::HardTimeout(9)), ..exit(143, "bye") },
            "not done within 9 ms (timeout_ms); pi has told \"message_end\" last: bye",
        ),
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
        let told = report(&ended(std::slice::from_ref(&failed)), &OK);
        assert_eq!((&told["error"], &told["finish_reason"]), (&json!(words), &json!("wire_drift")));
        // What went well in the end has no failure, but the sums are wrong still.
        let told = report(&ended(&[failed, fine.clone()]), &OK);
        assert_eq!(told["error"], DRIFT);
    }
}

/// rule: agent.md, The result: What could not be known is absent
#[test]
fn what_is_not_known_is_absent() {
    let told = report(&ended(&[]), &OK);
    for name in [
        "session_id",
        "executor_version",
        "first_event_ms",
        "first_text_ms",
        "tokens_per_second",
        "log_path",
    ] {
        assert_eq!(told.get(name), None, "{name}");
    }
    assert_eq!(report(&ended(&[]), &End { exit_code: None, ..OK }).get("exit_code"), None);
    let pi = End { executor_version: Some("1.5.2"), log_path: Some("/l"), duration_ms: 5, ..OK };
    let told = report(&ended(&[]), &pi);
    assert_eq!(told["executor_version"], "1.5.2");
    assert_eq!((&told["log_path"], &told["duration_ms"]), (&json!("/l"), &json!(5)));
}
