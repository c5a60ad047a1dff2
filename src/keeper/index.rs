//! The indexes of logs (`pure/buffer/log_index.rs` has their format), written as the log grows.
//!
//! A log has an index from the first byte of its second stream on, or from where it first lacks
//! something or has a line of the log writer's own: until then there is nothing to tell. What an
//! index cannot tell, since it could not be written or its log writer was killed, stands in it as a
//! skip.

use std::collections::VecDeque;

use super::blocks::{BLOCK, Blocks, last_block};
use crate::limits::LOG_INDEX_QUEUE_BLOCKS;
use crate::pure::buffer::log_index::{Block, Marks, Run};
use crate::pure::buffer::source::Source;
use crate::sys::beside_files::PlacedFile;
use crate::sys::log_files::LogDir;

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
    /// It tells of something else than bytes that are in the log, in their order.
    told: bool,
    /// Its log was lost: what the file tells is of that one, as long as it is not overwritten.
    lost: bool,
}

impl Index {
    /// The index of a new log.
    pub fn new() -> Self {
        Self::from(0, Block::new(Marks::default()), true)
    }

    fn from(place: u64, block: Block, fresh: bool) -> Self {
        let (file, full) = (None, VecDeque::new());
        Self {
            file,
            fresh,
            place,
            full,
            block,
            noted: false,
            stale: false,
            told: false,
            lost: false,
        }
    }

    /// The index of a log that an earlier log writer wrote, of `size` bytes by now, of which `own`
    /// are what log writers wrote about themselves, and of whose streams `streams` have come.
    pub fn again(dir: &LogDir, log: &str, size: u64, own: u64, streams: [u64; 2]) -> Self {
        let end = Marks { file: size, streams, own };
        let found = dir.read_index(log).and_then(|file| last_block(&file));
        let fits = |to: Marks| to.behind(Run::Skip(end.since(to))) == end;
        let (mut index, whole) = match found {
            Ok((place, to)) if fits(to) => {
                let index = Self::from(place + 1, Block::new(to), false);
                (Self { told: true, ..index }, to.own == own)
            }
            // The log has become shorter, or is another one.
            Ok(_) => (Self::new(), false),
            Err(_) => (Self::new(), own == 0),
        };
        let left = end.since(index.block.to());
        // Without a line of its own in between, the log has bytes only of what came first: behind
        // a loss there is nothing but such a line.
        if whole && left.file <= left.of(None) {
            index.note(match left.streams {
                [_, 0] => Run::Of(Source::Output, left.file),
                [0, _] => Run::Of(Source::Errors, left.file),
                _ => Run::Mix(left),
            });
        }
        index.note(Run::Skip(end.since(index.block.to())));
        index
    }

    /// The index of a log that begins when its streams have come so far.
    pub fn anew(streams: [u64; 2]) -> Self {
        let mut index = Self::new();
        index.note(Run::Skip(Marks { streams, ..Marks::default() }));
        index
    }

    /// What it tells, written or not.
    pub fn blocks(&self, dir: &LogDir, log: &str) -> Blocks {
        let newer = self.full.iter().chain([&self.block]).map(Block::bytes).collect();
        Blocks::of_writer(dir, log, self.place, (newer, self.block.to()))
    }

    /// The first byte of the output that lies at this place of the log or behind it.
    pub fn output_at(&self, dir: &LogDir, log: &str, place: u64) -> u64 {
        // What cannot be looked up is told as gone.
        let end = self.block.to().of(None);
        self.blocks(dir, log).output_at(place, None).unwrap_or(end)
    }

    /// Gives the blocks back to the disk that tell only of what is before this place of the log.
    pub fn give_back(&self, dir: &LogDir, log: &str, place: u64) {
        let Some(file) = &self.file else { return };
        let first = self.blocks(dir, log).before(place, &|marks| marks.file);
        let written = first.map_or(0, |first| first.min(self.place)) * BLOCK;
        if written > 0 {
            // What cannot be given back now goes with the next step.
            let _ = file.punch_before(written);
        }
    }

    /// Notes what comes next in the log.
    pub fn note(&mut self, run: Run) {
        if self.block.to().behind(run) == self.block.to() {
            return;
        }
        (self.noted, self.stale) = (true, true);
        self.told |= !matches!(run, Run::Of(..));
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

    /// Tells all that is not written yet as one.
    fn forget(&mut self) {
        let from = self.full.front().unwrap_or(&self.block).from();
        let left = self.block.to().since(from);
        let plain = self.full.iter().chain([&self.block]).all(Block::is_plain);
        self.full.clear();
        self.block = Block::new(from);
        self.block.push(if plain { Run::Mix(left) } else { Run::Skip(left) });
        self.told = true;
    }

    /// The log is gone, and another one begins under its name: what came is missing from that.
    pub fn begin_anew(&mut self) {
        *self = Self { lost: true, ..Self::anew(self.block.to().streams) };
    }

    /// A line of the log writer's own is about to be written: the log is not read without its index
    /// from now on, so that has to tell all that was before. Errors: those of the file.
    pub fn before_note(&mut self, dir: &LogDir, log: &str) -> Result<(), i32> {
        if self.stale || !self.told {
            (self.stale, self.told) = (true, true);
            self.write(dir, log)?;
            self.stale = false;
        }
        Ok(())
    }

    /// Whether something was noted since [`Self::flush`].
    pub const fn is_noted(&self) -> bool {
        self.noted
    }

    /// Whether it is to be written even while its log cannot be.
    pub const fn has_lost_its_log(&self) -> bool {
        self.lost
    }

    /// Nothing can be written now.
    pub const fn looked(&mut self) {
        self.noted = false;
    }

    /// Writes what the file does not have, where there is something to tell.
    pub fn flush(&mut self, dir: &LogDir, log: &str) {
        self.noted = false;
        if self.stale && (self.told || !self.block.to().streams.contains(&0)) {
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

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
