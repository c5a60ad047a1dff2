//! The system calls by which a log gives its beginning back to the disk: holes in its file, or the
//! deletion of its segments where the file system has no holes. What goes when is decided in
//! `keeper/bounded.rs`.

use super::index_files::PlacedFile;
use super::io::{EIO, ENOENT, errno, errno_of};
use super::log_files::{LogDir, LogFile};
use crate::limits::LOG_BLOCK_BYTES;
use crate::pure::buffer::bound::segment_name;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;

/// Gives the blocks of `from..to` back to the disk. The file's size and all its other bytes stay.
/// Errors: fallocate(2).
fn punch(file: &File, from: u64, to: u64) -> Result<(), i32> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let place = |place: u64| i64::try_from(place).map_err(|_| libc::EFBIG);
    let (offset, length) = (place(from)?, place(to.saturating_sub(from))?);
    loop {
        // SAFETY: the descriptor is open; fallocate takes plain numbers.
        if unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, length) } == 0 {
            return Ok(());
        }
        match errno() {
            libc::EINTR => {}
            errno => return Err(errno),
        }
    }
}

impl PlacedFile {
    /// Gives the blocks before this place back to the disk. Errors: fallocate(2).
    pub fn punch_before(&self, place: u64) -> Result<(), i32> {
        punch(&self.0, 0, place)
    }
}

impl LogFile {
    /// Gives the blocks of `from..to` back to the disk. The file's size and all its other bytes
    /// stay. Errors: fallocate(2).
    pub fn punch(&self, from: u64, to: u64) -> Result<(), i32> {
        punch(&self.0, from, to)
    }

    /// Whether its file system has holes: tried behind the end of its `size` bytes, where there is
    /// nothing. A disk that fails says nothing about that.
    pub fn has_holes(&self, size: u64) -> bool {
        let tried = self.punch(size, size.saturating_add(LOG_BLOCK_BYTES));
        matches!(tried, Ok(()) | Err(EIO | libc::ENOSPC))
    }

    /// Where its first byte is that is in no hole, as far as the file system says; 0 where not.
    pub fn first_data(&self) -> u64 {
        // SAFETY: the descriptor is open; lseek takes plain numbers. Appending needs no place.
        let found = unsafe { libc::lseek(self.0.as_raw_fd(), 0, libc::SEEK_DATA) };
        u64::try_from(found).unwrap_or(0)
    }

    /// Makes it empty. Errors: ftruncate(2).
    pub fn clear(&self) -> Result<(), i32> {
        self.0.set_len(0).map_err(errno_of)
    }
}

impl LogDir {
    /// Opens a segment that is not a log's first one, to append to it; creates it (mode 0600) where
    /// it is not there. Errors: openat(2); EEXIST when the name belongs to something that is no
    /// file of ours.
    pub fn open_segment(&self, name: &str) -> Result<LogFile, i32> {
        let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_APPEND;
        self.open_ours(name, flags).map(LogFile::new)
    }

    /// The highest number of a log's segments; `None` where it has no second one. It looks through
    /// the directory.
    pub fn last_segment(&self, log: &str) -> Option<u64> {
        let number = |name: OsString| -> Option<u64> {
            let number = name.to_str()?.strip_prefix(log)?.strip_prefix('.')?.parse().ok()?;
            Some(number).filter(|_| name == *segment_name(log, number))
        };
        let names = std::fs::read_dir(self.path()).ok()?.flatten();
        names.filter_map(|entry| number(entry.file_name())).max()
    }

    /// Whether there is something of this name.
    pub fn has(&self, name: &str) -> bool {
        CString::new(name).is_ok_and(|name| self.stat_at(&name).is_some())
    }

    /// Deletes a segment; one that is gone is no error. Errors: unlinkat(2).
    pub fn delete(&self, name: &str) -> Result<(), i32> {
        let name = CString::new(name).map_err(|_| libc::EINVAL)?;
        // SAFETY: the name ends in NUL and lives through the call.
        if unsafe { libc::unlinkat(self.raw_fd(), name.as_ptr(), 0) } == 0 {
            return Ok(());
        }
        match errno() {
            ENOENT => Ok(()),
            errno => Err(errno),
        }
    }
}
