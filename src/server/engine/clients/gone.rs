//! Clients that are gone, that hold too much memory, that make room for others, or that have room
//! again for what they watch.

use crate::server::engine::Engine;
use crate::server::engine::client::Client;
use crate::server::engine::contract::Families;
use crate::server::session::{ClientId, Session, Ticket};
use crate::wire::{Reason, RpcError};

impl<F: Families> Engine<F> {
    /// Hangs up on clients of the socket that hold too much memory.
    pub(in crate::server::engine) fn hang_up_on_the_worst(&mut self) {
        for id in self.cx.clients.hang_up_on_the_worst() {
            self.cx.debug(format_args!("client {id}: hung up on: it holds too much memory"));
        }
    }

    /// Makes room for one more client, where one has been idle for long and waits for nothing.
    pub(in crate::server::engine) fn make_room_for_client(&mut self) -> bool {
        let sessions = &self.sessions;
        let waits = |one: &Client| {
            let its = |of: &Session| of.wake == Some(one.id) || of.viewers.has(one.id);
            !one.in_flight.is_empty() || sessions.iter().any(|entry| its(&entry.core))
        };
        let cx = &mut self.cx;
        let Some(id) = cx.clients.idlest(cx.now_ns, waits) else { return false };
        if let Some(client) = cx.clients.get_mut(id) {
            let message = "as many clients are connected as may be, and you had been idle longest";
            client.hang_up(Some(&RpcError::failed(Reason::TooManyClients, message)));
        }
        cx.debug(format_args!("client {id}: hung up on: idle, and another came"));
        self.forget_client(id);
        true
    }

    /// Forgets a client that is gone: its waits and wakes, never a session.
    fn forget_client(&mut self, id: ClientId) {
        let Some(client) = self.cx.clients.others.remove(&id) else { return };
        self.cx.debug(format_args!("client {id}: gone"));
        for ticket in client.in_flight.into_values() {
            self.forget_request(ticket);
        }
        self.forget_kept(id);
        self.cx.clients.trim_news();
        for entry in self.sessions.iter_mut() {
            let core = &mut entry.core;
            if core.detach(id, self.cx.now_ns) {
                self.cx.touch(core);
            }
            core.wake = core.wake.filter(|armed_by| *armed_by != id);
        }
    }

    /// Takes a waiting request off the books: nobody is left to be answered.
    fn forget_request(&mut self, ticket: Ticket) {
        let Some(pending) = self.cx.pending.remove(&ticket) else { return };
        self.forget_page(ticket);
        self.forget_list(ticket);
        self.forget_shutdown(ticket);
        for id in pending.sessions {
            if let Some(entry) = self.sessions.get_mut(id) {
                entry.core.waits.retain(|wait| wait.ticket != ticket);
                self.cx.touch(&mut entry.core);
            }
        }
    }

    /// Step: forgets the clients that are gone, or that have ended their input and are answered.
    pub(in crate::server::engine) fn drop_clients(&mut self) {
        // Who has only ended its requests may still watch.
        let watches = |id| self.sessions.iter().any(|one| one.core.viewers.has(id));
        let over = self.cx.clients.others().filter(|one| one.is_over());
        let over: Vec<ClientId> =
            over.filter(|one| one.reader_gone || !watches(one.id)).map(|one| one.id).collect();
        for id in over {
            self.forget_client(id);
        }
    }

    /// Clients that lagged behind what they watch and have room now: their sessions are judged.
    pub(in crate::server::engine) fn wake_viewers(&mut self) {
        if !self.cx.clients.iter().any(|client| client.lags) {
            return;
        }
        let lagging = self.cx.clients.iter_mut().filter(|one| one.lags && one.may_resume_view());
        let resumed: Vec<ClientId> = lagging
            .map(|client| {
                client.lags = false;
                client.id
            })
            .collect();
        for entry in self.sessions.iter_mut() {
            if resumed.iter().any(|id| entry.core.viewers.has(*id)) {
                self.cx.touch(&mut entry.core);
            }
        }
    }
}
