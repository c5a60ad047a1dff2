//! Byte-exactness: whatever a child writes, however much, however late, is in its log unaltered,
//! and the text and the memory of replies stay bounded.

use std::collections::VecDeque;

use crate::common::data::*;
use crate::common::*;
use serde_json::{Value, json};

const KIB: usize = 1024;
const MIB: usize = 1024 * 1024;
/// 4 MiB + 1 session × 2.3 MiB + 1 client × 20 MiB (architecture.md, Bounds).
const PEAK_KIB_OF_ONE_SESSION: u64 = 26_931;
/// What makes a terminal leave every byte as it is.
const RAW: &str = "stty raw -echo -opost; ";

/// Starts a command that runs to its end by itself; [`finish`] waits for that.
fn start(execd: &mut Execd, cmd: &str, tty: bool) -> u64 {
    execd.start_request("exec_command", json!({"cmd": cmd, "tty": tty, "yield_time_ms": 30_000}))
}

/// The result that tells the exit; polls where 30 s did not suffice.
fn finish(execd: &mut Execd, request: u64) -> Value {
    let result = execd.result_of(request);
    match result.get("session_id") {
        None => result,
        Some(session) => execd.write(json!({"session_id": session, "yield_time_ms": 600_000})),
    }
}

/// Shows that a command ended well and that nothing went wrong with its log.
fn assert_ended_well(result: &Value, count: usize) {
    let command = &result["command"];
    let (code, failure) = (&result["exit_code"], &result["failure_message"]);
    assert!(*code == 0 && failure.is_null(), "{command}: {code} {failure}");
    assert_eq!(result["output_bytes_total"], count, "{command}");
    assert!(result.get("log_truncated").is_none(), "{command}");
    if result["log_complete"] == false && !result["log_path"].is_null() {
        // On a busy machine the reply did not wait longer for the log, and says so: it comes.
        let path = log_path(result);
        let len = || std::fs::metadata(&path).map_or(0, |data| data.len());
        eventually("the log is whole", || len() >= count as u64);
    }
}

/// Shows that a command ended well and that its log holds just these bytes, and deletes the log.
fn assert_logged(result: &Value, wanted: &[u8]) {
    assert_ended_well(result, wanted.len());
    if result["log_path"].is_null() {
        // A log writer that was so late that nobody knows the directory yet: the first answers.
        assert_eq!(result["log_complete"], false, "{result}");
        return;
    }
    assert_same(&result["command"].to_string(), &log_of(result), wanted);
    std::fs::remove_file(log_path(result)).expect("the log is ours");
}

// ---- Any bytes --------------------------------------------------------------------------

/// rule: architecture.md, The keeper: Every byte read from a child is in its log, unaltered (pipe)
/// rule: architecture.md, The keeper: Every byte read from a child is in its log, unaltered
///   (terminal)
/// rule: architecture.md, The keeper: Sixteen sessions at once: each log is exact
#[test]
fn random_bytes_pass_sixteen_pipes_and_raw_terminals_unaltered() {
    let mut execd = Execd::start();
    let mut running = Vec::new();
    for (seed, count) in (1_u64..).zip([1, 255, 4_095, 4_097, 65_536, 65_537, MIB, 4 * MIB + 1]) {
        let bytes = Random(seed).bytes(count);
        let file = write_file(&execd, &format!("bytes-{seed}"), &bytes);
        for prefix in ["", RAW] {
            let cmd = format!("{prefix}cat {}", file.display());
            running.push((start(&mut execd, &cmd, prefix == RAW), bytes.clone()));
        }
    }
    for (request, bytes) in running {
        assert_logged(&finish(&mut execd, request), &bytes);
    }
}

// ---- The last moment --------------------------------------------------------------------

/// 300 commands whose last act is to write, several at once; each is logged whole.
/// rule: architecture.md, Ending a session: What lies in the pipe at the reaping is read to the end
///   first
/// rule: architecture.md, Ending a session: What lies in the PTY at the reaping is read to the end
///   first
/// rule: architecture.md, Ending a session: EPOLLHUP comes without EPOLLIN: it is read anyway
#[test]
fn what_is_written_right_before_the_exit_is_logged() {
    const RUNS: usize = 300;
    let sizes = [1, 2, 4_095, 4_096, 4_097, 8 * KIB, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, MIB];
    let mut execd = Execd::start();
    let bytes = Random(9).letters(MIB);
    let file = write_file(&execd, "letters", &bytes);
    let mut running = VecDeque::new();
    for run in 0..RUNS {
        let size = sizes[run % sizes.len()];
        // One write of everything where the kernel takes it, by a shell that then ends, or a
        // program that takes its place and ends.
        let cmd = if (run / sizes.len()).is_multiple_of(2) && size <= 4_097 {
            format!("printf %s $(head -c {size} {})", file.display())
        } else {
            format!("exec head -c {size} {}", file.display())
        };
        let tty = (run / sizes.len() / 2).is_multiple_of(2);
        running.push_back((start(&mut execd, &cmd, tty), size));
        while running.len() == 6 || (run + 1 == RUNS && !running.is_empty()) {
            let (request, size) = running.pop_front().expect("one is there");
            assert_logged(&finish(&mut execd, request), &bytes[..size]);
        }
    }
}

/// rule: architecture.md, Ending a session: A PTY's output ends at EIO after the leader was reaped;
///   EIO before that is a pause
/// rule: architecture.md, The keeper: With a full queue (1 MiB) that session's output is not read,
///   others don't notice, nothing is lost
#[test]
fn more_than_the_log_queue_holds_in_a_reopened_terminal_is_not_lost() {
    let mut execd = Execd::start();
    let bytes = Random(12).letters(3 * MIB);
    let file = write_file(&execd, "letters", &bytes);
    let cmd = format!(
        "stty raw -opost; t=$(tty); cat {0}; exec </dev/null >/dev/null 2>&1; exec >$t; cat {0}",
        file.display()
    );
    for _ in 0..5 {
        let request = start(&mut execd, &cmd, true);
        let result = finish(&mut execd, request);
        assert_logged(&result, &[&bytes[..], &bytes].concat());
    }
}

// ---- Much -------------------------------------------------------------------------------

/// Every number is another one: no lost, doubled or swapped piece goes unseen.
/// rule: unified-exec.md, Truncation, retention, text: 600 MiB without a newline in one call is an
///   answer like any other
#[test]
fn six_hundred_mebibytes_without_a_newline_are_one_call() {
    let mut execd = Execd::start();
    let count = 600 * MIB;
    let generator = format!("seq -s, 200000000 2>/dev/null | head -c {count}");
    let request = start(&mut execd, &generator, false);
    let result = finish(&mut execd, request);
    assert_ended_well(&result, count);
    assert_prints(&log_path(&result), &generator);
    std::fs::remove_file(log_path(&result)).expect("the log is ours");
    // A poll in between would have taken a part of it.
    if result["wall_time_seconds"].as_f64().is_some_and(|seconds| seconds < 30.0) {
        assert_eq!(result["original_token_count"], count / 4);
        assert_eq!(result["omitted_bytes"], count - MIB);
        assert_eq!(result["truncation"]["lastLinePartial"], true);
        assert_eq!(output(&result).len(), 50 * KIB);
    }
    let peak = execd.peak_rss_kib();
    assert!(peak <= PEAK_KIB_OF_ONE_SESSION, "{peak} KiB");
}

/// rule: unified-exec.md, Truncation, retention, text: Much coloured output in one call neither
///   stalls nor fills memory
#[test]
fn coloured_output_of_eight_mebibytes_neither_stalls_nor_fills_memory() {
    let mut execd = Execd::start();
    let mut text = String::with_capacity(9 * MIB);
    let mut line = 0;
    while text.len() < 8 * MIB {
        let colour = 31 + line % 7;
        text.push_str(&format!("\x1b[1;{colour}mline\x1b[0m \x1b[4m{line}\x1b[24m\x1b[K\r\n"));
        line += 1;
    }
    let file = write_file(&execd, "coloured", text.as_bytes());
    for tty in [false, true] {
        let prefix = if tty { RAW } else { "" };
        let request = start(&mut execd, &format!("{prefix}cat {}", file.display()), tty);
        // Somebody else's requests are answered meanwhile.
        for _ in 0..50 {
            execd.ping();
        }
        let result = finish(&mut execd, request);
        let last = format!("line {}", line - 1);
        assert_eq!(output(&result).lines().last(), Some(last.as_str()));
        assert!(!output(&result).contains('\x1b'));
        assert!(output(&result).len() <= 50 * KIB);
        assert_logged(&result, text.as_bytes());
    }
    let peak = execd.peak_rss_kib();
    assert!(peak <= PEAK_KIB_OF_ONE_SESSION, "{peak} KiB");
}

// ---- Characters -------------------------------------------------------------------------

/// Bytes as an argument of printf.
fn octal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\{byte:03o}")).collect()
}

/// rule: unified-exec.md, Truncation, retention, text: A character split over two reads is whole
/// rule: unified-exec.md, Truncation, retention, text: A character split over two calls is whole
#[test]
fn a_character_split_at_any_byte_over_two_reads_or_calls_is_whole() {
    let mut execd = Execd::start();
    let text = "\u{e9}\u{20ac}\u{1f600}\u{ffff}\u{10ffff}";
    for (number, at) in (1..).zip((1..text.len()).flat_map(|at| [at; 2])) {
        let (before, after) = text.as_bytes().split_at(at);
        let gate = Gate::new(&execd, &format!("gate-{number}"));
        let cmd = format!("printf '{}'; {}; printf '{}'", octal(before), gate.wait(), octal(after));
        let request = start(&mut execd, &cmd, at % 2 == 0);
        // The first part was read when it is in the log; only then is the second one written.
        eventually("the first part is read", || {
            let start = format!("/execd-{number}-");
            let mut logs = execd.log_files().into_iter();
            let log = logs.find(|path| path.to_string_lossy().contains(&start));
            log.and_then(|path| std::fs::read(path).ok()).is_some_and(|log| log == before)
        });
        let mut told = "";
        let polled;
        if number % 2 == 0 {
            execd.cancel(request);
            polled = execd.result_of(request);
            let whole = std::str::from_utf8(before).map_or_else(|e| e.valid_up_to(), str::len);
            told = output(&polled);
            assert_eq!(told, &text[..whole], "an unfinished character waits for its rest");
        }
        gate.open();
        let result =
            if number % 2 == 0 { execd.until_exit(number) } else { finish(&mut execd, request) };
        assert_eq!(output(&result), &text[told.len()..], "cut behind byte {at}");
    }
}
