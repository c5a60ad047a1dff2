//! The bound of all logs of a directory together: which logs go, what execds that share a directory
//! leave each other, and what it costs those that start (logs.md, Bounds and Cleaning).

use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::common::{Execd, eventually, is_alive, log_path, output, session_of};
use serde_json::json;
use tempfile::TempDir;

/// The bound of these tests.
const TOTAL_BYTES: u64 = 16 << 20;
const MIB: usize = 1 << 20;

/// A log directory that several execds use.
struct Shared {
    _dir: TempDir,
    logs: PathBuf,
}

impl Shared {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let logs = dir.path().join("logs");
        fs::DirBuilder::new().mode(0o700).create(&logs).expect("a new one");
        Self { _dir: dir, logs }
    }

    /// An execd whose logs are here, within the bound of these tests.
    fn execd(&self, more: &[&str]) -> Execd {
        let at = self.logs.to_str().expect("UTF-8");
        let total = TOTAL_BYTES.to_string();
        Execd::with(&[&["--log-dir", at, "--log-total-bytes", &*total], more].concat(), &[])
    }

    /// A log that ended so long ago, and the facts about it.
    fn ended(&self, number: u64, bytes: usize, age_s: u64) -> PathBuf {
        let path = self.logs.join(format!("execd-{number}-0123abcd.log"));
        fs::write(&path, vec![b'x'; bytes]).expect("there is room");
        fs::write(path.with_extension("meta"), "{}\n").expect("there is room");
        let file = File::options().write(true).open(&path).expect("just made");
        // Blocks are given where they are written, not before.
        file.sync_all().expect("a disk");
        file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).expect("ours");
        path
    }

    /// What all of it takes on the disk.
    fn taken(&self) -> u64 {
        let files = fs::read_dir(&self.logs).expect("ours").flatten();
        files.filter_map(|one| one.metadata().ok()).map(|one| one.blocks() * 512).sum()
    }
}

/// Prints so many bytes.
fn printing(bytes: usize) -> String {
    format!("yes 0123456789abcdef | head -c {bytes}")
}

fn until_gone(path: &Path) {
    eventually(&format!("{} is gone", path.display()), || !path.exists());
}

/// rule: logs.md, Bounds: Logs of sessions that have ended are deleted, the one that ended first
///   before all others
/// rule: logs.md, Bounds: Whoever writes, looks
#[test]
fn the_logs_that_ended_first_go_at_a_start_and_while_somebody_writes() {
    for extra in [&[][..], &["--no-keeper"]] {
        let shared = Shared::new();
        let logs: Vec<PathBuf> =
            (1..=6).map(|n| shared.ended(n, 3 * MIB, 10_000 - n * 100)).collect();
        let mut execd = shared.execd(extra);
        // 18 MiB are four too many: fourteen are left of sixteen.
        execd.run("true");
        eventually("the two that ended first go", || {
            execd.run("true");
            !logs[0].exists() && !logs[1].exists()
        });
        assert!(!logs[0].with_extension("meta").exists(), "its facts go with it");
        assert!(logs[2..].iter().all(|log| log.exists()), "{extra:?}");
        execd.run(&printing(8 * MIB));
        eventually("two more go", || {
            execd.run("true");
            !logs[2].exists() && !logs[3].exists()
        });
        assert!(logs[5].exists() && shared.taken() <= TOTAL_BYTES, "{extra:?}");
    }
}

/// rule: logs.md, Bounds: Where that is not enough, the logs of the running sessions of the execd
///   that has found it lose their beginnings, the largest first
#[test]
fn running_logs_lose_their_beginnings_where_nothing_else_can_go() {
    let shared = Shared::new();
    let mut execd = shared.execd(&["--log-keep-bytes", "16777216"]);
    let small = execd.open("echo small; exec sleep 300");
    let opened = execd.open_now(&json!({"cmd": format!(
        "{}; echo; echo the end; exec sleep 300", printing(40 * MIB))}));
    let session = session_of(&opened);
    execd.read_on_until(&opened, "the end");
    eventually("all logs are within the bound", || shared.taken() <= TOTAL_BYTES);
    let row = execd.listed(session).expect("it runs");
    let from = row["log_from"].as_u64().expect("its beginning is gone");
    assert!(from > (24 * MIB) as u64 && from < (40 * MIB) as u64, "{row}");
    assert!(log_path(&small).exists());
    let page = execd.result("read_output", json!({"session_id": session, "lines": 1}));
    assert_eq!(page["text"], "the end\n");
    execd.kill(session);
}

/// A running log was cut to no less than a step of `--log-keep-bytes`, 64 MiB as it is set by
/// itself, whatever all logs together were allowed: one session reached 67 MB where 8 were.
/// rule: logs.md, Bounds: down to a 64th of the bound
#[test]
fn running_logs_keep_to_a_bound_of_all_that_is_less_than_a_step_of_theirs() {
    for keep in [&[][..], &["--log-keep-bytes", "0"], &["--no-keeper"]] {
        let shared = Shared::new();
        let mut execd = shared.execd(keep);
        let opened = [0, 1].map(|_| {
            let cmd = format!("{}; echo; echo the end; exec sleep 300", printing(24 * MIB));
            execd.open_now(&json!({"cmd": cmd}))
        });
        // A call that is cancelled late has the whole output already.
        opened.iter().for_each(|one| execd.read_on_until(one, "the end"));
        let sessions = opened.map(|one| session_of(&one));
        eventually("all logs are within the bound", || {
            execd.ping();
            shared.taken() <= TOTAL_BYTES
        });
        for session in sessions {
            let page = execd.result("read_output", json!({"session_id": session, "lines": 1}));
            assert_eq!(page["text"], "the end\n", "the newest bytes stay");
            execd.kill(session);
        }
    }
}

/// Both write more than there may be, at the same time, and each has a log that runs silently.
/// rule: logs.md, Bounds: Logs of another execd's running sessions are left to that one
#[test]
fn two_execds_that_share_a_directory_share_one_total() {
    let shared = Shared::new();
    let keep = ["--log-keep-bytes", "16777216"];
    let (mut one, mut two) = (shared.execd(&keep), shared.execd(&keep));
    let old: Vec<PathBuf> = (1..=4).map(|n| shared.ended(n, 2 * MIB, 1_000)).collect();
    let mut live = Vec::new();
    let mut floods = Vec::new();
    for execd in [&mut one, &mut two] {
        let silent = log_path(&execd.open("echo here; exec sleep 300"));
        // Its execd has it, however long ago it was written.
        let file = File::options().write(true).open(&silent).expect("ours");
        let long_ago = SystemTime::now() - Duration::from_secs(5_000);
        file.set_modified(long_ago).expect("ours");
        live.push(silent);
        let cmd = format!("{}; echo; echo the end; exec sleep 300", printing(60 * MIB));
        floods.push(execd.open_now(&json!({"cmd": cmd})));
    }
    for (execd, flood) in [(&mut one, &floods[0]), (&mut two, &floods[1])] {
        execd.read_on_until(flood, "the end");
        let session = session_of(flood);
        live.push(log_path(&execd.listed(session).expect("it runs")));
    }
    old.iter().for_each(|log| until_gone(log));
    eventually("all logs are within the bound", || shared.taken() <= TOTAL_BYTES);
    for path in &live {
        assert!(path.exists(), "{} is a running session's", path.display());
    }
    for (execd, flood) in [(&mut one, &floods[0]), (&mut two, &floods[1])] {
        let session = session_of(flood);
        let page = execd.result("read_output", json!({"session_id": session, "lines": 1}));
        assert_eq!(page["text"], "the end\n", "the newest bytes stay");
    }
}

/// Execds that live for a moment would never come to an end with so many names; each leaves to the
/// next one what it has seen.
/// rule: logs.md, Bounds: A log writer that finds too much when its execd has ended goes on for 2 s
///   at most
#[test]
fn execds_that_live_for_a_moment_keep_the_bound_together() {
    let shared = Shared::new();
    let logs: Vec<PathBuf> = (1..=600).map(|n| shared.ended(n, 64 << 10, 10_000 - n)).collect();
    eventually("there is room", || {
        let mut execd = shared.execd(&[]);
        let keeper = execd.keeper();
        drop(execd.run("true"));
        drop(execd);
        eventually("its log writer has ended", || !is_alive(keeper));
        shared.taken() <= TOTAL_BYTES
    });
    let first = logs.iter().position(|log| log.exists()).expect("some are left");
    assert!(first > 0 && logs[first..].iter().all(|log| log.exists()), "oldest end first");
}

/// rule: logs.md, Cleaning: the last change of a log's file is the end of its session
#[test]
fn a_log_has_the_time_of_its_end() {
    let shared = Shared::new();
    let mut execd = shared.execd(&[]);
    let reply = execd.open("echo here; read line");
    let log = log_path(&reply);
    let file = File::options().write(true).open(&log).expect("ours");
    file.set_modified(SystemTime::now() - Duration::from_secs(5_000)).expect("ours");
    let ended = SystemTime::now() - Duration::from_secs(60);
    execd.kill(session_of(&reply));
    eventually("its time is that of the end", || {
        log.metadata().is_ok_and(|found| found.modified().is_ok_and(|at| at > ended))
    });
    assert_eq!(output(&execd.run("echo on")), "on\n");
}

/// rule: logs.md, Cleaning: It says how many logs it has deleted and how much of the disk that
///   gives back, and how many it has left because an execd uses them or because they are for good
#[test]
fn people_delete_logs_and_are_told_what_went_and_what_stayed() {
    let shared = Shared::new();
    let mut execd = shared.execd(&[]);
    let held = log_path(&execd.open("echo here; exec sleep 300"));
    let file = File::options().write(true).open(&held).expect("ours");
    file.set_modified(SystemTime::now() - Duration::from_secs(9 * 86_400)).expect("ours");
    // A look for old logs must not be faster than the person.
    let (old, young) = (shared.ended(1, 10_000, 5_000), shared.ended(2, 10_000, 100));
    let clean = |more: &[&str]| {
        let at = ["logs", "clean", "--log-dir", shared.logs.to_str().expect("UTF-8")];
        let program = env!("CARGO_BIN_EXE_execd");
        let out = Command::new(program).args(at).args(more).output().expect("it runs");
        (out.status.code(), String::from_utf8(out.stdout).expect("UTF-8"))
    };
    let (status, text) = clean(&["--older-than", "1h"]);
    assert_eq!((status, old.exists(), young.exists()), (Some(0), false, true), "{text}");
    let told = text.strip_prefix("deleted 1 log (").expect("one");
    assert!(told.ends_with("KB); left 1 log in use by an execd\n"), "{text}");
    assert!(!old.with_extension("meta").exists());
    let (status, text) = clean(&["--all"]);
    assert_eq!((status, young.exists(), held.exists()), (Some(0), false, true), "{text}");
    // A plain number meant seconds for a while: who meant days lost nearly all logs.
    let young = shared.ended(3, 10_000, 100);
    assert_eq!(clean(&["--older-than", "5"]), (Some(125), String::new()));
    assert!(young.exists());
    for wrong in [
        &["--older-than", "soon"][..],
        &["--older-than", "0.5"],
        &["--all", "--older-than", "1d"],
        &["x"],
    ] {
        assert_eq!(clean(wrong).0, Some(125), "{wrong:?}");
    }
    // A directory that was named wrongly was made, and told as one of which no log was left.
    let nowhere = shared.logs.join("nowhere");
    assert_eq!(clean(&["--log-dir", nowhere.to_str().expect("UTF-8")]), (Some(1), String::new()));
    assert!(!nowhere.exists());
}
