//! kill_process: ends all of a job, SIGKILL unless another signal is named (bash-stream.md).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::poll_process::end;
use super::{books, live_session};
use crate::engine::contract::{Answer, Call, session_id};
use crate::families::{Engine, Method};
use crate::limits::JOB_KILL_WAIT_MS;
use crate::session::ending::SIGKILL;
use crate::wire::{self, Int, Kind, Param, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "kill_process",
    summary: "Sends a signal to everything of a process and gives its final status, as \
              poll_process does.",
    params: &[
        Param { name: "sessionId", kind: Kind::Integer, required: true, doc: "the process" },
        Param::optional(
            "signal",
            Kind::Signal,
            "a name, with or without SIG, in any case, or a number; default SIGKILL",
        ),
    ],
    other_params: None,
    waits: true,
    while_closing: false,
    check,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    #[serde(rename = "sessionId")]
    session_id: Int,
    signal: Option<Box<RawValue>>,
}

fn read(raw: &str) -> Result<(Params, i32), RpcError> {
    let params: Params = wire::read_params(raw, METHOD.params)?;
    let signal = wire::signal_number(params.signal.as_deref(), "SIGKILL")?;
    Ok((params, signal))
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    read(raw).map(drop)
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let (params, signal) = read(call.params)?;
    let id = session_id(params.session_id);
    let wait_ms = (signal != SIGKILL).then_some(JOB_KILL_WAIT_MS);
    // What outlived one that has finished, in the background, is reached by its id.
    let Engine { sessions, cx, .. } = engine;
    if !(books::is_finished(id, cx) && sessions.readopt_left(id, cx)) {
        if let Some(report) = books::finished(id, cx) {
            return Ok(Answer::of(&report));
        }
        live_session(engine, id)?;
    }
    Ok(end(engine, call, id, signal, wait_ms))
}
