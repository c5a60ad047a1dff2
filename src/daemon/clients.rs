//! All connections: the one on stdin and stdout, which is always there and whose end is execd's,
//! and those that came over the socket.

use std::collections::BTreeMap;

use serde::Serialize;

use super::client::Client;
use super::{Daemon, Pending};
use crate::session::{ClientId, Ticket};
use crate::wire::{RequestId, RpcError};

/// The client on stdin and stdout.
pub const STDIN_CLIENT: ClientId = 0;

/// Every client, by its number. Numbers are never used again.
#[derive(Debug)]
pub struct Clients {
    /// The client on stdin and stdout.
    pub stdin: Client,
    others: BTreeMap<ClientId, Client>,
    /// Whose request was taken up last: the next round begins behind it.
    served: ClientId,
    /// The number of the next one.
    next_id: ClientId,
}

impl Clients {
    /// Only the client on stdin and stdout.
    pub fn new(stdin: Client) -> Self {
        Self { stdin, others: BTreeMap::new(), served: STDIN_CLIENT, next_id: STDIN_CLIENT + 1 }
    }

    /// The client of this number, while it is connected.
    pub fn get(&self, id: ClientId) -> Option<&Client> {
        if id == STDIN_CLIENT { Some(&self.stdin) } else { self.others.get(&id) }
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        if id == STDIN_CLIENT { Some(&mut self.stdin) } else { self.others.get_mut(&id) }
    }

    /// All of them, that on stdin first.
    pub fn iter(&self) -> impl Iterator<Item = &Client> {
        std::iter::once(&self.stdin).chain(self.others.values())
    }

    /// The same, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Client> {
        std::iter::once(&mut self.stdin).chain(self.others.values_mut())
    }

    /// Those that came over the socket.
    pub fn others(&self) -> impl Iterator<Item = &Client> {
        self.others.values()
    }

    /// The same, to change them.
    pub(super) fn others_mut(&mut self) -> impl Iterator<Item = &mut Client> {
        self.others.values_mut()
    }

    /// How many came over the socket.
    pub fn connected(&self) -> usize {
        self.others.len()
    }

    /// A number for one more.
    pub(super) fn next_id(&mut self) -> ClientId {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Takes one in.
    pub(super) fn insert(&mut self, client: Client) {
        self.others.insert(client.id, client);
    }

    /// The one with requests to take up whose turn it is; `may` says who has some.
    pub(super) fn next_in_turn(&mut self, may: impl Fn(&Client) -> bool) -> Option<ClientId> {
        let behind = self.iter().filter(|one| one.id > self.served).find(|one| may(one));
        let next = behind.or_else(|| self.iter().find(|one| may(one)))?.id;
        self.served = next;
        Some(next)
    }

    /// Whether replies of waits may be built for a client, and progress sent to it. Who is gone
    /// holds nobody up.
    pub fn has_room(&self, id: ClientId) -> bool {
        self.get(id).is_none_or(Client::has_room)
    }

    /// Queues the reply to a request.
    pub fn reply(&mut self, to: &Pending, result: &impl Serialize) {
        if let Some(client) = self.get_mut(to.client) {
            client.reply(&to.id, result);
        }
    }

    /// Queues the error reply to a request.
    pub fn refuse(&mut self, to: &Pending, error: &RpcError) {
        self.refuse_to(to.client, &to.id, error);
    }

    /// The same for a request that does not wait.
    pub(super) fn refuse_to(&mut self, client: ClientId, id: &RequestId, error: &RpcError) {
        if let Some(client) = self.get_mut(client) {
            client.refuse(id, error);
        }
    }

    /// Queues a notification for one client.
    pub fn notify(&mut self, client: ClientId, method: &str, params: &impl Serialize) {
        if let Some(client) = self.get_mut(client) {
            client.notify(method, params);
        }
    }

    /// Queues a notification for every client.
    pub fn notify_all(&mut self, method: &str, params: &impl Serialize) {
        self.iter_mut().for_each(|client| client.notify(method, params));
    }
}

impl Daemon {
    /// Forgets a client that is gone: its waits and wakes, never a session.
    pub(super) fn forget_client(&mut self, id: ClientId) {
        let Some(client) = self.clients.others.remove(&id) else { return };
        self.debug(format_args!("client {id}: gone"));
        for ticket in client.in_flight.into_values() {
            self.forget_request(ticket);
        }
        self.detach_everywhere(id);
        for session in self.sessions.values_mut() {
            session.wake = session.wake.filter(|armed_by| *armed_by != id);
        }
    }

    /// Takes a waiting request off the books: nobody is left to be answered.
    fn forget_request(&mut self, ticket: Ticket) {
        let Some(pending) = self.pending.remove(&ticket) else { return };
        self.forget_page(ticket);
        self.forget_shutdown(ticket);
        if let Some(id) = pending.session
            && let Some(session) = self.sessions.get_mut(&id)
        {
            session.waits.retain(|wait| wait.ticket != ticket);
            self.touch(id);
        }
    }

    /// Step: forgets the clients that are gone, or that have ended their input and are answered.
    pub(super) fn drop_clients(&mut self) {
        // Who has only ended its requests may still watch.
        let watches = |id| self.sessions.values().any(|session| session.viewers.has(id));
        let over = self.clients.others().filter(|one| one.is_over());
        let over: Vec<ClientId> =
            over.filter(|one| one.reader_gone || !watches(one.id)).map(|one| one.id).collect();
        for id in over {
            self.forget_client(id);
        }
    }
}
