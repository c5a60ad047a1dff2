//! What the engine and the methods that it is handed agree on.

use serde::Serialize;

use crate::engine::Daemon;
use crate::session::{ClientId, SessionId};
use crate::wire::{self, Int, Param, RequestId, RpcError};

/// A request as a method sees it.
#[derive(Debug)]
pub struct Call<'a> {
    /// Whose it is.
    pub client: ClientId,
    /// Its id; absent for one that is never answered.
    pub id: Option<RequestId>,
    /// JSON text of its params: an object.
    pub params: &'a str,
}

/// What a method leads to at once.
#[derive(Debug)]
pub enum Answer {
    /// The result, as JSON text.
    Json(Vec<u8>),
    /// The request waits; it is answered later.
    Waits,
}

impl Answer {
    /// A result from a value.
    pub fn of(result: &impl Serialize) -> Self {
        Self::Json(wire::to_json(result))
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// Its name on the wire.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// Its params.
    pub params: &'static [Param],
    /// The params of its other form, where it has one.
    pub other_params: Option<&'static [Param]>,
    /// Whether it may wait: then it counts against the limit of pending requests.
    pub waits: bool,
    /// Whether it is still carried out while execd is ending.
    pub while_closing: bool,
    /// Reads its params and acts on nothing: the error that they would be refused with.
    pub check: fn(&str) -> Result<(), RpcError>,
    /// Its handler.
    pub call: fn(&mut Daemon, &Call<'_>) -> Result<Answer, RpcError>,
}

impl Method {
    /// Whether its reply goes before what is unsent: it says nothing of any session, whose history
    /// stays in order, and tells whether execd lives.
    pub fn overtakes(&self) -> bool {
        matches!(self.name, "ping" | "server_info")
    }
}

/// A session id from its number on the wire; one that can't be an id names no session.
pub fn session_id(number: Int) -> SessionId {
    SessionId::try_from(number.0).unwrap_or(0)
}
