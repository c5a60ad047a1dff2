//! ping: tells that execd is there, and shows by its answer how fast execd answers.

use crate::engine::contract::{Answer, Call};
use crate::families::{Engine, Method};
use crate::wire::{self, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "ping",
    summary: "Answers {} at once.",
    params: &[],
    other_params: None,
    waits: false,
    while_closing: true,
    check,
    call,
};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    wire::read_params::<Params>(raw, METHOD.params).map(drop)
}

fn call(_engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let Params {} = wire::read_params(call.params, METHOD.params)?;
    Ok(Answer::Json(b"{}".to_vec()))
}
