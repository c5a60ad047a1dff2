//! What a session is judged in: the turn's time, the settings, the clients, the logs, and the
//! queues of what is to be done. Whatever acts on one session gets that session and this, and
//! reaches no other session: what concerns others is an effect, which the loop carries out.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use super::Families;
use crate::config::Config;
use crate::limits::{LOG_ACK_WAIT_MS, NAMED_PROCESSES, NS_PER_MS};
use crate::pure::process::killed::KilledBy;
use crate::pure::process::starts::Starts;
use crate::pure::time::deadlines::Deadlines;
use crate::server::engine::clients::Clients;
use crate::server::engine::closing::{Cause, Closing};
use crate::server::engine::keeper_link::KeeperLink;
use crate::server::engine::keeper_link::logs::{LogStatus, LogTrouble};
use crate::server::engine::ledger::kept::{By, Events};
use crate::server::engine::run_front::RunFront;
use crate::server::engine::watch::Watch;
use crate::server::engine::{Counters, Owner, Pending};
use crate::server::session::census::{Lookout, descendants};
use crate::server::session::doing::{NextLook, Seen, Sight};
use crate::server::session::members::Members;
use crate::server::session::ports::Listeners;
use crate::server::session::report::NamedProcess;
use crate::server::session::wait::{FamilyId, Wait};
use crate::server::session::{ClientId, Session, SessionId, Ticket};
use crate::sys::host;
use crate::sys::proc::ProcStat;

/// What judging one session has to do with others. The loop carries it out behind the judgement, so
/// that nothing recurses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// execd ends.
    Close(Cause),
    /// The command in front has ended, and its session is waited for.
    FollowFront,
    /// The sessions with a wait of this family are judged again.
    TouchWaiting(FamilyId),
}

/// Sessions on their way through the steps of a turn, each at most once in a queue.
#[derive(Debug, Default)]
pub struct Queues {
    /// Sessions with output to read.
    pub readable: VecDeque<SessionId>,
    /// Sessions to judge.
    pub touched: VecDeque<SessionId>,
    /// Sessions with a wait that is over, whose client has no room for the answer.
    pub held_back: BTreeSet<SessionId>,
    /// Sessions whose output is not read, for its readers have no room.
    pub held_readers: BTreeSet<SessionId>,
    /// Sessions with input to write.
    pub feedable: VecDeque<SessionId>,
    /// Sessions whose leader has ended and is not reaped yet.
    pub ended_leaders: BTreeSet<SessionId>,
}

impl Queues {
    /// A session has input to write.
    pub fn input_ready(&mut self, id: SessionId) {
        if !self.feedable.contains(&id) {
            self.feedable.push_back(id);
        }
    }
}

/// The buffer that output is read into, and the bounds of reading in a turn.
#[derive(Debug)]
pub struct Reading {
    /// What was read last.
    pub buffer: Vec<u8>,
    /// Bytes that may still be read in this turn.
    pub left: usize,
    /// Output that was to be read to its end was not, because nothing more may be read in the turn.
    pub drain_deferred: bool,
    /// What all raised pipes hold, against CHILD_PIPES_TOTAL_BYTES.
    pub raised_pipe_bytes: usize,
}

/// The context of whatever is done to one session.
#[derive(Debug)]
pub struct Cx<F: Families> {
    /// The turn's time on the monotonic clock.
    pub now_ns: u64,
    /// The turn's time on the wall clock, in milliseconds since 1970.
    pub wall_ms: i64,
    /// The settings.
    pub config: Config,
    /// The client on stdin and stdout, and those of the socket.
    pub clients: Clients,
    /// The requests that wait.
    pub pending: BTreeMap<Ticket, Pending>,
    /// The link to the log files and the guard.
    pub keeper: KeeperLink,
    /// What has happened to sessions.
    pub events: Events,
    /// The poll.
    pub watch: Watch,
    /// When what owns no session, and each session, is to be looked at.
    pub deadlines: Deadlines<Owner>,
    /// Which sessions are to be read, judged, fed or reaped.
    pub queues: Queues,
    /// The reading of output.
    pub reading: Reading,
    /// Looks at all processes.
    pub lookout: RefCell<Lookout>,
    /// Leaders that are not reaped yet, by pid.
    pub leaders: BTreeMap<i32, SessionId>,
    /// When sessions began: by that an orphan counts for one of them.
    pub starts: Starts,
    /// What the turn knows of TCP listeners.
    pub ports: Listeners,
    /// Bytes that texts were made of since a judgement last counted them.
    pub text_bytes: usize,
    /// What judging a session has to do with others, until the loop carries it out.
    pub effects: Vec<Effect>,
    /// Since when what was seen may be told by the answer that is given now, because the time of
    /// its wait is over.
    pub answers_since_ns: Option<u64>,
    /// What families remember.
    pub books: F::Books,
    /// The end of execd, once it has begun.
    pub closing: Option<Closing>,
    /// The command of `execd run`.
    pub front: Option<RunFront>,
    /// The counters.
    pub counters: Counters,
    /// The working directory at start.
    pub cwd: PathBuf,
    /// What chunk ids are made from.
    pub chunk_seed: u64,
}

impl<F: Families> Cx<F> {
    /// Puts a session on the list to be judged in this turn.
    pub fn touch(&mut self, core: &mut Session) {
        if !core.touched {
            core.touched = true;
            self.queues.touched.push_back(core.id);
        }
    }

    /// Begins to end everything of a session, or sends another signal to one that is being ended
    /// already.
    pub fn begin_ending(&mut self, core: &mut Session, signal: i32, grace_ms: u64, by: By<'_>) {
        if core.note_killing(by.reason, signal, grace_ms, self.now_ns) {
            // A person that a client has asked for is nobody whom that client would be told by.
            let person = matches!(by.reason, KilledBy::ExecdKill | KilledBy::TheUser);
            core.noted.killer = by.client.filter(|_| !person);
            self.note_kill(core, by);
        }
        self.end_members(core, signal, grace_ms);
    }

    /// The same for what a session has left behind that has ended by itself.
    pub fn end_members(&mut self, core: &mut Session, signal: i32, grace_ms: u64) {
        let members = self.members_of(core);
        core.begin_ending(members, signal, grace_ms, (self.now_ns, self.counters.turns));
        self.touch(core);
    }

    /// Ends everything in a session, for whom nobody is woken then.
    pub fn kill(&mut self, core: &mut Session, signal: i32, grace_ms: u64, by: By<'_>) {
        core.wake = None;
        self.begin_ending(core, signal, grace_ms, by);
    }

    /// Whether another session than this one runs: its leader has not ended.
    pub fn others_run(&self, id: SessionId) -> bool {
        self.leaders.values().any(|other| *other != id)
    }

    /// The members of a session: those whose end is the session's end.
    pub fn members_of(&self, core: &Session) -> Members {
        core.members(self.config.kill_detached)
    }

    /// Takes a waiting request off the books. The caller answers it now: so each is answered once.
    pub fn take_pending(&mut self, ticket: Ticket) -> Option<Pending> {
        let pending = self.pending.remove(&ticket);
        debug_assert!(pending.is_some(), "a wait without its request");
        if let Some(pending) = &pending
            && let Some(client) = self.clients.get_mut(pending.client)
        {
            client.in_flight.remove(&pending.id);
        }
        pending
    }

    /// The client that a wait's answer goes to.
    pub fn client_of(&self, wait: &Wait) -> ClientId {
        self.pending
            .get(&wait.ticket)
            .map_or(crate::server::engine::clients::STDIN_CLIENT, |one| one.client)
    }

    /// Whether the answer of a wait may be built: its client has room for it.
    pub fn has_room_for(&self, wait: &Wait) -> bool {
        self.clients.has_room(self.client_of(wait))
    }

    /// Whether the end of execd answers a client's requests with what they have.
    pub fn closes_for(&self, client: ClientId) -> bool {
        // The command in front is told of once its session is over, or is given up.
        let in_front =
            self.front.is_some() && client == crate::server::engine::clients::STDIN_CLIENT;
        self.closing.as_ref().is_some_and(|closing| {
            closing.answers_pending(client) && (!in_front || closing.is_flushing())
        })
    }

    /// The path of a session's log, once the file exists.
    pub fn log_path(&self, id: SessionId) -> Option<String> {
        self.keeper.status(id).and_then(|status| status.path)
    }

    /// The first byte of a session's output that its log still has, where it has lost some.
    pub fn log_from(&self, id: SessionId) -> Option<u64> {
        self.keeper.log_from(id)
    }

    /// Whether a session is over and its log has all of its output, or was waited for long enough:
    /// 250 ms from the end on.
    pub fn is_over_and_logged(&self, core: &Session) -> bool {
        let late = |ended_ns: u64| ended_ns + LOG_ACK_WAIT_MS * NS_PER_MS <= self.now_ns;
        core.finished_ns.is_some_and(|at_ns| late(at_ns) || self.keeper.settled(core.id))
    }

    /// The path of a session's log as texts name it, with what the log lacks.
    pub fn log_shown(&self, core: &Session) -> Option<String> {
        self.keeper.status(core.id).and_then(|status| status.shown(core.life.finished()))
    }

    /// What replies say of a session's log, with what went wrong with the session itself.
    pub fn log_status(&self, core: &Session) -> Option<LogStatus> {
        let log = self.keeper.status(core.id);
        let Some(trouble) = core.trouble() else { return log };
        let mut log = log.unwrap_or_else(LogStatus::whole);
        log.failure = Some(match log.failure {
            Some(failure) => format!("{trouble}; {failure}"),
            None => trouble,
        });
        Some(log)
    }

    /// What is wrong with a session's log; `over`: all of its output has come.
    pub fn log_trouble(&self, core: &Session, over: bool) -> LogTrouble {
        self.log_status(core).map(|status| status.trouble(over)).unwrap_or_default()
    }

    /// Who may hold the output of a session whose shell is gone: its members, or else the processes
    /// that have detached themselves from the session.
    pub fn holders(&self, core: &Session) -> Vec<ProcStat> {
        let mut found = self.living(&self.members_of(core));
        if found.is_empty() {
            found = self.detached_from(core);
        }
        found.truncate(NAMED_PROCESSES);
        found
    }

    /// The holders by their pids and names.
    pub fn named_holders(&self, core: &Session) -> Vec<NamedProcess> {
        self.holders(core).iter().map(NamedProcess::of).collect()
    }

    /// The session that an orphan counts for, which has left it by setsid and a second fork.
    pub fn session_of_orphan(&self, orphan: &ProcStat) -> Option<SessionId> {
        let is_helper = self.keeper.helpers().contains(&orphan.pid);
        (!is_helper).then(|| self.starts.last_before(orphan.start_ticks)).flatten()
    }

    /// The members of a session that live, for people: none where it cannot be told.
    pub fn living(&self, members: &Members) -> Vec<ProcStat> {
        if members.members_sid().is_none() {
            return Vec::new();
        }
        let mut lookout = self.lookout.borrow_mut();
        let census = lookout.at_once();
        let mut found = census.map_or_else(|_| Vec::new(), |census| members.living(census));
        found.retain(|one| one.start_ticks >= members.start_ticks);
        found
    }

    /// Who has left a session by setsid: what descends from a member, or from an orphan that counts
    /// for the session.
    fn detached_from(&self, core: &Session) -> Vec<ProcStat> {
        let mut lookout = self.lookout.borrow_mut();
        let Ok(census) = lookout.at_once() else { return Vec::new() };
        let whose = self.members_of(core);
        let sid = whose.members_sid();
        let members: Vec<i32> = match whose.joined {
            None => sid.into_iter().flat_map(|sid| census.pids_of(sid)).collect(),
            Some(_) => whose.living(census).iter().map(|one| one.pid).collect(),
        };
        let others = census.others(|sid| self.leaders.contains_key(&sid));
        let others: Vec<ProcStat> =
            others.iter().copied().filter(|one| !members.contains(&one.pid)).collect();
        let counts = |one: &ProcStat| self.session_of_orphan(one) == Some(core.id);
        descendants(&others, members, |one| one.ppid == host::pid() && counts(one))
    }

    /// What a session is doing now; at the end of a wait's time, what it was doing just before.
    pub fn doing(&self, core: &mut Session) -> Seen {
        let lookout = &mut self.lookout.borrow_mut();
        let since_ns = self.answers_since_ns.unwrap_or(self.now_ns);
        let leaders = &self.leaders;
        core.doing(since_ns, &mut Sight { now_ns: self.now_ns, lookout, leaders })
    }

    /// Takes the look that a list still needs of a session, where it is due.
    pub fn look_for_list(&mut self, core: &mut Session, since_ns: u64) -> NextLook {
        let lookout = &mut self.lookout.borrow_mut();
        let sight = &mut Sight { now_ns: self.now_ns, lookout, leaders: &self.leaders };
        core.look_for_list(since_ns, sight)
    }

    /// Takes the look at a session's processes that is due.
    pub fn step_quiet(&self, core: &mut Session) {
        let lookout = &mut self.lookout.borrow_mut();
        core.step_quiet(&mut Sight { now_ns: self.now_ns, lookout, leaders: &self.leaders });
    }

    /// The working directory that a command of this workdir has (or would have).
    pub fn resolved_cwd(&self, workdir: Option<&str>) -> String {
        self.resolve(workdir).to_string_lossy().into_owned()
    }

    /// The working directory as a path.
    pub fn resolve(&self, workdir: Option<&str>) -> PathBuf {
        match workdir {
            None => self.cwd.clone(),
            // Through its components, so that `./x` and `x/` read as they are meant.
            Some(dir) => self.cwd.join(dir).components().collect(),
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

    /// One line about a change of state on stderr, where EXECD_LOG=debug asks for it.
    pub fn debug(&self, what: std::fmt::Arguments<'_>) {
        if self.config.debug {
            // stderr is for people: one that can't be written to is their own affair.
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "turn {} {what}", self.counters.turns);
        }
    }
}
