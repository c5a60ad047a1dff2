//! execd where the kernel, or what it runs in, tells and allows less: without /proc, with that of
//! another pid namespace, as PID 1, with system calls refused (architecture.md, Without /proc).
//!
//! Each test makes its own surroundings, and says why it is left out where it may not.

use std::process::Command;

use crate::common::outside::{comm, pids, refuse_calls, zombies};
use crate::common::{Execd, Setup, eventually, is_alive, left_out, send_signal, session_of};
use serde_json::{Value, json};

/// Takes /proc away from what follows, in a mount namespace of its own.
const NO_PROC: [&str; 5] =
    ["unshare", "--mount", "sh", "-c", "umount -l /proc && exec \"$0\" \"$@\""];
/// A pid namespace without a /proc of its own; its first process outlives execd.
const FOREIGN: [&str; 7] =
    ["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", "\"$0\" \"$@\"; exec sleep 1000"];
const OUTLIVES: &str = "; exec sleep 1000";
/// A pid namespace with its /proc, whose first process is execd.
const FIRST: [&str; 5] = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// What a filter refuses. Some are calls of libraries alone.
const REFUSED: [i64; 4] =
    [libc::SYS_pidfd_open, libc::SYS_close_range, libc::SYS_clone3, libc::SYS_statx];

const LACK: &str = "it is not mounted, or is that of another pid namespace";

const JOBS: &str = "sleep 300 & sleep 301 & wait";

/// A filter that knows pidfd_open(2) and nothing that can be done with what it gives.
const NO_SENDING: [i64; 1] = [libc::SYS_pidfd_send_signal];

/// Where an execd is started.
#[derive(Clone, Copy)]
struct Place {
    words: &'static [&'static str],
    /// The errno of the calls that are refused, where some are.
    refused: Option<i32>,
    calls: &'static [i64],
    /// Whether /proc tells of the processes there.
    has_proc: bool,
}

const PLAIN: Place = Place { words: &[], refused: None, calls: &REFUSED, has_proc: true };

impl Place {
    /// Whether such a place can be had; says so where it cannot.
    fn can_be_had(&self) -> bool {
        let may = self.words.is_empty() || {
            // Whatever outlives execd there would outlive this as well.
            let words = self.words.iter().map(|word| word.trim_end_matches(OUTLIVES));
            let tried = Command::new(self.words[0]).args(words.skip(1)).arg("true").output();
            tried.is_ok_and(|done| done.status.success())
        };
        if !may {
            left_out(&format!("this may not be done here: {}", self.words.join(" ")));
        }
        may
    }

    fn start(&self, args: &[&str]) -> Execd {
        let mut setup = Setup::behind(self.words, args);
        if let Some(errno) = self.refused {
            setup = setup.prepared(refuse_calls(errno, self.calls));
        }
        setup.start()
    }
}

/// The process of execd itself: what it is started behind may have forked.
fn pid_of_execd(execd: &mut Execd) -> i32 {
    let inside = execd.result("server_info", json!({}));
    assert!(inside["pid"].is_i64(), "{inside}");
    let of_mark = execd.processes();
    let is_it = |command: &str| {
        let program = command.split(' ').next().unwrap_or_default();
        program.ends_with("/execd") && !command.contains("--keeper")
    };
    of_mark.iter().find(|one| is_it(&one.command)).map_or(execd.pid(), |one| one.pid)
}

/// The log writer and the guard, as they are seen from outside, once both run.
fn until_helpers(execd: &mut Execd) -> Vec<i32> {
    let info = execd.result("server_info", json!({}));
    let instance = info["instance"].as_str().unwrap_or("none").to_owned();
    let is_one = |pid: &i32| {
        let words = crate::common::outside::cmdline(*pid);
        matches!(&*comm(*pid), "sessions-log" | "sessions-guard")
            && String::from_utf8_lossy(&words).contains(&instance)
    };
    let all = || pids().into_iter().filter(is_one).collect::<Vec<i32>>();
    eventually("the log writer and the guard run", || all().len() == 2);
    all()
}

fn sleeping(execd: &Execd) -> usize {
    execd.session_processes().iter().filter(|one| one.command.starts_with("sleep")).count()
}

fn open_jobs(execd: &mut Execd, tty: bool) -> u64 {
    let opened = execd.open_with(JOBS, json!({"tty": tty}));
    let jobs = || sleeping(execd) == 2;
    eventually("its jobs run", jobs);
    session_of(&opened)
}

/// It is said once on stderr, and server_info has it in `degraded`.
fn says_what_is_missing(place: &Place) {
    let mut execd = place.start(&[]);
    let info = execd.result("server_info", json!({}));
    let degraded: Vec<Value> = info["degraded"].as_array().cloned().unwrap_or_default();
    let about: Vec<&str> =
        degraded.iter().filter_map(Value::as_str).filter(|text| text.contains("/proc")).collect();
    assert_eq!(about.len(), usize::from(!place.has_proc), "{info}");
    for text in about {
        assert!(text.contains(LACK), "{text}");
        let said = |lines: &str| lines.lines().filter(|line| line.contains(text)).count();
        eventually("it is said once", || said(&execd.stderr()) == 1);
    }
    until_helpers(&mut execd);
    let told = execd.run("echo told");
    assert_eq!(told["output"], "told\n");
    assert!(told.get("failure_message").is_none(), "its log is written: {told}");
}

/// kill_session and a timeout end a session, execd's end ends all of them, and nobody else's.
fn ends_everything(place: &Place) {
    if !place.can_be_had() {
        return;
    }
    says_what_is_missing(place);
    for tty in [false, true] {
        let mut execd = place.start(&[]);
        let session = open_jobs(&mut execd, tty);
        let killed = execd.kill(session);
        assert_eq!(killed["killed"], true, "tty {tty}: {killed}");
        execd.until_no_session_process();
        let session = open_jobs(&mut execd, tty);
        if !tty {
            let resists = execd.open("trap '' TERM HUP; echo up; while :; do sleep 300; done");
            let killed = execd.kill(session_of(&resists));
            let both = [&killed["killed"], &killed["escalated"]];
            assert_eq!(both, [&json!(true), &json!(true)], "{killed}");
            assert!(execd.listed(session).is_some(), "the other one runs on");
        }

        let own = pid_of_execd(&mut execd);
        send_signal(own, libc::SIGTERM);
        eventually("execd has ended", || !is_alive(own));
        execd.until_no_session_process();

        let mut execd = place.start(&[]);
        open_jobs(&mut execd, tty);
        let (own, helpers) = (pid_of_execd(&mut execd), until_helpers(&mut execd));
        send_signal(own, libc::SIGKILL);
        eventually("execd has ended", || !is_alive(own));
        execd.until_no_session_process();
        eventually("its helpers end", || !helpers.iter().any(|pid| is_alive(*pid)));
    }
    ends_what_its_leader_has_left(place);
    ends_what_has_detached_itself_where_that_is_asked_for(place);
    let mut execd = place.start(&[]);
    open_jobs(&mut execd, false);
    let own = pid_of_execd(&mut execd);
    execd.close_stdin();
    eventually("execd has ended", || !is_alive(own));
    execd.until_no_session_process();

    let mut execd = place.start(&[]);
    let params = json!({"command": JOBS, "timeout": 0.5, "timeoutAction": "kill"});
    let ended = execd.result("bash", params);
    assert_eq!(ended["status"], "timed_out", "{ended}");
    execd.until_no_session_process();

    let run = place.start(&["run", "--timeout", "3", "-c", JOBS]);
    eventually("its jobs run", || run.session_processes().len() == 3);
    run.until_no_session_process();
}

/// Its leader is gone, and what it has left holds nothing.
fn ends_what_its_leader_has_left(place: &Place) {
    let cmd = "sleep 300 >/dev/null 2>&1 </dev/null & exit 3";
    let mut execd = place.start(&[]);
    let ended = execd.run(cmd);
    assert_eq!(ended["exit_code"], 3, "{ended}");
    assert_eq!(execd.session_processes().len(), 1, "it runs on");
    let own = pid_of_execd(&mut execd);
    send_signal(own, libc::SIGKILL);
    execd.until_no_session_process();
    let mut execd = place.start(&[]);
    execd.run(cmd);
    assert_eq!(execd.kill(1)["found"], true, "under its old id");
    execd.until_no_session_process();
}

/// What has called setsid is left alone. With /proc it is ended where it is asked to be: without it
/// nobody's parent is known.
fn ends_what_has_detached_itself_where_that_is_asked_for(place: &Place) {
    let cmd = "setsid sleep 300 & sleep 301 & wait";
    let asked_for = usize::from(!place.has_proc);
    for (args, left) in [(&[][..], 1), (&["--kill-detached"][..], asked_for)] {
        let mut execd = place.start(args);
        let opened = execd.open(cmd);
        eventually("both run", || sleeping(&execd) == 2);
        assert_eq!(execd.kill(session_of(&opened))["killed"], true);
        eventually("what is to be ended is", || execd.session_processes().len() == left);
        execd.leaves_processes_behind();
    }
}

/// The log writer and the guard could not be started without /proc/self/exe, nobody was found in
/// /proc, and all that commands had started ran on.
/// rule: architecture.md, Without /proc: Not mounted: after kill_session, a timeout, SIGTERM,
///   SIGKILL and the end of stdin nothing of a session's process group is left
#[test]
fn without_proc() {
    ends_everything(&Place { words: &NO_PROC, has_proc: false, ..PLAIN });
}

/// Whoever had the number outside was looked at, and nobody was ended.
/// rule: architecture.md, Without /proc: That of another pid namespace: nothing of a session's
///   process group is left, and nothing is told of strangers under the same numbers
#[test]
fn with_the_proc_of_another_pid_namespace() {
    ends_everything(&Place { words: &FOREIGN, has_proc: false, ..PLAIN });
}

/// rule: architecture.md, Without /proc: As PID 1: nothing of a session is left
#[test]
fn as_the_first_process_of_a_pid_namespace() {
    ends_everything(&Place { words: &FIRST, ..PLAIN });
}

/// Nobody but leaders was sent a signal where pidfd_open(2) was refused.
/// rule: architecture.md, Without /proc: pidfd_open, close_range, clone3 and statx refused: nothing
///   of a session is left
#[test]
fn with_system_calls_refused() {
    ends_everything(&Place { refused: Some(libc::ENOSYS), ..PLAIN });
}

/// No signal reached anybody, nothing was said of it, and execd could not be ended.
#[test]
fn with_signals_through_pidfds_refused() {
    ends_everything(&Place { refused: Some(libc::EPERM), calls: &NO_SENDING, ..PLAIN });
}

/// rule: architecture.md, Without /proc: As PID 1 execd reaps whoever comes to it
#[test]
fn the_first_process_reaps_all_orphans() {
    let place = Place { words: &FIRST, ..PLAIN };
    if !place.can_be_had() {
        return;
    }
    let mut execd = place.start(&[]);
    let own = pid_of_execd(&mut execd);
    let one = "setsid sh -c 'setsid sleep 0.1 >/dev/null 2>&1 & exit' &";
    execd.run(&format!("for i in 1 2 3 4; do {one} done; wait"));
    eventually("orphans are reaped", || {
        execd.session_processes().is_empty() && zombies(own).is_empty()
    });
}

/// A port, a page, input and idleness are seen in /proc alone: such a wait went on to its end.
/// rule: waits.md, until and stop: What only /proc can tell is refused at once where it does not,
///   with what can be waited for
#[test]
fn what_cannot_be_told_without_proc_is_refused_at_once() {
    let place = Place { words: &NO_PROC, has_proc: false, ..PLAIN };
    if !place.can_be_had() {
        return;
    }
    let mut execd = place.start(&[]);
    for (field, value) in [
        ("port", json!(0)),
        ("http", json!({"path": "/"})),
        ("input", json!(true)),
        ("idle_ms", json!(100)),
    ] {
        let mut until = json!({"text": "never"});
        until[field] = value;
        let params = json!({"cmd": "sleep 300", "until": until, "yield_time_ms": 30_000});
        let why = execd.failed("exec_command", params, "system");
        assert!(why.starts_with(&format!("until.{field} cannot be waited for: /proc")), "{why}");
        assert!(why.contains("it is not mounted"), "{why}");
    }
    assert!(execd.session_processes().is_empty(), "nothing was started");
    let idle = json!({"idle_ms": 100, "idle_cpu": true});
    let params = json!({"cmd": "echo up; read line", "until": idle, "on_impossible": "wait"});
    let opened = execd.exec(params);
    let session = session_of(&opened);
    assert_eq!(opened["output"], "up\n", "{opened}");
    let listed = execd.listed(session).expect("it runs");
    for field in ["state", "state_detail", "listening"] {
        assert!(listed.get(field).is_none(), "what it does is not told: {listed}");
    }
    let until = json!({"text": "never", "tree_exit": true});
    let ended = execd.exec(json!({"cmd": "sleep 0.1 & exit 3", "until": until}));
    assert_eq!(ended["exit_code"], 3, "{ended}");
}
