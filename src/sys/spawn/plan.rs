//! What is to be started, and why it could not be. The steps from clone to exec are those of
//! new_process.rs.

use std::ffi::CStr;
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
    /// What execd's own program does in its place before it becomes the program.
    Surroundings,
}

impl Step {
    const ALL: [Self; 7] = [
        Self::Clone,
        Self::Session,
        Self::Terminal,
        Self::Stdio,
        Self::Chdir,
        Self::Exec,
        Self::Surroundings,
    ];

    /// The step as a number above 0.
    pub(super) fn code(self) -> i32 {
        Self::ALL.iter().zip(1..).find(|(step, _)| **step == self).map_or(0, |(_, code)| code)
    }

    /// The step of this number.
    pub(super) fn from_code(code: i32) -> Self {
        Self::ALL.iter().zip(1..).find(|(_, c)| *c == code).map_or(Self::Exec, |(step, _)| *step)
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

/// What to start. All strings are borrowed and must stay as they are during the call.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Where the program may be: the first of these that can be executed is started. Absolute
    /// paths, or ones that count from `cwd`; at least one.
    pub programs: &'a [&'a CStr],
    /// Whether they come from a search on PATH: one that is not there, or is no program, is
    /// passed over, and if all are, there is no such program (ENOENT), or none that may be
    /// executed (EACCES).
    pub looked_up: bool,
    /// Its arguments, the first being its name.
    pub argv: &'a [&'a CStr],
    /// Its environment, `NAME=value` each.
    pub envp: &'a [&'a CStr],
    /// Its working directory; `None` leaves ours.
    pub cwd: Option<&'a CStr>,
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
    /// The child shares nothing with us: its working directory or its program may hang. The call
    /// returns as soon as the child leads a session and holds none of our descriptors; what becomes
    /// of the child then is told by report.rs.
    pub apart: bool,
    /// The program is this very one, which makes something ready and then becomes the program that
    /// is meant (src/sys/spawn/second_start.rs): it goes on with the pipe on which it tells
    /// how far it is. Only for one that is started apart.
    pub twofold: bool,
}

impl<'a> Plan<'a> {
    /// This very program once more, in the same directory, with these words and descriptors.
    pub fn of_execd(argv: &'a [&'a CStr], envp: &'a [&'a CStr], stdio: [RawFd; 3]) -> Self {
        Self {
            programs: host::own_programs(),
            looked_up: true,
            argv,
            envp,
            cwd: None,
            stdio,
            joins: false,
            as_given: false,
            terminal: false,
            die_with_us: false,
            apart: false,
            twofold: false,
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
