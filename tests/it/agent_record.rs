//! Each captured stream of the real pi through the real execd: the result is what
//! scripts/pi_totals.py has added up, and limits see all that was paid (agent.md, The result).

use crate::agent_help::pi_json::{Captured, captured, differences, fixtures, parsed};
use crate::agent_help::{fake_pi, params};
use crate::common::{Execd, merged};
use serde_json::{Value, json};

/// Fewer than may run at once.
const AT_ONCE: usize = 24;
const ENDLESS: &str = "cat \"$STREAM\"; sleep 1000";

fn of_stream(pi: &str, stream: &Captured, more: Value) -> Value {
    let path = fixtures().join(format!("{}.ndjson", stream.name));
    let env = json!({"STREAM": path, "CODE": stream.exit_code().to_string()});
    let own = json!({"model": stream.asked(), "stream": false, "env": env});
    params(pi, merged(own, more))
}

/// rule: agent.md, The stream: Streams of several pi versions, with totals added up by others, each
///   exact
/// rule: agent.md, The result: Compactions, results of tools and refreshed caches are in the sums
/// rule: agent.md, The result: Tokens and cost are summed over assistant message_ends, never over
///   partials
/// rule: agent.md, The result: Reasoning is told apart and taken off output_tokens
/// rule: agent.md, The result: Turns and tool calls are counted
#[test]
fn each_captured_stream_is_told_as_others_have_added_it_up() {
    let mut execd = Execd::start();
    let pi = fake_pi(&execd, "cat \"$STREAM\"; exit \"$CODE\"");
    let all = captured();
    let mut complaints = Vec::new();
    for some in all.chunks(AT_ONCE) {
        let more = json!({"strict_model": false});
        let start = |one| execd.start_request("agent_execute", of_stream(&pi, one, more.clone()));
        let ids: Vec<u64> = some.iter().map(start).collect();
        for (one, id) in some.iter().zip(ids) {
            let result = execd.result_of(id);
            let wrong = differences(&result, &one.totals);
            complaints.extend(wrong.iter().map(|wrong| format!("{}: {wrong}", one.name)));
        }
    }
    assert!(all.len() >= 90, "{} streams", all.len());
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// What the answers of a stream have cost, without what else was paid.
fn cost_of_answers(stream: &Captured) -> f64 {
    let lines = stream.lines();
    let ends = lines.iter().map(|line| parsed(line));
    ends.filter(|line| line["type"] == "message_end")
        .filter(|line| line["message"]["role"] == "assistant")
        .filter_map(|line| line["message"]["usage"]["cost"]["total"].as_f64())
        .sum()
}

/// rule: agent.md, Ends: A compaction, a tool's result and a refreshed cache count for the
///   budgets at once
#[test]
fn what_is_paid_beside_the_answers_counts_for_the_budgets() {
    let mut execd = Execd::start();
    let pi = fake_pi(&execd, ENDLESS);
    let mut seen = 0;
    for stream in captured() {
        let total = stream.totals["cost_usd"].as_f64().unwrap();
        let answers = cost_of_answers(&stream);
        if total - answers < 1e-9 {
            continue;
        }
        seen += 1;
        let limit = f64::midpoint(answers, total);
        let more = json!({"max_cost_usd": limit});
        let result = execd.result("agent_execute", of_stream(&pi, &stream, more));
        assert_eq!(result["finish_reason"], "cost_exhausted", "{}: {result}", stream.name);
        assert_eq!(result["error_kind"], "budget", "{}", stream.name);
        assert!(result["cost_usd"].as_f64().unwrap() > limit, "{}: {result}", stream.name);
    }
    // Of two versions: five compactions, one refreshed cache, one tool that pays.
    assert_eq!(seen, 14);
}
