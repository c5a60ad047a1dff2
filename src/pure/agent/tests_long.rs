//! Tests of lines that are too long to be kept.

use serde_json::{Value, json};

use super::tests::*;
use super::{AgentRun, RunSettings};

/// Reads bytes with lines over so many bytes as long ones, in pieces of this size.
fn read(bytes: &[u8], long_bytes: usize, piece_bytes: usize, keep_events: bool) -> Vec<Value> {
    let mut run = AgentRun::new(RunSettings { keep_events, ..RunSettings::default() });
    run.long_bytes = long_bytes;
    let mut told = Vec::new();
    let mut tell = |event: &super::Told<'_>| told.push(serde_json::to_value(event).unwrap());
    for piece in bytes.chunks(piece_bytes) {
        run.push(piece, 7, &mut tell);
    }
    run.finish(8, &mut tell);
    told.push(serde_json::to_value(run.report(&done())).unwrap());
    told
}

fn tool_result(result: Value) -> Value {
    json!({"type": "tool_execution_end", "toolCallId": "t", "toolName": "bash", "result": result})
}

/// Lines of each kind with this text wherever one may be.
fn all_kinds(text: &str) -> Vec<String> {
    let block = json!({"type": "text", "text": text});
    let input = json!({"deep": [[text, {"a": text}], 1.5e3, null, true], "b": {}});
    let call = json!({"type": "toolCall", "id": "c", "name": "write", "arguments": input});
    lines(&[
        json!({"type": "session", "id": text, "new": input}),
        delta("thinking_delta", 1, text),
        delta("text_delta", 2, text),
        answer(&json!({"content": [block, call, block, block], "errorMessage": text})),
        answer(&json!({"content": text, "stopReason": "error", "errorMessage": text})),
        json!({"type": "message_update", "assistantMessageEvent":
            {"type": "toolcall_end", "toolCall": call, "partial": input}}),
        json!({"type": "message_update", "usage": input, "assistantMessageEvent":
            {"type": "text_delta", "contentIndex": 2, "delta": text, "partial": block}}),
        json!({"type": "tool_execution_start", "toolCallId": "d", "toolName": text, "args": input}),
        json!({"type": "tool_execution_start", "toolCallId": "e", "args": text}),
        tool_result(json!({"content": [block, {"type": "image", "data": text}, block]})),
        tool_result(json!({"content": text, "details": input})),
        tool_result(json!(text)),
        json!({"type": "auto_retry_start", "attempt": 1, "errorMessage": text}),
        json!({"type": "turn_end", "message": {"role": "assistant", "content": [block]}}),
        json!({"type": text, "field": input}),
        json!({"new": text, "type": "turn_start"}),
        json!({"type": "agent_end", "messages": [block, call], "willRetry": false}),
    ])
}

/// rule: agent.md, The stream: Peak memory at most the longest line and 1 MiB: a line over 256 KiB
///   is read as it comes, and means the same
#[test]
fn a_long_line_means_what_a_short_one_does() {
    let texts =
        ["", "plain words", "\u{1}\"\\/\u{8}\n", "é\u{20ac}\u{1F600}", "a\u{FFFD}b", "{[,]}:"];
    for text in texts {
        let text = text.repeat(9);
        let mut given = all_kinds(&text);
        for line in &mut given {
            // Halves of pairs, and the escapes that serde_json does not write.
            *line = line.replace('\u{FFFD}', "\\ud83d").replace('/', "\\/").replace("é", "\\u00E9");
        }
        let all = given.join("\r\n") + " \n";
        for keep_events in [false, true] {
            let expected = read(all.as_bytes(), usize::MAX, usize::MAX, keep_events);
            assert!(expected.len() > 10, "{} events", expected.len());
            for long_bytes in [0, 40, 300] {
                for piece_bytes in [1, 3, 64, usize::MAX] {
                    let found = read(all.as_bytes(), long_bytes, piece_bytes, keep_events);
                    assert_eq!(found, expected, "{text:?} {long_bytes} {piece_bytes}");
                }
            }
        }
    }
}

/// rule: agent.md, The stream: Peak memory at most the longest line and 1 MiB: a line over 256 KiB
///   is read as it comes, and means the same
#[test]
fn a_long_line_that_is_no_json_is_counted_as_a_short_one_is() {
    let good = wire(&tool_result(json!({"content": [{"type": "text", "text": "a\u{1F600}b"}]})));
    let mut all: Vec<Vec<u8>> = (0..good.len()).map(|at| good.as_bytes()[..at].to_vec()).collect();
    for at in 0..good.len() {
        for byte in [b'"', b'\\', b'}', b']', b',', b'{', b'x', 0xff, 0x1f] {
            let mut bytes = good.as_bytes().to_vec();
            bytes[at] = byte;
            all.push(bytes);
        }
    }
    all.push(b" \t \r".to_vec());
    all.push(["[".repeat(200), "]".repeat(200)].concat().into_bytes());
    for mut line in all {
        line.push(b'\n');
        let expected = read(&line, usize::MAX, usize::MAX, false);
        for piece_bytes in [1, 5, usize::MAX] {
            let found = read(&line, 0, piece_bytes, false);
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(&line));
        }
    }
}

/// What is left out of a long line is nothing that is told, or it is counted.
/// rule: agent.md, The stream: Peak memory at most the longest line and 1 MiB: a line over 256 KiB
///   is read as it comes, and means the same
#[test]
fn of_a_long_line_only_what_is_told_is_kept() {
    // More than an output of a tool may have, and more than a line's text may.
    let (some, much) = ("words é ".repeat(32_000), "some words\n".repeat(400_000));
    let answers = |text: &str| {
        let block = json!({"type": "text", "text": text});
        vec![
            vec![delta("text_delta", 0, text)],
            vec![delta("text_delta", 0, &text[..6]), answer(&json!({"content": [block, block]}))],
            vec![answer(&json!({"content": text}))],
        ]
    };
    let block = json!({"type": "text", "text": some});
    let others = vec![
        vec![tool_result(json!({"content": [{"type": "image", "data": some}, block, block]}))],
        vec![tool_result(json!(some))],
        vec![json!({"type": "tool_execution_start", "toolCallId": "e", "args": {"a": some}})],
        vec![json!({"type": "tool_execution_start", "toolCallId": "e", "args": some})],
        vec![json!({"type": "agent_end", "messages": [block, block], "willRetry": true})],
    ];
    let much = answers(&much).into_iter().take(1);
    for events in answers(&some).into_iter().chain(others).chain(much) {
        let line = lines(&events).join("\n") + "\n";
        let event = &events[events.len() - 1];
        let expected = comparable(read(line.as_bytes(), usize::MAX, usize::MAX, false));
        let found = comparable(read(line.as_bytes(), 256 * 1024, 64 * 1024, false));
        let kind = &event["type"];
        assert_eq!(found.len(), expected.len(), "{kind}");
        for (found, expected) in found.iter().zip(&expected) {
            let (found, expected) = (found.to_string(), expected.to_string());
            let at = found.bytes().zip(expected.bytes()).take_while(|(a, b)| a == b).count();
            let (from, to) = (at.saturating_sub(20), at + 60);
            let near = |text: &str| {
                String::from_utf8_lossy(&text.as_bytes()[from..to.min(text.len())]).into_owned()
            };
            let (shown, wanted) = (near(&found), near(&expected));
            assert!(found == expected, "{kind} at {at}: {shown} is not {wanted}");
        }
    }
}

/// Events without the counts of what is left out, of which some bytes are counted as text, and
/// those behind as JSON: where one ends and the other begins is a matter of pieces. So is where one
/// event of a text ends.
fn comparable(events: Vec<Value>) -> Vec<Value> {
    const LEFT_OUT: &str = " bytes of text are left out here]";
    let mut all: Vec<Value> = Vec::new();
    for mut event in events {
        if let Some(last) = all.last_mut().filter(|last| last["event"] == event["event"])
            && let (Some(text), Some(more)) = (last["delta"].as_str(), event["delta"].as_str())
        {
            last["delta"] = format!("{text}{more}").into();
            continue;
        }
        if event["event"] == "tool_result" {
            let omitted = event["omitted_bytes"].as_u64().unwrap_or_default();
            event["omitted_bytes"] = (omitted / 100_000).into();
        }
        all.push(event);
    }
    for event in &mut all {
        for field in ["delta", "output", "final_output"] {
            let Some(text) = event[field].as_str() else { continue };
            let parts = text.split(LEFT_OUT);
            let parts = parts.map(|part| part.trim_end_matches(|c: char| c.is_ascii_digit()));
            event[field] = parts.collect::<Vec<_>>().join(LEFT_OUT).into();
        }
    }
    all
}

/// rule: agent.md, The stream: A line of blanks is nothing, however long it is; blanks in a long
///   line are not kept
#[test]
fn blanks_of_a_long_line_are_not_kept() {
    let blanks = " ".repeat(8 * 1024 * 1024);
    for line in [blanks.clone(), format!("{blanks}{}", wire(&answer(&json!({}))))] {
        let mut run = AgentRun::new(RunSettings::default());
        for piece in line.as_bytes().chunks(64 * 1024) {
            run.push(piece, 0, &mut |_| {});
            assert!(run.heap_bytes() < 2 * 1024 * 1024, "{}", run.heap_bytes());
        }
        run.push(b"\n", 0, &mut |_| {});
        run.finish(0, &mut |_| {});
        let end = done();
        let report = run.report(&end);
        assert_eq!(report.provider_data.unparsed_lines, 0);
        assert_eq!(report.usage.input_tokens > 0, line.len() > blanks.len());
    }
}
