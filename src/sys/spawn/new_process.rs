//! What a new process does between clone and exec. **Everything but [`Order::outcome`] must be
//! async-signal-safe** (src/sys/spawn.rs says why).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use super::plan::{Announcement, Plan, SpawnError, Step};
use super::report::{self, Began, Report};
use crate::sys::io::{self, Io, done, errno};
use crate::sys::{few_fds, given, host, pty, signals};

/// The number that the report pipe has in a child: the first behind its standard descriptors.
pub(super) const REPORT_FD: RawFd = 3;

/// The shell of a script that names none, as execvp(3) has it.
const SHELL: &CStr = c"/bin/sh";

/// Descriptors that are closed one by one where the kernel can't close them all at once.
const CLOSED_ONE_BY_ONE: RawFd = 65_536;

/// What is wrong with one place on PATH and says nothing of the next: there is nothing, it is no
/// program, we may not look, or its file system is of no use.
const NOT_HERE: [i32; 11] = [
    libc::ENOENT,
    libc::ENOTDIR,
    libc::EACCES,
    libc::ELOOP,
    libc::ENAMETOOLONG,
    libc::EIO,
    libc::ENODEV,
    libc::ENXIO,
    libc::ENOTCONN,
    libc::ESTALE,
    libc::ETIMEDOUT,
];

/// What the child reads, and where it writes why it failed.
pub(super) struct Order<'a> {
    pub(super) argv: *const *const c_char,
    /// The words for /bin/sh where the program is a script that names no shell: two places before
    /// the program's arguments, for its name and the script's. Null: such a script is no program.
    pub(super) of_shell: *mut *const c_char,
    pub(super) envp: *const *const c_char,
    pub(super) plan: &'a Plan<'a>,
    pub(super) ignored: &'a [i32],
    pub(super) limit: &'a libc::rlimit,
    pub(super) no_signals: libc::sigset_t,
    pub(super) announcement: Option<Announcement>,
    pub(super) announced: AtomicBool,
    /// Low numbers for its descriptors; absent when it has a copy of our table.
    pub(super) places: Option<[RawFd; 3]>,
    pub(super) parent: libc::pid_t,
    /// -1 when memory is shared, else the pipe to report through.
    pub(super) report_fd: AtomicI32,
    pub(super) step: AtomicI32,
    pub(super) errno: AtomicI32,
    /// The number of the program that is tried.
    pub(super) tried: AtomicI32,
}

impl Order<'_> {
    /// What a child that shared our memory left there.
    pub(super) fn outcome(&self) -> Result<Began, SpawnError> {
        let step = self.step.load(Ordering::SeqCst);
        if step == 0 {
            return Ok(Began::Runs(
                usize::try_from(self.tried.load(Ordering::SeqCst)).unwrap_or(0),
            ));
        }
        let errno = self.errno.load(Ordering::SeqCst);
        Err(SpawnError { step: Step::from_code(step), errno })
    }

    /// Tells how far the child is. Async-signal-safe.
    fn tell(&self, report: Report) {
        let report_fd = self.report_fd.load(Ordering::SeqCst);
        if report_fd >= 0 {
            report::send(report_fd, report);
            return;
        }
        match report {
            Report::Prepared => {}
            Report::Tries(number) => self.tried.store(number, Ordering::SeqCst),
            Report::Failed(SpawnError { step, errno }) => {
                self.errno.store(errno, Ordering::SeqCst);
                self.step.store(step.code(), Ordering::SeqCst);
            }
        }
    }
}

/// The child. Async-signal-safe calls only (see the head of this file).
pub(super) extern "C" fn child_main(order: *mut c_void) -> c_int {
    // SAFETY: the parent passes a pointer to an Order that outlives this function.
    let order = unsafe { &*order.cast::<Order<'_>>() };
    let (step, errno) = match prepare(order).and_then(|()| enter(order)) {
        Err(failure) => failure,
        Ok(()) => (Step::Exec, exec(order)),
    };
    order.tell(Report::Failed(SpawnError { step, errno }));
    // SAFETY: _exit runs no handlers of ours.
    unsafe { libc::_exit(127) }
}

/// Writes the record with our pid in it; whether that was done.
fn announce(announcement: &Announcement) -> bool {
    let mut record = [0; 32];
    let pid = host::pid().to_le_bytes();
    let bytes = announcement.head.iter().chain(&pid).chain(&announcement.tail);
    record.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    io::write(announcement.fd, &record) == Io::Moved(record.len())
}

/// All that touches no file, in this order; gives the step that failed and its errno. When it
/// returns, the child leads its session, can be ended by any signal and dies with us: where it
/// may hang from here on, it is found and ended like any other process.
fn prepare(order: &Order<'_>) -> Result<(), (Step, i32)> {
    let plan = order.plan;
    if let Some(announcement) = &order.announcement {
        // First, while SIGPIPE is still ignored and the pipe still open.
        order.announced.store(announce(announcement), Ordering::SeqCst);
    }
    // exec keeps what is ignored: Rust ignores SIGPIPE, nohup ignores SIGHUP.
    if plan.as_given {
        given::restore_actions();
    } else {
        order.ignored.iter().for_each(|&signal| signals::set_default(signal));
    }
    if !plan.joins {
        // SAFETY: setsid has no preconditions; a fresh child leads no group, so it succeeds.
        done(unsafe { libc::setsid() }).map_err(|errno| (Step::Session, errno))?;
    }
    if plan.terminal {
        pty::take_as_terminal(plan.stdio[0]).map_err(|errno| (Step::Terminal, errno))?;
    }
    let stdio = match order.places {
        None => plan.stdio,
        Some(places) => few_fds::take(plan.stdio, places).map_err(|errno| (Step::Stdio, errno))?,
    };
    for (source, target) in stdio.into_iter().zip(0..) {
        // dup2 onto itself leaves the descriptor alone, which is right: 0 to 2 are inheritable.
        // SAFETY: plain descriptor numbers.
        done(unsafe { libc::dup2(source, target) }).map_err(|errno| (Step::Stdio, errno))?;
    }
    if plan.as_given {
        // Our own descriptors are closed by exec.
        given::close_what_was_closed(plan.terminal);
    } else {
        keep_only_stdio(order);
    }
    // SAFETY: a live rlimit. A failure leaves the raised limit, which harms nobody.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, order.limit) };
    if plan.die_with_us {
        // SAFETY: this prctl takes its arguments by value.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
        // If the parent died before the prctl, no signal will come (prctl(2)).
        if host::parent_pid() != order.parent {
            return Err((Step::Session, libc::ESRCH));
        }
    }
    if plan.as_given {
        given::restore_mask();
    } else {
        // SAFETY: a live set; the old mask is not asked for.
        unsafe {
            libc::sigprocmask(libc::SIG_SETMASK, &raw const order.no_signals, ptr::null_mut())
        };
    }
    order.tell(Report::Prepared);
    Ok(())
}

/// Closes all descriptors above 2, but for the report pipe, which exec closes: the belt to
/// CLOEXEC's braces, and what a child that hangs before exec must not hold open.
fn keep_only_stdio(order: &Order<'_>) {
    let report_fd = order.report_fd.load(Ordering::SeqCst);
    let mut first = 3;
    if report_fd >= 0 {
        // SAFETY: plain descriptor numbers of the child's own table.
        let place = || unsafe { libc::dup3(report_fd, REPORT_FD, libc::O_CLOEXEC) };
        if report_fd != REPORT_FD && place() < 0 {
            return;
        }
        if order.plan.twofold {
            // SAFETY: as above.
            unsafe { libc::fcntl(REPORT_FD, libc::F_SETFD, 0) };
        }
        order.report_fd.store(REPORT_FD, Ordering::SeqCst);
        first = REPORT_FD + 1;
    }
    // SAFETY: closes descriptors of this process's own table only.
    if unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) } < 0 && order.plan.apart {
        // A kernel without it (before 5.9). Who does not hang leaves it to CLOEXEC.
        for fd in first..CLOSED_ONE_BY_ONE {
            // SAFETY: as above.
            unsafe { libc::close(fd) };
        }
    }
}

/// Enters the working directory, which may hang.
fn enter(order: &Order<'_>) -> Result<(), (Step, i32)> {
    match order.plan.cwd {
        // SAFETY: a live C string.
        Some(cwd) if unsafe { libc::chdir(cwd.as_ptr()) } < 0 => Err((Step::Chdir, errno())),
        _ => Ok(()),
    }
}

/// Replaces us by the first of the programs that can be; gives the errno of why none can.
fn exec(order: &Order<'_>) -> i32 {
    let programs = order.plan.programs.iter().copied();
    let tell = |number| order.tell(Report::Tries(number));
    exec_first(programs, order.plan.looked_up, (order.argv, order.envp), order.of_shell, tell)
}

/// Whether this is a file: where execve(2) says EACCES it may be a directory as well, or lie in one
/// that may not be searched. Async-signal-safe.
fn is_file(path: &CStr) -> bool {
    let mut facts = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: a live C string and a live stat, for which all zeroes are a value.
    let facts = unsafe {
        if libc::stat(path.as_ptr(), facts.as_mut_ptr()) < 0 {
            return false;
        }
        facts.assume_init()
    };
    facts.st_mode & libc::S_IFMT == libc::S_IFREG
}

/// Replaces this process by the first of the programs that can be; `tell` hears the number of each
/// before it is tried. `of_shell`: null, or the array whose second place `argv` is, for what
/// execvp(3) does with a program in no format that the kernel knows: /bin/sh reads it. Gives the
/// errno of why none can: of those on PATH EACCES where one is there, as a shell has it.
/// Async-signal-safe where `tell` is.
pub(super) fn exec_first<'a>(
    programs: impl Iterator<Item = &'a CStr>,
    looked_up: bool,
    (argv, envp): (*const *const c_char, *const *const c_char),
    of_shell: *mut *const c_char,
    tell: impl Fn(i32),
) -> i32 {
    let mut why = libc::ENOENT;
    for (program, number) in programs.zip(0..) {
        tell(number);
        // SAFETY: null-terminated arrays of C strings, which whoever calls has built and keeps.
        unsafe { libc::execve(program.as_ptr(), argv, envp) };
        let errno = errno();
        if errno == libc::ENOEXEC && !of_shell.is_null() {
            // SAFETY: the array has two places at least, and only this child uses it now.
            unsafe {
                of_shell.write(SHELL.as_ptr());
                of_shell.add(1).write(program.as_ptr());
                libc::execve(SHELL.as_ptr(), of_shell, envp);
            }
            return errno;
        }
        if !looked_up || !NOT_HERE.contains(&errno) {
            return errno;
        }
        if errno == libc::EACCES && is_file(program) {
            why = errno;
        }
    }
    why
}
