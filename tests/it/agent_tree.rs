//! The processes of a run of pi together: what they use, and in which order they are ended
//! (agent.md, The result and How a run ends).

use std::time::Duration;

use crate::agent_help::*;
use crate::common::*;
use serde_json::{Value, json};

const BURNT_MS: u64 = 400;

/// A command that uses the CPU for so long, holds some memory, and notes in the file $1 what it
/// used: milliseconds of user and system time.
const BURN: &str = r#"held=$(head -c "$3" /dev/zero | tr '\0' x)
used=0
until [ "$used" -ge "$2" ]; do
  for ((i = 0; i < 5000; i++)); do :; done
  times > "$1.times"
  read -r user system < "$1.times"
  used=0
  for time in $user $system; do
    time=${time#0m}; time=${time%s}; time=${time/./}
    used=$((used + 10#$time))
  done
done
echo "$used" > "$1.new"; mv "$1.new" "$1""#;

fn burnt_ms(execd: &Execd, name: &str) -> u64 {
    let text = std::fs::read_to_string(execd.file(name)).expect("it was noted");
    text.trim().parse().expect("a number")
}

/// rule: agent.md, The result: cpu_seconds and max_rss_kib are those of the whole tree, of orphans
///   that have left its session too
#[test]
fn what_children_and_orphans_use_is_told_with_what_pi_uses() {
    let mut execd = Execd::start();
    std::fs::write(execd.file("burn"), BURN).expect("a script");
    let file = stream_file(&execd, "lines", &answer("Done."));
    let (ms, some, much) = (BURNT_MS, 1_000, 48 * 1024 * 1024);
    // An orphan is reaped by execd when it is in /proc no more.
    let script = format!(
        "(setsid bash -c 'echo $$ > far.pid; exec bash burn far {ms} {much}' &)
         (bash -c 'echo $$ > near.pid; exec bash burn near {ms} {some}' &)
         bash burn child {ms} {some}
         until [ -e far ] && [ -e near ]; do sleep 0.02; done
         for one in far near; do while [ -e /proc/$(cat $one.pid) ]; do sleep 0.02; done; done
         cat {}",
        file.display()
    );
    let result = run(&mut execd, &script, json!({}));
    assert_eq!(result["success"], true, "{result}");
    let burnt: u64 = ["far", "near", "child"].iter().map(|name| burnt_ms(&execd, name)).sum();
    let told = result["cpu_seconds"].as_f64().expect("a number");
    let burnt = Duration::from_millis(burnt).as_secs_f64();
    assert!(told >= burnt, "{told} s told, {burnt} s used");
    assert!(told < 1.8 * burnt, "{told} s told, {burnt} s used: some twice");
    let rss_kib = result["max_rss_kib"].as_u64().expect("a number");
    assert!(rss_kib * 1024 >= much, "{rss_kib} KiB told");
    assert!(rss_kib * 1024 < 4 * much, "{rss_kib} KiB told");
}

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
