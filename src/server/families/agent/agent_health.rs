//! agent_health: whether pi is there, and which (agent.md).

use super::{Agent, launch, pi_program};
use crate::agent::params::version_param;
use crate::agent::protocol::{Order, Verb};
use crate::server::engine::contract::{Answer, Call};
use crate::server::families::{Engine, Method, Numbered};
use crate::server::session::wait::{Wait, WaitKind};
use crate::wire::{self, Kind, RpcError};
use serde_json::value::RawValue;

/// The program keeps its own time, which is less; a program that does not is ended.
const HEALTH_MOST_MS: u64 = 10_000;

pub(crate) const METHOD: Method = Method {
    name: "agent_health",
    summary: "Runs pi --version, 5 s at most: whether pi is there, and which.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    starts: false,
    while_closing: false,
    models: &[],
    check: |raw| read(raw).map(drop),
    call,
};

wire::params! {
    struct Params {
        pi_path "pi_path": Option<String> = optional(
            Kind::NonEmptyText,
            "pi's path, or its name on the PATH; default $EXECD_PI, else pi",
        );
        min_version "min_version": Option<String> = optional(
            Kind::NonEmptyText,
            "an older pi is not ok, nor one that tells no version; default 0.70.0",
        );
    }
}

fn read(raw: &str) -> Result<Params, RpcError> {
    let params: Params = wire::read_params(raw)?;
    version_param(params.min_version.as_deref())?;
    Ok(params)
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params = read(call.params)?;
    let program = pi_program(&engine.cx, params.pi_path.as_deref());
    let raw: &RawValue = serde_json::from_str(call.params)
        .map_err(|error| RpcError::invalid_param("params", error.to_string()))?;
    let order = Order {
        verb: Verb::Health,
        pi: program.as_str().into(),
        workspace: None,
        kept_in: None,
        known: None,
        others: 0,
        params: raw,
    };
    let command = format!("{program} --version");
    let id = launch(engine, &order, command, (program.clone(), HEALTH_MOST_MS, None))?;
    Ok(engine.wait_for(call, id, |ticket, now_ns| Wait {
        saw_leader: false,
        ..Wait::new(ticket, Agent::ID, WaitKind::Poll, now_ns)
    }))
}
