//! The resource limit that marks the processes of a run of pi, and those of any session
//! (src/pure/process/run_mark.rs).

use std::mem::MaybeUninit;
use std::ptr;

/// The hard limit of a process; of this one for 0. To ask for it takes one system call and, unlike
/// the environment in /proc, no lock that a process in uninterruptible sleep may hold. None: the
/// process is gone, or not ours to ask.
pub fn of(pid: i32) -> Option<u64> {
    both_of(pid).map(|limit| limit.rlim_max)
}

/// Its soft limit, in the same way.
pub fn soft_of(pid: i32) -> Option<u64> {
    both_of(pid).map(|limit| limit.rlim_cur)
}

fn both_of(pid: i32) -> Option<libc::rlimit64> {
    let mut limit = MaybeUninit::<libc::rlimit64>::uninit();
    let no_change: *const libc::rlimit64 = ptr::null();
    // The raw call: not every C library declares it.
    // SAFETY: asks only; the limit is written to the place given, which is as large.
    let asked = unsafe {
        libc::syscall(libc::SYS_prlimit64, pid, libc::RLIMIT_RTTIME, no_change, limit.as_mut_ptr())
    };
    // SAFETY: the kernel has filled it in.
    (asked == 0).then(|| unsafe { limit.assume_init() })
}

/// Sets the limits, the soft one first, for this process and all that it will start
/// (async-signal-safe: used between clone and exec). A kernel that refuses leaves what it was.
pub(super) fn set((soft, hard): (u64, u64)) {
    let both = libc::rlimit64 { rlim_cur: soft, rlim_max: hard };
    let nothing: *mut libc::rlimit64 = ptr::null_mut();
    // SAFETY: a live limit; the former one is not asked for.
    unsafe { libc::syscall(libc::SYS_prlimit64, 0, libc::RLIMIT_RTTIME, &raw const both, nothing) };
}
