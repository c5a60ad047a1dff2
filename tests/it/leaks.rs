//! Thousands of commands later, execd is as it was: descriptors, threads, memory, tables
//! (architecture.md, Bounds).

use crate::common::outside::{self, children, countable_fds, zombies};
use crate::common::{Execd, LONG_AGO, eventually, session_of};
use serde_json::{Value, json};

/// Memory that the allocator may keep more than after the warm-up.
const SLACK_KIB: u64 = 2 * 1024;

/// Commands sent at once; below the cap of sessions, so that none has to wait for an eviction.
const BATCH: u64 = 50;

fn run_many(execd: &mut Execd, count: u64, params: impl Fn(u64) -> Value) {
    for first in (0..count).step_by(usize::try_from(BATCH).expect("small")) {
        let batch = first..count.min(first + BATCH);
        let start = |at| execd.start_request("exec_command", params(at));
        let requests: Vec<u64> = batch.map(start).collect();
        for request in requests {
            let result = execd.result_of(request);
            assert_eq!(result["exit_code"], 0, "{result}");
        }
    }
}

fn nothing_is_left(execd: &mut Execd, commands: u64) {
    let info = execd.result("server_info", json!({}));
    assert_eq!(info["sessions"], json!({"live": 0, "finished": 0}));
    assert_eq!(info["pending_requests"], 0);
    assert_eq!(
        (&info["counters"]["spawns"], &info["counters"]["exits"]),
        (&json!(commands), &json!(commands))
    );
    let list = execd.peek();
    assert_eq!(list["sessions"], json!([]));
    assert!(list.get("left").is_none());
    eventually("no zombie is left", || zombies(execd.pid()).is_empty());
    assert_eq!(children(execd.pid()).len(), 1, "only the keeper");
    assert_eq!(execd.threads(), 1);
}

/// rule: architecture.md, Bounds: Much output and many commands leave no memory, descriptor or
///   process behind
#[test]
fn thousands_of_commands_leave_nothing_behind() {
    let mut execd = Execd::with(&["--log-keep-days", "0"], &[]);
    // One in twenty on a terminal; /bin/true, not the shell's, would only measure the shell.
    let params = |at: u64| json!({"cmd": "true", "shell": "sh", "tty": at.is_multiple_of(20)});
    run_many(&mut execd, 500, params);
    let keeper = execd.keeper();
    eventually("the warm-up is over", || zombies(execd.pid()).is_empty());
    let (fds, keeper_fds) = (countable_fds(execd.pid()), outside::fds(keeper).len());
    let keeper_kib = || outside::status_number(keeper, "VmRSS");
    let (rss, keeper_rss) = (execd.rss_kib(), keeper_kib());
    run_many(&mut execd, 4_500, params);
    nothing_is_left(&mut execd, 5_000);
    eventually("descriptors are given back", || countable_fds(execd.pid()) == fds);
    eventually("the keeper has closed its logs", || outside::fds(keeper).len() <= keeper_fds);
    let (now, keeper_now) = (execd.rss_kib(), keeper_kib());
    assert!(now <= rss + SLACK_KIB, "{rss} KiB after the warm-up, {now} KiB now");
    assert!(keeper_now <= keeper_rss + SLACK_KIB, "the keeper: {keeper_rss}, then {keeper_now}");
}

/// rule: architecture.md, Bounds: Much output and many commands leave no memory, descriptor or
///   process behind
#[test]
fn sessions_that_were_listed_polled_killed_and_evicted_leave_nothing_behind() {
    let mut execd = Execd::with(&["--max-sessions", "8"], &[]);
    let keeper = execd.keeper();
    let mut commands = 0;
    let mut round = |execd: &mut Execd, tty: bool| {
        // Twelve on eight places: four are evicted as soon as nobody waits for them.
        let sessions = [(); 12].map(|()| {
            let opened = execd.open_now(&json!({"cmd": "exec cat", "tty": tty}));
            session_of(&opened)
        });
        for session in sessions {
            // Evicted meanwhile, or not: both are answers.
            execd.request("write_stdin", json!({"session_id": session, "yield_until": LONG_AGO}));
            execd.kill(session);
        }
        commands += 12;
        eventually("all have ended", || execd.session_processes().is_empty());
    };
    for tty in [false, true, false, true] {
        round(&mut execd, tty);
    }
    eventually("all are reaped", || children(execd.pid()).len() == 1);
    execd.ping();
    let (fds, rss) = (countable_fds(execd.pid()), execd.rss_kib());
    for at in 0..20 {
        round(&mut execd, at % 2 == 0);
    }
    eventually("all are reaped", || children(execd.pid()).len() == 1);
    eventually("descriptors are given back", || countable_fds(execd.pid()) == fds);
    nothing_is_left(&mut execd, commands);
    let now = execd.rss_kib();
    assert!(now <= rss + SLACK_KIB, "{rss} KiB after the warm-up, {now} KiB now");
    eventually("the keeper has no log open", || {
        !outside::fds(keeper).values().any(|target| target.ends_with(".log"))
    });
}
