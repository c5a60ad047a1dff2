//! bash_stream: what it takes, every field of its completed, failed and running forms, how long
//! it waits, background children that outlive the shell, terminals, and abort.

use crate::common::*;
use crate::stream_help::*;
use serde_json::{Value, json};

// ---- Completed and failed ---------------------------------------------------------------

/// rule: bash-stream.md, The stream family: stdout and stderr are kept apart, and merged in order
///   of arrival
/// rule: bash-stream.md, The stream family: Live chunks: fields, order within a stream, two streams
///   interleaved
/// rule: bash-stream.md, The stream family: Texts are clean, the log is raw
#[test]
fn stdout_and_stderr_are_apart_and_merged_in_order_of_arrival() {
    let mut execd = Execd::start();
    let [a, b, c] = ["a", "b", "c"].map(until_file);
    let command = format!("echo 1; {a}; echo 2 >&2; {b}; printf '1\\r3\\n'; {c}; echo 4 >&2");
    let (request, session) = begin(&mut execd, &command, json!({}));
    for (stream, text, next) in
        [("stdout", "1\n", "a"), ("stderr", "2\n", "b"), ("stdout", "1\r3\n", "c")]
    {
        let wanted =
            json!({"request_id": request, "sessionId": session, "stream": stream, "chunk": text});
        assert_eq!(next_chunk(&mut execd, request), wanted);
        go(&execd, next);
    }
    let result = execd.result_of(request);
    assert_fields(&result, &ENDED);
    assert_eq!((&result["stdout"], &result["stderr"]), (&json!("1\n3\n"), &json!("2\n4\n")));
    assert_eq!(result["aggregated"], "1\n2\n3\n4\n");
    assert_eq!(logged(&result), b"1\n2\n1\r3\n4\n");
    let reply = execd.reply_position(request);
    assert!(!execd.any_after(reply, |line| line["method"] == "tool_execution_output"));
}

/// rule: bash-stream.md, The stream family: Completed: every field; failed by status, signal, spawn
///   failure, timeout
#[test]
fn what_could_not_start_is_remembered_like_any_other_that_has_ended() {
    let mut execd = Execd::start();
    let result = run(&mut execd, &format!(": {}", "x".repeat(140 * 1024)));
    assert_eq!((&result["status"], &result["exitCode"]), (&json!("failed"), &json!(-1)));
    assert!(text(&result, "error").contains("E2BIG"), "{result}");
    assert_eq!(poll(&mut execd, 1), result);
    assert_absent(&row(&mut execd, 1).expect("a row"), &["pid", "signal", "logPath"]);
    let page = page(&mut execd, 1, json!({}));
    assert_eq!((&page["text"], &page["eof"]), (&json!(""), &json!(true)));
}

// ---- Yielding ---------------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: Yielded: running after one progress notification, tail
///   of 2 KiB
#[test]
fn one_that_goes_on_answers_running_after_its_window() {
    let mut execd = Execd::start();
    let started = now();
    // Clamped: a second at least.
    let params = json!({"command": "echo hi; sleep 60", "yieldMs": 1});
    let request = execd.start_request("bash_stream", params);
    let result = execd.result_of(request);
    assert!(started.elapsed().as_millis() >= 1_000, "{:?}", started.elapsed());
    assert_fields(&result, &["status", "sessionId", "pid", "startedAt", "tail", "logPath"]);
    assert_eq!((&result["status"], &result["tail"]), (&json!("running"), &json!("hi\n")));
    assert_eq!(execd.notified("tool_execution_progress").len(), 1);
    let place = execd.reply_position(request);
    assert!(!execd.any_after(place, |line| line["method"] == "tool_execution_progress"));
}

/// rule: bash-stream.md, The stream family: Yielded: running after one progress notification, tail
///   of 2 KiB
#[test]
fn the_tail_is_the_last_two_kib_of_raw_text_without_a_broken_character() {
    let mut execd = Execd::start();
    // 4,001 bytes: the last 2,048 begin in the middle of a character.
    let opened = open_until(&mut execd, "printf 'ä%.0s' {1..2000}; printf '\\r'; read x", "\r");
    let polled = poll(&mut execd, id_of(&opened));
    assert_eq!(polled["tail"], format!("{}\r", "ä".repeat(1_023)));
}

// ---- timeoutMs --------------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: Completed: every field; failed by status, signal, spawn
///   failure, timeout
#[test]
fn a_timeout_ends_all_of_it_and_is_told_also_when_nobody_waits() {
    let mut execd = Execd::start();
    let command = "set -m; trap '' TERM; sleep 300 & echo hi; sleep 300";
    let result = run_with(&mut execd, command, json!({"timeoutMs": 700}));
    assert_fields(&result, &killed_and(&["timedOut"]));
    assert_eq!((&result["status"], &result["timedOut"]), (&json!("failed"), &json!(true)));
    assert_eq!((&result["signal"], &result["stdout"]), (&json!("SIGKILL"), &json!("hi\n")));
    assert!((700..20_000).contains(&number(&result, "durationMs")), "{result}");
    let opened = open_with(&mut execd, "sleep 300", json!({"timeoutMs": 500}));
    execd.until_no_session_process();
    assert_eq!(until_over(&mut execd, id_of(&opened))["timedOut"], true);
}

/// It was called timed out when the time fell into the 50 ms after its shell's end.
#[test]
fn one_whose_background_goes_on_past_its_timeout_has_not_timed_out() {
    let mut execd = Execd::start();
    for timeout_ms in [10, 25, 40] {
        let more = json!({"timeoutMs": timeout_ms});
        let result = run_with(&mut execd, "sleep 300 & exit 0", more);
        if result["status"] == "failed" {
            // A machine so slow that the shell did not end in time (or just when it was killed).
            assert_eq!(result["timedOut"], true, "{result}");
            continue;
        }
        assert_eq!((&result["exitCode"], &result["timedOut"]), (&json!(0), &Value::Null));
        assert_eq!(result["backgroundPids"].as_array().map(Vec::len), Some(1), "{result}");
    }
}

// ---- Terminals --------------------------------------------------------------------------

/// `rg needle` and others that read stdin where no file is named could only wait for input.
/// rule: bash-stream.md, The stream family: stdinMode null: /dev/null, told in lists, refused by
///   write_stdin
#[test]
fn without_stdin_what_reads_it_is_at_its_end() {
    let mut execd = Execd::start();
    let more = json!({"stdinMode": "null"});
    let result = run_with(&mut execd, "cat; readlink /proc/self/fd/0; echo err >&2", more.clone());
    assert_eq!((&result["stdout"], &result["stderr"]), (&json!("/dev/null\n"), &json!("err\n")));
    open_with(&mut execd, "sleep 300", more);
    for session in [1, 2] {
        let row = row(&mut execd, session).expect("a row");
        assert_eq!((&row["stdinMode"], &row["stdinOpen"]), (&json!("null"), &json!(false)));
    }
    let params = json!({"sessionId": 2, "data": "x"});
    let message = execd.failed("write_stdin", params, "stdin_closed");
    assert_eq!(message, "stdin of session 2 is /dev/null: it takes no input");
}

// ---- How many ---------------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: 64 running jobs, a cap of their own
#[test]
fn sixty_four_jobs_run_at_once_and_no_more() {
    let mut execd = Execd::start();
    let requests: Vec<u64> = (0..64)
        .map(|_| execd.start_request("bash_stream", json!({"command": "exec sleep 300"})))
        .collect();
    let message = execd.failed("bash_stream", json!({"command": "true"}), "too_many_sessions");
    assert!(message.contains("64"), "{message}");
    assert_eq!(execd.run("echo others may")["output"], "others may\n");
    assert_eq!(rows(&mut execd).iter().filter(|row| row["status"] == "running").count(), 64);
    kill(&mut execd, 7);
    assert_eq!(execd.result_of(requests[6])["signal"], "SIGKILL");
    assert_eq!(run(&mut execd, "echo room")["stdout"], "room\n");
}
