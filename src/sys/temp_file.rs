//! A file that is gone with its owner.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::host;
use crate::limits::TEMP_DIR_ENTRIES;

/// A file of our own in the directory for temporary ones, that nobody else may read. It is
/// deleted when this is dropped.
#[derive(Debug)]
pub struct TempFile(PathBuf);

impl TempFile {
    /// Makes one with these contents; its name begins with `prefix`. Errors: those of open(2) and
    /// write(2); nothing is left behind then.
    pub fn with(prefix: &str, contents: &[u8]) -> io::Result<Self> {
        let name = format!("{prefix}-{}-{}", host::pid(), host::random_hex());
        // A relative TMPDIR means another directory to a child that works elsewhere.
        let path = std::path::absolute(host::temp_dir())?.join(name);
        // Never somebody else's file: create_new is O_EXCL, which follows no link.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let made = Self(path);
        file.write_all(contents)?;
        Ok(made)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Deletes what was left by processes that were killed: files whose names begin with `prefix` and
/// have the id of a process that lives no more. Looks at [`TEMP_DIR_ENTRIES`] files at most.
pub fn delete_left(prefix: &str) {
    let Ok(entries) = fs::read_dir(host::temp_dir()) else { return };
    for entry in entries.flatten().take(TEMP_DIR_ENTRIES) {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_prefix('-'));
        let pid = rest.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Somebody else's stays.
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // Whoever deleted it before did what we want.
        let _ = fs::remove_file(&self.0);
    }
}
