//! Descriptors of processes: whoever holds one means that process and no other that gets its
//! number later (pidfd_open(2)).

use std::os::fd::{OwnedFd, RawFd};

use super::io::{errno, owned};

/// A pidfd (close-on-exec) of the process that has this number now, or an errno.
pub(super) fn open(pid: i32) -> Result<OwnedFd, i32> {
    // SAFETY: pidfd_open takes two numbers and touches no memory of ours.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    owned(i32::try_from(fd).unwrap_or(-1))
}

/// Whether this errno of [`open`] says that no process has the number; a thread may have it.
pub(super) fn is_nobody(errno: i32) -> bool {
    matches!(errno, libc::ESRCH | libc::EINVAL | libc::ENOENT)
}

/// Whether this errno of [`open`] or [`signal`] says that nobody may have or use pidfds: the kernel
/// does not know the call (before 5.3, or 5.1), or a filter refuses it.
pub(super) fn is_refused(errno: i32) -> bool {
    matches!(errno, libc::ENOSYS | libc::EPERM | libc::EACCES)
}

/// Sends a signal to the process of a pidfd, whose number is `pid`: by that number where a filter
/// refuses pidfd_send_signal(2) alone, so that the caller vouches for the number. That the process
/// has ended is no error. Gives the errno of a refusal: EPERM, EINVAL, see pidfd_send_signal(2).
pub fn signal(pidfd: RawFd, pid: i32, signal: i32) -> Result<(), i32> {
    match send(pidfd, signal) {
        Err(errno) if is_refused(errno) => by_number(pid, signal),
        sent => sent,
    }
}

/// Sends a signal through a pidfd and no other way. Gives the errno of a refusal.
pub(super) fn send(pidfd: RawFd, signal: i32) -> Result<(), i32> {
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a descriptor number and a signal's; a null siginfo is allowed.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd, signal, no_info, 0) };
    told(sent < 0)
}

/// Whether there is a process of this number, or a process group of it where it is negative.
pub fn is_there(pid: i32) -> bool {
    // SAFETY: kill takes two numbers, and signal 0 is sent to nobody.
    unsafe { libc::kill(pid, 0) == 0 || errno() != libc::ESRCH }
}

/// Sends a signal to whoever has this number, see kill(2). Gives the errno of a refusal.
pub fn by_number(pid: i32, signal: i32) -> Result<(), i32> {
    // SAFETY: kill takes two numbers.
    told(unsafe { libc::kill(pid, signal) } < 0)
}

/// What became of a signal: nobody to get it is no error.
fn told(failed: bool) -> Result<(), i32> {
    match if failed { errno() } else { 0 } {
        0 | libc::ESRCH => Ok(()),
        errno => Err(errno),
    }
}
