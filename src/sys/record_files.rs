//! Files in which an execd's sessions are recorded, for when it is killed together with all that
//! would end them. They lie beside the control sockets; their names say whose they are. What is in
//! them is said in src/keeper/record.rs.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::io::{errno, errno_of};
use super::{host, log_files, proc, proc_view, socket};
use crate::limits::{RECORD_FILE_BYTES, SOCKET_DIR_ENTRIES};

/// The end of the name of each file; before it stands whose record it is.
const ENDING: &str = ".guard";
/// What follows that end while a file is being made.
const FRESH: &str = ".new";

/// What tells one execd from all others that ever ran on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The number of its pid namespace (its inode): pids mean nothing outside it.
    pub namespace: u64,
    /// Its process id there.
    pub pid: i32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The mark of its children, EXECD_INSTANCE.
    pub instance: String,
}

impl Owner {
    /// The execd that is this process's parent. None: that execd is gone, or cannot be told.
    pub fn parent(pid: i32, instance: &str) -> Option<Owner> {
        let start_ticks = proc::stat(pid)?.start_ticks;
        let owner = Owner { namespace: namespace()?, pid, start_ticks, instance: instance.into() };
        (host::parent_pid() == pid).then_some(owner)
    }

    fn file_name(&self) -> String {
        let Owner { namespace, pid, start_ticks, instance } = self;
        format!("{namespace}-{pid}-{start_ticks}-{instance}{ENDING}")
    }

    fn of_file(name: &str) -> Option<Owner> {
        let name = name.strip_suffix(FRESH).unwrap_or(name).strip_suffix(ENDING)?;
        let mut parts = name.splitn(4, '-');
        let owner = Owner {
            namespace: parts.next()?.parse().ok()?,
            pid: parts.next()?.parse().ok().filter(|pid| *pid > 1)?,
            start_ticks: parts.next()?.parse().ok()?,
            instance: parts.next()?.to_owned(),
        };
        let hex = !owner.instance.is_empty()
            && owner.instance.bytes().all(|byte| byte.is_ascii_hexdigit());
        hex.then_some(owner)
    }

    /// Whether that execd runs no more; false where it cannot be told.
    fn is_gone(&self) -> bool {
        match proc::stat(self.pid) {
            Some(found) => !found.is_alive() || found.start_ticks != self.start_ticks,
            None => {
                // SAFETY: kill takes two numbers, and signal 0 is sent to nobody.
                let asked = unsafe { libc::kill(self.pid, 0) };
                asked < 0 && errno() == libc::ESRCH
            }
        }
    }
}

/// The number of our pid namespace, see pid_namespaces(7). None where /proc does not tell of its
/// processes either: then nobody could say whether a process is a recorded one.
fn namespace() -> Option<u64> {
    let found = fs::metadata("/proc/self/ns/pid").ok().filter(|_| proc_view::tells());
    found.map(|found| found.ino())
}

/// What tells this boot of the machine from all others. None where the kernel does not say.
pub fn boot_id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// The record of a living execd.
#[derive(Debug)]
pub struct RecordFile {
    file: File,
    path: PathBuf,
}

impl RecordFile {
    /// Makes the record with this content, in place of an earlier one. None: the directory is not
    /// private, or the file cannot be written.
    pub fn create(owner: &Owner, bytes: &[u8]) -> Option<RecordFile> {
        let dir = log_files::ensure_private_dir(&socket::directory()).ok()?;
        let path = dir.join(owner.file_name());
        let fresh = dir.join(owner.file_name() + FRESH);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.custom_flags(libc::O_NOFOLLOW).open(&fresh).ok()?;
        file.write_all_at(bytes, 0).ok()?;
        // At no moment is there a record that lacks somebody.
        fs::rename(&fresh, &path).ok()?;
        Some(RecordFile { file, path })
    }

    /// Writes a piece of it. Errors: pwrite(2).
    pub fn put(&self, offset: u64, bytes: &[u8]) -> Result<(), i32> {
        self.file.write_all_at(bytes, offset).map_err(errno_of)
    }

    /// Removes the record: nobody has to be ended any more.
    pub fn delete(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The record of an execd that is gone.
#[derive(Debug)]
pub struct LeftRecord {
    path: PathBuf,
    /// Whose it was.
    pub owner: Owner,
}

impl LeftRecord {
    /// The content, as far as `RECORD_FILE_BYTES`. Errors: the file is not ours, or cannot be read.
    pub fn read(&self) -> Result<Vec<u8>, i32> {
        log_files::read_ours(&self.path, RECORD_FILE_BYTES)
    }

    /// Removes the record: it has been dealt with.
    pub fn delete(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The records of this user's execds that are gone, in all places where they may be. Those of
/// other pid namespaces are nobody's business here.
pub fn left_behind() -> Vec<LeftRecord> {
    let (places, mut ours) = (socket::private_places(), None);
    places.iter().flat_map(|dir| in_directory(dir, &mut ours)).collect()
}

fn in_directory(dir: &Path, ours: &mut Option<u64>) -> Vec<LeftRecord> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(SOCKET_DIR_ENTRIES);
    let named = entries.filter_map(|entry| {
        let owner = Owner::of_file(entry.file_name().to_str()?)?;
        Some(LeftRecord { path: entry.path(), owner })
    });
    let mut is_left = |left: &LeftRecord| {
        // Asked for only where there is a file at all.
        *ours = ours.or_else(namespace);
        *ours == Some(left.owner.namespace) && left.owner.is_gone()
    };
    named.filter(|left| is_left(left)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        let (pid, instance) = (super::super::host::pid(), "0123456789abcdef".to_owned());
        let start_ticks = proc::stat(pid).unwrap().start_ticks;
        Owner { namespace: namespace().unwrap(), pid, start_ticks, instance }
    }

    #[test]
    fn a_name_tells_whose_record_it_is() {
        let owner = owner();
        assert_eq!(Owner::of_file(&owner.file_name()), Some(owner.clone()));
        assert_eq!(Owner::of_file(&(owner.file_name() + FRESH)), Some(owner));
        let others = ["", "1.sock", "1-2-3-ab", "1-2-3-.guard", "1-2-3-xy.guard", "1-1-3-ab.guard"];
        for name in others {
            assert_eq!(Owner::of_file(name), None, "{name}");
        }
    }

    /// rule: architecture.md, Ending a session: Killed together with its helpers: the next execd of
    ///   the user ends what is left, before it answers
    #[test]
    fn only_the_records_of_who_is_gone_are_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let living = owner();
        // Another process has the number now.
        let reused = Owner { start_ticks: living.start_ticks + 1, ..living.clone() };
        let gone = Owner { pid: i32::MAX, ..living.clone() };
        let elsewhere = Owner { namespace: 1, ..gone.clone() };
        for owner in [&living, &reused, &gone, &elsewhere] {
            fs::write(dir.path().join(owner.file_name()), "x").unwrap();
        }
        let found = in_directory(dir.path(), &mut None);
        let mut found: Vec<Owner> = found.into_iter().map(|left| left.owner).collect();
        found.sort_by_key(|owner| owner.pid);
        assert_eq!(found, [reused, gone]);
    }
}
