//! Reading and writing raw descriptors, with every outcome named.
//!
//! Errors of system calls are errnos, plain numbers, in all of src/sys and in what it tells:
//! what they mean is said in words only where somebody is told (`errno_text` of the logs).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// No such file, see errno(3): also what is wrong with a log that has lost its name.
pub const ENOENT: i32 = libc::ENOENT;
/// A name that is taken already, by something else than what is looked for.
pub const EEXIST: i32 = libc::EEXIST;
/// What cannot be read although it should be there.
pub const EIO: i32 = libc::EIO;
/// Bytes that should be there are not.
pub const ENODATA: i32 = libc::ENODATA;
/// The file system makes no holes.
pub const EOPNOTSUPP: i32 = libc::EOPNOTSUPP;
/// The kernel makes no holes.
pub const ENOSYS: i32 = libc::ENOSYS;
/// A symbolic link stands there.
pub const ELOOP: i32 = libc::ELOOP;
/// A directory stands there.
pub const EISDIR: i32 = libc::EISDIR;
/// A FIFO stands there.
pub const ESPIPE: i32 = libc::ESPIPE;
/// Another file stands there.
pub const ESTALE: i32 = libc::ESTALE;

/// How often a call that a signal interrupted is tried again before it counts as failed.
const EINTR_TRIES: usize = 64;

/// What one read or write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// So many bytes (at least one) were moved.
    Moved(usize),
    /// Nothing can be moved now; the descriptor will become ready later (EAGAIN).
    WouldBlock,
    /// End of file.
    Ended,
    /// The other side is gone: EPIPE or ECONNRESET; on a PTY's master EIO.
    HungUp,
    /// Another errno.
    Failed(i32),
}

/// The calling thread's errno.
pub fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// The errno of a call that went through the standard library; EIO for an error that has none.
pub(super) fn errno_of(error: std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Ok where a call that returns -1 for a failure did not; else its errno.
pub(super) fn done(result: i32) -> Result<(), i32> {
    if result < 0 { Err(errno()) } else { Ok(()) }
}

/// Runs a call until it is not interrupted (EINTR), a bounded number of times, and gives its
/// return value or its errno.
pub(super) fn retried(mut call: impl FnMut() -> isize) -> Result<usize, i32> {
    for _ in 0..EINTR_TRIES {
        let moved = call();
        if let Ok(moved) = usize::try_from(moved) {
            return Ok(moved);
        }
        if errno() != libc::EINTR {
            return Err(errno());
        }
    }
    Err(libc::EINTR)
}

pub(super) fn outcome(result: Result<usize, i32>, zero: Io) -> Io {
    match result {
        Ok(0) => zero,
        Ok(moved) => Io::Moved(moved),
        // Interrupted again and again: the same as not ready yet; the caller comes back.
        Err(libc::EAGAIN | libc::EINTR) => Io::WouldBlock,
        Err(libc::EPIPE | libc::ECONNRESET | libc::EIO) => Io::HungUp,
        Err(errno) => Io::Failed(errno),
    }
}

/// read(2) into `buffer`.
pub fn read(fd: RawFd, buffer: &mut [u8]) -> Io {
    // SAFETY: the pointer and the length are those of a live, writable slice.
    let call = || unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
    outcome(retried(call), Io::Ended)
}

/// read(2) into `buffer`, with the errno as it is.
pub fn read_or_errno(fd: RawFd, buffer: &mut [u8]) -> Result<usize, i32> {
    // SAFETY: the pointer and the length are those of a live, writable slice.
    retried(|| unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) })
}

/// What a read says that found nothing, now or for a while.
pub const NOTHING_NOW: [i32; 2] = [libc::EAGAIN, libc::EINTR];
/// What a read of a PTY's master says while nobody has its slave open.
pub const TERMINAL_CLOSED: i32 = libc::EIO;

/// write(2) of `bytes`; a write of nothing moves nothing.
pub fn write(fd: RawFd, bytes: &[u8]) -> Io {
    if bytes.is_empty() {
        return Io::WouldBlock;
    }
    // SAFETY: the pointer and the length are those of a live slice.
    let call = || unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    outcome(retried(call), Io::WouldBlock)
}

/// tee(2): puts what lies in one pipe into another too, without a copy; at most `most` bytes,
/// and never waits. Fails with EINVAL where one of them is no pipe.
pub fn tee(from: RawFd, to: RawFd, most: usize) -> Io {
    // SAFETY: plain descriptor numbers; no memory of ours is touched.
    let call = || unsafe { libc::tee(from, to, most, libc::SPLICE_F_NONBLOCK) };
    outcome(retried(call), Io::Ended)
}

/// splice(2) between two pipes: moves what lies in one into the other without a copy; at most
/// `most` bytes, and never waits.
pub fn splice(from: RawFd, to: RawFd, most: usize) -> Io {
    let flags = libc::SPLICE_F_NONBLOCK | libc::SPLICE_F_MOVE;
    let none = std::ptr::null_mut();
    // SAFETY: plain descriptor numbers, no offsets; no memory of ours is touched.
    let call = || unsafe { libc::splice(from, none, to, none, most, flags) };
    outcome(retried(call), Io::Ended)
}

/// Takes a fresh descriptor that a call returned, or its errno.
pub(super) fn owned(fd: i32) -> Result<OwnedFd, i32> {
    done(fd)?;
    // SAFETY: the call that returned it made this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Bytes of input in a pipe that nobody has read yet.
pub fn unread(fd: RawFd) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int.
    let asked = done(unsafe { libc::ioctl(fd, libc::FIONREAD, &raw mut bytes) });
    asked.ok().and_then(|()| usize::try_from(bytes).ok()).unwrap_or(0)
}

/// A pipe, both ends close-on-exec and blocking: (read end, write end), or an errno.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), i32> {
    pipe_with(0)
}

/// A pipe of which both ends are non-blocking: (read end, write end), close-on-exec, or an errno.
pub(super) fn nonblocking_pipe() -> Result<(OwnedFd, OwnedFd), i32> {
    pipe_with(libc::O_NONBLOCK)
}

fn pipe_with(flags: i32) -> Result<(OwnedFd, OwnedFd), i32> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for the two descriptors that pipe2 writes.
    done(unsafe { libc::pipe2(ends.as_mut_ptr(), flags | libc::O_CLOEXEC) })?;
    Ok((owned(ends[0])?, owned(ends[1])?))
}

/// Sets O_NONBLOCK on the description behind `fd`; gives the flags that it had, or an errno.
pub fn set_nonblocking(fd: RawFd) -> Result<i32, i32> {
    // SAFETY: fcntl with integer arguments.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    done(flags)?;
    // SAFETY: as above.
    done(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) })?;
    Ok(flags)
}

/// A pipe whose read end (`ours_reads`) or write end is ours and non-blocking; the other end is
/// a child's and stays blocking. Gives (ours, theirs), or an errno.
pub fn pipe_to_child(ours_reads: bool) -> Result<(OwnedFd, OwnedFd), i32> {
    let (read_end, write_end) = pipe()?;
    let (ours, theirs) = if ours_reads { (read_end, write_end) } else { (write_end, read_end) };
    // SAFETY: fcntl with integer arguments; a fresh pipe has no other flag.
    done(unsafe { libc::fcntl(ours.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
    Ok((ours, theirs))
}

/// Asks for a pipe of `bytes` (F_SETPIPE_SZ); gives the size it has then, or an errno.
pub fn set_pipe_size(fd: &OwnedFd, bytes: usize) -> Result<usize, i32> {
    let wanted = i32::try_from(bytes).unwrap_or(i32::MAX);
    // SAFETY: fcntl with integer arguments on a descriptor that is open.
    let got = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETPIPE_SZ, wanted) };
    usize::try_from(got).map_err(|_| errno())
}

/// /dev/null for reading and writing, close-on-exec, or an errno.
pub fn dev_null() -> Result<OwnedFd, i32> {
    // SAFETY: the path is a C string literal.
    owned(unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) })
}
