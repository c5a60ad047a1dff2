//! Bugs that were found and mended, one test each. Every test begins with its story.

use std::io::Write;
use std::process::{Child, ExitStatus, Stdio};

use crate::common::*;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Far more turns than anything here needs, far less than a loop without rest makes in the time.
const MANY_TURNS: u64 = 500;
/// CPU time that a command which only waits must not take, in clock ticks (100 a second).
const FEW_TICKS: u64 = 40;

fn turns(execd: &mut Execd) -> u64 {
    let info = execd.result("server_info", json!({}));
    info["counters"]["loop_turns"].as_u64().expect("a number")
}

/// Gives a shell that waits for a line its line, and sees its exit.
fn end_by_enter(execd: &mut Execd, session: u64) {
    let result = execd.write(json!({"session_id": session, "chars": "\n"}));
    if result.get("session_id").is_some() {
        execd.until_exit(session);
    }
}

/// The keeper, stopped until this is dropped.
fn stalled_keeper(execd: &mut Execd) -> data::Stopped {
    let pid = execd.keeper();
    let stopped = data::Stopped::new(pid);
    eventually("the keeper stands still", || process_state(pid) == Some('T'));
    stopped
}

fn execd_run(dir: &TempDir, arguments: &[&str], stdin: Stdio) -> Child {
    crate::common::execd_command()
        .arg("run")
        .args(arguments)
        .env("TMPDIR", dir.path())
        .env("XDG_RUNTIME_DIR", dir.path())
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("execd runs")
}

/// Where execd's directory had been deleted, `/` was told for it, and a relative workdir was one of
/// `/`: `rm -rf ./*` in `build` would have been in `/build`.
#[test]
fn a_relative_directory_of_a_deleted_one_is_not_found() {
    let leave = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" \"$@\"";
    let mut execd = Setup::behind(&["sh", "-c", leave], &[]).start();
    let deleted = format!("{} (deleted)", execd.file("gone").display());
    let failed = execd.run_with("true", json!({"workdir": "etc"}));
    let failure = failed["failure_message"].as_str().expect("a failure");
    assert!(failure.starts_with(&format!("workdir {deleted}/etc: ENOENT")), "{failure}");
    let ran = execd.run("true");
    assert_eq!((&ran["exit_code"], &ran["cwd"]), (&json!(0), &json!(deleted)));
}

fn ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?)
}

/// Waits for the end of `child`; gives its status and the most CPU time that was seen.
fn cpu_until_end(child: &mut Child) -> (ExitStatus, u64) {
    let mut most = 0;
    let mut status = None;
    eventually("it ends", || {
        most = most.max(ticks(child.id()).unwrap_or(0));
        status = child.try_wait().expect("a child of ours");
        status.is_some()
    });
    (status.expect("ended"), most)
}

/// `execd run` noted that stdin is readable, never read it (it is the command's own), and so
/// turned without rest: each run in CI, where stdin is a closed pipe, took a whole CPU.
#[test]
fn run_does_not_turn_without_rest_for_a_stdin_that_is_the_commands() {
    let dir = TempDir::new().expect("a directory");
    let mut child = execd_run(&dir, &["--", "sleep", "1.5"], Stdio::piped());
    drop(child.stdin.take());
    let (status, ticks) = cpu_until_end(&mut child);
    assert_eq!(status.code(), Some(0));
    assert!(ticks < FEW_TICKS, "{ticks} ticks");
}

/// The same with --tty when the command does not read what stdin brings.
#[test]
fn run_does_not_turn_without_rest_for_a_terminal_that_is_not_read() {
    let dir = TempDir::new().expect("a directory");
    let mut child = execd_run(&dir, &["--tty", "--", "sleep", "1.5"], Stdio::piped());
    let mut input = child.stdin.take().expect("stdin");
    let feeder = std::thread::spawn(move || {
        // Until the command ends and nobody takes any more.
        while input.write_all(&[b'x'; 4096]).is_ok() && input.write_all(b"\n").is_ok() {}
    });
    let (status, ticks) = cpu_until_end(&mut child);
    assert_eq!(status.code(), Some(0));
    assert!(ticks < FEW_TICKS, "{ticks} ticks");
    feeder.join().expect("joined");
}

/// A kill_session whose leader had gone while others were left had a deadline that was past,
/// and the loop turned without rest until the grace was over.
#[test]
fn a_kill_that_waits_for_members_turns_only_when_something_happens() {
    let mut execd = Execd::start();
    let cmd = "(trap '' TERM; echo up; while :; do sleep 0.5; done) & exec sleep 100";
    let session = execd.open_until(cmd, "up");
    let before = turns(&mut execd);
    let result = execd.kill(session);
    assert_eq!((&result["killed"], &result["escalated"]), (&json!(true), &json!(true)));
    let after = turns(&mut execd);
    assert!(after - before < MANY_TURNS, "{} turns", after - before);
}

/// With the log writer stalled and its queue full a session's output was never read to its
/// end, so kill_session never answered.
#[test]
fn a_kill_answers_although_the_log_writer_stands_still() {
    let mut execd = Execd::start();
    let session = execd.open_until("echo up; exec yes", "y\ny");
    let stalled = stalled_keeper(&mut execd);
    let mut last = 0;
    eventually("its output is held back", || {
        let info = execd.result("server_info", json!({}));
        let read = info["counters"]["bytes_read"].as_u64().expect("a number");
        std::mem::replace(&mut last, read) == read && read > 1_000_000
    });
    let before = turns(&mut execd);
    let params = json!({"session_id": session, "signal": "KILL"});
    let result = execd.result("kill_session", params);
    assert_eq!((&result["killed"], &result["log_complete"]), (&json!(true), &json!(false)));
    assert!(turns(&mut execd) - before < MANY_TURNS);
    drop(stalled);
}

/// An answer that had waited 250 ms for a slow disk to make the log did not name it: the log came,
/// and nobody could find it, because the session was forgotten with that answer.
/// rule: unified-exec.md, Logs: It exists when the first reply or notification that names it is
///   written, or is still to be made where a reply has waited 250 ms for it
#[test]
fn an_answer_names_the_log_that_a_slow_disk_has_not_made_yet() {
    let mut execd = Execd::start();
    // The first answer that names a log shows that its directory is known.
    eventually("the log directory is known", || execd.run("true").get("log_path").is_some());
    let stalled = stalled_keeper(&mut execd);
    let ended = execd.run("echo at once");
    let running = execd.open("echo in time; until [ -e go ]; do sleep 0.1; done");
    for result in [&ended, &running] {
        assert_eq!(result["log_complete"], false, "{result}");
        assert!(!log_path(result).exists(), "{result}");
    }
    drop(stalled);
    until_logged(&ended, "at once\n");
    until_logged(&running, "in time\n");
    go(&execd, "go");
    let over = execd.until_exit(session_of(&running));
    assert_eq!(log_path(&over), log_path(&running));
}

/// Members of sessions that were over were looked for once when execd began to end; those of
/// sessions that ended later, or of more than a few at once, ran on after a clean exit.
#[test]
fn members_of_many_ended_sessions_do_not_outlive_execd() {
    let mut execd = Execd::start();
    let cmd = "until [ -e go ]; do sleep 0.01; done; sleep 4721 >/dev/null 2>&1 </dev/null &";
    execd.open_all(&[cmd; 40]);
    // All of them end in one turn, and stdin with them.
    send_signal(execd.pid(), libc::SIGSTOP);
    std::fs::write(execd.file("go"), "").expect("written");
    eventually("the jobs run", || {
        execd.session_processes().iter().filter(|one| one.command.contains("4721")).count() >= 40
    });
    execd.close_stdin();
    send_signal(execd.pid(), libc::SIGCONT);
    assert_eq!(execd.wait_exit().code(), Some(0));
    execd.until_no_session_process();
}

/// Once execd was ending for another reason, no signal could hurry it: a reader that never
/// reads kept `execd run` for ever.
#[test]
fn a_signal_ends_a_run_whose_reader_never_reads() {
    let dir = TempDir::new().expect("a directory");
    let mut child = execd_run(&dir, &["--", "head", "-c", "400000", "/dev/zero"], Stdio::null());
    let pid = i32::try_from(child.id()).expect("a pid");
    eventually("the command has ended", || {
        let children = format!("/proc/{pid}/task/{pid}/children");
        // Only the log writer and the guard are left.
        std::fs::read_to_string(children).is_ok_and(|all| all.split_whitespace().count() == 2)
    });
    send_signal(pid, libc::SIGTERM);
    send_signal(pid, libc::SIGTERM);
    let (status, _) = cpu_until_end(&mut child);
    assert_eq!(status.code(), Some(128 + 15));
}

/// Waits on one exit waited for the stalled log one after the other, 250 ms each.
#[test]
fn several_waits_are_told_an_exit_together_although_the_log_stalls() {
    let mut execd = Execd::start();
    let session = execd.open_until("echo up; read x; echo more; exit 3", "up");
    // Until the line is sent the command waits for it: a wait may end for that, these are not to.
    let params = json!({
        "session_id": session, "yield_time_ms": 600_000, "on_impossible": "wait",
    });
    let polls: Vec<u64> =
        (0..8).map(|_| execd.start_request("write_stdin", params.clone())).collect();
    execd.ping();
    let stalled = stalled_keeper(&mut execd);
    let params = json!({"session_id": session, "chars": "\n"});
    let input = execd.start_request("write_stdin", params);
    execd.result_of(input);
    for poll in &polls {
        assert_eq!(execd.result_of(*poll)["exit_code"], 3);
    }
    let at = |id: u64| execd.arrival(|line| line["id"] == json!(id)).expect("arrived");
    let spread = at(polls[7]) - at(polls[0]);
    assert!(spread < std::time::Duration::from_millis(1_000), "{spread:?}");
    drop(stalled);
}

/// A poll with stream: true sent the old tail at once although nothing new had come.
#[test]
fn a_streaming_poll_sends_no_progress_for_output_that_was_told() {
    let mut execd = Execd::start();
    let session = execd.open_until("echo told; exec sleep 100", "told");
    let params = json!({"session_id": session, "stream": true, "yield_time_ms": 600_000});
    let poll = execd.start_request("write_stdin", params);
    execd.no_reply_yet(poll);
    assert_eq!(execd.notified("progress"), Vec::<Value>::new());
}

/// An orphan that had been seen while another session ended counted as known, so its own
/// session was not looked at, and --kill-detached missed it.
#[test]
fn kill_detached_finds_an_orphan_that_was_seen_before() {
    let mut execd = Execd::with(&["--kill-detached"], &[]);
    let cmd = "(setsid sleep 4722 >/dev/null 2>&1 </dev/null &); echo up; read x";
    let session = execd.open_until(cmd, "up");
    execd.run("true");
    end_by_enter(&mut execd, session);
    execd.close_stdin();
    assert_eq!(execd.wait_exit().code(), Some(0));
    execd.until_no_session_process();
}

/// Without a keeper the limit of file sizes killed execd (SIGXFSZ) instead of being trouble of
/// one log.
#[test]
fn a_limit_of_file_sizes_is_log_trouble() {
    let limited = ["bash", "-c", "ulimit -f 4; exec \"$0\" \"$@\""];
    let mut execd = Setup::behind(&limited, &["--no-keeper"]).start();
    let ended = execd.run("seq 1 5000");
    assert_eq!(ended["exit_code"], 0);
    let failure = ended["failure_message"].as_str().expect("a failure");
    assert!(failure.contains("EFBIG"), "{failure}");
}

/// The silence that --exit-after-silence counts went on after the end of stdin, when nothing
/// can come any more, and cut pending requests short.
#[test]
fn the_end_of_input_is_no_silence() {
    let mut execd = Execd::with(&["--exit-after-silence", "1"], &[]);
    let request = execd.start_request("exec_command", json!({"cmd": "sleep 2; echo done"}));
    execd.close_stdin();
    let result = execd.result_of(request);
    assert_eq!((&result["output"], &result["exit_code"]), (&json!("done\n"), &json!(0)));
    assert_eq!(execd.wait_exit().code(), Some(0));
}

/// A second kill_session for what an ended session left behind did not find it while the first
/// one was at work.
#[test]
fn two_kills_of_what_was_left_both_find_it() {
    let mut execd = Execd::start();
    let cmd = "(trap '' TERM; echo up >&2; exec >/dev/null 2>&1; while :; do sleep 0.2; done) \
               </dev/null & read x";
    let session = execd.open_until(cmd, "up");
    end_by_enter(&mut execd, session);
    let params = json!({"session_id": session});
    let kills = [0, 1].map(|_| execd.start_request("kill_session", params.clone()));
    for kill in kills {
        let result = execd.result_of(kill);
        assert_eq!((&result["found"], &result["killed"]), (&json!(true), &json!(true)));
    }
}

/// Waits that had been told the shutdown but waited for their log were judged again after the
/// end of their session, and answered that it had completed, by the very SIGTERM of the end.
#[test]
fn a_wait_that_the_shutdown_reached_says_so_although_its_log_stalls() {
    let mut execd = Execd::start();
    let keeper = stalled_keeper(&mut execd);
    let request = execd.start_request("exec_command", json!({"cmd": "sleep 100"}));
    execd.no_reply_yet(request);
    execd.signal(libc::SIGTERM);
    assert_eq!(execd.result_of(request)["wait_status"], "shutting_down");
    drop(keeper);
    assert_eq!(execd.wait_exit().code(), Some(128 + 15));
}
