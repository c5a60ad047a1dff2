//! Tests of a secret in the stream: masked for who reads the run, and for everybody else.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::mask::tests::naive;
use super::mask::{MaskedText, Secret};
use super::tests::*;
use super::{AgentRun, RunSettings};
use crate::limits::AGENT_SECRET_HINT_BYTES;
use crate::pure::tests_random::{Random, random};

const KEY: &str = "sk-Test/0123456789+abcdefghijklmnopqrs-t";

/// What came of a stream.
struct Piped {
    told: Vec<Value>,
    report: Value,
}

impl Piped {
    /// The deltas of one kind of event, joined.
    fn joined(&self, event: &str) -> String {
        let ours = self.told.iter().filter(|told| told["event"] == event);
        ours.map(|told| told["delta"].as_str().expect("a delta")).collect()
    }
}

/// Reads a stream in pieces of so many bytes.
fn piped(stream: &[u8], secret: &str, keep_events: bool, piece_bytes: usize) -> Piped {
    let secret = Some(Secret::new(secret.as_bytes()));
    let mut run = AgentRun::new(RunSettings { keep_events, secret, ..RunSettings::default() });
    let mut told = Vec::new();
    let mut tell = |event: &super::Told<'_>| told.push(serde_json::to_value(event).unwrap());
    for piece in stream.chunks(piece_bytes) {
        run.push(piece, 10, &mut tell);
    }
    run.finish(20, &mut tell);
    let report = serde_json::to_value(run.report(&done())).unwrap();
    Piped { told, report }
}

fn hidden(text: &str, secret: &str) -> String {
    String::from_utf8(naive(text.as_bytes(), secret.as_bytes())).expect("text")
}

/// JSON as JavaScript writes it of a string that may be cut inside a surrogate pair.
fn quoted(units: &[u16]) -> String {
    let mut text = String::from("\"");
    for one in char::decode_utf16(units.iter().copied()) {
        match one {
            Ok(c) => {
                let json = json!(c.to_string()).to_string();
                text.push_str(&json[1..json.len() - 1]);
            }
            Err(half) => write!(text, "\\u{:04x}", half.unpaired_surrogate()).unwrap(),
        }
    }
    text + "\""
}

/// The deltas of a block, of so many UTF-16 units each; the older pi repeats all of it in each.
fn deltas(kind: &str, index: usize, text: &str, units: usize, repeats: bool) -> String {
    let all: Vec<u16> = text.encode_utf16().collect();
    let mut lines = String::new();
    for (at, piece) in all.chunks(units).enumerate() {
        let partial = quoted(&all[..all.len().min((at + 1) * units)]);
        let partial =
            if repeats { format!(r#","partial":{{"content":{partial}}}"#) } else { String::new() };
        let delta = quoted(piece);
        writeln!(
            lines,
            r#"{{"type":"message_update","assistantMessageEvent":{{"type":"{kind}_delta","contentIndex":{index},"delta":{delta}{partial}}}}}"#
        )
        .unwrap();
    }
    lines
}

/// A message of these blocks, in deltas of so many units.
fn message(blocks: &[(bool, String)], units: usize, repeats: bool) -> String {
    let mut stream = wire(&start("assistant")) + "\n";
    for (index, (thinking, text)) in blocks.iter().enumerate() {
        let kind = if *thinking { "thinking" } else { "text" };
        stream += &deltas(kind, index, text, units, repeats);
    }
    for (index, (thinking, text)) in blocks.iter().enumerate() {
        let kind = if *thinking { "thinking_end" } else { "text_end" };
        let event = json!({"type": kind, "contentIndex": index, "content": text});
        stream += &wire(&json!({"type": "message_update", "assistantMessageEvent": event}));
        stream.push('\n');
    }
    let content: Vec<Value> = blocks
        .iter()
        .map(|(thinking, text)| match thinking {
            true => json!({"type": "thinking", "thinking": text}),
            false => json!({"type": "text", "text": text}),
        })
        .collect();
    stream + &wire(&answer(&json!({"content": content}))) + "\n"
}

/// A text with the secret in it, whole, in parts, twice in a row, and with something else.
fn any_text(secret: &str, random: &mut impl FnMut(usize) -> usize) -> String {
    let mut text = String::new();
    for _ in 0..1 + random(5) {
        let part = 1 + random(secret.len() - 1);
        match random(8) {
            0..3 => text += secret,
            3 => text += &secret[..part],
            4 => text += &secret[part..],
            5 => text += &format!("{}~", &secret[..part]),
            6 => text += ["é", "😀", "\n", "\"", "\\", "/"][random(6)],
            _ => text += "plain",
        }
    }
    text
}

/// rule: agent.md, Keys: Text and thinking are masked across deltas of every size, and the whole
///   message still matches what they told
#[test]
fn a_secret_in_deltas_of_any_size_is_masked_as_in_the_whole_text() {
    let secrets =
        [KEY.to_owned(), "a".repeat(40), "ab".repeat(20), "aab".repeat(3), "12345678".into()];
    let mut random = random(0x51ed_270b_a7a1_c3d5);
    for units in 1..=41 {
        for round in 0..7 {
            let secret = &secrets[round % secrets.len()];
            let mut texts = [any_text(secret, &mut random), any_text(secret, &mut random)];
            // What a block that is followed by another one ends with is not held back for long.
            texts[0].push('.');
            let [first, last] = texts.clone();
            let thought = any_text(secret, &mut random);
            let blocks = [(true, thought.clone()), (false, first.clone()), (false, last.clone())];
            let stream = message(&blocks, units, random(2) == 1);
            let outcome = piped(stream.as_bytes(), secret, true, 1 + random(300));
            let expected = [hidden(&first, secret), hidden(&last, secret)].join("\n\n");
            let name = format!("{units} {blocks:?}");
            assert_eq!(outcome.joined("text"), expected, "{name}");
            assert_eq!(outcome.joined("thinking"), hidden(&thought, secret), "{name}");
            assert_eq!(outcome.report["output"], expected, "{name}");
            assert!(outcome.report["provider_data"]["text_mismatches"].is_null(), "{name}");
        }
    }
}

/// rule: agent.md, Keys: A key that begins in one block and ends in another is none, blocks that
///   come by turns are masked each
#[test]
fn each_block_is_masked_by_itself() {
    let apart = [(false, KEY[..9].to_owned()), (false, KEY[9..].to_owned())];
    let outcome = piped(message(&apart, 3, false).as_bytes(), KEY, false, 100);
    assert_eq!(outcome.joined("text"), format!("{}\n\n{}", &KEY[..9], &KEY[9..]));
    let all: Vec<u16> = KEY.encode_utf16().collect();
    for units in 1..=41 {
        let mut stream = wire(&start("assistant")) + "\n";
        for piece in all.chunks(units) {
            let piece = String::from_utf16(piece).unwrap();
            for (kind, index) in [("thinking", 0), ("text", 1), ("text", 2)] {
                stream += &deltas(kind, index, &piece, units, false);
            }
        }
        stream += &(wire(&answer(&json!({"content": []}))) + "\n");
        let outcome = piped(stream.as_bytes(), KEY, false, 100);
        for event in ["text", "thinking"] {
            let told = outcome.joined(event).replace("\n\n", "");
            let most = AGENT_SECRET_HINT_BYTES.min(KEY.len() / 4);
            assert!(!told.contains(&KEY[..=most]), "{units}: {told}");
            assert!(!told.contains(&KEY[most..most + 8]), "{units}: {told}");
        }
    }
}

/// rule: agent.md, Keys: What only begins as the key is told unchanged, at the latest when the
///   block, the message or the stream ends, and before an event that follows
#[test]
fn what_begins_as_the_secret_is_told_in_its_order() {
    let head = wire(&start("assistant")) + "\n";
    let call = json!({"type": "toolcall_end", "contentIndex": 1,
        "toolCall": {"id": "c", "name": "bash", "arguments": {}}});
    let call = wire(&json!({"type": "message_update", "assistantMessageEvent": call})) + "\n";
    let event = |event: &Value| event["event"].as_str().unwrap().to_owned();
    for (length, order) in [(3, ["text", "text", "tool_use"]), (30, ["text", "tool_use", "text"])] {
        let near = &format!("Yes: {}", &KEY[..length]);
        let stream = format!("{head}{}{call}", deltas("text", 0, near, 100, false));
        let ended = piped(stream.as_bytes(), KEY, false, 100);
        assert_eq!(ended.joined("text"), *near, "the stream has ended");
        assert_eq!(ended.told.iter().map(event).collect::<Vec<_>>(), order);
        let again = piped(format!("{stream}{head}").as_bytes(), KEY, false, 100);
        assert_eq!(again.joined("text"), *near, "another message has begun");
    }
    let miss = format!("{}!", &KEY[..39]);
    for units in 1..=41 {
        let outcome =
            piped(message(&[(false, miss.clone())], units, true).as_bytes(), KEY, false, 64);
        assert_eq!(outcome.report["output"], miss);
    }
}

/// rule: agent.md, Keys: What pi tells of a tool call in a message_update is masked, and fields
///   that are not known
#[test]
fn what_else_a_message_update_has_is_masked() {
    let call = json!({"type": "toolcall_end", "contentIndex": 0,
        "toolCall": {"id": KEY, "name": KEY, "arguments": {"command": format!("echo {KEY}"), KEY: 1}}});
    let update =
        json!({"type": "message_update", "new": {KEY: KEY}, "assistantMessageEvent": call});
    let other = json!({"type": "message_update", "assistantMessageEvent": {"type": KEY}});
    let line = format!(
        r#"{{"type":"message_update",{}:[{}],"assistantMessageEvent":{}}}"#,
        json!(KEY),
        json!(KEY),
        wire(&other["assistantMessageEvent"])
    );
    let stream = [wire(&start("assistant")), wire(&update), wire(&other), line].join("\n") + "\n";
    for stream in [stream.clone(), stream.replace('/', r"\/")] {
        let outcome = piped(stream.as_bytes(), KEY, true, 1000);
        let all = format!("{:?}{}", outcome.told, outcome.report);
        assert!(!all.contains(&KEY[..8]), "{all}");
        assert!(all.contains("echo ***"), "{all}");
        assert_eq!(outcome.report["provider_data"]["events_left_out"], 3);
    }
}

/// rule: agent.md, Keys: Raw events that are kept are masked where they hold what they tell as a
///   whole; those that tell in pieces are left out, and those whose type is new
#[test]
fn raw_events_are_masked_or_left_out() {
    let kept = [
        json!({"type": "session", "id": KEY}),
        json!({"type": "message_end", "message": format!("<{KEY}> {KEY}")}),
        json!({"type": "agent_end", "messages": [{KEY: 1}]}),
    ];
    let left_out = [
        json!({"type": "message_update", "x": KEY}),
        json!({"type": "tool_execution_update", "partialResult": KEY}),
        json!({"type": "bash_execution_update", "delta": KEY}),
        json!({"type": "message_updated"}),
    ];
    for piece_bytes in [1, 7, 40, 1000, 65_536] {
        for slash in ["/", r"\/", r"\u002f"] {
            let all = [&kept[..], &left_out].concat();
            let all = lines(&all).join("\n").replace('/', slash) + "\n";
            let outcome = piped(all.as_bytes(), KEY, true, piece_bytes);
            let data = &outcome.report["provider_data"];
            let expected = json!(kept).to_string().replace(KEY, &"*".repeat(KEY.len()));
            assert_eq!(data["events"].to_string(), expected);
            assert_eq!(data["events_left_out"], left_out.len());
        }
    }
}

/// A text in pieces of random lengths.
fn masked(stream: &[u8], secret: &[u8], random: &mut Random) -> String {
    let mut text = MaskedText::new(Some(Secret::new(secret)));
    let mut out = Vec::new();
    let mut rest = stream;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(random.below(rest.len().min(6)) + 1);
        rest = later;
        out.extend(text.take(now));
    }
    out.extend(text.end());
    String::from_utf8(out).expect("text")
}

/// rule: agent.md, agent_execute, params: api_key is masked in command, lists and logs
/// rule: agent.md, Keys: A key with slashes is masked too where JSON writes them with a backslash
#[test]
fn a_secret_is_masked_however_a_stream_is_cut_and_json_writes_it() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..7_000 {
        let mut secret = b"a".to_vec();
        secret.extend((0..random.below(4)).map(|_| b"a/"[random.below(2)]));
        let plain: Vec<u8> = (0..random.below(30)).map(|_| b"ab/"[random.below(3)]).collect();
        let escaped = random.below(2) == 1;
        let written = |text: &[u8]| {
            let text = String::from_utf8_lossy(text).into_owned();
            if escaped { text.replace('/', r"\/") } else { text }
        };
        let out = masked(written(&plain).as_bytes(), &secret, &mut random);
        assert_eq!(out, written(&naive(&plain, &secret)), "{plain:?} {secret:?}");
    }
    assert!(Secret::new(b"a/b").masked(br#"{"x":"aa\/b"}"#).is_some());
    assert!(Secret::new(b"a/b").masked(br#"{"x":"a\\/b"}"#).is_none());
}
