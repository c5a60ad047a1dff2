//! The kind of a failed run and its error for people (agent.md, error_kind), through execd: what
//! real pis wrote when they failed, and what execd ends itself.

use std::path::Path;

use crate::agent_help::*;
use crate::common::*;
use serde_json::{Value, json};

/// Says and does what the files beside it say.
const REPEAT: &str = "cat stream; cat stderr >&2; . ./how";

fn failures() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pi-errors/texts.json");
    let json = std::fs::read_to_string(path).expect("the fixture");
    serde_json::from_str(&json).expect("entries")
}

/// The stream of a pi that told this of its last answer.
fn stream_of(entry: &Value) -> Vec<Value> {
    let mut lines = vec![session()];
    let Some(stop) = entry["stop_reason"].as_str() else { return lines };
    let used = if stop == "stop" { usage(100, 10, 0.25) } else { usage(0, 0, 0.0) };
    let mut end = assistant_end("", &used, stop);
    let message = end["message"].as_object_mut().expect("a message");
    for (ours, theirs) in [("error_message", "errorMessage"), ("raw_stop_reason", "rawStopReason")]
    {
        if entry[ours].is_string() {
            message.insert(theirs.to_owned(), entry[ours].clone());
        }
    }
    lines.extend([agent_start(), turn_start(), assistant_start(), end, turn_end(), agent_end()]);
    if let Some(words) = entry["final_error"].as_str() {
        let end = json!({"type": "auto_retry_end", "success": false, "attempt": 2,
            "finalError": words});
        lines.push(end);
    }
    lines
}

fn how(entry: &Value) -> String {
    match entry["signal"].as_str() {
        Some(signal) => format!("kill -s {} $$", signal.trim_start_matches("SIG")),
        None => format!("exit {}", entry["exit_code"]),
    }
}

/// rule: agent.md, error_kind: What pi really writes is of the kind that a runner needs
/// rule: agent.md, error_kind: Where pis fail for the locks of one agent directory, the error says
///   what to do
#[test]
fn what_real_pis_wrote_is_told_with_its_kind() {
    let mut execd = Execd::start();
    let pi = fake_pi(&execd, REPEAT);
    let mut wrong = Vec::new();
    for entry in failures() {
        let case = entry["case"].as_str().expect("a name");
        stream_file(&execd, "stream", &stream_of(&entry));
        std::fs::write(execd.file("stderr"), entry["stderr"].as_str().unwrap_or("")).expect(case);
        std::fs::write(execd.file("how"), how(&entry)).expect(case);
        let result = execd.result("agent_execute", params(&pi, json!({"stream": false})));
        let success = entry["kind"] == "none";
        let kind = if success { &Value::Null } else { &entry["kind"] };
        let error = result["error"].as_str().unwrap_or("");
        let fits = result["error_kind"] == *kind
            && result["success"] == success
            && error.is_empty() == success;
        if !fits {
            let version = &entry["version"];
            wrong.push(format!("{version} {case}, {kind}: {} {error:?}", result["error_kind"]));
        }
        if case.starts_with("lock-") && !success {
            assert!(error.contains("execd agent --isolate"), "{error}");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// rule: agent.md, error_kind: What execd ended itself, and pi's own fields, count before any words
/// rule: agent.md, error_kind: crash: pi ended by a signal or by an exception
#[test]
fn what_execd_ends_and_finds_itself_has_a_kind() {
    const STAY: &str = "cat stream; exec sleep 1000";
    const EXIT: &str = "cat stream";
    let answered = answer("Done.");
    let begun = begun();
    let mut unused = answer("Done.");
    unused[5]["message"]["usage"] = Value::Null;
    let mut refused = answer("No.");
    refused[5]["message"]["stopReason"] = json!("error");
    refused[5]["message"]["rawStopReason"] = json!("refusal");
    let mut other = answer("Done.");
    other[5]["message"]["provider"] = json!("fake");
    other[5]["message"]["model"] = json!("another");
    let before = vec![session(), agent_start(), turn_start()];
    let stopped = |stop: &str| {
        let mut lines = answer("Done.");
        lines[5]["message"]["stopReason"] = json!(stop);
        lines
    };
    let mut execd = Execd::start();
    for (script, lines, more, kind, words) in [
        (STAY, &begun, json!({"timeout_ms": 300}), "timeout", "(timeout_ms)"),
        (EXIT, &answered, json!({"max_tokens": 5}), "budget", "max_tokens"),
        (EXIT, &unused, json!({}), "drift", "usage"),
        (EXIT, &refused, json!({}), "refusal", ""),
        (EXIT, &stopped("refusal"), json!({}), "refusal", "refused"),
        (EXIT, &other, json!({}), "model_not_found", "another"),
        (EXIT, &stopped("odd"), json!({}), "other", "odd"),
        (EXIT, &before, json!({}), "other", "without an answer"),
        ("cat stream; kill -9 $$", &answered, json!({}), "crash", "SIGKILL"),
        ("cat stream; exit 3", &answered, json!({}), "crash", "exit code 3"),
        ("exit 3", &answered, json!({}), "crash", "exit code 3"),
        ("exit 3", &answered, json!({"pi_path": "/no/pi"}), "not_started", "/no/pi"),
    ] {
        stream_file(&execd, "stream", lines);
        let result = run_as(&mut execd, script, &more);
        let place = format!("{script}, {more}: {result}");
        assert_eq!(result["error_kind"], kind, "{place}");
        assert_eq!(result["success"], false, "{place}");
        assert!(result["error"].as_str().is_some_and(|text| text.contains(words)), "{place}");
    }
    stream_file(&execd, "stream", &answered);
    let result = run_as(&mut execd, EXIT, &json!({}));
    assert_eq!((&result["success"], result.get("error_kind")), (&json!(true), None), "{result}");
}

/// Runs this script as pi; `pi_path` of `more` counts.
fn run_as(execd: &mut Execd, script: &str, more: &Value) -> Value {
    let pi = fake_pi(execd, script);
    execd.result("agent_execute", merged(params(&pi, json!({})), more.clone()))
}
