//! What is to be started, and why it could not be.

use std::ffi::CString;
use std::os::fd::RawFd;

use crate::limits::MAX_ARG_BYTES;
use crate::sys::host;

/// Longest name of a file: NAME_MAX, see pathconf(3).
const NAME_MAX_BYTES: usize = 255;

/// Where programs are looked for when the environment has no PATH.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

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

/// What a child leads from its beginning on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// Nothing: it stays in our kernel session and process group, and has our controlling terminal.
    Nothing,
    /// A process group in our kernel session.
    Group,
    /// A kernel session.
    Session,
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
    /// What it leads.
    pub leads: Leads,
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
            leads: Leads::Session,
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

/// Where programs are looked for in this environment.
pub fn path_of(environment: &[CString]) -> Vec<u8> {
    let path = environment.iter().find_map(|entry| entry.to_bytes().strip_prefix(b"PATH="));
    path.unwrap_or(DEFAULT_PATH).to_vec()
}

/// Where a program may be: as given when its name holds a slash, else a file of that name in each
/// directory of `path` (exec(3), execvp). A relative path counts from the child's directory. Nobody
/// looks at these places before the child does: a file system may hang.
pub fn places_of(program: &str, path: &[u8]) -> (Vec<CString>, bool) {
    let looked_up = !program.contains('/');
    if !looked_up || program.len() > NAME_MAX_BYTES {
        return (CString::new(program).into_iter().collect(), looked_up);
    }
    // With a longer one nothing can be started at all: execve(2), E2BIG.
    let path = path.get(..MAX_ARG_BYTES).unwrap_or(path);
    let place = |dir: &[u8]| {
        let dir = if dir.is_empty() { b"." } else { dir };
        CString::new([dir, b"/", program.as_bytes()].concat()).ok()
    };
    (path.split(|&byte| byte == b':').filter_map(place).collect(), looked_up)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rule: architecture.md, Starting a child: argv, envp and the places of the shell are built
    ///   before the clone; the child looks it up on its PATH
    #[test]
    fn a_program_is_looked_up_on_the_path_unless_it_has_a_slash() {
        let places = |program: &str, path: &[u8]| {
            let (places, looked_up) = places_of(program, path);
            let texts = places.iter().map(|place| place.to_string_lossy().into_owned());
            (texts.collect::<Vec<String>>().join(" "), looked_up)
        };
        assert_eq!(places("sh", b"/nowhere:/bin"), ("/nowhere/sh /bin/sh".to_owned(), true));
        assert_eq!(places("sh", b"bin::/x"), ("bin/sh ./sh /x/sh".to_owned(), true));
        assert_eq!(places("./x", b"/bin"), ("./x".to_owned(), false), "as given");
        let long = "x".repeat(NAME_MAX_BYTES + 1);
        assert_eq!(places(&long, &b":".repeat(9)), (long, true), "no file has such a name");
        let (many, _) = places_of("sh", &b":".repeat(10 * MAX_ARG_BYTES));
        assert!(many.len() <= MAX_ARG_BYTES + 1, "{}", many.len());
    }
}
