//! The indexes of logs that two streams share (`pure/buffer/log_index.rs` has their format):
//! written as the log grows, and read for pages of one stream.
//!
//! A log has an index from the first byte of its second stream on: until then there is nothing
//! to tell. What an index cannot tell, since it could not be written or its log writer was killed,
//! stands in it as a skip.

use std::collections::VecDeque;

use crate::limits::{
    LOG_INDEX_BLOCK_BYTES, LOG_INDEX_HEAD_BYTES, LOG_INDEX_QUEUE_BLOCKS, LOG_PAGE_BLOCKS_MAX,
    LOG_PAGE_LOOKBACK_BYTES, LOG_PAGE_MAX_BYTES, LOG_PAGE_READ_BYTES, LOG_PAGE_READS_MAX,
};
use crate::pure::buffer::log_index::{Block, Marks, Parsed, Run, begins_at};
use crate::pure::buffer::source::Source;
use crate::sys::index_files::{Page, PlacedFile};
use crate::sys::io::{EIO, ENOENT};
use crate::sys::log_files::LogDir;

const BLOCK: u64 = LOG_INDEX_BLOCK_BYTES as u64;

/// The index of one log, as its writer has it.
#[derive(Debug)]
pub struct Index {
    file: Option<PlacedFile>,
    /// What an earlier log writer wrote, or an earlier log of this name had, is overwritten.
    fresh: bool,
    /// Which block of the file the first one of `full` is, or `block` where there is none.
    place: u64,
    /// Blocks that are full and wait to be written.
    full: VecDeque<Block>,
    block: Block,
    /// Something was noted since it was last looked whether there is something to write.
    noted: bool,
    /// There is something that the file does not have.
    stale: bool,
}

impl Index {
    /// The index of a new log.
    pub fn new() -> Self {
        Self::from(0, Block::new(Marks::default()), true)
    }

    const fn from(place: u64, block: Block, fresh: bool) -> Self {
        Self { file: None, fresh, place, full: VecDeque::new(), block, noted: false, stale: false }
    }

    /// The index of a log that an earlier log writer wrote, of `size` bytes by now. `whole`: it has
    /// nothing but bytes of its streams, of which `streams` have come.
    pub fn again(dir: &LogDir, log: &str, size: u64, whole: bool, streams: [u64; 2]) -> Self {
        let found = dir.read_index(log).and_then(|file| last_block(&file)).ok();
        let found = found.filter(|(_, to)| to.file <= size);
        let (mut index, told) = match found {
            Some((place, to)) => (Self::from(place + 1, Block::new(to), false), to),
            None => (Self::new(), Marks::default()),
        };
        let left = Marks { file: size, streams }.since(told);
        // The log's bytes came before those that it lacks.
        match left.streams {
            [out, 0] if found.is_none() && whole && out >= size => {
                index.note(Run::Of(Source::Output, size));
            }
            [0, err] if found.is_none() && whole && err >= size => {
                index.note(Run::Of(Source::Errors, size));
            }
            [out, 0] if out == left.file => index.note(Run::Of(Source::Output, out)),
            [0, err] if err == left.file => index.note(Run::Of(Source::Errors, err)),
            _ => {}
        }
        let end = Marks { file: size, streams };
        index.note(Run::Skip(end.since(index.block.to())));
        index
    }

    /// Notes what comes next in the log.
    pub fn note(&mut self, run: Run) {
        (self.noted, self.stale) = (true, true);
        let mut rest = self.block.push(run);
        while let Some(run) = rest {
            if self.full.len() == LOG_INDEX_QUEUE_BLOCKS {
                self.forget();
            } else {
                let next = Block::new(self.block.to());
                self.full.push_back(std::mem::replace(&mut self.block, next));
            }
            rest = self.block.push(run);
        }
    }

    /// Tells all that is not written yet as one skip.
    fn forget(&mut self) {
        let from = self.full.front().unwrap_or(&self.block).from();
        let to = self.block.to();
        self.full.clear();
        self.block = Block::new(from);
        self.block.push(Run::Skip(to.since(from)));
    }

    /// The log is gone, and another one begins under its name: what came is missing from that.
    pub fn begin_anew(&mut self) {
        let streams = self.block.to().streams;
        *self = Self::new();
        self.note(Run::Skip(Marks { file: 0, streams }));
    }

    /// Whether something was noted since [`Self::flush`].
    pub const fn is_noted(&self) -> bool {
        self.noted
    }

    /// Nothing can be written now.
    pub const fn looked(&mut self) {
        self.noted = false;
    }

    /// Writes what the file does not have, once both streams have come.
    pub fn flush(&mut self, dir: &LogDir, log: &str) {
        self.noted = false;
        if self.stale && !self.block.to().streams.contains(&0) {
            // What cannot be written is tried again when more has come.
            self.stale = self.write(dir, log).is_err();
        }
    }

    fn write(&mut self, dir: &LogDir, log: &str) -> Result<(), i32> {
        let file = match self.file.take() {
            Some(file) => file,
            None => dir.write_index(log, self.fresh)?,
        };
        let file = self.file.insert(file);
        self.fresh = false;
        while let Some(block) = self.full.front() {
            file.write_at(&block.bytes(), self.place * BLOCK)?;
            self.full.pop_front();
            self.place += 1;
        }
        file.write_at(&self.block.bytes(), self.place * BLOCK)
    }
}

/// The place and the end of the last block that makes sense. What a killed writer has left behind
/// that is none is overwritten.
fn last_block(index: &PlacedFile) -> Result<(u64, Marks), i32> {
    let mut bytes = [0; LOG_INDEX_BLOCK_BYTES];
    let blocks = index.size()?.div_ceil(BLOCK);
    for place in (0..blocks).rev().take(2) {
        let length = index.read_at(&mut bytes, place * BLOCK)?;
        if let Some(block) = Parsed::new(&bytes[..length]) {
            return Ok((place, block.to()));
        }
    }
    Err(ENOENT)
}

/// Reads a page of one stream: of its bytes from `offset` on at most `length`, as far as they lie
/// together; where that one is not known, from the next one on that is. In front of it stand the
/// few bytes before it. Errors: ENOENT where there is no index.
pub fn read_page(
    dir: &LogDir,
    log: &str,
    source: Source,
    offset: i64,
    length: u64,
) -> Result<Page, i32> {
    let index = dir.read_index(log)?;
    let (last, end) = last_block(&index)?;
    let size = end.streams[source as usize];
    let begins = Page::begins(offset, size);
    let reader = LogReader::new(dir.read_log(log)?);
    let lead = begins.saturating_sub(LOG_PAGE_LOOKBACK_BYTES);
    let mut page = Picked { source, begins, length, offset: lead, bytes: Vec::new(), reader };
    let first = block_of(&index, last, source, lead)?;
    let mut bytes = [0; LOG_INDEX_BLOCK_BYTES];
    for at in (first..=last).take(LOG_PAGE_BLOCKS_MAX) {
        let read = index.read_at(&mut bytes, at * BLOCK)?;
        let Some(block) = Parsed::new(&bytes[..read]) else { break };
        let mut marks = block.from();
        for run in block.runs() {
            if !page.take(marks, run)? {
                return Ok(page.done(size));
            }
            marks = marks.behind(run);
        }
    }
    Ok(page.done(size))
}

/// The last of an index's blocks, up to `last`, that begins no later than this byte of a stream.
fn block_of(index: &PlacedFile, last: u64, source: Source, offset: u64) -> Result<u64, i32> {
    let mut head = [0; LOG_INDEX_HEAD_BYTES];
    let (mut low, mut high) = (0, last + 1);
    while low + 1 < high {
        let middle = low.midpoint(high);
        let read = index.read_at(&mut head, middle * BLOCK)?;
        let begins = begins_at(&head[..read]).map(|marks| marks.streams[source as usize]);
        // A block that makes no sense: what is before it is looked through.
        if begins.is_some_and(|begins| begins <= offset) { low = middle } else { high = middle }
    }
    Ok(low)
}

/// A page that is put together.
struct Picked {
    source: Source,
    /// Where it begins in the stream.
    begins: u64,
    length: u64,
    /// Where `bytes` begin: a little before it, or behind what is not known.
    offset: u64,
    bytes: Vec<u8>,
    reader: LogReader,
}

impl Picked {
    /// Takes in what comes next in the log at `marks`; false when the page is complete.
    fn take(&mut self, marks: Marks, run: Run) -> Result<bool, i32> {
        let (from, next) = (self.of(marks), self.of(marks.behind(run)));
        let reached = self.offset + self.bytes.len() as u64;
        if next <= reached {
            return Ok(true);
        }
        let wanted_end = self.begins.saturating_add(self.length);
        if let Run::Skip(_) = run {
            if reached > self.begins {
                return Ok(false);
            }
            // The page begins behind it: what lies before is no part of it.
            self.bytes.clear();
            self.offset = next;
            self.begins = self.begins.max(next);
            return Ok(true);
        }
        let inside = reached - from.min(reached);
        let end = next.min(wanted_end);
        let bytes = usize::try_from(end.saturating_sub(reached)).unwrap_or(0);
        if !self.reader.append(&mut self.bytes, marks.file.saturating_add(inside), bytes)? {
            return Ok(false);
        }
        Ok(end < wanted_end)
    }

    fn of(&self, marks: Marks) -> u64 {
        marks.streams[self.source as usize]
    }

    fn done(self, size: u64) -> Page {
        Page { offset: self.offset, size, bytes: self.bytes }
    }
}

/// A log of which many small parts that lie close together are read.
struct LogReader {
    log: PlacedFile,
    window: Vec<u8>,
    begins_at: u64,
    reads: usize,
}

impl LogReader {
    const fn new(log: PlacedFile) -> Self {
        Self { log, window: Vec::new(), begins_at: 0, reads: 0 }
    }

    /// Appends bytes of the log to `out`. False when enough was read for one page. Errors:
    /// pread(2); EIO where the log is shorter than its index says.
    fn append(&mut self, out: &mut Vec<u8>, offset: u64, bytes: usize) -> Result<bool, i32> {
        let end = offset.saturating_add(bytes as u64);
        let mut at = offset;
        while at < end {
            let window_end = self.begins_at + self.window.len() as u64;
            if at < self.begins_at || at >= window_end {
                if self.reads == LOG_PAGE_READS_MAX {
                    return Ok(false);
                }
                self.reads += 1;
                self.window.resize(LOG_PAGE_READ_BYTES, 0);
                let read = self.log.read_at(&mut self.window, at)?;
                self.window.truncate(read);
                self.begins_at = at;
                if read == 0 {
                    return Err(EIO);
                }
                continue;
            }
            let from = usize::try_from(at - self.begins_at).unwrap_or(0);
            let taken = usize::try_from(end - at).unwrap_or(0).min(self.window.len() - from);
            out.extend_from_slice(&self.window[from..from + taken]);
            at += taken as u64;
        }
        Ok(true)
    }
}

const _: () = {
    // A page of one run is read with room to spare.
    assert!(LOG_PAGE_READS_MAX as u64 * LOG_PAGE_READ_BYTES as u64 > 4 * LOG_PAGE_MAX_BYTES);
};

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
