//! Requests for pages in line: the keeper is asked for them, they are answered, or given up. What a
//! page has is left to the module above.

use super::{PendingPage, WaitingPage, begins_at, page_of_stream, report};
use crate::engine::contract::Families;
use crate::engine::{Engine, Owner};
use crate::keeper::frames::Ack;
use crate::limits::{LOG_PAGE_WAIT_MS, LOG_PAGES_ASKED_MAX, NS_PER_MS};
use crate::session::Ticket;
use crate::sys::errno::errno_text;
use crate::wire::{Reason, RpcError};

impl<F: Families> Engine<F> {
    /// Puts a request for a page in line; it waits under `ticket`.
    pub fn ask_page(&mut self, ticket: Ticket, name: String, page: PendingPage) {
        self.pages.0.insert(ticket, WaitingPage { page, name, due_ns: None });
        self.ask_pages();
    }

    /// Asks the keeper for the pages that are first in line: a few at once, and only for readers
    /// with room for them, so that no more of them than that is ever in memory.
    pub(in crate::engine) fn ask_pages(&mut self) {
        let cx = &mut self.cx;
        let asked = self.pages.0.values().filter(|one| one.due_ns.is_some()).count();
        let may = |ticket: &Ticket| {
            cx.pending.get(ticket).is_some_and(|one| cx.clients.has_room(one.client))
        };
        let waiting = self.pages.0.iter().filter(|(_, one)| one.due_ns.is_none());
        let first = waiting.map(|(ticket, _)| *ticket).filter(may);
        let next: Vec<Ticket> = first.take(LOG_PAGES_ASKED_MAX.saturating_sub(asked)).collect();
        let due_ns = cx.now_ns + LOG_PAGE_WAIT_MS * NS_PER_MS;
        for ticket in next {
            let Some(one) = self.pages.0.get_mut(&ticket) else { continue };
            one.due_ns = Some(due_ns);
            let wanted = one.wanted(ticket);
            if !self.cx.keeper.ask_page(&wanted) {
                self.fail_page(ticket, "nobody can read it now: its keeper is gone");
            }
        }
        self.arm_pages();
    }

    /// Answers the requests whose page has come, and asks for the next ones.
    pub(in crate::engine) fn answer_pages(&mut self) {
        let pages = self.cx.keeper.take_pages();
        if pages.is_empty() {
            return;
        }
        for (ack, bytes) in pages {
            self.answer_page(&ack, &bytes);
        }
        self.ask_pages();
    }

    fn answer_page(&mut self, ack: &Ack, bytes: &[u8]) {
        let Some(one) = self.pages.0.get(&ack.token) else { return };
        let (page, logged) = (&one.page, if ack.errno == 0 { Ok(()) } else { Err(ack.errno) });
        let spec = &page.spec;
        let made = if page.only.is_some() {
            let live = self.sessions.get(spec.id).map(|one| (&one.family, &one.core));
            let memory = F::kept(live, spec, &self.cx.books).unwrap_or_default();
            let logged = logged.map(|()| (bytes, ack.logged, ack.noted));
            let ended = (page.finished, self.cx.keeper.settled(spec.id));
            page_of_stream(spec, logged, &memory, ended).map_err(|errno| {
                let why = errno_text(errno);
                format!("one of its streams cannot be read ({why}); try it without stream")
            })
        } else {
            logged.map_err(errno_text).map(|()| {
                let (starts_at, total) = (ack.logged, ack.noted);
                let offset = begins_at(spec, total);
                let from = usize::try_from(offset.saturating_sub(starts_at)).unwrap_or(0);
                let (before, bytes) = bytes.split_at(from.min(bytes.len()));
                let limit = usize::try_from(spec.limit).unwrap_or(usize::MAX).min(bytes.len());
                report(spec, before, &bytes[..limit], (offset, total), page.finished)
            })
        };
        let report = match made {
            Ok(report) => report,
            Err(why) => return self.fail_page(ack.token, &why),
        };
        let Some(WaitingPage { page, .. }) = self.pages.0.remove(&ack.token) else { return };
        let Some(pending) = self.cx.take_pending(ack.token) else { return };
        self.cx.clients.reply(&pending, &report.with(page.late_from, page.log));
    }

    fn fail_page(&mut self, ticket: Ticket, why: &str) {
        if self.pages.0.remove(&ticket).is_none() {
            return;
        }
        let Some(pending) = self.cx.take_pending(ticket) else { return };
        let error = RpcError::failed(Reason::System, format!("the log: {why}"));
        self.cx.clients.refuse(&pending, &error);
        self.arm_pages();
    }

    /// Gives up on the pages, with `all`, or when one took too long: the others in line would wait
    /// for the same disk.
    pub(in crate::engine) fn give_up_pages(&mut self, all: bool, why: &str) {
        let late = |one: &WaitingPage| one.due_ns.is_some_and(|due_ns| due_ns <= self.cx.now_ns);
        if !all && !self.pages.0.values().any(late) {
            return;
        }
        let tickets: Vec<Ticket> = self.pages.0.keys().copied().collect();
        for ticket in tickets {
            self.fail_page(ticket, why);
        }
    }

    /// Nobody waits for a page any more.
    pub(in crate::engine) fn forget_page(&mut self, ticket: Ticket) {
        if self.pages.0.remove(&ticket).is_some() {
            self.arm_pages();
        }
    }

    fn arm_pages(&mut self) {
        let due = self.pages.0.values().filter_map(|one| one.due_ns).min();
        self.cx.deadlines.set(Owner::Pages, due);
    }
}
