//! Parts of one stream against a naive copy of both, over restarts, limits, full disks and
//! deletions.

use super::*;
use crate::keeper::frames::{Head, ReadRange, Reopen, Wanted};
use crate::keeper::range::{self, Range};
use crate::keeper::writer::Writer;
use crate::pure::buffer::bound::Bounds;
use crate::pure::tests_random::Random;
use crate::sys::keeper_calls::testing::Tmpfs;
use std::fs;
use std::path::Path;

const BOTH: [Source; 2] = [Source::Output, Source::Errors];

/// A writer, and all that it was handed over.
struct Story {
    writer: Writer,
    wrote: [Vec<u8>; 2],
    noted: u64,
}

impl Story {
    fn new(dir: &Path, max_bytes: Option<u64>) -> Self {
        let mut writer =
            Writer::new(Ok(LogDir::open(dir).unwrap()), Bounds { max_bytes, ..Bounds::default() });
        writer.open(1, "a");
        Self { writer, wrote: [vec![], vec![]], noted: 0 }
    }

    /// Hands over so many bytes of a stream.
    fn data(&mut self, source: Source, length: usize) {
        let wrote = &mut self.wrote[source as usize];
        let from = wrote.len();
        // Each place has a byte of its own kind, and of its stream.
        let kind = 128 * source as usize;
        let more = (from..from + length).map(|at| u8::try_from(kind + at % 127).unwrap());
        wrote.extend(more);
        if let Some(ack) = self.writer.data(1, source, &wrote[from..]) {
            self.noted = ack.noted;
        }
    }

    /// The writer is killed, and so many bytes of each stream are lost on their way to it.
    fn restart(&mut self, dir: &Path, lost: usize) {
        self.noted = self.writer.sync(1, 1).noted;
        for (at, wrote) in self.wrote.iter_mut().enumerate() {
            let from = wrote.len();
            wrote.extend((from..from + lost).map(|n| u8::try_from(128 * at + n % 127).unwrap()));
        }
        self.writer = Writer::new(Ok(LogDir::open(dir).unwrap()), Bounds::default());
        let [out, err] = self.wrote.each_ref().map(|wrote| wrote.len() as u64);
        let (total, errors_total) = (out + err, err);
        let known = Reopen {
            name: "a".into(),
            total,
            errors_total,
            noted: self.noted,
            ..Reopen::default()
        };
        self.noted = self.writer.reopen(1, &known).noted;
    }

    /// Asks for a part of one stream; `None` where it cannot be read.
    fn part(&mut self, source: Source, from: i64, max_bytes: u64) -> Option<Range> {
        let (only, total) = (Some(source), Some(self.wrote[source as usize].len() as u64));
        let wanted = Wanted { only, from, to: u64::MAX, max_bytes, total };
        let (ack, bytes) = self.writer.range(&ReadRange { token: 1, wanted, name: "a".into() });
        let mut rest = bytes.as_slice();
        let head = (ack.errno == 0).then(|| Head::take(&mut rest).unwrap())?;
        Some(Range { head, bytes: rest.to_vec() })
    }

    /// Reads both streams part by part; gives how many bytes of each are in none.
    fn omitted(&mut self, length: u64) -> [u64; 2] {
        BOTH.map(|source| {
            let (mut at, mut omitted) = (0, 0);
            let size = self.wrote[source as usize].len() as u64;
            while at < size {
                let Range { head, bytes } =
                    self.part(source, i64::try_from(at).unwrap(), length).unwrap();
                assert_eq!(head.known_total, size);
                let from = usize::try_from(head.from).unwrap();
                let wanted = &self.wrote[source as usize][from..from + bytes.len()];
                assert!(bytes == wanted, "{source:?} at {at}");
                assert!(bytes.len() as u64 <= length && head.gap == (at, head.from));
                assert!(head.to > at, "each part leads on");
                omitted += head.from - at;
                at = head.to;
            }
            omitted
        })
    }
}

/// rule: bash-stream.md, The stream family: get_process_log of one stream: all of it, of a process
///   that has ended and of one that runs
#[test]
fn whatever_comes_is_paged_whole() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for longest in [2, 10, 300, 4_000] {
        let temp = tempfile::tempdir().unwrap();
        let mut story = Story::new(temp.path(), None);
        for step in 0..300 {
            story.data(BOTH[random.below(2)], 1 + random.below(longest));
            if random.below(3) == 0 {
                story.writer.write_indexes();
            }
            if step % 100 == 99 {
                story.restart(temp.path(), 0);
                assert_eq!(story.omitted(70_000), [0, 0], "{longest} {step}");
            }
        }
        assert_eq!(story.omitted(300 + random.below(500) as u64), [0, 0]);
        let log = fs::metadata(temp.path().join("a")).unwrap().len();
        let index = fs::metadata(temp.path().join("a.index")).unwrap().len();
        assert!(index <= 310 * RECORD_BYTES, "{index} for 300 pieces, {log} bytes");
    }
}

/// rule: bash-stream.md, The stream family: get_process_log of one stream tells what is missing: a
///   limit, a full disk, losses, a log or index that is gone
#[test]
fn what_is_lost_on_the_way_is_a_gap_of_its_length() {
    let temp = tempfile::tempdir().unwrap();
    let mut story = Story::new(temp.path(), None);
    let mut lost = 0;
    for round in 1..=20 {
        story.data(Source::Output, 1_000);
        story.data(Source::Errors, 10);
        story.restart(temp.path(), round);
        lost += round as u64;
        assert_eq!(story.omitted(150_000), [lost, lost], "round {round}");
    }
}

/// A stream that begins after restarts finds what came before it told.
/// rule: bash-stream.md, The stream family: The index of a log holds over restarts of the log
///   writer
#[test]
fn a_second_stream_that_comes_late_begins_the_index_then() {
    let temp = tempfile::tempdir().unwrap();
    let mut story = Story::new(temp.path(), None);
    story.data(Source::Errors, 5_000);
    story.restart(temp.path(), 0);
    story.data(Source::Errors, 5_000);
    story.writer.close(1);
    assert!(!temp.path().join("a.index").exists(), "one stream needs none");
    let wrote = story.wrote.clone();
    story = Story { wrote, ..Story::new(temp.path(), None) };
    story.restart(temp.path(), 0);
    story.data(Source::Output, 1);
    assert_eq!(story.omitted(4_000), [0, 0]);
}

#[test]
fn a_log_that_ends_at_its_limit_has_no_longer_index_for_what_it_lacks() {
    let temp = tempfile::tempdir().unwrap();
    let mut story = Story::new(temp.path(), Some(1_000));
    for _ in 0..20_000 {
        story.data(Source::Output, 4);
        story.data(Source::Errors, 1);
    }
    assert_eq!(story.omitted(150_000), [80_000 - 800, 20_000 - 200]);
    // What is lost is one record; what the log has is a record for each piece.
    assert!(fs::metadata(temp.path().join("a.index")).unwrap().len() < 410 * RECORD_BYTES);
}

/// rule: bash-stream.md, The stream family: get_process_log of one stream tells what is missing: a
///   limit, a full disk, losses, a log or index that is gone
#[test]
fn a_log_that_was_deleted_begins_anew_and_so_does_its_index() {
    let temp = tempfile::tempdir().unwrap();
    let mut story = Story::new(temp.path(), None);
    for _ in 0..5_000 {
        story.data(Source::Output, 3);
        story.data(Source::Errors, 9);
    }
    fs::remove_file(temp.path().join("a")).unwrap();
    story.writer.sync(1, 1);
    story.data(Source::Errors, 7);
    story.data(Source::Output, 7);
    assert_eq!(story.omitted(100), [15_000, 45_000]);
}

/// rule: bash-stream.md, The stream family: get_process_log of one stream tells what is missing: a
///   limit, a full disk, losses, a log or index that is gone
#[test]
fn what_a_full_disk_has_lost_is_a_gap_and_the_rest_is_there() {
    let temp = tempfile::tempdir().unwrap();
    let Some(_mounted) = Tmpfs::mount(temp.path(), "size=1m") else {
        eprintln!("skipped: may not mount a tmpfs");
        return;
    };
    let mut story = Story::new(temp.path(), None);
    story.data(Source::Output, 3_000);
    story.data(Source::Errors, 2_000);
    story.writer.write_indexes();
    let ballast = temp.path().join("ballast");
    let _ = fs::write(&ballast, vec![0; 1024 * 1024]);
    for _ in 0..30_000 {
        story.data(Source::Output, 2);
        story.data(Source::Errors, 1);
        story.writer.write_indexes();
    }
    fs::remove_file(&ballast).unwrap();
    story.data(Source::Output, 500);
    story.data(Source::Errors, 500);
    let ack = story.writer.sync(1, 1);
    assert!(ack.missing > 60_000, "{ack:?}");
    assert_eq!(story.omitted(20_000).iter().sum::<u64>(), ack.missing);
}

/// rule: bash-stream.md, The stream family: get_process_log of one stream tells what is missing: a
///   limit, a full disk, losses, a log or index that is gone
#[test]
fn an_index_that_makes_no_sense_gives_fewer_bytes_and_never_wrong_lengths() {
    let mut random = Random(99);
    for _ in 0..25 {
        let temp = tempfile::tempdir().unwrap();
        let mut story = Story::new(temp.path(), None);
        for _ in 0..1_500 {
            story.data(Source::Output, 1 + random.below(30));
            story.data(Source::Errors, 1 + random.below(3));
        }
        story.writer.close(1);
        let path = temp.path().join("a.index");
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(random.below(bytes.len()));
        for _ in 0..random.below(9) {
            let at = random.below(bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte = u8::try_from(random.below(256)).unwrap();
            }
        }
        fs::write(&path, bytes).unwrap();
        for offset in [0, 100, 5_000, -1, -2_000] {
            let part = story.part(Source::Output, offset, 5_000).unwrap_or_default();
            assert!(part.bytes.len() <= 5_000, "{}", part.bytes.len());
        }
    }
}

/// rule: logs.md, Full disks: An index that is damaged or gone costs the separation of the streams,
///   never the bytes
#[test]
fn a_damaged_index_costs_no_byte_of_a_log_that_lacks_nothing() {
    let mut random = Random(7);
    for round in 0..40 {
        let temp = tempfile::tempdir().unwrap();
        let mut story = Story::new(temp.path(), None);
        let mut all = Vec::new();
        for _ in 0..600 {
            for source in BOTH {
                let from = story.wrote[source as usize].len();
                story.data(source, 1 + random.below(20));
                all.extend_from_slice(&story.wrote[source as usize][from..]);
            }
        }
        story.writer.close(1);
        let path = temp.path().join("a.index");
        let mut bytes = fs::read(&path).unwrap();
        if round % 2 == 0 {
            bytes.truncate(random.below(bytes.len()));
        }
        let (from, to) = (random.below(bytes.len() + 1), random.below(bytes.len() + 1));
        if let Some(some) = bytes.get_mut(from..to) {
            some.fill([0, 0xff, b'?'][random.below(3)]);
        }
        fs::write(&path, bytes).unwrap();
        for total in [None, Some(all.len() as u64)] {
            let wanted = Wanted { only: None, from: 0, to: u64::MAX, max_bytes: 1 << 20, total };
            let found = range::read(&LogDir::open(temp.path()).unwrap(), "a", &wanted).unwrap();
            assert!(found.bytes == all && found.head.log_from == 0, "{round}: {:?}", found.head);
        }
    }
}

/// Where the streams change more often than the index may tell, its oldest part goes, and no byte
/// of the log.
#[test]
fn an_index_that_is_too_long_loses_its_beginning_and_no_byte() {
    let temp = tempfile::tempdir().unwrap();
    let dir = LogDir::open(temp.path()).unwrap();
    let bounds = Bounds { keep_bytes: Some(1 << 20), ..Bounds::default() };
    let mut writer = Writer::new(Ok(LogDir::open(temp.path()).unwrap()), bounds);
    writer.open(1, "a");
    let mut all = Vec::new();
    for n in 0..40_000_usize {
        let bytes = [u8::try_from(n % 251).unwrap(), u8::try_from(n % 241).unwrap()];
        writer.data(1, BOTH[n % 2], &bytes);
        all.extend_from_slice(&bytes);
        if n % 64 == 0 {
            writer.write_indexes();
        }
    }
    let blocks =
        std::os::unix::fs::MetadataExt::blocks(&temp.path().join("a.index").metadata().unwrap());
    assert!(blocks * 512 <= (1 << 20) / 7, "{blocks} blocks");
    let mut read = |only, from, total| {
        let wanted = Wanted { only, from, to: u64::MAX, max_bytes: 1 << 20, total: Some(total) };
        let (ack, bytes) = writer.range(&ReadRange { token: 1, wanted, name: "a".into() });
        assert_eq!(ack.errno, 0);
        let mut rest = bytes.as_slice();
        (Head::take(&mut rest).unwrap(), rest.to_vec())
    };
    assert!(read(None, 0, 80_000).1 == all);
    let (head, errors) = read(Some(Source::Errors), 0, 40_000);
    let expected: Vec<u8> = all.chunks(4).flat_map(|both| &both[2..]).copied().collect();
    assert!(head.gap.1 > 0 && head.gap.1 < 35_000, "{head:?}");
    let from = usize::try_from(head.from).unwrap();
    assert!(errors == expected[from..], "{head:?}");
    writer.close(1);
    let wanted = Wanted { only: None, from: 3, to: u64::MAX, max_bytes: 1 << 20, total: None };
    assert!(range::read(&dir, "a", &wanted).unwrap().bytes == all[3..]);
}
