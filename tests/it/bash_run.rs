//! bash in the foreground: pi's texts for every way to end, what a command gets, timeouts, being
//! cancelled, progress, limits.

use crate::common::*;
use crate::window_help::*;
use serde_json::{Value, json};

fn numbers(first: u64, last: u64) -> String {
    (first..=last).map(|i| format!("{i}\n")).collect()
}

// ---- pi's texts -------------------------------------------------------------------------

/// rule: bash.md, bash and tmux: pi's texts, case by case: success, empty output, exit 3, timeout,
///   3,000 lines, 90 KB, a 70 KB line, streamed lines, stderr mixed in, a signal, stdin
/// rule: bash.md, bash and tmux: The tail, 2,000 lines or 50 KiB, with pi's notice that names the
///   log; counts of the whole output
/// rule: bash.md, bash and tmux: Timeout and kill: an error, all of it is ended
#[test]
fn every_end_has_the_text_of_pis_bash() {
    let mut execd = Execd::start();
    let wide: String = (395..=900).map(|i| format!("{i:0100}\n")).collect();
    let kill = json!({"timeout": 2, "timeoutAction": "kill"});
    let cut = |shown: &str, what: &str| format!("{shown}\n[Showing {what}. Full output: LOG]");
    let thousands =
        cut(&numbers(1001, 3000), "lines 1001-3000 of 3000") + "\n\nCommand exited with code 3";
    let hundreds = cut(&wide, "lines 395-900 of 900 (50.0KB limit)");
    let line = cut(&("x".repeat(51_200) + "\n"), "last 50.0KB of line 1 (line is 68.4KB)");
    // The texts are those that pi 1.5.2 wrote for these commands; LOG stands for the log's path.
    for (command, status, expected) in [
        ("echo hi", "completed", "hi\n"),
        ("true", "completed", "(no output)"),
        ("echo oops >&2; exit 3", "failed", "oops\n\n\nCommand exited with code 3"),
        ("echo before; sleep 30", "timed_out", "before\n\n\nCommand timed out after 2 seconds"),
        ("for i in 1 2; do echo $i; sleep 0.05; done", "completed", "1\n2\n"),
        ("echo out; echo err >&2; echo out", "completed", "out\nerr\nout\n"),
        ("kill -9 $$", "failed", "(no output)\n\nCommand exited with code 137"),
        ("cat; echo read nothing", "completed", "read nothing\n"),
        ("seq 1 2000", "completed", &numbers(1, 2000)),
        ("seq 1 3000; exit 3", "failed", &thousands),
        ("for i in $(seq 1 900); do printf '%0100d\\n' $i; done", "completed", &hundreds),
        ("head -c 70000 /dev/zero | tr '\\0' x", "completed", &line),
    ] {
        let more = if status == "timed_out" { kill.clone() } else { json!({}) };
        let result = bash_with(&mut execd, command, more);
        assert_eq!(result["status"], status, "{command}");
        assert_eq!(
            crate::common::settled_text(text(&result)).replace(&log(&result), "LOG"),
            expected,
            "{command}"
        );
        assert_eq!(result["is_error"], status != "completed", "{command}");
    }
}

// ---- What a command gets ----------------------------------------------------------------

/// rule: bash.md, bash and tmux: stdin from /dev/null, stdout and stderr merged; `tty` gives a PTY
/// rule: bash.md, bash and tmux: `tty: true` per call: attachable, polled and peeked as others,
///   clean text
#[test]
fn stdin_is_dev_null_both_streams_are_one_pipe_and_a_terminal_is_given_where_it_is_asked_for() {
    let mut execd = Execd::start();
    let result = bash(&mut execd, "readlink /proc/$$/fd/0; readlink /proc/$$/fd/1 /proc/$$/fd/2");
    let lines: Vec<&str> = text(&result).lines().collect();
    assert_eq!(lines[0], "/dev/null");
    assert!(lines[1].starts_with("pipe:[") && lines[1] == lines[2], "{lines:?}");
    let result = within(&mut execd, "tty && stty size && echo $TERM", json!({"tty": true}));
    let lines: Vec<&str> = text(&result).lines().collect();
    assert!(lines[0].starts_with("/dev/pts/"), "{lines:?}");
    assert_eq!(lines[1..], ["30 120", "xterm-256color"]);
    for (given, has) in [(true, "yes"), (false, "no")] {
        let more = json!({"tty": given, "context": {"tty": !given}});
        let result = bash_with(&mut execd, "test -t 0 && echo yes || echo no", more);
        assert_eq!(text(&result).trim(), has, "the call beats the context");
    }
}

/// rule: bash.md, bash and tmux: cwd, env (null unsets), shellPath, shellCommandPrefix
#[test]
fn directory_environment_shell_and_prefix_are_the_contexts() {
    let mut execd = Execd::with(&[], &[("GONE", "x"), ("KEPT", "y")]);
    std::fs::create_dir(execd.file("sub")).expect("a directory");
    for (command, context, expected) in [
        ("pwd", json!({"cwd": "sub"}), format!("{}\n", execd.file("sub").display())),
        ("pwd", json!({"cwd": "/"}), "/\n".to_owned()),
        (
            "echo $KEPT,$NEW,${GONE-unset}",
            json!({"env": {"NEW": "z", "GONE": null}}),
            "y,z,unset\n".to_owned(),
        ),
        ("echo $0", json!({"shellPath": "/bin/sh"}), "/bin/sh\n".to_owned()),
        (
            "hello world",
            json!({"shellCommandPrefix": "hello() { echo \"<$1>\"; }"}),
            "<world>\n".to_owned(),
        ),
    ] {
        let result = within(&mut execd, command, context.clone());
        assert_eq!(text(&result), expected, "{command} {context}");
        let first = command.split(' ').next().expect("a word");
        assert_eq!(result["name"], first, "no text shows the prefix");
    }
}

// ---- Time -------------------------------------------------------------------------------

/// rule: bash.md, bash and tmux: timeout: default 30, at most 60, both configurable
/// rule: bash.md, bash and tmux: `timeout: 0` and negative ones are refused with what is allowed
/// rule: bash.md, bash and tmux: Every field of a context changes what it should
#[test]
fn timeouts_are_the_contexts_and_capped() {
    let mut execd = Execd::start();
    for (timeout, context, seconds) in [
        (json!(null), json!({"defaultTimeoutSeconds": 0.3}), "0.3"),
        (json!(600), json!({"maxTimeoutSeconds": 0.4}), "0.4"),
        (json!(0.000_1), json!({}), "0.1"),
        (json!(0.25), json!({"defaultTimeoutSeconds": 30}), "0.25"),
    ] {
        let mut params = json!({"command": "sleep 30", "timeoutAction": "kill"});
        params["context"] = context;
        if !timeout.is_null() {
            params["timeout"] = timeout;
        }
        let result = execd.result("bash", params.clone());
        let expected = format!("Command timed out after {seconds} seconds");
        assert_eq!(text(&result), expected, "{params}");
    }
    let context = json!({"defaultTimeoutSeconds": 5, "maxTimeoutSeconds": 9});
    let params = json!({"command": "x", "timeout": -3.5, "context": context});
    let allowed = "Invalid timeout: must be more than 0 seconds (more than 9 counts as 9); without \
                   one it is 5";
    assert_eq!(execd.refused("bash", params, "timeout"), allowed);
}

// ---- Being cancelled --------------------------------------------------------------------

/// rule: protocol.md, Several clients, cancel in the families: bash and agent_execute answer a
///   cancel as their documents say
/// rule: bash.md, bash and tmux: Abort: the command is killed, `Command aborted`
/// rule: bash.md, bash and tmux: Nothing is left untracked
#[test]
fn cancel_ends_the_command_and_all_that_it_started() {
    let mut execd = Execd::start();
    for (command, expected) in [
        ("trap '' TERM INT; sleep 300 & echo up; wait; sleep 300", "up\n\n\nCommand aborted"),
        ("sleep 300", "Command aborted"),
    ] {
        let id = begin(&mut execd, command, json!({"stream": true}));
        execd.notification("session_started", |_| true);
        assert!(execd.cancel(id));
        let result = execd.result_of(id);
        assert_eq!(refusal(&result), expected);
        assert_eq!((&result["status"], &result["signal"]), (&json!("aborted"), &json!("SIGKILL")));
        assert_absent(&result, &["exit_code"]);
        execd.until_no_session_process();
    }
    assert!(execd.notified("window_exited").is_empty());
}

// ---- Progress ---------------------------------------------------------------------------

/// rule: bash.md, bash and tmux: `stream: true` sends progress with the text so far, every
///   updateIntervalMs
#[test]
fn progress_has_the_text_so_far_and_none_follows_the_reply() {
    let mut execd = Execd::start();
    let first = until_file("first");
    let second = until_file("second");
    let command = format!("echo one; {first}; printf '\\033[1mtwo\\033[0m\\n'; {second}; exit 3");
    let id = begin(&mut execd, &command, json!({"stream": true}));
    let note = execd.notification("progress", |note| note["request_id"] == id);
    assert_fields_but_log(
        &note,
        &["request_id", "session_id", "pid", "tail", "total_bytes", "elapsed_ms", "running"],
    );
    assert_eq!((&note["tail"], &note["running"]), (&json!("one\n"), &json!(true)));
    go(&execd, "first");
    let note = execd.notification("progress", |note| note["tail"] == "one\ntwo\n");
    assert_eq!(note["session_id"], 1);
    go(&execd, "second");
    execd.result_of(id);
    let place = execd.reply_position(id);
    execd.ping();
    assert!(!execd.any_after(place, |line| line["method"] == "progress"));
    assert_eq!(execd.told_of("progress", id).len(), 2, "only when output came");
}

/// rule: bash.md, bash and tmux: `stream: true` sends progress with the text so far, every
///   updateIntervalMs
#[test]
fn the_pause_between_progress_is_the_contexts() {
    let mut execd = Execd::start();
    let slow = json!({"stream": true, "context": {"updateIntervalMs": 60_000}});
    let ticks = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done";
    let id = begin(&mut execd, ticks, slow);
    execd.result_of(id);
    assert_eq!(execd.told_of("progress", id).len(), 1, "the first comes at once, no other is due");
}

// ---- Limits -----------------------------------------------------------------------------

/// rule: bash.md, bash and tmux: 64 run at once, with a cap of their own
#[test]
fn sixty_four_run_at_once_and_take_no_place_of_others() {
    let mut execd = Execd::with(&["--max-sessions", "8"], &[]);
    let opened = execd.open("read x; echo still here");
    let command = until_file("go");
    for _ in 0..64 {
        background(&mut execd, &command);
    }
    let message = execd.failed("bash", json!({"command": "true"}), "too_many_sessions");
    assert!(message.starts_with("64 commands of bash run"), "{message}");
    assert_eq!(listed(&mut execd).len(), 64);
    let job = execd.result("bash_stream", json!({"command": "echo job"}));
    assert_eq!(job["status"], "completed", "other families have their own");
    execd.open("sleep 300");
    assert!(execd.input_until(session_of(&opened), "\\n", "still").contains("still here"));
    go(&execd, "go");
    execd.notification("window_exited", |_| true);
    assert_eq!(text(&bash(&mut execd, "echo again")), "again\n");
}

/// rule: bash.md, bash and tmux: A window's memory is bounded
#[test]
fn output_in_memory_is_bounded() {
    const WINDOWS: u64 = 16;
    let mut execd = Execd::start();
    // The most that may be asked for, and more output than that.
    let context = json!({"maxOutputBytes": 10_000_000, "bashContextLines": 1_000_000});
    let command = "head -c 4000000 /dev/zero | tr '\\0' x; echo; exec sleep 1000";
    for _ in 0..WINDOWS {
        background_with(&mut execd, command, json!({"context": context}));
    }
    eventually("all of it was read", || {
        let info = execd.result("server_info", json!({}));
        info["counters"]["bytes_read"].as_u64().expect("a number") >= WINDOWS * 4_000_001
    });
    for window in 1..=WINDOWS {
        let more = json!({"context": context, "all": true});
        let seen = tmux_on(&mut execd, "peek", &format!("@{window}"), more);
        assert!((262_144..263_000).contains(&text(&seen).len()), "{}", text(&seen).len());
    }
    let (peak, limit) = (execd.peak_rss_kib(), (4 + 20) * 1024 + WINDOWS * 23 * 1024 / 10);
    assert!(peak <= limit, "{peak} KiB at the most, {limit} KiB allowed");
}

// ---- Passwords --------------------------------------------------------------------------

const ASKS_TWICE: &str =
    "read -rsp 'PIN: ' a; echo; read -rsp 'again: ' b; echo; echo \"[${#a} ${#b}]\"";

fn begin_asking(execd: &mut Execd, command: &str, more: Value) -> u64 {
    begin(execd, command, merged(json!({"tty": true, "tellPassword": true}), more))
}

/// Waits until a call is told that a password is asked for; gives the session.
fn until_asked(execd: &mut Execd, request: u64) -> u64 {
    let asked = execd.notification("password_asked", |note| note["request_id"] == request);
    assert_fields(&asked, &["request_id", "session_id"]);
    let session = asked["session_id"].as_u64().expect("a session");
    let row = execd.listed(session).expect("it is listed");
    assert_eq!(row["state"], "waiting_for_password", "{row}");
    session
}

fn give_password(execd: &mut Execd, session: u64, typed: &str) {
    use base64::Engine as _;
    let data = base64::engine::general_purpose::STANDARD.encode(format!("{typed}\r"));
    let params = json!({"session_id": session, "data_b64": data, "secret": true});
    execd.result("attach_input", params);
}

/// rule: protocol.md, cancel: `leave`: a foreground command of `bash` goes on in the background
#[test]
fn a_foreground_command_is_left_in_the_background_where_nobody_gives_the_password() {
    let mut execd = Execd::start();
    let request = begin_asking(&mut execd, ASKS_TWICE, json!({}));
    let session = until_asked(&mut execd, request);
    let reason = "password asked; the person declined";
    execd.result("cancel", json!({"id": request, "reason": reason, "leave": true}));
    let result = execd.result_of(request);
    assert_eq!(result["status"], "background", "{result}");
    assert_eq!(result["state"], "waiting_for_password", "{result}");
    let said = text(&result);
    assert!(said.starts_with(&format!("wait: cancelled ({reason})\nPIN: \n\n")), "{said}");
    let advice = format!("Still running in background window @{session}. It gets no input here: ");
    assert!(said.contains(&advice), "{said}");
    assert_eq!(listed(&mut execd), [format!("@{session}")], "it goes on");
    for typed in ["one", "two"] {
        give_password(&mut execd, session, typed);
    }
    assert_eq!(ended(&mut execd, &format!("@{session}"))["exit_code"], 0);
}
