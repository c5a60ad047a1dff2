//! The command line for people: `execd run`, `execd call`, and their exit statuses
//! (protocol.md, From a shell).

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::common::{AT_ONCE, eventually, now};
use serde_json::Value;
use tempfile::TempDir;

/// execd with a temporary directory of its own.
fn execd(dir: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_execd"));
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

/// Whether a process runs whose command line is exactly these words.
fn runs(words: &[&str]) -> bool {
    let wanted: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
    fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .any(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == wanted))
}

/// rule: protocol.md, Framing: stderr is for people: log lines only, never protocol
/// rule: protocol.md, From a shell: `execd run` gives stdout to stdout and stderr to stderr as they
///   come, byte for byte
#[test]
fn run_passes_output_and_exit_status_on_and_names_the_log() {
    let output = run(&["run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(text(&output.stdout), "out\n");
    assert!(text(&output.stderr).starts_with("err\nexecd: log: "), "{}", text(&output.stderr));
}

#[test]
fn run_says_why_a_command_cannot_start() {
    let output = run(&["run", "--", "nosuchprogram", "x"]);
    assert_eq!(output.status.code(), Some(127));
    let message = text(&output.stderr);
    assert_eq!(message, "execd: spawn nosuchprogram: ENOENT: No such file or directory\n");
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
        (&["--socket="], 125, path("--socket")),
        (&["--log-dir", ""], 125, path("--log-dir")),
        (&["ls", "--socket", ""], 125, path("--socket")),
        (&["attach", "--socket", "", "@1"], 125, path("--socket")),
        (&["call", "--socket", "", "ping"], 125, path("--socket")),
        (&["call", "--log-dir", "", "ping"], 125, path("--log-dir")),
        (&["log", "--log-dir", "", "x"], 125, path("--log-dir")),
        (&["logs", "--log-dir", ""], 125, path("--log-dir")),
        (&["logs", "clean", "--log-dir", ""], 125, path("--log-dir")),
        (&["run", "--log", "", "true"], 125, path("--log")),
        (&["agent", "--model", "a/b", "--log", "", "x"], 125, path("--log")),
        (&["run", "--shell", "", "-c", "true"], 125, shell.to_owned()),
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

#[test]
fn run_passes_stdin_on() {
    let dir = TempDir::new().expect("a directory");
    let mut child =
        execd(&dir, &["run", "--", "cat"]).stdin(Stdio::piped()).spawn().expect("execd runs");
    child.stdin.take().expect("stdin").write_all(b"passed on").expect("written");
    assert_eq!(text(&child.wait_with_output().expect("ends").stdout), "passed on");
}

/// rule: protocol.md, From a shell: `execd run` gives stdout to stdout and stderr to stderr as they
///   come, byte for byte
#[test]
fn run_passes_every_byte_on_to_a_slow_reader() {
    let dir = TempDir::new().expect("a directory");
    let cmd = "head -c 5000000 /dev/zero; printf end";
    let mut child = execd(&dir, &["run", "-c", cmd]).spawn().expect("execd runs");
    let mut out = child.stdout.take().expect("stdout");
    let mut first = [0; 1];
    out.read_exact(&mut first).expect("a byte");
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).expect("the rest");
    assert_eq!(rest.len(), 5_000_000 + 3 - 1);
    assert!(rest.ends_with(b"end"));
    assert_eq!(child.wait().expect("ends").code(), Some(0));
}

/// rule: protocol.md, From a shell: `execd run --timeout TIME` ends the command and its jobs
#[test]
fn run_ends_the_command_and_its_jobs_after_the_timeout() {
    let started = now();
    let output = run(&["run", "--timeout", "1", "-c", "sleep 4711 & sleep 4711"]);
    assert_eq!(output.status.code(), Some(124));
    assert!(text(&output.stderr).contains("--timeout"), "{}", text(&output.stderr));
    assert!(started.elapsed() < AT_ONCE);
    eventually("the jobs are gone", || !runs(&["sleep", "4711"]));
}

/// rule: protocol.md, From a shell: Ctrl-C ends the whole tree of `execd run`
#[test]
fn an_interrupt_ends_the_whole_tree_of_run() {
    let dir = TempDir::new().expect("a directory");
    let child =
        execd(&dir, &["run", "-c", "sleep 4712 & echo up; wait"]).spawn().expect("execd runs");
    eventually("the job runs", || runs(&["sleep", "4712"]));
    let pid = i32::try_from(child.id()).expect("a pid");
    // SAFETY: signals a child of ours.
    unsafe { libc::kill(pid, libc::SIGINT) };
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130));
    eventually("the job is gone", || !runs(&["sleep", "4712"]));
}

#[test]
fn a_reader_that_goes_ends_run_and_its_command() {
    let dir = TempDir::new().expect("a directory");
    let mut child = execd(&dir, &["run", "yes", "4713"]).spawn().expect("execd runs");
    let mut out = child.stdout.take().expect("stdout");
    out.read_exact(&mut [0; 10]).expect("some output");
    drop(out);
    assert_eq!(child.wait().expect("ends").code(), Some(141));
    eventually("the command is gone", || !runs(&["yes", "4713"]));
}

/// rule: protocol.md, From a shell: `-t` runs it on a terminal
#[test]
fn run_feeds_the_terminal_from_stdin_to_its_end() {
    let dir = TempDir::new().expect("a directory");
    let mut command =
        execd(&dir, &["run", "--tty", "-c", "stty -echo; echo ready; cat; echo done"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("execd runs");
    let mut input = child.stdin.take().expect("stdin");
    let mut out = child.stdout.take().expect("stdout");
    let mut ready = [0; 7];
    out.read_exact(&mut ready).expect("ready");
    input.write_all(b"typed\n").expect("written");
    drop(input);
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("the rest");
    assert_eq!(rest, "typed\r\ndone\r\n");
    assert_eq!(child.wait().expect("ends").code(), Some(0));
}

/// rule: protocol.md, From a shell: `execd run --json` prints one object at the end, whatever
///   happened
#[test]
fn run_gives_one_json_object_when_asked() {
    let output = run(&["run", "--json", "-c", "echo hi; exit 3"]);
    assert_eq!(output.status.code(), Some(3));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["output"], &report["exit_code"]), (&"hi\n".into(), &3.into()));
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

#[test]
fn many_runs_side_by_side_do_not_disturb_each_other() {
    let dir = TempDir::new().expect("a directory");
    let runs: Vec<_> = (0..8)
        .map(|at| {
            let mut command = execd(&dir, &["run", "-c", &format!("echo {at}; exit {at}")]);
            thread::spawn(move || command.output().expect("execd runs"))
        })
        .collect();
    for (at, run) in runs.into_iter().enumerate() {
        let output = run.join().expect("joined");
        assert_eq!(text(&output.stdout), format!("{at}\n"));
        assert_eq!(output.status.code(), i32::try_from(at).ok());
    }
}
