//! Going through a log directory: its names and which of them are parts of logs, the newest logs
//! (logs.md, Reading by people), and the deletion of a log that nobody uses, with what belongs to
//! it.

use super::beside_files::INDEX_SUFFIX;
use super::io::{errno, owned};
use super::log_files::{LogDir, LogFile, is_log_name, is_log_stem};
use super::{clock, host};
use crate::limits::{NS_PER_MS, NS_PER_S};
use std::ffi::{CStr, CString};
use std::fs::TryLockError;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;
use std::sync::OnceLock;

/// What a log's own name ends with, behind its stem.
const LOG_SUFFIX: &str = ".log";
/// What the name of the facts about a log ends with, behind its stem.
const META_SUFFIX: &str = ".meta";
/// Bytes of a block of stat(2)'s `st_blocks`.
const STAT_BLOCK_BYTES: u64 = 512;

/// What a file is to its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The log itself.
    Log,
    /// Which of its bytes are of which stream.
    Index,
    /// The facts about it.
    Meta,
}

/// Which part a file of this name is, and the stem of its log's name (`execd-3-ab12cd34`); `None`
/// for what has nothing to do with logs of execd.
pub fn part_of(name: &[u8]) -> Option<(Part, &[u8])> {
    let ends = |suffix: &str| name.strip_suffix(suffix.as_bytes());
    let is_stem = |(_, stem): &(Part, &[u8])| is_log_stem(stem);
    if let Some(stem) = ends(LOG_SUFFIX) {
        return Some((Part::Log, stem)).filter(is_stem);
    }
    if let Some(stem) = ends(META_SUFFIX) {
        return Some((Part::Meta, stem)).filter(is_stem);
    }
    let stem = ends(INDEX_SUFFIX)?.strip_suffix(LOG_SUFFIX.as_bytes())?;
    Some((Part::Index, stem)).filter(is_stem)
}

/// The name of a log of this stem.
pub(super) fn log_name(stem: &[u8]) -> CString {
    named(stem, LOG_SUFFIX)
}

fn named(stem: &[u8], suffix: &str) -> CString {
    // A stem has no NUL: it was checked.
    CString::new([stem, suffix.as_bytes()].concat()).unwrap_or_default()
}

/// What is known of a file of ours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// When it was last written, or its session ended: in nanoseconds of the wall clock.
    pub(super) at_ns: i64,
    /// What it takes on the disk.
    pub(super) bytes: u64,
    /// It is for good.
    pub(super) kept: bool,
}

/// Our user, asked once: names are looked at by the hundred thousand.
fn our_uid() -> u32 {
    static OURS: OnceLock<u32> = OnceLock::new();
    *OURS.get_or_init(host::uid)
}

/// What is known of this name where it is a regular file of ours.
pub(super) fn look_at(dir: &LogDir, name: &CStr) -> Option<Found> {
    let found = dir.stat_at(name)?;
    let regular = found.st_mode & libc::S_IFMT == libc::S_IFREG;
    (regular && found.st_uid == our_uid()).then(|| Found {
        at_ns: wall_ns(found.st_mtime, found.st_mtime_nsec),
        bytes: u64::try_from(found.st_blocks).unwrap_or(0) * STAT_BLOCK_BYTES,
        kept: found.st_mode & libc::S_ISVTX != 0,
    })
}

/// A time of the wall clock, in nanoseconds.
fn wall_ns(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(NS_PER_S.cast_signed()).saturating_add(nanoseconds)
}

/// The wall clock so many seconds ago, in nanoseconds.
pub fn seconds_ago_ns(seconds: i64) -> i64 {
    wall_ns(clock::wall_ms().div_euclid(1_000).saturating_sub(seconds), 0)
}

/// What became of a log that was to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// It is gone, and its index and its facts with it: so many bytes of the disk.
    Freed(u64),
    /// An execd uses it.
    Used,
    /// It could not be deleted, or was written meanwhile.
    Left,
    /// Somebody else has deleted it.
    Gone,
}

/// Deletes a log, or what is left of one that is gone, where it was written before this time and
/// nobody uses it. What belongs to a log goes with it.
pub(super) fn delete(dir: &LogDir, name: &CStr, before_ns: i64) -> Deleted {
    let file = match dir.open_ours(name.to_bytes(), libc::O_RDONLY) {
        Ok(file) => file,
        Err(libc::ENOENT) => return Deleted::Gone,
        Err(_) => return Deleted::Left,
    };
    // Locked first: the keeper that holds the log cannot write between check and deletion.
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Deleted::Used,
        Err(TryLockError::Error(_)) => return Deleted::Left,
    }
    let Ok(found) = file.metadata() else { return Deleted::Left };
    if found.nlink() == 0 {
        return Deleted::Gone;
    }
    if wall_ns(found.mtime(), found.mtime_nsec()) >= before_ns || !unlink(dir, name) {
        return Deleted::Left;
    }
    let mut freed = found.blocks() * STAT_BLOCK_BYTES;
    if let Some((Part::Log, stem)) = part_of(name.to_bytes()) {
        let index = format!("{LOG_SUFFIX}{INDEX_SUFFIX}");
        for suffix in [META_SUFFIX, &*index] {
            let beside = named(stem, suffix);
            if let Some(found) = look_at(dir, &beside)
                && unlink(dir, &beside)
            {
                freed += found.bytes;
            }
        }
    }
    Deleted::Freed(freed)
}

/// Whether there is something of this name.
pub(super) fn exists(dir: &LogDir, name: &CStr) -> bool {
    dir.stat_at(name).is_some()
}

fn unlink(dir: &LogDir, name: &CStr) -> bool {
    // SAFETY: the name ends in NUL and lives through the call.
    unsafe { libc::unlinkat(dir.raw_fd(), name.as_ptr(), 0) == 0 }
}

impl LogFile {
    /// Says that its session has ended now: its time of the last change is that.
    pub fn set_ended(&self) {
        let now = libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };
        let as_it_is = libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_OMIT };
        // SAFETY: the descriptor is open, and two times live through the call. Where it fails, the
        // time of the last byte stands.
        unsafe { libc::futimens(self.0.as_raw_fd(), [as_it_is, now].as_ptr()) };
    }
}

/// The names in a directory, one at a time.
#[derive(Debug)]
pub(super) struct Names {
    stream: NonNull<libc::DIR>,
}

impl Names {
    pub(super) fn open(dir: &LogDir) -> Result<Self, i32> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the path is a C string literal. A description of its own has its own place.
        let fd = owned(unsafe { libc::openat(dir.raw_fd(), c".".as_ptr(), flags) })?;
        let raw = fd.into_raw_fd();
        // SAFETY: the descriptor is open and nobody else's; the stream owns it from here on.
        let stream = NonNull::new(unsafe { libc::fdopendir(raw) }).ok_or_else(errno)?;
        Ok(Self { stream })
    }

    pub(super) fn next(&mut self) -> Option<&CStr> {
        // SAFETY: the stream is open and read by nobody else.
        let entry = NonNull::new(unsafe { libc::readdir(self.stream.as_ptr()) })?;
        // SAFETY: readdir's entry has a name that ends in NUL, and lives until the next call,
        // for which `self` would have to be borrowed again.
        Some(unsafe { CStr::from_ptr((&raw const (*entry.as_ptr()).d_name).cast()) })
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        // SAFETY: the stream is open and used by nobody after this.
        unsafe { libc::closedir(self.stream.as_ptr()) };
    }
}

/// A log in the directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// When it was written last, in milliseconds of the wall clock.
    pub at_ms: i64,
    /// Its file's name.
    pub name: String,
}

/// The newest logs whose name begins with `head`, newest first, at most so many; and how many there
/// are. Keeps twice as many in memory, however many there are. Errors: opendir(3).
pub fn newest(dir: &LogDir, head: &str, most: usize) -> std::io::Result<(Vec<Listed>, usize)> {
    let (mut found, mut count): (Vec<Listed>, usize) = (Vec::new(), 0);
    for entry in std::fs::read_dir(dir.path())?.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !is_log_name(name.as_bytes()) || !name.starts_with(head) {
            continue;
        }
        // Something else of that name, or somebody else's file, is no log that can be read.
        let Some(log) = CString::new(name.as_str()).ok().and_then(|name| look_at(dir, &name))
        else {
            continue;
        };
        count += 1;
        found.push(Listed { at_ms: log.at_ns.div_euclid(NS_PER_MS.cast_signed()), name });
        if found.len() >= most.saturating_mul(2) {
            keep_newest(&mut found, most);
        }
    }
    keep_newest(&mut found, most);
    Ok((found, count))
}

fn keep_newest(found: &mut Vec<Listed>, most: usize) {
    found.sort();
    found.reverse();
    found.truncate(most);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_log_is_known_by_its_name_and_nothing_else_is() {
        for (name, part) in [
            ("execd-3-ab12cd34.log", Part::Log),
            ("execd-3-ab12cd34.log.index", Part::Index),
            ("execd-3-ab12cd34.meta", Part::Meta),
        ] {
            assert_eq!(part_of(name.as_bytes()), Some((part, &b"execd-3-ab12cd34"[..])), "{name}");
        }
        let others = "|execd-3-ab12cd34|execd-3-ab12cd34.log.|execd-3-ab12cd34.log.2.gz|\
            execd-3-ab12cd34.log.2.index|execd-3-ab12cd34.meta.new|execd-3-AB12cd34.log|\
            execd-3-ab12cd3.meta|notes.log|notes.log.index|.execd-cleaned";
        for name in others.split('|') {
            assert_eq!(part_of(name.as_bytes()), None, "{name}");
        }
    }
}
