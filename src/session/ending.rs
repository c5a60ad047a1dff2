//! Ending everything that belongs to a session (process-model.md, Killing).
//!
//! Members are found by their kernel session id, signalled through pidfds that were checked
//! after opening, and looked for again on each event until none is left. After the grace, what
//! is left gets SIGKILL the same way; after a further while the survivors are named.

use std::io;
use std::os::fd::RawFd;

use super::report::NamedProcess;
use crate::limits::{KILL_GIVE_UP_MS, NAMED_PROCESSES, NS_PER_MS, PROCESS_COMMAND_BYTES};
use crate::limits::{RESCANS_PER_TURN, SCAN_PAUSE_MS};
use crate::pure::run_mark::RunMark;
use crate::sys::proc::{self, ProcStat, Target};
use crate::sys::run_limit;

/// SIGKILL, SIGCONT and the default signal of kill_session, numbers of signal(7).
pub const SIGKILL: i32 = 9;
/// See [`SIGKILL`].
pub const SIGTERM: i32 = 15;
const SIGCONT: i32 = 18;
const EPERM: i32 = 1;

/// Whose end it is.
#[derive(Clone, Debug)]
pub struct Family {
    /// The kernel session id that members have.
    pub sid: i32,
    /// No member started before the leader did (clock ticks since boot).
    pub start_ticks: u64,
    /// What became of the number `sid`.
    pub number: Number,
    /// Which detached descendants are taken along.
    pub detached: Detached,
}

/// Which of those that descend from a session, but have left it by setsid, are members too.
#[derive(Clone, Debug)]
pub enum Detached {
    /// None of them.
    Spared,
    /// Those with a parent in the family, and orphans that have all these entries in their
    /// environment.
    Marked(Vec<Vec<u8>>),
    /// Those with a parent in the family, and orphans that have the mark of this run of pi.
    Run(Option<RunMark>),
}

/// What became of the number that names a session in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// The leader has it, until it is reaped.
    Leads,
    /// The leader was reaped, and members had the number then.
    Inherited,
    /// Nobody of the session is left: whoever has the number now is a stranger.
    Free,
}

impl Number {
    /// What it is now: once free it stays so, whoever gets it next.
    pub fn now(self, sid: i32) -> Self {
        match self {
            Self::Inherited if proc::session_is_over(sid) => Self::Free,
            other => other,
        }
    }
}

/// A process that was signalled.
#[derive(Debug)]
struct Member {
    target: Target,
    /// Whether the present signal was sent to it.
    signalled: bool,
    /// The errno of the last signal that could not be sent.
    refused: Option<i32>,
}

/// The way to a session's end.
#[derive(Debug)]
pub struct Ending {
    family: Family,
    began_ns: u64,
    /// The signal sent first.
    pub signal: i32,
    current: i32,
    escalate_ns: Option<u64>,
    give_up_ns: Option<u64>,
    /// Whether SIGKILL followed because something was left.
    pub escalated: bool,
    members: Vec<Member>,
    /// Look for members again although no event came: the last look found new ones.
    rescan_ns: Option<u64>,
    state: State,
    /// An event asks for another look at the members.
    pub look: bool,
    /// Whether a first look was taken.
    looked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Going,
    AllGone,
    GivenUp,
}

impl Family {
    /// Everything of this family that lives, for people: nobody where it cannot be told.
    pub fn living(&self) -> Vec<ProcStat> {
        self.look().unwrap_or_default()
    }

    /// The session that members are in, while there can be any.
    pub fn members_sid(&self) -> Option<i32> {
        (self.number.now(self.sid) != Number::Free).then_some(self.sid)
    }

    /// Whether nobody of this family lives; false where it cannot be told.
    pub fn is_gone(&self) -> bool {
        self.look().is_ok_and(|living| living.is_empty())
    }

    /// Everything of this family that lives. Errors: it cannot be told now (EMFILE, ENOMEM).
    fn look(&self) -> io::Result<Vec<ProcStat>> {
        let sid = self.members_sid();
        let ours = |found: &ProcStat| found.start_ticks >= self.start_ticks;
        if matches!(self.detached, Detached::Spared) {
            let Some(sid) = sid else { return Ok(Vec::new()) };
            return Ok(proc::members_of(sid)?.into_iter().filter(ours).collect());
        }
        let all: Vec<ProcStat> = proc::look_at_all()?;
        let members = all.iter().copied().filter(|one| Some(one.sid) == sid).filter(ours);
        let mut found: Vec<ProcStat> = members.collect();
        let us = crate::sys::host::pid();
        let orphans: Vec<ProcStat> = all.iter().copied().filter(|one| one.ppid == us).collect();
        found.extend(match &self.detached {
            Detached::Spared => Vec::new(),
            Detached::Marked(marks) => detached(&all, &orphans, sid, marks),
            Detached::Run(mark) => {
                let marked = |one: &ProcStat| {
                    mark.zip(run_limit::of(one.pid)).is_some_and(|(mark, limit)| mark.is_on(limit))
                };
                let ours = |one: &ProcStat| Some(one.sid) != sid && marked(one);
                descendants(&all, orphans.into_iter().filter(ours).collect(), sid)
            }
        });
        found.retain(|one| !matches!(one.state, b'Z' | b'X'));
        Ok(found)
    }
}

/// The detached descendants of the session `sid` among `all` (None: its members are gone): children
/// of members that left the session by setsid, those of `orphans` (children of execd that may be
/// anybody's) with the session's marks in their environment, and what descends from these.
pub fn detached(
    all: &[ProcStat],
    orphans: &[ProcStat],
    sid: Option<i32>,
    marks: &[Vec<u8>],
) -> Vec<ProcStat> {
    let marks: Vec<&[u8]> = marks.iter().map(Vec::as_slice).collect();
    let marked = |one: &ProcStat| Some(one.sid) != sid && proc::environ_has(one.pid, &marks);
    descendants(all, orphans.iter().copied().filter(marked).collect(), sid)
}

/// What descends from the session `sid` and has left it, with these `orphans` of it and what
/// descends from them.
fn descendants(all: &[ProcStat], orphans: Vec<ProcStat>, sid: Option<i32>) -> Vec<ProcStat> {
    let mut found = orphans;
    let mut parents: Vec<i32> = all.iter().filter(|p| Some(p.sid) == sid).map(|p| p.pid).collect();
    parents.extend(found.iter().map(|one| one.pid));
    // Each round adds at least one process or is the last: bounded by their number.
    loop {
        let next: Vec<ProcStat> = all
            .iter()
            .copied()
            .filter(|one| Some(one.sid) != sid && parents.contains(&one.ppid))
            .filter(|one| !found.iter().any(|known| known.pid == one.pid))
            .collect();
        if next.is_empty() {
            return found;
        }
        parents = next.iter().map(|one| one.pid).collect();
        found.extend(next);
    }
}

impl Ending {
    /// Begins to end a family with `signal`; SIGKILL follows `grace_ms` later. Nothing has been
    /// sent yet: see [`Self::step`].
    pub fn new(family: Family, signal: i32, grace_ms: u64, now_ns: u64) -> Self {
        let at_once = signal == SIGKILL;
        let give_up = now_ns + KILL_GIVE_UP_MS * NS_PER_MS;
        Self {
            family,
            began_ns: now_ns,
            signal,
            current: signal,
            escalate_ns: (!at_once).then(|| now_ns + grace_ms * NS_PER_MS),
            give_up_ns: at_once.then_some(give_up),
            escalated: false,
            members: Vec::new(),
            rescan_ns: None,
            state: State::Going,
            look: true,
            looked: false,
        }
    }

    /// Sends `signal` to what is there too (a second kill_session, or the shutdown): SIGKILL
    /// takes over at once, another one is sent besides.
    pub fn also(&mut self, signal: i32, grace_ms: u64, now_ns: u64) {
        self.state = State::Going;
        self.look = true;
        let sooner = now_ns + grace_ms * NS_PER_MS;
        if signal == SIGKILL {
            // The look that was just asked for is what sends it.
            self.escalate_ns = (self.current != SIGKILL).then_some(now_ns);
            if self.current == SIGKILL {
                self.give_up_ns = Some(now_ns + KILL_GIVE_UP_MS * NS_PER_MS);
            }
        } else if self.current != SIGKILL {
            self.current = signal;
            self.escalate_ns = self.escalate_ns.map(|at| at.min(sooner));
            self.signal_all();
        }
    }

    /// The leader was reaped: from here on its number is held by members only.
    pub fn leader_reaped(&mut self, number: Number) {
        self.family.number = number;
        self.look = true;
    }

    fn signal_all(&mut self) {
        for member in &mut self.members {
            member.send(self.current);
        }
    }

    /// When it began, monotonic.
    pub fn began_ns(&self) -> u64 {
        self.began_ns
    }

    /// Whether nothing of the family is left.
    pub fn all_gone(&self) -> bool {
        self.state == State::AllGone
    }

    /// Whether it ended, or could not be ended in time.
    pub fn over(&self) -> bool {
        self.state != State::Going
    }

    /// Whether SIGKILL was sent.
    pub fn sent_sigkill(&self) -> bool {
        self.current == SIGKILL
    }

    /// When to step again if no event comes. A look that is asked for is an event: it is taken in
    /// the next judgement, so nothing that is due with it is a deadline.
    pub fn next_due_ns(&self) -> Option<u64> {
        if self.over() || self.look {
            return None;
        }
        [self.escalate_ns, self.give_up_ns, self.rescan_ns].into_iter().flatten().min()
    }

    /// Looks for members, signals those that are new, moves on to SIGKILL and to giving up when
    /// it is time. Gives the pidfds that are new: an event on one of them asks for another step.
    pub fn step(&mut self, now_ns: u64) -> Vec<RawFd> {
        let mut watch = Vec::new();
        if self.over() {
            return watch;
        }
        self.look = false;
        self.rescan_ns = None;
        self.family.number = self.family.number.now(self.family.sid);
        let mut living = self.rescan(&mut watch);
        if living && self.escalate_ns.is_some_and(|at| at <= now_ns) {
            self.escalate_ns = None;
            self.escalated = true;
            self.current = SIGKILL;
            self.give_up_ns = Some(now_ns + KILL_GIVE_UP_MS * NS_PER_MS);
            self.signal_all();
            living = self.rescan(&mut watch);
        }
        // What was forked while we looked is found by looking again; a fork bomb loses.
        for _ in 0..RESCANS_PER_TURN {
            if !living || self.rescan_ns.is_none() {
                break;
            }
            self.rescan_ns = None;
            living = self.rescan(&mut watch);
        }
        if !living {
            self.state = State::AllGone;
        } else if self.give_up_ns.is_some_and(|at| at <= now_ns) {
            self.state = State::GivenUp;
        } else if self.rescan_ns.is_some() {
            self.rescan_ns = Some(now_ns + SCAN_PAUSE_MS * NS_PER_MS);
        }
        watch
    }

    /// One look: forgets who is gone, takes in who is new (and then asks for another look),
    /// signals them. Whether anybody lives.
    fn rescan(&mut self, watch: &mut Vec<RawFd>) -> bool {
        let Ok(living) = self.family.look() else {
            // Who takes "cannot be told" for "gone" leaves them running.
            self.rescan_ns = Some(0);
            return true;
        };
        let is = |target: &Target, found: &ProcStat| {
            target.pid() == found.pid && target.start_ticks() == found.start_ticks
        };
        let first_look = !self.looked;
        self.looked = true;
        self.members.retain(|member| living.iter().any(|found| is(&member.target, found)));
        let known = self.members.len();
        for found in &living {
            if !self.members[..known].iter().any(|member| is(&member.target, found)) {
                // One that is gone by now is no member; one that can't be opened (EMFILE) is
                // tried again at the next look.
                if let Ok(Some(target)) = proc::open_target(found) {
                    watch.push(target.fd());
                    self.members.push(Member { target, signalled: false, refused: None });
                }
            }
        }
        for member in self.members.iter_mut().filter(|member| !member.signalled) {
            // What a member starts after the signal is how it cleans up (a trap's commands): it
            // is spared until SIGKILL, for as long as the one who started it lives.
            let parent = living.iter().find(|found| is(&member.target, found)).map(|one| one.ppid);
            let cleaning = living.iter().any(|found| Some(found.pid) == parent);
            if first_look || !cleaning || self.current == SIGKILL {
                member.send(self.current);
            }
        }
        if known < living.len() {
            self.rescan_ns = Some(0);
        }
        !living.is_empty()
    }

    /// What is still there, with the reason, at most [`NAMED_PROCESSES`] of them.
    pub fn survivors(&self) -> Vec<NamedProcess> {
        self.members
            .iter()
            .take(NAMED_PROCESSES)
            .map(|member| NamedProcess {
                pid: member.target.pid(),
                command: proc::command(member.target.pid(), PROCESS_COMMAND_BYTES),
                reason: Some(match member.refused {
                    Some(EPERM) => "EPERM: it belongs to another user".to_owned(),
                    Some(errno) => format!("it could not be signalled (errno {errno})"),
                    None => "it does not end although SIGKILL was sent (uninterruptible)".into(),
                }),
            })
            .collect()
    }
}

impl Member {
    fn send(&mut self, signal: i32) {
        self.signalled = true;
        self.refused = self.target.signal(signal).err().and_then(|error| error.raw_os_error());
        if signal != SIGKILL {
            // A stopped process acts on a signal only when it is continued.
            let _ = self.target.signal(SIGCONT);
        }
    }
}
