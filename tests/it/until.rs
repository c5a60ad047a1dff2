//! `until` and `stop` on exec_command and write_stdin: what ends a wait, what the reply says of it,
//! and that output is told once whatever ends a wait.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use crate::common::outside::{Trace, can_trace};
use crate::common::*;
use serde_json::{Value, json};

/// A command that prints what is written to a pipe of the file system, which the test holds open.
struct Writer {
    session: u64,
    pipe: File,
    opened: Value,
}

impl Writer {
    /// Starts it; `more` are params of exec_command.
    fn start(execd: &mut Execd, more: Value) -> Self {
        let path = execd.file("pieces");
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
        assert!(made.success());
        // Both ends are held open, so that neither side waits for the other.
        let pipe = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path)
            .expect("the pipe opens");
        let params = merged(json!({"cmd": "exec cat < pieces", "stdin": "null"}), more);
        let opened = execd.open_now(&params);
        Self { session: session_of(&opened), pipe, opened }
    }

    /// Has the command print these bytes, and waits until execd has read them.
    fn print(&mut self, execd: &mut Execd, bytes: &[u8]) {
        let before = total_of(execd, self.session);
        self.pipe.write_all(bytes).expect("the pipe has room");
        let wanted = before + bytes.len() as u64;
        eventually("execd has read it", || total_of(execd, self.session) >= wanted);
    }
}

/// How many bytes of output a session has written, as a listing tells.
fn total_of(execd: &mut Execd, session: u64) -> u64 {
    let row = execd.listed(session).expect("the session is listed");
    row["output_bytes_total"].as_u64().expect("a number")
}

/// A poll that waits for this.
fn poll(execd: &mut Execd, session: u64, conditions: Value) -> u64 {
    let params = json!({"session_id": session, "yield_time_ms": 50_000});
    execd.start_request("write_stdin", merged(params, conditions))
}

/// Runs a command that waits for this.
fn run(execd: &mut Execd, cmd: &str, conditions: Value) -> Value {
    let params = json!({"cmd": cmd, "yield_time_ms": 50_000});
    execd.exec(merged(params, conditions))
}

/// Waits until the shell has ended that has written its pid into the file `shell`.
fn until_shell_ended(execd: &Execd) {
    let file = execd.file("shell");
    until_file_has(&file, "\n");
    let pid = std::fs::read_to_string(&file).expect("the file is there");
    let pid: i32 = pid.trim().parse().expect("a pid");
    eventually("the shell has ended", || !is_alive(pid));
}

/// The line of the header that tells what ended the wait.
fn wait_line(result: &Value) -> &str {
    let header = result["header"].as_str().expect("a header");
    header
        .lines()
        .find_map(|line| line.strip_prefix("wait: "))
        .unwrap_or_else(|| panic!("{result}"))
}

/// Shows that the wait ended so, by this field.
fn assert_wait(result: &Value, outcome: &str, by: &str) {
    let wait = &result["wait"];
    assert_eq!((&wait["outcome"], &wait["by"]), (&json!(outcome), &json!(by)), "{result}");
}

// ---- What ends a wait -------------------------------------------------------------------

/// rule: waits.md, until and stop: `text`: this string stands in a line of the clean output
/// rule: waits.md, The reply: `wait_status` is `condition_met`
#[test]
fn a_text_ends_the_wait_and_the_reply_says_where_it_stands() {
    let mut execd = Execd::start();
    let cmd = "printf 'one\\nit is \\033[1mready\\033[0m now\\n'; sleep 600";
    let result = run(&mut execd, cmd, json!({"until": {"text": "is ready"}}));
    assert_wait(&result, "matched", "text");
    assert_eq!(result["wait_status"], "condition_met");
    let wait = &result["wait"];
    assert_eq!(wait["text"], "it is ready now");
    assert_eq!((&wait["index"], &wait["session_id"]), (&json!(0), &result["session_id"]));
    assert_eq!((&wait["offset"], &wait["present_at_entry"]), (&json!(4), &json!(false)));
    assert_eq!(wait["saw_new_output"], true);
    assert_eq!(wait["effective_timeout_ms"], 50_000);
    assert_absent(wait, &["captures", "port", "status", "state", "why"]);
    assert_eq!(output(&result), "one\nit is ready now\n");
    assert_eq!(wait_line(&result), "matched \"is ready\" → it is ready now");
}

/// rule: waits.md, until and stop: An exit of the session always ends a wait, whatever was asked;
///   the outcome is `exited`
#[test]
fn an_exit_ends_the_wait() {
    let mut execd = Execd::start();
    let result = run(&mut execd, "echo hi; exit 3", json!({"until": {"text": "nowhere"}}));
    assert_eq!(result["wait"]["outcome"], "exited", "{result}");
    assert_eq!((&result["wait_status"], &result["exit_code"]), (&json!("completed"), &json!(3)));
    assert_absent(&result["wait"], &["by", "index", "text", "offset", "present_at_entry"]);
    assert_eq!(wait_line(&result), "exited");
}

/// rule: waits.md, until and stop: The yield time is the deadline as ever: the outcome `deadline`
///   is no error
/// rule: waits.md, until and stop: The least wait is 5 s then
#[test]
fn a_deadline_ends_the_wait_and_5_s_is_the_least() {
    let mut execd = Execd::start();
    let params = json!({"cmd": "echo hi; sleep 600", "yield_time_ms": 1,
                        "until": {"text": "nowhere"}});
    let result = execd.exec(params);
    assert_eq!(result["wait"]["outcome"], "deadline", "{result}");
    assert_eq!(result["wait"]["effective_timeout_ms"], 5_000);
    assert_eq!(result["wait_status"], "deadline_reached");
    assert_eq!(result["yield_time_ms"], 5_000);
    assert_eq!(wait_line(&result), "deadline after 5000 ms");
    assert_eq!(output(&result), "hi\n");
}

/// rule: waits.md, until and stop: a call may wait as long as an empty poll, also `exec_command`
///   and `write_stdin` with input
#[test]
fn who_says_what_he_waits_for_may_wait_as_long_as_a_poll() {
    let mut execd = Execd::start();
    let until = json!({"text": "up"});
    let far = 3_600_000;
    let result = execd
        .exec(json!({"cmd": "echo up; exec cat", "yield_time_ms": far, "until": until,
                                   "on_impossible": "wait"}));
    assert_eq!(result["wait"]["effective_timeout_ms"], 1_800_000, "{result}");
    let input = |more| merged(json!({"session_id": 1, "chars": "up\n", "until": until}), more);
    for (more, ms) in [
        (json!({"yield_time_ms": far}), 1_800_000),
        (json!({"yield_time_ms": far, "max_empty_poll_ms": 60_000}), 60_000),
        (json!({}), 5_000),
    ] {
        let result = execd.write(input(more));
        assert_eq!(result["wait"]["outcome"], "matched", "{result}");
        assert_eq!(result["wait"]["effective_timeout_ms"], ms, "{result}");
    }
}

/// rule: waits.md, The reply: `outcome`: `cancelled`
/// rule: waits.md, The reply: Of a wait that was cancelled `wait_status: cancelled` is that line
#[test]
fn a_cancelled_wait_says_so_and_takes_nothing() {
    let mut execd = Execd::start();
    let mut writer = Writer::start(&mut execd, json!({}));
    let request = poll(&mut execd, writer.session, json!({"until": {"text": "nowhere"}}));
    writer.print(&mut execd, b"some\n");
    execd.no_reply_yet(request);
    assert!(execd.cancel(request));
    let result = execd.result_of(request);
    assert_eq!(result["wait"]["outcome"], "cancelled", "{result}");
    assert_eq!(output(&result), "");
    let told = result["header"].as_str().expect("a header").lines();
    let of_wait: Vec<&str> = told.filter(|line| line.starts_with("wait")).collect();
    assert_eq!(of_wait, ["wait_status: cancelled"], "{result}");
    let next = poll(&mut execd, writer.session, json!({"until": {"text": "some"}}));
    let result = execd.result_of(next);
    assert_eq!(result["wait"]["present_at_entry"], true, "{result}");
    assert_eq!(output(&result), "some\n");
}

/// bash_stream and bash had no `wait` then.
/// rule: waits.md, The reply: of a command that could not be started the outcome is `exited`
#[test]
fn the_wait_for_a_command_that_could_not_be_started_is_over() {
    let mut execd = Execd::start();
    let until = json!({"text": "nowhere"});
    let nowhere = "/nonexistent";
    let stream = json!({"command": "true", "workdir": nowhere, "until": until, "yieldMs": 45_000});
    let context = json!({"cwd": nowhere});
    let bash = json!({"command": "true", "context": context, "until": until, "timeout": 45});
    let unified =
        json!({"cmd": "true", "workdir": nowhere, "until": until, "yield_time_ms": 45_000});
    for (method, mut params, ms) in [
        ("bash_stream", stream, "effectiveTimeoutMs"),
        ("bash", bash, "effectiveTimeoutMs"),
        ("exec_command", unified, "effective_timeout_ms"),
    ] {
        let result = execd.result(method, params.clone());
        let wait = &result["wait"];
        assert_eq!([&wait["outcome"], &wait[ms]], [&json!("exited"), &json!(45_000)], "{result}");
        params.as_object_mut().expect("params").remove("until");
        assert_absent(&execd.result(method, params), &["wait"]);
    }
    // What is remembered of it says nothing of a wait that nobody asked for.
    assert_absent(&execd.result("poll_process", json!({"sessionId": 1})), &["wait"]);
}

/// rule: waits.md, The reply: `outcome`: `cancelled`
#[test]
fn the_end_of_execd_ends_the_wait() {
    let mut execd = Execd::start();
    let writer = Writer::start(&mut execd, json!({}));
    let request = poll(&mut execd, writer.session, json!({"until": {"text": "nowhere"}}));
    execd.no_reply_yet(request);
    execd.start_request("shutdown", json!({}));
    let result = execd.result_of(request);
    assert_eq!(result["wait"]["outcome"], "cancelled", "{result}");
    assert_eq!(result["wait_status"], "shutting_down");
}

// ---- What is looked at ------------------------------------------------------------------

/// rule: waits.md, What is looked at: What is there already counts at once (`present_at_entry`)
#[test]
fn output_that_no_call_has_told_counts_at_once_and_what_was_told_does_not() {
    let mut execd = Execd::start();
    let mut writer = Writer::start(&mut execd, json!({}));
    writer.print(&mut execd, b"old word\n");
    assert_eq!(output(&execd.poll_now(writer.session)), "old word\n");
    writer.print(&mut execd, b"a new word here\n");
    let request = poll(&mut execd, writer.session, json!({"until": {"text": "word"}}));
    let result = execd.result_of(request);
    assert_wait(&result, "matched", "text");
    let wait = &result["wait"];
    assert_eq!((&wait["text"], &wait["offset"]), (&json!("a new word here"), &json!(9)));
    assert_eq!((&wait["present_at_entry"], &wait["saw_new_output"]), (&json!(true), &json!(false)));
    let request = poll(&mut execd, writer.session, json!({"until": {"text": "word"}}));
    execd.no_reply_yet(request);
    writer.print(&mut execd, b"a word\n");
    let result = execd.result_of(request);
    assert_eq!(result["wait"]["present_at_entry"], false, "{result}");
    assert_eq!((&result["wait"]["offset"], output(&result)), (&json!(25), "a word\n"));
}

/// rule: waits.md, What is looked at: the outcome is `matched` then, and the same reply tells the
///   exit
#[test]
fn a_match_in_what_an_ended_session_has_left_is_told_with_its_exit() {
    let mut execd = Execd::start();
    let opened = execd.open_now(&json!({"cmd": format!("{}; echo ok; exit 4", until_file("go"))}));
    go(&execd, "go");
    execd.until_listed_exited(session_of(&opened));
    let request = poll(&mut execd, session_of(&opened), json!({"until": {"text": "ok"}}));
    let result = execd.result_of(request);
    assert_wait(&result, "matched", "text");
    assert_eq!((&result["wait_status"], &result["exit_code"]), (&json!("completed"), &json!(4)));
    assert_eq!(result["wait"]["present_at_entry"], true);
    assert_absent(&result, &["session_id"]);
    assert_eq!(output(&result), "ok\n");
}

/// rule: waits.md, What is looked at: What the retention has dropped before it was looked at is
///   never matched
#[test]
fn what_the_retention_has_dropped_is_not_matched() {
    let mut execd = Execd::start();
    let fill = "head -c 2000000 /dev/zero | tr '\\0' x";
    let cmd = format!("{}; {fill}; echo needle; {fill}; echo; echo end", until_file("go"));
    let opened = execd.open_now(&json!({"cmd": cmd}));
    go(&execd, "go");
    execd.until_listed_exited(session_of(&opened));
    let request =
        poll(&mut execd, session_of(&opened), json!({"until": {"text": ["needle", "end"]}}));
    let result = execd.result_of(request);
    assert_eq!(result["wait"]["text"], "end", "{}", result["wait"]);
    assert_eq!(result["wait"]["offset"], 4_000_008);
}

/// rule: waits.md, What is looked at: What is there already counts at once
#[test]
fn a_match_that_comes_with_the_deadline_counts() {
    let mut execd = Execd::start();
    let mut writer = Writer::start(&mut execd, json!({}));
    let params = json!({"session_id": writer.session, "yield_time_ms": 5_000,
                        "until": {"text": "in time"}});
    let request = execd.start_request("write_stdin", params);
    execd.ping();
    let since = now();
    send_signal(execd.pid(), libc::SIGSTOP);
    writer.pipe.write_all(b"in time\n").expect("the pipe has room");
    eventually("the deadline is over", || since.elapsed().as_millis() > 5_100);
    send_signal(execd.pid(), libc::SIGCONT);
    let result = execd.result_of(request);
    assert_wait(&result, "matched", "text");
}

/// The same where the moment of `yield_until` passes between the events of a turn and its end: the
/// wait was judged by a clock that had been read anew, with the match unread.
#[test]
fn a_match_that_comes_with_a_moment_of_the_wall_clock_counts() {
    if !can_trace() {
        return;
    }
    // A machine that is too slow to write in time shows nothing: once more then. That both clocks
    // are looked at is shown beside `is_late` as well.
    for _ in 0..3 {
        if let Some(result) = matched_before_a_moment() {
            return assert_wait(&result, "matched", "text");
        }
    }
    crate::common::outside::left_out("this machine is too slow");
}

/// Has execd stand still once it has noted that the end of a wait is near, writes what is waited
/// for, and lets it go on after the moment. None: it was written too late.
fn matched_before_a_moment() -> Option<Value> {
    let mut execd = Execd::start();
    let mut writer = Writer::start(&mut execd, json!({}));
    let calls = "epoll_wait,epoll_pwait";
    let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:delay_exit=300ms"));
    let trace = Trace::attach(execd.pid(), &["-e", &trace, "-e", &inject]);
    let moment = wall_clock() + Duration::from_secs(4);
    let params = json!({"session_id": writer.session, "yield_until": utc_stamp(moment),
                        "until": {"text": "in time"}, "on_impossible": "wait"});
    let request = execd.start_request("write_stdin", params);
    let pid = execd.pid();
    // Two seconds before the moment the turns of the request are over.
    let near = moment - Duration::from_secs(2);
    eventually("it waits", || wall_clock() > near && process_state(pid) == Some('S'));
    while process_state(pid) == Some('S') && wall_clock() < moment {
        std::thread::yield_now();
    }
    writer.pipe.write_all(b"in time\n").expect("the pipe has room");
    let in_time = wall_clock() < moment;
    let result = execd.result_of(request);
    trace.detach();
    in_time.then_some(result)
}

// ---- Several waits, and what is told ----------------------------------------------------

/// rule: waits.md, The reply: a match ends a wait, it does not cut the text
#[test]
fn output_is_told_once_whatever_ends_the_waits() {
    let mut execd = Execd::start();
    let mut writer = Writer::start(&mut execd, json!({}));
    let mut told = String::new();
    let mut written = String::new();
    for round in 0..12 {
        let request =
            poll(&mut execd, writer.session, json!({"until": {"text": format!("mark {round} ")}}));
        let piece = format!("before {round}\nmark {round} and\nafter {round}\n");
        writer.print(&mut execd, piece.as_bytes());
        written.push_str(&piece);
        let result = execd.result_of(request);
        assert_wait(&result, "matched", "text");
        told.push_str(output(&result));
        if round % 3 == 0 {
            told.push_str(output(&execd.poll_now(writer.session)));
        }
    }
    told.push_str(output(&execd.poll_now(writer.session)));
    assert_eq!(told, written);
    until_logged(&writer.opened, "after 11\n");
    assert_eq!(log_of(&writer.opened), written.as_bytes());
}

/// rule: waits.md, What is looked at: The output that this call would tell
#[test]
fn several_waits_of_one_session_end_each_by_its_own() {
    let mut execd = Execd::start();
    let mut writer = Writer::start(&mut execd, json!({}));
    let first = poll(&mut execd, writer.session, json!({"until": {"text": "alpha"}}));
    let second = poll(&mut execd, writer.session, json!({"until": {"regex": "^be+ta$"}}));
    let third = poll(&mut execd, writer.session, json!({"stop": {"text": "beta"}}));
    writer.print(&mut execd, b"beta\n");
    let (one, other) = (execd.result_of(second), execd.result_of(third));
    assert_wait(&one, "matched", "regex");
    assert_wait(&other, "stopped", "text");
    let told = [output(&one), output(&other)];
    assert!(told.contains(&"beta\n") || told.concat() == "beta\n", "told once: {told:?}");
    assert_eq!(told.concat().matches("beta").count(), 1);
    execd.no_reply_yet(first);
    // Another call takes the beginning of what matches.
    writer.print(&mut execd, b"al");
    assert_eq!(output(&execd.poll_now(writer.session)), "al");
    writer.print(&mut execd, b"pha\n");
    let result = execd.result_of(first);
    assert_eq!((&result["wait"]["text"], output(&result)), (&json!("alpha"), "pha\n"));
    assert_eq!(result["wait"]["offset"], 5);
}

/// rule: waits.md, until and stop: An exit of the session always ends a wait
#[test]
fn the_end_of_the_shell_does_not_end_a_wait_for_what_others_may_print() {
    let mut execd = Execd::start();
    let cmd = format!("( {}; echo late ) & echo started; echo $$ > shell", until_file("go"));
    let params = json!({"cmd": cmd, "yield_time_ms": 50_000, "until": {"text": "late"}});
    let request = execd.start_request("exec_command", params);
    until_shell_ended(&execd);
    execd.no_reply_yet(request);
    go(&execd, "go");
    let result = execd.result_of(request);
    assert_wait(&result, "matched", "text");
    assert_eq!(output(&result), "started\nlate\n");
}

/// rule: waits.md, Limits: calls that wait for text of one session at once
#[test]
fn more_than_16_waits_for_text_of_one_session_are_refused() {
    let mut execd = Execd::start();
    let mut writer = Writer::start(&mut execd, json!({}));
    let session = writer.session;
    let until = json!({"until": {"text": "word"}});
    let waits: Vec<u64> = (0..16).map(|_| poll(&mut execd, session, until.clone())).collect();
    let params = merged(json!({"session_id": session}), until);
    execd.failed("write_stdin", params, "too_many_requests");
    let quiet = poll(&mut execd, session, json!({"stop": {"idle_ms": 3_600_000}}));
    writer.print(&mut execd, b"word\n");
    for wait in waits {
        assert_wait(&execd.result_of(wait), "matched", "text");
    }
    execd.no_reply_yet(quiet);
}

// ---- Echo -------------------------------------------------------------------------------

/// rule: waits.md, Echo: A match that lies wholly in the echo of this call's own input does not
///   count
/// rule: waits.md, Echo: The same word counts when the program prints it
#[test]
fn the_echo_of_a_terminal_does_not_count_and_the_same_word_printed_later_does() {
    let mut execd = Execd::start();
    let cmd = format!("read -r x; {}; echo \"$x\"; sleep 600", until_file("go"));
    let opened = execd.open_now(&json!({"cmd": cmd, "tty": true}));
    let params = json!({"session_id": session_of(&opened), "chars": "hello\n",
                        "yield_time_ms": 50_000, "until": {"text": "hello"}});
    let request = execd.start_request("write_stdin", params);
    eventually("the echo has come", || total_of(&mut execd, 1) >= 7);
    execd.no_reply_yet(request);
    go(&execd, "go");
    let result = execd.result_of(request);
    assert_wait(&result, "matched", "text");
    assert_eq!((&result["wait"]["offset"], output(&result)), (&json!(7), "hello\nhello\n"));
}

/// rule: waits.md, Echo: A match that lies wholly in the echo of this call's own input does not
///   count
#[test]
fn input_of_another_call_does_not_end_a_wait_by_its_echo() {
    let mut execd = Execd::start();
    let cmd = format!("read -r x; {}; echo \"$x\"; sleep 600", until_file("go"));
    let opened = execd.open_now(&json!({"cmd": cmd, "tty": true}));
    let until = json!({"until": {"text": "hello"}, "on_impossible": "wait"});
    let request = poll(&mut execd, session_of(&opened), until);
    execd.input(session_of(&opened), "hello\n");
    execd.no_reply_yet(request);
    go(&execd, "go");
    let result = execd.result_of(request);
    assert_wait(&result, "matched", "text");
    assert_eq!(result["wait"]["offset"], 7);
}

/// rule: waits.md, Echo: A terminal that echoes gives back what a call writes
#[test]
fn a_terminal_that_does_not_echo_has_nothing_to_leave_out() {
    let mut execd = Execd::start();
    let opened = execd.open_until_with(
        "read -rsp 'Password: ' p; echo \"got $p\"; sleep 600",
        "Password: ",
        json!({"tty": true}),
    );
    let params = json!({"session_id": opened, "chars": "secret\n", "yield_time_ms": 50_000,
                        "until": {"text": "secret"}});
    let result = execd.write(params);
    assert_eq!(
        result["wait"]["text"].as_str().map(|text| text.ends_with("got secret")),
        Some(true)
    );
}

/// rule: waits.md, Echo: A program that reads in raw mode (a REPL with line editing) echoes by
///   itself
#[test]
fn the_echo_of_a_line_editor_does_not_count() {
    let mut execd = Execd::start();
    if !missing("python3") {
        let cmd = "TERM=dumb exec python3 -q -u";
        let session = execd.open_until_with(cmd, ">>> ", json!({"tty": true}));
        let params = json!({"session_id": session, "chars": "print('need' 'le')#needle\n",
                            "yield_time_ms": 50_000, "until": {"regex": "^needle"}});
        let result = execd.write(params);
        assert_eq!(result["wait"]["text"], "needle", "{result}");
        let params = json!({"session_id": session, "chars": "print('needle')\n",
                            "yield_time_ms": 50_000, "until": {"text": "needle"}});
        let result = execd.write(params);
        assert_eq!(result["wait"]["text"], "needle", "{result}");
    }
    let cmd = "exec env PS1='$ ' bash --norc --noprofile -i";
    let session = execd.open_until_with(cmd, "$ ", json!({"tty": true}));
    let params = json!({"session_id": session, "chars": "echo needle\n",
                        "yield_time_ms": 50_000, "until": {"text": "needle"}});
    let result = execd.write(params);
    assert_eq!(result["wait"]["text"], "needle", "{result}");
}

/// rule: waits.md, What is looked at: the rest of a sequence that the end of an earlier call has
///   cut is no text
#[test]
fn a_sequence_that_an_earlier_call_has_cut_is_no_text() {
    let mut execd = Execd::start();
    let mut writer = Writer::start(&mut execd, json!({}));
    let session = writer.session;
    writer.print(&mut execd, b"one\x1b[3");
    let request = poll(&mut execd, session, json!({"until": {"text": "one"}}));
    assert_eq!(output(&execd.result_of(request)), "one");
    writer.print(&mut execd, b"1mready\n");
    let request = poll(&mut execd, session, json!({"until": {"regex": "^(.*)ready"}}));
    let result = execd.result_of(request);
    assert_eq!((&result["wait"]["captures"], output(&result)), (&json!([""]), "ready\n"));
}

// ---- Quiet and the end of all processes -------------------------------------------------

/// rule: waits.md, until and stop: `idle_ms`: no output came for so long, and the session's
///   processes used no CPU time meanwhile
#[test]
fn a_session_that_rests_is_idle() {
    let mut execd = Execd::start();
    let result = run(&mut execd, "echo up; sleep 600", json!({"until": {"idle_ms": 300}}));
    assert_wait(&result, "matched", "idle_ms");
    assert_eq!((output(&result), wait_line(&result)), ("up\n", "matched idle_ms 300"));
    assert!(result["effective_wait_ms"].as_u64().expect("a number") >= 300, "{result}");
}

/// rule: waits.md, until and stop: `idle_cpu`: with `idle_ms`: `true` leaves the CPU time aside
#[test]
fn a_session_that_computes_is_idle_only_where_the_cpu_does_not_count() {
    let mut execd = Execd::start();
    let busy = "while :; do :; done";
    let conditions = json!({"until": {"idle_ms": 300}, "yield_time_ms": 5_000});
    let result = run(&mut execd, busy, conditions);
    assert_eq!(result["wait"]["outcome"], "deadline", "{result}");
    let result = run(&mut execd, busy, json!({"stop": {"idle_ms": 300, "idle_cpu": true}}));
    assert_wait(&result, "stopped", "idle_ms");
    let talks = "while :; do echo x; sleep 0.05; done";
    let conditions = json!({"until": {"idle_ms": 2_000, "idle_cpu": true}, "yield_time_ms": 5_000});
    let result = run(&mut execd, talks, conditions);
    assert_eq!(result["wait"]["outcome"], "deadline", "{result}");
}

/// rule: waits.md, until and stop: `tree_exit`: `true`: everything that the session started has
///   gone, not the shell alone
#[test]
fn the_end_of_all_processes_is_waited_for() {
    let mut execd = Execd::start();
    let cmd = format!("( {} ) >/dev/null 2>&1 & echo started; echo $$ > shell", until_file("go"));
    let params = json!({"cmd": cmd, "yield_time_ms": 50_000, "until": {"tree_exit": true}});
    let request = execd.start_request("exec_command", params);
    until_shell_ended(&execd);
    execd.no_reply_yet(request);
    go(&execd, "go");
    let result = execd.result_of(request);
    assert_wait(&result, "matched", "tree_exit");
    assert_eq!((&result["exit_code"], output(&result)), (&json!(0), "started\n"));
    assert_eq!(wait_line(&result), "matched tree_exit");
    let result = run(&mut execd, "exit 2", json!({"until": {"tree_exit": true}}));
    assert_wait(&result, "matched", "tree_exit");
    assert_eq!(result["exit_code"], 2);
}

/// rule: waits.md, until and stop: With `tree_exit` it is the last process that counts
#[test]
fn at_the_deadline_it_is_told_how_many_processes_are_left() {
    let mut execd = Execd::start();
    let cmd = "sleep 600 >/dev/null 2>&1 & exit 7";
    let conditions = json!({"until": {"tree_exit": true}, "yield_time_ms": 5_000});
    let result = run(&mut execd, cmd, conditions);
    assert_eq!(result["wait"]["outcome"], "exited", "{result}");
    assert_eq!(result["wait"]["why"], "1 process of the session is left");
    assert_eq!((&result["exit_code"], &result["wait_status"]), (&json!(7), &json!("completed")));
}

/// rule: protocol.md, cancel: Ends the wait of a pending request: it answers at once with what it
///   has
#[test]
fn a_cancelled_wait_for_all_processes_leaves_the_exit_to_the_next_call() {
    let mut execd = Execd::start();
    let cmd = format!("( {} ) >/dev/null 2>&1 & echo $$ > shell; exit 5", until_file("go"));
    let params = json!({"cmd": cmd, "yield_time_ms": 50_000, "until": {"tree_exit": true}});
    let request = execd.start_request("exec_command", params);
    until_shell_ended(&execd);
    execd.no_reply_yet(request);
    assert!(execd.cancel(request));
    let result = execd.result_of(request);
    assert_eq!(result["wait"]["outcome"], "cancelled", "{result}");
    let again = poll(&mut execd, session_of(&result), json!({"until": {"tree_exit": true}}));
    execd.no_reply_yet(again);
    go(&execd, "go");
    let result = execd.result_of(again);
    assert_wait(&result, "matched", "tree_exit");
    assert_eq!(result["exit_code"], 5);
}

// ---- Bad input --------------------------------------------------------------------------

/// rule: waits.md, Limits: A field that `until` does not know is refused by its path
#[test]
fn bad_conditions_are_refused_and_the_field_is_named() {
    let mut execd = Execd::start();
    let cases = [
        ("until", json!({"foo": 1}), "until.foo"),
        ("until", json!({"regex": ["a", "b", "c)"]}), "until.regex[2]"),
        ("stop", json!({"http": {"path": "/", "x": 7}}), "stop.http.x"),
        ("on_impossible", json!("never"), "on_impossible"),
    ];
    for (field, value, param) in cases {
        let mut params = json!({"cmd": "echo no"});
        params[field] = value.clone();
        execd.refused("exec_command", params, param);
        let mut params = json!({"session_id": 1});
        params[field] = value;
        execd.refused("write_stdin", params, param);
    }
    let message = execd.refused(
        "exec_command",
        json!({"cmd": "echo no", "until": {"regex": "äö(b"}}),
        "until.regex",
    );
    assert!(message.contains("character 3"), "{message}");
    assert_eq!(session_of(&execd.open_now(&json!({"cmd": "sleep 600"}))), 1, "nothing was started");
}
