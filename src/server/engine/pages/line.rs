//! Requests for parts of logs in line: the keeper is asked for them, they are answered, or given
//! up. What an answer has is left to the module above, or to the family that asked.

use super::gather::{Gather, Next};
use super::{Part, PartSpec, PendingPage, page_of_log};
use crate::keeper::frames::ReadRange;
use crate::keeper::range::Range;
use crate::limits::{LOG_PAGE_WAIT_MS, LOG_PAGES_ASKED_MAX, NS_PER_MS};
use crate::server::engine::contract::Families;
use crate::server::engine::{Engine, Owner};
use crate::server::session::Ticket;
use crate::sys::errno::errno_text;
use crate::sys::io::{EEXIST, EISDIR, ELOOP, ESPIPE, ESTALE};
use crate::wire::{Reason, RpcError};
use std::collections::BTreeMap;

/// A part in line.
#[derive(Debug)]
struct Waiting {
    spec: PartSpec,
    /// The page that is made of it; without one the family is handed the part.
    page: Option<PendingPage>,
    /// When the part is given up; `None` while the keeper has not been asked for it yet.
    due_ns: Option<u64>,
    /// What has come of it.
    gather: Gather,
}

/// Parts of logs in line, the first that was asked for first.
#[derive(Debug, Default)]
pub struct Pages(BTreeMap<Ticket, Waiting>);

impl Waiting {
    fn new(spec: PartSpec, page: Option<PendingPage>) -> Self {
        Self { gather: Gather::new(&spec), spec, page, due_ns: None }
    }

    /// What the keeper is asked for.
    fn asked(&self, token: Ticket) -> ReadRange {
        ReadRange { token, wanted: self.gather.wanted(&self.spec), name: self.spec.name.clone() }
    }
}

impl<F: Families> Engine<F> {
    /// Puts a request for a page in line; it waits under `ticket`.
    pub fn ask_page(&mut self, ticket: Ticket, name: String, page: PendingPage) {
        self.pages.0.insert(ticket, Waiting::new(page.part(name), Some(page)));
        self.ask_pages();
    }

    /// Puts a request for a part of a session's output in line; the family is handed it.
    pub fn ask_part(&mut self, ticket: Ticket, spec: PartSpec) {
        self.pages.0.insert(ticket, Waiting::new(spec, None));
        self.ask_pages();
    }

    /// Asks the keeper for the parts that are first in line: a few at once, and only for readers
    /// with room for them, so that no more of them than that is ever in memory.
    pub(in crate::server::engine) fn ask_pages(&mut self) {
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
            let asked = one.asked(ticket);
            if !self.cx.keeper.ask_range(&asked) {
                self.fail_page(ticket, "nobody can read it now: its keeper is gone");
            }
        }
        self.arm_pages();
    }

    /// Answers the requests whose part has come, and asks for the next ones.
    pub(in crate::server::engine) fn answer_pages(&mut self) {
        let ranges = self.cx.keeper.take_ranges();
        if ranges.is_empty() {
            return;
        }
        for (ticket, range) in ranges {
            self.answer_page(ticket, range);
        }
        self.ask_pages();
    }

    fn answer_page(&mut self, ticket: Ticket, range: Result<Range, i32>) {
        let Some(one) = self.pages.0.get_mut(&ticket) else { return };
        let came = match range.map(|range| one.gather.take(&one.spec, range)) {
            Ok(Next::Ask) => return one.due_ns = None,
            Ok(Next::Done(from, range)) => Ok((from, range)),
            Err(errno) => Err(errno),
        };
        let Some(Waiting { spec, page, .. }) = self.pages.0.remove(&ticket) else { return };
        let part = came.map(|(from, range)| Part::new(range, (from, spec.most)));
        let part = part.map_err(|errno| {
            if let Some(what) = stands_there(errno) {
                let name = &spec.name;
                return format!("{what} stands in the place of {name}, which was moved or deleted");
            }
            let why = errno_text(errno.abs());
            let streams =
                format!("one of its streams cannot be read ({why}); try it without stream");
            if spec.only.is_some() { streams } else { why }
        });
        let Some(page) = page else { return F::came(self, ticket, part) };
        let live = self.sessions.get(page.spec.id).map(|one| (&one.family, &one.core));
        let memory = F::kept(live, &page.spec, &self.cx.books).unwrap_or_default();
        let made = page_of_log(&page, part, &memory);
        let Some(pending) = self.cx.take_pending(ticket) else { return };
        match made {
            Ok(report) => {
                self.cx.clients.reply(&pending, &report.with(page.late_from, page.log));
            }
            Err(why) => self.cx.clients.refuse(&pending, &unreadable(&why)),
        }
    }

    fn fail_page(&mut self, ticket: Ticket, why: &str) {
        let Some(one) = self.pages.0.remove(&ticket) else { return };
        if one.page.is_none() {
            F::came(self, ticket, Err(why.to_owned()));
        } else if let Some(pending) = self.cx.take_pending(ticket) {
            self.cx.clients.refuse(&pending, &unreadable(why));
        }
        self.arm_pages();
    }

    /// Gives up on the parts, with `all`, or when one took too long: the others in line would wait
    /// for the same disk.
    pub(in crate::server::engine) fn give_up_pages(&mut self, all: bool, why: &str) {
        let late = |one: &Waiting| one.due_ns.is_some_and(|due_ns| due_ns <= self.cx.now_ns);
        if !all && !self.pages.0.values().any(late) {
            return;
        }
        self.cx.keeper.drop_held_ranges();
        let tickets: Vec<Ticket> = self.pages.0.keys().copied().collect();
        for ticket in tickets {
            self.fail_page(ticket, why);
        }
    }

    /// Gives up on the part that a cancelled request waits for; whether it waited for nothing else.
    pub(in crate::server::engine) fn cancel_page(&mut self, ticket: Ticket) -> bool {
        let sessions = self.cx.pending.get(&ticket).map(|one| one.sessions.as_slice());
        if sessions != Some(&[]) || !self.pages.0.contains_key(&ticket) {
            return false;
        }
        self.fail_page(ticket, "the request was cancelled");
        self.ask_pages();
        true
    }

    /// Nobody waits for a part any more.
    pub(in crate::server::engine) fn forget_page(&mut self, ticket: Ticket) {
        if self.pages.0.remove(&ticket).is_some() {
            self.arm_pages();
        }
    }

    fn arm_pages(&mut self) {
        let due = self.pages.0.values().filter_map(|one| one.due_ns).min();
        self.cx.deadlines.set(Owner::Pages, due);
    }
}

/// What the log writer has found in the place of a log that has ended (`LogDir::check`), which it
/// tells as a negative errno.
const fn stands_there(errno: i32) -> Option<&'static str> {
    match -errno {
        ELOOP => Some("a symbolic link"),
        EISDIR => Some("a directory"),
        ESPIPE => Some("a FIFO"),
        EEXIST => Some("something that is no regular file of yours"),
        ESTALE => Some("another file"),
        _ => None,
    }
}

/// The error of a log that could not be read.
pub fn unreadable(why: &str) -> RpcError {
    RpcError::failed(Reason::System, format!("the log: {why}"))
}
