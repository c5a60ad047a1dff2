//! Tests of what is kept of a log's file, on a real disk, with holes and in segments.

use super::*;
use crate::limits::{LOG_BLOCK_BYTES, MIN_LOG_BOUND_BYTES};
use crate::pure::tests_random::Random;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

const NAME: &str = "execd-3-ab12cd34.log";
const KEPT: Kept = Kept::of(MIN_LOG_BOUND_BYTES);
const BLOCK_BYTES: u64 = 512;

/// A byte that tells its place.
fn byte_at(place: u64) -> u8 {
    u8::try_from((place ^ (place >> 8) ^ (place >> 16)) % 251).unwrap() + 1
}

fn open(dir: &LogDir, form: Form) -> BoundedFile {
    let file = BoundedFile::new(dir.create(NAME).unwrap(), Some(KEPT));
    BoundedFile { holes: Holes::Are(form), ..file }
}

fn append(file: &mut BoundedFile, dir: &LogDir, bytes: u64) {
    let bytes: Vec<u8> = (file.size()..file.size() + bytes).map(byte_at).collect();
    assert_eq!(file.append(Some(dir), NAME, &bytes), (bytes.len(), Ok(())));
}

/// What all files of the log take of the disk.
fn taken(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().blocks() * BLOCK_BYTES).sum()
}

/// Every byte that is kept is there, and the right one.
fn check(file: &BoundedFile, dir: &Path, form: Form) {
    let mut place = file.from();
    while place < file.size() {
        let (name, offset, most) = match form {
            Form::Holes => (NAME.to_owned(), place, u64::MAX),
            Form::Segments => {
                let (number, step) = (KEPT.segment_of(place), KEPT.step());
                (segment_name(NAME, number), place % step, step - place % step)
            }
        };
        let length = most.min(file.size() - place);
        let mut bytes = vec![0; usize::try_from(length).unwrap()];
        let read = fs::File::open(dir.join(&name)).unwrap().read_exact_at(&mut bytes, offset);
        read.unwrap_or_else(|error| panic!("{name} at {offset}: {error}"));
        let wrong = bytes.iter().zip(place..).find(|(byte, place)| **byte != byte_at(*place));
        assert_eq!(wrong, None, "{name}: a byte is not the one of its place");
        place += length;
    }
}

/// rule: unified-exec.md, Logs: The log takes no more of the disk than N and a sixteenth of it
/// rule: unified-exec.md, Logs: A new log writer goes on where the kept part of a log begins
#[test]
fn random_appends_trims_and_restarts_keep_the_last_bytes_at_their_places() {
    let mut random = Random(0x5E60_5E60_5E60_5E60);
    for round in 0..12 {
        let mut least = KEPT.step();
        let temp = tempfile::tempdir().unwrap();
        let dir = LogDir::open(temp.path()).unwrap();
        let form = [Form::Holes, Form::Segments][round % 2];
        let mut file = open(&dir, form);
        for _ in 0..150 {
            append(&mut file, &dir, 1 + random.below(1 << 17) as u64);
            assert!(file.from() == 0 || file.size() - file.from() >= least);
            assert!(taken(temp.path()) <= MIN_LOG_BOUND_BYTES + KEPT.step());
            match random.below(40) {
                0 => {
                    let keep = random.below(1 << 20) as u64;
                    file.trim(Some(&dir), NAME, Some(keep)).unwrap();
                    least = least.min(keep).max(1);
                }
                1 => {
                    // A new writer has been told of a little less than went.
                    let unit = if form == Form::Holes { LOG_BLOCK_BYTES } else { KEPT.step() };
                    let (size, from) = (file.size(), file.from());
                    let told = from.saturating_sub(unit * random.below(2) as u64);
                    file = restart(&dir, form, told);
                    assert_eq!((file.size(), file.from()), (size, from), "round {round}");
                }
                _ => {}
            }
        }
        check(&file, temp.path(), form);
        file.delete_segments(&dir, NAME);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    }
}

/// Opens the log as a new writer does, on a disk that is said to have no holes.
fn restart(dir: &LogDir, form: Form, told: u64) -> BoundedFile {
    if form == Form::Holes {
        return BoundedFile::again(dir, NAME, Some(KEPT), told).unwrap();
    }
    let first = dir.reopen(NAME).unwrap();
    let mut file = BoundedFile::new(first, Some(KEPT));
    file.size = file.first.size().unwrap();
    file.holes = Holes::Are(form);
    file.find_segments(dir, NAME, KEPT.segment_of(told)).unwrap();
    file
}

/// rule: unified-exec.md, Logs: A log that somebody has made shorter begins anew
#[test]
fn a_file_that_somebody_has_made_shorter_is_noticed() {
    for form in [Form::Holes, Form::Segments] {
        let temp = tempfile::tempdir().unwrap();
        let dir = LogDir::open(temp.path()).unwrap();
        let mut file = open(&dir, form);
        append(&mut file, &dir, 3 * KEPT.step() / 2);
        assert!(!file.is_cut(&dir, NAME));
        let number = if form == Form::Holes { 1 } else { 2 };
        let path = temp.path().join(segment_name(NAME, number));
        fs::File::options().write(true).open(&path).unwrap().set_len(7).unwrap();
        assert!(file.is_cut(&dir, NAME));
        file.delete_segments(&dir, NAME);
        file.empty().unwrap();
        assert!(!file.is_cut(&dir, NAME) && taken(temp.path()) == 0);
        append(&mut file, &dir, 2 * MIN_LOG_BOUND_BYTES);
        check(&file, temp.path(), form);
    }
}

#[test]
fn what_is_shorter_than_was_said_to_be_gone_begins_anew() {
    let temp = tempfile::tempdir().unwrap();
    let dir = LogDir::open(temp.path()).unwrap();
    fs::write(temp.path().join(NAME), "short").unwrap();
    let file = BoundedFile::again(&dir, NAME, Some(KEPT), KEPT.step()).unwrap();
    assert_eq!((file.size(), file.from()), (0, 0));
    let nothing = BoundedFile::again(&dir, "execd-4-ab12cd34.log", Some(KEPT), 4096).unwrap();
    assert_eq!((nothing.size(), nothing.from()), (0, 0));
}

/// A log that nothing bounds loses its beginning only where room is wanted for others.
#[test]
fn an_unbounded_log_is_trimmed_when_it_is_asked_to_be() {
    let temp = tempfile::tempdir().unwrap();
    let dir = LogDir::open(temp.path()).unwrap();
    let mut file = BoundedFile::new(dir.create(NAME).unwrap(), None);
    append(&mut file, &dir, 3 * MIN_LOG_BOUND_BYTES);
    file.trim(Some(&dir), NAME, Some(MIN_LOG_BOUND_BYTES)).unwrap();
    assert_eq!(file.from(), 2 * MIN_LOG_BOUND_BYTES);
    // A log writer that follows one which was killed at once has not been told of it.
    let again = BoundedFile::again(&dir, NAME, None, 0).unwrap();
    assert_eq!((again.size(), again.from()), (file.size(), file.from()));
    file.trim(Some(&dir), NAME, Some(0)).unwrap();
    assert_eq!(file.size() - file.from(), LOG_BLOCK_BYTES, "a block stays");
}
