//! execd where something that it likes to have is refused: it goes on without, and says so once;
//! and what goes wrong under way is told, never passed over in silence.

use std::fs::{File, OpenOptions};
use std::process::Stdio;

use crate::common::outside::{Trace, can_trace, limit_files, zombies};
use crate::common::{Execd, Setup, eventually};
use serde_json::{Value, json};

/// An execd that has started, and its system calls of this kind, of which some fail.
fn failing(call: &str, inject: &str) -> Option<(Execd, Trace)> {
    if !can_trace() {
        return None;
    }
    let mut execd = Setup::new(&[]).unwatched().start();
    execd.result("ping", json!({}));
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:{inject}"));
    let trace = Trace::attach(execd.pid(), &["-e", &trace, "-e", &inject]);
    Some((execd, trace))
}

/// Each of these texts stands in server_info, and on stderr in one line of its own.
fn says(execd: &mut Execd, begins: &[&str]) {
    let info = execd.result("server_info", json!({}));
    let degraded: Vec<Value> = info["degraded"].as_array().cloned().unwrap_or_default();
    assert_eq!(degraded.len(), begins.len(), "{info}");
    for (text, begin) in degraded.iter().zip(begins) {
        let text = text.as_str().expect("a text");
        assert!(text.starts_with(begin), "{text}");
        let lines = |said: &str| said.lines().filter(|line| line.ends_with(text)).count();
        eventually("it is said once", || lines(&execd.stderr()) == 1);
    }
}

/// qemu-user knows no child subreaper: execd refused to start there.
/// rule: architecture.md, Starting a child: What is refused at start and sessions can do without is
///   named once, not a reason to refuse
#[test]
fn a_kernel_without_subreapers_runs_commands_and_is_named() {
    if !can_trace() {
        return;
    }
    let calls = ["-e", "trace=prctl", "-e", "inject=prctl:error=EINVAL"];
    let wrapper = [&["strace", "-D", "-o", "/dev/null"], &calls[..]].concat();
    let mut execd = Setup::behind(&wrapper, &[]).unwatched().start();
    let one = execd.result("exec_command", json!({"cmd": "echo one"}));
    assert_eq!(one["output"], "one\n");
    says(&mut execd, &["child subreaper: EINVAL: Invalid argument; "]);
}

/// rule: architecture.md, Bounds: Too low a limit of open files for `--max-sessions` is told at
///   start, with how many sessions fit
/// With 256 descriptors `execd run`, which needs one session, refused to start.
/// rule: architecture.md, Starting a child: What is refused at start and sessions can do without is
///   named once, not a reason to refuse
#[test]
fn a_low_limit_of_open_files_leaves_room_for_fewer_sessions() {
    let mut execd =
        Setup::new(&["--max-sessions", "64"]).prepared(limit_files(100)).unwatched().start();
    let info = execd.result("server_info", json!({}));
    assert_eq!(info["limits"]["max_sessions"], 13, "{info}");
    says(&mut execd, &["open files: the hard limit is 100, so there is room for 13 in"]);
    // As many as it names do fit.
    execd.open_all(&["exec sleep 1000"; 13]);
    assert_eq!(execd.result("exec_command", json!({"cmd": "echo more"}))["output"], "more\n");
    let mut one = Setup::new(&[]).prepared(limit_files(30)).unwatched().start();
    let ran = one.result("exec_command", json!({"cmd": "echo one"}));
    assert_eq!(ran["output"], "one\n");
    says(&mut one, &["open files: the hard limit is 30, so there is room for 1 in"]);
    let mut run = Setup::new(&["run", "--json", "echo", "ran"])
        .prepared(limit_files(256))
        .unwatched()
        .start();
    assert!(run.wait_exit().success());
    assert!(!run.whole_stderr().contains("open files"), "one session there is: {}", run.stderr());
}

/// A read that failed was taken for the end of the output: exit code 0, and nothing was said.
/// rule: architecture.md, Ending a session: An errno of a read is no end of output
#[test]
fn output_that_cannot_be_read_is_told() {
    let Some((mut execd, trace)) = failing("read", "error=ENOMEM") else { return };
    let reply = execd.result("exec_command", json!({"cmd": "echo lost"}));
    let why = reply["failure_message"].as_str().unwrap_or_default();
    assert!(why.contains("output could not be read (ENOMEM: "), "{reply}");
    trace.detach();
}

/// Three failures of waitid in a row left a request unanswered: each end is told once.
/// rule: architecture.md, Ending a session: A failed waitid loses no end: it is asked for again,
///   and a reply says where it can't be learnt
#[test]
fn an_end_that_cannot_be_taken_is_asked_for_again() {
    for (inject, code) in [("error=ENOMEM:when=1..6", 3), ("error=ENOMEM", -1)] {
        let Some((mut execd, trace)) = failing("waitid", inject) else { return };
        let reply = execd.result("exec_command", json!({"cmd": "exit 3"}));
        assert_eq!(reply["exit_code"], code, "{reply}");
        let why = reply["failure_message"].as_str().unwrap_or_default();
        let told = why.contains("how the command ended could not be learnt (ENOMEM: ");
        assert_eq!(told, code < 0, "{reply}");
        trace.detach();
    }
}

/// A leader whose end could not be learnt was taken for a stranger that had got its number, and
/// what it had left behind ran on when its session was killed.
/// rule: architecture.md, Ending a session: Whose end can't be learnt has its number until it is
///   reaped: members are ended before and after
#[test]
fn members_of_a_leader_that_cannot_be_reaped_are_ended() {
    let Some((mut execd, trace)) = failing("waitid", "error=ENOMEM") else { return };
    let params = json!({"cmd": "sleep 300 >/dev/null 2>&1 & exit 3"});
    let requests = [(); 2].map(|()| execd.start_request("exec_command", &params));
    for request in requests {
        let reply = execd.reply_if_any(request).expect("a reply");
        assert_eq!(reply["result"]["exit_code"], -1, "{reply}");
    }
    assert_eq!(execd.marked().len(), 2);
    let killed = execd.result("kill_session", json!({"session_id": 1}));
    assert_eq!(killed["killed"], true, "{killed}");
    assert_eq!(execd.marked().len(), 1, "killed while its leader is a zombie");
    trace.detach();
    eventually("the leaders are reaped", || zombies(execd.pid()).is_empty());
    let killed = execd.result("kill_session", json!({"session_id": 2}));
    assert_eq!(killed["killed"], true, "{killed}");
    assert_eq!(execd.marked(), [0_i32; 0], "killed after its leader was reaped");
}

/// Where a session had more processes than execd had descriptors, those that were opened were sent
/// nothing and kept their descriptors: after 5 s most still lived.
/// rule: architecture.md, Ending a session: A session with more processes than execd has
///   descriptors is ended
#[test]
fn a_session_with_more_processes_than_descriptors_is_ended() {
    let mut execd = Setup::new(&[]).prepared(limit_files(100)).unwatched().start();
    let cmd = "for i in $(seq 200); do sleep 300 & done; echo up; wait";
    let session = execd.open_now(&json!({"cmd": cmd}))["session_id"].clone();
    eventually("all are there", || execd.marked().len() == 201);
    let killed = execd.result("kill_session", json!({"session_id": session}));
    assert_eq!(killed["killed"], true, "{killed}");
    assert_eq!(killed["signal"], "SIGTERM", "nobody had to be killed: {killed}");
    assert_eq!(execd.marked(), [0_i32; 0]);
}

/// `execd < /tmp` ended with success and said nothing, and so did a full stdout with status 1.
/// rule: architecture.md, Ending a session: A stdin that cannot be read and a stdout that is full
///   are said on stderr
#[test]
fn a_stdin_that_is_no_file_and_a_stdout_that_is_full_are_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let ends = |stdin: File, stdout: Stdio, said: &str, code: i32| {
        let mut command = crate::common::execd_command();
        command.arg("--no-socket").env("TMPDIR", dir.path()).stdin(stdin).stdout(stdout);
        let done = command.stderr(Stdio::piped()).output().expect("it starts");
        assert_eq!(String::from_utf8_lossy(&done.stderr), format!("execd: {said}\n"));
        assert_eq!(done.status.code(), Some(code));
    };
    let stdin = File::open(dir.path()).expect("a directory opens");
    ends(stdin, Stdio::piped(), "stdin cannot be read: EISDIR: Is a directory", 125);
    let asks = dir.path().join("asks");
    std::fs::write(&asks, "{\"id\":1,\"method\":\"ping\"}\n").expect("a file");
    let full = OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let told = "stdout cannot be written: ENOSPC: No space left on device";
    ends(File::open(asks).expect("ours"), full.into(), told, 1);
}
