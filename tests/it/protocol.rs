//! The protocol on the wire: ids, order, notifications, limits, cancel, ping, server_info,
//! shutdown, and what the command line itself answers.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::process::Stdio;

use crate::common::wire::Wire;
use crate::common::*;
use serde_json::{Value, json};

/// A stamp that no test lives to see.
const FAR: &str = "2999-01-01T00:00:00Z";

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("no text {field} in {value}"))
}

/// rule: protocol.md, Framing: An id is a string, a number or null
/// rule: protocol.md, Framing: An id is echoed unchanged; a number keeps its digits
#[test]
fn an_id_comes_back_byte_for_byte_on_every_kind_of_reply() {
    let mut execd = Execd::start();
    let ids = r#"0 | -17 | 1e2 | 1E+2 | 100.0 | -0.0 | 9007199254740993 | "" | "a\u0041" | null |
        123456789012345678901234567890.5e-10 | "\ud83d\ude00é \" \\ \/" | "\u0000""#;
    for id in ids.split('|').map(str::trim) {
        let lines = [
            (r#""method":"ping""#, "result"),
            (r#""method":"exec_command","params":{"cmd":"true"}"#, "result"),
            (r#""method":"exec_command","params":{}"#, "error"),
            (r#""method":"nonsense""#, "error"),
            (r#""method":"ping","params":[]"#, "error"),
            (r#""nomethod":1"#, "error"),
        ];
        for (rest, field) in lines {
            execd.send_line(&format!(r#"{{ "id" : {id} , {rest}}}"#));
            let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"{field}":"#);
            let line = execd.reply_line();
            assert!(line.starts_with(&head), "{rest} with id {id}: {line}");
        }
    }
}

/// rule: protocol.md, Notifications: `progress` names the request by the id as sent
#[test]
fn progress_names_its_request_by_the_id_as_sent() {
    let mut execd = Execd::start();
    for id in ["1e2", "9007199254740993", r#""a\u0041""#, "null"] {
        let params = json!({"cmd": format!("echo hi; {}", until_file("go")), "stream": true,
            "yield_time_ms": 30_000});
        execd.send_line(&format!(r#"{{"id":{id},"method":"exec_command","params":{params}}}"#));
        // A second one of the command before may still come, where the machine is slow.
        let named = format!(r#""method":"progress","params":{{"request_id":{id},"#);
        while !execd.line().contains(&named) {}
        go(&execd, "go");
        let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#);
        assert!(execd.reply_line().starts_with(&head));
        std::fs::remove_file(execd.file("go")).expect("it was there");
    }
}

/// rule: protocol.md, Framing: Replies come in the order in which work ends
/// rule: protocol.md, cancel, ping, server_info, shutdown: `ping` answers `{}`
#[test]
fn replies_come_in_the_order_in_which_work_ends() {
    let mut execd = Execd::start();
    let waits = |file: &str| json!({"cmd": until_file(file), "yield_time_ms": 30_000});
    execd.send("first", "exec_command", waits("b"));
    execd.send("second", "exec_command", waits("a"));
    execd.send("third", "exec_command", json!({"cmd": "touch third"}));
    execd.send("fourth", "ping", json!({}));
    let early = [execd.next_reply(), execd.next_reply()];
    let early = BTreeSet::from(early.each_ref().map(|reply| text(reply, "id")));
    assert_eq!(early, BTreeSet::from(["third", "fourth"]));
    go(&execd, "a");
    assert_eq!(execd.next_reply()["id"], "second");
    go(&execd, "b");
    assert_eq!(execd.next_reply()["id"], "first");
    // Work that ends at once is answered in the order of the requests, however many there are.
    let flood = (0..5_000).map(|at| format!("{{\"id\":{at},\"method\":\"ping\"}}\n"));
    execd.send_raw(flood.collect::<String>().as_bytes());
    for at in 0..5_000 {
        assert_eq!(execd.reply_line(), format!(r#"{{"jsonrpc":"2.0","id":{at},"result":{{}}}}"#));
    }
}

/// rule: protocol.md, Framing: A request without an id is carried out, never answered
/// rule: protocol.md, cancel, ping, server_info, shutdown: A notification `shutdown` ends execd
///   without a word
#[test]
fn a_request_without_id_is_carried_out_and_never_answered() {
    let mut execd = Execd::start();
    let send = |execd: &mut Execd, method: &str, params: Value| {
        execd.send_line(&json!({"method": method, "params": params}).to_string());
    };
    // A command that stays is in the table, and takes input and its end the same way.
    send(&mut execd, "exec_command", json!({"cmd": "read x; echo $x > got; exec sleep 60"}));
    let started = execd.notification("session_started", |_| true);
    let session = session_of(&started);
    send(&mut execd, "write_stdin", json!({"session_id": session, "chars": "word\n"}));
    until_file_has(&execd.file("got"), "word\n");
    execd.nothing_but_a_ping();
    send(&mut execd, "kill_session", json!({"session_id": session}));
    let exited = execd.notification("session_exited", |_| true);
    assert_eq!((&exited["session_id"], &exited["signal"]), (&json!(session), &json!("SIGTERM")));
    for method in ["ping", "server_info", "list_sessions", "nonsense"] {
        send(&mut execd, method, json!({}));
    }
    execd.nothing_but_a_ping();
    let info = execd.ask("server_info", json!({}));
    assert_eq!(info["result"]["pending_requests"], 0);
    let waits = json!({"cmd": "exec sleep 60", "yield_time_ms": 30_000});
    execd.send("wait", "exec_command", waits);
    send(&mut execd, "cancel", json!({"id": "wait"}));
    let reply = execd.next_reply();
    assert_eq!(
        (&reply["id"], &reply["result"]["wait_status"]),
        (&json!("wait"), &json!("cancelled"))
    );
    execd.nothing_but_a_ping();
    send(&mut execd, "shutdown", json!({}));
    let rest = execd.rest();
    assert!(rest.iter().all(|line| is_notification(line)), "{rest:?}");
    assert_eq!(execd.exit_code(), Some(0));
    execd.until_no_session_process();
}

/// rule: protocol.md, Framing: Many requests may wait at once
/// rule: architecture.md, Bounds: 1,024 pending requests per client of the socket, then −32000
///   `too_many_requests`
#[test]
fn the_1025th_waiting_request_is_refused_and_nothing_else_is_disturbed() {
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    let session = execd.open_making("exec cat", None);
    let poll = json!({"session_id": session, "yield_until": FAR});
    let mut client = Wire::connect(&execd.socket());
    let mut polls: BTreeSet<u64> =
        (0..1_024).map(|_| client.send("write_stdin", poll.clone())).collect();
    let info = client.result("server_info", json!({}));
    assert_eq!(info["pending_requests"], 1_024);
    assert_eq!(info["limits"]["max_pending_requests"], 1_024);
    let methods = [
        ("write_stdin", poll.clone()),
        ("exec_command", json!({"cmd": "touch wrong"})),
        ("kill_session", json!({"session_id": session})),
    ];
    for (method, params) in methods {
        let error = client.error(method, params);
        assert_eq!(error["code"], -32000, "{method}: {error}");
        assert_eq!(error["data"]["reason"], "too_many_requests", "{method}: {error}");
        assert!(text(&error, "message").contains("1024"), "{error}");
    }
    client.result("ping", json!({}));
    assert!(!execd.file("wrong").exists());
    // One that is answered makes room for one.
    let gone = polls.pop_first().expect("many");
    client.result("cancel", json!({"id": gone}));
    client.reply(gone);
    polls.insert(client.send("write_stdin", poll.clone()));
    assert_eq!(client.error("write_stdin", poll)["data"]["reason"], "too_many_requests");
    // The end of the session answers them all, each once.
    execd.send_line(
        &json!({"method": "write_stdin", "params": {"session_id": session, "eof": true}})
            .to_string(),
    );
    polls.iter().for_each(|id| _ = client.reply(*id));
    client.result("ping", json!({}));
    let ended = client.seen.iter().filter(|(_, line)| line["result"]["exit_code"] == 0);
    let mut answered: Vec<u64> = ended.filter_map(|(_, line)| line["id"].as_u64()).collect();
    answered.sort_unstable();
    assert_eq!(answered, Vec::from_iter(polls));
}

/// rule: protocol.md, cancel, ping, server_info, shutdown: `cancel` gives `{cancelled: bool}`;
///   false for an id that does not wait
#[test]
fn cancel_of_an_id_that_does_not_wait_is_false() {
    let mut execd = Execd::start();
    let session = execd.open_making("exec sleep 60", None);
    execd.send("7", "write_stdin", json!({"session_id": session, "yield_until": FAR}));
    for id in ["1", "\"nobody\"", "null", "7", "7.0", r#""\u0037 ""#] {
        execd.send_line(&format!(r#"{{"id":"c","method":"cancel","params":{{"id":{id}}}}}"#));
        let expected = r#"{"jsonrpc":"2.0","id":"c","result":{"cancelled":false}}"#;
        assert_eq!(execd.reply_line(), expected, "{id}: the waiting one is \"7\"");
    }
    assert_eq!(execd.result("cancel", json!({"id": "7"})), json!({"cancelled": true}));
    assert_eq!(execd.next_reply()["result"]["wait_status"], "cancelled");
    let again = execd.ask("cancel", json!({"id": "7"}));
    assert_eq!(again["result"], json!({"cancelled": false}));
}

/// rule: protocol.md, cancel, ping, server_info, shutdown: A cancelled kill_session answers with
///   what is known and goes on killing
#[test]
fn a_cancelled_kill_answers_with_what_is_known_and_goes_on() {
    let mut execd = Execd::start();
    let session =
        execd.open_until("trap '' TERM; echo ready; while :; do sleep 0.05; done", "ready");
    let kill = execd.start_request("kill_session", json!({"session_id": session}));
    execd.no_reply_yet(kill);
    assert!(execd.cancel(kill));
    let waited = execd.result_of(kill);
    assert_eq!((&waited["found"], &waited["killed"]), (&json!(true), &json!(false)), "{waited}");
    assert_eq!(waited["wait_status"], "cancelled");
    assert_absent(&waited, &["signal", "exit_code"]);
    // Nobody asks again, and yet SIGKILL follows.
    let exited = execd.notification("session_exited", |_| true);
    assert_eq!((&exited["session_id"], &exited["signal"]), (&json!(session), &json!("SIGKILL")));
    execd.until_no_session_process();
}

/// rule: protocol.md, cancel, ping, server_info, shutdown: `server_info` tells name, version, pid,
///   protocol revision, limits in force, counts and counters
#[test]
fn server_info_tells_what_this_execd_is_and_counts() {
    let flags = "--max-sessions 7 --max-line-bytes 100000 --max-output-bytes 1234 \
                 --max-output-lines 99 --max-empty-poll-ms 60000 --on-eof wait";
    let mut execd = Execd::with(&flags.split(' ').collect::<Vec<_>>(), &[]);
    let info = execd.result("server_info", json!({}));
    assert_eq!((&info["name"], &info["pid"]), (&json!("execd"), &json!(execd.pid())));
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    for (name, value) in [
        ("max_sessions", json!(7)),
        ("max_line_bytes", json!(100_000)),
        ("max_output_bytes", json!(1234)),
        ("max_output_lines", json!(99)),
        ("max_empty_poll_ms", json!(60_000)),
        ("on_eof", json!("wait")),
    ] {
        assert_eq!(info["limits"][name], value, "{name}");
    }
    assert_eq!(info["sessions"], json!({"live": 0, "finished": 0}));
    let done = execd.result("exec_command", json!({"cmd": "echo 12345"}));
    assert_eq!(done["exit_code"], 0);
    let session = execd.open_making("exec cat", None);
    execd.send("p", "write_stdin", json!({"session_id": session, "yield_until": FAR}));
    let later = execd.result("server_info", json!({}));
    let grown = |name: &str| {
        let count = |info: &Value| info["counters"][name].as_u64().expect("a number");
        count(&later) - count(&info)
    };
    assert_eq!((grown("requests"), grown("spawns"), grown("exits")), (4, 2, 1), "{later}");
    assert_eq!((grown("bytes_read"), grown("bytes_logged")), (6, 6));
    assert!(grown("loop_turns") > 0);
    assert_eq!(later["sessions"], json!({"live": 1, "finished": 0}));
    assert_eq!((&later["pending_requests"], &later["instance"]), (&json!(1), &info["instance"]));
}

/// rule: protocol.md, cancel, ping, server_info, shutdown: `shutdown` ends every session as at end
///   of input, answers with what was ended, then execd exits 0
#[test]
fn shutdown_ends_the_sessions_tells_which_and_exits_0() {
    let mut execd = Execd::start();
    let first = execd.open_making("exec sleep 61", None);
    let deaf = "trap '' TERM; touch ready; while :; do sleep 0.05; done";
    let second = execd.open_making(deaf, Some("ready"));
    let finished = execd.open_making(&until_file("go"), None);
    go(&execd, "go");
    execd.until_listed_exited(finished);
    execd.send("poll", "write_stdin", json!({"session_id": first, "yield_until": FAR}));
    let out = json!({"cmd": "echo out; touch out; exec sleep 62", "yield_time_ms": 30_000});
    execd.send("exec", "exec_command", out);
    until_exists(&execd.file("out"));
    // A reply that names a log waits until the keeper has made the file, 250 ms at most; by then
    // the session would have ended. Here the file is there.
    eventually("the log is there", || {
        execd.listed(finished + 1).is_some_and(|one| one.get("log_path").is_some())
    });
    execd.send("bye", "shutdown", json!({}));
    execd.send("late", "exec_command", json!({"cmd": "touch wrong"}));
    execd.send("later", "shutdown", json!({}));
    execd.send("alive", "ping", json!({}));
    let lines = execd.rest();
    let reply = |id: &str| {
        let mut found = lines.iter().map(|line| value(line)).filter(|line| line["id"] == id);
        let reply = found.next().unwrap_or_else(|| panic!("no reply to {id}: {lines:#?}"));
        assert!(found.next().is_none(), "{id} is answered twice");
        reply
    };
    for id in ["poll", "exec"] {
        let result = &reply(id)["result"];
        assert_eq!(result["wait_status"], "shutting_down", "{result}");
        assert!(result["session_id"].is_u64() && result.get("exit_code").is_none(), "{result}");
    }
    assert_eq!(reply("exec")["result"]["output"], "out\n");
    for id in ["late", "later"] {
        let error = reply(id)["error"].clone();
        assert_eq!(
            (&error["code"], &error["data"]["reason"]),
            (&json!(-32000), &json!("shutting_down"))
        );
    }
    assert_eq!(reply("alive")["result"], json!({}));
    let ended = reply("bye")["result"].clone();
    assert_eq!(ended.as_object().map(|fields| fields.len()), Some(1), "nothing survived: {ended}");
    let ended = ended["ended"].as_array().expect("a list").clone();
    let ids: Vec<&Value> = ended.iter().map(|one| &one["session_id"]).collect();
    assert_eq!(ids, [&json!(first), &json!(second), &json!(finished + 1)]);
    assert!(ended.iter().all(|one| one["pid"].is_u64()), "{ended:?}");
    assert_eq!(ended[0]["command"], "exec sleep 61");
    // The answer comes when they are gone, as the last reply.
    let last = lines.iter().rfind(|line| !is_notification(line)).expect("replies");
    assert_eq!(value(last)["id"], "bye");
    assert_eq!(execd.exit_code(), Some(0));
    execd.until_no_session_process();
    assert!(!execd.file("wrong").exists());
}

/// rule: protocol.md, From a shell: `execd --help` and `--version` work
/// rule: protocol.md, From a shell: An unknown flag exits 125 with a one-line reason
#[test]
fn flags_that_make_no_sense_and_a_start_that_fails_exit_125_with_one_line() {
    let (code, stdout, stderr) = run(&["-h"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(
        stdout.contains("execd run") && stdout.lines().all(|line| line.len() <= 80),
        "{stdout}"
    );
    // It wins over what comes after it.
    for flags in [&["--version"][..], &["-V", "--nonsense"]] {
        let expected = concat!("execd ", env!("CARGO_PKG_VERSION"), "\n").to_owned();
        assert_eq!(run(flags), (Some(0), expected, String::new()), "{flags:?}");
    }
    let cases: &[(&[&str], &str)] = &[
        (&["--nonsense"], "--nonsense"),
        (&["-z"], "-z"),
        (&["frobnicate"], "frobnicate"),
        (&["--max-sessions"], "max-sessions"),
        (&["--max-sessions", "0"], "--max-sessions"),
        (&["--max-sessions", "-1"], "--max-sessions"),
        (&["--max-line-bytes", "12"], "--max-line-bytes"),
        (&["--max-line-bytes=8M"], "--max-line-bytes"),
        (&["--on-eof", "never"], "--on-eof"),
        (&["--exit-after-silence", "0"], "--exit-after-silence"),
        (&["--first-session-id", "0"], "--first-session-id"),
        (&["--no-log=yes"], "no-log"),
        (&["call"], "call"),
        (&["call", "ping", "{}", "{}"], "call"),
        (&["--log-dir", "/proc/none/such"], "cannot start: "),
    ];
    for (args, word) in cases {
        let (code, stdout, stderr) = run(args);
        assert_eq!((code, stdout.as_str()), (Some(125), ""), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        assert!(stderr.starts_with("execd: ") && stderr.contains(word), "{args:?}: {stderr}");
    }
    // As env(1) and timeout(1): no exit status of the command's own is like it.
    assert_eq!(run(&["run"]).0, Some(125));
}

/// Runs execd with arguments and without input; gives exit code, stdout and stderr.
fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let mut setup = Setup::new(args);
    let (stdout, stderr) = (setup.workdir().join("stdout"), setup.workdir().join("stderr"));
    setup.command().stderr(std::fs::File::create(&stderr).expect("a file"));
    let mut host = setup.on(Stdio::null(), std::fs::File::create(&stdout).expect("a file"));
    let code = host.exit_code();
    let read = |path| std::fs::read_to_string(path).expect("text");
    (code, read(stdout), read(stderr))
}

/// rule: protocol.md, From a shell: On a terminal execd says in two lines on stderr what it is and
///   what to type, and serves
#[test]
fn on_a_terminal_execd_says_in_two_lines_what_to_type_and_serves() {
    let (mut master, slave) = open_pty();
    let (mut stderr, child_stderr) = std::io::pipe().expect("a pipe");
    let mut setup = Setup::new(&[]);
    setup.command().stderr(child_stderr);
    let stdout = slave.try_clone().expect("a copy");
    let mut host = setup.on(slave, stdout);
    let mut screen = Incoming::from(master.try_clone().expect("a copy"));
    master.write_all(b"{\"id\":1,\"method\":\"ping\"}\n").expect("typed");
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    // What is typed is echoed by the terminal, before or after the answer.
    while screen.line() != answer {}
    master.write_all(&[4]).expect("Ctrl-D");
    assert_eq!(host.exit_code(), Some(0));
    let mut hint = String::new();
    stderr.read_to_string(&mut hint).expect("text");
    assert_eq!(hint.lines().count(), 2, "{hint}");
    let example = hint.lines().nth(1).expect("a second line");
    assert!(example.contains(r#"{"id":1,"method":"exec_command","params":{"cmd":"#), "{hint}");
    // The example can be typed as it stands, up to the end of its object.
    let request = example.rsplit_once('}').expect("an object").0.to_owned() + "}";
    assert_eq!(value(&request)["method"], "exec_command", "{hint}");
}
