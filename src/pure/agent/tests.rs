//! Tests of the stream of pi: each rule as a table of lines and what comes of them.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{AgentRun, End, RunSettings};

/// Deltas: text or thinking, and its JSON.
pub(super) type Deltas = &'static [(&'static str, &'static str)];

/// Deltas of blocks, the content of the end, what the end told, and how many texts differ.
pub(super) type Ended = (&'static [(u64, &'static str)], Value, &'static [&'static str], u64);

/// What was told, and the result.
pub(super) struct Outcome {
    pub(super) told: Vec<Value>,
    pub(super) report: Value,
    pub(super) run: AgentRun,
}

/// Each line takes ten milliseconds.
pub(super) fn feed(lines: &[String], settings: RunSettings, end: &End<'_>) -> Outcome {
    let mut run = AgentRun::new(settings);
    let (mut told, mut now_ms) = (Vec::new(), 0);
    let mut tell = |event: &super::Told<'_>| told.push(serde_json::to_value(event).unwrap());
    for line in lines {
        now_ms += 10;
        run.push(line.as_bytes(), now_ms, &mut tell);
        run.push(b"\n", now_ms, &mut tell);
    }
    run.finish(now_ms, &mut tell);
    let report = serde_json::to_value(run.report(end)).unwrap();
    Outcome { told, report, run }
}

pub(super) fn done() -> End<'static> {
    End { exit_code: Some(0), ..End::default() }
}

pub(super) fn run(lines: &[String]) -> Outcome {
    feed(lines, RunSettings::default(), &done())
}

pub(super) fn lines(all: &[Value]) -> Vec<String> {
    all.iter().map(wire).collect()
}

/// As pi writes it: the type of an object is its first field.
pub(super) fn wire(value: &Value) -> String {
    let Value::Object(fields) = value else { return value.to_string() };
    let (first, others): (Vec<_>, Vec<_>) = fields.iter().partition(|(name, _)| *name == "type");
    let field = |(name, value): (&String, &Value)| format!("{}:{}", json!(name), wire(value));
    let all: Vec<String> = first.into_iter().chain(others).map(field).collect();
    format!("{{{}}}", all.join(","))
}

pub(super) fn event(kind: &str) -> Value {
    json!({"type": kind})
}

pub(super) fn start(role: &str) -> Value {
    json!({"type": "message_start", "message": {"role": role, "content": []}})
}

pub(super) fn delta(kind: &str, index: u64, text: &str) -> Value {
    json!({"type": "message_update", "assistantMessageEvent":
        {"type": kind, "contentIndex": index, "delta": text}})
}

pub(super) fn usage(numbers: [u64; 6], cost: f64) -> Value {
    let [input, output, reasoning, cache_read, cache_write, total] = numbers;
    json!({"input": input, "output": output, "reasoning": reasoning, "cacheRead": cache_read,
        "cacheWrite": cache_write, "totalTokens": total,
        "cost": {"input": cost / 2.0, "output": cost / 4.0, "cacheRead": cost / 8.0,
            "cacheWrite": cost / 8.0, "total": cost}})
}

/// An assistant's message_end; fields of `more` replace those of the message.
pub(super) fn answer(more: &Value) -> Value {
    let mut message = json!({"role": "assistant", "content": [], "stopReason": "stop",
        "usage": usage([10, 5, 0, 0, 0, 15], 0.25)});
    for (name, value) in more.as_object().unwrap() {
        message[name] = value.clone();
    }
    json!({"type": "message_end", "message": message})
}

/// The names of what was told, with the fields that tell most.
pub(super) fn names(outcome: &Outcome) -> String {
    let mut all = String::new();
    for told in &outcome.told {
        let _ = write!(all, "{} ", told["event"].as_str().unwrap());
    }
    all.trim_end().to_owned()
}

pub(super) fn texts(outcome: &Outcome, event: &str) -> Vec<String> {
    let of_it = outcome.told.iter().filter(|told| told["event"] == event);
    of_it.map(|told| told["delta"].as_str().unwrap().to_owned()).collect()
}

/// rule: agent.md, agent_event: tool_use at toolcall_end, or at tool_execution_start where none
///   came; never twice for one id
#[test]
fn a_tool_call_is_told_once_whichever_event_comes() {
    let assembled = |id: &str, name: &str| {
        json!({"type": "message_update", "assistantMessageEvent": {"type": "toolcall_end",
            "contentIndex": 1, "toolCall":
                {"type": "toolCall", "id": id, "name": name, "arguments": {"n": 1}}}})
    };
    let begun = |id: &str, name: &str| json!({"type": "tool_execution_start", "toolCallId": id, "toolName": name, "args": {"n": 2}});
    let ended = |id: &str, result: Value, error: bool| {
        json!({"type": "tool_execution_end", "toolCallId": id, "toolName": "bash",
            "result": result, "isError": error})
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let several = [text("one"), json!({"type": "image"}), text("two")];
    let outcome = run(&lines(&[
        event("turn_start"),
        assembled("a", "bash"),
        assembled("b", "read"),
        begun("a", "bash"),
        begun("b", "read"),
        begun("c", "bash"),
        json!({"type": "tool_execution_update", "toolCallId": "c", "partialResult": {}}),
        ended("a", json!({"content": several}), false),
        ended("b", json!("plain"), true),
        ended("c", json!({"content": "string"}), false),
        ended("d", json!({"content": []}), false),
        event("turn_end"),
        // Some providers count anew.
        event("turn_start"),
        begun("a", "bash"),
        assembled("a", "bash"),
        ended("a", json!(null), false),
    ]));
    let told: Vec<&Value> = outcome.told.iter().filter(|told| told["id"].is_string()).collect();
    let call = |id: &str, name: &str, n: u64| json!({"event": "tool_use", "id": id, "name": name, "input": {"n": n}});
    let result = |id: &str, output: &str, error: bool| {
        json!({"event": "tool_result", "id": id, "name": "bash", "output": output,
            "is_error": error})
    };
    let expected = [
        call("a", "bash", 1),
        call("b", "read", 1),
        call("c", "bash", 2),
        result("a", "one\n[image]\ntwo", false),
        result("b", "plain", true),
        result("c", "string", false),
        result("d", "", false),
        call("a", "bash", 2),
        result("a", "", false),
    ];
    assert_eq!(told, expected.iter().collect::<Vec<_>>());
    assert_eq!(outcome.report["tool_call_count"], 4);
    assert_eq!(outcome.report["tool_calls"], json!({"bash": 3, "read": 1}));
    assert_eq!(outcome.report["num_turns"], 2);
}

/// rule: agent.md, agent_event: tool_result: id, name, output, is_error; long ones are cut
#[test]
fn long_inputs_and_outputs_of_tools_are_cut() {
    const BOUND: usize = 256 * 1024;
    let begun = |args: &Value| json!({"type": "tool_execution_start", "toolCallId": "", "toolName": "t", "args": args});
    let long = "é".repeat(BOUND / 2);
    let mut deep = json!(1);
    for _ in 0..101 {
        deep = json!([deep]);
    }
    let outcome = run(&[
        wire(&begun(&json!("x".repeat(BOUND - 2)))),
        wire(&begun(&json!("x".repeat(BOUND - 1)))),
        wire(&begun(&deep)),
        wire(&begun(&deep[0])),
        begun(&json!("HALF \\ \u{1F600}")).to_string().replace("HALF", r"\ud83d\\ud83d\udc4d"),
        json!({"type": "tool_execution_start"}).to_string(),
        json!({"type": "tool_execution_end", "result": format!("x{long}")}).to_string(),
        json!({"type": "tool_execution_end", "result": long}).to_string(),
    ]);
    let field = |at: usize, name: &str| outcome.told[at][name].clone();
    assert_eq!(field(0, "input").as_str().unwrap().len(), BOUND - 2);
    assert_eq!(field(0, "omitted_bytes"), Value::Null);
    assert_eq!(field(1, "input"), Value::Null);
    assert!(outcome.told[1].as_object().unwrap().contains_key("input"));
    assert_eq!(field(1, "omitted_bytes"), BOUND + 1);
    assert_eq!(field(2, "omitted_bytes"), 203);
    assert_eq!(field(3, "input"), deep[0]);
    assert_eq!(field(4, "input"), "\u{FFFD}\\ud83d\u{FFFD} \\ \u{1F600}");
    assert_eq!(field(5, "input"), Value::Null);
    assert_eq!(field(6, "output").as_str().unwrap().len(), BOUND - 1);
    assert_eq!(field(6, "omitted_bytes"), 2);
    assert_eq!(field(7, "output"), long);
    assert_eq!(outcome.report["tool_calls"], json!({"": 1, "t": 5}));
}

/// rule: agent.md, The result: Turns and tool calls are counted
#[test]
fn names_of_tools_are_bounded() {
    let begun = |n: u64| {
        let name = format!("t{n}");
        json!({"type": "tool_execution_start", "toolCallId": name, "toolName": name})
    };
    let outcome = run(&lines(&(0..300).map(begun).collect::<Vec<_>>()));
    let calls = outcome.report["tool_calls"].as_object().unwrap().clone();
    assert_eq!((calls.len(), &calls["…"]), (257, &json!(44)));
}

/// rule: agent.md, The result: Tokens and cost are summed over assistant message_ends, never over
///   partials
/// rule: agent.md, The result: Reasoning is told apart and taken off output_tokens
#[test]
fn sums_are_those_of_the_assistants_message_ends() {
    let big = usage([1000; 6], 1000.0);
    let partial = |kind: &str| {
        let message = json!({"role": "assistant", "usage": big, "stopReason": "stop"});
        json!({"type": kind, "message": message, "usage": big, "messages": [message],
            "assistantMessageEvent": {"type": "text_end", "partial": message}})
    };
    let outcome = run(&lines(&[
        event("turn_start"),
        partial("message_start"),
        partial("message_update"),
        answer(&json!({"usage": usage([100, 50, 20, 300, 40, 490], 0.5)})),
        // Its sum is missing, and it says of more reasoning than it has put out.
        answer(&json!({"usage": {"input": 1, "output": 2, "reasoning": 3, "cacheRead": 4,
            "cacheWrite": 5, "cost": {"total": 0.25}}})),
        json!({"type": "message_end", "message": {"role": "user", "usage": big}}),
        partial("turn_end"),
        event("turn_start"),
        answer(&json!({"usage": {"input": 7, "output": 0, "cost": {"total": 0}}})),
        event("turn_end"),
        event("turn_start"),
        event("turn_end"),
        partial("agent_end"),
    ]));
    let report = &outcome.report;
    let sums = ["input", "output", "reasoning", "cache_read", "cache_write", "total"]
        .map(|name| report[format!("{name}_tokens")].as_u64().unwrap());
    assert_eq!(sums, [108, 30, 22, 304, 45, 490 + 12 + 7]);
    assert_eq!(report["cost_usd"], 0.75);
    let cost = json!({"input": 0.25, "output": 0.125, "cache_read": 0.0625,
        "cache_write": 0.0625, "total": 0.75});
    assert_eq!(report["cost"], cost);
    assert_eq!(outcome.run.budget_tokens(), 108 + 52 + 45);
    assert_eq!(outcome.run.cost_usd().to_bits(), 0.75_f64.to_bits());
    let turns: Vec<_> = outcome.told.iter().filter(|told| told["event"] == "turn_end").collect();
    assert_eq!(turns[0]["cost_usd"], 0.75);
    assert_eq!(turns[0]["usage"]["output_tokens"], 30);
    assert_eq!(turns[1]["usage"]["input_tokens"], 7);
    assert_eq!(turns[2], &json!({"event": "turn_end", "turn": 3}));
    assert_eq!(report["provider_data"]["unknown_fields"]["turn_end.usage"], big);
}

/// rule: agent.md, agent_event: retry and error
/// rule: agent.md, The stream: Unknown events and fields, unparsed lines and retries are counted,
///   64 KiB in all
#[test]
fn retries_are_told_and_counted() {
    let again = |attempt: u64| {
        json!({"type": "auto_retry_start", "attempt": attempt, "maxAttempts": 3, "delayMs": 9,
            "errorMessage": "overloaded"})
    };
    let over = |success: bool| json!({"type": "auto_retry_end", "success": success, "attempt": 2, "finalError": "no"});
    let failed = answer(&json!({"stopReason": "error", "errorMessage": "529"}));
    let mut all = vec![failed.clone(), again(1), failed, again(2)];
    all.extend([answer(&json!({})), over(true)]);
    let outcome = run(&lines(&all));
    assert_eq!(names(&outcome), "error retry error retry");
    let retry = json!({"event": "retry", "attempt": 2, "max_attempts": 3, "message": "overloaded"});
    assert_eq!(outcome.told[3], retry);
    assert_eq!(outcome.told[0], json!({"event": "error", "message": "529"}));
    assert_eq!(outcome.report["success"], true);
    let retries = json!({"count": 2, "max_attempts": 3, "exhausted": false});
    assert_eq!(outcome.report["provider_data"]["retries"], retries);
    all.splice(4.., [over(false)]);
    let outcome = run(&lines(&all));
    assert_eq!(names(&outcome), "error retry error retry error");
    assert_eq!(outcome.report["error"], "no");
    assert_eq!(outcome.report["finish_reason"], "error");
    assert_eq!(outcome.report["provider_data"]["retries"]["exhausted"], true);
}

/// rule: agent.md, Ends: After a final agent_end pi has 10 s to exit, then it is ended and keeps
///   its success
#[test]
fn the_run_is_settled_by_a_final_agent_end() {
    let end = json!({"type": "agent_end", "messages": [], "willRetry": false});
    let old_end = json!({"type": "agent_end", "messages": []});
    let retried = json!({"type": "agent_end", "messages": [], "willRetry": true});
    let over = |kind: &str, again: bool| json!({"type": kind, "willRetry": again});
    // Events, 10 ms apart, and since when it is settled then.
    let table: Vec<(Vec<Value>, Option<u64>)> = vec![
        (vec![old_end.clone(), event("agent_settled")], Some(10)),
        (vec![end.clone(), retried.clone()], None),
        (vec![event("agent_settled")], None),
        (vec![old_end.clone(), event("auto_retry_start")], None),
        (vec![old_end, event("auto_retry_start"), event("auto_retry_end")], Some(30)),
        (vec![retried, event("auto_retry_start"), event("auto_retry_end")], Some(30)),
        (vec![end.clone(), event("agent_start"), event("auto_retry_end")], None),
        (vec![end.clone(), event("turn_start")], None),
        (vec![end.clone(), start("user")], None),
        (vec![end.clone(), event("queue_update"), event("no_one_knows")], Some(10)),
        (vec![end.clone(), event("auto_compaction_start")], None),
        (vec![end.clone(), event("compaction_start"), over("compaction_end", false)], Some(30)),
        (vec![end.clone(), over("auto_compaction_end", true)], None),
        (vec![end.clone(), event("compaction_start"), event("auto_compaction_end")], Some(30)),
        (vec![end.clone(), event("agent_start"), end], Some(30)),
    ];
    for (events, settled_ms) in table {
        let outcome = run(&lines(&events));
        assert_eq!(outcome.run.clocks().settled_ms, settled_ms, "{events:?}");
        assert!(outcome.report["provider_data"]["unparsed_lines"] == 0, "{events:?}");
    }
}

/// rule: agent.md, agent_execute, params: The clock of idle_timeout_ms stands still while a tool
///   runs
/// rule: agent.md, agent_execute, params: first_event_timeout_ms: until an assistant message_start
///   or message_update
#[test]
fn the_clocks() {
    let tool = |kind: &str, id: &str| json!({"type": format!("tool_execution_{kind}"), "toolCallId": id, "toolName": "t"});
    // Lines, 10 ms apart; the model's first event, the last one, and tools that run.
    let table: Vec<(Vec<Value>, Option<u64>, u64, usize)> = vec![
        (vec![event("session"), start("user"), start("system")], None, 30, 0),
        (vec![start("assistant"), start("assistant")], Some(10), 20, 0),
        (vec![event("agent_start"), event("message_update")], Some(20), 20, 0),
        // A pi that told nothing before was ended at the first-event timeout, with its answer.
        (vec![event("agent_start"), answer(&json!({})), answer(&json!({}))], Some(20), 30, 0),
        (vec![json!({"type": "message_end", "message": {"role": "user"}})], None, 10, 0),
        (vec![event("x"), json!({"no": "type"}), json!(1)], None, 10, 0),
        (vec![tool("start", "a"), tool("start", "b"), tool("update", "b")], None, 30, 2),
        (vec![tool("start", "a"), tool("end", "x"), tool("start", "b")], None, 30, 2),
        (vec![tool("start", "a"), tool("end", "a"), tool("end", "a")], None, 30, 0),
        (vec![tool("start", "a"), event("turn_start")], None, 20, 0),
        (vec![tool("start", "a"), event("agent_end")], None, 20, 0),
    ];
    for (events, first_event_ms, last_event_ms, tools_running) in table {
        let clocks = run(&lines(&events)).run.clocks();
        assert_eq!(clocks.first_event_ms, first_event_ms, "{events:?}");
        assert_eq!(clocks.last_event_ms, last_event_ms, "{events:?}");
        assert_eq!(clocks.tools_running, tools_running, "{events:?}");
    }
}
