//! Tests of the deletion of logs: what goes by age and for the sum, what stays, and how often
//! anybody looks.

use super::*;
use crate::sys::keeper_calls::testing::give_away;
use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::SystemTime;

const DAY_S: u64 = SECONDS_PER_DAY;
/// A file of this size takes that much on the disk.
const FILE_BYTES: u64 = 64 * 1024;

fn set_age(path: &Path, age_s: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    // Delayed allocation would tell the size later.
    file.sync_all().unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).unwrap();
}

fn make(path: &Path, age_s: u64) {
    fs::write(path, vec![b'x'; usize::try_from(FILE_BYTES).unwrap()]).unwrap();
    set_age(path, age_s);
}

/// Does all that is due at the start of an execd.
fn clean(dir: &LogDir, keep_days: u64, total_bytes: Option<u64>) {
    HourlyCleaning::new(keep_days, total_bytes, 0).end(dir);
}

/// What all files of our logs take.
fn sum(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).unwrap().map(Result::unwrap);
    files
        .filter(|one| part_of(one.file_name().as_encoded_bytes()).is_some())
        .map(|one| one.metadata().unwrap())
        .filter(|one| one.uid() == crate::sys::host::uid())
        .map(|one| one.blocks() * 512)
        .sum()
}

/// Each start opened, locked and looked at every old log: 100 ms of a core beside 10,000 of them.
/// rule: logs.md, Cleaning: Index and facts go with their log, and go when they are that old
///   themselves and their log is gone
#[test]
fn an_index_and_facts_go_with_their_log_and_stay_as_long() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    for (log, log_days) in [("execd-1-00000001", 8), ("execd-2-00000002", 6)] {
        make(&at(&format!("{log}.log")), DAY_S * log_days);
        make(&at(&format!("{log}.log.index")), DAY_S * 9);
        make(&at(&format!("{log}.meta")), DAY_S * 9);
    }
    // Of logs that somebody has deleted, and of one that execd does not know.
    for (name, days) in [
        ("execd-3-00000003.log.index", 8),
        ("execd-3-00000003.meta", 8),
        ("execd-4-00000004.log.index", 6),
        ("execd-4-00000004.meta", 6),
        ("notes.log.index", 8),
    ] {
        make(&at(name), DAY_S * days);
    }
    clean(&LogDir::open(temp.path()).unwrap(), 7, None);
    let names = fs::read_dir(temp.path()).unwrap().map(|one| one.unwrap().file_name());
    let mut left: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    left.sort();
    let stay = [
        STAMP,
        "execd-2-00000002.log",
        "execd-2-00000002.log.index",
        "execd-2-00000002.meta",
        "execd-4-00000004.log.index",
        "execd-4-00000004.meta",
        "notes.log.index",
    ];
    assert_eq!(left, stay);
}

/// rule: logs.md, Cleaning: A directory is cleaned at most once an hour, by one execd at a time
#[test]
fn a_directory_is_cleaned_once_an_hour_by_one() {
    let temp = tempfile::tempdir().unwrap();
    let (log, stamp) = (temp.path().join("execd-1-00000001.log"), temp.path().join(STAMP));
    let dir = LogDir::open(temp.path()).unwrap();
    let goes = |gone: bool, when: &str| {
        make(&log, DAY_S * 9);
        clean(&dir, 7, None);
        assert_eq!(!log.exists(), gone, "{when}");
    };
    goes(true, "nobody has looked");
    goes(false, "somebody has just looked");
    set_age(&stamp, 3_601);
    goes(true, "that was an hour ago");
    set_age(&stamp, 3_601);
    let locked = lock_stamp(&dir).expect("an hour ago");
    set_age(&stamp, 3_601);
    goes(false, "another execd is at it");
    drop(locked);
    goes(true, "that one has ended");
    // A clock that was set.
    OpenOptions::new()
        .write(true)
        .open(&stamp)
        .unwrap()
        .set_modified(SystemTime::now() + Duration::from_secs(9_000))
        .unwrap();
    goes(true, "a stamp of the future");
    fs::remove_file(&stamp).unwrap();
    symlink(temp.path().join("elsewhere"), &stamp).unwrap();
    goes(false, "a stamp that is none of ours is left alone");
}

/// rule: logs.md, Bounds: Logs of sessions that have ended are deleted, the one that ended first
///   before all others
/// rule: logs.md, Bounds: A log that an execd holds is not among them, nor one that ended within
///   the last 60 s, nor one for good
#[test]
fn the_logs_that_ended_first_go_for_the_sum_and_nothing_else() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    // Made in an order that is neither that of their ends nor of their numbers.
    for n in [5, 1, 9, 3, 7, 0, 2, 8, 4, 6] {
        make(&at(&format!("execd-{n}-00000001.log")), 10_000 - n * 100);
    }
    make(&at("execd-0-00000001.meta"), 5);
    make(&at("execd-0-00000001.log.index"), 5);
    make(&at("execd-1-00000002.log"), 20_000);
    fs::set_permissions(at("execd-1-00000002.log"), Permissions::from_mode(0o1600)).unwrap();
    make(&at("execd-1-00000003.log"), 20_000);
    make(&at("execd-1-00000004.log"), 30);
    make(&at("execd-1-00000005.log"), 20_000);
    let foreign = give_away(&at("execd-1-00000005.log"));
    make(&at("notes.log"), 20_000);
    symlink(at("notes.log"), at("execd-1-00000006.log")).unwrap();
    let dir = LogDir::open(temp.path()).unwrap();
    let held = dir.reopen("execd-1-00000003.log").unwrap();
    let there = || -> Vec<u64> {
        (0..10).filter(|n| at(&format!("execd-{n}-00000001.log")).exists()).collect()
    };
    let clean = |total_bytes: u64| {
        clean(&dir, 7, Some(total_bytes));
        fs::remove_file(at(STAMP)).unwrap();
    };

    let all = sum(temp.path());
    clean(all);
    assert_eq!(there().len(), 10, "nothing is too much");
    clean(all - 1);
    let left = there();
    assert!(!left.is_empty() && left.len() < 10, "{left:?}");
    assert_eq!(*left.last().unwrap(), 9, "the last that ended stays");
    assert_eq!(left.len() as u64, 10 - left[0], "oldest end first: {left:?}");
    assert!(sum(temp.path()) <= all * 7 / 8);
    assert!(!at("execd-0-00000001.meta").exists() && !at("execd-0-00000001.log.index").exists());

    clean(2 * FILE_BYTES);
    assert_eq!(there(), [] as [u64; 0]);
    for left in ["execd-1-00000002.log", "execd-1-00000003.log", "execd-1-00000004.log"] {
        assert!(at(left).exists(), "{left}");
    }
    assert!(at("notes.log").exists() && at("execd-1-00000006.log").symlink_metadata().is_ok());
    assert_eq!(at("execd-1-00000005.log").exists(), foreign);
    drop(held);
}

/// rule: logs.md, Cleaning: with `--all` all that no execd uses, those for good among them
#[test]
fn a_person_deletes_by_age_or_all_that_nobody_uses() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    for (name, days) in [
        ("execd-1-00000001.log", 8),
        ("execd-1-00000001.meta", 8),
        ("execd-2-00000001.log", 1),
        ("execd-3-00000001.log", 9),
        ("execd-4-00000001.log", 9),
        ("notes.log", 9),
    ] {
        make(&at(name), DAY_S * days);
    }
    let there = |number: u64| at(&format!("execd-{number}-00000001.log")).exists();
    fs::set_permissions(at("execd-4-00000001.log"), Permissions::from_mode(0o1600)).unwrap();
    let dir = LogDir::open(temp.path()).unwrap();
    let file = dir.reopen("execd-3-00000001.log").unwrap();
    let found = clean_logs(&dir, CleanLimits::older_than_s(7 * DAY_S)).unwrap();
    let (logs, used, kept) = (found.logs, found.used, found.kept);
    assert_eq!((logs, used, kept, found.failed), (1, 1, 1, 0));
    assert!(found.bytes >= 2 * FILE_BYTES, "{found:?}");
    assert!(!there(1) && !at("execd-1-00000001.meta").exists());
    assert!(there(2) && there(3) && there(4));

    let found = clean_logs(&dir, CleanLimits::ALL).unwrap();
    assert_eq!((found.logs, found.used, found.kept), (2, 1, 0));
    assert!(!there(2) && there(3) && !there(4) && at("notes.log").exists());
    drop(file);
    assert_eq!(clean_logs(&dir, CleanLimits::ALL).unwrap().logs, 1);
    assert_eq!(clean_logs(&dir, CleanLimits::ALL).unwrap(), Cleaned::default());
}
