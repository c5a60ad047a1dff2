//! Requests in line (protocol.md, At most so many at once): those that would start one command more
//! than `--jobs` allows, and those of stdin for which there is no room among the waiting ones. Each
//! is carried out in its turn, as if it came then.

use std::collections::VecDeque;

use super::clients::STDIN_CLIENT;
use super::contract::{Call, Families, Method};
use super::ledger::kept::By;
use super::sessions::Entry;
use super::{Engine, Owner};
use crate::limits::{LINE_QUIET_MS, MAX_PENDING_REQUESTS, NS_PER_MS, SHUTDOWN_GRACE_MS};
use crate::pure::process::killed::KilledBy;
use crate::session::deferred::Deferred;
use crate::session::ending::SIGTERM;
use crate::session::{ClientId, Ticket};
use crate::sys::stdio::tell_people;
use crate::wire::{Reason, RequestId, RpcError};

/// The requests in line, the oldest first.
#[derive(Debug, Default)]
pub struct Line {
    requests: VecDeque<Deferred>,
    /// The last request that was taken up came from the line: the next one is a client's.
    had_its_turn: bool,
    /// Methods whose family had no room for one more command.
    full: Vec<Full>,
}

/// A method that could start no more commands.
#[derive(Debug)]
struct Full {
    method: &'static str,
    /// How many sessions went on then: it is asked again once that has changed.
    going_on: usize,
    /// What it says of that.
    error: RpcError,
}

/// The error of a request for which there is no room among those that wait.
pub(super) fn too_many(waiting: usize) -> RpcError {
    let message = format!("{waiting} requests are waiting already: await or cancel some first");
    RpcError::failed(Reason::TooManyRequests, message)
}

/// Whether a request may be kept until its turn: of stdin.
fn may_be_kept(call: &Call<'_>) -> bool {
    call.client == STDIN_CLIENT
}

impl<F: Families> Engine<F> {
    /// How many commands run. A run of pi counts also while pi is asked for its version first; the
    /// session that asks does not.
    fn running(&self) -> usize {
        let of_session = |one: &super::sessions::Entry<F>| {
            let lives = one.core.life.status().is_none() && one.family.family_name().is_some();
            usize::from(lives) + one.core.deferred.iter().filter(|request| request.starts).count()
        };
        self.sessions.iter().map(of_session).sum()
    }

    /// Whether one more command may be started now. So many at once as the table of sessions has
    /// no room for would be evicted from it.
    fn may_start(&self) -> bool {
        let config = &self.cx.config;
        let most = |jobs: usize| jobs.min(config.max_sessions).min(config.max_running);
        config.jobs.is_none_or(|jobs| self.running() < most(jobs))
    }

    /// Whether one more request of a client may wait.
    pub(super) fn has_room(&self, client: ClientId) -> bool {
        self.cx.clients.get(client).is_none_or(|one| one.waiting() < MAX_PENDING_REQUESTS)
    }

    /// Whether a request is to stand in line. One of stdin without room does so.
    pub(super) fn is_for_the_line(&self, call: &Call<'_>, method: &Method<F>) -> bool {
        let counts = method.starts && self.cx.config.jobs.is_some();
        if counts && !(self.line.requests.is_empty() && self.may_start()) {
            return true;
        }
        let waits = method.waits && call.id.is_some() && !self.has_room(call.client);
        // Those of a family that is full go in the order in which they came.
        let behind = || self.line.requests.iter().any(|one| one.method == method.name);
        may_be_kept(call) && (waits || (method.starts && behind()))
    }

    /// A family had no room for one more command: whether the request stands in line for that.
    /// `in_turn`: it had its turn, and is the first of its method again.
    pub(super) fn stands_for_a_place(
        &mut self,
        call: &Call<'_>,
        method: &Method<F>,
        in_turn: bool,
        error: &RpcError,
    ) -> bool {
        let is_full = error.is(Reason::TooManySessions) && method.starts && call.after.is_none();
        let is_piped = in_turn || self.cx.config.jobs.is_some() || self.cx.clients.stdin.sends_on();
        if !is_full || !may_be_kept(call) || !is_piped {
            return false;
        }
        let going_on = self.going_on();
        self.line.full.retain(|one| one.method != method.name);
        self.line.full.push(Full { method: method.name, going_on, error: error.clone() });
        self.stand_in_line(call, method);
        if in_turn && let Some(again) = self.line.requests.pop_back() {
            self.line.requests.push_front(again);
        }
        true
    }

    /// How many sessions have not finished, and how many are to come of requests put off.
    fn going_on(&self) -> usize {
        let put_off = self.sessions.iter().map(|one| one.core.deferred.len());
        self.sessions.running(|_| true) + put_off.sum::<usize>()
    }

    /// Puts a request into the line.
    pub(super) fn stand_in_line(&mut self, call: &Call<'_>, method: &Method<F>) {
        let request = self.keep_request(call, method);
        if let Some(client) = self.cx.clients.get_mut(call.client) {
            client.in_line += 1;
            client.in_line_bytes += call.params.len();
        }
        self.line.requests.push_back(request);
        self.await_more_of_stdin();
    }

    /// Requests without room are refused once stdin, which is open, has brought nothing for long.
    fn await_more_of_stdin(&mut self) {
        let due_ns = self.cx.now_ns + LINE_QUIET_MS * NS_PER_MS;
        self.cx.deadlines.set(Owner::Line, Some(due_ns));
    }

    /// Who in line has its turn. A client without room for its answers holds up nobody else.
    fn has_its_turn(&self) -> Option<usize> {
        let mut waiting = self.line.requests.iter().enumerate().peekable();
        let may_start = waiting.peek().is_some() && self.may_start();
        let going_on = if self.line.full.is_empty() { 0 } else { self.going_on() };
        let full = |method| {
            self.line.full.iter().any(|one| one.method == method && one.going_on == going_on)
        };
        waiting
            .take_while(|(_, one)| may_start || !one.starts)
            .filter(|(_, one)| !full(one.method))
            .find(|(_, one)| {
                let is_read = self.cx.clients.has_room(one.client);
                is_read && (one.ticket.is_none() || self.has_room(one.client))
            })
            .map(|(at, _)| at)
    }

    /// Whether somebody in line has its turn.
    pub(super) fn line_moves(&self) -> bool {
        self.has_its_turn().is_some()
    }

    /// Whether nothing but the readers of answers can make the line move.
    pub(super) fn line_stands(&self) -> bool {
        !self.line_moves() && self.running() == 0
    }

    /// Takes out of the line who has its turn. `others`: clients have lines to be taken up; these
    /// are taken up in between, so that what does not start a command passes.
    pub(super) fn next_in_line(&mut self, others: bool) -> Option<(Deferred, Option<RequestId>)> {
        let passes = others && self.line.had_its_turn;
        self.line.had_its_turn = false;
        let at = self.has_its_turn().filter(|_| !passes)?;
        self.line.had_its_turn = true;
        let next = self.line.requests.remove(at)?;
        let id = self.leaves_line(&next);
        Some((next, id))
    }

    /// A request has left the line: gives the id that it is to be answered by.
    fn leaves_line(&mut self, request: &Deferred) -> Option<RequestId> {
        if let Some(client) = self.cx.clients.get_mut(request.client) {
            client.in_line -= 1;
            client.in_line_bytes -= request.params.len();
        }
        // The next of its method is to ask for itself.
        self.line.full.retain(|one| one.method != request.method);
        self.release_request(request)
    }

    /// Takes requests out of the line, which are refused.
    fn refuse_in_line(&mut self, which: impl Fn(&Self, &Deferred) -> bool, error: &RpcError) {
        let all = std::mem::take(&mut self.line.requests);
        for request in all {
            if which(self, &request) {
                let id = self.leaves_line(&request);
                self.cx.clients.refuse_line(request.client, id.as_ref(), error, request.line);
            } else {
                self.line.requests.push_back(request);
            }
        }
    }

    /// Takes a cancelled request out of the line; whether it was there.
    pub(super) fn cancel_in_line(&mut self, ticket: Ticket) -> bool {
        let is_it = |one: &Deferred| one.ticket == Some(ticket);
        let found = self.line.requests.iter().any(is_it);
        if found {
            let message = "the request was cancelled while it stood in line: nothing was started";
            self.refuse_in_line(
                |_, one| is_it(one),
                &RpcError::failed(Reason::CancelledInLine, message),
            );
        }
        found
    }

    /// stdin has ended, and the line waits for commands that only input could bring on: their
    /// requests are answered, and they would be ended in the end. They are ended now.
    pub(super) fn make_way_for_the_line(&mut self) {
        let first = self.line.requests.front();
        if first.is_none_or(|one| !one.starts) || self.may_start() {
            return;
        }
        for Entry { core, .. } in self.sessions.iter_mut() {
            if !core.stuck || core.is_awaited() || core.life.finished() || core.ending.is_some() {
                continue;
            }
            let what = format!(
                "session {} waits for input that nobody can send any more, and was ended: others \
                 stand in line for its place",
                core.id,
            );
            tell_people(&what, 0);
            let by = By::from(KilledBy::ClientGone);
            self.cx.begin_ending(core, SIGTERM, SHUTDOWN_GRACE_MS, by);
        }
    }

    /// A client is gone: nothing that it has in line is carried out.
    pub(super) fn forget_in_line(&mut self, client: ClientId) {
        self.line.requests.retain(|one| one.client != client);
    }

    /// execd ends: what is in line is not carried out any more.
    pub(super) fn refuse_line_at_end(&mut self) {
        let message = "execd is ending: the request stood in line and was not carried out";
        self.refuse_in_line(|_, _| true, &RpcError::failed(Reason::ShuttingDown, message));
    }

    /// Nothing was put into the line for a while. Where stdin is open and has nothing more, its
    /// client is told what there is no room for: it may be waiting for that.
    pub(super) fn line_is_due(&mut self) {
        let stdin = &self.cx.clients.stdin;
        if stdin.input_ended || self.line.requests.is_empty() {
            return;
        }
        // What is not read yet may be the end of it.
        if stdin.is_held() || stdin.stopped || stdin.input_ready || stdin.lines.has_complete_line()
        {
            return self.await_more_of_stdin();
        }
        let waiting = stdin.waiting();
        let for_room = |engine: &Self, one: &Deferred| {
            let counts = one.starts && engine.cx.config.jobs.is_some();
            !counts && one.client == STDIN_CLIENT && !engine.has_room(one.client)
        };
        self.refuse_in_line(for_room, &too_many(waiting));
        if self.cx.config.jobs.is_some() {
            return;
        }
        for Full { method, error, .. } in std::mem::take(&mut self.line.full) {
            let is_one = |one: &Deferred| one.method == method && one.client == STDIN_CLIENT;
            self.refuse_in_line(|_, one| is_one(one), &error);
        }
    }
}
