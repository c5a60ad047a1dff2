//! Nothing is polled: an idle execd makes no system call (architecture.md, A session).

use std::thread;
use std::time::Duration;

use crate::common::outside::{self, Trace, activity, can_trace};
use crate::common::wire::Wire;
use crate::common::{Execd, PATIENCE, eventually, merged, session_of};
use serde_json::json;

/// How long idle processes are watched: this is what is measured, not a hope.
const WATCHED: Duration = Duration::from_secs(5);
/// Twice the same counters, this long apart: what was left to do has been done. Longer than
/// the one stale timer that execd leaves to fire (limits.rs, STALE_TIMER_MS).
const QUIET: Duration = Duration::from_millis(400);

fn until_quiet(pids: &[i32]) {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let before: Vec<_> = pids.iter().map(|pid| activity(*pid)).collect();
        thread::sleep(QUIET);
        let after: Vec<_> = pids.iter().map(|pid| activity(*pid)).collect();
        if before == after {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "never quiet: {before:?} {after:?}");
    }
}

/// Watches execd and its keeper for a while: by their counters, and by strace where possible.
fn makes_no_call(execd: &mut Execd) {
    let pids = [execd.pid(), execd.keeper()];
    // Attaching interrupts the wait that is going on: one turn, and then it is made anew.
    let traces: Vec<Trace> = if can_trace() {
        pids.iter().map(|pid| Trace::attach(*pid, &[])).collect()
    } else {
        Vec::new()
    };
    until_quiet(&pids);
    let calls = || -> Vec<String> { traces.iter().map(Trace::so_far).collect() };
    let counters = || -> Vec<_> { pids.iter().map(|pid| activity(*pid)).collect() };
    let before = (calls(), counters());
    thread::sleep(WATCHED);
    let after = (calls(), counters());
    assert_eq!(before.0, after.0, "no call began or ended while nothing happened");
    assert_eq!(before.1, after.1, "(reads, writes, sleeps) of execd and its keeper");
}

/// rule: architecture.md, A session: No periodic timer, nothing is polled
/// rule: bash.md, bash and tmux: Timers live in the one deadline queue: nothing wakes for what is
///   not due
/// rule: attach.md, Several clients: A connected client that says nothing costs no system call
#[test]
fn what_is_left_over_from_work_and_what_is_not_due_cost_no_call() {
    let mut execd = Execd::start();
    // Members that outlive their session, a stopped leader, a holder of output, a terminal
    // whose leader has closed it, input that nobody reads.
    execd.run("sleep 300 >/dev/null 2>&1 &");
    let stopped = execd.open("exec sleep 300");
    outside::stop(crate::common::pid_of(&stopped));
    let held = execd.open("sleep 300 & exit 0");
    assert!(held["note"].is_string(), "{held}");
    execd.open_with("exec sleep 300 </dev/null >/dev/null 2>&1", json!({"tty": true}));
    let deaf = session_of(&execd.open("exec sleep 300"));
    execd.write(json!({"session_id": deaf, "chars": "x".repeat(100_000)}));
    execd.peek();
    eventually("the members are settled", || execd.session_processes().len() == 5);
    // A client that is attached, windows and their polls, a wait of bash.
    let mut client = Wire::connect(&execd.socket());
    client.result("attach_session", json!({"session_id": deaf}));
    let windows = ["sleep 300", "sleep 300 & exit 3", "exec cat"].map(|command| {
        let keep = json!({"autoCloseWindowsOnCompletion": false});
        let params = json!({"command": command, "background": true, "pollInterval": 3600,
            "context": keep});
        execd.result("bash", params)["window"].clone()
    });
    for window in &windows[1..] {
        execd.notification("window_exited", |note| note["window"] == *window);
    }
    let params = json!({"command": "sleep 300", "stream": true, "timeout": 60,
        "onImpossible": "wait"});
    execd.start_request("bash", params);
    client.result("ping", json!({}));
    makes_no_call(&mut execd);
    outside::go_on(crate::common::pid_of(&stopped));
}

/// rule: protocol.md, Framing: Many requests may wait at once
/// rule: architecture.md, A session: An idle execd with 64 sleeping sessions and pending waits
///   makes zero syscalls
/// rule: waits.md, What it costs: A wait on an exit, text, a regex or a count makes no system call
///   while nothing comes, after the first looks
#[test]
fn sixty_four_sessions_and_sixty_four_waits_cost_no_call() {
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    // Half on terminals, a program in each that has printed and now waits for input.
    let starts = [false, true].map(|tty| {
        let params = json!({"cmd": "echo up; exec cat", "tty": tty, "yield_time_ms": 250});
        [(); 32].map(|()| execd.start_request("exec_command", &params))
    });
    let sessions = starts.concat().into_iter().map(|start| session_of(&execd.result_of(start)));
    let sessions: Vec<u64> = sessions.collect();
    // What is told by what comes: a wait for it looks at nothing while nothing comes.
    let conditions = [
        json!({}),
        json!({"until": {"text": "never"}, "stream": true}),
        json!({"until": {"regex": "nev(er)?$"}, "stop": {"regex": "(?i)error"}}),
        json!({"until": {"text": ["never", "no"], "count": 3}}),
        json!({"until": {"tree_exit": true}}),
    ];
    // Waits of different lengths, all longer than the test: relative ones and absolute ones.
    let mut waits = Vec::new();
    for (condition, session) in conditions.iter().cycle().zip(sessions) {
        let params = if session % 8 == 0 {
            json!({"session_id": session, "yield_until": "2099-01-01T00:00:00Z"})
        } else {
            let params = json!({"session_id": session, "yield_time_ms": 600_000 + session * 10});
            merged(params, condition.clone())
        };
        waits.push(execd.start_request("write_stdin", params));
    }
    execd.ping();
    let info = execd.result("server_info", json!({}));
    assert_eq!((&info["sessions"]["live"], &info["pending_requests"]), (&json!(64), &json!(64)));
    makes_no_call(&mut execd);
    for wait in waits {
        execd.no_reply_yet(wait);
    }
}
