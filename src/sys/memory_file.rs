//! A file that is in memory alone and gone with its owner, however that ends.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};

use super::host;
use super::io::{self, Io, errno, owned};

/// An anonymous file, see memfd_create(2).
#[derive(Debug)]
pub struct MemoryFile(OwnedFd);

impl MemoryFile {
    /// Makes one with these contents; `name` is what lists of open files show. Gives an errno when
    /// there is no memory or no descriptor for it.
    pub fn with(name: &CStr, contents: &[u8]) -> Result<Self, i32> {
        // SAFETY: a live C string and plain flags.
        let file = owned(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) })?;
        // It is made for everybody, and what leads to it is open to processes of our user only.
        // SAFETY: fchmod takes two numbers.
        if unsafe { libc::fchmod(file.as_raw_fd(), 0o600) } < 0 {
            return Err(errno());
        }
        let mut rest = contents;
        while !rest.is_empty() {
            match io::write(file.as_raw_fd(), rest) {
                Io::Moved(bytes) if bytes > 0 => rest = &rest[bytes..],
                Io::Failed(errno) => return Err(errno),
                // No memory takes nothing and has no errno.
                _ => return Err(libc::ENOSPC),
            }
        }
        Ok(Self(file))
    }

    /// Where processes of our user find it, for as long as it is held here. Each that opens it
    /// reads from its beginning.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", host::pid(), self.0.as_raw_fd())
    }
}
