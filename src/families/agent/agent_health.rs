//! agent_health: whether pi is there, and which (agent.md).

use serde::Deserialize;

use crate::engine::Daemon;
use crate::engine::contract::{Answer, Call, Method};
use crate::engine::launch::{LaunchSpec, Stdin};
use crate::wire::{self, Kind, Param, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "agent_health",
    summary: "Runs pi --version, 5 s at most: whether pi is there, and which.",
    params: &[Param::optional(
        "pi_path",
        Kind::NonEmptyText,
        "pi's path, or its name on the PATH; default $EXECD_PI, else pi",
    )],
    other_params: None,
    waits: true,
    while_closing: false,
    check,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    pi_path: Option<String>,
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    wire::read_params::<Params>(raw, METHOD.params).map(drop)
}

fn call(daemon: &mut Daemon, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params, METHOD.params)?;
    let program = daemon.pi_program(params.pi_path);
    let launch = LaunchSpec {
        program,
        arguments: vec![],
        command: String::new(),
        name: None,
        workdir: None,
        env: vec![],
        stdin: Stdin::Null,
        tty: None,
        split: false,
        whole: true,
    };
    match daemon.ask_health(&launch) {
        Err(health) => Ok(Answer::of(&health)),
        Ok(id) => {
            if let Some(ticket) = daemon.open_ticket(call, Some(id)) {
                daemon.wait_for_health(id, ticket);
            }
            Ok(Answer::Waits)
        }
    }
}
