//! A run of pi in words: the line in which people read what a run has come to (`execd agent`), and
//! what a model reads of agent_execute and agent_result (docs/mcp.md, Agents).

use serde_json::Value;

use super::fields::{is_set, shown, str_of};
use super::output::Fence;
use crate::pure::text::visible::one_line;

/// What to do about a run that goes on.
const NEXT: &str =
    "The run goes on. agent_result waits for it; a later result tells its end (event:).";

/// A run in one line, for people and models; `reason`: how it has ended.
pub fn summary(reason: &str, report: &Value) -> String {
    let kind = report["error_kind"].as_str();
    // A kind that says nothing more is left out.
    let kind = kind.filter(|kind| *kind != reason && *kind != "other");
    let number = |field: &str| report[field].as_u64().unwrap_or_default();
    let output = number("output_tokens") + number("reasoning_tokens");
    let parts = match report["input_tokens"].as_u64() {
        Some(input) => format!(" ({input} in, {output} out)"),
        // Of a run that goes on the sum alone is told.
        None => String::new(),
    };
    format!(
        "{reason}{}: {}, {}, {}{parts}, ${:.4}, {}{}",
        kind.map(|kind| format!(" ({kind})")).unwrap_or_default(),
        counted(report, "num_turns", "turn"),
        counted(report, "tool_call_count", "tool call"),
        counted(report, "total_tokens", "token"),
        report["cost_usd"].as_f64().unwrap_or_default(),
        time(number("duration_ms")),
        answered_by(report),
    )
}

fn counted(report: &Value, field: &str, what: &str) -> String {
    let number = report[field].as_u64().unwrap_or_default();
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A time as people say it: 4.2 s, 3 min 5 s.
fn time(ms: u64) -> String {
    match ms / 1_000 {
        s @ 0..60 => format!("{s}.{} s", ms % 1_000 / 100),
        s => format!("{} min {} s", s / 60, s % 60),
    }
}

/// Which model has answered, where that is another than was asked.
fn answered_by(report: &Value) -> String {
    if report["model_mismatch"] != true {
        return String::new();
    }
    let told = ["response_provider", "response_model"].map(|field| report[field].as_str());
    let told: Vec<String> = told.into_iter().flatten().map(one_line).collect();
    format!(", answered by {}", told.join("/"))
}

/// What a model reads of a run, and whether the run has failed.
pub(super) fn of(report: &Value, fence: &Fence) -> (String, bool) {
    let run = shown(report, "run_id");
    let goes_on = !run.is_empty();
    let reason = if goes_on { "running" } else { str_of(report, "finish_reason") };
    let failed = !goes_on && !is_set(report, "success");
    let mut said = summary(reason, report);
    for (name, is_told) in [("error", failed), ("doing", goes_on), ("log_path", failed)] {
        let told = shown(report, name);
        if is_told && !told.is_empty() {
            said += &format!("\n{name}: {told}");
        }
    }
    if goes_on {
        said += &format!("\nrun_id: {run}\n---\n{NEXT}");
        return (said, false);
    }
    // The last message is the answer; a run that was ended may only have said something before.
    let output = match str_of(report, "final_output") {
        "" => str_of(report, "output"),
        last => last,
    };
    (said + "\n" + &fence.around("output", output, "(no text)"), failed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// rule: mcp.md, Agents: Of a run that goes on a model reads what it does and how to go on
    #[test]
    fn of_a_run_that_goes_on_the_next_step_is_told() {
        let report = json!({"running": true, "run_id": 7, "num_turns": 2, "tool_call_count": 1,
            "total_tokens": 9, "cost_usd": 0.5, "duration_ms": 50_000, "doing": "bash ls"});
        let (said, failed) = of(&report, &Fence::default());
        let line = "running: 2 turns, 1 tool call, 9 tokens, $0.5000, 50.0 s";
        assert!(said.starts_with(&format!("{line}\ndoing: bash ls\nrun_id: 7\n---\n")), "{said}");
        assert!(!failed && said.contains("agent_result"), "{said}");
    }
}
