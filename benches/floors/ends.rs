//! Ends of many sessions at once: how long until nothing of them is left and each is answered.

use std::time::{Duration, Instant};

use serde_json::json;

use super::Scale;
use super::client::{Execd, SLEEPER};
use super::latency::OPEN_AT_ONCE;
use super::report::{Goal, Report, Samples};

/// What the end of thousands of sessions may take.
const MANY_GOAL: Duration = Duration::from_secs(1);
/// The same for some with many descendants each.
const WIDE_GOAL: Duration = Duration::from_millis(300);
/// A command with fifty children.
const WIDE: &str = "for i in $(seq 50); do sleep 1000 & done; wait";
/// Sessions with many descendants.
const WIDE_SESSIONS: usize = 64;

/// An execd with so many sessions that run this command, and their ids.
fn with_sessions(count: usize, cmd: &str) -> (Execd, Vec<u64>) {
    let mut execd = Execd::start(&["--max-sessions", "4096"]);
    let mut sessions = Vec::new();
    while sessions.len() < count {
        let batch = OPEN_AT_ONCE.min(count - sessions.len());
        sessions.extend(execd.open_many(&vec![cmd; batch], false));
    }
    (execd, sessions)
}

/// Ends each by a call of its own, all at once; gives how long until the last is answered.
fn kill_all(execd: &mut Execd, sessions: &[u64]) -> Duration {
    let begun = Instant::now();
    let asked: Vec<u64> = sessions
        .iter()
        .map(|session| execd.send("kill_session", &json!({"session_id": session})).0)
        .collect();
    for request in asked {
        let (_, result) = execd.reply(request);
        assert_eq!(result["killed"], true, "{result}");
    }
    begun.elapsed()
}

/// The longest turn since the start, in microseconds.
fn slowest_turn_us(execd: &mut Execd) -> f64 {
    let info = execd.call("server_info", &json!({})).1;
    info["counters"]["slowest_turn_us"].as_f64().unwrap_or_default()
}

/// Thousands of sessions by kill_session and by shutdown, and some with fifty children each.
pub fn ends(scale: Scale, report: &mut Report) {
    let many = scale.of(2_048, 128);
    let (mut killed, mut shut, mut wide) =
        (Samples::default(), Samples::default(), Samples::default());
    let mut turns_us = (0.0, 0.0);
    for _ in 0..scale.of(3, 1) {
        let (mut execd, sessions) = with_sessions(many, SLEEPER);
        turns_us.0 = slowest_turn_us(&mut execd).max(turns_us.0);
        killed.push(kill_all(&mut execd, &sessions));
        turns_us.1 = slowest_turn_us(&mut execd).max(turns_us.1);
        let (mut execd, _) = with_sessions(many, SLEEPER);
        shut.push(execd.call("shutdown", &json!({})).0);
        let (mut execd, sessions) = with_sessions(WIDE_SESSIONS, WIDE);
        wide.push(kill_all(&mut execd, &sessions));
    }
    let row = |name: &str, samples: &Samples, goal: Duration, report: &mut Report| {
        report.time(name, (samples.p50(), None), Some(Goal::AtMost(goal)), samples.len());
    };
    row(&format!("ends: {many} sessions killed"), &killed, MANY_GOAL, report);
    row(&format!("ends: shutdown with {many}"), &shut, MANY_GOAL, report);
    row(&format!("ends: {WIDE_SESSIONS} sessions of 50"), &wide, WIDE_GOAL, report);
    report.plain("ends: slowest turn of the starts", (turns_us.0, "µs"), None, None);
    report.plain("ends: slowest turn with the ends", (turns_us.1, "µs"), Some(20_000.0), None);
}
