//! The two helpers, log writer and guard: started, lost, started again (architecture.md, The
//! keeper). Their pipes in the poll, and the deadlines of another start, are left to
//! `engine/helpers.rs`.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::guard::GuardProcess;
use super::logs::Facts;
use super::{Hand, Keeper, KeeperLink};
use crate::keeper::frames::{AckDecoder, Reopen, push_guard_add, push_reopen};
use crate::limits::LOG_PIPE_BYTES;
use crate::server::session::SessionId;
use crate::sys::keeper_calls::{GUARD_NAME, WRITER_NAME};
use crate::sys::signals::SIGKILL;
use crate::sys::spawn::{Plan, Spawner};
use crate::sys::{io, pidfd};

/// The pipes of the log writer: our ends, then its own.
type LogPipes = ((OwnedFd, OwnedFd), (OwnedFd, OwnedFd));

impl KeeperLink {
    /// Starts a log writer; `again`: another one has run before. Gives its log pipe and its
    /// acknowledgements, for the poll. Errors: an errno.
    pub fn start_writer(
        &mut self,
        spawner: &Spawner,
        again: bool,
        now_ns: u64,
    ) -> Result<(RawFd, RawFd), i32> {
        self.writer_restarts.started(now_ns);
        let ((log, acks), (log_theirs, acks_theirs)) = log_pipes()?;
        let stdio = [&log_theirs, &acks_theirs, &log_theirs].map(|fd| fd.as_raw_fd());
        // Old logs were deleted at the first start; now a silent live one could be taken for old
        // before it is reopened (and locked).
        let more: &[&CStr] = if again { &[c"--leave-old-logs"] } else { &[] };
        let pid = self.spawn(spawner, WRITER_NAME, stdio, more)?;
        let fds = (log.as_raw_fd(), acks.as_raw_fd());
        self.has_writer(Keeper { pid, log, acks });
        Ok(fds)
    }

    /// Starts a guard. Gives its pipe, for the poll. Errors: an errno.
    pub fn start_guard(&mut self, spawner: &Spawner, now_ns: u64) -> Result<RawFd, i32> {
        self.guard_restarts.started(now_ns);
        let (pipe, theirs) = io::pipe_to_child(false)?;
        let pid = self.spawn(spawner, GUARD_NAME, [theirs.as_raw_fd(); 3], &[c"--guard"])?;
        let fd = pipe.as_raw_fd();
        self.has_guard(GuardProcess { pid: Some(pid), pipe });
        Ok(fd)
    }

    fn spawn(
        &self,
        spawner: &Spawner,
        name: &'static CStr,
        stdio: [RawFd; 3],
        more: &[&CStr],
    ) -> Result<i32, i32> {
        let more = more.iter().map(|&word| word.to_owned());
        let flags = self.plan.flags.iter().chain(&self.plan.place).cloned();
        let argv = [name.to_owned()].into_iter().chain(flags).chain(more).collect();
        let plan = Plan::of_execd(argv, self.plan.envp.clone(), stdio);
        let child = spawner.spawn(plan).map_err(|failure| failure.errno)?;
        Ok(child.pid)
    }

    /// A log writer was started: it is told of all logs that go on.
    fn has_writer(&mut self, keeper: Keeper) {
        self.hand = Hand::Process(Some(keeper));
        self.ack_bytes = AckDecoder::default();
        self.reading.coming = None;
        self.pipe_full = false;
        for (&id, log) in self.logs.iter_mut().filter(|(_, log)| !log.awaits_start) {
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
    fn has_guard(&mut self, guard: GuardProcess) {
        self.guard = Some(guard);
        self.guard_is_gone = false;
        for record in self.guarded.values() {
            push_guard_add(self.guard_staging.buffer(), *record);
        }
        self.pump_guard();
    }

    /// The log writer's pid while it runs.
    pub fn pid(&self) -> Option<i32> {
        match &self.hand {
            Hand::Process(Some(keeper)) => Some(keeper.pid),
            _ => None,
        }
    }

    /// A helper was started that tidies up and ends by itself.
    pub fn note_other(&mut self, pid: i32) {
        self.others.insert(pid);
    }

    /// The helpers that are children of execd: they are nobody's orphans.
    pub fn helpers(&self) -> Vec<i32> {
        let guard = self.guard.as_ref().and_then(|guard| guard.pid);
        self.pid().into_iter().chain(guard).chain(self.others.iter().copied()).collect()
    }

    /// The log writer is gone: its pipes are closed (which takes them out of the poll), what
    /// waited is given up. Gives when it may be started again.
    pub fn lost(&mut self, now_ns: u64) -> u64 {
        self.hand = Hand::Process(None);
        self.staging.clear();
        self.busy.clear();
        self.orphan_bytes = 0;
        self.logs.retain(|_, log| !log.closing);
        for log in self.logs.values_mut() {
            log.busy = false;
            log.keeper_lost();
        }
        self.writer_restarts.died(now_ns)
    }

    /// The guard is gone, or does not read: it is killed before its pipe is closed, for the end of
    /// its pipe would look to it like our own end. Gives when another one may be started.
    pub fn guard_lost(&mut self, now_ns: u64) -> u64 {
        if let Some(pid) = self.guard.as_ref().and_then(|guard| guard.pid) {
            // It may have ended, but nobody else has the number of a child that was not reaped.
            let _ = pidfd::by_number(pid, SIGKILL);
        }
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
