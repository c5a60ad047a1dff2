//! Runs of pi that go on when their request is answered (docs/agent.md, Runs that go on): they are
//! told to whoever asks later, ended by whoever wants, and remembered.

use crate::agent_help::*;
use crate::common::wire::Wire;
use crate::common::*;
use serde_json::{Value, json};

const UNTIL_GO: &str = "until [ -e go ]; do sleep 0.02; done";

/// A pi that writes half of its answer, and the rest once the file `go` is there.
fn pi_in_two_parts(execd: &Execd) -> String {
    let parts = answer("Half");
    let head = stream_file(execd, "head", &parts[..5]);
    let tail = stream_file(execd, "tail", &parts[5..]);
    fake_pi(execd, &format!("cat {}; {UNTIL_GO}; cat {}", head.display(), tail.display()))
}

/// Starts a run and has its request answered at once; gives its number.
fn leave(execd: &mut Execd, pi: &str, more: Value) -> u64 {
    let told = execd.result("agent_execute", params(pi, merged(json!({"wait_ms": 0}), more)));
    for name in ["duration_ms", "num_turns", "tool_call_count", "total_tokens", "cost_usd"] {
        assert!(told[name].is_number(), "{name}: {told}");
    }
    assert_eq!(told["running"], true, "{told}");
    assert_absent(&told, &["success", "finish_reason", "output"]);
    told["run_id"].as_u64().expect("a number")
}

/// rule: agent.md, Runs that go on: With `wait_ms` agent_execute answers at the latest then, and
///   the run goes on
/// rule: agent.md, Runs that go on: agent_result waits for the run and answers as agent_execute
///   does
#[test]
fn a_run_goes_on_behind_its_answer_and_its_result_is_fetched() {
    let mut execd = Execd::start();
    let pi = pi_in_two_parts(&execd);
    let run = leave(&mut execd, &pi, json!({"label": "left"}));
    eventually("the run tells what it does", || {
        let told = execd.result("agent_result", json!({"run_id": run, "wait_ms": 0}));
        assert_eq!((&told["running"], &told["label"]), (&json!(true), &json!("left")), "{told}");
        told["doing"] == "Half" && told["num_turns"] == 1
    });
    let id = execd.start_request("agent_result", json!({"run_id": run}));
    execd.no_reply_yet(id);
    std::fs::write(execd.file("go"), "").expect("a file");
    let result = execd.result_of(id);
    assert_eq!((&result["success"], &result["finish_reason"]), (&json!(true), &json!("stop")));
    assert_eq!((&result["output"], &result["total_tokens"]), (&json!("Half"), &json!(110)));
    assert_eq!(result["label"], "left");
    // Who has lost the answer asks again.
    eventually("it is remembered", || {
        execd.ask("agent_result", json!({"run_id": run}))["result"] == result
    });
    // Its end is told: there is nothing more to tell.
    assert_eq!(execd.result("events", json!({"untold": true}))["events"], json!([]));
}

/// rule: agent.md, Runs that go on: `cancel` of agent_result ends the run; a cancelled agent_result
///   does not
#[test]
fn a_run_that_goes_on_is_ended_by_the_one_that_says_so() {
    let mut execd = Execd::start();
    let file = stream_file(&execd, "lines", &begun());
    let pi = fake_pi(&execd, &format!("cat {}; sleep 1000 & wait", file.display()));
    let run = leave(&mut execd, &pi, json!({}));
    let waits = execd.start_request("agent_result", json!({"run_id": run}));
    assert!(execd.cancel(waits));
    assert_eq!(execd.result_of(waits)["running"], true);
    let result = execd.result("agent_result", json!({"run_id": run, "cancel": true}));
    assert_eq!(result["finish_reason"], "cancelled", "{result}");
    assert_eq!((&result["killed_by"], &result["success"]), (&json!("cancel"), &json!(false)));
    assert!(execd.session_processes().is_empty());
}

/// rule: agent.md, Runs that go on: Events go to the oldest request that waits, where it asks for
///   them
/// rule: agent.md, Runs that go on: The end that nobody waited for is an event, and its result is
///   remembered
#[test]
fn events_go_to_the_request_that_waits_and_an_end_without_one_is_told_and_kept() {
    let mut execd = Execd::start();
    let pi = pi_in_two_parts(&execd);
    let (waited, left) = (leave(&mut execd, &pi, json!({})), leave(&mut execd, &pi, json!({})));
    let quiet = execd.result("agent_result", json!({"run_id": waited, "wait_ms": 0}));
    assert_eq!(quiet["running"], true);
    let id = execd.start_request("agent_result", json!({"run_id": waited, "stream": true}));
    execd.no_reply_yet(id);
    std::fs::write(execd.file("go"), "").expect("a file");
    assert_eq!(execd.result_of(id)["output"], "Half");
    let events = events_of(&mut execd, id);
    assert_eq!(events.last().expect("one")["event"], "turn_end", "{events:?}");
    eventually("the end of the other one is an event", || {
        let told = execd.result("events", json!({}))["events"].clone();
        let its = |event: &&Value| event["session_id"] == left && event["what"] == "exited";
        told.as_array().expect("events").iter().any(|event| its(&event))
    });
    let result = execd.result("agent_result", json!({"run_id": left}));
    assert_eq!((&result["success"], &result["output"]), (&json!(true), &json!("Half")));
    assert!(execd.session_processes().is_empty());
}

/// rule: agent.md, Runs that go on: Who is told the result is told it once it is there, whoever
///   else waits
#[test]
fn a_run_that_is_waited_for_is_told_to_others_too() {
    let mut execd = Execd::start();
    let pi = pi_in_two_parts(&execd);
    let first = execd.start_request("agent_execute", params(&pi, json!({"stream": false})));
    let note = execd.notification("session_started", |_| true);
    let second = execd.start_request("agent_result", json!({"run_id": note["session_id"]}));
    execd.no_reply_yet(second);
    std::fs::write(execd.file("go"), "").expect("a file");
    assert_eq!(execd.result_of(first), execd.result_of(second));
}

/// A look at a run meanwhile had its result kept although agent_execute answered with it.
/// rule: agent.md, Runs that go on: A result that agent_execute has answered with is not kept,
///   whoever has looked at the run before
#[test]
fn a_look_at_a_run_that_is_waited_for_keeps_no_result() {
    let mut execd = Execd::start();
    let pi = pi_in_two_parts(&execd);
    let id = execd.start_request("agent_execute", params(&pi, json!({"stream": false})));
    let run = json!({"run_id": execd.notification("session_started", |_| true)["session_id"]});
    let looked = execd.result("agent_result", merged(run.clone(), json!({"wait_ms": 0})));
    assert_eq!(looked["running"], true, "{looked}");
    std::fs::write(execd.file("go"), "").expect("a file");
    assert_eq!(execd.result_of(id)["output"], "Half");
    eventually("the run is over", || {
        let reply = execd.ask("agent_result", run.clone());
        reply["error"]["data"]["reason"] == "unknown_session"
    });
}

/// The run was ended with the client of agent_execute although somebody else waited for it.
/// rule: agent.md, Runs that go on: Where the client of agent_execute is gone, a run goes on for
///   those who wait for it
#[test]
fn a_run_outlives_its_client_where_another_waits() {
    let mut execd = Execd::start();
    let pi = pi_in_two_parts(&execd);
    let mut wire = Wire::connect(&execd.socket());
    wire.send("agent_execute", params(&pi, json!({"stream": false})));
    let run = wire.note("session_started", |_| true)["session_id"].clone();
    let id = execd.start_request("agent_result", json!({ "run_id": run }));
    execd.no_reply_yet(id);
    drop(wire);
    eventually("its client is gone", || {
        execd.result("server_info", json!({}))["clients"]["connected"] == 0
    });
    execd.no_reply_yet(id);
    // Who was told that it goes on finds it going on.
    let looked = execd.result("agent_result", json!({"run_id": run, "wait_ms": 0}));
    assert_eq!(looked["running"], true, "{looked}");
    std::fs::write(execd.file("go"), "").expect("a file");
    let result = execd.result_of(id);
    assert_eq!((&result["success"], &result["output"]), (&json!(true), &json!("Half")));
}

/// rule: agent.md, Runs that go on: At the end of stdin they end with all other sessions
#[test]
fn a_run_that_goes_on_ends_with_execd() {
    let mut execd = Execd::start();
    let pi = fake_pi(&execd, "setsid sleep 1000 & sleep 1000");
    leave(&mut execd, &pi, json!({}));
    execd.close_stdin();
    assert!(execd.wait_exit().success());
    assert!(execd.session_processes().is_empty());
}
