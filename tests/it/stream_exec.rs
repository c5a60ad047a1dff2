//! bash_stream: what it takes, every field of its completed, failed and running forms, how long
//! it waits, background children that outlive the shell, terminals, and abort.

use crate::common::*;
use crate::stream_help::*;
use serde_json::{Value, json};

/// The fields of one that goes on.
const RUNNING: [&str; 6] = ["status", "sessionId", "pid", "startedAt", "tail", "logPath"];

fn ended_and(more: &str) -> Vec<&str> {
    ENDED.iter().copied().chain([more]).collect()
}

// ---- Completed and failed ---------------------------------------------------------------

/// rule: bash-stream.md, The stream family: Completed: every field; failed by status, signal, spawn
///   failure, timeout
#[test]
fn a_completed_command_has_every_field_and_no_other() {
    let mut execd = Execd::start();
    let result = run(&mut execd, "echo out; echo $$ >pid");
    assert_fields(&result, &ENDED);
    assert_eq!((&result["status"], &result["exitCode"]), (&json!("completed"), &json!(0)));
    assert_eq!((&result["stdout"], &result["stderr"]), (&json!("out\n"), &json!("")));
    assert_eq!((&result["aggregated"], &result["sessionId"]), (&json!("out\n"), &json!(1)));
    assert_utc_stamp(&result["startedAt"]);
    assert!(number(&result, "durationMs") < 20_000, "{result}");
    let pid = std::fs::read_to_string(execd.file("pid")).expect("the command wrote it");
    assert_eq!(pid.trim(), pid_of(&result).to_string(), "the shell's");
    assert_eq!(logged(&result), b"out\n", "the log is complete when the reply names it");
}

/// rule: bash-stream.md, The stream family: Completed: every field; failed by status, signal, spawn
///   failure, timeout
#[test]
fn what_could_not_start_has_failed_with_a_reason_and_no_process() {
    let mut execd = Execd::start();
    let long = format!(": {}", "x".repeat(140 * 1024));
    let nowhere = json!({"workdir": "/no/such/directory"});
    for (command, more, reason) in [("true", nowhere, "ENOENT"), (&long, json!({}), "E2BIG")] {
        let result = run_with(&mut execd, command, more);
        assert_eq!((&result["status"], &result["exitCode"]), (&json!("failed"), &json!(-1)));
        assert!(text(&result, "error").contains(reason), "{result}");
        assert_absent(&result, &["pid", "signal", "logPath", "timedOut"]);
        // It is remembered like any other that has ended.
        let id = number(&result, "sessionId");
        assert_eq!(poll(&mut execd, id), result);
        let row = &rows(&mut execd)[0];
        assert_eq!((&row["sessionId"], &row["status"]), (&json!(id), &json!("failed")));
        assert_eq!((&row["exitCode"], &row["startedAt"]), (&json!(-1), &row["endedAt"]));
        assert_absent(row, &["pid", "signal", "logPath"]);
        let page = execd.result("get_process_log", json!({"sessionId": id}));
        assert_eq!((&page["text"], &page["eof"]), (&json!(""), &json!(true)));
    }
    assert!(execd.notified("session_started").is_empty(), "there was no process");
    assert_eq!(run(&mut execd, "true")["sessionId"], 3, "their ids were used");
}

/// rule: bash-stream.md, The stream family: stdout and stderr are kept apart, and merged in order
///   of arrival
#[test]
fn stdout_and_stderr_are_apart_and_merged_in_order_of_arrival() {
    let mut execd = Execd::start();
    let [a, b, c] = ["a", "b", "c"].map(until_file);
    let command = format!("echo 1; {a}; echo 2 >&2; {b}; echo 3; {c}; echo 4 >&2");
    let (request, _) = begin(&mut execd, &command, json!({}));
    for (line, next) in [("1\n", "a"), ("2\n", "b"), ("3\n", "c")] {
        let chunk = next_chunk(&mut execd, request);
        assert_eq!(chunk["chunk"], line);
        go(&execd, next);
    }
    let result = execd.result_of(request);
    assert_eq!((&result["stdout"], &result["stderr"]), (&json!("1\n3\n"), &json!("2\n4\n")));
    assert_eq!(result["aggregated"], "1\n2\n3\n4\n");
    assert_eq!(logged(&result), b"1\n2\n3\n4\n");
}

/// rule: bash-stream.md, The stream family: Texts are clean, the log is raw
#[test]
fn replies_are_clean_text_and_the_log_is_raw() {
    let mut execd = Execd::start();
    let raw = "\\033[31mred\\033[0m\\r\\n10%%\\r20%%\\n";
    let result = run(&mut execd, &format!("printf '{raw}'; printf 'a\\bb\\n' >&2"));
    assert_eq!((&result["stdout"], &result["stderr"]), (&json!("red\n20%\n"), &json!("b\n")));
    assert!(contains(&logged(&result), b"\x1b[31mred\x1b[0m\r\n10%\r20%\n"));
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
    assert_fields(&result, &RUNNING);
    assert_eq!((&result["status"], &result["tail"]), (&json!("running"), &json!("hi\n")));
    let notes = execd.notified("tool_execution_progress");
    let note = json!({
        "request_id": request,
        "sessionId": result["sessionId"],
        "pid": result["pid"],
        "startedAt": result["startedAt"],
        "lastOutputTail": "hi\n",
    });
    assert_eq!(notes, [note], "one, with these fields");
    let place = execd.reply_position(request);
    assert!(!execd.any_after(place, |line| line["method"] == "tool_execution_progress"));
}

/// rule: bash-stream.md, The stream family: Yielded: running after one progress notification, tail
///   of 2 KiB
#[test]
fn the_tail_is_the_last_two_kib_of_raw_text_without_a_broken_character() {
    let mut execd = Execd::start();
    // 4,001 bytes: the last 2,048 begin in the middle of a character.
    let opened = open_until(&mut execd, "printf 'ä%.0s' {1..2000}; printf x; read x", "x");
    let polled = poll(&mut execd, id_of(&opened));
    assert_eq!(polled["tail"], format!("{}x", "ä".repeat(1_023)));
    let opened = open_until(&mut execd, "printf '\\033[1mbold\\r\\n'; read x", "bold\r\n");
    let polled = poll(&mut execd, id_of(&opened));
    assert_eq!(polled["tail"], "\u{1b}[1mbold\r\n");
    assert_eq!(polled["stdout"], "bold\n");
}

/// rule: protocol.md, Several clients, cancel in the families: bash_stream and poll_process answer
///   a cancel as their document says
/// rule: bash-stream.md, The stream family: cancel: bash_stream and poll_process answer running
#[test]
fn a_cancelled_call_answers_running_and_the_command_lives_on() {
    let mut execd = Execd::start();
    let (request, session) = begin(&mut execd, "echo hi; read x; exit 3", json!({}));
    next_chunk(&mut execd, request);
    assert!(execd.cancel(request));
    let result = execd.result_of(request);
    assert_fields(&result, &RUNNING);
    assert_eq!((&result["status"], &result["tail"]), (&json!("running"), &json!("hi\n")));
    assert!(is_alive(pid_of(&result)));
    assert_eq!(poll(&mut execd, session)["status"], "running");
    execd.write(json!({"session_id": session, "chars": "\\n"}));
    assert_eq!(until_over(&mut execd, session)["exitCode"], 3);
}

#[test]
fn a_call_cancelled_at_once_has_a_session_to_come_back_to() {
    let mut execd = Execd::start();
    let request = execd.start_request("bash_stream", json!({"command": "echo hi; read x"}));
    execd.cancel(request);
    let result = execd.result_of(request);
    assert_eq!(result["status"], "running", "{result}");
    let polled = poll_with(&mut execd, id_of(&result), json!({"maxDrainMs": 60_000}));
    assert_eq!(polled["stdout"], "hi\n");
}

// ---- timeoutMs --------------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: Completed: every field; failed by status, signal, spawn
///   failure, timeout
#[test]
fn a_timeout_ends_all_of_it_and_is_told() {
    let mut execd = Execd::start();
    let command = "set -m; trap '' TERM; sleep 300 & echo hi; sleep 300";
    let result = run_with(&mut execd, command, json!({"timeoutMs": 700}));
    assert_fields(&result, &ended_and_timed_out());
    assert_eq!((&result["status"], &result["timedOut"]), (&json!("failed"), &json!(true)));
    assert_eq!((&result["signal"], &result["stdout"]), (&json!("SIGKILL"), &json!("hi\n")));
    assert!((700..20_000).contains(&number(&result, "durationMs")), "{result}");
    execd.until_no_session_process();
}

fn ended_and_timed_out() -> Vec<&'static str> {
    let fields = ENDED.into_iter().filter(|field| *field != "exitCode");
    fields.chain(["signal", "killedBy", "timedOut"]).collect()
}

#[test]
fn a_timeout_comes_also_when_nobody_waits() {
    let mut execd = Execd::start();
    let opened = open_with(&mut execd, "sleep 300", json!({"timeoutMs": 500}));
    execd.until_no_session_process();
    let polled = until_over(&mut execd, id_of(&opened));
    assert_eq!((&polled["status"], &polled["timedOut"]), (&json!("failed"), &json!(true)));
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

// ---- Background children ----------------------------------------------------------------

/// rule: bash-stream.md, The stream family: The shell is gone, children hold the output and sleep:
///   answered 50 ms later with backgroundPids
#[test]
fn children_that_hold_the_output_do_not_hold_the_answer() {
    let mut execd = Execd::start();
    let started = now();
    let result = run(&mut execd, "sleep 300 & echo $!; exit 2");
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    assert_fields(&result, &ended_and("backgroundPids"));
    assert_eq!((&result["status"], &result["exitCode"]), (&json!("failed"), &json!(2)));
    let child: u64 = text(&result, "stdout").trim().parse().expect("a pid");
    assert_eq!(result["backgroundPids"], json!([child]));
    let row = row(&mut execd, 1).expect("it is listed");
    assert_eq!((&row["status"], &row["exitCode"]), (&json!("failed"), &json!(2)));
}

/// rule: bash-stream.md, The stream family: Never hangs on a grandchild that holds the pipe
#[test]
fn a_grandchild_with_a_session_of_its_own_holds_no_answer() {
    let mut execd = Execd::start();
    execd.leaves_processes_behind();
    let started = now();
    let result = run(&mut execd, "setsid sleep 300 & echo hi");
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    assert_eq!((&result["status"], &result["stdout"]), (&json!("completed"), &json!("hi\n")));
}

// ---- Terminals --------------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: A PTY has one stream
#[test]
fn a_terminal_is_one_stream() {
    let mut execd = Execd::start();
    let command = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && stty size; echo err >&2";
    let (request, session) = begin(&mut execd, command, json!({"stdinMode": "pty"}));
    let result = execd.result_of(request);
    assert_fields(&result, &ENDED);
    assert_eq!((&result["stdout"], &result["stderr"]), (&json!("30 120\nerr\n"), &json!("")));
    assert_eq!(result["aggregated"], "30 120\nerr\n");
    assert_eq!(logged(&result), b"30 120\r\nerr\r\n", "the log is raw");
    let chunks = chunks_of(&mut execd, request);
    assert!(chunks.iter().all(|chunk| chunk["stream"] == "stdout"), "{chunks:?}");
    assert_eq!(joined(&chunks, "stdout"), "30 120\r\nerr\r\n");
    assert_eq!(row(&mut execd, session).expect("a row")["stdinMode"], "pty");
}

/// `rg needle` and others that read stdin where no file is named could only wait for input.
/// rule: bash-stream.md, The stream family: stdinMode null: /dev/null, told in lists, refused by
///   write_stdin
#[test]
fn without_stdin_what_reads_it_is_at_its_end() {
    let mut execd = Execd::start();
    let more = json!({"stdinMode": "null"});
    let result = run_with(&mut execd, "cat; readlink /proc/self/fd/0; echo err >&2", more.clone());
    assert_eq!(result["stdout"], "/dev/null\n");
    assert_eq!(result["stderr"], "err\n", "the streams are apart as with a pipe");
    let ended = row(&mut execd, 1).expect("a row");
    let null = (&json!("null"), &json!(false));
    assert_eq!((&ended["stdinMode"], &ended["stdinOpen"]), null);
    open_with(&mut execd, "sleep 300", more.clone());
    let running = row(&mut execd, 2).expect("a row");
    assert_eq!((&running["stdinMode"], &running["stdinOpen"]), null);
    for params in [json!({"data": "x"}), json!({"eof": true})] {
        let params = merged(params, json!({"sessionId": 2}));
        let message = execd.failed("write_stdin", params, "stdin_closed");
        assert_eq!(message, "stdin of session 2 is /dev/null: it takes no input");
    }
    let nowhere = merged(more, json!({"command": "true", "workdir": "/no/such"}));
    assert_eq!(execd.result("bash_stream", nowhere)["status"], "failed");
    assert_eq!(row(&mut execd, 3).expect("a row")["stdinMode"], "null");
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

/// rule: bash-stream.md, The stream family: 64 running jobs, a cap of their own
#[test]
fn a_job_takes_no_session_s_place_nor_the_other_way_round() {
    let mut execd = Execd::with(&["--max-sessions", "2"], &[]);
    let jobs = [(); 3].map(|()| id_of(&open(&mut execd, "exec sleep 300")));
    let first = execd.open("exec sleep 300");
    let second = execd.open("exec sleep 300");
    assert_eq!(second["warning"], "2/2 sessions open", "jobs are not counted");
    let third = execd.open("exec sleep 300");
    assert!(text(&third, "warning").contains("evicted session"), "{third}");
    let evicted = execd.write(json!({"session_id": first["session_id"]}));
    assert_eq!(evicted["killed_by"], "eviction", "{evicted}");
    for job in jobs {
        assert_eq!(poll(&mut execd, job)["status"], "running", "{job}");
    }
    let ids: Vec<Value> = [second, third].iter().map(|one| one["session_id"].clone()).collect();
    for id in ids {
        assert_eq!(execd.poll_now(id.as_u64().expect("an id"))["session_id"], id);
    }
}
