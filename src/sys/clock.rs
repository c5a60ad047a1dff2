//! The two clocks and their timerfds (architecture.md, The turn).

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::io::{self, done, owned};
use crate::limits::{NS_PER_MS, NS_PER_S};

fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec, which stays as it is where there is no such clock.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
}

/// A clock in nanoseconds; 0 where there is no such clock.
pub(super) fn read_ns(clock: libc::clockid_t) -> u64 {
    let time = read(clock);
    time.tv_sec.unsigned_abs() * NS_PER_S + time.tv_nsec.unsigned_abs()
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn now_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// The CPU time that this thread has used, in nanoseconds.
pub fn used_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CLOCK_REALTIME in milliseconds since 1970 (UTC).
pub fn wall_ms() -> i64 {
    let time = read(libc::CLOCK_REALTIME);
    time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
}

/// One timerfd with absolute times.
#[derive(Debug)]
pub struct Timer {
    fd: OwnedFd,
    flags: i32,
}

impl Timer {
    /// A disarmed timer on CLOCK_MONOTONIC, or an errno.
    pub fn monotonic() -> Result<Self, i32> {
        Self::new(libc::CLOCK_MONOTONIC, libc::TFD_TIMER_ABSTIME)
    }

    /// A disarmed timer on CLOCK_REALTIME that also fires when somebody sets the clock
    /// (TFD_TIMER_CANCEL_ON_SET, timerfd_create(2)), or an errno.
    pub fn wall() -> Result<Self, i32> {
        let flags = libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET;
        Self::new(libc::CLOCK_REALTIME, flags)
    }

    fn new(clock: libc::clockid_t, flags: i32) -> Result<Self, i32> {
        // SAFETY: no pointers; the descriptor returned is ours.
        let fd = unsafe { libc::timerfd_create(clock, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
        Ok(Self { fd: owned(fd)?, flags })
    }

    /// The descriptor, for the poll.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Fires once at the absolute time `at_ns` of the timer's clock; `None` disarms it.
    /// A time that is past fires at once. Gives an errno when the kernel refuses.
    pub fn arm(&self, at_ns: Option<u64>) -> Result<(), i32> {
        // Zero would disarm: the earliest time is one nanosecond.
        let at_ns = at_ns.map_or(0, |at| at.max(1));
        let at = libc::timespec {
            tv_sec: i64::try_from(at_ns / NS_PER_S).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(at_ns % NS_PER_S).unwrap_or(0),
        };
        let spec = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: at,
        };
        // SAFETY: the new value is a live itimerspec, the old value is not asked for.
        done(unsafe {
            libc::timerfd_settime(self.fd(), self.flags, &raw const spec, std::ptr::null_mut())
        })
    }

    /// Takes the expiry (or the cancellation) off the descriptor.
    pub fn drain(&self) {
        let mut count = [0; 8];
        // Nothing to do about any outcome: the caller looks at its own deadlines.
        let _ = io::read(self.fd(), &mut count);
    }
}

/// A wall time in milliseconds as the nanoseconds that a wall [`Timer`] takes.
pub fn wall_ns(unix_ms: i64) -> u64 {
    u64::try_from(unix_ms).unwrap_or(0).saturating_mul(NS_PER_MS)
}
