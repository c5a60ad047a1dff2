//! events: what has happened to sessions behind a number, or the next thing that happens
//! (protocol.md, Events).

use crate::limits::EVENTS_KEPT;
use crate::server::engine::contract::{Answer, Call};
use crate::server::families::{Engine, Method};
use crate::wire::{self, Int, Kind, RpcError};

/// How long `events` waits at most.
const EVENTS_WAIT_MAX_MS: u64 = 300_000;

/// Events that `events` gives, where the call says nothing.
const EVENTS_DEFAULT: u64 = 100;

pub(crate) const METHOD: Method = Method {
    name: "events",
    summary: "What has happened to sessions: exits, evictions, kills, wakes, trouble of logs, each \
              with a number. Gives those behind a number, or waits for the next one.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    starts: false,
    while_closing: true,
    models: &[],
    check: wire::check::<Params>,
    call,
};

wire::params! {
    struct Params {
        after "after": Option<Int> = optional(
            Kind::Integer,
            "the number behind which events are told; default 0: all that are kept",
        );
        max "max": Option<Int> = optional(
            Kind::Integer,
            "how many at most, clamped to 1..1024; default 100",
        );
        wait_ms "wait_ms": Option<Int> = optional(
            Kind::Integer,
            "how long to wait for one where there is none, clamped to 0..300000; default 0",
        );
        untold "untold": bool = optional(
            Kind::Bool,
            "true: at once those that no reply has told this client yet, with text: their lines \
             for models; default false",
        );
        peek "peek": bool = optional(
            Kind::Bool,
            "true: at once, and nothing counts as told by it; default false",
        );
    }
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    let after = params.after.map_or(0, |given| given.clamped(0, u64::MAX >> 1));
    let max = params.max.map_or(EVENTS_DEFAULT, |given| given.clamped(1, EVENTS_KEPT as u64));
    let wait_ms = params.wait_ms.map_or(0, |given| given.clamped(0, EVENTS_WAIT_MAX_MS));
    let max = usize::try_from(max).unwrap_or(EVENTS_KEPT);
    if params.untold {
        return Ok(engine.untold_events(call));
    }
    if params.peek {
        return Ok(engine.peek_events(after, max));
    }
    Ok(engine.ask_events(call, after, max, wait_ms))
}
