//! The file of one log, which loses its oldest bytes where it would become larger than it may
//! (`pure/buffer/bound.rs` has the numbers). Whether the file system has holes is tried once the
//! log has a step of bytes; where it has none, the log goes on in segments beside its file.
//!
//! Places count from the log's first byte, whatever became of it. The file of the log's name has
//! the first segment and stays, empty, when that is gone: it holds the name and the lock.

use crate::limits::{LOG_KEEP_BYTES, LOG_KEEP_STEPS};
use crate::pure::buffer::bound::{Form, Kept, segment_name};
use crate::sys::io::{EIO, ENOENT};
use crate::sys::log_files::{LogDir, LogFile};

/// The numbers for a log that nothing bounds, where its beginning has to go all the same.
const UNBOUNDED: Kept = Kept::of(LOG_KEEP_BYTES);

/// What is known of a log's file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holes {
    Untried,
    Are(Form),
}

/// A log's file, or its segments.
#[derive(Debug)]
pub(super) struct BoundedFile {
    first: LogFile,
    /// The segment that is written to, and its number, where that is not the first.
    last: Option<(LogFile, u64)>,
    /// None: nothing goes but by [`Self::trim`].
    kept: Option<Kept>,
    holes: Holes,
    size: u64,
    from: u64,
    /// Somebody has made the file shorter: no place in it means anything any more.
    cut: bool,
}

impl BoundedFile {
    /// The file of a new log.
    pub(super) fn new(first: LogFile, kept: Option<Kept>) -> Self {
        let holes = Holes::Untried;
        Self { first, last: None, kept, holes, size: 0, from: 0, cut: false }
    }

    /// The file of a log that an earlier log writer wrote, and of which that one said that the
    /// first `from` bytes are gone. Errors: those of the files.
    pub(super) fn again(
        dir: &LogDir,
        name: &str,
        kept: Option<Kept>,
        from: u64,
    ) -> Result<Self, i32> {
        let mut file = Self::new(dir.reopen(name)?, kept);
        file.size = file.first.size()?;
        let step = file.step();
        if file.size < step && from == 0 && !dir.has(&segment_name(name, 2)) {
            // The bound of all logs may have taken of it, and its writer was killed before it said.
            file.from = file.first.first_data().min(file.size);
            return Ok(file);
        }
        match file.form() {
            Form::Holes if file.size < from => file.empty()?,
            // One file of an unbounded log has no part that could have gone.
            Form::Segments if kept.is_none() => {}
            // The earlier writer may have been killed before it said how far it was.
            Form::Holes => file.from = from.max(file.first.first_data()),
            Form::Segments => file.find_segments(dir, name, from / step + 1)?,
        }
        Ok(file)
    }

    /// Finds the segments of a log, of which all before `number` are gone.
    fn find_segments(&mut self, dir: &LogDir, name: &str, number: u64) -> Result<(), i32> {
        let step = self.step();
        let numbers = number..number + 2 * LOG_KEEP_STEPS;
        let there = |number: &u64| *number > 1 && dir.has(&segment_name(name, *number));
        let Some(last) = numbers.rev().find(there) else {
            // Only the first one, or nothing: a log that is gone begins anew.
            return if number > 1 { self.empty() } else { Ok(()) };
        };
        let first = (1..last).rev().take_while(there).last().unwrap_or(last);
        let begins_with_first = first == 2 && self.size == step;
        self.from = if begins_with_first { 0 } else { (first - 1) * step };
        let file = dir.open_segment(&segment_name(name, last))?;
        self.size = (last - 1) * step + file.size()?.min(step);
        self.last = Some((file, last));
        Ok(())
    }

    /// The step by which it loses its oldest bytes.
    pub(super) fn step(&self) -> u64 {
        self.kept.unwrap_or(UNBOUNDED).step()
    }

    /// Tries whether there are holes, the first time that it matters.
    fn form(&mut self) -> Form {
        if let Holes::Are(form) = self.holes {
            return form;
        }
        let holes = self.first.has_holes(self.size);
        let form = if holes { Form::Holes } else { Form::Segments };
        self.holes = Holes::Are(form);
        form
    }

    /// The size of its segments, where it is a row of them.
    pub(super) fn segment_bytes(&self) -> Option<u64> {
        let bounded = self.kept.filter(|_| self.holes == Holes::Are(Form::Segments));
        bounded.map(Kept::step)
    }

    /// Its size, the bytes that are gone among it.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Its first byte that is kept.
    pub(super) const fn from(&self) -> u64 {
        self.from
    }

    /// The file that has the log's name.
    pub(super) const fn first(&self) -> &LogFile {
        &self.first
    }

    /// How many bytes may be written until its file system is nearly full; `None`: it is.
    pub(super) fn space_left(&self) -> Option<u64> {
        self.first.space_left()
    }

    /// Whether somebody has made it shorter, or deleted the segment that is written to.
    pub(super) fn is_cut(&mut self, dir: &LogDir, name: &str) -> bool {
        let step = self.step();
        self.cut |= match &self.last {
            None => self.first.size().is_ok_and(|size| size < self.size),
            Some((file, number)) => {
                let lost = !dir.holds(&segment_name(name, *number), file);
                lost || file.size().is_ok_and(|size| size < self.size - (number - 1) * step)
            }
        };
        self.cut
    }

    /// Appends bytes, and gives up the oldest ones where there is no room for both. Gives how many
    /// went in, and the errno that stopped the rest.
    pub(super) fn append(
        &mut self,
        dir: Option<&LogDir>,
        name: &str,
        bytes: &[u8],
    ) -> (usize, Result<(), i32>) {
        let mut done = 0;
        while done < bytes.len() {
            let rest = &bytes[done..];
            let room = match self.room(dir, name) {
                Ok(0) => return (done, Err(EIO)),
                Ok(room) => usize::try_from(room).unwrap_or(usize::MAX).min(rest.len()),
                Err(errno) => return (done, Err(errno)),
            };
            let file = self.last.as_ref().map_or(&self.first, |(file, _)| file);
            let (wrote, outcome) = file.append(&rest[..room]);
            done += wrote;
            self.size += wrote as u64;
            if outcome.is_err() {
                return (done, outcome);
            }
        }
        (done, Ok(()))
    }

    /// How many bytes may be appended to the file at hand.
    fn room(&mut self, dir: Option<&LogDir>, name: &str) -> Result<u64, i32> {
        let Some(kept) = self.kept else { return Ok(u64::MAX) };
        if self.holes == Holes::Untried && self.size < kept.step() {
            return Ok(kept.step() - self.size);
        }
        let form = self.form();
        if kept.room(form, self.size, self.from) == 0 {
            self.trim(dir, name, None)?;
        }
        if form == Form::Segments {
            self.go_on_in(kept.segment_of(self.size), dir, name)?;
        }
        Ok(kept.room(form, self.size, self.from))
    }

    /// Goes on in this segment.
    fn go_on_in(&mut self, number: u64, dir: Option<&LogDir>, name: &str) -> Result<(), i32> {
        if number == self.last.as_ref().map_or(1, |(_, number)| *number) {
            return Ok(());
        }
        let file = dir.ok_or(ENOENT)?.open_segment(&segment_name(name, number))?;
        // What an earlier log of this name has left.
        file.clear()?;
        self.last = Some((file, number));
        Ok(())
    }

    /// Gives up the oldest bytes as far as the last `keep` allow it; `None`: as far as those that
    /// are kept anyway do. A block stays in any case, a begun segment too. Errors: fallocate(2),
    /// unlinkat(2).
    pub(super) fn trim(
        &mut self,
        dir: Option<&LogDir>,
        name: &str,
        keep: Option<u64>,
    ) -> Result<(), i32> {
        let kept = self.kept.unwrap_or(UNBOUNDED);
        let form = self.form();
        let from = kept.trimmed(form, self.size, self.from, keep);
        if from == self.from {
            return Ok(());
        }
        let dir = dir.ok_or(ENOENT)?;
        if self.is_cut(dir, name) {
            return Err(ENOENT);
        }
        match form {
            Form::Holes => self.first.punch(self.from, from)?,
            Form::Segments if self.kept.is_none() => return Ok(()),
            Form::Segments => self.delete(dir, name, from)?,
        }
        self.from = from;
        Ok(())
    }

    /// Deletes the segments before this place.
    fn delete(&self, dir: &LogDir, name: &str, to: u64) -> Result<(), i32> {
        let step = self.step();
        for number in self.from / step + 1..to / step + 1 {
            match number {
                1 => self.first.clear()?,
                _ => dir.delete(&segment_name(name, number))?,
            }
        }
        Ok(())
    }

    /// Deletes what its log has beside the file of its name.
    pub(super) fn delete_segments(&mut self, dir: &LogDir, name: &str) {
        let Some((_, last)) = self.last.take() else { return };
        for number in (self.from / self.step() + 1).max(2)..=last {
            // What cannot be deleted goes when it is old.
            let _ = dir.delete(&segment_name(name, number));
        }
    }

    /// Begins anew in the file of the log's name. Errors: ftruncate(2).
    pub(super) fn empty(&mut self) -> Result<(), i32> {
        self.first.clear()?;
        (self.last, self.size, self.from, self.cut) = (None, 0, 0, false);
        Ok(())
    }
}

#[cfg(test)]
#[path = "bounded_tests.rs"]
mod tests;
