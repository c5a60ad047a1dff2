//! What a session and its waits keep while somebody waits for a port of it, or for a page
//! (waits.md, until and stop). When listeners are looked at is decided by `engine::ports`.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::SessionId;
use super::listening::{Own, Sockets, Tables};
use super::probe::{Probe, Rest};
use crate::limits::{NS_PER_MS, PORT_FDS_PER_PROCESS, PORT_LOOK_MS};
use crate::pure::net::Listener;
use crate::pure::until::{Condition, HttpWanted, PortWanted};
use crate::sys::clock;
use crate::sys::listeners::{self, Network};
use crate::sys::proc::{self, Pids};
use crate::sys::tree::Orphans;

/// Orphans that have left their sessions, of which it is asked in a turn which session that was.
const ADOPTED_ASKED_MAX: usize = 256;

/// It doubles up to this.
const HTTP_PAUSE_MAX_MS: u64 = 1_000;

/// The pause until a server is asked again that did not answer as it was to, at first.
const HTTP_PAUSE_MS: u64 = 100;

/// Descriptors looked at in one turn, to find who holds a port that is not the session's.
const HOLDER_FDS_PER_TURN: usize = 2_048;

/// Once looks at these have used so much CPU time in a turn, no further one is begun in it.
const TOLD_TURN_MS: u64 = 5;

/// Descriptors that are looked at in one turn for what its replies and lists tell.
const TOLD_FDS_PER_TURN: usize = 8_192;

/// While a port is waited for, the tables of listeners are read once in so long, and whenever the
/// session has a new socket. A read walks all connections that the kernel has room for: it takes
/// 13 ms where 262,144 have.
const PORT_TABLES_MS: u64 = 500;

/// The pause behind a look for ports is at least so many times as long as the look was.
const PORT_COST_RATIO: u64 = 4;

/// The part of the time that a wait has lasted by which its next look may be late.
const PORT_LATE_PART: u64 = 20;

/// A long wait makes the pause no longer than this.
const PORT_PAUSE_MAX_MS: u64 = 500;

/// What one turn knows of listeners and of processes without parents.
#[derive(Debug, Default)]
pub struct Listeners {
    turn: u64,
    /// The listeners of our network, and when they were read.
    table: Option<(u64, Rc<Vec<Listener>>)>,
    /// Our network, which never changes.
    network: Option<Network>,
    /// Processes without parents that have left the session that started them: the session that
    /// they count for, and the pid.
    adopted: Option<Vec<(SessionId, i32)>>,
    /// Descriptors that may still be looked at in this turn, to find who holds a port.
    pub fds_left: usize,
    /// The same, for what replies and lists tell.
    pub told_left: usize,
    /// The CPU time that looks for these have used.
    told_ns: u64,
}

impl Listeners {
    /// A turn goes on, or begins.
    pub fn begin_turn(&mut self, turn: u64) {
        if self.turn != turn {
            let (fds_left, told_left) = (HOLDER_FDS_PER_TURN, TOLD_FDS_PER_TURN);
            let (network, table) = (self.network, self.table.take());
            *self = Self { turn, table, network, fds_left, told_left, ..Self::default() };
        }
    }

    /// Our own network.
    pub fn network(&mut self) -> Option<Network> {
        self.network = self.network.or_else(listeners::own_network);
        self.network
    }

    /// The listeners of our network, read at `since_ns` or later; none where nothing tells.
    pub fn table(&mut self, since_ns: u64) -> Rc<Vec<Listener>> {
        if self.table.as_ref().is_none_or(|(read_ns, _)| *read_ns < since_ns) {
            let read_ns = clock::now_ns();
            self.table = Some((read_ns, Rc::new(listeners::ours().unwrap_or_default())));
        }
        self.table.as_ref().map(|(_, all)| Rc::clone(all)).unwrap_or_default()
    }

    /// The CPU time at which a look for what replies and lists tell begins. None: the turn has no
    /// time left for it.
    pub fn may_tell(&self) -> Option<u64> {
        (self.told_ns < TOLD_TURN_MS * NS_PER_MS).then(clock::used_ns)
    }

    /// A look that began at that CPU time is done.
    pub fn has_told(&mut self, began_ns: u64) {
        self.told_ns += clock::used_ns().saturating_sub(began_ns);
    }

    /// The orphans in none of the sessions that `leads` knows which count for this session, by
    /// `session_of`; and whether these are all.
    pub fn adopted(
        &mut self,
        session: SessionId,
        orphans: &Orphans,
        leads: impl Fn(i32) -> bool,
        session_of: impl Fn(i32) -> Option<SessionId>,
    ) -> (Vec<i32>, bool) {
        if self.adopted.is_none() {
            let strangers = orphans.strangers(&leads).take(ADOPTED_ASKED_MAX);
            self.adopted =
                Some(strangers.filter_map(|pid| Some((session_of(pid)?, pid))).collect());
        }
        let all = self.adopted.as_deref().unwrap_or_default();
        let its = all.iter().filter(|one| one.0 == session);
        (its.map(|one| one.1).collect(), all.len() < ADOPTED_ASKED_MAX)
    }
}

/// What a look for listeners has found.
#[derive(Debug)]
pub struct Looked {
    /// Those of the session that are wanted.
    pub own: Vec<Own>,
    /// The wanted ones of our network that are others', where that is certain.
    pub others: Option<Vec<Listener>>,
}

/// What a session keeps.
#[derive(Debug, Default)]
pub struct PortLook {
    /// When listeners are to be looked at next.
    pub next_ns: u64,
    /// The tables that were read last, and when.
    tables: Option<(u64, Tables)>,
    /// The session's sockets at that time.
    seen: BTreeSet<u64>,
    /// Answers of servers whose rest is read.
    pub rests: Vec<Rest>,
}

impl PortLook {
    /// The tables against which the session's sockets are held: those that `read` gives where a
    /// socket is new or the last ones are old.
    pub fn tables(
        &mut self,
        sockets: &Sockets,
        now_ns: u64,
        read: impl FnOnce() -> Tables,
    ) -> &Tables {
        let is_new = sockets.inodes().any(|inode| !self.seen.contains(&inode));
        let fresh = self
            .tables
            .take()
            .filter(|(read_ns, _)| !is_new && now_ns < read_ns + PORT_TABLES_MS * NS_PER_MS);
        let tables = fresh.unwrap_or_else(|| {
            self.seen = sockets.inodes().collect();
            (now_ns, read())
        });
        &self.tables.insert(tables).1
    }

    /// The next look reads the tables anew.
    pub fn forget_tables(&mut self) {
        self.tables = None;
    }

    /// When the next look begins: looks take a fifth of the time at most, and a listener is seen a
    /// twentieth of the time too late at most. `waited_ns` is how long the youngest wait has
    /// lasted, `took_ns` what this look cost. All sessions look at moments that they may share, so
    /// that one table serves them.
    pub fn rest(&mut self, now_ns: u64, waited_ns: u64, took_ns: u64) {
        let shortest_ns = PORT_LOOK_MS * NS_PER_MS;
        let late_ns = (waited_ns / PORT_LATE_PART).min(PORT_PAUSE_MAX_MS * NS_PER_MS);
        let pause_ns = shortest_ns.max(late_ns).max(took_ns * PORT_COST_RATIO);
        self.next_ns = (now_ns + pause_ns) / shortest_ns * shortest_ns;
    }

    /// When the rest of an answer is read no longer.
    pub fn rests_due_ns(&self) -> Option<u64> {
        self.rests.iter().map(|rest| rest.until_ns).min()
    }
}

/// What a wait keeps.
#[derive(Debug)]
pub struct PortWait {
    /// Whether listeners were looked at since the call came.
    pub looked: bool,
    /// A port that is waited for and that somebody else listens on.
    pub held: Option<HeldPort>,
    /// The question to a server that is under way.
    pub probe: Option<Probe>,
    /// When the next one may begin.
    pub probe_ns: u64,
    /// The pause behind the next round of questions.
    pub pause_ms: u64,
    /// Whose turn it is to be asked.
    pub turn: usize,
    /// The one that is asked is the last of its round.
    pub round_over: bool,
}

impl Default for PortWait {
    fn default() -> Self {
        let (probe, pause_ms) = (None, HTTP_PAUSE_MS);
        Self { looked: false, held: None, probe, probe_ns: 0, pause_ms, turn: 0, round_over: false }
    }
}

/// A port that is waited for and that somebody else listens on.
#[derive(Debug)]
pub struct HeldPort {
    /// The listener.
    listener: Listener,
    /// The processes that are still to be searched for the one that has it.
    pids: Option<Pids>,
    /// The process that has it, once that is known.
    holder: Option<i32>,
}

impl HeldPort {
    /// A port that this listener holds.
    fn new(listener: Listener) -> Self {
        Self { listener, pids: proc::all_pids().ok(), holder: None }
    }

    /// Searches on for the holder, until `left` descriptors were looked at, or a few more.
    fn search(&mut self, left: &mut usize) {
        while *left > 0
            && let Some(pids) = &mut self.pids
        {
            let Some(pid) = pids.next().filter(|_| self.holder.is_none()) else {
                self.pids = None;
                break;
            };
            let Ok(pid) = pid else { continue };
            // A process is looked at as a whole, whatever is left.
            let mut most = PORT_FDS_PER_PROCESS;
            listeners::sockets(pid, &mut most, |inode| {
                if inode == self.listener.inode {
                    self.holder = Some(pid);
                }
            });
            // Whoever must not be looked at costs something too.
            *left = left.saturating_sub(PORT_FDS_PER_PROCESS - most + 1);
        }
    }

    /// Who holds the port, in words.
    pub fn words(&self) -> String {
        let port = self.listener.port;
        match self.holder {
            Some(pid) => format!("port {port} is already held by {} (pid {pid})", proc::name(pid)),
            None => format!("port {port} is already held by another process"),
        }
    }
}

impl Looked {
    /// The listener of somebody else that holds a port which is waited for.
    pub fn holds(&self, port: PortWanted) -> Option<Listener> {
        let own = || self.own.iter().any(|one| port.takes(one.listener.port));
        let others = self.others.iter().flatten().find(|one| port.takes(one.port));
        others.filter(|_| port != PortWanted::Any && !own()).copied()
    }
}

impl PortWait {
    /// Notes the listener of somebody else that holds a port which is waited for, and searches for
    /// who has it.
    pub fn note_held(&mut self, listener: Option<Listener>, left: &mut usize) {
        if self.held.as_ref().map(|held| held.listener) != listener {
            self.held = listener.map(HeldPort::new);
        }
        if let Some(held) = &mut self.held {
            held.search(left);
        }
    }

    /// A server has not answered as it was to: when is the next one asked?
    pub fn ask_later(&mut self, now_ns: u64) {
        if self.round_over {
            self.probe_ns = now_ns + self.pause_ms * NS_PER_MS;
            self.pause_ms = (self.pause_ms * 2).min(HTTP_PAUSE_MAX_MS);
        } else {
            self.probe_ns = now_ns;
        }
    }
}

impl Condition {
    /// The page that is waited for, and where.
    pub fn page(&self) -> Option<(&HttpWanted, PortWanted)> {
        self.http.as_ref().map(|http| (http, http.port.unwrap_or(PortWanted::Any)))
    }

    /// The ports that could make it come true.
    pub fn ports(&self) -> impl Iterator<Item = PortWanted> {
        self.port.into_iter().chain(self.page().map(|(_, port)| port))
    }
}

impl PortWanted {
    /// Whether this port will do.
    pub fn takes(self, port: u16) -> bool {
        match self {
            Self::Any => true,
            Self::Number(number) => number == port,
        }
    }
}

/// What a wait keeps for its ports, where it waits for any.
pub fn wait_for(
    until: Option<&Rc<Condition>>,
    stop: Option<&Rc<Condition>>,
) -> Option<Box<PortWait>> {
    let any = until.into_iter().chain(stop).any(|one| one.ports().next().is_some());
    any.then(Box::default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::host;
    use std::net::TcpListener;

    /// rule: waits.md, Listening: a turn looks at processes for a bounded time (5 ms)
    #[test]
    fn what_replies_tell_is_looked_for_no_longer_than_a_turn_has_time_for() {
        let mut listeners = Listeners::default();
        listeners.begin_turn(1);
        assert!(listeners.may_tell().is_some(), "nobody has looked yet");
        while let Some(began_ns) = listeners.may_tell() {
            listeners.has_told(began_ns);
        }
        listeners.begin_turn(1);
        assert_eq!(listeners.may_tell(), None, "the turn goes on");
        listeners.begin_turn(2);
        assert!(listeners.may_tell().is_some());
    }

    #[test]
    fn the_holder_of_a_port_is_found_in_pieces() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let listener = listeners::ours().unwrap().into_iter().find(|one| one.port == port);
        let mut wait = PortWait::default();
        let mut pieces = 0;
        wait.note_held(listener, &mut 3);
        while wait.held.as_ref().unwrap().pids.is_some() {
            wait.note_held(listener, &mut 3);
            pieces += 1;
        }
        assert!(pieces > 0);
        let own = host::pid();
        let words = format!("port {port} is already held by {} (pid {own})", proc::name(own));
        assert_eq!(wait.held.as_ref().unwrap().words(), words);
        wait.note_held(listener.map(|one| Listener { inode: u64::MAX, ..one }), &mut {
            usize::MAX
        });
        let words = format!("port {port} is already held by another process");
        assert_eq!(wait.held.as_ref().unwrap().words(), words);
        wait.note_held(None, &mut 3);
        assert!(wait.held.is_none(), "it is free");
    }

    #[test]
    fn tables_are_read_for_a_new_socket_and_when_they_are_old() {
        let (mut look, own) = (PortLook::default(), listeners::own_network());
        let mut reads = 0;
        let mut look_at = |ms: u64| {
            let sockets = Sockets::of(&[host::pid()], own, &mut 4_096);
            look.tables(&sockets, ms * NS_PER_MS, || {
                reads += 1;
                Tables::default()
            });
            reads
        };
        assert_eq!([0, 1, PORT_TABLES_MS - 1].map(&mut look_at), [1, 1, 1]);
        let _socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let again_ms = PORT_TABLES_MS - 1;
        assert_eq!([again_ms, again_ms + 1].map(&mut look_at), [2, 2]);
        assert_eq!(look_at(again_ms + PORT_TABLES_MS), 3);
    }

    #[test]
    fn a_look_that_takes_long_or_comes_late_is_followed_by_a_longer_pause() {
        let mut look = PortLook::default();
        let began_ms = 1_000;
        let cases = [(0, 0, 50), (1_999, 2, 50), (2_000, 0, 100), (60_000, 0, 500), (0, 50, 200)];
        for (waited_ms, took_ms, pause_ms) in cases {
            let [now_ns, waited_ns, took_ns] =
                [began_ms, waited_ms, took_ms].map(|ms| ms * NS_PER_MS);
            look.rest(now_ns, waited_ns, took_ns);
            assert_eq!(look.next_ns / NS_PER_MS, began_ms + pause_ms, "{waited_ms} {took_ms}");
        }
    }
}
