//! Streams of the real pi (tests/fixtures/pi-json) with a line lost or an end cut off: what they
//! come to is right, or the run is no success (agent.md, The stream).
#![allow(clippy::unwrap_used)]

mod agent_help;
mod common;

use std::collections::{BTreeMap, BTreeSet};

use agent_help::pi_json::{Captured, captured, same_totals};
use common::data::Random;
use execd::pure::agent::{AgentRun, Asked, End, RunSettings};
use serde_json::Value;

/// What a run of these lines is told as, by a pi that then exits with its own exit code.
fn report(stream: &Captured, bytes: &[u8]) -> Value {
    let (provider, model) = stream.asked().split_once('/').unwrap();
    let (provider, model) = (provider.to_owned(), model.to_owned());
    let asked = Asked { provider, model, strict_model: false };
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
    let mut lost = 0;
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
            let kind = kind_of(&serde_json::from_slice(line).unwrap());
            let allowed = LOSSES.iter().find(|(name, _)| *name == kind);
            let allowed = allowed.unwrap_or_else(|| panic!("{}: {kind}", stream.name)).1;
            assert!(allowed.contains(&outcome), "{} {kind}: {outcome}: {told}", stream.name);
            found.entry(kind).or_default().insert(outcome);
            lost += 1;
        }
    }
    assert!(lost > 1_500, "{lost} lines");
    println!("{found:#?}");
}

/// Whether pi has said that it is done, and of nothing since that costs.
fn says_it_is_done(lines: &[&[u8]]) -> bool {
    let kinds = lines.iter().map(|line| {
        let value: Value = serde_json::from_slice(line).unwrap();
        (value["type"].as_str().unwrap().to_owned(), value["willRetry"] == true)
    });
    kinds.fold(false, |done, (kind, will_retry)| match kind.as_str() {
        "agent_end" => !will_retry,
        "agent_start" | "compaction_start" => false,
        "compaction_end" => !will_retry,
        _ => done,
    })
}

/// rule: agent.md, The stream: Cut off anywhere: the totals are right, or the run is no success
#[test]
fn a_cut_stream_never_makes_a_success_with_wrong_totals() {
    let mut random = Random(0x5eed_0001_0002_0006);
    let mut cuts = 0;
    for stream in captured() {
        let lines = stream.lines();
        for at in 0..lines.len() {
            let whole = lines[..at].concat();
            let mut cut = |bytes: &[u8], is_done: bool| {
                let told = report(&stream, bytes);
                let right = same_totals(&told, &stream.totals);
                if told["success"] == true && !is_done {
                    right.unwrap_or_else(|wrong| {
                        panic!("{} cut in line {at} ({}): {wrong}", stream.name, bytes.len())
                    });
                }
                cuts += 1;
            };
            let is_done = says_it_is_done(&lines[..at]);
            cut(&whole, is_done);
            for _ in 0..3 {
                let inside = random.below(lines[at].len().min(2_000));
                cut(&[&whole, &lines[at][..inside]].concat(), is_done);
            }
        }
    }
    assert!(cuts > 5_000, "{cuts} cuts");
}
