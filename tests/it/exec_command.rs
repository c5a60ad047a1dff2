//! exec_command: its params and their limits, where and how the child runs, every field of
//! the result, header and footer, truncation and retention, ends by exit, signal and failure
//! to start, and the early exit that never enters the table.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use crate::common::data::assert_prints;
use crate::common::*;
use serde_json::{Value, json};

const KIB: usize = 1024;

fn truncation(by: &str, total: (usize, usize), shown: (usize, usize), partial: bool) -> Value {
    json!({
        "truncated": true, "truncatedBy": by, "totalLines": total.0, "totalBytes": total.1,
        "outputLines": shown.0, "outputBytes": shown.1, "lastLinePartial": partial,
        "maxLines": 2_000, "maxBytes": 51_200,
    })
}

// ---- The result -------------------------------------------------------------------------

/// The fields of a reply are held by tests/it/snapshots.rs, byte by byte.
/// rule: unified-exec.md, exec_command, result: `exit_code` is the exit status; absent when a
///   signal ended it
/// rule: protocol.md, Notifications: A field that does not apply is left out, never null
/// rule: unified-exec.md, exec_command, result: `wait_mode`, `yield_until`, `effective_wait_ms` on
///   waits
/// rule: unified-exec.md, exec_command, result: The header's lines are in this order, each only if
///   present
#[test]
fn a_finished_command_tells_its_output_and_its_end() {
    let result = Execd::start().run("echo hi; exit 143");
    assert_eq!((&result["exit_code"], &result["output"]), (&json!(143), &json!("hi\n")));
    assert_eq!(result["wait_status"], "completed");
    let fields = ["session_id", "signal", "failure_message", "tool_time_utc", "note", "warning"];
    assert_absent(&result, &fields);
    assert_absent(&result, &["truncation", "footer", "omitted_bytes", "yield_until"]);
    let header = result["header"].as_str().expect("text");
    let names: Vec<&str> =
        header.lines().map(|line| line.split_once(": ").map_or(line, |(name, _)| name)).collect();
    let expected = [
        "[exited]",
        "exit_code",
        "log_path",
        "cwd",
        "wall_time_seconds",
        "chunk_id",
        "original_token_count",
        "output_bytes_total",
        "tty",
    ];
    assert_eq!(names, expected);
    assert_eq!(header, expected_header(&result));
}

/// rule: unified-exec.md, exec_command, result: `session_id` only while something runs, never
///   together with `exit_code`
/// rule: unified-exec.md, exec_command, result: `tool_time_utc` on still-running replies and on
///   every yield_until reply or error
/// rule: unified-exec.md, exec_command, result: `wall_time_seconds` is a number, with three
///   decimals in the header
#[test]
fn a_running_command_has_a_session_id_and_no_exit() {
    let mut execd = Execd::start();
    let result = execd.open("echo hi; sleep 60");
    assert_eq!(result["session_id"], 1);
    assert_eq!(result["output"], "hi\n");
    assert_eq!(result["wait_status"], "deadline_reached");
    assert_utc_stamp(&result["tool_time_utc"]);
    assert!(is_alive(pid_of(&result)));
    let ends = ["exit_code", "signal", "failure_message", "cpu_seconds", "max_rss_kib", "footer"];
    assert_absent(&result, &ends);
    assert_absent(&result, &["truncation", "omitted_bytes", "note", "shell_exit_code", "warning"]);
    let header = result["header"].as_str().expect("text");
    assert!(header.starts_with("[still running]\nsession_id: 1\nlog_path: /"), "{header}");
    assert!(header.contains("\ntool_time_utc: "), "something runs: {header}");
    let line = header.lines().find_map(|line| line.strip_prefix("wall_time_seconds: "));
    let (whole, decimals) = line.expect("the line").split_once('.').expect("a decimal point");
    assert_eq!(decimals.len(), 3);
    assert!(whole.parse::<u32>().is_ok(), "{header}");
    assert!(result["wall_time_seconds"].as_f64().expect("a number") >= 0.25, "{result}");
}

/// rule: unified-exec.md, exec_command, result: `chunk_id` is six hex digits
/// rule: unified-exec.md, exec_command, result: `original_token_count` is ceil(bytes of this call's
///   output / 4), before truncation
#[test]
fn chunk_ids_differ_and_token_counts_are_a_quarter_of_the_bytes_rounded_up() {
    let mut execd = Execd::start();
    let mut ids = BTreeSet::new();
    for (bytes, tokens) in [(0, 0), (1, 1), (4, 1), (5, 2), (148, 37), (100_000, 25_000)] {
        let result = execd.run(&format!("head -c {bytes} /dev/zero | tr '\\0' x"));
        assert_eq!(result["original_token_count"], tokens, "{bytes} bytes");
        assert_eq!(result["output_bytes_total"], bytes);
        ids.insert(result["chunk_id"].as_str().expect("text").to_owned());
    }
    assert!(
        ids.iter().all(|id| id.len() == 6 && id.bytes().all(|b| b.is_ascii_hexdigit())),
        "{ids:?}"
    );
    assert!(ids.len() > 1, "{ids:?}");
}

/// rule: unified-exec.md, exec_command, result: `output_bytes_total` counts since the start of the
///   session
#[test]
fn output_bytes_total_counts_since_the_start_of_the_session() {
    let mut execd = Execd::start();
    let first = execd.open("echo 12345; read x; echo 678");
    let last = execd.write(json!({"session_id": 1, "chars": "\\n", "yield_time_ms": 30_000}));
    assert_eq!(
        (&first["output_bytes_total"], &first["original_token_count"]),
        (&json!(6), &json!(2))
    );
    assert_eq!(
        (&last["output_bytes_total"], &last["original_token_count"]),
        (&json!(10), &json!(1))
    );
    assert_eq!(last["output"], "678\n");
}

/// rule: architecture.md, Bounds: `cpu_seconds` and `max_rss_kib` of the leader in the exit's
///   fields
#[test]
fn cpu_time_and_peak_memory_of_the_leader_are_told() {
    let mut execd = Execd::start();
    let busy = execd.run("for ((i = 0; i < 300000; i++)); do :; done");
    assert!(busy["cpu_seconds"].as_f64().expect("a number") > 0.02, "{busy}");
    assert!(busy["max_rss_kib"].as_u64().expect("a number") > 500, "{busy}");
}

// ---- Waiting ----------------------------------------------------------------------------

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
    let given = [
        ("1", 250),
        ("251", 251),
        ("30000", 30_000),
        ("30001", 30_000),
        ("9007199254740991", 30_000),
        ("1e3", 1_000),
        ("400.0", 400),
        ("2.5E2", 250),
    ];
    for (id, (text, taken)) in (1_u64..).zip(given) {
        let params = format!(r#"{{"cmd":"true","yield_time_ms":{text}}}"#);
        execd.send_line(&format!(r#"{{"id":{id},"method":"exec_command","params":{params}}}"#));
        assert_eq!(execd.result_of(id)["yield_time_ms"], taken, "{text}");
    }
}

/// rule: unified-exec.md, exec_command, params: The call answers when the yield time is over
#[test]
fn a_command_goes_on_after_its_yield_and_is_polled_to_its_end() {
    let mut execd = Execd::start();
    let first = execd.open("echo one; sleep 0.6; echo two; exit 4");
    assert_eq!(first["output"], "one\n");
    let last = execd.until_exit(session_of(&first));
    assert_eq!((&last["output"], &last["exit_code"]), (&json!("two\n"), &json!(4)));
    assert_eq!(last["log_path"], first["log_path"]);
    assert_eq!(log_of(&last), b"one\ntwo\n");
    execd.failed("write_stdin", json!({"session_id": 1}), "unknown_session");
}

/// rule: unified-exec.md, write_stdin: Observing the exit removes the session
#[test]
fn an_exit_between_two_calls_is_told_by_the_next_one_at_once() {
    let mut execd = Execd::start();
    let session =
        session_of(&execd.open("until [ -e go ]; do sleep 0.01; done; echo done; exit 5"));
    std::fs::write(execd.file("go"), "").expect("a file");
    execd.until_listed_exited(session);
    let started = now();
    let result = execd.write(json!({"session_id": session, "yield_time_ms": 50_000}));
    assert!(started.elapsed() < AT_ONCE);
    assert_eq!((&result["exit_code"], &result["output"]), (&json!(5), &json!("done\n")));
}

// ---- Early exit, ids --------------------------------------------------------------------

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
    assert_eq!(
        execd.result("reserve_session_ids", json!({"up_to": 9})),
        json!({"next_session_id": 10})
    );
    assert_eq!(session_of(&execd.open("sleep 60")), 10);
    // What is lower than the next id is not given any more as it is.
    for up_to in [0, 9, 10] {
        let reply = execd.result("reserve_session_ids", json!({ "up_to": up_to }));
        assert_eq!(reply, json!({"next_session_id": 11}));
    }
    // Sessions keep the ids that they have, and windows and processes are counted with them.
    execd.kill(1);
    let job = execd.result("bash_stream", json!({"command": "true"}));
    assert_eq!(job["sessionId"], 11, "{job}");
    let reply = execd.result("reserve_session_ids", json!({"up_to": 9_007_199_254_740_991_u64}));
    assert_eq!(reply, json!({"next_session_id": 9_007_199_254_740_992_u64}));
}

// ---- Where and how the child runs -------------------------------------------------------

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

/// rule: unified-exec.md, exec_command, params: `name` is a label for lists
#[test]
fn a_name_is_a_label_in_the_list() {
    let mut execd = Execd::start();
    let result = execd.open_with("sleep 60", json!({"name": "my job"}));
    let entry = execd.listed(session_of(&result)).expect("it is listed");
    assert_eq!(entry["name"], "my job");
    let other = session_of(&execd.open("sleep 60"));
    assert_absent(&execd.listed(other).expect("it is listed"), &["name"]);
}

// ---- Terminals --------------------------------------------------------------------------

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

/// rule: unified-exec.md, set_on_exit, resize_session: `resize_session` sets the PTY's size; the
///   child gets SIGWINCH
/// rule: unified-exec.md, set_on_exit, resize_session: `resize_session` clamps like the start
#[test]
fn resize_changes_the_size_that_the_child_sees_and_clamps_like_the_start() {
    let mut execd = Execd::start();
    let cmd = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.02; done";
    for (cols, rows, size) in [(100, 40, "40 100\n"), (1, 9_999, "300 20\n")] {
        let session = execd.open_until_with(cmd, "ready", json!({"tty": true}));
        let params = json!({"session_id": session, "cols": cols, "rows": rows});
        execd.result("resize_session", params);
        let result = execd.until_exit(session);
        assert!(output(&result).ends_with(size), "{result}");
    }
}

// ---- Commands that cannot start ---------------------------------------------------------

/// rule: protocol.md, Errors: A command that cannot start is a result with `exit_code: -1` and
///   `failure_message` with the errno's name
/// rule: architecture.md, Starting a child: A failure between clone and exec is answered at once
///   with its reason
/// rule: architecture.md, Starting a child: A command over the kernel's 128 KiB argument limit: a
///   result with E2BIG and advice
#[test]
fn a_command_that_cannot_start_is_a_result_with_the_systems_reason() {
    let mut execd = Execd::start();
    std::fs::write(execd.file("plain"), "text").expect("a file");
    let plain = execd.file("plain").to_str().expect("UTF-8").to_owned();
    let long = format!("true {}", "x".repeat(200 * KIB));
    for (cmd, more, reason) in [
        ("true", json!({"shell": "nosuchshell"}), "spawn nosuchshell: ENOENT: No such file"),
        ("true", json!({"workdir": "nowhere"}), "nowhere: ENOENT: No such file or directory"),
        ("true", json!({"workdir": "plain"}), "ENOTDIR"),
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
    let fits = format!("echo ok {}", "x".repeat(100 * KIB));
    assert_eq!(execd.run(&fits)["exit_code"], 0);
}

/// rule: architecture.md, Starting a child: A failed start leaves no session, log, descriptor or
///   pid
#[test]
fn a_failed_start_leaves_nothing_behind() {
    let mut execd = Execd::start();
    execd.run("true");
    // What is opened once, on first use, is open after the turn that answered.
    execd.ping();
    let (fds, logs) = (execd.fd_count(), execd.log_files().len());
    for _ in 0..4 {
        for params in [json!({"shell": "nosuchshell"}), json!({"workdir": "nowhere", "tty": true})]
        {
            execd.run_with("true", params);
        }
        execd.run(&"x".repeat(200 * KIB));
    }
    eventually("no descriptor is left", || execd.fd_count() <= fds);
    assert_eq!(execd.log_files().len(), logs);
    assert_eq!(execd.result("list_sessions", json!({}))["sessions"], json!([]));
    assert_eq!(execd.run("echo ok")["output"], "ok\n");
}

// ---- Ends by a signal -------------------------------------------------------------------

/// rule: unified-exec.md, exec_command, result: `signal` names the signal; no 128+n
/// rule: architecture.md, Bounds: A SIGKILL that execd did not send gets a `note`
#[test]
fn a_signal_death_has_no_exit_code() {
    let mut execd = Execd::start();
    for signal in ["SIGTERM", "SIGINT", "SIGHUP", "SIGSEGV", "SIGUSR1", "SIGKILL"] {
        let result = execd.run(&format!("kill -{} $$; sleep 60", &signal[3..]));
        assert_eq!(result["signal"], signal);
        assert_absent(&result, &["exit_code"]);
        let header = result["header"].as_str().expect("text");
        assert!(header.starts_with(&format!("[exited]\nsignal: {signal}\n")), "{header}");
        if signal == "SIGKILL" {
            let note = result["note"].as_str().unwrap_or_else(|| panic!("no note: {result}"));
            assert!(note.contains("out-of-memory") || note.contains("SIGKILL"), "{note}");
            assert!(header.contains(&format!("\nnote: {note}\n")));
        } else {
            assert_absent(&result, &["note"]);
        }
    }
}

// ---- Truncation -------------------------------------------------------------------------

/// rule: unified-exec.md, Truncation, retention, text: Truncation keeps the tail: whole lines, at
///   most 2,000
/// rule: unified-exec.md, Truncation, retention, text: Truncation keeps at most 50 KiB
#[test]
fn what_is_within_the_bounds_is_whole() {
    let mut execd = Execd::start();
    let lines: String = (1..=2_000).map(|i| format!("{i}\n")).collect();
    let wide =
        "yes 123456789012345678901234567890123456789012345678901234567890123 | head -c 51200";
    let bytes = format!("{}\n", &"1234567890".repeat(7)[..63]).repeat(800);
    for (cmd, expected) in [("seq 1 2000", lines), (wide, bytes)] {
        let result = execd.run(cmd);
        assert!(output(&result) == expected, "{cmd}: {result}");
        assert_absent(&result, &["truncation", "footer"]);
    }
}

/// rule: unified-exec.md, exec_command, result: footer: `[Showing lines A-B of N. Full output:
///   PATH]`
/// rule: unified-exec.md, exec_command, result: footer: ` (50.0KB limit)` when bytes cut it
/// rule: unified-exec.md, exec_command, result: footer: `[Showing last 50.0KB of final line (line N
///   is larger …)]`
/// rule: unified-exec.md, Truncation, retention, text: A truncated text has no newline at its end
/// rule: unified-exec.md, Truncation, retention, text: A single last line over 50 KiB keeps its
///   last 50 KiB at a UTF-8 boundary (`lastLinePartial`)
/// rule: architecture.md, The keeper: A reply that says exited or points at the log is written when
///   the log is complete up to its last byte
#[test]
fn more_keeps_its_tail_and_the_footer_says_what_is_shown_of_how_much() {
    let mut execd = Execd::start();
    let lines: Vec<String> = (98_001..=100_000).map(|i| i.to_string()).collect();
    let wide: Vec<String> = (395..=900).map(|i| format!("{i:0100}")).collect();
    let of_line = |line: u64| {
        format!("last 50.0KB of final line (line {line} is larger than the 50.0KB limit)")
    };
    for (cmd, expected, cut, shown) in [
        (
            "seq 1 100000",
            lines.join("\n"),
            truncation("lines", (100_000, 588_895), (2_000, 12_000), false),
            "lines 98001-100000 of 100000".to_owned(),
        ),
        (
            "for ((i = 1; i <= 900; i++)); do printf '%0100d\\n' $i; done",
            wide.join("\n"),
            truncation("bytes", (900, 90_900), (506, 51_105), false),
            "lines 395-900 of 900 (50.0KB limit)".to_owned(),
        ),
        (
            "echo a; echo b; head -c 59999 /dev/zero | tr '\\0' x; printf E",
            format!("{}E", "x".repeat(50 * KIB - 1)),
            truncation("bytes", (3, 60_004), (1, 51_200), true),
            of_line(3),
        ),
        (
            "for ((i = 0; i < 20000; i++)); do printf €; done",
            "€".repeat(17_066),
            truncation("bytes", (1, 60_000), (1, 51_198), true),
            of_line(1),
        ),
    ] {
        let result = execd.run(cmd);
        assert!(output(&result) == expected, "{cmd}: {result}");
        assert_eq!(result["truncation"], cut, "{cmd}");
        let log = log_path(&result);
        let footer = format!("[Showing {shown}. Full output: {}]", log.display());
        assert_eq!(result["footer"], footer, "{cmd}");
        assert_prints(&log, cmd);
        assert_absent(&result, &["log_complete", "log_truncated"]);
    }
}

/// rule: unified-exec.md, Truncation, retention, text: Line numbers and totals count this call's
///   text, not the file
#[test]
fn line_numbers_are_of_this_calls_text() {
    let mut execd = Execd::start();
    let session = execd.open_until("seq 1 100; read x; seq 1 2001", "\n100\n");
    let params = json!({"session_id": session, "chars": "\\n", "yield_time_ms": 30_000});
    let result = execd.write(params);
    let lines = output(&result).lines().count();
    // The first call took 1 to 100, unless it was slower than that output.
    let total = result["truncation"]["totalLines"].as_u64().expect("a number");
    assert!(total == 2_001 || total == 2_101, "{}", result["truncation"]);
    assert_eq!(lines, 2_000);
}

// ---- Retention --------------------------------------------------------------------------

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

/// rule: unified-exec.md, exec_command, result: `omitted_bytes` only when the retention dropped
///   bytes since the last call
#[test]
fn omitted_bytes_are_those_since_the_last_call() {
    let mut execd = Execd::start();
    let cmd = "head -c 2097152 /dev/zero | tr '\\0' x; echo; echo ready; read x; echo rest";
    let session = execd.open_until(cmd, "ready");
    let first = execd.poll_now(session);
    let last = execd.write(json!({"session_id": session, "chars": "\\n", "yield_time_ms": 30_000}));
    assert!(output(&first).ends_with("ready\n") || output(&first).is_empty(), "{first}");
    assert_eq!(last["output"], "rest\n");
    assert_absent(&last, &["omitted_bytes"]);
}
