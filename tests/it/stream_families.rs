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
/// rule: bash-stream.md, The stream family: What unified-exec has removed is remembered too
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
    execd.failed("write_stdin", json!({"session_id": session}), "unknown_session");
    assert_eq!(poll(&mut execd, session), over, "what was removed is remembered");
}

// ---- Notifications ----------------------------------------------------------------------

// ---- The end of execd -------------------------------------------------------------------
