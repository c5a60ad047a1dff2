//! agent_health: whether pi is there, and which (agent.md).

use super::versions::ask_health;
use super::{Agent, pi_program};
use crate::engine::contract::{Answer, Call};
use crate::engine::launch::{LaunchSpec, Stdin};
use crate::families::{Engine, Method, Numbered};
use crate::session::wait::{Wait, WaitKind};
use crate::wire::{self, Kind, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "agent_health",
    summary: "Runs pi --version, 5 s at most: whether pi is there, and which.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    while_closing: false,
    check: wire::check::<Params>,
    call,
};

wire::params! {
    struct Params {
        pi_path "pi_path": Option<String> = optional(
            Kind::NonEmptyText,
            "pi's path, or its name on the PATH; default $EXECD_PI, else pi",
        );
    }
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
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
    match ask_health(engine, &launch) {
        Err(health) => Ok(Answer::of(&health)),
        Ok(id) => Ok(engine.wait_for(call, id, |ticket, now_ns| Wait {
            saw_leader: false,
            ..Wait::new(ticket, Agent::ID, WaitKind::Poll, now_ns)
        })),
    }
}
