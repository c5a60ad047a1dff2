//! Ends of sessions that go wrong only rarely: their numbers are somebody else's by then, two
//! signals meet, many end at once.

use std::fmt::Write as _;

use crate::common::outside::{self, OWN_PIDS, Trace, may_choose_pids};
use crate::common::*;
use crate::stream_help::{begin, next_chunk};
use serde_json::json;

/// As the first process of a pid namespace: whoever writes a number into `wanted` gets a stranger
/// with that pid, which is also its session's id. Says at last whether the stranger lives. The pipe
/// is open for both directions, so that a writer that closes late is no end of the numbers.
const STRANGERS: &str = r#"
    mkfifo wanted
    while read -r pid; do
        made=0
        while test "$made" != "$pid"; do
            echo $((pid - 1)) > /proc/sys/kernel/ns_last_pid
            setsid sleep 300 & made=$!
            test "$made" = "$pid" || kill -9 "$made"
        done
        echo "$made" > stranger
    done 0<>wanted &
    "$@"
    kill -0 "$(cat stranger)" && echo lives > after
    exit 0
"#;

/// Output read in one turn, and the one piece that may go beyond.
const TURN_BYTES: u64 = (512 + 64) * 1024;

/// A session that has ended and stays listed, whose number a stranger has got meanwhile.
fn ended_with_its_number_given_out(execd: &mut Execd) -> (u64, i32) {
    let opened = execd.open_now(&json!({"cmd": "exec sleep 0.2"}));
    let (session, pid) = (session_of(&opened), pid_of(&opened));
    execd.until_listed_exited(session);
    let stranger = execd.file("stranger");
    let _ = std::fs::remove_file(&stranger);
    std::fs::write(execd.file("wanted"), format!("{pid}\n")).expect("it is read");
    eventually("the stranger has the number", || {
        std::fs::read_to_string(&stranger).is_ok_and(|made| made.trim() == pid.to_string())
    });
    (session, pid)
}

fn assert_lives(execd: &mut Execd, pid: i32) {
    let asked = execd.run(&format!("kill -0 {pid} && echo lives"));
    assert_eq!(asked["output"], "lives\n", "the stranger was killed: {asked}");
}

/// A finished session stays listed until somebody hears of its end. Its members were found by its
/// leader's pid, also when that was somebody else's by then: kill_session, eviction and shutdown
/// killed whoever had the number.
/// rule: architecture.md, Ending a session: A signal never reaches a stranger, also one with the
///   number of a session that has ended
#[test]
fn whoever_gets_the_number_of_an_ended_session_is_left_alone() {
    if !may_choose_pids() {
        return;
    }
    let wrapper: Vec<&str> = OWN_PIDS.into_iter().chain(["sh", "-c", STRANGERS, "sh"]).collect();
    let mut execd = Setup::behind(&wrapper, &["--max-sessions", "2"]).unwatched().start();

    let (session, pid) = ended_with_its_number_given_out(&mut execd);
    let killed = execd.kill(session);
    assert_eq!(killed["killed"], true, "{killed}");
    let summary = killed["summary"].as_str().expect("a summary");
    assert!(summary.contains("had already exited"), "{summary}");
    assert_lives(&mut execd, pid);

    let (session, pid) = ended_with_its_number_given_out(&mut execd);
    for _ in 0..2 {
        execd.open_now(&json!({"cmd": "exec sleep 300"}));
    }
    assert_eq!(execd.listed(session), None, "it was evicted");
    assert_lives(&mut execd, pid);
    execd.close_stdin();
    assert!(execd.wait_exit().success());
    let after = std::fs::read_to_string(execd.file("after"));
    assert_eq!(after.ok().as_deref(), Some("lives\n"), "the end of execd killed the stranger");
}

/// In one judgement the timeout of a job sent SIGKILL where SIGTERM was pending from a
/// kill_session. What was due at once counted as a deadline in the past, and debug builds aborted.
/// rule: architecture.md, Ending a session: SIGKILL that overtakes a pending signal is sent at once
#[test]
fn sigkill_that_overtakes_a_pending_sigterm_is_sent_at_once() {
    let mut execd = Execd::start();
    let command = "trap '' TERM; echo up; while :; do sleep 0.02; done";
    // On a machine that is very slow the time may be over before the kill comes.
    for _ in 0..10 {
        let (job, session) = begin(&mut execd, command, json!({"timeoutMs": 1_500}));
        next_chunk(&mut execd, job);
        let kill = execd.start_request("kill_session", json!({"session_id": session}));
        assert_eq!(execd.result_of(job)["signal"], "SIGKILL");
        let told = execd.result_of(kill);
        if told["found"] == true {
            assert_eq!((&told["killed"], &told["signal"]), (&json!(true), &json!("SIGKILL")));
            return;
        }
    }
    panic!("no kill_session came before the timeout of its job");
}

/// Of leaders that ended at once and left a writer behind (`yes &`) up to 1 MiB each was read in
/// the same turn, and nobody else was heard meanwhile.
/// rule: architecture.md, Ending a session: What lies in the pipe at the reaping is read within the
///   bound of a turn, however many leaders end at once
#[test]
fn the_output_of_many_ended_leaders_is_read_within_the_bound_of_a_turn() {
    let mut execd = Execd::with(&["--no-log"], &[]);
    let command = "trap 'head -c 600000 /dev/zero & exit 0' USR1; sleep 300 & wait";
    let sessions = execd.open_all(&[command; 12]);
    let counters = |execd: &mut Execd| {
        let info = execd.result("server_info", json!({}));
        let of = |name: &str| info["counters"][name].as_u64().expect("a number");
        (of("bytes_read"), of("loop_turns"))
    };
    let rows = execd.peek()["sessions"].as_array().expect("an array").clone();
    let (bytes, turns) = counters(&mut execd);
    outside::stop(execd.pid());
    for row in &rows {
        send_signal(pid_of(row), libc::SIGUSR1);
    }
    eventually("all have ended", || outside::zombies(execd.pid()).len() == rows.len());
    outside::go_on(execd.pid());
    let held = |execd: &mut Execd| {
        let rows = execd.peek()["sessions"].as_array().expect("an array").clone();
        rows.iter().filter(|row| row["shell_exited"] == true).count()
    };
    eventually("all ends are known", || held(&mut execd) == sessions.len());
    let (bytes_then, turns_then) = counters(&mut execd);
    let (bytes, turns) = (bytes_then - bytes, turns_then - turns);
    assert!(bytes <= turns * TURN_BYTES, "{bytes} bytes in {turns} turns");
}

/// How often execd has read the list of all processes.
fn looks_at_all(trace: &str) -> usize {
    trace.lines().filter(|line| line.contains("\"/proc\"")).count()
}

/// Each of many sessions that ended together looked at all processes for itself, twice or more:
/// 2,048 of them took 17 s, most of it in one turn. What outlived its session was looked for once
/// more for each orphan that was reaped.
/// rule: architecture.md, Ending a session: Ends share their looks at all processes
#[test]
fn many_ends_share_their_looks_at_all_processes() {
    if !outside::can_trace() {
        return;
    }
    let mut execd = Execd::start();
    // Somebody is left of a session that has ended.
    execd.run("sleep 300 >/dev/null 2>&1 &");
    let sessions = execd.open_all(&["exec sleep 300"; 32]);
    let trace = Trace::attach(execd.pid(), &["-e", "trace=openat"]);
    let orphans = execd.run("for i in 1 2 3 4 5 6 7 8 9 10; do (sleep 0 & true); done; echo done");
    assert!(output(&orphans).contains("done"), "{orphans}");
    eventually("the orphans are reaped", || outside::children(execd.pid()).len() < 36);
    assert_eq!(looks_at_all(&trace.so_far()), 0, "{}", trace.so_far());
    let mut requests = String::new();
    for session in &sessions {
        let params = json!({"session_id": session});
        let request = json!({"id": session, "method": "kill_session", "params": params});
        let _ = writeln!(requests, "{request}");
    }
    execd.send_raw(requests.as_bytes());
    for session in &sessions {
        assert_eq!(execd.result_of(*session)["killed"], true);
    }
    let looks = looks_at_all(&trace.detach());
    assert!((1..=sessions.len() / 3).contains(&looks), "{looks} looks");
    assert_eq!(execd.kill(1)["killed"], true, "what was left is found by its old id");
}
