//! agent_result: what a run comes to whose agent_execute was answered before its end (agent.md,
//! Runs that go on): waits for it, or ends it.

use super::{Agent, told_all};
use crate::engine::contract::{Answer, Call, session_id};
use crate::families::{Engine, Entry, Method, Numbered, State};
use crate::limits::{AGENT_RESULTS_KEPT, MAX_CONFIGURABLE_POLL_MS, NS_PER_MS};
use crate::session::SessionId;
use crate::session::wait::{Wait, WaitKind};
use crate::wire::{self, Int, Kind, Reason, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "agent_result",
    summary: "Waits for the result of a run of agent_execute that was answered before its end; \
              one that has ended is told at once.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    starts: false,
    while_closing: false,
    models: &[super::model::AGENT_RESULT],
    check: |raw| wire::read_params::<Params>(raw).map(drop),
    call,
};

wire::params! {
    struct Params {
        run_id "run_id": Int = required(
            Kind::Session,
            "the run, as agent_execute has answered it: the id of its session",
        );
        wait_ms "wait_ms": Option<Int> = optional(
            Kind::Integer,
            "answers after so many ms at the latest, and the run goes on; default: at its end",
        );
        cancel "cancel": bool = optional(
            Kind::Bool,
            "ends the run: the result says what it has cost until then",
        );
        stream "stream": bool = optional(
            Kind::Bool,
            "sends its events as they come, where no older request waits for the run; default \
             false",
        );
    }
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    let id = session_id(params.run_id);
    if let Some(result) = engine.cx.books.agent.results.get(id).cloned() {
        engine.cx.tell_end_to(call.client, id);
        return Ok(Answer::Json(result));
    }
    let Some(Entry { core, family: State::Agent(own) }) = engine.sessions.get_mut(id) else {
        return Err(unknown(engine, id));
    };
    let Agent::Run(run) = &mut **own else { return Err(unknown(engine, id)) };
    run.cancelled |= params.cancel;
    if core.waits.is_empty() {
        run.spec.stream = params.stream;
    }
    let wait_ms = params.wait_ms.map(|ms| ms.clamped(0, MAX_CONFIGURABLE_POLL_MS));
    engine.cx.touch(core);
    Ok(engine.wait_for(call, id, |ticket, now_ns| Wait {
        saw_leader: false,
        due_ns: wait_ms.map(|ms| now_ns.saturating_add(ms * NS_PER_MS)),
        ..Wait::new(ticket, Agent::ID, WaitKind::Poll, now_ns)
    }))
}

fn unknown(engine: &Engine, id: SessionId) -> RpcError {
    let mut running = String::new();
    for Entry { core, family } in engine.sessions.iter() {
        if matches!(family.agent(), Some(Agent::Run(_))) && !told_all(core) {
            let comma = if running.is_empty() { "running now: " } else { ", " };
            running = format!("{running}{comma}{}", core.id);
        }
    }
    let running = if running.is_empty() { "none runs now" } else { &running };
    let message = format!(
        "unknown run_id {id}: neither a run that goes on nor one of the last \
         {AGENT_RESULTS_KEPT} results kept; {running}"
    );
    RpcError::failed(Reason::UnknownSession, message)
}
