//! reserve_session_ids: ids that a client knows from elsewhere are given to nobody.

use serde_json::json;

use crate::server::engine::contract::{Answer, Call};
use crate::server::families::{Engine, Method};
use crate::wire::{self, Int, Kind, RpcError};

/// Highest session id that can be reserved: what comes after it is still an exact number in JSON.
const MAX_RESERVED_SESSION_ID: u64 = (1 << 53) - 1;

pub(crate) const METHOD: Method = Method {
    name: "reserve_session_ids",
    summary: "Gives no session that starts from now on an id up to this one: for a client that \
              goes on with a conversation in which such ids are named.",
    params: Params::TABLE,
    other_params: None,
    waits: false,
    starts: false,
    while_closing: false,
    models: &[],
    check,
    call,
};

wire::params! {
    struct Params {
        up_to "up_to": Int = required(
            Kind::Integer,
            "the highest id that is reserved, 0 to 9007199254740991 (2^53 - 1)",
        );
    }
}

impl Params {
    /// The id, where it can be one.
    fn up_to(&self) -> Result<u64, RpcError> {
        u64::try_from(self.up_to.0).ok().filter(|id| *id <= MAX_RESERVED_SESSION_ID).ok_or_else(
            || {
                let message = format!("up_to must be from 0 to {MAX_RESERVED_SESSION_ID}");
                RpcError::invalid_param("up_to", message)
            },
        )
    }
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    wire::read_params::<Params>(raw)?.up_to().map(drop)
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    let next = engine.sessions.next_id.max(params.up_to()? + 1);
    engine.sessions.next_id = next;
    Ok(Answer::of(&json!({"next_session_id": next})))
}
