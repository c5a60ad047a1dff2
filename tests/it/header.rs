//! `header: "compact"`: only lines that tell something, each as the full header has it.
//! That a compact header is a part of the full one of the
//! same reply is looked at in each reply of each test (common/rules.rs).

use crate::common::*;
use serde_json::{Value, json};

/// What a header of one that exits costs at most.
const EXITED_CHARS: usize = 40;

fn compact(mut params: Value) -> Value {
    params["header"] = json!("compact");
    params
}

/// The header of a reply, with words for what differs from run to run.
fn header(result: &Value) -> String {
    let line = |line: &str| match line.split_once(": ") {
        Some(("log_path", path)) => {
            assert_eq!(path, result["log_path"].as_str().expect("a log"));
            "log_path: LOG".to_owned()
        }
        Some(("tool_time_utc", _)) => "tool_time_utc: TIME".to_owned(),
        Some(("event", text)) => {
            format!("event: {}", text.rsplit_once(", ").map_or(text, |(event, _)| event))
        }
        Some(("note", text)) => format!("note: {}", text.replace(&pid_in(text), "PID")),
        _ => line.to_owned(),
    };
    let header = result["header"].as_str().expect("a header");
    header.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The number of a process that a note begins its list of holders with.
fn pid_in(note: &str) -> String {
    let rest = note.split_once("still running: ").map_or("", |(_, rest)| rest);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    if digits.is_empty() { "no pid".to_owned() } else { digits }
}

fn run(execd: &mut Execd, params: Value) -> String {
    header(&execd.exec(compact(params)))
}

/// rule: unified-exec.md, Header and footer: With `"header": "compact"` only those lines are there
///   that tell something
#[test]
fn what_has_ended_says_how_and_what_else_is_worth_a_line() {
    let seq = "seq 3000";
    let table = [
        (json!({"cmd": "true"}), "[exited]\nexit_code: 0"),
        (json!({"cmd": "echo hi"}), "[exited]\nexit_code: 0"),
        (json!({"cmd": "exit 3"}), "[exited]\nexit_code: 3\nlog_path: LOG"),
        (json!({"cmd": "kill -SEGV $$"}), "[exited]\nsignal: SIGSEGV\nlog_path: LOG"),
        (json!({"cmd": "true", "workdir": "/"}), "[exited]\nexit_code: 0\ncwd: /"),
        (json!({"cmd": "true", "workdir": "."}), "[exited]\nexit_code: 0"),
        (json!({"cmd": "true", "tty": true}), "[exited]\nexit_code: 0\ntty: true"),
        (json!({"cmd": seq}), "[exited]\nexit_code: 0\nlog_path: LOG"),
        (
            json!({"cmd": "true", "shell": "nosuchshell"}),
            "[exited]\nexit_code: -1\nfailure: spawn nosuchshell: ENOENT: No such file or directory",
        ),
        (
            json!({"cmd": "true", "on_exit": "wake"}),
            "[exited]\nexit_code: 0\ncompletion_delivery: direct",
        ),
    ];
    let mut execd = Execd::start();
    for (params, expected) in table {
        assert_eq!(run(&mut execd, params.clone()), expected, "{params}");
    }
    assert!(run(&mut execd, json!({"cmd": "true"})).chars().count() <= EXITED_CHARS);
    let mut execd = Execd::with(&["--no-log"], &[]);
    assert_eq!(run(&mut execd, json!({"cmd": "exit 3"})), "[exited]\nexit_code: 3");
}

/// rule: unified-exec.md, Header and footer: the host's clock wherever something still runs
#[test]
fn what_still_runs_says_so_and_the_clock_is_there() {
    let mut execd = Execd::start();
    let sleep = |more: Value| {
        let mut params = json!({"cmd": "exec sleep 300", "yield_time_ms": 250});
        for (name, value) in more.as_object().expect("an object") {
            params[name] = value.clone();
        }
        params
    };
    let table = [
        (sleep(json!({})), "[still running]\nsession_id: 1\nlog_path: LOG\ntool_time_utc: TIME"),
        (
            sleep(json!({"on_exit": "wake", "tty": true, "workdir": "/"})),
            "[still running]\nsession_id: 2\nlog_path: LOG\ncwd: /\n\
             completion_notification: armed\ntool_time_utc: TIME\ntty: true",
        ),
        (
            sleep(json!({"cmd": "cat", "yield_time_ms": 30_000})),
            "[still running]\nsession_id: 3\nnote: cat waits for a line on stdin; nothing else runs: \
             write to it with write_stdin, or run it again with stdin: \"null\"\n\
             wait: impossible\nlog_path: LOG\ntool_time_utc: TIME",
        ),
        (
            sleep(json!({"cmd": "sleep 300 & echo left", "yield_time_ms": 30_000})),
            "[still running]\nsession_id: 4\nnote: shell exited (code 0); still running: PID sleep — \
             redirect its output to detach it, or kill_session\nstate: shell exited, output \
             held\nlog_path: LOG\ntool_time_utc: TIME",
        ),
        (
            sleep(json!({
                "cmd": "echo ok; exec sleep 300", "until": {"text": "ok"}, "yield_time_ms": 60_000,
            })),
            "[still running]\nsession_id: 5\nwait: matched \"ok\" → ok\nlog_path: LOG\n\
             tool_time_utc: TIME",
        ),
        // Others run: the clock is there, and what they do is no affair of this answer.
        (json!({"cmd": "true"}), "[exited]\nexit_code: 0\ntool_time_utc: TIME"),
        (
            json!({"cmd": "true", "shell": "nosuchshell"}),
            "[exited]\nexit_code: -1\nfailure: spawn nosuchshell: ENOENT: No such file or \
             directory\ntool_time_utc: TIME",
        ),
    ];
    for (params, expected) in table {
        assert_eq!(run(&mut execd, params.clone()), expected, "{params}");
    }
}

/// rule: unified-exec.md, Header and footer: With `"header": "compact"` only those lines are there
///   that tell something
#[test]
fn polls_and_writes_have_the_same_headers() {
    let mut execd = Execd::start();
    let open = |execd: &mut Execd, cmd: &str| session_of(&execd.open(cmd));
    let quiet = open(&mut execd, "exec sleep 300");
    let past = json!({"session_id": quiet, "yield_until": "2001-01-01T00:00:00Z"});
    assert_eq!(
        header(&execd.write(compact(past))),
        "[still running]\nsession_id: 1\nnote: yield_until is in the past: this poll did not wait\n\
         log_path: LOG\ntool_time_utc: TIME"
    );
    let poll = json!({"session_id": quiet, "yield_time_ms": 60_000});
    let request = execd.start_request("write_stdin", compact(poll));
    let reason = json!({"id": request, "reason": "the user pressed Esc", "take": true});
    execd.result("cancel", reason);
    assert_eq!(
        header(&execd.result_of(request)),
        "[still running]\nsession_id: 1\nwait_status: cancelled (the user pressed Esc)\n\
         log_path: LOG\ntool_time_utc: TIME"
    );
    execd.kill(quiet);
    let closed = open(&mut execd, "exec <&-; touch shut; exec sleep 300");
    until_exists(&execd.file("shut"));
    let write = json!({"session_id": closed, "chars": "x"});
    assert_eq!(
        header(&execd.write(compact(write))),
        "[still running]\nsession_id: 2\nfailure: stdin write failed: the child closed its stdin; \
         bytes were not delivered\nlog_path: LOG\ntool_time_utc: TIME"
    );
    execd.kill(closed);
    let ends = open(&mut execd, &format!("{}; exit 4", until_file("go")));
    let poll = json!({"session_id": ends, "yield_time_ms": 60_000, "events": true});
    let request = execd.start_request("write_stdin", compact(poll));
    let cmd = format!("{}; exit 5", until_file("other"));
    let other = open(&mut execd, &cmd);
    crate::common::go(&execd, "other");
    execd.notification("session_exited", |exit| exit["session_id"] == other);
    go(&execd, "go");
    let ended = execd.result_of(request);
    assert_eq!(
        header(&ended),
        format!("[exited]\nexit_code: 4\nlog_path: LOG\nevent: session {other} ({cmd}) exited 5")
    );
}

/// rule: protocol.md, list_sessions: With `"header": "compact"` the text names no log of one that
///   has ended well
#[test]
fn texts_of_lists_and_of_wait_for_leave_out_logs_that_nobody_needs() {
    let mut execd = Execd::start();
    let text = |result: &Value| result["text"].as_str().expect("a text").to_owned();
    let well = session_of(&execd.open(&until_file("go")));
    let badly = session_of(&execd.open(&format!("{}; exit 1", until_file("go"))));
    go(&execd, "go");
    execd.until_listed_exited(well);
    execd.until_listed_exited(badly);
    let list = text(&execd.result("list_sessions", compact(json!({"peek": true}))));
    assert_eq!(list.matches("    log: ").count(), 1, "{list}");
    let full = text(&execd.result("list_sessions", json!({"peek": true})));
    assert_eq!(full.matches("    log: ").count(), 2, "{full}");
    let wait = json!({"session_ids": [well, badly], "mode": "all", "take": false});
    let waited = text(&execd.result("wait_for", compact(wait.clone())));
    assert_eq!(waited.matches("\nlog_path: ").count(), 1, "{waited}");
    assert_eq!(text(&execd.result("wait_for", wait)).matches("\nlog_path: ").count(), 2);
    for method in ["set_on_exit", "kill_session"] {
        let params = json!({"session_id": well, "on_exit": "none"});
        let mut params = compact(params);
        if method == "kill_session" {
            params.as_object_mut().expect("an object").remove("on_exit");
        }
        assert_eq!(execd.result(method, params)["found"], true);
    }
}
