//! What is kept of the ledger of events, and who asks for a session's end (protocol.md, Events).

use crate::pure::ledger::Ledger;
use crate::pure::process::killed::KilledBy;
use crate::server::session::{ClientId, SessionId, Ticket};
use crate::wire::RequestId;

/// Who asks for a session's end.
#[derive(Clone, Copy, Debug)]
pub struct By<'a> {
    /// For what reason.
    pub reason: KilledBy,
    /// The client that asks, where one does.
    pub client: Option<ClientId>,
    /// Its request.
    pub request: Option<&'a RequestId>,
}

impl From<KilledBy> for By<'_> {
    fn from(reason: KilledBy) -> Self {
        Self { reason, client: None, request: None }
    }
}

/// A request for events that waits for the next one.
#[derive(Debug)]
pub(super) struct Waiting {
    pub ticket: Ticket,
    pub after: u64,
    pub max: usize,
    pub due_ns: u64,
    pub cancelled: bool,
}

/// A session whose command has ended while others hold the output, so that its end is no event yet.
/// Some answers tell that end all the same: it is not told again to those that they have gone to.
#[derive(Debug)]
pub(super) struct Early {
    pub session: SessionId,
    pub told: Vec<ClientId>,
}

/// The ledger, and who waits for its next event.
#[derive(Debug, Default)]
pub struct Events {
    /// The ledger.
    pub ledger: Ledger,
    /// The sessions whose ends may be told before they are events.
    pub(super) early: Vec<Early>,
    pub(super) waiting: Vec<Waiting>,
}
