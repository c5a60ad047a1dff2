//! The file beside a log that tells which of its bytes are whose, and the log itself where parts of
//! it are read: files in the log directory that are read and written at places.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::log_files::{LogDir, is_our_file};

/// What a log's index is named, behind the log's own name.
pub const INDEX_SUFFIX: &str = ".index";

/// The name of the index of the log of this name.
pub fn index_name(log: &str) -> String {
    format!("{log}{INDEX_SUFFIX}")
}

/// A file in the log directory that is read and written at places.
#[derive(Debug)]
pub struct PlacedFile(File);

impl LogDir {
    /// Opens an index to write it, an empty one where `fresh`; creates it (mode 0600) where it is
    /// not there. Errors: openat(2), ftruncate(2); EEXIST when the name belongs to something that
    /// is no file of ours.
    pub fn write_index(&self, log: &str, fresh: bool) -> io::Result<PlacedFile> {
        let file = self.placed(&index_name(log), libc::O_CREAT | libc::O_RDWR)?;
        if fresh {
            file.0.set_len(0)?;
        }
        Ok(file)
    }

    /// Opens an index to read it. Errors: as above.
    pub fn read_index(&self, log: &str) -> io::Result<PlacedFile> {
        self.placed(&index_name(log), libc::O_RDONLY)
    }

    /// Opens a log to read parts of it. Errors: as above.
    pub fn read_log(&self, log: &str) -> io::Result<PlacedFile> {
        self.placed(log, libc::O_RDONLY)
    }

    fn placed(&self, name: &str, flags: libc::c_int) -> io::Result<PlacedFile> {
        let file = self.open_at(OsStr::new(name), flags)?;
        if !is_our_file(&file)? {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        Ok(PlacedFile(file))
    }
}

impl PlacedFile {
    /// Its size in bytes. Errors: fstat(2).
    pub fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    /// Writes bytes at a place. Errors: pwrite(2).
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    /// Reads at a place until `buffer` is full or the file ends; gives how many bytes that were.
    /// Errors: pread(2).
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.0.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}
