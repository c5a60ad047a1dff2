//! Requests that are kept until they can be carried out, each as if it came then. Here are secrets
//! that their terminal would show (protocol.md, Secrets); `jobs` has the requests in line.

use super::contract::{Call, Families, Method};
use super::{Engine, Owner};
use crate::limits::{NS_PER_MS, SECRET_ECHO_LOOK_MS, SECRET_ECHO_WAIT_MS, SECRETS_WAITING_MAX};
use crate::session::deferred::Deferred;
use crate::session::input::ShownBy;
use crate::session::{ClientId, SessionId, Ticket};
use crate::wire::{Reason, RequestId, RpcError};

/// A request with a secret that waits until the terminal of its session does not show it.
#[derive(Debug)]
pub struct WaitingSecret {
    request: Deferred,
    session: SessionId,
    until_ns: u64,
}

/// The error of a request that was cancelled before it was carried out.
pub(super) fn cancelled_before(what: &str) -> RpcError {
    let message = format!("the request was cancelled before its turn: nothing was {what}");
    RpcError::failed(Reason::CancelledInLine, message)
}

/// The error of a request that the end of execd comes before.
pub(super) fn ended_before() -> RpcError {
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
    pub(super) fn keep_request(&mut self, call: &Call<'_>, method: &Method<F>) -> Deferred {
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
            starts: method.starts,
        }
    }

    /// A request is kept no longer: gives the id that it is to be answered by.
    pub(super) fn release_request(&mut self, kept: &Deferred) -> Option<RequestId> {
        if let Some(client) = self.cx.clients.get_mut(kept.client) {
            client.kept -= 1;
            client.kept_with_id -= usize::from(kept.ticket.is_some());
        }
        kept.ticket.and_then(|ticket| self.cx.take_pending(ticket)).map(|pending| pending.id)
    }

    /// Refuses a request that was kept.
    pub(super) fn refuse_kept(&mut self, kept: &Deferred, error: &RpcError) {
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
        if call.in_turn || self.secrets.len() >= SECRETS_WAITING_MAX {
            return Err(echo_is_on(id));
        }
        let until_ns = self.cx.now_ns + SECRET_ECHO_WAIT_MS * NS_PER_MS;
        let request = self.keep_request(call, method);
        self.secrets.push(WaitingSecret { request, session: id, until_ns });
        self.look_at_echo_again();
        Ok(true)
    }

    fn look_at_echo_again(&mut self) {
        let next_ns = self.cx.now_ns + SECRET_ECHO_LOOK_MS * NS_PER_MS;
        self.cx.deadlines.set(Owner::Secrets, (!self.secrets.is_empty()).then_some(next_ns));
    }

    /// Carries out the requests whose terminal shows nothing any more, or has done so for too long.
    pub(super) fn look_at_secrets(&mut self) {
        for secret in std::mem::take(&mut self.secrets) {
            let entry = self.sessions.get(secret.session);
            let is_shown = entry.is_some_and(|one| one.core.input.shown_by() == ShownBy::Terminal);
            if is_shown && self.cx.now_ns < secret.until_ns {
                self.secrets.push(secret);
            } else {
                let id = self.release_request(&secret.request);
                self.answer_kept(&secret.request, id);
            }
        }
        self.look_at_echo_again();
    }

    /// Takes back a secret whose request is cancelled; whether it was kept.
    pub(super) fn cancel_secret(&mut self, ticket: Ticket) -> bool {
        let is_it = |one: &WaitingSecret| one.request.ticket == Some(ticket);
        let Some(at) = self.secrets.iter().position(is_it) else { return false };
        let secret = self.secrets.remove(at);
        self.refuse_kept(&secret.request, &cancelled_before("written"));
        true
    }

    /// A client is gone: none of its secrets is written.
    pub(super) fn forget_secrets(&mut self, client: ClientId) {
        self.secrets.retain(|one| one.request.client != client);
    }

    /// execd ends: no secret is written any more.
    pub(super) fn refuse_secrets_at_end(&mut self) {
        for secret in std::mem::take(&mut self.secrets) {
            self.refuse_kept(&secret.request, &ended_before());
        }
    }
}
