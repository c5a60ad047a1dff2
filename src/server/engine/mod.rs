//! The engine: what moves sessions, in turns (architecture.md, The turn). The engine owns the table
//! of sessions and the context that they are judged in, and is generic over one type that stands
//! for all families of tools: what a session's output means, when a wait is over and what its
//! answer says is left to them (architecture.md, The contract).
//!
//! | file | what |
//! |---|---|
//! | `contract` | what the engine asks of families, what they get, and what a method is |
//! | `start` | limits, log directory, keeper, poll |
//! | `turn` | the numbered steps of a turn, and nothing else that polls |
//! | `watch` | the poll, and whose event a token is |
//! | `sessions` | the table: listing, eviction, what outlives a session |
//! | `client`, `clients`, `listener` | connections: one, all, and who is let in |
//! | `requests` | from a line to a method and its answer |
//! | `put_off` | requests that wait for their turn |
//! | `launch` | from what is to be run to a running session |
//! | `streams` | children's output and stdin |
//! | `input` | what is written to a session: taken or refused |
//! | `reap` | signals, leaders and orphans |
//! | `conditions` | what waits are for besides their time and the exit |
//! | `judge` | waits and exits: what a session's state leads to |
//! | `ports` | waits for ports and pages of a session |
//! | `ledger` | events of sessions: noted once, told once to each client |
//! | `notices` | what clients are told without asking |
//! | `closing` | the end of execd |
//! | `run_front` | `execd run` |
//! | `log_facts` | what the file of facts beside a log says |
//! | `helpers` | log writer and guard: started, lost, started again |
//! | `keeper_link`, `pages` | the way to the log files and back |

pub mod client;
pub mod clients;
pub mod closing;
pub mod conditions;
pub mod contract;
pub mod helpers;
pub mod input;
pub mod judge;
pub mod keeper_link;
pub mod launch;
pub mod ledger;
mod list_looks;
pub mod listener;
mod log_facts;
pub mod notices;
pub mod pages;
pub mod ports;
mod put_off;
pub mod reap;
pub mod requests;
pub mod run_front;
pub mod sessions;
pub mod start;
pub mod streams;
pub mod turn;
pub mod watch;

use mio::Events;

use crate::server::session::{ClientId, SessionId, Ticket};
use crate::sys::signals::SignalFd;
use crate::wire::RequestId;
use contract::cx::Cx;
use contract::{Families, Methods};
use helpers::Helpers;
use launch::Launcher;
use list_looks::ListLooks;
use listener::Door;
use pages::Pages;
use put_off::KeptRequests;
use reap::Reaping;
use sessions::Sessions;
use turn::Clocks;

/// Events taken from the kernel in one turn.
const EVENTS_PER_TURN: usize = 256;

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A session, at one of its deadlines.
    Session(SessionId),
    /// The log writer may be started again.
    Keeper,
    /// The guard may be started again.
    Guard,
    /// A page of a log has taken too long.
    Pages,
    /// Nothing has come on stdin for so long (--lease).
    Silence,
    /// A connection that could not be taken is tried again.
    Listener,
    /// An end that could not be taken is tried again.
    Reaping,
    /// The end of execd has a next step.
    Closing,
    /// A request for events has waited for long enough.
    Events,
    /// The time of the command in front may be over.
    Front,
    /// A secret waits until its terminal does not echo.
    Secrets,
    /// Lists have sessions to look at.
    Lists,
}

/// A request that waits.
#[derive(Clone, Debug)]
pub struct Pending {
    /// The client that is answered.
    pub client: ClientId,
    /// The request's id; absent for a request that is never answered.
    pub id: RequestId,
    /// The sessions that the request waits for; none for a shutdown, and for one that is kept.
    pub sessions: Vec<SessionId>,
    /// The number of the request's line on its connection, from 1; 0 where it has none.
    pub line: u64,
}

/// Counters of server_info.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Requests taken up.
    pub requests: u64,
    /// Children started.
    pub spawns: u64,
    /// Leaders reaped.
    pub exits: u64,
    /// Bytes of output read.
    pub bytes_read: u64,
    /// Turns of the loop.
    pub turns: u64,
    /// The longest turn.
    pub slowest_turn_ns: u64,
    /// Events for something that was gone.
    pub stale_events: u64,
}

/// execd: the table of sessions, the context that they are judged in, and the steps of a turn.
#[derive(Debug)]
pub struct Engine<F: Families> {
    /// What sessions are judged in.
    pub cx: Cx<F>,
    /// The table of sessions.
    pub sessions: Sessions<F>,
    /// What clients can ask for.
    methods: Methods<F>,
    /// What children are started with.
    pub launcher: Launcher,
    /// Leaders and orphans that have ended.
    reaping: Reaping,
    /// The timers.
    clocks: Clocks,
    signals: SignalFd,
    /// The control socket.
    door: Door,
    helpers: Helpers,
    /// Pages of logs in line.
    pages: Pages,
    /// Requests that wait for their turn.
    kept: KeptRequests,
    /// Lists whose sessions are being looked at.
    list_looks: ListLooks,
    next_ticket: Ticket,
    /// Since when stdin has ended and the reader takes nothing of so much that is unsent.
    stuck_since: Option<(u64, usize)>,
    /// What this execd has to do without.
    pub degraded: Degraded,
    /// When execd was started.
    pub started_ns: u64,
}

/// Why execd could not start.
pub type StartError = String;

/// What this execd has to do without, for people: where it runs refuses it.
#[derive(Debug, Default)]
pub struct Degraded {
    /// What is missing, and what that costs.
    pub lacks: Vec<String>,
    /// How many sessions there is room for, where that is fewer than the settings ask for.
    pub shrunk: Option<String>,
}

impl Degraded {
    /// Everything that execd does without, for people.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        self.lacks.iter().chain(&self.shrunk)
    }
}

impl<F: Families> Engine<F> {
    /// Runs turns until execd is done; gives the exit status.
    pub fn run(&mut self) -> i32 {
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        loop {
            if let Some(status) = self.turn(&mut events) {
                return status;
            }
        }
    }
}
