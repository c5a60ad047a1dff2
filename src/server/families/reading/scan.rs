//! The look at output that is there already when a call waits for something in it: read from the
//! log piece by piece, while the session runs on or has long ended.

use super::plan::{Plan, Scan};
use super::reply;
use crate::pure::until::{Hit, TextWatch};
use crate::server::engine::pages::{Part, PartSpec};
use crate::server::families::{Engine, Entry, Numbered};
use crate::server::session::wait::{Moment, Wait};
use crate::server::session::wait_report::WaitReport;
use crate::server::session::{Session, SessionId, Ticket};

/// Output that is looked at in one step for what `until` and `stop` ask for, where it is there
/// already: so long a turn may take for one reader.
const READ_SCAN_BYTES: u64 = 256 * 1024;

/// Whether a wait for a session that has ended goes on, because not all output was looked at.
pub fn goes_on(wait: &Wait, at: &Moment) -> bool {
    let late = wait.due_ns.is_some_and(|due| due <= at.now_ns);
    let catching_up = wait.asked.as_ref().is_some_and(|asked| asked.catching_up);
    catching_up && !late && !at.closing
}

/// Shows a look-out what the tape has from `from` on; whether the tape has all of that.
pub fn show_tape(core: &Session, from: u64, watch: &mut TextWatch) -> bool {
    let reaches = core.tail.starts_at() <= from;
    if reaches {
        watch.push(&reply::tape(core, from));
    }
    reaches
}

/// A piece to look at: of this log, from this byte on, of so many that there are.
pub type Piece = (String, u64, u64);

/// What follows a piece that was looked at.
#[derive(Debug)]
pub enum Next {
    /// All was looked at that there is to look at: the page is read.
    Page,
    /// The wait in the session goes on.
    Waits,
    /// The next piece is looked at.
    More(Piece),
}

/// Asks for a piece of a session's output to look at.
pub fn ask(engine: &mut Engine, ticket: Ticket, (name, from, to): Piece) {
    let (only, most, lines) = (None, READ_SCAN_BYTES, None);
    engine.ask_part(ticket, PartSpec { name, only, from, to, most, lines, total: to });
}

/// Looks at a piece that has come.
pub fn look(
    engine: &mut Engine,
    plan: &mut Plan,
    ticket: Ticket,
    came: &Result<Part, String>,
) -> Next {
    match plan.scan.take() {
        Some(scan) => look_of_past(engine, plan, scan, came),
        None => look_of_live(engine, plan, ticket, came),
    }
}

/// Shows a piece to a look-out; whether it leads on.
fn show(watch: &mut TextWatch, plan: &mut Plan, came: &Result<Part, String>) -> bool {
    let Ok(part) = came else { return false };
    if part.from > plan.scanned_to {
        watch.skip(part.from - plan.scanned_to);
    }
    watch.push(&part.bytes);
    let leads_on = part.to() > plan.scanned_to;
    plan.scanned_to = plan.scanned_to.max(part.to());
    leads_on
}

fn look_of_past(
    engine: &Engine,
    plan: &mut Plan,
    mut scan: Box<Scan>,
    came: &Result<Part, String>,
) -> Next {
    let leads_on = show(&mut scan.watch, plan, came);
    let Some(past) = engine.sessions.past.get(plan.ask.id) else { return Next::Page };
    let late = scan.due_ns <= engine.cx.now_ns;
    let all = plan.scanned_to >= past.total;
    if scan.watch.hit().is_none() && leads_on && !all && !late {
        plan.scan = Some(scan);
        let log = past.log.as_deref().unwrap_or_default().to_owned();
        return Next::More((log, plan.scanned_to, past.total));
    }
    if all {
        scan.watch.end();
    }
    plan.told = Some(report(plan.ask.id, scan.watch.hit(), late && !all));
    Next::Page
}

/// What is said of the look at the output of a session that is over.
pub fn report(id: SessionId, hit: Option<&Hit>, late: bool) -> WaitReport {
    let report = WaitReport { session_id: Some(id), ..WaitReport::default() };
    let Some(hit) = hit.cloned() else {
        let outcome = if late { "deadline" } else { "exited" };
        return WaitReport { outcome, line: outcome.to_owned(), ..report };
    };
    let outcome = if hit.by_stop { "stopped" } else { "matched" };
    WaitReport {
        outcome,
        line: format!("{outcome} {}", hit.by),
        by: Some(hit.by),
        index: Some(hit.index),
        text: Some(hit.text),
        captures: hit.captures,
        offset: Some(hit.offset),
        next_offset: Some(hit.next_offset),
        present_at_entry: Some(true),
        ..report
    }
}

/// Of a session that is in the table its wait looks: at the piece, and at what the tape has where
/// that goes on with it.
fn look_of_live(
    engine: &mut Engine,
    plan: &mut Plan,
    ticket: Ticket,
    came: &Result<Part, String>,
) -> Next {
    let Engine { sessions, cx, .. } = engine;
    let Some(Entry { core, .. }) = sessions.get_mut(plan.ask.id) else { return Next::Page };
    let ours = |wait: &Wait| wait.ticket == ticket && wait.asked_by == super::Reading::ID;
    let Some(at) = core.waits.iter().position(ours) else { return Next::Page };
    // Lent meanwhile, for it looks at what the session has.
    let Some(mut asked) = core.waits[at].asked.take() else { return Next::Waits };
    let mut done = true;
    if let Some(watch) = &mut asked.text {
        let leads_on = show(watch, plan, came);
        done = watch.hit().is_some() || show_tape(core, plan.scanned_to, watch);
        if !done && !leads_on {
            // The log has no more of it: the tape is looked at behind a gap.
            show_rest(core, plan.scanned_to, watch);
            done = true;
        }
    }
    asked.catching_up = !done;
    core.waits[at].asked = Some(asked);
    if done {
        cx.touch(core);
        return Next::Waits;
    }
    let log = cx.keeper.log_name(core.id).unwrap_or_default().to_owned();
    Next::More((log, plan.scanned_to, core.output_bytes_total()))
}

/// Shows a look-out what the tape has, behind a gap.
pub fn show_rest(core: &Session, from: u64, watch: &mut TextWatch) {
    let begins = core.tail.starts_at();
    watch.skip(begins.saturating_sub(from));
    show_tape(core, begins, watch);
}
