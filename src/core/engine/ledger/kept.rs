//! What is kept of the ledger of events, and who asks for a session's end (protocol.md, Events).

use crate::pure::ledger::Ledger;
use crate::pure::process::killed::KilledBy;
use crate::session::{ClientId, Ticket};
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

/// The ledger, and who waits for its next event.
#[derive(Debug, Default)]
pub struct Events {
    /// The ledger.
    pub ledger: Ledger,
    pub(super) waiting: Vec<Waiting>,
}
