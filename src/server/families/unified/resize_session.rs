//! resize_session: sets the size of a session's terminal.

use serde_json::{Value, json};

use crate::limits::{PTY_COLS_RANGE, PTY_ROWS_RANGE};
use crate::server::engine::contract::{Answer, Call, session_id};
use crate::server::families::{Engine, Method};
use crate::server::session::SessionId;
use crate::sys::errno::errno_text;
use crate::sys::pty::Size;
use crate::wire::{self, Int, Kind, Reason, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "resize_session",
    summary: "Sets the size of a session's terminal; the program gets SIGWINCH. While clients are \
              attached, the newest of their sizes holds.",
    params: Params::TABLE,
    other_params: None,
    waits: false,
    starts: false,
    while_closing: false,
    models: &[super::model::RESIZE_SESSION],
    check: wire::check::<Params>,
    call,
};

wire::params! {
    struct Params {
        session_id "session_id": Int = required(
            Kind::Session,
            "the session, started with tty: true",
        );
        cols "cols": Int = required(Kind::Integer, "columns, clamped to 20..500");
        rows "rows": Int = required(Kind::Integer, "rows, clamped to 5..300");
    }
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    let id = session_id(params.session_id);
    let size = Size {
        cols: params.cols.clamped_u16(PTY_COLS_RANGE),
        rows: params.rows.clamped_u16(PTY_ROWS_RANGE),
    };
    resize(engine, call, id, size).map(|done| Answer::of(&done))
}

/// Gives a session's terminal a size; what that has led to.
pub(super) fn resize(
    engine: &mut Engine,
    call: &Call<'_>,
    id: SessionId,
    size: Size,
) -> Result<Value, RpcError> {
    let core = &mut engine.sessions.use_session(id)?.core;
    let Size { cols, rows } = size;
    if !core.facts.tty {
        let message = format!("session {id} has no terminal: start it with tty: true to size one");
        return Err(RpcError::invalid_param("session_id", message));
    }
    if core.output.fd().is_some() && core.viewers.has(call.client) {
        let now = core.terminal_size();
        core.viewers.resize(call.client, size, now);
        core.apply_size();
        engine.touch(id);
        return Ok(json!({"session_id": id, "cols": cols, "rows": rows}));
    }
    if core.output.fd().is_some() && !core.viewers.resize_own(size) {
        let later = json!({"session_id": id, "cols": cols, "rows": rows, "when_detached": true});
        return Ok(later);
    }
    let done = core.resize_terminal(size);
    engine.touch(id);
    match done {
        Some(Ok(())) => Ok(json!({"session_id": id, "cols": cols, "rows": rows})),
        Some(Err(errno)) => {
            let message = format!("resize session {id}: {}", errno_text(errno));
            Err(RpcError::failed(Reason::System, message))
        }
        None => {
            let message = format!("session {id} has exited: its terminal is gone");
            Err(RpcError::failed(Reason::SessionExited, message))
        }
    }
}
