//! exec_command: its params and their limits, where and how the child runs, every field of
//! the result, header and footer, truncation and retention, ends by exit, signal and failure
//! to start, and the early exit that never enters the table.

use std::os::unix::fs::PermissionsExt;

use crate::common::data::assert_prints;
use crate::common::*;
use serde_json::json;

const KIB: usize = 1024;

/// rule: unified-exec.md, exec_command, params: The call answers when the process has exited and
///   its output is at end of file
/// rule: unified-exec.md, exec_command, params: A command that ends earlier answers at once
/// rule: unified-exec.md, Constants: Yield of exec_command: 10 s by default, clamped to [250 ms, 30
///   s]
/// rule: unified-exec.md, exec_command, result: `yield_time_ms` is told after clamping
#[test]
fn a_yield_time_is_clamped_and_a_command_that_ends_answers_before_it() {
    let mut execd = Execd::start();
    let started = now();
    execd.run("true");
    assert!(started.elapsed() < AT_ONCE);
    assert_eq!(execd.exec(json!({"cmd": "true"}))["yield_time_ms"], 10_000);
    let given =
        [("1", 250), ("251", 251), ("9007199254740991", 30_000), ("1e3", 1_000), ("2.5E2", 250)];
    for (id, (text, taken)) in (1_u64..).zip(given) {
        let params = format!(r#"{{"cmd":"true","yield_time_ms":{text}}}"#);
        execd.send_line(&format!(r#"{{"id":{id},"method":"exec_command","params":{params}}}"#));
        assert_eq!(execd.result_of(id)["yield_time_ms"], taken, "{text}");
    }
}

/// The fields of a reply are held by tests/it/snapshots.rs, byte by byte.
/// rule: unified-exec.md, exec_command, result: `exit_code` is the exit status; absent when a
///   signal ended it
/// rule: protocol.md, Notifications: A field that does not apply is left out, never null
/// rule: unified-exec.md, exec_command, result: `session_id` only while something runs, never
///   together with `exit_code`
/// rule: unified-exec.md, exec_command, result: `output_bytes_total` counts since the start of the
///   session
/// rule: unified-exec.md, exec_command, result: `chunk_id` is six hex digits
/// rule: unified-exec.md, exec_command, result: `original_token_count` is ceil(bytes of this call's
///   output / 4), before truncation
/// rule: unified-exec.md, exec_command, params: The call answers when the yield time is over
/// rule: unified-exec.md, exec_command, result: `wall_time_seconds` is a number, with three
///   decimals in the header
/// rule: unified-exec.md, write_stdin: Observing the exit removes the session
/// rule: architecture.md, Bounds: `cpu_seconds` and `max_rss_kib` of the leader in the exit's
///   fields
#[test]
fn a_command_goes_on_after_its_yield_and_is_polled_to_its_end() {
    let mut execd = Execd::start();
    let cmd = format!("echo one; {}; echo two!; exit 143", until_file("go"));
    let first = execd.open(&cmd);
    assert_eq!((&first["session_id"], &first["output"]), (&json!(1), &json!("one\n")));
    assert_eq!(first["wait_status"], "deadline_reached");
    assert_utc_stamp(&first["tool_time_utc"]);
    assert!(is_alive(pid_of(&first)));
    let ends = ["exit_code", "signal", "failure_message", "cpu_seconds", "max_rss_kib", "footer"];
    assert_absent(&first, &ends);
    assert!(first["wall_time_seconds"].as_f64().expect("a number") >= 0.25, "{first}");
    go(&execd, "go");
    execd.until_listed_exited(1);
    // An exit between two calls is told by the next one at once.
    let started = now();
    let last = execd.until_exit(1);
    assert!(started.elapsed() < AT_ONCE);
    assert_eq!((&last["output"], &last["exit_code"]), (&json!("two!\n"), &json!(143)));
    assert_absent(&last, &["session_id", "signal", "failure_message", "tool_time_utc", "note"]);
    assert_eq!((&last["log_path"], log_of(&last)), (&first["log_path"], b"one\ntwo!\n".to_vec()));
    for (result, total, tokens) in [(&first, 4, 1), (&last, 9, 2)] {
        assert_eq!(result["output_bytes_total"], total);
        assert_eq!(result["original_token_count"], tokens);
    }
    execd.failed("write_stdin", json!({"session_id": 1}), "unknown_session");
    let [one, other] = [&first, &last].map(|result| result["chunk_id"].as_str().expect("text"));
    assert!(one.len() == 6 && one.bytes().all(|b| b.is_ascii_hexdigit()) && one != other, "{one}");
    let busy = execd.run("for ((i = 0; i < 300000; i++)); do :; done");
    assert!(busy["cpu_seconds"].as_f64().expect("a number") > 0.02, "{busy}");
    assert!(busy["max_rss_kib"].as_u64().expect("a number") > 500, "{busy}");
}

/// rule: unified-exec.md, exec_command, params: Session ids start at 1, rise, and are never reused
/// rule: unified-exec.md, exec_command, params: `--first-session-id N` lets ids go on
#[test]
fn session_ids_start_at_one_and_rise_with_every_command() {
    for (args, first) in [(&[][..], 1), (&["--first-session-id", "4711"], 4_711)] {
        let mut execd = Execd::with(args, &[]);
        assert_eq!(session_of(&execd.open("sleep 60")), first);
        execd.run("true");
        assert_eq!(session_of(&execd.open("sleep 60")), first + 2);
        execd.kill(first + 2);
        assert_eq!(session_of(&execd.open("sleep 60")), first + 3, "ids are never reused");
    }
}

/// A client that went on with an older conversation found its ids given to other commands: only a
/// fresh execd could be told of them.
/// rule: unified-exec.md, exec_command, params: `reserve_session_ids`: ids of a conversation that
///   goes on are given to nobody, in a running execd
#[test]
fn ids_can_be_reserved_in_a_running_execd() {
    let mut execd = Execd::start();
    assert_eq!(session_of(&execd.open("sleep 60")), 1);
    let reserve = |execd: &mut Execd, up_to: u64| {
        execd.result("reserve_session_ids", json!({"up_to": up_to}))["next_session_id"].clone()
    };
    assert_eq!(reserve(&mut execd, 9), 10);
    assert_eq!(session_of(&execd.open("sleep 60")), 10);
    // What is lower than the next id is not given any more as it is.
    for up_to in [0, 9, 10] {
        assert_eq!(reserve(&mut execd, up_to), 11);
    }
    // Sessions keep the ids that they have, and windows and processes are counted with them.
    execd.kill(1);
    let job = execd.result("bash_stream", json!({"command": "true"}));
    assert_eq!(job["sessionId"], 11, "{job}");
    assert_eq!(reserve(&mut execd, 9_007_199_254_740_991), 9_007_199_254_740_992_u64);
}

/// rule: protocol.md, Errors: A command that cannot start is a result with `exit_code: -1` and
///   `failure_message` with the errno's name
/// rule: architecture.md, Starting a child: A failure between clone and exec is answered at once
///   with its reason
/// rule: architecture.md, Starting a child: A command over the kernel's 128 KiB argument limit: a
///   result with E2BIG and advice
/// rule: architecture.md, Starting a child: A failed start leaves no session, log, descriptor or
///   pid
#[test]
fn a_command_that_cannot_start_is_a_result_with_the_systems_reason_and_leaves_nothing() {
    let mut execd = Execd::start();
    std::fs::write(execd.file("plain"), "text").expect("a file");
    let plain = execd.file("plain").to_str().expect("UTF-8").to_owned();
    let long = format!("true {}", "x".repeat(200 * KIB));
    let fits = format!("echo ok {}", "x".repeat(100 * KIB));
    assert_eq!(execd.run(&fits)["exit_code"], 0);
    // What is opened once, on first use, is open after the turn that answered.
    execd.ping();
    let (fds, logs) = (execd.fd_count(), execd.log_files().len());
    for (cmd, more, reason) in [
        ("true", json!({"shell": "nosuchshell"}), "spawn nosuchshell: ENOENT: No such file"),
        ("true", json!({"workdir": "nowhere"}), "nowhere: ENOENT: No such file or directory"),
        ("true", json!({"workdir": "plain", "tty": true}), "ENOTDIR"),
        ("true", json!({"shell": plain}), "EACCES"),
        (long.as_str(), json!({}), "E2BIG"),
    ] {
        let result = execd.run_with(cmd, more);
        let message = result["failure_message"].as_str().expect("text");
        assert_eq!(result["exit_code"], -1);
        assert!(message.contains(reason), "{message}");
        assert!(reason != "E2BIG" || message.contains("file"), "what to do: {message}");
        let header = result["header"].as_str().expect("text");
        let begin = format!("[exited]\nexit_code: -1\nfailure: {message}\n");
        assert!(header.starts_with(&begin), "{header}");
        assert_absent(&result, &["session_id", "signal", "pid", "cpu_seconds", "max_rss_kib"]);
    }
    eventually("no descriptor is left", || execd.fd_count() <= fds);
    assert_eq!(execd.log_files().len(), logs);
    assert_eq!(execd.result("list_sessions", json!({}))["sessions"], json!([]));
}

/// rule: unified-exec.md, Truncation, retention, text: Line numbers and totals count this call's
///   text, not the file
/// rule: unified-exec.md, exec_command, result: `omitted_bytes` only when the retention dropped
///   bytes since the last call
#[test]
fn line_numbers_and_omitted_bytes_are_of_this_call() {
    let mut execd = Execd::start();
    let cmd = "head -c 2097152 /dev/zero | tr '\\0' x; echo; echo ready; read x; seq 1 2001";
    let session = execd.open_ready(cmd, "ready", json!({}));
    let last = execd.write(json!({"session_id": session, "chars": "\\n", "yield_time_ms": 30_000}));
    assert_eq!(last["truncation"]["totalLines"], 2_001);
    assert_eq!(output(&last).lines().count(), 2_000);
    assert_absent(&last, &["omitted_bytes"]);
}

/// More of it is shown by tests/it/hygiene.rs, from outside; this is what a binary for another
/// processor is held to.
#[test]
fn the_child_has_the_descriptors_the_environment_and_the_directory_asked_for() {
    let mut execd = Execd::with(&[], &[("KEPT", "kept"), ("GONE", "gone")]);
    let cmd = "ls /proc/$$/fd; ps -o sid= -p $$ | grep -qw $$; \
               echo \"$? $KEPT ${GONE-unset} $ADDED $EXECD_SESSION_ID\"; pwd -P";
    for (id, tty) in [(1, false), (2, true)] {
        let env = json!({"GONE": null, "ADDED": "added"});
        let result = execd.run_with(cmd, json!({"tty": tty, "env": env, "workdir": "/"}));
        let words: Vec<&str> = output(&result).split_whitespace().collect();
        assert_eq!(words[..3], ["0", "1", "2"], "{result}");
        let id = id.to_string();
        assert_eq!(words[3..], ["0", "kept", "unset", "added", &id, "/"], "{result}");
    }
}

/// rule: architecture.md, Starting a child: argv, envp and the places of the shell are built before
///   the clone; the child looks it up on its PATH
/// rule: unified-exec.md, exec_command, params: `shell`: default bash, run as `SHELL -c CMD`,
///   looked up on PATH
#[test]
fn the_shell_is_looked_up_on_the_childs_path() {
    let mut execd = Execd::start();
    let sh = std::fs::canonicalize("/bin/sh").expect("there is a sh");
    for shell in ["sh", "/bin/sh"] {
        let result = execd.run_with("readlink /proc/$$/exe; echo ok", json!({"shell": shell}));
        assert_eq!(output(&result), format!("{}\nok\n", sh.display()));
    }
    let shell = execd.file("myshell");
    std::fs::write(&shell, "#!/bin/sh\necho \"mine: $1 [$2] $#\"\n").expect("a script");
    std::fs::set_permissions(&shell, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    let path = execd.workdir().to_str().expect("UTF-8").to_owned();
    let params = json!({"shell": "myshell", "env": {"PATH": path}});
    assert_eq!(execd.run_with("a 'b' c", params)["output"], "mine: -c [a 'b' c] 2\n");
}

/// rule: unified-exec.md, Constants: PTY default 120×30, cols clamped to [20, 500], rows to [5,
///   300]
/// rule: architecture.md, Starting a child: A PTY is the child's controlling terminal
#[test]
fn a_terminal_has_the_size_that_was_asked_for_clamped_and_controls_the_session() {
    let mut execd = Execd::start();
    for (more, size) in [
        (json!({}), "30 120\n"),
        (json!({"cols": 80, "rows": 24}), "24 80\n"),
        (json!({"cols": 1, "rows": 1}), "5 20\n"),
        (json!({"cols": 100_000, "rows": 100_000}), "300 500\n"),
    ] {
        let result = execd.run_with("stty size", merged(json!({"tty": true}), more.clone()));
        assert_eq!((&result["output"], &result["tty"]), (&json!(size), &json!(true)), "{more}");
        assert!(result["header"].as_str().expect("text").ends_with("\ntty: true"));
    }
    let cmd = "test -t 0 && test -t 1 && test -t 2 && tty && echo controlled >/dev/tty";
    let result = execd.run_with(cmd, json!({"tty": true}));
    assert!(output(&result).starts_with("/dev/pts/"), "{result}");
    assert!(output(&result).ends_with("\ncontrolled\n"), "{result}");
    assert_eq!(result["exit_code"], 0);
}

/// rule: unified-exec.md, exec_command, result: footer: `[Showing lines A-B of N. Full output:
///   PATH]`
/// rule: unified-exec.md, exec_command, result: footer: ` (50.0KB limit)` when bytes cut it
/// rule: unified-exec.md, exec_command, result: footer: `[Showing last 50.0KB of final line (line N
///   is larger …)]`
/// rule: unified-exec.md, Truncation, retention, text: Truncation keeps the tail: whole lines, at
///   most 2,000
/// rule: unified-exec.md, Truncation, retention, text: Truncation keeps at most 50 KiB
/// rule: unified-exec.md, Truncation, retention, text: A truncated text has no newline at its end
/// rule: unified-exec.md, Truncation, retention, text: A single last line over 50 KiB keeps its
///   last 50 KiB at a UTF-8 boundary (`lastLinePartial`)
/// rule: architecture.md, The keeper: A reply that says exited or points at the log is written when
///   the log is complete up to its last byte
#[test]
fn more_keeps_its_tail_and_the_footer_says_what_is_shown_of_how_much() {
    let mut execd = Execd::start();
    let lines: Vec<String> = (98_001..=100_000).map(|i| i.to_string()).collect();
    let of_line = |line: u64| {
        format!("last 50.0KB of final line (line {line} is larger than the 50.0KB limit)")
    };
    for (cmd, expected, shown) in [
        ("seq 1 100000", lines.join("\n"), "lines 98001-100000 of 100000".to_owned()),
        (
            "echo a; echo b; head -c 59999 /dev/zero | tr '\\0' x; printf E",
            format!("{}E", "x".repeat(50 * KIB - 1)),
            of_line(3),
        ),
    ] {
        let result = execd.run(cmd);
        assert!(output(&result) == expected, "{cmd}: {result}");
        let log = log_path(&result);
        let footer = format!("[Showing {shown}. Full output: {}]", log.display());
        assert_eq!(result["footer"], footer, "{cmd}");
        assert_prints(&log, cmd);
        assert_absent(&result, &["log_complete", "log_truncated"]);
    }
    // What is within the bounds is whole.
    let result = execd.run("seq 1 2000");
    assert_eq!(output(&result).lines().count(), 2_000);
    assert_absent(&result, &["truncation", "footer"]);
}

/// rule: unified-exec.md, Truncation, retention, text: At the gap `output` has a line that tells
///   how much was omitted
#[test]
fn unread_output_over_the_retention_has_a_line_at_the_gap() {
    // 3 MiB of a progress bar: clean text shrinks it so far that the gap is seen.
    let bar = "for ((i = 0; i < 3000; i++)); do printf \"$row\"; done";
    let cmd = format!("row=$(printf '\\\\r%01023d' 7); echo begin; {bar}; printf '\\nend\\n'");
    let result = Execd::start().run(&cmd);
    let omitted = result["omitted_bytes"].as_u64().unwrap_or_else(|| panic!("{result}"));
    let total = result["output_bytes_total"].as_u64().expect("a number");
    assert_eq!(omitted, total - 1024 * 1024);
    let gap = format!(
        "[... {omitted} bytes omitted here (output exceeded the 1048576-byte in-memory retention \
         between polls; the full stream is in the session log file) ...]"
    );
    let lines: Vec<&str> = output(&result).lines().collect();
    assert_eq!(lines.first(), Some(&"begin"), "{result}");
    assert_eq!(lines.last(), Some(&"end"), "{result}");
    assert!(lines.contains(&gap.as_str()), "{lines:?}");
}
