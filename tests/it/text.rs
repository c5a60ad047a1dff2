//! What a model reads and what the log keeps: clean text from progress bars, colours and
//! redraws, characters and escape sequences split over reads and calls, raw output, and
//! terminals whose output never loses its end, however much there is of it.

use std::fmt::Write as _;

use crate::common::*;
use serde_json::{Value, json};

const MIB: u64 = 1024 * 1024;
/// Far above what execd may use (a few MiB and the buffers of one session), far below a flood.
const MEMORY_KIB: u64 = 96 * 1024;

/// What a command that prints these bytes gives.
fn printed(execd: &mut Execd, bytes: &[u8], more: Value) -> Value {
    std::fs::write(execd.file("bytes"), bytes).expect("a file");
    let result = execd.run_with("cat bytes", more);
    assert_eq!(result["exit_code"], 0, "{result}");
    assert_eq!(log_of(&result), bytes, "the log has the raw bytes");
    result
}

/// What each call returns of a child that prints one of these parts before each call.
fn in_calls(parts: &[&[u8]]) -> Vec<String> {
    let mut execd = Execd::start();
    let mut cmd = String::new();
    for (at, part) in parts.iter().enumerate() {
        std::fs::write(execd.file(&format!("part{at}")), part).expect("a file");
        let _ = write!(cmd, "until [ -e go{at} ]; do sleep 0.01; done; cat part{at}; ");
    }
    let opened = execd.open(&format!("{cmd} read x"));
    let session = session_of(&opened);
    let mut printed = 0;
    let mut outputs = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        std::fs::write(execd.file(&format!("go{at}")), "").expect("a file");
        printed += part.len();
        eventually("the part is logged", || log_of(&opened).len() == printed);
        outputs.push(output(&execd.poll_now(session)).to_owned());
    }
    let params = json!({"session_id": session, "eof": true, "yield_time_ms": 30_000});
    assert_eq!(execd.write(params)["output"], "", "all was taken");
    outputs
}

// ---- Clean text -------------------------------------------------------------------------

/// rule: unified-exec.md, Truncation, retention, text: A progress bar that rewrote its line 1,000
///   times is one line
#[test]
fn a_progress_bar_on_a_terminal_is_one_line() {
    let mut execd = Execd::start();
    let cmd = "for i in 1 2 3 4 5; do printf '\\r%d%%' $((i * 20)); done; echo; echo done";
    let result = execd.run_with(cmd, json!({"tty": true}));
    assert_eq!(result["output"], "100%\ndone\n");
    assert_eq!(log_of(&result), b"\r20%\r40%\r60%\r80%\r100%\r\ndone\r\n");
}

/// rule: unified-exec.md, Truncation, retention, text: `raw_output: true` gives the text
///   unprocessed
#[test]
fn raw_output_is_the_text_unprocessed() {
    let raw = b"\x1b[31mred\x1b[0m\r\n10%\r20%\x08\x07\xe2\x82a\xff";
    let result = printed(&mut Execd::start(), raw, json!({"raw_output": true}));
    assert_eq!(output(&result), String::from_utf8_lossy(raw));
}

/// rule: unified-exec.md, Truncation, retention, text: `raw_output: true` gives the text
///   unprocessed
#[test]
fn raw_output_concerns_one_call() {
    let mut execd = Execd::start();
    let cmd = "printf '\\033[31mone\\033[0m\\n'; read x; printf '\\033[31mtwo\\033[0m\\n'; exit 0";
    let first = execd.open_until_with(cmd, "one", json!({"raw_output": true}));
    execd.poll_now(first);
    let params = json!({"session_id": first, "chars": "\\n", "yield_time_ms": 30_000});
    assert_eq!(execd.write(params)["output"], "two\n");
}

/// rule: unified-exec.md, Truncation, retention, text: Clean text is made from what is kept, never
///   from everything that passed
#[test]
fn text_is_truncated_after_it_was_cleaned() {
    let mut execd = Execd::start();
    // 300 KB of raw bytes, a few KB of text.
    let raw: String =
        (0..3_000).map(|i| format!("\x1b[31m{}\x1b[0m\r{i:04}\x1b[K", "x".repeat(90))).collect();
    let result = printed(&mut execd, format!("{raw}\n").as_bytes(), json!({}));
    assert_eq!(output(&result), "2999\n");
    assert_absent(&result, &["truncation", "footer"]);
}

// ---- UTF-8 ------------------------------------------------------------------------------

/// rule: unified-exec.md, Truncation, retention, text: A character split over two reads is whole
#[test]
fn a_character_split_over_reads_is_whole() {
    let mut execd = Execd::start();
    let cmd = "for byte in 360 237 230 200 12; do printf \"\\\\$byte\"; sleep 0.02; done";
    assert_eq!(execd.run(cmd)["output"], "😀\n");
    assert_eq!(execd.run_with(cmd, json!({"tty": true}))["output"], "😀\n");
}

/// rule: unified-exec.md, Truncation, retention, text: A character split over two calls is whole
/// rule: unified-exec.md, Truncation, retention, text: Parser and open line live across reads and
///   calls
/// rule: unified-exec.md, Truncation, retention, text: A new call starts with an empty line at
///   column 0
#[test]
fn what_is_split_over_calls_is_whole_and_each_begins_with_an_empty_line() {
    assert_eq!(in_calls(&[b"x\xf0\x9f", b"\x98", b"\x80y"]), ["x", "", "😀y"]);
    let parts: [&[u8]; 4] = [b"a\xc3", b"\xa9b\x1b[3", b"1mLoading 1", b"\rLoading 2\n"];
    assert_eq!(in_calls(&parts), ["a", "éb", "Loading 1", "Loading 2\n"]);
}

/// rule: architecture.md, The keeper: Every byte read from a child is in its log, unaltered
///   (terminal)
/// rule: unified-exec.md, Truncation, retention, text: The log holds the raw bytes
#[test]
fn a_terminals_bytes_are_logged_as_they_are() {
    let mut execd = Execd::start();
    let result = execd.run_with("printf '\\377\\376\\200ok\\n'", json!({"tty": true}));
    assert_eq!(log_of(&result), b"\xff\xfe\x80ok\r\n");
    assert_eq!(output(&result), "\u{fffd}\u{fffd}\u{fffd}ok\n");
}

// ---- Terminals keep their end -----------------------------------------------------------

/// `rows` lines of 80 columns as a terminal writes them.
fn rows_on_a_terminal(rows: u32) -> Vec<u8> {
    (1..=rows).map(|i| format!("{i:078}\r\n")).collect::<String>().into_bytes()
}

fn check_rows(result: &Value, rows: u32, expected: &[u8]) {
    assert_eq!(result["exit_code"], 0, "{rows} rows");
    assert_eq!(result["output_bytes_total"], expected.len(), "{rows} rows");
    assert!(log_of(result) == expected, "{rows} rows: the log differs");
    let last = format!("{rows:078}");
    assert!(output(result).trim_end().ends_with(&last), "{rows} rows: the end is missing");
}

fn terminal_keeps_its_end(rows: u32, times: usize) {
    let mut execd = Execd::start();
    let expected = rows_on_a_terminal(rows);
    for _ in 0..times {
        let result = execd.run_with(&format!("seq -f %078.0f 1 {rows}"), json!({"tty": true}));
        check_rows(&result, rows, &expected);
    }
}

/// rule: architecture.md, Ending a session: EPOLLHUP comes without EPOLLIN: it is read anyway
#[test]
fn eight_kib_on_a_terminal_keep_their_end() {
    terminal_keeps_its_end(103, 60);
}

/// rule: architecture.md, Ending a session: What lies in the PTY at the reaping is read to the end
///   first
#[test]
fn a_mib_on_a_terminal_keeps_its_end() {
    terminal_keeps_its_end(13_108, 8);
}

/// rule: architecture.md, Ending a session: EPOLLHUP comes without EPOLLIN: it is read anyway
#[test]
fn many_terminals_at_once_keep_their_ends() {
    let mut execd = Execd::start();
    let expected = rows_on_a_terminal(1_640);
    for _ in 0..4 {
        let params = json!({"cmd": "seq -f %078.0f 1 1640", "tty": true, "yield_time_ms": 30_000});
        let requests: Vec<u64> =
            (0..8).map(|_| execd.start_request("exec_command", params.clone())).collect();
        for request in requests {
            check_rows(&execd.result_of(request), 1_640, &expected);
        }
    }
}

#[test]
fn a_terminal_that_nobody_waits_for_keeps_its_end() {
    let mut execd = Execd::start();
    let cmd = "stty -echo; read x; seq -f %078.0f 1 820";
    let first = execd.open_with(cmd, json!({"tty": true}));
    execd.input(session_of(&first), "\\n");
    let expected = rows_on_a_terminal(820);
    let path = log_path(&first);
    eventually("the log is whole", || std::fs::read(&path).is_ok_and(|log| log == expected));
}

// ---- Floods -----------------------------------------------------------------------------

/// rule: unified-exec.md, Truncation, retention, text: 600 MiB without a newline in one call is an
///   answer like any other
#[test]
fn over_half_a_gib_in_one_call_is_an_answer_like_any_other() {
    let mut execd = Execd::start();
    let cmd = "head -c 600M /dev/zero | tr '\\0' x; exit 3";
    let mut result = execd.exec(json!({"cmd": cmd, "yield_time_ms": 30_000}));
    if let Some(session) = result.get("session_id").and_then(Value::as_u64) {
        result = execd.until_exit(session);
    }
    assert_eq!(
        (&result["exit_code"], &result["output_bytes_total"]),
        (&json!(3), &json!(600 * MIB))
    );
    assert_eq!(output(&result).len(), 50 * 1024);
    assert_eq!(std::fs::metadata(log_path(&result)).expect("the log").len(), 600 * MIB);
    assert!(execd.peak_rss_kib() < MEMORY_KIB, "{} KiB", execd.peak_rss_kib());
}

/// rule: unified-exec.md, Truncation, retention, text: Much coloured output in one call neither
///   stalls nor fills memory
/// rule: unified-exec.md, Truncation, retention, text: Clean text is made from what is kept, never
///   from everything that passed
#[test]
fn two_hundred_mb_of_coloured_output_are_an_answer_like_any_other() {
    let mut execd = Execd::start();
    let cmd = "yes $'\\e[31mred\\e[0m \\e[1;32mgreen\\e[0m and some more text' | head -c 200000000";
    let mut result = execd.exec(json!({"cmd": cmd, "yield_time_ms": 30_000}));
    if let Some(session) = result.get("session_id").and_then(Value::as_u64) {
        result = execd.until_exit(session);
    }
    assert_eq!(
        (&result["exit_code"], &result["output_bytes_total"]),
        (&json!(0), &json!(200_000_000))
    );
    assert!(!output(&result).contains('\x1b'));
    assert!(output(&result).contains("\nred green and some more text\n"));
    assert!(execd.peak_rss_kib() < MEMORY_KIB, "{} KiB", execd.peak_rss_kib());
}

#[test]
fn a_flood_on_a_terminal_keeps_its_end() {
    let mut execd = Execd::start();
    let rows = 250_000;
    let cmd = format!("seq -f %078.0f 1 {rows}");
    let mut result = execd.exec(json!({"cmd": cmd, "tty": true, "yield_time_ms": 30_000}));
    if let Some(session) = result.get("session_id").and_then(Value::as_u64) {
        result = execd.until_exit(session);
    }
    check_rows(&result, rows, &rows_on_a_terminal(rows));
    assert!(execd.peak_rss_kib() < MEMORY_KIB, "{} KiB", execd.peak_rss_kib());
}

/// rule: architecture.md, A session: Reads are bounded and round-robin: a `yes` in one session does
///   not delay another's reply
#[test]
fn a_flood_in_one_session_does_not_hold_up_another() {
    let mut execd = Execd::start();
    let flood = session_of(&execd.open("yes"));
    for i in 0..10 {
        assert_eq!(execd.run(&format!("echo {i}"))["output"], format!("{i}\n"));
    }
    let result = execd.kill(flood);
    assert_eq!(result["killed"], true);
}
