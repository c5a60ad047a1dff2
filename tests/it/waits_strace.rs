//! What a wait costs while nothing comes, in system calls of execd: for a port, for input and for
//! silence a number that is counted and has a bound; none for text, for a regex and for an exit
//! (tests/it/idle.rs). A wait that may end as impossible costs as much as one for input.
//! docs/performance.md has the bounds of a second.

use std::thread;
use std::time::Duration;

use crate::common::outside::{Trace, can_trace};
use crate::common::{Execd, merged, session_of};
use serde_json::json;

/// How long a wait is watched: this is what is measured, not a hope.
const WATCHED: Duration = Duration::from_secs(4);
/// A time without a call after which the looks of a wait's beginning are over, and a clock has
/// fired that is armed for nobody.
const QUIET: Duration = Duration::from_millis(1_200);
/// The lines of a trace that are system calls: not signals, not what a debug build asks before each
/// close.
fn calls(trace: &str) -> u64 {
    let call = |line: &&str| line.contains('(') && !line.contains(", F_GETFD");
    trace.lines().filter(call).count() as u64
}

fn tail(trace: &str) -> String {
    let lines: Vec<&str> = trace.lines().collect();
    lines[lines.len().saturating_sub(80)..].join("\n")
}

/// rule: waits.md, What it costs: A wait on a port, on input or on silence makes a bounded number
///   of system calls while nothing comes
#[test]
fn a_wait_that_has_to_look_makes_a_counted_number_of_calls() {
    if !can_trace() {
        return;
    }
    // How many calls all looks in the time may take, at a program that neither waits for input nor
    // uses a processor.
    let counted = [
        // A look behind each twentieth of the wait, of some 25 calls.
        ("port", json!({"until": {"port": 1}}), 1_400),
        ("input", json!({"until": {"input": true}}), 400),
        ("impossible", json!({"on_impossible": "answer"}), 400),
        ("idle_ms", json!({"until": {"idle_ms": 600_000}}), 20),
        ("idle_ms and idle_cpu", json!({"until": {"idle_ms": 600_000, "idle_cpu": true}}), 0),
    ];
    let mut all = Vec::new();
    for (name, condition, most) in counted {
        let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
        let session = session_of(&execd.open("exec sleep 1000"));
        let params = json!({"session_id": session, "yield_time_ms": 600_000});
        let request = execd.start_request("write_stdin", merged(params, condition));
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
