//! The end of execd: end of input, signals, silence, and what becomes of what it started
//! (protocol.md, How execd ends).

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::*;
use serde_json::{Value, json};

/// From SIGTERM to SIGKILL when execd ends.
const GRACE: Duration = Duration::from_secs(1);
/// A bound for what should take a few seconds on a machine that is not loaded.
const SOON: Duration = Duration::from_secs(25);

/// Waits for a file and reads the pid in it.
fn pid_in(path: &Path) -> i32 {
    let mut pid = 0;
    eventually(&format!("{} holds a pid", path.display()), || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        pid = text.strip_suffix('\n').and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        pid != 0
    });
    pid
}

/// Whether a process is there, alive or as a zombie.
fn is_there(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// A shell script that ignores SIGTERM and goes on until SIGKILL; makes the file `stubborn`.
const STUBBORN: &str = "trap '' TERM; echo $$ > stubborn; while :; do sleep 0.05; done";

/// The session_exited of one session.
fn exited(lines: &[String], session: u64) -> Value {
    let is_it = |note: &Value| {
        note["method"] == "session_exited" && note["params"]["session_id"] == session
    };
    let mut found = lines.iter().map(|line| value(line)).filter(is_it);
    let note = found.next().unwrap_or_else(|| panic!("session {session}: {lines:#?}"));
    assert!(found.next().is_none(), "told twice: {lines:#?}");
    note["params"].clone()
}

fn finish(mut execd: Execd, code: i32) -> Vec<String> {
    let lines = execd.rest();
    assert_eq!(execd.exit_code(), Some(code), "{lines:#?}");
    execd.until_no_session_process();
    lines
}

/// rule: protocol.md, End of input, signals, a lost reader: At the end of stdin pending requests
///   run to their normal end and are answered
/// rule: protocol.md, End of input, signals, a lost reader: At the end of stdin execd exits 0
#[test]
fn at_the_end_of_input_pending_requests_are_answered_first_then_sessions_end() {
    let mut execd = Execd::start();
    let session = execd.open_making("echo $$ > pid; exec sleep 300", Some("pid"));
    let pid = pid_in(&execd.file("pid"));
    let cmd = format!("echo begun; touch begun; {}; echo done; exit 3", until_file("go"));
    execd.send("pending", "exec_command", json!({"cmd": cmd, "yield_time_ms": 30_000}));
    // One that ends at its own time.
    let sleeps = json!({"cmd": "exec sleep 300", "yield_time_ms": 1_000});
    execd.send("sleeps", "exec_command", sleeps);
    until_exists(&execd.file("begun"));
    execd.close_stdin();
    let reply = execd.next_reply();
    assert_eq!(
        (&reply["id"], &reply["result"]["wait_status"]),
        (&json!("sleeps"), &json!("deadline_reached"))
    );
    execd.until_idle(|| 0);
    assert_eq!(execd.try_exit(), None, "execd waits for the pending request");
    assert!(is_there(pid), "and the sessions live on meanwhile");
    go(&execd, "go");
    let reply = execd.next_reply();
    assert_eq!(reply["id"], "pending");
    assert_eq!(reply["result"]["output"], "begun\ndone\n");
    assert_eq!(reply["result"]["exit_code"], 3, "it ran to its normal end: {reply}");
    let lines = finish(execd, 0);
    let end = exited(&lines, session);
    assert_eq!((&end["signal"], &end["observed"]), (&json!("SIGTERM"), &json!(false)));
    assert_absent(&end, &["tail", "wake"]);
    assert!(!is_there(pid));
}

/// rule: protocol.md, End of input, signals, a lost reader: The last line counts also without a
///   newline
#[test]
fn the_last_line_counts_without_its_newline() {
    for (bytes, told) in [
        // A last line that is cut off is answered as what it is.
        (&br#"{"id":1,"method":"exec_comm"#[..], "-32700"),
        (&[b'x'; 5_000], "line_too_long"),
        (br#"{"id":1,"method":"exec_command","params":{"cmd":"echo last"}}"#, "last\\n"),
        (b"", ""),
    ] {
        let mut execd = Execd::with(&["--max-line-bytes", "1024"], &[]);
        execd.send_raw(bytes);
        execd.close_stdin();
        let lines = finish(execd, 0);
        let replies: Vec<&String> = lines.iter().filter(|line| !is_notification(line)).collect();
        assert_eq!(replies.len(), usize::from(!told.is_empty()), "{replies:?}");
        assert!(replies.iter().all(|line| line.contains(told)), "{told}: {replies:?}");
    }
}

/// rule: protocol.md, End of input, signals, a lost reader: After that every live session is ended:
///   SIGTERM, 1 s, SIGKILL
/// rule: architecture.md, Ending a session: Shutdown: SIGTERM to all sessions at once, one common
///   grace of 1 s
#[test]
fn sessions_get_sigterm_first_and_sigkill_after_one_common_grace() {
    let mut execd = Execd::start();
    for at in 0..6 {
        let cmd = format!("trap '' TERM; touch ready{at}; while :; do sleep 0.05; done");
        execd.open_making(&cmd, Some(&format!("ready{at}")));
    }
    let stopped = execd.open_making("touch ready6; kill -STOP $$; sleep 300", Some("ready6"));
    let cmd =
        "trap 'echo cleaned > cleaned; exit 5' TERM; touch ready; while :; do sleep 0.01; done";
    let cleans = execd.open_making(cmd, Some("ready"));
    let before = Instant::now();
    execd.close_stdin();
    let lines = execd.rest();
    assert_eq!(execd.exit_code(), Some(0));
    let took = before.elapsed();
    assert!(took >= GRACE && took < SOON, "{took:?}");
    let ends: Vec<Value> = (1..=6).map(|id| exited(&lines, id)["signal"].clone()).collect();
    assert_eq!(ends, vec![json!("SIGKILL"); 6]);
    assert_eq!(exited(&lines, stopped)["signal"], "SIGTERM", "a stopped one is continued");
    assert_eq!(exited(&lines, cleans)["exit_code"], 5);
    until_file_has(&execd.file("cleaned"), "cleaned");
    execd.until_no_session_process();
}

/// rule: protocol.md, End of input, signals, a lost reader: `--on-eof wait` lets the sessions run
///   to their own end; their session_exited carries `tail`
#[test]
fn with_on_eof_wait_sessions_run_to_their_own_end_and_their_exit_carries_the_tail() {
    let mut execd = Execd::with(&["--on-eof", "wait"], &[]);
    let wait = until_file("go");
    let first = execd.open_making(&format!("{wait}; echo the end; exit 4"), None);
    let second = execd.open_making(&format!("echo two; touch two; {wait}"), Some("two"));
    execd.send("pending", "exec_command", json!({"cmd": "true"}));
    execd.send_line(r#"{"method":"exec_command","params":{"cmd":"sleep 0.3; touch made"}}"#);
    let made = execd.file("made");
    execd.close_stdin();
    assert_eq!(execd.next_reply()["result"]["exit_code"], 0);
    execd.until_idle(|| 0);
    assert_eq!(execd.try_exit(), None, "it waits for the sessions");
    go(&execd, "go");
    let lines = execd.rest();
    assert_eq!(execd.exit_code(), Some(0), "{lines:#?}");
    for (session, code, tail) in [(first, 4, "the end\n"), (second, 0, "two\n")] {
        let end = exited(&lines, session);
        assert_eq!((&end["exit_code"], &end["tail"]), (&json!(code), &json!(tail)), "{end}");
    }
    assert!(made.exists(), "a short one without an id is not cut off");
}

/// rule: protocol.md, End of input, signals, a lost reader: On SIGTERM, SIGINT, SIGHUP pending
///   requests answer with what they have (`shutting_down`)
/// rule: protocol.md, End of input, signals, a lost reader: Ended by a signal, the exit code is
///   128 + signal
/// rule: unified-exec.md, exec_command, result: `wait_status`: completed, deadline_reached,
///   absolute_deadline_reached, cancelled, shutting_down
#[test]
fn a_signal_answers_what_waits_and_ends_the_sessions() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let mut execd = Execd::start();
        execd.nothing_but_a_ping();
        execd.signal(signal);
        assert!(finish(execd, 128 + signal).is_empty(), "nothing is told where nothing runs");
        ended_by(signal);
    }
}

fn ended_by(signal: i32) {
    let mut execd = Execd::start();
    let session = execd.open_making("echo one; touch one; exec sleep 300", Some("one"));
    let poll = json!({"session_id": session, "yield_time_ms": 600_000});
    execd.send("poll", "write_stdin", poll);
    let exec = json!({"cmd": "echo two; touch two; exec sleep 300", "yield_time_ms": 30_000});
    execd.send("exec", "exec_command", exec);
    let input = json!({"session_id": session, "chars": "x", "yield_time_ms": 30_000});
    execd.send("input", "write_stdin", input);
    until_exists(&execd.file("two"));
    // A reply that names a log waits until the keeper has made the file, 250 ms at most; by then
    // the session would have ended. Here the files are there.
    let has_log = |row: Option<Value>| row.is_some_and(|row| row.get("log_path").is_some());
    eventually("both logs are there", || [1, 2].into_iter().all(|id| has_log(execd.listed(id))));
    // At the end of stdin a signal does not wait for what is pending.
    execd.close_stdin();
    execd.until_idle(|| 0);
    execd.signal(signal);
    let lines = finish(execd, 128 + signal);
    let replies: Vec<Value> =
        lines.iter().filter(|line| !is_notification(line)).map(|line| value(line)).collect();
    assert_eq!(replies.len(), 3, "{lines:#?}");
    for reply in &replies {
        let result = &reply["result"];
        assert_eq!(result["wait_status"], "shutting_down", "{reply}");
        assert!(result["session_id"].is_u64(), "{reply}");
        assert_absent(result, &["exit_code", "signal"]);
    }
    let exec = replies.iter().find(|reply| reply["id"] == "exec").expect("its reply");
    assert_eq!(exec["result"]["output"], "two\n", "with what it has");
    assert_eq!(exited(&lines, session)["signal"], "SIGTERM");
}

#[test]
fn a_pending_kill_session_is_answered_with_its_end_also_while_execd_ends() {
    let mut execd = Execd::start();
    let session = execd.open_making(STUBBORN, Some("stubborn"));
    execd.send("kill", "kill_session", json!({"session_id": session}));
    execd.nothing_but_a_ping();
    execd.signal(libc::SIGTERM);
    let lines = finish(execd, 128 + libc::SIGTERM);
    let reply = lines.iter().find(|line| !is_notification(line)).expect("its reply");
    let result = value(reply)["result"].clone();
    assert_eq!(
        (&result["killed"], &result["signal"]),
        (&json!(true), &json!("SIGKILL")),
        "{result}"
    );
}

/// rule: architecture.md, Ending a session: A second SIGINT or SIGTERM means KILL now
#[test]
fn a_second_sigterm_kills_at_once() {
    // That the grace was cut short is shown by a whole end within it. A machine may be too slow
    // for that now and then, hence the attempts.
    let mut slowest = Duration::ZERO;
    for _ in 0..10 {
        let mut execd = Execd::start();
        let session = execd.open_making(STUBBORN, Some("stubborn"));
        execd.send("p", "write_stdin", json!({"session_id": session, "yield_time_ms": 600_000}));
        execd.nothing_but_a_ping();
        let before = Instant::now();
        execd.signal(libc::SIGTERM);
        // This answer shows that the first signal was taken.
        assert_eq!(execd.next_reply()["result"]["wait_status"], "shutting_down");
        execd.signal(libc::SIGTERM);
        let lines = execd.rest();
        assert_eq!(execd.exit_code(), Some(128 + libc::SIGTERM));
        let took = before.elapsed();
        assert_eq!(exited(&lines, session)["signal"], "SIGKILL");
        execd.until_no_session_process();
        if took < GRACE {
            return;
        }
        slowest = slowest.max(took);
    }
    panic!("the second signal changed nothing: {slowest:?}");
}

#[test]
fn signals_that_are_ignored_by_a_parent_still_end_execd() {
    // nohup and shells that start background jobs leave SIGHUP and SIGINT ignored. With
    // `--on-eof wait` a signal still ends the sessions.
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let ignored = move || {
            // SAFETY: signal is async-signal-safe.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        };
        let mut execd = Setup::new(&["--on-eof", "wait"]).prepared(ignored).start();
        let session = execd.open_making("exec sleep 300", None);
        execd.close_stdin();
        execd.until_idle(|| 0);
        execd.signal(signal);
        let lines = finish(execd, 128 + signal);
        assert_eq!(exited(&lines, session)["signal"], "SIGTERM");
    }
}

/// Ends execd in one of three ways, of which the last is a signal; gives its exit code.
fn end(execd: &mut Execd, way: &str) -> i32 {
    match way {
        "end of input" => execd.close_stdin(),
        "shutdown" => execd.send_line(r#"{"method":"shutdown"}"#),
        _ => execd.signal(libc::SIGTERM),
    }
    if way == "signal" { 128 + libc::SIGTERM } else { 0 }
}

/// rule: architecture.md, Ending a session: A detached program is left alone at shutdown
/// rule: architecture.md, Ending a session: Shutdown ends what was left
/// rule: architecture.md, The keeper: A goodbye leaves what may stay
#[test]
fn what_detached_itself_is_left_alone_and_members_left_over_are_ended() {
    for way in ["end of input", "shutdown", "signal"] {
        let mut execd = Execd::start();
        execd.leaves_processes_behind();
        let cmd =
            "setsid sh -c 'echo $$ > detached; exec sleep 300' >/dev/null 2>&1 & exec sleep 300";
        execd.open_making(cmd, Some("detached"));
        let detached = pid_in(&execd.file("detached"));
        let cmd = "sh -c 'echo $$ > left; exec sleep 300' >/dev/null 2>&1 & \
                   until [ -s left ]; do sleep 0.01; done";
        assert_eq!(execd.run(cmd)["exit_code"], 0);
        let left = pid_in(&execd.file("left"));
        assert_eq!(execd.peek()["left"][0]["pid"], left);
        let code = end(&mut execd, way);
        execd.rest();
        assert_eq!(execd.exit_code(), Some(code), "{way}");
        eventually("its helpers have ended", || execd.marked().len() < 2);
        let stay: Vec<i32> = execd.session_processes().iter().map(|one| one.pid).collect();
        assert_eq!(stay, [detached], "{way}");
        assert!(!is_there(left), "not even a zombie is left after {way}");
    }
}

/// rule: protocol.md, End of input, signals, a lost reader: `--exit-after-silence S` ends execd
///   when nothing came for S seconds
#[test]
fn execd_ends_after_a_silence_that_began_with_its_start() {
    let before = Instant::now();
    let execd = Execd::with(&["--exit-after-silence", "1"], &[]);
    assert!(finish(execd, 0).is_empty());
    assert!(before.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_stubborn_member_left_over_is_killed_after_the_grace() {
    let mut execd = Execd::start();
    std::fs::write(execd.file("script"), STUBBORN).expect("a file");
    execd.run("sh script >/dev/null 2>&1 & until [ -s stubborn ]; do sleep 0.01; done");
    let left = pid_in(&execd.file("stubborn"));
    let before = Instant::now();
    execd.close_stdin();
    finish(execd, 0);
    let took = before.elapsed();
    assert!(took >= GRACE && took < SOON, "{took:?}");
    assert!(!is_there(left));
}

/// rule: architecture.md, Ending a session: No zombie, ever
/// rule: architecture.md, Ending a session: The last flush to a reader that never reads takes 2 s
///   at most
#[test]
fn whatever_the_end_no_process_and_no_zombie_is_left() {
    let cmd = "for name in a b c; do sh -c \"echo \\$\\$ > $name; exec sleep 300\" & done; \
               (sh -c 'echo $$ > d; exec sleep 300' &); echo $$ > e; wait";
    let names = ["a", "b", "c", "d", "e"];
    let ways = ["end of input", "shutdown", "SIGTERM", "SIGKILL", "reader gone"];
    // A reader that never reads delays three of these ends, and no longer than the last flush may.
    let all = ways.map(|way| (way, false)).into_iter();
    for (way, is_full) in all.chain(ways.map(|way| (way, true)).into_iter().take(3)) {
        let (child_in, mut input) = std::io::pipe().expect("a pipe");
        let (output, child_out) = std::io::pipe().expect("a pipe");
        let mut host = Setup::new(&[]).on(child_in, child_out);
        let params = json!({"cmd": cmd, "yield_time_ms": 250});
        let request = json!({"method": "exec_command", "params": params});
        input.write_all(format!("{request}\n").as_bytes()).expect("execd reads");
        let pids: Vec<i32> = names.iter().map(|name| pid_in(&host.file(name))).collect();
        if is_full {
            let ping = format!("{{\"id\":\"{}\",\"method\":\"ping\"}}\n", "i".repeat(4_000));
            input.write_all(ping.repeat(500).as_bytes()).expect("execd reads");
            host.until_idle(|| 0);
        }
        let before = Instant::now();
        let (mut input, mut output) = (Some(input), Some(output));
        let code = match way {
            "end of input" => {
                input = None;
                Some(0)
            }
            "shutdown" => {
                let shutdown = b"{\"method\":\"shutdown\"}\n";
                input.as_mut().expect("open").write_all(shutdown).expect("execd reads");
                Some(0)
            }
            "SIGTERM" => {
                host.signal(libc::SIGTERM);
                Some(128 + libc::SIGTERM)
            }
            "SIGKILL" => {
                host.signal(libc::SIGKILL);
                None
            }
            _ => {
                output = None;
                Some(1)
            }
        };
        assert_eq!(host.exit_code(), code, "{way}");
        assert!(before.elapsed() < SOON, "{way}");
        for (name, pid) in names.iter().zip(pids) {
            // Who was killed can't reap: then it is up to whoever takes the orphans.
            if way == "SIGKILL" {
                eventually(&format!("{name} is gone after {way}"), || !is_there(pid));
            }
            assert!(!is_there(pid), "{name} is there after {way}");
        }
        eventually("the keeper is gone", || host.marked().is_empty());
        drop((input, output));
    }
}
