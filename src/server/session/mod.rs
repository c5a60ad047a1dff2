//! One session: a command, its descriptors, what it wrote and who waits for it
//! (architecture.md, A session).
//!
//! A session knows processes and bytes, no JSON and no family: requests are tickets here, and what
//! a family wants treated otherwise is in [`Ways`]. The engine moves a session along in the steps
//! of its turn; nothing in here waits.

pub mod asked;
pub mod census;
pub mod doing;
pub mod drain;
mod due;
pub mod ending;
mod facts;

pub mod holders;
pub mod idle;
pub mod input;
pub mod killing;
pub mod listening;
pub mod members;
pub mod output;
pub mod ports;
pub mod probe;
pub mod quiet;
pub mod report;
pub mod start;
pub mod state_report;
pub mod view;
pub mod viewers;
pub mod wait;
pub mod wait_report;

use std::os::fd::OwnedFd;

use crate::limits::{EARLY_EXIT_GRACE_PERIOD_MS, NS_PER_MS};
use crate::pure::buffer::head_tail::TailRing;
use crate::pure::process::life::{ExitStatus, Fact, Life, Stream};
use crate::pure::terminal::line::LineChars;
use crate::pure::terminal::modes::TermModes;
use crate::pure::text::utf8::chars_in;
use crate::sys::child::Usage;
use crate::sys::proc_view;
use crate::sys::pty;
use doing::Doing;
use drain::Draining;
use ending::Ending;
pub use facts::Facts;
use input::Input;
use killing::Noted;
use members::{Members, Number};
use output::{Output, Source};
use ports::PortLook;
use start::Start;
use view::View;
use viewers::Viewers;
use wait::Wait;

/// How much longer than any grace a leader has that ends what it has started.
const LEADER_ENDS_MS: u64 = 10_000;

/// The number a client knows a session by. Rises from 1, never reused.
pub type SessionId = u64;
/// Names one waiting request across all clients.
pub type Ticket = u64;
/// Names one client: one connection.
pub type ClientId = u64;

/// Whether a session is in unified-exec's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Not yet: the session is younger than the early-exit grace and no client knows its id.
    Early,
    /// In the table.
    Listed,
    /// Removed: observed, evicted, or over before it was listed. What is left is cleaning up.
    Gone,
}

/// How a family wants its sessions treated: decided when the family takes the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// The family has a cap of its own: the session takes nobody's place in the table.
    pub own_cap: bool,
    /// The family tells a shell's end as the session's end: who holds the output then is waited
    /// for, a bounded while.
    pub drains: bool,
    /// The log keeps stdout and stderr apart, so that each can be read by itself.
    pub apart: bool,
    /// What has left the session by setsid is ended with it: nothing of it may be left behind.
    pub whole: bool,
    /// The leader ends what it has started: at the session's end it alone is sent the first signal,
    /// and has [`LEADER_ENDS_MS`] more before SIGKILL follows.
    pub leader_first: bool,
    /// The leader's stdout speaks to the session's family alone: neither log nor views have it.
    pub speaks: bool,
    /// The session enters the table as soon as its program runs.
    pub listed_early: bool,
}

/// One session.
#[derive(Debug)]
pub struct Session {
    /// Its number.
    pub id: SessionId,
    /// What does not change.
    pub facts: Facts,
    /// The leader's way to its program.
    pub start: Start,
    /// The leader's life and the stream's.
    pub life: Life,
    /// What became of the leader's pid, the number by which members are known.
    pub number: Number,
    /// When the leader was reaped.
    pub reaped_ns: Option<u64>,
    /// What is waited for after its shell's end, where a family tells that as an end.
    draining: Option<Box<Draining>>,
    /// When both leader and stream had ended.
    pub finished_ns: Option<u64>,
    /// What the leader used.
    pub usage: Usage,
    /// What orphans used that the session had started, as far as we have reaped them.
    pub orphans: Usage,
    /// The leader's pidfd, until it is reaped.
    pub pidfd: Option<OwnedFd>,
    /// What went wrong with reading its output, or with taking its end.
    fault: Option<String>,
    /// How often in a row the leader's end could not be taken.
    pub reap_failures: u32,
    /// Where output is read from.
    pub output: Output,
    /// Where stderr is read from, when it is apart.
    pub errors: Option<Output>,
    /// Stderr had something before stdout had: stderr is read first.
    pub errors_first: bool,
    /// Bytes of output that were read since the leader's end, which is noted when all is read.
    pub drained_bytes: usize,
    /// The child's stdin.
    pub input: Input,
    /// What unified-exec has not yet told.
    pub view: View,
    /// The last output, for progress, final tails, and who attaches.
    pub tail: TailRing,
    /// The requests that wait, oldest first.
    pub waits: Vec<Wait>,
    /// Until when the end of stdin leaves it alone, for the sake of a request without an id.
    pub unheard_until_ns: Option<u64>,
    /// A request was answered that nothing can end its wait any more, and none waits since.
    pub stuck: bool,
    /// Its place in the table.
    pub listing: Listing,
    /// The client whose wake is armed.
    pub wake: Option<ClientId>,
    /// The way to the session's end, once somebody asked for that.
    pub ending: Option<Ending>,
    /// Whether session_started was sent.
    pub announced: bool,
    /// The log had no name yet when session_started was sent, and no progress has named it since.
    pub log_unnamed: bool,
    /// Whether session_exited was sent.
    pub exit_told: bool,
    /// The use counter's value when a call last named it.
    pub last_used: u64,
    /// Whether execd sent its members SIGKILL.
    pub killed_by_us: bool,
    /// What the ledger of events has been told of it.
    pub noted: Noted,
    /// The word of its exit waits for its log.
    pub awaits_log: bool,
    /// A listing has told its exit.
    pub observed: bool,
    /// The log of a session that was retired.
    pub closed_log_path: Option<String>,
    /// Input was lost because the child closed its stdin, and no reply has said so yet.
    pub input_lost: bool,
    /// Whether it is in the engine's queue of sessions to judge.
    pub touched: bool,
    /// Who is attached.
    pub viewers: Viewers,
    /// What the program has set in its terminal, where it has one.
    pub modes: Option<Box<TermModes>>,
    /// Characters that the command has written, told by their first bytes, once not all of them
    /// are in the tape.
    chars: Option<u64>,
    /// What is known of what its processes are at.
    doing: Doing,
    /// How its family wants it treated.
    pub ways: Ways,
    /// Bytes of output that came on stderr, where that is apart.
    pub errors_total: u64,
    /// When output came last, or when the session began.
    pub output_ns: u64,
    /// What is kept while somebody waits for a port of it.
    pub ports: Option<Box<PortLook>>,
}

impl Session {
    /// A session whose leader has just been started; its tape has the last `tail_bytes` of output.
    pub fn new(
        id: SessionId,
        facts: Facts,
        (pidfd, start): (OwnedFd, Start),
        output: Output,
        input: Input,
        tail_bytes: usize,
    ) -> Self {
        let tty = facts.tty;
        Self {
            id,
            facts,
            start,
            life: Life::default(),
            number: Number::Leads,
            reaped_ns: None,
            draining: None,
            finished_ns: None,
            usage: Usage::default(),
            orphans: Usage::default(),
            pidfd: Some(pidfd),
            fault: None,
            reap_failures: 0,
            output,
            errors: None,
            errors_first: false,
            drained_bytes: 0,
            input,
            view: View::default(),
            tail: TailRing::new(tail_bytes),
            waits: Vec::new(),
            unheard_until_ns: None,
            stuck: false,
            listing: Listing::Early,
            wake: None,
            ending: None,
            announced: false,
            log_unnamed: false,
            exit_told: false,
            last_used: 0,
            killed_by_us: false,
            noted: Noted::default(),
            awaits_log: false,
            observed: false,
            closed_log_path: None,
            input_lost: false,
            touched: false,
            viewers: Viewers::default(),
            modes: tty.then(Box::default),
            chars: None,
            doing: Doing::default(),
            ways: Ways::default(),
            errors_total: 0,
            output_ns: 0,
            ports: None,
        }
    }

    /// Takes note of a fact about the leader or the stream at `now_ns`.
    pub fn learn(&mut self, fact: Fact, now_ns: u64) {
        self.life = self.life.after(fact);
        if let Fact::Reaped(_) = fact {
            self.reaped_ns = Some(now_ns);
            if self.ways.drains && self.life.shell_gone() {
                self.draining = Some(Box::new(Draining::new(now_ns)));
            }
        }
        if self.life.finished() && self.finished_ns.is_none() {
            self.finished_ns = Some(now_ns);
        }
    }

    /// The stream of this name, where the session has it.
    pub fn stream(&mut self, source: Source) -> Option<&mut Output> {
        match source {
            Source::Output => Some(&mut self.output),
            Source::Errors => self.errors.as_mut(),
        }
    }

    /// Whether nothing will come any more on either stream.
    pub fn streams_closed(&self) -> bool {
        self.output.fd().is_none() && self.errors.as_ref().is_none_or(|one| one.fd().is_none())
    }

    /// From now on what comes is read and dropped.
    pub fn drop_output(&mut self) {
        self.output.dropped = true;
        if let Some(errors) = &mut self.errors {
            errors.dropped = true;
        }
    }

    /// Only the session's members matter from here on: gives back what it held.
    pub fn retire(&mut self, log_path: Option<String>) {
        self.view = View::new(0);
        self.tail.stop_keeping();
        self.modes = None;
        self.ending = None;
        self.touched = false;
        self.closed_log_path = log_path.or(self.closed_log_path.take());
    }

    /// Takes in output that came on `source` at `now_ns`.
    pub fn take(&mut self, source: Source, bytes: &[u8], now_ns: u64) {
        self.view.push(bytes);
        self.count_chars(bytes);
        self.tail.push(bytes);
        if source == Source::Errors {
            self.errors_total += bytes.len() as u64;
        }
        if self.life.stream == Stream::Quiet {
            self.learn(Fact::Bytes, now_ns);
        }
        self.output_ns = now_ns;
        self.note_output(now_ns);
    }

    /// Shows output that came to the waits that look for patterns. Whether the session is to be
    /// judged for it.
    pub fn show_waits(&mut self, bytes: &[u8]) -> bool {
        let mut judged = false;
        for asked in self.waits.iter_mut().filter_map(|wait| wait.asked.as_mut()) {
            judged |= asked.take(bytes);
        }
        judged
    }

    /// Bytes of output since the start.
    pub fn output_bytes_total(&self) -> u64 {
        self.tail.total_bytes()
    }

    /// Takes note of output that is about to be kept. Its characters are counted for the stream
    /// family only, which may never ask: as long as all is kept they can be counted then. Where the
    /// streams are apart, that family counts by itself.
    fn count_chars(&mut self, bytes: &[u8]) {
        if self.ways.apart {
            return;
        }
        if let Some(chars) = &mut self.chars {
            *chars += chars_in(bytes);
        } else if self.tail.would_drop(bytes.len()) {
            self.chars = Some(chars_in(&self.tail.to_vec()) + chars_in(bytes));
        }
    }

    /// Characters that the command has written.
    pub fn output_chars(&self) -> u64 {
        self.chars.unwrap_or_else(|| chars_in(&self.tail.to_vec()))
    }

    /// Bytes of output that a reply has told, or left out with a word about it.
    pub fn told_bytes(&self) -> u64 {
        self.output_bytes_total().saturating_sub(self.view.unread_bytes())
    }

    /// What went wrong with the session, as replies tell.
    pub fn trouble(&self) -> Option<String> {
        self.start.failure().map(str::to_owned).or_else(|| self.fault.clone())
    }

    /// Notes what went wrong with the session; the first trouble is told.
    pub fn note_trouble(&mut self, what: String) {
        self.fault.get_or_insert(what);
    }

    /// Whether its program could not be started and nobody has been told of the session: only the
    /// answer of the call that was to start it tells of it.
    pub fn never_was(&self) -> bool {
        self.start.failure().is_some() && !self.announced
    }

    /// Whether it is not known yet what has become of the leader's way to its program.
    pub fn is_starting(&self) -> bool {
        self.start.fd().is_some()
    }

    /// What the leader and what it started used, as far as we have reaped it; None before the
    /// leader has ended, and where it never ran.
    pub fn tree_usage(&self) -> Option<Usage> {
        let ran = self.status().is_some() && self.start.failure().is_none();
        ran.then(|| self.usage.with(self.orphans))
    }

    /// Whether requests wait for the session.
    pub fn is_awaited(&self) -> bool {
        !self.waits.is_empty()
    }

    /// Whether somebody is still to be told what becomes of the session: a request that waits for
    /// others too, and knows the end of this one, keeps nobody from being told of that end.
    pub fn is_awaited_now(&self) -> bool {
        self.waits.iter().any(|wait| !wait.parked)
    }

    /// How the leader ended, once it was reaped.
    pub fn status(&self) -> Option<ExitStatus> {
        self.life.status()
    }

    /// When the early-exit grace of a session that has not ended is over: it then enters the
    /// table and is announced.
    pub fn grace_ends_ns(&self) -> Option<u64> {
        let waits = !self.announced && self.listing != Listing::Gone && !self.life.finished();
        waits.then(|| self.facts.started_ns + EARLY_EXIT_GRACE_PERIOD_MS * NS_PER_MS)
    }

    /// The members: those whose end is this session's end. `kill_detached`: whoever has left a
    /// session by setsid is ended with the session, whatever its family wants.
    pub fn members(&self, kill_detached: bool) -> Members {
        // Without /proc nobody's parent is known.
        let takes_detached = (self.ways.whole || kill_detached) && proc_view::tells();
        Members {
            sid: self.facts.pid,
            joined: self.facts.joins,
            start_ticks: self.facts.start_ticks,
            number: self.number,
            takes_detached,
        }
    }

    /// Begins to end all members with `signal`, or sends them another signal where they are being
    /// ended already; SIGKILL follows `grace_ms` later.
    pub fn begin_ending(&mut self, members: Members, signal: i32, grace_ms: u64, at: (u64, u64)) {
        let (now_ns, turn) = at;
        let leader_first = self.ways.leader_first && self.status().is_none();
        let grace_ms = if leader_first { grace_ms + LEADER_ENDS_MS } else { grace_ms };
        match &mut self.ending {
            Some(ending) if !ending.over() => ending.also(signal, grace_ms, now_ns, turn),
            ending => {
                let new = Ending::new(members, signal, grace_ms, now_ns, turn);
                *ending = Some(if leader_first { new.leader_first(grace_ms) } else { new });
            }
        }
    }

    /// The line discipline's characters while the session's terminal is in canonical mode.
    pub fn canonical_mode(&self) -> Option<LineChars> {
        self.output.fd().and_then(pty::canonical_mode)
    }

    /// Asserts what always holds.
    pub fn check(&self) {
        debug_assert_eq!(self.pidfd.is_none(), self.status().is_some(), "pidfd until reaped");
        debug_assert_eq!(self.life.finished(), self.finished_ns.is_some(), "time of the end");
        debug_assert!(self.waits.is_sorted_by_key(|wait| wait.ticket), "oldest wait first");
    }
}
