//! Requests that were put off until a session has told what must be known first (architecture.md,
//! The contract). Each is asked again then, as if it came anew; one that may be answered has a wait
//! of the session besides, like any other, so that it can be cancelled.

use super::{ClientId, Session, Ticket};

/// A request that was put off.
#[derive(Clone, Debug)]
pub struct Deferred {
    /// The ticket of the request and of its wait; absent for a request that is never answered.
    pub ticket: Option<Ticket>,
    /// The client that asks.
    pub client: ClientId,
    /// The name of the request's method.
    pub method: &'static str,
    /// The request's params as they came.
    pub params: String,
    /// The number of the request's line.
    pub line: u64,
    /// Whether the request starts a command, which counts as one that runs meanwhile (`--jobs`).
    pub starts: bool,
}

impl Session {
    /// Whether requests wait for the session, or were put off for it.
    pub fn is_awaited(&self) -> bool {
        !self.waits.is_empty() || !self.deferred.is_empty()
    }

    /// Whether somebody is still to be told what becomes of the session: a request that waits for
    /// others too, and knows the end of this one, keeps nobody from being told of that end.
    pub fn is_awaited_now(&self) -> bool {
        self.waits.iter().any(|wait| !wait.parked) || !self.deferred.is_empty()
    }

    /// Takes out the oldest request that is to be asked again, with its wait. One that was
    /// cancelled is not: it keeps its wait until that is answered.
    pub fn next_deferred(&mut self) -> Option<Deferred> {
        let cancelled = |one: &Deferred| {
            self.waits.iter().any(|wait| wait.cancelled && Some(wait.ticket) == one.ticket)
        };
        let at = self.deferred.iter().position(|one| !cancelled(one))?;
        let next = self.deferred.remove(at)?;
        self.waits.retain(|wait| Some(wait.ticket) != next.ticket);
        Some(next)
    }

    /// Forgets a request that is answered, or that nobody can be given the answer of.
    pub fn forget_request(&mut self, ticket: Ticket) {
        self.waits.retain(|wait| wait.ticket != ticket);
        self.deferred.retain(|one| one.ticket != Some(ticket));
    }
}
