//! agent_capabilities: what the executor behind agent_execute can do (agent.md).

use crate::server::engine::contract::{Answer, Call};
use crate::server::families::{Engine, Method};
use crate::wire::{self, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "agent_capabilities",
    summary: "What the executor behind agent_execute can do, and where its costs come from.",
    params: Params::TABLE,
    other_params: None,
    waits: false,
    starts: false,
    while_closing: true,
    models: &[],
    check: wire::check::<Params>,
    call,
};

/// The answer, always the same.
const CAPABILITIES: &str = concat!(
    r#"{"name":"pi","capabilities":["streaming","tool_control","local_workspace","#,
    r#""session_resume","budgets"],"cost_model":{"provider":"pi","source":"reported"}}"#
);

wire::params! {
    struct Params {}
}

fn call(_engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let Params {} = wire::read_params(call.params)?;
    Ok(Answer::Json(CAPABILITIES.as_bytes().to_vec()))
}
