//! Tests of what is kept of a log's file, on a real disk.

use super::*;
use crate::limits::{LOG_BLOCK_BYTES, MIN_LOG_BOUND_BYTES};
use crate::pure::buffer::bound::step_bytes;
use crate::pure::tests_random::Random;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

const NAME: &str = "execd-3-ab12cd34.log";
const KEPT: Kept = Kept::of(MIN_LOG_BOUND_BYTES);
const STEP_BYTES: u64 = step_bytes(MIN_LOG_BOUND_BYTES);
const BLOCK_BYTES: u64 = 512;

/// A byte that tells its place.
fn byte_at(place: u64) -> u8 {
    u8::try_from((place ^ (place >> 8) ^ (place >> 16)) % 251).unwrap() + 1
}

fn append(file: &mut BoundedFile, bytes: u64) {
    let bytes: Vec<u8> = (file.size()..file.size() + bytes).map(byte_at).collect();
    assert_eq!(file.append(&bytes), (bytes.len(), Ok(())));
}

/// What the log takes of the disk.
fn taken(dir: &Path) -> u64 {
    dir.join(NAME).metadata().unwrap().blocks() * BLOCK_BYTES
}

/// Every byte that is kept is there, and the right one.
fn check(file: &BoundedFile, dir: &Path) {
    let mut bytes = vec![0; usize::try_from(file.size() - file.from()).unwrap()];
    fs::File::open(dir.join(NAME)).unwrap().read_exact_at(&mut bytes, file.from()).unwrap();
    let wrong = bytes.iter().zip(file.from()..).find(|(byte, place)| **byte != byte_at(*place));
    assert_eq!(wrong, None, "a byte is not the one of its place");
}

/// rule: unified-exec.md, Logs: The log takes no more of the disk than N and a sixteenth of it
/// rule: unified-exec.md, Logs: A new log writer goes on where the kept part of a log begins
#[test]
fn random_appends_and_restarts_keep_the_last_bytes_at_their_places() {
    let mut random = Random(0x5E60_5E60_5E60_5E60);
    for round in 0..8 {
        let temp = tempfile::tempdir().unwrap();
        let dir = LogDir::open(temp.path()).unwrap();
        let mut file = BoundedFile::new(dir.create(NAME).unwrap(), Some(KEPT));
        for _ in 0..150 {
            append(&mut file, 1 + random.below(1 << 17) as u64);
            assert!(file.from() == 0 || file.size() - file.from() >= MIN_LOG_BOUND_BYTES);
            assert!(taken(temp.path()) <= MIN_LOG_BOUND_BYTES + STEP_BYTES);
            if random.below(40) == 0 {
                // A new writer has been told of a little less than went.
                let (size, from) = (file.size(), file.from());
                let told = from.saturating_sub(LOG_BLOCK_BYTES * random.below(2) as u64);
                file = BoundedFile::again(&dir, NAME, Some(KEPT), told).unwrap();
                assert_eq!((file.size(), file.from()), (size, from), "round {round}");
            }
        }
        check(&file, temp.path());
    }
}

#[test]
fn what_is_shorter_than_was_said_to_be_gone_begins_anew() {
    let temp = tempfile::tempdir().unwrap();
    let dir = LogDir::open(temp.path()).unwrap();
    fs::write(temp.path().join(NAME), "short").unwrap();
    let file = BoundedFile::again(&dir, NAME, Some(KEPT), STEP_BYTES).unwrap();
    assert_eq!((file.size(), file.from()), (0, 0));
    let nothing = BoundedFile::again(&dir, "execd-4-ab12cd34.log", Some(KEPT), 4096).unwrap();
    assert_eq!((nothing.size(), nothing.from()), (0, 0));
}
