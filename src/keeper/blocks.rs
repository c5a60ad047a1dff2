//! The blocks of a log's index as they are read (`pure/buffer/log_index.rs` has their format):
//! those in its file, and behind them those that its writer has not written yet.

use crate::limits::{LOG_INDEX_BLOCK_BYTES, LOG_INDEX_HEAD_BYTES, LOG_PAGE_BLOCKS_MAX};
use crate::pure::buffer::log_index::{Block, Marks, Parsed, Run, begins_at};
use crate::pure::buffer::source::Source;
use crate::sys::beside_files::PlacedFile;
use crate::sys::io::ENOENT;
use crate::sys::log_files::LogDir;

pub(super) const BLOCK: u64 = LOG_INDEX_BLOCK_BYTES as u64;

/// An index that is read.
#[derive(Debug)]
pub(super) struct Blocks {
    file: Option<PlacedFile>,
    /// How many blocks there are in the file.
    written: u64,
    /// What the file does not have.
    newer: Vec<Vec<u8>>,
    /// Where the index ends.
    end: Marks,
}

impl Blocks {
    /// The index of a log that is being written: so many blocks of it are in the file, if that is
    /// still there.
    pub(super) fn of_writer(
        dir: &LogDir,
        log: &str,
        written: u64,
        (newer, end): (Vec<Vec<u8>>, Marks),
    ) -> Self {
        let file = if written > 0 { dir.read_index(log).ok() } else { None };
        Self { file, written, newer, end }
    }

    /// What the index of a log would tell that has none, since it has nothing but `bytes` bytes of
    /// one stream.
    pub(super) fn plain(source: Source, bytes: u64) -> Self {
        let mut block = Block::new(Marks::default());
        block.push(Run::Of(source, bytes));
        let (newer, end) = (vec![block.bytes()], block.to());
        Self { file: None, written: 0, newer, end }
    }

    /// The index of a log that nobody writes any more; `None` where it has none. One that makes no
    /// sense tells nothing. Errors: openat(2), pread(2).
    pub(super) fn on_disk(dir: &LogDir, log: &str) -> Result<Option<Self>, i32> {
        let file = match dir.read_index(log) {
            Ok(file) => file,
            Err(ENOENT) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        // Made, but a full disk took nothing of it: no line of the log writer's own is in the log.
        if file.size()? == 0 {
            return Ok(None);
        }
        let (written, end) = match last_block(&file) {
            Ok((place, end)) => (place + 1, end),
            Err(ENOENT) => (0, Marks::default()),
            Err(errno) => return Err(errno),
        };
        Ok(Some(Self { file: Some(file), written, newer: Vec::new(), end }))
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.written + self.newer.len() as u64
    }

    /// Where the index ends.
    pub(super) const fn end(&self) -> Marks {
        self.end
    }

    /// What is in `buffer` of a block after it was read there. Errors: pread(2).
    fn bytes_at(&self, at: u64, buffer: &mut [u8]) -> Result<usize, i32> {
        if at < self.written {
            let Some(file) = &self.file else { return Ok(0) };
            return file.read_at(buffer, at * BLOCK);
        }
        let newer = usize::try_from(at - self.written).ok().and_then(|at| self.newer.get(at));
        let bytes = newer.map_or(&[][..], Vec::as_slice);
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        Ok(length)
    }

    /// Reads a block; `None` where it makes no sense. Errors: pread(2).
    pub(super) fn read<'a>(
        &self,
        at: u64,
        buffer: &'a mut [u8; LOG_INDEX_BLOCK_BYTES],
    ) -> Result<Option<Parsed<'a>>, i32> {
        let length = self.bytes_at(at, buffer)?;
        Ok(Parsed::new(&buffer[..length]))
    }

    /// The last block that begins no later than `wanted`, as `of` counts. Errors: pread(2).
    pub(super) fn before(&self, wanted: u64, of: &dyn Fn(Marks) -> u64) -> Result<u64, i32> {
        let mut head = [0; LOG_INDEX_HEAD_BYTES];
        let (mut low, mut high) = (0, self.count().max(1));
        while low + 1 < high {
            let middle = low.midpoint(high);
            let length = self.bytes_at(middle, &mut head)?;
            // What was given back to the disk tells of what is gone. From any other block that
            // makes no sense it is looked further ahead, and all behind it is looked through.
            let is_hole = length == head.len() && head.iter().all(|byte| *byte == 0);
            let begins = begins_at(&head[..length]).map(of);
            if is_hole || begins.is_some_and(|begins| begins <= wanted) {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Looks at what the index tells from the block on that has `wanted`, as `of` counts, until
    /// `take` gives false. Whether the index's end was reached. Errors: pread(2), those of `take`.
    pub(super) fn each(
        &self,
        wanted: u64,
        of: &dyn Fn(Marks) -> u64,
        take: &mut dyn FnMut(Marks, Run) -> Result<bool, i32>,
    ) -> Result<bool, i32> {
        let mut bytes = [0; LOG_INDEX_BLOCK_BYTES];
        let first = self.before(wanted, of)?;
        for at in (first..self.count()).take(LOG_PAGE_BLOCKS_MAX) {
            let Some(block) = self.read(at, &mut bytes)? else { continue };
            let mut marks = block.from();
            for run in block.runs() {
                if !take(marks, run)? {
                    return Ok(false);
                }
                marks = marks.behind(run);
            }
        }
        Ok(self.count() - first <= LOG_PAGE_BLOCKS_MAX as u64)
    }

    /// The first byte of the output, or of the stream that is asked for alone, that lies at this
    /// place of the log or behind it; where there is none, the end. Errors: pread(2).
    pub(super) fn output_at(&self, place: u64, only: Option<Source>) -> Result<u64, i32> {
        let mut found = None;
        let mut passed = 0;
        let ended = self.each(place, &|marks| marks.file, &mut |marks, run| {
            let logged = run.logged(only);
            let from = place.saturating_sub(marks.file);
            if logged > from {
                found = Some(marks.of(only) + from);
            }
            passed = marks.behind(run).of(only);
            Ok(found.is_none())
        })?;
        Ok(found.unwrap_or(if ended { self.end.of(only) } else { passed }))
    }
}

/// The place and the end of the last block that makes sense. What a killed writer has left behind
/// that is none is overwritten. Errors: pread(2); ENOENT where no block makes sense.
pub(super) fn last_block(index: &PlacedFile) -> Result<(u64, Marks), i32> {
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
