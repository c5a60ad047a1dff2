//! The index of a log as it is read: its marks, found by halves, and what lies between them.

use super::{Kind, Marks, RECORD_BYTES, RECORD_SIZE, Record, push_mark};
use crate::pure::buffer::source::Source;
use crate::sys::beside_files::PlacedFile;
use crate::sys::io::{EEXIST, ENOENT};
use crate::sys::log_files::LogDir;

/// Bytes of the index that one page looks at.
const LOG_INDEX_LOOK_BYTES: u64 = 4 * 1024 * 1024;

/// Bytes of the index that are read at a time.
const LOG_INDEX_READ_BYTES: usize = 4096;

/// Reads marks out of records that follow each other.
#[derive(Debug, Default)]
pub(super) struct MarkReader {
    place: Option<(u64, u64)>,
    /// What came before leaves it open whether a place is missing in front of the next mark.
    unsure: bool,
}

impl MarkReader {
    /// Takes in a record; gives the mark that it completes.
    pub(super) fn take(&mut self, record: Record) -> Option<(Kind, Marks)> {
        let (place, unsure) = (self.place.take(), self.unsure);
        self.unsure = matches!(record, Record::Hole | Record::Nonsense);
        match record {
            Record::Place { file, own } => self.place = Some((file, own)),
            Record::Mark(kind, streams) if place.is_some() || !unsure => {
                self.unsure = kind.is_end();
                let at = streams[0].saturating_add(streams[1]);
                let (file, own) = place.unwrap_or((at, 0));
                return Some((kind, Marks { file, streams, own }));
            }
            Record::Mark(..) | Record::Hole | Record::Nonsense => {}
        }
        None
    }
}

/// What the index tells of the output between two marks.
#[derive(Clone, Copy, Debug)]
pub(in crate::keeper) struct Run {
    kind: Kind,
    pub(in crate::keeper) from: Marks,
    pub(in crate::keeper) to: Marks,
}

impl Run {
    /// How many bytes of the output, or of the stream that is asked for alone, the log is known to
    /// have from where this run begins.
    pub(in crate::keeper) fn logged(&self, only: Option<Source>) -> u64 {
        let (all, wanted) = (self.bytes(None), self.bytes(only));
        let own = self.to.own - self.from.own;
        let places = (self.to.file - self.from.file).saturating_sub(own);
        // The other stream has nothing here.
        let alone = wanted == all;
        match self.kind {
            Kind::Output | Kind::Errors | Kind::Mixed if alone => places.min(all),
            // Whatever is damaged in the index, nothing of the log is missing here.
            _ if alone && places == all && own == 0 => all,
            _ => 0,
        }
    }

    /// How far the output, or the stream that is asked for alone, comes in it.
    fn bytes(&self, only: Option<Source>) -> u64 {
        self.to.of(only) - self.from.of(only)
    }
}

/// An index that is read.
#[derive(Debug)]
pub(in crate::keeper) struct Records {
    file: Option<PlacedFile>,
    /// How many records there are in the file.
    written: u64,
    /// Those that the file does not have.
    newer: Vec<u8>,
    /// The last mark.
    end: Marks,
    /// So many bytes of the output stand in the log behind it: they came when the index could not
    /// be written any more.
    tail: u64,
}

impl Records {
    /// The index of a log that is being written: so many bytes of it are in the file, if that is
    /// still there, and these records are not; the last mark stands there.
    pub(super) fn of_writer(
        (dir, log): (&LogDir, &str),
        written: u64,
        newer: Vec<u8>,
        end: Marks,
    ) -> Self {
        let file = if written > 0 { dir.read_index(log).ok() } else { None };
        Self { file, written: written / RECORD_BYTES, newer, end, tail: 0 }
    }

    /// What the index of a log would tell that has none, since it has nothing but `bytes` bytes of
    /// one stream.
    pub(in crate::keeper) fn plain(source: Source, bytes: u64) -> Self {
        let mut streams = [0, 0];
        streams[source as usize] = bytes;
        let end = Marks { file: bytes, streams, own: 0 };
        let mut newer = Vec::new();
        push_mark(&mut newer, Kind::of(source), &Marks::default());
        push_mark(&mut newer, Kind::End, &end);
        Self { file: None, written: 0, newer, end, tail: 0 }
    }

    /// The index of a log that nobody writes any more, which has `size` bytes; `None` where it has
    /// none or one that makes no sense. Errors: pread(2).
    pub(in crate::keeper) fn on_disk(
        dir: &LogDir,
        log: &str,
        size: u64,
    ) -> Result<Option<Self>, i32> {
        let file = match dir.read_index(log) {
            Ok(file) => file,
            Err(ENOENT | EEXIST) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        let Some(Last { kind, marks, behind, .. }) = last_mark(&file)? else { return Ok(None) };
        let tail = if kind == Kind::Unsure { 0 } else { size.saturating_sub(marks.file) };
        let (written, newer) = (behind / RECORD_BYTES, Vec::new());
        Ok(Some(Self { file: Some(file), written, newer, end: marks, tail }))
    }

    /// How far the output, or the stream that is asked for alone, has come as far as it tells.
    pub(in crate::keeper) fn end_of(&self, only: Option<Source>) -> u64 {
        let tail = if only.is_none() { self.tail } else { 0 };
        self.end.of(only).saturating_add(tail)
    }

    fn count(&self) -> u64 {
        self.written + (self.newer.len() / RECORD_SIZE) as u64
    }

    /// Reads records from one on; gives how many bytes that were. Errors: pread(2).
    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize, i32> {
        if at < self.written {
            let Some(file) = &self.file else { return Ok(0) };
            let left = usize::try_from((self.written - at) * RECORD_BYTES).unwrap_or(usize::MAX);
            let most = left.min(buffer.len());
            let read = file.read_at(&mut buffer[..most], at * RECORD_BYTES)?;
            return Ok(read / RECORD_SIZE * RECORD_SIZE);
        }
        let from = usize::try_from(at - self.written).map_or(usize::MAX, |at| at * RECORD_SIZE);
        let newer = self.newer.get(from..).unwrap_or_default();
        let length = newer.len().min(buffer.len());
        buffer[..length].copy_from_slice(&newer[..length]);
        Ok(length)
    }

    fn record(&self, at: u64) -> Result<Record, i32> {
        let mut bytes = [0; RECORD_SIZE];
        let read = self.read(at, &mut bytes)?;
        Ok(if read == RECORD_SIZE { Record::decode(&bytes) } else { Record::Nonsense })
    }

    /// The mark that this record is, or is the place of, and its first record. Errors: pread(2).
    fn mark_at(&self, at: u64) -> Result<Probe, i32> {
        let mut reader = MarkReader::default();
        let before = if at > 0 { Some(self.record(at - 1)?) } else { None };
        if let Some(record) = before {
            reader.take(record);
        }
        let record = self.record(at)?;
        let first = if reader.place.is_some() { at - 1 } else { at };
        let mark = match (reader.take(record), record) {
            (None, Record::Place { .. }) => reader.take(self.record(at + 1)?),
            (mark, _) => mark,
        };
        Ok(match (mark, record) {
            (Some((_, marks)), _) => Probe::Mark(first, marks),
            (None, Record::Hole | Record::Mark(..)) => Probe::Passed,
            (None, _) => Probe::Nonsense,
        })
    }

    /// The first record of the last mark that stands no later than `wanted`, as `of` counts;
    /// `None`: there is none. Errors: pread(2).
    pub(super) fn before(
        &self,
        wanted: u64,
        of: &dyn Fn(&Marks) -> u64,
    ) -> Result<Option<u64>, i32> {
        Ok(self.search(wanted, of)?.0)
    }

    /// As [`Self::before`], and the first record behind all of that.
    fn search(&self, wanted: u64, of: &dyn Fn(&Marks) -> u64) -> Result<(Option<u64>, u64), i32> {
        let (mut found, mut low, mut high) = (None, 0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            match self.mark_at(middle)? {
                Probe::Mark(first, marks) if of(&marks) <= wanted => {
                    (found, low) = (Some(first), middle + 1);
                }
                // What was given back to the disk tells of what is gone.
                Probe::Passed => low = middle + 1,
                // It is looked further ahead, and all behind that is looked through.
                Probe::Mark(..) | Probe::Nonsense => high = middle,
            }
        }
        Ok((found, low))
    }

    /// Looks at what the index tells from the mark on that has `wanted`, as `of` counts, until
    /// `take` gives false. `tail`: with what stands in the log behind the last mark. Whether the
    /// index's end was reached. Errors: pread(2), those of `take`.
    pub(in crate::keeper) fn each(
        &self,
        (wanted, tail): (u64, bool),
        of: &dyn Fn(&Marks) -> u64,
        take: &mut dyn FnMut(Run) -> Result<bool, i32>,
    ) -> Result<bool, i32> {
        let (found, behind) = self.search(wanted, of)?;
        let mut before = (Kind::Unsure, Marks::default());
        let mut at = found.unwrap_or(behind.saturating_sub(1));
        let (mut reader, mut is_first) = (MarkReader::default(), found.is_some());
        let mut buffer = [0; LOG_INDEX_READ_BYTES];
        let last = at.saturating_add(LOG_INDEX_LOOK_BYTES / RECORD_BYTES);
        while at < self.count() {
            let length = self.read(at, &mut buffer)?;
            if length == 0 || at >= last {
                return Ok(false);
            }
            at += (length / RECORD_SIZE) as u64;
            for record in buffer[..length].chunks_exact(RECORD_SIZE).map(Record::decode) {
                if matches!(record, Record::Nonsense) {
                    before.0 = Kind::Unsure;
                }
                let Some((kind, marks)) = reader.take(record) else { continue };
                if !is_first {
                    if !before.1.is_at_or_before(&marks) {
                        before.0 = Kind::Unsure;
                        continue;
                    }
                    if !take(Run { kind: before.0, from: before.1, to: marks })? {
                        return Ok(false);
                    }
                }
                (before, is_first) = ((kind, marks), false);
            }
        }
        if tail && self.tail > 0 {
            let mut to = self.end;
            to.file += self.tail;
            to.streams[0] = to.streams[0].saturating_add(self.tail);
            return take(Run { kind: Kind::Mixed, from: self.end, to });
        }
        Ok(true)
    }

    /// The first byte of the output, or of the stream that is asked for alone, that lies at this
    /// place of the log or behind it; where there is none, the end. Errors: pread(2).
    pub(in crate::keeper) fn output_at(
        &self,
        place: u64,
        only: Option<Source>,
    ) -> Result<u64, i32> {
        let mut found = None;
        let mut passed = 0;
        let at_place = |marks: &Marks| marks.file;
        let ended = self.each((place, only.is_none()), &at_place, &mut |run| {
            let before = place.saturating_sub(run.from.file);
            if run.logged(only) > before {
                found = Some(run.from.of(only) + before);
            }
            passed = run.to.of(only);
            Ok(found.is_none())
        })?;
        Ok(found.unwrap_or(if ended { self.end_of(only) } else { passed }))
    }
}

/// What a record was found to be.
enum Probe {
    /// A mark, and its first record.
    Mark(u64, Marks),
    /// A hole, or a mark behind one whose place may be in it.
    Passed,
    Nonsense,
}

/// The last mark of an index.
#[derive(Clone, Copy)]
pub(super) struct Last {
    pub(super) kind: Kind,
    pub(super) marks: Marks,
    /// Where its records begin, and where they end.
    pub(super) at: u64,
    pub(super) behind: u64,
}

/// The last mark of an index; `None`: none of its last records is one. Errors: fstat(2), pread(2).
pub(super) fn last_mark(index: &PlacedFile) -> Result<Option<Last>, i32> {
    let behind = index.size()? / RECORD_BYTES * RECORD_BYTES;
    let from = behind.saturating_sub(LOG_INDEX_READ_BYTES as u64);
    let mut buffer = [0; LOG_INDEX_READ_BYTES];
    let length = index.read_at(&mut buffer, from)?;
    let mut reader = MarkReader { unsure: from > 0, ..MarkReader::default() };
    let (mut last, mut at) = (None, from);
    let mut behind = from;
    for record in buffer[..length].chunks_exact(RECORD_SIZE).map(Record::decode) {
        let first = if reader.place.is_some() { behind - RECORD_BYTES } else { behind };
        behind += RECORD_BYTES;
        if let Some((kind, marks)) = reader.take(record) {
            at = first;
            last = Some((kind, marks, behind));
        }
    }
    Ok(last.map(|(kind, marks, behind)| Last { kind, marks, at, behind }))
}

/// Whether an index lies beside this log that cannot be read, or in which nothing makes sense.
pub(in crate::keeper) fn is_broken(dir: &LogDir, log: &str) -> bool {
    match dir.read_index(log) {
        Ok(file) => file.size() != Ok(0) && !matches!(last_mark(&file), Ok(Some(_))),
        Err(errno) => errno != ENOENT,
    }
}
