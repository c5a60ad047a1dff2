//! The ledger of events in the engine (protocol.md, Events): where each event is noted, once; what
//! replies carry of them and count as told by that; and the requests for `events` that wait.

pub mod kept;

use serde::Serialize;
use serde_json::value::RawValue;

use super::clients::STDIN_CLIENT;
use super::contract::cx::Cx;
use super::contract::{Answer, Call, Families};
use super::judge::status_fields;
use super::{Engine, Owner};
use crate::limits::{EVENT_COMMAND_BYTES, EVENTS_PER_REPLY, LIST_COMMAND_CHARS, NS_PER_MS};
use crate::pure::ledger::{Event, What};
use crate::pure::process::killed::KilledBy;
use crate::pure::text::utf8::floor_boundary;
use crate::pure::text::visible::{self, one_line};
use crate::server::session::{ClientId, Session, SessionId, Ticket};
use crate::sys::clock;
use crate::wire::RequestId;
use kept::{By, Early, Waiting};

/// The longest id of a request that an event names; a longer one is left out.
const EVENT_REQUEST_ID_BYTES: usize = 200;

/// Bytes of a message in an event.
const EVENT_MESSAGE_BYTES: usize = 400;

/// The answer of `events`.
#[derive(Debug, Serialize)]
struct Page {
    events: Vec<Event>,
    /// The number to ask behind next.
    next_after: u64,
    /// The oldest number that is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest: Option<u64>,
    /// First and last number behind `after` that are kept no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<[u64; 2]>,
    /// With `untold`: a line for each, for models.
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
}

/// A text that is cut where it is longer.
fn cut(text: &str, most_bytes: usize) -> String {
    text[..floor_boundary(text, most_bytes)].to_owned()
}

/// How long ago something was, for models.
pub fn age(ms: i64) -> String {
    match ms.max(0) / 1_000 {
        s @ 0..120 => format!("{s} s ago"),
        s @ 120..7_200 => format!("{} min ago", s / 60),
        s => format!("{} h ago", s / 3_600),
    }
}

/// An event as a line for models.
fn line(event: &Event, now_ms: i64) -> String {
    let end = match (event.exit_code, event.signal.as_deref()) {
        (Some(code), _) => format!("exited {code}"),
        (None, Some(signal)) => format!("ended by {signal}"),
        (None, None) => "exited".to_owned(),
    };
    let outside = KilledBy::Outside.as_str();
    let what = match (event.what, event.killed_by) {
        (What::Exited, Some(by)) if by == outside => format!("{end} ({by})"),
        (What::Exited, Some(by)) => format!("was killed ({by}), {end}"),
        (What::Exited, None) => end,
        (What::Evicted, _) => "was evicted".to_owned(),
        (What::Killed, by) => format!("is being killed ({})", by.unwrap_or_default()),
        (What::Wake, _) => "woke its client".to_owned(),
        (What::LogTrouble, _) => event.message.clone().unwrap_or_default(),
    };
    let command = one_line(&event.command);
    let shown: String = command.chars().take(LIST_COMMAND_CHARS).collect();
    let dots = if shown.len() < command.len() { "…" } else { "" };
    let (id, age) = (event.session_id, age(now_ms - event.at_ms));
    let name = visible::name(event.name.as_deref(), &event.command);
    let log = event.log_path.as_ref().map(|path| format!("; log: {}", one_line(path)));
    let (what, log) = (one_line(&what), log.unwrap_or_default());
    format!("event: session {id}{name} ({shown}{dots}) {what}, {age}{log}")
}

impl<F: Families> Cx<F> {
    /// A new event of a session; `None` of a session that nobody knows of.
    fn event_of(&self, core: &Session, what: What) -> Option<Event> {
        let mut event = Event::new(what, core.id, clock::wall_ms());
        event.command = cut(&core.facts.command, EVENT_COMMAND_BYTES);
        event.name.clone_from(&core.facts.name);
        event.log_path = self.log_path(core.id);
        event.family = core.noted.family?;
        Some(event)
    }

    fn push_event(&mut self, event: Option<Event>) -> Option<u64> {
        event.map(|event| self.events.ledger.push(event))
    }

    /// Notes a session's end, once. Where an answer tells it although others hold the output, it is
    /// told with that answer: their end is no event of its own.
    pub(super) fn note_end(&mut self, core: &mut Session, family: Option<&'static str>) {
        core.noted.family = family;
        if core.noted.end {
            return;
        }
        let left = core.ways.drains && core.is_left_to_holders(self.now_ns);
        if core.finished_ns.is_none() && !left {
            let may_be_told = core.status().is_some() && family.is_some();
            if may_be_told && !std::mem::replace(&mut core.noted.may_be_early, true) {
                self.events.early.push(Early { session: core.id, told: Vec::new() });
            }
            return;
        }
        core.noted.end = true;
        let event = self.event_of(core, What::Exited).filter(|_| !core.never_was());
        let event = event.map(|mut event| {
            (event.exit_code, event.signal) = status_fields(core.status());
            event.killed_by = core.killed_by();
            event
        });
        let n = self.push_event(event);
        if core.noted.may_be_early
            && let Some(at) = self.events.early.iter().position(|one| one.session == core.id)
        {
            let told = self.events.early.swap_remove(at).told;
            n.into_iter().for_each(|n| told.iter().for_each(|client| self.tell_event(*client, n)));
        }
    }

    /// Notes that a session has left the table for another one.
    pub(super) fn note_eviction(&mut self, core: &Session) {
        let event = self.event_of(core, What::Evicted);
        self.push_event(event);
    }

    /// Notes that execd has begun to end a session. Who asked for it is told by the answer.
    pub(super) fn note_kill(&mut self, core: &Session, by: By<'_>) {
        if by.reason == KilledBy::Eviction {
            // That it was evicted says it.
            return;
        }
        let fits = |id: &&RequestId| id.as_json().len() <= EVENT_REQUEST_ID_BYTES;
        let event = self.event_of(core, What::Killed).map(|mut event| {
            event.killed_by = Some(by.reason.as_str());
            let id = by.request.filter(fits).map(|id| id.as_json().to_owned());
            event.request_id = id.and_then(|id| RawValue::from_string(id).ok());
            event
        });
        if let (Some(n), Some(client)) = (self.push_event(event), by.client) {
            self.tell_event(client, n);
        }
    }

    /// Notes that a wake was sent.
    pub(super) fn note_wake(&mut self, core: &Session) {
        let event = self.event_of(core, What::Wake);
        self.push_event(event);
    }

    /// Notes what has gone wrong with a session's log since this was last looked at.
    pub(super) fn note_log_trouble(&mut self, core: &mut Session) {
        let Some((trouble, log_from)) = self.keeper.log_news(core.id) else { return };
        let new = |text: &&str| core.noted.log_trouble.as_deref() != Some(*text);
        let mut said: Vec<String> = trouble.filter(new).map(str::to_owned).into_iter().collect();
        if let Some(text) = said.first() {
            core.noted.log_trouble = Some(text.clone());
        }
        // Of a log with trouble the trouble says why its beginning is gone.
        let trimmed = log_from > 0 && trouble.is_none();
        if trimmed && !std::mem::replace(&mut core.noted.log_trimmed, true) {
            // From where on it is kept changes with each step: log_from of later replies has it.
            said.push("its log has lost its beginning".to_owned());
        }
        for text in said {
            let event = self.event_of(core, What::LogTrouble).map(|mut event| {
                event.message = Some(cut(&text, EVENT_MESSAGE_BYTES));
                event
            });
            self.push_event(event);
        }
    }

    fn tell_event(&mut self, client: ClientId, n: u64) {
        if let Some(client) = self.clients.get_mut(client) {
            self.events.ledger.tell(&mut client.events, n);
        }
    }

    /// A reply that goes to a client now tells a session's end: what has happened to that session
    /// is told with it. Where the end is no event yet, it is told by the time that it becomes one.
    pub fn tell_end_to(&mut self, client: ClientId, session: SessionId) {
        self.tell_of(client, session, |_| true);
        let Some(early) = self.events.early.iter_mut().find(|one| one.session == session) else {
            return;
        };
        if !early.told.contains(&client) {
            // Clients come and go while somebody holds the output.
            early.told.retain(|one| self.clients.get(*one).is_some());
            early.told.push(client);
        }
    }

    /// What a reply that goes to a client now tells of its own session: what is wrong with the log,
    /// or, where it says how the session has ended, all that has happened to it.
    pub fn tell_own_to(&mut self, client: ClientId, session: SessionId, ended: bool) {
        if ended {
            self.tell_end_to(client, session);
        } else {
            self.tell_of(client, session, |what| what == What::LogTrouble);
        }
    }

    /// A reply that goes to a client now tells that a session was evicted.
    pub(super) fn tell_eviction_to(&mut self, client: ClientId, session: SessionId) {
        self.tell_of(client, session, |what| what == What::Evicted);
    }

    fn tell_of(&mut self, client: ClientId, session: SessionId, fits: fn(What) -> bool) {
        if let Some(client) = self.clients.get_mut(client) {
            self.events.ledger.tell_of(&mut client.events, session, fits);
        }
    }

    /// The events that the reply carries which goes to a client now: those that were not told to it
    /// yet, as many as there is room for. They count as told from now on. A wake is told by its
    /// notification and carried by no reply.
    pub fn take_events(&mut self, client: ClientId) -> Vec<Event> {
        let Some(client) = self.clients.get_mut(client) else { return Vec::new() };
        let ledger = &self.events.ledger;
        let told = ledger.untold(&client.events).filter(|event| event.what != What::Wake);
        let mut events: Vec<Event> = told.take(EVENTS_PER_REPLY).cloned().collect();
        let now_ms = if events.is_empty() { 0 } else { clock::wall_ms() };
        for event in &mut events {
            event.line = line(event, now_ms);
            ledger.tell(&mut client.events, event.n);
        }
        events
    }

    /// What an answer tells that goes to its client at once: the ends of these sessions, and, where
    /// it `carries` events, those that were not told yet. A request that is never answered tells
    /// nothing.
    pub fn answer_tells(
        &mut self,
        call: &Call<'_>,
        ended: &[SessionId],
        carries: bool,
    ) -> Vec<Event> {
        if call.id.is_none() {
            return Vec::new();
        }
        ended.iter().for_each(|id| self.tell_end_to(call.client, *id));
        if carries { self.take_events(call.client) } else { Vec::new() }
    }

    /// The events behind a number, `max` at most, which count as told to the client then.
    fn page(&mut self, client: ClientId, after: u64, max: usize) -> Page {
        let ledger = &self.events.ledger;
        let events: Vec<Event> = ledger.after(after).take(max).cloned().collect();
        if let Some(client) = self.clients.get_mut(client) {
            events.iter().for_each(|event| ledger.tell(&mut client.events, event.n));
        }
        self.page_of(events, after)
    }

    fn page_of(&self, events: Vec<Event>, after: u64) -> Page {
        let ledger = &self.events.ledger;
        let next_after = events.last().map_or(after, |event| event.n);
        let lost = ledger.lost(after);
        Page { events, next_after, oldest: ledger.oldest(), lost, text: String::new() }
    }
}

/// The lines of events for models, each on a line of its own behind what is before.
pub fn lines(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events {
        text.push('\n');
        text.push_str(&event.line);
    }
    text
}

impl<F: Families> Engine<F> {
    /// Step, before requests: notes the ends that the turn has found. An answer that is given at
    /// once tells them.
    pub(super) fn note_ends(&mut self) {
        let touched: Vec<SessionId> = self.cx.queues.touched.iter().copied().collect();
        for id in touched {
            if let Some(entry) = self.sessions.get_mut(id) {
                self.cx.note_end(&mut entry.core, entry.family.family_name());
            }
        }
    }

    /// Answers at once with the events that no reply has told the client yet, and their lines for
    /// models: as many as a reply carries.
    pub fn untold_events(&mut self, call: &Call<'_>) -> Answer {
        let events = self.cx.answer_tells(call, &[], true);
        let text = lines(&events).trim_start().to_owned();
        let page = self.cx.page_of(events, 0);
        Answer::of(&Page { text, lost: None, ..page })
    }

    /// Answers at once with the events behind a number, `max` at most, none of which count as told
    /// by that.
    pub fn peek_events(&self, after: u64, max: usize) -> Answer {
        let events: Vec<Event> = self.cx.events.ledger.after(after).take(max).cloned().collect();
        Answer::of(&self.cx.page_of(events, after))
    }

    /// Answers a request for the events behind a number, or lets it wait for the next one,
    /// `wait_ms` at most.
    pub fn ask_events(&mut self, call: &Call<'_>, after: u64, max: usize, wait_ms: u64) -> Answer {
        let last = self.cx.events.ledger.last();
        // A number that was not given out yet is another execd's: whoever knows it knows nothing of
        // this one.
        let after = if after > last { 0 } else { after };
        let there = last > after;
        if there || wait_ms == 0 || self.cx.closes_for(call.client) {
            // Without an id nothing is told.
            let page = match call.id {
                Some(_) => self.cx.page(call.client, after, max),
                None => self.cx.page_of(Vec::new(), after),
            };
            return Answer::of(&page);
        }
        if let Some(ticket) = self.open_ticket(call, &[]) {
            let due_ns = self.cx.now_ns + wait_ms * NS_PER_MS;
            let waiting = Waiting { ticket, after, max, due_ns, cancelled: false };
            self.cx.events.waiting.push(waiting);
        }
        Answer::Waits
    }

    /// Cancels a request for events; whether there was one.
    pub(super) fn cancel_events(&mut self, ticket: Ticket) -> bool {
        let mut waiting = self.cx.events.waiting.iter_mut();
        let found = waiting.find(|one| one.ticket == ticket);
        found.map(|one| one.cancelled = true).is_some()
    }

    /// Whether a client has ended its requests, and nothing can happen any more.
    fn is_in_vain(&self, client: ClientId) -> bool {
        let cx = &self.cx;
        client == STDIN_CLIENT
            && cx.clients.stdin.input_ended
            && !cx.clients.stdin.lines.has_complete_line()
            && cx.clients.connected() == 0
            && self.sessions.iter().all(|one| one.core.life.finished())
    }

    /// Step: answers the requests for events that have some, whose time is over, or that were
    /// cancelled.
    pub(super) fn answer_events(&mut self) {
        let (mut at, mut due_ns) = (0, None);
        while let Some(one) = self.cx.events.waiting.get(at) {
            let (ticket, after, max) = (one.ticket, one.after, one.max);
            let (cancelled, its_due_ns) = (one.cancelled, one.due_ns);
            let Some(client) = self.cx.pending.get(&ticket).map(|pending| pending.client) else {
                // Its client is gone.
                self.cx.events.waiting.remove(at);
                continue;
            };
            let over = cancelled
                || self.cx.events.ledger.last() > after
                || its_due_ns <= self.cx.now_ns
                || self.cx.closes_for(client)
                || self.is_in_vain(client);
            if !over || !self.cx.clients.has_room(client) {
                let later = Some(its_due_ns).filter(|at| *at > self.cx.now_ns);
                due_ns = due_ns.into_iter().chain(later).min();
                at += 1;
                continue;
            }
            self.cx.events.waiting.remove(at);
            let page = if cancelled {
                self.cx.page_of(Vec::new(), after)
            } else {
                self.cx.page(client, after, max)
            };
            if let Some(pending) = self.cx.take_pending(ticket) {
                self.cx.clients.reply(&pending, &page);
            }
        }
        self.cx.deadlines.set(Owner::Events, due_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exited() -> Event {
        let mut event = Event::new(What::Exited, 3, 0);
        event.command = "npm test".to_owned();
        event
    }

    /// rule: protocol.md, Events: A line of the header for each event, last in the header
    #[test]
    fn an_event_is_a_line_for_models() {
        let code = Event { exit_code: Some(1), ..exited() };
        assert_eq!(line(&code, 41_000), "event: session 3 (npm test) exited 1, 41 s ago");
        let by = |killed_by| Event { signal: Some("SIGKILL".into()), killed_by, ..exited() };
        for (event, says) in [
            (by(None), "ended by SIGKILL"),
            (by(Some("signal from outside")), "ended by SIGKILL (signal from outside)"),
            (by(Some("timeout")), "was killed (timeout), ended by SIGKILL"),
            (Event { what: What::Evicted, ..exited() }, "was evicted"),
            (Event { what: What::Killed, ..by(Some("cancel")) }, "is being killed (cancel)"),
        ] {
            let expected = format!("event: session 3 (npm test) {says}, 3 min ago");
            assert_eq!(line(&event, 185_000), expected);
        }
        let long = Event { command: "x\n".repeat(100), exit_code: Some(0), ..exited() };
        assert!(!line(&long, 0).contains('\n') && line(&long, 0).contains("…) exited 0, 0 s ago"));
    }
}
