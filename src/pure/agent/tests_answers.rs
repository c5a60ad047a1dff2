//! Tests of what is paid for, of answers whose end was lost, and of the model that answers.

use serde_json::{Value, json};

use super::tests::*;
use super::{AgentRun, Asked, End, RunSettings, Stop, Told};
use crate::pure::tests_random::Random;

/// Reads lines in pieces, all at the same time.
fn read(pieces: &[&[u8]], settings: RunSettings, end: &End<'_>) -> (Vec<Value>, Value) {
    let mut run = AgentRun::new(settings);
    let mut told = Vec::new();
    let mut tell = |event: &Told<'_>| told.push(serde_json::to_value(event).unwrap());
    for piece in pieces {
        run.push(piece, 7, &mut tell);
    }
    run.finish(7, &mut tell);
    (told, serde_json::to_value(run.report(end)).unwrap())
}

fn cut<'a>(bytes: &'a [u8], random: &mut Random) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(1 + random.below(rest.len().min(400)));
        pieces.push(piece);
        rest = more;
    }
    pieces
}

/// What is told of events, and their result: the same however they are cut.
fn outcome(events: &[Value], settings: &RunSettings, end: &End<'_>) -> (Vec<Value>, Value) {
    let bytes = (lines(events).join("\n") + "\n").into_bytes();
    let whole = read(&[&bytes], settings.clone(), end);
    let mut random = Random(0x51ed_270b);
    for _ in 0..7 {
        let pieces = cut(&bytes, &mut random);
        assert_eq!(read(&pieces, settings.clone(), end), whole, "{events:?}");
    }
    whole
}

fn result(events: &[Value]) -> Value {
    outcome(events, &RunSettings::default(), &done()).1
}

fn message(kind: &str, more: &Value) -> Value {
    let mut event = answer(more);
    event["type"] = kind.into();
    event
}

fn agent_end(messages: &[&Value]) -> Value {
    let all: Vec<&Value> = messages.iter().map(|event| &event["message"]).collect();
    json!({"type": "agent_end", "messages": all, "willRetry": false})
}

/// rule: agent.md, The result: Every paid token counts: answers, results of tools, compactions and
///   entries of the session
#[test]
fn all_that_pi_pays_for_is_in_the_totals() {
    let paid = usage([1000, 200, 30, 400, 50, 1650], 1.0);
    let tool = |kind: &str, usage: &Value| json!({"type": kind, "message": {"role": "toolResult", "usage": usage}, "usage": usage});
    let over = |kind: &str, result: Value| json!({"type": kind, "result": result});
    let entry =
        |kind: &str| json!({"type": "entry_appended", "entry": {"type": kind, "usage": paid}});
    let summary = json!({"summary": "long", "usage": paid});
    let unused = json!({"summary": "long", "usage": null});
    // Events besides one answer for 10 tokens and $0.25; how often they are paid for, and how many
    // compactions they are.
    let table: Vec<(Value, u64, Value)> = vec![
        (over("compaction_end", summary.clone()), 1, json!({"count": 1, "without_usage": 0})),
        (over("auto_compaction_end", summary.clone()), 1, json!({"count": 1, "without_usage": 0})),
        (over("compaction_end", unused), 0, json!({"count": 1, "without_usage": 1})),
        (over("compaction_end", json!(null)), 0, Value::Null),
        (tool("message_end", &paid), 1, Value::Null),
        (tool("message_start", &paid), 0, Value::Null),
        (tool("tool_execution_end", &paid), 0, Value::Null),
        // Where the result of the tool has no end of its own.
        (json!({"type": "turn_end", "toolResults": [{"usage": paid}]}), 1, Value::Null),
        (json!({"type": "tool_execution_end", "result": {"usage": paid}}), 0, Value::Null),
        (entry("usage"), 1, Value::Null),
        (entry("branch_summary"), 1, Value::Null),
        (entry("compaction"), 1, json!({"count": 1, "without_usage": 0})),
        (entry("custom"), 0, Value::Null),
    ];
    for (paid_for, times, compactions) in table {
        // Before the answer, so that an update is one of it.
        let told = result(&[event("turn_start"), paid_for.clone(), answer(&json!({}))]);
        assert_eq!(told["input_tokens"], 10 + 1000 * times, "{paid_for}");
        assert_eq!(told["output_tokens"], 5 + 170 * times, "{paid_for}");
        assert_eq!(told["reasoning_tokens"], 30 * times, "{paid_for}");
        assert_eq!(told["total_tokens"], 15 + 1650 * times, "{paid_for}");
        let cost = if times == 1 { 1.25 } else { 0.25 };
        assert_eq!(told["cost_usd"], cost, "{paid_for}");
        assert_eq!(told["provider_data"]["compactions"], compactions, "{paid_for}");
        assert_eq!(told["finish_reason"], "stop", "{paid_for}");
    }
    // What is wrong with one is told wherever it is.
    let odd = json!({"input": 1});
    for event in [over("compaction_end", json!({"usage": odd})), tool("message_end", &json!(5))] {
        assert_eq!(result(&[answer(&json!({})), event])["finish_reason"], "wire_drift");
    }
    // A budget sees it at once.
    let mut run = AgentRun::new(RunSettings::default());
    let line = wire(&over("compaction_end", summary)) + "\n";
    run.push(line.as_bytes(), 0, &mut |_| {});
    assert_eq!((run.cost_usd().to_bits(), run.budget_tokens()), (1.0_f64.to_bits(), 1250));
}

/// rule: agent.md, The result: Every paid token counts: answers, results of tools, compactions and
///   entries of the session
#[test]
fn counts_that_cannot_be_make_a_run_wire_drift() {
    let usage = || json!({"input": 1, "output": 1, "cost": {"total": 0.1}});
    for (path, value) in [
        ("/input", json!(1e17)),
        ("/cacheRead", json!(-1)),
        ("/reasoning", json!("5")),
        ("/totalTokens", json!(1e300)),
        ("/cost/input", json!(-0.1)),
    ] {
        let mut odd = usage();
        let (parent, name) = path.rsplit_once('/').unwrap();
        odd.pointer_mut(parent).unwrap()[name] = value;
        let event = json!({"type": "entry_appended", "entry": {"type": "usage", "usage": odd}});
        let told = result(&[answer(&json!({})), event]);
        let words = format!("usage{} is not a number from 0 to 2^53", path.replace('/', "."));
        assert_eq!(told["finish_reason"], "wire_drift", "{path}");
        assert!(told["error"].as_str().unwrap().starts_with(&words), "{}", told["error"]);
    }
}

/// rule: agent.md, The result: A usage whose message_end was lost is taken from turn_end, then from
///   agent_end, and counted as recovered; where all are lost it is wire_drift
#[test]
fn an_answer_without_its_own_end_is_taken_from_what_repeats_it() {
    let begun = [event("turn_start"), start("assistant"), delta("text_delta", 0, "All")];
    let content = json!([{"type": "text", "text": "All of it."}]);
    let more = json!({"content": content, "stopReason": "length"});
    let end = message("message_end", &more);
    let turn = message("turn_end", &more);
    let bare = event("turn_end");
    let none = agent_end(&[]);
    let all = agent_end(&[&start("user"), &end]);
    let next = [event("turn_start"), start("assistant"), message("message_end", &json!({}))];
    let cut = json!("{\"type\":\"message_end\",\"message\":{\"usage\":");
    // Lines behind the beginning; input tokens, recovered, and why it ended.
    let table: Vec<(Vec<&Value>, u64, u64, &str)> = vec![
        (vec![&end, &turn, &all], 10, 0, "length"),
        (vec![&turn, &all], 10, 1, "length"),
        (vec![&cut, &turn, &all], 10, 1, "length"),
        (vec![&turn], 10, 1, "length"),
        (vec![&bare, &all], 10, 1, "length"),
        (vec![&all], 10, 1, "length"),
        (vec![&bare, &none], 0, 0, "wire_drift"),
        (vec![], 0, 0, "wire_drift"),
        (vec![&end, &bare, &next[0], &next[1], &next[2]], 20, 0, "stop"),
        (vec![&turn, &next[0], &next[1], &next[2]], 20, 1, "stop"),
        (vec![&bare, &next[0], &next[1], &next[2]], 10, 0, "wire_drift"),
        // A retry in the same turn.
        (vec![&next[1], &next[2]], 10, 0, "wire_drift"),
    ];
    for (behind, input, recovered, finish_reason) in table {
        let mut events = begun.to_vec();
        events.extend(behind.into_iter().cloned());
        let report = result(&events);
        assert_eq!(report["input_tokens"], input, "{events:?}");
        let count = report["provider_data"]["recovered"].as_u64().unwrap_or_default();
        assert_eq!(count, recovered, "{events:?}");
        assert_eq!(report["finish_reason"], finish_reason, "{events:?}");
        assert_eq!(report["success"], finish_reason != "wire_drift", "{events:?}");
        let words = if finish_reason == "wire_drift" { "error" } else { "output" };
        let words = report[words].as_str().unwrap();
        let fits = words.starts_with("All of it.") || words.contains("message 1 is missing");
        assert!(fits, "{words}: {events:?}");
    }
    // No line told that it had begun.
    let report = result(&[event("turn_start"), turn]);
    assert_eq!((&report["input_tokens"], &report["success"]), (&json!(10), &json!(true)));
    let without = message("turn_end", &json!({"usage": null}));
    let report = result(&[event("turn_start"), without]);
    assert_eq!(report["finish_reason"], "wire_drift");
    let words = "usage is not an object in the turn_end of the assistant's message 1";
    assert!(report["error"].as_str().unwrap().starts_with(words), "{}", report["error"]);
}

/// rule: agent.md, The result: finish_reason comes from rawStopReason where the mapped one says
///   only error or is not known; raw_stop_reason has it as it came
#[test]
fn the_providers_own_word_counts_where_pi_has_none() {
    for (stop_reason, raw, finish_reason) in [
        ("error", "refusal", "content_filter"),
        ("aborted", "refusal", "content_filter"),
        ("error", "length", "length"),
        ("deferred", "max_tokens", "length"),
        ("deferred", "odd", "deferred"),
        ("error", "odd", "error"),
        ("error", "", "error"),
        ("stop", "refusal", "stop"),
        // As Google, OpenAI, Bedrock and Anthropic have them.
        ("error", "SAFETY", "content_filter"),
        ("error", "incomplete.content_filter", "content_filter"),
        ("error", "guardrail_intervened", "content_filter"),
        ("error", "MAX_TOKENS", "length"),
        ("error", "incomplete.max_output_tokens", "length"),
        ("pending", "refusal", "content_filter"),
        ("toolUse", "tool_calls", "tool_calls"),
    ] {
        let report = result(&[answer(&json!({"stopReason": stop_reason, "rawStopReason": raw}))]);
        assert_eq!(report["finish_reason"], finish_reason, "{stop_reason} {raw}");
        let told = report["raw_stop_reason"].as_str().unwrap_or_default();
        assert_eq!(told, raw, "{stop_reason}");
        let filtered = finish_reason == "content_filter";
        assert_eq!(report["error_kind"] == "refusal", filtered, "{stop_reason} {raw}");
    }
    // That of the last answer.
    let report = result(&[answer(&json!({"rawStopReason": "odd"})), answer(&json!({}))]);
    assert_eq!(report.get("raw_stop_reason"), None);
}

/// rule: agent.md, The result: An answer that was refused says so: in error_kind also where pi
///   exited with another code than 0, in error where pi has no words for it
#[test]
fn a_refusal_is_told_as_one() {
    let refused = [answer(&json!({"stopReason": "error", "rawStopReason": "SAFETY"}))];
    let told = result(&refused);
    assert_eq!(told["error"], "the answer was refused or filtered");
    let failed = End { exit_code: Some(1), ..End::default() };
    let (_, told) = outcome(&refused, &RunSettings::default(), &failed);
    assert_eq!((&told["finish_reason"], &told["error_kind"]), (&json!("error"), &json!("refusal")));
    // An answer without a reason of pi's own.
    let told = result(&[answer(&json!({"stopReason": null, "rawStopReason": "content_filter"}))]);
    assert_eq!(told["finish_reason"], "content_filter");
    assert_eq!(told["error"], "the answer was refused or filtered");
}

/// rule: agent.md, The result: Every paid token counts, once: the same end of a turn once more
///   adds nothing; results of tools that have no id are each another one's
#[test]
fn what_comes_twice_is_paid_once_and_two_results_are_two() {
    let end = message("turn_end", &json!({"timestamp": 1}));
    let told = result(&[event("turn_start"), answer(&json!({"timestamp": 1})), end.clone(), end]);
    let times = |told: &Value| told["input_tokens"].as_u64().unwrap() / 10;
    assert_eq!((times(&told), &told["num_turns"]), (1, &json!(1)));
    assert_eq!(told["provider_data"].get("recovered"), None);
    // Two turns that end alike are two.
    let turn = [event("turn_start"), answer(&json!({})), message("turn_end", &json!({}))];
    let lost = [event("turn_start"), message("turn_end", &json!({}))];
    let told = result(&[turn.as_slice(), &turn, &lost].concat());
    assert_eq!((times(&told), &told["num_turns"]), (3, &json!(3)));
    assert_eq!(told["provider_data"]["recovered"], 1);
    let paid = usage([10, 5, 0, 0, 0, 15], 0.25);
    let tool = json!({"role": "toolResult", "usage": paid});
    let ended = json!({"type": "message_end", "message": tool});
    let mut end = message("turn_end", &json!({}));
    end["toolResults"] = json!([tool, tool]);
    let told = result(&[event("turn_start"), answer(&json!({})), ended.clone(), ended, end]);
    assert_eq!((times(&told), told["provider_data"].get("recovered")), (3, None));
}

fn by(kind: &str, provider: &str, model: &str, concrete: Option<&str>) -> Value {
    let mut event = message(kind, &json!({"provider": provider, "model": model}));
    if let Some(concrete) = concrete {
        event["message"]["responseModel"] = concrete.into();
    }
    event
}

/// rule: agent.md, agent_event: turn_start has the model that was asked, and the one that answers
/// rule: agent.md, agent_event: Each event has the run's label
#[test]
fn a_turn_is_told_with_the_model_that_answers_it() {
    let asked = Asked::of("p/m:high", true);
    let settings = RunSettings { asked, label: Some("task 7".into()), ..RunSettings::default() };
    let user = json!({"type": "message_end", "message": {"role": "user", "model": "no"}});
    let unknown = json!({"event": "turn_start", "label": "task 7", "turn": 1, "provider": "p",
        "model": "m:high"});
    let mut known = unknown.clone();
    known["response_provider"] = "p".into();
    known["response_model"] = "m".into();
    let mut dated = known.clone();
    dated["response_model"] = "m-20250101".into();
    let begun = by("message_start", "p", "m", None);
    // Events behind a turn_start, how many of them pass before it is told, and how.
    let table: Vec<(Vec<Value>, usize, &Value)> = vec![
        (vec![user.clone(), begun.clone()], 2, &known),
        (vec![user, by("message_end", "p", "m", Some("m-20250101"))], 2, &dated),
        (vec![delta("text_delta", 0, "x"), begun], 1, &unknown),
        (vec![event("message_update")], 1, &unknown),
        (vec![event("tool_execution_start")], 1, &unknown),
        (vec![event("turn_end")], 1, &unknown),
        (vec![event("tool_execution_update"), event("queue_update")], 3, &unknown),
        (vec![], 1, &unknown),
    ];
    for (behind, passed, expected) in table {
        let mut run = AgentRun::new(settings.clone());
        let mut first = None;
        let all = [&[event("turn_start")], behind.as_slice()].concat();
        for (number, line) in lines(&all).iter().enumerate() {
            run.push(format!("{line}\n").as_bytes(), 0, &mut |told| {
                let told = serde_json::to_value(told).unwrap();
                assert_eq!(told["label"], "task 7", "{told}");
                first.get_or_insert((number, told));
            });
        }
        run.finish(0, &mut |told| {
            let at = first.as_ref().map_or(all.len(), |(number, _)| *number);
            first.get_or_insert((at, serde_json::to_value(told).unwrap()));
        });
        assert_eq!(first, Some((passed, expected.clone())), "{behind:?}");
    }
    let (_, report) = outcome(&[by("message_end", "p", "m", None)], &settings, &done());
    let fields = ["label", "provider", "model", "response_provider", "response_model"];
    assert_eq!(fields.map(|name| report[name].clone()), ["task 7", "p", "m:high", "p", "m"]);
    assert_eq!((report.get("model_mismatch"), &report["success"]), (None, &json!(true)));
}

/// rule: agent.md, The result: Another model than was asked: model_mismatch, and with strict_model
///   no success, at the first event that shows it
#[test]
fn another_model_than_was_asked_is_no_success() {
    let settings =
        |strict| RunSettings { asked: Asked::of("p/m", strict), ..RunSettings::default() };
    for (event, model) in [
        (by("message_start", "p", "n", None), "p/n"),
        (by("message_start", "q", "m", None), "q/m"),
        (by("message_end", "p", "m", Some("n")), "p/n"),
        (by("turn_end", "p", "n", None), "p/n"),
    ] {
        let mut run = AgentRun::new(settings(true));
        run.push(wire(&event).as_bytes(), 0, &mut |_| {});
        assert!(!run.mismatch());
        run.push(b"\n", 0, &mut |_| {});
        assert!(run.mismatch(), "{event}");
        let events = [event, answer(&json!({}))];
        let (_, report) = outcome(&events, &settings(true), &done());
        assert_eq!((&report["model_mismatch"], &report["success"]), (&json!(true), &json!(false)));
        let words = format!("{model} has answered, p/m was asked (strict_model)");
        assert!(report["error"].as_str().unwrap().starts_with(&words), "{}", report["error"]);
        assert_eq!(report["error_kind"], "model_not_found");
        let (_, report) = outcome(&events, &settings(false), &done());
        assert_eq!((&report["model_mismatch"], &report["success"]), (&json!(true), &json!(true)));
    }
    let end = End { stop: Some(Stop::ModelMismatch), signal: Some("SIGTERM"), ..End::default() };
    let (_, report) = outcome(&[by("message_start", "p", "n", None)], &settings(true), &end);
    assert_eq!(report["finish_reason"], "model_mismatch");
    assert!(report["error"].as_str().unwrap().starts_with("p/n has answered"));
}

/// rule: agent.md, The result: final_output is the text of the last assistant message alone
#[test]
fn the_last_message_stands_alone() {
    const MUCH: usize = 3 * 1024 * 1024;
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let one = [start("assistant"), delta("text_delta", 0, "one"), answer(&text("one"))];
    // Events, and the last message.
    let table: Vec<(Vec<Value>, &str)> = vec![
        (vec![], ""),
        (one.to_vec(), "one"),
        ([one.as_slice(), &[answer(&text("two"))]].concat(), "two"),
        ([one.as_slice(), &[start("assistant"), delta("text_delta", 3, "t")]].concat(), "t"),
        ([one.as_slice(), &[answer(&json!({}))]].concat(), ""),
        (vec![answer(&text("one")), event("turn_end"), event("agent_end")], "one"),
    ];
    for (events, last) in table {
        assert_eq!(result(&events)["final_output"], last, "{events:?}");
    }
    // Where the output has a gap, it may begin before, in or behind that.
    for (before, length) in [(0, 5 << 20), (MUCH, MUCH), (MUCH, 1 << 20)] {
        let last: String = "é".repeat(length / 2);
        let mut run = AgentRun::new(RunSettings::default());
        for text in [&"q".repeat(before), &last] {
            for event in [start("assistant"), delta("text_delta", 0, text)] {
                run.push(format!("{}\n", wire(&event)).as_bytes(), 0, &mut |_| {});
            }
        }
        let report = serde_json::to_value(run.report(&done())).unwrap();
        let found = report["final_output"].as_str().unwrap();
        assert!(!found.contains(['q', '\u{FFFD}']), "{before} {length}");
        if before + length < 4 << 20 || length < 2 << 20 {
            assert_eq!(found, last, "{before} {length}");
        } else {
            assert!(found.contains(" bytes of text are left out here]"), "{before} {length}");
            assert!(found.contains("éééé"), "{before} {length}");
        }
    }
}

/// rule: agent.md, The result: first_attempt_ms: the first call of write, edit or bash
/// rule: agent.md, The result: The errors of timeouts say what was waited for
#[test]
fn the_first_attempt_and_the_last_event() {
    let call =
        |name: &str| json!({"type": "tool_execution_start", "toolCallId": name, "toolName": name});
    let assembled = json!({"type": "message_update", "assistantMessageEvent": {"type": "toolcall_end",
        "toolCall": {"id": "e", "name": "edit", "arguments": {}}}});
    // Events, 10 ms apart; the first attempt, and the last event.
    let table: Vec<(Vec<Value>, Option<u64>, &str)> = vec![
        (vec![], None, "pi has said nothing"),
        (
            vec![event("agent_start")],
            None,
            "pi has started, and its own last event is \"agent_start\"",
        ),
        (vec![call("read"), call("Bash")], None, "its own last event is \"tool_execution_start\""),
        (vec![call("read"), call("bash"), call("write")], Some(20), "\"tool_execution_start\""),
        (vec![call("write"), event("new one")], Some(10), "its own last event is \"new one\""),
        (vec![assembled, call("bash")], Some(10), "is \"tool_execution_start\""),
    ];
    for (events, first_attempt_ms, words) in table {
        let stop = Some(Stop::FirstEventTimeout(400));
        let end = End { stop, started_at_once: Some(64), ..End::default() };
        let report = feed(&lines(&events), RunSettings::default(), &end).report;
        assert_eq!(report["first_attempt_ms"].as_u64(), first_attempt_ms, "{events:?}");
        let error = report["error"].as_str().unwrap();
        assert!(error.contains(words), "{error}");
        assert!(error.contains("; 64 runs started at once, and the default limit"), "{error}");
        assert_eq!(report["error_kind"], "timeout");
    }
}
