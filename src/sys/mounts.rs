//! The list of mounts as the kernel has it now, and what symbolic links on safe ones say
//! (src/pure/process/mounts.rs judges both).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;

use super::poll;
use crate::limits::MOUNTINFO_BYTES;
use crate::pure::process::mounts::{Entry, Mounts};

/// The list, read again when the kernel says that it has changed.
#[derive(Debug)]
pub struct MountTable {
    /// /proc/self/mountinfo, kept open: it remembers up to where we know (proc(5)).
    file: Option<File>,
    mounts: Mounts,
    /// What was read may not be true any more.
    stale: bool,
}

impl MountTable {
    /// Opens the list. Where there is none, any path counts as one that may hang.
    pub fn open() -> Self {
        let file = File::open("/proc/self/mountinfo").ok();
        Self { file, mounts: Mounts::unknown(), stale: true }
    }

    /// Whether the list is there.
    pub fn is_known(&self) -> bool {
        self.file.is_some()
    }

    /// Whether going the way of one of these absolute paths may hang. Asks nothing of a file
    /// system that may.
    pub fn may_hang(&mut self, paths: impl Iterator<Item = Vec<u8>>) -> bool {
        self.refresh();
        if self.mounts.none_may_hang() {
            return false;
        }
        // Paths on PATH begin alike.
        let mut known: BTreeMap<Vec<u8>, Entry> = BTreeMap::new();
        let mut entry = |at: &[u8]| match known.get(at) {
            Some(entry) => entry.clone(),
            None => {
                let found = look(at);
                known.insert(at.to_owned(), found.clone());
                found
            }
        };
        let mut paths = paths;
        paths.any(|path| self.mounts.may_hang(&path, &mut entry))
    }

    /// What tells the file that is run, of these absolute paths the first that is a program, from
    /// another one that takes its place: its device, inode, size and times (mtime alone would not
    /// do: npm gives all files the same). `None`: nothing is there, or looking may hang.
    pub fn stamp(&mut self, paths: &[Vec<u8>]) -> Option<String> {
        if self.may_hang(paths.iter().cloned()) {
            return None;
        }
        let found = paths.iter().filter_map(|path| std::fs::metadata(OsStr::from_bytes(path)).ok());
        let mut programs = found.filter(|found| found.is_file() && found.mode() & 0o111 != 0);
        programs.next().map(|found| {
            let (changed, modified) = (found.ctime(), found.mtime());
            let (changed_ns, modified_ns) = (found.ctime_nsec(), found.mtime_nsec());
            let (dev, ino, size) = (found.dev(), found.ino(), found.size());
            format!("{dev}.{ino}.{size}.{modified}.{modified_ns}.{changed}.{changed_ns}")
        })
    }

    /// Reads the list again where it has changed: one poll(2) tells, so that nobody is woken up
    /// for mounts that concern no command.
    fn refresh(&mut self) {
        let Some(file) = &mut self.file else { return };
        if !self.stale && !poll::has_changed(file.as_raw_fd()) {
            return;
        }
        // What is said of a change is said once, so it must not get lost when reading fails.
        self.stale = true;
        self.mounts = Mounts::unknown();
        let mut text = Vec::new();
        let most = MOUNTINFO_BYTES as u64;
        let read = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.by_ref().take(most).read_to_end(&mut text));
        self.stale = read.is_err();
        if read.is_ok_and(|bytes| bytes < MOUNTINFO_BYTES) {
            self.mounts = Mounts::of(&text);
        }
    }
}

/// What is at a place whose file system does not hang.
fn look(at: &[u8]) -> Entry {
    match std::fs::read_link(OsStr::from_bytes(at)) {
        Ok(target) => Entry::Link(target.into_os_string().into_vec()),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Entry::Other,
        Err(_) => Entry::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rule: architecture.md, Starting a child: Which paths may hang is told without touching such
    ///   a file system
    #[test]
    fn the_own_root_is_looked_at_link_by_link() {
        let mut table = MountTable::open();
        assert!(table.is_known());
        table.refresh();
        assert!(!table.stale && table.mounts != Mounts::unknown());
        assert_eq!(look(b"/proc/self/root"), Entry::Link(b"/".to_vec()));
        assert_eq!(look(b"/proc"), Entry::Other);
        assert_eq!(look(b"/no/such/thing"), Entry::Missing);
        let stamp = |table: &mut MountTable, paths: &[&[u8]]| {
            table.stamp(&paths.iter().map(|path| path.to_vec()).collect::<Vec<_>>())
        };
        assert_eq!(stamp(&mut table, &[b"/no/such/thing", b"/proc"]), None);
        let own = stamp(&mut table, &[b"/no/such/thing", b"/proc", b"/proc/self/exe"]);
        assert!(own.is_some() && own == stamp(&mut table, &[b"/proc/self/exe"]));
    }
}
