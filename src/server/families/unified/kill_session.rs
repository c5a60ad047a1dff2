//! kill_session: ends everything in a session (architecture.md, Ending a session).

use serde_json::value::RawValue;

use super::{Unified, ended};
use crate::limits::KILL_GRACE_MS;
use crate::pure::process::killed::KilledBy;
use crate::server::engine::contract::{Answer, Call, session_id};
use crate::server::families::{Engine, Method, Numbered};
use crate::server::session::report::KillReport;
use crate::server::session::wait::{Wait, WaitKind};
use crate::wire::{self, Int, Kind, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "kill_session",
    summary: "Ends everything in a session: the signal, and SIGKILL 2 s later if anything is \
              left. Answers when all are gone.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    starts: false,
    while_closing: false,
    models: &[super::model::KILL_SESSION],
    check,
    call,
};

wire::params! {
    struct Params {
        session_id "session_id": Int = required(
            Kind::Session,
            "the session to end; an unknown one answers {found: false}, a negative one an error",
        );
        signal "signal": Option<Box<RawValue>> = optional(
            Kind::Signal,
            "a name, with or without SIG, in any case, or a number; default SIGTERM",
        );
        by "by": Option<String> = optional(
            Kind::Choice(&["execd kill", "the user"]),
            "a person asks, not whoever started the session: killed_by says it",
        );
        header "header": Option<String> = optional(
            Kind::Choice(super::HEADER_WORDS),
            super::HEADER_DOC,
        );
        events "events": bool = optional(Kind::Bool, super::EVENTS_DOC);
    }
}

/// The signal's number. Its name is checked before the session's id.
fn signal(given: Option<&RawValue>) -> Result<i32, RpcError> {
    wire::signal_number(given, "SIGTERM")
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    let params: Params = wire::read_params(raw)?;
    signal(params.signal.as_deref()).map(drop)
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    let signal = signal(params.signal.as_deref())?;
    let id = session_id(params.session_id);
    // A session that left the table is reached while it is being ended, and so is what outlived it.
    let sessions = &mut engine.sessions;
    let is_being_ended = sessions.get(id).is_some_and(|one| one.core.ending.is_some());
    let known = sessions.use_session(id).is_ok()
        || is_being_ended
        || sessions.readopt_left(id, &mut engine.cx);
    if !known && let Some(ended) = ended::find(engine, call, id) {
        let mut report = ended.kill_report();
        report.events = engine.cx.answer_tells(call, &[id], params.events);
        return Ok(Answer::of(&report));
    }
    let Some(entry) = engine.sessions.get_mut(id).filter(|_| known) else {
        let events = engine.cx.answer_tells(call, &[], params.events);
        let report = KillReport { found: false, session_id: id, events, ..KillReport::default() };
        return Ok(Answer::of(&report));
    };
    let by = match params.by.as_deref() {
        Some("execd kill") => KilledBy::ExecdKill,
        Some(_) => KilledBy::TheUser,
        None => KilledBy::KillSession,
    };
    engine.cx.kill(&mut entry.core, signal, KILL_GRACE_MS, call.by(by));
    Ok(engine.wait_for(call, id, |ticket, now_ns| {
        let wait = Wait::new(ticket, Unified::ID, WaitKind::Kill, now_ns);
        Wait { tells_events: params.events, ..wait }
    }))
}
