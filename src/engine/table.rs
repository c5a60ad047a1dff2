//! The table of sessions: entering it, eviction, leaving it, and what is left behind
//! (unified-exec.md, The table, eviction and warnings; architecture.md, Ending a session).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Daemon, Owner};
use crate::limits::{
    EVICTED_REMEMBERED, KILL_GRACE_MS, LRU_PROTECTED_COUNT, NAMED_PROCESSES, WARNING_BELOW_MAX,
};
use crate::pure::process::lru::{Candidate, victim};
use crate::session::ending::{Ending, SIGTERM};
use crate::session::family::{Family, Number};
use crate::session::report::NamedProcess;
use crate::session::wait::WaitKind;
use crate::session::{Listing, Session, SessionId};
use crate::sys::proc::ProcStat;
use crate::wire::{Reason, RpcError};

/// A session that is over, and whose members may run on.
#[derive(Debug)]
pub struct Leftover {
    /// The session's id.
    pub id: SessionId,
    /// Its members.
    pub family: Family,
    /// What is known of it, for a kill_session with the old id.
    pub session: Box<Session>,
}

/// Members that outlive their sessions.
#[derive(Debug, Default)]
pub struct Outlived {
    /// Sessions that are over, whose members are still to be looked for.
    pub(crate) over: VecDeque<Leftover>,
    /// Members that outlived their session.
    pub(crate) left: BTreeMap<SessionId, Leftover>,
    /// Sessions whose leader was reaped while members had its number.
    pub(crate) headless: BTreeSet<SessionId>,
    /// The leaders that have ended and could not be reaped, by pid.
    pub(crate) unreaped: BTreeMap<i32, SessionId>,
    /// An orphan was reaped: what is left may be less.
    pub(crate) recheck: bool,
}

fn no_session(id: SessionId, why: &str) -> RpcError {
    RpcError::failed(Reason::UnknownSession, format!("unknown session_id: {id}{why}"))
}

impl Daemon {
    /// The session of this id, where it is in the table, as used now.
    pub fn use_session(&mut self, id: SessionId) -> Result<&mut Session, RpcError> {
        // Who is not there is looked for among those that were evicted: not for each call.
        if self.sessions.get(&id).is_none_or(|one| one.listing != Listing::Listed) {
            return Err(self.unknown_session(id));
        }
        self.use_counter += 1;
        let used = self.use_counter;
        let session = self.sessions.get_mut(&id).ok_or_else(|| no_session(id, ""))?;
        session.last_used = used;
        Ok(session)
    }

    /// The error of an id that names no session.
    pub fn unknown_session(&self, id: SessionId) -> RpcError {
        let evicted = self.evicted.iter().find(|(evicted, _)| *evicted == id);
        match evicted {
            None => no_session(id, ""),
            Some((_, None)) => no_session(id, " (evicted)"),
            Some((_, Some(log))) => no_session(id, &format!(" (evicted; log: {log})")),
        }
    }

    /// The sessions in the table, by id.
    pub fn listed(&self) -> impl Iterator<Item = &Session> {
        self.sessions.values().filter(|session| session.listing == Listing::Listed)
    }

    /// The sessions in the table that have not ended.
    pub fn live_count(&self) -> usize {
        self.listed().filter(|session| !session.life.finished()).count()
    }

    pub(crate) fn set_listing(&mut self, id: SessionId, listing: Listing) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let was = std::mem::replace(&mut session.listing, listing);
        if session.has_own_cap() {
            // Jobs and windows have a cap of their own: they take nobody's place.
            return;
        }
        self.listed += usize::from(listing == Listing::Listed);
        self.listed -= usize::from(was == Listing::Listed);
    }

    /// Enters a session into the table, when it is not there yet: evicts whom it must, and
    /// leaves a warning for the call that started it.
    pub(crate) fn register(&mut self, id: SessionId) {
        let early = |session: &Session| session.listing == Listing::Early;
        if !self.sessions.get(&id).is_some_and(early) {
            return;
        }
        if self.sessions.get(&id).is_some_and(Session::has_own_cap) {
            self.set_listing(id, Listing::Listed);
            self.announce(id);
            return;
        }
        let mut warnings = self.evict_down_to(self.config.max_sessions.saturating_sub(1));
        self.set_listing(id, Listing::Listed);
        self.use_counter += 1;
        let (used, listed, max) = (self.use_counter, self.listed, self.config.max_sessions);
        if warnings.is_empty() && listed + WARNING_BELOW_MAX >= max {
            warnings.push(format!("{listed}/{max} sessions open"));
        }
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.last_used = used;
        self.announce(id);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if let Some(wait) = session.waits.iter_mut().find(|wait| wait.kind == WaitKind::Exec)
            && !warnings.is_empty()
        {
            wait.warning = Some(warnings.join("; "));
        }
    }

    /// Evicts the least recently used until at most `most` are listed, or nobody can be; gives
    /// what to say about it.
    pub(crate) fn evict_down_to(&mut self, most: usize) -> Vec<String> {
        let mut said = Vec::new();
        let max = self.config.max_sessions;
        while self.listed > most {
            let candidates: Vec<Candidate> = self
                .listed()
                .filter(|session| !session.has_own_cap())
                .map(|session| Candidate {
                    id: session.id,
                    last_used: session.last_used,
                    exited: session.life.finished(),
                    pending: !session.waits.is_empty() || !session.viewers.is_empty(),
                })
                .collect();
            let Some(id) = victim(&candidates, max, LRU_PROTECTED_COUNT) else { break };
            self.evict(id);
            said.push(format!("evicted session {id} (LRU, over cap {max})"));
        }
        said
    }

    fn evict(&mut self, id: SessionId) {
        let log = self.log_path(id);
        self.evicted.push_back((id, log));
        if self.evicted.len() > EVICTED_REMEMBERED {
            self.evicted.pop_front();
        }
        self.debug(format_args!("session {id}: evicted"));
        if let Some(session) = self.sessions.get_mut(&id) {
            session.wake = None;
        }
        self.begin_ending(id, SIGTERM, KILL_GRACE_MS);
        self.set_listing(id, Listing::Gone);
    }

    /// Begins to end everything of a session, or sends another signal to one that is being
    /// ended already.
    pub fn begin_ending(&mut self, id: SessionId, signal: i32, grace_ms: u64) {
        let Some(session) = self.sessions.get(&id) else { return };
        let family = self.family(session);
        let (now_ns, turn) = (self.now_ns, self.counters.turns);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        match &mut session.ending {
            Some(ending) if !ending.over() => ending.also(signal, grace_ms, now_ns, turn),
            ending => *ending = Some(Ending::new(family, signal, grace_ms, now_ns, turn)),
        }
        self.touch(id);
    }

    /// Forgets a session that has left the table, nobody waits for and that needs nothing more.
    pub(crate) fn remove_if_over(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else { return };
        let held = session.output.dropped && !session.streams_closed();
        let ending = session.ending.as_ref().is_some_and(|ending| !ending.over());
        if session.listing != Listing::Gone || !session.waits.is_empty() || held || ending {
            return;
        }
        let all_gone = session.ending.as_ref().is_some_and(|ending| ending.all_gone());
        let family = self.family(session);
        let log_path = self.log_path(id);
        self.keeper.close(id);
        self.forget_deadlines(id);
        let Some(mut session) = self.sessions.remove(&id) else { return };
        if all_gone {
            self.keeper.guard_remove(family.sid, id);
        } else {
            session.retire(log_path);
            self.outlived.over.push_back(Leftover { id, family, session: Box::new(session) });
        }
        self.debug(format_args!("session {id}: removed"));
        // The table may have been over its cap, with nobody to evict until now.
        self.evict_down_to(self.config.max_sessions);
    }

    /// Step, after the replies: looks whether members of sessions that are over run on, and
    /// whether those known to do so still do. That costs a question a session and no look at all
    /// processes, but with --kill-detached.
    pub(crate) fn look_after_members(&mut self) {
        if std::mem::take(&mut self.outlived.recheck) {
            self.recheck_numbers();
            let gone: Vec<SessionId> = self
                .outlived
                .left
                .values()
                .filter(|left| self.is_gone(left))
                .map(|left| left.id)
                .collect();
            for left in gone.into_iter().filter_map(|id| self.outlived.left.remove(&id)) {
                self.keeper.guard_remove(left.family.sid, left.id);
            }
        }
        while let Some(over) = self.outlived.over.pop_front() {
            if self.is_gone(&over) {
                self.keeper.guard_remove(over.family.sid, over.id);
            } else {
                self.debug(format_args!("session {}: members run on", over.id));
                self.outlived.left.insert(over.id, over);
            }
        }
    }

    fn is_gone(&self, left: &Leftover) -> bool {
        let ours = |sid: i32| self.leaders.contains_key(&sid);
        left.family.is_gone(&mut self.lookout.borrow_mut(), &ours)
    }

    /// An orphan was reaped: it may have been the last who had a session's number, which is then
    /// anybody's.
    fn recheck_numbers(&mut self) {
        let mut headless = std::mem::take(&mut self.outlived.headless);
        headless.retain(|id| {
            if let Some(left) = self.outlived.left.get_mut(id) {
                left.family.number = left.family.number.now(left.family.sid);
                left.session.number = left.family.number;
                return left.session.number == Number::Inherited;
            }
            let Some(session) = self.sessions.get_mut(id) else { return false };
            session.number = session.number.now(session.facts.pid);
            if session.number == Number::Free && !session.is_pi() {
                self.keeper.guard_remove(session.facts.pid, *id);
            }
            session.number == Number::Inherited
        });
        self.outlived.headless = headless;
    }

    /// What is left of sessions that are over: each with its living members.
    pub fn left_members(&mut self) -> Vec<(SessionId, NamedProcess)> {
        self.outlived.recheck = !self.outlived.left.is_empty();
        self.look_after_members();
        let mut left: Vec<(SessionId, ProcStat)> = Vec::new();
        for one in self.outlived.left.values() {
            let members = self.members(&one.family).into_iter().take(NAMED_PROCESSES);
            left.extend(members.map(|member| (one.id, member)));
        }
        let processes: Vec<ProcStat> = left.iter().map(|one| one.1).collect();
        left.into_iter().map(|one| one.0).zip(self.named(&processes)).collect()
    }

    /// The members of a session that live, for people: none where it cannot be told.
    pub(crate) fn members(&self, family: &Family) -> Vec<ProcStat> {
        let Some(sid) = family.members_sid() else { return Vec::new() };
        let mut lookout = self.lookout.borrow_mut();
        let mut found = lookout.at_once().map_or_else(|_| Vec::new(), |census| census.living(sid));
        found.retain(|one| one.start_ticks >= family.start_ticks);
        found
    }

    /// Takes what is left of an ended session, to end it.
    pub fn take_left(&mut self, id: SessionId) -> Option<Leftover> {
        self.look_after_members();
        self.outlived.left.remove(&id)
    }

    /// Notes that a session's deadlines are void.
    pub(crate) fn forget_deadlines(&mut self, id: SessionId) {
        self.deadlines.set(Owner::Session(id), None);
        self.wall_deadlines.set(id, None);
    }
}
