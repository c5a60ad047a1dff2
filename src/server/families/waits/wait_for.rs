//! wait_for: waits for one of several sessions, for all of them, or for the first that fails
//! (waits.md).

use serde_json::value::RawValue;

use super::group::Group;
use super::{Waits, reply, row};
use crate::limits::NS_PER_MS;
use crate::pure::group::Mode;
use crate::pure::text::truncate::{footer, truncate_tail};
use crate::server::engine::conditions;
use crate::server::engine::contract::{Answer, Call, session_id};
use crate::server::families::unified::ended::Ended;
use crate::server::families::{Engine, Method, Numbered, stream, unified, windows};
use crate::server::session::asked::Conditions;
use crate::server::session::report::TruncationReport;
use crate::server::session::wait::{Progress, Wait, WaitKind};
use crate::server::session::{Listing, SessionId};
use crate::wire::until::{self, Spelling::Snake, UNTIL};
use crate::wire::{self, Int, Kind, RpcError};

/// Sessions in one wait_for: as many as all families may have running at once.
const WAIT_FOR_SESSIONS_MAX: usize = 256;

/// Wait of wait_for when none is given.
const DEFAULT_WAIT_FOR_MS: u64 = 30_000;

pub(crate) const METHOD: Method = Method {
    name: "wait_for",
    summary: "Waits for several sessions at once: for one of them, for all, or for the first that \
              fails. Without until it waits for their exits.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    starts: false,
    while_closing: false,
    models: &[unified::model::WAIT_FOR],
    check,
    call,
};

wire::params! {
    struct Params {
        session_ids "session_ids": Box<RawValue> = required(
            Kind::Sessions,
            "the sessions, of any family; \"all\": every one that list_sessions has",
        );
        until "until": Option<Box<RawValue>> = optional(Kind::Object(UNTIL), unified::UNTIL_DOC);
        stop "stop": Option<Box<RawValue>> = optional(Kind::Object(UNTIL), unified::STOP_DOC);
        mode "mode": Option<String> = optional(
            Kind::Choice(&["any", "all", "first_failure"]),
            "\"any\" (default): one of them is enough; \"all\": each of them; \"first_failure\": the \
             first that does not exit with 0, else all",
        );
        timeout_ms "timeout_ms": Option<Int> = optional(
            Kind::Integer,
            "how long to wait, clamped to 0 ms..cap of a poll; default 30000",
        ) or "timeout" or "yield_time_ms";
        max_empty_poll_ms "max_empty_poll_ms": Option<Int> = optional(
            Kind::Integer,
            unified::CAP_DOC,
        );
        take "take": Option<bool> = optional(
            Kind::Bool,
            "false leaves the output, and the exits, to later calls; default true",
        );
        on_impossible "on_impossible": Option<String> = optional(
            Kind::Choice(&["answer", "wait"]),
            unified::ON_IMPOSSIBLE_DOC,
        );
        until_password "until_password": bool = optional(
            Kind::Bool,
            unified::UNTIL_PASSWORD_DOC,
        );
        header "header": Option<String> = optional(
            Kind::Choice(unified::HEADER_WORDS),
            unified::HEADER_DOC,
        );
        events "events": bool = optional(Kind::Bool, unified::EVENTS_DOC);
        stream "stream": bool = optional(Kind::Bool, "sends progress notifications while waiting");
    }
}

impl Params {
    fn mode(&self) -> Mode {
        match self.mode.as_deref() {
            Some("all") => Mode::All,
            Some("first_failure") => Mode::FirstFailure,
            _ => Mode::Any,
        }
    }

    /// The sessions as given, each once; None for all of them.
    fn ids(&self) -> Result<Option<Vec<SessionId>>, RpcError> {
        let Ok(given) = serde_json::from_str::<Vec<Int>>(self.session_ids.get()) else {
            return Ok(None);
        };
        let mut ids: Vec<SessionId> = Vec::new();
        for id in given.into_iter().map(session_id) {
            if !ids.contains(&id) {
                ids.push(id);
            }
            if ids.len() > WAIT_FOR_SESSIONS_MAX {
                let message = format!("session_ids: at most {WAIT_FOR_SESSIONS_MAX} sessions");
                return Err(RpcError::invalid_param("session_ids", message));
            }
        }
        if ids.is_empty() {
            let message = "session_ids must name a session, or be \"all\"";
            return Err(RpcError::invalid_param("session_ids", message));
        }
        Ok(Some(ids))
    }
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    let params: Params = wire::read_params(raw)?;
    params.ids()?;
    until::read(params.until.as_deref(), params.stop.as_deref(), Snake).map(drop)
}

/// Where a session is to be found.
enum Found {
    /// In the table.
    There,
    /// In the books: the session is over.
    Over(Box<row::Row>),
}

/// A session that somebody else has ended, with at most `most` bytes of its output.
fn over(ended: &Ended, most: usize) -> Found {
    let (exit_code, signal) = ended.exit();
    let all = ended.output();
    let (output, cut) = truncate_tail(&all, usize::MAX, most);
    Found::Over(Box::new(row::Row {
        session_id: ended.id(),
        command: ended.command(),
        family: ended.family,
        exit_code,
        signal,
        killed_by: Some(ended.killed_by),
        note: Some(ended.line()),
        output: Some(output.to_owned()),
        truncation: TruncationReport::new(&cut),
        footer: footer(&cut, ended.log_path.as_deref()),
        log_path: ended.log_path.clone(),
        ..row::Row::over()
    }))
}

/// The session of this id, whoever started it, as used now; `most`: bytes of output of one that is
/// over.
fn find(
    engine: &mut Engine,
    call: &Call<'_>,
    id: SessionId,
    conditions: &Conditions,
    most: usize,
) -> Result<Found, RpcError> {
    let ended = unified::ended::find(engine, call, id);
    // Of their own sessions the books have more.
    if let Some(ended) = ended.as_ref().filter(|one| one.family == "unified") {
        return Ok(over(ended, most));
    }
    let Engine { sessions, cx, .. } = engine;
    // The books of bash_stream have the sessions of all families. What a session's own family can
    // still tell goes before: the exit of a listed one is told by a wait, as by a poll.
    let is_listed = sessions.get(id).is_some_and(|one| one.core.listing == Listing::Listed);
    let remembered = || {
        let window = windows::books::finished_row(id, most, cx);
        window.or_else(|| stream::books::finished_row(id, most, cx))
    };
    if let Some(row) = (!is_listed).then(remembered).flatten() {
        return Ok(Found::Over(Box::new(row)));
    }
    let used = sessions.next_use();
    let known = sessions
        .get_mut(id)
        .filter(|one| one.family.stream().is_some() || one.core.listing == Listing::Listed);
    if let Some(entry) = known {
        conditions::check_room(&entry.core, conditions)?;
        entry.core.last_used = used;
        return Ok(Found::There);
    }
    if let Some(ended) = &ended {
        return Ok(over(ended, most));
    }
    let mut error = sessions.unknown_session(id);
    error.message = format!("session_ids: {}", error.message);
    Err(error.with("param", "session_ids".into()))
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    // Read once, so that a pattern is compiled once for all sessions.
    let conditions = until::read(params.until.as_deref(), params.stop.as_deref(), Snake)?;
    let answers_impossible =
        conditions::answers_impossible(params.on_impossible.as_deref(), &engine.cx.config);
    let cap_ms = unified::poll_cap_ms(params.max_empty_poll_ms, engine.cx.config.max_empty_poll_ms);
    let timeout_ms =
        params.timeout_ms.map_or(DEFAULT_WAIT_FOR_MS, |given| given.clamped(0, cap_ms));
    let ids = match params.ids()? {
        Some(ids) => ids,
        None => engine.sessions.listed().map(|core| core.id).collect(),
    };
    let (take, most) = (params.take.unwrap_or(true), engine.cx.config.shared_text_bytes);
    let mut group = Group::new(params.mode(), take, &ids, timeout_ms, most);
    group.tells_events = params.events;
    group.note = unified::clamp_note("timeout_ms", params.timeout_ms, timeout_ms);
    if ids.is_empty() {
        group.note = Some("no session runs: there was nothing to wait for".to_owned());
    }
    group.compact = unified::is_compact(params.header.as_deref());
    let mut there = Vec::new();
    for id in ids {
        match find(engine, call, id, &conditions, group.row_bytes())? {
            Found::There => there.push(id),
            Found::Over(mut row) => {
                let told = row.output.as_deref().unwrap_or_default();
                row.wait = stream::asked::of_over(&conditions, id, told);
                group.put_over(*row, engine.cx.now_ns);
            }
        }
    }
    if there.is_empty() {
        let events = engine.cx.answer_tells(call, &group.sessions(), params.events);
        let others_run = engine.cx.others_run(0);
        return Ok(Answer::of(&reply::reply(group, events, others_run)));
    }
    let Some(ticket) = engine.open_ticket(call, &there) else { return Ok(Answer::Waits) };
    let Engine { cx, .. } = engine;
    cx.books.waits.keep(|ticket| cx.pending.contains_key(&ticket));
    cx.books.waits.put_back(ticket, group);
    let now_ns = cx.now_ns;
    for id in there {
        let Engine { sessions, cx, .. } = &*engine;
        let Some(entry) = sessions.get(id) else { continue };
        let core = &entry.core;
        let wait = Wait {
            tells_state: true,
            due_ns: Some(now_ns + timeout_ms * NS_PER_MS),
            drains: core.ways.drains,
            saw_leader: core.status().is_none(),
            asked: entry.family.asked(core, conditions.clone(), cx),
            answers_impossible,
            until_password: params.until_password && core.facts.tty,
            progress: params.stream.then(Progress::default),
            ..Wait::new(ticket, Waits::ID, WaitKind::Poll, now_ns)
        };
        engine.add_wait(id, wait);
    }
    Ok(Answer::Waits)
}
