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

#[test]
fn a_request_is_read_as_sent() {
    let line = br#" {"jsonrpc":"2.0","id":7,"method":"x","params":{"a" : 1}} "#;
    let request = parse(line).expect("a request");
    assert_eq!(request.id, Some(id("7")));
    assert_eq!(request.method, "x");
    assert_eq!(request.params, r#"{"a" : 1}"#);
}

/// rule: protocol.md, Framing: `jsonrpc` may be left out in a request; a reply always has it
#[test]
fn jsonrpc_params_and_id_may_be_left_out() {
    let request = parse(br#"{"method":"ping"}"#).expect("a request");
    assert_eq!(request, Request { id: None, method: "ping".into(), params: "{}" });
    let request = parse(br#"{"jsonrpc":"1.0","id":null,"method":"ping"}"#).expect("a request");
    assert_eq!(request.id, Some(RequestId::null()), "null is an id, not its absence");
}

/// rule: protocol.md, Framing: Unknown fields beside `method` are ignored
#[test]
fn what_stands_beside_method_is_ignored_even_twice() {
    let line = br#"{"x":[1,{}],"x":null,"method":"m","":0,"Method":3,"result":1,"id":"a"}"#;
    let request = parse(line).expect("a request");
    assert_eq!((request.id, request.method.as_str()), (Some(id(r#""a""#)), "m"));
}

#[test]
fn keys_and_methods_may_be_written_with_escapes() {
    let line = br#"{"\u006dethod":"p\u0069ng","\u0069d":1,"p\u0061rams":{}}"#;
    let request = parse(line).expect("a request");
    assert_eq!((request.id, request.method.as_str()), (Some(id("1")), "ping"));
}

/// rule: protocol.md, Framing: An id is echoed unchanged; a number keeps its digits
#[test]
fn an_id_keeps_its_spelling() {
    let spellings = [
        "0",
        "-0",
        "-0.0",
        "1e2",
        "1E+2",
        "1.50",
        "9007199254740993",
        "123456789012345678901234567890",
        "1e999999",
        "null",
        "\"\"",
        r#""a\u0041""#,
        r#""\ud83d\ude00""#,
        "\"é😀\"",
        r#""\u0000""#,
        "\"1\"",
    ];
    for spelling in spellings {
        let line = format!(r#"{{"id": {spelling} ,"method":"m"}}"#);
        let request = parse(line.as_bytes()).expect(spelling);
        let id = request.id.expect(spelling);
        assert_eq!(id.as_json(), spelling);
        let mut out = Vec::new();
        push_result(&mut out, &id, &json!({"a": 1}));
        let expected =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{spelling},\"result\":{{\"a\":1}}}}\n");
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}

/// rule: protocol.md, Framing: An id is a string, a number or null
#[test]
fn ids_of_other_types_and_long_ones_are_refused() {
    for raw in ["true", "false", "[1]", "{}", "[]", r#"{"id":1}"#] {
        let line = format!(r#"{{"id":{raw},"method":"m"}}"#);
        let (code, id, message) = refusal(line.as_bytes());
        assert_eq!((code, id.as_str()), (-32600, "null"), "{raw}");
        assert!(message.contains("id must be") && message.ends_with(raw), "{message}");
        assert_eq!(RequestId::from_json(raw), None);
    }
    let longest = format!("\"{}\"", "x".repeat(MAX_ID_BYTES - 2));
    assert!(parse(format!(r#"{{"id":{longest},"method":"m"}}"#).as_bytes()).is_ok());
    let longer = format!("\"{}\"", "x".repeat(MAX_ID_BYTES - 1));
    let (code, id, message) = refusal(format!(r#"{{"id":{longer},"method":"m"}}"#).as_bytes());
    assert_eq!((code, id.as_str()), (-32600, "null"));
    assert!(message.len() < 2 * QUOTED_VALUE_BYTES + 100, "a long id is quoted cut: {message}");
}

/// rule: protocol.md, Errors: −32600: no method, a method that is no string, an array, an id of
///   another type
#[test]
fn lines_that_are_no_requests_get_the_documented_code_and_id() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let params_of = |depth: usize| format!(r#"{{"id":1,"method":"m","params":{}}}"#, deep(depth));
    let (bottom, below) = (params_of(10_000), deep(MAX_JSON_DEPTH));
    let cases: &[(&[u8], i32, &str)] = &[
        (b"", -32700, "null"),
        (b"x", -32700, "null"),
        (b"{", -32700, "null"),
        (br#"{"id":1,"method":"m""#, -32700, "null"),
        (br#"{"id":1,"method":"m"} x"#, -32700, "null"),
        (br#"{"id":1,"method":"m"}{}"#, -32700, "null"),
        (br#"{"id":1,"method":"m",}"#, -32700, "null"),
        (br#"{'id':1}"#, -32700, "null"),
        (br#"{"id":01,"method":"m"}"#, -32700, "null"),
        (br#"{"id":1,"method":"m","params":{"a":\u0031}}"#, -32700, "null"),
        (br#"{"id":1,"method":"m","params":{"a":"\x41"}}"#, -32700, "null"),
        (br#"{"id":1,"method":"\ud800"}"#, -32700, "null"),
        (br#"{"id":"\udfff","method":"m"}"#, -32700, "null"),
        (b"{\"id\":1,\"method\":\"m\xff\"}", -32700, "null"),
        (b"{\"id\":1,\"method\":\"m\0\"}", -32700, "null"),
        (b"{\"id\":1,\"method\":\"m\x01\"}", -32700, "null"),
        (b"\xef\xbb\xbf{\"id\":1,\"method\":\"m\"}", -32700, "null"),
        (bottom.as_bytes(), -32700, "null"),
        (b"[1,", -32700, "null"),
        (b"[]", -32600, "null"),
        (br#"[{"id":1,"method":"m"}]"#, -32600, "null"),
        (below.as_bytes(), -32600, "null"),
        (b"1", -32600, "null"),
        (b"null", -32600, "null"),
        (b"true", -32600, "null"),
        (br#""method""#, -32600, "null"),
        (b"{}", -32600, "null"),
        (br#"{"id":5}"#, -32600, "5"),
        (br#"{"id":5,"method":null}"#, -32600, "5"),
        (br#"{"id":5,"method":5}"#, -32600, "5"),
        (br#"{"id":5,"method":["m"]}"#, -32600, "5"),
        (br#"{"id":5,"id":6,"method":"m"}"#, -32600, "null"),
        (br#"{"id":5,"method":"m","method":"m"}"#, -32600, "5"),
        (br#"{"id":5,"id":6,"method":"m"} x"#, -32700, "null"),
        (br#"{"id":5,"id":6,method:"m"}"#, -32700, "null"),
        (br#"{"id":5,"method":"m","params":[]}"#, -32602, "5"),
        (br#"{"id":5,"method":"m","params":null}"#, -32602, "5"),
        (br#"{"id":5,"method":"m","params":"{}"}"#, -32602, "5"),
        (br#"{"id":5,"method":"m","params":1}"#, -32602, "5"),
        (br#"{"method":"m","params":[]}"#, -32602, "none"),
    ];
    for (line, code, id) in cases {
        let shown = String::from_utf8_lossy(&line[..line.len().min(80)]);
        let (got, echoed, message) = refusal(line);
        assert_eq!((got, echoed.as_str()), (*code, *id), "{shown}: {message}");
        assert!(message.len() < 500 && !message.contains('\n'), "{shown}: {message}");
    }
}

/// rule: protocol.md, Errors: Invalid UTF-8, NUL bytes, lone surrogates, 10,000-deep nesting: one
///   −32700 each
#[test]
fn depth_is_counted_over_the_whole_line() {
    let line = |inner: usize| {
        format!(
            r#"{{"id":1,"method":"m","params":{{"a":{}{}}}}}"#,
            "[".repeat(inner),
            "]".repeat(inner)
        )
    };
    assert!(parse(line(MAX_JSON_DEPTH - 2).as_bytes()).is_ok());
    assert_eq!(refusal(line(MAX_JSON_DEPTH - 1).as_bytes()).0, -32700);
}

#[test]
fn an_error_line_has_its_data_only_where_there_is_some() {
    let mut out = Vec::new();
    push_error(&mut out, &RequestId::null(), &RpcError::invalid_request("why"));
    push_error(&mut out, &id("1"), &RpcError::failed(Reason::StdinBacklogFull, "full"));
    push_notification(&mut out, "n", &json!({}));
    let lines: Vec<Value> = out
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("JSON"))
        .collect();
    let expected = [
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "why"}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {
            "code": -32000, "message": "full", "data": {"reason": "stdin_backlog_full"}
        }}),
        json!({"jsonrpc": "2.0", "method": "n", "params": {}}),
    ];
    assert_eq!(lines, expected);
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
        ("250", 250),
        ("-1", -1),
        ("250.0", 250),
        ("1e3", 1_000),
        ("2.5e1", 25),
        ("-0.0", 0),
        ("9223372036854775807", i64::MAX),
        ("18446744073709551615", i64::MAX),
        ("99999999999999999999999999", i64::MAX),
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
        ("must", "1e999", "must must be a whole number, not 1e999"),
        ("must", "\"5\"", "must must be a whole number, not \"5\""),
        ("must", "null", "must must be a whole number, not null"),
        ("must", "true", "must must be a whole number, not true"),
        ("must", "[1]", "must must be a whole number, not [1]"),
        ("text", "5", "text must be a string, not 5"),
        ("text", "null", "text must be a string, not null"),
        ("text", r#""a\u0000""#, "text must not contain NUL: no program can be given one"),
        ("full", "\"\"", "full must be a string that is not empty, not \"\""),
        ("full", "{}", "full must be a string, not {}"),
        ("full", r#""\u0000""#, "full must not contain NUL: no program can be given one"),
        ("chars", "5", "chars must be a string, not 5"),
        ("on", "\"true\"", "on must be true or false, not \"true\""),
        ("on", "1", "on must be true or false, not 1"),
        ("on", "null", "on must be true or false, not null"),
        ("word", "\"three\"", "word must be \"one\" or \"two\", not \"three\""),
        ("word", "\"One\"", "word must be \"one\" or \"two\", not \"One\""),
        ("word", "1", "word must be \"one\" or \"two\", not 1"),
        ("env", "[]", "env must be an object of strings, or null to unset, not []"),
        ("env", "\"A=1\"", "env must be an object of strings, or null to unset, not \"A=1\""),
        ("env", r#"{"A":1}"#, "env[\"A\"] must be a string, or null to unset it, not 1"),
        ("env", r#"{"A":{}}"#, "env[\"A\"] must be a string, or null to unset it, not {}"),
        (
            "env",
            r#"{"A=B":"1"}"#,
            "env: a variable's name must not be empty or contain '=': \"A=B\"",
        ),
        ("env", r#"{"":"1"}"#, "env: a variable's name must not be empty or contain '=': \"\""),
        (
            "env",
            r#"{"A\u0000":"1"}"#,
            "a name in env must not contain NUL: no program can be given one",
        ),
        (
            "env",
            r#"{"A":"\u0000"}"#,
            "a value in env must not contain NUL: no program can be given one",
        ),
        ("id", "[1]", "id must be the id of a request: a string, a number or null, not [1]"),
        ("id", "true", "id must be the id of a request: a string, a number or null, not true"),
        ("signal", "null", "signal must be the name or number of a signal, not null"),
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
    assert_eq!(
        (param, message.as_str()),
        (json!("must"), "must is required: a number that is needed")
    );
    let (param, message) = all(r#"{"must":1,"Text":""}"#).expect_err("unknown");
    assert_eq!(param, json!("Text"));
    assert_eq!(message, "Text: unknown param; did you mean text?");
    let (_, message) = all(r#"{"must":1,"more":1}"#).expect_err("unknown");
    assert!(message.starts_with("more: unknown param; it takes must, text, full,"), "{message}");
    let (param, message) = all(r#"{"must":1,"m\u0075st":1}"#).expect_err("twice");
    assert_eq!((param, message.as_str()), (json!("must"), "must is given twice"));
}

#[test]
fn a_hostile_field_name_is_quoted_cut_everywhere() {
    let raw = format!(r#"{{"must":1,"{}":1}}"#, "\\n😀".repeat(50_000));
    let (param, message) = all(&raw).expect_err("unknown");
    assert!(param.as_str().is_some_and(|name| name.len() < 2 * QUOTED_VALUE_BYTES), "{param}");
    assert!(message.len() < 600, "{message}");
}

#[test]
fn of_a_million_fields_no_more_are_kept_than_tell_what_is_wrong() {
    let many = format!("{{{}\"must\":1}}", r#""must":1,"#.repeat(100_000));
    assert_eq!(all(&many).expect_err("doubled").1, "must is given twice");
    let many: String = (0..100_000).map(|at| format!("\"f{at}\":0,")).collect();
    assert_eq!(all(&format!("{{{many}\"must\":1}}")).expect_err("unknown").0, json!("f0"));
    assert!(TABLE.len() < MAX_PARAMS);
}

/// rule: architecture.md, The floors: A method is one file plus one row; `--describe` prints the
///   table as JSON Schema
#[test]
fn the_schema_of_a_table_says_what_reading_checks() {
    let schema = schema(TABLE);
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["required"], json!(["must"]));
    let properties = schema["properties"].as_object().expect("an object");
    assert_eq!(properties.len(), TABLE.len());
    let types = [
        ("must", json!("integer")),
        ("text", json!("string")),
        ("full", json!("string")),
        ("chars", json!("string")),
        ("on", json!("boolean")),
        ("word", json!("string")),
        ("env", json!("object")),
        ("id", json!(["string", "number", "null"])),
        ("signal", json!(["string", "integer"])),
    ];
    for (name, expected) in types {
        assert_eq!(properties[name]["type"], expected, "{name}");
        assert!(properties[name]["description"].is_string(), "{name}");
    }
    assert_eq!(properties["full"]["minLength"], 1);
    assert_eq!(properties["word"]["enum"], json!(["one", "two"]));
    assert_eq!(properties["env"]["additionalProperties"]["type"], json!(["string", "null"]));
}
