//! Stamps in the log directory: small files by which the execds that share it know when one of
//! them has last looked through it, and that keep two from looking at the same time.

use super::io::ENOENT;
use super::log_files::LogDir;
use crate::limits::CLEAN_STAMP_BYTES;
use std::fs::File;
use std::io::{Read, Seek, Write};

/// Opens a stamp and locks it for as long as it is open; with it comes its text. `Some(None)`:
/// there is none. `None`: another execd goes by it just now, or it is none of ours.
pub(super) fn open(dir: &LogDir, name: &str) -> Option<Option<(File, String)>> {
    let file = match dir.open_ours(name, libc::O_RDWR) {
        Ok(file) => file,
        Err(ENOENT) => return Some(None),
        Err(_) => return None,
    };
    file.try_lock().ok()?;
    let mut text = String::new();
    (&file).take(CLEAN_STAMP_BYTES).read_to_string(&mut text).ok()?;
    Some(Some((file, text)))
}

/// Makes a stamp where there is none, locked; `None` where another execd was faster.
pub(super) fn make(dir: &LogDir, name: &str) -> Option<File> {
    let file = dir.open_at(name, libc::O_CREAT | libc::O_EXCL | libc::O_RDWR).ok()?;
    file.try_lock().ok()?;
    Some(file)
}

/// Writes a stamp's text. One that cannot be written (a full disk) is read as what it holds then.
pub(super) fn write(mut file: &File, text: &str) {
    let _ = file.set_len(0).and_then(|()| file.rewind());
    let _ = file.write_all(text.as_bytes());
}
