//! The file of one log, which loses its oldest bytes where it would become larger than it may
//! (`pure/buffer/bound.rs` has the numbers). Places count from the log's first byte, whatever
//! became of it: what is gone is a hole. Where the file system makes none, the file stays as large
//! as it became by then, and appending fails.

use crate::pure::buffer::bound::Kept;
use crate::sys::io::{EIO, ENOENT};
use crate::sys::log_files::{LogDir, LogFile};

/// A log's file.
#[derive(Debug)]
pub(super) struct BoundedFile {
    file: LogFile,
    /// None: all of it is kept.
    kept: Option<Kept>,
    size: u64,
    from: u64,
    /// Somebody has made the file shorter: no place in it means anything any more.
    cut: bool,
}

impl BoundedFile {
    /// The file of a new log.
    pub(super) const fn new(file: LogFile, kept: Option<Kept>) -> Self {
        Self { file, kept, size: 0, from: 0, cut: false }
    }

    /// The file of a log that an earlier log writer wrote, and of which that one said that the
    /// first `from` bytes are gone. Errors: those of the file.
    pub(super) fn again(
        dir: &LogDir,
        name: &str,
        kept: Option<Kept>,
        from: u64,
    ) -> Result<Self, i32> {
        let mut file = Self::new(dir.reopen(name)?, kept);
        file.size = file.file.size()?;
        if file.size < from {
            file.empty()?;
        } else {
            // The earlier writer may have been killed before it said how far it was.
            file.from = from.max(file.file.first_data().min(file.size));
        }
        Ok(file)
    }

    /// Its size, the bytes that are gone among it.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Its first byte that is kept.
    pub(super) const fn from(&self) -> u64 {
        self.from
    }

    /// The file itself.
    pub(super) const fn file(&self) -> &LogFile {
        &self.file
    }

    /// Whether somebody has made it shorter.
    pub(super) fn is_cut(&mut self) -> bool {
        self.cut |= self.file.size().is_ok_and(|size| size < self.size);
        self.cut
    }

    /// Appends bytes, and gives up the oldest ones where there is no room for both. Gives how many
    /// went in, and the errno that stopped the rest: write(2), fallocate(2).
    pub(super) fn append(&mut self, bytes: &[u8]) -> (usize, Result<(), i32>) {
        let mut done = 0;
        while done < bytes.len() {
            let rest = &bytes[done..];
            let room = match self.room() {
                Ok(0) => return (done, Err(EIO)),
                Ok(room) => usize::try_from(room).unwrap_or(usize::MAX).min(rest.len()),
                Err(errno) => return (done, Err(errno)),
            };
            let (wrote, outcome) = self.append_anyway(&rest[..room]);
            done += wrote;
            if outcome.is_err() {
                return (done, outcome);
            }
        }
        (done, Ok(()))
    }

    /// Appends a line of the log writer's own, for which some of the bound is spare. Gives as
    /// [`Self::append`] does.
    pub(super) fn append_anyway(&mut self, bytes: &[u8]) -> (usize, Result<(), i32>) {
        let (wrote, outcome) = self.file.append(bytes);
        self.size += wrote as u64;
        (wrote, outcome)
    }

    /// How many bytes may be appended. Errors: fallocate(2); ENOENT where the file was made
    /// shorter.
    fn room(&mut self) -> Result<u64, i32> {
        let Some(kept) = self.kept else { return Ok(u64::MAX) };
        let room = kept.room(self.size, self.from);
        if room > 0 {
            return Ok(room);
        }
        if self.is_cut() {
            return Err(ENOENT);
        }
        let from = kept.trimmed(self.size, self.from);
        self.file.punch(self.from, from)?;
        self.from = from;
        Ok(kept.room(self.size, self.from))
    }

    /// Begins anew. Errors: ftruncate(2).
    pub(super) fn empty(&mut self) -> Result<(), i32> {
        self.file.clear()?;
        (self.size, self.from, self.cut) = (0, 0, false);
        Ok(())
    }
}

#[cfg(test)]
#[path = "bounded_tests.rs"]
mod tests;
