//! What pi's stream costs in memory: a line that is skipped is not copied, a line that is needed is
//! kept once (agent.md, "A line may be many megabytes"). Counted by the allocator itself.
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use execd::pure::agent::{AgentRun, RunSettings, Told};

const MIB: usize = 1024 * 1024;
/// As much as execd reads at once.
const PIECE_BYTES: usize = 64 * 1024;
/// A debug build parses so much slower: it reads less where that shows the same.
const SLOW: usize = if cfg!(debug_assertions) { 8 } else { 1 };

struct Counting;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grown(bytes: usize) {
    CALLS.fetch_add(1, Relaxed);
    PEAK.fetch_max(NOW.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: all is handed on to the system's allocator, as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps to the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        grown(bytes.saturating_sub(layout.size()));
        NOW.fetch_sub(layout.size().saturating_sub(bytes), Relaxed);
        // SAFETY: the caller keeps to the contract of `realloc`.
        unsafe { System.realloc(at, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One at a time: the counters are everybody's.
static ALONE: Mutex<()> = Mutex::new(());

#[derive(Debug)]
struct Cost {
    calls: usize,
    /// The most that was owned at once, beyond what was before.
    peak_bytes: usize,
    told: usize,
    unparsed_lines: u64,
}

fn read(line: &[u8], times: usize, settings: RunSettings) -> Cost {
    let before = NOW.load(Relaxed);
    PEAK.store(before, Relaxed);
    let calls = CALLS.load(Relaxed);
    let mut told = 0;
    let mut count = |_: &Told<'_>| told += 1;
    let mut run = AgentRun::new(settings);
    for _ in 0..times {
        for piece in line.chunks(PIECE_BYTES) {
            run.push(piece, 0, &mut count);
        }
    }
    run.finish(0, &mut count);
    let calls = CALLS.load(Relaxed) - calls;
    let peak_bytes = PEAK.load(Relaxed) - before;
    let end = execd::pure::agent::End::default();
    let unparsed_lines = run.report(&end).provider_data.unparsed_lines;
    Cost { calls, peak_bytes, told, unparsed_lines }
}

/// `head`, as many x as it takes, and `tail`, all together `bytes` long.
fn padded(head: &str, tail: &str, bytes: usize) -> Vec<u8> {
    let mut line = head.as_bytes().to_vec();
    line.resize(bytes - tail.len(), b'x');
    line.extend_from_slice(tail.as_bytes());
    line
}

const TEXT: &str = r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"","partial":{"content":[{"type":"text","text":""#;
const CALL: &str = r#"{"type":"message_update","assistantMessageEvent":{"type":"toolcall_delta","contentIndex":0,"delta":""#;
const TOOL: &str = r#"{"type":"tool_execution_update","toolCallId":"a","toolName":"bash","args":{},"partialResult":{"content":[{"type":"text","text":""#;

/// rule: agent.md, The stream: No tree and no copy of what is skipped, streams of 1 GiB
#[test]
fn a_gibibyte_of_skipped_lines_takes_no_memory() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (head, each) in [(TEXT, 1024), (CALL, 1024 / SLOW), (TOOL, 1024 / SLOW)] {
        let line = padded(head, "\"}]}},\"message\":{}}\n", MIB);
        let cost = read(&line, each, RunSettings::default());
        assert_eq!(cost.unparsed_lines, 0);
        // The parser's word that it was stopped, and once that the answer's end is missing.
        assert!(cost.calls <= 6 * each + 1, "{cost:?}");
        assert!(cost.peak_bytes < 64 * 1024, "{cost:?}");
    }
}

/// rule: agent.md, The stream: Peak memory at most the longest line and 1 MiB
#[test]
fn a_line_that_is_needed_is_kept_once() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut bytes = 16 * MIB;
    for (head, tail, told) in [
        (r#"{"type":"agent_end","messages":[{"text":""#, "\"}],\"willRetry\":false}\n", 0),
        (r#"{"type":"tool_execution_end","toolCallId":"a","toolName":"b","result":""#, "\"}\n", 1),
        (r#"{"type":"tool_execution_start","args":{"a":""#, "\"}}\n", 1),
        (r#"{"type":"not_known","text":""#, "\"}\n", 0),
        (
            r#"{"type":"message_update","assistantMessageEvent":{"type":"toolcall_end","toolCall":{"id":"a","arguments":""#,
            "\"}}}\n",
            1,
        ),
        // An order of fields that no known version has: the line is kept until the text comes.
        (
            r#"{"type":"message_update","message":{"text":""#,
            "\"},\"assistantMessageEvent\":{\"type\":\"text_delta\",\"delta\":\"x\"}}\n",
            1,
        ),
    ] {
        let line = padded(head, tail, bytes);
        let cost = read(&line, 1, RunSettings::default());
        assert_eq!((cost.told, cost.unparsed_lines), (told, 0), "{head}");
        assert!(cost.peak_bytes <= bytes + MIB, "{head} {cost:?}");
        assert!(cost.calls < 200, "{head} {cost:?}");
        bytes = 16 * MIB / SLOW;
    }
}

/// rule: agent.md, The stream: A line over 16 MiB counts as unparsed, also where it is skipped
#[test]
fn a_longer_line_is_given_up() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let line = padded("{\"type\":\"agent_end\",\"messages\":\"", "\"}\n", 65 * MIB);
    let cost = read(&line, 2, RunSettings::default());
    assert_eq!(cost.unparsed_lines, 2);
    assert!(cost.peak_bytes <= 17 * MIB, "{cost:?}");
    // A banner of any length is none that is kept at all.
    let cost = read(&padded("banner", "\n", 65 * MIB), 1, RunSettings::default());
    assert_eq!(cost.unparsed_lines, 1);
    assert!(cost.peak_bytes < 64 * 1024, "{cost:?}");
    // Items and fields without number: none of them is a thing of its own.
    let items = [
        "{\"type\":\"message_end\",\"message\":{\"role\":\"assistant\",\"content\":[1",
        &",{}".repeat(8 * MIB / SLOW),
        "]}}\n",
    ]
    .concat();
    let cost = read(items.as_bytes(), 1, RunSettings::default());
    assert!(cost.peak_bytes <= items.len() + MIB, "{cost:?}");
    let fields =
        ["{\"type\":\"message_update\"", &",\"a\":1".repeat(4 * MIB / SLOW), "}\n"].concat();
    let cost = read(fields.as_bytes(), 1, RunSettings::default());
    assert!(cost.peak_bytes <= fields.len() + MIB, "{cost:?}");
}
