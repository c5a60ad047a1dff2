//! list_processes: what runs, then what has ended, newest first (bash-stream.md).

use serde::{Deserialize, Serialize};

use crate::engine::contract::{Answer, Call};
use crate::families::{Engine, Method};
use super::books::{self, Forgotten, Row};
use crate::wire::{self, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "list_processes",
    summary: "Lists what runs, then what has ended, newest first. Takes nothing away.",
    params: &[],
    other_params: None,
    waits: false,
    while_closing: true,
    check,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {}

#[derive(Serialize)]
struct List {
    processes: Vec<Row>,
    #[serde(flatten)]
    forgotten: Option<Forgotten>,
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    wire::read_params::<Params>(raw, METHOD.params).map(drop)
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    check(call.params)?;
    let processes = books::rows(engine);
    Ok(Answer::of(&List { processes, forgotten: books::forgotten(&engine.cx) }))
}
