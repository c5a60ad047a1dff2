//! An execd that is started for one command of the command line, and spoken to over pipes. What
//! that execd is asked is left to the commands.

use std::ffi::{CString, OsString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;

use super::connection::Connection;
use crate::pure::process::life::ExitStatus;
use crate::sys::errno::errno_text;
use crate::sys::spawn::{Child, Plan, Spawner};
use crate::sys::{child, host, io, pidfd};

/// The first argument of an execd that is started for one session, and ends with whoever has
/// started it: such an execd does not say how much room its table has, and names logs by their
/// paths.
pub const ONE_SESSION: &str = "--one-session";

/// The first argument of an execd that `execd mcp` has started for its host: what models read of it
/// is as short as hosts hand on whole, and one result is bounded for all of its sessions together.
pub const FOR_HOST: &str = "--for-host";

/// A fresh execd. It ends with its sessions when nobody reads its answers any more, also when this
/// process is killed.
#[derive(Debug)]
pub struct Fresh {
    /// The way to the execd.
    pub connection: Connection,
    child: Child,
}

impl Fresh {
    /// Starts an execd with these flags; its stderr is ours. The execd leads a session of its own,
    /// so that the signals of our terminal do not reach it. Gives a reason for people.
    pub fn start(flags: Vec<OsString>) -> Result<Self, String> {
        let system = |errno| format!("start execd: {}", errno_text(errno));
        let spawner = Spawner::new(host::file_limit());
        let (to, stdin) = io::pipe_to_child(false).map_err(system)?;
        let (from, stdout) = io::pipe_to_child(true).map_err(system)?;
        let c_strings = |all: Vec<Vec<u8>>| -> Vec<CString> {
            all.into_iter().filter_map(|one| CString::new(one).ok()).collect()
        };
        let words = [OsString::from("execd")].into_iter().chain(flags);
        let argv = c_strings(words.map(OsStringExt::into_vec).collect());
        let entries = host::environment()
            .into_iter()
            .map(|(name, value)| [name.into_vec(), b"=".to_vec(), value.into_vec()].concat());
        let stdio = [stdin.as_raw_fd(), stdout.as_raw_fd(), 2];
        let plan = Plan::of_execd(argv, c_strings(entries.collect()), stdio);
        let child = spawner.spawn(plan).map_err(|failure| system(failure.errno))?;
        Ok(Self { connection: Connection::of_pipes(from, to), child })
    }

    /// Passes a signal on to the execd.
    pub fn signal(&self, signal: i32) {
        // An execd that has ended needs no signal.
        let _ = pidfd::signal(self.child.pidfd.as_raw_fd(), self.child.pid, signal);
    }

    /// Waits for the end of the execd, whose answers nobody reads any more; gives how it ended,
    /// where that can be told.
    pub fn wait(self) -> Option<ExitStatus> {
        drop(self.connection);
        child::reap_now(self.child.pid)
    }
}
