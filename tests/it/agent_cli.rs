//! `execd agent` for people and scripts (agent.md): text on stdout, the rest on stderr,
//! NDJSON with --json, exit statuses.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::agent_help::place::{Place, execd_of, told};
use crate::agent_help::*;
use crate::common::{AT_ONCE, eventually, is_alive, now, outside, send_signal};
use serde_json::{Value, json};

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
/// rule: agent.md, execd agent: `--label` is in each event and in the result; `--keep-events` has
///   pi's events in the result
#[test]
fn json_prints_the_events_and_the_result() {
    let place = Place::new(&with_a_tool(), "");
    let words = ["--json", "--label", "task 7", "--keep-events", "Say it"];
    let (status, out, err) = place.said(&words);
    assert_eq!((status, err.as_str()), (0, ""));
    let lines: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let names: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(names, ["turn_start", "tool_use", "tool_result", "text", "turn_end", "result"]);
    assert_eq!(lines[3], json!({"event": "text", "label": "task 7", "delta": "Done."}));
    assert!(lines.iter().all(|line| line["label"] == "task 7"), "{out}");
    let result = lines.last().expect("a result");
    let events = result["provider_data"]["events"].as_array().expect("the raw events");
    assert_eq!(events.len(), with_a_tool().len());
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
    let place = Place::new(&answer("Done."), "printf %s \"$OURS\" > of_env");
    let words = "--thinking low --session abc --timeout 5m --max-cost 0.50 --max-tokens 1000 \
                 --idle-timeout 20s --first-event-timeout 9000ms --env OURS=a=b --extra-arg --x=1 \
                 --extra-arg -y -e /a --extension /b --no-log --tools";
    let words: Vec<&str> = words.split_whitespace().collect();
    // A word that begins with a dash is a prompt only behind --.
    let more = ["read, bash", "--system-prompt", "Be brief.", "--", "--not a flag"];
    let words = [&words[..], &more].concat();
    let (status, _, err) = place.said(&words);
    assert_eq!(status, 0, "{err}");
    let argv = "--mode json --model fake/scripted --session abc -p --tools read,bash --thinking \
                low -e /a -e /b --x=1 -y Be brief.\n\n--not a flag";
    assert_eq!(place.read("argv").trim_end_matches('\0').replace('\0', " "), argv);
    assert_eq!(place.read("of_env"), "a=b");
    let (status, ..) = place.said(&["--no-tools", "--append-system-prompt", "X", "Go"]);
    assert_eq!(status, 0);
    let argv = place.read("argv").replace('\0', " ");
    assert!(argv.ends_with("-p --no-tools --append-system-prompt X Go "), "{argv}");
}

/// rule: agent.md, Invocation: Prompts over 100 KiB go through a temporary `@file`, 0600, removed:
///   named by the text
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
    assert_eq!((status, err.as_str()), (125, "execd: the prompt on stdin is empty\n"));
}

/// rule: agent.md, execd agent: Its flags; `-` is stdin
/// rule: agent.md, execd agent: Flags that contradict each other are refused by name, with what is
///   right
#[test]
fn what_makes_no_sense_is_said_in_a_line() {
    let place = Place::new(&answer("Done."), "");
    for (words, message) in [
        (vec![], "agent needs a prompt: execd agent --model p/m 'Do it' (- is stdin)"),
        (vec!["a", "b"], "agent takes one prompt: quote it, or - for stdin"),
        (vec!["--timeout", "soon", "x"], "--timeout must be a time such as 0.5, 500ms, "),
        (vec!["--max-cost", "-1", "x"], "--max-cost must be 0 or more"),
        (vec!["--budget", "1", "x"], "unknown flag --budget"),
        (vec!["--env", "KEY", "x"], "--env must be NAME=VALUE"),
        (vec!["--tools", "read", "--no-tools", "x"], "name tools, or give --no-tools alone"),
        (vec!["--system-prompt", "a", "--append-system-prompt", "b", "x"], "give one: each sets"),
        (vec!["-v", "--json", "x"], "leave out -v: "),
        (vec!["--log", "run.log", "--no-log", "x"], "leave out --no-log to have the log"),
        (vec!["--log-dir", "d", "--log", "run.log", "x"], "--log names the log's file, "),
        (vec!["--keep-events", "x"], "--keep-events needs --json: "),
        (vec!["--keep-agent-dir", "x"], "--keep-agent-dir needs --isolate: "),
        (vec!["--health", "--max-cost", "1", "x"], "--health takes no prompt"),
    ] {
        let (status, out, err) = place.said(&words);
        assert_eq!((status, out.as_str()), (125, ""), "{words:?}: {err}");
        assert!(err.starts_with("execd: ") && err.contains(message), "{words:?}: {err}");
        assert!(err.ends_with(" (try execd agent --help)\n"), "{words:?}: {err}");
    }
    assert_eq!(place.read("argv"), "", "pi was never started");
    assert!(!place.path().join("run.log").exists(), "nothing was made");
}

fn health(place: &Place, words: &[&str]) -> (i32, String, String) {
    told(place.execd(&[&["agent", "--health"], words].concat()).output().expect("it runs"))
}

/// rule: agent.md, execd agent: `--health` says whether pi is there, and exits 1 where it is not
#[test]
fn health_is_a_line_for_people_and_an_exit_status() {
    let place = Place::new(&answer("Done."), "");
    let pi = place.path().join("pi").to_string_lossy().into_owned();
    let line = format!("pi {VERSION} at {pi}: ok\n");
    assert_eq!(health(&place, &[]), (0, line, String::new()));
    let (status, out, err) = health(&place, &["--json", "--pi", &pi]);
    let object: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((status, err.as_str()), (0, ""));
    assert_eq!(object, json!({"ok": true, "version": VERSION, "path": pi}));
    assert!(out.starts_with(r#"{"ok":true,"version":"#), "as the docs have it: {out}");
    let (status, out, err) = health(&place, &["--pi", "/nowhere/pi"]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(err.starts_with("execd: ") && err.contains("npm install -g"), "{err}");
    let (status, out, err) = health(&place, &["--min-version", "10.0.0"]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(err.contains(VERSION) && err.contains("10.0.0"), "both versions: {err}");
    let (status, _, err) = health(&place, &["-e", "/x"]);
    assert_eq!(status, 125);
    assert!(err.contains("--health starts no run: leave out -e "), "{err}");
}

/// Of a file: its mode, and its content.
fn file(place: &Place, name: &str) -> (u32, String) {
    let path = place.path().join(name);
    let mode = std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o7777;
    (mode, place.read(name))
}

/// Shows that a run's log is the file run.log, which has this text and this word for its end, and
/// that nothing else was left beside it.
fn assert_logged(place: &Place, result: &str, text: &str) {
    let path = place.path().canonicalize().expect("a path").join("run.log");
    let path = path.to_string_lossy();
    assert!(result.contains(&*path), "{result}");
    let (mode, log) = file(place, "run.log");
    assert_eq!(mode, 0o600);
    assert!(log.contains(text), "{log}");
    let names = std::fs::read_dir(place.path()).expect("a directory").flatten();
    let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    assert!(!names.any(|name| name.starts_with(".run.log")), "nothing is left beside it");
}

/// Whether the beginning of what pi says is in the log, which is not at its file yet.
fn log_is_begun(place: &Place) -> bool {
    let names = std::fs::read_dir(place.path()).expect("a directory").flatten();
    let mut paths = names.map(|entry| entry.path());
    let dir = paths.find(|path| path.to_string_lossy().contains("/.run.log."));
    let logs = dir.and_then(|dir| std::fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    let mut texts = logs.flat_map(|entry| std::fs::read_to_string(entry.path()));
    texts.any(|log| log.contains("Half"))
}

/// rule: agent.md, execd agent: `--log FILE`: pi's raw stream and stderr are there, however the run
///   ended
#[test]
fn the_log_is_at_its_file_however_the_run_ended() {
    // A success. What an earlier run has left there is replaced.
    let place = Place::new(&answer("Done."), "echo oops >&2");
    std::fs::write(place.path().join("run.log"), "old".repeat(10_000)).expect("a file");
    let words = ["--log", "run.log", "--json", "x"];
    let mode = PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(place.path().join("run.log"), mode).expect("a mode");
    let (status, out, err) = place.said(&words);
    assert_eq!((status, err.as_str()), (0, ""));
    let result: Value = serde_json::from_str(out.lines().last().expect("a result")).expect("JSON");
    assert_logged(&place, result["log_path"].as_str().expect("a path"), "oops\n");
    let log = place.read("run.log");
    assert!(log.contains(&ndjson(&answer("Done."))) && !log.contains("old"), "{log}");
    // A failure says where it is.
    let place = Place::new(&[], "echo 'No API key' >&2; exit 1");
    let (status, _, err) = place.said(&["--log", "run.log", "x"]);
    assert_eq!(status, 1);
    assert_logged(&place, &err, "No API key");
    // Cancelled.
    let place = Place::new(&begun(), "sleep 1000");
    let child = place.spawn(&["--log", "run.log", "x"]);
    place.pi();
    send_signal(i32::try_from(child.id()).expect("a pid"), 2);
    let (status, _, err) = told(child.wait_with_output().expect("its end"));
    assert_eq!(status, 130, "{err}");
    assert_logged(&place, &err, "");
    // Its execd was killed: the log is there all the same.
    let place = Place::new(&begun(), "sleep 1000");
    let child = place.spawn(&["--log", "run.log", "x"]);
    eventually("the log is begun", || log_is_begun(&place));
    send_signal(execd_of(&child), 9);
    let (status, _, err) = told(child.wait_with_output().expect("its end"));
    assert_eq!(status, 1, "{err}");
    assert_eq!(file(&place, "run.log").0, 0o600);
}

/// rule: agent.md, execd agent: A `--log` that cannot be created is refused before the start, and
///   the error names it
#[test]
fn a_log_that_cannot_be_made_is_refused_before_the_start() {
    let place = Place::new(&answer("Done."), "");
    std::fs::create_dir(place.path().join("dir")).expect("a directory");
    for (name, why) in [
        ("nowhere/run.log", "No such file or directory"),
        ("dir", "it is no regular file: name another"),
        ("/dev/null", "it is no regular file: name another"),
        ("lines/run.log", "Not a directory"),
    ] {
        let (status, out, err) = place.said(&["--log", name, "x"]);
        assert_eq!((status, out.as_str()), (125, ""), "{name}: {err}");
        assert!(err.starts_with(&format!("execd: --log {name}: {why}")), "{err}");
    }
    assert_eq!(place.read("argv"), "", "pi was never started");
}

/// rule: agent.md, execd agent: A full or slow disk under `--log` costs no result
#[test]
fn a_disk_that_takes_no_log_costs_no_result() {
    if let Some(disk) = outside::SmallDisk::mount(64) {
        let long = answer(&"x".repeat(200_000));
        let place = Place::new(&long, "");
        let log = disk.path().join("run.log").to_string_lossy().into_owned();
        let (status, out, err) = place.said(&["--log", &log, "--json", "x"]);
        assert_eq!(status, 0, "{err}");
        let result: Value = serde_json::from_str(out.lines().last().expect("it")).expect("JSON");
        assert_eq!(result["output"].as_str().map(str::len), Some(200_000));
        assert_eq!(result["log_path"], json!(log));
    }
    // The log writer stands still, as one does that waits for a disk.
    let place = Place::new(&begun(), "until [ -e go ]; do sleep 0.02; done; cat rest");
    let rest = &answer("Half")[5..];
    std::fs::write(place.path().join("rest"), ndjson(rest)).expect("a stream");
    let mut child = place.spawn(&["--log", "run.log", "--json", "x"]);
    place.pi();
    eventually("the log is begun", || log_is_begun(&place));
    let writer = outside::helper_of(execd_of(&child), "sessions-log").expect("a log writer");
    outside::stop(writer);
    std::fs::write(place.path().join("go"), "").expect("a file");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let last = lines.by_ref().map_while(Result::ok).last().expect("a result");
    assert!(last.starts_with(r#"{"event":"result","success":true"#), "{last}");
    let (status, _, _) = told(child.wait_with_output().expect("its end"));
    assert_eq!(status, 0);
    outside::go_on(writer);
    eventually("the log writer ends", || !is_alive(writer));
    assert!(place.read("run.log").contains("agent_end"), "nothing is lost");
}

/// rule: agent.md, execd agent: Exit 0, 1, 124, 125
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
    assert!(err.contains("execd: cost_exhausted (budget): 1 turn"), "{err}");
    // 124: too slow.
    let place = Place::new(&begun(), "sleep 1000");
    let (status, out, err) = place.said(&["--timeout", "400ms", "x"]);
    assert_eq!((status, out.as_str()), (124, "Half\n"), "{err}");
    assert!(err.contains("timeout_ms"), "{err}");
    assert!(!is_alive(place.pi()), "nobody is left");
    // 125: no pi.
    let place = Place::new(&[], "");
    let (status, out, err) = place.said(&["--pi", "/nowhere/pi", "x"]);
    assert_eq!((status, out.as_str()), (125, ""));
    assert!(err.contains("npm install -g @earendil-works/pi-coding-agent"), "{err}");
    let (status, out, _) = place.said(&["--pi", "/nowhere/pi", "--json", "x"]);
    let result: Value = serde_json::from_str(&out).expect("the result");
    assert_eq!((status, &result["event"]), (125, &json!("result")));
}

/// rule: agent.md, execd agent: Exit 130 on Ctrl-C, and nothing is left
#[test]
fn ctrl_c_ends_the_run_and_exits_130() {
    let place = Place::new(&begun(), "setsid sleep 1000 & sleep 1000");
    let mut child = place.spawn(&["--json", "x"]);
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut text = String::new();
    while !text.contains("Half") {
        stdout.read_line(&mut text).expect("events");
    }
    let pi = place.pi();
    let begun = now();
    send_signal(i32::try_from(child.id()).expect("a pid"), 2);
    stdout.read_to_string(&mut text).expect("the rest");
    assert_eq!(child.wait().expect("its end").code(), Some(130));
    assert!(begun.elapsed() < AT_ONCE);
    assert!(!is_alive(pi), "pi is gone");
    let last = text.lines().last().expect("the result");
    let result: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(result["finish_reason"], "cancelled");
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
    let idle_ms = 700;
    let mut child = place.spawn(&["--idle-timeout", &format!("{idle_ms}ms"), "x"]);
    let mut stdout = child.stdout.take().expect("a pipe");
    // A pipe and execd's own buffers take about half of it: pi has to wait, for longer than it may
    // be silent.
    let mut all = vec![0; 10];
    stdout.read_exact(&mut all).expect("the beginning");
    let execd = execd_of(&child);
    outside::until_idle(execd, || 0);
    let begun = now();
    eventually("the time has passed", || begun.elapsed().as_millis() > 2 * idle_ms);
    assert!(!place.path().join("done").exists(), "pi did not wait");
    let peak_kib = outside::status_number(execd, "VmHWM");
    assert!(peak_kib < 16 * 1024, "{peak_kib} KiB");
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
    lines.splice(4..5, (0..600).map(|_| delta(&text)));
    let place = Place::new(&lines, "sleep 1000");
    let mut child = place.spawn(&["x"]);
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_exact(&mut [0; 10]).expect("the beginning");
    let pi = place.pi();
    send_signal(i32::try_from(child.id()).expect("a pid"), libc::SIGHUP);
    let (code, _, err) = told(child.wait_with_output().expect("its end"));
    assert_eq!(code, 129, "{err}");
    assert!(err.contains("execd: cancelled: "), "{err}");
    assert!(!is_alive(pi), "pi is gone");
}
fn of_another_model() -> Vec<Value> {
    let mut all = answer("Done.");
    for line in [3, 5] {
        all[line]["message"]["provider"] = json!("fake");
        all[line]["message"]["model"] = json!("cheaper");
    }
    all
}

/// rule: agent.md, execd agent: `--any-model` goes on with another model, and the summary names it
#[test]
fn another_model_is_named() {
    let place = Place::new(&of_another_model(), "");
    let (status, _, err) = place.said(&["x"]);
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("execd: model_mismatch"), "{err}");
    assert!(err.trim_end().ends_with(", answered by fake/cheaper"), "{err}");
    let (status, out, err) = place.said(&["--any-model", "x"]);
    assert_eq!((status, out.as_str()), (0, "Done.\n"), "{err}");
    assert!(err.trim_end().ends_with(" s, answered by fake/cheaper"), "{err}");
}

/// rule: agent.md, Isolation: keep_agent_dir keeps it, and the result says where it is
/// rule: agent.md, execd agent: `--isolate` gives pi an agent directory of its own, which
///   `--keep-agent-dir` keeps
#[test]
fn an_agent_directory_of_its_own_is_kept_where_that_is_asked_for() {
    let place = Place::new(&answer("Done."), "printf %s \"$PI_CODING_AGENT_DIR\" > agent_dir");
    let (status, _, err) = place.said(&["--isolate", "x"]);
    assert_eq!(status, 0, "{err}");
    let dir = place.read("agent_dir");
    assert!(dir.starts_with('/'), "{dir}");
    eventually("it is removed", || !std::path::Path::new(&dir).exists());
    let words = ["--isolate", "--keep-agent-dir", "--json", "--log", "run.log", "x"];
    let (status, out, err) = place.said(&words);
    assert_eq!(status, 0, "{err}");
    let result: Value = serde_json::from_str(out.lines().last().expect("a result")).expect("JSON");
    let dir = result["agent_dir"].as_str().expect("its path");
    assert_eq!(place.read("agent_dir"), dir);
    let mode = std::fs::metadata(dir).expect("it is kept").permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "{dir}");
}
