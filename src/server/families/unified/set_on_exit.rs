//! set_on_exit: arms or disarms a session's wake.

use serde_json::{Value, json};

use crate::server::engine::contract::{Answer, Call, session_id};
use crate::server::families::{Engine, Method};
use crate::server::session::Listing;
use crate::wire::{self, Int, Kind, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "set_on_exit",
    summary: "Arms or disarms a wake: a session_exited notification with wake: true, sent once, \
              if no call observed the exit. Answers {found, status}.",
    params: Params::TABLE,
    other_params: None,
    waits: false,
    starts: false,
    while_closing: false,
    models: &[super::model::SET_ON_EXIT],
    check: wire::check::<Params>,
    call,
};

wire::params! {
    struct Params {
        session_id "session_id": Int = required(Kind::Session, "the session");
        on_exit "on_exit": String = required(
            Kind::Choice(&["none", "wake"]),
            "\"wake\" arms, \"none\" disarms",
        );
        header "header": Option<String> = optional(
            Kind::Choice(super::HEADER_WORDS),
            super::HEADER_DOC,
        );
        events "events": bool = optional(Kind::Bool, super::EVENTS_DOC);
    }
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    let id = session_id(params.session_id);
    let arm = params.on_exit == "wake";
    let Ok(entry) = engine.sessions.use_session(id) else {
        return Ok(told(engine, call, &params, json!({ "found": false })));
    };
    let core = &mut entry.core;
    debug_assert_eq!(core.listing, Listing::Listed);
    let status = if core.life.finished() || core.ending.is_some() {
        // Its exit was told already, or is about to be, or no wake follows an end by us.
        "too_late"
    } else if arm {
        if core.wake.replace(call.client).is_some() { "already_armed" } else { "armed" }
    } else if core.wake.take().is_some() {
        "disarmed"
    } else {
        "already_none"
    };
    let wake_armed = core.wake.is_some();
    let answer = json!({ "found": true, "status": status, "wake_armed": wake_armed });
    Ok(told(engine, call, &params, answer))
}

/// The answer, with the events that it carries.
fn told(engine: &mut Engine, call: &Call<'_>, params: &Params, mut answer: Value) -> Answer {
    let events = engine.cx.answer_tells(call, &[], params.events);
    if !events.is_empty() {
        answer["events"] = json!(events);
    }
    Answer::of(&answer)
}
