//! Malformed and hostile input: each line gets exactly the answer that protocol.md says, and
//! the request after it works as if nothing had happened.

use crate::common::{Execd, value};
use serde_json::{Value, json};

/// What must be answered.
enum Answer {
    /// Nothing at all.
    Nothing,
    /// An error with this code and id (JSON text), and what its data says.
    Error(i32, &'static str, Data),
}

/// What an error's data must be.
#[derive(Clone, Copy)]
enum Data {
    None,
    Param(&'static str),
    Reason(&'static str),
    Methods,
}

use Answer::{Error, Nothing};
use Data::{Methods, Param, Reason};

const NOTHING: Data = Data::None;
const METHODS: [&str; 6] =
    ["exec_command", "write_stdin", "kill_session", "list_sessions", "ping", "shutdown"];

/// Sends one line and checks its answer, then that nothing else was answered and that a
/// request works.
fn check(execd: &mut Execd, line: &[u8], answer: &Answer) {
    let shown: String = String::from_utf8_lossy(line).chars().take(160).collect();
    execd.send_raw(line);
    execd.send_raw(b"\n");
    if let Error(code, id, data) = answer {
        let line = execd.reply_line();
        let reply = value(&line);
        assert_eq!(reply["error"]["code"], *code, "{shown}\n{line}");
        let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#);
        assert!(line.starts_with(&head), "the id is {id} as sent: {shown}\n{line}");
        let message = reply["error"]["message"].as_str().expect("a message");
        assert!(!message.is_empty() && !message.contains('\n'), "{shown}\n{line}");
        assert!(line.len() < 5_000, "an error is short: {shown}\n{}", line.len());
        check_data(reply["error"].get("data"), *data, &format!("{shown}\n{line}"));
    }
    execd.nothing_but_a_ping();
}

fn check_data(got: Option<&Value>, wanted: Data, context: &str) {
    // Whoever gives a stamp (yield_until) is told the time with every answer.
    let mut got = got.cloned();
    if let Some(data) = got.as_mut().and_then(Value::as_object_mut) {
        data.remove("tool_time_utc");
        let line = data.remove("line");
        assert!(line.is_some_and(|line| line.as_u64() > Some(0)), "{context}");
    }
    let got = got.as_ref().filter(|data| **data != json!({}));
    match wanted {
        Data::None => assert_eq!(got, None, "{context}"),
        Data::Param(name) => assert_eq!(got, Some(&json!({ "param": name })), "{context}"),
        Data::Reason(word) => assert_eq!(got, Some(&json!({ "reason": word })), "{context}"),
        Data::Methods => {
            let listed = got.expect(context)["methods"].as_array().expect(context);
            for name in METHODS {
                assert!(listed.contains(&json!(name)), "{name} is missing: {context}");
            }
        }
    }
}

/// Checks a table of lines with one execd that has a session 1 on a pipe and 2 on a terminal.
fn check_all(table: &[(&[u8], Answer)]) {
    let mut execd = Execd::start();
    assert_eq!(execd.open_making("exec cat", None), 1);
    let opened =
        execd.ask("exec_command", json!({"cmd": "exec cat", "tty": true, "yield_time_ms": 250}));
    assert_eq!(opened["result"]["session_id"], 2, "{opened}");
    for (line, answer) in table {
        check(&mut execd, line, answer);
    }
    let list = execd.ask("list_sessions", json!({}));
    assert_eq!(list["result"]["active_count"], 2, "no bad line ended or began a session: {list}");
}

/// A request with id 1.
fn request(method: &str, params: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#).into_bytes()
}

/// rule: protocol.md, Framing: A batch is refused with one −32600 reply
/// rule: protocol.md, Errors: −32600: no method, a method that is no string, an array, an id of
///   another type
/// rule: protocol.md, Errors: With −32600 a valid id is echoed, else null
/// rule: protocol.md, Errors: −32601: unknown method; `data.methods` lists the known ones
/// rule: protocol.md, Framing: `params` is an object; left out it is `{}`; an array is refused
/// rule: protocol.md, Framing: A request without an id is carried out, never answered
/// rule: unified-exec.md, write_stdin: An unknown or removed id: `unknown_session`, `unknown
///   session_id: 7`
#[test]
fn json_that_is_no_request_that_fits_is_refused_with_its_id_where_that_is_valid() {
    let no_request = |id: &'static str| Error(-32600, id, NOTHING);
    let unknown = |id: &'static str| Error(-32601, id, Methods);
    let no_object = |id: &'static str| Error(-32602, id, Param("params"));
    let no_session = || Error(-32000, "1", Reason("unknown_session"));
    let long_id = format!(r#"{{"id":"{}","method":"ping"}}"#, "i".repeat(1_000_000));
    let long_number = format!(r#"{{"id":{},"method":"ping"}}"#, "1".repeat(100_000));
    let long_method = format!(r#"{{"id":1,"method":["{}"]}}"#, "m".repeat(1_000_000));
    let long = format!(r#"{{"id":1,"method":"{}"}}"#, "\\u0000".repeat(1_000_000));
    check_all(&[
        // Batches and scalars.
        (br#"[{"id":1,"method":"ping"},{"id":2,"method":"ping"}]"#, no_request("null")),
        // No method, or one that is no string.
        (br#"{"id":"seven","result":{}}"#, no_request(r#""seven""#)),
        (br#"{"id":"\u0061","method":true}"#, no_request(r#""\u0061""#)),
        (long_method.as_bytes(), no_request("1")),
        // Ids of other types.
        (long_id.as_bytes(), no_request("null")),
        (long_number.as_bytes(), no_request("null")),
        // Keys that count, given twice.
        (br#"{"id":1,"\u0069d":1,"method":"ping"}"#, no_request("null")),
        (br#"{"method":"ping","params":{},"params":{},"\u0069d":"a"}"#, no_request(r#""a""#)),
        (br#"{"id":1,"method":"ping","method":"ping","id":2}"#, no_request("null")),
        // Methods that are not known.
        (br#"{"id":1,"method":"Ping"}"#, unknown("1")),
        (br#"{"id":1,"method":"\ud83d\ude00\n"}"#, unknown("1")),
        (long.as_bytes(), unknown("1")),
        // Params that are no object.
        (br#"{"id":1,"method":"exec_command","params":["echo hi"]}"#, no_object("1")),
        (br#"{"id":"p","method":"exec_command","params":null}"#, no_object(r#""p""#)),
        (br#"{"id":null,"method":"nonsense","params":[]}"#, no_object("null")),
        // Numbers that name no session.
        (br#"{"id":1,"method":"write_stdin","params":{"session_id":0}}"#, no_session()),
        (br#"{"id":1,"method":"write_stdin","params":{"session_id":1e300}}"#, no_session()),
        // A bad request without an id is never answered.
        (br#"{"method":"nonsense"}"#, Nothing),
        (br#"{"method":"ping","params":{"x":1}}"#, Nothing),
        (br#"{"method":"exec_command","params":["touch wrong"]}"#, Nothing),
        (br#"{"method":"exec_command","params":{"cmd":5}}"#, Nothing),
        (br#"{"method":"write_stdin","params":{"session_id":999}}"#, Nothing),
        (br#"{"method":"kill_session","params":{"session_id":1,"signal":"FOO"}}"#, Nothing),
        (br#"{"method":"cancel","params":{"id":"nobody"}}"#, Nothing),
    ]);
}

/// rule: protocol.md, Errors: −32700: the line is no JSON, id null
/// rule: protocol.md, Errors: After a line that is no JSON the next one is read as if nothing had
///   happened
/// rule: protocol.md, Errors: Invalid UTF-8, NUL bytes, lone surrogates, 10,000-deep nesting: one
///   −32700 each
#[test]
fn a_line_that_is_no_json_is_a_parse_error_with_id_null() {
    let nested = |open: &str, close: &str, depth: usize| {
        format!(
            r#"{{"id":1,"method":"ping","params":{{"a":{}{}}}}}"#,
            open.repeat(depth),
            close.repeat(depth)
        )
        .into_bytes()
    };
    let (arrays, objects) = (nested("[", "]", 10_000), nested("{\"a\":", "}", 10_000));
    let unclosed = "[".repeat(1_000_000).into_bytes();
    let digits = format!(r#"{{"id":1,"method":"ping","x":{}.}}"#, "9".repeat(100_000));
    // More lines are in src/wire/tests.rs, and in tests/it/fuzz.rs, which has another parser say
    // what is JSON.
    let table: &[&[u8]] = &[
        // Surrogates.
        br#"{"id":"\ud800","method":"ping"}"#,
        br#"{"id":1,"method":"ping","params":{"\ude00\ud83d":1}}"#,
        br#"{"id":1,"method":"exec_command","params":{"cmd":"echo \ud83d"}}"#,
        // Bytes that are no UTF-8.
        b"{\"id\":1,\"method\":\"ping\xff\"}",
        b"{\"id\":1,\"method\":\"exec_command\",\"params\":{\"cmd\":\"echo \xed\xa0\x80\"}}",
        // NUL bytes.
        b"{\"id\":1,\"method\":\"pi\0ng\"}",
        // A byte order mark is no white space of JSON; nor is what Unicode calls a space.
        b"\xef\xbb\xbf{\"id\":1,\"method\":\"ping\"}",
        b"\xc2\xa0{\"id\":1,\"method\":\"ping\"}",
        // Depth and length.
        &arrays,
        &objects,
        &unclosed,
        digits.as_bytes(),
        br#"[{"id":1,"method":"ping"}"#,
    ];
    let table: Vec<(&[u8], Answer)> =
        table.iter().map(|line| (*line, Error(-32700, "null", NOTHING))).collect();
    check_all(&table);
}

/// rule: protocol.md, Errors: −32600: an id that is still in flight on this connection
#[test]
fn an_id_in_flight_is_refused_until_its_answer_has_come() {
    let mut execd = Execd::start();
    for id in ["7", r#""a""#, "null", "1e2"] {
        let params = r#"{"cmd":"exec sleep 60","yield_time_ms":30000}"#;
        execd.send_line(&format!(r#"{{"id":{id},"method":"exec_command","params":{params}}}"#));
        for method in ["ping", "exec_command", "shutdown", "nonsense"] {
            let line =
                format!(r#"{{"id":{id},"method":"{method}","params":{{"cmd":"touch wrong"}}}}"#);
            check(&mut execd, line.as_bytes(), &Error(-32600, id, NOTHING));
        }
        // A bad line with this id is answered for what it is.
        let line = format!(r#"{{"id":{id},"method":5}}"#);
        check(&mut execd, line.as_bytes(), &Error(-32600, id, NOTHING));
        execd.send_line(&format!(r#"{{"id":"c","method":"cancel","params":{{"id":{id}}}}}"#));
        let mut answers = [execd.reply_line(), execd.reply_line()];
        answers.sort_by_key(|line| line.contains(r#""id":"c""#));
        assert!(answers[0].starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#)));
        assert_eq!(value(&answers[1])["result"], json!({"cancelled": true}));
        // Answered: the id is free again.
        execd.send_line(&format!(r#"{{"id":{id},"method":"ping"}}"#));
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert_eq!(execd.reply_line(), expected);
    }
    assert!(!execd.file("wrong").exists(), "a refused request is not carried out");
}

/// The mark of runs of pi could be set and unset by `env`, as the other two could not: who did so
/// was not found again when its run was ended. (More refusals: tests/fixtures/said, params.rs.)
/// rule: protocol.md, Errors: −32602: a param missing, unknown, of a wrong type or contradictory
/// rule: architecture.md, Starting a child: NUL in cmd, env or workdir, `=` in an env name: −32602
/// rule: architecture.md, Starting a child: No client sets or unsets the marks by which execd knows
///   its processes: −32602
/// rule: unified-exec.md, exec_command, params: Params of a wrong type are refused by name
/// rule: unified-exec.md, exec_command, params: `cmd` is required and not empty
/// rule: waits.md, Limits: A field that `until` does not know is refused by its path
/// rule: unified-exec.md, set_on_exit, resize_session: `resize_session` of a pipe session: −32602
#[test]
fn params_that_are_missing_or_do_not_fit_are_refused_by_name() {
    let requests: &[(&str, &str, &'static str)] = &[
        ("exec_command", r#"{"cmd":"true","workdir":"/tmp\u0000/x"}"#, "workdir"),
        ("exec_command", r#"{"cmd":"true","shell":"ba\u0000sh"}"#, "shell"),
        ("exec_command", r#"{"cmd":"true","env":{"A\u0000":"x"}}"#, "env"),
        ("exec_command", r#"{"cmd":"true","env":{"A":"x\u0000"}}"#, "env"),
        ("exec_command", r#"{"cmd":"true","on_impossible":"never"}"#, "on_impossible"),
        ("exec_command", r#"{"cmd":"true","env":{"EXECD_INSTANCE":"x"}}"#, "env"),
        ("exec_command", r#"{"cmd":"true","env":{"EXECD_SESSION_ID":null}}"#, "env"),
        ("bash_stream", r#"{"command":"true","env":{"EXECD_INSTANCE":"1"}}"#, "env"),
        ("bash", r#"{"command":"true","context":{"env":{"EXECD_INSTANCE":"1"}}}"#, "context.env"),
        ("agent_execute", r#"{"model":"a/b","prompt":"x","env":{"EXECD_INSTANCE":"1"}}"#, "env"),
        ("write_stdin", r#"{"sessionId":1,"session_id":1,"data":"x"}"#, "session_id"),
        ("write_stdin", r#"{"sessionId":1,"data":{"base64":"YQ==","hex":""}}"#, "data"),
        ("kill_session", r#"{"session_id":1,"signal":99999999999999999999}"#, "signal"),
        ("resize_session", r#"{"session_id":1,"cols":80,"rows":25}"#, "session_id"),
        ("reserve_session_ids", r#"{"up_to":9007199254740992}"#, "up_to"),
    ];
    let lines: Vec<Vec<u8>> =
        requests.iter().map(|(method, params, _)| request(method, params)).collect();
    let answers = requests.iter().map(|(_, _, name)| Error(-32602, "1", Param(name)));
    let table: Vec<(&[u8], Answer)> = lines.iter().map(Vec::as_slice).zip(answers).collect();
    check_all(&table);
}

/// rule: protocol.md, Framing: A line ends with `\n`; a `\r` before it is dropped, blank lines are
///   ignored
#[test]
fn blank_lines_and_carriage_returns_are_nothing() {
    let mut execd = Execd::start();
    check(&mut execd, b"\n\r\n \t \n\n\n\r\n \r\n\t\r", &Nothing);
    let pong = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    execd.send_raw(b"{\"id\":1,\"method\":\"ping\"}\r\n\r\n  {\"id\":2,\"method\":\"ping\"}\t\r\n");
    assert_eq!([execd.reply_line(), execd.reply_line()], [pong(1), pong(2)]);
    // Of several carriage returns one belongs to the line end; the others are white space.
    check(&mut execd, b"{\"id\":3,\"method\":5}\r\r", &Error(-32600, "3", NOTHING));
    // A request in single bytes, and two in one write.
    for byte in b"{\"id\":4,\"method\":\"ping\"}\n" {
        execd.send_raw(&[*byte]);
    }
    assert_eq!(execd.reply_line(), pong(4));
    execd.send_raw(b"{\"id\":5,\"method\":\"ping\"}\n{\"id\":6,\"method\":\"ping\"}\n");
    assert_eq!([execd.reply_line(), execd.reply_line()], [pong(5), pong(6)]);
    execd.nothing_but_a_ping();
}

/// A ping whose line has exactly `length` bytes.
fn padded_ping(id: &str, length: usize) -> Vec<u8> {
    let (head, tail) = (format!(r#"{{"id":{id},"method":"ping","pad":""#), "\"}");
    let mut line = head.into_bytes();
    line.resize(length - tail.len(), b'p');
    line.extend_from_slice(tail.as_bytes());
    assert_eq!(line.len(), length);
    line
}

fn check_lengths(execd: &mut Execd, limit: usize) {
    for length in [limit - 1, limit] {
        execd.send_raw(&padded_ping("1", length));
        execd.send_raw(b"\n");
        let expected = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(execd.reply_line(), expected, "{length} of {limit}");
        execd.nothing_but_a_ping();
    }
    let too_long = Error(-32000, "null", Reason("line_too_long"));
    for length in [limit + 1, limit + 2, 2 * limit, 3 * limit + 17] {
        check(execd, &padded_ping("1", length), &too_long);
    }
    // What is too long is not looked at: neither for UTF-8 nor for its shape.
    check(execd, &vec![0xff; limit + 1], &too_long);
    check(execd, &vec![b' '; limit + 1], &too_long);
    // Two of them and a request in one go.
    let mut both = vec![b'x'; limit + 1];
    both.push(b'\n');
    both.extend_from_slice(&vec![b'y'; limit + 1]);
    execd.send_raw(&both);
    execd.send_raw(b"\n{\"id\":9,\"method\":\"ping\"}\n");
    for _ in 0..2 {
        assert_eq!(execd.next_reply()["error"]["data"]["reason"], "line_too_long");
    }
    assert_eq!(execd.reply_line(), r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
}

/// rule: protocol.md, Errors: A line over `--max-line-bytes` is skipped to its end and answered
///   once with `line_too_long`, id null
/// rule: protocol.md, Errors: `--max-line-bytes` is 8 MiB by default
#[test]
fn a_line_over_the_limit_is_skipped_and_told_once() {
    check_lengths(&mut Execd::with(&["--max-line-bytes", "1024"], &[]), 1024);
    check_lengths(&mut Execd::start(), 8 * 1024 * 1024);
}

/// rule: protocol.md, Errors: Memory stays bounded while a long line is skipped, whatever its size
#[test]
fn a_line_of_a_hundred_megabytes_takes_no_memory() {
    let mut execd = Execd::start();
    execd.nothing_but_a_ping();
    let before = execd.peak_rss_kib();
    let piece = vec![b'z'; 1_000_000];
    for _ in 0..100 {
        execd.send_raw(&piece);
    }
    execd.send_raw(b"\n");
    let reply = execd.next_reply();
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&Value::Null, &json!(-32000)));
    // The ping was line 1.
    assert_eq!(reply["error"]["data"], json!({"reason": "line_too_long", "line": 2}));
    execd.nothing_but_a_ping();
    let after = execd.peak_rss_kib();
    // Until it is known to be too long, the line is held: 8 MiB, twice while its buffer grows.
    assert!(after < before + 20 * 1024, "peak memory grew from {before} to {after} KiB");
    // And what was held is given back.
    let left = execd.rss_kib();
    assert!(left < before + 2 * 1024, "{left} KiB are left, {before} were in use before");
}

/// rule: architecture.md, Bounds: The same under floods of requests
#[test]
fn hostile_lines_take_no_more_memory_than_a_client_may() {
    // What is said many times, in front of it, behind it.
    for (many, front, behind) in [
        (r#""a":1,"#, r#"{"id":1,"method":"ping","params":{"#, r#""a":1}}"#),
        (r#""a":1,"#, r#"{"id":1,"method":"ping","#, r#""a":1,"params":[]}"#),
        ("x", r#"{"id":1,"method":"ping","params":{""#, r#"":1}}"#),
        ("\\n", r#"{"id":1,"method":""#, r#""}"#),
        ("x", r#"{"id":1,"method":"write_stdin","params":{"session_id":""#, r#""}}"#),
        ("1,", "[", "1]"),
    ] {
        let mut execd = Execd::start();
        execd.nothing_but_a_ping();
        let before = execd.peak_rss_kib();
        let times = (8 * 1024 * 1024 - 200) / many.len();
        execd.send_line(&format!("{front}{}{behind}", many.repeat(times)));
        let reply = execd.reply_line();
        assert!(value(&reply)["error"]["code"].is_i64(), "{front}: {reply}");
        assert!(reply.len() < 1_000 || reply.contains("methods"), "{front}: {} bytes", reply.len());
        let grown = execd.peak_rss_kib() - before;
        assert!(grown < 20 * 1024, "{front}: peak memory grew by {grown} KiB");
        execd.nothing_but_a_ping();
    }
}
