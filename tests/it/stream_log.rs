//! get_process_log: any part of any output by pages, from the front, from the end and past it,
//! of processes that run and that have ended, as text and as exact bytes, from disk and from
//! memory.

use crate::common::data::{Random, Stopped, assert_same};
use crate::common::outside;
use crate::common::*;
use crate::stream_help::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Fields of a page.
const PAGE: [&str; 6] = ["sessionId", "text", "offset", "nextOffset", "totalBytes", "eof"];

/// A page's offset, nextOffset, totalBytes and eof.
fn place(page: &Value) -> (u64, u64, u64, bool) {
    let eof = page["eof"].as_bool().expect("a boolean");
    (number(page, "offset"), number(page, "nextOffset"), number(page, "totalBytes"), eof)
}

/// The bytes of a page in base64.
fn exact(page: &Value) -> Vec<u8> {
    assert_eq!(page["encoding"], "base64");
    STANDARD.decode(text(page, "text")).expect("base64")
}

/// All pages from the front, each from where the one before ended.
fn all_pages(execd: &mut Execd, session: u64, more: &Value) -> Vec<Value> {
    let mut pages = Vec::new();
    let mut offset = 0;
    loop {
        let got = page(execd, session, merged(json!({"offset": offset}), more.clone()));
        assert_eq!(got["offset"], offset, "pages adjoin: {got}");
        let (_, next, total, eof) = place(&got);
        assert_eq!(eof, next == total, "{got}");
        pages.push(got);
        if eof {
            return pages;
        }
        assert!(next > offset, "each page leads on");
        offset = next;
    }
}

fn text_of(pages: &[Value]) -> String {
    pages.iter().map(|page| text(page, "text")).collect()
}

// ---- One page ---------------------------------------------------------------------------

#[test]
fn a_page_has_these_fields() {
    let mut execd = Execd::start();
    run(&mut execd, "printf '\\033[1mbold\\r\\n10%%\\r20%%\\n'");
    let got = page(&mut execd, 1, json!({}));
    assert_fields(&got, &PAGE);
    let raw = "\u{1b}[1mbold\r\n10%\r20%\n";
    assert_eq!((&got["sessionId"], &got["text"]), (&json!(1), &json!(raw)));
    assert_eq!(place(&got), (0, 18, 18, true));
}

#[test]
fn a_page_has_thirty_thousand_bytes_unless_it_is_told_otherwise() {
    let mut execd = Execd::start();
    run(&mut execd, "head -c 400000 /dev/zero | tr '\\0' x");
    for (limit, bytes) in [
        (None, 30_000),
        (Some(10), 10),
        (Some(100_000), 100_000),
        (Some(150_000), 150_000),
        (Some(150_001), 150_000),
        (Some(1_000_000_000), 150_000),
    ] {
        let more = limit.map_or(json!({}), |limit| json!({"limit": limit}));
        let got = page(&mut execd, 1, more);
        assert_eq!(text(&got, "text").len(), bytes, "{limit:?}");
        assert_eq!(place(&got), (0, bytes as u64, 400_000, false), "{limit:?}");
    }
}

// ---- Characters and bytes ---------------------------------------------------------------

/// rule: bash-stream.md, The stream family: get_process_log: pages of any log, from the end, past
///   the end, of a running job, in base64
#[test]
fn any_bytes_come_back_exactly_in_base64() {
    let mut execd = Execd::start();
    let bytes = Random(11).bytes(500_000);
    std::fs::write(execd.file("bytes"), &bytes).expect("a file");
    run(&mut execd, "cat bytes");
    for limit in [9_999, 150_000] {
        let more = json!({"encoding": "base64", "limit": limit});
        let pages = all_pages(&mut execd, 1, &more);
        let got: Vec<u8> = pages.iter().flat_map(exact).collect();
        assert_same(&format!("limit {limit}"), &got, &bytes);
    }
}

#[test]
fn the_pages_of_any_bytes_are_the_text_that_they_are_as_a_whole() {
    let mut execd = Execd::start();
    // A byte that continues no character stands where a page begins.
    run(&mut execd, "printf 'abcd\\x80\\x80efgh'");
    let pages = all_pages(&mut execd, 1, &json!({"limit": 4}));
    assert_eq!(text_of(&pages), "abcd\u{fffd}\u{fffd}efgh");
    let bytes = Random(12).bytes(100_000);
    std::fs::write(execd.file("bytes"), &bytes).expect("a file");
    run(&mut execd, "cat bytes");
    for limit in [1_000, 30_000] {
        let pages = all_pages(&mut execd, 2, &json!({"limit": limit}));
        let wanted = String::from_utf8_lossy(&bytes);
        assert_same(&format!("limit {limit}"), text_of(&pages).as_bytes(), wanted.as_bytes());
    }
}

// ---- A process that runs ----------------------------------------------------------------

/// rule: bash-stream.md, The stream family: get_process_log: pages of any log, from the end, past
///   the end, of a running job, in base64
#[test]
fn a_running_process_is_never_at_its_end() {
    let mut execd = Execd::start();
    let opened = open_until(&mut execd, "echo one; read x; echo two", "one");
    let got = page(&mut execd, 1, json!({}));
    assert_eq!((text(&got, "text"), place(&got)), ("one\n", (0, 4, 4, false)));
    assert_eq!(poll(&mut execd, 1)["stdout"], "one\n", "a page takes nothing away");
    for offset in [4, 100] {
        let got = page(&mut execd, 1, json!({"offset": offset}));
        assert_eq!((text(&got, "text"), place(&got)), ("", (4, 4, 4, false)), "{offset}");
    }
    execd.result("write_stdin", json!({"sessionId": 1, "data": "\n"}));
    until_over(&mut execd, 1);
    let got = page(&mut execd, 1, json!({"offset": 4}));
    assert_eq!((text(&got, "text"), place(&got)), ("two\n", (4, 8, 8, true)));
    assert_eq!(logged(&opened), b"one\ntwo\n");
}

#[test]
fn a_character_that_has_not_come_whole_waits_for_its_rest() {
    let mut execd = Execd::start();
    let command = format!("printf 'a\\xe2\\x82'; {}; printf '\\xac'; read x", until_file("go"));
    let opened = open(&mut execd, &command);
    eventually("it is printed", || logged(&opened) == b"a\xe2\x82");
    let got = page(&mut execd, 1, json!({}));
    assert_eq!((text(&got, "text"), place(&got)), ("a", (0, 1, 3, false)));
    go(&execd, "go");
    until_printed(&opened, "€");
    let got = page(&mut execd, 1, json!({"offset": 1}));
    assert_eq!((text(&got, "text"), place(&got)), ("€", (1, 4, 4, false)));
}

// ---- Large logs -------------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: Pages of a log put together equal the file, in constant
///   memory; a cold disk stalls nobody
#[test]
fn a_large_log_is_read_by_pages_in_constant_memory() {
    large_log(64 << 20);
}

/// A log of so many bytes, read by pages: all equal the file, in constant memory.
fn large_log(bytes: u64) {
    let mut execd = Execd::start();
    let command = format!("seq -w 1 999999999 | head -c {bytes}");
    open_with(&mut execd, &command, json!({"stream": false}));
    // Gibibytes may take longer than any other wait of these tests.
    let deadline = now() + 10 * PATIENCE;
    while row(&mut execd, 1).expect("a row")["status"] == "running" {
        assert!(now() < deadline, "the log is not written in {:?}", 10 * PATIENCE);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let result = poll(&mut execd, 1);
    // The first pages show what a page costs.
    for _ in 0..8 {
        page(&mut execd, 1, json!({"limit": 150_000}));
    }
    let before_kib = execd.rss_kib();
    let file = std::fs::File::open(log_file(&result)).expect("the log");
    let (mut offset, mut most_kib) = (0, 0);
    let mut wanted = vec![0; 150_000];
    while offset < bytes {
        let got = page(&mut execd, 1, json!({"offset": offset, "limit": 150_000}));
        let next = number(&got, "nextOffset");
        assert_eq!(place(&got), (offset, next, bytes, next == bytes));
        let length = usize::try_from(next - offset).expect("a page");
        let wanted = &mut wanted[..length];
        std::os::unix::fs::FileExt::read_exact_at(&file, wanted, offset).expect("the file");
        assert_same("a page", text(&got, "text").as_bytes(), wanted);
        offset = next;
        most_kib = execd.rss_kib().max(most_kib);
    }
    let grown_kib = most_kib.saturating_sub(before_kib);
    assert!(grown_kib <= 2 * 1024, "{grown_kib} KiB more for {bytes} bytes");
    // From anywhere.
    let middle = page(&mut execd, 1, json!({"offset": bytes / 2, "limit": 10}));
    let (line, column) = (bytes / 2 / 10, usize::try_from(bytes / 2 % 10).expect("a column"));
    let lines = format!("{:09}\n{:09}\n", line + 1, line + 2);
    assert_eq!(text(&middle, "text"), &lines[column..column + 10]);
    let end = page(&mut execd, 1, json!({"offset": -5}));
    assert_eq!((number(&end, "offset"), &end["eof"]), (bytes - 5, &json!(true)));
}

/// rule: bash-stream.md, The stream family: Pages of a log put together equal the file, in constant
///   memory; a cold disk stalls nobody
#[test]
fn a_page_that_is_slow_to_come_delays_nobody() {
    let mut execd = Execd::start();
    run_with(&mut execd, "seq 1 500000", json!({"stream": false}));
    let keeper = execd.result("server_info", json!({}))["keeper_pid"].clone();
    let keeper = i32::try_from(keeper.as_i64().expect("a pid")).expect("a pid");
    let stopped = Stopped::new(keeper);
    let request = execd.start_request("get_process_log", json!({"sessionId": 1, "limit": 10}));
    execd.no_reply_yet(request);
    open(&mut execd, "read x");
    assert_eq!(poll(&mut execd, 2)["status"], "running");
    execd.no_reply_yet(request);
    drop(stopped);
    assert_eq!(execd.result_of(request)["text"], "1\n2\n3\n4\n5\n");
}

/// A page whose beginning was in the log alone once came from memory, without that beginning and as
/// the last one, while nobody had said yet that there is a log; and a page said that it was the
/// last one before the log had all of it, which its reader looked into next.
/// rule: bash-stream.md, The stream family: `eof` is true when the page reaches the end, nothing
///   more will come, and the log has all of it
#[test]
fn no_page_is_the_last_one_before_the_log_has_all_of_it() {
    let mut execd = Execd::start();
    let (first, _) = begin(&mut execd, "true", json!({}));
    execd.result_of(first);
    let stopped = Stopped::new(execd.keeper());
    let (begun, id) = begin(&mut execd, "seq 1 18000", json!({"stream": false}));
    eventually("all of it is read", || {
        let row = row(&mut execd, id);
        row.is_some_and(|row| row["outputBytes"] == 96_894 && row["status"] == "completed")
    });
    let whole = json!({"sessionId": id, "limit": 150_000});
    let asked = execd.start_request("get_process_log", whole);
    execd.no_reply_yet(asked);
    let end = page(&mut execd, id, json!({"offset": -6}));
    assert_eq!(text(&end, "text"), "18000\n");
    assert!(end["eof"] == false || end["logComplete"] == false, "{end}");
    drop(stopped);
    let all: String = (1..=18_000).map(|n| format!("{n}\n")).collect();
    let got = execd.result_of(asked);
    assert_same("the page", text(&got, "text").as_bytes(), all.as_bytes());
    assert_absent(&got, &["omittedBytes"]);
    until_last(&mut execd, id);
    let ended = execd.result_of(begun);
    assert_same("the log", &std::fs::read(log_file(&ended)).expect("it is there"), all.as_bytes());
}

/// Asks until a page is the last one.
fn until_last(execd: &mut Execd, id: u64) {
    eventually("a page is the last one", || page(execd, id, json!({"offset": -1}))["eof"] == true);
}

/// A request for a page once overtook the output that waited for the log writer's pipe: all of it
/// was told as missing.
/// rule: architecture.md, The keeper: the request goes down the log pipe behind the data, so the
///   part has what was handed over before it
#[test]
fn a_page_has_what_waits_for_a_log_writer_that_stands_still() {
    let mut execd = Execd::start();
    let (first, _) = begin(&mut execd, "true", json!({}));
    execd.result_of(first);
    let stopped = Stopped::new(execd.keeper());
    // More than the pipe and the queue of one log take.
    let (_, flood) = begin(&mut execd, "head -c 3000000 /dev/zero", json!({"stream": false}));
    let stands_still = |execd: &mut Execd| {
        let read = row(execd, flood).map_or(0, |row| number(&row, "outputBytes"));
        read > 1_100_000
    };
    eventually("the pipe to the log writer is full", || stands_still(&mut execd));
    let (_, id) = begin(&mut execd, "seq 1 18000", json!({"stream": false}));
    eventually("all of it is read", || {
        row(&mut execd, id).is_some_and(|row| row["outputBytes"] == 96_894)
    });
    let page = execd.start_request("get_process_log", json!({"sessionId": id, "limit": 150_000}));
    let part = execd.start_request("read_output", json!({"session_id": id, "from": 0}));
    execd.no_reply_yet(page);
    drop(stopped);
    let all: String = (1..=18_000).map(|n| format!("{n}\n")).collect();
    let got = execd.result_of(page);
    assert_same("the page", text(&got, "text").as_bytes(), all.as_bytes());
    assert_absent(&got, &["omittedBytes"]);
    let got = execd.result_of(part);
    let to = usize::try_from(number(&got, "to")).expect("a place");
    assert_same("the part", text(&got, "text").as_bytes(), &all.as_bytes()[..to]);
    assert_eq!((&got["from"], &got["gap"]), (&json!(0), &Value::Null));
}

#[test]
fn a_log_that_somebody_deleted_is_an_error_and_no_hang() {
    let mut execd = Execd::start();
    let result = run(&mut execd, "echo hi");
    std::fs::remove_file(log_file(&result)).expect("the log");
    let error = execd.error("get_process_log", json!({"sessionId": 1}));
    assert_eq!(error["code"], -32000, "{error}");
    assert!(text(&error, "message").contains("ENOENT"), "{error}");
    assert_eq!(poll(&mut execd, 1), result, "the rest is still known");
}

/// rule: bash-stream.md, The stream family: get_process_log is served from memory while the page is
///   there
#[test]
fn memory_is_read_while_it_is_there_whatever_became_of_the_log() {
    let mut execd = Execd::start();
    let opened = open_until(&mut execd, "echo hi; read x; echo ho; read x", "hi");
    std::fs::remove_file(log_file(&opened)).expect("the log");
    let got = page(&mut execd, 1, json!({}));
    assert_eq!((text(&got, "text"), place(&got)), ("hi\n", (0, 3, 3, false)));
    assert_eq!(poll(&mut execd, 1)["stdout"], "hi\n");
    execd.result("write_stdin", json!({"sessionId": 1, "data": "\n"}));
    poll_with(&mut execd, 1, json!({"maxDrainMs": 60_000}));
    let got = page(&mut execd, 1, json!({"offset": 3}));
    assert_eq!((text(&got, "text"), place(&got)), ("ho\n", (3, 6, 6, false)));
    // The text of what is cut off its own beginning comes from the log, or not at all.
    let mut execd = Execd::start();
    let opened = open_until(&mut execd, "seq -w 1 20000; read x", "20000");
    until_logged(&json!({"log_path": opened["logPath"]}), "20000\n");
    std::fs::remove_file(log_file(&opened)).expect("the log");
    let end = page(&mut execd, 1, json!({"offset": -12}));
    assert_eq!((text(&end, "text"), number(&end, "totalBytes")), ("19999\n20000\n", 120_000));
    let error = execd.error("get_process_log", json!({"sessionId": 1}));
    assert!(text(&error, "message").contains("ENOENT"), "{error}");
}

/// rule: bash-stream.md, The stream family: get_process_log is served from memory while the page is
///   there
#[test]
fn the_only_stream_that_wrote_has_all_its_pages() {
    let mut execd = Execd::start();
    run_with(&mut execd, "seq -w 1 20000", json!({"stream": false}));
    run_with(&mut execd, "seq -w 1 20000 >&2", json!({"stream": false}));
    let all: String = (1..=20_000).map(|i| format!("{i:05}\n")).collect();
    for (id, only, other) in [(1, "stdout", "stderr"), (2, "stderr", "stdout")] {
        let pages = all_pages(&mut execd, id, &json!({"stream": only}));
        assert_same(only, text_of(&pages).as_bytes(), all.as_bytes());
        let none = page(&mut execd, id, json!({"stream": other}));
        assert_eq!((text(&none, "text"), place(&none)), ("", (0, 0, 0, true)));
    }
}

// ---- Trouble with the log ---------------------------------------------------------------

/// rule: bash-stream.md, The stream family: Trouble with the log is told in each reply
#[test]
fn each_reply_tells_that_the_log_ended_at_its_limit() {
    let mut execd = Execd::with(&["--log-max-bytes", "1000"], &[]);
    let command = "seq 1 1000; read x";
    let request = execd.start_request("bash_stream", json!({"command": command, "yieldMs": 1000}));
    let opened = execd.result_of(request);
    assert_eq!((&opened["status"], &opened["logTruncated"]), (&json!("running"), &json!(true)));
    assert_eq!(poll(&mut execd, 1)["logTruncated"], true);
    assert_eq!(page(&mut execd, 1, json!({"limit": 10}))["logTruncated"], true);
    let ended = kill(&mut execd, 1);
    assert_eq!(ended["logTruncated"], true, "{ended}");
    assert_absent(&ended, &["logComplete", "failureMessage"]);
    let again = page(&mut execd, 1, json!({"limit": 10}));
    assert_eq!((&again["logTruncated"], text(&again, "text")), (&json!(true), "1\n2\n3\n4\n5\n"));
}

/// rule: bash-stream.md, The stream family: Trouble with the log is told in each reply
#[test]
fn each_reply_tells_of_a_full_disk() {
    let Some(disk) = outside::SmallDisk::mount(2_048) else { return };
    let logs = disk.path().join("logs");
    let mut execd = Execd::with(&["--log-dir", logs.to_str().expect("UTF-8")], &[]);
    let command = "echo up; read x; head -c 3000000 /dev/zero | tr '\\0' q; echo; echo end; read x";
    open_until(&mut execd, command, "up");
    std::fs::write(disk.path().join("filler"), vec![b'f'; 2_000 * 1024]).expect("room");
    execd.result("write_stdin", json!({"sessionId": 1, "data": "\n"}));
    let tells = |reply: &Value| {
        let failure = reply["failureMessage"].as_str().unwrap_or_default();
        failure.contains("log write failed: ENOSPC: No space left on device")
            && reply["logComplete"] == false
    };
    eventually("all of it is read", || {
        number(&row(&mut execd, 1).expect("a row"), "outputBytes") == 3_000_008
    });
    eventually("a poll tells of it", || tells(&poll(&mut execd, 1)));
    let got = page(&mut execd, 1, json!({"offset": -4}));
    assert!(tells(&got) && got["text"] == "end\n", "{got}");
    let ended = kill(&mut execd, 1);
    assert!(tells(&ended), "{ended}");
    assert!(text(&ended, "stdout").ends_with("q\nend\n"), "memory has it");
    assert_eq!(poll(&mut execd, 1), ended);
    assert!(tells(&page(&mut execd, 1, json!({}))));
}

// ---- One stream of a log that has two ---------------------------------------------------

/// The path of the index of a log.
fn index_of(result: &Value) -> std::path::PathBuf {
    std::path::PathBuf::from(format!("{}.index", text(result, "logPath")))
}

/// All bytes of one stream by its pages, and how many of it no page has.
fn stream_by_pages(execd: &mut Execd, id: u64, stream: &str, limit: u64) -> (Vec<u8>, u64) {
    let (mut all, mut omitted, mut offset) = (Vec::new(), 0, 0);
    loop {
        let more = json!({
            "stream": stream, "offset": offset, "limit": limit, "encoding": "base64",
        });
        let got = page(execd, id, more);
        let gap = got["omittedBytes"].as_u64().unwrap_or(0);
        let (from, next, total, eof) = place(&got);
        assert_eq!(from, offset + gap, "what is missing is told: {got}");
        omitted += gap;
        all.extend(exact(&got));
        assert!(next > offset || eof, "each page leads on: {got}");
        offset = next;
        if eof {
            assert_eq!((next, all.len() as u64 + omitted), (total, total));
            return (all, omitted);
        }
    }
}

/// A page of one stream of an ended process once gave what memory had left of it: 2,046 of 348,894
/// bytes, less than the poll had shown. Its log had both streams, and nobody could tell them apart.
/// rule: bash-stream.md, The stream family: get_process_log of one stream: all of it, of a process
///   that has ended and of one that runs
#[test]
fn each_stream_of_an_ended_process_is_paged_whole() {
    let mut execd = Execd::start();
    let command = "seq -w 1 40000 & for i in {1..30}; do seq -w $i 2000 >&2; done; wait; \
                   echo 'ende äöü' >&2";
    let result = run_with(&mut execd, command, json!({"stream": false}));
    let out: String = (1..=40_000).map(|i| format!("{i:05}\n")).collect();
    let numbers = (1..=30).flat_map(|first| first..=2_000);
    let err: String = numbers.map(|i| format!("{i:04}\n")).chain(["ende äöü\n".into()]).collect();
    for (stream, wanted) in [("stdout", out.as_bytes()), ("stderr", err.as_bytes())] {
        for limit in [999, 150_000] {
            let (got, omitted) = stream_by_pages(&mut execd, 1, stream, limit);
            assert_same(stream, &got, wanted);
            assert_eq!(omitted, 0);
        }
        let pages = all_pages(&mut execd, 1, &json!({"stream": stream}));
        assert_same(stream, text_of(&pages).as_bytes(), wanted);
    }
    let end = page(&mut execd, 1, json!({"stream": "stderr", "offset": -6}));
    assert_eq!((text(&end, "text"), number(&end, "totalBytes")), ("öü\n", err.len() as u64));
    let both = all_pages(&mut execd, 1, &json!({}));
    assert_same("both", text_of(&both).as_bytes(), &logged(&result));
    let index = std::fs::metadata(index_of(&result)).expect("an index").len();
    assert!(index <= (out.len() + err.len()) as u64, "{index} bytes");
}

/// rule: bash-stream.md, The index of a log: It is not there where only one has written
#[test]
fn one_stream_needs_no_index() {
    let mut execd = Execd::start();
    for command in ["echo out", "echo err >&2", "true"] {
        let result = run(&mut execd, command);
        assert!(log_file(&result).exists() && !index_of(&result).exists(), "{command}");
    }
    let both = run(&mut execd, "echo out; echo err >&2");
    assert!(index_of(&both).exists());
}

/// rule: bash-stream.md, The index of a log: records of 16 bytes, one for each change of the stream
#[test]
fn streams_that_alternate_finely_are_paged_whole() {
    let mut execd = Execd::start();
    let script = "import os\nfor at in range(20000):\n \
                  os.write(1, bytes([97 + at % 26]))\n os.write(2, bytes([65 + at % 26]))";
    std::fs::write(execd.file("alternate.py"), script).expect("a script");
    let result = run(&mut execd, "python3 alternate.py");
    for (stream, first) in [("stdout", b'a'), ("stderr", b'A')] {
        let wanted: Vec<u8> = (0..26).map(|at| first + at).cycle().take(20_000).collect();
        let (got, omitted) = stream_by_pages(&mut execd, 1, stream, 150_000);
        assert_same(stream, &got, &wanted);
        assert_eq!(omitted, 0);
    }
    let index = std::fs::metadata(index_of(&result)).expect("an index").len();
    assert!(index <= 40_001 * 16, "{index} bytes for 40,000 changes");
}

/// rule: bash-stream.md, The stream family: get_process_log of one stream tells what is missing: a
///   limit, a full disk, losses, a log or index that is gone
#[test]
fn a_log_that_ended_at_its_limit_has_the_pages_of_its_streams_up_to_there() {
    let mut execd = Execd::with(&["--log-max-bytes", "300000"], &[]);
    let command = "seq -w 1 20000; seq -w 1 20000 >&2; seq -w 20001 40000; seq -w 20001 40000 >&2";
    run_with(&mut execd, command, json!({"stream": false, "maxOutputChars": 10}));
    let all: String = (1..=40_000).map(|i| format!("{i:05}\n")).collect();
    let (mut logged, mut gaps) = (0, 0);
    for stream in ["stdout", "stderr"] {
        let (got, omitted) = stream_by_pages(&mut execd, 1, stream, 100_000);
        let gap = usize::try_from(omitted).expect("small");
        // How much of each stream came before the limit is for the order of the reads to say.
        let same = got.iter().zip(all.as_bytes()).take_while(|(one, other)| one == other).count();
        assert_same("the end", &got[same..], &all.as_bytes()[same + gap..]);
        (logged, gaps) = (logged + same, gaps + gap);
    }
    assert!(logged >= 300_000 && gaps > 0, "{logged} bytes, {gaps} are missing");
}

/// rule: bash-stream.md, The stream family: The index of a log holds over restarts of the log
///   writer
#[test]
fn a_new_log_writer_goes_on_with_the_index() {
    let mut execd = Execd::start();
    let command = "for i in {1..200}; do echo out $i; echo err $i >&2; done; echo ready; read x; \
                   seq -w 1 30000; seq -w 1 30000 >&2; read x";
    let opened = open_until(&mut execd, command, "ready");
    until_logged(&json!({"log_path": opened["logPath"]}), "ready\n");
    let writer = |execd: &mut Execd| execd.result("server_info", json!({}))["keeper_pid"].clone();
    let pid = writer(&mut execd);
    let raw = i32::try_from(pid.as_i64().expect("a pid")).expect("a pid");
    send_signal(raw, libc::SIGKILL);
    eventually("there is a new one", || {
        let now = writer(&mut execd);
        now.is_number() && now != pid
    });
    execd.result("write_stdin", json!({"sessionId": 1, "data": "\n"}));
    eventually("all of it is read", || {
        number(&row(&mut execd, 1).expect("a row"), "outputBytes") > 360_000
    });
    execd.result("write_stdin", json!({"sessionId": 1, "data": "\n"}));
    until_over(&mut execd, 1);
    let numbers: String = (1..=30_000).map(|i| format!("{i:05}\n")).collect();
    for (stream, word, end) in [("stdout", "out", "ready\n"), ("stderr", "err", "")] {
        let lines: String = (1..=200).map(|i| format!("{word} {i}\n")).collect();
        let (got, omitted) = stream_by_pages(&mut execd, 1, stream, 100_000);
        assert_same(stream, &got, format!("{lines}{end}{numbers}").as_bytes());
        assert_eq!(omitted, 0);
    }
}

/// rule: bash-stream.md, The stream family: get_process_log of one stream tells what is missing: a
///   limit, a full disk, losses, a log or index that is gone
#[test]
fn without_its_index_a_stream_has_what_memory_has_of_it_and_says_so() {
    let mut execd = Execd::start();
    let command = "seq -w 1 40000; seq -w 1 40000 >&2";
    let result = run_with(&mut execd, command, json!({"stream": false, "maxOutputChars": 100}));
    std::fs::remove_file(index_of(&result)).expect("an index");
    let all: String = (1..=40_000).map(|i| format!("{i:05}\n")).collect();
    let (got, omitted) = stream_by_pages(&mut execd, 1, "stdout", 150_000);
    let gap = usize::try_from(omitted).expect("small");
    assert!(gap > 0 && gap < all.len(), "{gap}");
    assert_same("the end", &got, &all.as_bytes()[gap..]);
}

/// rule: bash-stream.md, The stream family: get_process_log is served from memory while the page is
///   there
#[test]
fn without_logs_a_stream_s_pages_begin_at_the_first_byte_that_is_held() {
    let mut execd = Execd::with(&["--no-log"], &[]);
    let command = "echo err >&2; seq -w 1 300000";
    run_with(&mut execd, command, json!({"stream": false}));
    let all: String = (1..=300_000).map(|i| format!("{i:06}\n")).collect();
    let first = page(&mut execd, 1, json!({"stream": "stdout", "limit": 150_000}));
    let (offset, next, total, _) = place(&first);
    assert_eq!(total, all.len() as u64);
    assert_eq!(first["omittedBytes"], offset, "the gap is told");
    assert_eq!(offset, total - 1024 * 1024, "there is as much of it as of both");
    let range = usize::try_from(offset).expect("small")..usize::try_from(next).expect("small");
    assert_same("the page", text(&first, "text").as_bytes(), &all.as_bytes()[range]);
    let last = page(&mut execd, 1, json!({"stream": "stdout", "offset": -7}));
    assert_eq!((text(&last, "text"), &last["eof"]), ("300000\n", &json!(true)));
    // What is far back in both together is kept of the one that wrote little.
    let few = page(&mut execd, 1, json!({"stream": "stderr"}));
    assert_eq!((text(&few, "text"), place(&few)), ("err\n", (0, 4, 4, true)));
}

/// rule: bash-stream.md, The stream family: --no-log: logPath is absent, memory serves the pages
#[test]
fn without_logs_a_flood_leaves_its_last_megabyte() {
    let mut execd = Execd::with(&["--no-log"], &[]);
    let all: String = (1..=400_000).map(|i| format!("{i:06}\n")).collect();
    // While it runs, and when it has ended.
    open_with(&mut execd, "seq -w 1 400000; read x", json!({"stream": false}));
    eventually("all of it is read", || {
        number(&row(&mut execd, 1).expect("a row"), "outputBytes") == all.len() as u64
    });
    for finished in [false, true] {
        let mut got = page(&mut execd, 1, json!({"limit": 150_000}));
        let first = number(&got, "offset");
        assert_eq!(first, all.len() as u64 - 1024 * 1024, "the gap is what comes before");
        assert_eq!(got["omittedBytes"], first);
        let mut kept = text(&got, "text").to_owned();
        while number(&got, "nextOffset") < all.len() as u64 {
            let more = json!({"offset": got["nextOffset"], "limit": 150_000});
            got = page(&mut execd, 1, more);
            kept.push_str(text(&got, "text"));
        }
        assert_eq!(got["eof"], finished);
        let from = usize::try_from(first).expect("small");
        assert_same("what is kept", kept.as_bytes(), &all.as_bytes()[from..]);
        if !finished {
            execd.result("write_stdin", json!({"sessionId": 1, "data": "\n"}));
            until_over(&mut execd, 1);
        }
    }
}

// ---- Without a keeper -------------------------------------------------------------------

/// Nobody looked at the pages that execd reads itself with --no-keeper: each of them was waited
/// for until its 10 s were over, and failed.
/// rule: architecture.md, The keeper: `--no-keeper`: pages of logs are answered at once
#[test]
fn without_a_keeper_pages_come_from_the_log_at_once() {
    let mut execd = Execd::with(&["--no-keeper"], &[]);
    run(&mut execd, "seq 1 100000");
    let pages = all_pages(&mut execd, 1, &json!({"limit": 150_000}));
    let whole: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    assert_same("the pages", text_of(&pages).as_bytes(), whole.as_bytes());
}
