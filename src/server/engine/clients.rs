//! All connections: the one on stdin and stdout, which is always there and whose end is execd's,
//! and those that came over the socket.

mod gone;

use serde::Serialize;
use std::collections::BTreeMap;

use super::Pending;
use super::client::Client;
pub use super::client::STDIN_CLIENT;
use crate::limits::{
    CLIENT_IDLE_MS, CLIENTS_UNREAD_BYTES, CLIENTS_UNSENT_BYTES, NS_PER_MS, OUTBOX_GIVE_UP_BYTES,
};
use crate::pure::buffer::news::{Item, Missed, News};
use crate::server::session::ClientId;
use crate::wire::{Reason, RequestId, RpcError};

/// Every client, by its number. Numbers are never used again.
#[derive(Debug)]
pub struct Clients {
    /// The client on stdin and stdout.
    pub stdin: Client,
    others: BTreeMap<ClientId, Client>,
    /// The client whose request was taken up last: the next round begins behind it.
    pub(super) served: ClientId,
    /// The number of the next client.
    next_id: ClientId,
    /// News of sessions that some client has no room to be told.
    news: News,
}

/// To a client that was too slow: how many `session_started` and `session_exited` it did not get.
#[derive(Serialize)]
struct ChangedNote {
    /// How many sessions have started.
    started: u64,
    /// How many sessions have ended.
    ended: u64,
}

/// Whom to hang up on so that all of them together hold no more than `most`: the one that holds
/// most.
fn worst(held: impl Iterator<Item = (ClientId, usize)>, most: usize) -> Option<ClientId> {
    let (mut total, mut worst) = (0, None);
    for (id, bytes) in held {
        total += bytes;
        worst = worst.max(Some((bytes, id)));
    }
    worst.filter(|_| total > most).map(|(_, id)| id)
}

impl Clients {
    /// Only the client on stdin and stdout.
    pub fn new(stdin: Client) -> Self {
        Self {
            stdin,
            others: BTreeMap::new(),
            served: STDIN_CLIENT,
            next_id: STDIN_CLIENT + 1,
            news: News::default(),
        }
    }

    /// The client of this number, while it is connected.
    pub fn get(&self, id: ClientId) -> Option<&Client> {
        if id == STDIN_CLIENT { Some(&self.stdin) } else { self.others.get(&id) }
    }

    /// The client of this number, to change it.
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
    pub(crate) fn others_mut(&mut self) -> impl Iterator<Item = &mut Client> {
        self.others.values_mut()
    }

    /// How many came over the socket.
    pub fn connected(&self) -> usize {
        self.others.len()
    }

    /// A number for one more.
    pub(crate) fn next_id(&mut self) -> ClientId {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Takes one in.
    pub(crate) fn insert(&mut self, mut client: Client) {
        client.told = self.news.reader();
        self.others.insert(client.id, client);
    }

    /// The one with requests to take up whose turn it is; `may` says who has some.
    pub(crate) fn next_in_turn(&mut self, may: impl Fn(&Client) -> bool) -> Option<ClientId> {
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
        self.refuse_line(to.client, Some(&to.id), error, to.line);
    }

    /// Queues the error reply to a line, where it has an id to be answered by.
    pub(crate) fn refuse_line(
        &mut self,
        client: ClientId,
        id: Option<&RequestId>,
        error: &RpcError,
        line: u64,
    ) {
        if let Some(client) = self.get_mut(client) {
            client.refuse_line(id, error, line);
        }
    }

    /// Queues a notification for one client.
    pub fn notify(&mut self, client: ClientId, method: &str, params: &impl Serialize) {
        if let Some(client) = self.get_mut(client) {
            client.notify(method, params);
        }
    }

    /// Tells every client the news of a session: at once where it has room, else when it has.
    pub(crate) fn tell(&mut self, item: Item) {
        self.news.push(item);
        self.tell_on();
    }

    /// Tells the news to whoever has room for them.
    pub(crate) fn tell_on(&mut self) {
        let news = &self.news;
        let all = std::iter::once(&mut self.stdin).chain(self.others.values_mut());
        for client in all.filter(|one| !news.is_told(&one.told)) {
            if client.quiet || client.reader_gone {
                client.told = news.reader();
                continue;
            }
            if client.has_room() && client.told.has_missed() {
                let Missed { started, ended, own } = client.told.take_missed();
                own.iter().for_each(|text| client.notify_json("session_exited", text));
                client.notify("sessions_changed", &ChangedNote { started, ended });
            }
            while client.has_room()
                && let Some(item) = news.next_for(&client.told)
            {
                let method = if item.ended { "session_exited" } else { "session_started" };
                client.notify_json(method, item.text_for(client.id));
                news.advance(&mut client.told);
            }
        }
        self.trim_news();
    }

    fn trim_news(&mut self) {
        let all = std::iter::once(&mut self.stdin).chain(self.others.values_mut());
        self.news.trim(all.map(|client| (client.id, &mut client.told)));
    }

    /// Hangs up on those of the socket that do not read what is far too much for one, and, while
    /// all of them together hold too much, on the one that holds most. Gives who that was.
    fn hang_up_on_the_worst(&mut self) -> Vec<ClientId> {
        let mut gone = Vec::new();
        while let Some((id, unread)) = self.over_the_bounds() {
            let Some(client) = self.others.get_mut(&id) else { break };
            let message = "what clients of the socket have sent takes too much memory together, \
                           and your line is the longest: end your lines, or send shorter ones";
            // A client that reads nothing can't be told.
            let why = unread.then(|| RpcError::failed(Reason::LineTooLong, message));
            client.hang_up(why.as_ref());
            gone.push(id);
        }
        gone
    }

    /// Whom to hang up on because it does not read, or because all of the socket's clients
    /// together hold too much, and whether that is of what they have sent.
    fn over_the_bounds(&self) -> Option<(ClientId, bool)> {
        let unsent = || self.others.values().map(|one| (one.id, one.outbox.len()));
        let unread = self.others.values().map(|one| (one.id, one.unread_bytes()));
        let deaf = unsent().find(|(_, bytes)| *bytes > OUTBOX_GIVE_UP_BYTES).map(|(id, _)| id);
        let too_much = deaf.or_else(|| worst(unsent(), CLIENTS_UNSENT_BYTES));
        let of_unsent = too_much.map(|id| (id, false));
        of_unsent.or_else(|| worst(unread, CLIENTS_UNREAD_BYTES).map(|id| (id, true)))
    }

    /// The client of the socket that has been idle longest, and for long enough to make room for
    /// another. `waits` says who is there for something all the same.
    fn idlest(&self, now_ns: u64, waits: impl Fn(&Client) -> bool) -> Option<ClientId> {
        let due_ns = now_ns.saturating_sub(CLIENT_IDLE_MS * NS_PER_MS);
        let idle = self.others.values().filter(|one| one.active_ns < due_ns && !waits(one));
        idle.min_by_key(|one| one.active_ns).map(|one| one.id)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::limits::{MAX_LINE_BYTES, NS_PER_S, OUTBOX_HIGH_BYTES, OUTBOX_STOP_BYTES};
    use crate::sys::stdio::Channel;

    /// So many clients, and the other ends of those of the socket.
    fn clients(count: ClientId) -> (Clients, Vec<UnixStream>) {
        let channel =
            || Channel::of_connection(OwnedFd::from(UnixStream::pair().unwrap().0).into());
        let mut all = Clients::new(Client::new(STDIN_CLIENT, channel(), channel(), MAX_LINE_BYTES));
        let mut ends = Vec::new();
        for id in 1..=count {
            let (ours, theirs) = UnixStream::pair().unwrap();
            all.insert(Client::of_connection(id, OwnedFd::from(ours), MAX_LINE_BYTES));
            ends.push(theirs);
        }
        (all, ends)
    }

    fn gone(all: &Clients) -> Vec<ClientId> {
        all.iter().filter(|one| one.reader_gone).map(|one| one.id).collect()
    }

    /// Sixty deaf clients held 491 MiB, each within what one may.
    /// rule: attach.md, Several clients: What clients of the socket have sent, and what is unsent
    ///   to them, is bounded for all together; the worst is hung up on first, stdin's client never
    #[test]
    fn what_is_unsent_to_all_together_is_bounded_and_the_worst_is_hung_up_on_first() {
        let (mut all, _ends) = clients(20);
        for client in all.iter_mut() {
            let bytes = if client.id == 5 { OUTBOX_STOP_BYTES } else { 3 * OUTBOX_HIGH_BYTES };
            client.outbox.push(&vec![b'x'; bytes]);
        }
        assert_eq!(all.hang_up_on_the_worst(), [5]);
        assert!(all.hang_up_on_the_worst().is_empty(), "one is enough");
        // One alone that holds far too much, and stdin's client, which is never hung up on.
        for id in [STDIN_CLIENT, 9] {
            all.get_mut(id).unwrap().outbox.push(&vec![b'x'; OUTBOX_GIVE_UP_BYTES]);
        }
        assert_eq!(all.hang_up_on_the_worst(), [9]);
        assert_eq!(gone(&all), [5, 9]);
    }

    /// Sixty-four connections that said nothing shut out everybody else for ever.
    /// rule: attach.md, Several clients: At the cap the one idle longest, over 30 s, without waits,
    ///   attachments or wakes makes room
    #[test]
    fn the_one_that_was_idle_longest_and_waits_for_nothing_makes_room() {
        let (mut all, _ends) = clients(4);
        let now_ns = 1_000 * NS_PER_S;
        let ages_s = [(1, 30), (2, 31), (3, 500), (4, 900)];
        for (id, age_s) in ages_s {
            all.get_mut(id).unwrap().active_ns = now_ns - age_s * NS_PER_S;
        }
        let idlest =
            |all: &Clients, busy: &[ClientId]| all.idlest(now_ns, |one| busy.contains(&one.id));
        assert_eq!(idlest(&all, &[]), Some(4));
        assert_eq!(idlest(&all, &[4]), Some(3));
        assert_eq!(idlest(&all, &[3, 4]), Some(2));
        assert_eq!(idlest(&all, &[2, 3, 4]), None, "30 s are not over for the last");
    }
}
