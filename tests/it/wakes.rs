//! on_exit and set_on_exit: a wake comes exactly once, and only for an exit that no call saw;
//! and session_started and session_exited: for whom they come, what they tell, and where they
//! stand among the replies.

use crate::common::outside::{Trace, can_trace};
use crate::common::*;
use serde_json::{Value, json};

/// A command that exits with 3 when the test creates the file `go`.
const UNTIL_GO: &str = "until [ -e go ]; do sleep 0.01; done; echo bye; exit 3";

fn go(execd: &Execd) {
    std::fs::write(execd.file("go"), "").expect("a file");
}

fn set_on_exit(execd: &mut Execd, session: u64, on_exit: &str) -> Value {
    execd.result("set_on_exit", json!({"session_id": session, "on_exit": on_exit}))
}

/// The session_exited of a session, which must have come exactly once.
fn the_exit(execd: &mut Execd, session: u64) -> Value {
    execd.notification("session_exited", |exit| exit["session_id"] == session);
    let exits = execd.notified("session_exited");
    let mut own: Vec<Value> =
        exits.into_iter().filter(|exit| exit["session_id"] == session).collect();
    assert_eq!(own.len(), 1, "exactly once: {own:?}");
    own.remove(0)
}

// ---- Arming -----------------------------------------------------------------------------

/// rule: unified-exec.md, exec_command, result: `completion_notification: armed`, `on_exit` where a
///   wake is armed
#[test]
fn a_reply_says_that_a_wake_is_armed() {
    let mut execd = Execd::start();
    let result = execd.open_with("sleep 60", json!({"on_exit": "wake"}));
    assert_eq!(result["on_exit"], "wake");
    assert_eq!(result["completion_notification"], "armed");
    assert_absent(&result, &["completion_delivery", "on_exit_wake"]);
    let header = result["header"].as_str().expect("text");
    assert!(header.contains("\ncompletion_notification: armed\ntool_time_utc: "), "{header}");
    assert_eq!(execd.listed(1).expect("it is listed")["wake_armed"], true);
    assert_eq!(execd.poll_now(1)["completion_notification"], "armed");
    // Without a wake nothing of it is said.
    let result = execd.open_with("sleep 60", json!({"on_exit": "none"}));
    let fields = ["on_exit_wake", "completion_notification", "completion_delivery"];
    assert_absent(&result, &fields);
    assert_eq!(execd.listed(session_of(&result)).expect("it is listed")["wake_armed"], false);
}

/// rule: unified-exec.md, set_on_exit, resize_session: `status`: disarmed, already_none, armed,
///   already_armed
/// rule: unified-exec.md, set_on_exit, resize_session: `found: false` for an unknown session
#[test]
fn set_on_exit_tells_what_it_changed() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open("sleep 60"));
    for (on_exit, status) in [
        ("none", "already_none"),
        ("wake", "armed"),
        ("wake", "already_armed"),
        ("none", "disarmed"),
        ("none", "already_none"),
        ("wake", "armed"),
    ] {
        let answer = set_on_exit(&mut execd, session, on_exit);
        assert_eq!((&answer["found"], &answer["status"]), (&json!(true), &json!(status)));
    }
    assert_eq!(execd.listed(session).expect("it is listed")["wake_armed"], true);
    assert_eq!(set_on_exit(&mut execd, 99, "wake")["found"], false);
}

/// rule: unified-exec.md, set_on_exit, resize_session: `status`: too_late
#[test]
fn set_on_exit_after_the_exit_is_too_late() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open(UNTIL_GO));
    go(&execd);
    execd.until_listed_exited(session);
    let answer = set_on_exit(&mut execd, session, "wake");
    assert_eq!((&answer["found"], &answer["status"]), (&json!(true), &json!("too_late")));
    assert_absent(&the_exit(&mut execd, session), &["wake"]);
    assert_eq!(execd.until_exit(session)["exit_code"], 3, "it can still be observed");
}

// ---- The wake ---------------------------------------------------------------------------

/// A wake could not say what its session was called, nor that something had gone wrong with it:
/// both were only in replies, and a wake comes where there is none.
/// rule: protocol.md, Notifications: `session_exited` has the name of its session, and what went
///   wrong
#[test]
fn a_wake_has_the_name_of_its_session_and_what_went_wrong() {
    let mut execd = Setup::new(&[]).unwatched().start();
    let named = json!({"on_exit": "wake", "name": "the build"});
    let session = session_of(&execd.open_with(UNTIL_GO, named));
    if !can_trace() {
        go(&execd);
        assert_eq!(the_exit(&mut execd, session)["name"], "the build");
        return;
    }
    let some = ["-e", "trace=read", "-e", "inject=read:error=ENOMEM"];
    let trace = Trace::attach(execd.pid(), &some);
    go(&execd);
    let exit = the_exit(&mut execd, session);
    assert_eq!((&exit["name"], &exit["wake"]), (&json!("the build"), &json!(true)), "{exit}");
    let why = exit["failure_message"].as_str().unwrap_or_default();
    assert!(why.contains("output could not be read (ENOMEM: "), "{exit}");
    trace.detach();
    let nameless = session_of(&execd.open("sleep 1"));
    assert_absent(&the_exit(&mut execd, nameless), &["name", "failure_message"]);
}

/// rule: unified-exec.md, set_on_exit, resize_session: A wake is sent exactly once and only if no
///   call observed the exit
#[test]
fn an_unobserved_exit_wakes_exactly_once() {
    let mut execd = Execd::start();
    let first = execd.open_with(UNTIL_GO, json!({"on_exit": "wake"}));
    go(&execd);
    let exit = the_exit(&mut execd, 1);
    assert_eq!((&exit["wake"], &exit["observed"]), (&json!(true), &json!(false)));
    assert_eq!((&exit["exit_code"], &exit["log_path"]), (&json!(3), &first["log_path"]));
    assert!(exit["elapsed_ms"].as_u64().expect("a number") >= 150, "{exit}");
    assert_absent(&exit, &["signal"]);
    // It can still be observed, and wakes nobody again.
    let result = execd.until_exit(1);
    assert_eq!((&result["exit_code"], &result["output"]), (&json!(3), &json!("bye\n")));
    assert_absent(&result, &["completion_notification"]);
    assert_eq!(execd.notified("session_exited").len(), 1);
}

/// rule: unified-exec.md, set_on_exit, resize_session: A wake that was armed later comes, one that
///   was disarmed does not
#[test]
fn a_wake_armed_later_comes_and_a_disarmed_one_does_not() {
    let mut execd = Execd::start();
    let late = session_of(&execd.open(UNTIL_GO));
    set_on_exit(&mut execd, late, "wake");
    let disarmed = session_of(&execd.open_with(UNTIL_GO, json!({"on_exit": "wake"})));
    set_on_exit(&mut execd, disarmed, "none");
    go(&execd);
    assert_eq!(the_exit(&mut execd, late)["wake"], true);
    let exit = the_exit(&mut execd, disarmed);
    assert_eq!(exit["observed"], false);
    assert_absent(&exit, &["wake"]);
}

/// rule: unified-exec.md, exec_command, result: `on_exit_wake: consumed`, `completion_delivery:
///   direct` where a reply used the wake up
/// rule: unified-exec.md, set_on_exit, resize_session: A waiting write_stdin that returns the exit
///   consumes the wake
#[test]
fn a_poll_that_returns_the_exit_uses_the_wake_up() {
    let mut execd = Execd::start();
    execd.open_with(UNTIL_GO, json!({"on_exit": "wake"}));
    let params = json!({"session_id": 1, "yield_time_ms": 50_000});
    let poll = execd.start_request("write_stdin", params);
    execd.no_reply_yet(poll);
    go(&execd);
    let result = execd.result_of(poll);
    assert_eq!(result["exit_code"], 3);
    assert_eq!(result["completion_delivery"], "direct");
    assert_eq!(result["on_exit_wake"], "consumed");
    assert_absent(&result, &["completion_notification"]);
    let exit = the_exit(&mut execd, 1);
    assert_eq!(exit["observed"], true);
    assert_absent(&exit, &["wake"]);
}

#[test]
fn a_session_told_within_its_first_150_ms_wakes_as_well() {
    let mut execd = Execd::start();
    // The shell's end is told after 50 ms; the session's end follows at once.
    let cmd = "(until [ -e go ]; do sleep 0.01; done) & exit 3";
    let params = json!({"cmd": cmd, "on_exit": "wake", "yield_time_ms": 30_000});
    assert_eq!(execd.exec(params)["completion_notification"], "armed");
    go(&execd);
    assert_eq!(the_exit(&mut execd, 1)["wake"], true);
}

#[test]
fn a_session_whose_start_was_cancelled_at_once_wakes_as_well() {
    let mut execd = Execd::start();
    let params = json!({"cmd": UNTIL_GO, "on_exit": "wake", "yield_time_ms": 30_000});
    let request = execd.start_request("exec_command", params);
    assert!(execd.cancel(request));
    assert_eq!(execd.result_of(request)["completion_notification"], "armed");
    go(&execd);
    assert_eq!(the_exit(&mut execd, 1)["wake"], true);
}

/// rule: unified-exec.md, set_on_exit, resize_session: kill_session, eviction and shutdown suppress
///   it
#[test]
fn a_kill_an_eviction_and_the_end_of_execd_wake_nobody() {
    let mut execd = Execd::with(&["--max-sessions", "2"], &[]);
    let wakes = json!({"on_exit": "wake"});
    execd.open_with("sleep 60", wakes.clone());
    execd.kill(1);
    assert_absent(&the_exit(&mut execd, 1), &["wake"]);
    for _ in 0..3 {
        execd.open_with("sleep 60", wakes.clone());
    }
    assert_absent(&the_exit(&mut execd, 2), &["wake"]);
    execd.close_stdin();
    assert!(execd.wait_exit().success());
    let lines = execd.remaining_lines();
    assert!(lines.iter().all(|line| line["params"].get("wake").is_none()), "{lines:?}");
}

/// rule: unified-exec.md, list_sessions: With `peek: true` nothing is removed and no wake is used
///   up
#[test]
fn peek_does_not_use_the_wake_up() {
    let mut execd = Execd::start();
    execd.open_with(UNTIL_GO, json!({"on_exit": "wake"}));
    execd.peek();
    go(&execd);
    execd.until_listed_exited(1);
    assert_eq!(the_exit(&mut execd, 1)["wake"], true);
}

// ---- session_started, session_exited ----------------------------------------------------

/// rule: protocol.md, Notifications: `session_started` when a session outlives its first 150 ms
/// rule: protocol.md, Notifications: `session_started` has session_id, pid, command, tty, cwd,
///   log_path (absent with `--no-log`)
#[test]
fn a_session_that_outlives_the_early_exit_is_announced() {
    let mut execd = Execd::start();
    let result = execd.open_with("sleep 60", json!({"tty": true}));
    let mut started = execd.notification("session_started", |_| true);
    let log_path = started.as_object_mut().expect("an object").remove("log_path");
    // The log writer may be slower than 150 ms; else the log is named.
    assert!(log_path.is_none_or(|path| path == result["log_path"]), "{result}");
    let expected = json!({
        "session_id": 1, "pid": result["pid"], "command": "sleep 60", "tty": true,
        "cwd": result["cwd"],
    });
    assert_eq!(started, expected);
}

/// rule: protocol.md, Notifications: Order per session is the order in which things happened
#[test]
fn session_started_comes_before_the_first_reply_that_tells_the_id() {
    let mut execd = Execd::start();
    let request =
        execd.start_request("exec_command", json!({"cmd": "sleep 60", "yield_time_ms": 250}));
    execd.result_of(request);
    let started = execd.position(|line| line["method"] == "session_started");
    let reply = execd.reply_position(request);
    assert!(started.is_some_and(|at| at < reply), "{started:?} {reply}");
}

/// rule: protocol.md, Notifications: `session_started` and `session_exited` come without being
///   asked for
#[test]
fn session_started_comes_while_the_command_is_still_waited_for() {
    let mut execd = Execd::start();
    let params = json!({"cmd": "sleep 60", "yield_time_ms": 30_000});
    let request = execd.start_request("exec_command", params);
    execd.notification("session_started", |_| true);
    execd.no_reply_yet(request);
}

/// rule: protocol.md, Notifications: `session_started` when a session outlives its first 150 ms
#[test]
fn an_early_exit_is_not_announced() {
    let mut execd = Execd::start();
    let result = execd.run("true");
    let slow = result["wall_time_seconds"].as_f64().expect("a number") >= 0.15;
    assert!(slow || execd.notifications_so_far().is_empty());
    execd.run_with("true", json!({"on_exit": "wake"}));
    assert!(execd.notified("session_exited").iter().all(|exit| exit.get("wake").is_none()));
}

/// rule: protocol.md, Notifications: `session_exited` with `observed: true` comes right after the
///   reply that told it
#[test]
fn an_observed_exit_is_announced_right_after_the_reply_that_told_it() {
    let mut execd = Execd::start();
    execd.open(UNTIL_GO);
    let params = json!({"session_id": 1, "yield_time_ms": 50_000});
    let poll = execd.start_request("write_stdin", params);
    execd.no_reply_yet(poll);
    go(&execd);
    execd.result_of(poll);
    let exit = the_exit(&mut execd, 1);
    assert_eq!(exit["observed"], true);
    let at = execd.position(|line| line["method"] == "session_exited").expect("it came");
    assert_eq!(at, execd.reply_position(poll) + 1);
}

/// rule: protocol.md, Notifications: `session_exited` once per session that started that way
#[test]
fn every_announced_session_is_announced_as_exited() {
    let mut execd = Execd::start();
    let requests: Vec<u64> = (0..20)
        .map(|i| {
            let cmd = format!("sleep 0.{i:02}; exit {i}");
            execd.start_request("exec_command", json!({"cmd": cmd, "yield_time_ms": 30_000}))
        })
        .collect();
    for request in requests {
        execd.result_of(request);
    }
    let ids = |notes: Vec<Value>| {
        let mut ids: Vec<u64> =
            notes.iter().map(|note| note["session_id"].as_u64().expect("a number")).collect();
        ids.sort_unstable();
        ids
    };
    let started = ids(execd.notified("session_started"));
    assert_eq!(ids(execd.notified("session_exited")), started);
}
