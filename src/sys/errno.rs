//! Errors of the system as people read them.

use nix::errno::Errno;

/// `ENOSPC: No space left on device`: an errno for people, with what to do where that is known.
pub fn errno_text(errno: i32) -> String {
    let known = Errno::from_raw(errno);
    if known == Errno::UnknownErrno {
        return format!("errno {errno}");
    }
    let next = if known == Errno::EMFILE { ": raise ulimit -n" } else { "" };
    format!("{known:?}: {}{next}", known.desc())
}
