//! Tests of until and stop: what is taken, what is refused, and in which words.

use serde_json::value::RawValue;

use super::until::{Conditions, Spelling, read};
use super::*;
use crate::pure::until::{HttpWanted, InputWanted, PortWanted};

fn taken(
    until: Option<&str>,
    stop: Option<&str>,
    spelling: Spelling,
) -> Result<Conditions, RpcError> {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("JSON");
    let (until, stop) = (until.map(raw), stop.map(raw));
    read(until.as_deref(), stop.as_deref(), spelling)
}

fn until(text: &str) -> std::rc::Rc<crate::pure::until::Condition> {
    let (until, stop) = taken(Some(text), None, Spelling::Snake).expect(text);
    assert!(stop.is_none());
    until.expect(text)
}

/// rule: waits.md, until and stop: `exec_command`, `write_stdin`, `wait_for`, `bash_stream`,
///   `poll_process` and `bash` in the foreground take two objects of one shape
#[test]
fn fields_of_until_are_read_as_they_are_written() {
    let all = until(
        r#"{"text":["a","b"],"regex":"x(y)","count":3,"port":5173,"input":"line",
            "idle_ms":500,"idle_cpu":true,"tree_exit":true,
            "http":{"port":"any","path":"/x?y","status":[200,204]}}"#,
    );
    let patterns = all.patterns.iter().map(|one| (one.by(), one.index(), one.source()));
    let patterns: Vec<_> = patterns.collect();
    assert_eq!(patterns, [("text", 0, "a"), ("text", 1, "b"), ("regex", 0, "x(y)")]);
    assert_eq!((all.count, all.port), (3, Some(PortWanted::Number(5173))));
    assert_eq!(all.input, Some(InputWanted::Line));
    assert_eq!((all.idle_ms, all.idle_cpu, all.tree_exit), (Some(500), true, true));
    let wanted =
        HttpWanted { port: Some(PortWanted::Any), path: "/x?y".into(), status: (200, 204) };
    assert_eq!(all.http, Some(wanted));
    for (text, port) in [("0", PortWanted::Any), ("\"any\"", PortWanted::Any)] {
        assert_eq!(until(&format!(r#"{{"port":{text}}}"#)).port, Some(port));
    }
    assert_eq!(until(r#"{"http":{"path":"/"}}"#).http.as_ref().unwrap().status, (200, 399));
    assert_eq!(until(r#"{"http":{"path":"/","status":404}}"#).http.as_ref().unwrap().status.1, 404);
    assert_eq!(until(r#"{"input":true}"#).input, Some(InputWanted::Any));
    assert_eq!(until(r#"{"idle_ms":1}"#).idle_ms, Some(1));
    assert_eq!(until(r#"{"idle_ms":36e5}"#).idle_ms, Some(3_600_000));
    let camel = r#"{"idleMs":7,"idleCpu":true,"treeExit":true}"#;
    let (none, stop) = taken(None, Some(camel), Spelling::Camel).expect("camelCase");
    let stop = stop.expect("camelCase");
    assert_eq!((stop.idle_ms, stop.idle_cpu, stop.tree_exit), (Some(7), true, true));
    assert!(none.is_none());
}

/// rule: waits.md, until and stop: Patterns are of linear time: no look-around and no
///   back-references; `(?i)` and `(?m)` may be used
#[test]
fn what_cannot_be_waited_for_is_refused_by_its_path() {
    let many = format!(r#"{{"text":[{}]}}"#, ["\"x\""; 17].join(","));
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(4_097));
    let large = r#"{"regex":"(((a{1,9}){1,9}){1,9}){1,99}"}"#;
    let table: &[(&str, &str, &str)] = &[
        ("{}", "until", "until names nothing to wait for: give it text"),
        (r#"{"count":1}"#, "until.count", "goes with text or regex"),
        (r#"{"idle_cpu":true}"#, "until.idle_cpu", "goes with idle_ms"),
        (r#"{"idle_ms":0}"#, "until.idle_ms", "must be from 1 to 3600000, not 0"),
        (r#"{"idle_ms":3600001}"#, "until.idle_ms", "must be from 1 to 3600000, not 3600001"),
        ("[]", "until", "until must be an object, not []"),
        (r#"{"foo":1}"#, "until.foo", "until.foo: unknown param; until takes text, regex"),
        (r#"{"IdleMs":1}"#, "until.IdleMs", "unknown param; did you mean until.idle_ms"),
        (r#"{"text":"a","text":"b"}"#, "until.text", "given twice"),
        (r#"{"text":1}"#, "until.text", "a string or an array of strings, not 1"),
        (r#"{"text":[]}"#, "until.text", "must name at least one pattern"),
        (r#"{"text":["a",""]}"#, "until.text[1]", "must not be empty"),
        (r#"{"text":"ä\nb"}"#, "until.text", "a line at a time (character 2)"),
        (&many, "until.text", "17 patterns, at most 16"),
        (&long, "until.text", "4097 bytes, at most 4096"),
        (r#"{"regex":"ä(b"}"#, "until.regex", "until.regex: unclosed group (character 2)"),
        (r#"{"regex":["a","b","c["]}"#, "until.regex[2]", "unclosed character class (character 2)"),
        (r#"{"regex":"a(?=b)"}"#, "until.regex", "look-around"),
        (r#"{"regex":"(a)\\1"}"#, "until.regex", "backreferences are not supported (character 4)"),
        (r#"{"regex":"a\\nb"}"#, "until.regex", "a line at a time (character 2)"),
        (r#"{"regex":"\\p{Greek}"}"#, "until.regex", "(character 1)"),
        (large, "until.regex", "until.regex: compiles to more than 256 KiB"),
        (r#"{"text":"a","count":0}"#, "until.count", "from 1 to 1000000, not 0"),
        (r#"{"port":65536}"#, "until.port", "a port from 1 to 65535, or \"any\""),
        (r#"{"port":"x"}"#, "until.port", "a port from"),
        (r#"{"input":false}"#, "until.input", "leave it out"),
        (r#"{"input":"keys"}"#, "until.input", "\"key\""),
        (r#"{"http":{}}"#, "until.http.path", "until.http.path is required"),
        (r#"{"http":{"path":"x"}}"#, "until.http.path", "must begin with /, not be \"x\""),
        (r#"{"http":{"path":"/\r\nX:"}}"#, "until.http.path", "with %XX"),
        (r#"{"http":{"path":"/","status":99}}"#, "until.http.status", "a status from 100 to 599"),
        (r#"{"http":{"path":"/","status":[300,200]}}"#, "until.http.status", "[lowest, highest]"),
        (r#"{"http":{"path":"/","x":1}}"#, "until.http.x", "until.http.x: unknown param"),
    ];
    for (text, param, words) in table {
        let error = taken(Some(text), None, Spelling::Snake).expect_err(text);
        assert_eq!(error.code, -32602, "{text}");
        assert_eq!(error.data["param"], *param, "{text}: {}", error.message);
        assert!(error.message.contains(words), "{text}: {}", error.message);
    }
    let ten = format!(r#"{{"text":[{}]}}"#, ["\"x\""; 10].join(","));
    let error = taken(Some(&ten), Some(&ten), Spelling::Snake).expect_err("20 patterns");
    assert!(error.message.contains("until and stop have 20 patterns, at most 16"));
    for spelling in [Spelling::Camel, Spelling::Snake] {
        for text in [r#"{"idle_ms":7,"tree_exit":true}"#, r#"{"idleMs":7,"treeExit":true}"#] {
            let (_, stop) = taken(None, Some(text), spelling).expect("either case is taken");
            assert_eq!(stop.map(|stop| (stop.idle_ms, stop.tree_exit)), Some((Some(7), true)));
        }
    }
}
