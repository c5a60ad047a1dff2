//! One table of sessions under two families: each has its own unread position, jobs can be
//! driven by unified-exec's methods and its sessions by the stream family's, and notifications
//! tell of both.

use crate::common::*;
use crate::stream_help::*;
use serde_json::{Value, json};

fn exits_of(execd: &mut Execd, session: u64) -> Vec<Value> {
    let all = execd.notified("session_exited");
    all.into_iter().filter(|exit| exit["session_id"] == session).collect()
}

// ---- Jobs under unified-exec ------------------------------------------------------------

#[test]
fn a_running_job_is_in_list_sessions_and_leaves_it_at_its_end() {
    let mut execd = Execd::start();
    let opened = open_with(&mut execd, "read x", json!({"name": "mine"}));
    let listed = execd.listed(1).expect("it is listed");
    for (one, other) in [("pid", "pid"), ("log_path", "logPath")] {
        assert_eq!(listed[one], opened[other], "{one}");
    }
    assert_eq!((&listed["name"], &listed["running"]), (&json!("mine"), &json!(true)));
    execd.write(json!({"session_id": 1, "chars": "\\n", "yield_time_ms": 30_000}));
    assert!(execd.listed(1).is_none());
    execd.failed("write_stdin", json!({"session_id": 1}), "unknown_session");
    assert_eq!(execd.kill(1)["found"], false);
    assert_eq!(poll(&mut execd, 1)["status"], "completed", "the stream family knows it");
}

/// rule: unified-exec.md, The same sessions: Each tool family has its own unread position on a
///   session
/// rule: bash-stream.md, The stream family: Stream calls take nothing from unified-exec
#[test]
fn the_reads_of_the_families_take_nothing_from_each_other() {
    let mut execd = Execd::start();
    open_until(&mut execd, "echo one; read x; echo two; read x; exit 1", "one");
    for told in ["one\n", ""] {
        assert_eq!(unified_poll(&mut execd, 1)["output"], told);
    }
    assert_eq!(poll(&mut execd, 1)["stdout"], "one\n");
    // Output ends the wait of one, and not that of the other.
    let waits = json!({"session_id": 1, "yield_time_ms": 50_000, "on_impossible": "wait"});
    let unified = execd.start_request("write_stdin", waits);
    let stream = execd.start_request("poll_process", json!({"sessionId": 1, "maxDrainMs": 50_000}));
    execd.result("write_stdin", json!({"sessionId": 1, "data": "\n"}));
    assert_eq!(execd.result_of(stream)["stdout"], "two\n");
    assert_eq!(poll(&mut execd, 1)["stdout"], "");
    execd.no_reply_yet(unified);
    execd.result("write_stdin", json!({"sessionId": 1, "data": "\n"}));
    let result = execd.result_of(unified);
    assert_eq!((&result["output"], &result["exit_code"]), (&json!("two\n"), &json!(1)));
    assert_eq!(until_over(&mut execd, 1)["stdout"], "one\ntwo\n");
}

// ---- Sessions of exec_command under the stream family -----------------------------------

/// rule: bash-stream.md, The stream family: Stream calls take nothing from unified-exec
#[test]
fn a_session_of_exec_command_can_be_polled_and_is_listed() {
    let mut execd = Execd::start();
    let more = json!({"name": "n", "on_exit": "wake"});
    let opened = execd.open_with("echo hi; echo err >&2; read x; exit 4", more);
    let session = session_of(&opened);
    until_logged(&opened, "err");
    let row = row(&mut execd, session).expect("it is listed");
    assert_eq!((&row["status"], &row["name"]), (&json!("running"), &json!("n")));
    assert_eq!((&row["pid"], &row["stdinMode"]), (&opened["pid"], &json!("pipe")));
    let [polled, again] = [(); 2].map(|()| poll(&mut execd, session));
    assert_eq!((&polled["status"], &polled["pid"]), (&json!("running"), &opened["pid"]));
    assert_eq!((&polled["stdout"], &polled["stderr"]), (&json!("hi\nerr\n"), &json!("")));
    assert_eq!(again["stdout"], "", "what was told is not told again");
    execd.result("write_stdin", json!({"sessionId": session, "data": "\n"}));
    let over = until_over(&mut execd, session);
    assert_eq!((&over["status"], &over["exitCode"]), (&json!("failed"), &json!(4)));
    assert_eq!((&over["stdout"], &over["aggregated"]), (&json!("hi\nerr\n"), &json!("hi\nerr\n")));
    // The end that this family was told is still there for the other, and so is the wake.
    let exit = execd.notification("session_exited", |_| true);
    assert_eq!((&exit["wake"], &exit["observed"]), (&json!(true), &json!(false)));
    let result = unified_poll(&mut execd, session);
    assert_eq!((&result["exit_code"], &result["wait_status"]), (&json!(4), &json!("completed")));
    assert_eq!(exits_of(&mut execd, session).len(), 1, "exactly once");
}

/// rule: bash-stream.md, The stream family: What unified-exec has removed is remembered too
#[test]
fn one_that_unified_exec_has_consumed_is_remembered() {
    let mut execd = Execd::start();
    let opened = execd.open("echo hi; read x; echo bye; exit 4");
    let session = session_of(&opened);
    let params = json!({"session_id": session, "chars": "\\n", "yield_time_ms": 30_000});
    assert_eq!(execd.write(params)["exit_code"], 4);
    execd.failed("write_stdin", json!({"session_id": session}), "unknown_session");
    assert_eq!(listed_ids(&mut execd), [session]);
    let row = row(&mut execd, session).expect("a row");
    assert_eq!((&row["status"], &row["exitCode"]), (&json!("failed"), &json!(4)));
    let polls = [(); 10].map(|()| poll(&mut execd, session));
    assert_eq!((&polls[0]["exitCode"], &polls[0]["aggregated"]), (&json!(4), &json!("hi\nbye\n")));
    assert!(polls.iter().all(|polled| *polled == polls[0]));
    let page = page(&mut execd, session, json!({}));
    assert_eq!((&page["text"], &page["eof"]), (&json!("hi\nbye\n"), &json!(true)));
}

// ---- Notifications ----------------------------------------------------------------------

#[test]
fn a_job_is_announced_at_once_and_its_end_right_after_the_reply() {
    let mut execd = Execd::start();
    let (request, session) = begin(&mut execd, "exit 3", json!({}));
    execd.result_of(request);
    let exit = execd.notification("session_exited", |_| true);
    assert_eq!((&exit["session_id"], &exit["exit_code"]), (&json!(session), &json!(3)));
    assert_eq!((&exit["observed"], exit.get("wake")), (&json!(true), None));
    let place = execd.reply_position(request);
    assert_eq!(execd.position(|line| line["method"] == "session_exited"), Some(place + 1));
    let started = execd.position(|line| line["method"] == "session_started");
    assert!(started.is_some_and(|at| at < place));
    // With a background it comes when that has ended.
    run(&mut execd, &format!("({}) & exit 2", until_file("go")));
    assert!(exits_of(&mut execd, session + 1).is_empty());
    go(&execd, "go");
    let exit = execd.notification("session_exited", |_| true);
    assert_eq!((&exit["session_id"], &exit["exit_code"]), (&json!(session + 1), &json!(2)));
    assert_eq!(exit["observed"], true, "the reply told the end");
}

// ---- The end of execd -------------------------------------------------------------------

#[test]
fn a_job_ends_with_execd() {
    let mut execd = Execd::start();
    open(&mut execd, "set -m; sleep 300 & sleep 300");
    let (request, _) = begin(&mut execd, "echo hi; sleep 300", json!({}));
    next_chunk(&mut execd, request);
    execd.signal(libc::SIGTERM);
    let result = execd.result_of(request);
    assert!(["running", "failed"].contains(&text(&result, "status")), "answered: {result}");
    assert_eq!(execd.wait_exit().code(), Some(128 + libc::SIGTERM));
    execd.until_no_session_process();
}
