//! Tests of the envelope and the params: what is taken, what is refused, and in which words.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::limits::{MAX_PARAMS, QUOTED_VALUE_BYTES};

fn id(json: &str) -> RequestId {
    RequestId::from_json(json).expect("an id")
}

/// The code, the id to answer (or none: it is not answered) and the message of a refused line.
fn refusal(line: &[u8]) -> (i32, String, String) {
    let Err(refused) = parse(line) else {
        panic!("{} should be refused", String::from_utf8_lossy(line))
    };
    let id = refused.id.map_or("none".to_owned(), |id| id.to_string());
    (refused.error.code, id, refused.error.message)
}

// ---- Envelopes ------------------------------------------------------------------------------

/// rule: protocol.md, Framing: `jsonrpc` may be left out in a request; a reply always has it
/// rule: protocol.md, Framing: Unknown fields beside `method` are ignored
#[test]
fn what_a_request_may_leave_out_and_what_may_stand_beside() {
    let all = r#" {"jsonrpc":"1.0","id":7,"method":"x","params":{"a" : 1}} "#;
    let beside = r#"{"x":[1,{}],"x":null,"method":"m","":0,"Method":3,"result":1,"id":"a"}"#;
    let escaped = r#"{"\u006dethod":"p\u0069ng","\u0069d":1.50,"p\u0061rams":{}}"#;
    for (line, id, method, params) in [
        (all, Some("7"), "x", r#"{"a" : 1}"#),
        (r#"{"method":"ping"}"#, None, "ping", "{}"),
        (r#"{"id":null,"method":"ping"}"#, Some("null"), "ping", "{}"),
        (beside, Some(r#""a""#), "m", "{}"),
        (escaped, Some("1.50"), "ping", "{}"),
    ] {
        let (id, method) = (id.map(self::id), method.into());
        assert_eq!(parse(line.as_bytes()).expect(line), Request { id, method, params });
    }
}

/// rule: protocol.md, Errors: −32600: no method, a method that is no string, an array, an id of
///   another type
#[test]
fn lines_that_are_no_requests_get_the_documented_code_and_id() {
    let deepest = format!("{}{}", "[".repeat(MAX_JSON_DEPTH), "]".repeat(MAX_JSON_DEPTH));
    let id = format!(r#"{{"id":"{}","method":"m"}}"#, "x".repeat(MAX_ID_BYTES - 2));
    assert!(parse(id.as_bytes()).is_ok());
    for (line, code, id) in [
        ("", -32700, "null"),
        ("{'id':1}", -32700, "null"),
        (r#"{"id":01,"method":"m"}"#, -32700, "null"),
        (r#"{"id":1,"method":"m",}"#, -32700, "null"),
        (r#"{"id":1,"method":"m","params":{"a":"\x41"}}"#, -32700, "null"),
        (&format!("[{deepest}]"), -32700, "null"),
        (&deepest, -32600, "null"),
        (&id.replacen('x', "xx", 1), -32600, "null"),
        (r#"{"id":true,"method":"m"}"#, -32600, "null"),
        (r#"{"id":5,"id":6,"method":"m"}"#, -32600, "null"),
        (r#"{"id":5,"id":6,"method":"m"} x"#, -32700, "null"),
        (r#"{"id":5,"method":"m","params":"{}"}"#, -32602, "5"),
        (r#"{"method":"m","params":[]}"#, -32602, "none"),
    ] {
        let (got, echoed, message) = refusal(line.as_bytes());
        assert_eq!((got, echoed.as_str()), (code, id), "{message}");
        assert!(message.len() < 500 && !message.contains('\n'), "{message}");
    }
}

#[test]
fn a_quoted_value_is_whole_or_cut_at_a_character() {
    assert_eq!(quoted("\"é\""), "\"é\"");
    let exact = "x".repeat(QUOTED_VALUE_BYTES);
    assert_eq!(quoted(&exact), exact);
    let long = format!("{}é{}", "x".repeat(QUOTED_VALUE_BYTES - 1), "y".repeat(10));
    let expected = format!("{}… ({} bytes)", "x".repeat(QUOTED_VALUE_BYTES - 1), long.len());
    assert_eq!(quoted(&long), expected);
}

// ---- Params ---------------------------------------------------------------------------------

const fn param(name: &'static str, kind: Kind) -> Param {
    Param::optional(name, kind, "what it is")
}

const TABLE: &[Param] = &[
    Param::required("must", Kind::Integer, "a number that is needed"),
    param("text", Kind::Text),
    param("full", Kind::NonEmptyText),
    param("chars", Kind::Chars),
    param("on", Kind::Bool),
    param("word", Kind::Choice(&["one", "two"])),
    param("env", Kind::Env),
    param("id", Kind::Id),
    param("signal", Kind::Signal),
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct All {
    must: Int,
    text: Option<String>,
    full: Option<String>,
    chars: Option<String>,
    #[serde(default)]
    on: bool,
    word: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, Option<String>>,
    id: Option<Box<RawValue>>,
    signal: Option<Box<RawValue>>,
}

fn all(raw: &str) -> Result<All, (Value, String)> {
    params::read(raw, TABLE).map_err(|error| {
        assert_eq!(error.code, -32602, "{raw}");
        (error.data["param"].clone(), error.message)
    })
}

/// rule: unified-exec.md, exec_command, params: Params of a wrong type are refused by name
#[test]
fn every_kind_takes_its_values() {
    let raw = r#"{"must":1e3,"text":"","full":"x","chars":"a\u0000b","on":true,"word":"two",
                  "env":{"A":"","B":null},"id":null,"signal":"int"}"#;
    let read = all(raw).expect("all fit");
    assert_eq!(
        (read.must, read.text.as_deref(), read.full.as_deref()),
        (Int(1000), Some(""), Some("x"))
    );
    assert_eq!(
        (read.chars.as_deref(), read.on, read.word.as_deref()),
        (Some("a\0b"), true, Some("two"))
    );
    assert_eq!(read.env, BTreeMap::from([("A".into(), Some(String::new())), ("B".into(), None)]));
    // serde makes no difference between null and left out here; the methods that take an id
    // require it.
    assert!(read.id.is_none());
    assert_eq!(read.signal.as_deref().map(RawValue::get), Some("\"int\""));
    assert!(all(r#"{"must":0}"#).is_ok_and(|read| !read.on && read.env.is_empty()));
}

#[test]
fn whole_numbers_in_any_spelling_saturate_and_clamp() {
    let cases = [
        ("-1", -1),
        ("250.0", 250),
        ("2.5e1", 25),
        ("-0.0", 0),
        ("18446744073709551615", i64::MAX),
        ("-99999999999999999999999999", i64::MIN),
        ("1e300", i64::MAX),
    ];
    for (raw, expected) in cases {
        let read = all(&format!(r#"{{"must":{raw}}}"#)).expect(raw);
        assert_eq!(read.must, Int(expected), "{raw}");
    }
    assert_eq!(Int(i64::MIN).clamped(250, 30_000), 250);
    assert_eq!(Int(i64::MAX).clamped(250, 30_000), 30_000);
    assert_eq!(Int(251).clamped(250, 30_000), 251);
}

/// rule: protocol.md, Errors: −32602: `data.param` names it, the message quotes the value as given
#[test]
fn a_value_that_does_not_fit_is_named_and_quoted() {
    let cases = [
        ("must", "1.5", "must must be a whole number, not 1.5"),
        ("must", "null", "must must be a whole number, not null"),
        ("text", "[1]", "text must be a string, not [1]"),
        ("text", r#""a\u0000""#, "text must not contain NUL: no program can be given one"),
        ("full", "\"\"", "full must be a string that is not empty, not \"\""),
        ("full", r#""\u0000""#, "full must not contain NUL: no program can be given one"),
        ("on", "\"true\"", "on must be true or false, not \"true\""),
        ("word", "\"One\"", "word must be \"one\" or \"two\", not \"One\""),
        ("env", "[]", "env must be an object of strings, or null to unset, not []"),
        ("env", r#"{"A":1}"#, "env[\"A\"] must be a string, or null to unset it, not 1"),
        ("env", r#"{"":""}"#, "env: a variable's name must not be empty or contain '=': \"\""),
        ("id", "true", "id must be the id of a request: a string, a number or null, not true"),
        ("signal", "[9]", "signal must be the name or number of a signal, not [9]"),
    ];
    for (name, value, message) in cases {
        let must = if name == "must" { "" } else { "\"must\":1," };
        let raw = format!(r#"{{{must}"{name}":{value}}}"#);
        assert_eq!(all(&raw).expect_err(&raw), (json!(name), message.to_owned()), "{raw}");
    }
    let long = format!(r#"{{"must":"{}"}}"#, "x".repeat(100_000));
    let (_, message) = all(&long).expect_err("no number");
    assert!(message.len() < 300 && message.contains("(100002 bytes)"), "{message}");
}

#[test]
fn missing_unknown_and_doubled_fields_are_named() {
    let (param, message) = all("{}").expect_err("must is missing");
    assert_eq!(param, json!("must"));
    assert_eq!(message, "must is required: a number that is needed");
    let (param, message) = all(r#"{"must":1,"Text":""}"#).expect_err("unknown");
    assert_eq!(param, json!("Text"));
    assert_eq!(message, "Text: unknown param; did you mean text?");
    let (_, message) = all(r#"{"must":1,"more":1}"#).expect_err("unknown");
    assert!(message.starts_with("more: unknown param; it takes must, text, full,"), "{message}");
    let (param, message) = all(r#"{"must":1,"m\u0075st":1}"#).expect_err("twice");
    assert_eq!((param, message.as_str()), (json!("must"), "must is given twice"));
}

#[test]
fn of_a_million_fields_no_more_are_kept_than_tell_what_is_wrong() {
    let many = format!("{{{}\"must\":1}}", r#""must":1,"#.repeat(100_000));
    assert_eq!(all(&many).expect_err("doubled").1, "must is given twice");
    let many: String = (0..100_000).map(|at| format!("\"f{at}\":0,")).collect();
    assert_eq!(all(&format!("{{{many}\"must\":1}}")).expect_err("unknown").0, json!("f0"));
    assert!(TABLE.len() < MAX_PARAMS);
}
