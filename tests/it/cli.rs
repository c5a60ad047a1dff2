//! The command line for people: `execd run`, `execd call`, and their exit statuses
//! (protocol.md, From a shell).

use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn execd(dir: &TempDir, arguments: &[&str]) -> Command {
    let mut command = crate::common::execd_command();
    command.args(arguments).env("TMPDIR", dir.path()).current_dir(dir.path());
    command.env("XDG_RUNTIME_DIR", dir.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str]) -> Output {
    let dir = TempDir::new().expect("a directory");
    execd(&dir, arguments).output().expect("execd runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An empty value was refused by what the kernel says of it: `the socket : EADDRINUSE`,
/// `: ENAMETOOLONG: File name too long`, `spawn : ENOENT`.
#[test]
fn an_empty_value_is_refused_by_its_flag() {
    let path = |flag: &str| format!("{flag} must be a path, not \"\" (try execd");
    let shell = "--shell must be a shell, by its name or path, not \"\" (try execd";
    let program = "spawn \"\": ENOENT: the name of a program must not be empty";
    for (words, status, refusal) in [
        (&["--socket", ""][..], 125, path("--socket")),
        (&["ls", "--socket="], 125, path("--socket")),
        (&["call", "--log-dir", "", "ping"], 125, path("--log-dir")),
        (&["logs", "clean", "--log-dir", ""], 125, path("--log-dir")),
        (&["run", "--log", "", "true"], 125, path("--log")),
        (&["agent", "--model", "a/b", "--log", "", "x"], 125, path("--log")),
        (&["run", "--shell=", "true"], 125, shell.to_owned()),
        // As env(1) and timeout(1) have it, what is not found is 127.
        (&["run", ""], 127, program.to_owned()),
        (&["run", "--", "", "x"], 127, program.to_owned()),
    ] {
        let output = run(words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert!(said.starts_with("execd") && said.contains(&refusal), "{words:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{words:?}: {said}");
    }
}

/// rule: protocol.md, From a shell: `execd call` prints the bare result, exit status 0, or the
///   error, exit status 1
#[test]
fn call_prints_the_bare_result_or_error() {
    let output = run(&["call", "ping"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "{}\n"));
    let output = run(&["call", "kill_session", r#"{"session_id":1,"signal":"FOO"}"#]);
    assert_eq!(output.status.code(), Some(1));
    let error: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(error["data"]["param"], "signal");
    let bad = run(&["call", "ping", "{"]);
    assert_eq!(bad.status.code(), Some(125));
    assert!(text(&bad.stderr).contains("PARAMS must be a JSON object"), "{}", text(&bad.stderr));
    // Its flags are those of the execd that it starts.
    let output = run(&["call", "--max-sessions", "3", "server_info"]);
    let info: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(info["limits"]["max_sessions"], 3);
}

/// rule: cli.md, NDJSON for scripts: `execd call METHOD -` reads params from stdin
#[test]
fn call_reads_its_params_from_stdin() {
    let dir = TempDir::new().expect("a directory");
    let called = |input: &[u8]| {
        let mut command = execd(&dir, &["call", "exec_command", "-"]);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        child.stdin.take().expect("a pipe").write_all(input).expect("it reads");
        child.wait_with_output().expect("it ends")
    };
    let done = called(b"{\"cmd\":\n\"echo it\\\\'s\"}\n");
    let result: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!((done.status.code(), &result["output"]), (Some(0), &Value::from("it's\n")));
    assert_eq!(called(b"{\"cmd\":").status.code(), Some(125));
    assert_eq!(called(b"\xff").status.code(), Some(125));
}

/// rule: protocol.md, From a shell: `execd call exec_command` polls a command that is still running
///   to its end
/// rule: protocol.md, From a shell: One that ended by `until` or `stop`, or because nothing but
///   input could end it, is not polled
#[test]
fn call_polls_a_running_command_to_its_end_or_until_what_was_waited_for_has_come() {
    let called = |params: &str| -> Value {
        let output = run(&["call", "exec_command", params]);
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let result = called(r#"{"cmd":"echo one; sleep 0.6; echo two","yield_time_ms":250}"#);
    assert_eq!((&result["output"], &result["exit_code"]), (&"one\ntwo\n".into(), &0.into()));
    let result = called(r#"{"cmd":"echo ready; sleep 600","until":{"text":"ready"}}"#);
    assert_eq!(result["wait"]["outcome"], "matched", "{result}");
    assert_eq!((&result["output"], &result["session_id"]), (&"ready\n".into(), &1.into()));
}
