//! What a session is doing: the states of programs on terminals and on pipes, as replies and lists
//! tell them. Programs that are not installed here are skipped, and named.
//!
//! `EXECD_STATE_RUNS=N` runs each program N times, beside processes that keep all processors busy.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

use crate::common::wire::Wire;
use crate::common::*;
use serde_json::{Value, json};

const LINE: &str = "waiting_for_line";
const KEY: &str = "waiting_for_key";
const PASSWORD: &str = "waiting_for_password";
const RUNNING: &str = "running";
/// It waits for a key, and has taken the whole screen.
const SCREEN: &str = "full_screen";

/// How long a program may take to come to its state, on however busy a machine.
const COMES_WITHIN: Duration = Duration::from_secs(60);
/// How long a program that never waits is looked at.
const WATCHED_FOR: Duration = Duration::from_millis(700);
/// Runs of each program in the normal suite.
const RUNS: usize = 1;

/// What a program needs, its command, what it does, and who waits.
type Program = (&'static str, &'static str, &'static str, &'static str);

const ON_TERMINALS: &[Program] = &[
    ("cat", "cat", LINE, "cat"),
    ("bash", "read -p 'Continue? [Y/n] ' x", LINE, "bash"),
    ("bash", "read -s -p Password: x", PASSWORD, "bash"),
    ("python3", "python3 -q", KEY, "python3"),
    ("node", "node", KEY, "node"),
    ("sqlite3", "sqlite3", KEY, "sqlite3"),
    ("less", "less /etc/passwd", SCREEN, "less"),
    ("vim.tiny", "vim.tiny -u NONE a-file", SCREEN, "vim.tiny"),
    ("vim", "vim -u NONE a-file", SCREEN, "vim"),
    ("whiptail", "whiptail --yesno hi 8 40", SCREEN, "whiptail"),
    ("fzf", "fzf </etc/passwd", KEY, "fzf"),
    ("bc", "bc -q", KEY, "bc"),
    ("zsh", "zsh -f", KEY, "zsh"),
    ("bash", "bash --norc -i", KEY, "bash"),
    ("python3", "python3 -c 'input(\"name? \")'", LINE, "python3"),
    ("make", "make -f /dev/null; (sleep 0.1; cat) | cat", LINE, "cat"),
    ("ssh-keygen", "ssh-keygen -f a-key", PASSWORD, "ssh-keygen"),
    ("htop", "htop", SCREEN, "htop"),
    ("gdb", "gdb -q -nx", KEY, "gdb"),
    ("python3", "python3 -c 'import getpass; getpass.getpass()'", PASSWORD, "python3"),
    ("openssl", "openssl passwd", PASSWORD, "openssl"),
    ("top", "top", KEY, "top"),
    (
        "python3",
        "python3 -c 'import threading as t, time
t.Thread(target=time.sleep, args=(60,), daemon=True).start(); input()'",
        LINE,
        "python3",
    ),
    ("sleep", "sleep 50", RUNNING, ""),
    ("sleep", "sleep 50 & wait", RUNNING, ""),
    ("bash", "while :; do :; done", RUNNING, ""),
    ("python3", "python3 -m http.server 0 --bind 127.0.0.1", RUNNING, ""),
    ("bash", "yes n | (sleep 1; read x; sleep 30)", RUNNING, ""),
    ("tail", "tail -f /etc/passwd", RUNNING, ""),
    ("mkfifo", "mkfifo f.$$; cat f.$$", RUNNING, ""),
    ("bash", "sleep 40 | cat", RUNNING, ""),
    ("git", "git commit; sleep 40", RUNNING, ""),
];

const ON_PIPES: &[Program] = &[
    ("cat", "cat", LINE, "cat"),
    ("grep", "grep needle", LINE, "grep"),
    ("python3", "python3 -c 'input()'", LINE, "python3"),
    ("cat", "sleep 0.2; cat | cat", LINE, "cat"),
    ("node", "node -e 'process.stdin.on(\"data\", () => {})'", LINE, "node"),
    ("sleep", "sleep 50", RUNNING, ""),
    ("bash", "cat </dev/zero >/dev/null", RUNNING, ""),
    ("python3", "python3 -m http.server 0 --bind 127.0.0.1", RUNNING, ""),
];

/// Whether a program is on the PATH; says so where it is not.
fn is_here(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let here = std::env::split_paths(&path).any(|dir| Path::new(&dir).join(name).exists());
    if !here {
        eprintln!("{name} is not installed: its state is not tested here");
    }
    here
}

/// Whether the row of a program tells the state that is right; a wrong one fails the test.
/// Late is allowed: a program may run before it waits.
fn is_right(program: &Program, row: &Value, tty: bool) -> bool {
    let (_, cmd, state, who) = *program;
    let full_screen = state == SCREEN;
    let state = if full_screen { KEY } else { state };
    assert_eq!(row["running"], true, "{cmd}: {row}");
    if row["state"].is_null() {
        // The list had no time for a second look.
        return false;
    }
    if row["state"] == RUNNING {
        assert_absent(row, &["state_detail"]);
        return state == RUNNING;
    }
    assert_eq!(row["state"], state, "{cmd}: {row}");
    let detail = &row["state_detail"];
    assert_eq!(detail["command"], who, "{cmd}: {row}");
    assert_eq!(detail["fd"], if tty { "tty" } else { "stdin" }, "{cmd}: {row}");
    assert!(detail["pid"].as_i64().expect("a pid") > 0 && detail["since_ms"].is_u64(), "{row}");
    // Whether a program takes the other screen may depend on its version.
    let on = row.get("full_screen").is_some();
    assert!(on || !full_screen, "{cmd}: {row}");
    assert!(!on || state == KEY, "{cmd}: {row}");
    true
}

/// Runs programs side by side and holds every state that is told of them against the right one,
/// until each was told, and for a while of those that only run.
fn check(programs: &[&Program], tty: bool) {
    let mut execd = Execd::with(&[], &[("TERM", "xterm"), ("HISTFILE", "/dev/null")]);
    let requests: Vec<u64> = programs
        .iter()
        .map(|one| {
            let params = json!({"cmd": one.1, "tty": tty, "yield_time_ms": 250});
            execd.start_request("exec_command", params)
        })
        .collect();
    let sessions: Vec<u64> =
        requests.into_iter().map(|request| session_of(&execd.result_of(request))).collect();
    let began = Instant::now();
    let mut right = vec![false; programs.len()];
    while !right.iter().all(|one| *one) || began.elapsed() < WATCHED_FOR {
        let list = execd.result("list_sessions", json!({"peek": true}));
        let rows = list["sessions"].as_array().expect("an array");
        for (at, program) in programs.iter().enumerate() {
            let row = rows.iter().find(|row| row["session_id"] == sessions[at]);
            let row = row.unwrap_or_else(|| panic!("{} in {list}", program.1));
            right[at] |= is_right(program, row, tty);
            assert!(right[at] || began.elapsed() < COMES_WITHIN, "{}: {row}", program.1);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Processes that keep the machine's processors busy, while they are held.
struct Load(Vec<Child>);

impl Load {
    /// So many busy processes.
    fn of(count: usize) -> Self {
        let busy = || {
            let mut loops = Command::new("bash");
            loops.args(["-c", "while :; do :; done"]).spawn().expect("bash")
        };
        Self((0..count).map(|_| busy()).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn check_all(programs: &[Program], tty: bool) {
    let asked: Option<usize> = std::env::var("EXECD_STATE_RUNS").ok().and_then(|n| n.parse().ok());
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let _load = asked.map(|_| Load::of(processors * 2));
    let here: Vec<&Program> = programs.iter().filter(|one| is_here(one.0)).collect();
    for _ in 0..asked.unwrap_or(RUNS) {
        check(&here, tty);
    }
}

/// rule: waits.md, State: a process waits for input
#[test]
fn the_state_of_programs_on_terminals() {
    check_all(ON_TERMINALS, true);
}

#[test]
fn the_state_of_programs_on_pipes() {
    check_all(ON_PIPES, false);
}

/// Runs a command that is answered when nothing but input can move it on, and gives the answer.
fn answered(execd: &mut Execd, cmd: &str, tty: bool, yield_time_ms: u64) -> Value {
    let params = json!({
        "cmd": cmd, "tty": tty, "yield_time_ms": yield_time_ms, "on_impossible": "answer",
    });
    execd.result("exec_command", params)
}

/// rule: waits.md, Impossible: This holds for every wait, also without `until`
/// rule: waits.md, State: Every reply about a session that still runs has `state`
#[test]
fn a_wait_that_only_input_can_end_is_answered() {
    let mut execd = Execd::start();
    let table = [
        ("grep needle", false, "grep waits for a line on stdin"),
        ("cat | cat", false, "cat waits for a line on stdin"),
        ("sleep 0.3; read x", false, "bash waits for a line on stdin"),
        ("read -s x", true, "bash waits for a password on its terminal"),
        // Room in a pipe that only it has can't come either.
        (
            "python3 -c 'import os, select; r, w = os.pipe(); os.write(w, bytes(65536))
select.select([0], [w], [])'",
            false,
            "python3 waits for a line on stdin",
        ),
        ("python3 -q", true, "python3 waits for a key on its terminal"),
        ("cat", false, "cat waits for a line on stdin"),
    ];
    for (cmd, tty, why) in table {
        let reply = answered(&mut execd, cmd, tty, 30_000);
        let why = format!("{why}; nothing else runs");
        assert_eq!(reply["wait"]["outcome"], "impossible", "{reply}");
        assert_eq!(reply["wait"]["why"], why.as_str(), "{reply}");
        let note = reply["note"].as_str().expect("a note");
        // No model is to make up a password, or to have one in its conversation.
        let what = match reply["state"] == PASSWORD {
            true => "do without it (a key, an askpass program, sudo -n), or ask for another way",
            false => "write to it",
        };
        assert!(note.starts_with(&format!("{why}: {what}")), "{reply}");
        assert_eq!(reply["wait_status"], "condition_met", "{reply}");
        assert!(reply["state"].as_str().expect("a state").starts_with("waiting_for_"), "{reply}");
    }
    // Each later wait is answered too.
    let why = "cat waits for a line on stdin; nothing else runs";
    for more in [json!({}), json!({"until": {"text": "x"}}), json!({})] {
        let reply = execd.write(merged(json!({"session_id": 7, "yield_time_ms": 30_000}), more));
        assert_eq!(reply["wait"]["why"], why, "{reply}");
    }
}

/// rule: waits.md, What it costs: then every 500 ms
#[test]
fn a_program_that_reads_once_it_has_slept_is_answered_then() {
    if !is_here("python3") {
        return;
    }
    let mut execd = Execd::with(&["--kill-detached"], &[]);
    let python = |sleep: &str| {
        let code = format!("import select, threading, time; {sleep}; input()");
        (format!("exec python3 -c '{code}'"), "python3")
    };
    let table = [
        python("time.sleep(2)"),
        python("select.select([], [], [], 2)"),
        python("select.poll().poll(2000)"),
        python("select.epoll().poll(2)"),
        python("threading.Event().wait(2)"),
        python("[time.sleep(0.3) for _ in range(7)]"),
        ("setsid -f sleep 2; cat".to_owned(), "cat"),
    ];
    // They sleep side by side, and the look that makes up for what nobody has told is far away.
    let requests: Vec<(u64, &String, &str)> = table
        .iter()
        .map(|(cmd, who)| {
            let params = json!({"cmd": cmd, "yield_time_ms": 30_000, "on_impossible": "answer"});
            (execd.start_request("exec_command", params), cmd, *who)
        })
        .collect();
    for (request, cmd, who) in requests {
        let reply = execd.result_of(request);
        let why = format!("{who} waits for a line on stdin; nothing else runs");
        assert_eq!(reply["wait"]["why"], why.as_str(), "{cmd}: {reply}");
    }
}

/// rule: waits.md, Impossible: a pipe within the session
#[test]
fn a_manual_in_its_pager_waits_for_a_key() {
    if !is_here("man") || !is_here("nroff") || !is_here("less") {
        return;
    }
    let mut execd = Execd::with(&[], &[("TERM", "xterm"), ("PAGER", "less")]);
    // Its text is more than pipes hold: all who make it wait for the pager.
    let cmd = "{ echo .TH A 1; seq 100000; } >a.1; man -l ./a.1";
    let reply = answered(&mut execd, cmd, true, 30_000);
    assert_eq!(reply["wait"]["outcome"], "impossible", "{reply}");
    assert_eq!(reply["state"], KEY, "{reply}");
}

/// rule: waits.md, Impossible: A timer that a program has set passes first
#[test]
fn a_program_that_has_set_itself_a_timer_is_answered_when_it_has_passed() {
    if !is_here("node") {
        return;
    }
    let mut execd = Execd::start();
    let reply = answered(&mut execd, "node", true, 30_000);
    let why = "node waits for a key on its terminal; nothing else runs";
    assert_eq!(reply["wait"]["why"], why, "{reply}");
}

/// rule: waits.md, Impossible: A session that computes, sleeps, polls or serves is never answered
///   so
#[test]
fn a_wait_that_something_else_can_end_goes_on() {
    let mut execd = Execd::with(&["--kill-detached"], &[]);
    let table = [
        ("sleep 30", false),
        ("timeout 30 cat", false),
        ("sleep 30 & cat", false),
        ("setsid sleep 30 & read x", false),
        ("while :; do :; done", false),
        ("sleep 30 | cat", false),
        ("stty -icanon min 0 time 250; head -c1", true),
        ("python3 -m http.server 0 --bind 127.0.0.1", false),
        ("read -t 30 x", true),
        ("exec python3 -c 'import time\nwhile True: time.sleep(0.1)'", false),
        ("exec python3 -c 'import select; select.select([0], [], [], 30)'", false),
        ("yes n | (sleep 30; read x)", false),
    ];
    let start = |execd: &mut Execd, cmd: &str, tty: bool, on_impossible: &str| {
        let params = json!({"cmd": cmd, "tty": tty, "yield_time_ms": 2_000,
            "on_impossible": on_impossible});
        execd.start_request("exec_command", params)
    };
    let mut requests = table.map(|(cmd, tty)| start(&mut execd, cmd, tty, "answer")).to_vec();
    requests.push(start(&mut execd, "cat", false, "wait"));
    for (request, (cmd, _)) in requests.into_iter().zip(table.into_iter().chain([("cat", false)])) {
        let reply = execd.result_of(request);
        assert_eq!(reply["wait_status"], "deadline_reached", "{cmd}: {reply}");
        assert_absent(&reply, &["wait"]);
    }
    // A SIGKILL would leave what setsid took away.
    execd.close_stdin();
    assert_eq!(execd.exit_code(), Some(0));
}

/// A `stop` that could not come true ended a wait for the exit as impossible, while the command
/// was at work.
/// rule: waits.md, Impossible: A `stop` that can't come true ends no wait
#[test]
fn a_stop_that_can_not_come_true_ends_no_wait() {
    let mut execd = Execd::start();
    let built = json!({"cmd": "sleep 0.3; echo built", "stdin": "null", "stop": {"input": true},
        "yield_time_ms": 60_000});
    let reply = execd.exec(built);
    assert_eq!(reply["wait"]["outcome"], "exited", "{reply}");
    assert_eq!(reply["output"], "built\n", "{reply}");
    let until = json!({"cmd": "sleep 600", "stdin": "null", "until": {"input": true},
        "stop": {"text": "error"}, "yield_time_ms": 60_000});
    let reply = execd.exec(until);
    assert_eq!(reply["wait"]["outcome"], "impossible", "{reply}");
}

/// rule: waits.md, Impossible: nobody is attached to the session
/// rule: waits.md, State: its processes are stopped (Ctrl-Z)
#[test]
fn who_is_attached_may_give_input_and_what_is_stopped_may_go_on() {
    let mut execd = Execd::start();
    let attached = [("exec cat", false), ("read -r x", true)].map(|(cmd, tty)| {
        let session = session_of(&execd.open_with(cmd, json!({"tty": tty})));
        let mut viewer = Wire::connect(&execd.socket());
        viewer.result("attach_session", json!({"session_id": session}));
        (session, viewer)
    });
    let stopped = [false, true].map(|tty| {
        let opened = execd.open_with("kill -STOP $$; read -r x", json!({"tty": tty}));
        let pid = pid_of(&opened);
        eventually("it is stopped", || process_state(pid) == Some('T'));
        (session_of(&opened), pid)
    });
    for (session, _) in stopped {
        let row = execd.listed(session).expect("a row");
        assert_eq!(row["state"], "stopped", "{row}");
        assert_absent(&row, &["state_detail"]);
    }
    // Looks that agree put a session to rest for a minute: a viewer who leaves ends that rest.
    let sessions = [attached[0].0, attached[1].0, stopped[0].0, stopped[1].0];
    let mut poll = |ms: u64| {
        let of = |session: u64| json!({"session_id": session, "yield_time_ms": ms});
        sessions.map(|session| execd.start_request("write_stdin", of(session)))
    };
    let (long, short) = (poll(50_000), poll(5_000));
    for (at, request) in short.into_iter().enumerate() {
        let reply = execd.result_of(request);
        assert_eq!(reply["wait_status"], "deadline_reached", "{reply}");
        assert!(at < 2 || reply["state"] == "stopped", "{reply}");
        execd.no_reply_yet(long[at]);
    }
    for (session, mut viewer) in attached {
        viewer.result("detach_session", json!({"session_id": session}));
    }
    for (_, pid) in stopped {
        send_signal(pid, libc::SIGCONT);
    }
    for request in long {
        let reply = execd.result_of(request);
        assert_eq!(reply["wait"]["outcome"], "impossible", "{reply}");
        assert_eq!(reply["state"], LINE, "{reply}");
    }
}

/// rule: waits.md, Impossible: all input that was sent has been taken
#[test]
fn input_that_was_not_taken_may_still_move_a_session() {
    if !is_here("python3") {
        return;
    }
    let mut execd = Execd::start();
    // It is told of input once, and takes none of it.
    let cmd = "exec python3 -c 'import select; one = select.epoll()
one.register(0, select.EPOLLIN | select.EPOLLET); one.poll(); print(\"told\", flush=True)
one.poll(); one.poll()'";
    let reply = answered(&mut execd, cmd, false, 30_000);
    assert_eq!(reply["wait"]["outcome"], "impossible", "{reply}");
    let session = session_of(&reply);
    let params = json!({"session_id": session, "chars": "x\n", "yield_time_ms": 50_000,
                        "until": {"text": "told"}});
    assert_eq!(execd.write(params)["wait"]["outcome"], "matched");
    let reply = execd.write(json!({"session_id": session, "yield_time_ms": 5_000}));
    assert_absent(&reply, &["wait"]);
    assert_eq!(reply["wait_status"], "deadline_reached", "{reply}");
}

/// rule: waits.md, What it costs: once output is quiet
#[test]
fn who_waits_for_input_is_told_also_where_looks_have_settled() {
    let mut execd = Execd::with(&["--kill-detached"], &[]);
    let reply = answered(&mut execd, "sleep 60 & exec cat", false, 1_000);
    assert_eq!(reply["wait_status"], "deadline_reached", "{reply}");
    let params = json!({"session_id": 1, "yield_time_ms": 30_000, "until": {"input": true}});
    assert_eq!(execd.write(params)["wait"]["by"], "input");
}

/// rule: waits.md, State: An answer at the end of its time comes at once, with what was seen just
///   before
#[test]
fn an_answer_at_a_time_of_the_wall_clock_tells_who_waits() {
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    let id = session_of(&execd.open("exec cat"));
    eventually("the answer tells that somebody waits", || {
        let stamp = utc_stamp(SystemTime::now() + Duration::from_secs(2));
        let params = json!({"session_id": id, "chars": "", "yield_until": stamp});
        let poll = execd.start_request("write_stdin", params);
        // Input that nobody waits for makes what was seen before worth nothing.
        let params = json!({"session_id": id, "chars": "x\n"});
        let input = json!({"jsonrpc": "2.0", "method": "write_stdin", "params": params});
        execd.send_raw(format!("{input}\n").as_bytes());
        let reply = execd.result_of(poll);
        assert_eq!(reply["wait_status"], "absolute_deadline_reached", "{reply}");
        assert_eq!(output(&reply), "x\n", "{reply}");
        reply["state"] == LINE
    });
}

/// rule: waits.md, State: A list looks at all of its sessions
#[test]
fn the_first_list_knows_who_waits() {
    let mut execd = Execd::start();
    for peek in [true, false] {
        let reply = execd.exec(json!({"cmd": "echo $$; exec cat", "until": {"regex": "^[0-9]+$"},
            "on_impossible": "wait", "yield_time_ms": 30_000}));
        let pid = output(&reply).trim().to_owned();
        // cat reads already when the first list asks; who waits for the session has looked once.
        eventually("cat reads", || {
            let of =
                |what| std::fs::read_to_string(format!("/proc/{pid}/{what}")).unwrap_or_default();
            let call = of("syscall");
            // read(0, …), by its number on either architecture.
            of("comm") == "cat\n" && (call.starts_with("0 0x0 ") || call.starts_with("63 0x0 "))
        });
        let list = execd.result("list_sessions", json!({"peek": peek}));
        let row = list["sessions"].as_array().and_then(|rows| rows.last()).expect("a row");
        assert_eq!(row["state"], LINE, "{list}");
        assert_eq!(row["state_detail"]["command"], "cat", "{list}");
    }
}

/// Starts `count` programs that wait for a line, and asks for lists beside a busy processor until
/// they have told the state of `enough` of them. Once a state was told, no list says anything else.
fn lists_tell_who_waits(count: usize, enough: usize) {
    let _load = Load::of(1);
    let most = count.to_string();
    let mut execd = Execd::with(&["--max-sessions", &most, "--on-impossible", "wait"], &[]);
    execd.open_all(&vec!["exec cat"; count]);
    for (method, rows) in [("list_sessions", "sessions"), ("list_processes", "processes")] {
        let mut told = BTreeSet::new();
        eventually("the lists tell who waits", || {
            let list = execd.result(method, json!({}));
            let rows = list[rows].as_array().expect("an array");
            assert_eq!(rows.len(), count);
            for row in rows {
                let id = row.get("session_id").or_else(|| row.get("sessionId"));
                let id = id.and_then(Value::as_u64).expect("an id");
                if row["state"] == LINE {
                    told.insert(id);
                } else if told.contains(&id) {
                    assert_absent(row, &["state", "state_detail", "stateDetail"]);
                }
            }
            told.len() >= enough
        });
    }
}

/// Lists said of 16 to 22 of 40 programs that waited that they run.
#[test]
fn lists_of_64_and_of_512_sessions_tell_who_waits_and_nothing_wrong() {
    lists_tell_who_waits(64, 64);
    // A list has 250 ms: what it had no time for has no state.
    lists_tell_who_waits(512, 128);
}
