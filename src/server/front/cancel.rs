//! cancel: ends the wait of a pending request, never the session that the request waits for. What
//! a cancelled request is answered with is left to the family that it asked.

use serde_json::json;
use serde_json::value::RawValue;

use crate::server::engine::contract::{Answer, Call};
use crate::server::families::{Engine, Method};
use crate::server::session::wait::{Cancel, CancelEnd};
use crate::wire::{self, Kind, RequestId, RpcError};

/// Why a client cancels a request, in its words.
const CANCEL_REASON_BYTES: usize = 200;

pub(crate) const METHOD: Method = Method {
    name: "cancel",
    summary: "Ends the wait of the pending request with that id: it answers at once with what \
              it has; its session lives on.",
    params: Params::TABLE,
    other_params: None,
    waits: false,
    starts: false,
    while_closing: true,
    models: &[],
    check: |raw| read(raw).map(drop),
    call,
};

wire::params! {
    struct Params {
        id "id": Box<RawValue> = required(
            Kind::Id,
            "the id of the pending request, as it was sent on this connection",
        );
        reason "reason": Option<String> = optional(
            Kind::NonEmptyText,
            "why, for whoever reads the answer: one line of at most 200 bytes",
        );
        take "take": bool = optional(
            Kind::Bool,
            "the answer is looked at: it takes the output so far, also that of a poll; default false",
        );
        leave "leave": bool = optional(
            Kind::Bool,
            "of bash: its command is not ended, it goes on in the background; default false",
        );
        end "end": Option<String> = optional(
            Kind::Choice(&["interrupt", "kill"]),
            "of a request that has started a command: \"interrupt\" sends it SIGINT, \"kill\" SIGTERM \
             and 2 s later SIGKILL; the request answers when the command has ended, or 3 s later",
        );
    }
}

/// Reads the params. The reason stands in a line of a header.
fn read(raw: &str) -> Result<Params, RpcError> {
    let params: Params = wire::read_params(raw)?;
    let reason = params.reason.as_deref().unwrap_or_default();
    if reason.len() > CANCEL_REASON_BYTES || reason.contains(char::is_control) {
        let message = format!("reason must be one line of at most {CANCEL_REASON_BYTES} bytes");
        return Err(RpcError::invalid_param("reason", message));
    }
    Ok(params)
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params = read(call.params)?;
    let known = RequestId::from_json(params.id.get());
    let Params { reason, take, leave, end, .. } = params;
    let end = end.map(|end| match end.as_str() {
        "kill" => CancelEnd::Kill,
        _ => CancelEnd::Interrupt,
    });
    let how = Cancel { reason: reason.map(String::into_boxed_str), take, leave, end };
    let cancelled = known.is_some_and(|id| engine.cancel(call.client, &id, &how));
    Ok(Answer::of(&json!({ "cancelled": cancelled })))
}
