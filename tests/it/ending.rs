//! The end of execd: end of input, signals, silence, and what becomes of what it started
//! (protocol.md, How execd ends).

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{Execd, Incoming, Setup, eventually, is_notification, until_file_has, value};
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

/// The notifications among some lines, as (method, params).
fn notifications(lines: &[String]) -> Vec<(String, Value)> {
    let values = lines.iter().filter(|line| is_notification(line)).map(|line| value(line));
    values
        .map(|note| (note["method"].as_str().expect("a method").to_owned(), note["params"].clone()))
        .collect()
}

/// The session_exited of one session.
fn exited(lines: &[String], session: u64) -> Value {
    let mut found = notifications(lines)
        .into_iter()
        .filter(|(method, params)| method == "session_exited" && params["session_id"] == session);
    let (_, params) = found.next().unwrap_or_else(|| panic!("session {session}: {lines:#?}"));
    assert!(found.next().is_none(), "told twice: {lines:#?}");
    params
}

fn finish(mut execd: Execd, code: i32) -> Vec<String> {
    let lines = execd.rest();
    assert_eq!(execd.exit_code(), Some(code), "{lines:#?}");
    execd.until_no_session_process();
    lines
}

// ---- End of input -----------------------------------------------------------------------------

/// rule: protocol.md, End of input, signals, a lost reader: At the end of stdin pending requests
///   run to their normal end and are answered
/// rule: protocol.md, End of input, signals, a lost reader: At the end of stdin execd exits 0
#[test]
fn at_the_end_of_input_pending_requests_are_answered_first_then_sessions_end() {
    let mut execd = Execd::with(&[], &[]);
    let session = execd.open_making("echo $$ > pid; exec sleep 300", Some("pid"));
    let pid = pid_in(&execd.file("pid"));
    let cmd = "echo begun; touch begun; until [ -e go ]; do sleep 0.01; done; echo done; exit 3";
    execd.send("pending", "exec_command", json!({"cmd": cmd, "yield_time_ms": 30_000}));
    eventually("it runs", || execd.file("begun").exists());
    execd.close_stdin();
    execd.until_idle(|| 0);
    assert_eq!(execd.try_exit(), None, "execd waits for the pending request");
    assert!(is_there(pid), "and the sessions live on meanwhile");
    std::fs::write(execd.file("go"), "").expect("a file");
    let reply = execd.next_reply();
    assert_eq!(reply["id"], "pending");
    assert_eq!(reply["result"]["output"], "begun\ndone\n");
    assert_eq!(reply["result"]["exit_code"], 3, "it ran to its normal end: {reply}");
    assert_eq!(reply["result"]["wait_status"], "completed");
    let lines = finish(execd, 0);
    let end = exited(&lines, session);
    assert_eq!((&end["signal"], &end["observed"]), (&json!("SIGTERM"), &json!(false)));
    assert!(end.get("tail").is_none() && end.get("wake").is_none(), "{end}");
    assert!(!is_there(pid));
}

/// rule: protocol.md, End of input, signals, a lost reader: At the end of stdin pending requests
///   run to their normal end and are answered
#[test]
fn a_pending_wait_ends_at_its_own_time_also_after_the_end_of_input() {
    let mut execd = Execd::with(&[], &[]);
    execd.send("e", "exec_command", json!({"cmd": "exec sleep 300", "yield_time_ms": 1_000}));
    execd.close_stdin();
    let reply = execd.next_reply();
    assert_eq!(reply["result"]["wait_status"], "deadline_reached", "{reply}");
    assert!(reply["result"]["effective_wait_ms"].as_u64().is_some_and(|ms| ms >= 1_000), "{reply}");
    finish(execd, 0);
}

/// rule: protocol.md, End of input, signals, a lost reader: The last line counts also without a
///   newline
#[test]
fn the_last_line_counts_without_its_newline() {
    let said = |bytes: &[u8]| -> Vec<Value> {
        let mut execd = Execd::with(&["--max-line-bytes", "1024"], &[]);
        execd.send_raw(bytes);
        execd.close_stdin();
        let lines = finish(execd, 0);
        lines.iter().filter(|line| !is_notification(line)).map(|line| value(line)).collect()
    };
    let last = said(br#"{"id":1,"method":"exec_command","params":{"cmd":"echo last"}}"#);
    assert_eq!(last[0]["result"]["output"], "last\n");
    // A last line that is cut off is answered as what it is.
    assert_eq!(said(br#"{"id":1,"method":"exec_comm"#)[0]["error"]["code"], -32700);
    assert_eq!(said(&[b'x'; 5_000])[0]["error"]["data"]["reason"], "line_too_long");
    assert!(said(b"").is_empty(), "an empty input ends at once");
}

/// rule: protocol.md, End of input, signals, a lost reader: After that every live session is ended:
///   SIGTERM, 1 s, SIGKILL
/// rule: architecture.md, Ending a session: Shutdown: SIGTERM to all sessions at once, one common
///   grace of 1 s
#[test]
fn sessions_get_sigterm_first_and_sigkill_after_one_common_grace() {
    let mut execd = Execd::with(&[], &[]);
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
    let cmd = "until [ -e go ]; do sleep 0.01; done; echo the end; exit 4";
    let first = execd.open_making(cmd, None);
    let second =
        execd.open_making("echo two; touch two; until [ -e go ]; do sleep 0.01; done", Some("two"));
    execd.send("pending", "exec_command", json!({"cmd": "true"}));
    execd.send_line(r#"{"method":"exec_command","params":{"cmd":"sleep 0.3; touch made"}}"#);
    let made = execd.file("made");
    execd.close_stdin();
    assert_eq!(execd.next_reply()["result"]["exit_code"], 0);
    execd.until_idle(|| 0);
    assert_eq!(execd.try_exit(), None, "it waits for the sessions");
    std::fs::write(execd.file("go"), "").expect("a file");
    let lines = execd.rest();
    assert_eq!(execd.exit_code(), Some(0), "{lines:#?}");
    let end = exited(&lines, first);
    assert_eq!((&end["exit_code"], &end["tail"]), (&json!(4), &json!("the end\n")), "{end}");
    let end = exited(&lines, second);
    assert_eq!((&end["exit_code"], &end["tail"]), (&json!(0), &json!("two\n")), "{end}");
    assert!(made.exists(), "a short one without an id is not cut off");
}

#[test]
fn with_on_eof_wait_a_signal_still_ends_the_sessions() {
    let mut execd = Execd::with(&["--on-eof", "wait"], &[]);
    let session = execd.open_making("exec sleep 300", None);
    execd.close_stdin();
    execd.until_idle(|| 0);
    execd.signal(libc::SIGTERM);
    let lines = finish(execd, 128 + libc::SIGTERM);
    assert_eq!(exited(&lines, session)["signal"], "SIGTERM");
}

// ---- Signals ----------------------------------------------------------------------------------

/// rule: protocol.md, End of input, signals, a lost reader: On SIGTERM, SIGINT, SIGHUP pending
///   requests answer with what they have (`shutting_down`)
/// rule: protocol.md, End of input, signals, a lost reader: Ended by a signal, the exit code is
///   128 + signal
/// rule: unified-exec.md, exec_command, result: `wait_status`: completed, deadline_reached,
///   absolute_deadline_reached, cancelled, shutting_down
#[test]
fn a_signal_answers_what_waits_and_ends_the_sessions() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let mut execd = Execd::with(&[], &[]);
        execd.nothing_but_a_ping();
        execd.signal(signal);
        assert!(finish(execd, 128 + signal).is_empty(), "nothing is told where nothing runs");
        ended_by(signal);
    }
}

fn ended_by(signal: i32) {
    let mut execd = Execd::with(&[], &[]);
    let session = execd.open_making("echo one; touch one; exec sleep 300", Some("one"));
    let poll = json!({"session_id": session, "yield_time_ms": 600_000});
    execd.send("poll", "write_stdin", poll);
    let exec = json!({"cmd": "echo two; touch two; exec sleep 300", "yield_time_ms": 30_000});
    execd.send("exec", "exec_command", exec);
    let input = json!({"session_id": session, "chars": "x", "yield_time_ms": 30_000});
    execd.send("input", "write_stdin", input);
    eventually("it runs", || execd.file("two").exists());
    // A reply that names a log waits until the keeper has made the file, 250 ms at most; by then
    // the session would have ended. Here the files are there.
    let named = |list: &Value| {
        let sessions = list["result"]["sessions"].as_array().expect("a list").clone();
        sessions.len() == 2 && sessions.iter().all(|one| one.get("log_path").is_some())
    };
    eventually("both logs are there", || named(&execd.ask("list_sessions", json!({"peek": true}))));
    execd.signal(signal);
    let lines = finish(execd, 128 + signal);
    let replies: Vec<Value> =
        lines.iter().filter(|line| !is_notification(line)).map(|line| value(line)).collect();
    assert_eq!(replies.len(), 3, "{lines:#?}");
    for reply in &replies {
        let result = &reply["result"];
        assert_eq!(result["wait_status"], "shutting_down", "{reply}");
        assert!(result["session_id"].is_u64() && result.get("exit_code").is_none(), "{reply}");
        assert!(result.get("signal").is_none(), "{reply}");
    }
    let exec = replies.iter().find(|reply| reply["id"] == "exec").expect("its reply");
    assert_eq!(exec["result"]["output"], "two\n", "with what it has");
    assert_eq!(exited(&lines, session)["signal"], "SIGTERM");
}

#[test]
fn a_pending_kill_session_is_answered_with_its_end_also_while_execd_ends() {
    let mut execd = Execd::with(&[], &[]);
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
        let mut execd = Execd::with(&[], &[]);
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
fn a_sigterm_during_the_end_of_input_does_not_wait_for_pending_requests() {
    let mut execd = Execd::with(&[], &[]);
    let exec = json!({"cmd": "touch run; exec sleep 300", "yield_time_ms": 30_000});
    execd.send("pending", "exec_command", exec);
    eventually("it runs", || execd.file("run").exists());
    execd.close_stdin();
    execd.until_idle(|| 0);
    execd.signal(libc::SIGTERM);
    assert_eq!(execd.next_reply()["result"]["wait_status"], "shutting_down");
    finish(execd, 128 + libc::SIGTERM);
}

#[test]
fn signals_that_are_ignored_by_a_parent_still_end_execd() {
    use std::os::unix::process::CommandExt;
    // nohup and shells that start background jobs leave SIGHUP and SIGINT ignored.
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let (child_in, mut input) = std::io::pipe().expect("a pipe");
        let (output, child_out) = std::io::pipe().expect("a pipe");
        let mut setup = Setup::new(&[]);
        // SAFETY: signal is async-signal-safe.
        unsafe {
            setup.command().pre_exec(move || {
                libc::signal(signal, libc::SIG_IGN);
                Ok(())
            });
        }
        let mut host = setup.on(child_in, child_out);
        let mut output = Incoming::from(output);
        input.write_all(b"{\"id\":1,\"method\":\"ping\"}\n").expect("execd reads");
        output.reply();
        host.signal(signal);
        assert_eq!(host.exit_code(), Some(128 + signal), "signal {signal}");
    }
}

// ---- Silence ----------------------------------------------------------------------------------

/// rule: protocol.md, End of input, signals, a lost reader: `--exit-after-silence S` ends execd
///   when nothing came for S seconds
#[test]
fn execd_ends_after_a_silence_that_began_with_its_start() {
    let before = Instant::now();
    let execd = Execd::with(&["--exit-after-silence", "1"], &[]);
    assert!(finish(execd, 0).is_empty());
    assert!(before.elapsed() >= Duration::from_secs(1));
}

// ---- Detached, left over, orphans, zombies ----------------------------------------------------

/// Starts a session with a child that left it by setsid; gives the child's pid.
fn detach(execd: &mut Execd) -> i32 {
    let cmd = "setsid sh -c 'echo $$ > detached; exec sleep 300' >/dev/null 2>&1 & exec sleep 300";
    execd.open_making(cmd, Some("detached"));
    pid_in(&execd.file("detached"))
}

/// rule: architecture.md, Ending a session: A detached program is left alone at shutdown
/// rule: architecture.md, The keeper: A goodbye leaves what may stay
#[test]
fn what_detached_itself_is_left_alone() {
    for way in ["end of input", "shutdown", "signal"] {
        let mut execd = Execd::with(&[], &[]);
        execd.leaves_processes_behind();
        let detached = detach(&mut execd);
        match way {
            "end of input" => execd.close_stdin(),
            "shutdown" => execd.send_line(r#"{"method":"shutdown"}"#),
            _ => execd.signal(libc::SIGTERM),
        }
        execd.rest();
        let code = if way == "signal" { 128 + libc::SIGTERM } else { 0 };
        assert_eq!(execd.exit_code(), Some(code), "{way}");
        eventually("its helpers have ended", || execd.marked().len() < 2);
        let left: Vec<i32> = execd.session_processes().iter().map(|one| one.pid).collect();
        assert_eq!(left, [detached], "{way}");
    }
}

/// rule: architecture.md, Ending a session: Shutdown ends what was left
#[test]
fn members_left_over_from_an_ended_session_are_ended_too() {
    for way in ["end of input", "shutdown", "signal"] {
        let mut execd = Execd::with(&[], &[]);
        let cmd = "sh -c 'echo $$ > left; exec sleep 300' >/dev/null 2>&1 & until [ -s left ]; do sleep 0.01; done";
        let reply = execd.ask("exec_command", json!({"cmd": cmd, "yield_time_ms": 30_000}));
        assert_eq!(reply["result"]["exit_code"], 0, "{reply}");
        let left = pid_in(&execd.file("left"));
        let list = execd.ask("list_sessions", json!({}));
        assert_eq!(list["result"]["left"][0]["pid"], left, "{list}");
        match way {
            "end of input" => execd.close_stdin(),
            "shutdown" => execd.send_line(r#"{"method":"shutdown"}"#),
            _ => execd.signal(libc::SIGTERM),
        }
        finish(execd, if way == "signal" { 128 + libc::SIGTERM } else { 0 });
        assert!(!is_there(left), "not even a zombie is left after {way}");
    }
}

/// rule: architecture.md, Ending a session: Shutdown ends what was left
#[test]
fn a_stubborn_member_left_over_is_killed_after_the_grace() {
    let mut execd = Execd::with(&[], &[]);
    let cmd = format!(
        "sh -c '{}' >/dev/null 2>&1 & until [ -s stubborn ]; do sleep 0.01; done",
        STUBBORN.replace('\'', "'\\''")
    );
    let reply = execd.ask("exec_command", json!({"cmd": cmd, "yield_time_ms": 30_000}));
    assert_eq!(reply["result"]["exit_code"], 0, "{reply}");
    let left = pid_in(&execd.file("stubborn"));
    let before = Instant::now();
    execd.close_stdin();
    finish(execd, 0);
    let took = before.elapsed();
    assert!(took >= GRACE && took < SOON, "{took:?}");
    assert!(!is_there(left));
}

/// rule: architecture.md, Ending a session: No zombie, ever
#[test]
fn whatever_the_end_no_process_and_no_zombie_is_left() {
    let cmd = "for name in a b c; do sh -c \"echo \\$\\$ > $name; exec sleep 300\" & done; \
               (sh -c 'echo $$ > d; exec sleep 300' &); echo $$ > e; wait";
    let names = ["a", "b", "c", "d", "e"];
    for way in ["end of input", "shutdown", "SIGTERM", "SIGKILL", "reader gone"] {
        let (child_in, mut input) = std::io::pipe().expect("a pipe");
        let (output, child_out) = std::io::pipe().expect("a pipe");
        let mut host = Setup::new(&[]).on(child_in, child_out);
        let request = json!({"method": "exec_command", "params": {"cmd": cmd}});
        input.write_all(format!("{request}\n").as_bytes()).expect("execd reads");
        let pids: Vec<i32> = names.iter().map(|name| pid_in(&host.file(name))).collect();
        let code = match way {
            "end of input" => {
                drop(input);
                Some(0)
            }
            "shutdown" => {
                input.write_all(b"{\"method\":\"shutdown\"}\n").expect("execd reads");
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
                drop(output);
                Some(1)
            }
        };
        assert_eq!(host.exit_code(), code, "{way}");
        for (name, pid) in names.iter().zip(pids) {
            // Who was killed can't reap: then it is up to whoever takes the orphans.
            if way == "SIGKILL" {
                eventually(&format!("{name} is gone after {way}"), || !is_there(pid));
            }
            assert!(!is_there(pid), "{name} is there after {way}");
        }
        eventually("the keeper is gone", || host.marked().is_empty());
    }
}

// ---- A reader that never reads ----------------------------------------------------------------

/// rule: architecture.md, Ending a session: The last flush to a reader that never reads takes 2 s
///   at most
#[test]
fn a_reader_that_never_reads_delays_the_end_by_two_seconds() {
    for way in ["end of input", "shutdown", "SIGTERM"] {
        let (child_in, mut input) = std::io::pipe().expect("a pipe");
        let (output, child_out) = std::io::pipe().expect("a pipe");
        let mut host = Setup::new(&[]).on(child_in, child_out);
        let request =
            json!({"method": "exec_command", "params": {"cmd": "touch run; exec sleep 300"}});
        input.write_all(format!("{request}\n").as_bytes()).expect("execd reads");
        eventually("it runs", || host.file("run").exists());
        let id = "i".repeat(4_000);
        for _ in 0..500 {
            let ping = format!("{{\"id\":\"{id}\",\"method\":\"ping\"}}\n");
            input.write_all(ping.as_bytes()).expect("execd reads");
        }
        host.until_idle(|| 0);
        let before = Instant::now();
        let code = match way {
            "end of input" => {
                drop(input);
                0
            }
            "shutdown" => {
                input.write_all(b"{\"id\":1,\"method\":\"shutdown\"}\n").expect("execd reads");
                0
            }
            _ => {
                host.signal(libc::SIGTERM);
                128 + libc::SIGTERM
            }
        };
        assert_eq!(host.exit_code(), Some(code), "{way}");
        let took = before.elapsed();
        assert!(took < SOON, "{way}: {took:?}");
        host.until_no_session_process();
        drop(output);
    }
}
