//! Tests of the assistant's text: deltas, blocks, what only the end of a message has.

use serde_json::{Value, json};

use super::tests::*;
use crate::pure::tests_random::random;

/// rule: agent.md, agent_event: text and thinking: deltas, also where pi cuts a surrogate pair
#[test]
fn blocks_of_text_are_told_apart_and_joined_they_are_the_output() {
    let outcome = run(&lines(&[
        start("assistant"),
        delta("thinking_delta", 0, "hm"),
        delta("text_delta", 1, ""),
        delta("text_delta", 1, "one"),
        delta("thinking_delta", 2, "…"),
        delta("text_delta", 1, "!"),
        delta("text_delta", 3, "two"),
        answer(&json!({"content": [{"type": "text", "text": "never told twice"}]})),
        start("assistant"),
        delta("text_delta", 3, "three"),
        answer(&json!({})),
        // A version without deltas: the same answer, told as a whole.
        start("assistant"),
        answer(&json!({"content": [{"type": "thinking", "thinking": "x"},
            {"type": "text", "text": "four"}, {"type": "text", "text": "five"}]})),
        answer(&json!({"content": "six"})),
    ]));
    let told = texts(&outcome, "text");
    assert_eq!(told, ["one", "!", "\n\ntwo", "\n\nthree", "\n\nfour", "\n\nfive", "\n\nsix"]);
    assert_eq!(outcome.report["output"], told.concat());
    assert_eq!(texts(&outcome, "thinking"), ["hm", "…"]);
    assert_eq!(outcome.report["first_text_ms"], 40);
}

/// rule: agent.md, agent_event: text and thinking: deltas, also where pi cuts a surrogate pair
#[test]
fn halves_of_a_surrogate_pair_are_joined_and_a_lone_one_is_replaced() {
    let raw = |kind: &str, text: &str| {
        format!(
            r#"{{"type":"message_update","assistantMessageEvent":{{"type":"{kind}_delta","contentIndex":0,"delta":"{text}"}}}}"#
        )
    };
    let end = wire(&answer(&json!({})));
    // Deltas, and the texts told.
    let table: &[(Deltas, &[&str])] = &[
        (&[("text", r"a\ud83d"), ("text", r"\ude00b")], &["a", "😀b"]),
        (&[("text", r"\ud83d"), ("text", ""), ("text", r"\ude00")], &["😀"]),
        (&[("text", r"a\ud83d"), ("text", "b")], &["a", "\u{FFFD}b"]),
        (&[("text", r"\ude00b")], &["\u{FFFD}b"]),
        (&[("text", r"\ud83d\ud83d"), ("text", r"\ude00")], &["\u{FFFD}", "😀"]),
        (&[("text", r"\ud83d\n")], &["\u{FFFD}\n"]),
        (&[("text", r"\ud83d"), ("thinking", r"\ude00"), ("text", "x")], &["\u{FFFD}", "x"]),
        (&[("text", r"a\ud83d")], &["a", "\u{FFFD}"]),
        (&[("text", r#"\"\\\/\b\f\n\r\t\u00e9\u0000"#)], &["\"\\/\u{8}\u{c}\n\r\té\0"]),
    ];
    for (deltas, expected) in table {
        let mut all: Vec<String> = deltas.iter().map(|(kind, text)| raw(kind, text)).collect();
        let open = run(&all);
        all.push(end.clone());
        let outcome = run(&all);
        assert_eq!(texts(&outcome, "text"), *expected, "{deltas:?}");
        assert_eq!(outcome.report["output"], expected.concat(), "{deltas:?}");
        assert_eq!(open.report["output"], expected.concat(), "cut: {deltas:?}");
    }
}

/// rule: agent.md, The result: A long output loses its middle, and says so
#[test]
fn a_long_text_loses_its_middle() {
    let piece = "0123456789é\n".repeat(20_000);
    let all: Vec<Value> = (0..40).map(|_| delta("text_delta", 0, &piece)).collect();
    let outcome = run(&lines(&all));
    let told = texts(&outcome, "text").concat();
    assert_eq!(told, piece.repeat(40));
    let output = outcome.report["output"].as_str().unwrap();
    let (head, rest) = output.split_once("\n\n[").unwrap();
    let (omitted, tail) = rest.split_once(" bytes of text are left out here]\n\n").unwrap();
    assert!(told.starts_with(head) && told.ends_with(tail));
    assert_eq!(head.len() + tail.len() + omitted.parse::<usize>().unwrap(), told.len());
    assert!(output.len() <= 4 * 1024 * 1024 + 100);
    // A long delta is told in pieces.
    assert!(outcome.told.iter().all(|told| told["delta"].as_str().unwrap().len() <= 64 * 1024));
}

/// If some deltas of a message came, its end was never looked at: the rest of its text was lost
/// without a word.
#[test]
fn what_deltas_have_not_told_is_told_at_the_end_of_a_message() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let thinking = json!({"type": "thinking", "thinking": "x"});
    // Deltas, what the end of the message has, what the end told, and whether the two differ.
    let table: &[Ended] = &[
        (&[(0, "a"), (0, "b")], json!([text("ab")]), &[], 0),
        (&[(0, "a")], json!([text("abc")]), &["bc"], 0),
        (&[(0, "a")], json!("a\né"), &["\né"], 0),
        (&[(1, "a")], json!([thinking, text("abc")]), &["bc"], 0),
        (&[(1, "a")], json!([text("a"), text("b")]), &["\n\nb"], 0),
        (&[(0, "a")], json!([text("a"), text(""), text("b")]), &["\n\nb"], 0),
        (&[(0, "a")], json!([text("ab"), thinking, text("d")]), &["b", "\n\nd"], 0),
        (&[(0, "a"), (1, "b")], json!([text("a"), text("bc")]), &["c"], 0),
        (&[(0, "a"), (1, "b")], json!([text("a"), text("b")]), &[], 0),
        (&[], json!([text("a"), text("b")]), &["\n\na", "\n\nb"], 0),
        (&[(0, "")], json!([text("a")]), &["\n\na"], 0),
        (&[(0, "a"), (1, "b")], json!([text("ab")]), &[], 1),
        (&[(0, "ab")], json!([text("a")]), &[], 1),
        (&[(0, "ab")], json!([text("xbc")]), &[], 1),
        (&[(0, "é")], json!([text("e\u{301}")]), &[], 1),
        (&[(0, "a")], json!([]), &[], 1),
        (&[], json!([]), &[], 0),
    ];
    for (deltas, content, rest, mismatches) in table {
        let before = [delta("text_delta", 0, "before"), answer(&json!({"content": "before"}))];
        let deltas: Vec<Value> =
            deltas.iter().map(|(index, text)| delta("text_delta", *index, text)).collect();
        let end = answer(&json!({"content": content}));
        let open = run(&lines(&[&before[..], &deltas].concat()));
        let all = [&before[..], &deltas, std::slice::from_ref(&end), &before].concat();
        let outcome = run(&lines(&all));
        let told = texts(&outcome, "text");
        let so_far = texts(&open, "text").len();
        assert_eq!(&told[so_far..told.len() - 1], *rest, "{deltas:?} {content}");
        assert_eq!(told.last().unwrap(), "\n\nbefore", "{deltas:?} {content}");
        assert_eq!(outcome.report["output"], told.concat(), "{deltas:?} {content}");
        let counted = outcome.report["provider_data"].get("text_mismatches");
        let expected = (*mismatches > 0).then(|| json!(mismatches));
        assert_eq!(counted, expected.as_ref(), "{deltas:?} {content}");
    }
    // An end without content says nothing of the text.
    let mut end = answer(&json!({}));
    end["message"].as_object_mut().unwrap().remove("content");
    let outcome = run(&lines(&[delta("text_delta", 0, "a"), end]));
    assert_eq!(outcome.report["provider_data"].get("text_mismatches"), None);
}

#[test]
fn half_a_pair_at_the_end_of_the_deltas_is_made_whole_by_the_end_of_the_message() {
    let cut = r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"a\ud83d"}}"#;
    for (content, told, mismatches) in [
        ("a\u{1F600}b", &["a", "\u{1F600}b"][..], Value::Null),
        ("aHALF", &["a", "\u{FFFD}"], Value::Null),
        ("a", &["a", "\u{FFFD}"], Value::Null),
        ("b", &["a", "\u{FFFD}"], json!(1)),
    ] {
        let end = wire(&answer(&json!({"content": [{"type": "text", "text": content}]})));
        let outcome = run(&[cut.to_owned(), end.replace("HALF", "\\ud83d")]);
        assert_eq!(texts(&outcome, "text"), told, "{content}");
        assert_eq!(outcome.report["provider_data"]["text_mismatches"], mismatches, "{content}");
    }
}

/// However a text is cut into deltas, and wherever they stop, the output is the message's text.
#[test]
fn deltas_and_the_rest_are_the_text_at_random() {
    let mut below = random(0x0dd5_0123_4567_89ab);
    for _ in 0..700 {
        let blocks: Vec<String> = (0..1 + below(3))
            .map(|_| {
                (0..1 + below(40)).map(|_| ["a", "é", "\n", "\u{1F600}", "\""][below(5)]).collect()
            })
            .collect();
        let (mut all, stop, mut count) = (Vec::new(), below(60), 0);
        'told: for (index, block) in blocks.iter().enumerate() {
            let mut left = block.as_str();
            while !left.is_empty() {
                let at =
                    crate::pure::text::utf8::ceil_boundary(left, (1 + below(9)).min(left.len()));
                if count + at > stop {
                    break 'told;
                }
                all.push(delta("text_delta", index as u64, &left[..at]));
                (left, count) = (&left[at..], count + at);
            }
        }
        let content: Vec<Value> =
            blocks.iter().map(|text| json!({"type": "text", "text": text})).collect();
        all.push(answer(&json!({"content": content})));
        let outcome = run(&lines(&all));
        assert_eq!(outcome.report["output"], blocks.join("\n\n"), "{all:?}");
        assert_eq!(outcome.report["output"], texts(&outcome, "text").concat());
        assert_eq!(outcome.report["provider_data"].get("text_mismatches"), None, "{all:?}");
    }
}

/// A line of 64 MiB was decoded and told to its end, or taken apart block by block, and execd stood
/// still for up to two seconds.
#[test]
fn of_one_line_so_much_text_is_told_as_a_result_has() {
    const BOUND: usize = 4 * 1024 * 1024;
    let long = "ab\n".repeat(BOUND / 3 + 9);
    let [text, block] =
        [long.as_str(), "some words"].map(|text| json!({"type": "text", "text": text}));
    let end = |content: Value| answer(&json!({"content": content}));
    for (events, least, most) in [
        (vec![delta("text_delta", 0, &long)], BOUND - 3, BOUND),
        // What was told by deltas is looked at besides.
        (vec![delta("text_delta", 0, "ab"), end(json!(long))], BOUND - 3, BOUND + 2),
        (vec![end(json!([long, block, block]))], 22, 22),
        (vec![end(json!([text, block, block]))], BOUND - 3, BOUND),
        (vec![end(json!(vec![&block; 10_000]))], 4_096 * 12 - 2, 4_096 * 12 - 2),
    ] {
        let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
        let outcome = run(&lines(&events));
        let told = texts(&outcome, "text").concat();
        let (head, note) = told.split_once("\n\n[").unwrap_or((&told, ""));
        assert!((least..=most).contains(&head.len()), "{kinds:?}: {}", head.len());
        assert_eq!(note.is_empty(), most == 22, "{kinds:?}");
        assert!(most == 22 || note.ends_with(" bytes of text are left out here]\n\n"), "{note}");
        assert_eq!(outcome.report["provider_data"].get("text_mismatches"), None, "{kinds:?}");
    }
    // What was not told as a whole is not compared.
    let outcome =
        run(&lines(&[delta("text_delta", 0, &long), end(json!("other")), end(json!("b"))]));
    assert!(texts(&outcome, "text").concat().ends_with("here]\n\n\n\nb"));
    assert_eq!(outcome.report["provider_data"].get("text_mismatches"), None);
}
