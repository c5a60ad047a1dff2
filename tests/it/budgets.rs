//! The budgets of the release binary: its size, and the memory that it takes (performance.md).
//! What grows is measured in tests/it/bounds.rs too, with the binary of the other tests; here are
//! the absolute numbers, which hold for what is installed.

use crate::common::release;
use crate::common::{Execd, Setup};
use serde_json::json;

const KIB_PER_MIB: u64 = 1024;
const MAX_BINARY_BYTES: u64 = 6_000_000;
/// Memory of its own of execd after a ping. The pages of its program are the page cache's, once for
/// all execds.
const IDLE_KIB: u64 = KIB_PER_MIB;
/// The same with as many idle sessions on terminals as it has unless told otherwise.
const IDLE_SESSIONS_KIB: u64 = 2 * KIB_PER_MIB;
/// The most that the pages of the program add to that.
const PROGRAM_KIB: u64 = MAX_BINARY_BYTES / 1024;
const SESSIONS: u64 = 64;

fn release() -> Execd {
    let binary = release::binary();
    Setup::of(&[binary.to_str().expect("a path in UTF-8")], &[]).start()
}

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

/// rule: architecture.md, Bounds: The release binary keeps its budgets: size, memory idle, with 64
///   idle terminals, with 64 full buffers
#[test]
fn the_binary_is_small_and_so_is_its_memory_idle_and_with_64_idle_terminals() {
    let size = std::fs::metadata(release::binary()).expect("it was built").len();
    holds("bytes of the release binary", size, MAX_BINARY_BYTES);
    let mut execd = release();
    execd.ping();
    holds("KiB idle", execd.own_memory_kib(), IDLE_KIB);
    holds("KiB idle with the program", execd.rss_kib(), IDLE_KIB + PROGRAM_KIB);
    open(&mut execd, "exec sleep 1000", true);
    holds("KiB with idle terminals", execd.own_memory_kib(), IDLE_SESSIONS_KIB);
}
