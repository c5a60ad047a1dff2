//! set_on_exit: arms or disarms a session's wake (unified-exec.md).

use serde::Deserialize;
use serde_json::json;

use crate::engine::contract::{Answer, Call, session_id};
use crate::families::{Engine, Method};
use crate::session::Listing;
use crate::wire::{self, Int, Kind, Param, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "set_on_exit",
    summary: "Arms or disarms a wake: a session_exited notification with wake: true, sent once, \
              if no call observed the exit. Answers {found, status}.",
    params: &[
        Param { name: "session_id", kind: Kind::Integer, required: true, doc: "the session" },
        Param {
            name: "on_exit",
            kind: Kind::Choice(&["none", "wake"]),
            required: true,
            doc: "\"wake\" arms, \"none\" disarms",
        },
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
    on_exit: String,
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    wire::read_params::<Params>(raw, METHOD.params).map(drop)
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params, METHOD.params)?;
    let id = session_id(params.session_id);
    let arm = params.on_exit == "wake";
    let Ok(entry) = engine.sessions.use_session(id) else {
        return Ok(Answer::of(&json!({ "found": false })));
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
    Ok(Answer::of(&json!({ "found": true, "status": status })))
}
