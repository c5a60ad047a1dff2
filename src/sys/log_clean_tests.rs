//! Tests of the deletion of old logs: what goes, what stays, and how often anybody looks.

use super::*;
use crate::limits::{CLEAN_NAMES, CLEAN_NAMES_UNTIMED};
use crate::sys::keeper_calls::testing::give_away;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(SECONDS_PER_DAY);

fn set_age(path: &Path, age: Duration) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

fn make(path: &Path, age: Duration) {
    fs::write(path, "x").unwrap();
    set_age(path, age);
}

/// Looks at all names without pauses; whether there was anything to do.
fn clean(dir: &LogDir, keep_days: u64) -> bool {
    let Some(mut cleaner) = Cleaner::begin(dir, keep_days) else { return false };
    while cleaner.step(dir) {
        cleaner.due_ns = 0;
    }
    true
}

fn count(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().filter(|one| one.as_ref().unwrap().file_name() != *STAMP).count()
}

/// rule: architecture.md, The keeper: `--log-keep-days`: execd deletes its own older logs, nothing
///   else, and none of an execd that keeps its logs
#[test]
fn deletes_old_logs_and_nothing_else() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    make(&at("execd-1-00000001.log"), DAY * 8);
    make(&at("execd-2-00000002.log"), DAY * 6);
    make(&at("execd-3-00000003.log"), DAY * 8);
    make(&at("execd-4-00000004.log"), DAY * 8);
    make(&at("execd-5-00000005.txt"), DAY * 8);
    make(&at("execd-6-000000006.log"), DAY * 8);
    make(&at("target"), DAY * 8);
    symlink(at("target"), at("execd-7-00000007.log")).unwrap();
    fs::create_dir(at("execd-8-00000008.log")).unwrap();
    let foreign = give_away(&at("execd-4-00000004.log"));
    let dir = LogDir::open(temp.path()).unwrap();
    let held = dir.reopen("execd-3-00000003.log").unwrap();

    assert!(!clean(&dir, 0) && !clean(&dir, u64::MAX));
    assert!(at("execd-1-00000001.log").exists() && !at(STAMP).exists());
    assert!(clean(&dir, 7));
    assert!(!at("execd-1-00000001.log").exists());
    for left in ["execd-2-00000002.log", "execd-3-00000003.log", "execd-5-00000005.txt"] {
        assert!(at(left).exists(), "{left}");
    }
    for left in ["execd-6-000000006.log", "execd-7-00000007.log", "execd-8-00000008.log", "target"]
    {
        assert!(at(left).symlink_metadata().is_ok(), "{left}");
    }
    assert_eq!(at("execd-4-00000004.log").exists(), foreign);
    drop(held);
    assert!(!clean(&dir, 7), "it is not an hour yet");
    assert!(clean(&dir, 6), "who keeps less does not wait");
    assert!(!at("execd-3-00000003.log").exists());
}

/// Each start opened, locked and looked at every old log: 100 ms of a core beside 10,000 of them.
/// rule: bash-stream.md, The stream family: An index goes with its log
#[test]
fn an_index_goes_with_its_log_and_stays_as_long() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    let pairs = [("execd-1-00000001.log", 8, 9), ("execd-2-00000002.log", 6, 9)];
    for (log, log_days, index_days) in pairs {
        make(&at(log), DAY * log_days);
        make(&at(&format!("{log}.index")), DAY * index_days);
    }
    // Of logs that somebody has deleted; and of one that execd does not know.
    make(&at("execd-3-00000003.log.index"), DAY * 8);
    make(&at("execd-4-00000004.log.index"), DAY * 6);
    make(&at("notes.log.index"), DAY * 8);
    assert!(clean(&LogDir::open(temp.path()).unwrap(), 7));
    for gone in ["execd-1-00000001.log", "execd-1-00000001.log.index", "execd-3-00000003.log.index"]
    {
        assert!(!at(gone).exists(), "{gone}");
    }
    let left = ["execd-2-00000002.log", "execd-2-00000002.log.index"];
    for left in left.into_iter().chain(["execd-4-00000004.log.index", "notes.log.index"]) {
        assert!(at(left).exists(), "{left}");
    }
}

/// rule: logs.md, Cleaning: Index, facts and segments go with their log, and go when they are that
///   old themselves and their log is gone
#[test]
fn segments_and_facts_go_with_their_log_and_stay_as_long() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    for n in 0..9 {
        // Before and behind their logs in the directory, whatever the order is there.
        make(&at(&format!("execd-{n}-00000001.log.{}", 20 - n)), DAY * 9);
        make(&at(&format!("execd-{n}-00000001.log")), DAY * if n == 8 { 6 } else { 8 });
        make(&at(&format!("execd-{n}-00000001.meta")), DAY * 9);
        make(&at(&format!("execd-{n}-00000001.log.{}", 21 - n)), DAY * 9);
    }
    make(&at("execd-9-00000001.meta"), DAY * 6);
    make(&at("execd-9-00000002.meta"), DAY * 8);
    make(&at("execd-9-00000003.log.3"), DAY * 8);
    make(&at("execd-9-00000003.log.4.gz"), DAY * 8);
    assert!(clean(&LogDir::open(temp.path()).unwrap(), 7));
    let mut left: Vec<String> = fs::read_dir(temp.path())
        .unwrap()
        .map(|one| one.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != STAMP)
        .collect();
    left.sort();
    let of_8 = ["log", "log.12", "log.13", "meta"].map(|end| format!("execd-8-00000001.{end}"));
    let mut stay = of_8.to_vec();
    stay.extend(["execd-9-00000001.meta", "execd-9-00000003.log.4.gz"].map(str::to_owned));
    assert_eq!(left, stay);
}

/// rule: architecture.md, The keeper: Old logs are looked for at most once an hour a directory, by
///   one execd, from where the last look was broken off
#[test]
fn a_directory_is_looked_at_once_an_hour_by_one() {
    let temp = tempfile::tempdir().unwrap();
    let log = temp.path().join("execd-1-00000001.log");
    let dir = LogDir::open(temp.path()).unwrap();
    assert!(clean(&dir, 7) && count(temp.path()) == 0);
    assert!(!temp.path().join(STAMP).exists(), "nothing was looked at");
    make(&log, DAY);
    let first = Cleaner::begin(&dir, 7).unwrap();
    assert!(clean(&dir, 7), "none is old, and there are few: no stamp");
    assert!(!temp.path().join(STAMP).exists());
    make(&log, DAY * 9);
    assert!(clean(&dir, 7) && count(temp.path()) == 0);
    drop(first);
    make(&log, DAY * 9);
    assert!(!clean(&dir, 7) && log.exists());
    set_age(&temp.path().join(STAMP), Duration::from_secs(3_601));
    let first = Cleaner::begin(&dir, 7).unwrap();
    assert!(!clean(&dir, 7), "another execd is at it");
    drop(first);
    assert!(clean(&dir, 7), "the first had not begun");
    assert!(!log.exists());
    fs::remove_file(temp.path().join(STAMP)).unwrap();
    make(&log, DAY * 9);
    symlink(temp.path().join("elsewhere"), temp.path().join(STAMP)).unwrap();
    assert!(!clean(&dir, 7), "a stamp that is none of ours is left alone");
}

/// An execd that lives for a moment looks at some names: the next one has to go on behind them, or
/// the rest would never be looked at.
/// rule: architecture.md, The keeper: Old logs are looked for at most once an hour a directory, by
///   one execd, from where the last look was broken off
#[test]
fn what_was_broken_off_goes_on_where_it_was() {
    let temp = tempfile::tempdir().unwrap();
    let names = 3 * CLEAN_NAMES;
    for n in 0..names {
        make(&temp.path().join(format!("execd-{n}-00000001.log")), DAY * 8);
    }
    let dir = LogDir::open(temp.path()).unwrap();
    let mut steps = 0;
    while let Some(mut cleaner) = Cleaner::begin(&dir, 7) {
        cleaner.step(&dir);
        assert!(cleaner.due_ns() <= clock::now_ns() + CLEAN_PAUSE_MS * NS_PER_MS);
        steps += 1;
        assert!(steps <= names / CLEAN_NAMES_UNTIMED, "{} are left", count(temp.path()));
    }
    assert_eq!(count(temp.path()), 0, "after {steps} steps");
}
