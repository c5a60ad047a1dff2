//! Tests of lines that are no event, not known, kept, or long.

use serde_json::{Value, json};

use super::tests::*;
use super::{AgentRun, RunSettings};
use crate::limits::{AGENT_JSON_DEPTH, AGENT_LINE_MAX_BYTES};

/// rule: agent.md, The stream: Unknown events and fields, unparsed lines and retries are counted,
///   64 KiB in all
#[test]
fn what_is_not_known_is_counted() {
    let long = "x".repeat(2000);
    let outcome = run(&lines(&[
        event("brand_new"),
        event("brand_new"),
        json!({"type": "turn_start", "colour": {"red": 1}}),
        json!({"type": "turn_start", "colour": 2, "long": long}),
        json!({"type": "message_update", "also": "good", "assistantMessageEvent":
            {"type": "text_delta", "delta": "x"}, "behind": 1}),
        json!({"type": "message_update", "assistantMessageEvent": {"type": "image_delta"}}),
        json!({"type": "tool_execution_end", "durationMs": 1, "toolCallId": "a", "new": null}),
    ]));
    let data = &outcome.report["provider_data"];
    let events = json!({"brand_new": 2, "message_update.image_delta": 1});
    assert_eq!(data["unknown_events"], events);
    let fields = json!({"turn_start.colour": {"red": 1}, "message_update.also": "good",
        "tool_execution_end.new": null, "turn_start.long": format!("\"{}", &long[..1023])});
    assert_eq!(data["unknown_fields"], fields);
    assert_eq!(data["unparsed_lines"], 0);
    assert_eq!(texts(&outcome, "text"), ["x"]);
}

/// The result is read by parsers that take 128 levels, and it has some of its own.
#[test]
fn what_is_not_known_is_told_as_text_where_it_is_nested_deep() {
    for (depth, as_text) in [(AGENT_JSON_DEPTH, false), (AGENT_JSON_DEPTH + 1, true), (127, true)] {
        let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let outcome = run(&[format!("{{\"type\":\"turn_start\",\"new\":{value}}}")]);
        let told = &outcome.report["provider_data"]["unknown_fields"]["turn_start.new"];
        assert_eq!(told.is_string(), as_text, "{depth}");
    }
}

/// The bound is one of the JSON that is told: short names made 153 KB of it, control characters
/// 391 KB.
#[test]
fn the_bound_of_what_is_not_known_is_one_of_its_json() {
    let short = |n: u64| event(&format!("{n:x}"));
    let escaped = |n: u64| event(&format!("{n}{}", "\u{1}".repeat(200)));
    let number = |n: u64| json!({"type": "turn_start", format!("f{n}"): 1e15});
    let quotes = |n: u64| json!({"type": "turn_start", format!("\"{n}"): "\"".repeat(400)});
    // Cut, and then told as the text that it was.
    let cut = |n: u64| json!({"type": "turn_start", format!("{n}"): vec!["\n"; 400]});
    let kinds: [&dyn Fn(u64) -> Value; 5] = [&short, &escaped, &number, &quotes, &cut];
    for (at, (kind, count)) in kinds.iter().zip([10_000, 1_000, 4_000, 1_000, 1_000]).enumerate() {
        let outcome = run(&lines(&(0..count).map(kind).collect::<Vec<_>>()));
        let data = &outcome.report["provider_data"];
        let told = ["unknown_events", "unknown_fields"].map(|name| &data[name]);
        let length: usize = told.iter().map(|all| all.to_string().len()).sum();
        assert!((15_000..64 * 1024).contains(&length), "{at}: {length}");
        let kept: usize = told.iter().map(|all| all.as_object().unwrap().len()).sum();
        assert_eq!(data["drift_dropped"].as_u64().unwrap() + kept as u64, count, "{at}");
        assert!(outcome.run.heap_bytes() < 100_000, "{at}");
    }
}

/// rule: agent.md, The stream: Unknown events and fields, unparsed lines and retries are counted,
///   64 KiB in all
#[test]
fn what_is_no_event_is_counted() {
    let cut = |line: &str| line[..line.len() / 2].to_owned();
    let turn = wire(&event("turn_start"));
    let end = wire(&answer(&json!({})));
    let text = wire(&delta("text_delta", 0, "hello"));
    // A line, whether it is unparsed, and events told.
    let table: Vec<(String, u64, usize)> = vec![
        (" \t\r".into(), 0, 0),
        (format!("  {turn} \r"), 0, 1),
        ("Loading extensions...".into(), 1, 0),
        ("[{\"type\":\"turn_start\"}]".into(), 1, 0),
        ("{\"type\":1}".into(), 1, 0),
        ("{\"a\":1}".into(), 1, 0),
        ("{\"a\":1,\"type\":\"turn_start\"}".into(), 0, 1),
        ("{\"type\":\"turn\\u005fstart\"}".into(), 0, 1),
        (format!("{turn}{turn}"), 1, 0),
        (cut(&end), 1, 0),
        ("{\"type\":\"turn_start\",}".into(), 1, 0),
        ("{\"type\":\"message_update\"".into(), 1, 0),
        ("{\"type\":\"message_update\"}".into(), 0, 0),
        (text.replace("hello", "\\x"), 1, 0),
        (text[..text.find("hello").unwrap()].to_owned(), 1, 0),
        // What follows the delta is not read.
        (text[..text.find("lo\"").unwrap() + 3].to_owned(), 0, 1),
        (text.replacen("type", "kind", 1), 1, 0),
    ];
    for (line, unparsed, told) in table {
        let outcome = run(std::slice::from_ref(&line));
        let data = &outcome.report["provider_data"];
        assert_eq!(data["unparsed_lines"], unparsed, "{line}");
        assert_eq!(outcome.told.len(), told, "{line}");
    }
    let mut run = AgentRun::new(RunSettings::default());
    let mut told = 0;
    for line in [&b"\xff\xfe{}"[..], b"{\"type\":\"turn_start\",\"a\":\"\xff\"}", b"{\"\xc3\":1}"] {
        run.push(line, 0, &mut |_| told += 1);
        run.push(b"\n", 0, &mut |_| told += 1);
    }
    assert_eq!((run.unparsed_lines, told), (3, 0));
}

/// The parser takes a number that is cut behind its point for a fault, not for a missing end: the
/// line was given up there, with all that it said.
/// rule: agent.md, The stream: However the stream is cut into reads, it is the same
#[test]
fn a_line_cut_inside_a_number_is_read_on() {
    let line = json!({"type": "message_update", "assistantMessageEvent":
        {"type": "text_delta", "delta": "x"}});
    let number = r#""usage":{"input":-1.5e+3},"assistantMessageEvent""#;
    let line = format!("{}\n", wire(&line).replacen(r#""assistantMessageEvent""#, number, 1));
    for at in 0..line.len() {
        let mut run = AgentRun::new(RunSettings::default());
        let mut told = 0;
        run.push(&line.as_bytes()[..at], 0, &mut |_| told += 1);
        run.push(&line.as_bytes()[at..], 0, &mut |_| told += 1);
        assert_eq!((run.unparsed_lines, told), (0, 1), "{}", &line[..at]);
    }
}

/// rule: agent.md, The stream: A stream that is cut off or damaged says so and is never fatal
#[test]
fn an_unterminated_line_is_an_event_if_it_is_whole() {
    let whole = wire(&answer(&json!({})));
    let text = wire(&delta("text_delta", 0, "hello"));
    let skipped = wire(&json!({"type": "tool_execution_update"}));
    for (line, unparsed, told, answers) in [
        (whole.as_str(), 0, 0, 5),
        (&whole[..whole.len() - 1], 1, 0, 0),
        // Their ends are not looked at.
        (&text, 1, 1, 0),
        (&skipped, 1, 0, 0),
        (" ", 0, 0, 0),
        ("{\"type\":\"mess", 1, 0, 0),
    ] {
        for keep_events in [false, true] {
            let mut run = AgentRun::new(RunSettings { keep_events, ..RunSettings::default() });
            let mut count = 0;
            run.push(line.as_bytes(), 0, &mut |_| count += 1);
            run.finish(0, &mut |_| count += 1);
            assert_eq!((run.unparsed_lines, count), (unparsed, told), "{line}");
            let report = serde_json::to_value(run.report(&done())).unwrap();
            assert_eq!(report["output_tokens"], answers, "{line}");
        }
    }
}

/// rule: agent.md, agent_execute, params: stream (true), keep_events (false)
/// rule: agent.md, The stream: keep_events: raw events, 8 MiB, then counted
#[test]
fn raw_events_are_kept_up_to_their_bound() {
    let all = [
        delta("text_delta", 0, "x"),
        event("tool_execution_update"),
        answer(&json!({})),
        json!({"type": "turn_start", "half": "\u{FFFD}"}),
        event("unknown"),
    ];
    let mut given = lines(&all);
    given[3] = given[3].replace('\u{FFFD}', "\\ud83d");
    given.push("banner".into());
    given.push("{\"type\":\"tool_execution_update\",\"cut".into());
    let settings = RunSettings { keep_events: true, ..RunSettings::default() };
    let outcome = feed(&given, settings.clone(), &done());
    assert_eq!(outcome.report["provider_data"]["events"], json!(all));
    assert_eq!(outcome.report["provider_data"]["events_dropped"], 1);
    assert_eq!(run(&given).report["provider_data"]["events"], Value::Null);
    // Eight of nine fit, and the small one behind them.
    let large = json!({"type": "message_update", "assistantMessageEvent":
        {"type": "text_end", "content": "x".repeat(1024 * 1024 - 200)}});
    let mut given = vec![wire(&large); 9];
    given.extend([wire(&event("turn_start")), wire(&answer(&json!({})))]);
    let outcome = feed(&given, settings, &done());
    let events = outcome.report["provider_data"]["events"].as_array().unwrap();
    assert_eq!(events.len(), 10);
    assert_eq!(outcome.report["provider_data"]["events_dropped"], 1);
    assert!(outcome.run.heap_bytes() <= 9 * 1024 * 1024, "{}", outcome.run.heap_bytes());
}

/// A line of this beginning that is as long as lines may be, and so many bytes longer, in pieces.
fn long_line(run: &mut AgentRun, head: &str, over: usize, told: &mut Vec<Value>) {
    let mut tell = |event: &super::Told<'_>| told.push(serde_json::to_value(event).unwrap());
    run.push(head.as_bytes(), 1, &mut tell);
    let piece = vec![b'x'; 1024 * 1024];
    let mut left = AGENT_LINE_MAX_BYTES + over - head.len() - 2;
    while left > 0 {
        let now = left.min(piece.len());
        run.push(&piece[..now], 1, &mut tell);
        left -= now;
        assert!(run.heap_bytes() < AGENT_LINE_MAX_BYTES + 1024 * 1024, "{}", run.heap_bytes());
    }
    run.push(b"\"}\n", 1, &mut tell);
}

/// rule: agent.md, The stream: A line over 16 MiB counts as unparsed, also where it is skipped
#[test]
fn a_line_over_the_longest_counts_as_unparsed_also_where_it_is_skipped() {
    let skipped =
        r#"{"type":"message_update","assistantMessageEvent":{"type":"text_start"},"more":""#;
    let ended = r#"{"type":"message_end","more":""#;
    for (head, over, unparsed) in [(skipped, 0, 0), (skipped, 1, 1), (ended, 0, 0)] {
        let mut run = AgentRun::new(RunSettings::default());
        long_line(&mut run, head, over, &mut Vec::new());
        run.push(b"{\"type\":\"turn_start\"}\n", 1, &mut |_| {});
        let report = serde_json::to_value(run.report(&done())).unwrap();
        assert_eq!(report["provider_data"]["unparsed_lines"], unparsed, "{head} {over}");
        assert_eq!(report["num_turns"], 1, "the next line is read");
    }
}

/// rule: agent.md, The stream: Of a line over 16 MiB the type is read: an agent_end ends the run,
///   and what may have cost something makes it wire_drift
#[test]
fn of_a_line_that_is_skipped_the_type_counts() {
    let before = lines(&[event("agent_start"), event("turn_start"), start("assistant")]);
    let answered = [before.clone(), lines(&[answer(&json!({}))])].concat();
    // What comes before, what is skipped, whether the run is done, and how it ends.
    let table = [
        (&answered, r#"{"a":[{"type":1}],"type":"agent_end","messages":""#, true, "stop"),
        (&before, r#"{"type":"agent_end","messages":""#, true, "wire_drift"),
        (&answered, r#"{"type":"message_end","message":""#, false, "wire_drift"),
        (&answered, r#"{"type":"compaction_end","result":""#, false, "wire_drift"),
        (&answered, r#"{"type":"turn_end","message":""#, false, "stop"),
    ];
    for (before, head, done_then, reason) in table {
        let mut run = AgentRun::new(RunSettings::default());
        let mut told = Vec::new();
        for line in before {
            run.push(line.as_bytes(), 1, &mut |_| {});
            run.push(b"\n", 1, &mut |_| {});
        }
        long_line(&mut run, head, 1, &mut told);
        assert_eq!(run.clocks().settled_ms.is_some(), done_then, "{head}");
        if !done_then {
            run.push(b"{\"type\":\"agent_end\",\"messages\":[]}\n", 2, &mut |_| {});
        }
        run.finish(3, &mut |_| {});
        let report = serde_json::to_value(run.report(&done())).unwrap();
        assert_eq!(report["finish_reason"], reason, "{head}");
        assert_eq!(report["provider_data"]["unparsed_lines"], 1);
        let turns = told.iter().filter(|one| one["event"] == "turn_end").count();
        assert_eq!(turns, usize::from(head.contains("turn_end")), "{told:?}");
    }
}
