//! Input of sessions: taken as a whole, or refused as a whole. Writing it to the child is left to
//! `streams`.

use crate::limits::{
    CANONICAL_LINE_BYTES, NS_PER_S, SECRET_BYTES_MAX, SECRET_LINES_MAX, SECRETS_MAX,
    STDIN_BACKLOG_BYTES,
};
use crate::pure::terminal::line::TtyLine;
use crate::pure::text::secret::{self, Refused};
use crate::session::Session;
use crate::wire::{Reason, RpcError};

/// What `secret` is, in the tables of params.
pub const SECRET_DOC: &str = "the bytes are a secret: for 60 s the session's output shows * in place \
                              of each of their lines that has at least 4 bytes; default false";

/// Whether input is a secret, which nobody may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// It is none.
    Open,
    /// It is one, given at this moment of the monotonic clock.
    SecretAt(u64),
}

impl Secrecy {
    /// What a call's `secret` says, at `now_ns`.
    pub fn of(secret: bool, now_ns: u64) -> Self {
        if secret { Self::SecretAt(now_ns) } else { Self::Open }
    }

    /// Whether it is a secret.
    pub fn is_secret(self) -> bool {
        self != Self::Open
    }

    /// Input as its echo is expected: of a secret that is masked.
    pub fn echoed(self, bytes: &[u8]) -> Vec<u8> {
        if self.is_secret() { secret::masked(bytes) } else { bytes.to_vec() }
    }
}

/// Refuses a secret that cannot be masked.
pub fn may_hide(core: &Session, bytes: &[u8], secrecy: Secrecy) -> Result<(), RpcError> {
    let Secrecy::SecretAt(now_ns) = secrecy else { return Ok(()) };
    match core.refuses_secret(bytes, now_ns) {
        None => Ok(()),
        Some(Refused::TooLong) => {
            let message = format!(
                "secret: a secret has at most {SECRET_BYTES_MAX} bytes and {SECRET_LINES_MAX} \
                 lines; nothing was written"
            );
            Err(RpcError::invalid_param("secret", message))
        }
        Some(Refused::TooMany(free_ns)) => {
            let message = format!(
                "session {} was given {SECRETS_MAX} secrets within a minute; the first is \
                 forgotten in {} s: nothing was written",
                core.id,
                free_ns.saturating_sub(now_ns).div_ceil(NS_PER_S)
            );
            Err(RpcError::failed(Reason::TooManySecrets, message))
        }
    }
}

/// Queues input that was found fit; from now on the output shows asterisks in place of a secret.
pub fn push(core: &mut Session, bytes: &[u8], secrecy: Secrecy) {
    core.note_sent(&secrecy.echoed(bytes));
    match secrecy {
        Secrecy::Open => core.input.push(bytes),
        Secrecy::SecretAt(now_ns) => {
            core.hide(bytes, now_ns);
            core.input.push_secret(bytes);
        }
    }
}

/// Queues the input, or refuses it as a whole.
pub fn accept(
    core: &mut Session,
    bytes: &mut Vec<u8>,
    eof: bool,
    secrecy: Secrecy,
) -> Result<(), RpcError> {
    may_hide(core, bytes, secrecy)?;
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
    push(core, bytes, secrecy);
    core.input.given_bytes += bytes.len() as u64;
    if eof && !core.facts.tty {
        core.input.close_after();
    }
    Ok(())
}

/// Refuses more than a session takes over its life (bash-stream.md).
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
