//! Fault injection by number: strace lets the Nth call of a kind fail, for N = 1, 2, 3 … until
//! there is no Nth call any more, and a fixed scenario runs each time (architecture.md,
//! Starting a child, Resources).
//!
//! Whatever fails: each request is answered exactly once, or execd refuses to start with one
//! line that says why; no descriptor, zombie or process is left; the end is clean.

use crate::common::outside::{
    can_trace, comm, countable_fds, fds, helper_of, limit_files, zombies,
};
use crate::common::{Execd, FIRST_ID, LONG_AGO, Setup, eventually, is_alive};
use serde_json::{Value, json};

const MOST_CALLS: usize = 600;

const HELPERS: [&str; 2] = ["sessions-log", "sessions-guard"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Served,
    /// The one line that says why.
    Refused(String),
}

/// The scenario under strace, which injects what `inject` says. Gives the outcome, and whether
/// anything was injected at all.
fn scenario(inject: &str, filter: &[&str], args: &[&str]) -> (Outcome, bool) {
    let dir = tempfile::tempdir().expect("a directory");
    let trace = dir.path().join("trace");
    let call = inject.split(':').next().expect("a call");
    let (traced, inject) = (format!("trace={call}"), format!("inject={inject}"));
    let out = trace.to_str().expect("UTF-8");
    // -D: the tracer is not execd's parent, so that execd is our own child.
    let mut wrapper = vec!["strace", "-D", "-o", out, "-e", &traced, "-e", &inject];
    wrapper.extend(filter);
    let mut execd = Setup::behind(&wrapper, args).unwatched().start();
    let helpers: &[&str] = if args.contains(&"--no-keeper") { &[] } else { &HELPERS };
    let outcome = drive(&mut execd, &inject, helpers);
    let read = || std::fs::read_to_string(&trace).unwrap_or_default();
    eventually("strace has written all", || {
        read().contains("\n+++ ") || read().starts_with("+++ ")
    });
    (outcome, read().contains("(INJECTED)"))
}

/// Whether a pipe leads from execd to a helper, besides what it was given itself.
fn linked(execd: i32, helper: i32) -> bool {
    let theirs = fds(helper);
    let own = |(fd, target): (i32, String)| {
        fd > 2 && target.starts_with("pipe:") && theirs.values().any(|one| *one == target)
    };
    fds(execd).into_iter().any(own)
}

fn drive(execd: &mut Execd, what: &str, helpers: &[&str]) -> Outcome {
    let pid = execd.pid();
    let first = execd.start_request("server_info", json!({}));
    if execd.reply_if_any(first).is_none() {
        return refused(execd, what);
    }
    // One whose first start failed comes a moment later, with pipes of its own.
    let mut info = Value::Null;
    eventually(&format!("{what}: the helpers are there"), || {
        info = asked(execd, "server_info", json!({}), what);
        let writer = info["result"]["keeper_pid"].as_i64();
        helpers.iter().all(|name| {
            let Some(helper) = helper_of(pid, name) else { return false };
            // Of a guard whose start has failed the process may still be there, on its own.
            linked(pid, helper) && (*name != HELPERS[0] || Some(i64::from(helper)) == writer)
        })
    });
    let keeper =
        info["result"]["keeper_pid"].as_i64().map_or(0, |pid| i32::try_from(pid).expect("a pid"));
    let at_rest = countable_fds(pid);
    for tty in [false, true] {
        let reply = asked(execd, "exec_command", json!({"cmd": "echo one", "tty": tty}), what);
        started_or_says_why(&reply, what);
        let result = &reply["result"];
        let ended = result["exit_code"] == 0 && result["output"] == "one\n";
        assert!(ended || result["exit_code"] == -1, "{what}: {reply}");
    }
    let mut sessions = Vec::new();
    for tty in [false, true] {
        let params = json!({"cmd": "exec cat", "tty": tty});
        let reply = cancelled(execd, "exec_command", params, what);
        started_or_says_why(&reply, what);
        if let Some(session) = reply["result"]["session_id"].as_u64() {
            sessions.push(session);
        }
    }
    for session in &sessions {
        // The cat gives it back, sooner or later: its answer is not what this is about.
        let chars = json!({"session_id": session, "chars": "two\\n"});
        cancelled(execd, "write_stdin", chars, what);
        let until = json!({"session_id": session, "yield_until": LONG_AGO});
        asked(execd, "write_stdin", until, what);
    }
    let list = asked(execd, "list_sessions", json!({"peek": true}), what);
    let listed = list["result"]["sessions"].as_array().map(Vec::len);
    assert_eq!(listed, Some(sessions.len()), "{what}: {list}");
    for session in &sessions {
        let reply = asked(execd, "kill_session", json!({"session_id": session}), what);
        assert_eq!(reply["result"]["killed"], true, "{what}: {reply}");
    }
    let list = asked(execd, "list_sessions", json!({}), what);
    assert_eq!(list["result"]["sessions"], json!([]), "{what}");
    cancelled(execd, "exec_command", json!({"cmd": "exec sleep 300"}), what);
    // One session lives: output, stdin and pidfd.
    let info = asked(execd, "server_info", json!({}), what);
    let live = info["result"]["sessions"]["live"].as_u64().unwrap_or(9);
    let each = if keeper == 0 { 4 } else { 3 }; // Without a keeper its log is ours, too.
    let expected = at_rest + each * usize::try_from(live).expect("few");
    eventually(&format!("{what}: no descriptor is left over"), || countable_fds(pid) == expected);
    eventually(&format!("{what}: no zombie is left"), || zombies(pid).is_empty());
    // The end of input ends the last session.
    execd.close_stdin();
    let status = execd.wait_exit();
    let sent = answered_once(execd, what);
    assert!(status.success(), "{what}: {status:?} {}", execd.stderr());
    assert!(sent >= 10, "{what}: the scenario was run");
    let left = || execd.marked().into_iter().filter(|pid| comm(*pid) != "strace").count();
    eventually(&format!("{what}: no process is left"), || left() == 0);
    eventually(&format!("{what}: the keeper has ended"), || keeper == 0 || !is_alive(keeper));
    Outcome::Served
}

/// execd has refused to start: in one line, and not with success.
fn refused(execd: &mut Execd, what: &str) -> Outcome {
    let status = execd.wait_exit();
    let said = execd.whole_stderr();
    assert!(!status.success(), "{what}: {status:?} {said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 1, "{what}: one line says why: {said:?}");
    let left = || execd.marked().into_iter().filter(|pid| comm(*pid) != "strace").count();
    eventually(&format!("{what}: no process is left"), || left() == 0);
    Outcome::Refused(lines[0].to_owned())
}

fn asked(execd: &mut Execd, method: &str, params: Value, what: &str) -> Value {
    let id = execd.start_request(method, params);
    answered(execd, id, what)
}

/// The same of a request that is cancelled at once.
fn cancelled(execd: &mut Execd, method: &str, params: Value, what: &str) -> Value {
    let id = execd.start_request(method, params);
    let cancel = execd.start_request("cancel", json!({"id": id}));
    let reply = answered(execd, id, what);
    answered(execd, cancel, what);
    reply
}

fn answered(execd: &mut Execd, id: u64, what: &str) -> Value {
    execd.reply_if_any(id).unwrap_or_else(|| panic!("{what}: execd ended: {}", execd.stderr()))
}

/// A command ran, or its failure is told with the errno's name.
fn started_or_says_why(reply: &Value, what: &str) {
    let result = &reply["result"];
    assert!(result.is_object(), "{what}: a failed start is a result: {reply}");
    if result["exit_code"] == -1 {
        let why = result["failure_message"].as_str().unwrap_or_default();
        let errno = why.split([' ', ':']).any(|word| {
            word.len() >= 3 && word.starts_with('E') && word.chars().all(|c| c.is_ascii_uppercase())
        });
        assert!(errno, "{what}: the reason names an errno: {why:?}");
        assert!(result.get("log_path").is_none(), "{what}: no log: {reply}");
    }
}

/// Each request that was sent has exactly one reply.
fn answered_once(execd: &mut Execd, what: &str) -> u64 {
    let lines = execd.all_lines();
    let ids: Vec<u64> = lines
        .iter()
        .filter(|line| line.get("method").is_none())
        .map(|line| line["id"].as_u64().unwrap_or_else(|| panic!("{what}: {line}")))
        .collect();
    let last = ids.iter().max().copied().unwrap_or(FIRST_ID - 1);
    for id in FIRST_ID..=last {
        let count = ids.iter().filter(|one| **one == id).count();
        assert_eq!(count, 1, "{what}: request {id} is answered once");
    }
    last + 1 - FIRST_ID
}

/// The scenario for each occurrence of a call; gives what the refusals said.
fn each_call(call: &str, error: &str, filter: &[&str], args: &[&str]) -> Vec<String> {
    if !can_trace() {
        return vec![];
    }
    let mut refusals = Vec::new();
    for number in 1..=MOST_CALLS {
        let inject = format!("{call}:error={error}:when={number}");
        let (outcome, injected) = scenario(&inject, filter, args);
        if let Outcome::Refused(why) = &outcome {
            refusals.push(why.clone());
        }
        if !injected {
            assert_eq!(outcome, Outcome::Served, "{inject}: nothing failed");
            assert!(number > 1, "{call} is never called: is the test up to date?");
            return refusals;
        }
    }
    panic!("more than {MOST_CALLS} calls of {call}");
}

/// As [`each_call`]; no failure of this kind keeps execd from starting.
fn each_call_is_survived(call: &str, error: &str, filter: &[&str], args: &[&str]) {
    let refusals = each_call(call, error, filter, args);
    assert!(refusals.is_empty(), "{call} {error} {args:?}: {refusals:?}");
}

/// As [`each_call`]; every refusal is execd's own and names the errno.
fn each_call_is_survived_or_refused(call: &str, error: &str, args: &[&str]) {
    for why in each_call(call, error, &[], args) {
        let clear = why.starts_with("execd: cannot start: ");
        assert!(clear, "{call} {error}: {why}");
    }
}

/// rule: protocol.md, Errors: A refused fork is a result with the system's reason
/// rule: architecture.md, Starting a child: EAGAIN, ENOMEM, EMFILE on clone, openpty or pipe fail
///   that one request, all else goes on
#[test]
fn a_process_that_cannot_be_made() {
    // The keeper, each command.
    each_call_is_survived("clone", "EAGAIN", &[], &[]);
}

/// rule: architecture.md, Starting a child: EAGAIN, ENOMEM, EMFILE on clone, openpty or pipe fail
///   that one request, all else goes on
#[test]
fn a_terminal_that_cannot_be_opened() {
    each_call_is_survived("openat", "ENOSPC", &["-P", "/dev/ptmx"], &[]);
}

/// rule: architecture.md, Starting a child: A failure between clone and exec is answered at once
///   with its reason
#[test]
fn a_terminal_that_refuses_a_setting() {
    each_call_in_steps("ioctl", "EIO", 5, &[]);
}

/// rule: architecture.md, Starting a child: EAGAIN, ENOMEM, EMFILE on clone, openpty or pipe fail
///   that one request, all else goes on
#[test]
fn a_pipe_that_cannot_be_made() {
    each_call_is_survived("pipe2", "EMFILE", &[], &[]);
}

#[test]
fn a_timer_or_a_poll_that_cannot_be_had() {
    each_call_is_survived_or_refused("timerfd_create", "EMFILE", &[]);
    each_call_is_survived_or_refused("timerfd_settime", "ENOMEM", &[]);
    each_call_is_survived_or_refused("epoll_create1", "EMFILE", &[]);
}

#[test]
fn a_poll_that_takes_nothing() {
    each_call_is_survived_or_refused("epoll_ctl", "ENOSPC", &[]);
}

#[test]
fn a_signalfd_that_cannot_be_made() {
    let refusals = each_call("signalfd4", "EMFILE", &[], &[]);
    if can_trace() {
        let said = "execd: cannot start: signalfd: EMFILE: Too many open files: raise ulimit -n";
        assert_eq!(refusals, [said]);
    }
}

#[test]
fn a_member_that_cannot_be_pinned_and_randomness_that_is_not_there() {
    each_call_is_survived("getrandom", "ENOSYS", &[], &[]);
    each_call_is_survived("pidfd_open", "EMFILE", &[], &[]);
    each_call_is_survived("pidfd_open", "ENOMEM", &[], &[]);
    each_call_is_survived("pidfd_send_signal", "EPERM", &[], &[]);
}

#[test]
fn an_interrupted_wait_for_a_child() {
    each_call_is_survived("waitid", "EINTR", &[], &[]);
}

/// For calls of which there are hundreds: each fails in one of a few runs, `step` calls apart.
fn each_call_in_steps(call: &str, error: &str, step: usize, args: &[&str]) {
    if !can_trace() {
        return;
    }
    let mut served = 0;
    for number in 1..=step + LOADERS_CALLS {
        let inject = format!("{call}:error={error}:when={number}+{step}");
        let (outcome, injected) = scenario(&inject, &[], args);
        if !injected {
            break;
        }
        match outcome {
            Outcome::Served => served += 1,
            // The first calls belong to the dynamic loader, which takes no interruption.
            Outcome::Refused(why) => {
                let loader = why.contains("error while loading shared libraries");
                assert!(loader || why.starts_with("execd: cannot start: "), "{inject}: {why}");
            }
        }
    }
    assert!(served >= step, "{call}: each call failed once: {served}");
}

/// The loader's calls of a kind before execd's own begin, at most.
const LOADERS_CALLS: usize = 12;

#[test]
fn interrupted_reads() {
    // Most of them are of /proc.
    each_call_in_steps("read", "EINTR", 6, &[]);
    each_call_in_steps("read", "EINTR", 6, &["--no-keeper"]);
}

#[test]
fn interrupted_opens_and_lists() {
    each_call_in_steps("openat", "EINTR", 5, &[]);
    each_call_in_steps("getdents64", "EINTR", 3, &[]);
}

#[test]
fn an_interrupted_write() {
    each_call_is_survived("write", "EINTR", &[], &[]);
    each_call_is_survived("write", "EINTR", &[], &["--no-keeper"]);
}

#[test]
fn interrupted_requests_and_replies() {
    each_call_in_steps("preadv2", "EINTR", 7, &[]);
    each_call_in_steps("pwritev2", "EINTR", 5, &[]);
}

#[test]
fn a_reader_that_has_no_room_for_a_moment() {
    each_call_in_steps("pwritev2", "EAGAIN", 5, &[]);
}

#[test]
fn a_kernel_without_nowait() {
    // A kernel has it for all calls or for none.
    for call in ["preadv2", "pwritev2"].into_iter().filter(|_| can_trace()) {
        let inject = format!("{call}:error=EOPNOTSUPP");
        assert_eq!(scenario(&inject, &[], &[]), (Outcome::Served, true), "{inject}");
    }
}

#[test]
fn an_interrupted_poll() {
    each_call_in_steps("epoll_wait", "EINTR", 9, &[]);
}

#[test]
fn a_process_list_that_cannot_be_read() {
    each_call_in_steps("getdents64", "ENOMEM", 5, &[]);
    each_call_is_survived("openat", "EMFILE", &["-P", "/proc"], &[]);
}

// ---- Limits that are really reached -----------------------------------------------------

/// rule: architecture.md, Starting a child: EAGAIN, ENOMEM, EMFILE on clone, openpty or pipe fail
///   that one request, all else goes on
#[test]
fn when_descriptors_run_out_each_request_is_answered_and_everything_is_given_back() {
    let mut execd =
        Setup::new(&["--max-sessions", "1"]).prepared(limit_files(56)).unwatched().start();
    execd.result("ping", json!({}));
    let fds = countable_fds(execd.pid());
    for tty in [false, true] {
        // A command that waits for a line may be answered for that before the last one is started.
        let params = json!({"cmd": "read x; exit 3", "tty": tty, "on_impossible": "wait"});
        let start = |execd: &mut Execd| execd.start_request("exec_command", params.clone());
        let requests: Vec<u64> = (0..60).map(|_| start(&mut execd)).collect();
        // Without a free descriptor execd still lists, kills and takes requests.
        let list = execd.result("list_sessions", json!({"peek": true}));
        assert!(list["sessions"].is_array());
        for request in &requests {
            execd.result("cancel", json!({"id": request}));
        }
        // Which of them find no descriptor depends on how many are on their way to their program.
        let (mut ran, mut refused) = (0, 0);
        for request in &requests {
            let reply = answered(&mut execd, *request, "a request");
            started_or_says_why(&reply, "a request");
            let why = reply["result"]["failure_message"].as_str().unwrap_or_default();
            refused += usize::from(why.contains("EMFILE"));
            let Some(session) = reply["result"]["session_id"].as_u64() else { continue };
            ran += 1;
            // Evicted as soon as nobody waits for it, or killed here.
            execd.result("kill_session", json!({"session_id": session}));
        }
        assert!(ran >= 5, "some could be started: {ran}");
        assert!(refused > 0, "there are no descriptors for sixty");
        eventually("no process is left", || execd.marked().is_empty());
        eventually("all descriptors are given back", || countable_fds(execd.pid()) == fds);
        eventually("no zombie is left", || zombies(execd.pid()).is_empty());
        let again = execd.result("exec_command", json!({"cmd": "echo again", "tty": tty}));
        assert_eq!(again["output"], "again\n");
    }
    execd.close_stdin();
    assert!(execd.wait_exit().success());
    answered_once(&mut execd, "a low limit");
}
