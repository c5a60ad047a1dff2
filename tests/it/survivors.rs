//! What execd may not end: each of its signals is refused as for another user's process (strace
//! puts EPERM in the kernel's place). It is named, stays listed, and blocks nothing
//! (protocol.md, kill_session; architecture.md, Ending a session).

use crate::common::outside::{Trace, can_trace};
use crate::common::*;
use serde_json::json;
use std::time::{Duration, Instant};

/// From here on no signal of execd reaches anybody.
fn refuse_signals(execd: &Execd) -> Trace {
    let inject = "inject=pidfd_send_signal,kill,tgkill:error=EPERM";
    Trace::attach(execd.pid(), &["-e", "trace=pidfd_send_signal,kill,tgkill", "-e", inject])
}

/// rule: unified-exec.md, kill_session: What could not be ended is named in `survivors`, `killed:
///   false`, and stays listed
#[test]
fn what_could_not_be_ended_is_named_and_stays_listed_and_can_be_killed_later() {
    if !can_trace() {
        return;
    }
    let mut execd = Execd::start();
    let opened = execd.open("exec sleep 300");
    let (session, pid) = (session_of(&opened), pid_of(&opened));
    let trace = refuse_signals(&execd);
    let kill = execd.start_request("kill_session", json!({"session_id": session}));
    // Others are served while the kill waits: 2 s for the grace, 3 s for SIGKILL.
    let other = execd.run("echo other");
    assert_eq!(output(&other), "other\n");
    execd.no_reply_yet(kill);
    let result = execd.result_of(kill);
    assert_eq!((&result["found"], &result["killed"]), (&json!(true), &json!(false)), "{result}");
    let survivors = result["survivors"].as_array().expect("survivors");
    assert_eq!(survivors.len(), 1, "{result}");
    assert_eq!(survivors[0]["pid"], pid);
    assert_eq!(survivors[0]["command"], "sleep");
    let reason = survivors[0]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("EPERM"), "{reason}");
    assert_absent(&result, &["exit_code", "signal"]);
    let listed = execd.listed(session).expect("it stays listed");
    assert_eq!((&listed["running"], &listed["pid"]), (&json!(true), &json!(pid)));
    trace.detach();
    let result = execd.kill(session);
    assert_eq!((&result["killed"], &result["signal"]), (&json!(true), &json!("SIGTERM")));
    assert_eq!(execd.listed(session), None);
}

/// rule: architecture.md, Ending a session: What can't be killed (another user's process) never
///   blocks the end of execd
#[test]
fn what_cannot_be_ended_never_blocks_the_end_of_execd() {
    if !can_trace() {
        return;
    }
    let mut execd = Execd::start();
    // Neither the death of execd nor its hang-up ends this one: it stands for a stranger's.
    let cmd = "trap '' HUP TERM; setpriv --pdeathsig clear sleep 300 & wait";
    if missing("setpriv") {
        return;
    }
    let opened = execd.open(cmd);
    execd.leaves_processes_behind();
    let trace = refuse_signals(&execd);
    let shutdown = execd.start_request("shutdown", json!({}));
    let result = execd.result_of(shutdown);
    assert_eq!(result["ended"][0]["pid"], opened["pid"], "{result}");
    assert!(!result["survivors"].as_array().expect("survivors").is_empty(), "{result}");
    assert_eq!(execd.wait_exit().code(), Some(0));
    drop(trace);
}

/// Every opening of this file of this process lasts for a minute from here on.
fn hold_up(execd: &Execd, pid: i32, file: &str) -> Trace {
    let path = format!("/proc/{pid}/{file}");
    let inject = "inject=open,openat:delay_enter=60s";
    Trace::attach(execd.pid(), &["-f", "-P", &path, "-e", "trace=open,openat", "-e", inject])
}

/// The loop itself read the command line and the environment of processes, and stood still with
/// one that held the map of its memory (a read from a disk that hangs is enough).
/// rule: architecture.md, Ending a session: The memory of other processes is read by a process of
///   its own, with a deadline
#[test]
fn a_process_whose_memory_cannot_be_read_holds_up_nobody() {
    if !can_trace() {
        return;
    }
    let mut execd = Execd::start();
    execd.leaves_processes_behind();
    let opened = execd.open("setsid -f sleep 4715; exec sleep 301");
    let session = session_of(&opened);
    let mut pid = None;
    eventually("it has detached itself, and runs its program", || {
        let all = execd.session_processes();
        pid = all.iter().find(|one| one.command == "sleep 4715").map(|one| one.pid);
        pid.is_some()
    });
    let trace = hold_up(&execd, pid.expect("found above"), "cmdline");
    let begun = Instant::now();
    let detached = |execd: &mut Execd| {
        execd.listed(session).expect("listed")["detached"][0]["command"].clone()
    };
    assert_eq!(detached(&mut execd), "sleep");
    assert!(begun.elapsed() < Duration::from_secs(30), "it waited for the memory of another");
    trace.detach();
    execd.kill(session);
}

/// Starting 2,048 sessions on a busy machine had turns of 0.1 s: each start lasts until its child
/// runs its program, and a turn made four of them. Here strace makes each last for 0.2 s.
/// rule: architecture.md, Ending a session: A turn that has started one child slowly starts no
///   second one
#[test]
fn a_turn_that_has_started_one_child_slowly_starts_no_second_one() {
    if !can_trace() {
        return;
    }
    let mut execd = Execd::start();
    let clone = "clone,clone3";
    let inject = format!("inject={clone}:delay_exit=200ms");
    let trace = Trace::attach(execd.pid(), &["-e", &format!("trace={clone}"), "-e", &inject]);
    let params = json!({"cmd": "true"});
    let all: Vec<u64> =
        (0..5).map(|_| execd.start_request("exec_command", params.clone())).collect();
    for request in all {
        execd.result_of(request);
    }
    trace.detach();
    let info = execd.result("server_info", json!({}));
    let slowest_us = info["counters"]["slowest_turn_us"].as_u64().expect("a number");
    assert!((200_000..600_000).contains(&slowest_us), "{slowest_us}");
}
