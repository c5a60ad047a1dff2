//! The system calls of the keeper's two processes that nobody else needs: how one process becomes
//! two, and what each of them is made to be.

use std::ffi::CStr;
use std::io::{self, Write};
use std::os::fd::RawFd;

use super::{host, signals};

/// The comm names, as ps and top show them; at most 15 bytes, see PR_SET_NAME.
const WRITER_COMM: &CStr = c"execd-keeper";
const GUARD_COMM: &CStr = c"execd-guard";
const SWEEP_COMM: &CStr = c"execd-sweep";
/// Signals that end other programs and not these processes, which end when their pipes do. SIGPIPE
/// and SIGXFSZ are here because a write that cannot be made has to come back as an error; SIGCHLD,
/// so that the guard, a child of the writer, leaves no zombie.
const IGNORED: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE, libc::SIGXFSZ, libc::SIGCHLD];

/// The descriptors that the log writer is started with: frames come from the one,
/// acknowledgements go to the other.
pub const WRITER_PIPES: (RawFd, RawFd) = (0, 1);
/// The descriptor that the guard's records come from, once the two are apart.
pub const GUARD_PIPE: RawFd = 0;

/// Which of the keeper's processes this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Writes the logs.
    Writer,
    /// Ends the sessions of an execd that was killed.
    Guard,
    /// Ends the sessions of execds that were killed together with their guards.
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

/// Makes this process one of the keeper's: ignored signals, its name, root as its directory (so
/// that it keeps no file system busy), as many descriptors as it may have. None of this can fail
/// in a way that would be a reason not to serve.
pub fn settle(role: Role) {
    let comm = match role {
        Role::Writer => WRITER_COMM,
        Role::Guard => GUARD_COMM,
        Role::Sweep => SWEEP_COMM,
    };
    IGNORED.into_iter().for_each(signals::ignore);
    // Who sees the name knows that what people send is ignored from now on.
    // SAFETY: PR_SET_NAME copies from a string that lives for ever.
    unsafe { libc::prctl(libc::PR_SET_NAME, comm.as_ptr()) };
    let _ = std::env::set_current_dir("/");
    host::raise_file_limit();
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

    use crate::sys::poll;
    use crate::sys::proc::{self, ProcStat};

    /// Every living process of the session `sid`, its leader included.
    pub fn members_of(sid: i32) -> Vec<ProcStat> {
        let found = proc::all_pids(0).unwrap().filter_map(|pid| proc::stat(pid.unwrap()));
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
                poll::pause(1);
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
