//! get_process_log: any part of any output by pages, from the front, from the end and past it,
//! of processes that run and that have ended, as text and as exact bytes, from disk and from
//! memory.

use crate::common::data::{Random, Stopped, assert_same};
use crate::common::*;
use crate::stream_help::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

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
fn a_page_has_thirty_thousand_bytes_unless_it_is_told_otherwise() {
    let mut execd = Execd::start();
    run(&mut execd, "head -c 400000 /dev/zero | tr '\\0' x");
    let limits =
        [10, 150_000, 150_001, 1_000_000_000].map(|limit| (json!({"limit": limit}), limit));
    for (more, limit) in [(json!({}), 30_000)].into_iter().chain(limits) {
        let got = page(&mut execd, 1, more);
        let bytes = limit.min(150_000);
        assert_eq!(text(&got, "text").len() as u64, bytes, "{limit}");
        assert_eq!(place(&got), (0, bytes, 400_000, false), "{limit}");
    }
}

// ---- Characters and bytes ---------------------------------------------------------------

/// rule: bash-stream.md, The stream family: get_process_log: pages of any log, from the end, past
///   the end, of a running job, in base64
#[test]
fn the_pages_of_any_bytes_are_the_text_that_they_are_as_a_whole_and_exact_in_base64() {
    let mut execd = Execd::start();
    // A byte that continues no character stands where a page begins.
    run(&mut execd, "printf 'abcd\\x80\\x80efgh'");
    let pages = all_pages(&mut execd, 1, &json!({"limit": 4}));
    assert_eq!(text_of(&pages), "abcd\u{fffd}\u{fffd}efgh");
    let bytes = Random(12).bytes(200_000);
    std::fs::write(execd.file("bytes"), &bytes).expect("a file");
    run(&mut execd, "cat bytes");
    let wanted = String::from_utf8_lossy(&bytes);
    for limit in [999, 30_000] {
        let pages = all_pages(&mut execd, 2, &json!({"limit": limit}));
        assert_same(&format!("limit {limit}"), text_of(&pages).as_bytes(), wanted.as_bytes());
        let pages = all_pages(&mut execd, 2, &json!({"limit": limit, "encoding": "base64"}));
        let got: Vec<u8> = pages.iter().flat_map(exact).collect();
        assert_same(&format!("limit {limit}"), &got, &bytes);
    }
}

// ---- A process that runs ----------------------------------------------------------------

/// rule: bash-stream.md, The stream family: get_process_log: pages of any log, from the end, past
///   the end, of a running job, in base64
#[test]
fn a_running_process_is_never_at_its_end() {
    let mut execd = Execd::start();
    let command = "echo one; read x; printf 'a\\xe2\\x82'; read x; printf '\\xac'";
    let opened = open_until(&mut execd, command, "one");
    let holds = |execd: &mut Execd, from: u64, told: &str, wanted: (u64, u64, u64, bool)| {
        let got = page(execd, 1, json!({"offset": from}));
        assert_eq!((text(&got, "text"), place(&got)), (told, wanted), "{from}");
    };
    holds(&mut execd, 0, "one\n", (0, 4, 4, false));
    holds(&mut execd, 4, "", (4, 4, 4, false));
    holds(&mut execd, 100, "", (4, 4, 4, false));
    assert_eq!(poll(&mut execd, 1)["stdout"], "one\n", "a page takes nothing away");
    // A character that has not come whole waits for its rest.
    execd.result("write_stdin", json!({"sessionId": 1, "data": "\n"}));
    eventually("it is printed", || logged(&opened) == b"one\na\xe2\x82");
    holds(&mut execd, 4, "a", (4, 5, 7, false));
    execd.result("write_stdin", json!({"sessionId": 1, "data": "\n"}));
    until_over(&mut execd, 1);
    holds(&mut execd, 5, "€", (5, 8, 8, true));
}

// ---- Large logs -------------------------------------------------------------------------

/// rule: bash-stream.md, The stream family: Pages of a log put together equal the file, in constant
///   memory; a cold disk stalls nobody
#[test]
fn a_large_log_is_read_by_pages_in_constant_memory() {
    const BYTES: u64 = 20 << 20;
    let mut execd = Execd::start();
    let command = format!("seq -w 1 999999999 | head -c {BYTES}");
    let result = run_with(&mut execd, &command, json!({"stream": false}));
    // The first pages show what a page costs.
    for _ in 0..8 {
        page(&mut execd, 1, json!({"limit": 150_000}));
    }
    let before_kib = execd.rss_kib();
    let file = std::fs::File::open(log_file(&result)).expect("the log");
    let (mut offset, mut most_kib) = (0, 0);
    let mut wanted = vec![0; 150_000];
    while offset < BYTES {
        let got = page(&mut execd, 1, json!({"offset": offset, "limit": 150_000}));
        let next = number(&got, "nextOffset");
        assert_eq!(place(&got), (offset, next, BYTES, next == BYTES));
        let wanted = &mut wanted[..usize::try_from(next - offset).expect("a page")];
        std::os::unix::fs::FileExt::read_exact_at(&file, wanted, offset).expect("the file");
        assert_same("a page", text(&got, "text").as_bytes(), wanted);
        offset = next;
        most_kib = execd.rss_kib().max(most_kib);
    }
    let grown_kib = most_kib.saturating_sub(before_kib);
    assert!(grown_kib <= 2 * 1024, "{grown_kib} KiB more for {BYTES} bytes");
    // From anywhere.
    let middle = page(&mut execd, 1, json!({"offset": 10_000_000, "limit": 10}));
    assert_eq!(middle["text"], "001000001\n");
    let end = page(&mut execd, 1, json!({"offset": -5}));
    assert_eq!((number(&end, "offset"), &end["eof"]), (BYTES - 5, &json!(true)));
}

/// A page whose beginning was in the log alone once came from memory, without that beginning and as
/// the last one, while nobody had said yet that there is a log; and a page said that it was the
/// last one before the log had all of it, which its reader looked into next. A request for a page
/// once overtook the output that waited for the log writer's pipe: all of it was told as missing.
/// rule: bash-stream.md, The stream family: `eof` is true when the page reaches the end, nothing
///   more will come, and the log has all of it
/// rule: bash-stream.md, The stream family: Pages of a log put together equal the file, in constant
///   memory; a cold disk stalls nobody
/// rule: architecture.md, The keeper: the request goes down the log pipe behind the data, so the
///   part has what was handed over before it
#[test]
fn while_the_log_writer_stands_still_no_page_lacks_anything_or_is_the_last_one() {
    let mut execd = Execd::start();
    let (first, _) = begin(&mut execd, "true", json!({}));
    execd.result_of(first);
    let stopped = Stopped::new(execd.keeper());
    let read = |execd: &mut Execd, over: bool| {
        let (begun, id) = begin(execd, "seq 1 18000", json!({"stream": false}));
        eventually("all of it is read", || {
            let row = row(execd, id);
            let is_over = |row: &Value| !over || row["status"] == "completed";
            row.is_some_and(|row| row["outputBytes"] == 96_894 && is_over(&row))
        });
        let whole = json!({"sessionId": id, "limit": 150_000});
        let asked = execd.start_request("get_process_log", whole);
        execd.no_reply_yet(asked);
        (begun, id, asked)
    };
    let (begun, id, page_of_one) = read(&mut execd, true);
    let end = page(&mut execd, id, json!({"offset": -6}));
    assert_eq!(text(&end, "text"), "18000\n");
    assert!(end["eof"] == false || end["logComplete"] == false, "{end}");
    // More than the pipe and the queue of one log take.
    let (_, flood) = begin(&mut execd, "head -c 3000000 /dev/zero", json!({"stream": false}));
    eventually("the pipe to the log writer is full", || {
        row(&mut execd, flood).is_some_and(|row| number(&row, "outputBytes") > 1_100_000)
    });
    let (_, other, page_of_other) = read(&mut execd, false);
    let part = execd.start_request("read_output", json!({"session_id": other, "from": 0}));
    drop(stopped);
    let all: String = (1..=18_000).map(|n| format!("{n}\n")).collect();
    for request in [page_of_one, page_of_other] {
        let got = execd.result_of(request);
        assert_same("the page", text(&got, "text").as_bytes(), all.as_bytes());
        assert_absent(&got, &["omittedBytes"]);
    }
    let got = execd.result_of(part);
    let to = usize::try_from(number(&got, "to")).expect("a place");
    assert_same("the part", text(&got, "text").as_bytes(), &all.as_bytes()[..to]);
    assert_eq!((&got["from"], &got["gap"]), (&json!(0), &Value::Null));
    eventually("a page is the last one", || {
        page(&mut execd, id, json!({"offset": -1}))["eof"] == true
    });
    let result = execd.result_of(begun);
    assert_same("the log", &logged(&result), all.as_bytes());
}

// ---- Trouble with the log ---------------------------------------------------------------

/// rule: bash-stream.md, The stream family: Trouble with the log is told in each reply
#[test]
fn each_reply_tells_of_trouble_with_the_log() {
    for is_limit in [true, false] {
        let flags = if is_limit { &["--log-max-bytes", "1000"][..] } else { &[] };
        let mut execd = Execd::with(flags, &[]);
        run(&mut execd, "true");
        if !is_limit {
            // Nothing that execd may take for its directory, or make in its place.
            std::fs::remove_dir_all(execd.log_dir()).expect("ours");
            std::fs::write(execd.log_dir(), "a file").expect("ours");
        }
        let params =
            json!({"command": "seq 1 1000; read x", "yieldMs": 1000, "onImpossible": "wait"});
        let opened = execd.result("bash_stream", params);
        let polled = poll(&mut execd, 2);
        let page = page(&mut execd, 2, json!({"limit": 10}));
        let ended = kill(&mut execd, 2);
        assert_eq!(page["text"], "1\n2\n3\n4\n5\n");
        for reply in [&opened, &polled, &page, &ended] {
            let failure = reply["failureMessage"].as_str().unwrap_or_default();
            assert_eq!(reply["logTruncated"] == true, is_limit, "{reply}");
            assert_eq!(failure.starts_with("log write failed: "), !is_limit, "{reply}");
            assert_eq!(reply["logComplete"] == false, !is_limit, "{reply}");
        }
    }
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
/// rule: bash-stream.md, The stream family: get_process_log is served from memory while the page is
///   there
#[test]
fn one_stream_needs_no_index() {
    let mut execd = Execd::start();
    let all: String = (1..=20_000).map(|i| format!("{i:05}\n")).collect();
    for (id, to, only, other) in [(1, "", "stdout", "stderr"), (2, " >&2", "stderr", "stdout")] {
        let command = format!("seq -w 1 20000{to}");
        let result = run_with(&mut execd, &command, json!({"stream": false}));
        assert!(log_file(&result).exists() && !index_of(&result).exists(), "{command}");
        let pages = all_pages(&mut execd, id, &json!({"stream": only}));
        assert_same(only, text_of(&pages).as_bytes(), all.as_bytes());
        let none = page(&mut execd, id, json!({"stream": other}));
        assert_eq!((text(&none, "text"), place(&none)), ("", (0, 0, 0, true)));
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

// ---- Without a keeper -------------------------------------------------------------------
