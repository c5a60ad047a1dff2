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
    for (ms, said) in [
        (999_999, "yield_time_ms was 999999, the most is 30000"),
        (-5, "yield_time_ms was -5, the least is 250"),
        (30_000, ""),
        (250, ""),
    ] {
        let result = execd.exec(json!({"cmd": "true", "yield_time_ms": ms}));
        assert_eq!(note(&result), said, "{ms}");
        let header = result["header"].as_str().expect("a header");
        assert_eq!(header.contains(&format!("\nnote: {said}\n")), !said.is_empty(), "{header}");
    }
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
    for (more, said) in [
        (json!({"timeout_ms": 9e12}), "timeout_ms was 9000000000000, the most is 1800000"),
        (
            json!({"timeout_ms": 9_000, "max_empty_poll_ms": 6_000}),
            "timeout_ms was 9000, the most is 6000",
        ),
    ] {
        let wait = merged(json!({"session_ids": [id], "until": {"text": "never"}}), more);
        let request = execd.start_request("wait_for", wait);
        assert!(execd.cancel(request));
        let answer = execd.result_of(request);
        assert_eq!(answer["note"], said);
        let text = answer["text"].as_str().expect("a text");
        assert!(text.starts_with(&format!("wait: cancelled\nnote: {said}\n")), "{text}");
    }
}

/// rule: protocol.md, write_stdin: gives the session's terminal this size first
#[test]
fn a_write_sizes_the_terminal_first() {
    let mut execd = Execd::start();
    let cmd = "stty -echo; while read x; do stty size; done";
    let id = session_of(&execd.open_with(cmd, json!({"tty": true})));
    let told = execd.write(json!({"session_id": id, "chars": "\\n",
        "resize": {"cols": 99, "rows": 40}, "until": {"text": "0 "}}));
    assert!(output(&told).contains("40 99"), "{told}");
    // Alone it is no poll, and clamped as by resize_session.
    let told = execd.write(json!({"session_id": id, "resize": {"cols": 9e9, "rows": 1}}));
    assert_eq!(told["yield_time_ms"], 250, "{told}");
    let told = execd.write(json!({"session_id": id, "chars": "\\n", "until": {"text": "5 500"}}));
    assert_eq!(told["wait"]["outcome"], "matched", "{told}");
    execd.refused("write_stdin", json!({"session_id": id, "resize": {"cols": 9}}), "resize.rows");
    let size = json!({"cols": 99, "rows": 40});
    let pipe = session_of(&execd.open("exec sleep 300"));
    execd.refused("write_stdin", json!({"session_id": pipe, "resize": size}), "session_id");
    // One that has exited tells its exit, and that there was nothing to size.
    let ends = format!("{}; exit 3", until_file("go"));
    let ends = session_of(&execd.open_with(&ends, json!({"tty": true})));
    go(&execd, "go");
    execd.until_listed_exited(ends);
    let told = execd.write(json!({"session_id": ends, "resize": size}));
    assert_eq!(told["exit_code"], 3, "{told}");
    assert_eq!(told["failure_message"], "the session has exited: its terminal is gone");
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
