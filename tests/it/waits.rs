//! Waiting: progress while a request waits, cancel, several waits on one session, and the two
//! facts that end a session: its shell's end and its output's (held by background jobs, by
//! daemons, or given up for a while by the leader itself).

use crate::common::*;
use serde_json::{Value, json};

fn poll(execd: &mut Execd, session: u64) -> u64 {
    execd.start_request("write_stdin", json!({"session_id": session, "yield_time_ms": 50_000}))
}

/// rule: protocol.md, Notifications: `progress` is sent only for a request with `stream: true`
/// rule: protocol.md, Notifications: `progress` comes only when output came
/// rule: protocol.md, Notifications: A log that has its file later than session_started came is
///   named by a `progress`, also without output
#[test]
fn progress_comes_only_when_asked_for_and_names_a_log_that_is_late() {
    let mut execd = Execd::start();
    let session = execd.open_until_with("echo hi; sleep 60", "hi", json!({"stream": false}));
    execd.input(session, "a");
    execd.open_with("sleep 60", json!({"stream": true}));
    let keeper = data::Stopped::new(execd.keeper());
    let params = json!({"cmd": "exec sleep 60", "yield_time_ms": 30_000, "stream": true});
    let request = execd.start_request("exec_command", params);
    let started = execd.notification("session_started", |note| note["session_id"] == 3);
    assert_absent(&started, &["log_path"]);
    assert_eq!(execd.notified("progress"), Vec::<Value>::new());
    drop(keeper);
    let progress = execd.notification("progress", |_| true);
    assert_eq!((&progress["request_id"], &progress["total_bytes"]), (&json!(request), &json!(0)));
    let log = log_path(&progress);
    assert!(execd.cancel(request));
    assert_eq!(log_path(&execd.result_of(request)), log);
    assert_eq!(execd.notified("progress").len(), 1, "it is named once");
}

/// rule: protocol.md, Notifications: The first `progress` comes at once
/// rule: protocol.md, Notifications: `progress` names the leader's pid and the log; no log is named
///   with `--no-log`
/// rule: protocol.md, Notifications: `tail` of `progress` is at most the last 32 KiB of the
///   session's output
/// rule: unified-exec.md, Truncation, retention, text: The streaming `tail` is processed the same
///   way
#[test]
fn progress_tells_the_last_output_as_clean_text() {
    let mut execd = Execd::start();
    let cmd = "printf '\\033[31mred\\033[0m\\n10%%\\r20%%'; read x; seq 50000; read x";
    let wait = json!({"yield_time_ms": 30_000, "stream": true, "on_impossible": "wait"});
    let params = merged(json!({"cmd": cmd}), wait.clone());
    let request = execd.start_request("exec_command", params);
    let progress = execd.notification("progress", |progress| progress["total_bytes"] == 20);
    assert_eq!((&progress["request_id"], &progress["session_id"]), (&json!(request), &json!(1)));
    assert_eq!((&progress["tail"], &progress["running"]), (&json!("red\n20%"), &json!(true)));
    assert!(progress["elapsed_ms"].as_u64().expect("a number") < 20_000, "{progress}");
    execd.no_reply_yet(request);
    assert!(execd.cancel(request));
    eventually("the log has begun", || {
        execd.listed(1).is_some_and(|row| row["log_path"].is_string())
    });
    let row = execd.listed(1).expect("it runs");
    let params = merged(json!({"session_id": 1, "chars": "\\n"}), wait);
    execd.start_request("write_stdin", params);
    let last = execd.notification("progress", |one| one["total_bytes"] == 20 + 288_894);
    assert_eq!((&last["pid"], &last["log_path"]), (&row["pid"], &row["log_path"]));
    let tail = last["tail"].as_str().expect("text");
    assert!(tail.len() > 30 * 1024 && tail.ends_with("\n49999\n50000\n"), "{tail}");
    let all = execd.notified("progress");
    assert!(all.iter().all(|one| one["tail"].as_str().expect("text").len() <= 32 * 1024));
}

/// rule: protocol.md, Notifications: At most four `progress` a second
/// rule: protocol.md, Notifications: Notifications about a request never come after its reply
#[test]
fn progress_comes_four_times_a_second_at_most_and_never_after_the_reply() {
    let mut execd = Execd::start();
    let cmd = "while :; do echo tick; sleep 0.01; done";
    let request = execd
        .start_request("exec_command", json!({"cmd": cmd, "yield_time_ms": 2_000, "stream": true}));
    let result = execd.result_of(request);
    let all = output(&result).len();
    assert_eq!(result["output_bytes_total"], all, "progress takes nothing");
    let progress = execd.told_of("progress", request);
    let seconds = result["wall_time_seconds"].as_f64().expect("a number");
    let count = u32::try_from(progress.len()).expect("few");
    assert!(count >= 2 && f64::from(count) <= seconds * 4.0 + 1.0, "{count}");
    let field = |name: &'static str| progress.iter().map(move |p| p[name].as_u64().expect(name));
    assert!(field("elapsed_ms").is_sorted() && field("total_bytes").is_sorted(), "{progress:?}");
    let reply = execd.reply_position(request);
    assert!(!execd.any_after(reply, |line| line["method"] == "progress"));
}

/// rule: protocol.md, cancel, ping, server_info, shutdown: `cancel` ends the wait: the request
///   answers at once with what it has, `wait_status: "cancelled"`
/// rule: unified-exec.md, exec_command, params: The call answers on `cancel`
/// rule: protocol.md, cancel, ping, server_info, shutdown: The session lives on after `cancel`
/// rule: protocol.md, cancel, ping, server_info, shutdown: `cancel` of an empty poll: it answers
///   with nothing
/// rule: unified-exec.md, write_stdin: A cancelled empty poll consumes nothing
/// rule: protocol.md, cancel, ping, server_info, shutdown: `cancel` ends only the wait that it
///   names
/// rule: unified-exec.md, write_stdin: A cancelled call with input returns and consumes what it has
#[test]
fn a_cancelled_wait_ends_alone_and_takes_nothing_but_behind_input() {
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    let cmd = format!("{}; echo hi; exec cat", until_file("go"));
    let request = execd.start_request("exec_command", json!({"cmd": cmd, "yield_time_ms": 30_000}));
    assert!(execd.cancel(request));
    let result = execd.result_of(request);
    assert_eq!((&result["wait_status"], &result["session_id"]), (&json!("cancelled"), &json!(1)));
    let polls = [poll(&mut execd, 1), poll(&mut execd, 1)];
    go(&execd, "go");
    let total = |execd: &mut Execd| execd.listed(1).expect("it runs")["output_bytes_total"].clone();
    eventually("it has printed", || total(&mut execd) == 3);
    assert!(execd.cancel(polls[1]));
    let result = execd.result_of(polls[1]);
    assert_eq!((&result["wait_status"], &result["output"]), (&json!("cancelled"), &json!("")));
    execd.no_reply_yet(polls[0]);
    assert_eq!(execd.poll_now(1)["output"], "hi\n", "the next call has it all");
    let params = json!({"session_id": 1, "chars": "more\\n", "yield_time_ms": 30_000});
    let request = execd.start_request("write_stdin", params);
    eventually("it is back", || total(&mut execd) == 8);
    assert!(execd.cancel(request));
    let result = execd.result_of(request);
    assert_eq!((&result["wait_status"], output(&result)), (&json!("cancelled"), "more\n"));
    assert_eq!(execd.poll_now(1)["output"], "");
}

/// rule: unified-exec.md, write_stdin: Several waits on one session: the one that ends first takes
///   the unread output
/// rule: unified-exec.md, write_stdin: An exit answers them all, the oldest with the output
#[test]
fn the_wait_that_ends_first_takes_the_output_and_an_exit_answers_all() {
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    let cmd = format!("{}; echo hi; read x; echo bye; exit 3", until_file("go"));
    execd.open(&cmd);
    let polls = [poll(&mut execd, 1), poll(&mut execd, 1), poll(&mut execd, 1)];
    execd.no_reply_yet(polls[2]);
    go(&execd, "go");
    execd.read_until(1, "hi\n");
    for one in polls {
        execd.no_reply_yet(one);
    }
    execd.send("input", "write_stdin", json!({"session_id": 1, "chars": "\\n"}));
    let results = polls.map(|id| execd.result_of(id));
    assert_eq!(results.each_ref().map(output), ["bye\n", "", ""]);
    for result in &results {
        assert_eq!(
            (&result["exit_code"], &result["wait_status"]),
            (&json!(3), &json!("completed"))
        );
    }
    execd.failed("write_stdin", json!({"session_id": 1}), "unknown_session");
}

/// rule: architecture.md, Ending a session: Who still holds the output after the shell is gone
///   keeps the session running, with `shell_exited`
/// rule: unified-exec.md, Early exit, shell gone, LRU: A held session can be polled and killed
/// rule: unified-exec.md, Early exit, shell gone, LRU: When the last holder closes, the session has
///   exited
#[test]
fn a_session_without_its_shell_can_be_polled() {
    let mut execd = Execd::start();
    let cmd = format!("({}; echo late) & echo started; exit 3", until_file("go"));
    let result = execd.exec(json!({"cmd": cmd, "yield_time_ms": 30_000}));
    assert_eq!(result["output"], "started\n");
    assert_eq!(execd.notified("session_exited"), Vec::<Value>::new());
    let later = poll(&mut execd, 1);
    execd.no_reply_yet(later);
    go(&execd, "go");
    let result = execd.result_of(later);
    assert_eq!((&result["output"], &result["exit_code"]), (&json!("late\n"), &json!(3)));
    assert_absent(&result, &["session_id", "shell_exit_code", "note"]);
    assert_eq!(execd.notification("session_exited", |_| true)["exit_code"], 3);
}

/// rule: architecture.md, Ending a session: When the holder is a detached one, kill_session ends
///   the members, answers, and its output is read and dropped
#[test]
fn a_daemon_that_holds_the_output_is_left_alone_and_its_output_read_on() {
    let mut execd = Execd::start();
    execd.leaves_processes_behind();
    let daemon =
        "trap '' HUP PIPE; while :; do echo tick || touch broken; touch beat; sleep 0.01; done";
    let cmd = format!("setsid bash -c \"{daemon}\" & echo started");
    let result = execd.exec(json!({"cmd": cmd, "yield_time_ms": 30_000}));
    assert_eq!(result["session_id"], 1, "its output is held: {result}");
    let killed = execd.kill(1);
    assert_eq!(killed["found"], true);
    for _ in 0..3 {
        let _ = std::fs::remove_file(execd.file("beat"));
        until_exists(&execd.file("beat"));
    }
    assert!(!execd.file("broken").exists(), "never a SIGPIPE for what was left alone");
    execd.failed("write_stdin", json!({"session_id": 1}), "unknown_session");
}

/// rule: architecture.md, Ending a session: A session is over when its leader was reaped and its
///   output has ended
/// rule: architecture.md, Ending a session: A PTY's output ends at EIO after the leader was reaped;
///   EIO before that is a pause
#[test]
fn a_leader_may_close_its_output_and_go_on() {
    let mut execd = Execd::start();
    let waits = until_file("go");
    let cmd = format!("echo hi; exec >/dev/null 2>&1; {waits}; exit 5");
    let session = session_of(&execd.open(&cmd));
    let request = poll(&mut execd, session);
    execd.no_reply_yet(request);
    // A terminal may be opened again.
    let cmd = format!(
        "exec </dev/null >/dev/null 2>&1; {waits}; exec </dev/tty >/dev/tty 2>&1; echo back; \
         read x; echo \"got $x\""
    );
    let first = execd.open_with(&cmd, json!({"tty": true}));
    go(&execd, "go");
    assert_eq!(execd.result_of(request)["exit_code"], 5);
    until_logged(&first, "back");
    let session = session_of(&first);
    let params = json!({"session_id": session, "chars": "in\\n", "yield_time_ms": 30_000});
    let result = execd.write(params);
    assert!(output(&result).starts_with("back\n"), "{result}");
    assert!(output(&result).ends_with("got in\n"), "{result}");
    assert_eq!(result["exit_code"], 0);
}
