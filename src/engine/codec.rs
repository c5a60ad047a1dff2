//! What a client speaks where that is not execd's own protocol: between its lines and the
//! requests and answers that every client has (architecture.md, To add something). The engine and
//! the methods know nothing of the other protocol.

use std::fmt;

use crate::wire::{RequestId, RpcError};

/// A request that a line of a client stands for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The id that the answer goes to, unlike all ids in flight; none where nobody is answered.
    pub id: Option<RequestId>,
    /// The method, as the table has it.
    pub method: &'static str,
    /// JSON text of the params: an object.
    pub params: String,
}

/// Another protocol. Each function appends whole lines to `out`, or none; what it appends is never
/// dropped and never overtaken.
pub trait Codec {
    /// Takes a line of the client, without its newline. Gives what the line asks of execd, in this
    /// order; what needs nothing of execd is answered at once.
    fn read(&mut self, line: &[u8], out: &mut Vec<u8>) -> Vec<Asked>;

    /// Takes the result of a request, JSON text.
    fn reply(&mut self, id: &RequestId, result: &[u8], out: &mut Vec<u8>);

    /// Takes the error that a request is answered with. The id is null where a line could not be
    /// read.
    fn refuse(&mut self, id: &RequestId, error: &RpcError, out: &mut Vec<u8>);

    /// Takes a notification of execd with its params, JSON text.
    fn notify(&mut self, method: &str, params: &[u8], out: &mut Vec<u8>);

    /// When [`Self::tick`] is to be called, on the monotonic clock; `None`: not before something
    /// else happens.
    fn due_ns(&self) -> Option<u64>;

    /// The time of [`Self::due_ns`] has come.
    fn tick(&mut self, now_ns: u64, out: &mut Vec<u8>);
}

impl fmt::Debug for dyn Codec + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Codec")
    }
}
