//! attach_session: a client sees a session's output as it comes (people.md).

use serde::Serialize;

use super::Attaching;
use crate::limits::{PTY_COLS_RANGE, PTY_ROWS_RANGE};
use crate::server::engine::contract::{Answer, Call, session_id};
use crate::server::families::{Engine, Method};
use crate::server::session::SessionId;
use crate::sys::pty::Size;
use crate::wire::{self, Int, Kind, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "attach_session",
    summary: "Attaches this client to a session: attach_output notifications bring its last \
              64 KiB and then all that comes, attach_ended its end. Again: once more from the \
              start.",
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
        cols "cols": Option<Int> = optional(
            Kind::Integer,
            "columns of the client's terminal, clamped to 20..500; the newest size wins",
        );
        rows "rows": Option<Int> = optional(Kind::Integer, "its rows, clamped to 5..300");
        redraw "redraw": Option<bool> = optional(
            Kind::Bool,
            "false: a program on a terminal is not made to draw its screen anew; default true",
        );
        from "from": Option<Int> = optional(
            Kind::Integer,
            "the output comes from this byte on, as far as it is kept; default: the start of a \
             line in the last 64 KiB",
        );
    }
}

/// The result.
#[derive(Serialize)]
struct Attached {
    session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    command: String,
    pid: i32,
    tty: bool,
    running: bool,
    /// Whether attach_input reaches the program.
    takes_input: bool,
    /// How many are attached, this client among them.
    attached: usize,
    output_bytes_total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_from: Option<u64>,
}

fn read(raw: &str) -> Result<Params, RpcError> {
    let params: Params = wire::read_params(raw)?;
    if params.cols.is_some() != params.rows.is_some() {
        let (given, missing) =
            if params.cols.is_some() { ("cols", "rows") } else { ("rows", "cols") };
        let message = format!("{given} without {missing}: a terminal's size has both");
        return Err(RpcError::invalid_param(missing, message));
    }
    Ok(params)
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params = read(call.params)?;
    let id = session_id(params.session_id);
    let size = params.cols.zip(params.rows).map(|(cols, rows)| Size {
        cols: cols.clamped_u16(PTY_COLS_RANGE),
        rows: rows.clamped_u16(PTY_ROWS_RANGE),
    });
    let how = Attaching {
        size,
        redraw: params.redraw.unwrap_or(true),
        from: params.from.map(|from| u64::try_from(from.0).unwrap_or(0)),
    };
    let core = &mut engine.sessions.use_session(id)?.core;
    super::attach(core, call.client, how, &mut engine.cx);
    let log_path = engine.cx.log_path(id);
    let facts = &core.facts;
    Ok(Answer::of(&Attached {
        session_id: id,
        name: facts.name.clone(),
        command: facts.command.clone(),
        pid: facts.pid,
        tty: facts.tty,
        running: !core.life.finished(),
        takes_input: core.input.fd().is_some() && !core.input.is_closed(),
        attached: core.viewers.len(),
        output_bytes_total: core.output_bytes_total(),
        log_path,
        log_from: engine.cx.log_from(id),
    }))
}
