//! The log directory and the files in it: private, never through a symlink, nothing touched
//! that is not ours.

use super::host;
use super::io::{EISDIR, ELOOP, ENOENT, ESPIPE, ESTALE, errno, errno_of, owned};
use crate::limits::{FREE_SPACE_MIN_BYTES, FREE_SPACE_MIN_PERCENT};
use std::ffi::{CStr, CString};
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

/// What the owner may do with a file here.
const OWNERS: u32 = 0o600;
/// Permission bits that anyone but the owner has.
const OTHERS: u32 = 0o077;
/// How every file here is opened: not through a symlink, not kept by a child, and without
/// waiting, should a name turn out to be a FIFO.
const CAREFULLY: libc::c_int = libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;

/// By what a file is known whatever it is named: device and number.
pub(super) fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Makes sure that `path` is a directory of ours that nobody else may enter: creates it with
/// mode 0700 if it is absent (its parent must exist), else checks that it is no symlink, owned
/// by our effective uid and closed to group and others. Gives its canonical absolute path, or
/// a reason for people that says what to do.
pub fn ensure_private_dir(path: &Path) -> Result<PathBuf, String> {
    // Without `/` and `/.` at its end, which would make the kernel follow a last symlink.
    let path: PathBuf = path.components().collect();
    let says = |what: &str| format!("directory {}: {what}", path.display());
    if path.as_os_str().is_empty() {
        return Err("directory: the path is empty".to_owned());
    }
    if path.components().next_back() == Some(Component::ParentDir) {
        return Err(says("name it without .. at the end"));
    }
    let created = match DirBuilder::new().mode(0o700).create(&path) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(says("its parent does not exist: create that, or name another place"));
        }
        Err(error) => {
            return Err(says(&format!("cannot be created ({error}): name another place")));
        }
    };
    let found = path.symlink_metadata().map_err(|error| says(&error.to_string()))?;
    if found.is_symlink() {
        return Err(says("is a symbolic link: name the real directory"));
    }
    if !found.is_dir() {
        return Err(says("is no directory: name another place"));
    }
    let dir = open_dir(&path).map_err(|error| says(&format!("cannot be opened ({error})")))?;
    check_private(&dir, created).map_err(|what| says(&what))?;
    let real = path.canonicalize().map_err(|error| says(&error.to_string()))?;
    let held = dir.metadata().ok().as_ref().map(identity);
    let named = real.symlink_metadata().ok().as_ref().map(identity);
    // Somebody who may rename it under our eyes may do so later, too.
    if held.is_none() || held != named {
        return Err(says("was replaced while it was looked at: name another place"));
    }
    Ok(real)
}

fn open_dir(path: &Path) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn check_private(dir: &File, created: bool) -> Result<(), String> {
    if created {
        // A strange umask may have taken bits away from the owner.
        let mode = Permissions::from_mode(0o700);
        dir.set_permissions(mode).map_err(|error| error.to_string())?;
    }
    let found = dir.metadata().map_err(|error| error.to_string())?;
    let (owner, us) = (found.uid(), host::uid());
    if owner != us {
        return Err(format!("belongs to uid {owner}, not to uid {us}: name another place"));
    }
    let mode = found.mode() & 0o7777;
    if mode & OTHERS != 0 {
        return Err(format!("others may enter it (mode {mode:04o}): chmod 700, or name another"));
    }
    Ok(())
}

/// The log directory, held open: should it be moved or deleted, files are not suddenly
/// created somewhere else.
#[derive(Debug)]
pub struct LogDir {
    dir: File,
    path: PathBuf,
    /// What new files in it may, see open(2).
    mode: u32,
}

impl LogDir {
    /// Opens a directory that `ensure_private_dir` has approved. Errors: open(2).
    pub fn open(path: &Path) -> io::Result<LogDir> {
        Ok(LogDir { dir: open_dir(path)?, path: path.to_path_buf(), mode: OWNERS })
    }

    /// From now on new files in it are for good: they have the sticky bit, which the
    /// kernel ignores of a file, and by which every execd that cleans here leaves them, as
    /// systemd-tmpfiles does. A file system without that bit (vfat) keeps nothing of it.
    pub fn keep_for_good(&mut self) {
        self.mode = OWNERS | libc::S_ISVTX;
    }

    /// Its path: absolute, without symlinks.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its path still leads to it: it may have been moved or deleted.
    pub fn is_in_place(&self) -> bool {
        let held = self.dir.metadata().ok();
        let named = self.path.symlink_metadata().ok();
        held.zip(named).is_some_and(|(held, named)| identity(&held) == identity(&named))
    }

    /// Whether this name in it leads to this log.
    pub fn holds(&self, name: &str, log: &LogFile) -> bool {
        let named = CString::new(name).ok().and_then(|name| self.stat_at(&name));
        let held = log.0.metadata().ok();
        named.zip(held).is_some_and(|(named, held)| (named.st_dev, named.st_ino) == identity(&held))
    }

    /// Creates a new log, which only its owner may read. Errors: openat(2), EEXIST when the name
    /// is taken.
    pub fn create(&self, name: &str) -> Result<LogFile, i32> {
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_APPEND;
        self.open_at(name, flags).map(LogFile::new)
    }

    /// Opens a log that exists for appending, or creates it again if it has vanished. Errors:
    /// openat(2); EEXIST when the name belongs to something that is no log of ours.
    pub fn reopen(&self, name: &str) -> Result<LogFile, i32> {
        match self.open_ours(name, libc::O_WRONLY | libc::O_APPEND) {
            Err(ENOENT) => self.create(name),
            opened => opened.map(LogFile::new),
        }
    }

    /// Whether the log of this name is a regular file of ours, and the one of this id
    /// ([`LogFile::id`]), where that is known. Errors: ELOOP for a symlink, EISDIR for a directory,
    /// ESPIPE for a FIFO, EEXIST for what else is no file of ours, ESTALE for another file of ours;
    /// those of openat(2), ENOENT among them.
    pub fn check(&self, name: &str, id: Option<u64>) -> Result<(), i32> {
        let found = CString::new(name).ok().and_then(|name| self.stat_at(&name));
        match found.map(|found| found.st_mode & libc::S_IFMT) {
            Some(libc::S_IFLNK) => return Err(ELOOP),
            Some(libc::S_IFDIR) => return Err(EISDIR),
            Some(libc::S_IFIFO) => return Err(ESPIPE),
            Some(libc::S_IFREG) | None => {}
            Some(_) => return Err(libc::EEXIST),
        }
        let file = self.open_ours(name, libc::O_RDONLY)?;
        let is_it = id.is_none_or(|id| file_id(&file).is_none_or(|found| found == id));
        if is_it { Ok(()) } else { Err(ESTALE) }
    }

    /// Opens a file. Errors: openat(2); EEXIST when the name belongs to something that is no file
    /// of ours.
    pub(super) fn open_ours(
        &self,
        name: impl Into<Vec<u8>>,
        flags: libc::c_int,
    ) -> Result<File, i32> {
        let file = self.open_at(name, flags)?;
        if is_our_file(&file)? { Ok(file) } else { Err(libc::EEXIST) }
    }

    pub(super) fn open_at(
        &self,
        name: impl Into<Vec<u8>>,
        flags: libc::c_int,
    ) -> Result<File, i32> {
        let name = CString::new(name).map_err(|_| libc::EINVAL)?;
        loop {
            // SAFETY: the name ends in NUL and lives through the call.
            let opened = owned(unsafe {
                libc::openat(self.raw_fd(), name.as_ptr(), flags | CAREFULLY, self.mode)
            });
            match opened {
                Err(libc::EINTR) => {}
                opened => return opened.map(File::from),
            }
        }
    }

    /// What is known of a name in it, the name itself and not what it leads to.
    pub(super) fn stat_at(&self, name: &CStr) -> Option<libc::stat> {
        // SAFETY: stat is plain numbers, for which zeros are valid.
        let mut found: libc::stat = unsafe { std::mem::zeroed() };
        let (dir, flags) = (self.raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
        // SAFETY: the name ends in NUL; fstatat writes one stat, which lives through the call.
        let done = unsafe { libc::fstatat(dir, name.as_ptr(), &raw mut found, flags) };
        (done == 0).then_some(found)
    }

    /// How large its file system is; 0 where it does not say.
    pub(super) fn disk_bytes(&self) -> u64 {
        let found = file_system(&self.dir);
        found.map_or(0, |found| found.f_blocks.saturating_mul(found.f_frsize))
    }

    pub(super) fn raw_fd(&self) -> RawFd {
        self.dir.as_raw_fd()
    }
}

/// Gives the blocks of `from..to` back to the disk. The file's size and all its other bytes stay.
/// Errors: fallocate(2).
pub(super) fn punch(file: &File, from: u64, to: u64) -> Result<(), i32> {
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

/// The place of a file's first byte that is not in a hole; its size where there is none, 0 where
/// its file system does not say. Errors: lseek(2).
pub(super) fn first_data(file: &File) -> Result<u64, i32> {
    // SAFETY: lseek takes numbers only, and the descriptor is open.
    let found = unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_DATA) };
    if let Ok(found) = u64::try_from(found) {
        return Ok(found);
    }
    match errno() {
        libc::ENXIO => file.metadata().map(|found| found.len()).map_err(errno_of),
        libc::EINVAL => Ok(0),
        errno => Err(errno),
    }
}

/// What is known of the file system that a file lies on.
fn file_system(file: &File) -> Option<libc::statvfs> {
    // SAFETY: statvfs is plain numbers, for which zeros are valid.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: fstatvfs writes one statvfs, which lives through the call.
    let done = unsafe { libc::fstatvfs(file.as_raw_fd(), &raw mut found) } == 0;
    done.then_some(found)
}

/// Made of a file's number and of the time when it was made, where the file system tells that: a
/// number alone may soon be another file's.
fn file_id(file: &File) -> Option<u64> {
    let found = file.metadata().ok()?;
    let born = found.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let born_ns = born.map_or(0, |born| u64::try_from(born.as_nanos()).unwrap_or(u64::MAX));
    Some(found.ino() ^ born_ns.rotate_left(20))
}

fn is_our_file(file: &File) -> Result<bool, i32> {
    let found = file.metadata().map_err(errno_of)?;
    Ok(found.is_file() && found.uid() == host::uid())
}

/// The content of a small file of ours anywhere, at most `most_bytes` of it. Errors: open(2);
/// EACCES when the path leads to something that is no file of ours.
pub(super) fn read_ours(path: &Path, most_bytes: u64) -> Result<Vec<u8>, i32> {
    let file = OpenOptions::new().read(true).custom_flags(CAREFULLY).open(path);
    let file = file.map_err(errno_of)?;
    if !is_our_file(&file)? {
        return Err(libc::EACCES);
    }
    let mut bytes = Vec::new();
    file.take(most_bytes).read_to_end(&mut bytes).map_err(errno_of)?;
    Ok(bytes)
}

/// The name by which people know a log, `3-ab12cd34`, of its file's name.
pub fn short_name(name: &str) -> &str {
    let name = name.strip_suffix(".log").unwrap_or(name);
    name.strip_prefix("execd-").unwrap_or(name)
}

/// Whether a file name is exactly `execd-<digits>-<8 hex>.log`.
pub fn is_log_name(name: &[u8]) -> bool {
    name.strip_suffix(b".log").is_some_and(is_log_stem)
}

/// Whether this is such a name without its `.log`.
pub(super) fn is_log_stem(stem: &[u8]) -> bool {
    let parts = || {
        let inner = stem.strip_prefix(b"execd-")?;
        let dash = inner.iter().position(|byte| *byte == b'-')?;
        Some((inner.get(..dash)?, inner.get(dash + 1..)?))
    };
    let lower_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    parts().is_some_and(|(digits, hex)| {
        !digits.is_empty()
            && digits.iter().all(u8::is_ascii_digit)
            && hex.len() == 8
            && hex.iter().all(lower_hex)
    })
}

/// One log, open for appending and share-locked as a sign that an execd needs it.
#[derive(Debug)]
pub struct LogFile(pub(super) File);

impl LogFile {
    pub(super) fn new(file: File) -> LogFile {
        // Where locks do not work (some network file systems) the log's age has to protect it.
        let _ = file.try_lock_shared();
        LogFile(file)
    }

    /// Appends bytes. Gives how many went in, and the errno that stopped the rest.
    pub fn append(&self, bytes: &[u8]) -> (usize, Result<(), i32>) {
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            match (&self.0).write(rest) {
                // A regular file does not do this; taking it for progress could go on for ever.
                Ok(0) => return (done, Err(libc::EIO)),
                Ok(len) => done += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (done, Err(errno_of(error))),
            }
        }
        (done, Ok(()))
    }

    /// By what the file is known, whatever becomes of its name.
    pub fn id(&self) -> Option<u64> {
        file_id(&self.0)
    }

    /// Gives the blocks of `from..to` back to the disk. The file's size and all its other bytes
    /// stay. Errors: fallocate(2).
    pub fn punch(&self, from: u64, to: u64) -> Result<(), i32> {
        punch(&self.0, from, to)
    }

    /// Where its first byte is that is in no hole, as far as the file system says; 0 where not.
    pub fn first_data(&self) -> u64 {
        // Appending needs no place.
        first_data(&self.0).unwrap_or(0)
    }

    /// Makes it empty. Errors: ftruncate(2).
    pub fn clear(&self) -> Result<(), i32> {
        self.0.set_len(0).map_err(errno_of)
    }

    /// Its size in bytes. Errors: fstat(2).
    pub fn size(&self) -> Result<u64, i32> {
        self.0.metadata().map(|found| found.len()).map_err(errno_of)
    }

    /// How many bytes may still be written until its file system is nearly full, which is below
    /// `FREE_SPACE_MIN_BYTES` and below `FREE_SPACE_MIN_PERCENT`; `None`: it is. `u64::MAX` when
    /// the file system does not say.
    pub fn space_left(&self) -> Option<u64> {
        let Some(found) = file_system(&self.0).filter(|found| found.f_blocks > 0) else {
            return Some(u64::MAX);
        };
        let wide = u128::from;
        let free = wide(found.f_bavail) * wide(found.f_frsize);
        let all = wide(found.f_blocks) * wide(found.f_frsize);
        let percent = (all * wide(FREE_SPACE_MIN_PERCENT)).div_ceil(100);
        let left = free.checked_sub(percent.min(wide(FREE_SPACE_MIN_BYTES)))?;
        Some(u64::try_from(left).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
#[path = "log_files_tests.rs"]
mod tests;
