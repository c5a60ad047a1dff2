//! write_stdin with sessionId: literal data and exact bytes, what is told of them, the end of
//! input, what a job takes over its life, and what is refused.

use crate::common::*;
use crate::stream_help::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Input that one job takes over its life.
const CAP: usize = 256 * 1024;

fn write(execd: &mut Execd, session: u64, more: Value) -> Value {
    execd.result("write_stdin", merged(json!({"sessionId": session}), more))
}

fn failed(execd: &mut Execd, session: u64, more: Value, reason: &str) -> String {
    execd.failed("write_stdin", merged(json!({"sessionId": session}), more), reason)
}

/// The bytes that a command got which were sent as this `data`, and then eof.
fn delivered(data: Value) -> Vec<u8> {
    let mut execd = Execd::start();
    open(&mut execd, "cat > got");
    write(&mut execd, 1, json!({"data": data, "eof": true}));
    assert_eq!(until_over(&mut execd, 1)["exitCode"], 0);
    std::fs::read(execd.file("got")).expect("the command wrote it")
}

// ---- What is sent -----------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: write_stdin with sessionId: literal data, base64, eof;
///   {written, queued, eof} at once
#[test]
fn the_answer_has_these_fields() {
    let mut execd = Execd::start();
    open(&mut execd, "cat");
    let told = write(&mut execd, 1, json!({"data": "hällo\n"}));
    assert_eq!(told, json!({"written": 7, "queued": 0, "eof": false}));
    let polled = poll_with(&mut execd, 1, json!({"maxDrainMs": 60_000}));
    assert_eq!(polled["stdout"], "hällo\n");
    let told = write(&mut execd, 1, json!({"data": "bye", "eof": true}));
    assert_eq!(told, json!({"written": 3, "queued": 0, "eof": true}));
    let over = until_over(&mut execd, 1);
    assert_eq!((&over["stdout"], &over["exitCode"]), (&json!("hällo\nbye"), &json!(0)));
}

/// rule: bash-stream.md, The stream family: write_stdin with sessionId: literal data, base64, eof;
///   {written, queued, eof} at once
#[test]
fn it_does_not_wait_for_output() {
    let mut execd = Execd::start();
    open(&mut execd, "while read x; do echo \"$x\"; done");
    let request = execd.start_request("write_stdin", json!({"sessionId": 1, "data": "hi\n"}));
    let next = execd.start_request("list_processes", json!({}));
    execd.result_of(next);
    assert_fields(&execd.result_of(request), &["written", "queued", "eof"]);
    assert!(execd.reply_position(request) < execd.reply_position(next));
}

/// rule: bash-stream.md, The stream family: write_stdin with sessionId: literal data, base64, eof;
///   {written, queued, eof} at once
#[test]
fn data_is_literal() {
    for data in [r"a\nb\x41\u00e4\e[A\", "a\nb\tc\r\n\0\u{1b}[A\u{7f}äöü😀'\"$x"] {
        assert_eq!(delivered(json!(data)), data.as_bytes(), "{data:?}");
    }
}

/// rule: bash-stream.md, The stream family: write_stdin with sessionId: literal data, base64, eof;
///   {written, queued, eof} at once
#[test]
fn base64_gives_any_bytes() {
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(delivered(json!({"base64": STANDARD.encode(&all)})), all);
    assert_eq!(delivered(json!({"base64": "aG\nk =\n"})), b"hi", "whitespace is fine");
    assert_eq!(delivered(json!({"base64": ""})), b"");
}

#[test]
fn malformed_data_is_refused_and_nothing_written() {
    let mut execd = Execd::start();
    open(&mut execd, "cat > got");
    for data in [
        json!({"base64": "a?=="}),
        json!({"base64": "aGk=", "more": 1}),
        json!({"text": "hi"}),
        json!(1),
    ] {
        execd.refused("write_stdin", json!({"sessionId": 1, "data": data}), "data");
    }
    execd.refused("write_stdin", json!({"sessionId": 1}), "data");
    execd.refused("write_stdin", json!({"sessionId": 1, "data": "a", "eof": "yes"}), "eof");
    execd.refused("write_stdin", json!({"sessionId": "1", "data": "a"}), "sessionId");
    write(&mut execd, 1, json!({"eof": true}));
    until_over(&mut execd, 1);
    assert_eq!(std::fs::read(execd.file("got")).expect("a file"), b"");
}

#[test]
fn the_two_forms_are_not_mixed() {
    let mut execd = Execd::start();
    open(&mut execd, "cat");
    for (params, param) in [
        (json!({"sessionId": 1, "session_id": 1, "data": "a"}), "session_id"),
        (json!({"sessionId": 1, "data": {"base64": "YQ=="}, "yield_time_ms": 250}), "chars"),
        (json!({"session_id": 1, "data": {"base64": "YQ=="}}), "chars"),
    ] {
        execd.refused("write_stdin", params, param);
    }
    // A key in a string is no key.
    let chars = "\"sessionId\"\\n";
    assert!(execd.input_until(1, chars, "sessionId").contains("\"sessionId\""));
}

// ---- The end of input -------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: write_stdin with sessionId: literal data, base64, eof;
///   {written, queued, eof} at once
#[test]
fn eof_closes_stdin_and_more_is_refused() {
    let mut execd = Execd::start();
    open(&mut execd, "cat; read x < /dev/null; sleep 60");
    assert_eq!(
        write(&mut execd, 1, json!({"eof": true})),
        json!({"written": 0, "queued": 0, "eof": true})
    );
    let message = failed(&mut execd, 1, json!({"data": "late"}), "stdin_closed");
    assert!(!message.is_empty());
    eventually("it is closed", || row(&mut execd, 1).expect("a row")["stdinOpen"] == false);
    assert_eq!(poll(&mut execd, 1)["status"], "running");
}

/// rule: bash-stream.md, The stream family: write_stdin with sessionId: unknown_session,
///   session_exited, stdin_closed, stdin_cap_exceeded before the backlog
#[test]
fn what_has_ended_takes_nothing() {
    let mut execd = Execd::start();
    run(&mut execd, "true");
    failed(&mut execd, 1, json!({"data": "late"}), "session_exited");
    failed(&mut execd, 1, json!({"eof": true}), "session_exited");
    // Also when its background goes on, and when unified-exec has consumed it.
    run(&mut execd, "sleep 300 & exit 1");
    failed(&mut execd, 2, json!({"data": "late"}), "session_exited");
    let opened = execd.open("read x; exit 1");
    let session = session_of(&opened);
    let params = json!({"session_id": session, "chars": "\\n", "yield_time_ms": 30_000});
    assert_eq!(execd.write(params)["exit_code"], 1);
    failed(&mut execd, session, json!({"data": "late"}), "session_exited");
}

// ---- How much ---------------------------------------------------------------------------

/// Waits until a job has so many bytes in its file.
fn until_got(execd: &Execd, bytes: usize) {
    let path = execd.file("got");
    eventually("the command has it", || {
        std::fs::metadata(&path).is_ok_and(|file| file.len() == bytes as u64)
    });
}

/// rule: bash-stream.md, The stream family: write_stdin with sessionId: unknown_session,
///   session_exited, stdin_closed, stdin_cap_exceeded before the backlog
#[test]
fn a_job_takes_256_kib_over_its_life_and_not_a_byte_more() {
    let mut execd = Execd::start();
    open(&mut execd, "cat > got; echo done");
    let half = "x".repeat(CAP / 2);
    write(&mut execd, 1, json!({"data": half}));
    until_got(&execd, CAP / 2);
    let over = "x".repeat(CAP / 2 + 1);
    let message = failed(&mut execd, 1, json!({"data": over}), "stdin_cap_exceeded");
    assert!(message.contains("262144"), "{message}");
    write(&mut execd, 1, json!({"data": half}));
    until_got(&execd, CAP);
    failed(&mut execd, 1, json!({"data": "y"}), "stdin_cap_exceeded");
    failed(&mut execd, 1, json!({"data": {"base64": "eQ=="}, "eof": true}), "stdin_cap_exceeded");
    // Refused as a whole: stdin is still open. Its end costs nothing.
    assert_eq!(write(&mut execd, 1, json!({"data": ""}))["written"], 0);
    write(&mut execd, 1, json!({"eof": true}));
    assert_eq!(until_over(&mut execd, 1)["stdout"], "done\n");
    until_got(&execd, CAP);
}

/// rule: bash-stream.md, The stream family: write_stdin with sessionId: unknown_session,
///   session_exited, stdin_closed, stdin_cap_exceeded before the backlog
#[test]
fn the_cap_is_checked_before_the_backlog() {
    let mut execd = Execd::start();
    open(&mut execd, "sleep 300");
    let over = "x".repeat(CAP + 1);
    failed(&mut execd, 1, json!({"data": over}), "stdin_cap_exceeded");
    let told = write(&mut execd, 1, json!({"data": "x".repeat(CAP)}));
    assert_eq!(told["written"], CAP);
    let queued = number(&told, "queued");
    assert!(queued > 0 && queued < CAP as u64, "the pipe took some of it: {told}");
    failed(&mut execd, 1, json!({"data": "y"}), "stdin_cap_exceeded");
}

/// rule: bash-stream.md, The stream family: write_stdin with sessionId: unknown_session,
///   session_exited, stdin_closed, stdin_cap_exceeded before the backlog
#[test]
fn the_cap_can_be_set_and_turned_off() {
    let mut execd = Execd::with(&["--stdin-cap-bytes", "10"], &[]);
    open(&mut execd, "cat");
    write(&mut execd, 1, json!({"data": "0123456789"}));
    failed(&mut execd, 1, json!({"data": "0"}), "stdin_cap_exceeded");
    let mut execd = Execd::with(&["--stdin-cap-bytes", "0"], &[]);
    open(&mut execd, "cat > got");
    for count in 1..=5 {
        write(&mut execd, 1, json!({"data": "x".repeat(CAP / 2)}));
        until_got(&execd, count * CAP / 2);
    }
}

#[test]
fn what_nobody_reads_is_bounded_without_a_cap_too() {
    let mut execd = Execd::with(&["--stdin-cap-bytes", "0"], &[]);
    open(&mut execd, "sleep 300");
    let told = write(&mut execd, 1, json!({"data": "x".repeat(CAP)}));
    let free = CAP - usize::try_from(number(&told, "queued")).expect("small");
    assert!(free > 0, "the pipe took some of it");
    failed(&mut execd, 1, json!({"data": "y".repeat(free + 1)}), "stdin_backlog_full");
    let told = write(&mut execd, 1, json!({"data": "y".repeat(free)}));
    assert_eq!(number(&told, "queued"), CAP as u64, "nothing of the refused call was taken");
    failed(&mut execd, 1, json!({"data": "y"}), "stdin_backlog_full");
}

#[test]
fn a_session_of_exec_command_has_no_cap() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open("cat > got"));
    for count in 1..=4 {
        write(&mut execd, session, json!({"data": "x".repeat(CAP / 2)}));
        until_got(&execd, count * CAP / 2);
    }
    write(&mut execd, session, json!({"eof": true}));
    assert_eq!(until_over(&mut execd, session)["exitCode"], 0);
}
