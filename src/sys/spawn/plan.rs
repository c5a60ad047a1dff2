//! What is to be started, and why it could not be.

use std::ffi::CString;
use std::os::fd::RawFd;

use crate::sys::host;

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

    /// The step as a number.
    pub(super) fn code(self) -> i32 {
        self as i32
    }

    /// The step of this number.
    pub(super) fn from_code(code: i32) -> Self {
        Self::ALL.into_iter().find(|step| step.code() == code).unwrap_or(Self::Exec)
    }
}

/// Why a child could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpawnError {
    /// The step that failed.
    pub step: Step,
    /// The errno of that step.
    pub errno: i32,
}

/// What to start.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the program may be: the first of these that can be executed is started. Absolute
    /// paths, or ones that count from `cwd`; at least one.
    pub programs: Vec<CString>,
    /// Whether they come from a search on PATH: one that is not there, or is no program, is
    /// passed over, and if all are, there is no such program (ENOENT), or none that may be
    /// executed (EACCES).
    pub looked_up: bool,
    /// Its arguments, the first being its name.
    pub argv: Vec<CString>,
    /// Its environment, `NAME=value` each.
    pub envp: Vec<CString>,
    /// Its working directory; `None` leaves ours.
    pub cwd: Option<CString>,
    /// The descriptors that become its 0, 1 and 2; either those very numbers or above 2.
    pub stdio: [RawFd; 3],
    /// It stays in our kernel session and process group, and has our controlling terminal; else it
    /// leads a session of its own.
    pub joins: bool,
    /// It is treated as env(1) treats a command: signals are ignored and blocked as they were when
    /// execd began, and the descriptors that execd was handed stay open.
    pub as_given: bool,
    /// Its stdin is a PTY's slave and becomes its controlling terminal.
    pub terminal: bool,
    /// The kernel kills it when we end (PR_SET_PDEATHSIG, SIGKILL).
    pub die_with_us: bool,
}

impl Plan {
    /// This very program once more, in the same directory, with these words and descriptors.
    pub fn of_execd(argv: Vec<CString>, envp: Vec<CString>, stdio: [RawFd; 3]) -> Self {
        Self {
            programs: host::own_programs().iter().map(|&place| place.to_owned()).collect(),
            looked_up: true,
            argv,
            envp,
            cwd: None,
            stdio,
            joins: false,
            as_given: false,
            terminal: false,
            die_with_us: false,
        }
    }
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
