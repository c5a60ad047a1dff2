//! agent_health: whether pi is there, and which (agent.md).

use super::probe::{Question, ask, unhealthy};
use super::{Agent, pi_program, version_param};
use crate::engine::contract::{Answer, Call};
use crate::engine::launch::{LaunchSpec, Stdin};
use crate::families::{Engine, Method, Numbered};
use crate::pure::agent::program::Version;
use crate::session::wait::{Wait, WaitKind};
use crate::wire::{self, Kind, RpcError};

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

fn read(raw: &str) -> Result<(Params, Version), RpcError> {
    let params: Params = wire::read_params(raw)?;
    let oldest = version_param(params.min_version.as_deref())?;
    Ok((params, oldest))
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let (params, oldest) = read(call.params)?;
    let program = pi_program(&engine.cx, params.pi_path);
    let launch = LaunchSpec {
        program,
        arguments: vec![],
        first: vec![],
        command: String::new(),
        name: None,
        workdir: None,
        env: vec![],
        stdin: Stdin::Null,
        tty: None,
        split: false,
        whole: true,
    };
    match ask(engine, &launch, Question::Health(oldest)) {
        Err(why) => Ok(Answer::of(&unhealthy(launch.program, why))),
        Ok(id) => Ok(engine.wait_for(call, id, |ticket, now_ns| Wait {
            saw_leader: false,
            ..Wait::new(ticket, Agent::ID, WaitKind::Poll, now_ns)
        })),
    }
}
