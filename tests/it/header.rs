//! `header: "compact"`: only lines that tell something, each as the full header has it.
//! That a compact header is a part of the full one of the
//! same reply is looked at in each reply of each test (common/rules.rs).

use crate::common::*;
use serde_json::{Value, json};

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
        Some(("note", text)) => {
            let rest = text.split_once("still running: ").map_or("", |(_, rest)| rest);
            let pid = rest.split(' ').next().filter(|pid| !pid.is_empty()).unwrap_or("no pid");
            format!("note: {}", text.replace(pid, "PID"))
        }
        _ => line.to_owned(),
    };
    let header = result["header"].as_str().expect("a header");
    header.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn compact(params: Value) -> Value {
    merged(params, json!({"header": "compact"}))
}

fn run(execd: &mut Execd, params: Value) -> String {
    header(&execd.exec(compact(params)))
}

/// rule: unified-exec.md, Header and footer: With `"header": "compact"` only those lines are there
///   that tell something
#[test]
fn what_has_ended_says_how_and_what_else_is_worth_a_line() {
    let mut execd = Execd::start();
    for (params, expected) in [
        (json!({"cmd": "echo hi"}), "exit_code: 0"),
        (json!({"cmd": "exit 3"}), "exit_code: 3\nlog_path: LOG"),
        (json!({"cmd": "kill -SEGV $$"}), "signal: SIGSEGV\nlog_path: LOG"),
        (json!({"cmd": "true", "workdir": "/"}), "exit_code: 0\ncwd: /"),
        (json!({"cmd": "true", "workdir": "."}), "exit_code: 0"),
        (json!({"cmd": "true", "tty": true}), "exit_code: 0\ntty: true"),
        (json!({"cmd": "seq 3000"}), "exit_code: 0\nlog_path: LOG"),
        (
            json!({"cmd": "true", "shell": "nosuchshell"}),
            "exit_code: -1\nfailure: spawn nosuchshell: ENOENT: No such file or directory",
        ),
        (json!({"cmd": "true", "on_exit": "wake"}), "exit_code: 0\ncompletion_delivery: direct"),
    ] {
        assert_eq!(run(&mut execd, params.clone()), format!("[exited]\n{expected}"), "{params}");
    }
    let mut execd = Execd::with(&["--no-log"], &[]);
    assert_eq!(run(&mut execd, json!({"cmd": "exit 3"})), "[exited]\nexit_code: 3");
}

/// rule: unified-exec.md, Header and footer: the host's clock wherever something still runs
#[test]
fn what_still_runs_says_so_and_the_clock_is_there() {
    let mut execd = Execd::start();
    let end = "log_path: LOG\ntool_time_utc: TIME";
    let at_stdin = "cat waits for a line on stdin; nothing else runs: write to it with \
                    write_stdin, or run it again with stdin: \"null\"\nwait: impossible";
    let holds = "shell exited (code 0); still running: PID sleep — redirect its output to detach \
                 it, or kill_session\nstate: shell exited, output held";
    let armed = "log_path: LOG\ncwd: /\ncompletion_notification: armed\ntool_time_utc: TIME";
    let waits =
        json!({"cmd": "echo ok; exec sleep 300", "until": {"text": "ok"}, "yield_time_ms": 60_000});
    for (id, (params, expected)) in (1..).zip([
        (json!({}), end.to_owned()),
        (json!({"on_exit": "wake", "tty": true, "workdir": "/"}), format!("{armed}\ntty: true")),
        (json!({"cmd": "cat", "yield_time_ms": 30_000}), format!("note: {at_stdin}\n{end}")),
        (
            json!({"cmd": "sleep 300 & echo left", "yield_time_ms": 30_000}),
            format!("note: {holds}\n{end}"),
        ),
        (waits, format!("wait: matched \"ok\" → ok\n{end}")),
    ]) {
        let params = merged(json!({"cmd": "exec sleep 300", "yield_time_ms": 250}), params);
        let expected = format!("[still running]\nsession_id: {id}\n{expected}");
        assert_eq!(run(&mut execd, params.clone()), expected, "{params}");
    }
    // Others run: the clock is there, and what they do is no affair of this answer.
    let ended = run(&mut execd, json!({"cmd": "true"}));
    assert_eq!(ended, "[exited]\nexit_code: 0\ntool_time_utc: TIME");
}

/// rule: unified-exec.md, Header and footer: With `"header": "compact"` only those lines are there
///   that tell something
#[test]
fn polls_and_writes_have_the_same_headers() {
    let mut execd = Execd::start();
    let running = |id: u64, line: &str| {
        format!("[still running]\nsession_id: {id}\n{line}\nlog_path: LOG\ntool_time_utc: TIME")
    };
    let quiet = session_of(&execd.open("exec sleep 300"));
    let poll = json!({"session_id": quiet, "yield_time_ms": 60_000});
    let request = execd.start_request("write_stdin", compact(poll));
    let reason = json!({"id": request, "reason": "the user pressed Esc", "take": true});
    execd.result("cancel", reason);
    let wanted = running(quiet, "wait_status: cancelled (the user pressed Esc)");
    assert_eq!(header(&execd.result_of(request)), wanted);
    execd.kill(quiet);
    let closed = execd.open_making("exec <&-; touch shut; exec sleep 300", Some("shut"));
    let write = execd.write(compact(json!({"session_id": closed, "chars": "x"})));
    let failure = "stdin write failed: the child closed its stdin; bytes were not delivered";
    assert_eq!(header(&write), running(closed, &format!("failure: {failure}")));
    execd.kill(closed);
    let ends = session_of(&execd.open(&format!("{}; exit 4", until_file("go"))));
    let poll = json!({"session_id": ends, "yield_time_ms": 60_000, "events": true});
    let request = execd.start_request("write_stdin", compact(poll));
    let cmd = format!("{}; exit 5", until_file("other"));
    let other = session_of(&execd.open(&cmd));
    go(&execd, "other");
    execd.notification("session_exited", |exit| exit["session_id"] == other);
    go(&execd, "go");
    let wanted =
        format!("[exited]\nexit_code: 4\nlog_path: LOG\nevent: session {other} ({cmd}) exited 5");
    assert_eq!(header(&execd.result_of(request)), wanted);
}

/// rule: protocol.md, list_sessions: With `"header": "compact"` the text names no log of one that
///   has ended well
#[test]
fn texts_of_lists_and_of_wait_for_leave_out_logs_that_nobody_needs() {
    let mut execd = Execd::start();
    let well = session_of(&execd.open(&until_file("go")));
    let badly = session_of(&execd.open(&format!("{}; exit 1", until_file("go"))));
    go(&execd, "go");
    execd.until_listed_exited(well);
    execd.until_listed_exited(badly);
    let list = json!({"peek": true});
    let wait = json!({"session_ids": [well, badly], "mode": "all", "take": false});
    for (method, params, line) in
        [("list_sessions", list, "    log: "), ("wait_for", wait, "\nlog_path: ")]
    {
        for (params, logs) in [(compact(params.clone()), 1), (params, 2)] {
            let result = execd.result(method, params);
            let text = result["text"].as_str().expect("a text");
            assert_eq!(text.matches(line).count(), logs, "{text}");
        }
    }
    for (method, params) in [
        ("set_on_exit", json!({"session_id": well, "on_exit": "none"})),
        ("kill_session", json!({"session_id": well})),
    ] {
        assert_eq!(execd.result(method, compact(params))["found"], true);
    }
}
