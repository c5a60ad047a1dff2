//! `secret: true` (protocol.md, Secrets): a secret is written only while its terminal shows nothing
//! of what is typed, so that it stands nowhere.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::wire::Wire;
use crate::common::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const SECRET: &str = "correct-horse-7";

fn b64(text: &str) -> String {
    STANDARD.encode(text)
}

/// Nobody has the secret: not the lines that execd wrote, not its stderr, not its logs.
fn assert_nowhere(execd: &mut Execd, secret: &str, log: &Value) {
    let log = log_path(log);
    execd.close_stdin();
    for line in execd.all_lines() {
        let line = line.to_string();
        assert!(!line.contains(secret) && !line.contains(&b64(secret)), "{line}");
    }
    assert!(!execd.stderr().contains(secret), "{}", execd.stderr());
    for entry in fs::read_dir(log.parent().expect("a directory")).expect("the logs") {
        let path = entry.expect("an entry").path();
        let bytes = fs::read(&path).unwrap_or_default();
        assert!(!contains(&bytes, secret.as_bytes()), "{}", path.display());
    }
}

/// What `program` says behind a secret that was written at its prompt `ask`, and that nothing shows
/// the secret.
fn said_behind(program: &str, ask: &str, secret: &str) -> String {
    let mut execd = Execd::with(&[], &[("EXECD_LOG", "debug")]);
    let id = execd.open_until_with(program, ask, json!({"tty": true}));
    let mut viewer = Wire::connect(&execd.socket());
    viewer.result("attach_session", json!({"session_id": id}));
    let told = execd.write(json!({"session_id": id, "chars": format!("{secret}\\r"),
        "secret": true, "stream": true, "on_impossible": "wait", "yield_time_ms": 30_000}));
    assert_eq!(told["exit_code"], 0, "{told}");
    assert_eq!(told.get("note"), None, "{told}");
    viewer.result("ping", json!({}));
    for (_, line) in &viewer.seen {
        let data = line["params"]["data_b64"].as_str().unwrap_or_default();
        let shown = STANDARD.decode(data).expect("base64");
        assert!(!contains(&shown, secret.as_bytes()), "{line}");
    }
    drop(viewer);
    assert_nowhere(&mut execd, secret, &told);
    output(&told).to_owned()
}

/// A prompt stands there before the echo is off: what is written at once is shown.
/// rule: protocol.md, Secrets: written only while its terminal has its echo off
/// rule: protocol.md, Secrets: Its bytes stand in no debug line, no notification and no error
/// rule: protocol.md, Secrets: for 2 s it waits for that
#[test]
fn what_asks_with_its_echo_off_shows_nothing() {
    let read = "IFS= read -rs line; echo; echo \"got ${#line}\"";
    for command in [format!("printf 'ask: '; {read}"), format!("printf 'ask: '; sleep 0.5; {read}")]
    {
        assert!(said_behind(&command, "ask: ", SECRET).ends_with("got 15\n"), "{command}");
    }
    if !missing("python3") {
        let program = "python3 -c 'import getpass; print(len(getpass.getpass(\"ask: \")))'";
        assert!(said_behind(program, "ask: ", SECRET).ends_with("15\n"));
    }
}

fn shell(line: &str) -> bool {
    Command::new("sh").args(["-c", line]).status().is_ok_and(|status| status.success())
}

/// The password of an account that only this test has.
#[test]
fn sudo_shows_nothing() {
    if missing("sudo") || missing("useradd") || !outside::is_root() {
        return;
    }
    let user = format!("execd-sudo-{}", std::process::id());
    let rule = format!("/etc/sudoers.d/{user}");
    let line = format!("{user} ALL=(ALL) ALL\nDefaults:{user} !lecture\n");
    let set_up = format!(
        "useradd -M {user} && echo {user}:{SECRET} | chpasswd && umask 337 && \
                          printf '{line}' > {rule}"
    );
    let ready = shell(&set_up);
    let program = format!("setpriv --reuid {user} --clear-groups sudo -k -p 'ask: ' whoami");
    let said = ready.then(|| said_behind(&program, "ask: ", SECRET));
    shell(&format!("rm -f {rule}; userdel {user}"));
    assert_eq!(said.as_deref(), Some("\nroot\n"));
}

/// rule: protocol.md, Secrets: then it is refused with `echo_is_on`, and nothing is written
#[test]
fn a_terminal_that_goes_on_echoing_is_given_no_secret() {
    let mut execd = Execd::start();
    let program = "printf 'ask: '; read -r line; echo \"got $line.\"; sleep 1000";
    let id = execd.open_until_with(program, "ask: ", json!({"tty": true}));
    let data = json!({"data_b64": b64(&format!("{SECRET}\n"))});
    let chars = json!({"session_id": id, "chars": format!("{SECRET}\\n"), "secret": true});
    let attached = merged(data, json!({"session_id": id, "secret": true}));
    for (method, params) in [("write_stdin", chars), ("attach_input", attached)] {
        let began = Instant::now();
        let message = execd.failed(method, params, "echo_is_on");
        assert!(message.contains(&format!("session {id}")) && !message.contains(SECRET));
        assert!(began.elapsed() >= Duration::from_secs(2), "it waits for the program");
    }
    let said = execd.write_until(json!({"session_id": id, "chars": "open\\n"}), "got open.");
    assert!(!said.contains(SECRET), "{said}");
    // Of the stream family too.
    let start = json!({"command": "echo ready; exec cat", "stdinMode": "pty", "yieldMs": 0});
    let job = execd.result("bash_stream", start);
    let params = json!({"sessionId": job["sessionId"], "data": SECRET, "secret": true});
    execd.failed("write_stdin", params, "echo_is_on");
}

/// rule: protocol.md, Secrets: A pipe shows nothing: it is written at once
#[test]
fn a_pipe_is_given_a_secret_at_once() {
    let mut execd = Execd::start();
    let command = "read -r line; echo \"got ${#line}\"; sleep 1000";
    let id = execd.open_until(&format!("echo ready; {command}"), "ready");
    let params = json!({"session_id": id, "chars": format!("{SECRET}\\n"), "secret": true});
    assert!(execd.write_until(params, "got").ends_with("got 15\n"));
    let job = execd.result("bash_stream", json!({"command": command, "yieldMs": 0}));
    let data = json!({"base64": b64(&format!("{SECRET}\n"))});
    let params = json!({"sessionId": job["sessionId"], "data": data, "secret": true});
    let sent = execd.result("write_stdin", params);
    assert_eq!(sent, json!({"written": SECRET.len() + 1, "queued": 0, "eof": false}));
}

/// A line editor shows what it reads, though its terminal does not.
/// rule: protocol.md, Secrets: the reply's `note` says that the program may show it
#[test]
fn a_terminal_that_passes_on_each_key_is_noted() {
    let mut execd = Execd::start();
    let program = "stty raw -echo; printf ready; sleep 1000";
    let id = execd.open_until_with(program, "ready", json!({"tty": true}));
    let params = json!({"session_id": id, "chars": SECRET, "secret": true});
    let attached = json!({"session_id": id, "data_b64": b64(SECRET), "secret": true});
    for note in [&execd.write(params)["note"], &execd.result("attach_input", attached)["note"]] {
        assert!(note.as_str().is_some_and(|note| note.contains("may show the secret")), "{note}");
    }
    // Each key is passed on, and shown by the terminal itself.
    let program = "stty -icanon; printf ready; sleep 1000";
    let id = execd.open_until_with(program, "ready", json!({"tty": true}));
    let params = json!({"session_id": id, "chars": SECRET, "secret": true});
    execd.failed("write_stdin", params, "echo_is_on");
}

/// rule: protocol.md, Secrets: `cancel` takes it back
#[test]
fn a_secret_that_waits_can_be_cancelled_and_ends_with_its_session_and_execd() {
    let mut execd = Execd::start();
    let id = execd.open_until_with("printf ready; exec cat", "ready", json!({"tty": true}));
    let params = json!({"session_id": id, "chars": format!("{SECRET}\\n"), "secret": true});
    let waits = execd.start_request("write_stdin", &params);
    assert!(execd.cancel(waits));
    assert_eq!(execd.reply(waits)["error"]["data"]["reason"], "cancelled_in_line");
    let waits = execd.start_request("write_stdin", &params);
    execd.kill(id);
    let reply = execd.reply(waits);
    // The end of the session may have been told by then.
    let reason = &reply["error"]["data"]["reason"];
    assert!(reason.is_null() || reason == "unknown_session", "{reply}");
    assert!(!reply.to_string().contains(SECRET), "{reply}");
    let id = execd.open_until_with("printf ready; exec cat", "ready", json!({"tty": true}));
    let params = merged(params, json!({"session_id": id}));
    let waits = execd.start_request("write_stdin", &params);
    execd.signal(libc::SIGTERM);
    assert_eq!(execd.reply(waits)["error"]["data"]["reason"], "shutting_down");
}

/// rule: protocol.md, Secrets: `secret` goes with input: a poll with it is refused
/// rule: protocol.md, Secrets: beside `secret` no error quotes any value
#[test]
fn what_is_no_fit_secret_is_refused_and_not_quoted() {
    let mut execd = Execd::start();
    let id = execd.open_until("echo ready; exec cat", "ready");
    let job = execd.result("bash_stream", json!({"command": "exec cat", "yieldMs": 0}));
    let cases = [
        ("write_stdin", "secret", json!({"session_id": id})),
        ("write_stdin", "secret", json!({"session_id": id, "chars": "", "eof": true})),
        ("write_stdin", "chars", json!({"session_id": id, "chars": 7_654_321})),
        ("write_stdin", "chars_b64", json!({"session_id": id, "chars_b64": "7654321*"})),
        ("write_stdin", "data", json!({"sessionId": job["sessionId"], "data": 7_654_321})),
        ("attach_input", "data_b64", json!({"session_id": id, "data_b64": "7654321*"})),
        ("attach_input", "data_b64", json!({"session_id": id, "data_b64": ["7654321"]})),
    ];
    for (method, param, params) in cases {
        let message = execd.refused(method, merged(params, json!({"secret": true})), param);
        assert!(!message.contains("765") && !message.contains('*'), "{message}");
    }
    let unquoted = execd.error("write_stdin", json!([{"chars": "7654321", "secret": true}]));
    assert!(!unquoted.to_string().contains("7654321"), "{unquoted}");
}

/// rule: protocol.md, Secrets: `"until_password": true` ends a wait of `exec_command` or
///   `write_stdin` on a terminal also when it is asked for a password
#[test]
fn a_wait_ends_when_the_terminal_is_asked_for_a_password() {
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    let cmd = "read -rs -p 'PIN: ' a; echo; read -r -p 'name: ' b; read -rs -p 'again: ' c; \
               echo \"[${#a} $b ${#c}]\"";
    let first = json!({"cmd": cmd, "tty": true, "yield_time_ms": 30_000, "until_password": true});
    let asks = |result: &Value, prompt: &str| {
        assert_eq!(result["state"], "waiting_for_password", "{result}");
        assert_eq!(result["wait"]["outcome"], "matched", "{result}");
        assert_eq!(result["wait"]["by"], "input", "{result}");
        assert!(output(result).ends_with(prompt), "{result}");
    };
    let first = execd.exec(first);
    asks(&first, "PIN: ");
    let id = session_of(&first);
    execd.write(json!({"session_id": id, "chars": "123\\r", "secret": true}));
    let params = json!({"session_id": id, "chars": "anna\\r", "until_password": true,
        "yield_time_ms": 30_000});
    asks(&execd.write(params), "again: ");
    let said = execd.write(json!({"session_id": id, "chars": "long enough\\r", "secret": true,
        "yield_time_ms": 30_000}));
    assert!(output(&said).ends_with("[3 anna 11]\n"), "{said}");
    assert_eq!(said["exit_code"], 0);
}

/// The note of such a wait told the model to write a password.
/// rule: protocol.md, password_asked: To a waiting `bash`, `bash_stream` or `poll_process` with
///   `"tellPassword": true` whose terminal is asked for a password
/// rule: protocol.md, password_asked: Once for each prompt; the call goes on waiting
#[test]
fn calls_of_the_stream_family_are_told_of_passwords_and_wait_on() {
    let mut execd = Execd::start();
    let cmd =
        "read -rsp 'PIN: ' a; echo; read -rsp 'again: ' b; echo; echo \"[${#a} ${#b}]\"; read c";
    let start = json!({"command": cmd, "stdinMode": "pty", "tellPassword": true});
    let until = json!({"until": {"text": "]"}, "yieldMs": 120_000});
    let request = execd.start_request("bash_stream", merged(start, until));
    give_password(&mut execd, request, "correct-horse");
    // The second one is asked for in a poll.
    execd.notification("password_asked", |note| note["request_id"] == request);
    assert!(execd.cancel(request));
    let result = execd.result_of(request);
    assert_eq!([&result["status"], &result["state"]], ["running", "waiting_for_password"]);
    let poll = json!({"sessionId": 1, "until": {"text": "]"}, "tellPassword": true});
    let request = execd.start_request("poll_process", poll);
    give_password(&mut execd, request, "battery-staple");
    let result = execd.result_of(request);
    assert_eq!(result["wait"]["outcome"], "matched", "{result}");
    let shown = result["stdout"].as_str().expect("a text");
    assert!(shown.ends_with("[13 14]\n"), "{result}");
    // Who wants no such word, and who has no terminal, is answered as ever.
    let read = json!({"command": "read -rsp 'PIN: ' a", "stdinMode": "pty"});
    let result = execd.result("bash_stream", read);
    let note = "bash waits for a password on its terminal; nothing else runs: do without it (a key, \
                an askpass program, sudo -n), or ask for another way; kill_process ends it";
    assert_eq!(result["note"], note, "{result}");
    let result = execd.result("bash_stream", json!({"command": "read -s a", "tellPassword": true}));
    assert_eq!(result["state"], "waiting_for_line", "{result}");
}

/// Waits until a call is told that a password is asked for, and gives it one.
fn give_password(execd: &mut Execd, request: u64, typed: &str) {
    let asked = execd.notification("password_asked", |note| note["request_id"] == request);
    execd.no_reply_yet(request);
    let data = STANDARD.encode(format!("{typed}\r"));
    let params = json!({"session_id": asked["session_id"], "data_b64": data, "secret": true});
    execd.result("attach_input", params);
}
