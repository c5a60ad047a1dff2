//! Many requests at once: `--jobs` and the queue of requests that start a command, and what the
//! exit status says of lines that were answered with an error (protocol.md, At most so many at
//! once).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::wire::Wire;
use crate::common::*;
use serde_json::{Value, json};

/// Requests in the queue, and requests of one client that wait.
const MOST: u64 = 1_024;

/// execd with at most so many commands at once.
fn at_most(jobs: &str) -> Execd {
    Execd::with(&["--jobs", jobs, "--on-impossible", "wait"], &[])
}

/// Lines of requests with the ids from 1 on.
fn lines(count: u64, request: impl Fn(u64) -> (&'static str, Value)) -> String {
    (1..=count).fold(String::new(), |mut all, id| {
        let (method, params) = request(id);
        let _ = writeln!(all, "{}", json!({"id": id, "method": method, "params": params}));
        all
    })
}

/// Starts a command that has its place until the file `go` is there, and the request of it.
fn hold(execd: &mut Execd) -> u64 {
    let request = execd.start_request("bash_stream", json!({"command": until_file("go")}));
    eventually("it runs", || !execd.session_processes().is_empty());
    request
}

/// The reason of an error reply.
fn reason(reply: &Value) -> &str {
    reply["error"]["data"]["reason"].as_str().unwrap_or_default()
}

/// 136 of 200 requests that were piped in were refused: more than 64 commands were to run at once.
/// rule: cli.md, NDJSON for scripts: Lines piped in with `--jobs N` are as many answers, at most N
///   commands run at once, and they start in order
#[test]
fn thousands_of_lines_are_as_many_answers_and_at_most_so_many_run() {
    let flags = ["--jobs", "8", "--no-log", "--no-keeper", "--no-socket"];
    let mut execd = Execd::with(&flags, &[("EXECD_LENIENT", "0")]);
    let over = Arc::new(AtomicBool::new(false));
    let (pid, ends) = (execd.pid(), Arc::clone(&over));
    let watch = thread::spawn(move || {
        let mut most = 0;
        while !ends.load(Ordering::Relaxed) {
            // Without helpers all its children are commands.
            let live = outside::children(pid).into_iter().filter(|(_, state)| *state != 'Z');
            most = most.max(live.count());
            // The commands are to have the processor.
            thread::sleep(PAUSE);
        }
        most
    });
    let all = lines(2_500, |id| {
        let method = if id % 2 == 0 { "exec_command" } else { "bash_stream" };
        (method, json!({"command": "echo $EXECD_SESSION_ID", "shell": "sh"}))
    });
    execd.send_raw(all.as_bytes());
    execd.close_stdin();
    let mut answered = BTreeSet::new();
    for reply in execd.remaining_lines().iter().filter(|line| line.get("method").is_none()) {
        let id = reply["id"].as_u64().expect("an id");
        let result = &reply["result"];
        let said = result["output"].as_str().or(result["stdout"].as_str());
        // Sessions are numbered in the order in which they start.
        assert_eq!(said, Some(&*format!("{id}\n")), "{reply}");
        assert!(answered.insert(id), "{id} twice");
    }
    assert_eq!(answered.len(), 2_500);
    assert_eq!(execd.exit_code(), Some(0));
    over.store(true, Ordering::Relaxed);
    let most = watch.join().expect("it only looks");
    assert!((1..=8).contains(&most), "{most} at once");
}

/// rule: cli.md, NDJSON for scripts: What a wait has left running counts, and the wait of a
///   request in line begins with its start
/// rule: cli.md, NDJSON for scripts: What starts no command passes
#[test]
fn a_command_has_its_place_until_it_has_ended_and_waits_begin_with_the_start() {
    let mut execd = at_most("1");
    let params = json!({"cmd": until_file("go"), "yield_time_ms": 250});
    let running = execd.result("exec_command", params);
    let session = session_of(&running);
    let params = json!({"cmd": "touch began", "yield_time_ms": 250});
    let next = execd.start_request("exec_command", params);
    // Longer than the wait of the one in line would last.
    execd.result("write_stdin", json!({"session_id": session, "chars": "x", "yield_time_ms": 400}));
    execd.no_reply_yet(next);
    assert!(!execd.file("began").exists());
    go(&execd, "go");
    until_exists(&execd.file("began"));
    execd.result_of(next);
    // What has ended and left something in the background has its place no more.
    execd.start_request("exec_command", json!({"cmd": "sleep 1000 & echo left"}));
    let again = json!({"cmd": "echo again", "yield_time_ms": 30_000});
    assert_eq!(output(&execd.exec(again)), "again\n");
}

/// rule: cli.md, NDJSON for scripts: What starts no command passes the line; `cancel` takes a
///   request out of it;
///   an id in line is in flight
#[test]
fn what_starts_nothing_passes_and_cancel_takes_out_of_the_line() {
    let mut execd = at_most("1");
    let first = hold(&mut execd);
    let touch = |name: &str| json!({"cmd": format!("touch {name}")});
    let ids = ["a", "b", "c"].map(|name| execd.start_request("exec_command", touch(name)));
    execd.send_line(r#"{"method":"exec_command","params":{"cmd":"echo n >> order"}}"#);
    let last = execd.start_request("bash", json!({"command": "echo last >> order"}));
    assert_eq!(execd.result("server_info", json!({}))["pending_requests"], 5);
    execd.ping();
    execd.send(ids[1], "ping", json!({}));
    assert_eq!(
        execd.reply(ids[1])["error"]["message"],
        format!("id {} is still in flight", ids[1])
    );
    // The harness takes no second reply of one id.
    let mut other = Wire::connect(&execd.socket());
    let in_line = other.send("exec_command", touch("d"));
    assert_eq!(other.result("cancel", json!({"id": in_line})), json!({"cancelled": true}));
    assert_eq!(reason(&other.reply(in_line)), "cancelled_in_line");
    assert!(execd.cancel(ids[2]));
    let reply = execd.reply(ids[2]);
    assert_eq!(reason(&reply), "cancelled_in_line", "{reply}");
    assert!(reply["error"]["data"]["line"].as_u64().is_some(), "{reply}");
    go(&execd, "go");
    for id in [first, ids[0], last] {
        execd.result_of(id);
    }
    assert!(execd.file("a").exists() && execd.file("b").exists());
    assert!(!execd.file("c").exists() && !execd.file("d").exists());
    let order = std::fs::read_to_string(execd.file("order")).expect("it was written");
    assert_eq!(order, "n\nlast\n", "one without an id has its turn too");
}

/// rule: cli.md, NDJSON for scripts: Of a client that is gone nothing in line is carried out
#[test]
fn a_client_that_vanishes_takes_its_requests_out_of_the_line() {
    let mut execd = at_most("1");
    let first = hold(&mut execd);
    let mut gone = Wire::connect(&execd.socket());
    gone.send("exec_command", json!({"cmd": "touch wrong"}));
    gone.raw(b"{\"method\":\"exec_command\",\"params\":{\"cmd\":\"touch wrong\"}}\n");
    gone.result("ping", json!({}));
    // One that only says that it has no more requests is still answered.
    let mut half = Wire::connect(&execd.socket());
    let asked = half.send("exec_command", json!({"cmd": "echo half"}));
    half.result("ping", json!({}));
    half.no_more();
    // More than the queue takes: the rest of it lies unread.
    let mut crowd = Wire::connect(&execd.socket());
    let line = b"{\"method\":\"exec_command\",\"params\":{\"cmd\":\"touch wrong\"}}\n";
    crowd.raw(&line.repeat(1_100));
    drop((gone, crowd));
    eventually("it is forgotten", || {
        execd.result("server_info", json!({}))["clients"]["connected"] == 1
    });
    let last = execd.start_request("exec_command", json!({"cmd": "echo last"}));
    go(&execd, "go");
    execd.result_of(first);
    assert_eq!(output(&half.reply(asked)["result"]), "half\n");
    assert_eq!(output(&execd.result_of(last)), "last\n");
    assert!(!execd.file("wrong").exists());
}

/// rule: cli.md, NDJSON for scripts: SIGTERM and shutdown answer what is in line with
///   `shutting_down`, and start
///   none of it
#[test]
fn the_end_of_execd_refuses_what_is_in_line_and_answers_each_once() {
    for by_signal in [true, false] {
        let mut execd = at_most("2");
        let all = lines(200, |id| {
            ("bash_stream", json!({"command": format!("touch began-{id}; exec sleep 1000")}))
        });
        execd.send_raw(all.as_bytes());
        for id in [1, 2] {
            until_exists(&execd.file(&format!("began-{id}")));
        }
        execd.ping();
        if by_signal {
            execd.signal(libc::SIGTERM);
        } else {
            execd.send_line(r#"{"id":"end","method":"shutdown"}"#);
        }
        let rest = execd.remaining_lines();
        let replies: Vec<&Value> = rest.iter().filter(|line| line["id"].is_u64()).collect();
        let ids: BTreeSet<u64> = replies.iter().filter_map(|one| one["id"].as_u64()).collect();
        assert_eq!((replies.len(), ids.len()), (200, 200));
        for reply in replies {
            let started = reply["id"].as_u64() <= Some(2);
            let told = if started { "" } else { "shutting_down" };
            assert_eq!(reason(reply), told, "{reply}");
        }
        assert_eq!(execd.exit_code(), Some(if by_signal { 143 } else { 0 }));
        assert!(!execd.file("began-3").exists());
    }
}

/// rule: cli.md, NDJSON for scripts: The queue has room for 1,024 requests; a client with one more
///   is not read until it fits
#[test]
fn a_full_queue_holds_the_reading_of_its_client_back_and_of_nobody_else() {
    let mut execd = at_most("1");
    let first = hold(&mut execd);
    let ids: Vec<String> = (0..MOST + 50).map(|at| format!("in line {at}")).collect();
    for id in &ids {
        execd.send(id.as_str(), "exec_command", json!({"cmd": "true", "shell": "sh"}));
    }
    let ping = execd.start_request("ping", json!({}));
    let mut other = Wire::connect(&execd.socket());
    eventually("the queue is full", || {
        other.result("server_info", json!({}))["pending_requests"] == MOST + 1
    });
    other.result("ping", json!({}));
    go(&execd, "go");
    execd.result_of(ping);
    execd.result_of(first);
    assert!(execd.reply_position(ping) > execd.reply_position(first), "it was not read before");
    execd.close_stdin();
    let rest = execd.all_lines();
    let mut answered: Vec<&str> = rest
        .iter()
        .filter(|line| line["result"]["exit_code"] == 0)
        .filter_map(|line| line["id"].as_str())
        .collect();
    answered.sort_unstable();
    answered.dedup();
    assert_eq!(answered.len(), ids.len());
}

/// Bytes of commands that each of nine clients sends.
const FLOOD_BYTES: usize = 8 << 20;
/// execd's memory at most, a debug build's too.
const FLOODED_KIB: u64 = 48 << 10;

/// execd looked for the client that held most for ever: 4.5 GB, deaf to SIGTERM.
#[test]
fn clients_that_send_more_than_the_queue_has_room_for_take_no_memory() {
    let mut execd = at_most("1");
    hold(&mut execd);
    let socket = execd.socket();
    let request = json!({"id": 1, "method": "exec_command",
        "params": {"cmd": format!("true {}", "x".repeat(16 << 10))}});
    let line = format!("{request}\n").replacen("\"id\":1,", "", 1);
    let floods: Vec<UnixStream> =
        (0..9).map(|_| UnixStream::connect(&socket).expect("a connection")).collect();
    let writers: Vec<_> = floods
        .iter()
        .map(|flood| {
            let (mut flood, line) = (flood.try_clone().expect("a descriptor"), line.clone());
            thread::spawn(move || {
                let lines = FLOOD_BYTES / line.len();
                // The connection ends in the middle of it: nobody reads it to its end.
                (0..lines).all(|_| flood.write_all(line.as_bytes()).is_ok())
            })
        })
        .collect();
    let mut other = Wire::connect(&socket);
    eventually("the queue is full, and nobody is read any more", || {
        let requests = other.result("server_info", json!({}))["counters"]["requests"].as_u64();
        thread::sleep(PAUSE);
        // Its own request alone has come since.
        let again = other.result("server_info", json!({}))["counters"]["requests"].as_u64();
        requests > Some(500) && again == requests.map(|before| before + 1)
    });
    let peak = execd.peak_rss_kib();
    assert!(peak < FLOODED_KIB, "{peak} KiB");
    execd.ping();
    drop(other);
    execd.signal(libc::SIGTERM);
    assert_eq!(execd.exit_code(), Some(143));
    for writer in writers {
        assert!(!writer.join().expect("it only writes"), "all of it was read");
    }
}

/// A long request waited until the queue was empty, however many short ones came after it.
/// rule: cli.md, NDJSON for scripts: The queue has room for 1,024 requests; a client with one more
///   is not read until it fits
#[test]
fn a_long_request_keeps_its_place_before_short_ones() {
    let mut execd = at_most("1");
    hold(&mut execd);
    let short = json!({"cmd": "echo >> order", "shell": "sh", "yield_time_ms": 30_000});
    let first: Vec<u64> =
        (0..5).map(|_| execd.start_request("exec_command", short.clone())).collect();
    execd.ping();
    let mut other = Wire::connect(&execd.socket());
    // No program takes so long an argument: its start fails, in its turn.
    let long = json!({"cmd": format!("true {}", "x".repeat(FLOOD_BYTES - 200))});
    let long = other.send("exec_command", long);
    (0..20).for_each(|_| execd.ping());
    let later: Vec<u64> =
        (0..300).map(|_| execd.start_request("exec_command", short.clone())).collect();
    go(&execd, "go");
    other.reply(long);
    let order = std::fs::read(execd.file("order")).map_or(0, |order| order.len());
    assert!(order < later.len() / 2, "{order} short ones went before it");
    for id in first.into_iter().chain(later) {
        execd.result_of(id);
    }
}

/// rule: cli.md, NDJSON for scripts: `--jobs` is 1 to 64, and no more than the table of sessions
///   has room for
#[test]
fn as_many_run_as_the_table_has_room_for() {
    let mut execd = Execd::with(&["--jobs", "9", "--max-sessions", "2"], &[]);
    let holds =
        [1, 2, 3].map(|_| execd.start_request("bash_stream", json!({"command": until_file("go")})));
    eventually("two run", || execd.session_processes().len() >= 2);
    execd.ping();
    assert_eq!(execd.result("server_info", json!({}))["pending_requests"], 3);
    assert_eq!(execd.peek()["sessions"].as_array().map(Vec::len), Some(2));
    go(&execd, "go");
    for id in holds {
        execd.result_of(id);
    }
}

/// rule: cli.md, NDJSON for scripts: Without `--jobs` stdin is not read while 1,024 of its requests
///   wait, and none is refused
#[test]
fn stdin_is_not_read_while_as_many_requests_wait_as_may() {
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    let session = execd.open_making(&until_file("go"), None);
    let wait = json!({"session_ids": [session], "timeout_ms": 600_000});
    // The rest of them lies in the pipe meanwhile.
    let all = lines(1_500, |_| ("wait_for", wait.clone()));
    execd.send_raw(all.as_bytes());
    let mut other = Wire::connect(&execd.socket());
    execd.close_stdin();
    eventually("as many wait as may", || {
        other.result("server_info", json!({}))["pending_requests"] == MOST
    });
    go(&execd, "go");
    let rest = execd.remaining_lines();
    let ids: Vec<u64> = rest
        .iter()
        .filter(|line| line.get("result").is_some())
        .filter_map(|line| line["id"].as_u64())
        .collect();
    assert_eq!(ids.len(), 1_500, "{:?}", rest.iter().find(|line| line.get("error").is_some()));
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 1_500);
    assert_eq!(execd.exit_code(), Some(0));
}

/// What execd says to these lines: its replies, its stderr and its exit status.
fn said(flags: &[&str], lines: &str) -> (Vec<Value>, String, Option<i32>) {
    let mut setup = Setup::new(flags);
    setup.command().env_remove("EXECD_LENIENT").stderr(Stdio::piped());
    let mut execd = setup.start();
    execd.send_raw(lines.as_bytes());
    execd.close_stdin();
    let replies = execd.remaining_lines();
    let code = execd.exit_code();
    (replies, execd.whole_stderr(), code)
}

/// rule: cli.md, NDJSON for scripts: After the end of stdin the status is 0 only if every line was
///   answered
///   without a protocol error; `--lenient` gives 0
/// rule: cli.md, NDJSON for scripts: Errors of lines name the line's number
#[test]
fn the_exit_status_and_the_errors_tell_of_lines_that_were_refused() {
    let fine = "{\"id\":1,\"method\":\"ping\"}\n";
    let failed = "{\"id\":9,\"method\":\"exec_command\",\"params\":{\"cmd\":\"exit 3\"}}\n";
    let (_, stderr, code) = said(&[], &format!("{fine}{failed}"));
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "a command that fails is no error");
    let lines = format!(
        "\n{fine}\n\n{{\"id\":2,\"method\":\"nope\"}}\n{fine}{{\n{{\"method\":\"nope\"}}\n{}\n",
        r#"{"id":3,"method":"write_stdin","params":{"session_id":7}}"#
    );
    let (replies, stderr, code) = said(&[], &lines);
    let numbers: Vec<(&Value, &Value)> = replies
        .iter()
        .filter_map(|reply| Some((&reply["id"], reply.get("error")?.get("data")?.get("line")?)))
        .collect();
    let expected = [(json!(2), json!(5)), (json!(null), json!(7)), (json!(3), json!(9))];
    assert_eq!(numbers, expected.iter().map(|(id, line)| (id, line)).collect::<Vec<_>>());
    // The one without an id, line 8, is answered by nobody, and counts.
    let told = "execd: 4 lines were refused, line 5 first: unknown method \"nope\" \
                (data.methods lists the known ones)\n";
    assert_eq!((stderr.as_str(), code), (told, Some(1)));
    let (_, stderr, code) = said(&["--lenient"], &lines);
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    // Who asks for the end gets it.
    let (_, _, code) = said(&[], "{\n{\"id\":1,\"method\":\"shutdown\"}\n");
    assert_eq!(code, Some(0));
    // Blank, long and unfinished lines count.
    let long = format!("{{\"id\":1,\"x\":\"{}\"}}", "x".repeat(5_000));
    let lines = format!("{long}\r\n \t\n{long}\n{long}");
    let (replies, _, code) = said(&["--max-line-bytes", "4096"], &lines);
    let numbers: Vec<&Value> = replies.iter().map(|one| &one["error"]["data"]["line"]).collect();
    assert_eq!((numbers, code), (vec![&json!(1), &json!(3), &json!(4)], Some(1)));
}

/// rule: cli.md, NDJSON for scripts: Every flag of the settings has a variable, flags win, an
///   empty one is as
///   unset, an invalid one is an error that names it
#[test]
fn settings_come_from_variables_and_flags_win() {
    let limit = |flags: &[&str], variables: &[(&str, &str)]| {
        let mut execd = Execd::with(flags, variables);
        execd.result("server_info", json!({}))["limits"]["max_sessions"].clone()
    };
    assert_eq!(limit(&[], &[("EXECD_MAX_SESSIONS", "7")]), 7);
    assert_eq!(limit(&["--max-sessions", "9"], &[("EXECD_MAX_SESSIONS", "7")]), 9);
    assert_eq!(limit(&[], &[("EXECD_MAX_SESSIONS", ""), ("EXECD_NO_LOG", "")]), 64);
    let refused = |words: &[&str], name: &str, value: &str| {
        let mut setup = Setup::new(words);
        setup.command().env(name, value).stderr(Stdio::piped());
        let mut host = setup.on(Stdio::null(), Stdio::piped());
        (host.exit_code(), host.whole_stderr())
    };
    for (words, name, value, told) in [
        (&[][..], "EXECD_MAX_SESSIONS", "x", "must be a number from 1 to 16384, not \"x\""),
        (&["mcp"], "EXECD_MAX_SESSIONS", "0", "must be a number from 1 to 16384, not \"0\""),
        (&["run", "true"], "EXECD_NO_LOG", "maybe", "must be 1 or 0, not \"maybe\""),
        (&[], "EXECD_EXIT_AFTER_SILENCE", "soon", "must be a time such as"),
        (&[], "EXECD_JOBS", "65", "must be a number from 1 to 64, not \"65\""),
    ] {
        let (code, stderr) = refused(words, name, value);
        let begins = format!("execd: {name} {told}");
        assert!(code == Some(125) && stderr.starts_with(&begins), "{code:?}: {stderr}");
    }
    // To what has no such settings the variable is nothing.
    assert_eq!(refused(&["ls"], "EXECD_MAX_SESSIONS", "x").0, Some(0));
}

/// rule: cli.md, NDJSON for scripts: Children do not inherit the variables that are about one
///   execd alone
#[test]
fn children_do_not_get_what_is_about_one_execd_alone() {
    let all = [
        ("EXECD_JOBS", "2"),
        ("EXECD_ON_EOF", "wait"),
        ("EXECD_EXIT_AFTER_SILENCE", "1h30m"),
        ("EXECD_FIRST_SESSION_ID", "40"),
        ("EXECD_LOG_KEEP_DAYS", "3"),
    ];
    let mut execd = Execd::with(&[], &all);
    let env = execd.run("env | grep ^EXECD_ | grep -v ^EXECD_TEST_ | sort | sed s/=.*//");
    let names = "EXECD_INSTANCE\nEXECD_LOG_KEEP_DAYS\nEXECD_SESSION_ID\n";
    assert_eq!(output(&env), names);
    assert_eq!(output(&execd.run("echo $EXECD_SESSION_ID")), "41\n", "the setting holds");
}

/// Requests without an id were killed at the end of stdin: 0 of 10 commands were carried out.
#[test]
fn requests_without_an_id_are_carried_out_after_the_end_of_stdin() {
    let mut execd = Execd::with(&["--on-impossible", "wait"], &[]);
    for at in 0..10 {
        // The file `go` comes after the end of stdin.
        let cmd = format!("{}; touch done{at}", until_file("go"));
        let params = json!({"cmd": cmd, "yield_time_ms": 30_000});
        execd.send_line(&json!({"method": "exec_command", "params": params}).to_string());
    }
    execd.close_stdin();
    eventually("all run", || execd.session_processes().len() >= 10);
    go(&execd, "go");
    assert_eq!(execd.exit_code(), Some(0));
    for at in 0..10 {
        assert!(execd.file(&format!("done{at}")).exists(), "{at}");
    }
}

/// The second and third line were never answered, and nobody could end execd but by a signal.
#[test]
fn a_command_that_reads_a_stdin_that_has_ended_gives_up_its_place() {
    let mut execd = Execd::with(&["--jobs", "1"], &[]);
    let all = lines(3, |_| ("exec_command", json!({"cmd": "cat", "yield_time_ms": 30_000})));
    execd.send_raw(all.as_bytes());
    execd.close_stdin();
    let replies = execd.remaining_lines();
    let ids: BTreeSet<u64> = replies.iter().filter_map(|line| line["id"].as_u64()).collect();
    assert_eq!(ids, BTreeSet::from([1, 2, 3]));
    assert_eq!(execd.exit_code(), Some(0));
}
