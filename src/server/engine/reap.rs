//! Signals, and children that have ended: leaders of sessions, helpers, orphans (architecture.md,
//! Ending a session). What follows for the session is left to its next judgement.

use std::collections::BTreeSet;
use std::os::fd::AsRawFd;

use super::contract::Families;
use super::launch::learn_start;
use super::sessions::Outlived;
use super::{Engine, Owner, streams};
use crate::limits::NS_PER_MS;
use crate::pure::process::life::{ExitStatus, Fact};
use crate::server::session::members::Number;
use crate::server::session::{Session, SessionId};
use crate::sys::child::{self, Event, Usage};
use crate::sys::errno::errno_text;
use crate::sys::proc;
use crate::sys::signals::Came;

/// How many other children the end of a leader costs as much as.
const LEADER_REAPS: usize = 8;

/// Children reaped in one turn, where a leader counts as [`LEADER_REAPS`]; the rest is reaped in
/// the next one.
const REAPS_PER_TURN: usize = 1_024;

/// Records read from one signalfd in one turn.
const SIGNALS_PER_TURN: usize = 64;

/// How often, before its end counts as one that cannot be learnt.
const REAP_TRIES: u32 = 50;

/// How soon a child is asked for again whose end could not be taken.
const REAP_RETRY_MS: u64 = 20;

/// SIGCHLD's number, signal(7).
const SIGCHLD: i32 = 17;
/// No such child, waitid(2): somebody else has taken it.
const ECHILD: i32 = 10;
/// How a leader ended that could not become its program, or whose end nobody can learn.
const UNKNOWN_END: ExitStatus = ExitStatus::Code(-1);

/// Ends that are to be taken.
#[derive(Debug, Default)]
pub struct Reaping {
    /// Whether a SIGCHLD asks for a look at all children.
    pub look_for_children: bool,
    /// Sessions whose leader's end could not be taken: asked for again after a pause.
    again: BTreeSet<SessionId>,
    /// Signals that end execd, and have come.
    pub terminations: Vec<Came>,
}

impl<F: Families> Engine<F> {
    /// Step: takes the signals that came. SIGCHLD is only a hint: many ends may be one record.
    pub(super) fn take_signals(&mut self) {
        for _ in 0..SIGNALS_PER_TURN {
            match self.signals.next_told() {
                Some(came) if came.number == SIGCHLD => self.reaping.look_for_children = true,
                Some(came) => self.reaping.terminations.push(came),
                None => return,
            }
        }
    }

    /// An end could not be taken: it is tried again after a pause.
    fn reap_later(&mut self) {
        self.reaping.look_for_children = false;
        let due_ns = self.cx.now_ns + REAP_RETRY_MS * NS_PER_MS;
        self.cx.deadlines.set(Owner::Reaping, Some(due_ns));
    }

    /// The pause before another try is over.
    pub(super) fn reap_now(&mut self) {
        self.cx.queues.ended_leaders.extend(std::mem::take(&mut self.reaping.again));
        self.reaping.look_for_children = true;
    }

    /// Step: reaps leaders whose pidfd said so, then everybody else who has something to tell.
    pub(super) fn reap(&mut self) {
        let mut left = REAPS_PER_TURN;
        while left > 0
            && let Some(id) = self.cx.queues.ended_leaders.pop_first()
        {
            left = left.saturating_sub(LEADER_REAPS);
            if !self.reap_leader(id) {
                return;
            }
        }
        while self.reaping.look_for_children && left > 0 {
            let peek = match child::peek_any() {
                Ok(Some(peek)) => peek,
                Ok(None) => {
                    self.reaping.look_for_children = false;
                    return;
                }
                Err(_) => return self.reap_later(),
            };
            match (self.cx.leaders.get(&peek.pid).copied(), peek.event) {
                (Some(id), Event::Ended) => {
                    left = left.saturating_sub(LEADER_REAPS);
                    if !self.reap_leader(id) {
                        return;
                    }
                }
                (Some(id), event) => {
                    left -= 1;
                    child::take_stop(peek.pid);
                    let stopped = event == Event::Stopped;
                    let fact = if stopped { Fact::Stopped } else { Fact::Continued };
                    self.cx.debug(format_args!("session {id}: leader {fact:?}"));
                    if let Some(entry) = self.sessions.get_mut(id) {
                        entry.core.learn(fact, self.cx.now_ns);
                    }
                    if stopped {
                        self.front_stopped(id, peek.status);
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
        // Whose it was is not to be known once it is reaped.
        let session = self.session_of_orphan(pid);
        let usage = match child::take(pid) {
            Err(_) => return false,
            Ok(None) => return true,
            Ok(Some(usage)) => usage,
        };
        if let Some(entry) = session.and_then(|id| self.sessions.get_mut(id)) {
            entry.core.orphans = entry.core.orphans.with(usage);
        }
        self.cx.debug(format_args!("reaped {pid}"));
        if self.cx.keeper.pid() == Some(pid) {
            self.keeper_gone();
        }
        self.cx.keeper.note_reaped(pid);
        self.cx.lookout.borrow_mut().helpers = self.cx.keeper.helpers();
        self.leader_taken(pid);
        let outlived = &mut self.sessions.outlived;
        outlived.recheck = !outlived.left.is_empty() || !outlived.headless.is_empty();
        true
    }

    /// The session that an orphan comes from which has ended and is not reaped, among those that
    /// take along what has left them: by the number that its members have, else the one that the
    /// orphan counts for.
    fn session_of_orphan(&self, pid: i32) -> Option<SessionId> {
        let whole = || self.sessions.iter().map(|one| &one.core).filter(|one| one.ways.whole);
        whole().next()?;
        let orphan = proc::stat(pid)?;
        let is_its = |core: &&Session| core.facts.pid == orphan.sid && core.number != Number::Free;
        let by_start = || {
            let id = self.cx.session_of_orphan(&orphan)?;
            whole().find(|core| core.id == id)
        };
        whole().find(is_its).or_else(by_start).map(|core| core.id)
    }

    /// A leader whose end could not be learnt was reaped after all: members have its number now.
    fn leader_taken(&mut self, pid: i32) {
        let Outlived { over, left, headless, unreaped, .. } = &mut self.sessions.outlived;
        let Some(id) = unreaped.remove(&pid) else { return };
        let number = Number::Inherited.now(pid);
        if let Some(left) = over.iter_mut().chain(left.values_mut()).find(|left| left.id == id) {
            left.members.number = number;
            left.entry.core.number = number;
        }
        // The next check tells the guard where the number is free.
        headless.insert(id);
        if let Some(entry) = self.sessions.get_mut(id) {
            entry.core.number = number;
            if let Some(ending) = &mut entry.core.ending {
                ending.leader_reaped(number, self.cx.counters.turns);
            }
            self.cx.touch(&mut entry.core);
        }
    }

    /// Reaps a leader that has ended, and reads its output to the end first: what it wrote
    /// before its end must be in the reply that tells of it. False: there is more output than may
    /// be read in this turn, and the leader is reaped in a later one.
    fn reap_leader(&mut self, id: SessionId) -> bool {
        let cx = &mut self.cx;
        let Some(entry) = self.sessions.get_mut(id) else { return true };
        if entry.core.pidfd.is_none() {
            return true;
        }
        if !streams::drain(entry, false, cx) {
            cx.queues.ended_leaders.insert(id);
            return false;
        }
        let core = &mut entry.core;
        let Some(pidfd) = &core.pidfd else { return true };
        let pid = core.facts.pid;
        let mut number = Number::Inherited;
        let (status, usage) = match child::reap_pidfd(pidfd.as_raw_fd()) {
            Ok(Some(ended)) => ended,
            Ok(None) => return true,
            Err(errno) => {
                // The pidfd told of the end once, and that must not get lost.
                core.reap_failures += 1;
                if core.reap_failures < REAP_TRIES {
                    self.reaping.again.insert(id);
                    self.reap_later();
                    return false;
                }
                let why = errno_text(errno);
                core.note_trouble(format!("how the command ended could not be learnt ({why})"));
                if errno != ECHILD {
                    // The leader is a zombie, and has its number until somebody reaps it.
                    number = Number::Leads;
                    self.sessions.outlived.unreaped.insert(pid, id);
                }
                (UNKNOWN_END, Usage::default())
            }
        };
        let Some(entry) = self.sessions.get_mut(id) else { return true };
        let core = &mut entry.core;
        learn_start(core, &mut self.cx);
        let status = if core.start.failure().is_some() { UNKNOWN_END } else { status };
        core.usage = usage;
        core.pidfd = None;
        // Asked at once, while nobody else can have got the number: a session without members may
        // stay listed for days.
        core.number = number.now(pid);
        self.cx.leaders.remove(&pid);
        self.cx.counters.exits += 1;
        let number = core.number;
        if number == Number::Free {
            // The guard too must not take somebody else for it.
            self.cx.keeper.guard_remove(pid, id);
        }
        if let Some(ending) = &mut core.ending {
            ending.leader_reaped(number, self.cx.counters.turns);
        }
        core.learn(Fact::Reaped(status), self.cx.now_ns);
        self.cx.debug(format_args!("session {id}: leader reaped {status:?}"));
        if core.life.finished() {
            streams::close(core, &mut self.cx);
        }
        self.cx.keeper.ask_sync(id);
        self.cx.touch(core);
        if number == Number::Inherited {
            self.sessions.outlived.headless.insert(id);
        }
        true
    }
}
