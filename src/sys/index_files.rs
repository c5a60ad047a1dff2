//! Files in the log directory that are read and written at places: a log's index, which tells which
//! of the log's bytes are whose, and the log itself, of which parts are read.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use super::io::{EIO, errno_of};
use super::log_files::LogDir;

/// What a log's index is named, behind the log's own name.
pub const INDEX_SUFFIX: &str = ".index";

/// A file in the log directory that is read and written at places.
#[derive(Debug)]
pub struct PlacedFile(pub(super) File);

impl LogDir {
    /// Opens an index to write it, an empty one where `fresh`; creates it (mode 0600) where it is
    /// not there. Errors: openat(2), ftruncate(2); EEXIST when the name belongs to something that
    /// is no file of ours.
    pub fn write_index(&self, log: &str, fresh: bool) -> Result<PlacedFile, i32> {
        let file = self.open_ours(log.to_owned() + INDEX_SUFFIX, libc::O_CREAT | libc::O_RDWR)?;
        if fresh {
            file.set_len(0).map_err(errno_of)?;
        }
        Ok(PlacedFile(file))
    }

    /// Opens an index to read it. Errors: as above.
    pub fn read_index(&self, log: &str) -> Result<PlacedFile, i32> {
        self.read_log(&(log.to_owned() + INDEX_SUFFIX))
    }

    /// Opens a log to read parts of it. Errors: as above.
    pub fn read_log(&self, log: &str) -> Result<PlacedFile, i32> {
        self.open_ours(log, libc::O_RDONLY).map(PlacedFile)
    }
}

impl PlacedFile {
    pub(super) fn of(file: File) -> Self {
        Self(file)
    }

    /// Cuts it to a length. Errors: ftruncate(2).
    pub(super) fn cut(&self, length: u64) -> Result<(), i32> {
        self.0.set_len(length).map_err(errno_of)
    }

    /// Its size in bytes. Errors: fstat(2).
    pub fn size(&self) -> Result<u64, i32> {
        self.0.metadata().map(|found| found.len()).map_err(errno_of)
    }

    /// The place of its first byte that is not in a hole; its size where there is none, 0 where its
    /// file system does not say. Errors: lseek(2).
    pub fn first_data(&self) -> Result<u64, i32> {
        // SAFETY: lseek takes numbers only, and the descriptor is open.
        let found = unsafe { libc::lseek(self.0.as_raw_fd(), 0, libc::SEEK_DATA) };
        if let Ok(found) = u64::try_from(found) {
            return Ok(found);
        }
        match errno_of(std::io::Error::last_os_error()) {
            libc::ENXIO => self.size(),
            libc::EINVAL => Ok(0),
            errno => Err(errno),
        }
    }

    /// Writes bytes at a place, all or none of them: where only some go in, the file ends at that
    /// place, or behind its first byte. Errors: pwrite(2).
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), i32> {
        let mut done = 0;
        while done < bytes.len() {
            let failed = match self.0.write_at(&bytes[done..], offset + done as u64) {
                Ok(0) => EIO,
                Ok(bytes) => {
                    done += bytes;
                    continue;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => errno_of(error),
            };
            if done > 0 {
                // They and what stood behind them before would tell what neither has told, and an
                // empty file that there was never anything to tell.
                self.cut(offset.max(1))?;
            }
            return Err(failed);
        }
        Ok(())
    }

    /// Reads at a place until `buffer` is full or the file ends; gives how many bytes that were.
    /// Errors: pread(2).
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, i32> {
        let mut done = 0;
        while done < buffer.len() {
            match self.0.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(errno_of(error)),
            }
        }
        Ok(done)
    }
}
