//! Parts of one stream against a naive copy of both, over restarts and damages of the index; over
//! losses, limits, full disks and deletions they are read in tests/it/log_ranges.rs.

use super::*;
use crate::keeper::frames::{Head, ReadRange, Reopen, Wanted};
use crate::keeper::range::{self, Range};
use crate::keeper::writer::Writer;
use crate::pure::buffer::bound::Bounds;
use crate::pure::tests_random::Random;
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
    fn new(dir: &Path) -> Self {
        let mut writer = Writer::new(Ok(LogDir::open(dir).unwrap()), Bounds::default());
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

    /// The writer is killed, and another goes on.
    fn restart(&mut self, dir: &Path) {
        self.noted = self.writer.sync(1, 1).noted;
        self.writer = Writer::new(Ok(LogDir::open(dir).unwrap()), Bounds::default());
        let [out, err] = self.wrote.each_ref().map(|wrote| wrote.len() as u64);
        let (total, errors_total) = (out + err, err);
        let (name, noted) = ("a".into(), self.noted);
        let known = Reopen { name, total, errors_total, noted, ..Reopen::default() };
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
        let mut story = Story::new(temp.path());
        for step in 0..300 {
            story.data(BOTH[random.below(2)], 1 + random.below(longest));
            if random.below(3) == 0 {
                story.writer.write_indexes();
            }
            if step % 100 == 99 {
                story.restart(temp.path());
                assert_eq!(story.omitted(70_000), [0, 0], "{longest} {step}");
            }
        }
        assert_eq!(story.omitted(300 + random.below(500) as u64), [0, 0]);
        let log = fs::metadata(temp.path().join("a")).unwrap().len();
        let index = fs::metadata(temp.path().join("a.index")).unwrap().len();
        assert!(index <= 310 * RECORD_BYTES, "{index} for 300 pieces, {log} bytes");
    }
}

/// A stream that begins after restarts finds what came before it told.
/// rule: bash-stream.md, The stream family: The index of a log holds over restarts of the log
///   writer
#[test]
fn a_second_stream_that_comes_late_begins_the_index_then() {
    let temp = tempfile::tempdir().unwrap();
    let mut story = Story::new(temp.path());
    story.data(Source::Errors, 5_000);
    story.restart(temp.path());
    story.data(Source::Errors, 5_000);
    story.writer.close(1);
    assert!(!temp.path().join("a.index").exists(), "one stream needs none");
    let wrote = story.wrote.clone();
    story = Story { wrote, ..Story::new(temp.path()) };
    story.restart(temp.path());
    story.data(Source::Output, 1);
    assert_eq!(story.omitted(4_000), [0, 0]);
}

/// rule: bash-stream.md, The stream family: get_process_log of one stream tells what is missing: a
///   limit, a full disk, losses, a log or index that is gone
/// rule: logs.md, Full disks: An index that is damaged or gone costs the separation of the streams,
///   never the bytes
#[test]
fn a_damaged_index_costs_no_byte_of_a_log_that_lacks_nothing() {
    let mut random = Random(7);
    for round in 0..30 {
        let temp = tempfile::tempdir().unwrap();
        let mut story = Story::new(temp.path());
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
        fs::write(&path, &bytes).unwrap();
        for total in [None, Some(all.len() as u64)] {
            let wanted = Wanted { only: None, from: 0, to: u64::MAX, max_bytes: 1 << 20, total };
            let found = range::read(&LogDir::open(temp.path()).unwrap(), "a", &wanted).unwrap();
            assert!(found.bytes == all && found.head.log_from == 0, "{round}: {:?}", found.head);
        }
        // One that lies gives fewer bytes of a stream, and never wrong lengths.
        for _ in 0..random.below(9) {
            let at = random.below(bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(at) {
                *byte = u8::try_from(random.below(256)).unwrap();
            }
        }
        fs::write(&path, &bytes).unwrap();
        for offset in [0, 100, 5_000, -1, -2_000] {
            let part = story.part(Source::Output, offset, 5_000).unwrap_or_default();
            assert!(part.bytes.len() <= 5_000, "{}", part.bytes.len());
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
