//! The keeper's two processes: started, lost, started again (architecture.md, The keeper). Their
//! pipes in the poll, and the deadlines of another start, are left to `engine/helpers.rs`.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::logs::Facts;
use super::told::Told;
use super::{Hand, Keeper, KeeperFds, KeeperLink};
use crate::keeper::frames::{
    AckDecoder, Reopen, push_guard_frame, push_guard_goodbye, push_reopen,
};
use crate::limits::LOG_PIPE_BYTES;
use crate::session::SessionId;
use crate::sys::io;
use crate::sys::spawn::{Child, Plan, Spawner};

/// The pipes of the log writer: our ends, then its own.
type LogPipes = ((OwnedFd, OwnedFd), (OwnedFd, OwnedFd));

impl KeeperLink {
    /// Starts log writer and guard together, from one program that becomes two processes. Gives
    /// what the poll is to watch, or why they could not be started.
    pub fn start(&mut self, spawner: &Spawner, now_ns: u64) -> Result<KeeperFds, i32> {
        self.writer_restarts.started(now_ns);
        self.guard_restarts.started(now_ns);
        let ((log, acks), (log_theirs, acks_theirs)) = log_pipes()?;
        let (guard, guard_theirs) = io::pipe_to_child(false)?;
        let stdio = [&log_theirs, &acks_theirs, &guard_theirs].map(|fd| fd.as_raw_fd());
        let pid = self.spawn(spawner, stdio, &[])?.pid;
        let fds = (log.as_raw_fd(), acks.as_raw_fd(), guard.as_raw_fd());
        self.has_writer(Keeper { pid, log, acks });
        self.has_guard(guard);
        Ok(fds)
    }

    /// Starts a log writer alone: the guard lives on.
    pub fn start_writer(&mut self, spawner: &Spawner, now_ns: u64) -> Result<(RawFd, RawFd), i32> {
        self.writer_restarts.started(now_ns);
        let ((log, acks), (log_theirs, acks_theirs)) = log_pipes()?;
        let stdio = [&log_theirs, &acks_theirs, &log_theirs].map(|fd| fd.as_raw_fd());
        // Old logs were deleted at the first start; now a silent live one could be taken for old
        // before it is reopened (and locked).
        let more = [c"--only-writer", c"--leave-old-logs"];
        let pid = self.spawn(spawner, stdio, &more)?.pid;
        let fds = (log.as_raw_fd(), acks.as_raw_fd());
        self.has_writer(Keeper { pid, log, acks });
        Ok(fds)
    }

    /// Starts a guard alone: the log writer lives on.
    pub fn start_guard(&mut self, spawner: &Spawner, now_ns: u64) -> Result<RawFd, i32> {
        self.guard_restarts.started(now_ns);
        let (guard, theirs) = io::pipe_to_child(false)?;
        self.spawn(spawner, [theirs.as_raw_fd(); 3], &[c"--only-guard"])?;
        let fd = guard.as_raw_fd();
        self.has_guard(guard);
        Ok(fd)
    }

    fn spawn(
        &self,
        spawner: &Spawner,
        stdio: [RawFd; 3],
        more: &[&'static CStr],
    ) -> Result<Child, i32> {
        let argv = self.plan.argv.iter().chain(&self.plan.place).map(CString::as_c_str);
        let argv: Vec<&CStr> = argv.chain(more.iter().copied()).collect();
        let envp: Vec<&CStr> = self.plan.envp.iter().map(CString::as_c_str).collect();
        let plan = Plan::of_execd(&argv, &envp, stdio);
        spawner.spawn(&plan).map_err(|failure| failure.errno)
    }

    /// Starts the process that ends what is left of execds that were killed together with their
    /// helpers.
    pub fn start_sweep(&self, spawner: &Spawner) -> Result<Child, i32> {
        let null = io::dev_null()?;
        self.spawn(spawner, [null.as_raw_fd(); 3], &[c"--only-sweep"])
    }

    /// A log writer was started: it is told of all live sessions and their logs.
    fn has_writer(&mut self, keeper: Keeper) {
        self.hand = Hand::Process(Some(keeper));
        self.ack_bytes = AckDecoder::default();
        self.reading.coming = None;
        self.pipe_full = false;
        self.writer_told = Told::nothing();
        self.writer_told.catch_up(&self.guarded, &mut self.staging, push_guard_frame);
        for (&id, log) in self.logs.iter_mut() {
            let known = Reopen {
                name: log.name.clone(),
                total: log.total,
                errors_total: log.errors_total,
                noted: log.noted,
                from: log.from,
                from_output: log.from_output,
                truncated: log.truncated && !log.space,
            };
            push_reopen(self.staging.buffer(), id, &known);
            log.open_sent = true;
            log.facts = Facts::default();
        }
        let ids: Vec<SessionId> = self.logs.keys().copied().collect();
        for id in ids {
            self.make_busy(id);
        }
    }

    /// A guard was started: it is told of all live sessions.
    fn has_guard(&mut self, guard: OwnedFd) {
        self.guard = Some(guard);
        self.guard_is_gone = false;
        self.guard_told = Told::nothing();
        self.pump_guard();
    }

    /// The log writer's pid while it runs.
    pub fn pid(&self) -> Option<i32> {
        match &self.hand {
            Hand::Process(Some(keeper)) => Some(keeper.pid),
            _ => None,
        }
    }

    /// The log writer is gone: its pipes are closed (which takes them out of the poll), what
    /// waited is given up. Gives when it may be started again.
    pub fn lost(&mut self, now_ns: u64) -> u64 {
        self.hand = Hand::Process(None);
        self.staging.clear();
        self.writer_told = Told::default();
        self.busy.clear();
        self.orphan_bytes = 0;
        self.logs.retain(|_, log| !log.closing);
        for log in self.logs.values_mut() {
            log.busy = false;
            log.keeper_lost();
        }
        self.writer_restarts.died(now_ns)
    }

    /// The guard is gone: as [`Self::lost`].
    pub fn guard_lost(&mut self, now_ns: u64) -> u64 {
        self.guard_told = Told::default();
        // Should it live after all, the end of its pipe must not look like our own end.
        push_guard_goodbye(self.guard_staging.buffer());
        self.pump_guard();
        self.guard = None;
        self.guard_is_gone = false;
        self.guard_staging.clear();
        self.guard_restarts.died(now_ns)
    }
}

fn log_pipes() -> Result<LogPipes, i32> {
    let (log, log_theirs) = io::pipe_to_child(false)?;
    let (acks, acks_theirs) = io::pipe_to_child(true)?;
    // A smaller pipe (the user's soft limit is used up) only stalls sooner.
    let _ = io::set_pipe_size(&log, LOG_PIPE_BYTES);
    Ok(((log, acks), (log_theirs, acks_theirs)))
}
