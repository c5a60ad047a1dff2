//! The system calls of the keeper's two processes: their start, their pipes, their waits.

use std::ffi::CStr;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd};

/// The comm names, as ps and top show them; at most 15 bytes, see PR_SET_NAME.
const WRITER_COMM: &CStr = c"execd-keeper";
const GUARD_COMM: &CStr = c"execd-guard";
const SWEEP_COMM: &CStr = c"execd-sweep";
/// What ends others and not these: they end when their pipes do. SIGPIPE and SIGXFSZ are
/// here because a write that cannot be made has to come back as an error; SIGCHLD, so that the
/// guard, a child of the writer, leaves no zombie.
const IGNORED: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE, libc::SIGXFSZ, libc::SIGCHLD];

/// The signal that nothing survives, see signal(7).
pub const SIGKILL: i32 = libc::SIGKILL;

/// The log writer's pipes.
#[derive(Debug, Clone, Copy)]
pub struct Pipes<'a> {
    /// Frames come from here; fd 0.
    pub log: BorrowedFd<'a>,
    /// Acknowledgements go there; fd 1.
    pub ack: BorrowedFd<'a>,
}

/// One of the descriptors that this process was started with.
fn own(fd: std::os::fd::RawFd) -> BorrowedFd<'static> {
    // SAFETY: nothing here closes fds 0 to 2, and Rust's start-up code has opened those that
    // were not; they are valid for as long as the process lives.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// The log writer's pipes.
pub fn writer_pipes() -> Pipes<'static> {
    Pipes { log: own(0), ack: own(1) }
}

/// The pipe that the guard's records come from.
pub fn guard_pipe() -> BorrowedFd<'static> {
    own(0)
}

/// Which of the keeper's processes this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Writes the logs.
    Writer,
    /// Ends the sessions of an execd that was killed.
    Guard,
    /// Ends those of execds that were killed together with their guards.
    Sweep,
}

/// Makes two processes of one that was started with all three pipes (log, acknowledgements,
/// guard): the writer goes on in it, the guard in a child that holds the guard pipe alone and has
/// a session of its own. Where no process can be made there is a writer only; that nobody has the
/// guard pipe tells execd.
pub fn split() -> Role {
    // SAFETY: this process has one thread, so its copy may do whatever it may.
    let guard = unsafe { libc::fork() } == 0;
    // The writer's fd 2 is a pipe to read from: what would be written there goes nowhere.
    let (from, to): (_, &[libc::c_int]) = if guard { (2, &[0, 1]) } else { (0, &[2]) };
    for fd in to {
        // SAFETY: plain descriptor numbers; each is open before and after.
        unsafe { libc::dup2(from, *fd) };
    }
    if !guard {
        return Role::Writer;
    }
    // SAFETY: setsid takes nothing; a fresh child leads no group, so it succeeds.
    unsafe { libc::setsid() };
    Role::Guard
}

/// The process that this one is a child of.
pub fn parent() -> i32 {
    // SAFETY: getppid takes nothing and cannot fail.
    unsafe { libc::getppid() }
}

/// Makes this process one of the keeper's: its name, ignored signals, root as its directory (so
/// that it keeps no file system busy), as many descriptors as it may have. None of this can fail
/// in a way that would be a reason not to serve.
pub fn settle(role: Role) {
    let comm = match role {
        Role::Writer => WRITER_COMM,
        Role::Guard => GUARD_COMM,
        Role::Sweep => SWEEP_COMM,
    };
    // SAFETY: PR_SET_NAME copies from a string that lives for ever.
    unsafe { libc::prctl(libc::PR_SET_NAME, comm.as_ptr()) };
    for signal in IGNORED {
        // SAFETY: SIG_IGN installs no handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let _ = std::env::set_current_dir("/");
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes one rlimit, which lives through the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0 {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: setrlimit reads one rlimit, which lives through the call.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    }
}

/// Waits until a pipe has something to read or has hung up, at most `timeout_ms`, else for ever.
/// Gives whether it has. Errors: poll(2), and EBADF for what is no open descriptor.
pub fn wait(pipe: BorrowedFd, timeout_ms: Option<u64>) -> io::Result<bool> {
    let mut entry = [libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
    poll(&mut entry, timeout_ms.map_or(-1, |ms| i32::try_from(ms).unwrap_or(i32::MAX)))?;
    if entry[0].revents & libc::POLLNVAL != 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    Ok(entry[0].revents != 0)
}

/// Waits for the end of a process, for `ms` milliseconds at most. Whether it has come.
pub fn has_ended_within(pidfd: BorrowedFd, ms: u64) -> bool {
    let mut entry = [libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
    let waited = poll(&mut entry, i32::try_from(ms).unwrap_or(i32::MAX));
    waited.is_ok() && entry[0].revents != 0
}

/// Does nothing for `ms` milliseconds.
pub fn pause(ms: u64) {
    let _ = poll(&mut [], i32::try_from(ms).unwrap_or(i32::MAX));
}

fn poll(entries: &mut [libc::pollfd], timeout_ms: i32) -> io::Result<()> {
    loop {
        let count = libc::nfds_t::try_from(entries.len()).unwrap_or(0);
        // SAFETY: poll reads and writes `count` entries, all of them ours.
        if unsafe { libc::poll(entries.as_mut_ptr(), count, timeout_ms) } >= 0 {
            return Ok(());
        }
        retry_if_interrupted()?;
    }
}

/// Err with the errno of the call just made, except after a mere interruption.
fn retry_if_interrupted() -> io::Result<()> {
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

/// Reads what a pipe has, at most a buffer full. None at its end; Some(0) when there is
/// nothing now. Errors: read(2).
pub fn read(fd: BorrowedFd, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        // SAFETY: read writes at most `len` bytes into a buffer that has as many.
        let len = unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        match usize::try_from(len) {
            Ok(0) => return Ok(None),
            Ok(len) => return Ok(Some(len)),
            Err(_) => match retry_if_interrupted() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Some(0)),
                other => other?,
            },
        }
    }
}

/// Writes one record of at most PIPE_BUF bytes, whole or not at all, waiting for room.
/// Errors: EPIPE when nobody reads any more.
pub fn write_record(fd: BorrowedFd, record: &[u8]) -> io::Result<()> {
    loop {
        // SAFETY: write reads `len` bytes from a slice that has as many.
        let len = unsafe { libc::write(fd.as_raw_fd(), record.as_ptr().cast(), record.len()) };
        if len >= 0 {
            return Ok(());
        }
        match retry_if_interrupted() {
            // Somebody made the pipe non-blocking; the wait is the same.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let events = libc::POLLOUT;
                poll(&mut [libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 }], -1)?;
            }
            other => other?,
        }
    }
}

/// Tells whoever started a keeper by hand why that is of no use. A real keeper's fd 2 is a
/// pipe to read from, so nothing is written there.
pub fn complain(reason: &str) {
    let _ = writeln!(io::stderr(), "{reason}");
}

#[cfg(test)]
pub mod testing {
    //! Real processes and file systems for the tests of the keeper's files.

    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    use crate::sys::proc::{self, ProcStat};

    /// Every living process of the session `sid`, its leader included.
    pub fn members_of(sid: i32) -> Vec<ProcStat> {
        let found = proc::pids().unwrap().into_iter().filter_map(proc::stat);
        found.filter(|one| one.sid == sid && one.is_alive()).collect()
    }

    /// A child in a session of its own, killed and reaped when dropped.
    #[derive(Debug)]
    pub struct Spawned {
        pub pid: i32,
        reaped: std::cell::Cell<bool>,
    }

    impl Spawned {
        /// Runs `/bin/sh -c script` with exactly this environment.
        pub fn shell(script: &str, env: &[&str]) -> Spawned {
            let strings = |list: &[&str]| -> Vec<CString> {
                list.iter().map(|one| CString::new(*one).unwrap()).collect()
            };
            let (argv, envp) = (strings(&["/bin/sh", "-c", script]), strings(env));
            let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
                list.iter().map(|one| one.as_ptr()).chain([std::ptr::null()]).collect()
            };
            let (args, vars) = (pointers(&argv), pointers(&envp));
            // SAFETY: the child makes only async-signal-safe calls before exec.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                // SAFETY: setsid, execve and _exit are async-signal-safe; the vectors end in
                // null and live in the child's copy of our memory.
                unsafe {
                    libc::setsid();
                    libc::execve(args[0], args.as_ptr(), vars.as_ptr());
                    libc::_exit(127);
                }
            }
            assert!(pid > 0, "fork");
            let (name, ours) =
                (format!("/proc/{pid}/cmdline"), std::fs::read("/proc/self/cmdline"));
            let ours = ours.unwrap();
            while std::fs::read(&name).unwrap() == ours {
                super::pause(1);
            }
            Spawned { pid, reaped: false.into() }
        }

        /// Waits for its end: the signal that killed it, or 0.
        pub fn wait(&self) -> i32 {
            let mut status = 0;
            // SAFETY: waitpid writes one int, which lives through the call.
            let reaped = unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
            assert_eq!(reaped, self.pid);
            self.reaped.set(true);
            if libc::WIFSIGNALED(status) { libc::WTERMSIG(status) } else { 0 }
        }
    }

    impl Drop for Spawned {
        fn drop(&mut self) {
            if !self.reaped.get() {
                // SAFETY: an unreaped child of ours; its pid is nobody else's.
                unsafe { libc::kill(-self.pid, libc::SIGKILL) };
                self.wait();
            }
        }
    }

    /// A small file system in memory, unmounted when dropped.
    #[derive(Debug)]
    pub struct Tmpfs(PathBuf);

    impl Tmpfs {
        /// None where we may not mount.
        pub fn mount(at: &Path, options: &str) -> Option<Tmpfs> {
            let path = CString::new(at.as_os_str().as_bytes()).unwrap();
            let data = CString::new(options).unwrap();
            let kind = c"tmpfs".as_ptr();
            // SAFETY: all strings end in NUL and live through the call.
            let done = unsafe { libc::mount(kind, path.as_ptr(), kind, 0, data.as_ptr().cast()) };
            (done == 0).then(|| Tmpfs(at.to_path_buf()))
        }
    }

    impl Drop for Tmpfs {
        fn drop(&mut self) {
            let path = CString::new(self.0.as_os_str().as_bytes()).unwrap();
            // SAFETY: the string ends in NUL and lives through the call.
            unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
        }
    }

    /// Gives a file to another user; false where we may not.
    pub fn give_away(path: &Path) -> bool {
        std::os::unix::fs::lchown(path, Some(12_345), None).is_ok()
    }
}
