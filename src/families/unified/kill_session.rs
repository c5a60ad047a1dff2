//! kill_session: ends everything in a session (architecture.md, Ending a session).

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::engine::Daemon;
use crate::engine::contract::{Answer, Call, Method, session_id};
use crate::limits::KILL_GRACE_MS;
use crate::pure::process::signal_names::{can_end, parse_signal};
use crate::session::report::KillReport;
use crate::session::wait::{Wait, WaitKind};
use crate::wire::{self, Int, Kind, Param, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "kill_session",
    summary: "Ends everything in a session: the signal, and SIGKILL 2 s later if anything is \
              left. Answers when all are gone.",
    params: &[
        Param {
            name: "session_id",
            kind: Kind::Integer,
            required: true,
            doc: "the session to end; an unknown one answers {found: false}",
        },
        Param {
            name: "signal",
            kind: Kind::Signal,
            required: false,
            doc: "a name, with or without SIG, in any case, or a number; default SIGTERM",
        },
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
    session_id: Int,
    signal: Option<Box<RawValue>>,
}

/// The signal's number. Its name is checked before the session's id.
fn signal(given: Option<&RawValue>) -> Result<i32, RpcError> {
    signal_number(given, "SIGTERM")
}

/// The number of a signal that was `given` by name or number, or of the `default`.
pub(crate) fn signal_number(given: Option<&RawValue>, default: &str) -> Result<i32, RpcError> {
    let text = match given.map(RawValue::get) {
        None => default.to_owned(),
        Some(raw) => serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned()),
    };
    let signal =
        parse_signal(&text).map_err(|message| RpcError::invalid_param("signal", message))?;
    if can_end(signal) {
        return Ok(signal);
    }
    let message = format!(
        "signal {} does not end a process (use SIGTERM, SIGINT, SIGKILL, …)",
        wire::quoted(&text)
    );
    Err(RpcError::invalid_param("signal", message))
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    let params: Params = wire::read_params(raw, METHOD.params)?;
    signal(params.signal.as_deref()).map(drop)
}

fn call(daemon: &mut Daemon, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params, METHOD.params)?;
    let signal = signal(params.signal.as_deref())?;
    let id = session_id(params.session_id);
    let known =
        daemon.use_session(id).is_ok() || daemon.is_being_ended(id) || daemon.readopt_left(id);
    if !known {
        let report = KillReport { found: false, session_id: id, ..KillReport::default() };
        return Ok(Answer::of(&report));
    }
    daemon.kill(id, signal, KILL_GRACE_MS);
    let Some(ticket) = daemon.open_ticket(call, Some(id)) else { return Ok(Answer::Waits) };
    let now_ns = daemon.now_ns;
    daemon.add_wait(id, Wait::new(ticket, WaitKind::Kill, now_ns));
    Ok(Answer::Waits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(raw: &str) -> Result<i32, String> {
        let raw: Box<RawValue> = serde_json::from_str(raw).expect("JSON");
        signal(Some(&raw)).map_err(|error| error.message)
    }

    #[test]
    fn signals_by_name_or_number() {
        assert_eq!(signal(None).expect("default"), 15);
        for (raw, expected) in
            [(r#""term""#, 15), (r#""INT""#, 2), (r#""sigkill""#, 9), ("9", 9), (r#""9""#, 9)]
        {
            assert_eq!(number(raw), Ok(expected), "{raw}");
        }
        let unknown = number(r#""FOO""#).expect_err("unknown");
        assert!(unknown.starts_with(r#"unknown signal "FOO" (use SIGTERM"#), "{unknown}");
        for raw in [r#""STOP""#, r#""CONT""#, "0", r#""SIGWINCH""#] {
            assert!(number(raw).expect_err(raw).contains("does not end"), "{raw}");
        }
    }
}
