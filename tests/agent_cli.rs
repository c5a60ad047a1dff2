//! `execd agent` for people and scripts (agent.md): text on stdout, the rest on stderr,
//! NDJSON with --json, exit statuses.
#![allow(clippy::disallowed_methods, clippy::print_stderr)] // Tests may use all of std.

mod agent_help;
mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use agent_help::*;
use common::{AT_ONCE, eventually, is_alive, now, outside, send_signal};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A directory with a pi of our own.
struct Place(TempDir);

impl Place {
    fn new(lines: &[Value], then: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("execd-test-").tempdir().expect("a directory");
        std::fs::write(dir.path().join("lines"), ndjson(lines)).expect("a stream");
        let note = "printf '%s\\0' \"$@\" > argv; echo $$ > pid; cat lines";
        write_pi(&dir.path().join("pi"), &format!("{note}; {then}"));
        Self(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_execd"));
        command.args(["agent", "--model", "fake/scripted"]).args(words);
        command.current_dir(self.path()).env("TMPDIR", self.path());
        command.env("XDG_RUNTIME_DIR", self.path()).env("EXECD_PI", self.path().join("pi"));
        command.env_remove("EXECD_SESSION_ID").env_remove("EXECD_INSTANCE");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn spawn(&self, words: &[&str]) -> Child {
        self.command(words).spawn().expect("execd starts")
    }

    /// What execd says to these words: its status and its two streams.
    fn said(&self, words: &[&str]) -> (i32, String, String) {
        told(self.command(words).output().expect("it runs"))
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// pi's process, once it runs.
    fn pi(&self) -> i32 {
        eventually("pi runs", || self.read("pid").ends_with('\n'));
        self.read("pid").trim().parse().expect("a pid")
    }
}

/// The execd that `execd agent` has started: its only child.
fn execd_of(agent: &Child) -> i32 {
    let children = outside::children(i32::try_from(agent.id()).expect("a pid"));
    let [(execd, _)] = children[..] else { panic!("one child: {children:?}") };
    execd
}

fn told(output: Output) -> (i32, String, String) {
    let Output { status, stdout, stderr } = output;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (status.code().expect("no signal"), text(stdout), text(stderr))
}

/// An answer with a tool before it.
fn with_a_tool() -> Vec<Value> {
    let all = answer("Done.");
    let tool =
        [tool_start("t", "bash", json!({"command": "ls\n-l"})), tool_end("t", "bash", "out")];
    [&all[..3], &tool, &all[3..]].concat()
}

/// rule: agent.md, execd agent: Text on stdout, a line for each tool call and a summary on stderr
#[test]
fn the_text_is_stdout_and_the_rest_is_for_people() {
    let place = Place::new(&with_a_tool(), "");
    let (status, out, err) = place.said(&["Say it"]);
    assert_eq!((status, out.as_str()), (0, "Done.\n"), "{err}");
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines[0], r#"bash {"command":"ls\n-l"}"#, "{err}");
    let summary = "execd: stop: 1 turn, 1 tool call, 110 tokens (100 in, 10 out), $0.2500, ";
    assert!(lines[1].starts_with(summary) && lines[1].ends_with(" s"), "{err}");
    assert_eq!(lines.len(), 2, "{err}");
}

/// rule: agent.md, execd agent: `--json`: the events and the result as NDJSON
#[test]
fn json_prints_the_events_and_the_result() {
    let place = Place::new(&with_a_tool(), "");
    let (status, out, err) = place.said(&["--json", "Say it"]);
    assert_eq!((status, err.as_str()), (0, ""));
    let lines: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let names: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(names, ["turn_start", "tool_use", "tool_result", "text", "turn_end", "result"]);
    assert_eq!(lines[3], json!({"event": "text", "delta": "Done."}));
    let result = lines.last().expect("a result");
    assert_eq!((&result["success"], &result["output"]), (&json!(true), &json!("Done.")));
}

/// So many tool calls that neither a pipe nor what is held back for it takes a line of each, and
/// then the word that all of them are told.
fn many_tools() -> Vec<Value> {
    let tool = |n: usize| tool_start(&n.to_string(), "bash", json!({"command": "x".repeat(120)}));
    let all = answer("Done.");
    [&all[..6], &(0..2_000).map(tool).collect::<Vec<Value>>(), &answer("All told.")[3..]].concat()
}

/// Nobody read stderr: the loop stood in its write, and with it the timeouts and pi.
/// rule: agent.md, execd agent: stderr that nobody reads holds up nothing; what there was no room
///   for is counted
#[test]
fn stderr_that_nobody_reads_holds_up_nothing() {
    let place = Place::new(&many_tools()[..2_006], "touch all; sleep 1000");
    let mut execd = place.spawn(&["--timeout", "1s", "Say it"]);
    eventually("all that pi says is taken", || place.path().join("all").exists());
    let mut status = None;
    eventually("the timeout ends it", || {
        status = execd.try_wait().expect("a child");
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(124));

    // Who reads it later is told how much there was no room for, and the end.
    let place = Place::new(&many_tools(), "until [ -e go ]; do sleep 0.02; done");
    let mut execd = place.spawn(&["Say it"]);
    let mut stdout = execd.stdout.take().expect("a pipe");
    let mut text = [0; "Done.\n\nAll told.".len()];
    stdout.read_exact(&mut text).expect("the text");
    assert_eq!(text, *b"Done.\n\nAll told.", "all that pi says is taken");
    std::fs::write(place.path().join("go"), "").expect("a file");
    let (status, _, err) = told(execd.wait_with_output().expect("its end"));
    assert_eq!(status, 0, "{err}");
    let lines: Vec<&str> = err.lines().collect();
    let shown = lines.iter().filter(|line| line.starts_with("bash {")).count();
    // Told wherever there is room again.
    let said = " lines are left out here: stderr was not read]";
    let counts = lines.iter().filter_map(|line| line.strip_prefix('[')?.strip_suffix(said));
    let left_out: usize = counts.map(|count| count.parse::<usize>().expect("a number")).sum();
    assert!(left_out > 0 && shown + left_out == 2_000, "{shown} are shown, {left_out} left out");
    assert!(lines.last().is_some_and(|line| line.starts_with("execd: stop: ")), "{err}");
}

/// rule: agent.md, Invocation: `pi --mode json --model M --no-session -p … PROMPT`, argv exactly
/// rule: agent.md, execd agent: Its flags; `-` is stdin
#[test]
fn flags_become_params() {
    let place = Place::new(&answer("Done."), "");
    let words = [
        "--tools",
        "read, bash",
        "--thinking",
        "low",
        "--session",
        "abc",
        "--system-prompt",
        "Be brief.",
        "--timeout",
        "5m",
        "--max-cost",
        "0.50",
        "--max-tokens",
        "1000",
        "--idle-timeout",
        "20s",
        "--first-event-timeout",
        "9000ms",
        "-e",
        "/a",
        "--extension",
        "/b",
        "--no-log",
        "-- not a flag",
    ];
    // A word that begins with a dash is a prompt only behind --.
    let words = [&words[..words.len() - 1], &["--", "--not a flag"]].concat();
    let (status, _, err) = place.said(&words);
    assert_eq!(status, 0, "{err}");
    let argv = "--mode json --model fake/scripted --session abc -p --tools read,bash --thinking \
                low -e /a -e /b Be brief.\n\n--not a flag";
    assert_eq!(place.read("argv").trim_end_matches('\0').replace('\0', " "), argv);
    let (status, ..) = place.said(&["--no-tools", "--append-system-prompt", "X", "Go"]);
    assert_eq!(status, 0);
    let argv = place.read("argv").replace('\0', " ");
    assert!(argv.ends_with("-p --no-tools --append-system-prompt X Go "), "{argv}");
}

/// rule: agent.md, Invocation: Prompts over 100 KiB go through a temporary `@file`, 0600, removed:
///   one in memory
/// rule: agent.md, execd agent: Its flags; `-` is stdin
#[test]
fn a_prompt_may_come_from_stdin() {
    let place = Place::new(&answer("Done."), "");
    let mut child = place.command(&["-"]).stdin(Stdio::piped()).spawn().expect("execd starts");
    let text = "Line one\n".repeat(30_000);
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("execd reads");
    let (status, out, _) = told(child.wait_with_output().expect("its end"));
    assert_eq!((status, out.as_str()), (0, "Done.\n"));
    assert!(place.read("argv").contains("\0@/"), "270 KB go through a file");
    let (status, _, err) = place.said(&["-"]);
    assert_eq!((status, err.as_str()), (2, "execd: the prompt on stdin is empty\n"));
}

/// rule: agent.md, execd agent: Its flags; `-` is stdin
#[test]
fn what_makes_no_sense_is_said_in_a_line() {
    let place = Place::new(&answer("Done."), "");
    for (words, message) in [
        (vec![], "agent needs a prompt: execd agent --model p/m 'Do it' (- is stdin)"),
        (vec!["a", "b"], "agent takes one prompt: quote it, or - for stdin"),
        (vec!["--timeout", "soon", "x"], "--timeout must be a time (600s, 10m), not \"soon\""),
        (vec!["--max-cost", "x", "x"], "--max-cost must be a number of dollars, not \"x\""),
        (vec!["--max-cost", "-1", "x"], "max_cost_usd must be 0 or more"),
        (vec!["--model", "gpt", "x"], "model must be provider/id, anthropic/claude-haiku-4-5 say"),
        (vec!["--budget", "1", "x"], "unknown flag --budget"),
    ] {
        let (status, out, err) = place.said(&words);
        let expected = format!("execd: {message} (try execd --help)\n");
        assert_eq!((status, out.as_str(), err), (2, "", expected), "{words:?}");
    }
    assert_eq!(place.read("argv"), "", "pi was never started");
}

/// rule: agent.md, execd agent: Exit 0, 1, 124
#[test]
fn exit_statuses_tell_how_it_ended() {
    // 1: a failure, with what pi said.
    let place = Place::new(&[], "echo 'No API key' >&2; exit 1");
    let (status, out, err) = place.said(&["x"]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(err.contains("No API key") && err.contains("execd: log: "), "{err}");
    // 1: over its budget.
    let place = Place::new(&answer("Done.")[..7], "sleep 1000");
    let (status, out, err) = place.said(&["--max-cost", "0.1", "x"]);
    assert_eq!((status, out.as_str()), (1, "Done.\n"), "{err}");
    assert!(err.contains("execd: cost_exhausted: 1 turn"), "{err}");
    // 124: too slow.
    let place = Place::new(&begun(), "sleep 1000");
    let (status, out, err) = place.said(&["--timeout", "400ms", "x"]);
    assert_eq!((status, out.as_str()), (124, "Half\n"), "{err}");
    assert!(err.contains("timeout_ms"), "{err}");
    assert!(!is_alive(place.pi()), "nobody is left");
    // 1: no pi.
    let place = Place::new(&[], "");
    let (status, out, err) = place.said(&["--pi", "/nowhere/pi", "x"]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(err.contains("npm install -g @earendil-works/pi-coding-agent"), "{err}");
    let (status, out, _) = place.said(&["--pi", "/nowhere/pi", "--json", "x"]);
    let result: Value = serde_json::from_str(&out).expect("the result");
    assert_eq!((status, &result["event"]), (1, &json!("result")));
}

/// rule: agent.md, execd agent: Exit 130 on Ctrl-C, and nothing is left
#[test]
fn ctrl_c_ends_the_run_and_exits_130() {
    for json in [false, true] {
        let place = Place::new(&begun(), "setsid sleep 1000 & sleep 1000");
        let words: &[&str] = if json { &["--json", "x"] } else { &["x"] };
        let mut child = place.spawn(words);
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut text = String::new();
        if json {
            while !text.contains("Half") {
                stdout.read_line(&mut text).expect("events");
            }
        } else {
            let mut half = [0; 4];
            stdout.read_exact(&mut half).expect("the text so far");
            assert_eq!(&half, b"Half");
        }
        let pi = place.pi();
        let begun = now();
        send_signal(i32::try_from(child.id()).expect("a pid"), 2);
        stdout.read_to_string(&mut text).expect("the rest");
        assert_eq!(child.wait().expect("its end").code(), Some(130));
        assert!(begun.elapsed() < AT_ONCE);
        assert!(!is_alive(pi), "pi is gone");
        if json {
            let last = text.lines().last().expect("the result");
            let result: Value = serde_json::from_str(last).expect("JSON");
            assert_eq!(result["finish_reason"], "cancelled");
        }
    }
}

/// rule: agent.md, agent_event: A slow reader: no event is dropped, the agent's stdout is not read
///   (protocol.md, Notifications)
/// rule: agent.md, execd agent: A slow reader loses nothing: pi waits
#[test]
fn a_slow_reader_gets_every_byte_of_the_text() {
    let text = "0123456789".repeat(100);
    let mut lines = answer("Done.");
    lines.splice(4..5, (0..3_000).map(|_| delta(&text)));
    let place = Place::new(&lines, "touch done");
    let mut child = place.spawn(&["x"]);
    let mut stdout = child.stdout.take().expect("a pipe");
    // A pipe and execd's own buffers take about half of it: pi has to wait.
    let mut all = vec![0; 10];
    stdout.read_exact(&mut all).expect("the beginning");
    outside::until_idle(execd_of(&child), || 0);
    assert!(!place.path().join("done").exists(), "pi did not wait");
    stdout.read_to_end(&mut all).expect("the rest");
    assert_eq!(all.len(), 3_000_001);
    assert!(child.wait().expect("its end").success());
}

/// rule: agent.md, execd agent: Nobody reads any more, or the terminal closes: the run ends
#[test]
fn nobody_reading_any_more_is_the_end_of_the_run() {
    let place = Place::new(&begun(), "while cat lines; do sleep 0.02; done");
    let mut child = place.spawn(&["x"]);
    let pi = place.pi();
    drop(child.stdout.take());
    let (status, _, err) = told(child.wait_with_output().expect("its end"));
    assert_eq!(status, 1);
    assert!(err.contains("execd: stdout takes no more"), "{err}");
    eventually("pi is gone", || !is_alive(pi));
}

/// rule: agent.md, execd agent: SIGKILL of `execd agent`, or of the execd that it has started,
///   ends the run
#[test]
fn a_kill_of_execd_agent_leaves_nothing_behind() {
    for execd_itself in [false, true] {
        let place = Place::new(&begun(), "setsid sleep 1000 & echo $! > of_tool; sleep 1000");
        let mut child = place.spawn(&["x"]);
        eventually("its tool runs", || place.read("of_tool").ends_with('\n'));
        let tool: i32 = place.read("of_tool").trim().parse().expect("a pid");
        let pi = place.pi();
        let execd = execd_of(&child);
        assert_eq!(outside::comm(execd), "execd");
        if execd_itself {
            send_signal(execd, 9);
            let (status, _, err) = told(child.wait_with_output().expect("its end"));
            assert_eq!((status, err.as_str()), (1, "execd: killed: there is no result\n"));
        } else {
            child.kill().expect("SIGKILL");
            child.wait().expect("its end");
        }
        eventually("all of it is gone", || [execd, pi, tool].iter().all(|pid| !is_alive(*pid)));
    }
}

/// rule: agent.md, execd agent: A signal ends the run, and sets a stdout that takes nothing
///   a time
#[test]
fn a_signal_does_not_wait_for_a_reader_that_does_not_read() {
    let text = "0123456789".repeat(100);
    let mut lines = answer("Done.");
    lines.splice(4..5, (0..3_000).map(|_| delta(&text)));
    for (signal, status) in [(15, 143), (1, 129)] {
        let place = Place::new(&lines, "sleep 1000");
        let mut child = place.spawn(&["x"]);
        let mut stdout = child.stdout.take().expect("a pipe");
        stdout.read_exact(&mut [0; 10]).expect("the beginning");
        let pi = place.pi();
        send_signal(i32::try_from(child.id()).expect("a pid"), signal);
        let (code, _, err) = told(child.wait_with_output().expect("its end"));
        assert_eq!(code, status, "{err}");
        assert!(err.contains("execd: cancelled: "), "{err}");
        assert!(!is_alive(pi), "pi is gone");
    }
}
