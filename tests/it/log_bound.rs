//! Logs that lose their oldest bytes instead of growing: what they take of the disk, what they keep
//! and where, and what replies say of it. What a log keeps on a file system without holes is shown
//! by log_faults.rs.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::common::outside::{Trace, can_trace};
use crate::common::{Execd, assert_absent, eventually, is_alive, log_path, send_signal};
use crate::log_help::*;
use serde_json::{Value, json};

const STEP_BYTES: u64 = KEEP_BYTES / 16;
/// Lines of 8 bytes that are more than twice the bound.
const LINES: u64 = 300_000;

/// An execd whose logs are bounded, and the directory of its logs as the test sees it.
struct Bounded {
    execd: Execd,
    logs: PathBuf,
}

impl Bounded {
    /// In a directory on the file system that tests use anyway.
    fn usual(more: &[&str]) -> Self {
        let execd = Execd::with(&[&BOUND, more].concat(), &[]);
        let logs = execd.log_dir();
        Self { execd, logs }
    }

    /// With and without a keeper.
    fn both() -> [Self; 2] {
        [&[][..], &["--no-keeper"]].map(Self::usual)
    }

    fn check_taken(&self) -> u64 {
        let taken = taken(&self.logs);
        assert!(taken <= KEEP_BYTES + STEP_BYTES, "the log takes {taken} bytes of the disk");
        taken
    }

    /// The log has the last bytes of `wrote` at their places, and the result says which.
    fn check_kept(&self, result: &Value, wrote: &[u8]) {
        let from = result["log_from"].as_u64().unwrap_or_else(|| panic!("{result}"));
        let total = wrote.len() as u64;
        assert!((KEEP_BYTES..=KEEP_BYTES + STEP_BYTES).contains(&(total - from)), "from {from}");
        let file = std::fs::File::open(log_path(result)).expect("the log");
        let mut kept = vec![0; usize::try_from(total - from).expect("a size")];
        file.read_exact_at(&mut kept, from).expect("the kept bytes");
        let at = usize::try_from(from).expect("a place");
        assert!(kept == wrote[at..], "the kept bytes are not the last {}", total - from);
    }
}

/// The command that prints `LINES`.
fn flood() -> String {
    format!("seq -f %07.0f 1 {LINES}")
}

/// The header says what the log has.
fn tells_kept(result: &Value) {
    let header = result["header"].as_str().expect("a header");
    let (from, total) = (&result["log_from"], &result["output_bytes_total"]);
    let said = format!("\nlog: bytes {from}– of {total} kept\n");
    assert!(header.contains(&said), "{said:?} is not in {header}");
    assert_absent(result, &["log_complete", "log_truncated", "failure_message", "warning"]);
}

/// rule: unified-exec.md, Logs: No place in it changes: the bytes that are kept are where they were
/// rule: unified-exec.md, Logs: Replies say from where on a log is kept: `log_from`, and a line of
///   the header
#[test]
fn a_flood_keeps_its_last_bytes_in_their_places_and_takes_no_more_than_its_bound() {
    let wrote = lines(1, LINES);
    for mut one in Bounded::both() {
        let result = one.execd.run(&flood());
        assert_eq!(result["output_bytes_total"], wrote.len(), "{result}");
        tells_kept(&result);
        one.check_kept(&result, &wrote);
        assert!(one.check_taken() >= KEEP_BYTES, "the disk says how much is kept");
    }
}

/// rule: unified-exec.md, Logs: `--log-keep-bytes 0` keeps all
#[test]
fn a_log_below_its_bound_or_without_one_is_kept_whole() {
    for (flags, cmd, wrote) in [
        (["--log-keep-bytes", "0"], flood(), lines(1, LINES)),
        (BOUND, "seq -f %07.0f 1 100000".to_owned(), lines(1, 100_000)),
    ] {
        let mut execd = Execd::with(&flags, &[]);
        let result = execd.run(&cmd);
        assert_absent(&result, &["log_from"]);
        assert!(!result["header"].as_str().expect("a header").contains("\nlog: "));
        assert!(crate::common::log_of(&result) == wrote, "{flags:?}");
    }
}

/// rule: unified-exec.md, Logs: A new log writer goes on where the kept part of a log begins
#[test]
fn a_keeper_that_is_killed_is_followed_by_one_that_knows_what_is_kept() {
    let mut one = Bounded::usual(&[]);
    let mut printer = Printer::start(&mut one.execd);
    // Below a step, above it, and when the beginning is gone.
    for count in [1_000, 20_000, LINES, LINES / 2] {
        printer.print(&mut one.execd, count);
        let file = log_path(&one.execd.listed(printer.session).expect("it runs"));
        let whole = printer.wrote.len() as u64;
        eventually("the log has it all", || {
            file.metadata().map_or(0, |found| found.len()) == whole
        });
        let pid = one.execd.keeper();
        send_signal(pid, libc::SIGKILL);
        eventually("the keeper is gone", || !is_alive(pid));
        eventually("there is another one", || {
            let now = one.execd.result("server_info", json!({}))["keeper_pid"].as_i64();
            now.is_some_and(|now| now != i64::from(pid))
        });
        one.check_taken();
        printer.check(&mut one.execd);
    }
    printer.print(&mut one.execd, 20_000);
    let end = printer.end(&mut one.execd);
    tells_kept(&end);
    one.check_kept(&end, &printer.wrote);
    assert!(one.check_taken() >= KEEP_BYTES);
}

/// rule: unified-exec.md, Logs: Replies say from where on a log is kept: `log_from`, and a line of
///   the header
/// rule: bash-stream.md, The log by pages: Replies say from where on a log is kept: `logFrom`
/// rule: bash.md, Logs and limits: Replies say from where on a log is kept: `log_from`
#[test]
fn every_family_says_from_where_on_a_log_is_kept() {
    let mut execd = Execd::with(&BOUND, &[]);
    let (cmd, total) = (flood(), 8 * LINES);
    let from_of = |result: &Value, name: &str| {
        let from = result[name].as_u64().unwrap_or_else(|| panic!("{name}: {result}"));
        let kept = total - from;
        assert!((KEEP_BYTES..=KEEP_BYTES + STEP_BYTES).contains(&kept), "{name}: {result}");
        from
    };
    for (method, name, text) in
        [("bash_stream", "logFrom", "aggregated"), ("bash", "log_from", "text")]
    {
        let result = execd.result(method, json!({"command": cmd}));
        let kept = format!("bytes {}–{total} of {total} kept: execd log ", from_of(&result, name));
        let text = result[text].as_str().expect("text");
        assert!(text.contains(&kept), "{text}");
    }
    from_of(&execd.result("list_processes", json!({}))["processes"][0], "logFrom");
    // A session that goes on: its reply, its row, and who waits for it.
    let mut printer = Printer::start(&mut execd);
    let session = printer.session;
    printer.print(&mut execd, LINES);
    eventually("the row tells", || {
        execd.listed(session).is_some_and(|row| row["log_from"].as_u64().is_some())
    });
    let text = execd.result("list_sessions", json!({}))["text"].to_string();
    assert!(text.contains(&format!(" kept: execd log {session}-")), "{text}");
    let seen = execd.result("attach_session", json!({"session_id": session}));
    assert!(seen["log_from"].as_u64().is_some(), "{seen}");
    execd.result("detach_session", json!({"session_id": session}));
    let waited = execd.result("wait_for", json!({"session_ids": [session], "timeout_ms": 250}));
    assert!(waited["sessions"][0]["log_from"].as_u64().is_some(), "{waited}");
    let end = printer.end(&mut execd);
    tells_kept(&end);
    let note = execd.notification("session_exited", |note| note["session_id"] == session);
    assert_eq!(note["log_from"], end["log_from"], "{note}");
}

/// rule: architecture.md, The keeper: A log that has become as large as it may loses its beginning;
///   the loop has no part in it but to read what is acknowledged
#[test]
fn the_loop_gives_nothing_back_to_the_disk_itself() {
    if !can_trace() {
        return;
    }
    let mut execd = Execd::with(&BOUND, &[]);
    let mut printer = Printer::start(&mut execd);
    printer.print(&mut execd, 10);
    let calls = "trace=fallocate,ftruncate,unlink,unlinkat,lseek";
    let (keeper, own) = (execd.keeper(), execd.pid());
    let traces = [keeper, own].map(|pid| Trace::attach(pid, &["-e", calls]));
    printer.print(&mut execd, LINES);
    let end = printer.end(&mut execd);
    tells_kept(&end);
    let [keeper, own] = traces.map(Trace::detach);
    assert!(keeper.contains("FALLOC_FL_PUNCH_HOLE"), "{keeper}");
    assert!(!own.contains('('), "{own}");
}
