//! A file that is in memory alone and gone with its owner, however that ends.

use std::ffi::CStr;
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;

use super::host;
use super::io::{errno_of, owned};

/// An anonymous file, see memfd_create(2).
#[derive(Debug)]
pub struct MemoryFile(File);

impl MemoryFile {
    /// Makes one with these contents; `name` is what lists of open files show. Gives an errno when
    /// there is no memory or no descriptor for it.
    pub fn with(name: &CStr, contents: &[u8]) -> Result<Self, i32> {
        // SAFETY: a live C string and plain flags.
        let file = owned(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) })?;
        let mut file = File::from(file);
        // The kernel makes the file for everybody, and what leads to it is open to processes of our
        // user only.
        let done = file.set_permissions(Permissions::from_mode(0o600));
        done.and_then(|()| file.write_all(contents)).map_err(errno_of)?;
        Ok(Self(file))
    }

    /// Where processes of our user find it, for as long as it is held here. Each that opens it
    /// reads from its beginning.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", host::pid(), self.0.as_raw_fd())
    }
}
