//! shutdown: ends every session, answers with what was ended, then execd exits 0.

use crate::server::engine::closing::Cause;
use crate::server::engine::contract::{Answer, Call};
use crate::server::families::{Engine, Method};
use crate::wire::{self, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "shutdown",
    summary: "Ends every session (SIGTERM, 1 s, SIGKILL), answers {ended: [{session_id, pid, \
              command}]}, then execd exits 0.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    starts: false,
    while_closing: false,
    models: &[],
    check: wire::check::<Params>,
    call,
};

wire::params! {
    struct Params {}
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let Params {} = wire::read_params(call.params)?;
    let ticket = engine.open_ticket(call, &[]);
    engine.close(Cause::Asked, ticket);
    Ok(Answer::Waits)
}
