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

/// Opens a session that exits when told, tells it, and waits for that.
fn open_exited(execd: &mut Execd, code: i32) -> u64 {
    let cmd = format!("until [ -e go ]; do sleep 0.01; done; exit {code}");
    let session = session_of(&execd.open(&cmd));
    std::fs::write(execd.file("go"), "").expect("a file");
    execd.until_listed_exited(session);
    std::fs::remove_file(execd.file("go")).expect("the file");
    session
}

// ---- Entries ----------------------------------------------------------------------------

/// rule: unified-exec.md, list_sessions: `  (no live sessions)` when empty
/// rule: unified-exec.md, list_sessions: The fields of an entry
/// rule: unified-exec.md, list_sessions: `text` names each session on two lines
#[test]
fn an_entry_has_these_fields_and_two_lines_of_the_text() {
    let mut execd = Execd::start();
    let empty = list(&mut execd);
    assert_eq!((&empty["sessions"], &empty["active_count"]), (&json!([]), &json!(0)));
    assert_utc_stamp(&empty["tool_time_utc"]);
    let text = empty["text"].as_str().expect("text");
    assert!(text.starts_with("unified-exec sessions ("), "{text}");
    assert!(text.ends_with(":\n  (no live sessions)"), "{text}");
    assert_absent(&empty, &["left"]);
    let pipe = execd.open_with("echo hi; sleep 61", json!({"name": "a name"}));
    let tty = execd.open_with("sleep 62", json!({"tty": true}));
    let listed = list(&mut execd);
    let entry = &listed["sessions"][0];
    for field in ["session_id", "command", "cwd", "tty", "pid", "log_path", "output_bytes_total"] {
        assert_eq!(entry[field], pipe[field], "{field}");
    }
    assert_eq!((&entry["name"], &entry["running"]), (&json!("a name"), &json!(true)));
    assert_eq!((&entry["wake_armed"], &listed["active_count"]), (&json!(false), &json!(2)));
    assert!(entry["elapsed_ms"].as_u64().expect("a number") >= 150, "{entry}");
    let started = entry["started_at_ms"].as_u64().expect("a number");
    assert!((1_600_000_000_000..9_000_000_000_000).contains(&started), "{entry}");
    let apply_not = ["exit_code", "signal", "failure_message", "shell_exited", "detached"];
    assert_absent(entry, &apply_not);
    let lines: Vec<&str> = listed["text"].as_str().expect("text").lines().collect();
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert!(lines[0].starts_with("unified-exec sessions (2 live"), "{lines:?}");
    // A model that reads only the text can say until when to wait.
    let clock = format!("tool_time_utc: {}", listed["tool_time_utc"].as_str().expect("a stamp"));
    assert_eq!(lines[5], clock);
    for (at, kind, command, result) in
        [(1, "pipe", "sleep 61", &pipe), (3, "tty", "sleep 62", &tty)]
    {
        let words: Vec<&str> = lines[at].split_whitespace().collect();
        let id = session_of(result).to_string();
        assert_eq!(words[0].trim_start_matches('#'), id, "{lines:?}");
        assert!(lines[at].contains(&pid_of(result).to_string()), "{lines:?}");
        assert!(words.contains(&kind), "{lines:?}");
        assert!(lines[at].ends_with(command), "{lines:?}");
        let log = result["log_path"].as_str().expect("text");
        assert!(lines[at + 1].trim_start().ends_with(log), "{lines:?}");
    }
}

/// rule: unified-exec.md, list_sessions: Sorted by id
/// rule: unified-exec.md, list_sessions: The command in `text` has 60 characters
#[test]
fn entries_are_sorted_by_id_and_each_command_has_sixty_characters_on_a_line() {
    let mut execd = Execd::start();
    let long = format!("sleep 60; : {}", "é".repeat(100));
    let sessions =
        execd.open_all(&["sleep 60\necho two\necho three", &long, "sleep 60", "sleep 60"]);
    execd.poll_now(sessions[3]);
    execd.poll_now(sessions[2]);
    let listed = list(&mut execd);
    assert_eq!(ids(&listed), (1..=4).collect::<Vec<u64>>());
    let text = listed["text"].as_str().expect("text");
    assert_eq!(text.lines().count(), 10, "{listed}");
    // With or without the mark of the cut among the sixty.
    let start: String = long.chars().take(59).collect();
    let more: String = long.chars().take(61).collect();
    assert!(text.contains(&start) && !text.contains(&more), "{text}");
    assert_eq!(listed["sessions"][1]["command"], long, "the entry has all of it");
}

/// rule: unified-exec.md, write_stdin: Observing the exit removes the session
/// rule: unified-exec.md, list_sessions: An exited session is reported once here, then removed
/// rule: unified-exec.md, list_sessions: With `peek: true` nothing is removed and no wake is used
///   up
/// rule: unified-exec.md, list_sessions: `[exited exit_code=0; removed from store]` where so
#[test]
fn an_exited_session_is_reported_once_then_removed() {
    let mut execd = Execd::start();
    let wait = until_file("go");
    let cmds = [format!("{wait}; kill -USR1 $$; sleep 60"), format!("{wait}; exit 7")];
    let sessions = execd.open_all(&[&cmds[0], &cmds[1], "sleep 60"]);
    go(&execd, "go");
    execd.until_listed_exited(sessions[0]);
    execd.until_listed_exited(sessions[1]);
    for _ in 0..3 {
        assert_eq!(ids(&execd.peek()), sessions, "a look takes nothing");
    }
    let first = list(&mut execd);
    let [one, other] = [0, 1].map(|at| &first["sessions"][at]);
    assert_eq!((&one["signal"], &one["running"]), (&json!("SIGUSR1"), &json!(false)));
    assert_absent(one, &["exit_code"]);
    assert_eq!((&other["exit_code"], &first["active_count"]), (&json!(7), &json!(1)));
    let text = first["text"].as_str().expect("text");
    assert!(text.starts_with("unified-exec sessions (1 live, 2 just exited):\n"), "{text}");
    let marked: Vec<&str> = text.lines().filter(|line| line.contains("[exited")).collect();
    assert_eq!(marked.len(), 2, "{text}");
    assert!(marked[1].contains("[exited exit_code=7; removed from store]"), "{text}");
    assert_eq!(ids(&list(&mut execd)), [3]);
    execd.failed("write_stdin", json!({"session_id": sessions[1]}), "unknown_session");
}

// ---- Processes beside the leader --------------------------------------------------------

/// rule: architecture.md, Ending a session: list_sessions shows detached programs as `detached:
///   [{pid, command}]`
/// rule: architecture.md, Ending a session: A program that calls setsid has detached: kill_session
///   leaves it alone
#[test]
fn detached_processes_are_listed_with_their_session_and_left_alone_by_kill() {
    let mut execd = Execd::start();
    execd.leaves_processes_behind();
    let session =
        execd.open_until("setsid sleep 4711 >/dev/null 2>&1 & echo ready; sleep 60", "ready");
    let detached = |execd: &Execd| {
        execd.session_processes().into_iter().find(|process| process.command == "sleep 4711")
    };
    eventually("setsid has become sleep", || detached(&execd).is_some());
    let process = detached(&execd).expect("it runs");
    let entry = execd.listed(session).expect("it is listed");
    assert_eq!(entry["detached"], json!([{"pid": process.pid, "command": "sleep"}]));
    execd.kill(session);
    let left: Vec<String> =
        execd.session_processes().into_iter().map(|process| process.command).collect();
    assert_eq!(left, ["sleep 4711"]);
}

/// rule: architecture.md, Ending a session: `--kill-detached` takes along what has left by setsid
///   and descends from a member
#[test]
fn kill_detached_takes_detached_processes_along() {
    let mut execd = Execd::with(&["--kill-detached"], &[]);
    let session =
        execd.open_until("setsid sleep 4711 >/dev/null 2>&1 & echo ready; sleep 60", "ready");
    eventually("setsid has become sleep", || {
        execd.session_processes().iter().any(|process| process.command == "sleep 4711")
    });
    execd.kill(session);
    assert_eq!(execd.session_processes().len(), 0);
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

/// rule: architecture.md, Ending a session: Who still holds the output after the shell is gone
///   keeps the session running, with `shell_exited`
#[test]
fn a_session_whose_shell_is_gone_says_so() {
    let mut execd = Execd::start();
    let result = execd.exec(json!({"cmd": "sleep 300 & exit 3", "yield_time_ms": 30_000}));
    let entry = execd.listed(session_of(&result)).expect("it is listed");
    assert_eq!(entry["running"], true);
    assert!(entry.get("shell_exited").is_some_and(|told| told != false), "{entry}");
}

// ---- The cap ----------------------------------------------------------------------------

/// rule: unified-exec.md, Early exit, shell gone, LRU: Registering a 65th session evicts the oldest
///   where none has exited
/// rule: unified-exec.md, Early exit, shell gone, LRU: Registering a 65th session evicts
/// rule: unified-exec.md, Early exit, shell gone, LRU: The victim is ended like kill_session, in
///   the background
#[test]
fn sixty_four_sessions_fit_and_the_sixty_fifth_evicts_the_oldest() {
    let mut execd = Execd::start();
    let sessions = execd.open_all(&["sleep 60"; 64]);
    assert_eq!(list(&mut execd)["active_count"], 64);
    let result = execd.open("sleep 60");
    let warning = "evicted session 1 (LRU, over cap 64)";
    assert!(result["warning"].as_str().expect("text").contains(warning), "{result}");
    let header = result["header"].as_str().expect("text");
    assert!(
        header.lines().any(|line| line.starts_with("warning: ") && line.contains(warning)),
        "{header}"
    );
    assert_eq!(ids(&execd.peek()), (2..=65).collect::<Vec<u64>>());
    let own = "EXECD_SESSION_ID of the evicted";
    let id = sessions[0].to_string();
    eventually(own, || execd.session_processes().iter().all(|p| p.session.as_deref() != Some(&id)));
}

/// rule: unified-exec.md, Early exit, shell gone, LRU: Eviction never takes one of the min(8, max −
///   1) most recently used
#[test]
fn use_protects_a_session() {
    let mut execd = Execd::with(&["--max-sessions", "4"], &[]);
    execd.open_all(&["sleep 60"; 4]);
    execd.poll_now(1);
    execd.open("sleep 60");
    assert_eq!(ids(&execd.peek()), [1, 3, 4, 5]);
    execd.result("set_on_exit", json!({"session_id": 3, "on_exit": "none"}));
    execd.open("sleep 60");
    assert_eq!(ids(&execd.peek()), [1, 3, 5, 6]);
}

/// rule: unified-exec.md, Early exit, shell gone, LRU: Registering a 65th session evicts the oldest
///   exited one first
#[test]
fn the_oldest_exited_session_goes_first() {
    let mut execd = Execd::with(&["--max-sessions", "12"], &[]);
    let wait = "until [ -e go ]; do sleep 0.01; done; exit 3";
    let mut cmds = ["sleep 60"; 12];
    (cmds[2], cmds[3]) = (wait, wait);
    execd.open_all(&cmds);
    std::fs::write(execd.file("go"), "").expect("a file");
    // Peeking does not name a session: it changes nobody's place.
    execd.until_listed_exited(3);
    execd.until_listed_exited(4);
    let result = execd.open("sleep 60");
    assert!(result["warning"].as_str().expect("text").contains("evicted session 3 "), "{result}");
    let result = execd.open("sleep 60");
    assert!(result["warning"].as_str().expect("text").contains("evicted session 4 "), "{result}");
    let result = execd.open("sleep 60");
    assert!(result["warning"].as_str().expect("text").contains("evicted session 1 "), "{result}");
}

/// rule: unified-exec.md, Early exit, shell gone, LRU: Eviction never takes a session with a
///   pending request
/// rule: unified-exec.md, Early exit, shell gone, LRU: If nobody can be evicted the table runs over
///   its cap and evicts as soon as somebody can be
#[test]
fn a_session_with_a_pending_request_is_never_evicted() {
    let mut execd = Execd::with(&["--max-sessions", "4"], &[]);
    execd.open_all(&["sleep 60"; 4]);
    let poll = |execd: &mut Execd, session: u64| {
        execd.start_request("write_stdin", json!({"session_id": session, "yield_time_ms": 50_000}))
    };
    let polls: Vec<u64> = (1..=4).map(|session| poll(&mut execd, session)).collect();
    execd.open("sleep 60");
    assert_eq!(ids(&execd.peek()), [1, 2, 3, 4, 5], "the table runs over its cap");
    for id in &polls {
        execd.no_reply_yet(*id);
    }
    execd.cancel(polls[0]);
    execd.result_of(polls[0]);
    eventually("somebody can be evicted, and is", || ids(&execd.peek()) == [2, 3, 4, 5]);
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

#[test]
fn an_exited_session_can_be_evicted_before_anybody_saw_its_exit() {
    let mut execd = Execd::with(&["--max-sessions", "2"], &[]);
    let session = open_exited(&mut execd, 3);
    execd.open("sleep 60");
    execd.open("sleep 60");
    let message = execd.failed("write_stdin", json!({"session_id": session}), "unknown_session");
    assert!(message.contains("(evicted; log: "), "{message}");
}

/// rule: unified-exec.md, exec_command, result: `warning` is also a line of the header
/// rule: unified-exec.md, Early exit, shell gone, LRU: Warnings start at max − 4
#[test]
fn warnings_start_four_below_the_cap() {
    let mut execd = Execd::with(&["--max-sessions", "6"], &[]);
    let first = execd.open("sleep 60");
    assert_absent(&first, &["warning"]);
    let second = execd.open("sleep 60");
    assert_eq!(second["warning"], "2/6 sessions open");
    let header = second["header"].as_str().expect("text");
    assert!(header.lines().any(|line| line == "warning: 2/6 sessions open"), "{header}");
    assert_eq!(execd.open("sleep 60")["warning"], "3/6 sessions open");
    // Also where the answer comes so early that it is what enters the session into the table.
    let held = execd.exec(json!({"cmd": "sleep 60 & echo held"}));
    assert_eq!(
        (&held["shell_exit_code"], &held["warning"]),
        (&json!(0), &json!("4/6 sessions open"))
    );
}
