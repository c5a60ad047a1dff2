//! From a line to a method and its answer (protocol.md).

use super::{Daemon, Owner, Pending};
use crate::limits::{NS_PER_S, REQUESTS_PER_TURN, SPAWNS_PER_TURN};
use crate::methods::{self, Answer, Call};
use crate::pure::lines::{Line, LineSplitter};
use crate::session::wait::Wait;
use crate::session::{SessionId, Ticket};
use crate::wire::{self, Reason, RequestId, RpcError};

impl Daemon {
    /// Step: takes requests up, a bounded number; the rest stays in the splitter.
    pub(super) fn read_requests(&mut self) {
        if self.front.is_some() {
            return self.feed_front();
        }
        // The silence begins with the first turn, not with the first request.
        let heard = self.client.read_input(&mut self.read_buffer) > 0 || self.counters.turns == 1;
        if heard && let Some(silence_s) = self.config.exit_after_silence_s {
            self.deadlines.set(Owner::Silence, Some(self.now_ns + silence_s * NS_PER_S));
        }
        self.spawns_left = SPAWNS_PER_TURN;
        // The splitter is out of its place meanwhile, so that a line need not be copied.
        let mut lines = std::mem::replace(&mut self.client.lines, LineSplitter::new(0));
        for _ in 0..REQUESTS_PER_TURN {
            if self.client.stopped || self.spawns_left == 0 {
                break;
            }
            match lines.next_line() {
                None => break,
                Some(Line::Text(line)) => self.take_line(line),
                Some(Line::TooLong) => {
                    let max = self.config.max_line_bytes;
                    let message = format!("the line is longer than {max} bytes and was skipped");
                    let error = RpcError::failed(Reason::LineTooLong, message);
                    self.client.refuse(&RequestId::null(), &error);
                }
            }
        }
        self.client.lines = lines;
    }

    /// Nothing came for --exit-after-silence. After the end of stdin nothing can, and while we
    /// don't read we would not know.
    pub(super) fn silence_is_over(&mut self) {
        if self.client.input_ended {
            return;
        }
        match self.config.exit_after_silence_s.filter(|_| self.client.stopped) {
            Some(s) => self.deadlines.set(Owner::Silence, Some(self.now_ns + s * NS_PER_S)),
            None => self.close(super::closing::Cause::Silence, None),
        }
    }

    /// Carries out one line and answers it, unless it waits or has no id.
    pub(super) fn take_line(&mut self, line: &[u8]) {
        let request = match wire::parse(line) {
            Ok(request) => request,
            Err(refused) => {
                if let Some(id) = refused.id {
                    self.client.refuse(&id, &refused.error);
                }
                return;
            }
        };
        self.counters.requests += 1;
        if let Some(id) = &request.id
            && self.client.in_flight.contains_key(id)
        {
            let message = format!("id {} is still in flight", wire::quoted(id.as_json()));
            let error = RpcError::invalid_request(&message);
            return self.client.refuse(id, &error);
        }
        let outcome = self.carry_out(&request);
        let Some(id) = &request.id else { return };
        match outcome {
            Ok(Answer::Json(json)) => self.client.reply_at_once(id, &json),
            Ok(Answer::Waits) => {}
            Err(error) => self.client.refuse(id, &error),
        }
    }

    fn carry_out(&mut self, request: &wire::Request<'_>) -> Result<Answer, RpcError> {
        let method = methods::find(&request.method)
            .ok_or_else(|| RpcError::unknown_method(&request.method, &methods::names()))?;
        if self.closing.is_some() && !method.while_closing {
            let message = "execd is shutting down and takes no new requests";
            return Err(RpcError::failed(Reason::ShuttingDown, message));
        }
        // What has no id never waits.
        if method.waits && request.id.is_some() && !self.client.may_wait() {
            let waiting = self.client.in_flight.len();
            let message =
                format!("{waiting} requests are waiting already: await or cancel some first");
            return Err(RpcError::failed(Reason::TooManyRequests, message));
        }
        let call = Call { client: self.client.id, id: request.id.clone(), params: request.params };
        (method.call)(self, &call)
    }

    /// A ticket for a request that is to wait; `None` for one that is never answered.
    pub fn open_ticket(&mut self, call: &Call<'_>, session: Option<SessionId>) -> Option<Ticket> {
        let id = call.id.clone()?;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.client.in_flight.insert(id.clone(), ticket);
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
    pub fn cancel(&mut self, id: &RequestId) -> bool {
        let Some(ticket) = self.client.in_flight.get(id).copied() else { return false };
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

    /// One more child is started in this turn.
    pub fn count_spawn(&mut self) {
        self.spawns_left = self.spawns_left.saturating_sub(1);
    }
}
