//! The bytes of a log by their places, however many files they lie in (`pure/buffer/bound.rs`), of
//! which many small parts that lie close together are read.

use crate::limits::{
    LOG_KEEP_STEPS, LOG_META_BYTES, LOG_PAGE_READ_BYTES, LOG_PAGE_READS_MAX, LOG_RANGE_ANSWER_BYTES,
};
use crate::pure::buffer::bound::segment_name;
use crate::sys::index_files::PlacedFile;
use crate::sys::io::ENOENT;
use crate::sys::log_files::LogDir;

/// What the name of a log ends with, and that of the facts beside it.
const LOG_SUFFIX: &str = ".log";
const META_SUFFIX: &str = ".meta";
/// Where the facts tell how long a log's segments are, and by what its file is known. In a JSON
/// text these characters stand nowhere else: a string has no quotation mark without a backslash in
/// front.
const SEGMENT_KEY: &[u8] = b"\"segment_bytes\":";
const FILE_KEY: &[u8] = b"\"file_id\":";

/// What the log writer alone knows of a log, and adds to its facts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beside {
    /// The size of its segments, where it is a row of them.
    pub(super) segment_bytes: Option<u64>,
    /// By what its file is known (`LogFile::id`).
    pub(super) file_id: Option<u64>,
}

/// Where the bytes of a log lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// The log's first byte that is kept.
    pub(super) kept_from: u64,
    /// Where the log ends.
    pub(super) size: u64,
    /// How many bytes of it lie in one file; `None`: all.
    pub(super) segment_bytes: Option<u64>,
}

impl Layout {
    /// Finds out where the bytes lie of a log that nobody writes any more. `ends`: where it ends,
    /// as far as others have told. Errors: openat(2), lseek(2).
    pub(super) fn find(dir: &LogDir, log: &str, ends: Option<u64>) -> Result<Self, i32> {
        let main = dir.read_log(log)?;
        let (size, segment_bytes) = (main.size()?, segment_bytes(dir, log));
        let size_of = |number| dir.read_log(&segment_name(log, number)).and_then(|one| one.size());
        // Of a session that runs, or whose execd was killed, nobody has told.
        let found = |bytes: u64| {
            let last = dir.last_segment(log)?;
            Some((last - 1).saturating_mul(bytes).saturating_add(size_of(last).ok()?))
        };
        let ends = ends.or_else(|| segment_bytes.and_then(found));
        if let Some((bytes, ends)) = segment_bytes.zip(ends).filter(|(bytes, ends)| bytes < ends) {
            let last = ends.div_ceil(bytes);
            let oldest = last.saturating_sub(LOG_KEEP_SEGMENTS).max(2);
            let there = (oldest..=last).rev().take_while(|number| size_of(*number).is_ok());
            let kept = there.last();
            // The first one is never deleted, but empty once it is given up.
            let first = kept.filter(|first| *first > 2 || size == 0).unwrap_or(1);
            let kept_from = if kept.is_none() && size == 0 { ends } else { (first - 1) * bytes };
            return Ok(Self { kept_from, size: ends, segment_bytes });
        }
        let kept_from = main.first_data()?.min(size);
        Ok(Self { kept_from, size, segment_bytes: None })
    }

    /// How many bytes its files have. Of a row of segments any may be gone or cut short.
    pub(super) fn bytes_there(&self, dir: &LogDir, log: &str) -> u64 {
        let Some(bytes) = self.segment_bytes else {
            return self.size.saturating_sub(self.kept_from);
        };
        let (first, last) = (self.kept_from / bytes + 1, self.size.div_ceil(bytes));
        let row = (first..=last).take(usize::try_from(LOG_KEEP_SEGMENTS).unwrap_or(usize::MAX));
        let size_of = |number| dir.read_log(&segment_name(log, number)).and_then(|one| one.size());
        // What one has beyond its own bytes, or beyond the log's end, is not the log's.
        let room = |number: u64| bytes.min(self.size - (number - 1) * bytes);
        row.map(|number| size_of(number).map_or(0, |size| size.min(room(number)))).sum()
    }
}

/// Segments that a log has at most: those of its bound, the one that is begun, and one that is to
/// be given up.
const LOG_KEEP_SEGMENTS: u64 = LOG_KEEP_STEPS + 3;

/// Whether what stands where an ended log should be is the file that its log writer wrote, as far
/// as the facts beside it say that. Errors: [`LogDir::check`]; ENOENT where nothing stands there.
pub(super) fn check(dir: &LogDir, log: &str) -> Result<(), i32> {
    dir.check(log, number_in_facts(dir, log, FILE_KEY))
}

/// How long a log's segments are, where the facts beside it say so.
fn segment_bytes(dir: &LogDir, log: &str) -> Option<u64> {
    number_in_facts(dir, log, SEGMENT_KEY).filter(|number| *number > 0)
}

/// A number that the facts beside a log have behind this key.
fn number_in_facts(dir: &LogDir, log: &str, key: &[u8]) -> Option<u64> {
    let meta = log.strip_suffix(LOG_SUFFIX).unwrap_or(log).to_owned() + META_SUFFIX;
    let mut bytes = [0; LOG_META_BYTES];
    let length = dir.read_log(&meta).and_then(|file| file.read_at(&mut bytes, 0)).ok()?;
    let text = &bytes[..length];
    let at = text.windows(key.len()).position(|part| part == key)?;
    let digits = text[at + key.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0_u64, |number, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    }))
}

/// What came of reading some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Got {
    /// All of them.
    All,
    /// Fewer, since enough was read for one part.
    Enough,
    /// Fewer, since the log has not all of them any more.
    Fewer,
}

/// A log that is read.
#[derive(Debug)]
pub(super) struct LogBytes<'a> {
    dir: &'a LogDir,
    name: &'a str,
    segment_bytes: Option<u64>,
    /// The file that was read last, and which one it is.
    open: Option<(u64, PlacedFile)>,
    window: Vec<u8>,
    begins_at: u64,
    reads: usize,
}

impl<'a> LogBytes<'a> {
    pub(super) fn new(dir: &'a LogDir, name: &'a str, segment_bytes: Option<u64>) -> Self {
        let (window, begins_at, reads) = (Vec::new(), 0, 0);
        Self { dir, name, segment_bytes, open: None, window, begins_at, reads }
    }

    /// Appends bytes of the log to `out`. Errors: openat(2), pread(2).
    pub(super) fn append(&mut self, out: &mut Vec<u8>, from: u64, bytes: u64) -> Result<Got, i32> {
        let end = from.saturating_add(bytes);
        let mut at = from;
        while at < end {
            let window_end = self.begins_at + self.window.len() as u64;
            if at < self.begins_at || at >= window_end {
                if self.reads == LOG_PAGE_READS_MAX {
                    return Ok(Got::Enough);
                }
                self.reads += 1;
                self.fill(at)?;
                if self.window.is_empty() {
                    return Ok(Got::Fewer);
                }
                continue;
            }
            let from = usize::try_from(at - self.begins_at).unwrap_or(0);
            let taken = usize::try_from(end - at).unwrap_or(usize::MAX);
            let taken = taken.min(self.window.len() - from);
            out.extend_from_slice(&self.window[from..from + taken]);
            at += taken as u64;
        }
        Ok(Got::All)
    }

    /// Reads what lies at this place into the window: nothing where nothing is there.
    fn fill(&mut self, at: u64) -> Result<(), i32> {
        self.window.clear();
        self.begins_at = at;
        let (number, inside, room) = match self.segment_bytes {
            Some(bytes) => (at / bytes + 1, at % bytes, bytes - at % bytes),
            None => (1, at, u64::MAX),
        };
        if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
            match self.dir.read_log(&segment_name(self.name, number)) {
                Ok(file) => self.open = Some((number, file)),
                Err(ENOENT) => return Ok(()),
                Err(errno) => return Err(errno),
            }
        }
        let Some((_, file)) = &self.open else { return Ok(()) };
        let length = usize::try_from(room).unwrap_or(usize::MAX).min(LOG_PAGE_READ_BYTES);
        self.window = vec![0; length];
        let read = file.read_at(&mut self.window, inside)?;
        self.window.truncate(read);
        Ok(())
    }
}

const _: () = {
    // A part of one run is read with room to spare.
    assert!(LOG_PAGE_READS_MAX as u64 * LOG_PAGE_READ_BYTES as u64 > 4 * LOG_RANGE_ANSWER_BYTES);
};
