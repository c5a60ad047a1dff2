//! kill_session: which signals it takes and how they are written, whom they reach (job control
//! groups, background jobs, stopped processes), the escalation to SIGKILL, what the result
//! tells, and what becomes of waits and of the session.

use crate::common::*;
use serde_json::{Value, json};

/// A command that ends with the number of the signal that it got.
const TELLING: &str = "for s in HUP INT QUIT USR1 USR2 TERM; do trap \"echo got $s; exit 9\" $s; done; \
                       echo ready; while :; do sleep 0.02; done";

/// Whether SIGKILL was needed; where it was not, the field may say so or be absent.
fn escalated(result: &Value) -> bool {
    result.get("escalated").is_some_and(|told| told.as_bool().expect("a boolean"))
}

/// A command that ignores SIGTERM.
const DEAF: &str = "trap '' TERM; echo ready; while :; do sleep 0.02; done";

fn kill_with(execd: &mut Execd, session: u64, signal: Value) -> Value {
    execd.result("kill_session", json!({"session_id": session, "signal": signal}))
}

/// rule: unified-exec.md, kill_session: The default signal is SIGTERM
/// rule: unified-exec.md, kill_session: Signals in any case, with or without SIG, or a number
#[test]
fn the_signal_asked_for_arrives_and_the_default_is_sigterm() {
    let mut execd = Execd::start();
    for (signal, name) in [
        (None, "TERM"),
        (Some(json!("sigTERM")), "TERM"),
        (Some(json!("HUP")), "HUP"),
        (Some(json!("int")), "INT"),
        (Some(json!("SIGQUIT")), "QUIT"),
        (Some(json!(10)), "USR1"),
        (Some(json!("Usr2")), "USR2"),
    ] {
        let session = execd.open_until(TELLING, "ready");
        let pid = pid_of(&execd.poll_now(session));
        let result = match &signal {
            None => execd.kill(session),
            Some(signal) => kill_with(&mut execd, session, signal.clone()),
        };
        let text = result["final_output"].as_str().expect("text");
        assert!(text.contains(&format!("got {name}\n")), "{signal:?}: {result}");
        // A command that ends itself on the signal tells its exit code.
        assert_eq!((&result["exit_code"], escalated(&result)), (&json!(9), false));
        assert_absent(&result, &["signal"]);
        let summary = format!("Killed session {session} (pid {pid}) with SIG{name} — exit_code=9");
        assert_eq!(result["summary"], summary);
    }
}

/// rule: unified-exec.md, kill_session: It answers as soon as all are gone
/// rule: unified-exec.md, kill_session: The result has found, killed, escalated, exit_code or
///   signal, log_path, final_output, summary
/// rule: unified-exec.md, kill_session: Unknown session: `{found: false, session_id}`, no error
/// rule: unified-exec.md, write_stdin: Observing the exit removes the session
/// rule: architecture.md, Bounds: execd guards other sessions from one session
/// rule: protocol.md, kill_session: the signal that was asked for
/// rule: architecture.md, Ending a session: A stopped process is continued, so that it can act on
///   the signal
#[test]
fn the_result_tells_what_became_of_the_session_which_is_gone_then() {
    let mut execd = Execd::start();
    let other = session_of(&execd.open(&format!("{}; exit 3", until_file("go"))));
    let opened = execd.open("sleep 60");
    let (session, pid) = (session_of(&opened), pid_of(&opened));
    send_signal(pid, libc::SIGSTOP);
    eventually("it is stopped", || process_state(pid) == Some('T'));
    let poll = json!({"session_id": session, "yield_time_ms": 50_000});
    let poll = execd.start_request("write_stdin", poll);
    let result = execd.kill(session);
    let told = execd.result_of(poll);
    assert_eq!((&told["wait_status"], &told["signal"]), (&json!("completed"), &json!("SIGTERM")));
    assert_eq!((&result["found"], &result["session_id"]), (&json!(true), &json!(session)));
    assert_eq!((&result["pid"], &result["asked_signal"]), (&json!(pid), &json!("SIGTERM")));
    assert_eq!((&result["killed"], escalated(&result)), (&json!(true), false));
    assert_eq!((&result["signal"], &result["log_path"]), (&json!("SIGTERM"), &opened["log_path"]));
    let summary = format!("Killed session {session} (pid {pid}) with SIGTERM — signal=SIGTERM");
    assert_eq!(result["summary"], summary);
    assert_absent(&result, &["exit_code", "survivors", "note"]);
    assert!(!is_alive(pid));
    assert!(execd.listed(session).is_none() && execd.listed(other).is_some());
    execd.failed("write_stdin", json!({"session_id": session}), "unknown_session");
    assert_eq!(execd.kill(session)["found"], false);
    assert_eq!(execd.kill(99), json!({"found": false, "session_id": 99}));
    // The kill of one that has exited tells its exit.
    go(&execd, "go");
    execd.until_listed_exited(other);
    let result = execd.kill(other);
    assert_eq!((&result["found"], &result["exit_code"]), (&json!(true), &json!(3)));
    execd.failed("write_stdin", json!({"session_id": other}), "unknown_session");
}

/// rule: architecture.md, Ending a session: After the grace SIGKILL the same way
/// rule: unified-exec.md, kill_session: 2 s later SIGKILL if anything is left (`escalated: true`)
#[test]
fn a_command_that_ignores_the_signal_gets_sigkill() {
    let mut execd = Execd::start();
    let first = execd.open_until(DEAF, "ready");
    let pid = pid_of(&execd.listed(first).expect("a row"));
    let job = execd.open_until(&format!("({DEAF}) & sleep 300"), "ready");
    let asked = execd.open_until(DEAF, "ready");
    let kill = |session| json!({"session_id": session});
    let started = now();
    let kills =
        [first, first, job].map(|session| execd.start_request("kill_session", kill(session)));
    let results = kills.map(|id| execd.result_of(id));
    assert!(started.elapsed().as_millis() >= 1_900, "after a grace of 2 s");
    // Two kills of one session are both answered, and so is a background job that ignores it too.
    for at in [0, 2] {
        assert!(results[at]["killed"] == true && escalated(&results[at]), "{results:?}");
    }
    assert_eq!(
        (&results[0]["signal"], &results[1]["signal"]),
        (&json!("SIGKILL"), &json!("SIGKILL"))
    );
    let summary = format!(
        "Killed session 1 (pid {pid}) with SIGTERM — escalated to SIGKILL — signal=SIGKILL"
    );
    assert_eq!(results[0]["summary"], summary);
    // SIGKILL that was asked for is no escalation, and ends the grace of an earlier signal.
    let result = kill_with(&mut execd, asked, json!("KILL"));
    assert_eq!((&result["signal"], escalated(&result)), (&json!("SIGKILL"), false));
    assert_absent(&result, &["note"]);
    let session = execd.open_until(DEAF, "ready");
    let gentle = execd.start_request("kill_session", kill(session));
    assert_eq!(kill_with(&mut execd, session, json!("SIGKILL"))["signal"], "SIGKILL");
    assert_eq!(execd.result_of(gentle)["signal"], "SIGKILL");
    assert_eq!(execd.session_processes().len(), 0);
}

/// rule: unified-exec.md, kill_session: `final_output` is truncated like any output
#[test]
fn final_output_holds_what_nobody_had_read_truncated_like_any_output() {
    let mut execd = Execd::start();
    let cmd = "trap 'seq 1 3000; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
    let session = execd.open_ready(cmd, "ready", json!({}));
    let result = execd.kill(session);
    let text = result["final_output"].as_str().expect("text");
    let expected: Vec<String> = (1_001..=3_000).map(|i| i.to_string()).collect();
    assert_eq!(text, expected.join("\n"));
    assert!(log_of(&result).ends_with(b"\n3000\n"), "the log is complete");
}

/// rule: architecture.md, Ending a session: Background jobs and their process groups belong to the
///   session
/// rule: unified-exec.md, kill_session: The signal goes to everything in the session
#[test]
fn background_jobs_and_job_control_groups_are_reached() {
    let mut execd = Execd::start();
    for (cmd, tty) in [
        ("set -m; sleep 300 & sleep 300 | sleep 300 & echo ready; wait", false),
        ("set -m; (sleep 300 & sleep 300 & wait) & echo ready; wait", false),
        ("sleep 300 & (sleep 300; true) & bash -c 'sleep 300; true' & echo ready; wait", false),
        ("set -m; sleep 300 & sleep 300 & echo ready; wait", true),
        ("sleep 300 >/dev/null 2>&1 & echo ready; wait", false),
    ] {
        let session = execd.open_until_with(cmd, "ready", json!({"tty": tty}));
        assert!(execd.session_processes().len() > 1, "{:?}", execd.session_processes());
        let result = execd.kill(session);
        assert_eq!((&result["killed"], escalated(&result)), (&json!(true), false), "{result}");
        assert_eq!(execd.session_processes().len(), 0, "all are gone when the answer comes");
    }
}

/// The story: each look for members signalled whoever was new, so the commands that a trap
/// started to clean up were themselves ended by SIGTERM a moment later.
#[test]
fn the_commands_of_a_trap_are_spared_until_sigkill() {
    let mut execd = Execd::start();
    let cmd = "trap 'sleep 0.3 && echo cleaned up; exit 0' TERM; echo ready; \
               while :; do sleep 0.02; done";
    let session = execd.open_ready(cmd, "ready", json!({}));
    let result = execd.kill(session);
    // The shell says "Terminated" about the sleep that the signal ended.
    let text = result["final_output"].as_str().expect("text");
    assert!(text.ends_with("cleaned up\n"), "{text}");
    assert_eq!((&result["exit_code"], &result["escalated"]), (&json!(0), &json!(false)));
}
