//! `until` and `stop` on exec_command and write_stdin: what ends a wait, and what the reply says of
//! it.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use crate::common::*;
use serde_json::{Value, json};

/// A command that prints what is written to a pipe of the file system, which the test holds open.
struct Writer {
    session: u64,
    pipe: File,
}

impl Writer {
    fn start(execd: &mut Execd) -> Self {
        let _gate = data::Gate::new(execd, "pieces");
        // Both ends are held open, so that neither side waits for the other.
        let mut open = File::options();
        open.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        let pipe = open.open(execd.file("pieces")).expect("the pipe opens");
        let params = json!({"cmd": "exec cat < pieces", "stdin": "null"});
        Self { session: session_of(&execd.open_now(&params)), pipe }
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

/// rule: waits.md, until and stop: The yield time is the deadline as ever: the outcome `deadline`
///   is no error
/// rule: waits.md, until and stop: The least wait is 5 s then
/// rule: waits.md, until and stop: a call may wait as long as an empty poll, also `exec_command`
///   and `write_stdin` with input
#[test]
fn who_says_what_he_waits_for_waits_5_s_at_least_and_as_long_as_a_poll_at_most() {
    let mut execd = Execd::start();
    let until = json!({"text": "up"});
    let far = 3_600_000;
    let params = json!({"cmd": "echo up; exec cat", "yield_time_ms": far, "until": until,
        "on_impossible": "wait"});
    let result = execd.exec(params);
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
    let params = json!({"cmd": "echo hi; sleep 600", "yield_time_ms": 1, "until": until});
    let result = execd.exec(params);
    assert_eq!(result["wait"]["outcome"], "deadline", "{result}");
    assert_eq!(result["wait"]["effective_timeout_ms"], 5_000);
    assert_eq!(result["wait_status"], "deadline_reached");
    assert_eq!(wait_line(&result), "deadline after 5000 ms");
    assert_eq!(output(&result), "hi\n");
}

/// rule: waits.md, until and stop: `text`: this string stands in a line of the clean output
/// rule: waits.md, The reply: `wait_status` is `condition_met`
/// rule: waits.md, The reply: a match ends a wait, it does not cut the text
/// rule: waits.md, until and stop: An exit of the session always ends a wait, whatever was asked;
///   the outcome is `exited`
/// rule: waits.md, until and stop: `idle_ms`: no output came for so long, and the session's
///   processes used no CPU time meanwhile
#[test]
fn a_text_an_exit_or_quiet_ends_the_wait_and_the_reply_says_so() {
    let mut execd = Execd::start();
    let cmd = "printf 'one\\nit is \\033[1mready\\033[0m now\\n'; sleep 600";
    let result = run(&mut execd, cmd, json!({"until": {"text": "is ready"}}));
    assert_wait(&result, "matched", "text");
    assert_eq!(result["wait_status"], "condition_met");
    let wait = &result["wait"];
    assert_eq!(wait["text"], "it is ready now");
    assert_eq!((&wait["index"], &wait["session_id"]), (&json!(0), &result["session_id"]));
    assert_eq!((&wait["offset"], &wait["present_at_entry"]), (&json!(4), &json!(false)));
    assert_absent(wait, &["captures", "port", "status", "state", "why"]);
    assert_eq!(output(&result), "one\nit is ready now\n");
    assert_eq!(wait_line(&result), "matched \"is ready\" → it is ready now");

    let result = run(&mut execd, "echo hi; exit 3", json!({"until": {"text": "nowhere"}}));
    assert_eq!((&result["wait"]["outcome"], wait_line(&result)), (&json!("exited"), "exited"));
    assert_eq!((&result["wait_status"], &result["exit_code"]), (&json!("completed"), &json!(3)));
    assert_absent(&result["wait"], &["by", "index", "text", "offset", "present_at_entry"]);

    let result = run(&mut execd, "echo up; sleep 600", json!({"until": {"idle_ms": 300}}));
    assert_wait(&result, "matched", "idle_ms");
    assert_eq!((output(&result), wait_line(&result)), ("up\n", "matched idle_ms 300"));
    assert!(result["effective_wait_ms"].as_u64().expect("a number") >= 300, "{result}");
}

/// rule: waits.md, What is looked at: What is there already counts at once (`present_at_entry`)
#[test]
fn output_that_no_call_has_told_counts_at_once_and_what_was_told_does_not() {
    let mut execd = Execd::start();
    let mut writer = Writer::start(&mut execd);
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
/// rule: waits.md, What is looked at: What the retention has dropped before it was looked at is
///   never matched
#[test]
fn a_match_in_what_an_ended_session_has_left_is_told_with_its_exit() {
    let mut execd = Execd::start();
    let fill = "head -c 2000000 /dev/zero | tr '\\0' x";
    let cmd = format!("{}; {fill}; echo needle; {fill}; echo; echo end; exit 4", until_file("go"));
    let session = session_of(&execd.open_now(&json!({"cmd": cmd})));
    go(&execd, "go");
    execd.until_listed_exited(session);
    let request = poll(&mut execd, session, json!({"until": {"text": ["needle", "end"]}}));
    let result = execd.result_of(request);
    assert_wait(&result, "matched", "text");
    assert_eq!((&result["wait_status"], &result["exit_code"]), (&json!("completed"), &json!(4)));
    assert_eq!(result["wait"]["present_at_entry"], true);
    assert_absent(&result, &["session_id"]);
    assert_eq!(
        (&result["wait"]["text"], &result["wait"]["offset"]),
        (&json!("end"), &json!(4_000_008))
    );
}

/// rule: waits.md, What is looked at: What is there already counts at once
#[test]
fn a_match_that_comes_with_the_deadline_counts() {
    let mut execd = Execd::start();
    let mut writer = Writer::start(&mut execd);
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

/// rule: waits.md, What is looked at: The output that this call would tell
#[test]
fn several_waits_of_one_session_end_each_by_its_own() {
    let mut execd = Execd::start();
    let mut writer = Writer::start(&mut execd);
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
    let mut writer = Writer::start(&mut execd);
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

/// rule: waits.md, Echo: A match that lies wholly in the echo of this call's own input does not
///   count
/// rule: waits.md, Echo: The same word counts when the program prints it
/// rule: waits.md, Echo: A terminal that echoes gives back what a call writes
#[test]
fn the_echo_of_a_terminal_does_not_count_and_the_same_word_printed_later_does() {
    let mut execd = Execd::start();
    let cmd = format!("read -r x; {}; echo \"$x\"; sleep 600", until_file("go"));
    let session = session_of(&execd.open_now(&json!({"cmd": cmd, "tty": true})));
    // Input of another call does not end a wait by its echo either.
    let until = json!({"until": {"text": "hello"}, "on_impossible": "wait"});
    let other = poll(&mut execd, session, until.clone());
    let request = poll(&mut execd, session, merged(until, json!({"chars": "hello\n"})));
    eventually("the echo has come", || total_of(&mut execd, 1) >= 7);
    execd.no_reply_yet(request);
    execd.no_reply_yet(other);
    go(&execd, "go");
    let results = [request, other].map(|request| execd.result_of(request));
    for result in &results {
        assert_wait(result, "matched", "text");
        assert_eq!(result["wait"]["offset"], 7, "{result}");
    }
    assert_eq!(output(&results[0]).to_owned() + output(&results[1]), "hello\nhello\n");
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

/// rule: waits.md, until and stop: `idle_cpu`: with `idle_ms`: `true` leaves the CPU time aside
#[test]
fn a_session_that_computes_is_idle_only_where_the_cpu_does_not_count() {
    let mut execd = Execd::start();
    let (busy, talks) = ("while :; do :; done", "while :; do echo x; sleep 0.05; done");
    let idle = |ms: u32, cpu: bool| json!({"idle_ms": ms, "idle_cpu": cpu});
    let never = [(busy, idle(300, false)), (talks, idle(2_000, true))].map(|(cmd, until)| {
        let params = json!({"cmd": cmd, "until": until, "yield_time_ms": 5_000});
        execd.start_request("exec_command", params)
    });
    let result = run(&mut execd, busy, json!({"stop": idle(300, true)}));
    assert_wait(&result, "stopped", "idle_ms");
    for request in never {
        let result = execd.result_of(request);
        assert_eq!(result["wait"]["outcome"], "deadline", "{result}");
    }
}

/// rule: waits.md, until and stop: `tree_exit`: `true`: everything that the session started has
///   gone, not the shell alone
/// rule: waits.md, until and stop: With `tree_exit` it is the last process that counts
/// rule: protocol.md, cancel: Ends the wait of a pending request: it answers at once with what it
///   has
#[test]
fn the_end_of_all_processes_is_waited_for() {
    let mut execd = Execd::start();
    let tree_exit = json!({"until": {"tree_exit": true}});
    // At the deadline it is told how many processes are left.
    let left = json!({"cmd": "sleep 600 >/dev/null 2>&1 & exit 7", "yield_time_ms": 5_000});
    let left = execd.start_request("exec_command", merged(left, tree_exit.clone()));
    let cmd = format!("( {} ) >/dev/null 2>&1 & echo $$ > shell; exit 5", until_file("go"));
    let params = merged(json!({"cmd": cmd, "yield_time_ms": 50_000}), tree_exit.clone());
    let request = execd.start_request("exec_command", params);
    until_shell_ended(&execd);
    execd.no_reply_yet(request);
    assert!(execd.cancel(request));
    let result = execd.result_of(request);
    assert_eq!(result["wait"]["outcome"], "cancelled", "{result}");
    let again = poll(&mut execd, session_of(&result), tree_exit.clone());
    execd.no_reply_yet(again);
    go(&execd, "go");
    let result = execd.result_of(again);
    assert_wait(&result, "matched", "tree_exit");
    assert_eq!((&result["exit_code"], wait_line(&result)), (&json!(5), "matched tree_exit"));
    let result = run(&mut execd, "exit 2", tree_exit);
    assert_wait(&result, "matched", "tree_exit");
    let result = execd.result_of(left);
    assert_eq!(result["wait"]["outcome"], "exited", "{result}");
    assert_eq!(result["wait"]["why"], "1 process of the session is left");
    assert_eq!((&result["exit_code"], &result["wait_status"]), (&json!(7), &json!("completed")));
}
