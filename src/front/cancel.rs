//! cancel: ends the wait of a pending request, never the session that the request waits for. What
//! a cancelled request is answered with is left to the family that it asked.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::engine::contract::{Answer, Call};
use crate::families::{Engine, Method};
use crate::wire::{self, Kind, Param, RequestId, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "cancel",
    summary: "Ends the wait of the pending request with that id: it answers at once with what \
              it has; its session lives on.",
    params: &[Param {
        name: "id",
        kind: Kind::Id,
        required: true,
        doc: "the id of the pending request, as it was sent on this connection",
    }],
    other_params: None,
    waits: false,
    while_closing: true,
    check,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    id: Box<RawValue>,
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    wire::read_params::<Params>(raw, METHOD.params).map(drop)
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params, METHOD.params)?;
    let known = RequestId::from_json(params.id.get());
    let cancelled = known.is_some_and(|id| engine.cancel(call.client, &id));
    Ok(Answer::of(&json!({ "cancelled": cancelled })))
}
