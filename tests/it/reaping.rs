//! Reaping: no zombie, ever, whoever it was and however it came (architecture.md, Ending a session
//! ends).

use crate::common::outside::{children, go_on, stop, zombies};
use crate::common::{Execd, Setup, eventually, output, pid_of, send_signal};
use serde_json::{Value, json};

fn turns(execd: &mut Execd) -> u64 {
    let info = execd.result("server_info", json!({}));
    info["counters"]["loop_turns"].as_u64().expect("a number")
}

fn until_only_the_keeper_is_left(execd: &mut Execd) {
    let (pid, keeper) = (execd.pid(), execd.keeper());
    eventually("only the keeper is left", || {
        let left = children(pid);
        left.len() == 1 && left[0].0 == keeper
    });
}

/// rule: architecture.md, Ending a session: execd is a child subreaper: orphans come to it and are
///   reaped
#[test]
fn double_forked_orphans_are_reaped() {
    let mut execd = Execd::start();
    // Some end before their session, some after, some in a session of their own, some while
    // nothing else happens.
    let many = "for i in 1 2 3 4 5 6 7 8 9 10; do
        (sleep 0.0$i >/dev/null 2>&1 &)
        (sleep 0.2 >/dev/null 2>&1 &)
        (setsid sleep 0.3 >/dev/null 2>&1 &)
        (true &)
    done; echo started";
    for tty in [false, true] {
        let result = execd.run_with(many, json!({"tty": tty}));
        assert!(output(&result).contains("started"), "{result}");
    }
    until_only_the_keeper_is_left(&mut execd);
    let list = execd.peek();
    assert!(list.get("left").is_none(), "{list}");
}

/// rule: architecture.md, Ending a session: Strangers are reaped by their pid
/// rule: architecture.md, Ending a session: A stopped and continued leader has not ended
#[test]
fn strangers_that_execd_was_born_with_are_reaped_and_are_no_sessions() {
    let script = "sleep 0.05 & sh -c 'exit 9' & sleep 300 & echo $! > stranger; exec \"$@\"";
    let mut execd = Setup::behind(&["sh", "-c", script, "sh"], &[]).unwatched().start();
    assert_eq!(execd.result("exec_command", json!({"cmd": "exit 3"}))["exit_code"], 3);
    let stranger: i32 = std::fs::read_to_string(execd.file("stranger"))
        .expect("the script wrote it")
        .trim()
        .parse()
        .expect("a pid");
    for _ in 0..3 {
        stop(stranger);
        go_on(stranger);
    }
    send_signal(stranger, libc::SIGKILL);
    let keeper = execd.keeper();
    eventually("all are reaped", || children(execd.pid()).iter().all(|(pid, _)| *pid == keeper));
    let list = execd.result("list_sessions", json!({}));
    assert_eq!(list["sessions"], json!([]));
    let before = turns(&mut execd);
    assert!(turns(&mut execd) <= before + 4, "its end is looked at once, not for ever");
}

/// rule: architecture.md, Ending a session: A stopped and continued leader has not ended
#[test]
fn a_leader_that_is_stopped_and_continued_has_not_ended() {
    let mut execd = Execd::with(&[], &[("EXECD_LOG", "debug")]);
    for tty in [false, true] {
        let more = json!({"tty": tty, "shell": "sh"});
        let session = execd.open_until_with("echo up; read x; echo got $x", "up", more);
        let pid = pid_of(&execd.listed(session).expect("it runs"));
        for round in 1..=3 {
            stop(pid);
            let stopped = format!("session {session}: leader Stopped");
            let told = |execd: &Execd, line: &str| execd.stderr().matches(line).count();
            eventually("execd knows", || told(&execd, &stopped) >= round);
            let before = turns(&mut execd);
            // One request is one turn; a stop that is never taken off would be one after another.
            assert!(turns(&mut execd) <= before + 4, "a leader that stands costs no turns");
            let entry = execd.listed(session).expect("it is no end");
            assert_eq!(entry["running"], true);
            assert!(zombies(execd.pid()).is_empty());
            go_on(pid);
            let continued = format!("session {session}: leader Continued");
            eventually("execd knows", || told(&execd, &continued) >= round);
        }
        let result =
            execd.write(json!({"session_id": session, "chars": "it\\n", "yield_time_ms": 30_000}));
        assert!(output(&result).contains("got it"), "{result}");
        assert_eq!(result["exit_code"], 0);
    }
}

/// rule: architecture.md, Ending a session: SIGCHLD coalesces: each wake looks until nothing is
///   left
#[test]
fn fifty_ends_in_one_burst_are_all_told() {
    let mut execd = Execd::start();
    let cmds = vec!["exec sleep 300"; 50];
    let sessions = execd.open_all(&cmds);
    let list = execd.peek();
    let entries = list["sessions"].as_array().expect("an array");
    let leaders: Vec<i32> = entries.iter().map(pid_of).collect();
    assert_eq!(leaders.len(), 50);
    let wait = |execd: &mut Execd, session: &u64| {
        let params = json!({"session_id": session, "yield_time_ms": 60_000});
        execd.start_request("write_stdin", params)
    };
    let requests: Vec<u64> = sessions.iter().map(|session| wait(&mut execd, session)).collect();
    execd.ping();
    // All end while execd stands still: one SIGCHLD is all that the kernel keeps of them.
    stop(execd.pid());
    for leader in &leaders {
        send_signal(*leader, libc::SIGKILL);
    }
    eventually("all are zombies", || zombies(execd.pid()).len() == 50);
    go_on(execd.pid());
    for request in requests {
        let result = execd.result_of(request);
        assert_eq!(result["signal"], "SIGKILL", "{result}");
        let note = result["note"].as_str().expect("execd did not kill it");
        assert!(note.contains("SIGKILL that execd did not send"), "{note}");
    }
    eventually("no zombie is left", || zombies(execd.pid()).is_empty());
    let list: Value = execd.peek();
    assert_eq!(list["sessions"], json!([]));
}
