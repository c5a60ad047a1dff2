//! on_exit and set_on_exit: a wake comes exactly once, and only for an exit that no call saw;
//! and session_started and session_exited: for whom they come, what they tell, and where they
//! stand among the replies.

use crate::common::outside::{Trace, can_trace};
use crate::common::*;
use serde_json::{Value, json};

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

/// A command that exits with 3 when the test creates the file `go`.
fn until_go() -> String {
    format!("{}; echo bye; exit 3", until_file("go"))
}

/// rule: unified-exec.md, exec_command, result: `completion_notification: armed`, `on_exit` where a
///   wake is armed
/// rule: unified-exec.md, set_on_exit, resize_session: `status`: disarmed, already_none, armed,
///   already_armed
/// rule: unified-exec.md, set_on_exit, resize_session: `found: false` for an unknown session
/// rule: unified-exec.md, set_on_exit, resize_session: `status`: too_late
/// rule: protocol.md, set_on_exit: `wake_armed`
#[test]
fn a_reply_says_that_a_wake_is_armed_and_set_on_exit_what_it_has_changed() {
    let mut execd = Execd::start();
    let result = execd.open_with("exec sleep 60", json!({"on_exit": "wake"}));
    assert_eq!(result["on_exit"], "wake");
    assert_eq!(result["completion_notification"], "armed");
    assert_absent(&result, &["completion_delivery", "on_exit_wake"]);
    let header = result["header"].as_str().expect("text");
    assert!(header.contains("\ncompletion_notification: armed\ntool_time_utc: "), "{header}");
    assert_eq!(execd.poll_now(1)["completion_notification"], "armed");
    for (on_exit, status) in [
        ("wake", "already_armed"),
        ("none", "disarmed"),
        ("none", "already_none"),
        ("wake", "armed"),
    ] {
        let answer = set_on_exit(&mut execd, 1, on_exit);
        let armed = on_exit == "wake";
        let told = [&answer["found"], &answer["status"], &answer["wake_armed"]];
        assert_eq!(told, [&json!(true), &json!(status), &json!(armed)]);
        let list = execd.peek();
        assert_eq!(list["sessions"][0]["wake_armed"], armed);
        let text = list["text"].as_str().expect("a text");
        assert_eq!(text.contains("exec sleep 60 [wake]\n"), armed, "{text}");
    }
    assert_eq!(set_on_exit(&mut execd, 99, "wake")["found"], false);
    // Without a wake nothing of it is said.
    let result = execd.open_with(&until_go(), json!({"on_exit": "none"}));
    let fields = ["on_exit_wake", "completion_notification", "completion_delivery"];
    assert_absent(&result, &fields);
    // After the exit it is too late; it can still be observed.
    go(&execd, "go");
    execd.until_listed_exited(2);
    let answer = set_on_exit(&mut execd, 2, "wake");
    assert_eq!((&answer["found"], &answer["status"]), (&json!(true), &json!("too_late")));
    assert_absent(&the_exit(&mut execd, 2), &["wake"]);
    assert_eq!(execd.until_exit(2)["exit_code"], 3);
}

/// rule: unified-exec.md, set_on_exit, resize_session: A wake is sent exactly once and only if no
///   call observed the exit
#[test]
fn an_exit_that_wait_for_tells_without_the_output_wakes_nobody() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open_with(&until_go(), json!({"on_exit": "wake"})));
    let params = json!({"session_ids": [session], "take": false, "timeout_ms": 60_000});
    let request = execd.start_request("wait_for", params);
    go(&execd, "go");
    assert_eq!(execd.result_of(request)["sessions"][0]["exit_code"], 3);
    let exit = the_exit(&mut execd, session);
    assert_eq!(exit["observed"], true, "{exit}");
    assert_absent(&exit, &["wake"]);
    assert_eq!(execd.until_exit(session)["output"], "bye\n", "the output is still there");
}

/// A wake could not say what its session was called, nor that something had gone wrong with it:
/// both were only in replies, and a wake comes where there is none.
/// rule: protocol.md, Notifications: `session_exited` has the name of its session, and what went
///   wrong
#[test]
fn a_wake_has_the_name_of_its_session_and_what_went_wrong() {
    let mut execd = Setup::new(&[]).unwatched().start();
    let named = json!({"on_exit": "wake", "name": "the build"});
    let session = session_of(&execd.open_with(&until_go(), named));
    if !can_trace() {
        go(&execd, "go");
        assert_eq!(the_exit(&mut execd, session)["name"], "the build");
        return;
    }
    let some = ["-e", "trace=read", "-e", "inject=read:error=ENOMEM"];
    let trace = Trace::attach(execd.pid(), &some);
    go(&execd, "go");
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
/// rule: unified-exec.md, set_on_exit, resize_session: A wake that was armed later comes, one that
///   was disarmed does not
/// rule: unified-exec.md, list_sessions: With `peek: true` nothing is removed and no wake is used
///   up
#[test]
fn an_unobserved_exit_wakes_exactly_once() {
    let mut execd = Execd::start();
    let wake = json!({"on_exit": "wake"});
    let first = execd.open_with(&until_go(), wake.clone());
    let late = session_of(&execd.open(&until_go()));
    set_on_exit(&mut execd, late, "wake");
    let disarmed = session_of(&execd.open_with(&until_go(), wake.clone()));
    set_on_exit(&mut execd, disarmed, "none");
    // A start that is cancelled at once, and one that is told within its first 150 ms.
    let cancelled = execd.open_now(&merged(json!({"cmd": until_go()}), wake.clone()));
    let cmd = format!("({}) & exit 3", until_file("go"));
    let early = execd.exec(merged(json!({"cmd": cmd, "yield_time_ms": 30_000}), wake));
    for told in [&cancelled, &early] {
        assert_eq!(told["completion_notification"], "armed", "{told}");
    }
    execd.peek();
    go(&execd, "go");
    let woken = [1, late, session_of(&cancelled), session_of(&early)];
    let exits = woken.map(|id| the_exit(&mut execd, id));
    for exit in &exits {
        assert_eq!((&exit["wake"], &exit["observed"]), (&json!(true), &json!(false)), "{exit}");
        assert_eq!(exit["exit_code"], 3);
        assert_absent(exit, &["signal"]);
    }
    assert_eq!(exits[0]["log_path"], first["log_path"]);
    assert!(exits[0]["elapsed_ms"].as_u64().expect("a number") >= 150, "{}", exits[0]);
    let exit = the_exit(&mut execd, disarmed);
    assert_eq!(exit["observed"], false);
    assert_absent(&exit, &["wake"]);
    // It can still be observed, and wakes nobody again.
    let result = execd.until_exit(1);
    assert_eq!((&result["exit_code"], &result["output"]), (&json!(3), &json!("bye\n")));
    assert_absent(&result, &["completion_notification"]);
    assert_eq!(execd.notified("session_exited").len(), 5);
}

/// rule: unified-exec.md, exec_command, result: `on_exit_wake: consumed`, `completion_delivery:
///   direct` where a reply used the wake up
/// rule: unified-exec.md, set_on_exit, resize_session: A waiting write_stdin that returns the exit
///   consumes the wake
/// rule: protocol.md, Notifications: `session_exited` with `observed: true` comes right after the
///   reply that told it
#[test]
fn a_poll_that_returns_the_exit_uses_the_wake_up() {
    let mut execd = Execd::start();
    execd.open_with(&until_go(), json!({"on_exit": "wake"}));
    let params = json!({"session_id": 1, "yield_time_ms": 50_000});
    let poll = execd.start_request("write_stdin", params);
    execd.no_reply_yet(poll);
    go(&execd, "go");
    let result = execd.result_of(poll);
    assert_eq!(result["exit_code"], 3);
    assert_eq!(result["completion_delivery"], "direct");
    assert_eq!(result["on_exit_wake"], "consumed");
    assert_absent(&result, &["completion_notification"]);
    let exit = the_exit(&mut execd, 1);
    assert_eq!(exit["observed"], true);
    assert_absent(&exit, &["wake"]);
    let at = execd.position(|line| line["method"] == "session_exited").expect("it came");
    assert_eq!(at, execd.reply_position(poll) + 1);
}

/// rule: protocol.md, Notifications: `session_started` when a session outlives its first 150 ms
/// rule: protocol.md, Notifications: `session_started` has session_id, pid, command, tty, cwd,
///   log_path (absent with `--no-log`)
/// rule: protocol.md, Notifications: Order per session is the order in which things happened
/// rule: protocol.md, Notifications: `session_started` and `session_exited` come without being
///   asked for
#[test]
fn a_session_that_outlives_the_early_exit_is_announced_while_it_is_waited_for() {
    let mut execd = Execd::start();
    let params = json!({"cmd": "sleep 60", "tty": true, "yield_time_ms": 30_000});
    let request = execd.start_request("exec_command", params);
    let mut started = execd.notification("session_started", |_| true);
    execd.no_reply_yet(request);
    assert!(execd.cancel(request));
    let result = execd.result_of(request);
    let log_path = started.as_object_mut().expect("an object").remove("log_path");
    // The log writer may be slower than 150 ms; else the log is named.
    assert!(log_path.is_none_or(|path| path == result["log_path"]), "{result}");
    let expected = json!({
        "session_id": 1, "pid": result["pid"], "command": "sleep 60", "tty": true,
        "cwd": result["cwd"],
    });
    assert_eq!(started, expected);
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

#[test]
fn an_early_exit_is_not_announced() {
    let mut execd = Execd::start();
    let result = execd.run("true");
    let slow = result["wall_time_seconds"].as_f64().expect("a number") >= 0.15;
    assert!(slow || execd.notifications_so_far().is_empty());
    execd.run_with("true", json!({"on_exit": "wake"}));
    assert!(execd.notified("session_exited").iter().all(|exit| exit.get("wake").is_none()));
}
