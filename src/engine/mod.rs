//! The daemon: owns everything, and moves it in turns (architecture.md, The turn).
//!
//! | file | what |
//! |---|---|
//! | `start` | limits, log directory, keeper, poll |
//! | `turn` | the numbered steps of a turn, and nothing else that polls |
//! | `client` | a connection: lines in, replies out |
//! | `clients` | all connections: stdin's, and the socket's |
//! | `listener` | the control socket |
//! | `requests` | from a line to a method and its answer |
//! | `launch` | from a request to a running session |
//! | `starts` | children whose way to their program may hang |
//! | `streams` | children's output and stdin |
//! | `reap` | signals, leaders and orphans |
//! | `judge` | waits and exits: what a session's state leads to |
//! | `notices` | what clients are told without asking |
//! | `sessions` | what methods ask of sessions |
//! | `answers` | building the answers |
//! | `attach` | attached clients: output and sizes |
//! | `table` | the table of sessions: listing, eviction, what is left behind |
//! | `closing` | the end of execd |
//! | `run_front` | `execd run` |
//! | `jobs` | sessions as the stream family sees them |
//! | `agents` | sessions in which pi runs a task |
//! | `windows` | sessions as bash and tmux see them |
//! | `helpers` | log writer and guard: started, lost, started again |
//! | `keeper_link`, `logs` | the way to the log files |

pub mod client;
pub mod clients;
pub mod closing;
pub mod contract;
pub mod helpers;
pub mod judge;
pub mod keeper_link;
pub mod launch;
pub mod listener;
pub mod logs;
pub mod notices;
pub mod pages;
pub mod reap;
pub mod requests;
pub mod run_front;
pub mod sessions;
pub mod start;
pub mod starts;
pub mod streams;
pub mod table;
pub mod turn;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::rc::Rc;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use crate::config::Config;
use crate::limits::EVENTS_PER_TURN;
use crate::pure::time::deadlines::Deadlines;
use crate::session::census::Lookout;
use crate::session::{ClientId, Session, SessionId, Ticket};
use crate::sys::clock::Timer;
use crate::sys::mounts::MountTable;
use crate::sys::signals::SignalFd;
use crate::sys::socket::Listener;
use crate::sys::spawn::Spawner;
use crate::sys::start_pages;
use crate::wire::RequestId;
use clients::Clients;
use closing::Closing;
use keeper_link::KeeperLink;
use launch::BaseEnv;
use run_front::RunFront;
use table::Outlived;

/// What an event or a deadline is for.
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
    /// Nothing came for so long (--exit-after-silence).
    Silence,
    /// A connection that could not be taken is tried again.
    Listener,
    /// An end that could not be taken is tried again.
    Reaping,
    /// The end of execd has a next step.
    Closing,
}

/// A request that waits.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Whose it is.
    pub client: ClientId,
    /// Its id; absent for a request that is never answered.
    pub id: RequestId,
    /// The session it waits for; absent for a shutdown.
    pub session: Option<SessionId>,
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

/// execd.
#[derive(Debug)]
pub struct Daemon {
    /// Its settings.
    pub config: Config,
    /// What it can be asked for.
    pub(crate) methods: &'static [contract::Method],
    pub(crate) poll: Poll,
    /// The turn's time on the monotonic clock.
    pub now_ns: u64,
    pub(crate) signals: SignalFd,
    pub(crate) clock: Timer,
    /// What the clock is armed to.
    pub(crate) armed_ns: Option<u64>,
    /// Made at the first yield_until.
    pub(crate) wall_clock: Option<Timer>,
    pub(crate) wall_armed_ms: Option<i64>,
    /// A timer could not be armed.
    pub(crate) clock_failed: bool,
    pub(crate) deadlines: Deadlines<Owner>,
    pub(crate) wall_deadlines: Deadlines<SessionId>,
    /// The client on stdin and stdout, and those of the socket.
    pub clients: Clients,
    /// The control socket.
    pub(crate) listener: Option<Listener>,
    /// Somebody may have knocked at it.
    pub(crate) accept_ready: bool,
    pub(crate) spawner: Rc<Spawner>,
    /// The mounts, some of which may hang.
    pub(crate) mounts: MountTable,
    /// What this execd has to do without.
    pub degraded: Degraded,
    /// The link to the log files and the guard.
    pub keeper: KeeperLink,
    pub(crate) base_env: BaseEnv,
    /// A random name of this execd, in the environment of its children.
    pub instance: String,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    /// Leaders that are not reaped yet, by pid.
    pub(crate) leaders: BTreeMap<i32, SessionId>,
    pub(crate) next_session_id: SessionId,
    /// Where the search for the next run's mark begins.
    pub(crate) next_run_number: u16,
    pub(crate) pending: BTreeMap<Ticket, Pending>,
    pub(crate) next_ticket: Ticket,
    pub(crate) use_counter: u64,
    /// Sessions with output to read, each at most once.
    pub(crate) readable: VecDeque<SessionId>,
    /// Sessions to judge, each at most once.
    pub(crate) touched: VecDeque<SessionId>,
    /// Sessions with a wait that is over, but no room for its answer.
    pub(crate) held_back: BTreeSet<SessionId>,
    /// Sessions in the table, but jobs.
    pub(crate) listed: usize,
    /// Sessions with input to write.
    pub(crate) feedable: VecDeque<SessionId>,
    /// Sessions whose leader has ended and is not reaped yet.
    pub(crate) ended_leaders: BTreeSet<SessionId>,
    /// Those whose end could not be taken: asked for again after a pause.
    pub(crate) reap_again: BTreeSet<SessionId>,
    /// Output that may still be read in this turn.
    pub(crate) read_left: usize,
    /// Something that was to be read to its end did not come to it for that bound.
    pub(crate) drain_deferred: bool,
    /// Whether a SIGCHLD asks for a look at all children.
    pub(crate) look_for_children: bool,
    /// Children are left to look at because a turn's bound was reached.
    pub(crate) spawns_left: usize,
    /// Looks at all processes.
    pub(crate) lookout: RefCell<Lookout>,
    /// Members that outlive their sessions.
    pub(crate) outlived: Outlived,
    pub(crate) evicted: VecDeque<(SessionId, Option<String>)>,
    /// The versions of the pis that were run.
    pub(crate) versions: crate::families::agent::Versions,
    /// What the stream family remembers of sessions that have finished.
    pub(crate) finished_jobs: crate::families::stream::FinishedJobs,
    /// Windows that have ended and stay listed.
    pub(crate) finished_windows: crate::families::windows::FinishedWindows,
    /// Bytes that texts of windows were made of since a judgement last counted them.
    pub(crate) window_text_bytes: usize,
    /// Pages of logs in line, the first that was asked for first.
    pub(crate) pending_pages: BTreeMap<Ticket, pages::WaitingPage>,
    pub(crate) raised_pipe_bytes: usize,
    pub(crate) closing: Option<Closing>,
    /// Since when stdin has ended and the reader takes nothing of so much that is unsent.
    pub(crate) stuck_since: Option<(u64, usize)>,
    /// The command of `execd run`.
    pub(crate) front: Option<RunFront>,
    /// The keeper has written acknowledgements.
    pub(crate) acks_ready: bool,
    /// Whether the poll is asked to tell when the log pipe becomes writable.
    pub(crate) log_watched: bool,
    /// The same for the guard pipe.
    pub(crate) guard_watched: bool,
    pub(crate) signal_to_take: Vec<i32>,
    /// The counters.
    pub counters: Counters,
    pub(crate) read_buffer: Vec<u8>,
    pub(crate) chunk_seed: u64,
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
    /// All of it.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        self.lacks.iter().chain(&self.shrunk)
    }
}

/// Tokens of what is no session.
pub(crate) const REQUESTS: Token = Token(0);
pub(crate) const REPLIES: Token = Token(1);
pub(crate) const SIGNALS: Token = Token(2);
pub(crate) const CLOCK: Token = Token(3);
pub(crate) const WALL_CLOCK: Token = Token(4);
pub(crate) const KEEPER_LOG: Token = Token(5);
pub(crate) const KEEPER_ACKS: Token = Token(6);
pub(crate) const KEEPER_GUARD: Token = Token(7);
pub(crate) const LISTENER: Token = Token(9);
/// stderr of `execd agent`, once it has taken less than was there for it.
pub(crate) const NOTES: Token = Token(10);
/// Session tokens: the id above three bits that say which of its descriptors it is.
const FIRST_SESSION_TOKEN: usize = 16;
const PORT_BITS: u32 = 3;

/// A session's descriptors in the poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    /// Output (and the input of a PTY).
    Output,
    /// The stdin pipe.
    Input,
    /// The leader's pidfd.
    Leader,
    /// The pidfd of a member that is being ended.
    Member,
    /// The pipe of stderr, where it is apart from stdout.
    Errors,
    /// What tells of a leader's way to its program.
    Start,
}

/// The ports by their number in a token.
const PORTS: [Port; 6] =
    [Port::Output, Port::Input, Port::Leader, Port::Member, Port::Errors, Port::Start];

/// Client tokens: the client's number above all sessions' tokens.
const FIRST_CLIENT_TOKEN: usize = 1 << (usize::BITS - 1);

pub(crate) fn client_token(id: ClientId) -> Token {
    Token(FIRST_CLIENT_TOKEN | usize::try_from(id).unwrap_or(FIRST_CLIENT_TOKEN))
}

fn client_of(token: Token) -> Option<ClientId> {
    Some(token.0.checked_sub(FIRST_CLIENT_TOKEN)? as ClientId)
}

pub(crate) fn token_of(id: SessionId, port: Port) -> Token {
    let id = usize::try_from(id).unwrap_or(usize::MAX >> PORT_BITS);
    Token(FIRST_SESSION_TOKEN + ((id << PORT_BITS) | port as usize))
}

fn session_of(token: Token) -> Option<(SessionId, Port)> {
    let packed = token.0.checked_sub(FIRST_SESSION_TOKEN)?;
    let port = *PORTS.get(packed & ((1 << PORT_BITS) - 1))?;
    Some(((packed >> PORT_BITS) as SessionId, port))
}

impl Daemon {
    /// Runs turns until execd is done; gives the exit status.
    pub fn run(&mut self) -> i32 {
        start_pages::give_back();
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        loop {
            if let Some(status) = self.turn(&mut events) {
                return status;
            }
        }
    }

    /// Puts execd's own descriptors into the poll.
    fn watch_own(&mut self) -> io::Result<()> {
        self.watch(self.signals.fd(), SIGNALS, Interest::READABLE)?;
        self.watch(self.clock.fd(), CLOCK, Interest::READABLE)?;
        if let Some(fd) = self.clients.stdin.input.poll_fd()
            && self.watch_or_always(fd, REQUESTS, Interest::READABLE)?
        {
            self.clients.stdin.input.always_ready();
        }
        // Only the end of the reader is asked for (EPOLLHUP and EPOLLERR always come); room in
        // the pipe is, once a write found none.
        if let Some(fd) = self.clients.stdin.output.poll_fd()
            && self.watch_or_always(fd, REPLIES, Interest::PRIORITY)?
        {
            self.clients.stdin.output.always_ready();
        }
        Ok(())
    }

    /// Watches one of our standard descriptors; true when it is of a kind that the poll refuses
    /// because it never blocks (EPERM, epoll_ctl(2)).
    fn watch_or_always(&self, fd: i32, token: Token, interest: Interest) -> io::Result<bool> {
        match self.watch(fd, token, interest) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(true),
            other => other.map(|()| false),
        }
    }

    pub(crate) fn watch(&self, fd: i32, token: Token, interest: Interest) -> io::Result<()> {
        self.poll.registry().register(&mut SourceFd(&fd), token, interest)
    }

    pub(crate) fn rewatch(&self, fd: i32, token: Token, interest: Interest) -> io::Result<()> {
        self.poll.registry().reregister(&mut SourceFd(&fd), token, interest)
    }

    pub(crate) fn unwatch(&self, fd: i32) {
        // A descriptor that is not there any more needs no taking out.
        let _ = self.poll.registry().deregister(&mut SourceFd(&fd));
    }

    /// Says on stderr what people should know of where logs go, once.
    fn tell_of_log_dir(&mut self) {
        if let Some(note) = self.keeper.take_place_note() {
            use io::Write;
            let _ = writeln!(io::stderr(), "execd: {note}");
        }
    }

    /// One line about a change of state on stderr, where EXECD_LOG=debug asks for it.
    pub(crate) fn debug(&self, what: std::fmt::Arguments<'_>) {
        if self.config.debug {
            // stderr is for people: one that can't be written to is their own affair.
            use io::Write;
            let _ = writeln!(io::stderr(), "turn {} {what}", self.counters.turns);
        }
    }

    /// Six hexadecimal digits, different from reply to reply.
    pub fn chunk_id(&mut self) -> String {
        // One step of a splitmix64 generator.
        self.chunk_seed = self.chunk_seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.chunk_seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        format!("{:06x}", (mixed ^ (mixed >> 31)) & 0xff_ffff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_name_a_session_and_its_descriptor() {
        for id in [1, 2, 77, 1 << 40] {
            for port in PORTS {
                assert_eq!(session_of(token_of(id, port)), Some((id, port)));
            }
        }
        assert_eq!(session_of(KEEPER_GUARD), None);
        assert_eq!(client_of(client_token(77)), Some(77));
        assert_eq!(client_of(token_of(1 << 40, Port::Errors)), None);
    }
}
