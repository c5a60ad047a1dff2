//! The bound of all logs of a directory together: which logs go, and when (logs.md, Bounds and
//! Cleaning).

use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::common::{Execd, eventually, is_alive, log_path, output, session_of};
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
        age(&path, age_s);
        path
    }

    /// Who comes next looks again.
    fn forget_the_last_look(&self) {
        // Where nobody has looked there is none.
        let _ = fs::remove_file(self.logs.join(".execd-cleaned"));
    }

    /// What all of it takes on the disk.
    fn taken(&self) -> u64 {
        let files = fs::read_dir(&self.logs).expect("ours").flatten();
        files.filter_map(|one| one.metadata().ok()).map(|one| one.blocks() * 512).sum()
    }
}

/// Makes a log look as if nobody had written to it for so long.
fn age(log: &Path, age_s: u64) {
    let file = File::options().write(true).open(log).expect("ours");
    // Blocks are given where they are written, not before.
    file.sync_all().expect("a disk");
    file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).expect("ours");
}

/// An execd that lives for a moment has no pause to look in.
/// rule: logs.md, Cleaning: It begins 100 ms after the start of an execd, or with its end
/// rule: architecture.md, The keeper: Two execds share the directory
#[test]
fn an_execd_that_lives_for_a_moment_cleans_with_its_end_and_once_an_hour() {
    let shared = Shared::new();
    let logs: Vec<PathBuf> = (1..=600).map(|n| shared.ended(n, 64 << 10, 10_000 - n)).collect();
    let live = || {
        let mut execd = shared.execd(&[]);
        let keeper = execd.keeper();
        drop(execd.run("true"));
        drop(execd);
        eventually("its log writer has ended", || !is_alive(keeper));
    };
    live();
    assert!(shared.taken() <= TOTAL_BYTES);
    let first = logs.iter().position(|log| log.exists()).expect("some are left");
    assert!(first > 0 && logs[first..].iter().all(|log| log.exists()), "oldest end first");
    let late = shared.ended(1_000, 20 * MIB, 90_000);
    live();
    assert!(late.exists(), "it is not an hour yet");
    shared.forget_the_last_look();
    live();
    assert!(!late.exists() && shared.taken() <= TOTAL_BYTES);
}

/// rule: logs.md, Cleaning: the last change of a log's file is the end of its session
#[test]
fn a_log_has_the_time_of_its_end() {
    let shared = Shared::new();
    let mut execd = shared.execd(&[]);
    let reply = execd.open("echo here; read line");
    let log = log_path(&reply);
    age(&log, 5_000);
    let ended = SystemTime::now() - Duration::from_secs(60);
    execd.kill(session_of(&reply));
    eventually("its time is that of the end", || {
        log.metadata().is_ok_and(|found| found.modified().is_ok_and(|at| at > ended))
    });
    assert_eq!(output(&execd.run("echo on")), "on\n");
}

/// rule: logs.md, Bounds: A log that an execd holds is not among them
/// rule: logs.md, Cleaning: It says how many logs it has deleted and how much of the disk that
///   gives back, and how many it has left because an execd uses them or because they are for good
#[test]
fn people_delete_logs_and_are_told_what_went_and_what_stayed() {
    let shared = Shared::new();
    let mut execd = shared.execd(&[]);
    let held = log_path(&execd.open("echo here; exec sleep 300"));
    age(&held, 9 * 86_400);
    // A look for old logs must not be faster than the person.
    let (old, young) = (shared.ended(1, 10_000, 5_000), shared.ended(2, 10_000, 100));
    let clean = |more: &[&str]| {
        let at = ["logs", "clean", "--log-dir", shared.logs.to_str().expect("UTF-8")];
        let program = crate::common::EXECD;
        let out = Command::new(program).args(at).args(more).output().expect("it runs");
        (out.status.code(), String::from_utf8(out.stdout).expect("UTF-8"))
    };
    let (status, text) = clean(&["--older-than", "1h"]);
    assert_eq!((status, old.exists(), young.exists()), (Some(0), false, true), "{text}");
    assert!(text.starts_with("deleted 1 log ("), "{text}");
    assert!(text.ends_with("KB); left 1 log in use by an execd\n"), "{text}");
    assert!(!old.with_extension("meta").exists());
    let (status, text) = clean(&["--all"]);
    assert_eq!((status, young.exists(), held.exists()), (Some(0), false, true), "{text}");
    // A plain number meant seconds for a while: who meant days lost nearly all logs.
    let young = shared.ended(3, 10_000, 100);
    assert_eq!(clean(&["--older-than", "5"]), (Some(125), String::new()));
    assert!(young.exists());
    assert_eq!(clean(&["--all", "--older-than", "1d"]).0, Some(125));
    // A directory that was named wrongly was made, and told as one of which no log was left.
    let nowhere = shared.logs.join("nowhere");
    assert_eq!(clean(&["--log-dir", nowhere.to_str().expect("UTF-8")]), (Some(1), String::new()));
    assert!(!nowhere.exists());
}
