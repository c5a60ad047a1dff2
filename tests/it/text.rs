//! What a model reads and what the log keeps: clean text from progress bars, colours and
//! redraws, characters and escape sequences split over reads and calls, raw output, and
//! terminals whose output never loses its end, however much there is of it.

use std::fmt::Write as _;

use crate::common::*;
use serde_json::{Value, json};

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

/// rule: unified-exec.md, Truncation, retention, text: A progress bar that rewrote its line 1,000
///   times is one line
/// rule: unified-exec.md, Truncation, retention, text: `raw_output: true` gives the text
///   unprocessed
/// rule: unified-exec.md, Truncation, retention, text: The log holds the raw bytes
/// rule: unified-exec.md, Truncation, retention, text: Clean text is made from what is kept, never
///   from everything that passed
#[test]
fn text_is_clean_and_cut_after_it_was_cleaned_and_the_log_and_raw_output_are_raw() {
    let mut execd = Execd::start();
    let cmd = "for i in 1 2 3 4 5; do printf '\\r%d%%' $((i * 20)); done; echo; echo done";
    let result = execd.run_with(cmd, json!({"tty": true}));
    assert_eq!(result["output"], "100%\ndone\n");
    assert_eq!(log_of(&result), b"\r20%\r40%\r60%\r80%\r100%\r\ndone\r\n");
    let raw = b"\x1b[31mred\x1b[0m\r\n10%\r20%\x08\x07\xe2\x82a\xff";
    let result = printed(&mut execd, raw, json!({"raw_output": true}));
    assert_eq!(output(&result), String::from_utf8_lossy(raw));
    // It concerns one call.
    let cmd = "printf '\\033[31mone\\033[0m\\n'; read x; printf '\\033[31mtwo\\033[0m\\n'; exit 0";
    let first = execd.open_ready(cmd, "one", json!({"raw_output": true}));
    let params = json!({"session_id": first, "chars": "\\n", "yield_time_ms": 30_000});
    assert_eq!(execd.write(params)["output"], "two\n");
    // 300 KB of raw bytes, a few KB of text.
    let raw: String =
        (0..3_000).map(|i| format!("\x1b[31m{}\x1b[0m\r{i:04}\x1b[K", "x".repeat(90))).collect();
    let result = printed(&mut execd, format!("{raw}\n").as_bytes(), json!({}));
    assert_eq!(output(&result), "2999\n");
    assert_absent(&result, &["truncation", "footer"]);
}

/// rule: unified-exec.md, Truncation, retention, text: Parser and open line live across reads and
///   calls
/// rule: unified-exec.md, Truncation, retention, text: A new call starts with an empty line at
///   column 0
#[test]
fn what_is_split_over_calls_is_whole_and_each_begins_with_an_empty_line() {
    let mut execd = Execd::start();
    let parts: [(&[u8], &str); 4] = [
        (b"a\xc3", "a"),
        (b"\xa9b\x1b[3", "éb"),
        (b"1mLoading 1", "Loading 1"),
        (b"\rLoading 2\n", "Loading 2\n"),
    ];
    let mut cmd = String::new();
    for (at, (part, _)) in parts.iter().enumerate() {
        std::fs::write(execd.file(&format!("part{at}")), part).expect("a file");
        let _ = write!(cmd, "{}; cat part{at}; ", until_file(&format!("go{at}")));
    }
    let opened = execd.open(&format!("{cmd} read x"));
    let mut printed = 0;
    for (at, (part, shown)) in parts.iter().enumerate() {
        go(&execd, &format!("go{at}"));
        printed += part.len();
        eventually("the part is logged", || log_of(&opened).len() == printed);
        assert_eq!(output(&execd.poll_now(1)), *shown);
    }
}

/// `rows` lines of 80 columns as a terminal writes them.
fn rows_on_a_terminal(rows: u32) -> Vec<u8> {
    (1..=rows).map(|i| format!("{i:078}\r\n")).collect::<String>().into_bytes()
}

/// rule: architecture.md, Ending a session: EPOLLHUP comes without EPOLLIN: it is read anyway
/// rule: architecture.md, Ending a session: What lies in the PTY at the reaping is read to the end
///   first
#[test]
fn much_and_little_on_many_terminals_keeps_its_end() {
    let mut execd = Execd::start();
    for (rows, times, at_once) in [(103, 8, 8), (1_640, 4, 8), (13_108, 4, 2), (250_000, 1, 1)] {
        let expected = rows_on_a_terminal(rows);
        let cmd = format!("seq -f %078.0f 1 {rows}");
        let params = json!({"cmd": cmd, "tty": true, "yield_time_ms": 30_000});
        for _ in 0..times {
            let requests: Vec<u64> =
                (0..at_once).map(|_| execd.start_request("exec_command", params.clone())).collect();
            for request in requests {
                let mut result = execd.result_of(request);
                if let Some(session) = result.get("session_id").and_then(Value::as_u64) {
                    result = execd.until_exit(session);
                }
                assert_eq!(result["exit_code"], 0, "{rows} rows");
                assert_eq!(result["output_bytes_total"], expected.len(), "{rows} rows");
                assert!(log_of(&result) == expected, "{rows} rows: the log differs");
                let last = format!("{rows:078}");
                let end = output(&result).trim_end();
                assert!(end.ends_with(&last), "{rows} rows: the end is missing");
            }
        }
    }
    assert!(execd.peak_rss_kib() < MEMORY_KIB, "{} KiB", execd.peak_rss_kib());
}
