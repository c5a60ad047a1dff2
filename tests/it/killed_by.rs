//! killed_by: whoever ended a session is told wherever its end is told (protocol.md, killed_by).

use crate::common::wire::Wire;
use crate::common::*;
use serde_json::{Value, json};

const STAYS: &str = "echo ready; sleep 300";

fn exit_of(execd: &mut Execd, session: u64) -> Value {
    execd.notification("session_exited", |exit| exit["session_id"] == session)
}

/// rule: protocol.md, killed_by: Of a shell that had ended by itself nothing is told, also where
///   what it left behind is ended
/// rule: protocol.md, killed_by: Who asked is told where execd has sent the shell a signal that
///   ended it
#[test]
fn kill_session_is_told_by_its_reply_by_other_waits_and_by_the_notification() {
    let mut execd = Execd::start();
    let session = execd.open_until(STAYS, "ready");
    let poll =
        execd.start_request("write_stdin", json!({"session_id": session, "yield_time_ms": 60_000}));
    let killed = execd.kill(session);
    assert_eq!(killed["killed_by"], "kill_session");
    let polled = execd.result_of(poll);
    assert_eq!(polled["killed_by"], "kill_session");
    let header = polled["header"].as_str().expect("text");
    assert!(header.contains("\nsignal: SIGTERM\nkilled_by: kill_session\n"), "{header}");
    assert_eq!(exit_of(&mut execd, session)["killed_by"], "kill_session");
    // Also where a trap has made an exit status of the signal.
    let trap = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let session = execd.open_until(trap, "ready");
    let killed = execd.kill(session);
    assert_eq!((&killed["exit_code"], &killed["killed_by"]), (&json!(7), &json!("kill_session")));
    // Not where the shell had ended by itself, and what holds its output was ended.
    let opened = execd.open("sleep 300 & exit 3");
    let killed = execd.kill(session_of(&opened));
    assert_eq!((&killed["killed"], &killed["exit_code"]), (&json!(true), &json!(3)));
    assert_absent(&killed, &["killed_by"]);
}

/// rule: protocol.md, killed_by: An end that execd did not bring about is told as a signal from
///   outside, or not at all
#[test]
fn an_end_that_execd_did_not_bring_about_is_a_signal_from_outside_or_its_own() {
    let mut execd = Execd::start();
    let told = |execd: &mut Execd, cmd: &str| execd.run(cmd).get("killed_by").cloned();
    assert_eq!(told(&mut execd, "kill -TERM $$"), Some(json!("signal from outside")));
    assert_eq!(told(&mut execd, "kill -KILL $$"), Some(json!("signal from outside")));
    assert_eq!(told(&mut execd, "kill -SEGV $$"), None);
    assert_eq!(told(&mut execd, "exit 143"), None);
    let session = execd.open_until(STAYS, "ready");
    let row = execd.listed(session).expect("it runs");
    assert_absent(&row, &["killed_by"]);
    send_signal(pid_of(&row), libc::SIGTERM);
    execd.until_listed_exited(session);
    let list = execd.peek();
    assert_eq!(list["sessions"][0]["killed_by"], "signal from outside");
    let text = list["text"].as_str().expect("text");
    assert!(text.contains("[exited signal=SIGTERM, killed by signal from outside]"), "{text}");
}

/// rule: protocol.md, killed_by: A signal that no SIGKILL follows counts for 2 s, and where the
///   session ended by it
#[test]
fn a_handled_signal_is_the_reason_for_an_end_that_follows_and_not_for_one_much_later() {
    let mut execd = Execd::start();
    let cmd = "trap 'echo got it' INT; echo ready; until [ -e go ]; do sleep 0.01; done; exit 4";
    let session = execd.open_until(cmd, "ready");
    // It is answered when the wait of 2 s for the end is over: the signal was handled.
    let params = json!({"sessionId": session, "signal": "INT"});
    assert_eq!(execd.result("kill_process", params)["status"], "running");
    std::fs::write(execd.file("go"), "").expect("a file");
    let exit = exit_of(&mut execd, session);
    assert_eq!(exit["exit_code"], 4);
    assert_absent(&exit, &["killed_by"]);
}

/// rule: protocol.md, killed_by: Who asked is told where execd has sent the shell a signal that
///   ended it
/// rule: protocol.md, Events: The end of execd is told as the reason of each kill
#[test]
fn the_end_of_execd_says_shutdown_or_that_its_client_has_gone() {
    for closes in [false, true] {
        let mut execd = Execd::with(&["--socket", "here.sock"], &[]);
        let session = execd.open_until(STAYS, "ready");
        let mut watcher = Wire::connect(&execd.file("here.sock"));
        watcher.result("ping", json!({}));
        if closes {
            execd.close_stdin();
        } else {
            execd.start_request("shutdown", json!({}));
        }
        let exit = watcher.note("session_exited", |exit| exit["session_id"] == session);
        let by = if closes { "client_gone" } else { "shutdown" };
        assert_eq!(exit["killed_by"], by, "{exit}");
        execd.wait_exit();
    }
}
