//! kill -9 of execd: within a second nothing of its sessions is left (architecture.md, Ending a
//! session; architecture.md, The keeper).
//!
//! The second is the rule; on a machine that is busy with other tests it is looked at with
//! patience, and what must not be there at the end is.

use std::time::{Duration, Instant};

use crate::common::outside::{self, OWN_PIDS, helper_of, is_root, may_choose_pids, stop};
use crate::common::{
    Execd, Setup, eventually, is_alive, left_out, output, pid_of, send_signal, session_of,
};
use serde_json::json;

/// The rule is a second; a machine that runs other tests at the same time may take its time.
const SOON: Duration = Duration::from_secs(10);

/// Kills execd the hard way and waits until none of its sessions' processes is left; then the
/// keeper ends, too.
fn kill_and_expect_nothing(execd: &mut Execd, keeper: i32) {
    execd.signal(libc::SIGKILL);
    let started = Instant::now();
    execd.wait_exit();
    execd.until_no_session_process();
    let took = started.elapsed();
    assert!(took < SOON, "it took {took:?}");
    eventually("the keeper has ended", || !is_alive(keeper));
}

/// rule: architecture.md, Ending a session: kill -9 of execd: within a moment no member of its
///   sessions is left
/// rule: architecture.md, Ending a session: kill -9 of execd ends also members that cleared their
///   environment, on pipes
#[test]
fn nothing_that_resists_survives() {
    let cmds = [
        "exec sleep 300",
        "trap '' TERM HUP INT; echo up; while :; do sleep 300; done",
        "sleep 300 & sleep 301 & wait",
        "set -m; sleep 300 & (trap '' HUP TERM; sleep 301; :) & wait",
        "nohup sleep 300 >/dev/null 2>&1 & nohup sleep 301 & wait",
        "env -i sleep 300 & env -i sh -c 'sleep 301; :' & wait",
        "(sh -c 'trap \"\" HUP TERM; sleep 300; :' >/dev/null 2>&1 </dev/null &); sleep 301",
        // The leader is gone, its job runs on and holds the output, or does not.
        "sh -c 'sleep 300; :' & exit 0",
    ];
    let mut execd = Execd::start();
    let keeper = execd.keeper();
    let mut sids = Vec::new();
    for cmd in cmds {
        for tty in [false, true] {
            let opened = execd.exec(json!({"cmd": cmd, "tty": tty, "yield_time_ms": 250}));
            if opened.get("session_id").is_some() {
                sids.push(pid_of(&opened));
            }
        }
    }
    let left = execd.run("trap '' HUP; sleep 302 >/dev/null 2>&1 </dev/null & echo $$");
    sids.push(output(&left).trim().parse().expect("its sid"));
    let members = || sids.iter().map(|sid| outside::members(*sid).len()).sum::<usize>();
    eventually("all have started", || members() >= 20);
    kill_and_expect_nothing(&mut execd, keeper);
    // By session id as well: a program may have changed its environment.
    eventually("no member is left", || members() == 0);
}

/// The log disk was frozen, the one process that was both writer and guard sat in it, and what
/// execd had started lived on until the disk moved.
/// rule: architecture.md, Ending a session: kill -9 of execd ends all members also while the log
///   disk stands still
/// rule: architecture.md, The keeper: The guard works also while the disk stands still
/// rule: architecture.md, The keeper: The keeper writes out what is queued after execd was killed
#[test]
fn a_writer_that_stands_still_keeps_nobody_alive_and_writes_what_was_queued_later() {
    let mut execd = Execd::start();
    let keeper = execd.keeper();
    stop(keeper);
    let opened = execd.open("trap '' HUP TERM; sleep 300 & sleep 301 & echo the last words; wait");
    let session = session_of(&opened);
    // Not by its log: the writer has not been able to make the file.
    let mut all = output(&opened).to_owned();
    eventually("it has said its words", || {
        all.push_str(output(&execd.poll_now(session)));
        all == "the last words\n"
    });
    execd.signal(libc::SIGKILL);
    execd.wait_exit();
    execd.until_no_session_process();
    assert_eq!(outside::members(pid_of(&opened)), [0_i32; 0]);
    assert!(is_alive(keeper), "it still stands");
    outside::go_on(keeper);
    eventually("the keeper has ended", || !is_alive(keeper));
    let logs = execd.log_files();
    assert_eq!(logs.len(), 1, "{logs:?}");
    assert_eq!(std::fs::read(&logs[0]).expect("it exists"), b"the last words\n");
}

/// rule: architecture.md, Ending a session: A detached program is left alone at shutdown
#[test]
fn who_detached_itself_is_left_alone() {
    let mut execd = Execd::start();
    execd.leaves_processes_behind();
    let keeper = execd.keeper();
    // A daemon of a session that goes on, and one of a terminal, whose session is over.
    let daemon = |name: &str| {
        format!(
            "setsid -f sh -c 'echo $$ > {name}; exec sleep 300' </dev/null >/dev/null 2>&1; \
             while ! test -s {name}; do sleep 0.01; done"
        )
    };
    execd.open_until(&format!("{}; echo up; exec sleep 300", daemon("daemon")), "up");
    execd.run_with(&daemon("other"), json!({"tty": true}));
    let daemons: Vec<i32> = ["daemon", "other"]
        .iter()
        .map(|name| std::fs::read_to_string(execd.file(name)).expect("written"))
        .map(|text| text.trim().parse().expect("a pid"))
        .collect();
    execd.signal(libc::SIGKILL);
    execd.wait_exit();
    eventually("the keeper has ended", || !is_alive(keeper));
    for daemon in &daemons {
        assert!(is_alive(*daemon), "{daemon} detached itself on purpose");
    }
    let others = || execd.session_processes().into_iter().filter(|p| !daemons.contains(&p.pid));
    eventually("the others are gone", || others().next().is_none());
    for daemon in daemons {
        send_signal(daemon, libc::SIGKILL);
    }
}

/// With --kill-detached the guard ends what has left a session too, as the session's end does.
/// rule: architecture.md, The keeper: Of a session that is ended as a whole the guard ends what
///   descends from its leader, also what has left by setsid
#[test]
fn with_kill_detached_nobody_survives_who_has_left_his_session() {
    let mut execd = Execd::with(&["--kill-detached"], &[]);
    let cmd = "env -i EXECD_TEST_RUN=\"$EXECD_TEST_RUN\" setsid sleep 4716 >/dev/null 2>&1 & \
               echo up; exec sleep 300";
    execd.open_until(cmd, "up");
    let runs = |execd: &Execd| execd.processes().iter().any(|one| one.command == "sleep 4716");
    eventually("it runs its program", || runs(&execd));
    execd.signal(libc::SIGKILL);
    execd.wait_exit();
    eventually("it was ended", || !runs(&execd));
}

/// As the first process of a pid namespace: whoever writes a number into `wanted` gets a stranger
/// whose session has that number; its leader is gone. When the helpers of execd have ended, says
/// whether the stranger lives.
const HEADLESS_STRANGER: &str = r#"
    mkfifo wanted
    (
        read -r pid < wanted
        made=0
        while test "$made" != "$pid"; do
            echo $((pid - 1)) > /proc/sys/kernel/ns_last_pid
            setsid sh -c 'sleep 300 & echo $! > member' & made=$!
            wait "$made"
            test "$made" = "$pid" || kill -9 "$(cat member)"
        done
        cat member > stranger
    ) &
    "$@"
    while grep -qs sessions- /proc/[0-9]*/comm; do sleep 0.01; done
    kill -0 "$(cat stranger)" && echo lives > after
    exit 0
"#;

/// The guard still had the number of a session that had ended and was listed, somebody else's
/// session got it, and its leader was gone when execd was killed: the guard took its members for
/// execd's.
/// rule: architecture.md, Ending a session: A signal never reaches a stranger and never a reaped
///   pid
#[test]
fn a_stranger_that_got_the_number_of_an_ended_session_is_not_hit() {
    if !may_choose_pids() {
        return;
    }
    let wrapper: Vec<&str> =
        OWN_PIDS.into_iter().chain(["sh", "-c", HEADLESS_STRANGER, "sh"]).collect();
    let mut execd = Setup::behind(&wrapper, &[]).unwatched().start();
    let opened = execd.open_now(&json!({"cmd": "exec sleep 0.2"}));
    let running = |execd: &mut Execd| {
        let list = execd.result("list_sessions", json!({"peek": true}));
        list["sessions"][0]["running"].clone()
    };
    eventually("it has ended, and is listed", || running(&mut execd) == false);
    let wanted = execd.file("wanted");
    std::fs::write(wanted, format!("{}\n", opened["pid"])).expect("it is read");
    let stranger = execd.file("stranger");
    eventually("the stranger has the number", || {
        std::fs::read_to_string(&stranger).is_ok_and(|pid| !pid.is_empty())
    });
    execd.start_request("exec_command", json!({"cmd": "kill -9 $PPID"}));
    assert!(execd.wait_exit().success());
    let after = std::fs::read_to_string(execd.file("after"));
    assert_eq!(after.ok().as_deref(), Some("lives\n"), "the guard killed the stranger");
}

const GUARD: &str = "sessions-guard";
const WRITER: &str = "sessions-log";

fn replace(execd: &Execd, name: &str) {
    let helper = || helper_of(execd.pid(), name);
    eventually("it is there", || helper().is_some());
    let first = helper();
    send_signal(first.expect("it is there"), libc::SIGKILL);
    eventually("there is another", || helper().is_some_and(|now| Some(now) != first));
}

/// A guard or writer that had died a second time was back after up to a minute, and until then a
/// killed execd left all that its leaders had started: in 40 of 40 rounds.
/// rule: architecture.md, The keeper: Guard or log writer gone: restarted at once, less often the
///   younger it dies; a guard is told of all sessions
#[test]
fn a_guard_that_was_killed_again_and_again_knows_all_sessions() {
    let mut execd = Execd::start();
    let mut sids = Vec::new();
    for helper in [GUARD, WRITER, GUARD] {
        let opened = execd.open("trap '' TERM HUP; sleep 300 & echo up; wait");
        sids.push(pid_of(&opened));
        replace(&execd, helper);
    }
    execd.ping();
    execd.signal(libc::SIGKILL);
    execd.wait_exit();
    execd.until_no_session_process();
    eventually("no member is left", || sids.iter().all(|sid| outside::members(*sid).is_empty()));
    eventually("both have ended", || {
        [GUARD, WRITER].iter().all(|name| helper_of(execd.pid(), name).is_none())
    });
}

/// As the first process of a pid namespace: runs execd, and when that was killed, notes how many
/// milliseconds later nothing else was alive, and what was alive 10 s later. A process that has
/// ended counts as gone: nobody reaps it here.
const COUNT_SURVIVORS: &str = r#"
    "$@"
    ended=$(date +%s%N)
    for look in $(seq 1000); do
        left=
        for dir in /proc/[0-9]*; do
            { read -r line < "$dir/stat"; } 2> /dev/null || continue
            case "$line" in "1 "* | *") Z "*) ;; *) left="$left $line," ;; esac
        done
        test -z "$left" && break
        sleep 0.01
    done
    echo "$((($(date +%s%N) - ended) / 1000000))$left" > after
    exit 0
"#;

/// Commands of sessions that do not end by themselves, nor by any signal but SIGKILL.
const STUBBORN: [&str; 2] = [
    "trap '' TERM HUP; sleep 300 & (sleep 301 &) & echo up; wait",
    "set -m; trap '' TERM HUP; sleep 300 & nohup sleep 301 >/dev/null & echo up; wait",
];

/// Has a command of an execd in a pid namespace of its own kill each process that is called execd;
/// gives how long something lived on.
fn kill_by_name(command: &str) -> Duration {
    let wrapper: Vec<&str> =
        OWN_PIDS.into_iter().chain(["sh", "-c", COUNT_SURVIVORS, "sh"]).collect();
    let mut execd = Setup::behind(&wrapper, &[]).unwatched().start();
    for cmd in STUBBORN {
        execd.open_until(cmd, "up");
    }
    execd.start_request("exec_command", json!({"cmd": command}));
    execd.wait_exit();
    let after = std::fs::read_to_string(execd.file("after")).expect("it was written");
    let took = after.trim().parse().unwrap_or_else(|_| panic!("{command}: ms and who: {after}"));
    Duration::from_millis(took)
}

fn kill_with_writer(execd_first: bool) -> Duration {
    let mut execd = Execd::start();
    let writer = execd.keeper();
    let sids = STUBBORN.map(|cmd| pid_of(&execd.open(cmd)));
    let order = if execd_first { [execd.pid(), writer] } else { [writer, execd.pid()] };
    order.iter().for_each(|pid| send_signal(*pid, libc::SIGKILL));
    let killed = Instant::now();
    execd.wait_exit();
    execd.until_no_session_process();
    eventually("no member is left", || sids.iter().all(|sid| outside::members(*sid).is_empty()));
    killed.elapsed()
}

/// The helpers had execd's name in theirs, so `pkill execd` killed them too, and nobody was left to
/// end what the leaders had started.
/// rule: architecture.md, The keeper: `pkill -9 execd` and `killall -9 execd` spare the helpers,
///   and nothing of any session is left
#[test]
fn who_kills_execd_by_name_or_with_its_writer_leaves_nothing() {
    let named = may_choose_pids();
    let kills = (0..2).flat_map(|_| {
        let by_name = ["pkill -9 execd", "killall -9 execd"].into_iter().filter(|_| named);
        by_name.map(kill_by_name).chain([true, false].map(kill_with_writer))
    });
    let took = kills.max().unwrap_or_default();
    assert!(took < SOON, "{took:?}");
}

/// What a command of root's runs as another user was not the guard's business: of 300 rounds 187
/// left somebody.
/// rule: architecture.md, Ending a session: kill -9 of execd ends also members that run as another
///   user, where execd is root
#[test]
fn members_that_became_another_user_do_not_survive_where_execd_is_root() {
    if !is_root() {
        return left_out("only root can run a command as somebody else");
    }
    let mut execd = Execd::start();
    let keeper = execd.keeper();
    let other = "setpriv --reuid 12345 --regid 12345 --clear-groups";
    let cmd = format!(
        "trap '' HUP TERM; {other} sleep 300 & {other} sh -c 'sleep 301; :' & \
         {other} env -i /bin/sleep 302 & wait"
    );
    let opened = execd.open(&cmd);
    let sid = pid_of(&opened);
    let theirs =
        |pid: &i32| outside::status_field(*pid, "Uid").is_some_and(|t| t.starts_with("12345"));
    eventually("all run as somebody else", || {
        outside::members(sid).iter().filter(|pid| theirs(pid)).count() == 4
    });
    kill_and_expect_nothing(&mut execd, keeper);
    eventually("no member is left", || outside::members(sid).is_empty());
}

/// rule: architecture.md, Ending a session: kill -9 of execd: within a moment no member of its
///   sessions is left
#[test]
fn a_program_that_forks_without_end_loses() {
    let mut execd = Execd::start();
    let keeper = execd.keeper();
    // Twenty at a time, each a moment: enough to be forking at whatever moment it is looked at.
    let cmd = "trap '' TERM HUP; f() { while :; do (sleep 0.05; :) & (sleep 0.05; :) & \
               wait; done; }; f & f & f & f & f & echo up; wait";
    let opened = execd.open_until_with(cmd, "up", json!({"shell": "sh"}));
    assert!(opened > 0);
    eventually("it forks", || execd.session_processes().len() > 6);
    kill_and_expect_nothing(&mut execd, keeper);
}
