//! agent_result: what a run comes to whose agent_execute was answered before its end (agent.md,
//! Runs that go on): waits for it, or ends it.
//! What runs have come to whose request was answered before their end is kept for it, also for one
//! that asks a second time. A result that agent_execute has answered with is not kept.

use super::{Agent, told_all};
use crate::limits::{MAX_CONFIGURABLE_POLL_MS, NS_PER_MS};
use crate::server::engine::contract::{Answer, Call, session_id};
use crate::server::families::{Engine, Entry, Method, Numbered, State};
use crate::server::session::SessionId;
use crate::server::session::wait::{Wait, WaitKind};
use crate::wire::{self, Int, Kind, Reason, RpcError};
use std::collections::VecDeque;

/// Bytes of all of them, but for the newest.
const AGENT_RESULTS_BYTES: usize = 32 * 1024 * 1024;

/// Results that are kept of runs whose request was answered before their end.
const AGENT_RESULTS_KEPT: usize = 64;

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
    let Some(run) = &mut own.run else { return Err(unknown(engine, id)) };
    run.cancelled |= params.cancel;
    if core.waits.is_empty() {
        run.stream = params.stream;
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
        if family.agent().is_some_and(|own| own.run.is_some()) && !told_all(core) {
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

/// Results as JSON, by the ids of their sessions: the newest last.
#[derive(Debug, Default)]
pub struct Results(VecDeque<(SessionId, Vec<u8>)>);

impl Results {
    /// Keeps a result, for which the oldest make room. A single one always has room: what a result
    /// may be is bounded by itself.
    pub(super) fn keep(&mut self, id: SessionId, result: Vec<u8>) {
        self.0.push_back((id, result));
        while self.0.len() > 1
            && (self.0.len() > AGENT_RESULTS_KEPT || self.bytes() > AGENT_RESULTS_BYTES)
        {
            self.0.pop_front();
        }
    }

    /// The result of a run.
    pub(super) fn get(&self, id: SessionId) -> Option<&Vec<u8>> {
        self.0.iter().find(|(own, _)| *own == id).map(|(_, result)| result)
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|(_, result)| result.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_bytes_bound_what_is_kept_and_the_newest_is() {
        let mut results = Results::default();
        let count = AGENT_RESULTS_KEPT as u64;
        for id in 0..=count {
            results.keep(id, b"{}".to_vec());
        }
        assert_eq!((results.get(0), results.get(1)), (None, Some(&b"{}".to_vec())));
        results.keep(1_000, vec![b' '; AGENT_RESULTS_BYTES - 4]);
        assert_eq!((results.0.len(), results.get(count).is_some()), (3, true));
        results.keep(1_001, vec![b' '; AGENT_RESULTS_BYTES + 1]);
        assert_eq!((results.0.len(), results.get(1_001).is_some()), (1, true));
    }
}
