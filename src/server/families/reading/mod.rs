//! read_output (logs.md, Reading): any part of any session's output, also after the session has
//! left every list. It takes nothing: no unread output, no wake, no exit, no place in the table.
//!
//! A request that waits has a `Wait` in its session like any other. Once that is over, and of one
//! that does not wait at once, the part is read: from memory where that has all of it, else by the
//! keeper from the log, which the request waits for without a session. `plan` has what such a
//! request wants, `scan` looks at what is there already for what `until` asks for, `reply` makes
//! the answer.

mod plan;
pub mod read_output;
mod reply;
mod scan;

use super::{Cx, Engine, Family, Method};
use crate::pure::buffer::handed_out::HandedOut;
use crate::server::engine::pages::Part;
use crate::server::engine::pages::unreadable;
use crate::server::session::wait::{Moment, Wait, Why};
use crate::server::session::wait_report;
use crate::server::session::{Session, Ticket};
use plan::Plan;
use reply::Read;
use scan::Next;
use std::collections::BTreeMap;

/// The rows of the table of methods.
pub const METHODS: &[Method] = &[read_output::METHOD];

/// What the family keeps of a session: nothing, since it starts none.
#[derive(Debug)]
pub struct Reading;

/// The requests that wait, and where pages have ended inside of lines.
#[derive(Debug, Default)]
pub struct Books {
    plans: BTreeMap<Ticket, Box<Plan>>,
    /// The requests whose waits are over.
    over: Vec<Ticket>,
    places: HandedOut,
}

impl Family for Reading {
    type Books = Books;

    fn verdict(
        _own: Option<&Self>,
        core: &Session,
        wait: &Wait,
        at: &Moment,
        cx: &Cx,
    ) -> Option<Why> {
        let plan = cx.books.reading.plans.get(&wait.ticket)?;
        match core.verdict(wait, at) {
            // What has ended is over only when all of its output was looked at.
            Some(Why::Completed) if wait.outcome.is_none() && scan::goes_on(wait, at) => None,
            None if plan.by_output && plan.has_come(core) => Some(Why::Matched),
            why => why,
        }
    }

    /// The log is read behind all that was handed over before: only who is told the end of the
    /// output, and may look into the log next, waits for it.
    fn points_at_log(_: Option<&Self>, _: &Session, _: &Wait, why: Why, _: &Cx) -> bool {
        why == Why::Completed
    }

    /// The wait is over: the part is read behind the judgement.
    fn answer(
        _own: Option<&mut Self>,
        core: &mut Session,
        wait: Wait,
        why: Why,
        cx: &mut Cx,
    ) -> bool {
        let Some(plan) = cx.books.reading.plans.get_mut(&wait.ticket) else {
            return false;
        };
        plan.ends_early = matches!(why, Why::Cancelled | Why::ShuttingDown);
        plan.told = wait_report::report(&wait, why, core);
        if let Some(pending) = cx.pending.get_mut(&wait.ticket) {
            // From now on it waits for a log, not for the session.
            pending.sessions.clear();
        }
        cx.books.reading.over.push(wait.ticket);
        false
    }
}

/// The part that a request asked for has come, or why it could not be read.
pub fn came(engine: &mut Engine, ticket: Ticket, came: Result<Part, String>) {
    let Some(mut plan) = engine.cx.books.reading.plans.remove(&ticket) else { return };
    if std::mem::take(&mut plan.scans) {
        if let (Err(why), None) = (&came, engine.sessions.get(plan.ask.id)) {
            // No other look-out is left than the one at its log.
            return answer(engine, ticket, &plan, Err(why.clone()));
        }
        let next = scan::look(engine, &mut plan, ticket, &came);
        return match next {
            Next::Page => read(engine, ticket, plan),
            Next::Waits => _ = engine.cx.books.reading.plans.insert(ticket, plan),
            Next::More(piece) => {
                plan.scans = true;
                engine.cx.books.reading.plans.insert(ticket, plan);
                scan::ask(engine, ticket, piece);
            }
        };
    }
    if std::mem::take(&mut plan.reads) {
        let made = came.map(|part| reply::of_part(engine, &plan, part));
        return answer(engine, ticket, &plan, made);
    }
    read(engine, ticket, plan);
}

/// The waits that were over are answered: each request is answered, or waits for its log.
pub fn go_on(engine: &mut Engine) {
    for ticket in std::mem::take(&mut engine.cx.books.reading.over) {
        let Some(plan) = engine.cx.books.reading.plans.remove(&ticket) else { continue };
        if plan.ends_early {
            let made = reply::nothing(engine, &plan);
            answer(engine, ticket, &plan, Ok(made));
        } else if plan.scans {
            // What was asked for comes first.
            engine.cx.books.reading.plans.insert(ticket, plan);
        } else {
            read(engine, ticket, plan);
        }
    }
}

/// Reads the part that a request waits for.
fn read(engine: &mut Engine, ticket: Ticket, mut plan: Box<Plan>) {
    match reply::read(engine, &plan) {
        Read::Made(made) => answer(engine, ticket, &plan, Ok(*made)),
        Read::Part(spec) => {
            plan.reads = true;
            engine.cx.books.reading.plans.insert(ticket, plan);
            engine.ask_part(ticket, spec);
        }
    }
}

fn answer(engine: &mut Engine, ticket: Ticket, plan: &Plan, made: Result<reply::Report, String>) {
    let Some(pending) = engine.cx.take_pending(ticket) else { return };
    match made {
        Ok(mut report) => {
            if report.tells_end() {
                engine.cx.tell_end_to(pending.client, plan.ask.id);
            }
            // Nobody may look at an answer that was cancelled: it tells of no other session.
            if plan.ask.tells_events && !plan.ends_early {
                report.events = engine.cx.take_events(pending.client);
            }
            engine.cx.clients.reply(&pending, &report);
        }
        Err(why) => engine.cx.clients.refuse(&pending, &unreadable(&why)),
    }
}
