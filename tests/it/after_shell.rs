//! Output that comes after a shell's end: how long the answer of bash_stream and of bash waits for
//! it, and where what comes later still is told.

use crate::common::data;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::data::Gate;
use crate::common::outside::{Trace, can_trace};
use crate::common::*;
use crate::stream_help::{chunks_of, poll, run, until_printed};
use crate::window_help::{background, done, ended};
use serde_json::{Value, json};

/// Longer than a holder that sleeps is waited for, and much shorter than one that works.
const LONGER_MS: u64 = 150;
const WAITED_FOR_AT_MOST: Duration = Duration::from_secs(2);
/// An answer that waited for nobody, on a machine that is not too busy: tried several times.
const SOON: Duration = Duration::from_millis(1_000);
const TRIES: usize = 4;

fn in_both(execd: &mut Execd, command: &str) -> [u64; 2] {
    let stream = execd.start_request("bash_stream", json!({"command": command, "stream": false}));
    [stream, crate::window_help::begin(execd, command, json!({}))]
}

fn output_of(result: &Value) -> &str {
    let output = result.get("stdout").or_else(|| result.get("output"));
    output.and_then(Value::as_str).unwrap_or_else(|| panic!("no output in {result}"))
}

/// Waits until the shell that wrote its pid into the file has been reaped, and a while longer.
fn until_reaped_for_a_while(execd: &Execd, file: &str) {
    let mut pid = None;
    eventually("the shell has begun", || {
        let text = std::fs::read_to_string(execd.file(file)).unwrap_or_default();
        pid = text.strip_suffix('\n').and_then(|text| text.parse::<i32>().ok());
        pid.is_some()
    });
    let pid = pid.expect("just read");
    eventually("the shell was reaped", || process_state(pid).is_none());
    // This is what is measured: the answer still waits after so long.
    thread::sleep(Duration::from_millis(LONGER_MS));
}

/// What a command does to work, without another process, until there is a file.
fn working_until(file: &str) -> String {
    format!("until [ -e {file} ]; do :; done")
}

/// The interpreter itself: what PATH has may be a script that sleeps before it runs it.
fn python() -> Option<String> {
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let path = asked.ok().filter(|asked| asked.status.success())?.stdout;
    Some(String::from_utf8(path).ok()?.trim().to_owned())
}

/// The quickest answer to the command, of several; the command leaves nothing that ends by itself.
fn quickest(execd: &mut Execd, method: &str, params: &Value) -> Duration {
    let once = |_| {
        let began = now();
        execd.result(method, params.clone());
        began.elapsed()
    };
    (0..TRIES).map(once).min().expect("one of them")
}

// ---- What is waited for -----------------------------------------------------------------

/// The answer went 50 ms after the shell, and the output was lost: of 20 at once in 13, and always
/// where the last of the pipeline takes as long to start as node does.
/// rule: bash-stream.md, The stream family: The shell is gone: while output comes or a holder works
///   the answer waits, 2 s at most; bash too
#[test]
fn the_output_of_process_substitutions_is_in_the_answer() {
    let mut execd = Execd::start();
    let mut commands = vec![
        (10, "seq 20000 > >(sort -n | tail -1)", "20000\n"),
        (10, "seq 3 > >(sed s/^/x/ | tee /dev/null)", "x1\nx2\nx3\n"),
    ];
    if !missing("node") {
        let command = "seq 3 > >(node -e 'process.stdin.pipe(process.stdout)')";
        commands.push((1, command, "1\n2\n3\n"));
    }
    for (times, command, expected) in commands {
        let requests: Vec<u64> = (0..times).flat_map(|_| in_both(&mut execd, command)).collect();
        for request in requests {
            let result = execd.result_of(request);
            assert_eq!(output_of(&result), expected, "{command}: {result}");
            assert_absent(&result, &["late", "backgroundPids", "still_running"]);
        }
    }
}

/// One whose worker talks to it by a socket, as node has it with its children, or by another
/// descriptor than its stdin, as python has it, got an empty answer.
/// rule: bash-stream.md, The stream family: The shell is gone: while output comes or a holder works
///   the answer waits, 2 s at most; bash too
#[test]
fn a_holder_that_works_is_waited_for_and_so_is_who_works_for_one() {
    let work = working_until("go");
    let mut commands = vec![
        format!("echo $$ >FILE; ({work}; echo worked) &"),
        // It has the output nowhere: only a pipe to the one who has it.
        format!("echo $$ >FILE; ({work}; echo worked) 2>/dev/null | cat &"),
        // Another pipe, which nobody has as its stdin; and further processes in between.
        format!(
            "echo $$ >FILE; (read -ru3 x; echo $x) 3< <(exec 2>/dev/null; echo $({work}; \
             echo worked)) &"
        ),
    ];
    if let Some(python) = python() {
        let worker = format!("exec >&0 2>/dev/null; {work}; echo worked");
        commands.push(format!(
            "echo $$ >FILE; {python} -IS -c 'import socket, subprocess
a, b = socket.socketpair()
subprocess.Popen([\"/bin/sh\", \"-c\", \"{worker}\"], stdin=b)
print(a.recv(99).decode(), end=\"\")' &"
        ));
    }
    for command in commands {
        let mut execd = Execd::start();
        let begun = now();
        let requests = ["stream", "window"].map(|file| {
            let command = command.replace("FILE", file);
            if file == "stream" {
                let params = json!({"command": command, "stream": false});
                return execd.start_request("bash_stream", params);
            }
            crate::window_help::begin(&mut execd, &command, json!({}))
        });
        for file in ["stream", "window"] {
            until_reaped_for_a_while(&execd, file);
        }
        go(&execd, "go");
        for request in requests {
            let result = execd.result_of(request);
            // A machine that is so busy that the answer's time was over before the file was there
            // shows that it was waited for no less.
            let waited = begun.elapsed() >= WAITED_FOR_AT_MOST && output_of(&result).is_empty();
            assert!(waited || output_of(&result) == "worked\n", "{command}: {result}");
        }
    }
}

/// On a machine that is too busy a pause may be longer than the one that ends the wait: one try
/// shows that the answer waited.
/// rule: bash-stream.md, The stream family: The shell is gone: while output comes or a holder works
///   the answer waits, 2 s at most; bash too
#[test]
fn output_that_comes_in_short_pauses_is_in_the_answer() {
    let Some(python) = python() else { return };
    let lines = "import time\nfor n in range(12): print(n, flush=True); time.sleep(0.06)";
    let command = format!("{python} -IS -c '{lines}' &");
    let mut execd = Execd::start();
    let whole: String = (0..12).map(|n| format!("{n}\n")).collect();
    for method in ["bash_stream", "bash"] {
        let mut answer = || execd.result(method, json!({"command": command}));
        assert!((0..TRIES).any(|_| output_of(&answer()) == whole), "{method}");
    }
}

/// Who is there for a holder and waits, as the workers of a server do, holds up no answer.
/// rule: bash-stream.md, The stream family: The shell is gone, children hold the output and sleep:
///   answered 50 ms later with backgroundPids
#[test]
fn who_sleeps_or_holds_no_output_is_not_waited_for() {
    let mut execd = Execd::start();
    for command in [
        "sleep 300 & echo up".to_owned(),
        "(sleep 300 | cat | cat; :) & (read -ru3 x; :) 3< <(sleep 300) & echo up".to_owned(),
        format!("(({}) >/dev/null 2>&1; echo end) & echo up", working_until("never")),
    ] {
        for method in ["bash_stream", "bash"] {
            let took = quickest(&mut execd, method, &json!({"command": command}));
            assert!(took < SOON, "{method} {command}: {took:?}");
        }
    }
}

/// unified-exec tells no end then: its session goes on, and so does its output.
/// rule: bash-stream.md, The stream family: exec_command does not wait for a holder that works
#[test]
fn exec_command_answers_soon_although_a_holder_works() {
    let mut execd = Execd::start();
    let command = format!("{} & exit 3", working_until("never"));
    let took = quickest(&mut execd, "exec_command", &json!({"cmd": command}));
    assert!(took < SOON, "{took:?}");
}

/// rule: bash-stream.md, The stream family: The shell is gone: while output comes or a holder works
///   the answer waits, 2 s at most; bash too
#[test]
fn nobody_is_waited_for_longer_than_two_seconds() {
    let mut execd = Execd::start();
    let began: Instant = now();
    let requests = in_both(&mut execd, "while echo more; do sleep 0.02; done & exit 3");
    for request in requests {
        let result = execd.result_of(request);
        assert_eq!(result["status"], "failed");
        assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    }
}

/// A poll that is to kill what runs on had no time of its own any more once the command had ended:
/// it was answered 2 s after that, and never while the log stood still.
/// rule: bash-stream.md, The stream family: killIf always; timeout when this poll's wait is over
#[test]
fn a_poll_that_is_to_kill_waits_for_no_holder_longer_than_it_was_told() {
    // Shell, sleeps till it may, leaves one behind that works or writes; the poll comes then.
    let polled = |holder: &str, stalled: bool| {
        let mut execd = Execd::start();
        crate::stream_help::open(
            &mut execd,
            &format!("read x; echo $$ >pid; ({holder}) & echo hi"),
        );
        let info = execd.result("server_info", json!({}));
        let keeper = info["keeper_pid"].as_i64().and_then(|pid| pid.try_into().ok());
        let _stopped = stalled.then(|| data::Stopped::new(keeper.expect("a keeper")));
        execd.result("write_stdin", json!({"sessionId": 1, "data": "\n"}));
        until_reaped_for_a_while(&execd, "pid");
        let began = now();
        let params = json!({"killIf": "timeout", "waitMs": 1});
        let result = crate::stream_help::poll_with(&mut execd, 1, params);
        assert_eq!((&result["status"], &result["exitCode"]), (&json!("completed"), &json!(0)));
        let left = result["backgroundPids"].as_array().map_or(0, Vec::len);
        assert!(left > 0, "it says who goes on, and kills nobody: {result}");
        began.elapsed()
    };
    polled("yes", true);
    let took = (0..TRIES).map(|_| polled(&working_until("never"), false)).min();
    assert!(took < Some(SOON), "{took:?}");
}

/// The answer said that the command was aborted, beside its exit code 0.
/// rule: bash.md, bash and tmux: The shell is gone and execd ends meanwhile: the command had ended,
///   and was not aborted
#[test]
fn the_end_of_execd_does_not_abort_a_command_that_has_ended() {
    let mut execd = Execd::start();
    let command = format!("echo $$ >pid; echo done; ({}) &", working_until("never"));
    let request = crate::window_help::begin(&mut execd, &command, json!({}));
    until_reaped_for_a_while(&execd, "pid");
    execd.send_raw(b"{\"method\":\"shutdown\"}\n");
    let result = execd.result_of(request);
    assert_eq!((&result["status"], &result["exit_code"]), (&json!("completed"), &json!(0)));
    assert_eq!((done(&result), output_of(&result)), ("done\n", "done\n"), "nobody goes on");
}

/// The looks end with the answer: what holds the output on costs nothing.
/// rule: bash-stream.md, The stream family: Once the answer is out, nobody looks for holders any
///   more
#[test]
fn a_held_output_costs_no_call_once_the_answer_is_out() {
    if !can_trace() {
        eprintln!("skipped: strace may not attach here");
        return;
    }
    let mut execd = Execd::start();
    for request in in_both(&mut execd, "sleep 300 & echo up") {
        assert_eq!(output_of(&execd.result_of(request)), "up\n");
    }
    let trace = Trace::attach(execd.pid(), &[]);
    let mut before = trace.so_far();
    // A timer that was armed for something that came earlier fires once.
    eventually("nothing is left to do", || {
        thread::sleep(Duration::from_millis(300));
        std::mem::replace(&mut before, trace.so_far()) == before
    });
}

// ---- What comes later -------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: What comes later still is told by later polls and
///   pages, with `late: true`
#[test]
fn what_comes_later_is_told_by_polls_and_pages_and_remembered() {
    let mut execd = Execd::start();
    let (first, second) = (Gate::new(&execd, "first"), Gate::new(&execd, "second"));
    let holder = format!("{}; echo later; echo err >&2; {}", first.wait(), second.wait());
    let result = run(&mut execd, &format!("({holder}) & echo early"));
    assert_eq!((&result["stdout"], &result["late"]), (&json!("early\n"), &Value::Null));
    let page = |execd: &mut Execd, more: Value| {
        execd.result("get_process_log", merged(json!({"sessionId": 1}), more))
    };
    assert_absent(&page(&mut execd, json!({})), &["late"]);
    assert_absent(&poll(&mut execd, 1), &["late"]);
    first.open();
    until_printed(&result, "later\n");
    until_printed(&result, "err\n");
    let told = |execd: &mut Execd| {
        let polled = poll(execd, 1);
        assert_eq!((&polled["status"], &polled["exitCode"]), (&json!("completed"), &json!(0)));
        assert_eq!(
            (&polled["stdout"], &polled["stderr"]),
            (&json!("early\nlater\n"), &json!("err\n"))
        );
        assert!(polled["aggregated"].as_str().expect("a text").starts_with("early\n"), "{polled}");
        assert_eq!((&polled["late"], &polled["logPath"]), (&json!(true), &result["logPath"]));
        let whole = page(execd, json!({}));
        assert_eq!((&whole["late"], &whole["totalBytes"]), (&json!(true), &json!(16)), "{whole}");
        assert_absent(&page(execd, json!({"limit": 6})), &["late"]);
    };
    told(&mut execd);
    assert_eq!(chunks_of(&mut execd, 1_001).len(), 1, "no chunk after the reply");
    second.open();
    execd.notification("session_exited", |_| true);
    told(&mut execd);
}

/// The document said that nothing comes later on a terminal.
/// rule: bash-stream.md, The stream family: On a terminal who does not ignore SIGHUP ends with the
///   shell, others go on
#[test]
fn on_a_terminal_who_ignores_hangups_goes_on_and_all_others_end_with_the_shell() {
    let mut execd = Execd::start();
    let gate = Gate::new(&execd, "gate");
    let terminal = json!({"stdinMode": "pty"});
    let command = format!("sleep 300 & echo $!; trap '' HUP; ({}; echo later) &", gate.wait());
    let result = crate::stream_help::run_with(&mut execd, &command, terminal);
    let sleeper: i32 = output_of(&result).trim().parse().expect("a pid");
    eventually("the kernel has ended it", || !is_alive(sleeper));
    gate.open();
    until_printed(&result, "later\r\n");
    let polled = poll(&mut execd, 1);
    assert_eq!((&polled["status"], &polled["late"]), (&json!("completed"), &json!(true)));
    assert!(output_of(&polled).ends_with("\nlater\n"), "{polled}");
}

/// rule: bash.md, bash and tmux: The end of a background window waits for what its children are
///   about to write, too
#[test]
fn the_end_of_a_background_window_waits_for_its_output_too() {
    let mut execd = Execd::start();
    let command = format!("echo $$ >pid; ({}; echo worked) &", working_until("go"));
    let window = background(&mut execd, &command);
    until_reaped_for_a_while(&execd, "pid");
    assert!(execd.notified("window_exited").is_empty(), "it would lack output");
    go(&execd, "go");
    let note = ended(&mut execd, &window);
    assert_eq!(note["tail"], "worked\n");
    assert_absent(&note, &["still_running"]);
}
