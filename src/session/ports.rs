//! What a session and its waits keep while somebody waits for a port of it, or for a page
//! (waits.md, until and stop). When listeners are looked at is decided by `engine::ports`.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::SessionId;
use super::listening::{Own, Table};
use super::port_holders::Search;
use super::probe::{Probe, Rest};
use crate::limits::{
    ADOPTED_ASKED_MAX, HOLDER_FDS_PER_TURN, HTTP_PAUSE_MAX_MS, HTTP_PAUSE_MS, NS_PER_MS,
    PORT_DOUBT_MAX_MS, PORT_LOOK_MS, TOLD_FDS_PER_TURN, TOLD_TURN_MS,
};
use crate::pure::net::Listener;
use crate::pure::net::room::Room;
use crate::pure::until::{Condition, HttpWanted, PortWanted};
use crate::sys::clock;
use crate::sys::listeners::{self, Network};
use crate::sys::tree::Orphans;

/// What one turn knows of listeners and of processes without parents.
#[derive(Debug, Default)]
pub struct Listeners {
    turn: u64,
    table: Option<Rc<Table>>,
    /// Our network, which never changes.
    network: Option<Network>,
    /// Processes without parents that have left the session that started them: the session that
    /// they count for, and the pid.
    adopted: Option<Vec<(SessionId, i32)>>,
    /// Descriptors that may still be looked at in this turn, to find who holds a port.
    pub fds_left: usize,
    /// The same, for what replies and lists tell.
    pub told_left: usize,
    /// How long looks for these have taken.
    told_ns: u64,
    /// The session that the next list looks at first: the last one had no time left for it.
    pub list_from: SessionId,
}

impl Listeners {
    /// A turn goes on, or begins.
    pub fn begin_turn(&mut self, turn: u64) {
        if self.turn != turn {
            let (fds_left, told_left) = (HOLDER_FDS_PER_TURN, TOLD_FDS_PER_TURN);
            let Self { network, list_from, .. } = *self;
            let kept = Self { network, list_from, ..Self::default() };
            *self = Self { turn, fds_left, told_left, ..kept };
        }
    }

    /// The listeners of our network; none where nothing tells.
    pub fn table(&mut self) -> Rc<Table> {
        self.network = self.network.or_else(listeners::own_network);
        let network = self.network;
        let read = || Rc::new(Table { all: listeners::ours().unwrap_or_default(), network });
        Rc::clone(self.table.get_or_insert_with(read))
    }

    /// When a look for what replies and lists tell begins. None: the turn has no time left for it.
    pub fn may_tell(&self) -> Option<u64> {
        (self.told_ns < TOLD_TURN_MS * NS_PER_MS).then(clock::now_ns)
    }

    /// A look that began then is done.
    pub fn has_told(&mut self, began_ns: u64) {
        self.told_ns += clock::now_ns().saturating_sub(began_ns);
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
    /// When the session's processes were last looked at.
    pub walked_ns: Option<u64>,
    /// Listeners that were none of the session's.
    pub others: BTreeMap<u64, Doubt>,
    /// Whether that look can have missed nothing in our own network.
    pub certain: bool,
    /// Answers of servers whose rest is read.
    pub rests: Vec<Rest>,
}

/// A listener that was found to be none of the session's: it may become one, for a descriptor can
/// be handed on.
#[derive(Clone, Copy, Debug)]
pub struct Doubt {
    again_ns: u64,
    pause_ms: u64,
}

impl PortLook {
    /// The session's processes were looked at; these of the listeners were none of theirs.
    pub fn walked(&mut self, now_ns: u64, others: impl Iterator<Item = u64>) {
        self.walked_ns = Some(now_ns);
        let before = std::mem::take(&mut self.others);
        for inode in others {
            let pause_ms = before
                .get(&inode)
                .map_or(PORT_LOOK_MS, |doubt| (doubt.pause_ms * 2).min(PORT_DOUBT_MAX_MS));
            let again_ns = now_ns + pause_ms * NS_PER_MS;
            self.others.insert(inode, Doubt { again_ns, pause_ms });
        }
    }

    /// When the rest of an answer is read no longer.
    pub fn rests_due_ns(&self) -> Option<u64> {
        self.rests.iter().map(|rest| rest.until_ns).min()
    }

    /// Whether the processes are to be looked at, given the listeners that are wanted: one is new,
    /// or it is time again.
    pub fn wants_walk(&self, now_ns: u64, mut wanted: impl Iterator<Item = u64>) -> bool {
        let due = |inode| self.others.get(&inode).is_none_or(|one| one.again_ns <= now_ns);
        // A process that has moved to a network of its own has its listeners there.
        let late_ns = self.walked_ns.map_or(0, |at| at + PORT_DOUBT_MAX_MS * NS_PER_MS);
        late_ns <= now_ns || wanted.any(due)
    }
}

/// What a wait keeps.
#[derive(Debug)]
pub struct PortWait {
    /// Whether listeners were looked at since the call came.
    pub looked: bool,
    /// All ports that could end the wait are held by others.
    pub held: Option<Held>,
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

/// Ports that others hold.
#[derive(Debug)]
pub struct Held {
    /// The listeners of the others.
    pub by: Vec<Listener>,
    /// Since when it has been so.
    pub since_ns: u64,
    /// The search for who they are.
    pub search: Search,
    /// What they leave of the port that has most room, and who they are in words, once that was
    /// found out.
    pub verdict: Option<(Room, String)>,
}

impl PortWait {
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

    /// Whether something else than a port could.
    pub fn has_more_than_ports(&self) -> bool {
        let quiet = self.idle_ms.is_some() || self.tree_exit;
        !self.patterns.is_empty() || self.input.is_some() || quiet
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

    /// rule: waits.md, Listening: a turn looks at processes for a bounded time (5 ms)
    #[test]
    fn what_replies_tell_is_looked_for_no_longer_than_a_turn_has_time_for() {
        let mut listeners = Listeners::default();
        listeners.begin_turn(1);
        let began_ns = listeners.may_tell().expect("nobody has looked yet");
        listeners.has_told(began_ns - TOLD_TURN_MS * NS_PER_MS);
        assert_eq!(listeners.may_tell(), None);
        listeners.list_from = 7;
        listeners.begin_turn(1);
        assert_eq!(listeners.may_tell(), None, "the turn goes on");
        listeners.begin_turn(2);
        assert!(listeners.may_tell().is_some() && listeners.list_from == 7);
    }

    #[test]
    fn a_listener_of_others_is_looked_at_again_ever_more_rarely() {
        let mut look = PortLook::default();
        let one = || [7_u64].into_iter();
        assert!(look.wants_walk(0, one()), "nobody has looked yet");
        let (mut now_ns, mut pauses) = (0, Vec::new());
        for _ in 0..7 {
            look.walked(now_ns, one());
            let due_ns = look.others.get(&7).expect("it is in doubt").again_ns;
            assert!(!look.wants_walk(due_ns - 1, one()) && look.wants_walk(due_ns, one()));
            assert!(look.wants_walk(now_ns, [7, 8].into_iter()), "a new one is looked at at once");
            pauses.push((due_ns - now_ns) / NS_PER_MS);
            now_ns = due_ns;
        }
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
        look.walked(now_ns, std::iter::empty());
        assert!(look.others.is_empty(), "who is gone is forgotten");
        let second = now_ns + PORT_DOUBT_MAX_MS * NS_PER_MS;
        assert!(!look.wants_walk(second - 1, std::iter::empty()));
        assert!(look.wants_walk(second, std::iter::empty()));
    }
}
