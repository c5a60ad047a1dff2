//! Programs that people and agents really run: shells, editors, servers, and what they leave
//! running.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::common::*;
use serde_json::json;

/// The number after `mark` in a text.
fn number_after(text: &str, mark: &str) -> u16 {
    let (_, rest) = text.split_once(mark).unwrap_or_else(|| panic!("no {mark:?} in {text:?}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no number after {mark:?} in {text:?}"))
}

fn http_get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a deadline");
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    answer
}

// ---- Shells and REPLs -------------------------------------------------------------------

fn open_bash(execd: &mut Execd) -> u64 {
    // A shell that is not interactive drops PS1 from its environment.
    let cmd = "PS1='prompt> ' exec bash --norc --noprofile -i";
    let env = json!({"PROMPT_COMMAND": null});
    execd.open_ready(cmd, "prompt> ", json!({"tty": true, "env": env}))
}

#[test]
fn an_interactive_bash_is_driven_line_by_line_and_ctrl_c_ends_the_command_alone() {
    let mut execd = Execd::start();
    let session = open_bash(&mut execd);
    execd.input_until(session, "echo $((6 * 7))\\n", "\n42\n");
    execd.input_until(session, "cd / && pwd\\n", "\n/\n");
    execd.input_until(session, "for i in 1 2; do\\n echo row $((i + 5))\\ndone\\n", "row 7\n");
    execd.input_until(session, "echo be''gin; sleep 4711\\n", "begin");
    eventually("sleep runs", || {
        execd.session_processes().iter().any(|process| process.command == "sleep 4711")
    });
    execd.input_until(session, "\\x03", "prompt> ");
    execd.input_until(session, "echo status $?\\n", "status 130");
    let params = json!({"session_id": session, "chars": "exit 3\\n", "yield_time_ms": 30_000});
    assert_eq!(execd.write(params)["exit_code"], 3);
}

// ---- Full screen ------------------------------------------------------------------------

/// rule: unified-exec.md, set_on_exit, resize_session: `resize_session` sets the PTY's size; the
///   child gets SIGWINCH
#[test]
fn vim_edits_a_file_and_learns_of_a_new_window_size() {
    if missing("vim") {
        return;
    }
    let mut execd = Execd::start();
    let session = execd.open_ready("vim -u NONE -i NONE -n text", "text", json!({"tty": true}));
    execd.input_until(session, "ihello from vim", "vim");
    execd.input(session, "\\x1b");
    execd.result("resize_session", json!({"session_id": session, "cols": 77, "rows": 33}));
    let cmd = ":call writefile([&columns . 'x' . &lines], 'size')\\n";
    // vim looks at its new size when it next waits for a key; a second look is not too late.
    eventually("vim has the new size", || {
        execd.input(session, cmd);
        std::fs::read_to_string(execd.file("size")).is_ok_and(|size| size == "77x33\n")
    });
    let params = json!({"session_id": session, "chars": ":wq\\n", "yield_time_ms": 30_000});
    assert_eq!(execd.write(params)["exit_code"], 0);
    assert_eq!(std::fs::read_to_string(execd.file("text")).expect("a file"), "hello from vim\n");
}

// ---- Servers ----------------------------------------------------------------------------

#[test]
fn a_server_is_started_talked_to_polled_and_killed() {
    if missing("python3") {
        return;
    }
    let mut execd = Execd::start();
    std::fs::write(execd.file("hello.txt"), "hello client\n").expect("a file");
    let cmd = "python3 -u -m http.server 0 --bind 127.0.0.1";
    let first = execd.open(cmd);
    let session = session_of(&first);
    until_logged(&first, " port ");
    until_logged(&first, ") ...");
    let port = number_after(&String::from_utf8_lossy(&log_of(&first)), " port ");
    assert!(http_get(port, "/hello.txt").ends_with("\r\n\r\nhello client\n"));
    execd.read_until(session, "GET /hello.txt");
    assert!(http_get(port, "/missing").contains(" 404 "));
    execd.read_until(session, "404");
    let result = execd.kill(session);
    assert_eq!(result["killed"], true);
    assert_ne!(result["escalated"], true);
    assert_eq!(execd.session_processes().len(), 0, "nobody listens any more");
}

/// rule: architecture.md, Ending a session: kill_session with the old id ends what was left
#[test]
fn a_server_in_the_background_with_its_output_redirected_is_ended_by_the_old_id() {
    if missing("python3") {
        return;
    }
    let mut execd = Execd::start();
    let server = "python3 -u -m http.server 0 --bind 127.0.0.1";
    let result = execd.run(&format!("nohup {server} >server.log 2>&1 & echo started"));
    assert_eq!((&result["exit_code"], &result["output"]), (&json!(0), &json!("started\n")));
    let log = execd.file("server.log");
    eventually("it serves", || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.contains(") ..."))
    });
    let port = number_after(&std::fs::read_to_string(&log).expect("its log"), " port ");
    assert!(http_get(port, "/").contains(" 200 "));
    assert_eq!(execd.kill(1)["found"], true);
    assert_eq!(execd.session_processes().len(), 0, "nobody listens any more");
}

// ---- Jobs -------------------------------------------------------------------------------

/// rule: architecture.md, Ending a session: Killing rescans until no member is left; a fork bomb
///   racing the kill loses
#[test]
fn programs_that_fork_on_and_on_are_ended_whole() {
    let mut execd = Execd::start();
    let bomb = "f() { [ \"$1\" = 0 ] || { f $(($1 - 1)) & f $(($1 - 1)) & }; ";
    for (before, stays, escalated) in [
        ("", "sleep 300; }; f 6", false),
        ("trap '' TERM; ", "while :; do sleep 0.5; done; }; f 5", true),
    ] {
        let session = session_of(&execd.open(&format!("{before}{bomb}{stays}")));
        let result = execd.kill(session);
        assert_eq!((&result["killed"], result["escalated"] == true), (&json!(true), escalated));
        assert_eq!(execd.session_processes().len(), 0, "all are gone when the answer comes");
    }
    // Each process starts the next one and ends: there is never one that stands still.
    std::fs::write(execd.file("hop"), "[ \"$1\" = 2000 ] || sh hop $(($1 + 1)) &\n")
        .expect("a file");
    let cmd = "sh hop 0; sleep 300";
    let session = session_of(&execd.open(cmd));
    assert_eq!(execd.kill(session)["killed"], true);
    execd.until_no_session_process();
}
