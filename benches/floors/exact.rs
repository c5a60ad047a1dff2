//! What is exact on any machine: calls while idle, memory, size.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::Scale;
use super::client::{Execd, SLEEPER};
use super::latency::fill;
use super::report::Report;

/// Sessions of the rows about many.
const SESSIONS: usize = 64;
/// Largest release binary, in bytes.
const BINARY_BYTES: f64 = 6_000_000.0;
/// Most crates of `cargo tree`, execd among them.
const CRATES: f64 = 40.0;

/// Calls of execd and its keeper while 64 sessions and 64 waits are pending.
pub fn idle(scale: Scale, report: &mut Report) {
    let mut execd = Execd::start(&[]);
    let sessions = execd.open_many(&[SLEEPER; SESSIONS], false);
    for session in sessions {
        // Half of them wait for something.
        // A wait that is to end where nothing can come any more looks at its session twice a
        // second; these do not ask for that.
        let mut params = json!({
            "session_id": session, "yield_time_ms": 600_000, "on_impossible": "wait",
        });
        if session % 2 == 0 {
            params["until"] = json!({"text": "never", "regex": "nev(er)?$"});
        }
        execd.send("write_stdin", &params);
    }
    let keeper = execd.keeper_pid().to_string();
    let trace = execd.dir.path().join("trace");
    let tracer = Command::new("strace")
        .args(["-o".as_ref(), trace.as_os_str()])
        .args(["-p", &execd.pid().to_string(), "-p", &keeper])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut tracer) = tracer else {
        return report.note("idle", "–".into(), "not measured: needs strace");
    };
    let lines = || std::fs::read_to_string(&trace).unwrap_or_default().lines().count();
    // Being attached to interrupts the wait of each once; a stale timer may fire once.
    std::thread::sleep(Duration::from_secs(2));
    let before = lines();
    let seconds = scale.of(10, 2);
    std::thread::sleep(Duration::from_secs(seconds));
    let calls = lines() - before;
    // SAFETY: our own child; SIGTERM lets strace detach.
    unsafe { libc::kill(i32::try_from(tracer.id()).unwrap(), libc::SIGTERM) };
    let _ = tracer.wait();
    if before == 0 {
        return report.note("idle", "–".into(), "not measured: strace may not attach");
    }
    #[allow(clippy::cast_precision_loss)] // Far below 2^52.
    report.exact(&format!("idle, {seconds} s, 64 waits"), (calls as f64, "calls"), 0.0);
}

#[allow(clippy::cast_precision_loss)] // Far below 2^52.
fn own_mib(execd: &Execd) -> f64 {
    execd.own_memory_kib() as f64 / 1024.0
}

/// Memory of its own: idle, with idle terminals, with full buffers. The pages of the program are
/// the page cache's, and no more than the program.
pub fn memory(_scale: Scale, report: &mut Report) {
    let mut execd = Execd::start(&[]);
    report.exact("memory, idle", (own_mib(&execd), "MiB"), 1.0);
    execd.open_many(&[SLEEPER; SESSIONS], true);
    report.exact("memory, 64 idle PTY sessions", (own_mib(&execd), "MiB"), 2.0);
    drop(execd);
    let mut execd = Execd::start(&[]);
    fill(&mut execd, SESSIONS);
    report.exact("memory, 64 full buffers", (own_mib(&execd), "MiB"), 2.0 + 64.0 * 2.3);
}

/// The binary and the crates it is made of.
pub fn size(_scale: Scale, report: &mut Report) {
    let bytes = std::fs::metadata(env!("CARGO_BIN_EXE_execd")).unwrap().len();
    #[allow(clippy::cast_precision_loss)] // Far below 2^52.
    report.exact("size of the binary", (bytes as f64, "bytes"), BINARY_BYTES);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args(["tree", "-e", "normal", "--prefix", "none", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8_lossy(&tree.stdout);
    let mut crates: Vec<&str> =
        text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    crates.retain(|name| !name.starts_with("execd-"));
    crates.sort_unstable();
    crates.dedup();
    #[allow(clippy::cast_precision_loss)] // Far below 2^52.
    report.exact("crates", (crates.len() as f64, ""), CRATES);
}
