//! The system calls of the two helper processes that nobody else needs: what each of them is made
//! to be.

use std::ffi::CStr;
use std::io::{self, Write};

use super::{host, signals};

/// The name of the log writer in ps and top, and its argv[0]. At most 15 bytes: PR_SET_NAME,
/// prctl(2). It does not contain the name of execd, so that `pkill execd` and `killall execd` do
/// not end the helpers too.
pub const WRITER_NAME: &CStr = c"sessions-log";
/// The same name of the guard.
pub const GUARD_NAME: &CStr = c"sessions-guard";
/// Signals that end other programs and not these processes, which end when their pipes do. SIGPIPE
/// and SIGXFSZ are here because a write that cannot be made has to come back as an error.
const IGNORED: [libc::c_int; 5] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE, libc::SIGXFSZ];

/// Makes this process a helper: ignored signals, its name, root as its directory (so that it keeps
/// no file system busy), as many descriptors as it may have. None of this can fail in a way that
/// would be a reason not to serve.
pub fn settle(name: &CStr) {
    IGNORED.into_iter().for_each(signals::ignore);
    // Whoever sees the name knows that what people send is ignored from now on.
    host::be_called(name);
    let _ = std::env::set_current_dir("/");
    host::raise_file_limit();
}

/// Tells whoever started a helper by hand why that is of no use. A real helper's fd 2 is a pipe to
/// read from, so nothing is written there.
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
        let found = proc::all_pids().unwrap().filter_map(|pid| proc::stat(pid.unwrap()));
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
