//! Memory: what sessions cost when they are idle, full, finished and forgotten, and the most
//! that execd may ever take (architecture.md, Bounds; performance.md, memory).

use crate::common::data::*;
use crate::common::outside;
use crate::common::*;
use base64::Engine;
use serde_json::json;

const KIB_PER_MIB: u64 = 1024;

/// The most that execd may take with `sessions` sessions and one client, everything full.
fn peak_limit_kib(sessions: u64) -> u64 {
    4 * KIB_PER_MIB + sessions * 23 * KIB_PER_MIB / 10 + 20 * KIB_PER_MIB
}

fn assert_peak(execd: &Execd, sessions: u64) {
    let (peak, limit) = (execd.peak_rss_kib(), peak_limit_kib(sessions));
    assert!(peak <= limit, "{peak} KiB at the most, {limit} KiB allowed");
    eprintln!("{sessions} sessions: peak {peak} KiB of {limit} KiB");
}

/// Waits until execd has read that much in all.
fn until_read(execd: &mut Execd, bytes: u64) {
    eventually(&format!("{bytes} bytes have been read"), || {
        let info = execd.result("server_info", json!({}));
        info["counters"]["bytes_read"].as_u64().expect("a number") >= bytes
    });
}

/// Commands that wait at a gate each.
fn gated(execd: &Execd, count: usize, cmd: impl Fn(String) -> String) -> (Vec<Gate>, Vec<String>) {
    let gates: Vec<Gate> = (0..count).map(|at| Gate::new(execd, &format!("gate-{at}"))).collect();
    let cmds = gates.iter().map(|gate| cmd(gate.wait())).collect();
    (gates, cmds)
}

/// Starts them together; their session ids.
fn open_all(execd: &mut Execd, cmds: &[String]) -> Vec<u64> {
    execd.open_all(&cmds.iter().map(String::as_str).collect::<Vec<_>>())
}

/// rule: architecture.md, Bounds: Peak memory for S sessions and C clients ≤ 4 MiB + S × 2.3 MiB +
///   C × 20 MiB
#[test]
fn everything_full_at_once_stays_within_the_formula() {
    const SESSIONS: usize = 64;
    let mut execd = Execd::with(&["--log-max-bytes", "1000000"], &[]);
    let (gates, cmds) = gated(&execd, SESSIONS, |wait| format!("{wait}; exec yes"));
    let input = base64::engine::general_purpose::STANDARD.encode(vec![b'i'; 256 * 1024]);
    let writes = open_all(&mut execd, &cmds).into_iter().map(|session| {
        let params = json!({"session_id": session, "chars_b64": input});
        execd.start_request("write_stdin", params)
    });
    let writes: Vec<u64> = writes.collect();
    writes.into_iter().for_each(|id| drop(execd.result_of(id)));
    // The log writer stands still: retention, log queue and input backlog fill up.
    let stopped = Stopped::new(execd.keeper());
    gates.iter().for_each(Gate::open);
    until_read(&mut execd, SESSIONS as u64 * 900_000);
    assert_peak(&execd, SESSIONS as u64);
    // They all go on when it does.
    drop(stopped);
    until_read(&mut execd, SESSIONS as u64 * 4_000_000);
    assert_peak(&execd, SESSIONS as u64);
}

/// rule: architecture.md, Bounds: A finished job keeps at most 64 KiB in memory
#[test]
fn sessions_that_are_over_but_left_members_behind_hold_no_output() {
    const SESSIONS: usize = 40;
    let mut execd = Execd::start();
    let cmd = "sleep 1000 </dev/null >/dev/null 2>&1 & \
               until grep -qs sleep /proc/$!/comm; do :; done; head -c 1500000 /dev/zero | tr '\\0' x";
    let run = |execd: &mut Execd| drop(execd.run(cmd));
    (0..10).for_each(|_| run(&mut execd));
    let before = execd.rss_kib();
    (0..SESSIONS).for_each(|_| run(&mut execd));
    let grown = execd.rss_kib().saturating_sub(before);
    // At most 64 KiB for what is finished (architecture.md, Bounds).
    assert!(grown <= 64 * SESSIONS as u64, "{grown} KiB for {SESSIONS} finished sessions");
    let list = execd.peek();
    assert_eq!(list["left"].as_array().map(Vec::len), Some(SESSIONS + 10));
}

// ---- Kernel memory, and the cost of a start ---------------------------------------------

/// The size of the pipe behind a descriptor of another process.
fn pipe_size(pid: i32, fd: i32) -> i32 {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(format!("/proc/{pid}/fd/{fd}"))
        .expect("the process runs");
    // SAFETY: asks for a number about a descriptor that is open during the call.
    unsafe { libc::fcntl(opened.as_raw_fd(), libc::F_GETPIPE_SZ) }
}

/// rule: architecture.md, A session: Pipes are raised to 256 KiB, at most 16 MiB over all of execd,
///   stdin pipes never
#[test]
fn output_pipes_are_raised_up_to_a_total_and_stdin_pipes_never() {
    const RAISED: i32 = 256 * 1024;
    const SESSIONS: usize = 70;
    /// 16 MiB over all of execd.
    const AT_MOST: usize = 64;
    let mut execd = Execd::with(&["--max-sessions", "100"], &[]);
    let start = |execd: &mut Execd| {
        let params = json!({"cmd": "exec sleep 1000", "yield_time_ms": 250});
        execd.start_request("exec_command", params)
    };
    let requests: Vec<u64> = (0..SESSIONS).map(|_| start(&mut execd)).collect();
    let opened: Vec<_> = requests.into_iter().map(|id| execd.result_of(id)).collect();
    let raised = |result: &serde_json::Value| pipe_size(pid_of(result), 1) >= RAISED;
    let count = opened.iter().filter(|result| raised(result)).count();
    assert!(count <= AT_MOST, "{count} pipes are raised");
    // An unprivileged user may have used up its share of the kernel's memory before.
    assert!(count == AT_MOST || !outside::is_root(), "{count} pipes are raised");
    assert!(opened.iter().all(|result| pipe_size(pid_of(result), 0) <= 64 * 1024));
    // What an ended session had is free again.
    let first = opened.iter().find(|result| raised(result)).map(session_of);
    if let Some(first) = first {
        execd.kill(first);
        let next = start(&mut execd);
        assert!(raised(&execd.result_of(next)));
    }
}

/// rule: architecture.md, Starting a child: A big parent does not make spawning slower
#[test]
fn a_child_shares_our_memory_until_its_exec_so_a_big_execd_starts_it_as_fast() {
    if !outside::can_trace() {
        return;
    }
    let mut execd = Execd::start();
    execd.ping();
    let calls = ["-e", "trace=clone,clone3,fork,vfork"];
    let trace = outside::Trace::attach(execd.pid(), &calls);
    execd.run("true");
    execd.run_with("true", json!({"tty": true}));
    let seen = trace.detach();
    let clones: Vec<&str> = seen.lines().filter(|line| line.contains("clone")).collect();
    assert_eq!(clones.len(), 2, "{seen}");
    // CLONE_VFORK would have execd wait for the child's exec.
    assert!(clones.iter().all(|line| line.contains("=CLONE_VM|CLONE_PIDFD|SIGCHLD")), "{seen}");
}
