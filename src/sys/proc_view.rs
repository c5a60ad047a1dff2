//! Whether /proc tells of the processes here, and what the kernel tells without it. A /proc that is
//! not mounted tells nothing, that of another pid namespace tells of strangers under the same
//! numbers, and one that is mounted with `hidepid` leaves processes out (proc(5)).

use std::fs;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU8, Ordering};

use super::io::errno;
use super::{child, host};
use crate::limits::{PIDS_ALL, PIDS_FEW, PIDS_PER_STEP};

/// How much of the processes here /proc tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// All of them.
    Whole = 1,
    /// Those of our user alone (hidepid); programs with other rights (sudo) are left out.
    Hides = 2,
    /// Others: it is that of another pid namespace.
    Foreign = 3,
    /// None: it is not mounted.
    Missing = 4,
}

/// What [`look`] has found last; 0: it was not asked yet.
static LAST: AtomicU8 = AtomicU8::new(0);

/// How much /proc tells, as was found last; looks where that was never asked.
pub fn view() -> View {
    match LAST.load(Ordering::Relaxed) {
        1 => View::Whole,
        2 => View::Hides,
        3 => View::Foreign,
        4 => View::Missing,
        _ => look(),
    }
}

/// Whether the numbers in /proc are those of the processes here.
pub fn tells() -> bool {
    matches!(view(), View::Whole | View::Hides)
}

/// Looks how much /proc tells: two system calls where it tells all.
pub fn look() -> View {
    let own = fs::read_link("/proc/self").ok();
    let is_ours = |link: &std::path::PathBuf| link.as_os_str() == host::pid().to_string().as_str();
    let view = match own {
        Some(link) if is_ours(&link) => {
            // SAFETY: a live C string; the call only asks.
            let hidden = unsafe { libc::access(c"/proc/1/stat".as_ptr(), libc::F_OK) } < 0;
            if hidden { View::Hides } else { View::Whole }
        }
        Some(_) => View::Foreign,
        // Of a process that it does not have its link leads nowhere.
        None if fs::symlink_metadata("/proc/self").is_ok() => View::Foreign,
        None => View::Missing,
    };
    LAST.store(view as u8, Ordering::Relaxed);
    view
}

impl View {
    /// Why it does not tell all, for people; `None` where it does.
    pub fn why(self) -> Option<&'static str> {
        match self {
            Self::Whole => None,
            Self::Hides => Some("it hides processes of other users (hidepid)"),
            Self::Foreign => Some("it is that of another pid namespace"),
            Self::Missing => Some("it is not mounted"),
        }
    }
}

/// Whether a signal of ours would reach this process.
pub fn may_signal(pid: i32) -> bool {
    // SAFETY: kill takes two numbers, and signal 0 is sent to nobody.
    unsafe { libc::kill(pid, 0) == 0 }
}

/// The numbers that processes may have, for want of a list of them.
#[derive(Debug)]
pub struct Numbers(RangeInclusive<i32>);

impl Numbers {
    /// Those that have been given out by now, unless they went round since; `all`: whatever the
    /// kernel may give.
    pub fn new(all: bool) -> Self {
        let last = if all { None } else { newest() };
        Self(1..=last.map_or(PIDS_ALL, |newest| newest.max(PIDS_FEW)))
    }
}

impl Iterator for Numbers {
    type Item = i32;

    /// The next process among so many numbers; where there is none, one that nobody has.
    fn next(&mut self) -> Option<i32> {
        let mut some = self.0.by_ref().take(PIDS_PER_STEP).peekable();
        let first = *some.peek()?;
        Some(some.find(|pid| is_process(*pid)).unwrap_or(first))
    }
}

/// Whether a process has this number, and not one of the threads of a process.
fn is_process(pid: i32) -> bool {
    // SAFETY: both take numbers and touch no memory of ours; signal 0 is sent to nobody.
    unsafe {
        libc::getsid(pid) >= 0
            && (libc::syscall(libc::SYS_tgkill, pid, pid, 0) == 0 || errno() != libc::ESRCH)
    }
}

/// The number that the kernel has given out last: that of a child made for this. None: no process
/// can be made.
fn newest() -> Option<i32> {
    // SAFETY: the child does nothing but end.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: _exit runs nothing of ours.
        unsafe { libc::_exit(0) };
    }
    if pid < 0 {
        return None;
    }
    child::reap_now(pid);
    Some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::keeper_calls::testing::Spawned;
    use crate::sys::proc;

    /// rule: architecture.md, Without /proc: Processes are found by their numbers
    #[test]
    fn numbers_find_the_processes_that_proc_lists() {
        let child = Spawned::shell("sleep 60 & wait", &[]);
        let of_session = |pid: &i32| proc::session_of(*pid) == Some(child.pid);
        assert!(Numbers::new(false).filter(of_session).any(|pid| pid == child.pid));
        let threads = Numbers::new(false).filter(|pid| *pid != 1 && !is_process(*pid)).count();
        assert!(threads > 0, "of a step with nobody a number is given all the same");
        assert!(may_signal(child.pid));
        assert!(!may_signal(PIDS_ALL + 1));
    }

    #[test]
    fn the_own_view_is_whole_or_says_why_it_is_not() {
        let view = look();
        assert_eq!(view.why().is_none(), view == View::Whole);
        assert_eq!(super::view(), view);
    }
}
