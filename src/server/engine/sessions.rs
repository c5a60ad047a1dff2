//! The table of sessions: entering it, eviction, leaving it, and what outlives a session
//! (architecture.md, Ending a session). When a
//! session enters or leaves the table is decided by `judge`.

mod outlived;
pub mod past;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::contract::Families;
use super::contract::cx::{Cx, Effect};
use super::{Engine, Owner};
use crate::limits::{KILL_GRACE_MS, NS_PER_MS};
use crate::pure::process::killed::{KilledBy, who};
use crate::pure::process::lru::{Candidate, victim};
use crate::server::session::ending::SIGTERM;
use crate::server::session::members::Members;
use crate::server::session::wait::WaitKind;
use crate::server::session::{Listing, Session, SessionId};
use crate::sys::host;
use crate::sys::proc::ProcStat;
use crate::wire::{Reason, RpcError};
use past::{LastSeen, Past, PastSession};

/// Sessions whose id still gets a message saying that they were evicted, and where the log is.
const EVICTED_REMEMBERED: usize = 1_024;

/// The most recently used sessions that eviction never takes.
const LRU_PROTECTED_COUNT: usize = 8;

/// Warnings start this many below the cap (60 of 64).
const WARNING_BELOW_MAX: usize = 4;

/// A session, and what its family keeps of it.
#[derive(Debug)]
pub struct Entry<F> {
    /// The session.
    pub core: Session,
    /// What the family that started it keeps of it.
    pub family: F,
}

/// A session that is over, and whose members may run on.
#[derive(Debug)]
pub struct Leftover<F> {
    /// The session's id.
    pub id: SessionId,
    /// Its members.
    pub members: Members,
    /// What is known of it, for a kill_session with the old id.
    pub entry: Box<Entry<F>>,
}

/// Members that outlive their sessions.
#[derive(Debug)]
pub struct Outlived<F> {
    /// Sessions that are over, whose members are still to be looked for.
    pub over: VecDeque<Leftover<F>>,
    /// Members that outlived their session.
    pub left: BTreeMap<SessionId, Leftover<F>>,
    /// Sessions whose leader was reaped while members had its number.
    pub headless: BTreeSet<SessionId>,
    /// The leaders that have ended and could not be reaped, by pid.
    pub unreaped: BTreeMap<i32, SessionId>,
    /// An orphan was reaped: what is left may be less.
    pub recheck: bool,
}

/// The table of sessions.
#[derive(Debug)]
pub struct Sessions<F> {
    by_id: BTreeMap<SessionId, Box<Entry<F>>>,
    /// How many are listed, but for those whose family has a cap of its own.
    listed: usize,
    /// The id of the next session.
    pub next_id: SessionId,
    use_counter: u64,
    /// The sessions that were evicted last, with their logs.
    evicted: VecDeque<(SessionId, Option<String>)>,
    /// The sessions that left last.
    pub past: Past,
    /// What outlives its session.
    pub outlived: Outlived<F>,
}

/// The error of an id that names no session.
fn no_session(id: SessionId, why: &str) -> RpcError {
    RpcError::failed(Reason::UnknownSession, format!("unknown session_id: {id}{why}"))
}

/// Changes a session's place in the table, of which `listed` are listed.
fn set_listing(listed: &mut usize, core: &mut Session, listing: Listing) {
    let was = std::mem::replace(&mut core.listing, listing);
    if core.ways.own_cap {
        // Such a session takes nobody's place.
        return;
    }
    *listed += usize::from(listing == Listing::Listed);
    *listed -= usize::from(was == Listing::Listed);
}

impl<F: Families> Sessions<F> {
    /// An empty table, whose first session gets this id.
    pub fn new(first_id: SessionId) -> Self {
        Self {
            by_id: BTreeMap::new(),
            listed: 0,
            next_id: first_id,
            use_counter: 0,
            evicted: VecDeque::new(),
            past: Past::default(),
            outlived: Outlived {
                over: VecDeque::new(),
                left: BTreeMap::new(),
                headless: BTreeSet::new(),
                unreaped: BTreeMap::new(),
                recheck: false,
            },
        }
    }

    /// The session of this id, listed or not.
    pub fn get(&self, id: SessionId) -> Option<&Entry<F>> {
        self.by_id.get(&id).map(Box::as_ref)
    }

    /// The session of this id, to change it.
    pub fn get_mut(&mut self, id: SessionId) -> Option<&mut Entry<F>> {
        self.by_id.get_mut(&id).map(Box::as_mut)
    }

    /// All sessions, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Entry<F>> {
        self.by_id.values().map(Box::as_ref)
    }

    /// All sessions, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry<F>> {
        self.by_id.values_mut().map(Box::as_mut)
    }

    /// Takes a session out while it is judged: see [`Self::put`].
    pub fn take(&mut self, id: SessionId) -> Option<Box<Entry<F>>> {
        self.by_id.remove(&id)
    }

    /// Puts a session in that was just started, or that was taken out.
    pub fn put(&mut self, entry: Box<Entry<F>>) {
        self.by_id.insert(entry.core.id, entry);
    }

    /// How many sessions of a family go on: what counts against that family's own cap.
    pub fn running(&self, of_family: impl Fn(&F) -> bool) -> usize {
        self.iter().filter(|one| of_family(&one.family) && !one.core.life.finished()).count()
    }

    /// The session of this id, where it is in the table, as used now.
    pub fn use_session(&mut self, id: SessionId) -> Result<&mut Entry<F>, RpcError> {
        // Only an id that is not there is looked for among the evicted: not that of each call.
        if self.get(id).is_none_or(|one| one.core.listing != Listing::Listed) {
            return Err(self.unknown_session(id));
        }
        let used = self.next_use();
        let entry = self.get_mut(id).ok_or_else(|| no_session(id, ""))?;
        entry.core.last_used = used;
        Ok(entry)
    }

    /// The use counter's value for a session that is used now.
    pub fn next_use(&mut self) -> u64 {
        self.use_counter += 1;
        self.use_counter
    }

    /// The error of an id that names no session.
    pub fn unknown_session(&self, id: SessionId) -> RpcError {
        match self.evicted.iter().find(|(evicted, _)| *evicted == id) {
            None => no_session(id, ""),
            Some((_, None)) => no_session(id, " (evicted)"),
            Some((_, Some(log))) => no_session(id, &format!(" (evicted; log: {log})")),
        }
    }

    /// The sessions in the table, by id.
    pub fn listed(&self) -> impl Iterator<Item = &Session> {
        self.iter().map(|one| &one.core).filter(|core| core.listing == Listing::Listed)
    }

    /// The sessions in the table that have not ended.
    pub fn live_count(&self) -> usize {
        self.listed().filter(|core| !core.life.finished()).count()
    }

    /// Asserts what holds between turns (in debug builds).
    pub fn check(&self) {
        self.iter().for_each(|one| one.core.check());
        let listed = self.listed().filter(|core| !core.ways.own_cap).count();
        debug_assert_eq!(self.listed, listed, "the count of the table");
    }

    /// These exits were told by a listing: the sessions leave the table.
    pub fn observe_exits(&mut self, exited: &[SessionId], cx: &mut Cx<F>) {
        for id in exited {
            let Some(entry) = self.by_id.get_mut(id) else { continue };
            set_listing(&mut self.listed, &mut entry.core, Listing::Gone);
            entry.core.observed = true;
            cx.touch(&mut entry.core);
        }
    }

    /// A session that was taken out leaves the table.
    pub fn unlist(&mut self, core: &mut Session) {
        set_listing(&mut self.listed, core, Listing::Gone);
    }

    /// Enters a session that was taken out into the table, when it is not there yet: evicts whom
    /// it must, and leaves a warning for the call that started it.
    pub fn register(&mut self, core: &mut Session, cx: &mut Cx<F>) {
        if core.listing != Listing::Early {
            return;
        }
        if core.ways.own_cap {
            return cx.list(core);
        }
        let max = cx.config.max_sessions;
        let evicted = self.evict_down_to(max.saturating_sub(1), cx);
        let warning = |id: &SessionId| format!("evicted session {id} (LRU, over cap {max})");
        let mut warnings: Vec<String> = evicted.iter().map(warning).collect();
        set_listing(&mut self.listed, core, Listing::Listed);
        let listed = self.listed;
        if warnings.is_empty() && listed + WARNING_BELOW_MAX >= max {
            warnings.push(format!("{listed}/{max} sessions open"));
        }
        cx.announce(core);
        if let Some(wait) = core.waits.iter_mut().find(|wait| wait.kind == WaitKind::Start)
            && !warnings.is_empty()
            // Nobody sees the table of an execd that runs one command.
            && !cx.is_front(core.id)
        {
            wait.warning = Some(warnings.join("; "));
            wait.evicted = evicted;
        }
    }

    /// Evicts the least recently used where the table is over its cap because everybody had a
    /// pending request.
    pub fn keep_to_cap(&mut self, cx: &mut Cx<F>) {
        if self.listed > cx.config.max_sessions {
            self.evict_down_to(cx.config.max_sessions, cx);
        }
    }

    /// Evicts the least recently used until at most `most` are listed, or nobody can be; gives
    /// who was evicted.
    fn evict_down_to(&mut self, most: usize, cx: &mut Cx<F>) -> Vec<SessionId> {
        let mut evicted = Vec::new();
        let max = cx.config.max_sessions;
        while self.listed > most {
            let candidates: Vec<Candidate> = self
                .listed()
                .filter(|core| !core.ways.own_cap)
                .map(|core| Candidate {
                    id: core.id,
                    last_used: core.last_used,
                    exited: core.life.finished(),
                    pending: !core.waits.is_empty() || !core.viewers.is_empty(),
                })
                .collect();
            let Some(id) = victim(&candidates, max, LRU_PROTECTED_COUNT) else { break };
            self.evict(id, cx);
            evicted.push(id);
        }
        evicted
    }

    fn evict(&mut self, id: SessionId, cx: &mut Cx<F>) {
        self.evicted.push_back((id, cx.log_path(id)));
        if self.evicted.len() > EVICTED_REMEMBERED {
            self.evicted.pop_front();
        }
        cx.debug(format_args!("session {id}: evicted"));
        if let Some(entry) = self.by_id.get_mut(&id) {
            cx.note_eviction(&entry.core);
            cx.kill(&mut entry.core, SIGTERM, KILL_GRACE_MS, KilledBy::Eviction.into());
            set_listing(&mut self.listed, &mut entry.core, Listing::Gone);
        }
    }

    /// Carries out what judging one session had to do with others.
    pub fn apply(&mut self, effect: Effect, cx: &mut Cx<F>) {
        match effect {
            Effect::TouchWaiting(family) => {
                for one in self.iter_mut() {
                    if one.core.waits.iter().any(|wait| wait.asked_by == family) {
                        cx.touch(&mut one.core);
                    }
                }
            }
            Effect::Close(_) | Effect::FollowFront => {}
        }
    }

    /// Puts a session back that was judged; one that has left the table, that nobody waits for
    /// and that needs nothing more is forgotten.
    pub fn put_or_forget(&mut self, mut entry: Box<Entry<F>>, cx: &mut Cx<F>) {
        let core = &mut entry.core;
        let held = core.output.dropped && !core.streams_closed();
        let ending = core.ending.as_ref().is_some_and(|ending| !ending.over());
        if core.finished_ns.is_none()
            || core.awaits_log
            || core.listing != Listing::Gone
            || core.is_awaited()
            || held
            || ending
        {
            return self.put(entry);
        }
        let id = core.id;
        let all_gone = core.ending.as_ref().is_some_and(|ending| ending.all_gone());
        let members = cx.members_of(core);
        let log_path = cx.log_path(id);
        if let Some(family) = entry.family.family_name() {
            let ended_ns = core.finished_ns.unwrap_or(cx.now_ns);
            let elapsed_ms = ended_ns.saturating_sub(core.facts.started_ns) / NS_PER_MS;
            if core.killed_by().is_some_and(|by| who(by).is_some()) {
                self.past.note_last(LastSeen::new(core));
            }
            self.past.note(PastSession::new(core, family, cx.keeper.log_name(id), elapsed_ms));
        }
        cx.keeper.close(id);
        cx.queues.held_readers.remove(&id);
        if all_gone {
            cx.keeper.guard_remove(members.sid, id);
        } else {
            core.retire(log_path);
            entry.family = F::default();
            self.outlived.over.push_back(Leftover { id, members, entry });
        }
        cx.debug(format_args!("session {id}: removed"));
    }

    /// Who has left a session by setsid, by the session that it left: what descends from a member,
    /// or from an orphan that counts for the session. Each process is looked at once, however many
    /// sessions there are.
    pub fn detached(&self, cx: &Cx<F>) -> BTreeMap<SessionId, Vec<ProcStat>> {
        let mut away: BTreeMap<SessionId, Vec<ProcStat>> = BTreeMap::new();
        let mut lookout = cx.lookout.borrow_mut();
        let Ok(census) = lookout.at_once() else { return away };
        let mut owners: BTreeMap<i32, SessionId> = BTreeMap::new();
        for core in self.listed() {
            let members = cx.members_of(core);
            if members.joined.is_some() {
                owners.extend(members.living(census).iter().map(|one| (one.pid, core.id)));
            } else if let Some(sid) = members.members_sid() {
                owners.extend(census.pids_of(sid).map(|pid| (pid, core.id)));
            }
        }
        let others = census.others(|sid| cx.leaders.contains_key(&sid));
        let others: Vec<&ProcStat> =
            others.iter().filter(|one| !owners.contains_key(&one.pid)).collect();
        let orphans = others.iter().filter(|one| one.ppid == host::pid());
        let orphans: Vec<ProcStat> = orphans.map(|one| **one).collect();
        for orphan in orphans {
            if let Some(id) = cx.session_of_orphan(&orphan) {
                owners.insert(orphan.pid, id);
                away.entry(id).or_default().push(orphan);
            }
        }
        // Each round adds at least one process or is the last: bounded by their number.
        loop {
            let is_new = |one: &&ProcStat| !owners.contains_key(&one.pid);
            let next = others.iter().copied().filter(is_new);
            let next = next.filter_map(|one| Some((*owners.get(&one.ppid)?, *one)));
            let next: Vec<(SessionId, ProcStat)> = next.collect();
            if next.is_empty() {
                return away;
            }
            for (id, one) in next {
                owners.insert(one.pid, id);
                away.entry(id).or_default().push(one);
            }
        }
    }
}

impl<F: Families> Engine<F> {
    /// Notes when a session is to be looked at next; one that is gone never.
    pub(super) fn arm_session(&mut self, id: SessionId) {
        let due = self.sessions.get(id).map(|one| {
            let due = one.core.next_due_ns(one.family.due_ns(&one.core));
            debug_assert!(
                due.is_none_or(|at| at > self.cx.now_ns),
                "session {id}: a past deadline"
            );
            (due, one.core.next_wall_due_ms())
        });
        let (due, wall) = due.unwrap_or_default();
        self.cx.deadlines.set(Owner::Session(id), due);
        let wall = wall.map(|ms| u64::try_from(ms).unwrap_or(0));
        self.clocks.wall_deadlines.set(id, wall);
    }
}
