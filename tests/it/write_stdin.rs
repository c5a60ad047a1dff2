//! write_stdin: escapes in `chars`, exact bytes in `chars_b64`, end of input on pipes and
//! terminals, input that the child does not read or no longer wants, and how long polls and
//! input calls wait (yield_time_ms, its clamps and caps, yield_until).

use std::time::Duration;

use crate::common::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const KIB: usize = 1024;

/// What a child on a pipe reads when each of these params is sent to one of its own.
fn delivered(inputs: &[Value]) -> Vec<Vec<u8>> {
    let mut execd = Execd::start();
    let sessions = execd.open_all(&vec!["od -An -v -tx1"; inputs.len()]);
    let mut bytes = Vec::new();
    for (session, input) in sessions.into_iter().zip(inputs) {
        let rest = json!({"session_id": session, "eof": true, "yield_time_ms": 30_000});
        let result = execd.write(merged(rest, input.clone()));
        assert_eq!(result["exit_code"], 0, "{result}");
        let byte = |hex| u8::from_str_radix(hex, 16).expect("od prints hex");
        bytes.push(output(&result).split_whitespace().map(byte).collect());
    }
    bytes
}

fn refused(params: Value, param: &str) -> String {
    let mut execd = Execd::start();
    execd.open("cat");
    execd.refused("write_stdin", merged(json!({"session_id": 1}), params), param)
}

// ---- Escapes ----------------------------------------------------------------------------

/// rule: unified-exec.md, write_stdin: `chars`: C-style escapes are decoded
/// rule: unified-exec.md, write_stdin: Raw control characters and UTF-8 pass through
#[test]
fn the_examples_of_the_description_are_decoded() {
    let table: [(&str, &[u8]); 6] = [
        (r"\x1b:wq\n", b"\x1b:wq\n"),
        (r"\x80\xff\0", b"\x80\xff\0"),
        (r"\uD83D\uDE00", "😀".as_bytes()),
        (r"C:\\temp", br"C:\temp"),
        (r"\q\x1", br"\q\x1"),
        ("é\tb\x1b[A\x03\u{0}", "é\tb\x1b[A\x03\u{0}".as_bytes()),
    ];
    let inputs = table.map(|(chars, _)| json!({"chars": chars}));
    assert_eq!(delivered(&inputs), table.map(|(_, bytes)| bytes.to_vec()));
}

// ---- Exact bytes ------------------------------------------------------------------------

/// rule: unified-exec.md, write_stdin: `chars_b64`: exact bytes
/// rule: unified-exec.md, write_stdin: An empty string counts as absent
#[test]
fn base64_is_delivered_byte_for_byte() {
    let all: Vec<u8> = (0..=255).collect();
    let inputs = [
        json!({"chars_b64": STANDARD.encode(&all)}),
        json!({"chars_b64": STANDARD.encode(br"\n\x41")}),
        json!({"chars_b64": " G3s6\n\twg\r\no= "}),
        json!({"chars": "", "chars_b64": "YQ=="}),
        json!({"chars": "a", "chars_b64": ""}),
        json!({"chars": "", "chars_b64": ""}),
    ];
    let expected =
        [all, br"\n\x41".to_vec(), b"\x1b{:\xc2\n".to_vec(), b"a".to_vec(), b"a".to_vec(), vec![]];
    assert_eq!(delivered(&inputs), expected);
}

/// rule: unified-exec.md, write_stdin: Malformed base64: −32602; whitespace inside is fine
#[test]
fn malformed_base64_is_refused() {
    for text in ["abc*", "a", "====", "YQ=a"] {
        let message = refused(json!({"chars_b64": text}), "chars_b64");
        assert!(message.contains(text), "the message quotes the value: {message}");
    }
}

/// rule: unified-exec.md, write_stdin: `chars` and `chars_b64` together: −32602
#[test]
fn chars_and_base64_together_are_refused() {
    let mut execd = Execd::start();
    execd.open("cat");
    let params = json!({"session_id": 1, "chars": "a", "chars_b64": "YQ=="});
    assert_eq!(execd.error("write_stdin", params)["code"], -32602);
    assert_eq!(execd.poll_now(1)["output"], "", "nothing was written");
}

// ---- Params that are refused ------------------------------------------------------------

/// rule: unified-exec.md, write_stdin: `session_id` is required
#[test]
fn session_id_is_required_and_a_number() {
    let mut execd = Execd::start();
    execd.refused("write_stdin", json!({}), "session_id");
    execd.refused("write_stdin", json!({"session_id": "1"}), "session_id");
    execd.refused("write_stdin", json!({"session_id": 1.5}), "session_id");
    execd.refused("write_stdin", json!({"session_id": true}), "session_id");
}

/// rule: unified-exec.md, write_stdin: An unknown or removed id: `unknown_session`, `unknown
///   session_id: 7`
#[test]
fn an_unknown_session_is_an_error_with_its_id() {
    let mut execd = Execd::start();
    for params in [json!({"session_id": 7}), json!({"session_id": 7, "chars": "a"})] {
        let message = execd.failed("write_stdin", params, "unknown_session");
        assert_eq!(message, "unknown session_id: 7");
    }
}

// ---- Input and its answer ---------------------------------------------------------------

/// rule: unified-exec.md, write_stdin: Output not seen by an earlier call comes first
#[test]
fn output_that_no_earlier_call_saw_comes_first() {
    let mut execd = Execd::start();
    let first = execd.open("until [ -e go ]; do sleep 0.01; done; echo before; cat");
    std::fs::write(execd.file("go"), "").expect("a file");
    until_logged(&first, "before");
    let params =
        json!({"session_id": 1, "chars": "after\\n", "eof": true, "yield_time_ms": 30_000});
    let result = execd.write(params);
    assert_eq!(result["output"], "before\nafter\n");
}

#[test]
fn input_of_several_calls_arrives_in_order() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open("cat"));
    let requests: Vec<u64> = (0..50)
        .map(|i| {
            execd.start_request(
                "write_stdin",
                json!({"session_id": session, "chars": format!("{i} ")}),
            )
        })
        .collect();
    let mut all: String =
        requests.into_iter().map(|id| output(&execd.result_of(id)).to_owned()).collect();
    let rest = execd.write(json!({"session_id": session, "eof": true, "yield_time_ms": 30_000}));
    all.push_str(output(&rest));
    let expected: String = (0..50).map(|i| format!("{i} ")).collect();
    assert_eq!(all, expected);
}

/// rule: unified-exec.md, write_stdin: write_stdin has the same result as exec_command
#[test]
fn an_answer_to_input_has_the_same_result_as_exec_command() {
    let mut execd = Execd::start();
    let first = execd.open("cat");
    let result = execd.input(1, "hi\\n");
    assert_eq!((&result["session_id"], &result["output"]), (&json!(1), &json!("hi\n")));
    for field in ["log_path", "cwd", "command", "tty"] {
        assert_eq!(result[field], first[field], "{field}");
    }
    assert_ne!(result["chunk_id"], first["chunk_id"]);
    assert_eq!(result["output_bytes_total"], 3);
}

/// rule: unified-exec.md, exec_command, params: A command that ends earlier answers at once
#[test]
fn many_short_exchanges_cost_no_fixed_sleep() {
    let mut execd = Execd::start();
    let started = now();
    let sessions = execd.open_all(&["read x"; 40]);
    for session in sessions {
        let params = json!({"session_id": session, "chars": "\\n", "yield_time_ms": 30_000});
        assert_eq!(execd.write(params)["exit_code"], 0);
    }
    assert!(started.elapsed() < AT_ONCE);
}

// ---- End of input -----------------------------------------------------------------------

/// rule: unified-exec.md, write_stdin: `eof` closes the child's stdin after the bytes
#[test]
fn eof_closes_a_pipe_after_the_bytes() {
    let mut execd = Execd::start();
    execd.open("cat; echo end");
    let params = json!({"session_id": 1, "chars": "last", "eof": true, "yield_time_ms": 30_000});
    let result = execd.write(params);
    assert_eq!((&result["output"], &result["exit_code"]), (&json!("lastend\n"), &json!(0)));
}

/// rule: unified-exec.md, write_stdin: Input after `eof`: `stdin_closed`
#[test]
fn input_after_eof_on_a_pipe_is_refused() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open("cat; sleep 60"));
    execd.write(json!({"session_id": session, "eof": true}));
    for params in
        [json!({"chars": "a"}), json!({"chars_b64": "YQ=="}), json!({"chars": "a", "eof": true})]
    {
        let params = merged(json!({"session_id": session}), params);
        execd.failed("write_stdin", params, "stdin_closed");
    }
    assert_eq!(execd.poll_now(session)["session_id"], session, "it can still be polled");
}

/// rule: unified-exec.md, write_stdin: `eof` on a PTY in canonical mode sends VEOF, twice when the
///   line isn't empty
#[test]
fn eof_on_a_terminal_ends_a_started_line_with_two() {
    let mut execd = Execd::start();
    let cmd = "stty -echo; echo set; cat; echo end; sleep 60";
    let session = execd.open_ready(cmd, "set", json!({"tty": true}));
    let params = json!({"session_id": session, "chars": "abc", "eof": true});
    assert_eq!(execd.write_until(params, "end\n"), "abcend\n");
}

/// rule: unified-exec.md, write_stdin: `eof` on a PTY in canonical mode sends VEOF, twice when the
///   line isn't empty
#[test]
fn eof_on_a_terminal_remembers_the_line_of_an_earlier_call() {
    let mut execd = Execd::start();
    let cmd = "stty -echo; echo set; cat; echo end; sleep 60";
    let session = execd.open_ready(cmd, "set", json!({"tty": true}));
    execd.input(session, "abc");
    execd.write_until(json!({"session_id": session, "eof": true}), "end");
}

#[test]
fn eof_on_a_terminal_sends_the_character_that_it_is_set_to() {
    let mut execd = Execd::start();
    let cmd = "stty eof ^X; echo set; cat; echo end; sleep 60";
    let session = execd.open_ready(cmd, "set", json!({"tty": true}));
    execd.write_until(json!({"session_id": session, "eof": true}), "end");
}

#[test]
fn input_after_eof_on_a_terminal_is_allowed() {
    let mut execd = Execd::start();
    let cmd = "echo set; cat; echo next; read x; echo \"got $x\"; sleep 60";
    let session = execd.open_ready(cmd, "set", json!({"tty": true}));
    execd.write_until(json!({"session_id": session, "eof": true}), "next");
    execd.input_until(session, "more\\n", "got more");
}

/// rule: protocol.md, Errors: The message of an error says what to do instead where that is known
/// rule: unified-exec.md, write_stdin: `eof` out of canonical mode: −32602 with advice
#[test]
fn eof_out_of_canonical_mode_is_refused_with_advice() {
    let mut execd = Execd::start();
    let cmd = "stty -icanon; echo set; sleep 60";
    let session = execd.open_until_with(cmd, "set", json!({"tty": true}));
    let message = execd.refused("write_stdin", json!({"session_id": session, "eof": true}), "eof");
    assert!(message.contains("\\x04"), "{message}");
}

// ---- Terminals --------------------------------------------------------------------------

/// rule: architecture.md, Starting a child: A child can be interrupted (the inherited mask is the
///   classic bug)
#[test]
fn a_terminal_echoes_and_its_ctrl_c_interrupts() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open_with("exec cat", json!({"tty": true})));
    let text = execd.input_until(session, "hi\\n", "hi\nhi\n");
    assert_eq!(text, "hi\nhi\n");
    let params = json!({"session_id": session, "chars": "\\x03", "yield_time_ms": 30_000});
    let result = execd.write(params);
    assert_eq!(result["signal"], "SIGINT");
    assert_absent(&result, &["exit_code"]);
}

/// rule: unified-exec.md, write_stdin: A line over 4,095 bytes for a PTY in canonical mode is
///   refused before anything is written
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
    // The longest line that fits.
    let chars = format!("{}\\n", "a".repeat(4_094));
    let params = json!({"session_id": session, "chars": chars, "yield_time_ms": 30_000});
    assert!(output(&execd.write(params)).ends_with("4095\n"));
}

/// rule: unified-exec.md, write_stdin: Bytes of earlier calls count towards the line
#[test]
fn bytes_of_earlier_calls_count_towards_the_line() {
    let mut execd = Execd::start();
    let cmd = "stty -echo; echo set; head -n 1 | wc -c";
    let session = execd.open_until_with(cmd, "set", json!({"tty": true}));
    execd.input(session, &"a".repeat(3_000));
    let params = json!({"session_id": session, "chars": "a".repeat(2_000)});
    execd.failed("write_stdin", params, "line_too_long_for_terminal");
    let params = json!({"session_id": session, "chars": "\\n", "yield_time_ms": 30_000});
    assert!(output(&execd.write(params)).ends_with("3001\n"));
}

#[test]
fn many_short_lines_on_a_terminal_all_arrive() {
    let mut execd = Execd::start();
    let cmd = "stty -echo; echo set; head -n 500 | cksum; echo counted";
    let session = execd.open_until_with(cmd, "set", json!({"tty": true}));
    let text: String = (0..500).map(|i| format!("{i:059}\n")).collect();
    let params = json!({"session_id": session, "chars": text, "yield_time_ms": 30_000});
    let result = execd.write(params);
    std::fs::write(execd.file("text"), text).expect("a file");
    let sum = execd.run("cksum <text");
    assert!(output(&result).ends_with(&format!("{}counted\n", output(&sum))), "{result} {sum}");
}

#[test]
fn a_terminal_out_of_canonical_mode_takes_lines_of_any_length() {
    let mut execd = Execd::start();
    let cmd = "stty raw -echo; echo set; head -c 20000 | wc -c";
    let session = execd.open_until_with(cmd, "set", json!({"tty": true}));
    let params =
        json!({"session_id": session, "chars": "a".repeat(20_000), "yield_time_ms": 30_000});
    let result = execd.write(params);
    assert!(output(&result).contains("20000"), "{result}");
}

// ---- Input that is not read -------------------------------------------------------------

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

/// rule: unified-exec.md, write_stdin: Input is written as the child reads, without delaying
///   anything else
#[test]
fn queued_input_delays_nobody() {
    let mut execd = Execd::start();
    let sessions = execd.open_all(&["sleep 60", "cat"]);
    execd.input(sessions[0], &"x".repeat(256 * KIB));
    execd.input_until(sessions[1], "hi\\n", "hi\n");
    let result = execd.poll_now(sessions[0]);
    assert_absent(&result, &["failure_message", "exit_code"]);
}

/// rule: unified-exec.md, write_stdin: The child closed its stdin: output, and a `failure_message`
///   that says so
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
}

/// rule: unified-exec.md, write_stdin: Input to a session that has exited: its exit, and that the
///   bytes were not delivered
#[test]
fn input_for_an_exited_session_tells_the_exit() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open("until [ -e go ]; do sleep 0.01; done; echo bye; exit 6"));
    std::fs::write(execd.file("go"), "").expect("a file");
    execd.until_listed_exited(session);
    let result = execd.input(session, "hello\\n");
    assert_eq!((&result["exit_code"], &result["output"]), (&json!(6), &json!("bye\n")));
    let message = result["failure_message"].as_str().expect("text");
    assert!(message.contains("not delivered"), "{message}");
    execd.failed("write_stdin", json!({"session_id": session}), "unknown_session");
}

// ---- How long a call waits --------------------------------------------------------------

/// The wait in the result of an empty poll with these params.
fn poll_wait(execd: &mut Execd, params: Value) -> u64 {
    let session = session_of(&execd.open("sleep 60"));
    let poll = execd.start_request("write_stdin", merged(json!({"session_id": session}), params));
    execd.cancel(poll);
    let result = execd.result_of(poll);
    assert_eq!(result["wait_status"], "cancelled");
    result["yield_time_ms"].as_u64().expect("a number")
}

/// rule: unified-exec.md, write_stdin: An empty poll: default 5 s, clamped to [5 s, cap]
#[test]
fn an_empty_poll_waits_five_seconds_at_least_and_thirty_minutes_at_most() {
    let mut execd = Execd::start();
    for (params, wait) in [
        (json!({}), 5_000),
        (json!({"yield_time_ms": 1}), 5_000),
        (json!({"yield_time_ms": 5_001}), 5_001),
        (json!({"chars": "", "chars_b64": "", "eof": false}), 5_000),
        (json!({"yield_time_ms": 1_800_000}), 1_800_000),
        (json!({"yield_time_ms": 1_800_001}), 1_800_000),
        (json!({"yield_time_ms": 1_u64 << 52}), 1_800_000),
    ] {
        assert_eq!(poll_wait(&mut execd, params), wait);
    }
}

/// rule: unified-exec.md, write_stdin: `max_empty_poll_ms` is the client's cap
#[test]
fn the_clients_cap_goes_before_the_environments() {
    let mut execd = Execd::with(&[], &[("PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS", "300000")]);
    let far = json!({"yield_time_ms": 1_u64 << 40});
    assert_eq!(poll_wait(&mut execd, far), 300_000);
    for (cap, wait) in [(60_000, 60_000), (600_000, 600_000), (1, 5_000)] {
        let params = json!({"yield_time_ms": 1_u64 << 40, "max_empty_poll_ms": cap});
        assert_eq!(poll_wait(&mut execd, params), wait);
    }
}

/// rule: unified-exec.md, write_stdin: With input: default 250 ms, clamped to [250 ms, 30 s]
#[test]
fn a_call_with_input_waits_between_250_ms_and_30_s() {
    let mut execd = Execd::start();
    let input = json!({"chars": "\\n"});
    let table = [
        (input.clone(), 250),
        (json!({"eof": true}), 250),
        (merged(input.clone(), json!({"yield_time_ms": 1})), 250),
        (merged(input.clone(), json!({"yield_time_ms": 251})), 251),
        (merged(input.clone(), json!({"yield_time_ms": 30_001})), 30_000),
        // The caps concern empty polls alone.
        (merged(input, json!({"yield_time_ms": 30_000, "max_empty_poll_ms": 5_000})), 30_000),
    ];
    let sessions = execd.open_all(&["read x"; 6]);
    for (session, (params, taken)) in sessions.into_iter().zip(table) {
        let params = merged(json!({"session_id": session}), params);
        assert_eq!(execd.write(params)["yield_time_ms"], taken);
    }
}

#[test]
fn an_empty_poll_goes_on_while_nothing_ends_it() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open("sleep 60"));
    let poll = execd.start_request("write_stdin", json!({"session_id": session}));
    execd.no_reply_yet(poll);
    let result = execd.result_of(poll);
    assert_eq!(result["wait_status"], "deadline_reached");
    assert_eq!(result["wait_mode"], "relative");
    assert!(result["effective_wait_ms"].as_u64().expect("a number") >= 5_000, "{result}");
}

// ---- yield_until ------------------------------------------------------------------------

/// rule: unified-exec.md, exec_command, result: `wait_status`: completed, deadline_reached,
///   absolute_deadline_reached, cancelled, shutting_down
/// rule: unified-exec.md, exec_command, result: `wait_mode`, `yield_until`, `effective_wait_ms` on
///   waits
#[test]
fn yield_until_waits_for_that_moment() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open("sleep 60"));
    let due = wall_clock() + Duration::from_millis(700);
    let stamp = utc_stamp(due);
    let result = execd.write(json!({"session_id": session, "yield_until": stamp}));
    assert!(wall_clock() + Duration::from_millis(2) >= due, "not before {stamp}");
    assert_eq!(result["wait_status"], "absolute_deadline_reached");
    assert_eq!((&result["wait_mode"], &result["yield_until"]), (&json!("absolute"), &json!(stamp)));
    assert!(result["effective_wait_ms"].as_u64().expect("a number") <= 60_000, "{result}");
    assert!(result["tool_time_utc"].as_str().expect("text") >= stamp.as_str(), "{result}");
    let header = result["header"].as_str().expect("text");
    assert!(header.contains("\ntool_time_utc: "), "{header}");
}

/// rule: unified-exec.md, write_stdin: A past stamp is an immediate poll
#[test]
fn a_past_stamp_is_an_immediate_poll() {
    let mut execd = Execd::start();
    let session = execd.open_until("sleep 0.4; echo late; sleep 60", "late");
    let started = now();
    let result = execd.poll_now(session);
    assert!(started.elapsed() < AT_ONCE);
    assert_eq!((&result["output"], &result["session_id"]), (&json!("late\n"), &json!(session)));
    assert_eq!(result["wait_status"], "absolute_deadline_reached");
    assert_eq!(result["yield_until"], LONG_AGO);
}

#[test]
fn an_exit_ends_a_yield_until() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open("read x; exit 2"));
    let stamp = utc_stamp(wall_clock() + Duration::from_secs(3_000));
    let poll =
        execd.start_request("write_stdin", json!({"session_id": session, "yield_until": stamp}));
    execd.input(session, "\\n");
    let result = execd.result_of(poll);
    assert_eq!((&result["wait_status"], &result["exit_code"]), (&json!("completed"), &json!(2)));
    assert_eq!(result["wait_mode"], "absolute");
    assert_utc_stamp(&result["tool_time_utc"]);
}

/// rule: unified-exec.md, write_stdin: `yield_until` has no horizon
#[test]
fn yield_until_has_no_horizon() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open("sleep 60"));
    for stamp in ["2999-12-31T23:59:59.999Z", "9999-12-31T23:59:59Z"] {
        let params = json!({"session_id": session, "yield_until": stamp});
        let poll = execd.start_request("write_stdin", params);
        execd.no_reply_yet(poll);
        assert!(execd.cancel(poll));
        let result = execd.result_of(poll);
        assert_eq!(
            (&result["wait_status"], &result["yield_until"]),
            (&json!("cancelled"), &json!(stamp))
        );
    }
}

/// rule: unified-exec.md, exec_command, result: `tool_time_utc` on still-running replies and on
///   every yield_until reply or error
/// rule: unified-exec.md, write_stdin: `yield_until` is strict RFC 3339 UTC
#[test]
fn anything_but_strict_utc_is_refused_with_the_time() {
    let mut execd = Execd::start();
    let session = session_of(&execd.open("sleep 60"));
    for stamp in
        ["", "2026-07-21T18:30:00+02:00", "2026-07-21T18:30:00.1234Z", "2026-02-29T18:30:00Z"]
    {
        let params = json!({"session_id": session, "yield_until": stamp});
        let message = execd.refused("write_stdin", params, "yield_until");
        assert!(message.contains("tool_time_utc: 2"), "{stamp:?}: {message}");
    }
}

/// rule: unified-exec.md, write_stdin: `yield_until` with input is refused
#[test]
fn yield_until_with_input_is_refused_with_the_time() {
    for input in [json!({"chars": "a"}), json!({"chars_b64": "YQ=="}), json!({"eof": true})] {
        let message = refused(merged(json!({"yield_until": LONG_AGO}), input), "yield_until");
        assert!(message.contains("only valid for an empty poll"), "{message}");
        assert!(message.contains("tool_time_utc: 2"), "{message}");
    }
}

/// rule: unified-exec.md, write_stdin: Both waits at once are refused
#[test]
fn both_waits_at_once_are_refused_with_the_time() {
    let mut execd = Execd::start();
    execd.open("cat");
    let params = json!({"session_id": 1, "yield_time_ms": 5_000, "yield_until": LONG_AGO});
    let error = execd.error("write_stdin", params);
    assert_eq!(error["code"], -32602);
    let message = error["message"].as_str().expect("text");
    assert!(message.contains("pass yield_time_ms or yield_until, not both"), "{message}");
    assert!(message.contains("tool_time_utc: 2"), "{message}");
}
