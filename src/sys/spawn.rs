//! From clone to exec (architecture.md, 5; process-model.md, Starting a child).
//!
//! The child shares our memory until it execs (CLONE_VM | CLONE_VFORK): making it costs the same
//! however much we hold. It shares our descriptors too, until it takes the few that it needs into a
//! table of its own (src/sys/few_fds.rs), so that it costs the same however many are open.
//! **Everything in [`child_main`] and below must be async-signal-safe**
//! (signal-safety(7)): no allocation, no locks, no formatting, no panics, no `Drop`; all strings
//! and lists are built before. Where sharing memory isn't real (the probe says so), the same
//! child runs in a copy and reports through a pipe.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use super::child;
use super::few_fds::{self, Places};
use super::host::FileLimit;
use super::io::{self, Io, errno};
use super::{pty, run_limit, signals};

/// The child's stack. It needs little: the deepest call is a system call's wrapper.
const STACK_BYTES: usize = 64 * 1024;

/// Where the way from clone to exec stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Making the process: EAGAIN, ENOMEM.
    Clone,
    /// Making its session: setsid(2).
    Session,
    /// Taking the PTY as its controlling terminal.
    Terminal,
    /// Putting its descriptors 0 to 2 in place.
    Stdio,
    /// Entering its working directory.
    Chdir,
    /// Replacing itself by the program: execve(2).
    Exec,
}

impl Step {
    const ALL: [Self; 6] =
        [Self::Clone, Self::Session, Self::Terminal, Self::Stdio, Self::Chdir, Self::Exec];

    fn code(self) -> i32 {
        Self::ALL.iter().zip(1..).find(|(step, _)| **step == self).map_or(0, |(_, code)| code)
    }

    fn from_code(code: i32) -> Self {
        Self::ALL.iter().zip(1..).find(|(_, c)| *c == code).map_or(Self::Exec, |(step, _)| *step)
    }
}

/// Why a child could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpawnError {
    /// The step that failed.
    pub step: Step,
    /// Its errno.
    pub errno: i32,
}

/// What to start. All strings are borrowed and must stay as they are during the call.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The program: an absolute path, or one relative to `cwd`.
    pub program: &'a CStr,
    /// Its arguments, the first being its name.
    pub argv: &'a [&'a CStr],
    /// Its environment, `NAME=value` each.
    pub envp: &'a [&'a CStr],
    /// Its working directory; `None` leaves ours.
    pub cwd: Option<&'a CStr>,
    /// The descriptors that become its 0, 1 and 2; either those very numbers or above 2.
    pub stdio: [RawFd; 3],
    /// Its stdin is a PTY's slave and becomes its controlling terminal.
    pub terminal: bool,
    /// The kernel kills it when we end (PR_SET_PDEATHSIG, SIGKILL).
    pub die_with_us: bool,
    /// The limit that marks it and all that it will start as a run of pi.
    pub run_limit: Option<u64>,
}

/// A record that the child writes about itself before it does anything else: whoever reads it
/// knows of the child before that can start anybody, even if we are killed meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Announcement {
    /// A pipe; full or without a reader, the record is not written.
    pub fd: RawFd,
    /// What comes before the child's pid.
    pub head: [u8; 4],
    /// What comes after it.
    pub tail: [u8; 24],
}

/// A started child.
#[derive(Debug)]
pub struct Child {
    /// Its process id; also its session and process group id.
    pub pid: i32,
    /// Its pidfd, close-on-exec.
    pub pidfd: OwnedFd,
    /// Whether it is known that the announcement was written.
    pub announced: bool,
}

/// Starts children. Holds what is the same for all of them.
#[derive(Debug)]
pub struct Spawner {
    stack: *mut c_void,
    ignored: Vec<i32>,
    file_limit: FileLimit,
    shares_memory: bool,
    /// Present when children share our descriptors until they take their own.
    places: Option<Places>,
}

/// What the child reads, and where it writes why it failed.
struct Order<'a> {
    argv: *const *const c_char,
    envp: *const *const c_char,
    plan: &'a Plan<'a>,
    ignored: &'a [i32],
    limit: &'a libc::rlimit,
    no_signals: libc::sigset_t,
    announcement: Option<Announcement>,
    announced: AtomicBool,
    /// Low numbers for its descriptors; absent when it has a copy of our table.
    places: Option<[RawFd; 3]>,
    parent: libc::pid_t,
    /// -1 when memory is shared, else the pipe to report through.
    report_fd: RawFd,
    step: AtomicI32,
    errno: AtomicI32,
}

impl Spawner {
    /// Prepares starting children with the signal dispositions as they are now. `allow_vfork`
    /// off forces the fallback (fork and an error pipe). Gives an errno when there is no memory
    /// for the stack.
    pub fn new(file_limit: FileLimit, allow_vfork: bool) -> Result<Self, i32> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh anonymous mapping; no existing memory is touched.
        let stack = unsafe { libc::mmap(ptr::null_mut(), STACK_BYTES, protection, flags, -1, 0) };
        if stack == libc::MAP_FAILED {
            return Err(errno());
        }
        let ignored = signals::ignored();
        let mut spawner = Self { stack, ignored, file_limit, shares_memory: false, places: None };
        spawner.shares_memory = allow_vfork && spawner.probe();
        if spawner.shares_memory {
            spawner.places = Places::open().filter(|places| spawner.unshares(places));
        }
        Ok(spawner)
    }

    /// Whether a child that shares our descriptors really can take its own.
    fn unshares(&self, places: &Places) -> bool {
        extern "C" fn close_one(fd: *mut c_void) -> c_int {
            // SAFETY: the argument is the RawFd below, alive until the child has ended.
            few_fds::probe(unsafe { *fd.cast::<RawFd>() });
            0
        }
        let first = places.numbers()[0];
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
        let argument = (&raw const first).cast_mut().cast();
        // SAFETY: the stack is ours and large enough, and `first` outlives the child.
        let pid = unsafe { libc::clone(close_one, self.stack_top(), flags, argument) };
        pid > 0 && child::exit_status(pid) == Some(0) && places.is_open()
    }

    /// Whether a vfork-style child really shares our memory (it doesn't under some emulators).
    fn probe(&self) -> bool {
        extern "C" fn mark(seen: *mut c_void) -> c_int {
            // SAFETY: the argument is the AtomicI32 below, alive until the child has ended.
            unsafe { &*seen.cast::<AtomicI32>() }.store(1, Ordering::SeqCst);
            0
        }
        let seen = AtomicI32::new(0);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let argument = (&raw const seen).cast_mut().cast();
        // SAFETY: the stack is ours and large enough, and `seen` outlives the child.
        let pid = unsafe { libc::clone(mark, self.stack_top(), flags, argument) };
        if pid > 0 {
            child::reap_now(pid);
        }
        seen.load(Ordering::SeqCst) == 1
    }

    fn stack_top(&self) -> *mut c_void {
        // SAFETY: one past the end of the mapping, where a stack that grows down begins.
        unsafe { self.stack.add(STACK_BYTES) }
    }

    /// Starts a child and returns when it has exec'ed (or failed to): a program on a hung
    /// network file system stalls the caller. On failure nothing of it is left.
    pub fn spawn(&self, plan: &Plan<'_>) -> Result<Child, SpawnError> {
        self.spawn_announced(plan, None).map_err(|(failure, _)| failure)
    }

    /// As [`Self::spawn`], with a word of the child about itself. A failure comes with the pid
    /// that was announced for nothing, where there was one.
    pub fn spawn_announced(
        &self,
        plan: &Plan<'_>,
        announcement: Option<Announcement>,
    ) -> Result<Child, (SpawnError, Option<i32>)> {
        let at_clone = |errno| (at_clone(errno), None);
        let pointers = |strings: &[&CStr]| -> Vec<*const c_char> {
            strings.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
        };
        let (argv, envp) = (pointers(plan.argv), pointers(plan.envp));
        let report = if self.shares_memory { None } else { Some(io::pipe().map_err(at_clone)?) };
        let order = Order {
            argv: argv.as_ptr(),
            envp: envp.as_ptr(),
            plan,
            ignored: &self.ignored,
            limit: &self.file_limit.original,
            no_signals: signals::empty_set(),
            announcement,
            announced: AtomicBool::new(false),
            places: self.places.as_ref().map(Places::numbers),
            parent: super::host::pid(),
            report_fd: report.as_ref().map_or(-1, |(_, write_end)| write_end.as_raw_fd()),
            step: AtomicI32::new(0),
            errno: AtomicI32::new(0),
        };
        let memory = if self.shares_memory { libc::CLONE_VM | libc::CLONE_VFORK } else { 0 };
        let files = if self.places.is_some() { libc::CLONE_FILES } else { 0 };
        let mut pidfd: c_int = -1;
        let argument = (&raw const order).cast_mut().cast();
        // No signal needs blocking around this: we handle none asynchronously, and the ones we
        // read from the signalfd are blocked in the child until just before exec.
        // SAFETY: the stack is ours, large enough and used by one child at a time (with shared
        // memory we are suspended until it execs or ends); `order` and all it points to outlive
        // that; the pidfd is written to a live int.
        let pid = unsafe {
            libc::clone(
                child_main,
                self.stack_top(),
                memory | files | libc::CLONE_PIDFD | libc::SIGCHLD,
                argument,
                &raw mut pidfd,
            )
        };
        if pid < 0 {
            return Err(at_clone(errno()));
        }
        if let Some(places) = &self.places {
            places.clear_after(&plan.stdio);
        }
        // SAFETY: clone made this descriptor for us alone (close-on-exec, clone(2)).
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        let failure = match report {
            None => failure_of(order.step.load(Ordering::SeqCst), &order.errno),
            Some((read_end, write_end)) => {
                drop(write_end);
                read_report(&read_end)
            }
        };
        match failure {
            None => Ok(Child { pid, pidfd, announced: order.announced.load(Ordering::SeqCst) }),
            Some(failure) => {
                child::reap_now(pid);
                Err((failure, announcement.map(|_| pid)))
            }
        }
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; no child uses it any more.
        unsafe { libc::munmap(self.stack, STACK_BYTES) };
    }
}

fn at_clone(errno: i32) -> SpawnError {
    SpawnError { step: Step::Clone, errno }
}

fn failure_of(step: i32, errno: &AtomicI32) -> Option<SpawnError> {
    (step != 0)
        .then(|| SpawnError { step: Step::from_code(step), errno: errno.load(Ordering::SeqCst) })
}

/// Reads (step, errno) from the error pipe; end of file means that exec happened.
fn read_report(read_end: &OwnedFd) -> Option<SpawnError> {
    let mut bytes = [0; 8];
    match io::read(read_end.as_raw_fd(), &mut bytes) {
        Io::Moved(8) => {
            let half = |at: usize| {
                i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
            };
            Some(SpawnError { step: Step::from_code(half(0)), errno: half(4) })
        }
        _ => None,
    }
}

/// The child. Async-signal-safe calls only (see the head of this file).
extern "C" fn child_main(order: *mut c_void) -> c_int {
    // SAFETY: the parent passes a pointer to an Order that outlives this function.
    let order = unsafe { &*order.cast::<Order<'_>>() };
    let (step, errno) = match prepare(order) {
        Err(failure) => failure,
        Ok(()) => {
            // SAFETY: null-terminated arrays of C strings, built by the parent.
            unsafe { libc::execve(order.plan.program.as_ptr(), order.argv, order.envp) };
            (Step::Exec, errno())
        }
    };
    if order.report_fd >= 0 {
        let mut report = [0; 8];
        report[..4].copy_from_slice(&step.code().to_ne_bytes());
        report[4..].copy_from_slice(&errno.to_ne_bytes());
        io::write(order.report_fd, &report);
    } else {
        order.errno.store(errno, Ordering::SeqCst);
        order.step.store(step.code(), Ordering::SeqCst);
    }
    // SAFETY: _exit runs no handlers of ours.
    unsafe { libc::_exit(127) }
}

/// Writes the record with our pid in it; whether that was done.
fn announce(announcement: &Announcement) -> bool {
    let mut record = [0; 32];
    let pid = super::host::pid().to_le_bytes();
    let bytes = announcement.head.iter().chain(&pid).chain(&announcement.tail);
    record.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    io::write(announcement.fd, &record) == Io::Moved(record.len())
}

/// All that comes before exec, in this order; gives the step that failed and its errno.
fn prepare(order: &Order<'_>) -> Result<(), (Step, i32)> {
    let plan = order.plan;
    if let Some(announcement) = &order.announcement {
        // First, while SIGPIPE is still ignored and the pipe still open.
        order.announced.store(announce(announcement), Ordering::SeqCst);
    }
    // exec keeps what is ignored: Rust ignores SIGPIPE, nohup ignores SIGHUP.
    for &signal in order.ignored {
        signals::set_default(signal);
    }
    // SAFETY: setsid has no preconditions; a fresh child leads no group, so it succeeds.
    if unsafe { libc::setsid() } < 0 {
        return Err((Step::Session, errno()));
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
        if unsafe { libc::dup2(source, target) } < 0 {
            return Err((Step::Stdio, errno()));
        }
    }
    // The belt to CLOEXEC's braces. The error pipe must live until exec, so then they are only
    // marked. A kernel without close_range (before 5.9) leaves it to CLOEXEC.
    let marking = if order.report_fd >= 0 { libc::CLOSE_RANGE_CLOEXEC } else { 0 };
    // SAFETY: closes or marks descriptors of this process's own table only.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, marking) };
    // SAFETY: a live rlimit. A failure leaves the raised limit, which harms nobody.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, order.limit) };
    if let Some(limit) = plan.run_limit {
        run_limit::set(limit);
    }
    if let Some(cwd) = plan.cwd {
        // SAFETY: a live C string.
        if unsafe { libc::chdir(cwd.as_ptr()) } < 0 {
            return Err((Step::Chdir, errno()));
        }
    }
    if plan.die_with_us {
        // SAFETY: this prctl takes its arguments by value.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
        // If the parent died before the prctl, no signal will come (prctl(2)).
        // SAFETY: getppid has no preconditions.
        if unsafe { libc::getppid() } != order.parent {
            return Err((Step::Session, libc::ESRCH));
        }
    }
    // Last, so that no signal that was blocked can hit a half-made child.
    // SAFETY: a live set; the old mask is not asked for.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const order.no_signals, ptr::null_mut()) };
    Ok(())
}
