//! From a line to a method and its answer (protocol.md).

use super::client::Client;
use super::{Daemon, Owner, Pending};
use crate::engine::contract::{Answer, Call, Method};
use crate::limits::{
    MAX_PENDING_REQUESTS, NS_PER_MS, NS_PER_S, REQUESTS_PER_TURN, SPAWNS_PER_TURN, SPAWNS_TURN_MS,
};
use crate::pure::text::lines::Line;
use crate::session::wait::Wait;
use crate::session::{ClientId, SessionId, Ticket};
use crate::sys::clock;
use crate::wire::{self, Reason, RequestId, RpcError};

impl Daemon {
    /// Step: takes requests up, a bounded number; the rest stays in the splitter.
    pub(crate) fn read_requests(&mut self) {
        self.read_clients();
        self.hang_up_on_the_worst();
        self.spawns_left = SPAWNS_PER_TURN;
        for _ in 0..REQUESTS_PER_TURN {
            if self.spawns_left == 0 {
                break;
            }
            let has_line = |one: &Client| !one.stopped && one.lines.has_complete_line();
            let Some(client) = self.clients.next_in_turn(has_line) else { break };
            self.take_up(client);
            // Between two lines: nobody is hung up on in the middle of its own.
            self.hang_up_on_the_worst();
        }
    }

    /// Reads what clients have sent, of each a bounded amount.
    fn read_clients(&mut self) {
        if self.front.is_some() {
            self.feed_front();
        } else {
            // The silence begins with the first turn, not with the first request.
            let read = self.clients.stdin.read_input(&mut self.read_buffer);
            if read > 0 || self.counters.turns == 1 {
                let silence = self.config.exit_after_silence_s;
                let due_ns = silence.map(|silence_s| self.now_ns + silence_s * NS_PER_S);
                self.deadlines.set(Owner::Silence, due_ns);
            }
        }
        for client in self.clients.others_mut() {
            client.read_input(&mut self.read_buffer);
        }
    }

    /// Takes up the next line of a client.
    fn take_up(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        // The splitter is out of its place meanwhile, so that a line need not be copied.
        let mut lines = client.lend_lines();
        match lines.next_line() {
            None => {}
            Some(Line::Text(line)) => self.take_line(id, line),
            Some(Line::TooLong) => {
                let max = self.config.max_line_bytes;
                let message = format!("the line is longer than {max} bytes and was skipped");
                let error = RpcError::failed(Reason::LineTooLong, message);
                self.clients.refuse_to(id, &RequestId::null(), &error);
            }
        }
        if let Some(client) = self.clients.get_mut(id) {
            client.give_lines_back(lines);
        }
    }

    /// Nothing came for --exit-after-silence. After the end of stdin nothing can, and while we
    /// don't read we would not know.
    pub(crate) fn silence_is_over(&mut self) {
        if self.clients.stdin.input_ended {
            return;
        }
        match self.config.exit_after_silence_s.filter(|_| self.clients.stdin.stopped) {
            Some(s) => self.deadlines.set(Owner::Silence, Some(self.now_ns + s * NS_PER_S)),
            None => self.close(super::closing::Cause::Silence, None),
        }
    }

    /// Carries out one line and answers it, unless it waits or has no id.
    fn take_line(&mut self, client: ClientId, line: &[u8]) {
        let request = match wire::parse(line) {
            Ok(request) => request,
            Err(refused) => {
                if let Some(id) = refused.id {
                    self.clients.refuse_to(client, &id, &refused.error);
                }
                return;
            }
        };
        self.counters.requests += 1;
        if let Some(id) = &request.id
            && self.clients.get(client).is_some_and(|one| one.in_flight.contains_key(id))
        {
            let message = format!("id {} is still in flight", wire::quoted(id.as_json()));
            let error = RpcError::invalid_request(&message);
            return self.clients.refuse_to(client, id, &error);
        }
        let outcome = self.carry_out(client, &request);
        let Some(id) = &request.id else { return };
        match outcome {
            Ok(Answer::Json(json)) => {
                let overtakes = self.method(&request.method).is_some_and(Method::overtakes);
                if let Some(client) = self.clients.get_mut(client) {
                    client.reply_json(id, &json, overtakes);
                }
            }
            Ok(Answer::Waits) => {}
            Err(error) => self.clients.refuse_to(client, id, &error),
        }
    }

    fn carry_out(
        &mut self,
        client: ClientId,
        request: &wire::Request<'_>,
    ) -> Result<Answer, RpcError> {
        let method = self.method(&request.method).ok_or_else(|| {
            RpcError::unknown_method(
                &request.method,
                &self.methods.iter().map(|method| method.name).collect::<Vec<_>>(),
            )
        })?;
        if self.closing.is_some() && !method.while_closing {
            let message = "execd is shutting down and takes no new requests";
            return Err(RpcError::failed(Reason::ShuttingDown, message));
        }
        // What has no id never waits.
        let waiting = self.clients.get(client).map_or(0, |one| one.in_flight.len());
        if method.waits && request.id.is_some() && waiting >= MAX_PENDING_REQUESTS {
            let message =
                format!("{waiting} requests are waiting already: await or cancel some first");
            return Err(RpcError::failed(Reason::TooManyRequests, message));
        }
        let call = Call { client, id: request.id.clone(), params: request.params };
        (method.call)(self, &call)
    }

    fn method(&self, name: &str) -> Option<&'static Method> {
        self.methods.iter().find(|method| method.name == name)
    }

    /// A ticket for a request that is to wait; `None` for one that is never answered.
    pub fn open_ticket(&mut self, call: &Call<'_>, session: Option<SessionId>) -> Option<Ticket> {
        let id = call.id.clone()?;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.clients.get_mut(call.client)?.in_flight.insert(id.clone(), ticket);
        self.pending.insert(ticket, Pending { client: call.client, id, session });
        Some(ticket)
    }

    /// Puts a wait to a session.
    pub fn add_wait(&mut self, id: SessionId, mut wait: Wait) {
        if let Some(session) = self.sessions.get_mut(&id) {
            if let Some(progress) = &mut wait.progress {
                // Output that no reply has told counts as new: the first progress shows it.
                progress.sent_total = session.told_bytes();
            }
            session.waits.push(wait);
            self.touch(id);
        }
    }

    /// Cancels the wait of a client's request; whether there was one.
    pub fn cancel(&mut self, client: ClientId, id: &RequestId) -> bool {
        let in_flight = self.clients.get(client).map(|client| &client.in_flight);
        let Some(ticket) = in_flight.and_then(|all| all.get(id)).copied() else { return false };
        let Some(session_id) = self.pending.get(&ticket).and_then(|one| one.session) else {
            return false;
        };
        let Some(session) = self.sessions.get_mut(&session_id) else { return false };
        for wait in session.waits.iter_mut().filter(|wait| wait.ticket == ticket) {
            wait.cancelled = true;
        }
        self.touch(session_id);
        true
    }

    /// How many requests wait.
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// One more child is started in this turn. On a busy machine a start may take long, for it
    /// lasts until the child runs its program: then the next one is begun in the next turn.
    pub fn count_spawn(&mut self) {
        let spent_ns = clock::now_ns().saturating_sub(self.now_ns);
        let late = spent_ns > SPAWNS_TURN_MS * NS_PER_MS;
        self.spawns_left = if late { 0 } else { self.spawns_left.saturating_sub(1) };
    }
}
