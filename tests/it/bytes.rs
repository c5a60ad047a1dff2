//! Byte-exactness: whatever a child writes, however much, however late, is in its log unaltered,
//! and the text and the memory of replies stay bounded.

use std::collections::VecDeque;

use crate::common::data::*;
use crate::common::*;
use base64::Engine;
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

/// The file's bytes reach the log through one session.
fn assert_passes(execd: &mut Execd, seed: u64, count: usize, tty: bool) {
    let bytes = Random(seed).bytes(count);
    let file = write_file(execd, &format!("bytes-{seed}"), &bytes);
    let prefix = if tty { RAW } else { "" };
    let request = start(execd, &format!("{prefix}cat {}", file.display()), tty);
    let result = finish(execd, request);
    assert_logged(&result, &bytes);
    std::fs::remove_file(file).expect("the file is ours");
}

// ---- Any bytes --------------------------------------------------------------------------

/// rule: architecture.md, The keeper: Every byte read from a child is in its log, unaltered (pipe)
#[test]
fn random_bytes_pass_a_pipe_unaltered() {
    let mut execd = Execd::start();
    for (seed, count) in (1_u64..).zip([1, 2, 255, 4_095, 65_536, 65_537, MIB, 8 * MIB + 1]) {
        assert_passes(&mut execd, seed, count, false);
    }
}

/// rule: architecture.md, The keeper: Every byte read from a child is in its log, unaltered
///   (terminal)
#[test]
fn random_bytes_pass_a_raw_terminal_unaltered() {
    let mut execd = Execd::start();
    for (seed, count) in (1_u64..).zip([1, 2, 255, 4_095, 4_096, 4_097, 65_537, 4 * MIB + 1]) {
        assert_passes(&mut execd, seed, count, true);
    }
}

#[test]
fn random_writes_of_any_size_keep_their_order() {
    let mut execd = Execd::start();
    let mut random = Random(77);
    let bytes = random.bytes(3 * MIB);
    let file = write_file(&execd, "whole", &bytes);
    // dd writes in blocks of an odd size, so reads end anywhere.
    for (block, tty) in [(1, false), (7, false), (4_099, false), (13, true), (4_099, true)] {
        let count = if block < 100 { 20_000 } else { 700 };
        let prefix = if tty { RAW } else { "" };
        let cmd = format!("{prefix}dd if={} bs={block} count={count} status=none", file.display());
        let request = start(&mut execd, &cmd, tty);
        let result = finish(&mut execd, request);
        assert_logged(&result, &bytes[..block * count]);
    }
}

/// rule: architecture.md, A session: A child has one pipe for stdout and stderr: their order is
///   exactly the child's
#[test]
fn stdout_and_stderr_of_a_child_keep_their_order_in_one_pipe() {
    let mut execd = Execd::start();
    let cmd = "for i in $(seq 3000); do echo out $i; echo err $i >&2; done";
    let result = execd.run(cmd);
    let wanted: String = (1..=3000).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_logged(&result, wanted.as_bytes());
}

/// rule: architecture.md, The keeper: Sixteen sessions at once: each log is exact
#[test]
fn sixteen_sessions_at_once_are_each_exact() {
    let mut execd = Execd::start();
    let mut running = Vec::new();
    for seed in 100..116 {
        let tty = seed % 2 == 0;
        let bytes = Random(seed).bytes(if tty { 2 * MIB + 3 } else { 6 * MIB + 1 });
        let file = write_file(&execd, &format!("bytes-{seed}"), &bytes);
        let prefix = if tty { RAW } else { "" };
        let cmd = format!("{prefix}cat {}", file.display());
        running.push((start(&mut execd, &cmd, tty), bytes));
    }
    for (request, bytes) in running {
        let result = finish(&mut execd, request);
        assert_logged(&result, &bytes);
    }
}

/// rule: unified-exec.md, write_stdin: `chars_b64`: exact bytes
#[test]
fn bytes_that_write_stdin_sends_come_back_as_they_were() {
    let mut execd = Execd::start();
    let mut random = Random(5);
    let sent = random.bytes(200 * KIB);
    let all = [&(0..=255).collect::<Vec<u8>>(), &sent[..]].concat();
    for tty in [false, true] {
        let prefix = if tty { RAW } else { "" };
        let session = execd.open_until_with(
            &format!("{prefix}echo ready; head -c {}", all.len()),
            "ready\n",
            json!({"tty": tty}),
        );
        let text = base64::engine::general_purpose::STANDARD.encode(&all);
        let params = json!({"session_id": session, "chars_b64": text, "yield_time_ms": 30_000});
        let request = execd.start_request("write_stdin", params);
        let result = finish(&mut execd, request);
        assert_logged(&result, &[b"ready\n", &all[..]].concat());
    }
}

// ---- The last moment --------------------------------------------------------------------

const SIZES_AT_THE_END: [usize; 10] =
    [1, 2, 4_095, 4_096, 4_097, 8 * KIB, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, MIB];

/// 500 commands whose last act is to write, several at once; each is logged whole.
fn assert_last_writes_arrive(tty: bool) {
    const RUNS: usize = 500;
    const AT_ONCE: usize = 6;
    let mut execd = Execd::start();
    let bytes = Random(9).letters(MIB);
    let file = write_file(&execd, "letters", &bytes);
    let mut running = VecDeque::new();
    for run in 0..RUNS {
        let size = SIZES_AT_THE_END[run % SIZES_AT_THE_END.len()];
        // One write of everything where the kernel takes it, by a shell that then ends, or a
        // program that takes its place and ends.
        let cmd = if (run / SIZES_AT_THE_END.len()).is_multiple_of(2) && size <= 4_097 {
            format!("printf %s $(head -c {size} {})", file.display())
        } else {
            format!("exec head -c {size} {}", file.display())
        };
        running.push_back((start(&mut execd, &cmd, tty), size));
        if running.len() == AT_ONCE || run + 1 == RUNS {
            let take = if run + 1 == RUNS { running.len() } else { 1 };
            for (request, size) in running.drain(..take) {
                let result = finish(&mut execd, request);
                assert_logged(&result, &bytes[..size]);
            }
        }
    }
}

/// rule: architecture.md, Ending a session: What lies in the pipe at the reaping is read to the end
///   first
#[test]
fn what_is_written_right_before_the_exit_is_logged_pipe() {
    assert_last_writes_arrive(false);
}

/// rule: architecture.md, Ending a session: What lies in the PTY at the reaping is read to the end
///   first
#[test]
fn what_is_written_right_before_the_exit_is_logged_terminal() {
    assert_last_writes_arrive(true);
}

/// rule: architecture.md, Ending a session: What lies in the PTY at the reaping is read to the end
///   first
/// rule: unified-exec.md, Truncation, retention, text: `\r\n` is a newline
#[test]
fn a_thousand_short_terminal_commands_lose_nothing() {
    let mut execd = Execd::start();
    let mut running = VecDeque::new();
    let check = |execd: &mut Execd, (request, run): (u64, usize)| {
        let result = finish(execd, request);
        assert_eq!(output(&result), format!("run {run}\nend of {run}"));
        assert_logged(&result, format!("run {run}\r\nend of {run}").as_bytes());
    };
    for run in 0..1_000 {
        let cmd = format!("echo run {run}; printf 'end of %d' {run}");
        running.push_back((start(&mut execd, &cmd, true), run));
        if running.len() == 8 {
            let oldest = running.pop_front().expect("eight are there");
            check(&mut execd, oldest);
        }
    }
    for left in running {
        check(&mut execd, left);
    }
}

/// rule: architecture.md, Ending a session: What lies in the pipe at the reaping is read to the end
///   first
#[test]
fn output_behind_a_killed_leader_is_read_to_its_end() {
    let mut execd = Execd::start();
    let bytes = Random(11).letters(200 * KIB);
    let file = write_file(&execd, "letters", &bytes);
    for tty in [false, true] {
        let cmd = format!("cat {}; kill -KILL $$", file.display());
        let request = start(&mut execd, &cmd, tty);
        let result = finish(&mut execd, request);
        assert_eq!(result["signal"], "SIGKILL");
        eventually("the log is whole", || log_of(&result).len() >= bytes.len());
        assert_same("the log", &log_of(&result), &bytes);
    }
}

/// rule: architecture.md, Ending a session: A PTY's output ends at EIO after the leader was reaped;
///   EIO before that is a pause
#[test]
fn a_terminal_that_its_leader_closed_and_opened_again_goes_on() {
    let mut execd = Execd::start();
    let gate = Gate::new(&execd, "gate");
    // With no slave open the master says EIO: a pause, because the leader lives.
    let cmd = format!(
        "t=$(tty); echo one; exec </dev/null >/dev/null 2>&1; {}; exec >$t; echo two",
        gate.wait()
    );
    let request = start(&mut execd, &cmd, true);
    gate.open();
    let result = finish(&mut execd, request);
    assert_logged(&result, b"one\r\ntwo\r\n");
    assert_eq!(output(&result), "one\ntwo\n");
}

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
    for _ in 0..10 {
        let request = start(&mut execd, &cmd, true);
        let result = finish(&mut execd, request);
        assert_logged(&result, &[&bytes[..], &bytes].concat());
    }
}

// ---- Much -------------------------------------------------------------------------------

/// rule: architecture.md, The keeper: Every byte read from a child is in its log, unaltered (pipe)
#[test]
fn a_gibibyte_of_lines_is_logged_byte_by_byte() {
    let mut execd = Execd::start();
    let count = 1024 * MIB;
    // Every line is another one: no lost, doubled or swapped piece goes unseen.
    let generator = format!("seq 200000000 2>/dev/null | head -c {count}");
    let request = start(&mut execd, &generator, false);
    let result = finish(&mut execd, request);
    assert_ended_well(&result, count);
    assert_prints(&log_path(&result), &generator);
    std::fs::remove_file(log_path(&result)).expect("the log is ours");
    let peak = execd.peak_rss_kib();
    assert!(peak <= PEAK_KIB_OF_ONE_SESSION, "{peak} KiB");
}

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
fn coloured_output_of_twenty_mebibytes_neither_stalls_nor_fills_memory() {
    let mut execd = Execd::start();
    let mut text = String::with_capacity(21 * MIB);
    let mut line = 0;
    while text.len() < 20 * MIB {
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

/// rule: unified-exec.md, Truncation, retention, text: Unread output is held in a head and tail
///   buffer of 1 MiB
#[test]
fn a_flood_that_is_never_read_keeps_its_head_and_tail() {
    let mut execd = Execd::start();
    let gate = Gate::new(&execd, "gate");
    let cmd = format!("{}; seq 1000000; echo done", gate.wait());
    let session = session_of(&execd.open(&cmd));
    gate.open();
    let result = execd.until_exit(session);
    let whole: String = (1..=1_000_000).map(|i| format!("{i}\n")).collect::<String>() + "done\n";
    assert_eq!(result["omitted_bytes"], whole.len() - MIB);
    assert_eq!(output(&result).lines().last(), Some("done"));
    assert_logged(&result, whole.as_bytes());
}

// ---- Characters -------------------------------------------------------------------------

const CHARACTERS: [&str; 5] = ["\u{e9}", "\u{20ac}", "\u{1f600}", "\u{ffff}", "\u{10ffff}"];

/// Every place where a character of several bytes can be cut: what comes before, and after.
fn cuts() -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let text = CHARACTERS.concat();
    let all = text.as_bytes();
    (1..all.len()).map(|at| (text.clone(), all[..at].to_vec(), all[at..].to_vec())).collect()
}

/// Bytes as an argument of printf.
fn octal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\{byte:03o}")).collect()
}

/// rule: unified-exec.md, Truncation, retention, text: A character split over two reads is whole
#[test]
fn a_character_split_at_any_byte_over_two_reads_is_whole() {
    let mut execd = Execd::start();
    let log_number = |path: &std::path::Path, number: usize| {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        name.starts_with(&format!("execd-{number}-"))
    };
    for (number, (text, before, after)) in (1..).zip(cuts()) {
        let gate = Gate::new(&execd, &format!("gate-{number}"));
        let tty = number % 2 == 0;
        let cmd =
            format!("printf '{}'; {}; printf '{}'", octal(&before), gate.wait(), octal(&after));
        let request = start(&mut execd, &cmd, tty);
        // The first part was read when it is in the log; only then is the second one written.
        eventually("the first part is read", || {
            let log = execd.log_files().into_iter().find(|path| log_number(path, number));
            log.and_then(|path| std::fs::read(path).ok()).is_some_and(|log| log == before)
        });
        gate.open();
        let result = finish(&mut execd, request);
        assert_eq!(output(&result), text, "cut behind byte {}", before.len());
    }
}

/// rule: unified-exec.md, Truncation, retention, text: A character split over two calls is whole
#[test]
fn a_character_split_at_any_byte_over_two_calls_is_whole_in_the_second() {
    let mut execd = Execd::start();
    let all = cuts();
    let mut running = Vec::new();
    for (number, (text, before, after)) in all.into_iter().enumerate() {
        let gate = Gate::new(&execd, &format!("gate-{number}"));
        let (first, second) = (octal(&before), octal(&after));
        let cmd = format!("printf '{first}'; {}; printf '{second}'", gate.wait());
        let params = json!({
            "cmd": cmd, "yield_time_ms": 250, "tty": number % 2 == 0, "raw_output": number % 3 == 0,
        });
        running.push((execd.start_request("exec_command", params), gate, text, before));
    }
    for (request, gate, text, before) in running {
        let result = execd.result_of(request);
        let session = session_of(&result);
        until_logged(&result, "");
        let mut told = output(&result).to_owned();
        // On a busy machine the first part may come behind the first reply.
        eventually("the first part is told", || {
            told.push_str(output(&execd.poll_now(session)));
            log_of(&result) == before
        });
        told.push_str(output(&execd.poll_now(session)));
        let whole = std::str::from_utf8(&before).map_or_else(|e| e.valid_up_to(), str::len);
        assert_eq!(told, text[..whole], "an unfinished character waits for its rest");
        gate.open();
        let result = execd.until_exit(session);
        assert_eq!(output(&result), &text[whole..], "cut behind byte {}", before.len());
    }
}

/// rule: unified-exec.md, Truncation, retention, text: Invalid bytes become U+FFFD in `output`
#[test]
fn a_character_that_the_end_cuts_is_one_mark() {
    let mut execd = Execd::start();
    for (cmd, wanted) in [
        ("printf 'a\\342\\202'", "a\u{fffd}"),
        ("printf 'a\\360\\237\\230'", "a\u{fffd}"),
        ("printf '\\303'", "\u{fffd}"),
        ("printf '\\377\\376b'", "\u{fffd}\u{fffd}b"),
    ] {
        assert_eq!(output(&execd.run(cmd)), wanted, "{cmd}");
        assert_eq!(output(&execd.run_with(cmd, json!({"raw_output": true}))), wanted, "{cmd}");
    }
}
