//! `secret: true` (protocol.md, Secrets): what a program shows of a secret is masked wherever its
//! output is kept or told, and nothing else is changed or delayed.

use std::fs;

use crate::common::wire::Wire;
use crate::common::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const SECRET: &str = "correct-horse-7";
const MASKED: &str = "***************";

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

/// rule: protocol.md, Secrets: before anything of the output is kept, so that texts, progress, the
///   log, `read_output` and those who are attached all have asterisks there, and offsets stay true
/// rule: protocol.md, Secrets: Its bytes stand in no debug line, no notification and no error
#[test]
fn a_terminal_and_a_program_that_show_a_secret_show_asterisks_everywhere() {
    let mut execd = Execd::with(&[], &[("EXECD_LOG", "debug")]);
    let program = "printf 'ask: '; IFS= read -r line; echo \"got $line.\"; sleep 1000";
    let id = execd.open_until_with(program, "ask: ", json!({"tty": true}));
    let mut viewer = Wire::connect(&execd.socket());
    viewer.result("attach_session", json!({"session_id": id}));
    let params = json!({"session_id": id, "chars": format!("{SECRET}\\r"), "secret": true,
        "stream": true, "until": {"text": "got"}, "yield_time_ms": 30_000});
    let told = execd.write(params);
    assert_eq!(output(&told), format!("{MASKED}\ngot {MASKED}.\n"), "{told}");
    assert_eq!(told["wait"]["text"], format!("got {MASKED}."));
    until_logged(&told, &format!("got {MASKED}."));
    let whole = format!("ask: {MASKED}\r\ngot {MASKED}.\r\n");
    assert_eq!(String::from_utf8_lossy(&log_of(&told)), whole);
    let page = execd.result("read_output", json!({"session_id": id, "view": "raw"}));
    assert_eq!((&page["text"], &page["total_bytes"]), (&json!(whole), &json!(whole.len())));
    let mut late = Wire::connect(&execd.socket());
    let replay = late.result("attach_session", json!({"session_id": id}));
    assert_eq!(replay["output_bytes_total"], whole.len());
    for client in [&mut viewer, &mut late] {
        client.result("ping", json!({}));
        let mut shown = Vec::new();
        for (_, line) in &client.seen {
            let data = line["params"]["data_b64"].as_str().unwrap_or_default();
            shown.extend(STANDARD.decode(data).expect("base64"));
        }
        assert!(contains(&shown, MASKED.as_bytes()) && !contains(&shown, SECRET.as_bytes()));
    }
    drop((viewer, late));
    assert_nowhere(&mut execd, SECRET, &told);
}

/// rule: protocol.md, Secrets: however its reads cut it and however slowly a program prints it
#[test]
fn a_program_that_prints_one_character_at_a_time_shows_asterisks() {
    let mut execd = Execd::start();
    // Each character is on its way before the next one is printed: execd has said so. No line end
    // follows the first word: a terminal may hand it on apart, after the output was measured.
    let program = "stty -echo; printf ready; IFS= read -r s; for ((i = 0; i < ${#s}; i++)); do \
                   printf %s \"${s:i:1}\"; until [ -e \"go$i\" ]; do sleep 0.01; done; done; \
                   echo .; sleep 1000";
    let id = execd.open_until_with(program, "ready", json!({"tty": true}));
    let total = |execd: &mut Execd| {
        let page = execd.result("read_output", json!({"session_id": id}));
        page["total_bytes"].as_u64().expect("a number")
    };
    let start = total(&mut execd);
    let params = json!({"session_id": id, "data_b64": b64(&format!("{SECRET}\n")), "secret": true});
    execd.result("attach_input", params);
    // The first three bytes go when nothing has come for a while, each by itself; no others do.
    for at in 0..SECRET.len() as u64 {
        let expected = start + (at + 1).min(3);
        eventually("what may go is let go", || total(&mut execd) == expected);
        go(&execd, &format!("go{at}"));
    }
    let said = execd.read_until(id, ".\n");
    assert!(said.ends_with(&format!("cor{}.\n", &MASKED[3..])), "{said}");
}

/// rule: protocol.md, Secrets: `secret` goes with input: a poll with it is refused
/// rule: protocol.md, Secrets: beside `secret` no error quotes any value
/// rule: protocol.md, Secrets: The ninth is refused until the first is forgotten
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
        ("write_stdin", "secret", json!({"session_id": id, "chars": "7654321".repeat(600)})),
        ("write_stdin", "secret", json!({"session_id": id, "chars": "7654321\n".repeat(33)})),
        ("write_stdin", "data", json!({"sessionId": job["sessionId"], "data": 7_654_321})),
        (
            "write_stdin",
            "data",
            json!({"sessionId": job["sessionId"], "data": {"base64": "7654321*"}}),
        ),
        ("attach_input", "data_b64", json!({"session_id": id, "data_b64": "7654321*"})),
        ("attach_input", "data_b64", json!({"session_id": id, "data_b64": ["7654321"]})),
    ];
    for (method, param, params) in cases {
        let message = execd.refused(method, merged(params, json!({"secret": true})), param);
        assert!(!message.contains("765") && !message.contains('*'), "{message}");
    }
    let unquoted = execd.error("write_stdin", json!([{"chars": "7654321", "secret": true}]));
    assert!(!unquoted.to_string().contains("7654321"), "{unquoted}");
    for n in 0..9 {
        let params = json!({"session_id": id, "chars": format!("secret {n}\n"), "secret": true});
        match n {
            8 => {
                let message = execd.failed("write_stdin", params, "too_many_secrets");
                assert!(
                    message.contains("8 secrets") && !message.contains("secret 8"),
                    "{message}"
                );
            }
            _ => _ = execd.write(params),
        }
    }
    // What was refused was not written; the same one again begins anew.
    let params = json!({"session_id": id, "chars": "secret 3\n secret 8\n", "secret": false});
    let said = execd.write_until(params, "secret 8");
    assert!(said.ends_with("********\n secret 8\n"), "{said}");
    execd.write(json!({"session_id": id, "chars": "secret 3\n", "secret": true}));
}

/// rule: protocol.md, Secrets: half on stdout and half on stderr where these are apart
#[test]
fn both_streams_of_a_process_are_masked() {
    let mut execd = Execd::start();
    let command = "read -r line; echo \"out $line\"; echo \"err $line\" >&2; sleep 1000";
    let job = execd.result("bash_stream", json!({"command": command, "yieldMs": 0}));
    let id = job["sessionId"].clone();
    let data = json!({"base64": b64(&format!("{SECRET}\n"))});
    let sent = execd.result("write_stdin", json!({"sessionId": id, "data": data, "secret": true}));
    assert_eq!(sent["written"], SECRET.len() + 1);
    let until = json!({"regex": "(?s)err .*"});
    let polled = execd.result("poll_process", json!({"sessionId": id, "until": until}));
    let polled = polled.to_string();
    let shown = |stream: &str| polled.contains(&format!("{stream} {MASKED}"));
    assert!(shown("out") && shown("err") && !polled.contains(SECRET), "{polled}");
}

/// rule: protocol.md, Secrets: and offsets stay true
#[test]
fn a_flood_behind_a_secret_is_the_same_but_for_the_secret() {
    let mut execd = Execd::start();
    let program = "echo ready; read -r s; for ((i = 0; i < 40000; i++)); do \
                   echo \"$i ${s:0:9} $s${s:0:5}\"; done | tee flood; echo done";
    let id = execd.open_until(program, "ready");
    let params = json!({"session_id": id, "chars": format!("{SECRET}\n"), "secret": true,
        "until": {"tree_exit": true}, "yield_time_ms": 60_000});
    let last = execd.write(params);
    assert_eq!(last["exit_code"], 0, "{last}");
    let flood = fs::read_to_string(execd.file("flood")).expect("the flood");
    let expected = format!("ready\n{}done\n", flood.replace(SECRET, MASKED));
    assert!(log_of(&last) == expected.as_bytes(), "the log of {} bytes", log_of(&last).len());
    assert_eq!(last["output_bytes_total"], expected.len());
}

/// rule: protocol.md, Secrets: `"until_password": true` ends a wait of `exec_command` or
///   `write_stdin` on a terminal also when it is asked for a password
#[test]
fn a_wait_ends_when_the_terminal_is_asked_for_a_password() {
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    let cmd = "read -rs -p 'PIN: ' a; echo; read -r -p 'name: ' b; read -rs -p 'again: ' c; \
               echo \"[$a $b $c]\"";
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
    // Three bytes are too short to be masked.
    assert!(output(&said).ends_with("[123 anna ***********]\n"), "{said}");
    assert_eq!(said["exit_code"], 0);
}

/// The note of such a wait told the model to write a password.
/// rule: protocol.md, password_asked: To a waiting `bash`, `bash_stream` or `poll_process` with
///   `"tellPassword": true` whose terminal is asked for a password
#[test]
fn calls_of_the_stream_family_are_told_of_passwords_and_wait_on() {
    let mut execd = Execd::start();
    let cmd = "read -rsp 'PIN: ' a; echo; read -rsp 'again: ' b; echo; echo \"[$a $b]\"; read c";
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
    assert!(shown.ends_with("[************* **************]\n"), "{result}");
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
