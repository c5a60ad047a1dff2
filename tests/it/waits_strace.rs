//! What a wait costs while nothing comes, in system calls of execd: none for text, for a regex and
//! for an exit; for a port, for input and for silence a number that is counted and has a bound. A
//! wait that may end as impossible costs as much as one for input. docs/performance.md has the
//! bounds of a second.

use std::thread;
use std::time::{Duration, Instant};

use crate::common::outside::{Trace, can_trace};
use crate::common::{Execd, PATIENCE, session_of};
use serde_json::{Value, json};

/// How long a wait is watched: this is what is measured, not a hope.
const WATCHED: Duration = Duration::from_secs(4);
/// A time without a call after which the looks of a wait's beginning are over, and a clock has
/// fired that is armed for nobody.
const QUIET: Duration = Duration::from_millis(1_200);
/// What a wait is made on: it neither waits for input nor uses a processor.
const SLEEPER: &str = "exec sleep 1000";

/// The name of a wait, what it waits for, and the calls that it may cost in [`WATCHED`].
type Cost = (&'static str, fn() -> Value, u64);

/// Waits that are told by what comes: nothing is looked at while nothing comes, unless the wait may
/// end as impossible.
const FREE: [Cost; 5] = [
    ("exit", || json!({}), 0),
    ("text", || json!({"until": {"text": "never"}}), 0),
    ("regex", || json!({"until": {"regex": "nev(er)?$"}, "stop": {"regex": "(?i)error"}}), 0),
    ("count", || json!({"until": {"text": ["never", "no"], "count": 3}}), 0),
    ("tree_exit", || json!({"until": {"tree_exit": true}}), 0),
];

/// Waits that have to be looked at: how many calls all their looks in [`WATCHED`] may take.
const COUNTED: [Cost; 5] = [
    // A look behind each twentieth of the wait, of some 25 calls.
    ("port", || json!({"until": {"port": 1}}), 1_400),
    ("input", || json!({"until": {"input": true}}), 400),
    ("impossible", || json!({"on_impossible": "answer"}), 400),
    ("idle_ms", || json!({"until": {"idle_ms": 600_000}}), 20),
    ("idle_ms and idle_cpu", || json!({"until": {"idle_ms": 600_000, "idle_cpu": true}}), 0),
];

/// The lines of a trace that are system calls: not signals, not what a debug build asks before each
/// close.
fn calls(trace: &str) -> u64 {
    let call = |line: &&str| line.contains('(') && !line.contains(", F_GETFD");
    trace.lines().filter(call).count() as u64
}

/// Waits until no call has been made for [`QUIET`].
fn until_quiet(trace: &Trace) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let before = trace.so_far();
        thread::sleep(QUIET);
        if trace.so_far() == before {
            return before;
        }
        assert!(Instant::now() < deadline, "never quiet:\n{}", tail(&before));
    }
}

fn tail(trace: &str) -> String {
    let lines: Vec<&str> = trace.lines().collect();
    lines[lines.len().saturating_sub(80)..].join("\n")
}

/// Begins a wait on a session of its own.
fn wait(execd: &mut Execd, cmd: &str, condition: &Value) -> u64 {
    let session = session_of(&execd.open_with(cmd, json!({"on_impossible": "wait"})));
    let mut params = json!({"session_id": session, "yield_time_ms": 600_000});
    params.as_object_mut().expect("params").extend(condition.as_object().expect("params").clone());
    execd.start_request("write_stdin", params)
}

/// rule: waits.md, What it costs: A wait on an exit, text, a regex or a count makes no system call
///   while nothing comes, after the first looks
#[test]
fn a_wait_on_text_a_regex_or_an_exit_makes_no_call_while_nothing_comes() {
    if !can_trace() {
        return;
    }
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    let waits: Vec<u64> =
        FREE.iter().map(|(_, condition, _)| wait(&mut execd, SLEEPER, &condition())).collect();
    let trace = Trace::attach(execd.pid(), &["-e", "trace=all", "-e", "signal=none"]);
    execd.ping();
    let before = until_quiet(&trace);
    thread::sleep(WATCHED);
    let after = trace.so_far();
    assert_eq!(&after[before.len()..], "", "calls while nothing came");
    for wait in waits {
        execd.no_reply_yet(wait);
    }
}

/// rule: waits.md, What it costs: A wait on a port, on input or on silence makes a bounded number
///   of system calls while nothing comes
#[test]
fn a_wait_that_has_to_look_makes_a_counted_number_of_calls() {
    if !can_trace() {
        return;
    }
    let mut all = Vec::new();
    for (name, condition, most) in COUNTED {
        let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
        let request = wait(&mut execd, SLEEPER, &condition());
        let trace = Trace::attach(execd.pid(), &["-e", "trace=all", "-e", "signal=none"]);
        execd.ping();
        all.push((name, most, execd, request, trace));
    }
    // The looks of its beginning are over, and those that go on have their longest pause.
    thread::sleep(QUIET);
    let before: Vec<String> = all.iter().map(|(.., trace)| trace.so_far()).collect();
    thread::sleep(WATCHED);
    for ((name, most, mut execd, request, trace), before) in all.into_iter().zip(before) {
        let after = trace.so_far();
        let made = calls(&after[before.len()..]);
        eprintln!("{name}: {made} calls in {WATCHED:?}, at most {most}");
        assert!(made <= most, "{name}: {made} calls, at most {most}:\n{}", tail(&after));
        execd.no_reply_yet(request);
    }
}
