//! Input of sessions: taken as a whole, or refused as a whole. Writing it to the child is left to
//! `streams`.

use crate::limits::{CANONICAL_LINE_BYTES, STDIN_BACKLOG_BYTES};
use crate::pure::terminal::line::TtyLine;
use crate::server::session::Session;
use crate::server::session::input::ShownBy;
use crate::wire::{Reason, RpcError};

/// What `secret` is, in the tables of params.
pub const SECRET_DOC: &str = "the bytes are a secret: they are written only while the terminal \
                              does not show what is typed; default false";

/// What is said of a secret that the terminal does not show, and others may.
const SECRET_NOTE: &str = "the terminal passes on each key as it is typed: the program, or a \
                           terminal within it (ssh), may show the secret";

/// What is said of a secret that is written now, where one thing is to be said.
pub fn secret_note(core: &Session, secret: bool) -> Option<String> {
    (secret && core.input.shown_by() == ShownBy::Program).then(|| SECRET_NOTE.to_owned())
}

/// Queues input that was found fit.
pub fn push(core: &mut Session, bytes: &[u8]) {
    core.note_sent(bytes);
    core.input.push(bytes);
}

/// Queues the input, or refuses it as a whole.
pub fn accept(core: &mut Session, bytes: &mut Vec<u8>, eof: bool) -> Result<(), RpcError> {
    let id = core.id;
    if core.input.is_closed() {
        let message = match core.input.is_null() {
            true => format!("stdin of session {id} is /dev/null: it takes no input"),
            false => format!("stdin of session {id} is closed: it takes no more input"),
        };
        return Err(RpcError::failed(Reason::StdinClosed, message));
    }
    within_cap(core, bytes.len() as u64)?;
    let line = if core.facts.tty { terminal_line(core, bytes, eof)? } else { None };
    if !core.input.has_room(bytes.len()) {
        let queued = core.input.backlog_bytes();
        let message = format!(
            "session {id} has {queued} bytes of input that it does not read; {} more would pass \
             the limit of {STDIN_BACKLOG_BYTES}: nothing was written, try again when it reads",
            bytes.len()
        );
        return Err(RpcError::failed(Reason::StdinBacklogFull, message));
    }
    if let Some(line) = line {
        core.input.line = line;
    }
    push(core, bytes);
    core.input.given_bytes += bytes.len() as u64;
    if eof && !core.facts.tty {
        core.input.close_after();
    }
    Ok(())
}

/// Refuses more than a session takes over its life.
fn within_cap(core: &Session, more: u64) -> Result<(), RpcError> {
    let (id, given) = (core.id, core.input.given_bytes);
    let Some(cap) = core.input.cap_bytes.filter(|cap| given + more > *cap) else { return Ok(()) };
    let message = format!(
        "process {id} has been given {given} bytes of input; {more} more would pass the limit of \
         {cap} over its life (--stdin-cap-bytes): nothing was written"
    );
    Err(RpcError::failed(Reason::StdinCapExceeded, message))
}

/// Checks input for a terminal, and adds its end-of-file character where that is asked for.
/// Gives the unfinished line that it leaves.
fn terminal_line(
    core: &Session,
    bytes: &mut Vec<u8>,
    eof: bool,
) -> Result<Option<TtyLine>, RpcError> {
    let id = core.id;
    let Some(chars) = core.canonical_mode() else {
        if eof {
            let message = format!(
                "eof: the terminal of session {id} is not in canonical mode, where no \
                 end-of-file character exists: send \\x04 or the program's own quit"
            );
            return Err(RpcError::invalid_param("eof", message));
        }
        return Ok(Some(TtyLine::new()));
    };
    let after = |bytes: &[u8]| {
        core.input.line.after(bytes, &chars).map_err(|length| {
            let message = format!(
                "a line of {length} bytes is too long for the terminal of session {id}: in \
                 canonical mode it delivers {CANONICAL_LINE_BYTES} and drops the rest; send \
                 shorter lines, or run the command without tty"
            );
            RpcError::failed(Reason::LineTooLongForTerminal, message)
        })
    };
    if eof && chars.eof == 0 {
        let message = format!("eof: the terminal of session {id} has its end-of-file disabled");
        return Err(RpcError::invalid_param("eof", message));
    }
    if eof {
        // VEOF hands over an unfinished line; a second one then means the end.
        let open = after(bytes)?.open_bytes() > 0;
        bytes.push(chars.eof);
        if open {
            bytes.push(chars.eof);
        }
    }
    after(bytes).map(Some)
}
