//! resize_session: sets a PTY's size.

use serde::Deserialize;
use serde_json::json;

use crate::engine::Daemon;
use crate::engine::contract::{Answer, Call, Method, session_id};
use crate::engine::logs::errno_text;
use crate::limits::{PTY_COLS_RANGE, PTY_ROWS_RANGE};
use crate::sys::pty::Size;
use crate::wire::{self, Int, Kind, Param, Reason, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "resize_session",
    summary: "Sets the size of a session's terminal; the program gets SIGWINCH. While clients are \
              attached, the newest of their sizes holds.",
    params: &[
        Param {
            name: "session_id",
            kind: Kind::Integer,
            required: true,
            doc: "the session, started with tty: true",
        },
        Param {
            name: "cols",
            kind: Kind::Integer,
            required: true,
            doc: "columns, clamped to 20..500",
        },
        Param { name: "rows", kind: Kind::Integer, required: true, doc: "rows, clamped to 5..300" },
    ],
    other_params: None,
    waits: false,
    while_closing: false,
    check,
    call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    session_id: Int,
    cols: Int,
    rows: Int,
}

/// A number of cells within a range.
pub(crate) fn cells(given: Int, (low, high): (u16, u16)) -> u16 {
    u16::try_from(given.clamped(u64::from(low), u64::from(high))).unwrap_or(high)
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    wire::read_params::<Params>(raw, METHOD.params).map(drop)
}

fn call(daemon: &mut Daemon, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params, METHOD.params)?;
    let id = session_id(params.session_id);
    let session = daemon.use_session(id)?;
    if !session.facts.tty {
        let message = format!("session {id} has no terminal: start it with tty: true to size one");
        return Err(RpcError::invalid_param("session_id", message));
    }
    let (cols, rows) = (cells(params.cols, PTY_COLS_RANGE), cells(params.rows, PTY_ROWS_RANGE));
    if session.output.fd().is_some() && session.viewers.has(call.client) {
        daemon.resize_viewer(id, call.client, Size { cols, rows });
        return Ok(Answer::of(&json!({"session_id": id, "cols": cols, "rows": rows})));
    }
    if session.output.fd().is_some() && !session.viewers.resize_own(Size { cols, rows }) {
        let later = json!({"session_id": id, "cols": cols, "rows": rows, "when_detached": true});
        return Ok(Answer::of(&later));
    }
    match daemon.resize_terminal(id, Size { cols, rows }) {
        Some(Ok(())) => Ok(Answer::of(&json!({"session_id": id, "cols": cols, "rows": rows}))),
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
