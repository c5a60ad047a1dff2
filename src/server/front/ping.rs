//! ping: tells that execd is there, and shows by its answer how fast execd answers.

use crate::server::engine::contract::{Answer, Call};
use crate::server::families::{Engine, Method};
use crate::wire::{self, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "ping",
    summary: "Answers {} at once.",
    params: Params::TABLE,
    other_params: None,
    waits: false,
    starts: false,
    while_closing: true,
    models: &[],
    check: wire::check::<Params>,
    call,
};

wire::params! {
    struct Params {}
}

fn call(_engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let Params {} = wire::read_params(call.params)?;
    Ok(Answer::Json(b"{}".to_vec()))
}
