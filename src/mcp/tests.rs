//! The front without an engine: what a message asks of execd, what is told when, and what becomes
//! of mutated messages.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Asked;
use super::progress::{Note, Progress};
use super::{Mcp, Settings};
use crate::config::Config;
use crate::limits::{MCP_ALIVE_MS, MCP_LATE_BYTES, MCP_PROGRESS_MS, MCP_TEXT_BYTES, NS_PER_MS};
use crate::pure::tests_random::Random;
use crate::wire::RequestId;

fn mcp(sets: &[&'static str]) -> Mcp {
    Mcp::new(Settings::new(sets, &Config::default()))
}

/// What a message asks of execd.
fn asked(mcp: &mut Mcp, message: &Value) -> Vec<Asked> {
    let mut out = Vec::new();
    let asked = mcp.read(message.to_string().as_bytes(), &mut out);
    assert!(out.is_empty(), "nothing is answered: {}", String::from_utf8_lossy(&out));
    asked
}

/// The params of the row that a call of a tool leads to.
fn params(mcp: &mut Mcp, name: &str, arguments: &Value, token: Option<u64>) -> Value {
    let mut call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"});
    call["params"] = json!({"name": name, "arguments": arguments});
    if let Some(token) = token {
        call["params"]["_meta"] = json!({"progressToken": token});
    }
    let asked = asked(mcp, &call);
    mcp.running.clear();
    // A tool whose replies carry no events is asked for them before it.
    let (own, call) = asked.split_at(asked.len() - 1);
    assert!(own.iter().all(|one| one.method == "events") && own.len() <= 1, "{asked:?}");
    serde_json::from_str(&call[0].params).expect("params")
}

/// rule: mcp.md, Waits: Without a progress token a wait is cut to 50 s, unless its end would end
///   the command
#[test]
fn waits_are_cut_where_no_progress_can_be_told() {
    let long_ms = 600_000;
    let (exec, write, time) = ("exec_command", "write_stdin", "yield_time_ms");
    let (past, later) = ("2001-01-01T00:00:00Z", "2099-01-01T00:00:00Z");
    let killing = json!({"sessionId": 1, "waitMs": long_ms, "killIf": "timeout"});
    let killed = json!({"command": "x", "timeout": 55, "timeoutAction": "kill"});
    let mut all = mcp(&["unified", "stream", "bash"]);
    // execd clamps by the cap, and says what was asked for.
    let cap = "max_empty_poll_ms";
    for (name, given, param, cut) in [
        (exec, json!({"cmd": "x", "yield_time_ms": long_ms}), cap, json!(50_000)),
        (exec, json!({"cmd": "x", "yield_time_ms": long_ms}), time, json!(long_ms)),
        (exec, json!({"cmd": "x"}), time, Value::Null),
        (write, json!({"session_id": 1, "yield_until": later}), time, json!(50_000)),
        (write, json!({"session_id": 1, "yield_until": past}), "yield_until", json!(past)),
        ("wait_for", json!({"timeout": long_ms}), cap, json!(50_000)),
        ("wait_for", json!({}), "timeout_ms", Value::Null),
        ("bash_stream", json!({"command": "x"}), "yieldMs", json!(50_000)),
        ("poll_process", json!({"sessionId": 1, "waitMs": long_ms}), "waitMs", json!(50_000)),
        ("poll_process", killing, "waitMs", json!(long_ms)),
        ("bash", json!({"command": "x", "timeout": 55}), "timeout", json!(50)),
        ("bash", killed, "timeout", json!(55)),
    ] {
        let cut_params = params(&mut all, name, &given, None);
        assert_eq!(cut_params.get(param).cloned().unwrap_or_default(), cut, "{name} {given}");
        let whole = params(&mut all, name, &given, Some(1));
        let own = given.get(param).cloned().unwrap_or_default();
        assert_eq!(whole.get(param).cloned().unwrap_or_default(), own, "with a token: {given}");
    }
}

/// rule: mcp.md, Tools: What only a host says is said by the front: compact headers, events,
///   progress where there is a token
#[test]
fn the_front_says_what_only_a_host_says() {
    let mut all = mcp(&["unified", "stream"]);
    for token in [None, Some(3)] {
        let said = params(&mut all, "exec_command", &json!({"cmd": "x"}), token);
        let mut own =
            json!({"cmd": "x", "header": "compact", "events": true, "stream": token.is_some()});
        if token.is_none() {
            own["max_empty_poll_ms"] = json!(50_000);
        }
        assert_eq!(said, own);
    }
    let said = params(&mut all, "wait_for", &json!({}), None);
    assert_eq!(said["session_ids"], "all");
    let said = params(&mut all, "wait_for", &json!({"sessionIds": [2]}), None);
    assert_eq!(said["session_ids"], json!([2]));
    // Of two tools of one name the call's arguments say which is meant.
    let said = params(&mut all, "write_stdin", &json!({"sessionId": 1, "data": "x"}), None);
    assert_eq!(said, json!({"sessionId": 1, "data": "x"}));
}

/// An id that was sent with an escape or as a large number was not found again.
#[test]
fn a_notification_is_of_the_request_whose_id_it_has_as_it_was_sent() {
    for id in ["7", "\"a\\u0041\\\"\"", "123456789012345678901234567890", "\"\"", "-1e5"] {
        let params = format!("{{\"request_id\":{id},\"tail\":\"x\"}}");
        let note = Note::read(params.as_bytes());
        assert_eq!(note.request_id.as_ref().map(RequestId::as_json), Some(id));
        assert_eq!(note.text("tail"), "x");
    }
    let none = Note::read(b"{\"session_id\":3}");
    assert_eq!((none.request_id, none.session_id), (None, Some(3)));
}

/// rule: mcp.md, Waits: Progress comes at most once a second, and every 15 s without output
#[test]
fn progress_is_paced_and_shows_that_the_call_lives() {
    let ns = |ms: u64| ms * NS_PER_MS;
    let mut progress = Progress::new(&json!("t"), ns(1_000)).expect("a token");
    let mut out = Vec::new();
    assert_eq!(progress.due_ns(), ns(1_000 + MCP_ALIVE_MS));
    let note = |text: &str| json!({"tail": text}).to_string();
    let (first, second) = (note("a\nb\n\n"), note("c"));
    progress.heard(&Note::read(first.as_bytes()), ns(1_000), &mut out);
    progress.heard(&Note::read(second.as_bytes()), ns(1_100), &mut out);
    assert_eq!(progress.due_ns(), ns(1_000 + MCP_PROGRESS_MS));
    progress.tick(ns(1_500), &mut out);
    progress.tick(ns(2_000), &mut out);
    progress.tick(ns(2_000 + MCP_ALIVE_MS), &mut out);
    let told: Vec<Value> = String::from_utf8(out)
        .expect("text")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let messages: Vec<&Value> = told.iter().map(|one| &one["params"]["message"]).collect();
    assert_eq!(messages, ["b", "c", "still waiting"]);
    let numbers: Vec<u64> =
        told.iter().filter_map(|one| one["params"]["progress"].as_u64()).collect();
    assert!(numbers.len() == 3 && numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    for token in [json!(null), json!(1.5), json!([1]), json!({})] {
        assert!(Progress::new(&token, 0).is_none(), "{token}");
    }
}

/// What many cancelled calls told was dropped without a word.
/// rule: mcp.md, Waits: Of what there is no room for a line is kept for each session
#[test]
fn of_answers_without_room_a_line_is_kept() {
    let mut late = super::late::Late::default();
    for id in 1..=20 {
        let log = format!("/logs/{id}.log");
        late.answered("text", &json!({"session_id": id, "log_path": log}), None);
    }
    late.answered("text", &json!({"sessions": [{"session_id": 30}, {"session_id": 31}]}), None);
    late.answered(&"x".repeat(MCP_LATE_BYTES), &json!({"window": "@9"}), None);
    late.events(&json!({"text": "event: session 7 exited 0"}));
    let mut said = "own".to_owned();
    late.tell(&mut said, MCP_TEXT_BYTES);
    assert!(said.starts_with("own\nevent: session 7 exited 0\n\n"), "{said}");
    for id in 1..=20 {
        assert!(said.contains(&format!("\nsession {id}: see its log /logs/{id}.log")), "{said}");
    }
    assert!(said.contains("\nsession 30: ") && said.contains("\nsession 31: "), "{said}");
    let mut said = String::new();
    late.tell(&mut said, MCP_TEXT_BYTES);
    assert!(said.is_empty(), "once: {said}");
}

const VALID: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"experimental":{"claude/channel":{}}}}}"#,
    r#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec_command","arguments":{"cmd":"true","until":{"text":["a"]}},"_meta":{"progressToken":"t"}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"wait_for","arguments":{"session_ids":[1]}}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"execd://session/1/log?from=0&to=9"}}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"resources/subscribe","params":{"uri":"execd://session/1/log"}}"#,
    r#"{"jsonrpc":"2.0","id":6,"method":"resources/unsubscribe","params":{"uri":"execd://session/1/log"}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"notifications":{"resourceSubscriptions":["execd://session/2/log"]}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"x"}}"#,
    r#"{"jsonrpc":"2.0","id":8,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":9,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2030-01-01"}}}"#,
    r#"{"jsonrpc":"2.0","id":10,"method":"resources/list","params":{"cursor":"x"}}"#,
];

fn mutated(random: &mut Random) -> Vec<u8> {
    let mut line = VALID[random.below(VALID.len())].as_bytes().to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(line.len() + 1);
        let to = (at + random.below(12_usize)).min(line.len());
        let other = VALID[random.below(VALID.len())].as_bytes();
        let from = random.below(other.len());
        match random.below(6) {
            0 if at < line.len() => line[at] ^= 1 << random.below(8_u8),
            1 => line.truncate(at),
            2 => drop(line.drain(at..to)),
            3 => drop(line.splice(at..to, other[from..(from + 12).min(other.len())].to_vec())),
            4 => {
                line.truncate(at);
                line.extend_from_slice(&other[from..]);
            }
            _ => drop(line.splice(
                at..at,
                [b"null", b"1e9,", b"\"a\":", b"[[[[", b"\\u00"][random.below(5_usize)].to_vec(),
            )),
        }
    }
    line.retain(|byte| *byte != b'\n');
    line
}

/// rule: mcp.md, Versions: Mutated messages: each line that is written is a message
#[test]
fn mutated_messages_lead_to_messages_and_known_requests() {
    let mut random = Random(0x6d63_7000_2026_0728);
    let mut connection = mcp(&["unified", "more", "stream", "bash"]);
    let mut methods = BTreeSet::new();
    for round in 0..70_000_u32 {
        if round % 500 == 0 {
            connection = mcp(&["unified", "more", "stream", "bash"]);
        }
        let (line, mut out) = (mutated(&mut random), Vec::new());
        let asked = connection.read(&line, &mut out);
        for one in asked {
            assert!(crate::server::front::find(one.method).is_some(), "{}", one.method);
            let params: Value = serde_json::from_str(&one.params).expect("params");
            assert!(params.is_object(), "{params}");
            methods.insert(one.method);
            match (one.id, random.below(3)) {
                (Some(id), 0) => {
                    connection.reply(&id, b"{\"header\":\"h\",\"output\":\"o\"}", &mut out)
                }
                (Some(id), 1) => {
                    let error = crate::wire::RpcError::invalid_request("no");
                    connection.refuse(&id, &error, &mut out);
                }
                _ => {}
            }
        }
        for message in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let message: Value = serde_json::from_slice(message).expect("a message");
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
            let kinds = ["result", "error", "method"];
            let count = kinds.iter().filter(|kind| message.get(**kind).is_some()).count();
            assert_eq!(count, 1, "{message}");
        }
    }
    assert!(methods.len() >= 6, "{methods:?}");
}

/// A late answer came on top of a result that was as long as hosts take it.
/// rule: mcp.md, Waits: What cancelled calls have told waits for results that have room for it
#[test]
fn what_has_no_room_waits_for_the_next_result_in_its_order() {
    let mut late = super::late::Late::default();
    for (id, text) in [(1, "a".repeat(300)), (2, "b".repeat(300)), (3, "c".to_owned())] {
        late.answered(&text, &json!({"session_id": id}), None);
    }
    let mut tell = |own: usize| {
        let mut said = "o".repeat(own);
        late.tell(&mut said, 500);
        said
    };
    assert!(tell(490).ends_with("oo\n\n[Of cancelled calls and windows 3 more: next results]"));
    let said = tell(10);
    assert!(said.contains("aaa") && !said.contains("bbb") && said.contains(" 2 more: "), "{said}");
    let said = tell(10);
    assert!(said.contains("bbb\n\n") && said.ends_with("\nc"), "{said}");
    assert_eq!(tell(3), "ooo");
}

/// The cancelled request was answered, and the log was watched on for nobody.
/// rule: mcp.md, Logs: A cancelled subscription is not answered, and ends
#[test]
fn a_cancelled_subscription_is_not_answered() {
    let mut connection = mcp(&["unified"]);
    let uri = "execd://session/1/log";
    let subscribe = json!({"jsonrpc": "2.0", "id": 5, "method": "resources/subscribe",
        "params": {"uri": uri}});
    assert_eq!(asked(&mut connection, &subscribe)[0].method, "attach_session");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 5}});
    assert_eq!(asked(&mut connection, &cancel)[0].method, "detach_session");
    let mut out = Vec::new();
    let id = RequestId::from_json("5").expect("an id");
    connection.reply(&id, b"{}", &mut out);
    let note = json!({"session_id": 1}).to_string();
    connection.notify("attach_output", note.as_bytes(), false, &mut out);
    connection.tick(u64::MAX, &mut out);
    assert!(out.is_empty(), "{}", String::from_utf8_lossy(&out));
}
