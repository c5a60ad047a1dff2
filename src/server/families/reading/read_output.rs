//! read_output: any part of any session's output (logs.md, Reading).

use serde_json::value::RawValue;

use super::Reading;
use super::plan::{Ask, Begin, Plan, Scan, total_of};
use super::reply::{self, Read};
use super::scan;
use crate::limits::{MAX_CHAR_BYTES, NS_PER_MS};
use crate::pure::text::page::Shown;
use crate::server::engine::conditions;
use crate::server::engine::contract::{Answer, Call, session_id};
use crate::server::families::{Engine, Entry, Method, Numbered, unified};
use crate::server::session::SessionId;
use crate::server::session::asked::{Asked, Conditions};
use crate::server::session::output::Source;
use crate::server::session::wait::{Wait, WaitKind};
use crate::wire::until::{self, Spelling::Snake, UNTIL};
use crate::wire::{self, Int, Kind, RpcError};

/// How long read_output waits with `until` or `stop` when nothing else is asked for.
const READ_UNTIL_MS: u64 = 5_000;

/// Lines that may be asked for.
const READ_LINES_MAX: u64 = 1_000_000;

/// Most output of one page.
const READ_OUTPUT_MAX_BYTES: u64 = 1024 * 1024;

/// Output of one page when nothing else is asked for.
const READ_OUTPUT_BYTES: u64 = 64 * 1024;

pub(crate) const METHOD: Method = Method {
    name: "read_output",
    summary: "Reads any part of a session's output by its offsets, of whatever family, also when \
              the session has ended and left every list. It takes nothing away.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    starts: false,
    while_closing: false,
    models: &[],
    check,
    call,
};

wire::params! {
    struct Params {
        session_id "session_id": Int = required(Kind::Session, "the session");
        from "from": Option<Int> = optional(
            Kind::Integer,
            "first byte; negative: from the end; default max_bytes before the end, or with a wait \
             the end at the call",
        );
        to "to": Option<Int> = optional(
            Kind::Integer,
            "the byte behind the last; default the end of the output",
        );
        max_bytes "max_bytes": Option<Int> = optional(
            Kind::Integer,
            "bytes of output, clamped to 4..1048576; default 65536",
        );
        lines "lines": Option<Int> = optional(
            Kind::Integer,
            "the last so many lines before to, within max_bytes; clamped to 1..1000000",
        );
        view "view": Option<String> = optional(
            Kind::Choice(&["clean", "raw", "b64"]),
            "\"clean\" (default) text, \"raw\" text with escape sequences, or \"b64\": exact bytes",
        );
        stream "stream": Option<String> = optional(
            Kind::Choice(&["stdout", "stderr"]),
            "only this stream, where the two are apart; offsets count its bytes; default both",
        );
        until "until": Option<Box<RawValue>> = optional(Kind::Object(UNTIL), unified::UNTIL_DOC);
        stop "stop": Option<Box<RawValue>> = optional(Kind::Object(UNTIL), unified::STOP_DOC);
        yield_time_ms "yield_time_ms": Option<Int> = optional(
            Kind::Integer,
            "how long to wait for output at or behind from, or for until and stop; clamped to 0 \
             ms..cap of a poll; default 0, with until or stop 5000",
        );
        on_impossible "on_impossible": Option<String> = optional(
            Kind::Choice(&["answer", "wait"]),
            unified::ON_IMPOSSIBLE_DOC,
        );
        events "events": bool = optional(Kind::Bool, unified::EVENTS_DOC);
    }
}

impl Params {
    fn ask(&self) -> Result<Ask, RpcError> {
        let to = self.to.map(|to| u64::try_from(to.0)).transpose().map_err(|_| {
            RpcError::invalid_param("to", "to must not be negative: it is an offset")
        })?;
        let from = match self.from {
            None => Begin::Last,
            Some(Int(from)) if from < 0 => Begin::Back(from.unsigned_abs()),
            Some(Int(from)) => Begin::At(from.unsigned_abs()),
        };
        if let (Begin::At(from), Some(to)) = (from, to)
            && to < from
        {
            let message = format!("to ({to}) must not be before from ({from})");
            return Err(RpcError::invalid_param("to", message));
        }
        let most = self.max_bytes.map_or(READ_OUTPUT_BYTES, |given| {
            // A page of text has room for the longest character, so that each leads on.
            given.clamped(MAX_CHAR_BYTES as u64, READ_OUTPUT_MAX_BYTES)
        });
        let lines = self.lines.map(|given| given.clamped(1, READ_LINES_MAX));
        Ok(Ask {
            id: session_id(self.session_id),
            source: self.stream.as_deref().map(|stream| match stream {
                "stderr" => Source::Errors,
                _ => Source::Output,
            }),
            from,
            to,
            most,
            lines: lines.and_then(|lines| usize::try_from(lines).ok()),
            shown: match self.view.as_deref() {
                Some("raw") => Shown::Raw,
                Some("b64") => Shown::Exact,
                _ => Shown::Clean,
            },
            from_now: false,
            tells_events: self.events,
        })
    }

    fn conditions(&self) -> Result<Conditions, RpcError> {
        let conditions = until::read(self.until.as_deref(), self.stop.as_deref(), Snake)?;
        let (until, stop) = &conditions;
        let looks = until.iter().chain(stop).any(|one| one.has_patterns());
        if looks && self.stream.is_some() {
            let message = "until and stop look for text in both streams: leave stream out, or them";
            return Err(RpcError::invalid_param("stream", message));
        }
        Ok(conditions)
    }
}

/// Reads the params without acting on them.
fn check(raw: &str) -> Result<(), RpcError> {
    let params: Params = wire::read_params(raw)?;
    params.ask()?;
    params.conditions().map(drop)
}

/// How a call waits.
struct Waits {
    conditions: Conditions,
    /// It waits for more than output.
    asks: bool,
    yield_time_ms: u64,
    answers_impossible: bool,
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    let ask = params.ask()?;
    let conditions = params.conditions()?;
    let asks = conditions.0.is_some() || conditions.1.is_some();
    let cap_ms = engine.cx.config.max_empty_poll_ms;
    let waits = Waits {
        conditions,
        asks,
        yield_time_ms: params
            .yield_time_ms
            .map_or(if asks { READ_UNTIL_MS } else { 0 }, |given| given.clamped(0, cap_ms)),
        answers_impossible: conditions::answers_impossible(
            params.on_impossible.as_deref(),
            &engine.cx.config,
        ),
    };
    // Requests of clients that are gone are forgotten.
    let cx = &mut engine.cx;
    cx.books.reading.plans.retain(|ticket, _| cx.pending.contains_key(ticket));
    let there = reply::is_there(engine.sessions.get(ask.id));
    if !there && engine.sessions.past.get(ask.id).is_some() {
        return Ok(of_past(engine, call, ask, &waits));
    }
    let live = engine.sessions.get(ask.id).filter(|one| !is_hidden(one));
    let Some(Entry { core, .. }) = live else {
        return Err(engine.sessions.unknown_session(ask.id));
    };
    conditions::check_room(core, &waits.conditions)?;
    let total = total_of(core, ask.source);
    let ends = waits.yield_time_ms == 0 || (core.life.finished() && !waits.asks);
    if ends && !waits.asks {
        return Ok(read_now(engine, call, Plan::new(ask)));
    }
    let (looks_from, ask) = begin(ask, total);
    let by_output = !waits.asks;
    let plan = Plan { looks_from, by_output, scanned_to: looks_from, ..Plan::new(ask) };
    if by_output && total > looks_from {
        return Ok(read_now(engine, call, plan));
    }
    Ok(wait(engine, call, plan, waits))
}

fn is_hidden(entry: &Entry) -> bool {
    use crate::server::engine::contract::Families;
    entry.family.family_name().is_none()
}

/// Where the output begins that a call looks at which waits, and the page with its beginning where
/// that was at the call.
fn begin(ask: Ask, total: u64) -> (u64, Ask) {
    match ask.from {
        Begin::At(from) => (from, ask),
        Begin::Back(bytes) => {
            let from = total.saturating_sub(bytes);
            (from, Ask { from: Begin::At(from), ..ask })
        }
        Begin::Last if ask.lines.is_some() || ask.to.is_some() => (total, ask),
        Begin::Last => (total, Ask { from: Begin::At(total), from_now: true, ..ask }),
    }
}

/// Answers at once, or when the log has been read.
fn read_now(engine: &mut Engine, call: &Call<'_>, plan: Plan) -> Answer {
    match reply::read(engine, &plan) {
        Read::Made(mut report) => {
            let ended: &[SessionId] = if report.tells_end() { &[plan.ask.id] } else { &[] };
            report.events = engine.cx.answer_tells(call, ended, plan.ask.tells_events);
            Answer::of(&report)
        }
        Read::Part(spec) => {
            if let Some(ticket) = engine.open_ticket(call, &[]) {
                let plan = Plan { reads: true, ..plan };
                engine.cx.books.reading.plans.insert(ticket, Box::new(plan));
                engine.ask_part(ticket, spec);
            }
            Answer::Waits
        }
    }
}

/// Of a session that has left the table the output is looked at as far as the log has it.
fn of_past(engine: &mut Engine, call: &Call<'_>, ask: Ask, waits: &Waits) -> Answer {
    let Some(past) = engine.sessions.past.get(ask.id) else { return Answer::Waits };
    let (total, log) = (past.total, past.log.as_deref().map(str::to_owned));
    if !waits.asks {
        return read_now(engine, call, Plan::new(ask));
    }
    let (looks_from, _) = begin(ask, total);
    let due_ns = engine.cx.now_ns + waits.yield_time_ms * NS_PER_MS;
    let asked = Asked::new(waits.conditions.clone(), looks_from, due_ns);
    let Some(watch) = asked.and_then(|asked| asked.text) else {
        let told = Some(scan::report(ask.id, None, false));
        return read_now(engine, call, Plan { told, ..Plan::new(ask) });
    };
    let Some(log) = log.filter(|_| looks_from < total) else {
        let told = Some(scan::report(ask.id, None, false));
        return read_now(engine, call, Plan { told, ..Plan::new(ask) });
    };
    let Some(ticket) = engine.open_ticket(call, &[]) else { return Answer::Waits };
    let scan = Some(Box::new(Scan { watch, due_ns }));
    let mut plan = Box::new(Plan { scan, scanned_to: looks_from, ..Plan::new(ask) });
    plan.scans = true;
    engine.cx.books.reading.plans.insert(ticket, plan);
    scan::ask(engine, ticket, (log, looks_from, total));
    Answer::Waits
}

/// Leaves a wait in the session. What is there of the output already is looked at first.
fn wait(engine: &mut Engine, call: &Call<'_>, mut plan: Plan, waits: Waits) -> Answer {
    let id = plan.ask.id;
    let Some(ticket) = engine.open_ticket(call, &[id]) else { return Answer::Waits };
    let now_ns = engine.cx.now_ns;
    let Some(Entry { core, .. }) = engine.sessions.get(id) else { return Answer::Waits };
    let total = core.output_bytes_total();
    let mut asked = Asked::new(waits.conditions, plan.looks_from.min(total), now_ns);
    let mut log = None;
    if let Some(asked) = &mut asked
        && let Some(watch) = &mut asked.text
        && plan.looks_from < total
        && !scan::show_tape(core, plan.looks_from, watch)
    {
        log = engine.cx.keeper.log_name(id).map(|name| (name.to_owned(), plan.looks_from, total));
        asked.catching_up = log.is_some();
        if log.is_none() {
            scan::show_rest(core, plan.looks_from, watch);
        }
    }
    let wait = Wait {
        tells_state: true,
        due_ns: Some(now_ns + waits.yield_time_ms * NS_PER_MS),
        yield_time_ms: Some(waits.yield_time_ms),
        by_output: plan.by_output,
        drains: core.ways.drains,
        saw_leader: core.status().is_none(),
        asked,
        answers_impossible: waits.answers_impossible,
        ..Wait::new(ticket, Reading::ID, WaitKind::Poll, now_ns)
    };
    plan.scans = log.is_some();
    engine.cx.books.reading.plans.insert(ticket, Box::new(plan));
    engine.add_wait(id, wait);
    if let Some(log) = log {
        scan::ask(engine, ticket, log);
    }
    Answer::Waits
}
