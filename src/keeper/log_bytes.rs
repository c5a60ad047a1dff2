//! The bytes of a log by their places, of which many small parts that lie close together are read.

use crate::limits::{LOG_PAGE_READ_BYTES, LOG_PAGE_READS_MAX, LOG_RANGE_ANSWER_BYTES};
use crate::sys::beside_files::PlacedFile;
use crate::sys::io::ENOENT;
use crate::sys::log_files::LogDir;

/// Where the bytes of a log lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// The log's first byte that is kept.
    pub(super) kept_from: u64,
    /// Where the log ends.
    pub(super) size: u64,
}

impl Layout {
    /// Finds out where the bytes lie of a log that nobody writes any more. Errors: openat(2),
    /// lseek(2).
    pub(super) fn find(dir: &LogDir, log: &str) -> Result<Self, i32> {
        let file = dir.read_log(log)?;
        let size = file.size()?;
        Ok(Self { kept_from: file.first_data()?.min(size), size })
    }

    /// How many bytes it has.
    pub(super) const fn bytes_there(self) -> u64 {
        self.size.saturating_sub(self.kept_from)
    }
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
    file: Option<PlacedFile>,
    window: Vec<u8>,
    begins_at: u64,
    reads: usize,
}

impl<'a> LogBytes<'a> {
    pub(super) const fn new(dir: &'a LogDir, name: &'a str) -> Self {
        Self { dir, name, file: None, window: Vec::new(), begins_at: 0, reads: 0 }
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
        if self.file.is_none() {
            match self.dir.read_log(self.name) {
                Ok(file) => self.file = Some(file),
                Err(ENOENT) => return Ok(()),
                Err(errno) => return Err(errno),
            }
        }
        let Some(file) = &self.file else { return Ok(()) };
        self.window = vec![0; LOG_PAGE_READ_BYTES];
        let read = file.read_at(&mut self.window, at)?;
        self.window.truncate(read);
        Ok(())
    }
}

const _: () = {
    // A part of one run is read with room to spare.
    assert!(LOG_PAGE_READS_MAX as u64 * LOG_PAGE_READ_BYTES as u64 > 4 * LOG_RANGE_ANSWER_BYTES);
};
