//! cancel: ends the wait of a pending request, never the session that the request waits for. What
//! a cancelled request is answered with is left to the family that it asked.

use serde_json::json;
use serde_json::value::RawValue;

use crate::engine::contract::{Answer, Call};
use crate::families::{Engine, Method};
use crate::wire::{self, Kind, RequestId, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "cancel",
    summary: "Ends the wait of the pending request with that id: it answers at once with what \
              it has; its session lives on.",
    params: Params::TABLE,
    other_params: None,
    waits: false,
    while_closing: true,
    check: wire::check::<Params>,
    call,
};

wire::params! {
    struct Params {
        id "id": Box<RawValue> = required(
            Kind::Id,
            "the id of the pending request, as it was sent on this connection",
        );
    }
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    let known = RequestId::from_json(params.id.get());
    let cancelled = known.is_some_and(|id| engine.cancel(call.client, &id));
    Ok(Answer::of(&json!({ "cancelled": cancelled })))
}
