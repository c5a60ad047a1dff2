//! Waiting for descriptors: the one way to poll(2). The daemon's own loop waits by epoll; all else
//! that waits does it here: the helper processes, the commands that are clients, and the few places
//! where the daemon waits a bounded time for one answer.
//!
//! A wait ends at a moment of the monotonic clock, so that whoever goes on waiting after an
//! interruption or a false alarm has nothing to count.

use std::os::fd::RawFd;

use super::clock;
use super::io::retried;
use crate::limits::NS_PER_MS;

/// A descriptor that is waited for, and what has become of it.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// A negative number is passed over.
    fd: RawFd,
    events: libc::c_short,
    /// The descriptor can be read, or has ended.
    pub readable: bool,
    /// The descriptor can be written.
    pub writable: bool,
}

impl Watch {
    /// Waits for something to read, for room, for both, or for neither.
    pub fn new(fd: RawFd, for_input: bool, for_room: bool) -> Self {
        let fd = if for_input || for_room { fd } else { -1 };
        let input = if for_input { libc::POLLIN } else { 0 };
        let events = input | if for_room { libc::POLLOUT } else { 0 };
        Self { fd, events, readable: false, writable: false }
    }

    /// Waits until nobody is at the other end of a descriptor that is written any more: `readable`
    /// says so, also of one that [`Self::new`] waits for room in.
    pub fn for_end(fd: RawFd) -> Self {
        Self { fd, events: 0, readable: false, writable: false }
    }
}

/// Waits until something has become of one of `all`, until `until_ns` of the monotonic clock at the
/// latest, else for ever. A moment that is past only looks.
pub fn wait_for(all: &mut [Watch], until_ns: Option<u64>) {
    let mut entries: Vec<libc::pollfd> =
        all.iter().map(|watch| entry(watch.fd, watch.events)).collect();
    poll(&mut entries, until_ns);
    for (watch, entry) in all.iter_mut().zip(&entries) {
        let over = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
        watch.readable = entry.revents & (libc::POLLIN | over) != 0;
        watch.writable = entry.revents & (libc::POLLOUT | over) != 0;
    }
}

/// Waits until `fd` has something to read or has hung up, as [`wait_for`] does; of a pidfd, until
/// its process has ended. Whether that has come.
pub fn is_readable(fd: RawFd, until_ns: Option<u64>) -> bool {
    let mut entries = [entry(fd, libc::POLLIN)];
    poll(&mut entries, until_ns);
    entries[0].revents != 0
}

/// For each of these whether it has something to read or has hung up by now.
pub fn are_readable(fds: impl Iterator<Item = RawFd>) -> Vec<bool> {
    let mut entries: Vec<libc::pollfd> = fds.map(|fd| entry(fd, libc::POLLIN)).collect();
    poll(&mut entries, Some(0));
    entries.iter().map(|entry| entry.revents != 0).collect()
}

/// Does nothing for `ms` milliseconds.
pub fn pause(ms: u64) {
    poll(&mut [], Some(clock::now_ns() + ms * NS_PER_MS));
}

fn entry(fd: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

/// Tells in the entries what has become of them. True: nothing has, of any, within the time; a
/// wait that fails tells nothing and gives false.
fn poll(entries: &mut [libc::pollfd], until_ns: Option<u64>) -> bool {
    let left_ms = |until_ns: u64| until_ns.saturating_sub(clock::now_ns()).div_ceil(NS_PER_MS);
    let timeout_ms =
        until_ns.map_or(-1, |until_ns| i32::try_from(left_ms(until_ns)).unwrap_or(i32::MAX));
    let count = libc::nfds_t::try_from(entries.len()).unwrap_or_default();
    // SAFETY: live pollfds, and as many as the count says.
    retried(|| unsafe { libc::poll(entries.as_mut_ptr(), count, timeout_ms) } as isize) == Ok(0)
}
