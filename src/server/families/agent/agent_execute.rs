//! agent_execute: runs pi on a task, with its events as they come and one result at its end
//! (agent.md).

use super::{Agent, AgentRunState, launch, pi_program, room_for_one, starting, tell_starting};
use crate::agent::params::{self, AgentParams};
use crate::agent::protocol::{Order, Verb};
use crate::limits::{KILL_GRACE_MS, NS_PER_MS};
use crate::server::engine::contract::{Answer, Call};
use crate::server::families::{Engine, Entry, Method, Numbered, State};
use crate::server::session::wait::{Wait, WaitKind};
use crate::wire::RpcError;
use serde_json::value::RawValue;

/// The program asks pi about itself before it starts the run; its own limits for that are less.
const ASKING_MOST_MS: u64 = 200_000;

pub(crate) const METHOD: Method = Method {
    name: "agent_execute",
    summary: "Runs pi on a task: agent_event notifications as it goes on, one result with text, \
              tokens and cost at its end.",
    params: AgentParams::TABLE,
    other_params: None,
    waits: true,
    starts: true,
    while_closing: false,
    models: &[super::model::AGENT_EXECUTE],
    check: |raw| params::read(raw).map(drop),
    call,
};

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params = params::read(call.params)?;
    room_for_one(engine)?;
    let cx = &engine.cx;
    let program = pi_program(cx, params.pi_path());
    let workspace = params.workspace().map(|dir| cx.resolved_cwd(Some(dir)));
    // A name is looked up on a PATH, which may have relative directories.
    let looked_up = [workspace.as_deref().unwrap_or(""), params.path().unwrap_or(""), &program];
    let key = if program.contains('/') { program.clone() } else { looked_up.join("\n") };
    let raw: &RawValue = serde_json::from_str(call.params)
        .map_err(|error| RpcError::invalid_param("params", error.to_string()))?;
    let order = Order {
        verb: Verb::Run,
        pi: program.as_str().into(),
        workspace: workspace.as_deref().map(Into::into),
        kept_in: cx.keeper.place().path().map(|dir| dir.to_string_lossy().into_owned().into()),
        known: cx.books.agent.known(&key, cx.now_ns),
        others: starting(engine),
        params: raw,
    };
    let most_ms = params.timeout_ms().saturating_add(KILL_GRACE_MS);
    let asks_ms = most_ms.saturating_add(ASKING_MOST_MS);
    let label = params.label().map(str::to_owned);
    let run = AgentRunState {
        pi: program.clone(),
        model: params.model().to_owned(),
        stream: params.streams(),
        most_ms: Some(most_ms),
        is_starting: true,
        awaited: false,
        left: false,
        cancelled: false,
        so_far: params.nothing_so_far(),
        label,
    };
    let id = launch(engine, &order, params.command(&program), (key, asks_ms, Some(Box::new(run))))?;
    tell_starting(engine);
    let wait_ms = params.wait_ms();
    let answer = engine.wait_for(call, id, |ticket, now_ns| Wait {
        // The wait is for all processes of the run to be gone, not for the leader alone.
        saw_leader: false,
        due_ns: wait_ms.map(|ms| now_ns.saturating_add(ms * NS_PER_MS)),
        ..Wait::new(ticket, Agent::ID, WaitKind::Start, now_ns)
    });
    if let Some(Entry { core, family: State::Agent(own) }) = engine.sessions.get_mut(id)
        && let Some(run) = &mut own.run
    {
        run.awaited = !core.waits.is_empty();
    }
    Ok(answer)
}
