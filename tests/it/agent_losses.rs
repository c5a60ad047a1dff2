//! Streams of the real pi (tests/fixtures/pi-json) with a line lost or an end cut off: what they
//! come to is right, or the run is no success (agent.md, The stream).

use std::collections::{BTreeMap, BTreeSet};

use crate::agent_help::pi_json::{Captured, captured, parsed, same_totals};
use crate::common::data::Random;
use execd::pure::agent::{AgentRun, Asked, End, RunSettings};
use serde_json::Value;

/// What a run of these lines is told as, by a pi that then exits with its own exit code.
fn report(stream: &Captured, bytes: &[u8]) -> Value {
    let asked = Asked::of(&stream.asked(), false);
    let mut run = AgentRun::new(RunSettings { asked, ..RunSettings::default() });
    run.push(bytes, 5, &mut |_| {});
    run.finish(5, &mut |_| {});
    let end = End { exit_code: Some(stream.exit_code()), ..End::default() };
    serde_json::to_value(run.report(&end)).unwrap()
}

/// What a line is, in words: its type, whose message it has, which entry.
fn kind_of(line: &Value) -> String {
    let kind = line["type"].as_str().unwrap();
    match kind {
        "message_start" | "message_end" => {
            format!("{kind} of {}", line["message"]["role"].as_str().unwrap())
        }
        "entry_appended" => format!("{kind} of {}", line["entry"]["type"].as_str().unwrap()),
        _ => kind.to_owned(),
    }
}

/// What the loss of one line of each kind may come to. "same": the totals are right. "recovered":
/// they are, and the result says that they were told elsewhere. "failed": the run is no success,
/// and was one. "wrong": the totals are wrong, and nothing says so.
const LOSSES: [(&str, &[&str]); 27] = [
    ("agent_end", &["failed", "same"]),
    ("agent_settled", &["same"]),
    ("agent_start", &["same"]),
    ("auto_retry_end", &["same"]),
    ("auto_retry_start", &["same"]),
    ("compaction_end", &["failed", "same"]),
    ("compaction_start", &["same"]),
    ("entry_appended of context_edit", &["same"]),
    // Nothing repeats what keeping a cache warm has cost.
    ("entry_appended of usage", &["wrong"]),
    ("message_end of assistant", &["recovered"]),
    ("message_end of system", &["same"]),
    ("message_end of toolResult", &["recovered", "same"]),
    ("message_end of user", &["same"]),
    ("message_start of assistant", &["same"]),
    ("message_start of system", &["same"]),
    ("message_start of toolResult", &["same"]),
    ("message_start of user", &["same"]),
    ("message_update", &["same"]),
    ("session", &["same"]),
    ("session_info_changed", &["same"]),
    ("summarization_retry_attempt_start", &["same"]),
    ("summarization_retry_finished", &["same"]),
    ("tool_execution_end", &["same"]),
    ("tool_execution_start", &["same"]),
    ("tool_execution_update", &["same"]),
    ("turn_end", &["same"]),
    ("turn_start", &["same"]),
];

/// rule: agent.md, The stream: Any one line lost: the totals are right, or the run is no success
#[test]
fn a_lost_line_never_makes_a_success_with_wrong_totals() {
    let mut found: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let (mut lost, mut complaints) = (0, Vec::new());
    for stream in captured() {
        let lines = stream.lines();
        for (at, line) in lines.iter().enumerate() {
            let rest = [&lines[..at], &lines[at + 1..]].concat();
            let told = report(&stream, &rest.concat());
            let is_same = same_totals(&told, &stream.totals).is_ok();
            let was_recovered = told["provider_data"].get("recovered").is_some();
            let outcome = match (told["success"] == true, is_same) {
                (true, false) => "wrong",
                (_, true) if was_recovered => "recovered",
                (success, true) if stream.totals["success"] == success => "same",
                _ => "failed",
            };
            let kind = kind_of(&parsed(line));
            let allowed = LOSSES.iter().find(|(name, _)| *name == kind);
            let allowed = allowed.unwrap_or_else(|| panic!("{}: {kind}", stream.name)).1;
            if !allowed.contains(&outcome) {
                complaints.push(format!("{} {kind} {at}: {outcome}", stream.name));
            }
            found.entry(kind).or_default().insert(outcome);
            lost += 1;
        }
    }
    assert!(complaints.is_empty(), "{complaints:#?} {found:#?}");
    assert!(lost > 1_500, "{lost} lines");
}

/// Before which lines of a stream pi has said that it is done, and of nothing since that costs. (pi
/// 0.73 does not wait for the compactions that it begins then.)
fn done_before(stream: &Captured) -> Vec<bool> {
    let waits = !stream.name.starts_with("pi-0.73");
    let mut done = false;
    let mut before = |line: &[u8]| {
        let was_done = done;
        let line = parsed(line);
        done = match line["type"].as_str().unwrap() {
            "agent_end" | "compaction_end" => line["willRetry"] != true,
            "agent_start" => false,
            "compaction_start" => done && !waits,
            _ => done,
        };
        was_done
    };
    stream.lines().into_iter().map(&mut before).collect()
}

/// rule: agent.md, The stream: Cut off anywhere: the totals are right, or the run is no success
#[test]
fn a_cut_stream_never_makes_a_success_with_wrong_totals() {
    let mut random = Random(0x5eed_0001_0002_0006);
    let (mut cuts, mut complaints) = (0, Vec::new());
    for stream in captured() {
        let lines = stream.lines();
        for (at, is_done) in done_before(&stream).into_iter().enumerate() {
            let whole = lines[..at].concat();
            let mut cut = |bytes: &[u8]| {
                let told = report(&stream, bytes);
                let right = same_totals(&told, &stream.totals);
                if let (true, false, Err(wrong)) = (told["success"] == true, is_done, right) {
                    complaints.push(format!("{} cut in line {at}: {wrong}", stream.name));
                }
                cuts += 1;
            };
            cut(&whole);
            let inside = random.below(lines[at].len().min(2_000));
            cut(&[&whole, &lines[at][..inside]].concat());
        }
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
    assert!(cuts > 4_000, "{cuts} cuts");
}
