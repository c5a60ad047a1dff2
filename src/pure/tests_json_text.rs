//! Tests of the texts of JSON strings, against UTF-16 as JavaScript has it.

use serde_json::value::RawValue;

use super::*;
use crate::pure::json_fields::{Fields, each_item};

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % bound
    }
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
    for _ in 0..50_000 {
        let units: Vec<u16> =
            (0..random.below(12)).map(|_| UNITS[random.below(UNITS.len())]).collect();
        let expected = String::from_utf16_lossy(&units);
        let json = raw(&format!("\"{}\"", written(&units, &mut random)));
        assert_eq!(string(Some(&json), 1000).unwrap(), expected, "{json}");
        let (one, other) = units.split_at(random.below(units.len() + 1));
        let (mut half, mut joined) = (None, String::new());
        for part in [one, other] {
            pieces(&written(part, &mut random), &mut half, &mut |piece| joined.push_str(piece));
        }
        close(&mut half, &mut |piece| joined.push_str(piece));
        assert_eq!(joined, expected, "{units:x?}");
        let mended = mended(json.get(), 4).unwrap();
        assert_eq!(serde_json::from_str::<String>(&mended).unwrap(), expected, "{json}");
        replaced += usize::from(mended != json.get());
        let most = random.below(8);
        let mut bounded = Bounded::new(most);
        assert!(append(&json, &mut bounded));
        assert_eq!(bounded.text.len() + bounded.omitted_bytes as usize, expected.len());
        assert!(
            expected.starts_with(&bounded.text)
                && bounded.text.len() + 3 >= most.min(expected.len())
        );
        assert!(bounded.text.len() <= most);
    }
    assert!(replaced > 5_000, "{replaced}");
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
    each_item(fields.get("b").unwrap(), &mut |item| items.push(item.get()));
    assert_eq!(items, ["1", "{\"c\":\"x\"}"]);
    each_item(&object, &mut |item| items.push(item.get()));
    each_item(&raw("\"[1]\""), &mut |item| panic!("{item}"));
    assert_eq!(items.len(), 2);
    for other in ["1", "[1]", "\"{}\"", "null"] {
        assert!(Fields::of(Some(&raw(other))).0.is_empty() && Fields::parse(other).is_err());
    }
}
