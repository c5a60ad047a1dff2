//! The budgets of the release binary: its size, and the memory that it takes (performance.md).
//! What grows is measured in tests/it/bounds.rs too, with the binary of the other tests; here are
//! the absolute numbers, which hold for what is installed.

use crate::common::release;
use std::time::Instant;

use crate::common::{Execd, PATIENCE, Setup};
use serde_json::json;

const KIB_PER_MIB: u64 = 1024;
/// Bytes of the binary as it is installed. Size is no goal: speed and ASLR come first.
const MAX_BINARY_BYTES: u64 = 6_000_000;
/// execd after a ping.
const IDLE_KIB: u64 = 3 * KIB_PER_MIB;
/// execd with as many idle sessions on terminals as it has unless told otherwise.
const IDLE_SESSIONS_KIB: u64 = 4 * KIB_PER_MIB;
/// What a session whose unread output fills its buffer may add to that.
const FULL_SESSION_KIB: u64 = 23 * KIB_PER_MIB / 10;
/// Sessions unless --max-sessions says otherwise.
const SESSIONS: u64 = 64;

fn release() -> Execd {
    let binary = release::binary();
    Setup::of(&[binary.to_str().expect("a path in UTF-8")], &[]).start()
}

/// Starts that many commands together, and waits for the first answer of each.
fn open(execd: &mut Execd, cmd: &str, tty: bool) {
    let start = |execd: &mut Execd| {
        let params = json!({"cmd": cmd, "tty": tty, "yield_time_ms": 250});
        execd.start_request("exec_command", params)
    };
    let requests: Vec<u64> = (0..SESSIONS).map(|_| start(execd)).collect();
    for request in requests {
        crate::common::session_of(&execd.result_of(request));
    }
}

fn holds(what: &str, measured: u64, limit: u64) {
    eprintln!("{what}: {measured} of {limit}");
    assert!(measured <= limit, "{what}: {measured}, allowed {limit}");
}

/// rule: architecture.md, Bounds: The release binary keeps its budgets: size, RSS idle, with 64
///   idle terminals, with 64 full buffers
#[test]
fn the_stripped_binary_is_small() {
    let size = std::fs::metadata(release::binary()).expect("it was built").len();
    holds("bytes of the release binary", size, MAX_BINARY_BYTES);
}

/// rule: architecture.md, Bounds: The release binary keeps its budgets: size, RSS idle, with 64
///   idle terminals, with 64 full buffers
#[test]
fn an_idle_execd_takes_three_mebibytes() {
    // Where the loader puts the program decides how much of it the kernel maps around what is
    // touched: single starts differ by 100 KiB, so the median of some counts.
    let mut starts: Vec<u64> = (0..9)
        .map(|_| {
            let mut execd = release();
            execd.ping();
            execd.rss_kib()
        })
        .collect();
    starts.sort_unstable();
    holds("KiB idle", starts[4], IDLE_KIB);
}

/// rule: architecture.md, Bounds: The release binary keeps its budgets: size, RSS idle, with 64
///   idle terminals, with 64 full buffers
#[test]
fn sixty_four_idle_terminals_keep_it_within_four_mebibytes() {
    let mut execd = release();
    open(&mut execd, "exec sleep 1000", true);
    holds("KiB with idle terminals", execd.rss_kib(), IDLE_SESSIONS_KIB);
}

/// rule: architecture.md, Bounds: The release binary keeps its budgets: size, RSS idle, with 64
///   idle terminals, with 64 full buffers
#[test]
fn sixty_four_full_buffers_keep_it_within_the_formula() {
    const BYTES: u64 = 3_000_000;
    let mut execd = release();
    // Not on a terminal, which would let the output pass more slowly and add its own bytes.
    let cmd = format!("head -c {BYTES} /dev/zero | tr '\\0' x; exec sleep 1000");
    open(&mut execd, &cmd, false);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let info = execd.result("server_info", json!({}));
        let read = info["counters"]["bytes_read"].as_u64().expect("a number");
        if read >= SESSIONS * BYTES {
            break;
        }
        assert!(Instant::now() < deadline, "only {read} bytes were read");
    }
    holds("KiB full", execd.peak_rss_kib(), IDLE_SESSIONS_KIB + SESSIONS * FULL_SESSION_KIB);
}
