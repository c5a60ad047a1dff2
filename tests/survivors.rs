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
