//! What only the memory of another process tells: its command line, and the marks in its
//! environment. Whoever reads these in /proc waits for as long as somebody holds the map of that
//! memory, and that may be for ever: a read from a disk that hangs is enough. So a process of our
//! own reads them, `execd --look`, and is killed when its answer does not come in time. Both sides
//! are here: the question, and the program that answers.

use std::ffi::{CStr, CString, OsString};
use std::io::{IsTerminal as _, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use super::child;
use super::clock;
use super::io::{self, Io};
use super::poll;
use super::proc;
use super::spawn::{Child, Plan, Spawner};
use crate::limits::{LOOK_PIDS, PROCESS_COMMAND_BYTES};
use crate::pure::process::marks::{INSTANCE_VARIABLE, SESSION_VARIABLE};

/// The first argument of the program for this.
pub const FLAG: &CStr = c"--look";
/// The second one, where command lines are wanted. Else it is the id of an execd.
const COMMANDS: &str = "commands";
/// Bytes of an answer before its command line: pid i32, length of the command line u32, session
/// u64 (see [`Owner`]), all little-endian.
const HEADER_BYTES: usize = 16;
/// Bytes of answers read at a time.
const READ_BYTES: usize = 16 * 1024;
/// Exit status for arguments that make no sense, and for a reader that is gone.
const EXIT_NONSENSE: i32 = 2;

/// What is wanted of each process.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// Its command line.
    Commands,
    /// The session of the execd with this id (hexadecimal) whose marks it was started with.
    Sessions(&'a str),
}

/// Whose marks a process was started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Those of no session of this execd.
    Nobody,
    /// Those of this session.
    Session(u64),
    /// That cannot be told now.
    Untold,
}

impl Owner {
    fn from_code(code: u64) -> Self {
        match code {
            0 => Self::Nobody,
            u64::MAX => Self::Untold,
            session => Self::Session(session),
        }
    }

    fn code(self) -> u64 {
        match self {
            Self::Nobody => 0,
            Self::Session(session) => session,
            Self::Untold => u64::MAX,
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The process.
    pub pid: i32,
    /// Whose marks it has.
    pub owner: Owner,
    /// Its command line, see [`proc::command`]; empty where that was not wanted, or it is gone.
    pub command: String,
}

/// The answers to one question.
#[derive(Debug)]
pub struct Answers {
    /// In the order asked; fewer where one did not come in time.
    pub told: Vec<Told>,
    /// The process that looked, where it was killed because an answer did not come.
    pub killed: Option<OwnedFd>,
}

/// Asks about at most [`LOOK_PIDS`] processes and waits for the answers, until `until_ns` of the
/// monotonic clock at the latest. None where no process could be started.
pub fn ask(spawner: &Spawner, wanted: Wanted<'_>, pids: &[i32], until_ns: u64) -> Option<Answers> {
    let pids = &pids[..pids.len().min(LOOK_PIDS)];
    let (looker, answers) = start(spawner, wanted, pids)?;
    let mut told = Vec::new();
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
    while told.len() < pids.len() {
        let in_time = clock::now_ns() < until_ns;
        if !in_time || !poll::is_readable(answers.as_raw_fd(), Some(until_ns)) {
            break;
        }
        match io::read(answers.as_raw_fd(), &mut buffer) {
            Io::Moved(length) => bytes.extend_from_slice(&buffer[..length]),
            Io::WouldBlock => continue,
            _ => break,
        }
        told.extend(std::iter::from_fn(|| take_answer(&mut bytes)));
    }
    let late = told.len() < pids.len();
    if late {
        child::kill_now(looker.pidfd.as_raw_fd(), looker.pid);
    }
    Some(Answers { told, killed: late.then_some(looker.pidfd) })
}

/// Starts the process that looks; whoever reaps orphans reaps it. Gives it and the pipe that its
/// answers come from.
fn start(spawner: &Spawner, wanted: Wanted<'_>, pids: &[i32]) -> Option<(Child, OwnedFd)> {
    let what = match wanted {
        Wanted::Commands => COMMANDS,
        Wanted::Sessions(instance) => instance,
    };
    let numbers: Vec<String> = pids.iter().map(i32::to_string).collect();
    let (what, list) = (CString::new(what).ok()?, CString::new(numbers.join(",")).ok()?);
    let (ours, theirs) = io::pipe_to_child(true).ok()?;
    let null = io::dev_null().ok()?;
    let argv: [&CStr; 4] = [c"execd", FLAG, &what, &list];
    let stdio = [null.as_raw_fd(), theirs.as_raw_fd(), null.as_raw_fd()];
    let plan = Plan { die_with_us: true, ..Plan::of_execd(&argv, &[], stdio) };
    Some((spawner.spawn(&plan).ok()?, ours))
}

/// Takes one whole answer from the front.
fn take_answer(bytes: &mut Vec<u8>) -> Option<Told> {
    let (pid, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (session, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let told = Told {
        pid: i32::from_le_bytes(*pid),
        owner: Owner::from_code(u64::from_le_bytes(*session)),
        command: String::from_utf8_lossy(rest.get(..length)?).into_owned(),
    };
    bytes.drain(..HEADER_BYTES + length);
    Some(told)
}

fn push_answer(bytes: &mut Vec<u8>, told: &Told) {
    bytes.extend_from_slice(&told.pid.to_le_bytes());
    bytes.extend_from_slice(&u32::try_from(told.command.len()).unwrap_or(0).to_le_bytes());
    bytes.extend_from_slice(&told.owner.code().to_le_bytes());
    bytes.extend_from_slice(told.command.as_bytes());
}

/// The other side: looks at the processes that the arguments behind the flag name, and writes an
/// answer for each as soon as it has it. Gives the exit status.
pub fn answer(args: &[OsString]) -> i32 {
    let texts: Vec<&str> = args.iter().filter_map(|text| text.to_str()).collect();
    let ([what, list], true) = (&texts[..], !std::io::stdout().is_terminal()) else {
        let _ = writeln!(std::io::stderr(), "execd --look is for execd itself");
        return EXIT_NONSENSE;
    };
    let mut bytes = Vec::new();
    for pid in list.split(',').filter_map(|number| number.parse().ok()) {
        let told = match *what {
            COMMANDS => {
                let command = proc::command(pid, PROCESS_COMMAND_BYTES);
                Told { pid, owner: Owner::Untold, command }
            }
            instance => Told { pid, owner: owner_of(pid, instance), command: String::new() },
        };
        bytes.clear();
        push_answer(&mut bytes, &told);
        if std::io::stdout().write_all(&bytes).and_then(|()| std::io::stdout().flush()).is_err() {
            return EXIT_NONSENSE;
        }
    }
    0
}

/// Whose of the execd `instance` the marks are that a process has in its environment.
fn owner_of(pid: i32, instance: &str) -> Owner {
    let instance = format!("{INSTANCE_VARIABLE}={instance}").into_bytes();
    let session = format!("{SESSION_VARIABLE}=").into_bytes();
    let (mut is_ours, mut id) = (false, None);
    let looked = proc::environ_any(pid, |entry| {
        is_ours |= entry == instance;
        if let Some(number) = entry.strip_prefix(session.as_slice()) {
            id = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
        }
        is_ours && id.is_some()
    });
    match looked {
        None => Owner::Untold,
        Some(_) => id.filter(|_| is_ours).map_or(Owner::Nobody, Owner::Session),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::keeper_calls::testing::Spawned;

    /// rule: architecture.md, Ending a session: The memory of other processes is read by a process
    ///   of its own, with a deadline
    #[test]
    fn answers_come_back_as_they_were_however_they_are_cut() {
        let answers = [
            Told { pid: 1, owner: Owner::Nobody, command: "cat a b".to_owned() },
            Told { pid: i32::MAX, owner: Owner::Untold, command: String::new() },
            Told { pid: 7, owner: Owner::Session(9), command: "ä".repeat(100) },
        ];
        let mut all = Vec::new();
        answers.iter().for_each(|one| push_answer(&mut all, one));
        let (mut come, mut told) = (Vec::new(), Vec::new());
        for byte in all {
            come.push(byte);
            told.extend(std::iter::from_fn(|| take_answer(&mut come)));
        }
        assert_eq!(told, answers);
        assert!(come.is_empty());
    }

    /// rule: architecture.md, Ending a session: The memory of other processes is read by a process
    ///   of its own, with a deadline
    #[test]
    fn the_marks_of_another_execd_and_half_of_ours_are_none() {
        let marked = |marks: &[&str]| {
            let child = Spawned::shell("sleep 60", marks);
            // A shell that starts a program may be in uninterruptible sleep for a moment (vfork).
            let mut told = (0..1_000).map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(5));
                owner_of(child.pid, "abc")
            });
            told.find(|owner| *owner != Owner::Untold).expect("it does not stay so")
        };
        assert_eq!(marked(&["EXECD_INSTANCE=abc", "EXECD_SESSION_ID=12"]), Owner::Session(12));
        assert_eq!(
            marked(&["EXECD_SESSION_ID=12", "X=1", "EXECD_INSTANCE=abc"]),
            Owner::Session(12)
        );
        assert_eq!(marked(&["EXECD_INSTANCE=ab", "EXECD_SESSION_ID=12"]), Owner::Nobody);
        assert_eq!(marked(&["EXECD_INSTANCE=abc"]), Owner::Nobody);
        assert_eq!(marked(&["EXECD_SESSION_ID=12"]), Owner::Nobody);
    }
}
