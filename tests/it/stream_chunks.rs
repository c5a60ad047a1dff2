//! Live chunks of bash_stream: their fields, order and size, characters that are never split,
//! the bound of a call, and a reader that is slower than the command.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::path::Path;
use std::process::Stdio;

use crate::common::data::{Random, assert_same};
use crate::common::*;
use crate::stream_help::*;
use serde_json::{Value, json};

/// Bytes of text in one chunk, and chunks of one call, at most.
const CHUNK_BYTES: usize = 8 * 1024;
const CHUNKS: usize = 10_000;
/// Memory of an execd (a debug build) with a full outbox and one job.
const PEAK_KIB: u64 = 24 * 1024;

/// Runs a command to its end; its chunks and its result.
fn chunked(execd: &mut Execd, command: &str, more: Value) -> (Vec<Value>, Value) {
    let (request, _) = begin(execd, command, more);
    let result = execd.result_of(request);
    (chunks_of(execd, request), result)
}

/// Shows that no chunk is larger than it may be.
fn assert_sizes(chunks: &[Value]) {
    let longest = chunks.iter().map(|chunk| text(chunk, "chunk").len()).max();
    assert!(longest.is_some_and(|bytes| bytes <= CHUNK_BYTES), "{longest:?}");
    assert!(chunks.iter().all(|chunk| !text(chunk, "chunk").is_empty()));
}

/// rule: bash-stream.md, The stream family: Live chunks: fields, order within a stream, two streams
///   interleaved
#[test]
fn the_order_of_two_streams_is_exact_within_each() {
    let mut execd = Execd::start();
    let command = "seq -f 'o%.0f' 1 20000 & seq -f 'e%.0f' 1 20000 >&2; wait";
    let (chunks, _) = chunked(&mut execd, command, json!({}));
    assert_sizes(&chunks);
    for (stream, letter) in [("stdout", 'o'), ("stderr", 'e')] {
        let wanted: String = (1..=20_000).map(|i| format!("{letter}{i}\n")).collect();
        assert_same(stream, joined(&chunks, stream).as_bytes(), wanted.as_bytes());
    }
}

// ---- Characters -------------------------------------------------------------------------

#[test]
fn any_bytes_give_the_text_that_they_are_as_a_whole() {
    let mut execd = Execd::start();
    let bytes = Random(5).bytes(100_000);
    std::fs::write(execd.file("bytes"), &bytes).expect("a file");
    let (chunks, _) = chunked(&mut execd, "cat bytes; cat bytes >&2", json!({}));
    assert_sizes(&chunks);
    let wanted = String::from_utf8_lossy(&bytes);
    for stream in ["stdout", "stderr"] {
        assert_same(stream, joined(&chunks, stream).as_bytes(), wanted.as_bytes());
    }
}

// ---- The bound of a call ----------------------------------------------------------------

/// rule: bash-stream.md, The stream family: At most 10,000 chunks a call; then
///   tool_execution_truncated, once, and never as output
#[test]
fn after_ten_thousand_chunks_a_notification_says_that_no_more_come() {
    let mut execd = Execd::start();
    // Of each stream a piece is sent a turn.
    let command = "while :; do echo x; echo x >&2; done";
    let (request, session) = begin(&mut execd, command, json!({}));
    let told = execd.notification("tool_execution_truncated", |_| true);
    let (other, _) = begin(&mut execd, "echo hi", json!({}));
    execd.result_of(other);
    assert_eq!(joined(&chunks_of(&mut execd, other), "stdout"), "hi\n", "another call has its own");
    let killed = kill(&mut execd, session);
    let log = text(&killed, "logPath");
    assert_eq!(
        told,
        json!({"request_id": request, "sessionId": session, "chunks": CHUNKS, "logPath": log})
    );
    let result = execd.result_of(request);
    assert_eq!((&result["status"], &result["signal"]), (&json!("failed"), &json!("SIGKILL")));
    let chunks = chunks_of(&mut execd, request);
    assert_eq!(chunks.len(), CHUNKS, "and no more behind the word");
    assert_eq!(execd.notified("tool_execution_truncated"), [told], "it is said once");
    // The chunks are output and nothing else; what was not sent is counted, and all of it is in
    // the log.
    assert!(chunks.iter().all(|one| text(one, "chunk").trim_matches(['x', '\n']).is_empty()));
    let sent: u64 = chunks.iter().map(|one| text(one, "chunk").len() as u64).sum();
    let dropped = number(&result, "droppedBytes");
    let logged = std::fs::read(log).expect("the log");
    assert_eq!(sent + dropped, logged.len() as u64);
    assert!(logged.chunks(2).all(|line| line == b"x\n"));
}

// ---- A slow reader ----------------------------------------------------------------------

/// An execd whose stdout is read only while a test waits for a line.
struct Slow {
    host: Host,
    requests: PipeWriter,
    replies: PipeReader,
    read: Vec<u8>,
}

/// What may stand before the answer to a ping that overtakes the chunks: a pipe full of them and
/// the one that has begun.
const QUICK_BYTES: usize = 64 * 1024 + 32 * 1024;

impl Slow {
    /// Starts a command whose output nobody reads yet.
    fn start(command: &str) -> Self {
        let (stdin, requests) = std::io::pipe().expect("a pipe");
        let (replies, stdout) = std::io::pipe().expect("a pipe");
        let host = Setup::new(&[]).on(Stdio::from(stdin), Stdio::from(stdout));
        let mut slow = Self { host, requests, replies, read: Vec::new() };
        slow.send(1, "bash_stream", json!({"command": command}));
        slow
    }

    fn send(&mut self, id: u64, method: &str, params: Value) {
        let request = json!({"id": id, "method": method, "params": params});
        self.requests.write_all(format!("{request}\n").as_bytes()).expect("execd reads");
    }

    /// The next line.
    fn line(&mut self) -> Value {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return serde_json::from_slice(&line).expect("a line of JSON");
            }
            until_readable(&self.replies);
            let mut buffer = [0; 4096];
            let count = self.replies.read(&mut buffer).expect("a pipe");
            assert!(count > 0, "execd's stdout has ended");
            self.read.extend_from_slice(&buffer[..count]);
        }
    }

    /// The same, and so many requests for pages.
    fn with_pages(pages: u64) -> Self {
        let mut slow = Self::start("seq -w 1 300000");
        eventually("all of it is in the log", || slow.logged_bytes() == 300_000 * 7);
        for id in 100..100 + pages {
            let params = json!({"sessionId": 1, "limit": 150_000, "encoding": "base64"});
            slow.send(id, "get_process_log", params);
        }
        slow
    }

    /// All lines up to the reply to a request.
    fn lines_until(&mut self, id: u64) -> Vec<Value> {
        let mut lines = vec![self.line()];
        while lines.last().is_none_or(|line| line["id"] != id) {
            lines.push(self.line());
        }
        lines
    }

    /// How much the log of the command has.
    fn logged_bytes(&self) -> u64 {
        let log = self.host.log_files().into_iter().next();
        log.and_then(|log| log.metadata().ok()).map_or(0, |log| log.len())
    }
}

/// The live chunks among some lines.
fn chunks_in(lines: &[Value]) -> impl Iterator<Item = Value> {
    let of_output = lines.iter().filter(|line| line["method"] == "tool_execution_output");
    of_output.map(|line| line["params"].clone())
}

/// Follows the chunks of one stream through its log: what each says was dropped before it is
/// passed over, and its own text comes next. Gives how much was sent and how much dropped.
fn follow(chunks: &[Value], log: &Path) -> (usize, usize) {
    let log = std::fs::read(log).expect("the log");
    let (mut at, mut dropped) = (0, 0);
    for chunk in chunks {
        let gap = chunk.get("droppedBytes").map_or(0, |bytes| bytes.as_u64().expect("a number"));
        let gap = usize::try_from(gap).expect("a size");
        (at, dropped) = (at + gap, dropped + gap);
        let sent = text(chunk, "chunk");
        assert_same("a chunk", sent.as_bytes(), &log[at..(at + sent.len()).min(log.len())]);
        at += sent.len();
    }
    (at - dropped, dropped)
}

/// A thousand pages for a slow reader once cost 444 MB: each was made into a reply at once.
/// rule: bash-stream.md, The stream family: Pages of a log put together equal the file, in constant
///   memory; a cold disk stalls nobody
#[test]
fn pages_for_a_slow_reader_are_made_as_it_reads() {
    // Together more than execd may hold.
    const PAGES: u64 = 100;
    let mut slow = Slow::with_pages(PAGES);
    for line in slow.lines_until(99 + PAGES) {
        if line["id"].as_u64().is_some_and(|id| id >= 100) {
            assert_eq!(line["result"]["nextOffset"], 150_000, "{}", line["error"]);
        }
    }
    let peak_kib = slow.host.peak_rss_kib();
    assert!(peak_kib < PEAK_KIB, "{peak_kib} KiB");
}

/// rule: bash-stream.md, The stream family: killIf always; timeout when this poll's wait is over
#[test]
fn a_poll_that_is_to_kill_does_so_in_time_though_nobody_reads() {
    // More than is queued before waits are held back.
    let mut slow = Slow::with_pages(10);
    slow.send(2, "bash_stream", json!({"command": "echo $$ > pid; exec sleep 300"}));
    let file = slow.host.workdir().join("pid");
    let pid = || std::fs::read_to_string(&file).ok()?.trim().parse().ok();
    eventually("it runs", || pid().is_some());
    slow.send(3, "poll_process", json!({"sessionId": 2, "killIf": "timeout", "waitMs": 200}));
    eventually("it is killed", || !is_alive(pid().expect("a pid")));
    let lines = slow.lines_until(3);
    assert_eq!(lines.last().expect("the reply")["result"]["signal"], "SIGKILL");
}

/// rule: protocol.md, Several clients, cancel in the families: Dropped chunks of a stream are
///   counted in the next one and in the result (`droppedBytes`)
/// rule: bash-stream.md, The stream family: Dropped chunks are counted in the next one and in the
///   result; memory is bounded, the log exact
/// rule: bash-stream.md, The stream family: What did not wait is answered before the chunks that
///   piled up
#[test]
fn a_slow_reader_is_told_what_it_missed_and_others_are_served() {
    let mut slow = Slow::start("exec seq -w 1 100000000");
    let mut chunks = Vec::new();
    for ping in 2..8 {
        // The log grows by some megabytes while nobody reads.
        let before = slow.logged_bytes();
        eventually("it goes on", || slow.logged_bytes() > before + 4 * 1024 * 1024);
        slow.send(ping, "ping", json!({}));
        let lines = slow.lines_until(ping);
        let queued: usize = lines.iter().map(|line| line.to_string().len()).sum();
        assert!(queued < QUICK_BYTES, "{queued} bytes before the answer to a ping");
        chunks.extend(chunks_in(&lines));
        // What waits for output is answered behind the chunks that came before it.
        let params = json!({"sessionId": chunks[0]["sessionId"], "maxDrainMs": 120_000});
        slow.send(100 + ping, "poll_process", params);
        chunks.extend(chunks_in(&slow.lines_until(100 + ping)));
    }
    let peak_kib = slow.host.peak_rss_kib();
    assert!(peak_kib < PEAK_KIB, "{peak_kib} KiB");
    slow.send(99, "kill_process", json!({"sessionId": chunks[0]["sessionId"]}));
    let mut lines = slow.lines_until(99);
    if lines.iter().all(|line| line["id"] != 1) {
        lines.append(&mut slow.lines_until(1));
    }
    chunks.extend(chunks_in(&lines));
    let result = &lines.iter().find(|line| line["id"] == 1).expect("the reply")["result"];
    let log = log_file(result);
    let (sent, dropped) = follow(&chunks, &log);
    assert!(sent > 0 && dropped > 0, "{sent} sent, {dropped} dropped");
    let total = log.metadata().expect("the log").len();
    assert_eq!(sent as u64 + number(result, "droppedBytes"), total, "all of it is told");
}
