//! list_processes: what runs, then what has ended, newest first.

use serde::Serialize;

use super::books::{self, Forgotten, Row};
use crate::server::engine::contract::{Answer, Call};
use crate::server::families::{Engine, Method};
use crate::server::session::SessionId;
use crate::wire::{self, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "list_processes",
    summary: "Lists what runs, then what has ended, newest first. Takes nothing away.",
    params: Params::TABLE,
    other_params: None,
    waits: false,
    starts: false,
    while_closing: true,
    models: &[super::model::LIST_PROCESSES],
    check: wire::check::<Params>,
    call,
};

wire::params! {
    struct Params {}
}

#[derive(Serialize)]
struct List {
    processes: Vec<Row>,
    #[serde(flatten)]
    forgotten: Option<Forgotten>,
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let Params {} = wire::read_params(call.params)?;
    let Some(since_ns) = engine.look_for_list(call, METHOD.name) else { return Ok(Answer::Waits) };
    let processes = books::rows(engine, since_ns);
    let ended = processes.iter().filter(|row| row.ended_ns.is_some());
    let ended: Vec<SessionId> = ended.map(|row| row.session_id).collect();
    engine.cx.answer_tells(call, &ended, false);
    Ok(Answer::of(&List { processes, forgotten: books::forgotten(&engine.cx) }))
}
