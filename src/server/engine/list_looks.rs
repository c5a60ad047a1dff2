//! Looks for lists (waits.md, State): a list tells the state of each session, so each is looked at
//! before the list is answered. A turn looks for a bounded time, so a list of many sessions takes
//! several turns; the list is asked again once all were looked at, or when its time is over.

use std::collections::VecDeque;

use super::contract::{Call, Families};
use super::put_off::Deferred;
use super::{Engine, Owner};
use crate::limits::NS_PER_MS;
use crate::server::session::doing::NextLook;
use crate::server::session::{SessionId, Ticket};

/// The longest that a list waits for looks at its sessions.
const LIST_LOOKS_MS: u64 = 250;

/// A list whose sessions are being looked at.
#[derive(Debug)]
struct AwaitedList {
    request: Deferred,
    /// Looks count that were taken since then.
    since_ns: u64,
    /// The list is asked again then, whatever is left.
    until_ns: u64,
    /// The sessions that are still to be looked at.
    left: Vec<SessionId>,
    /// When one of them is to be looked at a second time.
    due_ns: u64,
}

/// All such lists, the oldest first.
#[derive(Debug, Default)]
pub struct ListLooks {
    awaited: VecDeque<AwaitedList>,
    /// The session that the next list looks at first: the last one had no time for it.
    first: SessionId,
    /// Looks are left that this turn had no time for.
    goes_on: bool,
}

impl ListLooks {
    /// Whether the next turn has looks to take.
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }
}

impl<F: Families> Engine<F> {
    /// Looks at all sessions for a list. Gives the time since when looks count for its rows; None
    /// where the list is put off, and asked again later.
    pub fn look_for_list(&mut self, call: &Call<'_>, method: &'static str) -> Option<u64> {
        if call.looked_since_ns.is_some() {
            return call.looked_since_ns;
        }
        let now_ns = self.cx.now_ns;
        let mut left: Vec<SessionId> = self.sessions.iter().map(|one| one.core.id).collect();
        let behind = left.partition_point(|id| *id < self.list_looks.first);
        left.rotate_left(behind);
        let due_ns = self.look_at_these(&mut left, now_ns);
        if left.is_empty() || call.id.is_none() || self.cx.closing.is_some() {
            return Some(now_ns);
        }
        let request = Deferred {
            ticket: self.open_ticket(call, &[]),
            client: call.client,
            method,
            params: call.params.to_owned(),
            line: call.line,
        };
        let until_ns = now_ns + LIST_LOOKS_MS * NS_PER_MS;
        let list = AwaitedList { request, since_ns: now_ns, until_ns, left, due_ns };
        self.list_looks.awaited.push_back(list);
        self.arm_list_looks();
        None
    }

    /// Goes on with the looks of all lists that are put off.
    pub(super) fn step_list_looks(&mut self) {
        let mut awaited = std::mem::take(&mut self.list_looks.awaited);
        for list in &mut awaited {
            list.due_ns = self.look_at_these(&mut list.left, list.since_ns);
        }
        self.list_looks.awaited = awaited;
        self.arm_list_looks();
    }

    /// Takes the looks that the turn has time for, and takes out who needs no further one. Gives
    /// when the next look is due.
    fn look_at_these(&mut self, left: &mut Vec<SessionId>, since_ns: u64) -> u64 {
        let Self { cx, sessions, .. } = self;
        let mut due_ns = u64::MAX;
        left.retain(|id| {
            let Some(entry) = sessions.get_mut(*id) else { return false };
            let core = &mut entry.core;
            let next_ns = match cx.look_for_list(core, since_ns) {
                NextLook::None if cx.has_listening_since(core, since_ns) => return false,
                NextLook::None | NextLook::NextTurn => cx.now_ns,
                NextLook::At(at_ns) => at_ns,
            };
            due_ns = due_ns.min(next_ns);
            true
        });
        due_ns
    }

    /// The oldest list whose sessions were all looked at, or whose time is over.
    pub(super) fn next_looked_list(&mut self) -> Option<(Deferred, u64)> {
        let (now_ns, closing) = (self.cx.now_ns, self.cx.closing.is_some());
        let is_ready = |one: &AwaitedList| one.left.is_empty() || one.until_ns <= now_ns || closing;
        let at = self.list_looks.awaited.iter().position(is_ready)?;
        let list = self.list_looks.awaited.remove(at)?;
        self.list_looks.first = list.left.first().copied().unwrap_or(0);
        self.arm_list_looks();
        Some((list.request, list.since_ns))
    }

    fn arm_list_looks(&mut self) {
        let (now_ns, closing) = (self.cx.now_ns, self.cx.closing.is_some());
        let due = |one: &AwaitedList| {
            let next_ns = if one.left.is_empty() || closing { now_ns } else { one.due_ns };
            next_ns.min(one.until_ns)
        };
        let due_ns = self.list_looks.awaited.iter().map(due).min();
        self.list_looks.goes_on = due_ns.is_some_and(|due_ns| due_ns <= now_ns);
        self.cx.deadlines.set(Owner::Lists, due_ns.filter(|due_ns| *due_ns > now_ns));
    }

    /// A list that is cancelled is answered with what was seen so far; whether there is one.
    pub(super) fn cancel_list(&mut self, ticket: Ticket) -> bool {
        let mut lists = self.list_looks.awaited.iter_mut();
        let Some(list) = lists.find(|one| one.request.ticket == Some(ticket)) else {
            return false;
        };
        list.until_ns = self.cx.now_ns;
        self.arm_list_looks();
        true
    }

    /// Nobody waits for a list any more.
    pub(super) fn forget_list(&mut self, ticket: Ticket) {
        self.list_looks.awaited.retain(|one| one.request.ticket != Some(ticket));
        self.arm_list_looks();
    }
}
