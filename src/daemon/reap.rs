//! Signals, leaders, orphans (process-model.md, Reaping and ends).

use super::{Daemon, Owner};
use crate::limits::{REAPS_PER_TURN, SIGNALS_PER_TURN};
use crate::pure::life::Fact;
use crate::session::SessionId;
use crate::sys::child::{self, Event};

/// SIGCHLD's number, signal(7).
const SIGCHLD: i32 = 17;

impl Daemon {
    /// Step: takes the signals that came. SIGCHLD is only a hint: many ends may be one record.
    pub(super) fn take_signals(&mut self) {
        for _ in 0..SIGNALS_PER_TURN {
            match self.signals.next() {
                Some(SIGCHLD) => self.look_for_children = true,
                Some(signal) => self.signal_to_take.push(signal),
                None => return,
            }
        }
    }

    /// Step: reaps leaders whose pidfd said so, then everybody else who has something to tell.
    pub(super) fn reap(&mut self) {
        for id in std::mem::take(&mut self.ended_leaders) {
            self.reap_leader(id);
        }
        if !self.look_for_children {
            return;
        }
        for _ in 0..REAPS_PER_TURN {
            let Some(peek) = child::peek_any() else {
                self.look_for_children = false;
                return;
            };
            match (self.leaders.get(&peek.pid).copied(), peek.event) {
                (Some(id), Event::Ended) => self.reap_leader(id),
                (Some(id), event) => {
                    child::take_stop(peek.pid);
                    let fact =
                        if event == Event::Stopped { Fact::Stopped } else { Fact::Continued };
                    self.debug(format_args!("session {id}: leader {fact:?}"));
                    if let Some(session) = self.sessions.get_mut(&id) {
                        session.learn(fact, self.now_ns);
                    }
                }
                (None, _) => self.take_stranger(peek.pid),
            }
        }
    }

    /// A child that leads no session: the keeper, or an orphan that came to us.
    fn take_stranger(&mut self, pid: i32) {
        if child::take(pid).is_none() {
            return;
        }
        self.debug(format_args!("reaped {pid}"));
        if self.keeper.pid() == Some(pid) {
            self.keeper_gone();
        }
        self.recheck_left = !self.left.is_empty();
    }

    /// Reaps a leader that has ended, and reads its output to the end first: what it wrote
    /// before its end must be in the reply that tells of it.
    fn reap_leader(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(pidfd) = &session.pidfd else { return };
        use std::os::fd::AsRawFd;
        let Some((status, usage)) = child::reap_pidfd(pidfd.as_raw_fd()) else { return };
        let pid = session.facts.pid;
        session.usage = usage;
        self.leaders.remove(&pid);
        self.counters.exits += 1;
        self.drain(id);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.pidfd = None;
            if let Some(ending) = &mut session.ending {
                ending.look = true;
            }
            session.learn(Fact::Reaped(status), self.now_ns);
            self.debug(format_args!("session {id}: leader reaped {status:?}"));
            if self.sessions.get(&id).is_some_and(|session| session.life.finished()) {
                self.close_streams(id);
            }
        }
        self.keeper.ask_sync(id);
        self.touch(id);
    }

    /// A deadline for the keeper has come: it may be started again.
    pub(super) fn restart_keeper(&mut self) {
        if self.keeper.pid().is_none() && self.closing.is_none() {
            self.deadlines.set(Owner::Keeper, None);
            self.start_keeper();
        }
    }
}
