//! What execd may not end: each of its signals is refused as for another user's process (strace
//! puts EPERM in the kernel's place). It is named, stays listed, and blocks nothing
//! (protocol.md, kill_session; architecture.md, Ending a session).
#![allow(clippy::disallowed_methods, clippy::print_stderr)] // Tests may use all of std.

mod common;
#[path = "common/outside.rs"]
mod outside;

use common::*;
use outside::{Trace, can_trace};
use serde_json::json;
use std::time::{Duration, Instant};

/// From here on no signal of execd reaches anybody.
fn refuse_signals(execd: &Execd) -> Trace {
    let inject = "inject=pidfd_send_signal,kill,tgkill:error=EPERM";
    Trace::attach(execd.pid(), &["-e", "trace=pidfd_send_signal,kill,tgkill", "-e", inject])
}

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

#[test]
fn an_end_of_input_with_something_that_cannot_be_ended_is_an_end_as_well() {
    if !can_trace() {
        return;
    }
    let mut execd = Execd::start();
    execd.open("trap '' HUP TERM; sleep 300 & wait");
    execd.leaves_processes_behind();
    let trace = refuse_signals(&execd);
    execd.close_stdin();
    assert_eq!(execd.wait_exit().code(), Some(0));
    drop(trace);
}

/// The loop itself read the command line and the environment of processes, and stood still with
/// one that held the map of its memory (a read from a disk that hangs is enough). Here strace makes
/// each opening of these two files of one process last for a minute.
#[test]
fn a_process_whose_memory_cannot_be_read_holds_up_nobody() {
    if !can_trace() {
        return;
    }
    let mut execd = Execd::start();
    execd.leaves_processes_behind();
    let opened = execd.open("setsid -f sleep 300 & exec sleep 301");
    let session = session_of(&opened);
    let detached = |execd: &mut Execd| execd.listed(session).expect("listed")["detached"].clone();
    eventually("it is detached, and by its own program", || {
        detached(&mut execd)[0]["command"] == "sleep 300"
    });
    let pid = detached(&mut execd)[0]["pid"].as_i64().expect("a pid");
    let path = |name: &str| format!("/proc/{pid}/{name}");
    let inject = "inject=open,openat:delay_enter=60s";
    let paths = [path("cmdline"), path("environ")];
    let trace = Trace::attach(
        execd.pid(),
        &["-f", "-P", &paths[0], "-P", &paths[1], "-e", "trace=open,openat", "-e", inject],
    );
    let begun = Instant::now();
    let told = detached(&mut execd);
    assert_eq!(told, json!([{"pid": pid, "command": "[sleep]"}]));
    // It is not asked again for a while.
    assert_eq!(detached(&mut execd), told);
    assert!(begun.elapsed() < Duration::from_secs(30), "it waited for the memory of {pid}");
    trace.detach();
    execd.kill(session);
}
