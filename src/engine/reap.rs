//! Signals, leaders, orphans (architecture.md, Ending a session).

use super::logs::errno_text;
use super::table::Outlived;
use super::{Daemon, Owner};
use crate::limits::{
    LEADER_REAPS, NS_PER_MS, REAP_RETRY_MS, REAP_TRIES, REAPS_PER_TURN, SIGNALS_PER_TURN,
};
use crate::pure::process::life::{ExitStatus, Fact};
use crate::session::SessionId;
use crate::session::family::Number;
use crate::sys::child::{self, Event, Usage};

/// SIGCHLD's number, signal(7).
const SIGCHLD: i32 = 17;
/// No such child, waitid(2): somebody else has taken it.
const ECHILD: i32 = 10;
/// How a leader ended that could not become its program, or whose end nobody can learn.
const UNKNOWN_END: ExitStatus = ExitStatus::Code(-1);

impl Daemon {
    /// Step: takes the signals that came. SIGCHLD is only a hint: many ends may be one record.
    pub(crate) fn take_signals(&mut self) {
        for _ in 0..SIGNALS_PER_TURN {
            match self.signals.next() {
                Some(SIGCHLD) => self.look_for_children = true,
                Some(signal) => self.signal_to_take.push(signal),
                None => return,
            }
        }
    }

    /// An end could not be taken: it is tried again after a pause.
    fn reap_later(&mut self) {
        self.look_for_children = false;
        let due_ns = self.now_ns + REAP_RETRY_MS * NS_PER_MS;
        self.deadlines.set(Owner::Reaping, Some(due_ns));
    }

    /// The pause is over.
    pub(crate) fn reap_now(&mut self) {
        self.ended_leaders.append(&mut self.reap_again);
        self.look_for_children = true;
    }

    /// Step: reaps leaders whose pidfd said so, then everybody else who has something to tell.
    pub(crate) fn reap(&mut self) {
        let mut left = REAPS_PER_TURN;
        while left > 0
            && let Some(id) = self.ended_leaders.pop_first()
        {
            left = left.saturating_sub(LEADER_REAPS);
            if !self.reap_leader(id) {
                return;
            }
        }
        if !self.look_for_children {
            return;
        }
        while left > 0 {
            let peek = match child::peek_any() {
                Ok(Some(peek)) => peek,
                Ok(None) => {
                    self.look_for_children = false;
                    return;
                }
                Err(_) => return self.reap_later(),
            };
            match (self.leaders.get(&peek.pid).copied(), peek.event) {
                (Some(id), Event::Ended) => {
                    left = left.saturating_sub(LEADER_REAPS);
                    if !self.reap_leader(id) {
                        return;
                    }
                }
                (Some(id), event) => {
                    left -= 1;
                    child::take_stop(peek.pid);
                    let fact =
                        if event == Event::Stopped { Fact::Stopped } else { Fact::Continued };
                    self.debug(format_args!("session {id}: leader {fact:?}"));
                    if let Some(session) = self.sessions.get_mut(&id) {
                        session.learn(fact, self.now_ns);
                    }
                }
                (None, _) => {
                    left -= 1;
                    if !self.take_stranger(peek.pid) {
                        return self.reap_later();
                    }
                }
            }
        }
    }

    /// A child that leads no session: the keeper, or an orphan that came to us.
    /// False: it could not be taken.
    fn take_stranger(&mut self, pid: i32) -> bool {
        match child::take(pid) {
            Err(_) => return false,
            Ok(None) => return true,
            Ok(Some(_)) => {}
        }
        self.debug(format_args!("reaped {pid}"));
        if self.keeper.pid() == Some(pid) {
            self.keeper_gone();
        }
        self.leader_taken(pid);
        self.outlived.recheck =
            !self.outlived.left.is_empty() || !self.outlived.headless.is_empty();
        true
    }

    /// A leader whose end could not be learnt was reaped after all: members have its number now.
    fn leader_taken(&mut self, pid: i32) {
        let Some(id) = self.outlived.unreaped.remove(&pid) else { return };
        let number = Number::Inherited.now(pid);
        let Outlived { over, left, .. } = &mut self.outlived;
        if let Some(left) = over.iter_mut().chain(left.values_mut()).find(|left| left.id == id) {
            left.family.number = number;
            left.session.number = number;
        }
        if let Some(session) = self.sessions.get_mut(&id) {
            session.number = number;
            if let Some(ending) = &mut session.ending {
                ending.leader_reaped(number, self.counters.turns);
            }
            self.touch(id);
        }
        // The next check tells the guard where the number is free.
        self.outlived.headless.insert(id);
    }

    /// Reaps a leader that has ended, and reads its output to the end first: what it wrote
    /// before its end must be in the reply that tells of it. False: there is more of that than may
    /// be read in this turn, and it is reaped in a later one.
    fn reap_leader(&mut self, id: SessionId) -> bool {
        if self.sessions.get(&id).is_none_or(|session| session.pidfd.is_none()) {
            return true;
        }
        if !self.drain(id, false) {
            self.ended_leaders.insert(id);
            return false;
        }
        let Some(session) = self.sessions.get_mut(&id) else { return true };
        let Some(pidfd) = &session.pidfd else { return true };
        use std::os::fd::AsRawFd;
        let mut number = Number::Inherited;
        let (status, usage) = match child::reap_pidfd(pidfd.as_raw_fd()) {
            Ok(Some(ended)) => ended,
            Ok(None) => return true,
            Err(errno) => {
                // Its word came once, and must not get lost.
                session.reap_failures += 1;
                if session.reap_failures < REAP_TRIES {
                    self.reap_again.insert(id);
                    self.reap_later();
                    return false;
                }
                let why = errno_text(errno);
                session.note_trouble(format!("how the command ended could not be learnt ({why})"));
                if errno != ECHILD {
                    // It is a zombie, and has its number until somebody takes it.
                    number = Number::Leads;
                    self.outlived.unreaped.insert(session.facts.pid, id);
                }
                (UNKNOWN_END, Usage::default())
            }
        };
        let pid = session.facts.pid;
        session.usage = usage;
        self.look_at_start(id);
        let failed = self.sessions.get(&id).is_some_and(|one| one.start.failure().is_some());
        let status = if failed { UNKNOWN_END } else { status };
        self.leaders.remove(&pid);
        self.counters.exits += 1;
        if let Some(session) = self.sessions.get_mut(&id) {
            session.pidfd = None;
            // Asked at once, while nobody else can have got the number: a session without members
            // may stay listed for days.
            session.number = number.now(pid);
            match session.number {
                Number::Inherited => _ = self.outlived.headless.insert(id),
                // The guard too must not take somebody else for it. What a run of pi leaves behind
                // is known by more than the number.
                Number::Free if !session.is_pi() => self.keeper.guard_remove(pid, id),
                _ => {}
            }
            if let Some(ending) = &mut session.ending {
                ending.leader_reaped(session.number, self.counters.turns);
            }
            session.learn(Fact::Reaped(status), self.now_ns);
            self.debug(format_args!("session {id}: leader reaped {status:?}"));
            if self.sessions.get(&id).is_some_and(|session| session.life.finished()) {
                self.close_streams(id);
            }
        }
        self.keeper.ask_sync(id);
        self.touch(id);
        true
    }
}
