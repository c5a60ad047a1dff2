//! The keeper as a process: started, lost, started again (architecture.md, 6).

use std::ffi::{CStr, CString};
use std::os::fd::AsRawFd;

use super::{Hand, Keeper, KeeperFds, KeeperLink};
use crate::keeper::frames::{AckDecoder, Reopen, push_guard_add, push_guard_goodbye, push_reopen};
use crate::limits::{KEEPER_RESTART_MS, LOG_PIPE_BYTES, NS_PER_MS};
use crate::session::SessionId;
use crate::sys::io;
use crate::sys::spawn::{Plan, Spawner};

impl KeeperLink {
    /// Starts the keeper and tells it all live sessions. Gives what the poll is to watch, or
    /// why it could not be started.
    pub fn start(&mut self, spawner: &Spawner, now_ns: u64) -> Result<KeeperFds, i32> {
        self.started_ns = now_ns;
        let (log, log_theirs) = io::pipe_to_child(false)?;
        let (acks, acks_theirs) = io::pipe_to_child(true)?;
        let (guard, guard_theirs) = io::pipe_to_child(false)?;
        // A smaller pipe (the user's soft limit is used up) only stalls sooner.
        let _ = io::set_pipe_size(&log, LOG_PIPE_BYTES);
        let mut argv: Vec<&CStr> = self.plan.argv.iter().map(CString::as_c_str).collect();
        if self.restarted {
            // Old logs were deleted at the first start; now a silent live one could be taken
            // for old before it is reopened (and locked).
            argv.extend([c"--log-keep-days", c"0"]);
        }
        let envp: Vec<&CStr> = self.plan.envp.iter().map(CString::as_c_str).collect();
        let child = spawner
            .spawn(&Plan {
                program: c"/proc/self/exe",
                argv: &argv,
                envp: &envp,
                cwd: None,
                stdio: [log_theirs.as_raw_fd(), acks_theirs.as_raw_fd(), guard_theirs.as_raw_fd()],
                terminal: false,
                die_with_us: false,
            })
            .map_err(|failure| failure.errno)?;
        let fds = (log.as_raw_fd(), acks.as_raw_fd(), guard.as_raw_fd());
        self.hand = Hand::Process(Some(Keeper { pid: child.pid, log, acks, guard }));
        self.ack_bytes = AckDecoder::default();
        self.page = None;
        self.pipe_full = false;
        for record in self.guarded.values() {
            push_guard_add(self.guard_staging.buffer(), *record);
        }
        for (&id, log) in &mut self.logs {
            let known = Reopen {
                name: log.name.clone(),
                total: log.total,
                noted: log.noted,
                truncated: log.truncated,
            };
            push_reopen(self.staging.buffer(), id, &known);
            log.open_sent = true;
        }
        let ids: Vec<SessionId> = self.logs.keys().copied().collect();
        for id in ids {
            self.make_busy(id);
        }
        Ok(fds)
    }

    /// The keeper's pid while it runs.
    pub fn pid(&self) -> Option<i32> {
        match &self.hand {
            Hand::Process(Some(keeper)) => Some(keeper.pid),
            _ => None,
        }
    }

    /// The keeper is gone: its pipes are closed (which takes them out of the poll), what waited
    /// is given up. Gives when it may be restarted: at once the first time, then at most once a
    /// minute.
    pub fn lost(&mut self) -> u64 {
        // Should it live after all, the end of its pipes must not look like our own end.
        push_guard_goodbye(self.guard_staging.buffer());
        self.pump_guard();
        self.hand = Hand::Process(None);
        self.staging.clear();
        self.guard_staging.clear();
        self.busy.clear();
        self.orphan_bytes = 0;
        self.logs.retain(|_, log| !log.closing);
        for log in self.logs.values_mut() {
            log.busy = false;
            log.keeper_lost();
        }
        let due = self.started_ns + KEEPER_RESTART_MS * NS_PER_MS;
        if self.restarted {
            due
        } else {
            self.restarted = true;
            0
        }
    }
}
