//! Requests that are kept until they can be carried out, each as if it came then: with `--jobs`
//! those that start a command (protocol.md, At most so many at once), and secrets that their
//! terminal would show (protocol.md, Secrets).

use std::collections::VecDeque;

use super::contract::{Call, Families, Method};
use super::ledger::kept::By;
use super::sessions::Entry;
use super::{Engine, Owner};
use crate::limits::{NS_PER_MS, REQUESTS_PER_TURN, SHUTDOWN_GRACE_MS, START_QUEUE_REQUESTS};
use crate::pure::process::killed::KilledBy;
use crate::server::session::ending::SIGTERM;
use crate::server::session::input::ShownBy;
use crate::server::session::{ClientId, SessionId, Ticket};
use crate::sys::stdio::tell_people;
use crate::wire::{self, Reason, RequestId, RpcError};

/// Secrets that wait so at the same time; further ones are refused at once.
const SECRETS_WAITING_MAX: usize = 64;

/// How often the terminal is looked at meanwhile.
const SECRET_ECHO_LOOK_MS: u64 = 20;

/// How long a secret waits for its terminal to show no input before it is refused.
const SECRET_ECHO_WAIT_MS: u64 = 2_000;

/// Bytes of their params; a longer request waits there alone.
const START_QUEUE_BYTES: usize = 8 * 1024 * 1024;

/// A request that was put off.
#[derive(Clone, Debug)]
pub struct Deferred {
    /// The ticket of the request; absent for a request that is never answered.
    pub ticket: Option<Ticket>,
    /// The client that asks.
    pub client: ClientId,
    /// The name of the request's method.
    pub method: &'static str,
    /// The request's params as they came.
    pub params: String,
    /// The number of the request's line.
    pub line: u64,
}

/// The requests that are kept.
#[derive(Debug, Default)]
pub struct KeptRequests {
    /// Those that start a command, the oldest first.
    starts: VecDeque<Deferred>,
    /// Bytes of their params.
    start_bytes: usize,
    /// Clients with one more of these, and how many bytes it has, the first one first: they are not
    /// read until it fits.
    held: VecDeque<(ClientId, usize)>,
    secrets: Vec<WaitingSecret>,
}

impl KeptRequests {
    fn has_room_for(&self, bytes: usize) -> bool {
        let fits = self.start_bytes + bytes <= START_QUEUE_BYTES;
        self.starts.is_empty() || (self.starts.len() < START_QUEUE_REQUESTS && fits)
    }
}

/// A request with a secret that waits until the terminal of its session does not show it.
#[derive(Debug)]
struct WaitingSecret {
    request: Deferred,
    session: SessionId,
    until_ns: u64,
}

/// The error of a request that was cancelled before it was carried out.
fn cancelled_before(what: &str) -> RpcError {
    let message = format!("the request was cancelled before its turn: nothing was {what}");
    RpcError::failed(Reason::CancelledInLine, message)
}

/// The error of a request that the end of execd comes before.
fn ended_before() -> RpcError {
    let message = "execd is ending: the request waited for its turn and was not carried out";
    RpcError::failed(Reason::ShuttingDown, message)
}

fn echo_is_on(id: SessionId) -> RpcError {
    let message = format!(
        "the terminal of session {id} shows what is typed, and went on doing so for \
         {SECRET_ECHO_WAIT_MS} ms: the secret was not written; wait until the program asks for it \
         ({{\"until\": {{\"input\": \"password\"}}}}), or write it without secret"
    );
    RpcError::failed(Reason::EchoIsOn, message)
}

impl<F: Families> Engine<F> {
    /// Keeps a request until its turn.
    fn keep_request(&mut self, call: &Call<'_>, method: &Method<F>) -> Deferred {
        let ticket = self.open_ticket(call, &[]);
        if let Some(client) = self.cx.clients.get_mut(call.client) {
            client.kept += 1;
            client.kept_with_id += usize::from(ticket.is_some());
        }
        Deferred {
            ticket,
            client: call.client,
            method: method.name,
            params: call.params.to_owned(),
            line: call.line,
        }
    }

    /// A request is kept no longer: gives the id that it is to be answered by.
    fn release_request(&mut self, kept: &Deferred) -> Option<RequestId> {
        if let Some(client) = self.cx.clients.get_mut(kept.client) {
            client.kept -= 1;
            client.kept_with_id -= usize::from(kept.ticket.is_some());
        }
        kept.ticket.and_then(|ticket| self.cx.take_pending(ticket)).map(|pending| pending.id)
    }

    /// Refuses a request that was kept.
    fn refuse_kept(&mut self, kept: &Deferred, error: &RpcError) {
        let id = self.release_request(kept);
        self.cx.clients.refuse_line(kept.client, id.as_ref(), error, kept.line);
    }

    /// Keeps a request with a secret while the terminal of its session shows what is typed; whether
    /// it is kept. Errors: it was kept, and the terminal still does.
    pub fn keep_secret(
        &mut self,
        call: &Call<'_>,
        method: &str,
        id: SessionId,
    ) -> Result<bool, RpcError> {
        let entry = self.sessions.get(id);
        let is_shown = entry.is_some_and(|one| one.core.input.shown_by() == ShownBy::Terminal);
        let Some(method) = self.method(method).filter(|_| is_shown) else { return Ok(false) };
        if call.in_turn || self.kept.secrets.len() >= SECRETS_WAITING_MAX {
            return Err(echo_is_on(id));
        }
        let until_ns = self.cx.now_ns + SECRET_ECHO_WAIT_MS * NS_PER_MS;
        let request = self.keep_request(call, method);
        self.kept.secrets.push(WaitingSecret { request, session: id, until_ns });
        self.look_at_echo_again();
        Ok(true)
    }

    fn look_at_echo_again(&mut self) {
        let next_ns = self.cx.now_ns + SECRET_ECHO_LOOK_MS * NS_PER_MS;
        self.cx.deadlines.set(Owner::Secrets, (!self.kept.secrets.is_empty()).then_some(next_ns));
    }

    /// Carries out the requests whose terminal shows nothing any more, or has done so for too long.
    pub(super) fn look_at_secrets(&mut self) {
        for secret in std::mem::take(&mut self.kept.secrets) {
            let entry = self.sessions.get(secret.session);
            let is_shown = entry.is_some_and(|one| one.core.input.shown_by() == ShownBy::Terminal);
            if is_shown && self.cx.now_ns < secret.until_ns {
                self.kept.secrets.push(secret);
            } else {
                let id = self.release_request(&secret.request);
                self.answer_kept(&secret.request, id);
            }
        }
        self.look_at_echo_again();
    }

    /// How many commands run; sessions of which nobody is to know do not count.
    fn running(&self) -> usize {
        let runs = |one: &&Entry<F>| {
            one.core.life.status().is_none() && one.family.family_name().is_some()
        };
        self.sessions.iter().filter(runs).count()
    }

    /// Whether one more command may be started now. So many at once as the table of sessions has
    /// no room for would be evicted from it.
    fn may_start(&self) -> bool {
        let config = &self.cx.config;
        let most = |jobs: usize| jobs.min(config.max_sessions).min(config.max_running);
        config.jobs.is_none_or(|jobs| self.running() < most(jobs))
    }

    /// Whether a request waits for its turn to start a command.
    pub(super) fn is_start(&self, method: &Method<F>) -> bool {
        method.starts && self.cx.config.jobs.is_some()
    }

    /// Whether a client's next request has to stay in its input: it starts a command, and does not
    /// fit into the queue, or others wait for that before it. The client is not read until it does.
    pub(super) fn holds_start(&mut self, client: ClientId, request: &wire::Request<'_>) -> bool {
        let bytes = request.params.len();
        let starts = self.method(&request.method).is_some_and(|method| self.is_start(method));
        if !starts || self.cx.closing.is_some() {
            return false;
        }
        let held = &self.kept.held;
        let place = held.iter().position(|(one, _)| *one == client);
        // One that does not read its answers is not read either, and holds up nobody else.
        let mut earlier = held.iter().take(place.unwrap_or(held.len()));
        let comes_later = earlier.any(|(one, _)| self.cx.clients.has_room(*one));
        if !comes_later && self.kept.has_room_for(bytes) {
            if let Some(place) = place {
                self.kept.held.remove(place);
                self.read_held();
            }
            return false;
        }
        if place.is_none() {
            self.kept.held.push_back((client, bytes));
        }
        if let Some(client) = self.cx.clients.get_mut(client) {
            client.held = true;
        }
        true
    }

    /// Reads clients again whose next request fits into the queue now, the first ones first. Each
    /// keeps its place until its request is in the queue.
    fn read_held(&mut self) {
        let (mut count, mut bytes) = (self.kept.starts.len(), self.kept.start_bytes);
        for (client, more) in &self.kept.held {
            if count > 0 && (count >= START_QUEUE_REQUESTS || bytes + more > START_QUEUE_BYTES) {
                break;
            }
            if self.cx.clients.has_room(*client) {
                (count, bytes) = (count + 1, bytes + more);
            }
            if let Some(client) = self.cx.clients.get_mut(*client) {
                client.held = false;
            }
        }
    }

    /// Puts a request into the queue, which has room for it.
    pub(super) fn queue_start(&mut self, call: &Call<'_>, method: &Method<F>) {
        let request = self.keep_request(call, method);
        self.kept.start_bytes += request.params.len();
        self.kept.starts.push_back(request);
    }

    /// The place of the request whose turn it is. A client without room for its answers holds up
    /// nobody else.
    fn next_start(&self) -> Option<usize> {
        let starts = &self.kept.starts;
        let may_start = !starts.is_empty() && self.may_start();
        let next = || starts.iter().position(|one| self.cx.clients.has_room(one.client));
        may_start.then(next).flatten()
    }

    /// Whether a request has its turn to start a command.
    pub(super) fn may_start_next(&self) -> bool {
        self.next_start().is_some()
    }

    /// Whether nothing but the readers of answers can bring on the next start.
    pub(super) fn starts_stand_still(&self) -> bool {
        !self.may_start_next() && self.running() == 0
    }

    /// Carries out the requests whose turn it is, as many as may start in a turn.
    pub(super) fn start_in_turn(&mut self) {
        if self.kept.starts.is_empty() {
            // No start comes that would let the next ones in.
            self.read_held();
        }
        for _ in 0..REQUESTS_PER_TURN {
            if self.launcher.spawns_left == 0 {
                return;
            }
            let Some(next) = self.next_start().and_then(|at| self.kept.starts.remove(at)) else {
                return;
            };
            self.kept.start_bytes -= next.params.len();
            let id = self.release_request(&next);
            self.answer_kept(&next, id);
            self.read_held();
        }
    }

    /// Refuses a kept request that is cancelled; whether it was kept.
    pub(super) fn cancel_kept(&mut self, ticket: Ticket) -> bool {
        let is_it = |one: &Deferred| one.ticket == Some(ticket);
        let secret = self.kept.secrets.iter().position(|one| is_it(&one.request));
        if let Some(at) = secret {
            let secret = self.kept.secrets.remove(at);
            self.refuse_kept(&secret.request, &cancelled_before("written"));
        }
        let start = self.kept.starts.iter().position(is_it);
        if let Some(start) = start.and_then(|at| self.kept.starts.remove(at)) {
            self.kept.start_bytes -= start.params.len();
            self.refuse_kept(&start, &cancelled_before("started"));
            self.read_held();
        }
        secret.is_some() || start.is_some()
    }

    /// A client is gone: nothing that is kept for it is carried out.
    pub(super) fn forget_kept(&mut self, client: ClientId) {
        let kept = &mut self.kept;
        kept.secrets.retain(|one| one.request.client != client);
        kept.held.retain(|(held, _)| *held != client);
        kept.starts.retain(|one| one.client != client);
        kept.start_bytes = kept.starts.iter().map(|one| one.params.len()).sum();
        self.read_held();
    }

    /// execd ends: nothing that is kept is carried out any more.
    pub(super) fn refuse_kept_at_end(&mut self) {
        let secrets = std::mem::take(&mut self.kept.secrets).into_iter().map(|one| one.request);
        let starts = std::mem::take(&mut self.kept.starts);
        self.kept.start_bytes = 0;
        for request in secrets.chain(starts) {
            self.refuse_kept(&request, &ended_before());
        }
        for (client, _) in std::mem::take(&mut self.kept.held) {
            if let Some(client) = self.cx.clients.get_mut(client) {
                client.held = false;
            }
        }
    }

    /// stdin has ended, and the queue waits for commands that only input could bring on: their
    /// requests are answered, and they would be ended in the end. They are ended now.
    pub(super) fn make_way_for_starts(&mut self) {
        if self.kept.starts.is_empty() || self.may_start() {
            return;
        }
        for Entry { core, .. } in self.sessions.iter_mut() {
            if !core.stuck || core.is_awaited() || core.life.finished() || core.ending.is_some() {
                continue;
            }
            let what = format!(
                "session {} waits for input that nobody can send any more, and was ended: others \
                 wait for its place",
                core.id,
            );
            tell_people(&what, 0);
            let by = By::from(KilledBy::ClientGone);
            self.cx.begin_ending(core, SIGTERM, SHUTDOWN_GRACE_MS, by);
        }
    }
}
