//! Deleting old logs: at most once an hour a directory, some names at a time with pauses between,
//! one fstatat(2) a name. Only a log that is old by its times is opened, to see whether an execd
//! holds it. A log with the sticky bit is kept for good ([`LogDir::keep_for_good`]).

use super::index_files::INDEX_SUFFIX;
use super::io::{ENOENT, errno, owned};
use super::log_files::{LogDir, is_log_name};
use super::{clock, host};
use crate::limits::{CLEAN_NAMES, CLEAN_PAUSE_MS, CLEAN_STAMP_BYTES, NS_PER_MS};
use crate::pure::time::clean_stamp::{Stamp, begins_at};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;

/// The stamp's name in the log directory: no log has it.
const STAMP: &str = ".execd-cleaned";
const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// A look for old logs under way.
#[derive(Debug)]
pub struct Cleaner {
    names: Names,
    keep_days: u64,
    /// Logs last written before this are old, in seconds of the wall clock.
    oldest_s: i64,
    /// Locked for as long as this execd looks.
    stamp: Option<File>,
    /// When the next names are due.
    due_ns: u64,
    finished: bool,
}

impl Cleaner {
    /// Begins to look for logs last written more than `keep_days` days ago; goes on where an
    /// earlier look was broken off. `None`: nothing is to be done now, or another execd does it.
    pub fn begin(dir: &LogDir, keep_days: u64) -> Option<Self> {
        if keep_days == 0 {
            return None;
        }
        let now_s = clock::wall_ms().div_euclid(1_000);
        let keep_s = i64::try_from(keep_days.saturating_mul(SECONDS_PER_DAY)).ok()?;
        let oldest_s = now_s.checked_sub(keep_s)?;
        let (stamp, last) = match dir.open_ours(STAMP, libc::O_RDWR) {
            Ok(file) => {
                // A stamp that is locked is one that another execd goes by just now.
                file.try_lock().ok()?;
                let last = read_stamp(&file, now_s).ok()?;
                (Some(file), last)
            }
            Err(ENOENT) => (None, None),
            Err(_) => return None,
        };
        let place = begins_at(last, keep_days)?;
        let mut names = Names::open(dir).ok()?;
        if place != 0 {
            names.seek(place);
        }
        let cleaner = Self { names, keep_days, oldest_s, stamp, due_ns: 0, finished: false };
        cleaner.write_stamp(Some(place).filter(|place| *place != 0));
        Some(cleaner)
    }

    /// When the next names are due, on the monotonic clock.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Looks at some names, when they are due. False when all have been looked at.
    pub fn step(&mut self, dir: &LogDir) -> bool {
        let now_ns = clock::now_ns();
        if now_ns < self.due_ns {
            return true;
        }
        for _ in 0..CLEAN_NAMES {
            let Some(name) = self.names.next() else {
                self.finished = true;
                return false;
            };
            let name = name.to_owned();
            let old = match name.to_bytes().strip_suffix(INDEX_SUFFIX.as_bytes()) {
                None => is_log_name(name.to_bytes()) && self.is_old(dir, &name),
                // An index goes with its log, however long it was not written itself.
                Some(log) => is_log_name(log) && self.is_old(dir, &name) && !exists(dir, log),
            };
            if old {
                if !self.has_stamp(dir) {
                    return false;
                }
                self.delete(dir, &name);
            }
        }
        if !self.has_stamp(dir) {
            return false;
        }
        self.due_ns = clock::now_ns() + CLEAN_PAUSE_MS * NS_PER_MS;
        true
    }

    /// Makes the stamp, where there is none: a few names of which none is old need none. False
    /// where another execd was faster.
    fn has_stamp(&mut self, dir: &LogDir) -> bool {
        if self.stamp.is_some() {
            return true;
        }
        self.finished = true;
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR;
        match dir.open_at(STAMP, flags) {
            Ok(file) if file.try_lock().is_ok() => self.stamp = Some(file),
            _ => return false,
        }
        self.finished = false;
        self.write_stamp(None);
        true
    }

    fn write_stamp(&self, place: Option<i64>) {
        let Some(mut file) = self.stamp.as_ref() else { return };
        let text = Stamp { keep_days: self.keep_days, place }.text();
        // A stamp that cannot be written (a full disk) is read as what it holds then.
        let _ = file.set_len(0).and_then(|()| file.rewind());
        let _ = file.write_all(text.as_bytes());
    }

    fn is_old(&self, dir: &LogDir, name: &CStr) -> bool {
        dir.stat_at(name).is_some_and(|found| {
            let regular = found.st_mode & libc::S_IFMT == libc::S_IFREG;
            let ours = regular && found.st_uid == host::uid();
            ours && found.st_mode & libc::S_ISVTX == 0 && found.st_mtime < self.oldest_s
        })
    }

    /// What cannot be deleted is left.
    fn delete(&self, dir: &LogDir, name: &CStr) {
        let Ok(file) = dir.open_ours(name.to_bytes(), libc::O_RDONLY) else { return };
        // Locked first: the keeper that holds the log cannot write between check and deletion.
        let free = file.try_lock().is_ok();
        let old = file.metadata().is_ok_and(|found| found.mtime() < self.oldest_s);
        if free && old && unlink(dir, name) {
            // Most have none.
            let index = [name.to_bytes(), INDEX_SUFFIX.as_bytes()].concat();
            let _ = CString::new(index).map(|index| unlink(dir, &index));
        }
    }
}

fn exists(dir: &LogDir, name: &[u8]) -> bool {
    CString::new(name).is_ok_and(|name| dir.stat_at(&name).is_some())
}

fn unlink(dir: &LogDir, name: &CStr) -> bool {
    // SAFETY: the name ends in NUL and lives through the call.
    unsafe { libc::unlinkat(dir.raw_fd(), name.as_ptr(), 0) == 0 }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        let place = (!self.finished).then(|| self.names.place());
        self.write_stamp(place);
    }
}

/// What a stamp of ours says, and its age in seconds.
fn read_stamp(file: &File, now_s: i64) -> io::Result<Option<(Stamp, i64)>> {
    let mut text = String::new();
    file.take(CLEAN_STAMP_BYTES).read_to_string(&mut text)?;
    let age_s = now_s.saturating_sub(file.metadata()?.mtime());
    Ok(Stamp::parse(&text).map(|stamp| (stamp, age_s)))
}

/// The names in a directory, from a place that is kept.
#[derive(Debug)]
struct Names(NonNull<libc::DIR>);

impl Names {
    fn open(dir: &LogDir) -> Result<Self, i32> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the path is a C string literal. A description of its own has its own place.
        let fd = owned(unsafe { libc::openat(dir.raw_fd(), c".".as_ptr(), flags) })?;
        let raw = fd.into_raw_fd();
        // SAFETY: the descriptor is open and nobody else's; the stream owns it from here on.
        let stream = unsafe { libc::fdopendir(raw) };
        NonNull::new(stream).map(Self).ok_or_else(errno)
    }

    fn seek(&mut self, place: i64) {
        // SAFETY: the stream is open. A place that has become meaningless gives other names.
        unsafe { libc::seekdir(self.0.as_ptr(), place) };
    }

    fn place(&self) -> i64 {
        // SAFETY: the stream is open.
        unsafe { libc::telldir(self.0.as_ptr()) }
    }

    fn next(&mut self) -> Option<&CStr> {
        // SAFETY: the stream is open and read by nobody else.
        let entry = NonNull::new(unsafe { libc::readdir(self.0.as_ptr()) })?;
        // SAFETY: readdir's entry has a name that ends in NUL, and lives until the next call,
        // for which `self` would have to be borrowed again.
        Some(unsafe { CStr::from_ptr((&raw const (*entry.as_ptr()).d_name).cast()) })
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        // SAFETY: the stream is open and used by nobody after this.
        unsafe { libc::closedir(self.0.as_ptr()) };
    }
}

#[cfg(test)]
#[path = "log_clean_tests.rs"]
mod tests;
