//! read_output: any part of any session's output by its offsets, whoever started the session and
//! whatever has become of it, and nothing is taken by it (logs.md, Reading).

use crate::common::data::{Stopped, assert_same};
use crate::common::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A page of a session's output.
fn read(execd: &mut Execd, session: u64, more: Value) -> Value {
    execd.result("read_output", merged(json!({"session_id": session}), more))
}

/// Sends read_output; gives the request's id.
fn begin(execd: &mut Execd, session: u64, more: Value) -> u64 {
    execd.start_request("read_output", merged(json!({"session_id": session}), more))
}

fn number(page: &Value, field: &str) -> u64 {
    page[field].as_u64().unwrap_or_else(|| panic!("no {field} in {page}"))
}

fn text(page: &Value) -> &str {
    page["text"].as_str().unwrap_or_else(|| panic!("no text in {page}"))
}

/// The exact bytes of a page.
fn exact(page: &Value) -> Vec<u8> {
    let data = page["data_b64"].as_str().unwrap_or_else(|| panic!("no data_b64 in {page}"));
    STANDARD.decode(data).expect("base64")
}

/// A page's from, to, total_bytes and eof.
fn place(page: &Value) -> (u64, u64, u64, bool) {
    assert_eq!(page["to"], page["next_offset"], "{page}");
    let eof = page["eof"].as_bool().expect("a boolean");
    (number(page, "from"), number(page, "to"), number(page, "total_bytes"), eof)
}

/// Runs a command to its end and gives its session's id, which no reply tells: that of its log.
fn run(execd: &mut Execd, cmd: &str) -> u64 {
    id_of_log(&execd.run(cmd))
}

fn id_of_log(result: &Value) -> u64 {
    let path = log_path(result);
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    name.split('-').nth(1).and_then(|id| id.parse().ok()).expect("an id in the name")
}

/// rule: logs.md, Reading: A page begins at `from`, an offset or so many bytes before the end
#[test]
fn offsets_count_from_the_front_or_from_the_end() {
    let mut execd = Execd::start();
    let result = execd.run("printf 0123456789; exit 3");
    let id = id_of_log(&result);
    let page = read(&mut execd, id, json!({}));
    let fields = "session_id family from to next_offset eof log_from total_bytes text \
                  started_at_ms elapsed_ms exit_code log_path";
    assert_fields(&page, &fields.split(' ').collect::<Vec<_>>());
    assert_eq!((&page["session_id"], &page["family"]), (&json!(1), &json!("unified")));
    assert_eq!((&page["exit_code"], &page["log_from"]), (&json!(3), &json!(0)));
    assert_eq!(page["log_path"], result["log_path"]);
    for (more, wanted, at) in [
        (json!({"from": 3, "to": 5}), "34", (3, 5, 10, false)),
        (json!({"from": 3, "to": 3}), "", (3, 3, 10, false)),
        (json!({"to": 9, "max_bytes": 4}), "5678", (5, 9, 10, false)),
        (json!({"max_bytes": 1}), "6789", (6, 10, 10, true)),
        (json!({"from": 0, "max_bytes": 4}), "0123", (0, 4, 10, false)),
        (json!({"from": i64::MAX}), "", (10, 10, 10, true)),
        (json!({"from": 0, "to": i64::MAX}), "0123456789", (0, 10, 10, true)),
        (json!({"from": i64::MIN}), "0123456789", (0, 10, 10, true)),
        (json!({"from": -4, "to": 8}), "67", (6, 8, 10, false)),
        (json!({"from": -4, "to": 2}), "", (6, 6, 10, false)),
    ] {
        for view in ["clean", "raw"] {
            let page = read(&mut execd, id, merged(more.clone(), json!({"view": view})));
            assert_eq!((text(&page), place(&page)), (wanted, at), "{view} {more}");
        }
        let page = read(&mut execd, id, merged(more.clone(), json!({"view": "b64"})));
        assert_absent(&page, &["text"]);
        assert_eq!((exact(&page), place(&page)), (wanted.into(), at), "{more}");
    }
    for (more, param) in [
        (json!({"from": 5, "to": 4}), "to"),
        (json!({"to": -1}), "to"),
        (json!({"stream": "stderr", "until": {"text": "x"}}), "stream"),
    ] {
        execd.refused("read_output", merged(json!({"session_id": id}), more), param);
    }
    execd.failed("read_output", json!({"session_id": 7}), "unknown_session");
}

/// The bytes before a page, which tell how it may begin, were taken from those of the largest page.
/// rule: logs.md, Reading: Without `from` it is the last `max_bytes`, with `lines` the last so many
///   lines
#[test]
fn a_page_has_64_kib_unless_it_is_told_otherwise_and_1_mib_at_most() {
    let mut execd = Execd::start();
    let id = run(&mut execd, "seq 300000");
    for (more, bytes) in [(json!({}), 65_536), (json!({"max_bytes": 1_048_577}), 1_048_576)] {
        let page = read(&mut execd, id, more);
        assert!(text(&page).len() <= bytes && text(&page).len() + 8 > bytes, "{bytes}");
    }
    for max_bytes in [1_048_573, 1_048_574, 1_048_575, 1_048_576] {
        let page = read(&mut execd, id, json!({"max_bytes": max_bytes}));
        assert_eq!((number(&page, "to"), &page["eof"]), (1_988_895, &json!(true)), "{max_bytes}");
        assert!(text(&page).ends_with("\n300000\n"), "{max_bytes}");
        let more = json!({"max_bytes": max_bytes, "view": "b64", "from": 100_000});
        assert_eq!(exact(&read(&mut execd, id, more)).len(), max_bytes);
    }
}

/// rule: logs.md, Reading: It begins at the start of a line at or behind `from`, unless there is
///   none
#[test]
fn lines_are_the_last_ones_and_clean_text_begins_with_a_line() {
    let mut execd = Execd::start();
    let id = run(&mut execd, "seq 30000; printf open");
    for view in ["clean", "raw"] {
        for (more, wanted) in [
            (json!({"lines": 2}), "30000\nopen"),
            (json!({"lines": 2, "to": 6}), "2\n3\n"),
            (json!({"lines": 2, "to": 5}), "2\n3"),
            // No line that does not fit, and none before from.
            (json!({"lines": 100, "max_bytes": 14}), "30000\nopen"),
            (json!({"lines": 100, "from": -5}), "open"),
        ] {
            let page = read(&mut execd, id, merged(more.clone(), json!({"view": view})));
            assert_eq!(text(&page), wanted, "{view} {more}");
        }
    }
    let page = read(&mut execd, id, json!({"lines": 1_000_000, "max_bytes": 1_048_576}));
    assert_eq!((text(&page).lines().count(), page["from"].as_u64()), (30_001, Some(0)));

    let id = run(&mut execd, "printf 'ab漢\\ncd\\nno end'");
    for (from, view, wanted, at) in [
        (1, "clean", "cd\nno end", 6),
        (6, "clean", "cd\nno end", 6),
        // There is no other line.
        (10, "clean", "o end", 10),
        (3, "raw", "\ncd\nno end", 5),
        (2, "raw", "漢\ncd\nno end", 2),
    ] {
        let page = read(&mut execd, id, json!({"from": from, "view": view}));
        assert_eq!((text(&page), number(&page, "from")), (wanted, at), "{view} {from}");
    }
}

/// rule: logs.md, Reading: An id of theirs is answered as long as execd lives
#[test]
fn sessions_of_every_family_are_read_while_they_run_and_after_they_have_left() {
    let mut execd = Execd::start();
    let stream =
        crate::stream_help::open_until(&mut execd, "echo out; echo err >&2; read x", "out");
    let window = crate::window_help::background(&mut execd, "echo in window; sleep 1000");
    let pi = crate::agent_help::fake_pi(&execd, &until_file("go"));
    let agent = execd.start_request("agent_execute", crate::agent_help::params(&pi, json!({})));
    let is_run = |note: &Value| {
        note["command"].as_str().is_some_and(|command| command.contains("--mode json"))
    };
    let run = execd.notification("session_started", is_run)["session_id"].as_u64().expect("an id");
    let unified = execd.open_until("echo plain; exec sleep 1000", "plain");
    let all = [
        (crate::stream_help::id_of(&stream), "stream", "out"),
        (crate::window_help::session(&window), "windows", "in window"),
        (unified, "unified", "plain"),
        (run, "agent", ""),
    ];
    for (id, family, has) in all {
        eventually("it has printed", || {
            let page = read(&mut execd, id, json!({}));
            assert_eq!((&page["family"], &page["eof"]), (&json!(family), &json!(false)));
            text(&page).contains(has)
        });
    }
    go(&execd, "go");
    execd.reply(agent);
    execd.result("write_stdin", json!({"sessionId": all[0].0, "data": "\n"}));
    crate::stream_help::until_over(&mut execd, all[0].0);
    execd.kill(all[1].0);
    execd.kill(unified);
    for n in 0..100 {
        execd.run(&format!("echo {n}"));
    }
    for (id, family, has) in all {
        let page = read(&mut execd, id, json!({}));
        assert_eq!((&page["family"], &page["eof"]), (&json!(family), &json!(true)));
        assert!(text(&page).contains(has), "{page}");
        assert!(page.get("exit_code").is_some() != page.get("signal").is_some(), "{page}");
    }
}

/// rule: logs.md, Reading: reading takes nothing from the unread output of others, uses up no wake,
///   tells nobody's exit, and keeps no session from being evicted
#[test]
fn reading_takes_nothing_uses_no_wake_and_moves_nobody_in_the_table() {
    let mut execd = Execd::with(&["--max-sessions", "10"], &[]);
    let (begins, ends) = (until_file("begin"), until_file("go"));
    let command = format!("{begins}; echo unread; {ends}; exit 4");
    let woken = session_of(&execd.open_now(&json!({"cmd": command, "on_exit": "wake"})));
    go(&execd, "begin");
    eventually("it has printed", || text(&read(&mut execd, woken, json!({}))) == "unread\n");
    for _ in 0..8 {
        execd.open("exec sleep 1000");
        read(&mut execd, woken, json!({}));
    }
    let request = begin(&mut execd, woken, json!({"from": 100, "yield_time_ms": 60_000}));
    go(&execd, "go");
    let page = execd.result_of(request);
    assert_eq!((page["exit_code"].as_i64(), page["eof"].as_bool()), (Some(4), Some(true)));
    let told = execd.notification("session_exited", |one| one["session_id"] == woken);
    assert_eq!((&told["observed"], &told["wake"]), (&json!(false), &json!(true)));
    let row = execd.listed(woken).expect("it is listed until its exit is told");
    assert_eq!((&row["running"], &row["exit_code"]), (&json!(false), &json!(4)));
    let last = execd.until_exit(woken);
    assert_eq!((output(&last), &last["exit_code"]), ("unread\n", &json!(4)));
}

/// One answer of the log writer reads 8 MiB of a log at most: the lines were once those of its
/// middle.
/// rule: logs.md, Reading: with `stream` the bytes of that stream
#[test]
fn the_last_lines_of_a_stream_are_found_in_a_log_that_has_much_more_of_the_other() {
    let mut execd = Execd::start();
    let command = "awk 'BEGIN { for (i = 0; i < 1000; i++) {
        for (j = 0; j < 400; j++) printf \"%099d\\n\", j
        fflush(); print \"e\" i > \"/dev/stderr\" } }'";
    crate::stream_help::run(&mut execd, command);
    for lines in [1, 100, 1_000] {
        let page = read(&mut execd, 1, json!({"stream": "stderr", "lines": lines}));
        let expected: String = (1_000 - lines..1_000).map(|n| format!("e{n}\n")).collect();
        assert_eq!(text(&page), expected, "{lines}");
        assert_eq!((&page["eof"], &page["total_bytes"]), (&json!(true), &json!(4_890)));
        assert_absent(&page, &["gap"]);
    }
    // Where one terminal or pipe has both, all of it is stdout's.
    let id = run(&mut execd, "echo out; echo err >&2");
    assert_eq!(text(&read(&mut execd, id, json!({"stream": "stdout"}))), "out\nerr\n");
    assert_eq!(text(&read(&mut execd, id, json!({"stream": "stderr"}))), "");
}

/// rule: logs.md, Reading: With `yield_time_ms` the call waits for output at or behind `from`
/// rule: logs.md, Reading: a prompt is read when it is printed, and what follows it later
#[test]
fn it_waits_for_output_at_or_behind_from() {
    let mut execd = Execd::start();
    let command = "printf 'one\\nname? '; read x; echo hello $x; read x";
    let id = execd.open_until(command, "name?");
    let page = read(&mut execd, id, json!({"from": 0, "yield_time_ms": 60_000}));
    assert_eq!((text(&page), place(&page)), ("one\nname? ", (0, 10, 10, false)));
    let waits = |more| merged(json!({"yield_time_ms": 60_000, "on_impossible": "wait"}), more);
    let late = begin(&mut execd, id, waits(json!({"from": 10})));
    let without = begin(&mut execd, id, waits(json!({})));
    let far = begin(&mut execd, id, json!({"from": 500, "yield_time_ms": 300}));
    execd.no_reply_yet(late);
    assert_eq!(place(&execd.result_of(far)), (10, 10, 10, false));
    execd.input(id, "you\\n");
    for request in [late, without] {
        let page = execd.result_of(request);
        assert_eq!((text(&page), place(&page)), ("hello you\n", (10, 20, 20, false)));
        assert_absent(&page, &["wait"]);
    }
    // Nobody was told of this place, but no other line is there.
    let page = read(&mut execd, id, json!({"from": 5}));
    assert_eq!((text(&page), place(&page)), ("ame? hello you\n", (5, 20, 20, false)));
    let page = read(&mut execd, id, json!({"from": 20, "yield_time_ms": 1}));
    assert_eq!((text(&page), place(&page)), ("", (20, 20, 20, false)));
}

/// rule: logs.md, Reading: The session's exit ends every wait
#[test]
fn an_exit_ends_every_wait_and_a_wait_that_only_input_can_end_is_answered() {
    let mut execd = Execd::start();
    let id = execd.open_until("echo hi; read x; exit 5", "hi");
    let impossible = json!({"until": {"text": "never"}, "yield_time_ms": 60_000});
    let page = read(&mut execd, id, impossible.clone());
    assert_eq!(page["wait"]["outcome"], "impossible", "{page}");
    assert_eq!(page["state"], "waiting_for_line");
    let waits = merged(impossible, json!({"on_impossible": "wait"}));
    let request = begin(&mut execd, id, waits);
    execd.no_reply_yet(request);
    execd.input(id, "\\n");
    let page = execd.result_of(request);
    assert_eq!((&page["wait"]["outcome"], &page["exit_code"]), (&json!("exited"), &json!(5)));
}

/// rule: logs.md, Reading: first in the output from `from` on that is there already
/// rule: logs.md, Reading: of a session that has left the lists what is there is looked at
#[test]
fn until_looks_at_what_is_there_and_then_at_what_comes() {
    let mut execd = Execd::start();
    // More than memory has: the first lines are in the log alone.
    let command = format!("seq 30000; {}; echo the end; exit 2", until_file("go"));
    let id = execd.open_until(&command, "30000");
    let until = |text: &str| {
        let until = json!({"text": text});
        json!({"until": until, "yield_time_ms": 60_000, "on_impossible": "wait"})
    };
    let from = |from: u64, text: &str| merged(json!({"from": from, "max_bytes": 10}), until(text));
    let page = read(&mut execd, id, from(0, "17"));
    let wait = &page["wait"];
    assert_eq!((&wait["outcome"], &wait["text"]), (&json!("matched"), &json!("17")));
    assert_eq!((&wait["offset"], &wait["present_at_entry"]), (&json!(39), &json!(true)));
    assert_eq!((text(&page), place(&page)), ("1\n2\n3\n4\n5\n", (0, 10, 168_894, false)));
    // Over the place where memory begins.
    assert_eq!(read(&mut execd, id, from(100_000, "29999"))["wait"]["outcome"], "matched");
    let stop = json!({"stop": {"regex": "^1700$"}, "until": {"text": "nowhere"}, "from": 0});
    assert_eq!(read(&mut execd, id, stop)["wait"]["outcome"], "stopped");
    let page = read(&mut execd, id, merged(from(0, "nowhere"), json!({"yield_time_ms": 100})));
    assert_eq!(page["wait"]["outcome"], "deadline");
    // Without from nothing counts that was there.
    let now = begin(&mut execd, id, until("0"));
    let later = begin(&mut execd, id, from(0, "the end"));
    execd.no_reply_yet(later);
    execd.no_reply_yet(now);
    assert!(execd.cancel(now));
    let page = execd.result_of(now);
    assert_eq!((text(&page), &page["wait"]["outcome"]), ("", &json!("cancelled")));
    go(&execd, "go");
    let wait = execd.result_of(later)["wait"].clone();
    assert_eq!((&wait["text"], &wait["present_at_entry"]), (&json!("the end"), &json!(false)));
    // Over and listed; then gone from the lists.
    execd.until_listed_exited(id);
    for _ in 0..2 {
        for (text, outcome) in [("17", "matched"), ("nowhere", "exited")] {
            let page = read(&mut execd, id, from(0, text));
            assert_eq!(
                (&page["wait"]["outcome"], &page["exit_code"]),
                (&json!(outcome), &json!(2))
            );
        }
        execd.result("list_sessions", json!({}));
    }
    let page = read(&mut execd, id, json!({"until": {"input": true}}));
    assert_eq!(page["wait"]["outcome"], "exited");
}

/// rule: logs.md, Reading: What was asked for and is no longer there is told as `gap`
#[test]
fn a_log_that_was_deleted_is_a_gap_and_the_exit_is_still_told() {
    let mut execd = Execd::start();
    let result = execd.run("seq 30000; exit 6");
    let id = id_of_log(&result);
    std::fs::remove_file(log_path(&result)).expect("the log");
    let page = read(&mut execd, id, json!({"from": 5}));
    assert_eq!((text(&page), place(&page)), ("", (168_894, 168_894, 168_894, true)));
    assert_eq!((&page["gap"], &page["exit_code"]), (&json!([5, 168_894]), &json!(6)));
    assert_eq!(page["log_from"], 168_894);
    assert_absent(&page, &["log_path"]);
    let page = read(&mut execd, id, json!({"from": 5, "to": 9}));
    assert_eq!((&page["gap"], place(&page)), (&json!([5, 9]), (9, 9, 168_894, false)));
}

/// With `lines` all was a gap that the log lacked, although memory had it.
#[test]
fn the_last_lines_that_a_log_lacks_are_those_of_memory() {
    let mut execd = Execd::with(&["--log-max-bytes", "1000000"], &[]);
    let id = session_of(&execd.open("seq 200000; exec sleep 1000"));
    let all = 1_288_895;
    eventually("all has come", || number(&read(&mut execd, id, json!({})), "total_bytes") == all);
    let page = read(&mut execd, id, json!({"lines": 3}));
    assert_eq!((text(&page), number(&page, "from")), ("199998\n199999\n200000\n", all - 21));
    assert_absent(&page, &["gap"]);
}

/// rule: logs.md, Reading: Without logs (`--no-log`) there is what memory has
/// rule: bash-stream.md, The stream family: --no-log: logPath is absent, memory serves the pages
#[test]
fn without_a_log_there_is_what_memory_has() {
    let mut execd = Execd::with(&["--no-log"], &[]);
    let id = session_of(&execd.open(&format!("{}; seq 300000; exec sleep 1000", until_file("go"))));
    go(&execd, "go");
    let all = 1_988_895;
    eventually("all has come", || number(&read(&mut execd, id, json!({})), "total_bytes") == all);
    let page = read(&mut execd, id, json!({"from": 0, "view": "b64", "max_bytes": 1_048_576}));
    let begins = all - 1_048_576;
    assert_eq!((&page["gap"], number(&page, "from")), (&json!([0, begins]), begins));
    assert_eq!((exact(&page).len(), &page["log_from"]), (1_048_576, &json!(begins)));
    assert_absent(&page, &["log_path"]);
    execd.kill(id);
    // What is kept for poll_process is kept for readers too.
    let page = read(&mut execd, id, json!({"from": 0, "view": "b64", "max_bytes": 1_048_576}));
    assert_eq!((&page["gap"], exact(&page).len()), (&json!([0, begins]), 1_048_576));
    assert_eq!((&page["signal"], &page["eof"]), (&json!("SIGTERM"), &json!(true)));
    execd.run("echo never listed");
    let page = read(&mut execd, id + 1, json!({"from": 0}));
    assert_eq!((&page["gap"], text(&page)), (&json!([0, 13]), ""));
    let ended = crate::stream_help::run(&mut execd, "echo out; echo err >&2");
    let id = crate::stream_help::id_of(&ended);
    assert_eq!(read(&mut execd, id, json!({"view": "b64"}))["to"], 8);
    assert_eq!(text(&read(&mut execd, id, json!({"stream": "stderr"}))), "err\n");
}

/// rule: logs.md, Reading: `read_output` reads any part of the output of any session
/// rule: architecture.md, The keeper: `--no-keeper`: pages of logs are answered at once
#[test]
fn without_a_keeper_logs_are_read_here() {
    let mut execd = Execd::with(&["--no-keeper"], &[]);
    let id = run(&mut execd, "seq 30000");
    let page = read(&mut execd, id, json!({"from": 0, "max_bytes": 1_048_576}));
    let wanted: String = (1..=30_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(text(&page), wanted);
    let page = read(&mut execd, id, json!({"from": 0, "max_bytes": 4, "until": {"text": "29999"}}));
    assert_eq!(page["wait"]["outcome"], "matched");
}

/// rule: logs.md, Reading: A log that cannot be read for 10 s, or whose writer has just died, is an
///   error (`system`) of that one request
/// rule: protocol.md, cancel: waits only for a log to be read is answered with the error `system`
///   when it is cancelled
#[test]
fn a_disk_that_stands_still_holds_up_nobody_else() {
    let mut execd = Execd::start();
    let old = run(&mut execd, "seq 30000");
    let streamed = crate::stream_help::id_of(&crate::stream_help::run(&mut execd, "seq 30000"));
    let live = execd.open_until("echo near; exec cat", "near");
    let keeper = execd.keeper();
    let stopped = Stopped::new(keeper);
    let few = json!({"from": 0, "max_bytes": 4});
    let page = begin(&mut execd, old, few.clone());
    let scan = begin(&mut execd, old, merged(few.clone(), json!({"until": {"text": "29999"}})));
    let page_of = json!({"sessionId": streamed, "offset": 0, "limit": 4});
    let streams = execd.start_request("get_process_log", page_of);
    // What memory has needs no disk.
    assert_eq!(text(&read(&mut execd, live, json!({}))), "near\n");
    let waits = begin(&mut execd, live, json!({"from": 5, "yield_time_ms": 60_000}));
    execd.send(json!("in"), "write_stdin", json!({"session_id": live, "chars": "typed\\n"}));
    assert_eq!(text(&execd.result_of(waits)), "typed\n");
    for request in [page, scan, streams] {
        execd.no_reply_yet(request);
        assert!(execd.cancel(request));
        let reply = execd.reply(request);
        assert_eq!(reply["error"]["data"]["reason"], "system", "{reply}");
        assert!(!execd.cancel(request));
    }
    // Those that wait behind them are answered.
    let next = begin(&mut execd, old, few.clone());
    drop(stopped);
    assert_eq!(text(&execd.result_of(next)), "1\n2\n");
    // A writer that dies.
    let stopped = Stopped::new(keeper);
    let request = begin(&mut execd, old, few.clone());
    execd.ping();
    send_signal(keeper, libc::SIGKILL);
    drop(stopped);
    let reply = execd.reply(request);
    assert_eq!(reply["error"]["data"]["reason"], "system", "{reply}");
    eventually("there is a new one", || {
        let params = merged(json!({"session_id": old}), few.clone());
        execd.request("read_output", params)["result"]["text"] == "1\n2\n"
    });
}

/// An empty page told 0 as `log_from`, also of a log that had lost its beginning.
/// rule: logs.md, Reading: A gap is what the log has lost at its beginning, or what never got there
/// rule: logs.md, Reading: `log_from` is the first byte that is left, `total_bytes` how many there
///   were
#[test]
fn a_log_that_has_lost_its_beginning_is_read_behind_a_gap_without_a_nul() {
    let mut execd = Execd::with(&["--log-keep-bytes", "1048576"], &[]);
    let wanted: String = (1..=700_000).map(|n| format!("{n:07}\n")).collect();
    let ended = run(&mut execd, "seq -f %07.0f 700000");
    let live = session_of(&execd.open("seq -f %07.0f 700000; exec sleep 1000"));
    // The log's files are seen by execd alone.
    eventually("all of it is read", || {
        let [one, other] =
            [live, ended].map(|id| read(&mut execd, id, json!({"from": 0, "max_bytes": 4})));
        number(&one, "total_bytes") == wanted.len() as u64 && one["log_from"] == other["log_from"]
    });
    for id in [ended, live] {
        let page = read(&mut execd, id, json!({"from": 80_001, "view": "b64"}));
        let (from, to, total, _) = place(&page);
        assert_eq!((total, &page["gap"]), (5_600_000, &json!([80_001, from])), "{id}");
        assert_eq!(page["log_from"], from, "{id}");
        assert!((5_600_000 - 1_114_120..=5_600_000 - 1_048_576).contains(&from), "{from}");
        let place = |offset: u64| usize::try_from(offset).expect("small");
        assert_same("what is left", &exact(&page), &wanted.as_bytes()[place(from)..place(to)]);
        // Clean text begins with a line.
        let page = read(&mut execd, id, json!({"from": 5}));
        let first = text(&page).lines().next().expect("a line");
        assert_eq!((number(&page, "from") % 8, first.len()), (0, 7), "{first}");
        assert!(!text(&page).contains('\0'));
        let until = json!({"from": 0, "until": {"text": "0000007"}, "yield_time_ms": 100});
        assert_eq!(read(&mut execd, id, until)["wait"]["present_at_entry"], Value::Null);
        let until = json!({"from": 0, "until": {"text": "0699999"}, "max_bytes": 8});
        assert_eq!(read(&mut execd, id, until)["wait"]["offset"], 5_600_000 - 16);
        // get_process_log tells the gap by its own field.
        let page = crate::stream_help::page(&mut execd, live, json!({"offset": 3}));
        let (offset, omitted) = (number(&page, "offset"), number(&page, "omittedBytes"));
        assert_eq!((offset, omitted), (from, from - 3));
        assert_eq!(page["text"], wanted[place(offset)..place(number(&page, "nextOffset"))]);
        for more in [json!({"from": 5_600_000}), json!({"from": 77, "to": 77, "lines": 2})] {
            let page = read(&mut execd, id, more.clone());
            assert_eq!((text(&page), number(&page, "log_from")), ("", from), "{id} {more}");
            assert_absent(&page, &["gap"]);
        }
    }
    let waits = begin(&mut execd, live, json!({"yield_time_ms": 60_000}));
    execd.no_reply_yet(waits);
    assert!(execd.cancel(waits));
    assert!(number(&execd.result_of(waits), "log_from") > 4_000_000);
}
