//! What other processes are at: which pipes they have, and how much CPU time they have used.
//! Nothing here waits for a process, for nothing here needs the map of its memory.

use std::io;

use super::{clock, proc_view};

/// In the id of a process's clock: user and system time, to the nanosecond (CPUCLOCK_SCHED of
/// clock_getcpuclockid(3)).
const CPU_TIME: i32 = 2;

/// The pipes at the standard descriptors of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pipes {
    /// The pipe that it reads on its stdin.
    pub input: Option<u64>,
    /// The pipes of its stdout and stderr.
    pub outputs: [Option<u64>; 2],
    /// Whether a socket is its stdout or stderr.
    pub socket: bool,
    /// The process is another user's, and /proc does not tell.
    pub hidden: bool,
}

impl Pipes {
    /// Whether somebody else may read what it writes: its stdout or stderr is a pipe or a socket.
    pub fn may_be_read(&self) -> bool {
        self.socket || self.outputs.iter().any(Option::is_some)
    }
}

/// What is behind a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// The pipe of this number.
    Pipe(u64),
    Socket,
    Other,
}

impl Link {
    fn of(link: &str) -> Self {
        let pipe = link.strip_prefix("pipe:[").and_then(|rest| rest.strip_suffix(']'));
        match pipe.and_then(|number| number.parse().ok()) {
            Some(number) => Self::Pipe(number),
            None if link.starts_with("socket:[") => Self::Socket,
            None => Self::Other,
        }
    }

    fn pipe(self) -> Option<u64> {
        if let Self::Pipe(number) = self { Some(number) } else { None }
    }
}

/// The number that the kernel gives the pipe of a descriptor of ours; None for anything else.
pub fn own_pipe(fd: i32) -> Option<u64> {
    link_of("self", fd).ok().and_then(Link::pipe)
}

/// The pipes of a process.
pub fn pipes(pid: i32) -> Pipes {
    let pid = pid.to_string();
    let [input, out, err] = [0, 1, 2].map(|fd| link_of(&pid, fd));
    let hidden = input.is_err();
    let [input, out, err] = [input, out, err].map(|link| link.unwrap_or(Link::Other));
    let socket = [out, err].contains(&Link::Socket);
    Pipes { input: input.pipe(), outputs: [out, err].map(Link::pipe), socket, hidden }
}

/// What is behind a descriptor. Errors: it must not be looked at.
fn link_of(pid: &str, fd: i32) -> Result<Link, ()> {
    if pid != "self" && !proc_view::tells() {
        return Err(());
    }
    // The link is read and not followed: a file behind it may be on a disk that stands still.
    match std::fs::read_link(format!("/proc/{pid}/fd/{fd}")) {
        Ok(path) => Ok(path.to_str().map_or(Link::Other, Link::of)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(()),
        Err(_) => Ok(Link::Other),
    }
}

/// The CPU time that all threads of a process have used, in nanoseconds; 0 for one that is gone.
pub fn cpu_ns(pid: i32) -> u64 {
    clock::read_ns((!pid << 3) | CPU_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{host, io as raw};
    use std::os::fd::AsRawFd;

    /// Above all pids that the kernel gives (PID_MAX_LIMIT).
    const NOBODY: i32 = 4 * 1024 * 1024 + 1;

    #[test]
    fn a_pipe_has_one_number_at_both_ends() {
        let (read, write) = raw::pipe().unwrap();
        let number = own_pipe(read.as_raw_fd());
        assert!(number.is_some());
        assert_eq!(own_pipe(write.as_raw_fd()), number);
        assert_eq!(own_pipe(-1), None);
        assert_eq!(Link::of("pipe:[12]"), Link::Pipe(12));
        assert_eq!(Link::of("socket:[12]"), Link::Socket);
        for other in ["pipe:[]", "/tmp/pipe:[12]", "/tmp/socket:[12]", "pipe:[12", ""] {
            assert_eq!(Link::of(other), Link::Other, "{other}");
        }
    }

    #[test]
    fn who_works_uses_cpu_time() {
        let pid = host::pid();
        let before = cpu_ns(pid);
        while cpu_ns(pid) < before + 1_000_000 {
            std::hint::black_box(pipes(pid));
        }
        assert!(before > 0);
        assert_eq!(cpu_ns(NOBODY), 0, "no such process");
    }
}
