//! kill_process: SIGKILL to everything of a process unless another signal is named, whom it
//! reaches, when it answers, and that no grandchild can make it hang.

use crate::common::*;
use crate::stream_help::*;
use serde_json::{Value, json};

/// A command that no signal but SIGKILL ends.
const DEAF: &str = "trap '' HUP INT QUIT USR1 USR2 TERM; echo ready; while :; do sleep 0.02; done";

fn kill_with(execd: &mut Execd, session: u64, signal: Value) -> Value {
    execd.result("kill_process", json!({"sessionId": session, "signal": signal}))
}

fn is_killed(result: &Value) -> bool {
    result["status"] == "failed" && result["signal"] == "SIGKILL"
}

// ---- SIGKILL ----------------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: kill_process: SIGKILL to the whole session; another
///   signal answers within 2 s
#[test]
fn the_default_is_sigkill_and_all_who_wait_get_the_final_status() {
    let mut execd = Execd::start();
    let (request, session) = begin(&mut execd, &format!("echo err >&2; {DEAF}"), json!({}));
    eventually("it is ready", || text(&poll(&mut execd, session), "tail").contains("ready\n"));
    let poll_params = json!({"sessionId": session, "maxDrainMs": 60_000});
    let waiting = execd.start_request("poll_process", poll_params);
    let unified = json!({"session_id": session, "yield_time_ms": 50_000});
    let unified = execd.start_request("write_stdin", unified);
    let result = kill(&mut execd, session);
    assert_fields(&result, &killed_and(&[]));
    assert!(is_killed(&result), "{result}");
    assert_eq!((&result["stdout"], &result["stderr"]), (&json!("ready\n"), &json!("err\n")));
    assert!(execd.session_processes().is_empty(), "all are gone when the answer comes");
    assert_eq!(
        [execd.result_of(request), execd.result_of(waiting)],
        [result.clone(), result.clone()]
    );
    let told = execd.result_of(unified);
    assert_eq!((&told["wait_status"], &told["signal"]), (&json!("completed"), &json!("SIGKILL")));
    assert_eq!(poll(&mut execd, session), result, "as poll_process");
    assert_eq!(kill(&mut execd, session), result, "and as another kill");
    let row = row(&mut execd, session).expect("it is listed");
    assert_eq!((&row["status"], &row["signal"]), (&json!("failed"), &json!("SIGKILL")));
}

/// rule: bash-stream.md, The stream family: kill_process: SIGKILL to the whole session; another
///   signal answers within 2 s
#[test]
fn job_control_groups_and_their_children_are_reached() {
    for command in [
        "set -m; sleep 300 & sleep 300 | sleep 300 & (sleep 300 & sleep 300) & echo ready; wait",
        "sleep 300 & (sleep 300; true) & bash -c 'sleep 300; true' & echo ready; wait",
        "sleep 300 >/dev/null 2>&1 </dev/null & echo ready; sleep 300",
        "trap '' TERM; (trap '' TERM; while :; do sleep 0.02; done) & echo ready; wait",
        "sleep 300 & echo ready; kill -STOP $$",
        // Some are made while all are ended.
        "echo ready; while :; do (sleep 0.01; sleep 300) & sleep 0.005; done",
    ] {
        let mut execd = Execd::start();
        open_until(&mut execd, command, "ready");
        // A process in the middle of its exec shows no environment, and so no session.
        eventually(command, || execd.session_processes().len() > 1);
        assert!(is_killed(&kill(&mut execd, 1)), "{command}");
        assert!(execd.session_processes().is_empty(), "{command}");
    }
}

/// rule: bash-stream.md, The stream family: Never hangs on a grandchild that holds the pipe
#[test]
fn a_grandchild_that_holds_the_pipe_in_a_session_of_its_own_makes_nobody_wait() {
    let mut execd = Execd::start();
    execd.leaves_processes_behind();
    let started = now();
    let result = run(&mut execd, "setsid sleep 300 & echo hi");
    assert_eq!((&result["status"], &result["stdout"]), (&json!("completed"), &json!("hi\n")));
    for mode in ["pipe", "pty"] {
        let command = "setsid bash -c 'echo held; sleep 300' & sleep 300";
        let opened = open_with(&mut execd, command, json!({"stdinMode": mode}));
        until_printed(&opened, "held");
        let waiting = json!({"sessionId": opened["sessionId"], "maxDrainMs": 100_000});
        poll(&mut execd, id_of(&opened));
        let poll = execd.start_request("poll_process", waiting);
        let result = kill(&mut execd, id_of(&opened));
        assert!(is_killed(&result), "{mode}: {result}");
        assert!(is_killed(&execd.result_of(poll)), "{mode}");
        let row = row(&mut execd, id_of(&opened)).expect("it is listed");
        assert_eq!(row["status"], "failed", "{mode}");
    }
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
}

/// It got SIGKILL at once, and the answer came before it was gone.
#[test]
fn a_signal_to_the_background_of_a_finished_job_lets_it_clean_up() {
    let mut execd = Execd::start();
    let marker = execd.tmpdir().join("cleaned");
    let trap = format!("trap 'sleep 0.2; : >{}; exit' TERM", marker.display());
    let command = format!("({trap}; while :; do sleep 0.02; done) >/dev/null 2>&1 & echo hi");
    let result = run(&mut execd, &command);
    assert_eq!(result["status"], "completed");
    eventually("the trap is set", || execd.session_processes().len() > 1);
    let killed = kill_with(&mut execd, 1, json!("TERM"));
    assert_eq!((&killed["status"], &killed["stdout"]), (&json!("completed"), &json!("hi\n")));
    assert!(marker.exists(), "its trap has run");
    assert!(execd.session_processes().is_empty(), "answered when all are gone");
}

// ---- Other signals ----------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: kill_process: SIGKILL to the whole session; another
///   signal answers within 2 s
#[test]
fn one_that_ignores_a_signal_is_told_running_after_two_seconds_and_lives_on() {
    let mut execd = Execd::start();
    let opened = open_until(&mut execd, DEAF, "ready");
    let started = now();
    let result = kill_with(&mut execd, 1, json!("TERM"));
    assert!(started.elapsed().as_millis() >= 1_900, "{:?}", started.elapsed());
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    assert_eq!((&result["status"], &result["stdout"]), (&json!("running"), &json!("ready\n")));
    // Longer than the grace after which kill_session sends SIGKILL.
    let polled = poll_with(&mut execd, 1, json!({"maxDrainMs": 2_500}));
    assert_eq!(polled["status"], "running");
    assert!(is_alive(pid_of(&opened)), "no SIGKILL follows by itself");
    assert!(is_killed(&kill(&mut execd, 1)), "until it is asked for");
}

// ---- Waits while it is killed -----------------------------------------------------------
