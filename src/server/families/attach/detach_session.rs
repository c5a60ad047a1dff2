//! detach_session: ends what attach_session began; the session goes on (people.md).

use serde_json::json;

use crate::server::engine::contract::{Answer, Call, session_id};
use crate::server::families::{Engine, Method};
use crate::wire::{self, Int, Kind, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "detach_session",
    summary: "Ends attach_session: the session goes on, in the size that it had before; \
              {session_id, detached}.",
    params: Params::TABLE,
    other_params: None,
    waits: false,
    starts: false,
    while_closing: true,
    models: &[],
    check: wire::check::<Params>,
    call,
};

wire::params! {
    struct Params {
        session_id "session_id": Int = required(
            Kind::Session,
            "the session; one that this client is not attached to is no error",
        );
    }
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    let id = session_id(params.session_id);
    let entry = engine.sessions.get_mut(id);
    let detached = entry.is_some_and(|one| {
        engine.cx.touch(&mut one.core);
        one.core.detach(call.client, engine.cx.now_ns)
    });
    Ok(Answer::of(&json!({ "session_id": id, "detached": detached })))
}
