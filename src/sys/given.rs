//! What this process was given when its program began: ignored signals, the mask of blocked ones,
//! open descriptors, entries of the environment. The command of `execd run` gets them as they were,
//! as env(1) hands them on.

use std::ffi::{CStr, CString, c_char};
use std::fs;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::signals::is_ignored;
use super::{io, raw, stdio};

/// Signals whose action execd changes for itself: the runtime ignores SIGPIPE, a log that may grow
/// no further is told by an errno instead of SIGXFSZ, and whoever ignores SIGCHLD learns of no end.
const CHANGED: [i32; 3] = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGCHLD];
/// Bytes of the kernel's set of signals.
const KERNEL_SET_BYTES: usize = 8;
/// The first descriptor that is not a standard one.
const FIRST_OTHER: RawFd = 3;

/// Which of [`CHANGED`] were ignored, a bit each.
static IGNORED: AtomicU8 = AtomicU8::new(0);
/// The blocked signals, as the kernel has them in a set.
static BLOCKED: AtomicU64 = AtomicU64::new(0);

// SAFETY: the C library declares it so.
unsafe extern "C" {
    /// The environment (environ(7)).
    static environ: *const *const c_char;
}

/// Notes how signals are treated, before Rust's runtime changes that.
extern "C" fn note_signals() {
    for (signal, bit) in CHANGED.into_iter().zip(0..) {
        if is_ignored(signal) {
            IGNORED.fetch_or(1 << bit, Ordering::Relaxed);
        }
    }
    let mut mask: u64 = 0;
    let nothing: *const u64 = ptr::null();
    let (how, place) = (libc::SIG_SETMASK, &raw mut mask);
    // SAFETY: asks only; the mask is written to the place given, which is as large.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, nothing, place, KERNEL_SET_BYTES) };
    BLOCKED.store(mask, Ordering::Relaxed);
}

// The C library runs these before main.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_SIGNALS: extern "C" fn() = note_signals;

/// Gives the signals that execd treats in its own way the action that they had when execd began
/// (async-signal-safe: used between clone and exec).
pub(super) fn restore_actions() {
    let ignored = IGNORED.load(Ordering::Relaxed);
    for (signal, bit) in CHANGED.into_iter().zip(0..) {
        let action = if ignored & (1 << bit) != 0 { libc::SIG_IGN } else { libc::SIG_DFL };
        raw::set_action(signal, action);
    }
}

/// The signals that were blocked when execd began, as the kernel has them in a set.
pub(super) fn blocked_signals() -> u64 {
    BLOCKED.load(Ordering::Relaxed)
}

/// Closes stdin where it was closed when execd began, unless a terminal takes its place
/// (async-signal-safe: used between clone and exec).
pub(super) fn close_what_was_closed(terminal: bool) {
    if stdio::was_closed(0) && !terminal {
        raw::close(0);
    }
}

/// The entries of the environment as they are, also those that are no `NAME=value`, in their order.
pub fn environment() -> Vec<CString> {
    let mut entries = Vec::new();
    // SAFETY: the array that exec has made, which nothing in execd changes: it ends with a null
    // pointer, and each pointer before that is to a C string.
    unsafe {
        let mut place = environ;
        while !place.is_null() && !(*place).is_null() {
            entries.push(CStr::from_ptr(*place).to_owned());
            place = place.add(1);
        }
    }
    entries
}

/// Gives up the descriptors that were handed to execd for its command, which has them by now: who
/// waits for the last holder of one to close it must not wait for execd. execd's own are known by
/// their flag to be closed by exec, and the standard ones stay. Where /proc does not list them,
/// they stay open.
pub fn let_go() {
    let Ok(listed) = fs::read_dir("/proc/self/fd") else { return };
    let numbers = listed.flatten().filter_map(|one| one.file_name().to_str()?.parse().ok());
    let others: Vec<RawFd> = numbers.filter(|fd| *fd >= FIRST_OTHER).collect();
    for fd in others {
        // SAFETY: asks for a flag of a descriptor; one that is not open is refused.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } == 0 {
            // SAFETY: nothing in execd uses a descriptor without that flag.
            unsafe { libc::close(fd) };
        }
    }
}

/// Puts `null`, which is /dev/null, in place of stdin, which is the command's alone from here on:
/// who writes to it learns when the command has closed it.
pub fn let_go_of_stdin(null: RawFd) {
    // SAFETY: plain descriptor numbers; a refusal leaves stdin as it is.
    unsafe { libc::dup2(null, 0) };
}

/// The kernel session that execd is in, where that has a terminal that we may open: its number.
pub fn session_with_terminal() -> Option<i32> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: a C string literal; the descriptor is closed when it is dropped.
    io::owned(unsafe { libc::open(c"/dev/tty".as_ptr(), flags) }).ok()?;
    // SAFETY: getsid only asks.
    Some(unsafe { libc::getsid(0) }).filter(|sid| *sid > 0)
}

/// Whether execd leads its kernel session itself: what started it is no shell that waits for it.
pub fn leads_session() -> bool {
    // SAFETY: both only ask.
    unsafe { libc::getsid(0) == libc::getpid() }
}
