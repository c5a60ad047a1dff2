//! Errors of the system as people read them.

use nix::errno::Errno;

/// `ENOSPC: No space left on device`: an errno for people.
pub fn errno_text(errno: i32) -> String {
    let known = Errno::from_raw(errno);
    if known == Errno::UnknownErrno {
        return format!("errno {errno}");
    }
    format!("{known:?}: {}", known.desc())
}
