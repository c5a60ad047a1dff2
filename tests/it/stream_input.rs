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

// ---- What is sent -----------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: write_stdin with sessionId: literal data, base64, eof;
///   {written, queued, eof} at once
#[test]
fn data_is_literal_and_base64_any_bytes() {
    let mut execd = Execd::start();
    let all: Vec<u8> = (0..=255).collect();
    let literal = [r"a\nb\x41\u4e\e[A\", "a\nb\tc\r\n\0\u{1b}[A\u{7f}äöü😀'\"$x"];
    for (session, (data, wanted)) in (1..).zip([
        (json!(literal[0]), literal[0].as_bytes()),
        (json!(literal[1]), literal[1].as_bytes()),
        (json!({"base64": STANDARD.encode(&all)}), &all),
        (json!({"base64": "aG\nk =\n"}), b"hi"),
        (json!({"base64": ""}), b""),
    ]) {
        open(&mut execd, "cat > got");
        let params = json!({"sessionId": session, "data": data, "eof": true});
        // The answer does not wait for what the command makes of it.
        let told = execd.ask("write_stdin", params)["result"].clone();
        assert_eq!(told, json!({"written": wanted.len(), "queued": 0, "eof": true}));
        assert_eq!(until_over(&mut execd, session)["exitCode"], 0);
        assert_eq!(std::fs::read(execd.file("got")).expect("a file"), wanted, "{data}");
    }
}

// ---- The end of input -------------------------------------------------------------------

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
    // Before the backlog is looked at.
    open(&mut execd, "cat > got; echo done");
    failed(&mut execd, 1, json!({"data": "x".repeat(CAP + 1)}), "stdin_cap_exceeded");
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
fn without_a_cap_and_in_a_session_of_exec_command_only_the_backlog_is_bounded() {
    let mut execd = Execd::with(&["--stdin-cap-bytes", "10"], &[]);
    open(&mut execd, "cat");
    write(&mut execd, 1, json!({"data": "0123456789"}));
    failed(&mut execd, 1, json!({"data": "0"}), "stdin_cap_exceeded");
    for (flags, unified) in [(&["--stdin-cap-bytes", "0"][..], false), (&[], true)] {
        let mut execd = Execd::with(flags, &[]);
        let mut start = |cmd| {
            if unified { session_of(&execd.open(cmd)) } else { id_of(&open(&mut execd, cmd)) }
        };
        let [reads, none] = ["cat > got", "sleep 300"].map(&mut start);
        for count in 1..=4 {
            write(&mut execd, reads, json!({"data": "x".repeat(CAP / 2)}));
            until_got(&execd, count * CAP / 2);
        }
        let told = write(&mut execd, none, json!({"data": "x".repeat(CAP)}));
        let free = CAP - usize::try_from(number(&told, "queued")).expect("small");
        assert!(free > 0, "the pipe took some of it");
        failed(&mut execd, none, json!({"data": "y".repeat(free + 1)}), "stdin_backlog_full");
        let told = write(&mut execd, none, json!({"data": "y".repeat(free)}));
        assert_eq!(number(&told, "queued"), CAP as u64, "nothing of the refused call was taken");
        failed(&mut execd, none, json!({"data": "y"}), "stdin_backlog_full");
    }
}
