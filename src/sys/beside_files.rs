//! Files in the log directory that are read and written at places: a log's index, which tells which
//! of the log's bytes are whose, the facts about its session, and the log itself, of which parts
//! are read. The beginning of a log and of its index goes back to the disk here.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::io::{EIO, errno_of};
use super::log_files::{LogDir, first_data, punch};
use crate::limits::LOG_BLOCK_BYTES;

/// What a log's index is named, behind the log's own name.
pub const INDEX_SUFFIX: &str = ".index";

/// A file in the log directory that is read and written at places.
#[derive(Debug)]
pub struct PlacedFile(File);

/// How the file of facts beside a log ends, in the place of `.log` (logs.md, Facts beside each
/// log).
const META_SUFFIX: &str = ".meta";

/// The name of the file of facts beside the log of this name.
fn meta_name(log: &str) -> String {
    log.strip_suffix(".log").unwrap_or(log).to_owned() + META_SUFFIX
}

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

    /// Writes the facts beside a log, in the place of older ones. They are no longer than a block
    /// of the disk, so whoever reads finds the old line or the new one. Errors: openat(2),
    /// pwrite(2), ftruncate(2); EEXIST when the name belongs to something that is no file of ours.
    pub fn write_meta(&self, log: &str, line: &[u8]) -> Result<(), i32> {
        let file = self.open_ours(meta_name(log), libc::O_CREAT | libc::O_WRONLY)?;
        let file = PlacedFile(file);
        let line = [line, b"\n"].concat();
        file.write_at(&line, 0)?;
        if file.size()? > line.len() as u64 { file.cut(line.len() as u64) } else { Ok(()) }
    }

    /// The facts beside a log, as they stand in the file. Errors: openat(2), pread(2).
    pub fn read_meta(&self, log: &str) -> Result<Vec<u8>, i32> {
        let file = PlacedFile(self.open_ours(meta_name(log), libc::O_RDONLY)?);
        let mut line = vec![0; usize::try_from(LOG_BLOCK_BYTES).unwrap_or(0)];
        let length = file.read_at(&mut line, 0)?;
        line.truncate(length);
        Ok(line)
    }
}

impl PlacedFile {
    /// Cuts it to a length. Errors: ftruncate(2).
    pub fn cut(&self, length: u64) -> Result<(), i32> {
        self.0.set_len(length).map_err(errno_of)
    }

    /// Its size in bytes. Errors: fstat(2).
    pub fn size(&self) -> Result<u64, i32> {
        self.0.metadata().map(|found| found.len()).map_err(errno_of)
    }

    /// The place of its first byte that is not in a hole ([`first_data`]). Errors: lseek(2).
    pub fn first_data(&self) -> Result<u64, i32> {
        first_data(&self.0)
    }

    /// Gives the blocks before this place back to the disk. Errors: fallocate(2).
    pub fn punch_before(&self, place: u64) -> Result<(), i32> {
        punch(&self.0, 0, place)
    }

    /// Writes bytes at a place, all or none of them: where only some go in, the file ends at that
    /// place. Errors: pwrite(2).
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), i32> {
        let (done, outcome) = self.write_some(bytes, offset);
        if outcome.is_err() && done > 0 {
            // They and what stood behind them before would tell what neither has told.
            self.cut(offset)?;
        }
        outcome
    }

    /// Writes bytes in the place of others: where only some go in, those others are put back.
    /// Errors: pwrite(2).
    pub fn overwrite(&self, bytes: &[u8], others: &[u8], offset: u64) -> Result<(), i32> {
        let (done, outcome) = self.write_some(bytes, offset);
        if outcome.is_err() {
            self.write_some(&others[..done.min(others.len())], offset).1?;
        }
        outcome
    }

    /// Gives how many bytes went in, and the errno that stopped the rest.
    fn write_some(&self, bytes: &[u8], offset: u64) -> (usize, Result<(), i32>) {
        let mut done = 0;
        while done < bytes.len() {
            match self.0.write_at(&bytes[done..], offset + done as u64) {
                Ok(0) => return (done, Err(EIO)),
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return (done, Err(errno_of(error))),
            }
        }
        (done, Ok(()))
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
