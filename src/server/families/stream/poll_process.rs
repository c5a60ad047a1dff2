//! poll_process: what a session wrote since the last call, or how it ended.

use serde_json::value::RawValue;

use super::{Stream, asked, books, drained_report, live_session, signal_all};
use crate::limits::{JOB_WAIT_MAX_MS, JOB_YIELD_MAX_MS, JOB_YIELD_MS, NS_PER_MS};
use crate::server::engine::conditions::{answers_impossible, check_room};
use crate::server::engine::contract::{Answer, Call, session_id};
use crate::server::families::{Engine, Entry, Method, Numbered, State, unified};
use crate::server::session::SessionId;
use crate::server::session::ending::SIGKILL;
use crate::server::session::wait::{Wait, WaitKind};
use crate::server::session::wait_report::WaitReportCamel;
use crate::wire::until::UNTIL_CAMEL;
use crate::wire::{self, Int, Kind, RpcError};

pub(crate) const METHOD: Method = Method {
    name: "poll_process",
    summary: "What a process wrote since the last call, or how it ended. One that has ended can \
              be polled again, with the same answer, until its time to live is over.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    starts: false,
    while_closing: false,
    models: &[super::model::POLL_PROCESS],
    check,
    call,
};

wire::params! {
    struct Params {
        session_id "sessionId": Int = required(Kind::Session, "the process");
        kill_if "killIf": Option<String> = optional(
            Kind::Choice(&["timeout", "always"]),
            "ends all of it: at once (\"always\"), or if it has not ended when this call's wait is \
             over (\"timeout\"), which output then does not end",
        );
        max_drain_ms "maxDrainMs": Option<Int> = optional(
            Kind::Integer,
            "how long to wait for output or the end, up to 120000 ms, with until or stop up to \
             1800000; default 0",
        );
        wait_ms "waitMs": Option<Int> = optional(
            Kind::Integer,
            "how long to wait for the end, whatever output comes, up to 1800000 ms; default 0, with \
             until or stop 60000",
        );
        until "until": Option<Box<RawValue>> = optional(
            Kind::Object(UNTIL_CAMEL),
            unified::UNTIL_DOC,
        );
        stop "stop": Option<Box<RawValue>> = optional(
            Kind::Object(UNTIL_CAMEL),
            unified::STOP_DOC,
        );
        on_impossible "onImpossible": Option<String> = optional(
            Kind::Choice(&["answer", "wait"]),
            unified::ON_IMPOSSIBLE_DOC,
        );
        tell_password "tellPassword": bool = optional(Kind::Bool, unified::TELL_PASSWORD_DOC);
    }
}

impl Params {
    /// How long to wait, and for what. What is 0 says nothing about the wait; of two times the one
    /// that is over first counts.
    /// Where the call `asks` for something, output alone does not end its wait.
    fn wait(&self, asks: bool) -> Option<(u64, WaitKind)> {
        let given = |ms: Option<Int>, most_ms| {
            ms.map(|given| given.clamped(0, most_ms)).filter(|ms| *ms > 0)
        };
        let drain_ms =
            given(self.max_drain_ms, if asks { JOB_WAIT_MAX_MS } else { JOB_YIELD_MAX_MS });
        let ms = drain_ms.into_iter().chain(given(self.wait_ms, JOB_WAIT_MAX_MS)).min();
        let ms = ms.or_else(|| asks.then_some(JOB_YIELD_MS))?;
        let or_kill = self.kill_if.is_some();
        let ends_by_output = drain_ms.is_some() && !or_kill && !asks;
        Some((ms, if ends_by_output { WaitKind::Poll } else { WaitKind::End { or_kill } }))
    }
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    let params: Params = wire::read_params(raw)?;
    asked::conditions(params.until.as_deref(), params.stop.as_deref()).map(drop)
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    let conditions = asked::conditions(params.until.as_deref(), params.stop.as_deref())?;
    let id = session_id(params.session_id);
    let always = params.kill_if.as_deref() == Some("always");
    // What outlived the session in the background is reached by the session's id.
    let Engine { sessions, cx, .. } = engine;
    if always && books::is_finished(id, cx) && sessions.readopt_left(id, cx) {
        return Ok(end(engine, call, id, SIGKILL, None));
    }
    if let Some(mut report) = books::finished(id, cx) {
        let told = report.aggregated.as_deref().unwrap_or_default();
        report.wait = asked::of_over(&conditions, id, told).map(WaitReportCamel::from);
        engine.cx.answer_tells(call, &[id], false);
        return Ok(Answer::of(&report));
    }
    let core = &live_session(engine, id)?.core;
    let (runs, tty) = (core.status().is_none(), core.facts.tty);
    check_room(core, &conditions)?;
    let (ms, kind) = match params.wait(conditions.0.is_some() || conditions.1.is_some()) {
        _ if always => return Ok(end(engine, call, id, SIGKILL, None)),
        Some(wait) => wait,
        None if params.kill_if.is_none() => return Ok(drain(engine, call, id)),
        None if runs => return Ok(end(engine, call, id, SIGKILL, None)),
        // The command has ended by itself: who holds its output is waited for no longer.
        None => (0, WaitKind::End { or_kill: true }),
    };
    let Engine { sessions, cx, .. } = &*engine;
    let asked = sessions
        .get(id)
        .and_then(|Entry { core, family }| asked::of_untold(family.stream(), core, conditions, cx));
    // What was to be ended at its time is not left alone before.
    let answers = answers_impossible(params.on_impossible.as_deref(), &cx.config);
    Ok(engine.wait_for(call, id, |ticket, now_ns| Wait {
        tells_state: true,
        due_ns: Some(now_ns + ms * NS_PER_MS),
        by_output: kind == WaitKind::Poll,
        asked,
        tells_password: params.tell_password && tty,
        answers_impossible: answers && kind != WaitKind::End { or_kill: true },
        ..Wait::new(ticket, Stream::ID, kind, now_ns)
    }))
}

/// What came since the last call, told at once.
fn drain(engine: &mut Engine, call: &Call<'_>, id: SessionId) -> Answer {
    let Engine { sessions, cx, .. } = engine;
    if sessions.get(id).is_some_and(|one| one.core.is_over(cx.now_ns)) {
        cx.answer_tells(call, &[id], false);
    }
    let report = sessions.get_mut(id).map(|Entry { core, family }| {
        let own = if let State::Stream(own) = family { Some(&mut **own) } else { None };
        drained_report(own, core, cx)
    });
    Answer::of(&report.unwrap_or_default())
}

/// Ends all of a process with `signal`; the request waits for that, for `wait_ms` at most where
/// it is given.
pub(super) fn end(
    engine: &mut Engine,
    call: &Call<'_>,
    id: SessionId,
    signal: i32,
    wait_ms: Option<u64>,
) -> Answer {
    signal_all(engine, call, id, signal);
    engine.wait_for(call, id, |ticket, now_ns| Wait {
        due_ns: wait_ms.map(|ms| now_ns + ms * NS_PER_MS),
        ..Wait::new(ticket, Stream::ID, WaitKind::Kill, now_ns)
    })
}
