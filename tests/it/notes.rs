//! What replies tell besides the output: a wait that was clamped, a kill's process and signal,
//! armed wakes, what to do about a program that waits on our pipe; and a terminal that is sized by
//! a write.

use crate::common::*;
use serde_json::{Value, json};

fn note(result: &Value) -> &str {
    result["note"].as_str().unwrap_or_default()
}

/// rule: unified-exec.md, Sessions and waits: A time that is out of range is clamped, and `note`
///   says so
#[test]
fn a_wait_that_was_clamped_says_so_and_one_that_was_not_does_not() {
    let mut execd = Execd::start();
    let waits = |ms: i64| json!({"cmd": "true", "yield_time_ms": ms});
    for (ms, said) in [
        (999_999, "yield_time_ms was 999999, the most is 30000"),
        (1, "yield_time_ms was 1, the least is 250"),
        (-5, "yield_time_ms was -5, the least is 250"),
        (30_000, ""),
        (250, ""),
    ] {
        let result = execd.exec(waits(ms));
        assert_eq!(note(&result), said, "{ms}");
        let header = result["header"].as_str().expect("a header");
        assert_eq!(header.contains(&format!("\nnote: {said}\n")), !said.is_empty(), "{header}");
    }
    assert_absent(&execd.run("true"), &["note"]);
    // The cap of a poll is the call's own where it gives one.
    let capped = json!({"yield_time_ms": 999_999, "max_empty_poll_ms": 6_000});
    let with = |more: Value| merged(capped.clone(), more);
    let matched = execd.exec(with(json!({"cmd": "echo x", "until": {"text": "x"}})));
    assert_eq!(note(&matched), "yield_time_ms was 999999, the most is 6000");
    let no_poll = execd.exec(with(json!({"cmd": "true"})));
    assert_eq!(note(&no_poll), "yield_time_ms was 999999, the most is 30000");
    let id = session_of(&execd.open("sleep 300 & exit 3"));
    let poll = json!({"session_id": id, "yield_time_ms": 1, "max_empty_poll_ms": 5_000});
    let told = execd.write(poll);
    assert!(note(&told).starts_with("shell exited (code 3); still running: "), "{told}");
    assert!(note(&told).ends_with("; yield_time_ms was 1, the least is 5000"), "{told}");
    let wait = json!({"session_ids": [id], "timeout_ms": 9e12, "until": {"text": "never"}});
    let request = execd.start_request("wait_for", wait);
    assert!(execd.cancel(request));
    let answer = execd.result_of(request);
    let said = "timeout_ms was 9000000000000, the most is 1800000";
    assert_eq!(answer["note"], said);
    let text = answer["text"].as_str().expect("a text");
    assert!(text.starts_with(&format!("wait: cancelled\nnote: {said}\n")), "{text}");
    let wait = json!({"session_ids": [id], "timeout_ms": 9_000, "max_empty_poll_ms": 6_000});
    let wait = merged(wait, json!({"until": {"text": "never"}}));
    let request = execd.start_request("wait_for", wait);
    assert!(execd.cancel(request));
    let answer = execd.result_of(request);
    assert_eq!(answer["note"], "timeout_ms was 9000, the most is 6000");
}

/// rule: protocol.md, kill_session: the signal that was asked for
#[test]
fn a_kill_tells_the_process_and_the_signal_that_was_asked_for() {
    let mut execd = Execd::start();
    let stubborn =
        execd.open_until("trap '' INT; echo ready; while :; do sleep 0.01; done", "ready");
    let pid = execd.listed(stubborn).expect("a row")["pid"].clone();
    let killed = execd.result("kill_session", json!({"session_id": stubborn, "signal": "INT"}));
    assert_eq!((&killed["pid"], &killed["asked_signal"]), (&pid, &json!("SIGINT")));
    assert_eq!((&killed["signal"], &killed["escalated"]), (&json!("SIGKILL"), &json!(true)));
    assert!(killed["log_path"].is_string(), "{killed}");
}

/// rule: protocol.md, set_on_exit: `wake_armed`
#[test]
fn an_armed_wake_is_told_and_stands_in_the_list() {
    let mut execd = Execd::start();
    let id = session_of(&execd.open("exec sleep 300"));
    let listed = |execd: &mut Execd| execd.peek()["text"].as_str().expect("a text").to_owned();
    for (word, armed) in [("wake", true), ("wake", true), ("none", false)] {
        let told = execd.result("set_on_exit", json!({"session_id": id, "on_exit": word}));
        assert_eq!(told["wake_armed"], armed, "{told}");
        assert_eq!(listed(&mut execd).contains("exec sleep 300 [wake]\n"), armed);
    }
}

/// rule: protocol.md, write_stdin: gives the session's terminal this size first
#[test]
fn a_write_sizes_the_terminal_first() {
    let mut execd = Execd::start();
    let cmd = "stty -echo; while read x; do stty size; done";
    let id = session_of(&execd.open_with(cmd, json!({"tty": true})));
    let write = |chars: &str, size: Value| json!({"session_id": id, "chars": chars, "resize": size, "until": {"text": "0 "}});
    let told = execd.write(write("\\n", json!({"cols": 99, "rows": 40})));
    assert!(output(&told).contains("40 99"), "{told}");
    // Alone it is no poll, and clamped as by resize_session.
    let told = execd.write(json!({"session_id": id, "resize": {"cols": 9e9, "rows": 1}}));
    assert_eq!(told["yield_time_ms"], 250, "{told}");
    let told = execd.write(json!({"session_id": id, "chars": "\\n", "until": {"text": "5 500"}}));
    assert_eq!(told["wait"]["outcome"], "matched", "{told}");
    execd.refused("write_stdin", json!({"session_id": id, "resize": {"cols": 9}}), "resize.rows");
    execd.refused("write_stdin", json!({"session_id": id, "resize": 9}), "resize");
    let pipe = session_of(&execd.open("exec sleep 300"));
    let size = json!({"session_id": pipe, "resize": {"cols": 99, "rows": 40}});
    execd.refused("write_stdin", size, "session_id");
    // One that has exited tells its exit, and that there was nothing to size.
    let open = json!({"tty": true});
    let ends = format!("{}; exit 3", until_file("go"));
    let ends = session_of(&execd.open_with(&ends, open));
    go(&execd, "go");
    execd.until_listed_exited(ends);
    let told = execd.write(json!({"session_id": ends, "resize": {"cols": 99, "rows": 40}}));
    assert_eq!(told["exit_code"], 3, "{told}");
    assert_eq!(told["failure_message"], "the session has exited: its terminal is gone");
}

/// rule: waits.md, Impossible: This holds for every wait, also without `until`
#[test]
fn a_program_that_reads_our_pipe_by_mistake_is_answered_with_what_to_do() {
    let mut execd = Execd::start();
    let mut programs = vec![("grep x", "grep"), ("cat", "cat"), ("sort | uniq", "sort")];
    if !missing("rg") {
        programs.push(("rg needle -", "rg"));
    }
    for (cmd, who) in programs {
        let result = execd.exec(json!({"cmd": cmd, "yield_time_ms": 30_000}));
        assert_eq!(result["wait"]["outcome"], "impossible", "{cmd}: {result}");
        assert_eq!(result["state"], "waiting_for_line", "{cmd}: {result}");
        let expected = format!(
            "{who} waits for a line on stdin; nothing else runs: write to it with write_stdin, or \
             run it again with stdin: \"null\""
        );
        assert_eq!(note(&result), expected);
        execd.kill(session_of(&result));
        let result = execd.exec(json!({"cmd": cmd, "yield_time_ms": 30_000, "stdin": "null"}));
        assert_eq!(result["wait_status"], "completed", "{cmd}: {result}");
    }
    let stream = json!({"command": "cat; echo done", "stdinMode": "null"});
    assert_eq!(execd.result("bash_stream", stream)["stdout"], "done\n");
}

/// rule: protocol.md, exec_command: a line before the command, which no text shows
/// rule: protocol.md, bash_stream: a line before the command, which no text shows
#[test]
fn a_line_before_the_command_is_run_and_not_shown() {
    let mut execd = Execd::start();
    let params = json!({"cmd": "echo $word", "command_prefix": "word=hi"});
    let result = execd.result("exec_command", params);
    assert_eq!((output(&result), &result["command"]), ("hi\n", &json!("echo $word")));
    let params = json!({
        "command": "echo $word ${BASH_VERSION:-none}", "commandPrefix": "word=hi", "shell": "sh",
    });
    let result = execd.result("bash_stream", params);
    let said = result["stdout"].as_str().expect("a text");
    assert!(said.starts_with("hi "), "{result}");
    let params = json!({"command": "true", "shell": "nosuchshell"});
    let error = execd.result("bash_stream", params)["error"].clone();
    assert!(error.as_str().expect("a text").starts_with("spawn nosuchshell: ENOENT"), "{error}");
}
