//! Starts of commands that nobody waits for: an execd that is killed in any moment of many of them,
//! and what stands in their way meanwhile (architecture.md, Starting a child).

use std::thread;
use std::time::Duration;

use crate::common::data::Random;
use crate::common::{Execd, eventually, send_signal};
use serde_json::json;

const ROUNDS: u64 = 66;
const AT_ONCE: usize = 24;
/// The moment of the kill is one of so many microseconds after the first request.
const MOST_US: u64 = 40_000;

/// A leader with a child: neither may live longer than execd.
const COMMAND: &str = "sleep 300 & exec sleep 300";

/// rule: architecture.md, The keeper: The guard is told of each session before the session is
///   answered
/// rule: architecture.md, Starting a child: A child does not outlive a killed execd
///   (PR_SET_PDEATHSIG)
/// rule: architecture.md, Starting a child: After SIGKILL of execd in any moment of a start nothing
///   of it is left
#[test]
fn an_execd_that_is_killed_in_the_middle_of_starts_leaves_nothing() {
    let mut random = Random(0x5eed);
    for round in 0..ROUNDS {
        let mut execd = Execd::start();
        execd.ping();
        for at in 0..AT_ONCE {
            execd.start_request("exec_command", json!({"cmd": COMMAND, "tty": at % 4 == 0}));
        }
        let after_us = random.bits() % MOST_US;
        // Not to wait for anything: any moment is right.
        thread::sleep(Duration::from_micros(after_us));
        send_signal(execd.pid(), libc::SIGKILL);
        execd.wait_exit();
        eventually(&format!("round {round}, {after_us} us: nothing is left"), || {
            execd.marked().is_empty()
        });
    }
}

/// A call in the background is answered before its command ends, and was once answered before it
/// was known whether there is such a command.
/// rule: architecture.md, Starting a child: A failure between clone and exec is answered at once
///   with its reason
#[test]
fn a_start_that_fails_is_told_by_the_call_that_waits_for_nothing_else() {
    let mut execd = Execd::start();
    for _ in 0..20 {
        let params = json!({"command": "true", "background": true, "context": {"cwd": "/nowhere"}});
        let failed = execd.result("bash", params);
        let gone = "Working directory does not exist: /nowhere\nCannot execute bash commands.";
        assert_eq!(failed["text"], gone, "{failed}");
        assert_eq!(failed["exit_code"], -1, "{failed}");
    }
    let list = execd.peek();
    assert_eq!(list["sessions"], json!([]), "{list}");
    assert!(execd.notifications_so_far().is_empty(), "nobody is told of such sessions");
}

/// rule: architecture.md, Starting a child: A session that is being started is ended like any other
#[test]
fn a_command_that_is_ended_at_once_is_gone() {
    let mut execd = Execd::with(&["--first-session-id", "1000"], &[]);
    for round in 0..20 {
        let start = execd.start_request("exec_command", json!({"cmd": COMMAND}));
        execd.start_request("cancel", json!({"id": start}));
        let reply = execd.reply(start);
        let session = reply["result"]["session_id"].as_u64().unwrap_or_else(|| panic!("{reply}"));
        let killed = execd.result("kill_session", json!({"session_id": session}));
        assert_eq!(killed["killed"], true, "round {round}: {killed}");
        execd.until_no_session_process();
    }
}
