//! How the answer of read_output is made (logs.md, Reading): from where the part is read, and what
//! the answer says of it.

use serde::Serialize;

use super::plan::{Ask, Plan, total_of};
use crate::limits::{LOG_PAGE_LOOKBACK_BYTES, NS_PER_MS};
use crate::pure::ledger::Event;
use crate::pure::text::clean::broken_line_len;
use crate::pure::text::page::{self, Behind, Found, Shown};
use crate::server::engine::judge::status_fields;
use crate::server::engine::pages::{PageSpec, Part, PartSpec};
use crate::server::families::{Cx, Engine, Entry, State, stream};
use crate::server::session::output::Source;
use crate::server::session::state_report::StateReport;
use crate::server::session::wait_report::WaitReport;
use crate::server::session::{Session, SessionId};

/// The answer.
#[derive(Debug, Default, Serialize)]
#[allow(missing_docs)] // What has no comment is as in other replies (docs/methods.md).
pub struct Report {
    pub session_id: SessionId,
    /// `unified`, `stream`, `windows` or `agent`.
    pub family: &'static str,
    pub from: u64,
    pub to: u64,
    pub next_offset: u64,
    /// First and last byte that were asked for and are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<(u64, u64)>,
    /// True: the session is over, and this is the end of its output.
    pub eof: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_from: Option<u64>,
    pub total_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes, with `view` `b64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_b64: Option<String>,
    #[serde(flatten)]
    pub doing: Option<StateReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed_by: Option<&'static str>,
    pub started_at_ms: i64,
    pub elapsed_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
}

impl Report {
    /// Whether it tells how the session has ended.
    pub fn tells_end(&self) -> bool {
        self.exit_code.is_some() || self.signal.is_some()
    }
}

/// Where a part is read from.
pub enum Read {
    /// From memory, at once.
    Made(Box<Report>),
    /// From the log.
    Part(PartSpec),
}

/// What is known of a session, whether it is in the table or has left it.
struct Known {
    /// What the answer says besides the page.
    report: Report,
    /// Nothing more will come, and the log has it all or was waited for long enough.
    over: bool,
    /// Its log's name; none where nothing is logged.
    log: Option<String>,
    /// What is wanted of both streams is all that the stream has: it is the only one that has
    /// written.
    whole: bool,
}

/// Whether one stream, or both, are all that a session has written.
fn is_whole(source: Option<Source>, total: u64, errors_total: u64) -> bool {
    match source {
        None => true,
        Some(Source::Output) => errors_total == 0,
        Some(Source::Errors) => errors_total == total,
    }
}

/// Whether a session is in the table with all that is known of it: one that came back to have its
/// members ended is not.
pub fn is_there(entry: Option<&Entry>) -> bool {
    entry.is_some_and(|one| !matches!(one.family, State::Nobody))
}

/// What is known of a session.
fn known(engine: &mut Engine, ask: &Ask) -> Known {
    let Engine { sessions, cx, .. } = engine;
    let (id, source) = (ask.id, ask.source);
    let past = if is_there(sessions.get(id)) { None } else { sessions.past.get(id) };
    if let Some(past) = past {
        let (exit_code, signal) = status_fields(past.status);
        let report = Report {
            session_id: id,
            family: past.family,
            total_bytes: past.total_of(source),
            exit_code,
            signal,
            killed_by: past.killed_by,
            started_at_ms: past.started_wall_ms,
            elapsed_ms: past.elapsed_ms,
            log_path: past.log.as_deref().and_then(|log| cx.keeper.path_of(log)),
            ..Report::default()
        };
        let whole = is_whole(source, past.total, past.errors_total);
        return Known { report, over: true, log: past.log.as_deref().map(str::to_owned), whole };
    }
    let Some(Entry { core, family }) = sessions.get_mut(id) else {
        // Whoever asks has looked for it in this turn.
        let report = Report { session_id: id, ..Report::default() };
        return Known { report, over: true, log: None, whole: true };
    };
    let over = core.life.finished();
    let (exit_code, signal) = status_fields(core.status().filter(|_| over));
    let ended_ns = core.finished_ns.unwrap_or(cx.now_ns);
    let report = Report {
        session_id: id,
        family: family.name(),
        total_bytes: total_of(core, source),
        doing: (!over).then(|| StateReport::from(&cx.doing(core))),
        exit_code,
        signal,
        killed_by: core.killed_by().filter(|_| over),
        started_at_ms: core.facts.started_wall_ms,
        elapsed_ms: ended_ns.saturating_sub(core.facts.started_ns) / NS_PER_MS,
        log_path: cx.log_path(id),
        ..Report::default()
    };
    let whole = is_whole(source, core.output_bytes_total(), core.errors_total);
    let over = cx.is_over_and_logged(core);
    Known { report, over, log: cx.keeper.log_name(id).map(str::to_owned), whole }
}

/// The bytes of a session's tape from `from` on.
pub fn tape(core: &Session, from: u64) -> Vec<u8> {
    let most = core.output_bytes_total().saturating_sub(from);
    core.tail.last(usize::try_from(most).unwrap_or(usize::MAX)).0
}

/// A part of what memory has, `bytes` that begin at `starts_at`: from `from` on, at most `most`.
fn of_memory((bytes, starts_at): (&[u8], u64), (from, to): (u64, u64), most: u64) -> Part {
    let known = starts_at + bytes.len() as u64;
    let begins = from.max(starts_at).min(to);
    let place = |offset: u64| {
        usize::try_from(offset.saturating_sub(starts_at)).unwrap_or(usize::MAX).min(bytes.len())
    };
    let (first, last) = (place(begins), place(to.min(begins.saturating_add(most))));
    let before = &bytes[place(begins.saturating_sub(LOG_PAGE_LOOKBACK_BYTES))..first];
    Part {
        before: before.to_vec(),
        bytes: bytes[first..last.max(first)].to_vec(),
        from: begins,
        gap: (from < begins).then_some((from, begins)),
        log_from: starts_at,
        known,
    }
}

/// What memory has of a session that is not logged, or not any more.
fn kept(engine: &Engine, ask: &Ask, whole: bool) -> (Vec<u8>, u64) {
    let source = ask.source.filter(|_| !whole);
    let spec = PageSpec { id: ask.id, offset: 0, limit: 0, source, base64: false };
    let live = engine.sessions.get(ask.id);
    let books = &engine.cx.books;
    match (live, source) {
        (Some(Entry { core, .. }), None) => (core.tail.to_vec(), core.tail.starts_at()),
        (Some(Entry { core, family }), Some(_)) => {
            stream::kept_of(Some((family.stream(), core)), &spec, books).unwrap_or_default()
        }
        (None, _) => stream::books::kept_of_finished(&spec, books),
    }
}

/// Reads the part that is asked for from memory, or says what the log is to be asked for.
pub fn read(engine: &mut Engine, plan: &Plan) -> Read {
    let ask = &plan.ask;
    let Known { report, log, whole, .. } = known(engine, ask);
    let total = report.total_bytes;
    let (from, to) = ask.span(total);
    let in_memory =
        engine.sessions.get(ask.id).filter(|_| whole).is_some_and(|Entry { core, .. }| {
            let begins = core.tail.starts_at();
            begins == 0 || begins + LOG_PAGE_LOOKBACK_BYTES <= from
        });
    let most = ask.most;
    // Of an empty page the log alone may know from where on it has the output.
    let knows_from = whole && engine.cx.keeper.status(ask.id).is_some();
    let asks_log = if from < to { !in_memory } else { total > 0 && !knows_from };
    let part = match log {
        Some(name) if asks_log => {
            let (only, lines) = (ask.source.filter(|_| !whole), ask.lines);
            return Read::Part(PartSpec { name, only, from, to, most, lines, total });
        }
        Some(_) if from == to => Part { from, known: total, ..Part::default() },
        Some(_) => {
            let (bytes, starts_at) = kept(engine, ask, whole);
            Part { log_from: 0, ..of_memory((&bytes, starts_at), (from, to), most) }
        }
        None => {
            let (bytes, starts_at) = kept(engine, ask, whole);
            let starts_at = if bytes.is_empty() { total } else { starts_at };
            of_memory((&bytes, starts_at), (from, to), most)
        }
    };
    Read::Made(Box::new(of_part(engine, plan, part)))
}

/// The tape instead of what the log has, where the tape reaches further back: what the log lacks,
/// or what is on its way into it.
fn or_tape(engine: &Engine, ask: &Ask, part: Part, (from, to): (u64, u64)) -> Part {
    let Some(Entry { core, .. }) = engine.sessions.get(ask.id) else { return part };
    let begins = core.tail.starts_at().max(from);
    let lacks = part.gap.is_some() || part.bytes.is_empty();
    let further = part.bytes.is_empty() || begins < part.from;
    if !lacks || !further || begins >= to {
        return part;
    }
    let (bytes, starts_at) = kept(engine, ask, true);
    Part { log_from: part.log_from, ..of_memory((&bytes, starts_at), (from, to), ask.most) }
}

/// The answer of a request whose part has come.
pub fn of_part(engine: &mut Engine, plan: &Plan, part: Part) -> Report {
    let ask = &plan.ask;
    let Known { mut report, over, whole, .. } = known(engine, ask);
    let total = report.total_bytes;
    let (from, to) = ask.span(total);
    let part = if whole { or_tape(engine, ask, part, (from, to)) } else { part };
    let place = place(ask.id, ask.source);
    let goes_on = part.gap.is_none()
        && (part.from == 0 || ask.from_now || engine.cx.books.reading.places.has(place, part.from));
    let behind = match part.to() {
        end if end >= total && over => Behind::Nothing,
        end if end >= to || end >= part.known => Behind::Later,
        _ => Behind::More,
    };
    let (before, bytes) = of_lines(ask, &part, goes_on);
    let found = Found { before, bytes, goes_on: goes_on || ask.lines.is_some(), behind };
    let page::Part { from: begins, to: ends } = page::part(&found, ask.shown);
    let skipped = (part.bytes.len() - bytes.len()) as u64;
    report.from = part.from + skipped + begins as u64;
    report.to = part.from + skipped + ends as u64;
    report.next_offset = report.to;
    // Where all lines that are asked for were found, what is lost before them was not asked for.
    let has_lines = ask.lines.is_some_and(|lines| page::last_lines(&part.bytes, lines) > 0);
    report.gap = part.gap.filter(|_| !has_lines);
    report.eof = over && report.to >= total;
    // Its books count the bytes of both streams.
    let noted = if whole { log_from(&engine.cx, ask.id) } else { 0 };
    let log_from = part.log_from.max(noted);
    report.log_from = Some(log_from);
    if total > 0 && log_from >= total && over {
        // Nothing of it is left.
        report.log_path = None;
    }
    let shown = bytes[begins..ends].to_vec();
    if !shown.ends_with(b"\n") && !shown.is_empty() && !report.eof {
        engine.cx.books.reading.places.note(place, report.to);
    }
    let text = page::text(shown, ask.shown, behind == Behind::Nothing);
    match ask.shown {
        Shown::Exact => report.data_b64 = Some(text),
        Shown::Clean | Shown::Raw => report.text = Some(text),
    }
    report.wait.clone_from(&plan.told);
    report
}

/// The part's last lines, where lines are asked for, and what stands in front of them.
fn of_lines<'a>(ask: &Ask, part: &'a Part, goes_on: bool) -> (&'a [u8], &'a [u8]) {
    let Some(lines) = ask.lines else { return (&part.before, &part.bytes) };
    let at_line = goes_on || part.before.ends_with(b"\n");
    let first = match page::last_lines(&part.bytes, lines) {
        0 if !at_line && lines > 0 => broken_line_len(&part.bytes),
        first => first,
    };
    part.bytes.split_at(first)
}

/// A stream of a session, as the places in it are remembered.
pub fn place(id: SessionId, source: Option<Source>) -> u64 {
    let stream = source.map_or(0, |source| 1 + source as u64);
    id.saturating_mul(4) + stream
}

/// The first byte of its output that a session's log has.
fn log_from(cx: &Cx, id: SessionId) -> u64 {
    cx.keeper.status(id).map_or(0, |log| log.log_from)
}

/// The answer of a request that reads nothing, for its wait has ended early.
pub fn nothing(engine: &mut Engine, plan: &Plan) -> Report {
    let Known { report, whole, .. } = known(engine, &plan.ask);
    let (from, _) = plan.ask.span(report.total_bytes);
    let (from, to, next_offset, wait) = (from, from, from, plan.told.clone());
    let (text, exact) = (Some(String::new()), plan.ask.shown == Shown::Exact);
    let (text, data_b64) = if exact { (None, text) } else { (text, None) };
    // Of one stream of two the log alone knows it.
    let log_from = whole.then(|| log_from(&engine.cx, plan.ask.id));
    Report { from, to, next_offset, wait, text, data_b64, log_from, ..report }
}
