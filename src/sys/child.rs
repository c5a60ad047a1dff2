//! Waiting for children: peeking at any, reaping one (wait(2)). Whose child it was, and what its
//! end means, the caller knows.

use std::mem::MaybeUninit;
use std::os::fd::RawFd;

use super::io::errno;
use super::pidfd;
use crate::pure::process::life::ExitStatus;

/// What a peek found: a child with an event that is still to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peek {
    /// The child's process id.
    pub pid: i32,
    /// What happened.
    pub event: Event,
    /// The signal that ended, stopped or continued it, or its exit code.
    pub status: i32,
}

/// An event of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The child ended, and is a zombie until it is reaped.
    Ended,
    /// A signal stopped the child.
    Stopped,
    /// A signal let the child go on.
    Continued,
}

/// What a reaped child used, together with those of its own children that it has waited for
/// (getrusage(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// User and system time.
    pub cpu_us: u64,
    /// Peak resident set.
    pub max_rss_kib: u64,
}

impl Usage {
    /// Its time on a processor, in seconds.
    #[allow(clippy::cast_precision_loss)] // Microseconds of CPU time fit a float's mantissa.
    pub fn cpu_seconds(self) -> f64 {
        self.cpu_us as f64 / 1e6
    }

    /// What both used together.
    pub fn with(self, other: Self) -> Self {
        Self {
            cpu_us: self.cpu_us + other.cpu_us,
            max_rss_kib: self.max_rss_kib.max(other.max_rss_kib),
        }
    }
}

fn wait(
    kind: libc::idtype_t,
    id: i32,
    options: i32,
) -> Result<Option<(libc::siginfo_t, Usage)>, i32> {
    let id = libc::id_t::try_from(id).map_err(|_| libc::ESRCH)?;
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // The raw call: only it gives the usage of just this child (wait(2), C library differences).
    // SAFETY: both places are live and large enough.
    let done = unsafe {
        libc::syscall(libc::SYS_waitid, kind, id, info.as_mut_ptr(), options, usage.as_mut_ptr())
    };
    if done < 0 {
        return Err(errno());
    }
    // SAFETY: zeroed is a valid value of both, and the kernel filled them in.
    let (info, usage) = unsafe { (info.assume_init(), usage.assume_init()) };
    // SAFETY: waitid filled in the SIGCHLD fields, or left the zeroes that mean "no child".
    if unsafe { info.si_pid() } == 0 {
        return Ok(None);
    }
    let us =
        |time: libc::timeval| time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_usec.unsigned_abs();
    let usage = Usage {
        cpu_us: us(usage.ru_utime) + us(usage.ru_stime),
        max_rss_kib: usage.ru_maxrss.unsigned_abs(),
    };
    Ok(Some((info, usage)))
}

/// Looks at one child that has something to tell, without taking it; `None` when none has. Gives an
/// errno when that cannot be told now.
pub fn peek_any() -> Result<Option<Peek>, i32> {
    let options = libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED | libc::WNOHANG | libc::WNOWAIT;
    let (info, _) = match wait(libc::P_ALL, 0, options) {
        Ok(Some(found)) => found,
        // No child at all.
        Ok(None) | Err(libc::ECHILD) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let event = match info.si_code {
        libc::CLD_STOPPED | libc::CLD_TRAPPED => Event::Stopped,
        libc::CLD_CONTINUED => Event::Continued,
        _ => Event::Ended,
    };
    // SAFETY: waitid filled in the SIGCHLD fields.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    Ok(Some(Peek { pid, event, status }))
}

/// Whether this process has a child, one that has ended and is not reaped included.
pub fn has_any() -> bool {
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    wait(libc::P_ALL, 0, options) != Err(libc::ECHILD)
}

fn status_of(info: &libc::siginfo_t) -> ExitStatus {
    // SAFETY: waitid filled in the SIGCHLD fields.
    let status = unsafe { info.si_status() };
    if info.si_code == libc::CLD_EXITED {
        ExitStatus::Code(status)
    } else {
        ExitStatus::Signal(status)
    }
}

/// Reaps the child of this pidfd if it has ended; `None` when it lives. Gives an errno when it
/// cannot be told.
pub fn reap_pidfd(pidfd: RawFd) -> Result<Option<(ExitStatus, Usage)>, i32> {
    let found = wait(libc::P_PIDFD, pidfd, libc::WEXITED | libc::WNOHANG)?;
    Ok(found.map(|(info, usage)| (status_of(&info), usage)))
}

/// Takes one event of the child `pid`: reaps it when it has ended, and gives what it used then.
/// Gives an errno when nothing could be taken.
pub fn take(pid: i32) -> Result<Option<Usage>, i32> {
    let options = libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED | libc::WNOHANG;
    let Some((info, usage)) = wait(libc::P_PID, pid, options)? else { return Ok(None) };
    let ended = matches!(info.si_code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED);
    Ok(ended.then_some(usage))
}

/// Takes a stop or continue event of the child `pid`, leaving an end where it is.
pub fn take_stop(pid: i32) {
    let _ = wait(libc::P_PID, pid, libc::WSTOPPED | libc::WCONTINUED | libc::WNOHANG);
}

/// Waits for the end of a child that has ended already or does so at once (a failed spawn). Gives
/// its exit status; `None` where it has none.
pub fn reap_now(pid: i32) -> Option<ExitStatus> {
    let (info, _) = wait(libc::P_PID, pid, libc::WEXITED).ok()??;
    Some(status_of(&info))
}

/// Sends SIGKILL through a pidfd to a child that is to be taken back.
pub fn kill_now(pidfd: RawFd, pid: i32) {
    // Whoever has ended needs no end.
    let _ = pidfd::signal(pidfd, pid, libc::SIGKILL);
}

/// Ends a child of which there is no pidfd, and waits for its end.
pub(super) fn kill_unwatched(pid: i32) {
    // SAFETY: takes two numbers; a child that was not reaped keeps its own.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    reap_now(pid);
}
