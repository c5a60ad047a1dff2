//! Tests of the texts of JSON strings, against UTF-16 as JavaScript has it.

use serde_json::value::RawValue;

use super::*;
use crate::pure::json::fields::{Fields, each_item};
use crate::pure::tests_random::Random;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

/// Writes some units as JSON, at random as escapes; halves of pairs always so.
fn written(units: &[u16], random: &mut Random) -> String {
    let mut json = String::new();
    for unit in char::decode_utf16(units.iter().copied()) {
        let escape = |unit: u16| format!("\\u{unit:04x}");
        match unit {
            Err(half) => json.push_str(&escape(half.unpaired_surrogate())),
            Ok('"') => json.push_str("\\\""),
            Ok('\\') => json.push_str("\\\\"),
            Ok('\n') => json.push_str("\\n"),
            Ok(char) if random.below(3) == 0 => {
                json.extend(char.encode_utf16(&mut [0; 2]).iter().map(|unit| escape(*unit)));
            }
            Ok(char) => json.push(char),
        }
    }
    json
}

#[test]
fn same_as_utf_16_in_one_string_and_in_two() {
    const UNITS: [u16; 9] = [0x61, 0x22, 0x5C, 0x0A, 0xE9, 0x5B57, 0xD83D, 0xDE00, 0xFFFD];
    let mut random = Random(0xfeed_0001_0002_0003);
    let mut replaced = 0;
    for _ in 0..17_000 {
        let units: Vec<u16> =
            (0..random.below(12)).map(|_| UNITS[random.below(UNITS.len())]).collect();
        let expected = String::from_utf16_lossy(&units);
        let json = raw(&format!("\"{}\"", written(&units, &mut random)));
        assert_eq!(string(Some(&json), 1000).unwrap(), expected, "{json}");
        let (one, other) = units.split_at(random.below(units.len() + 1));
        let (mut half, mut joined) = (None, String::new());
        for part in [one, other] {
            let json = written(part, &mut random);
            let read = pieces(&json, &mut half, &mut |piece| {
                joined.push_str(piece);
                true
            });
            assert_eq!(read, json.len());
        }
        joined.push_str(half.map_or("", |_| REPLACEMENT));
        assert_eq!(joined, expected, "{units:x?}");
        let mended = mended(json.get(), 4).unwrap();
        assert_eq!(serde_json::from_str::<String>(&mended).unwrap(), expected, "{json}");
        replaced += usize::from(mended != json.get());
        let most = random.below(8);
        let mut bounded = Bounded::new(most);
        assert!(append(&json, &mut bounded));
        // What is left out counts at least as it is, and no more than as it was written.
        let (missing, omitted) = (expected.len() - bounded.text.len(), bounded.omitted_bytes);
        assert_eq!(missing > 0, omitted > 0, "{json} {most}");
        assert!((missing..=json.get().len().max(missing)).contains(&(omitted as usize)));
        assert!(
            expected.starts_with(&bounded.text)
                && bounded.text.len() + 3 >= most.min(expected.len())
        );
        assert!(bounded.text.len() <= most);
    }
    assert!(replaced > 1_700, "{replaced}");
}

/// All of a string was decoded to count what did not fit: a line of 64 MiB took two seconds.
#[test]
fn what_does_not_fit_is_not_decoded() {
    let json = raw(&format!("\"{}\"", "ab\\n\\u00e9".repeat(100_000)));
    let (mut half, mut decoded) = (None, 0);
    let read = pieces(quoted_text(&json).unwrap(), &mut half, &mut |piece| {
        decoded += piece.len();
        decoded < 1_000
    });
    assert!(
        (1_000..1_600).contains(&decoded) && (2_000..3_200).contains(&read),
        "{decoded} {read}"
    );
    let mut bounded = Bounded::new(1_000);
    for whole_bytes in [1_000_000 - 2_000, 2 * 1_000_000 - 2_000] {
        assert!(append(&json, &mut bounded));
        assert_eq!(bounded.text, "ab\né".repeat(200));
        assert!(bounded.omitted_bytes.abs_diff(whole_bytes) < 600, "{}", bounded.omitted_bytes);
    }
}

#[test]
fn items_behind_the_last_one_that_is_wanted_are_not_looked_at() {
    let array = format!("[1, {{}} ,{}2]", "[],".repeat(100_000));
    for (wanted, behind) in [(1, array.len() - 2), (2, array.len() - 6), (100_003, 1)] {
        let mut items = 0;
        let left = each_item(&raw(&array), &mut |_| {
            items += 1;
            items < wanted
        });
        assert_eq!((items, left), (wanted, behind));
    }
}

#[test]
fn what_is_no_string_is_none() {
    for json in ["1", "null", "[\"a\"]", "{}", "true"] {
        assert_eq!(string(Some(&raw(json)), 10), None);
    }
    assert_eq!(string(None, 10), None);
    assert_eq!(mended("[[[\"a\"]]]", 2), None);
    assert_eq!(mended("[[[\"\\ud83d\"]]]", 2), None);
    assert_eq!(mended("[[\"\\ud83d\\n\\\\ud83d\"]]", 2).unwrap(), "[[\"\\ufffd\\n\\\\ud83d\"]]");
}

#[test]
fn fields_and_items_are_there_as_they_were_written() {
    let object = raw(r#"{"a": 1.50, "\u0062":[1, {"c":"x"}], "a":true,"d":1e400}"#);
    let fields = Fields::of(Some(&object));
    let all: Vec<(&str, &str)> =
        fields.0.iter().map(|(name, value)| (name.as_ref(), value.get())).collect();
    assert_eq!(all, [("a", "1.50"), ("b", "[1, {\"c\":\"x\"}]"), ("a", "true"), ("d", "1e400")]);
    assert!(fields.is_true("a") && !fields.is_true("d") && fields.get("c").is_none());
    let mut items = Vec::new();
    let behind = each_item(fields.get("b").unwrap(), &mut |item| {
        items.push(item.get());
        true
    });
    assert_eq!((items.as_slice(), behind), (&["1", "{\"c\":\"x\"}"][..], 0));
    for other in [&object, &raw("\"[1]\"")] {
        assert_eq!(each_item(other, &mut |item| panic!("{item}")), 0);
    }
    for other in ["1", "[1]", "\"{}\"", "null"] {
        assert!(Fields::of(Some(&raw(other))).0.is_empty() && Fields::parse(other).is_err());
    }
}
