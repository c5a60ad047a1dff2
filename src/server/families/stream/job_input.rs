//! write_stdin as the stream family calls it, with sessionId: bytes to a
//! session, at once, without waiting for its output.

use serde::Serialize;
use serde_json::Value;

use super::{books, live_session};
use crate::pure::json::fields::Fields;
use crate::server::engine::contract::{Answer, Call, session_id};
use crate::server::engine::input::{self, accept};
use crate::server::families::Engine;
use crate::server::session::SessionId;
use crate::wire::{self, Int, Kind, Param, Reason, RpcError};

wire::params! {
    pub(crate) struct Params {
        session_id "sessionId": Int = required(Kind::Session, "the process");
        data "data": Option<Value> = optional(
            Kind::Data,
            "what to write, taken literally: a string, or {\"base64\": \"…\"} for exact bytes",
        );
        eof "eof": bool = optional(Kind::Bool, "closes stdin after the bytes");
        secret "secret": bool = optional(Kind::Bool, input::SECRET_DOC);
    }
}

#[derive(Serialize)]
struct Taken {
    written: usize,
    /// Bytes that the command has not read yet.
    queued: usize,
    eof: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Whether this form is meant: the params name a sessionId, and nothing that only the other form
/// has (`other`).
pub(crate) fn is_meant(raw: &str, other: &[Param]) -> bool {
    if !raw.contains("\"sessionId\"") {
        return false;
    }
    let Ok(fields) = Fields::parse(raw) else { return false };
    let of_other = |name: &str| {
        name != "sessionId"
            && wire::known_param(Params::TABLE, name).is_none_or(|one| one.name != name)
            && wire::known_param(other, name).is_some()
    };
    fields.0.iter().any(|(name, _)| name == "sessionId")
        && !fields.0.iter().any(|(name, _)| of_other(name))
}

/// Reads the params, and the bytes that they stand for.
fn read(raw: &str) -> Result<(Params, Vec<u8>), RpcError> {
    let params: Params = wire::read_params(raw)?;
    let bytes = match &params.data {
        Some(Value::String(text)) => text.clone().into_bytes(),
        Some(object) => {
            let text = object["base64"].as_str().unwrap_or_default();
            wire::decode_base64(text).map_err(|fault| {
                let shown = wire::quoted(text);
                let message =
                    format!("write_stdin: `data` is not valid base64. ({fault}, in {shown:?})");
                let error = RpcError::invalid_param("data", message);
                if params.secret { error.without_value() } else { error }
            })?
        }
        None if params.eof => Vec::new(),
        None => {
            let message = "data is required, unless eof is true: what to write";
            return Err(RpcError::invalid_param("data", message));
        }
    };
    Ok((params, bytes))
}

/// Reads the params without acting on them.
pub(crate) fn check(raw: &str) -> Result<(), RpcError> {
    read(raw).map(drop)
}

pub(crate) fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let (params, mut bytes) = read(call.params)?;
    let id = session_id(params.session_id);
    if books::is_finished(id, &mut engine.cx) {
        return Err(exited(id));
    }
    // Background children may go on, but what was to read it is gone.
    if live_session(engine, id)?.core.status().is_some() {
        return Err(exited(id));
    }
    if params.secret && engine.keep_secret(call, "write_stdin", id)? {
        return Ok(Answer::Waits);
    }
    let core = &mut live_session(engine, id)?.core;
    let written = bytes.len();
    let note = input::secret_note(core, params.secret);
    if !core.input.is_broken() {
        accept(core, &mut bytes, params.eof)?;
        engine.feed_now(id);
    }
    let core = &live_session(engine, id)?.core;
    if core.input.is_broken() {
        let message = format!("process {id} has closed its stdin: the bytes were not delivered");
        return Err(RpcError::failed(Reason::StdinClosed, message));
    }
    let queued = core.input.backlog_bytes();
    Ok(Answer::of(&Taken { written, queued, eof: params.eof, note }))
}

fn exited(id: SessionId) -> RpcError {
    let message = format!("process {id} has exited: the bytes were not delivered");
    RpcError::failed(Reason::SessionExited, message)
}
