//! kill_process: ends everything in a session, by SIGKILL unless another signal is named.
//! How the members are found and ended is `session/ending.rs`.

use serde_json::value::RawValue;

use super::poll_process::end;
use super::{books, live_session};
use crate::limits::JOB_KILL_WAIT_MS;
use crate::server::engine::contract::{Answer, Call, session_id};
use crate::server::families::{Engine, Method};
use crate::server::session::ending::SIGKILL;
use crate::wire::{self, Int, Kind, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "kill_process",
    summary: "Sends a signal to everything of a process and gives its final status, as \
              poll_process does.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    starts: false,
    while_closing: false,
    models: &[super::model::KILL_PROCESS],
    check: |raw| read(raw).map(drop),
    call,
};

wire::params! {
    struct Params {
        session_id "sessionId": Int = required(Kind::Session, "the process");
        signal "signal": Option<Box<RawValue>> = optional(
            Kind::Signal,
            "a name, with or without SIG, in any case, or a number; default SIGKILL",
        );
    }
}

fn read(raw: &str) -> Result<(Params, i32), RpcError> {
    let params: Params = wire::read_params(raw)?;
    let signal = wire::signal_number(params.signal.as_deref(), "SIGKILL")?;
    Ok((params, signal))
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let (params, signal) = read(call.params)?;
    let id = session_id(params.session_id);
    let wait_ms = (signal != SIGKILL).then_some(JOB_KILL_WAIT_MS);
    // What outlived a finished session in the background is reached by the session's id.
    let Engine { sessions, cx, .. } = engine;
    if !(books::is_finished(id, cx) && sessions.readopt_left(id, cx)) {
        if let Some(report) = books::finished(id, cx) {
            engine.cx.answer_tells(call, &[id], false);
            return Ok(Answer::of(&report));
        }
        live_session(engine, id)?;
    }
    Ok(end(engine, call, id, signal, wait_ms))
}
