//! A wait that its client ends and whose answer the client goes on to read: `cancel` with `take`
//! and `reason` (protocol.md, cancel).

use crate::common::*;
use serde_json::{Value, json};

/// What a person's word ends a wait with.
const REASON: &str = "a message from the user came";

fn cancel(execd: &mut Execd, request: u64, more: &Value) -> bool {
    let mut params = more.clone();
    params["id"] = json!(request);
    execd.result("cancel", params)["cancelled"] == true
}

fn header(result: &Value) -> &str {
    result["header"].as_str().expect("a header")
}

/// rule: protocol.md, cancel: the answer then takes the output so far, of a poll too
/// rule: unified-exec.md, Sessions and waits: With `"take": true` a poll takes what came too
/// rule: protocol.md, cancel: one line of at most 200 bytes
/// rule: protocol.md, Events: unless `cancel` said that its answer is looked at (`take`)
#[test]
fn a_cancelled_poll_that_is_looked_at_takes_the_output_so_far_and_the_events() {
    let mut execd = Execd::start();
    let first = execd.open(&format!("{}; echo hi; exec sleep 300", until_file("go")));
    let ends = session_of(&execd.open(&format!("{}; exit 4", until_file("go"))));
    let poll = json!({"session_id": 1, "yield_time_ms": 60_000, "events": true});
    let request = execd.start_request("write_stdin", poll);
    for reason in ["two\nlines".to_owned(), "x".repeat(201), String::new()] {
        execd.refused("cancel", json!({"id": request, "reason": reason}), "reason");
    }
    go(&execd, "go");
    until_logged(&first, "hi");
    execd.notification("session_exited", |exit| exit["session_id"] == ends);
    execd.no_reply_yet(request);
    assert!(cancel(&mut execd, request, &json!({"take": true, "reason": "x".repeat(200)})));
    let result = execd.result_of(request);
    assert_eq!((&result["wait_status"], output(&result)), (&json!("cancelled"), "hi\n"));
    assert_eq!(result["wait_reason"], "x".repeat(200));
    assert_eq!(result["events"][0]["session_id"], ends, "{result}");
    assert!(header(&result).contains("\nevent: session "), "{result}");
    assert_eq!(execd.poll_now(1)["output"], "", "it was taken");
    let again = execd.result("list_sessions", json!({"peek": true, "events": true}));
    assert_absent(&again, &["events"]);
}

/// rule: unified-exec.md, Header and footer: `wait_status` is in the header only where `cancel` or
///   the end of execd has ended the wait
/// rule: waits.md, The reply: `outcome`: `cancelled`
/// rule: waits.md, The reply: Of a wait that was cancelled `wait_status: cancelled` is that line
#[test]
fn the_header_says_what_ended_a_wait_early_and_nothing_of_others() {
    let mut execd = Execd::start();
    let id = session_of(&execd.open("exec sleep 300"));
    assert!(!header(&execd.poll_now(id)).contains("wait_status"));
    let poll = json!({"session_id": id, "yield_time_ms": 60_000, "until": {"text": "never"}});
    let request = execd.start_request("write_stdin", poll.clone());
    assert!(cancel(&mut execd, request, &json!({"reason": REASON})));
    let result = execd.result_of(request);
    assert_eq!((&result["wait"]["why"], &result["wait_reason"]), (&json!(REASON), &json!(REASON)));
    let lines = header(&result).lines();
    let told: Vec<&str> = lines.filter(|line| line.starts_with("wait")).collect();
    assert_eq!(told, [format!("wait_status: cancelled ({REASON})")]);
    let request = execd.start_request("write_stdin", poll);
    execd.no_reply_yet(request);
    execd.start_request("shutdown", json!({}));
    let result = execd.result_of(request);
    assert!(header(&result).contains("\nwait_status: shutting_down\n"), "{result}");
}

/// rule: protocol.md, cancel: tells an exit that has come
#[test]
fn an_exit_that_comes_with_the_cancel_is_told_or_left_to_the_next_call() {
    let mut execd = Execd::start();
    // Which of the two comes first is open: nothing is lost or told twice either way.
    for _ in 0..10 {
        let opened = execd.open(&format!("{}; echo bye; exit 3", until_file("go")));
        let id = session_of(&opened);
        let poll = json!({"session_id": id, "yield_time_ms": 60_000});
        let request = execd.start_request("write_stdin", poll);
        go(&execd, "go");
        cancel(&mut execd, request, &json!({"take": true}));
        let mut result = execd.result_of(request);
        let mut told = output(&result).to_owned();
        if result["exit_code"].is_null() {
            assert_eq!(result["wait_status"], "cancelled", "{result}");
            result = execd.until_exit(id);
            told.push_str(output(&result));
        }
        assert_eq!((&result["exit_code"], told.as_str()), (&json!(3), "bye\n"));
        std::fs::remove_file(execd.file("go")).expect("the file");
    }
}

/// rule: protocol.md, cancel: A `wait_for` answers as at its deadline
#[test]
fn a_cancelled_wait_for_that_is_looked_at_tells_who_is_done() {
    let mut execd = Execd::start();
    let done = session_of(&execd.open(&format!("{}; echo one; exit 2", until_file("go"))));
    let runs = session_of(&execd.open("exec sleep 300"));
    let params = json!({"session_ids": [done, runs], "mode": "all", "timeout_ms": 60_000});
    let request = execd.start_request("wait_for", params);
    go(&execd, "go");
    execd.notification("session_exited", |note| note["session_id"] == done);
    assert!(cancel(&mut execd, request, &json!({"take": true, "reason": REASON})));
    let answer = execd.result_of(request);
    assert_eq!(answer["wait"]["outcome"], "cancelled", "{answer}");
    assert_eq!(answer["wait"]["why"], REASON);
    let text = answer["text"].as_str().expect("a text");
    assert!(text.starts_with(&format!("wait: cancelled ({REASON})")), "{text}");
    let rows = answer["sessions"].as_array().expect("rows");
    assert_eq!((&rows[0]["exit_code"], &rows[0]["output"]), (&json!(2), &json!("one\n")));
    assert_eq!(rows[1]["outcome"], "pending", "{answer}");
    assert!(execd.listed(done).is_none(), "its exit was told");
}
