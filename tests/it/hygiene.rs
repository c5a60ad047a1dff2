//! What a child finds when it starts, and what execd and its keeper are themselves
//! (architecture.md, Starting a child; architecture.md, The keeper). Facts are read from /proc,
//! from outside: a shell that looks at itself changes what it sees.

use crate::common::outside::{
    environment, fds, file_limit, is_cloexec, place, signal_set, status_field, status_number,
    until_runs,
};
use crate::common::{Execd, Setup, eventually, pid_of, send_signal};
use serde_json::json;

/// dash and bash both leave signals as they are when they exec.
const SLEEP: &str = "exec sleep 300";

/// Starts `sleep` in a session and waits until it runs, so that no shell is in the way.
fn sleeper(execd: &mut Execd, tty: bool, shell: &str) -> i32 {
    let opened = execd.open_now(&json!({"cmd": SLEEP, "tty": tty, "shell": shell}));
    let pid = pid_of(&opened);
    until_runs(pid, "sleep");
    pid
}

/// rule: architecture.md, Starting a child: A child has fds 0, 1, 2 and no other
/// rule: unified-exec.md, exec_command, params: `stdin`: a pipe by default, `"null"` is at its end
/// rule: architecture.md, A session: A child has one pipe for stdout and stderr: their order is
///   exactly the child's
#[test]
fn a_child_has_descriptors_0_to_2_and_no_other() {
    // Descriptors that execd itself inherited without CLOEXEC must not pass through it.
    let mut execd = Setup::new(&[])
        .prepared(|| {
            // SAFETY: dup2 takes two numbers.
            unsafe { (libc::dup2(0, 57), libc::dup2(1, 900)) };
        })
        .unwatched()
        .start();
    execd.open_now(&json!({"cmd": "sleep 300", "tty": true}));
    execd.open_now(&json!({"cmd": "sleep 300"}));
    for (tty, stdin) in [(false, "pipe"), (false, "null"), (true, "pipe")] {
        let opened = execd.open_now(&json!({"cmd": SLEEP, "tty": tty, "stdin": stdin}));
        let pid = pid_of(&opened);
        until_runs(pid, "sleep");
        // While it starts, the dynamic loader has a library open for a moment.
        let only_three = || fds(pid).keys().copied().eq([0, 1, 2]);
        eventually(&format!("only 0 to 2 are open ({:?})", fds(pid)), only_three);
        let open = fds(pid);
        assert_eq!(open[&1], open[&2], "stdout and stderr are one: {open:?}");
        match (tty, stdin) {
            (true, _) => {
                assert!(open[&0].starts_with("/dev/pts/") && open[&0] == open[&1], "{open:?}");
            }
            (false, "null") => assert_eq!(open[&0], "/dev/null"),
            _ => assert!(open[&0].starts_with("pipe:") && open[&0] != open[&1], "{open:?}"),
        }
    }
}

/// rule: architecture.md, Ending a session: execd reaps although it was started with SIGCHLD
///   ignored
/// rule: architecture.md, Starting a child: A child has every signal at its default and an empty
///   signal mask
#[test]
fn a_child_has_all_signals_at_their_default_and_none_blocked() {
    let mut plain = Setup::new(&[]).unwatched().start();
    // As under nohup, in a background job of a shell without job control, from a daemon
    // that ignores SIGCHLD, and from a careless parent with signals blocked.
    let mut odd = Setup::new(&[])
        .prepared(|| {
            for signal in [1, 2, 3, 10, 13, 15, 17, 20, 21, 22, 32, 33, 34, 40, 64] {
                // The raw call: the C library would refuse 32 and 33.
                let ignore = [libc::SIG_IGN, 0, 0, 0];
                let nothing: *mut [usize; 4] = std::ptr::null_mut();
                // SAFETY: SIG_IGN installs no handler.
                unsafe {
                    libc::syscall(libc::SYS_rt_sigaction, signal, &raw const ignore, nothing, 8)
                };
            }
            // SAFETY: a set on the stack, initialised before its use.
            unsafe {
                let mut set = std::mem::zeroed::<libc::sigset_t>();
                libc::sigfillset(&raw mut set);
                libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            }
        })
        .unwatched()
        .start();
    assert_eq!(odd.result("exec_command", json!({"cmd": "exit 7"}))["exit_code"], 7);
    for execd in [&mut plain, &mut odd] {
        for (tty, shell) in [(false, "sh"), (true, "sh"), (false, "bash"), (true, "bash")] {
            let pid = sleeper(execd, tty, shell);
            for set in ["SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd"] {
                let found = signal_set(pid, set);
                assert_eq!(found, [0_u32; 0], "{set} of {shell} tty={tty}");
            }
        }
    }
}

/// rule: architecture.md, Starting a child: A child has a session of its own
/// rule: architecture.md, Starting a child: A PTY is the child's controlling terminal
#[test]
fn a_child_leads_a_session_of_its_own_and_a_terminal_is_its_controlling_one() {
    let mut execd = Setup::new(&[]).unwatched().start();
    let ours = place(execd.pid());
    for tty in [false, true] {
        let pid = sleeper(&mut execd, tty, "bash");
        let found = place(pid);
        assert_eq!((found.sid, found.pgid, found.ppid), (pid, pid, execd.pid()));
        assert_ne!(found.sid, ours.sid);
        if tty {
            assert_ne!(found.tty, 0, "it has a controlling terminal");
            assert_eq!(found.foreground, pid, "and is its foreground group");
        } else {
            assert_eq!((found.tty, found.foreground), (0, -1), "no terminal on pipes");
        }
    }
}

/// rule: architecture.md, Starting a child: A child has the RLIMIT_NOFILE that execd itself was
///   started with
/// rule: architecture.md, Starting a child: A child has the umask and the working directory as
///   asked
/// rule: unified-exec.md, exec_command, params: `workdir`: default execd's; a relative one is
///   resolved against it
#[test]
fn a_child_has_execds_umask_and_limit_of_files_and_the_directory_asked_for() {
    let mut execd = Setup::new(&[])
        .prepared(|| {
            // SAFETY: umask takes a number, the others a live rlimit.
            unsafe {
                libc::umask(0o037);
                let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
                limit.rlim_cur = 333;
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
            }
        })
        .unwatched()
        .start();
    let own = execd.workdir();
    std::fs::create_dir(own.join("sub")).expect("a directory");
    for (workdir, expected) in [
        (json!(null), own.clone()),
        (json!("sub"), own.join("sub")),
        (json!("/usr"), "/usr".into()),
    ] {
        let mut params = json!({"cmd": SLEEP});
        if workdir.is_string() {
            params["workdir"] = workdir;
        }
        let opened = execd.open_now(&params);
        let pid = pid_of(&opened);
        until_runs(pid, "sleep");
        assert_eq!(status_field(pid, "Umask").as_deref(), Some("0037"));
        assert_eq!(file_limit(pid), 333);
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).expect("it runs");
        assert_eq!(cwd, expected);
        assert_eq!(opened["cwd"], expected.to_str().expect("UTF-8"));
    }
    assert!(file_limit(execd.pid()) > 333, "execd itself takes what it may");
}

/// rule: architecture.md, Starting a child: A child has its environment as asked
/// rule: architecture.md, Starting a child: A child knows EXECD_SESSION_ID and EXECD_INSTANCE
/// rule: architecture.md, Starting a child: TERM=xterm-256color on a PTY only
/// rule: unified-exec.md, exec_command, params: `env`: a string sets, null unsets
#[test]
fn a_child_has_the_environment_asked_for_and_execds_marks() {
    let envs = [("KEPT", "as it is"), ("CHANGED", "old"), ("GONE", "x"), ("TERM", "dumb")];
    let marks = [("EXECD_SESSION_ID", "77"), ("EXECD_INSTANCE", "of an outer execd")];
    let envs: Vec<_> = envs.into_iter().chain(marks).collect();
    let mut execd = Setup::new(&[]).envs(&envs).unwatched().start();
    let instance = execd.result("server_info", json!({}))["instance"].clone();
    let change = json!({"CHANGED": "new = value", "GONE": null, "EMPTY": ""});
    for tty in [false, true] {
        let opened = execd.open_now(&json!({"cmd": SLEEP, "tty": tty, "env": change}));
        let pid = pid_of(&opened);
        until_runs(pid, "sleep");
        // In the middle of an exec there is the new name, and no environment yet.
        eventually("its environment is there", || !environment(pid).is_empty());
        let found = environment(pid);
        let value = |name: &str| found.get(name).map(String::as_str);
        assert_eq!(value("KEPT"), Some("as it is"));
        assert_eq!(value("CHANGED"), Some("new = value"));
        assert_eq!((value("GONE"), value("EMPTY")), (None, Some("")));
        let id = opened["session_id"].to_string();
        assert_eq!(value("EXECD_SESSION_ID"), Some(id.as_str()));
        assert_eq!(value("EXECD_INSTANCE"), instance.as_str());
        assert_eq!(value("TERM"), Some(if tty { "xterm-256color" } else { "dumb" }));
    }
}

/// rule: architecture.md, The turn: execd has one thread, always
/// rule: architecture.md, Starting a child: All of execd's descriptors are CLOEXEC
#[test]
fn execd_has_one_thread_and_its_descriptors_are_closed_by_exec() {
    for args in [&[][..], &["--no-keeper"], &["--no-log"]] {
        let mut execd = Execd::with(args, &[]);
        let pid = execd.pid();
        let tty = crate::common::session_of(&execd.open_with("cat", json!({"tty": true})));
        let pipe = execd.open("cat");
        // The wall clock's timer and the list of children are opened at their first use.
        execd.poll_now(tty);
        execd.run("true & wait");
        execd.peek();
        execd.input(crate::common::session_of(&pipe), "x");
        let waits = json!({"session_id": tty, "yield_until": "2099-01-01T00:00:00Z"});
        execd.start_request("write_stdin", waits);
        execd.ping();
        assert_eq!(execd.threads(), 1);
        // What the test runner itself passes on without CLOEXEC is none of execd's.
        let own = fds(std::process::id().cast_signed());
        for (fd, target) in fds(pid).into_iter().filter(|(fd, _)| *fd > 2) {
            let inherited = own.get(&fd) == Some(&target);
            assert!(inherited || is_cloexec(pid, fd), "{args:?}: {fd} {target} survives exec");
        }
    }
}

/// rule: architecture.md, The keeper: The keeper has its own session, ignores INT, TERM, HUP and
///   holds none of execd's fds 0 to 2
#[test]
fn the_keeper_has_its_own_session_and_name_and_ignores_what_ends_others() {
    let mut execd = Setup::new(&[])
        .prepared(|| {
            // SAFETY: dup2 takes two numbers.
            unsafe { (libc::dup2(1, 71), libc::dup2(2, 72)) };
        })
        .unwatched()
        .start();
    let keeper = execd.keeper();
    let ours = fds(execd.pid());
    let ours: Vec<&String> = [0, 1, 2].iter().map(|fd| &ours[fd]).collect();
    for (fd, target) in fds(keeper) {
        assert!(!ours.contains(&&target), "the keeper's {fd} is execd's {target}");
    }
    let cwd = std::fs::read_link(format!("/proc/{keeper}/cwd")).expect("it runs");
    assert_eq!(cwd.to_str(), Some("/"), "it keeps no directory busy");
    let found = place(keeper);
    assert_eq!((found.sid, found.pgid, found.ppid), (keeper, keeper, execd.pid()));
    assert_eq!(found.tty, 0);
    assert_eq!(status_number(keeper, "Threads"), 1);
    let ignored = signal_set(keeper, "SigIgn");
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
        assert!(ignored.contains(&u32::try_from(signal).expect("positive")), "{signal}");
        send_signal(keeper, signal);
    }
    let result = execd.result("exec_command", json!({"cmd": "echo still logged"}));
    assert!(result.get("failure_message").is_none() && result.get("log_complete").is_none());
    assert_eq!(crate::common::log_of(&result), b"still logged\n");
    assert_eq!(execd.result("server_info", json!({}))["keeper_pid"], keeper);
}
