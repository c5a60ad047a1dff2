//! The signalfd, and what a child must find reset (architecture.md, Starting a child).

use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::io::{self, Io, done, owned};
use super::raw;

/// The signals that execd reads from its signalfd.
pub const WATCHED: [i32; 4] = [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// What a command in front is told besides: the keys of its terminal, the size of the terminal, the
/// signals that mean what a program makes of them, and that it goes on after a stop.
const IN_FRONT: [i32; 6] =
    [libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2, libc::SIGWINCH, libc::SIGTSTP, libc::SIGCONT];

/// What a program at a terminal is told: that the terminal has another size; that the program goes
/// on after a stop; that it is to end, in four ways, and in three more that somebody may use by
/// mistake.
pub const AT_A_TERMINAL: [i32; 9] = [
    libc::SIGWINCH,
    libc::SIGCONT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
];
/// The size of the terminal has changed.
pub const SIGWINCH: i32 = libc::SIGWINCH;
/// The process is to stop: Ctrl-Z.
pub const SIGTSTP: i32 = libc::SIGTSTP;
/// The process is stopped, and cannot help it.
pub const SIGSTOP: i32 = libc::SIGSTOP;
/// Ctrl-\.
pub const SIGQUIT: i32 = libc::SIGQUIT;
/// The terminal has gone.
pub const SIGHUP: i32 = libc::SIGHUP;
/// The process is asked to end.
pub const SIGTERM: i32 = libc::SIGTERM;
/// The process goes on after it was stopped.
pub const SIGCONT: i32 = libc::SIGCONT;
/// A child has ended, or was stopped.
pub const SIGCHLD: i32 = libc::SIGCHLD;
/// Ctrl-C.
pub const SIGINT: i32 = libc::SIGINT;
/// The signal that nothing survives, see signal(7).
pub const SIGKILL: i32 = libc::SIGKILL;

/// Sent for a write over RLIMIT_FSIZE, see setrlimit(2).
pub const SIGXFSZ: i32 = libc::SIGXFSZ;

/// Highest number of a signal, see signal(7).
const LAST_SIGNAL: i32 = 64;
/// Bytes of the kernel's set of signals.
const KERNEL_SET_BYTES: usize = 8;
/// The kernel's own sigaction, as rt_sigaction(2) takes it: the handler, then flags, restorer
/// and mask, which are all zero for the default.
type KernelAction = [usize; 4];

fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set that it is given.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialised by the call above.
    let mut set = unsafe { set.assume_init() };
    for &signal in signals {
        // SAFETY: a live set and a valid signal number.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

/// The action of `signal` in this process now; none for a number that the kernel does not have. The
/// raw call: the C library refuses to tell about 32 and 33, which are its own, but a parent without
/// it may have left them ignored.
fn action_of(signal: i32) -> Option<libc::sighandler_t> {
    let mut now: KernelAction = [0; 4];
    let nothing: *const KernelAction = std::ptr::null();
    let place = &raw mut now;
    // SAFETY: asks only; the present action is written to the place given, which is as large.
    let asked =
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, nothing, place, KERNEL_SET_BYTES) };
    (asked == 0).then_some(now[0])
}

/// Whether `signal` is ignored by this process now.
pub fn is_ignored(signal: i32) -> bool {
    action_of(signal) == Some(libc::SIG_IGN)
}

/// The signals that this process ignores, real-time ones too: exec(3p) keeps what is ignored.
pub fn ignored() -> Vec<i32> {
    (1..=LAST_SIGNAL).filter(|&signal| is_ignored(signal)).collect()
}

/// The signals that this process has a handler for.
pub(super) fn handled() -> Vec<i32> {
    let actions = (1..=LAST_SIGNAL).filter_map(|signal| Some((signal, action_of(signal)?)));
    let handled = actions.filter(|(_, action)| ![libc::SIG_DFL, libc::SIG_IGN].contains(action));
    handled.map(|(signal, _)| signal).collect()
}

/// Sets the default action of `signal`.
pub(super) fn set_default(signal: i32) {
    raw::set_action(signal, libc::SIG_DFL);
}

/// Sends a signal to all of a process group. That nobody of it is left, or may be signalled, is no
/// error: its leader's parent learns of the leader's end in another way.
pub fn signal_group(group: i32, signal: i32) {
    // 0 and 1 would mean our own group, and everybody (kill(2)).
    if group > 1 {
        // SAFETY: kill takes two numbers.
        unsafe { libc::kill(-group, signal) };
    }
}

/// Stops this process until somebody lets it go on.
pub fn stop_self() {
    // SAFETY: raise takes a number; SIGSTOP comes before the call returns.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Ends this process by `signal`, as if it had never been told of it, and without a core dump.
/// Comes back where the signal ends no process.
pub fn die_of(signal: i32) {
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live limit of our own; where it is refused, a dump is written.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core) };
    set_default(signal);
    let set = set_of(&[signal]);
    // SAFETY: raise takes a number; a live set, and the old mask is not asked for.
    unsafe {
        libc::raise(signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Ignores `signal`.
pub fn ignore(signal: i32) {
    // SAFETY: SIG_IGN needs no handler.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// Its number.
    pub number: i32,
    /// The kernel sent it, for a key or a change of the terminal, and so to all of the terminal's
    /// foreground process group; else a process sent it.
    pub by_kernel: bool,
}

/// A signalfd on [`WATCHED`], which are blocked from here on.
#[derive(Debug)]
pub struct SignalFd(OwnedFd);

impl SignalFd {
    /// Blocks the signals and opens the descriptor; gives an errno on failure.
    ///
    /// SIGCHLD is set to its default first: a parent may have left it ignored, and the kernel
    /// would then reap our children itself (wait(2), NOTES).
    pub fn open() -> Result<Self, i32> {
        set_default(libc::SIGCHLD);
        Self::on(&WATCHED)
    }

    /// Opens the descriptor for other signals, in a program that waits for no child's end.
    pub fn on(signals: &[i32]) -> Result<Self, i32> {
        let set = set_of(signals);
        // SAFETY: a live set; the old mask is not asked for.
        done(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) })?;
        let flags = libc::SFD_NONBLOCK | libc::SFD_CLOEXEC;
        // SAFETY: a live set; -1 asks for a new descriptor.
        Ok(Self(owned(unsafe { libc::signalfd(-1, &raw const set, flags) })?))
    }

    /// Takes in what a command in front is told too: its signals are blocked from here on. Gives an
    /// errno on failure.
    pub fn widen(&self) -> Result<(), i32> {
        let set = set_of(&[&WATCHED[..], &IN_FRONT].concat());
        // SAFETY: a live set; the old mask is not asked for.
        done(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) })?;
        // SAFETY: a live set, and a signalfd of our own, which gets the set (signalfd(2)).
        done(unsafe { libc::signalfd(self.fd(), &raw const set, 0) })
    }

    /// The descriptor, for the poll.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// The number of the next signal that came, if any.
    pub fn next(&self) -> Option<i32> {
        self.next_told().map(|came| came.number)
    }

    /// The next signal that came, if any.
    pub fn next_told(&self) -> Option<Came> {
        const SIZE: usize = size_of::<libc::signalfd_siginfo>();
        let mut record = [0; SIZE];
        match io::read(self.fd(), &mut record) {
            // The record begins with ssi_signo, ssi_errno and ssi_code, native numbers of 32 bits
            // each (signalfd(2)).
            Io::Moved(SIZE) => {
                let number = u32::from_ne_bytes([record[0], record[1], record[2], record[3]]);
                let code = i32::from_ne_bytes([record[8], record[9], record[10], record[11]]);
                let by_kernel = code == libc::SI_KERNEL;
                i32::try_from(number).ok().map(|number| Came { number, by_kernel })
            }
            _ => None,
        }
    }
}
