//! A new process's few descriptors, however many we have open (architecture.md, Starting a child).
//!
//! A copy of our table for a child costs a step for each descriptor, and closing them in the child
//! another: with 2,000 sessions more than all the rest of starting a command. So the child shares
//! our table (CLONE_FILES), until it takes a copy of its own that ends above the three that it
//! needs (CLOSE_RANGE_UNSHARE, Linux 5.9). Where these have high numbers, the child puts them into
//! three low places first, which we hold open for that and clear again.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::io::{self, done, errno};

/// A table that ends below this is not worth two calls for each descriptor.
const FEW_FDS: RawFd = 64;

/// Three low numbers that nothing else uses.
#[derive(Debug)]
pub struct Places {
    /// /dev/null, what the places hold meanwhile.
    nothing: OwnedFd,
    places: [OwnedFd; 3],
}

impl Places {
    /// To be made at start, while low numbers are free; `None` where there are no descriptors.
    pub fn open() -> Option<Self> {
        let null = || io::dev_null().ok();
        let made = Self { places: [null()?, null()?, null()?], nothing: null()? };
        made.numbers().iter().all(|&number| (3..FEW_FDS).contains(&number)).then_some(made)
    }

    /// The places, for [`take`].
    pub fn numbers(&self) -> [RawFd; 3] {
        [0, 1, 2].map(|at: usize| self.places[at].as_raw_fd())
    }

    /// Whether the first place is open still, after [`probe`] closed it in a child.
    pub fn is_open(&self) -> bool {
        // SAFETY: only asks for a flag of a descriptor.
        unsafe { libc::fcntl(self.places[0].as_raw_fd(), libc::F_GETFD) >= 0 }
    }

    /// Closes what a child has put into the places on its way to these numbers.
    pub fn clear_after(&self, stdio: &[RawFd; 3]) {
        if are_few(stdio) {
            return;
        }
        for place in &self.places {
            // SAFETY: both are open descriptors of ours; this cannot fail for want of a number.
            unsafe { libc::dup3(self.nothing.as_raw_fd(), place.as_raw_fd(), libc::O_CLOEXEC) };
        }
    }
}

fn are_few(stdio: &[RawFd; 3]) -> bool {
    stdio.iter().all(|&fd| fd < FEW_FDS)
}

/// Makes a table of our own that ends above `last`; an errno where that cannot be done.
fn unshare_up_to(last: RawFd) -> Result<(), i32> {
    let from = last.unsigned_abs() + 1;
    // SAFETY: closes descriptors of the copy that it makes, never of the table that was shared.
    let done =
        unsafe { libc::syscall(libc::SYS_close_range, from, u32::MAX, libc::CLOSE_RANGE_UNSHARE) };
    if done < 0 { Err(errno()) } else { Ok(()) }
}

/// For a child that shares our table: takes its own. Gives the numbers that its standard
/// descriptors have there. Async-signal-safe.
pub fn take(mut stdio: [RawFd; 3], places: [RawFd; 3]) -> Result<[RawFd; 3], i32> {
    if !are_few(&stdio) {
        for (fd, place) in stdio.iter_mut().zip(places) {
            // SAFETY: plain descriptor numbers; the place is nobody else's.
            done(unsafe { libc::dup3(*fd, place, libc::O_CLOEXEC) })?;
            *fd = place;
        }
    }
    let last = stdio.iter().copied().fold(2, RawFd::max);
    unshare_up_to(last).map(|()| stdio)
}

/// For a child that shares our table: takes its own and closes `fd` in it, or ends with an error.
/// Async-signal-safe.
pub fn probe(fd: RawFd) {
    let status = if unshare_up_to(RawFd::MAX - 1).is_ok() { 0 } else { 1 };
    if status == 0 {
        // SAFETY: a descriptor of the child's own table.
        unsafe { libc::close(fd) };
    }
    // SAFETY: _exit runs no handlers of ours.
    unsafe { libc::_exit(status) }
}
