//! attach_input: what a person types goes straight to a session (people.md). Nothing of that is
//! looked at or kept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::limits::STDIN_BACKLOG_BYTES;
use crate::server::engine::contract::{Answer, Call, session_id};
use crate::server::engine::input;
use crate::server::families::{Engine, Method};
use crate::server::session::SessionId;
use crate::wire::{self, Int, Kind, Reason, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "attach_input",
    summary: "Writes bytes straight to a session's terminal, or to its stdin; {session_id}.",
    params: Params::TABLE,
    other_params: None,
    waits: false,
    starts: false,
    while_closing: false,
    models: &[],
    check: |raw| read(raw).map(drop),
    call,
};

wire::params! {
    struct Params {
        session_id "session_id": Int = required(Kind::Session, "the session");
        data_b64 "data_b64": String = required(
            Kind::Chars,
            "the bytes in base64, as they were typed",
        );
        eof "eof": bool = optional(
            Kind::Bool,
            "closes stdin after the bytes; for sessions on pipes (a terminal gets the key)",
        );
        secret "secret": bool = optional(Kind::Bool, input::SECRET_DOC);
    }
}

#[derive(Serialize)]
struct Taken {
    session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

fn read(raw: &str) -> Result<(Params, Vec<u8>), RpcError> {
    let params: Params = wire::read_params(raw)?;
    let bytes = STANDARD.decode(&params.data_b64).map_err(|fault| {
        // The bytes themselves are nobody's to read, not even in an error.
        let fault = if params.secret { String::new() } else { format!(": {fault}") };
        RpcError::invalid_param("data_b64", format!("data_b64 is not base64{fault}"))
    })?;
    Ok((params, bytes))
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let (params, bytes) = read(call.params)?;
    let id = session_id(params.session_id);
    engine.sessions.use_session(id)?;
    if params.secret && engine.keep_secret(call, METHOD.name, id)? {
        return Ok(Answer::Waits);
    }
    let core = &mut engine.sessions.use_session(id)?.core;
    let tty = core.facts.tty;
    if tty && params.eof {
        let message = format!("eof: session {id} has a terminal: send it the key, Ctrl-D");
        return Err(RpcError::invalid_param("eof", message));
    }
    if core.life.finished() {
        let message = format!("session {id} has exited: nobody reads its input");
        return Err(RpcError::failed(Reason::SessionExited, message));
    }
    if core.input.is_closed() || core.input.is_broken() {
        let message = format!("session {id} takes no input: its stdin is closed");
        return Err(RpcError::failed(Reason::StdinClosed, message));
    }
    if !core.input.has_room(bytes.len()) {
        let message = format!(
            "session {id} does not read: {} of {STDIN_BACKLOG_BYTES} bytes of input wait already",
            core.input.backlog_bytes()
        );
        return Err(RpcError::failed(Reason::StdinBacklogFull, message));
    }
    let note = input::secret_note(core, params.secret);
    if let Some(chars) = core.canonical_mode() {
        // What write_stdin knows of the open line goes on from here.
        core.input.line = core.input.line.after(&bytes, &chars).unwrap_or_default();
    }
    input::push(core, &bytes);
    if params.eof {
        core.input.close_after();
    }
    engine.feed_now(id);
    Ok(Answer::of(&Taken { session_id: id, note }))
}
