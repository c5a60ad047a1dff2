//! Tests of the bound of all logs together: which logs go, and how execds share a look.

use super::*;
use crate::limits::{CLEAN_NAMES, CLEAN_NAMES_UNTIMED, TOTAL_OLDEST_LOGS};
use crate::sys::keeper_calls::testing::give_away;
use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A file of this size takes that much on the disk.
const FILE_BYTES: u64 = 64 * 1024;

fn make(path: &Path, age_s: u64) {
    fs::write(path, vec![b'x'; usize::try_from(FILE_BYTES).unwrap()]).unwrap();
    let file = OpenOptions::new().write(true).open(path).unwrap();
    // Delayed allocation would tell the size later.
    file.sync_all().unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).unwrap();
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

/// Looks without pauses, to the end.
fn to_end(mut look: Look, dir: &LogDir) -> Step {
    loop {
        look.hurry();
        match look.step(dir) {
            Step::More => {}
            step => return step,
        }
    }
}

/// rule: logs.md, Bounds: Logs of sessions that have ended are deleted, the one that ended first
///   before all others
/// rule: logs.md, Bounds: A log that an execd holds is not among them, nor one that ended within
///   the last 60 s, nor one for good
#[test]
fn the_logs_that_ended_first_go_and_nothing_else() {
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

    let all = sum(temp.path());
    let looked = to_end(Look::while_writing(&dir, all * 2).unwrap(), &dir);
    assert_eq!((looked, there().len()), (Step::Done, 10), "nothing is too much");
    assert!(!at(STAMP).exists(), "a few names need no stamp");
    assert_eq!(to_end(Look::while_writing(&dir, all).unwrap(), &dir), Step::Done);
    let left = there();
    assert!(!left.is_empty() && left.len() < 10, "{left:?}");
    assert_eq!(*left.last().unwrap(), 9, "the last that ended stays");
    assert_eq!(left.len() as u64, 10 - left[0], "oldest end first: {left:?}");
    assert!(sum(temp.path()) <= all * 15 / 16);
    assert!(!at("execd-0-00000001.meta").exists() && !at("execd-0-00000001.log.index").exists());

    // What may not be deleted is told.
    let over = to_end(Look::while_writing(&dir, 2 * FILE_BYTES).unwrap(), &dir);
    assert!(matches!(over, Step::Over(Over { bytes: FILE_BYTES.., .. })), "{over:?}");
    assert_eq!(there(), [] as [u64; 0]);
    for left in ["execd-1-00000002.log", "execd-1-00000003.log", "execd-1-00000004.log"] {
        assert!(at(left).exists(), "{left}");
    }
    assert!(at("notes.log").exists() && at("execd-1-00000006.log").symlink_metadata().is_ok());
    assert_eq!(at("execd-1-00000005.log").exists(), foreign);
    drop(held);
}

/// rule: logs.md, Bounds: What counts is what files take on the disk
#[test]
fn segments_count_with_their_log_and_go_at_its_time() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    // The log that ended last has the oldest segments.
    for (n, age_s, segments_age_s) in [(1, 100, 9_000), (2, 5_000, 6_000), (3, 7_000, 8_000)] {
        make(&at(&format!("execd-{n}-00000001.log")), age_s);
        for segment in 7..11 {
            make(&at(&format!("execd-{n}-00000001.log.{segment}")), segments_age_s);
        }
    }
    make(&at("execd-4-00000001.log.9"), 20_000);
    let dir = LogDir::open(temp.path()).unwrap();
    let all = sum(temp.path());
    assert!(all >= 16 * FILE_BYTES);
    let bound = 8 * FILE_BYTES;
    assert_eq!(to_end(Look::while_writing(&dir, bound).unwrap(), &dir), Step::Done);
    assert!(sum(temp.path()) <= bound);
    assert!(!at("execd-4-00000001.log.9").exists(), "what is left of a log that is gone");
    for segment in 7..11 {
        assert!(at(&format!("execd-1-00000001.log.{segment}")).exists(), "{segment}");
        assert!(!at(&format!("execd-3-00000001.log.{segment}")).exists(), "{segment}");
    }
    let held = dir.reopen("execd-1-00000001.log").unwrap();
    assert!(matches!(to_end(Look::while_writing(&dir, 16).unwrap(), &dir), Step::Over(_)));
    assert!(at("execd-1-00000001.log.7").exists(), "of a log that is held");
    drop(held);
}

/// rule: logs.md, Bounds: Execds that follow upon each other share one look: each goes on where the
///   last one was broken off
#[test]
fn execds_that_live_for_a_moment_share_one_look() {
    let temp = tempfile::tempdir().unwrap();
    let names = 3 * CLEAN_NAMES;
    for n in 0..names {
        fs::write(temp.path().join(format!("execd-{n}-00000001.log")), "x").unwrap();
    }
    let dir = LogDir::open(temp.path()).unwrap();
    let total = 1 << 40;
    let mut steps = 0;
    while let Some(mut look) = Look::at_start(&dir, total) {
        // A few names need no stamp, and a turn on a busy machine may have no time for more.
        let stamped = temp.path().join(STAMP).exists();
        assert!(Look::at_start(&dir, total).is_none() || !stamped, "one at a time");
        look.step(&dir);
        assert!(look.due_ns() <= clock::now_ns() + CLEAN_PAUSE_MS * NS_PER_MS);
        steps += 1;
        assert!(steps <= names / CLEAN_NAMES_UNTIMED, "no end");
    }
    assert!(steps >= 3, "{steps}");
    let text = fs::read_to_string(temp.path().join(STAMP)).unwrap();
    let stamp = Stamp::parse(&text).unwrap();
    assert_eq!((stamp.place, stamp.sum_bytes), (None, sum(temp.path())), "each once");

    // What was written since counts for who starts next.
    note_written(&dir, total);
    let mut look = Look::at_start(&dir, total).expect("there may be too much");
    assert!(!look.is_over(), "it is added up anew");
    look.finished = true;
    look.sum.sum_bytes = 1;
    drop(look);
    assert!(Look::at_start(&dir, total).is_none());
    fs::remove_file(temp.path().join(STAMP)).unwrap();
    symlink(temp.path().join("elsewhere"), temp.path().join(STAMP)).unwrap();
    assert!(Look::at_start(&dir, total).is_none(), "a stamp that is none of ours");
}

/// More logs than are remembered at a time: it is looked again until there is room.
#[test]
fn any_number_of_logs_goes() {
    let temp = tempfile::tempdir_in("/dev/shm").unwrap();
    let count = 2 * TOTAL_OLDEST_LOGS + 600;
    let old = SystemTime::now() - Duration::from_secs(3_600);
    for n in 0..count {
        let path = temp.path().join(format!("execd-{n}-00000001.log"));
        fs::write(&path, "x").unwrap();
        // Groups of the same end.
        let age = Duration::from_millis((n % 100) as u64);
        OpenOptions::new().write(true).open(&path).unwrap().set_modified(old + age).unwrap();
    }
    let dir = LogDir::open(temp.path()).unwrap();
    let bound = sum(temp.path()) / 10;
    let look = Look::at_start(&dir, bound).unwrap();
    assert_eq!(to_end(look, &dir), Step::Done);
    let left = sum(temp.path());
    assert!(left <= bound && left >= bound / 2, "{left} of {bound}");
    let youngest = fs::read_dir(temp.path()).unwrap().map(|one| one.unwrap());
    let ages: Vec<u128> = youngest
        .filter(|one| part_of(one.file_name().as_encoded_bytes()).is_some())
        .map(|one| one.metadata().unwrap().modified().unwrap().duration_since(old).unwrap())
        .map(|age| age.as_millis())
        .collect();
    assert!(ages.iter().all(|age| *age >= 89), "the youngest tenth stays: {ages:?}");
}
