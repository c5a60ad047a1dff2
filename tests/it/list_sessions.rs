//! list_sessions: its entries, their order and text, exited sessions that are told once,
//! detached and left-over processes; and the cap on sessions: who is evicted, who never is,
//! and what is said about it.

use crate::common::*;
use serde_json::{Value, json};

fn ids(list: &Value) -> Vec<u64> {
    let sessions = list["sessions"].as_array().expect("an array");
    sessions.iter().map(|entry| entry["session_id"].as_u64().expect("a number")).collect()
}

fn list(execd: &mut Execd) -> Value {
    execd.result("list_sessions", json!({}))
}

/// rule: unified-exec.md, Early exit, shell gone, LRU: Eviction never takes a session with a
///   pending request
/// rule: unified-exec.md, Early exit, shell gone, LRU: If nobody can be evicted the table runs over
///   its cap and evicts as soon as somebody can be
/// rule: unified-exec.md, Early exit, shell gone, LRU: Eviction never takes one of the min(8, max −
///   1) most recently used
#[test]
fn use_protects_a_session_and_one_with_a_pending_request_is_never_evicted() {
    let mut execd = Execd::with(&["--max-sessions", "4"], &[]);
    execd.open_all(&["sleep 60"; 4]);
    execd.poll_now(1);
    execd.open("sleep 60");
    assert_eq!(ids(&execd.peek()), [1, 3, 4, 5]);
    execd.result("set_on_exit", json!({"session_id": 3, "on_exit": "none"}));
    execd.open("sleep 60");
    assert_eq!(ids(&execd.peek()), [1, 3, 5, 6]);
    let polls = [1, 3, 5, 6].map(|session| {
        let poll = json!({"session_id": session, "yield_time_ms": 50_000});
        execd.start_request("write_stdin", poll)
    });
    execd.open("sleep 60");
    assert_eq!(ids(&execd.peek()), [1, 3, 5, 6, 7], "the table runs over its cap");
    for id in polls {
        execd.no_reply_yet(id);
    }
    assert!(execd.cancel(polls[0]));
    eventually("somebody can be evicted, and is", || ids(&execd.peek()) == [3, 5, 6, 7]);
}

/// rule: unified-exec.md, list_sessions: `  (no live sessions)` when empty
/// rule: unified-exec.md, list_sessions: The fields of an entry
/// rule: unified-exec.md, list_sessions: `text` names each session on two lines
/// rule: unified-exec.md, exec_command, params: `name` is a label for lists
/// rule: unified-exec.md, list_sessions: Sorted by id
/// rule: unified-exec.md, list_sessions: The command in `text` has 60 characters
#[test]
fn an_entry_has_these_fields_and_two_lines_of_the_text() {
    let mut execd = Execd::start();
    let empty = list(&mut execd);
    assert_eq!((&empty["sessions"], &empty["active_count"]), (&json!([]), &json!(0)));
    let text = empty["text"].as_str().expect("text");
    assert!(text.ends_with(":\n  (no live sessions)"), "{text}");
    assert_absent(&empty, &["left"]);
    let pipe = execd.open_with("echo hi; sleep 61", json!({"name": "a name"}));
    let long = format!("sleep 62; : {}", "é".repeat(100));
    execd.open_with(&long, json!({"tty": true}));
    execd.open("sleep 60\necho two\necho three");
    execd.poll_now(1);
    let listed = list(&mut execd);
    assert_eq!(ids(&listed), [1, 2, 3]);
    let [entry, other] = [0, 1].map(|at| &listed["sessions"][at]);
    for field in ["session_id", "command", "cwd", "tty", "pid", "log_path", "output_bytes_total"] {
        assert_eq!(entry[field], pipe[field], "{field}");
    }
    assert_eq!((&entry["name"], &entry["running"]), (&json!("a name"), &json!(true)));
    assert_eq!((&entry["wake_armed"], &listed["active_count"]), (&json!(false), &json!(3)));
    assert!(entry["elapsed_ms"].as_u64().expect("a number") >= 150, "{entry}");
    let apply_not = ["exit_code", "signal", "failure_message", "shell_exited", "detached"];
    assert_absent(entry, &apply_not);
    assert_absent(other, &["name"]);
    assert_eq!(other["command"], long, "the entry has all of it");
    let text = listed["text"].as_str().expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 8, "{lines:?}");
    // With or without the mark of the cut among the sixty.
    let [start, more] = [59, 61].map(|count| long.chars().take(count).collect::<String>());
    assert!(text.contains(&start) && !text.contains(&more), "{text}");
}

/// rule: architecture.md, Ending a session: list_sessions shows detached programs as `detached:
///   [{pid, command}]`
/// rule: architecture.md, Ending a session: A program that calls setsid has detached: kill_session
///   leaves it alone
/// rule: architecture.md, Ending a session: `--kill-detached` takes along what has left by setsid
///   and descends from a member
#[test]
fn detached_processes_are_listed_with_their_session_and_left_alone_by_kill() {
    for (flags, spared) in [(&[][..], 1), (&["--kill-detached"], 0)] {
        let mut execd = Execd::with(flags, &[]);
        execd.leaves_processes_behind();
        let cmd = "setsid sleep 4711 >/dev/null 2>&1 & echo ready; sleep 60";
        let session = execd.open_until(cmd, "ready");
        let detached = |execd: &Execd| {
            execd.session_processes().into_iter().find(|process| process.command == "sleep 4711")
        };
        eventually("setsid has become sleep", || detached(&execd).is_some());
        let process = detached(&execd).expect("it runs");
        let entry = execd.listed(session).expect("it is listed");
        assert_eq!(entry["detached"], json!([{"pid": process.pid, "command": "sleep"}]));
        execd.kill(session);
        let left = execd.session_processes();
        assert_eq!(left.len(), spared, "{left:?}");
        assert!(left.iter().all(|process| process.command == "sleep 4711"), "{left:?}");
    }
}

/// rule: architecture.md, Ending a session: An orphan that has left its session is named, and with
///   `--kill-detached` it ends with execd
#[test]
fn an_orphan_is_named_and_spared_and_kill_detached_ends_it_with_execd() {
    let mut execd = Execd::with(&["--kill-detached"], &[]);
    let runs = |execd: &Execd| execd.processes().iter().any(|one| one.command == "sleep 4712");
    let away = "env -i EXECD_TEST_RUN=\"$EXECD_TEST_RUN\" setsid -f sleep 4712 >/dev/null 2>&1";
    let other = execd.open("exec sleep 60");
    let session = execd.open_until(&format!("{away}; echo ready; exec sleep 60"), "ready");
    eventually("it has become sleep", || runs(&execd));
    let named = execd.listed(session).expect("it is listed")["detached"].clone();
    assert_eq!(named[0]["command"], "sleep", "{named}");
    assert_absent(&execd.listed(session_of(&other)).expect("it is listed"), &["detached"]);
    execd.kill(session);
    assert!(runs(&execd), "nothing proves whose it is");
    execd.close_stdin();
    assert!(execd.wait_exit().success());
    assert!(!runs(&execd));
}

/// rule: architecture.md, Ending a session: Members that outlive an ended session run on, and
///   list_sessions shows them as `left`
/// rule: architecture.md, Ending a session: kill_session with the old id ends what was left
#[test]
fn members_that_outlive_their_session_are_listed_as_left_and_ended_by_its_old_id() {
    let mut execd = Execd::start();
    let result = execd.run("sleep 4711 >/dev/null 2>&1 & echo $!");
    let pid: i32 = output(&result).trim().parse().expect("a pid");
    eventually("bash has become sleep", || {
        execd.session_processes().iter().any(|process| process.command == "sleep 4711")
    });
    let listed = execd.peek();
    assert_eq!(listed["left"], json!([{"session_id": 1, "pid": pid, "command": "sleep"}]));
    assert_eq!(listed["sessions"], json!([]));
    execd.run("sleep 4711 >/dev/null 2>&1 & sleep 4712 >/dev/null 2>&1 & true");
    for id in [1, 2] {
        let result = execd.kill(id);
        assert_eq!(result["found"], true, "{result}");
    }
    assert_eq!(execd.session_processes().len(), 0);
    assert_absent(&execd.peek(), &["left"]);
}

/// rule: unified-exec.md, Early exit, shell gone, LRU: Registering a 65th session evicts the oldest
///   exited one first
/// rule: unified-exec.md, Early exit, shell gone, LRU: Registering a 65th session evicts the oldest
///   where none has exited
/// rule: unified-exec.md, Early exit, shell gone, LRU: Registering a 65th session evicts
/// rule: unified-exec.md, Early exit, shell gone, LRU: The victim is ended like kill_session, in
///   the background
#[test]
fn the_oldest_exited_session_goes_first() {
    let mut execd = Execd::with(&["--max-sessions", "12"], &[]);
    let wait = format!("{}; exit 3", until_file("go"));
    let mut cmds = ["sleep 60"; 12];
    (cmds[2], cmds[3]) = (wait.as_str(), wait.as_str());
    execd.open_all(&cmds);
    go(&execd, "go");
    // Peeking does not name a session: it changes nobody's place.
    execd.until_listed_exited(3);
    execd.until_listed_exited(4);
    for evicted in [3, 4, 1] {
        let result = execd.open("sleep 60");
        let warning = result["warning"].as_str().expect("text");
        assert!(warning.contains(&format!("evicted session {evicted} ")), "{result}");
    }
    // Nobody saw its exit.
    let gone = execd.failed("write_stdin", json!({"session_id": 3}), "unknown_session");
    assert!(gone.contains("(evicted; log: "), "{gone}");
}

/// rule: unified-exec.md, Early exit, shell gone, LRU: A process that ends within 150 ms evicts
///   nobody and is never listed
#[test]
fn an_early_exit_evicts_nobody() {
    let mut execd = Execd::with(&["--max-sessions", "4"], &[]);
    execd.open_all(&["sleep 60"; 4]);
    for _ in 0..4 {
        execd.run("true");
    }
    // On a slow machine `true` can outlive 150 ms; then it takes a place like any other.
    let outlived = execd.notified("session_started").len() > 4;
    assert!(outlived || ids(&execd.peek()) == [1, 2, 3, 4], "{}", execd.peek());
}

/// rule: unified-exec.md, exec_command, result: `warning` is also a line of the header
/// rule: unified-exec.md, Early exit, shell gone, LRU: Warnings start at max − 4
/// rule: architecture.md, Ending a session: Who still holds the output after the shell is gone
///   keeps the session running, with `shell_exited`
#[test]
fn warnings_start_four_below_the_cap() {
    let mut execd = Execd::with(&["--max-sessions", "6"], &[]);
    assert_absent(&execd.open("sleep 60"), &["warning"]);
    let second = execd.open("sleep 60");
    assert_eq!(second["warning"], "2/6 sessions open");
    let header = second["header"].as_str().expect("text");
    assert!(header.lines().any(|line| line == "warning: 2/6 sessions open"), "{header}");
    // Also where the answer comes so early that it is what enters the session into the table.
    let held = execd.exec(json!({"cmd": "sleep 60 & echo held"}));
    assert_eq!(
        (&held["shell_exit_code"], &held["warning"]),
        (&json!(0), &json!("3/6 sessions open"))
    );
    let entry = execd.listed(3).expect("it is listed");
    assert_eq!((&entry["running"], &entry["shell_exited"]), (&json!(true), &json!(true)));
}
