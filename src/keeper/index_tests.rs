//! Parts of one stream where the index is damaged or too long; over restarts, losses, limits, full
//! disks and deletions they are read in tests/it/log_ranges.rs.

use super::*;
use crate::keeper::frames::{Head, ReadRange, Wanted};
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
}

impl Story {
    fn new(dir: &Path) -> Self {
        let mut writer = Writer::new(Ok(LogDir::open(dir).unwrap()), Bounds::default());
        writer.open(1, "a");
        Self { writer, wrote: [vec![], vec![]] }
    }

    /// Hands over so many bytes of a stream.
    fn data(&mut self, source: Source, length: usize) {
        let wrote = &mut self.wrote[source as usize];
        let from = wrote.len();
        // Each place has a byte of its own kind, and of its stream.
        let kind = 128 * source as usize;
        let more = (from..from + length).map(|at| u8::try_from(kind + at % 127).unwrap());
        wrote.extend(more);
        self.writer.data(1, source, &wrote[from..]);
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
