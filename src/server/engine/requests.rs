//! From a line to a method and its answer, or to a wait that is answered later (protocol.md). What
//! a method takes and does is left to its handler.

use super::client::Client;
use super::clients::STDIN_CLIENT;
use super::closing::Cause;
use super::contract::{Answer, Call, Families, Method};
use super::ledger::kept::By;
use super::put_off::Deferred;
use super::{Engine, Owner, Pending};
use crate::limits::{
    KILL_GRACE_MS, MAX_PENDING_REQUESTS, NEVER_ESCALATES_MS, NS_PER_MS, REQUESTS_PER_TURN,
};
use crate::pure::process::killed::KilledBy;
use crate::pure::text::lines::Line;
use crate::server::session::ending::SIGTERM;
use crate::server::session::wait::{Cancel, CancelEnd, Wait, WaitKind};
use crate::server::session::{ClientId, SessionId, Ticket};
use crate::sys::signals::SIGINT;
use crate::sys::stdio::tell_people;
use crate::wire::{self, Reason, RequestId, RpcError};

/// Children started in one turn.
const SPAWNS_PER_TURN: usize = 4;

/// How long the answer of a cancelled request waits for the end of its command: longer than the
/// pause before SIGKILL.
const CANCEL_END_MS: u64 = KILL_GRACE_MS + 1_000;

/// The ticket of no request.
const UNANSWERED: Ticket = Ticket::MAX;

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
struct Origin {
    client: ClientId,
    /// The number of its line.
    line: u64,
    /// Since when sessions were looked at for the list that is asked again.
    looked_since_ns: Option<u64>,
    /// Whether it was kept, or was put off, and has its turn now.
    in_turn: bool,
}

impl Origin {
    /// A request that comes for the first time.
    fn new(client: ClientId, line: u64) -> Self {
        Self { client, line, looked_since_ns: None, in_turn: false }
    }
}

impl<F: Families> Engine<F> {
    /// Step: takes requests up, a bounded number; the rest stays in the splitter.
    pub(crate) fn read_requests(&mut self) {
        self.read_clients();
        self.hang_up_on_the_worst();
        self.launcher.spawns_left = SPAWNS_PER_TURN;
        self.step_list_looks();
        let (mut taken, mut waiting, mut next_turn) = (0, Vec::new(), None);
        while taken < REQUESTS_PER_TURN {
            taken += 1;
            if self.ask_list_again() {
                continue;
            }
            let served = self.cx.clients.served;
            let may = |one: &Client| one.has_line() && !waiting.contains(&one.id);
            let Some(client) = self.cx.clients.next_in_turn(may) else { break };
            if !self.take_up(client) {
                // Its request has to wait: the next turn begins with it, if it may go on by then.
                taken -= 1;
                waiting.push(client);
                next_turn.get_or_insert(served);
            }
            // Between two lines: nobody is hung up on in the middle of its own.
            self.hang_up_on_the_worst();
        }
        if let Some(served) = next_turn {
            self.cx.clients.served = served;
        }
        self.start_in_turn();
    }

    /// Reads what clients have sent, of each a bounded amount.
    fn read_clients(&mut self) {
        if self.cx.front.is_some() {
            self.feed_front();
        } else {
            let cx = &mut self.cx;
            // The silence begins with the first turn, not with the first request.
            let read = cx.clients.stdin.read_input(&mut cx.reading.buffer);
            if read > 0 || cx.counters.turns == 1 {
                cx.clients.stdin.took_while_stopped = false;
                let due_ns = cx.config.lease_ms.map(|ms| cx.now_ns + ms * NS_PER_MS);
                cx.deadlines.set(Owner::Silence, due_ns);
            }
        }
        for client in self.cx.clients.others_mut() {
            client.read_input(&mut self.cx.reading.buffer);
        }
    }

    /// Takes up the next line of a client. False: it waits for a turn that may start commands.
    fn take_up(&mut self, id: ClientId) -> bool {
        let Some(client) = self.cx.clients.get_mut(id) else { return true };
        // The splitter is lent meanwhile, so that a line need not be copied.
        let mut lines = client.lend_lines();
        let (number, mark) = (lines.next_number(), lines.mark());
        let mut is_taken = true;
        match lines.next_line() {
            None => {}
            Some(Line::Text(line)) => is_taken = self.take_line(id, line, number),
            Some(Line::TooLong) => {
                let max = self.cx.config.max_line_bytes;
                let message = format!("the line is longer than {max} bytes and was skipped");
                let error = RpcError::failed(Reason::LineTooLong, message);
                self.cx.clients.refuse_line(id, Some(&RequestId::null()), &error, number);
            }
        }
        if !is_taken {
            lines.go_back(mark);
        }
        if let Some(client) = self.cx.clients.get_mut(id) {
            client.give_lines_back(lines);
        }
        is_taken
    }

    /// Nothing came for the time of --lease. After the end of stdin nothing can. While stdin is
    /// not read, a client that has taken output meanwhile, or has sent what lies unread, is there.
    pub(crate) fn silence_is_over(&mut self) {
        let cx = &mut self.cx;
        let stdin = &mut cx.clients.stdin;
        let Some(ms) = cx.config.lease_ms.filter(|_| !stdin.input_ended) else { return };
        let took = std::mem::take(&mut stdin.took_while_stopped);
        let readable = stdin.input_ready && !stdin.is_held();
        let moves = if stdin.stopped { stdin.output_ready } else { readable };
        let again_ns = if stdin.has_sent() || took {
            ms * NS_PER_MS
        } else if moves {
            // execd itself stood still: what came meanwhile is read in this turn, what there is
            // room for is written.
            1
        } else {
            tell_people(&format!("nothing came on stdin for {ms} ms (--lease)"), 0);
            return self.close(Cause::Silence, None);
        };
        cx.deadlines.set(Owner::Silence, Some(cx.now_ns + again_ns));
    }

    /// Carries out one line and answers it, unless it waits or has no id. False: the line is to
    /// stay in the client's input.
    fn take_line(&mut self, client: ClientId, line: &[u8], number: u64) -> bool {
        let may_start = self.launcher.spawns_left > 0;
        let request = match wire::parse(line) {
            Ok(request) => request,
            Err(refused) => {
                let id = refused.id.as_ref();
                self.cx.clients.refuse_line(client, id, &refused.error, number);
                return true;
            }
        };
        let starts = |method: &Method<F>| method.starts && !self.is_start(method);
        if !may_start && self.method(&request.method).is_some_and(starts) {
            return false;
        }
        if self.holds_start(client, &request) {
            return false;
        }
        self.cx.counters.requests += 1;
        if let Some(id) = &request.id
            && self.cx.clients.get(client).is_some_and(|one| one.in_flight.contains_key(id))
        {
            let message = format!("id {} is still in flight", wire::quoted(id.as_json()));
            let error = RpcError::invalid_request(&message);
            self.cx.clients.refuse_line(client, Some(id), &error, number);
            return true;
        }
        self.answer(&request, Origin::new(client, number));
        true
    }

    /// Asks a list again whose sessions were looked at; whether there was one.
    fn ask_list_again(&mut self) -> bool {
        let Some((Deferred { ticket, client, method, params, line, .. }, since_ns)) =
            self.next_looked_list()
        else {
            return false;
        };
        let id = ticket.and_then(|ticket| self.cx.take_pending(ticket)).map(|pending| pending.id);
        let request = wire::Request { id, method: method.to_owned(), params: &params };
        let looked_since_ns = Some(since_ns);
        let from = Origin { looked_since_ns, in_turn: true, ..Origin::new(client, line) };
        self.answer(&request, from);
        true
    }

    /// Carries out a request that was kept, and answers it.
    pub(super) fn answer_kept(&mut self, kept: &Deferred, id: Option<RequestId>) {
        let Deferred { client, line, .. } = *kept;
        let request = wire::Request { id, method: kept.method.to_owned(), params: &kept.params };
        self.answer(&request, Origin { in_turn: true, ..Origin::new(client, line) });
    }

    /// Carries out a request and answers it, unless it waits or has no id.
    fn answer(&mut self, request: &wire::Request<'_>, from: Origin) {
        let Origin { client, line, .. } = from;
        match (self.carry_out(request, from), &request.id) {
            (Ok(Answer::Json(json)), Some(id)) => {
                let overtakes = self.method(&request.method).is_some_and(Method::overtakes);
                if let Some(client) = self.cx.clients.get_mut(client) {
                    client.reply_json(id, &json, overtakes);
                }
            }
            (Ok(_), _) => {}
            (Err(error), id) => self.cx.clients.refuse_line(client, id.as_ref(), &error, line),
        }
    }

    fn carry_out(&mut self, request: &wire::Request<'_>, from: Origin) -> Result<Answer, RpcError> {
        let method = self
            .method(&request.method)
            .ok_or_else(|| RpcError::unknown_method(&request.method, &self.method_names()))?;
        if self.cx.closing.is_some() && !method.while_closing {
            let message = "execd is shutting down and takes no new requests";
            return Err(RpcError::failed(Reason::ShuttingDown, message));
        }
        let Origin { client, line, looked_since_ns, in_turn } = from;
        let (id, params) = (request.id.clone(), request.params);
        let call = Call { client, id, params, line, in_turn, looked_since_ns };
        if !in_turn && self.is_start(method) {
            self.queue_start(&call, method);
            return Ok(Answer::Waits);
        }
        // A request without an id never waits.
        let waiting = self.cx.clients.get(client).map_or(0, Client::waiting);
        if method.waits && !in_turn && call.id.is_some() && waiting >= MAX_PENDING_REQUESTS {
            let message =
                format!("{waiting} requests are waiting already: await or cancel some first");
            return Err(RpcError::failed(Reason::TooManyRequests, message));
        }
        (method.call)(self, &call).map_err(|error| error.of_method(method.name))
    }

    fn method_names(&self) -> Vec<&'static str> {
        self.methods.iter().copied().flatten().map(|method| method.name).collect()
    }

    pub(super) fn method(&self, name: &str) -> Option<&'static Method<F>> {
        self.methods.iter().copied().flatten().find(|method| method.name == name)
    }

    /// A ticket for a request that is to wait for these sessions, or for none; `None` for one that
    /// is never answered.
    pub fn open_ticket(&mut self, call: &Call<'_>, sessions: &[SessionId]) -> Option<Ticket> {
        let id = call.id.clone()?;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.cx.clients.get_mut(call.client)?.in_flight.insert(id.clone(), ticket);
        let sessions = sessions.to_vec();
        let pending = Pending { client: call.client, id, sessions, line: call.line };
        self.cx.pending.insert(ticket, pending);
        Some(ticket)
    }

    /// Gives a session a wait.
    pub fn add_wait(&mut self, id: SessionId, mut wait: Wait) {
        if let Some(entry) = self.sessions.get_mut(id) {
            let core = &mut entry.core;
            core.stuck = false;
            if let Some(progress) = &mut wait.progress {
                // Output that no reply has told counts as new: the first progress shows it.
                progress.sent_total = core.told_bytes();
            }
            wait.began_total = core.output_bytes_total();
            wait.tells_ns =
                wait.ends_ns(self.cx.now_ns, self.cx.wall_ms).filter(|_| wait.tells_state);
            core.waits.push(wait);
            core.note_waiter(self.cx.now_ns);
            self.cx.touch(core);
        }
    }

    /// Opens a ticket for a request that is to wait for a session, and gives that session the wait
    /// that `make` makes of the ticket. A request that is never answered has no wait; the end of
    /// stdin lets its command run for as long as the wait would have lasted.
    pub fn wait_for(
        &mut self,
        call: &Call<'_>,
        id: SessionId,
        make: impl FnOnce(Ticket, u64) -> Wait,
    ) -> Answer {
        if let Some(ticket) = self.open_ticket(call, &[id]) {
            let wait = make(ticket, self.cx.now_ns);
            self.add_wait(id, wait);
        } else if call.id.is_none() && call.client == STDIN_CLIENT {
            let now_ns = self.cx.now_ns;
            let until_ns = make(UNANSWERED, now_ns).ends_ns(now_ns, self.cx.wall_ms);
            if let Some(entry) = self.sessions.get_mut(id) {
                let unheard_ns = &mut entry.core.unheard_until_ns;
                *unheard_ns = (*unheard_ns).max(until_ns);
            }
        }
        Answer::Waits
    }

    /// Cancels the wait of a client's request; whether there was one.
    pub fn cancel(&mut self, client: ClientId, own: &RequestId, how: &Cancel) -> bool {
        let in_flight = self.cx.clients.get(client).map(|client| &client.in_flight);
        let Some(ticket) = in_flight.and_then(|all| all.get(own)).copied() else { return false };
        let sessions = self.cx.pending.get(&ticket).map(|one| one.sessions.clone());
        if self.cancel_kept(ticket) {
            return true;
        }
        let mut found =
            self.cancel_events(ticket) || self.cancel_page(ticket) || self.cancel_list(ticket);
        for id in sessions.unwrap_or_default() {
            let Some(entry) = self.sessions.get_mut(id) else { continue };
            let mut end = None;
            for wait in entry.core.waits.iter_mut().filter(|wait| wait.ticket == ticket) {
                end = how.end.filter(|_| wait.kind == WaitKind::Start);
                wait.cancel = how.clone();
                wait.cancelled = end.is_none();
                if end.is_some() {
                    wait.due_ns = Some(self.cx.now_ns + CANCEL_END_MS * NS_PER_MS);
                }
            }
            if let Some(end) = end {
                let by = By { reason: KilledBy::Cancel, client: Some(client), request: Some(own) };
                let (signal, grace_ms) = match end {
                    CancelEnd::Interrupt => (SIGINT, NEVER_ESCALATES_MS),
                    CancelEnd::Kill => (SIGTERM, KILL_GRACE_MS),
                };
                self.cx.begin_ending(&mut entry.core, signal, grace_ms, by);
            }
            self.cx.touch(&mut entry.core);
            found = true;
        }
        found
    }

    /// How many requests wait.
    pub fn pending_count(&self) -> usize {
        self.cx.pending.len()
    }
}
