//! Waiting: progress while a request waits, cancel, several waits on one session, and the two
//! facts that end a session: its shell's end and its output's (held by background jobs, by
//! daemons, or given up for a while by the leader itself).

use std::time::Duration;

use crate::common::*;
use serde_json::{Value, json};

fn poll(execd: &mut Execd, session: u64) -> u64 {
    execd.start_request("write_stdin", json!({"session_id": session, "yield_time_ms": 50_000}))
}

fn go(execd: &Execd) {
    std::fs::write(execd.file("go"), "").expect("a file");
}

// ---- Progress ---------------------------------------------------------------------------

/// rule: protocol.md, Notifications: The first `progress` comes at once
#[test]
fn the_first_output_makes_progress_at_once() {
    let mut execd = Execd::start();
    let params = json!({"cmd": "echo first; read x", "yield_time_ms": 30_000, "stream": true});
    let request = execd.start_request("exec_command", params);
    let progress = execd.notification("progress", |_| true);
    assert_eq!((&progress["request_id"], &progress["session_id"]), (&json!(request), &json!(1)));
    assert_eq!((&progress["tail"], &progress["total_bytes"]), (&json!("first\n"), &json!(6)));
    assert_eq!(progress["running"], true);
    assert!(progress["elapsed_ms"].as_u64().expect("a number") < 20_000, "{progress}");
    execd.no_reply_yet(request);
}

/// rule: protocol.md, Notifications: `progress` names the leader's pid and the log; no log is named
///   with `--no-log`
#[test]
fn progress_names_the_leader_and_the_log() {
    let mut execd = Execd::start();
    let opened = execd.open("read x; echo $$; read x");
    execd.start_request(
        "write_stdin",
        json!({"session_id": 1, "chars": "\\n", "yield_time_ms": 30_000, "stream": true}),
    );
    let progress = execd.notification("progress", |_| true);
    assert_eq!((&progress["pid"], &progress["log_path"]), (&opened["pid"], &opened["log_path"]));
    assert_eq!(progress["tail"], format!("{}\n", pid_of(&opened)));
}

/// rule: protocol.md, Notifications: A log that has its file later than session_started came is
///   named by a `progress`, also without output
#[test]
fn a_log_that_is_late_is_named_while_a_silent_command_runs() {
    let mut execd = Execd::start();
    let keeper = data::Stopped::new(execd.keeper());
    let params = json!({"cmd": "exec sleep 60", "yield_time_ms": 30_000, "stream": true});
    let request = execd.start_request("exec_command", params);
    let started = execd.notification("session_started", |_| true);
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

/// rule: protocol.md, Notifications: `progress` is sent only for a request with `stream: true`
/// rule: protocol.md, Notifications: `progress` comes only when output came
#[test]
fn progress_comes_only_when_asked_for() {
    let mut execd = Execd::start();
    execd.open("echo hi; sleep 60");
    let session = execd.open_until_with("echo hi; sleep 60", "hi", json!({"stream": false}));
    execd.input(session, "a");
    execd.open_with("sleep 60", json!({"stream": true}));
    assert_eq!(execd.notified("progress"), Vec::<Value>::new());
}

/// rule: protocol.md, Notifications: At most four `progress` a second
#[test]
fn progress_comes_four_times_a_second_at_most() {
    let mut execd = Execd::start();
    let cmd = "while :; do echo tick; sleep 0.01; done";
    let request = execd
        .start_request("exec_command", json!({"cmd": cmd, "yield_time_ms": 2_000, "stream": true}));
    let result = execd.result_of(request);
    let progress = execd.told_of("progress", request);
    let seconds = result["wall_time_seconds"].as_f64().expect("a number");
    assert!(progress.len() >= 2, "it goes on: {progress:?}");
    assert!(
        f64::from(u32::try_from(progress.len()).expect("few")) <= seconds * 4.0 + 1.0,
        "{}",
        progress.len()
    );
    let field = |name: &'static str| {
        progress.iter().map(|p| p[name].as_u64().expect("a number")).collect::<Vec<u64>>()
    };
    assert!(field("elapsed_ms").is_sorted() && field("total_bytes").is_sorted(), "{progress:?}");
}

/// rule: protocol.md, Notifications: `tail` of `progress` is at most the last 32 KiB of the
///   session's output
#[test]
fn the_tail_of_progress_is_the_last_32_kib() {
    let mut execd = Execd::start();
    let params = json!({
        "cmd": "seq 1 50000; read x", "yield_time_ms": 30_000, "stream": true,
        "on_impossible": "wait",
    });
    execd.start_request("exec_command", params);
    let bytes: u64 = (1..=50_000_u32).map(|i| i.to_string().len() as u64 + 1).sum();
    let last = execd.notification("progress", |progress| progress["total_bytes"] == bytes);
    let tail = last["tail"].as_str().expect("text");
    assert!(tail.len() <= 32 * 1024 && tail.len() > 30 * 1024, "{} bytes", tail.len());
    assert!(tail.ends_with("\n49999\n50000\n"), "{tail}");
    assert!(
        execd
            .notified("progress")
            .iter()
            .all(|p| p["tail"].as_str().expect("text").len() <= 32 * 1024)
    );
}

/// rule: unified-exec.md, Truncation, retention, text: The streaming `tail` is processed the same
///   way
#[test]
fn the_tail_of_progress_is_clean_text() {
    let mut execd = Execd::start();
    let cmd = "printf '\\033[31mred\\033[0m\\n10%%\\r20%%'; read x";
    let params = json!({
        "cmd": cmd, "yield_time_ms": 30_000, "stream": true, "on_impossible": "wait",
    });
    execd.start_request("exec_command", params);
    let progress = execd.notification("progress", |progress| progress["total_bytes"] == 20);
    assert_eq!(progress["tail"], "red\n20%");
}

/// rule: protocol.md, Notifications: Notifications about a request never come after its reply
#[test]
fn no_progress_comes_after_the_reply() {
    let mut execd = Execd::start();
    let cmd = "for ((i = 0; i < 40; i++)); do echo $i; sleep 0.02; done";
    let request = execd.start_request(
        "exec_command",
        json!({"cmd": cmd, "yield_time_ms": 30_000, "stream": true}),
    );
    let result = execd.result_of(request);
    let all: String = (0..40).map(|i| format!("{i}\n")).collect();
    assert_eq!(output(&result), all, "progress takes nothing");
    assert!(!execd.told_of("progress", request).is_empty());
    let reply = execd.reply_position(request);
    assert!(!execd.any_after(reply, |line| line["method"] == "progress"));
}

// ---- Cancel -----------------------------------------------------------------------------

/// rule: protocol.md, cancel, ping, server_info, shutdown: The session lives on after `cancel`
#[test]
fn a_command_cancelled_at_once_has_a_session_to_come_back_to() {
    let mut execd = Execd::start();
    let request = execd
        .start_request("exec_command", json!({"cmd": "read x; exit 3", "yield_time_ms": 30_000}));
    execd.cancel(request);
    let result = execd.result_of(request);
    assert_eq!(result["wait_status"], "cancelled");
    let params =
        json!({"session_id": session_of(&result), "chars": "\\n", "yield_time_ms": 30_000});
    assert_eq!(execd.write(params)["exit_code"], 3);
}

/// rule: protocol.md, cancel, ping, server_info, shutdown: `cancel` of an empty poll: it answers
///   with nothing
/// rule: unified-exec.md, write_stdin: A cancelled empty poll consumes nothing
#[test]
fn a_cancelled_empty_poll_consumes_nothing() {
    let mut execd = Execd::start();
    let first = execd.open("until [ -e go ]; do sleep 0.01; done; echo hi; sleep 60");
    let request = poll(&mut execd, 1);
    go(&execd);
    until_logged(&first, "hi");
    assert!(execd.cancel(request));
    let result = execd.result_of(request);
    assert_eq!((&result["wait_status"], &result["output"]), (&json!("cancelled"), &json!("")));
    assert_eq!(execd.poll_now(1)["output"], "hi\n", "the next call has it all");
}

/// rule: unified-exec.md, write_stdin: A cancelled call with input returns and consumes what it has
#[test]
fn a_cancelled_call_with_input_returns_what_it_has() {
    let mut execd = Execd::start();
    let first = execd.open("cat");
    let params = json!({"session_id": 1, "chars": "hi\\n", "yield_time_ms": 30_000});
    let request = execd.start_request("write_stdin", params);
    until_logged(&first, "hi");
    assert!(execd.cancel(request));
    let result = execd.result_of(request);
    assert_eq!((&result["wait_status"], &result["output"]), (&json!("cancelled"), &json!("hi\n")));
    assert_eq!(execd.poll_now(1)["output"], "");
}

/// rule: protocol.md, cancel, ping, server_info, shutdown: `cancel` ends only the wait that it
///   names
#[test]
fn cancel_ends_only_the_wait_that_it_names() {
    let mut execd = Execd::start();
    execd.open("sleep 60");
    let polls = [poll(&mut execd, 1), poll(&mut execd, 1)];
    assert!(execd.cancel(polls[1]));
    execd.result_of(polls[1]);
    execd.no_reply_yet(polls[0]);
}

// ---- Several waits ----------------------------------------------------------------------

/// rule: unified-exec.md, write_stdin: Several waits on one session: the one that ends first takes
///   the unread output
#[test]
fn the_wait_that_ends_first_takes_the_output() {
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    let first = execd.open("until [ -e go ]; do sleep 0.01; done; echo hi; read x");
    let long = poll(&mut execd, 1);
    execd.no_reply_yet(long);
    go(&execd);
    until_logged(&first, "hi");
    assert_eq!(execd.poll_now(1)["output"], "hi\n");
    execd.no_reply_yet(long);
    execd.input(1, "\\n");
    let result = execd.result_of(long);
    assert_eq!((&result["output"], &result["exit_code"]), (&json!(""), &json!(0)));
}

/// rule: unified-exec.md, write_stdin: An exit answers them all, the oldest with the output
#[test]
fn an_exit_answers_all_waits_and_the_oldest_has_the_output() {
    let mut execd = Execd::start();
    execd.open("until [ -e go ]; do sleep 0.01; done; echo hi; exit 3");
    let polls = [poll(&mut execd, 1), poll(&mut execd, 1), poll(&mut execd, 1)];
    execd.no_reply_yet(polls[2]);
    go(&execd);
    let results = polls.map(|id| execd.result_of(id));
    let outputs = [0, 1, 2].map(|at| output(&results[at]));
    assert_eq!(outputs, ["hi\n", "", ""]);
    for result in &results {
        assert_eq!(
            (&result["exit_code"], &result["wait_status"]),
            (&json!(3), &json!("completed"))
        );
    }
    execd.failed("write_stdin", json!({"session_id": 1}), "unknown_session");
}

// ---- The shell is gone, its output is held ----------------------------------------------

/// rule: unified-exec.md, Early exit, shell gone, LRU: The wait during which the shell ended
///   answers 50 ms later as still running
#[test]
fn a_background_job_that_holds_the_output_does_not_hold_the_answer() {
    let mut execd = Execd::start();
    let started = now();
    let params = json!({"cmd": "sleep 300 & echo started", "yield_time_ms": 30_000});
    let result = execd.exec(params);
    assert!(started.elapsed() < AT_ONCE, "not after its yield time");
    assert_eq!((&result["session_id"], &result["output"]), (&json!(1), &json!("started\n")));
    assert_eq!(result["shell_exit_code"], 0);
    assert_absent(&result, &["exit_code", "signal"]);
    execd.kill(1);
    assert_eq!(execd.session_processes().len(), 0);
}

/// rule: unified-exec.md, Early exit, shell gone, LRU: `shell_exit_code` and a `note` that names
///   who holds the output
#[test]
fn the_note_names_who_holds_the_output() {
    let mut execd = Execd::start();
    let cmd = "sleep 4711 & echo $!; exit 3";
    let result = execd.exec(json!({"cmd": cmd, "yield_time_ms": 30_000}));
    let pid = output(&result).trim();
    let note = format!(
        "shell exited (code 3); still running: {pid} sleep — redirect its output to detach it, or \
         kill_session"
    );
    assert_eq!((&result["note"], &result["shell_exit_code"]), (&json!(note), &json!(3)));
    let header = result["header"].as_str().expect("text");
    assert!(
        header.starts_with("[still running]\nsession_id: 1\nnote: shell exited (code 3); "),
        "{header}"
    );
}

/// rule: architecture.md, Ending a session: Who still holds the output after the shell is gone
///   keeps the session running, with `shell_exited`
/// rule: unified-exec.md, Early exit, shell gone, LRU: A held session can be polled and killed
#[test]
fn a_session_without_its_shell_can_be_polled() {
    let mut execd = Execd::start();
    let cmd = "(until [ -e go ]; do sleep 0.01; done; echo late) & echo started; exit 3";
    let result = execd.exec(json!({"cmd": cmd, "yield_time_ms": 30_000}));
    assert_eq!(result["output"], "started\n");
    let later = poll(&mut execd, 1);
    execd.no_reply_yet(later);
    go(&execd);
    let result = execd.result_of(later);
    assert_eq!((&result["output"], &result["exit_code"]), (&json!("late\n"), &json!(3)));
    assert_absent(&result, &["session_id", "shell_exit_code", "note"]);
}

/// rule: unified-exec.md, Early exit, shell gone, LRU: When the last holder closes, the session has
///   exited
#[test]
fn the_exit_of_a_held_session_is_announced_when_the_holder_ends() {
    let mut execd = Execd::start();
    let cmd = "(until [ -e go ]; do sleep 0.01; done) & exit 3";
    execd.exec(json!({"cmd": cmd, "yield_time_ms": 30_000}));
    execd.notification("session_started", |_| true);
    assert_eq!(execd.notified("session_exited"), Vec::<Value>::new());
    go(&execd);
    let exit = execd.notification("session_exited", |_| true);
    assert_eq!((&exit["session_id"], &exit["exit_code"]), (&json!(1), &json!(3)));
}

/// rule: unified-exec.md, Early exit, shell gone, LRU: Later polls wait normally
#[test]
fn later_polls_of_a_held_session_wait_normally() {
    let mut execd = Execd::start();
    let cmd = "sleep 300 & echo started";
    execd.exec(json!({"cmd": cmd, "yield_time_ms": 30_000}));
    let request = poll(&mut execd, 1);
    // Longer than the 50 ms after which the first wait was answered.
    let stamp = utc_stamp(wall_clock() + Duration::from_millis(300));
    execd.write(json!({"session_id": 1, "yield_until": stamp}));
    execd.no_reply_yet(request);
}

/// rule: unified-exec.md, exec_command, params: The call answers when the process has exited and
///   its output is at end of file
#[test]
fn a_short_lived_holder_does_not_hide_the_exit() {
    let mut execd = Execd::start();
    // The holder ends with the shell's death or soon after it: within the 50 ms or beyond.
    let result =
        execd.exec(json!({"cmd": "(echo late) & echo early; wait", "yield_time_ms": 30_000}));
    assert_eq!(result["exit_code"], 0);
    assert_eq!(output(&result).lines().count(), 2);
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

/// rule: architecture.md, Ending a session: Members that outlive an ended session run on, and
///   list_sessions shows them as `left`
#[test]
fn a_background_job_that_holds_no_output_does_not_hold_its_session() {
    let mut execd = Execd::start();
    let result = execd.run("sleep 300 >/dev/null 2>&1 & echo started");
    assert_eq!((&result["output"], &result["exit_code"]), (&json!("started\n"), &json!(0)));
}

// ---- The output pauses ------------------------------------------------------------------

/// rule: architecture.md, Ending a session: A session is over when its leader was reaped and its
///   output has ended
#[test]
fn a_leader_may_close_its_output_and_go_on() {
    let mut execd = Execd::start();
    let session = session_of(
        &execd.open("echo hi; exec >/dev/null 2>&1; until [ -e go ]; do sleep 0.01; done; exit 5"),
    );
    let request = poll(&mut execd, session);
    execd.no_reply_yet(request);
    go(&execd);
    assert_eq!(execd.result_of(request)["exit_code"], 5);
}

/// rule: architecture.md, Ending a session: A PTY's output ends at EIO after the leader was reaped;
///   EIO before that is a pause
#[test]
fn a_leader_may_close_its_terminal_and_open_it_again() {
    let mut execd = Execd::start();
    let cmd = "exec </dev/null >/dev/null 2>&1; until [ -e go ]; do sleep 0.01; done; \
               exec </dev/tty >/dev/tty 2>&1; echo back; read x; echo \"got $x\"";
    let first = execd.open_with(cmd, json!({"tty": true}));
    go(&execd);
    until_logged(&first, "back");
    let params = json!({"session_id": 1, "chars": "in\\n", "yield_time_ms": 30_000});
    let result = execd.write(params);
    assert!(output(&result).starts_with("back\n"), "{result}");
    assert!(output(&result).ends_with("got in\n"), "{result}");
    assert_eq!(result["exit_code"], 0);
}
