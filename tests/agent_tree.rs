//! The processes of a run of pi together: in which order they are ended (agent.md, How a run ends).
#![allow(clippy::disallowed_methods, clippy::print_stderr)] // Tests may use all of std.

mod agent_help;
mod common;

use agent_help::*;
use common::*;
use serde_json::{Value, json};

/// Starts a run with a tool that notes at SIGTERM whether its pi lives; `pi`: what pi does at its
/// own. Gives the request when both are there.
fn begin(execd: &mut Execd, pi: &str) -> u64 {
    let file = stream_file(execd, "lines", &begun());
    let script = format!(
        r#"cat {}
        setsid bash -c 'trap "kill -0 $1 2>/dev/null && echo pi lives > order || echo pi is gone \
            > order; exit" TERM; echo > ready; while :; do sleep 0.02; done' tool $$ &
        {pi}
        until [ -e ready ]; do sleep 0.02; done; echo > set
        while :; do sleep 0.02; done"#,
        file.display()
    );
    let pi = fake_pi(execd, &script);
    let id = execd.start_request("agent_execute", params(&pi, json!({})));
    until_exists(&execd.file("set"));
    id
}

fn order(execd: &Execd) -> String {
    std::fs::read_to_string(execd.file("order")).unwrap_or_default()
}

/// Tools were ended beside pi: one that was gone first had pi ask the model what to do then, which
/// has to be paid.
/// rule: agent.md, Ends: pi is sent SIGTERM first, and what it has started when it is gone
#[test]
fn a_tool_is_ended_when_its_pi_is_gone() {
    let mut execd = Execd::start();
    let id = begin(&mut execd, "trap 'sleep 0.2; exit 1' TERM");
    assert!(execd.cancel(id));
    let result = execd.result_of(id);
    assert_eq!(result["finish_reason"], "cancelled");
    assert_eq!(order(&execd), "pi is gone\n");
    assert!(execd.session_processes().is_empty());
}

/// rule: agent.md, Ends: pi is sent SIGTERM first, and what it has started when it is gone
#[test]
fn a_pi_that_does_not_end_holds_up_the_end_of_its_tools_for_a_second_only() {
    let mut execd = Execd::start();
    let id = begin(&mut execd, "trap '' TERM");
    let started = now();
    assert!(execd.cancel(id));
    let result: Value = execd.result_of(id);
    assert_eq!(
        (&result["finish_reason"], &result["exit_code"]),
        (&json!("cancelled"), &json!(null))
    );
    // SIGKILL came at the end of the same grace as ever, and SIGTERM before it.
    assert!(started.elapsed().as_millis() >= 2_000);
    assert_eq!(order(&execd), "pi lives\n");
    assert!(execd.session_processes().is_empty());
}
