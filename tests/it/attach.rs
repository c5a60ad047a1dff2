//! attach_session, attach_input and detach_session on the wire (people.md, The control socket
//! socket): what is replayed, what comes, sizes, slow clients, ends.

use std::io::{BufRead, BufReader, Read};

use crate::common::wire::{Wire, connect};
use crate::common::{Execd, contains, eventually, log_of, pid_of, session_of, until_logged};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const REPLAY: usize = 64 * 1024;

fn b64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn data_of(note: &Value) -> Vec<u8> {
    STANDARD.decode(note["data_b64"].as_str().expect("data")).expect("base64")
}

/// What a client has been sent of a session's own output: where it begins, and the bytes. Shows
/// that nothing is missing but what is said to be: the count of that is the third.
fn shown(notes: &[Value]) -> (u64, Vec<u8>, u64) {
    let mut notes = notes.iter().filter(|note| note.get("offset").is_some()).peekable();
    let begin = notes.peek().map_or(0, |note| note["offset"].as_u64().expect("a number"));
    let (mut next, mut all, mut dropped_in_all) = (begin, Vec::new(), 0);
    for note in notes {
        let dropped = note.get("dropped_bytes").map_or(0, |n| n.as_u64().expect("a number"));
        assert_eq!(note["offset"], next + dropped, "no byte twice, none lost in silence");
        let data = data_of(note);
        next += dropped + data.len() as u64;
        dropped_in_all += dropped;
        all.extend(data);
    }
    (begin, all, dropped_in_all)
}

fn until_shown(client: &mut Wire, text: &str) {
    let mut all = Vec::new();
    let mut at = 0;
    loop {
        while let Some((_, line)) = client.seen.get(at) {
            at += 1;
            if line["method"] == "attach_output" {
                all.extend(data_of(&line["params"]));
            }
        }
        if contains(&all, text.as_bytes()) {
            return;
        }
        let all = String::from_utf8_lossy(&all);
        assert!(client.line().is_some(), "the connection ended before {text:?}: {all}");
    }
}

fn attached(execd: &Execd, session: u64) -> (Wire, Value) {
    let mut client = Wire::connect(&execd.socket());
    let answer = client.result("attach_session", json!({"session_id": session}));
    (client, answer)
}

fn type_into(client: &mut Wire, session: u64, bytes: &[u8]) {
    let params = json!({"session_id": session, "data_b64": b64(bytes)});
    assert_eq!(client.result("attach_input", params), json!({"session_id": session}));
}

// ---- Output -----------------------------------------------------------------------------

/// rule: attach.md, attach_session, attach_input, detach_session: attach_session answers, then
///   sends the last 64 KiB from a line start, then what comes
/// rule: attach.md, attach_session, attach_input, detach_session: Attached clients are told the
///   session's end, after its output
#[test]
fn the_last_64_kib_come_from_a_line_start_and_then_all_that_comes() {
    let mut execd = Execd::start();
    let opened = execd.open("seq 50000; read line; seq 50001 60000; echo bye; exit 3");
    let session = session_of(&opened);
    until_logged(&opened, "\n50000\n");
    let (mut client, answer) = attached(&execd, session);
    assert_eq!(answer["session_id"], session);
    assert_eq!((&answer["running"], &answer["tty"]), (&json!(true), &json!(false)));
    assert_eq!((&answer["takes_input"], &answer["attached"]), (&json!(true), &json!(1)));
    assert_eq!(answer["output_bytes_total"], log_of(&opened).len());
    assert_eq!(answer["log_path"], opened["log_path"]);
    until_shown(&mut client, "\n50000\n");
    let (begin, replay, _) = shown(&client.notes("attach_output"));
    assert!(replay.len() <= REPLAY && replay.len() > REPLAY - 10, "{}", replay.len());
    let begin = usize::try_from(begin).expect("small");
    assert_eq!(log_of(&opened)[begin - 1], b'\n', "from the start of a line");
    type_into(&mut client, session, b"go\n");
    let ended = client.note("attach_ended", |_| true);
    assert_eq!(ended, json!({"session_id": session, "exit_code": 3}));
    let (_, all, dropped) = shown(&client.notes("attach_output"));
    until_logged(&opened, "\nbye\n");
    assert!(dropped == 0 && all == log_of(&opened)[begin..], "{dropped} {}", all.len());
    let rest = client.notes("attach_output").len();
    assert_eq!(client.notes("attach_ended").len(), 1);
    assert_eq!(client.notes("attach_output").len(), rest, "nothing after its end");
}

/// rule: attach.md, attach_session, attach_input, detach_session: attach_session answers, then
///   sends the last 64 KiB from a line start, then what comes
#[test]
fn an_output_without_lines_is_replayed_all_the_same() {
    let mut execd = Execd::start();
    let opened = execd.open("head -c 200000 /dev/zero | tr '\\0' x; exec sleep 1000");
    eventually("all is written", || log_of(&opened).len() == 200_000);
    let (mut client, _) = attached(&execd, session_of(&opened));
    client.note("attach_output", |_| true);
    let (begin, replay, _) = shown(&client.notes("attach_output"));
    assert_eq!((begin, replay.len()), (200_000 - REPLAY as u64, REPLAY));
}

/// rule: attach.md, attach_session, attach_input, detach_session: A slow attached client loses
///   output with a visible gap, never slows the session
#[test]
fn a_slow_client_loses_output_with_a_gap_and_slows_nobody() {
    const BYTES: usize = 30_000_000;
    let mut execd = Execd::start();
    let cmd = format!("read line; head -c {BYTES} /dev/zero | tr '\\0' x; echo; echo the end");
    let session = session_of(&execd.open(&cmd));
    let mut slow = connect(&execd.socket());
    let (mut quick, _) = attached(&execd, session);
    let request = json!({"id": 1, "method": "attach_session", "params": {"session_id": session}});
    std::io::Write::write_all(&mut slow, format!("{request}\n").as_bytes()).expect("sent");
    let input = json!({"session_id": session, "chars": "\n", "yield_time_ms": 30_000});
    let done = execd.write(input);
    assert_eq!(done["exit_code"], 0, "it ran to its end although somebody did not read");
    let total = done["output_bytes_total"].as_u64().expect("a number");
    assert!(execd.rss_kib() < 30 * 1024, "{} KiB", execd.rss_kib());
    // Then it reads: what is there, how much is not, the last of it, the end.
    let mut lines = BufReader::new(slow).lines().map(|line| line.expect("a line"));
    let mut notes = Vec::new();
    for line in lines.by_ref() {
        let line: Value = serde_json::from_str(&line).expect("JSON");
        match line["method"].as_str() {
            Some("attach_output") => notes.push(line["params"].clone()),
            Some("attach_ended") => break,
            _ => {}
        }
    }
    let (begin, data, dropped) = shown(&notes);
    assert_eq!(begin + data.len() as u64 + dropped, total);
    assert!(dropped > BYTES as u64 / 2, "{dropped} of {total}");
    assert!(data.ends_with(b"x\nthe end\n"));
    quick.note("attach_ended", |_| true);
    let (_, data, dropped) = shown(&quick.notes("attach_output"));
    assert_eq!(data.len() as u64 + dropped, total, "the other one's account is right too");
}

/// rule: attach.md, attach_session, attach_input, detach_session: A slow attached client loses
///   output with a visible gap, never slows the session
#[test]
fn a_gap_is_told_when_there_is_room_again_although_nothing_comes() {
    let mut execd = Execd::start();
    let cmd = "read line; head -c 5000000 /dev/zero | tr '\\0' x; echo 'the end'; exec cat";
    let opened = execd.open(cmd);
    let session = session_of(&opened);
    let mut slow = connect(&execd.socket());
    let request = json!({"id": 1, "method": "attach_session", "params": {"session_id": session}});
    std::io::Write::write_all(&mut slow, format!("{request}\n").as_bytes()).expect("sent");
    execd.write(json!({"session_id": session, "chars": "\n"}));
    until_logged(&opened, "the end");
    execd.ping();
    let (mut data, mut buffer, mut lines) = (Vec::new(), vec![0; 65_536], Vec::new());
    while !data.ends_with(b"the end\n") {
        let read = slow.read(&mut buffer).expect("connected");
        assert!(read > 0, "hung up on");
        lines.extend_from_slice(&buffer[..read]);
        while let Some(end) = lines.iter().position(|byte| *byte == b'\n') {
            let line: Value = serde_json::from_slice(&lines[..end]).expect("JSON");
            lines.drain(..=end);
            if line["method"] == "attach_output" {
                data = data_of(&line["params"]);
            }
        }
    }
}

// ---- Input ------------------------------------------------------------------------------

/// rule: attach.md, attach_session, attach_input, detach_session: attach_input goes straight to the
///   PTY: no escapes, no log of keys
#[test]
fn input_goes_to_a_terminal_as_it_is_and_is_kept_nowhere() {
    let mut execd = Execd::start();
    let cmd = "stty raw -echo; echo ready; dd bs=1 count=9 2>/dev/null | od -An -tx1; sleep 1000";
    let opened = execd.open_with(cmd, json!({"tty": true}));
    let session = session_of(&opened);
    until_logged(&opened, "ready");
    let (mut client, answer) = attached(&execd, session);
    assert_eq!(answer["tty"], true);
    // Escapes that write_stdin would decode, keys that mean something, bytes that are no UTF-8.
    type_into(&mut client, session, b"\\n\\x\x03\x04\x1c\xff\x00");
    until_logged(&opened, "5c 6e 5c 78 03 04 1c ff 00");
    let log = log_of(&opened);
    assert!(!contains(&log, b"\\n") && !contains(&log, b"\xff"), "what was typed is not logged");
    let opened = execd.open_with("echo up; exec cat >/dev/null", json!({"tty": true}));
    type_into(&mut client, session_of(&opened), b"x\x03");
    eventually("Ctrl-C ends it", || {
        execd.listed(session_of(&opened)).is_none_or(|row| row["running"] == false)
    });
}

/// rule: attach.md, attach_session, attach_input, detach_session: What does not fit is refused with
///   a reason; what was typed is repeated in no error
#[test]
fn what_does_not_fit_is_refused_with_a_reason() {
    let mut execd = Execd::start();
    let tty = session_of(&execd.open_with("exec cat", json!({"tty": true})));
    let deaf = session_of(&execd.open("exec sleep 1000"));
    let bad = json!({"session_id": tty, "data_b64": "secret!"});
    let message = execd.refused("attach_input", bad, "data_b64");
    assert!(!message.contains("secret"), "what was typed is repeated nowhere: {message}");
    let much = b64(&[b'x'; 200_000]);
    let params = json!({"session_id": deaf, "data_b64": much});
    execd.result("attach_input", params.clone());
    execd.failed("attach_input", params, "stdin_backlog_full");
}

// ---- Sizes and ends ---------------------------------------------------------------------

/// A program that tells its terminal's size after each change. bash loses a signal that comes while
/// the trap of the one before runs, so the trap only notes it, and the size is asked for behind
/// that: the last size is always told.
fn told_of_sizes(execd: &mut Execd) -> (u64, Value) {
    let cmd = "trap changed=1 WINCH; echo up; while :; do sleep 0.05; \
               if [ -n \"$changed\" ]; then changed=; echo now $(stty size); fi; done";
    let opened = execd.open_with(cmd, json!({"tty": true}));
    until_logged(&opened, "up");
    (session_of(&opened), opened)
}

/// The size of the terminal of what a result or a row tells of, from outside.
pub fn size_of(told: &Value) -> (u16, u16) {
    let terminal = std::fs::File::open(format!("/proc/{}/fd/0", pid_of(told)));
    let settings = crate::common::terminal_settings(&terminal.expect("its terminal"));
    let number = |name: &str| {
        let at = settings.iter().position(|word| word == name).expect("stty tells it");
        settings[at + 1].trim_end_matches(';').parse().expect("a number")
    };
    (number("columns"), number("rows"))
}

fn until_size(opened: &Value, cols: u16, rows: u16) {
    eventually(&format!("the size is {cols}x{rows}"), || size_of(opened) == (cols, rows));
}

/// rule: attach.md, attach_session, attach_input, detach_session: The newest attached size wins,
///   the former one returns at detach or when the client ends
#[test]
fn the_newest_size_wins_and_the_former_one_returns() {
    let mut execd = Execd::start();
    let (session, opened) = told_of_sizes(&mut execd);
    until_size(&opened, 120, 30);
    let (mut one, mut two) = (Wire::connect(&execd.socket()), Wire::connect(&execd.socket()));
    let size = |cols: u16, rows: u16| json!({"session_id": session, "cols": cols, "rows": rows});
    one.result("attach_session", size(100, 40));
    until_size(&opened, 100, 40);
    until_logged(&opened, "now 40 100");
    two.result("attach_session", size(70, 20));
    until_size(&opened, 70, 20);
    // Whoever says its size last is the newest.
    assert_eq!(one.result("resize_session", size(101, 41)), size(101, 41));
    until_size(&opened, 101, 41);
    // Somebody who is not attached has no say until all are gone.
    let mut later = size(90, 25);
    later["when_detached"] = json!(true);
    assert_eq!(execd.result("resize_session", size(90, 25)), later);
    until_size(&opened, 101, 41);
    let detached = one.result("detach_session", json!({"session_id": session}));
    assert_eq!(detached, json!({"session_id": session, "detached": true}));
    until_size(&opened, 70, 20);
    // A client that is gone is detached.
    drop(two);
    until_size(&opened, 90, 25);
    assert_eq!(execd.result("resize_session", size(91, 26)), size(91, 26));
    until_size(&opened, 91, 26);
    // Sizes are clamped as those of resize_session.
    one.result("attach_session", size(1, 9_999));
    until_size(&opened, 20, 300);
}

/// rule: attach.md, attach_session, attach_input, detach_session: A session that somebody is
///   attached to is not evicted
#[test]
fn a_session_that_somebody_watches_is_not_evicted() {
    let mut execd = Execd::with(&["--max-sessions", "2"], &[]);
    let watched = session_of(&execd.open("exec sleep 1000"));
    let (mut client, _) = attached(&execd, watched);
    client.result("ping", json!({}));
    let others: Vec<u64> = (0..3).map(|_| session_of(&execd.open("exec sleep 1000"))).collect();
    assert!(execd.listed(watched).is_some());
    assert!(execd.listed(others[0]).is_none());
}

/// rule: attach.md, attach_session, attach_input, detach_session: Only one attached terminal
///   answers the program's questions, and those of the past none
#[test]
fn only_one_terminal_is_to_answer_a_programs_questions() {
    let mut execd = Execd::start();
    let cmd = "stty raw -echo; printf 'past\\033[6n'; read -n1 key; printf 'now\\033[6n'; exec cat";
    let opened = execd.open_with(cmd, json!({"tty": true}));
    let session = session_of(&opened);
    until_logged(&opened, "past");
    let ((mut one, _), (mut two, _)) = (attached(&execd, session), attached(&execd, session));
    until_shown(&mut one, "past");
    until_shown(&mut two, "past");
    type_into(&mut one, session, b"k");
    until_shown(&mut one, "now");
    until_shown(&mut two, "now");
    let answers = |client: &mut Wire, text: &str| {
        let notes = client.notes("attach_output");
        let of_it = |note: &&Value| contains(&data_of(note), text.as_bytes());
        notes.iter().find(of_it).expect("it was shown").get("answer").cloned()
    };
    assert_eq!(answers(&mut one, "past"), Some(json!(false)), "of the past: nobody");
    assert_eq!(answers(&mut two, "past"), Some(json!(false)));
    assert_eq!(answers(&mut one, "now"), Some(json!(false)));
    assert_eq!(answers(&mut two, "now"), None, "the one who attached last");
}
