//! write_stdin: escapes in `chars`, exact bytes in `chars_b64`, end of input on pipes and
//! terminals, input that the child does not read or no longer wants, and how long polls and
//! input calls wait (yield_time_ms, its clamps and caps, yield_until).

use std::time::Duration;

use crate::common::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const KIB: usize = 1024;

/// rule: unified-exec.md, write_stdin: `chars`: C-style escapes are decoded
/// rule: unified-exec.md, write_stdin: Raw control characters and UTF-8 pass through
/// rule: unified-exec.md, write_stdin: `chars_b64`: exact bytes
/// rule: unified-exec.md, write_stdin: An empty string counts as absent
/// rule: unified-exec.md, write_stdin: `eof` closes the child's stdin after the bytes
#[test]
fn escapes_are_decoded_and_base64_is_delivered_byte_for_byte() {
    let mut execd = Execd::start();
    let all: Vec<u8> = (0..=255).collect();
    let table: [(Value, &[u8]); 11] = [
        (json!({"chars": r"\x1b:wq\n"}), b"\x1b:wq\n"),
        (json!({"chars": r"\x80\xff\0"}), b"\x80\xff\0"),
        (json!({"chars": r"\uD83D\uDE00"}), "😀".as_bytes()),
        (json!({"chars": r"C:\\temp"}), br"C:\temp"),
        (json!({"chars": r"\q\x1"}), br"\q\x1"),
        (json!({"chars": "é\tb\x1b[A\x03\u{0}"}), "é\tb\x1b[A\x03\u{0}".as_bytes()),
        (json!({"chars_b64": STANDARD.encode(&all)}), &all),
        (json!({"chars_b64": STANDARD.encode(br"\n\x41")}), br"\n\x41"),
        (json!({"chars_b64": " G3s6\n\twg\r\no= "}), b"\x1b{:\xc2\n"),
        (json!({"chars": "", "chars_b64": "YQ=="}), b"a"),
        (json!({"chars": "", "chars_b64": ""}), b""),
    ];
    let sessions = execd.open_all(&["od -An -v -tx1; echo end >&2"; 11]);
    for (session, (input, wanted)) in sessions.into_iter().zip(table) {
        let rest = json!({"session_id": session, "eof": true, "yield_time_ms": 30_000});
        let result = execd.write(merged(rest, input.clone()));
        assert_eq!(result["exit_code"], 0, "{result}");
        let read = output(&result).strip_suffix("end\n").expect("stdin has ended");
        let byte = |hex| u8::from_str_radix(hex, 16).expect("od prints hex");
        let bytes: Vec<u8> = read.split_whitespace().map(byte).collect();
        assert_eq!(bytes, wanted, "{input}");
    }
}

/// rule: unified-exec.md, write_stdin: Output not seen by an earlier call comes first
/// rule: unified-exec.md, write_stdin: write_stdin has the same result as exec_command
#[test]
fn input_of_several_calls_arrives_in_order_behind_output_that_nobody_saw() {
    let mut execd = Execd::start();
    let first = execd.open(&format!("{}; echo before; cat", until_file("go")));
    go(&execd, "go");
    until_logged(&first, "before");
    let result = execd.input(1, "after\\n");
    assert!(output(&result).starts_with("before\n"), "{result}");
    for field in ["session_id", "log_path", "cwd", "command", "tty"] {
        assert_eq!(result[field], first[field], "{field}");
    }
    assert_ne!(result["chunk_id"], first["chunk_id"]);
    let input = |i: u32| json!({"session_id": 1, "chars": format!("{i} ")});
    let requests: Vec<u64> =
        (0..50).map(|i| execd.start_request("write_stdin", input(i))).collect();
    let mut all = output(&result).to_owned();
    for request in requests {
        all.push_str(output(&execd.result_of(request)));
    }
    let rest = execd.write(json!({"session_id": 1, "eof": true, "yield_time_ms": 30_000}));
    let expected: String = (0..50).map(|i| format!("{i} ")).collect();
    assert_eq!(all + output(&rest), format!("before\nafter\n{expected}"));
}

/// rule: unified-exec.md, write_stdin: `eof` on a PTY in canonical mode sends VEOF, twice when the
///   line isn't empty
/// rule: protocol.md, Errors: The message of an error says what to do instead where that is known
/// rule: unified-exec.md, write_stdin: `eof` out of canonical mode: −32602 with advice
#[test]
fn eof_on_a_terminal_is_the_character_that_ends_its_input() {
    let mut execd = Execd::start();
    let open = |execd: &mut Execd, modes: &str, then: &str| {
        let cmd = format!("stty {modes}; echo set; cat; echo end; {then}; sleep 60");
        execd.open_ready(&cmd, "set", json!({"tty": true}))
    };
    // A line that was begun is ended by two, also where an earlier call has begun it.
    let session = open(&mut execd, "-echo", "read x; echo \"got $x\"");
    let params = json!({"session_id": session, "chars": "abc", "eof": true});
    assert_eq!(execd.write_until(params, "end\n"), "abcend\n");
    // What follows is read by who reads next.
    execd.input_until(session, "more\\n", "got more");
    let session = open(&mut execd, "-echo", "true");
    execd.input(session, "abc");
    execd.write_until(json!({"session_id": session, "eof": true}), "end");
    // It may be set to another one.
    let session = open(&mut execd, "eof ^X", "true");
    execd.write_until(json!({"session_id": session, "eof": true}), "end");
    let session = open(&mut execd, "-icanon", "true");
    let message = execd.refused("write_stdin", json!({"session_id": session, "eof": true}), "eof");
    assert!(message.contains("\\x04"), "{message}");
}

/// rule: unified-exec.md, write_stdin: A line over 4,095 bytes for a PTY in canonical mode is
///   refused before anything is written
/// rule: unified-exec.md, write_stdin: Bytes of earlier calls count towards the line
#[test]
fn a_line_too_long_for_a_terminal_is_refused_before_anything_is_written() {
    let mut execd = Execd::start();
    let cmd = "stty -echo; echo set; head -n 1 | wc -c";
    let session = execd.open_until_with(cmd, "set", json!({"tty": true}));
    for chars in [
        "a".repeat(5_000),
        format!("{}\\n", "a".repeat(4_096)),
        format!("b\\n{}", "a".repeat(5_000)),
    ] {
        let params = json!({"session_id": session, "chars": chars});
        let message = execd.failed("write_stdin", params, "line_too_long_for_terminal");
        assert!(message.contains("4095") || message.contains("4,095"), "{message}");
    }
    execd.input(session, &"a".repeat(3_000));
    let params = json!({"session_id": session, "chars": "a".repeat(2_000)});
    execd.failed("write_stdin", params, "line_too_long_for_terminal");
    // The longest line that fits.
    let chars = format!("{}\\n", "a".repeat(1_094));
    let params = json!({"session_id": session, "chars": chars, "yield_time_ms": 30_000});
    assert!(output(&execd.write(params)).ends_with("4095\n"));
}

#[test]
fn many_lines_on_a_terminal_and_any_out_of_canonical_mode_arrive() {
    let mut execd = Execd::start();
    let text: String = (0..500).map(|i| format!("{i:059}\n")).collect();
    std::fs::write(execd.file("text"), &text).expect("a file");
    let sum = execd.run("cksum <text");
    for (modes, read) in [("-echo", "head -n 500"), ("raw -echo", "head -c 30000")] {
        let cmd = format!("stty {modes}; echo set; {read} | cksum; echo counted");
        let session = execd.open_until_with(&cmd, "set", json!({"tty": true}));
        let params = json!({"session_id": session, "chars": text, "yield_time_ms": 30_000});
        let result = execd.write(params);
        let said = output(&result).replace('\r', "");
        assert!(said.ends_with(&format!("{}counted\n", output(&sum))), "{modes}: {result} {sum}");
    }
}

/// rule: unified-exec.md, write_stdin: Queued + new input over 256 KiB: `stdin_backlog_full`,
///   nothing of that call written
#[test]
fn input_over_the_backlog_is_refused_and_nothing_of_it_written() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open("until [ -e go ]; do sleep 0.01; done; wc -c"));
    let chars = "x".repeat(256 * KIB + 1);
    let larger = json!({"session_id": session, "chars": chars});
    execd.failed("write_stdin", larger, "stdin_backlog_full");
    execd.input(session, &"x".repeat(256 * KIB));
    let more = json!({"session_id": session, "chars": "y".repeat(256 * KIB)});
    execd.failed("write_stdin", more, "stdin_backlog_full");
    std::fs::write(execd.file("go"), "").expect("a file");
    let params = json!({"session_id": session, "eof": true, "yield_time_ms": 30_000});
    assert_eq!(execd.write(params)["output"], format!("{}\n", 256 * KIB));
}

/// rule: unified-exec.md, write_stdin: The child closed its stdin: output, and a `failure_message`
///   that says so
/// rule: unified-exec.md, write_stdin: Input to a session that has exited: its exit, and that the
///   bytes were not delivered
/// rule: unified-exec.md, write_stdin: Input after `eof`: `stdin_closed`
#[test]
fn input_for_a_closed_stdin_says_that_it_was_not_delivered() {
    let mut execd = Execd::start();
    let session = execd.open_until("exec <&-; echo closed; sleep 60", "closed");
    let result = execd.input(session, "hello\\n");
    let message = "stdin write failed: the child closed its stdin; bytes were not delivered";
    assert_eq!(result["failure_message"], message);
    assert_eq!(result["session_id"], session, "the session goes on: {result}");
    let header = result["header"].as_str().expect("text");
    assert!(header.contains(&format!("\nfailure: {message}\n")), "{header}");
    let session = session_of(&execd.open(&format!("{}; echo bye; exit 6", until_file("go"))));
    execd.write(json!({"session_id": session, "eof": true}));
    for input in [json!({"chars": "a"}), json!({"chars_b64": "YQ==", "eof": true})] {
        let params = merged(json!({"session_id": session}), input);
        execd.failed("write_stdin", params, "stdin_closed");
    }
    assert_eq!(execd.poll_now(session)["session_id"], session, "it can still be polled");
    let session = session_of(&execd.open(&format!("{}; echo bye; exit 6", until_file("go"))));
    go(&execd, "go");
    execd.until_listed_exited(session);
    let result = execd.input(session, "hello\\n");
    assert_eq!((&result["exit_code"], &result["output"]), (&json!(6), &json!("bye\n")));
    let message = result["failure_message"].as_str().expect("text");
    assert!(message.contains("not delivered"), "{message}");
    execd.failed("write_stdin", json!({"session_id": session}), "unknown_session");
}

/// rule: unified-exec.md, write_stdin: An empty poll: default 5 s, clamped to [5 s, cap]
/// rule: unified-exec.md, write_stdin: `max_empty_poll_ms` is the client's cap
/// rule: unified-exec.md, write_stdin: With input: default 250 ms, clamped to [250 ms, 30 s]
#[test]
fn a_poll_waits_5_s_to_30_minutes_and_a_call_with_input_250_ms_to_30_s() {
    let capped = [("PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS", "300000")];
    let far = 1_u64 << 52;
    let waits = |execd: &mut Execd, table: &[(Value, u64)]| {
        let session = session_of(&execd.open("sleep 60"));
        for (params, wait) in table {
            let params = merged(json!({"session_id": session}), params.clone());
            let request = execd.start_request("write_stdin", params);
            execd.cancel(request);
            assert_eq!(execd.result_of(request)["yield_time_ms"], *wait, "{table:?}");
        }
    };
    let input = |more| merged(json!({"chars": "\\n"}), more);
    waits(
        &mut Execd::start(),
        &[
            (json!({}), 5_000),
            (json!({"yield_time_ms": 1}), 5_000),
            (json!({"chars": "", "chars_b64": "", "eof": false}), 5_000),
            (json!({"yield_time_ms": far}), 1_800_000),
            (input(json!({})), 250),
            (input(json!({"yield_time_ms": 1})), 250),
            (input(json!({"yield_time_ms": 30_001})), 30_000),
            // The caps concern empty polls alone.
            (input(json!({"yield_time_ms": 30_000, "max_empty_poll_ms": 5_000})), 30_000),
            (json!({"eof": true}), 250),
        ],
    );
    waits(
        &mut Execd::with(&[], &capped),
        &[
            (json!({"yield_time_ms": far}), 300_000),
            (json!({"yield_time_ms": far, "max_empty_poll_ms": 60_000}), 60_000),
            (json!({"yield_time_ms": far, "max_empty_poll_ms": 600_000}), 600_000),
            (json!({"yield_time_ms": far, "max_empty_poll_ms": 1}), 5_000),
        ],
    );
}

/// rule: unified-exec.md, exec_command, result: `wait_status`: completed, deadline_reached,
///   absolute_deadline_reached, cancelled, shutting_down
/// rule: unified-exec.md, exec_command, result: `wait_mode`, `yield_until`, `effective_wait_ms` on
///   waits
/// rule: unified-exec.md, write_stdin: A past stamp is an immediate poll
/// rule: unified-exec.md, write_stdin: `yield_until` has no horizon
#[test]
fn yield_until_waits_for_that_moment() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open("read x; exit 2"));
    let wait = |stamp: &str| {
        let params = json!({"session_id": session, "yield_until": stamp});
        merged(params, json!({"on_impossible": "wait"}))
    };
    let due = wall_clock() + Duration::from_millis(700);
    let stamp = utc_stamp(due);
    let result = execd.write(wait(&stamp));
    assert!(wall_clock() + Duration::from_millis(2) >= due, "not before {stamp}");
    assert_eq!(result["wait_status"], "absolute_deadline_reached");
    assert_eq!((&result["wait_mode"], &result["yield_until"]), (&json!("absolute"), &json!(stamp)));
    assert!(result["effective_wait_ms"].as_u64().expect("a number") <= 60_000, "{result}");
    assert!(result["tool_time_utc"].as_str().expect("text") >= stamp.as_str(), "{result}");
    let started = now();
    let result = execd.write(wait(LONG_AGO));
    assert!(started.elapsed() < AT_ONCE);
    assert_eq!(result["wait_status"], "absolute_deadline_reached");
    let poll = execd.start_request("write_stdin", wait("9999-12-31T23:59:59Z"));
    execd.no_reply_yet(poll);
    assert!(execd.cancel(poll));
    let result = execd.result_of(poll);
    assert_eq!(result["wait_status"], "cancelled");
    assert_eq!(result["yield_until"], "9999-12-31T23:59:59Z");
    // An exit ends it.
    let stamp = utc_stamp(wall_clock() + Duration::from_secs(3_000));
    let poll = execd.start_request("write_stdin", wait(&stamp));
    execd.input(session, "\\n");
    let result = execd.result_of(poll);
    assert_eq!((&result["wait_status"], &result["exit_code"]), (&json!("completed"), &json!(2)));
    assert_eq!(result["wait_mode"], "absolute");
    assert_utc_stamp(&result["tool_time_utc"]);
}
