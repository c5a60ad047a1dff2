//! Ending everything that belongs to a session (architecture.md, Ending a session).
//!
//! Members are found by their kernel session id in a census, signalled through pidfds that were
//! checked after opening, and looked for again on each event until none is left. After the grace,
//! what is left gets SIGKILL the same way; after a further while the survivors are named. Where
//! /proc tells nothing, the leader's process group is all that is known of a session.

use std::os::fd::RawFd;

use super::census::Lookout;
use super::members::{Members, Number};
use super::report::NamedProcess;
use crate::limits::{KILL_GIVE_UP_MS, NAMED_PROCESSES, NS_PER_MS};
use crate::sys::proc::{self, ProcStat, Target};
use crate::sys::{pidfd, poll, proc_view};

/// Pause between two looks for processes of a session that makes new ones while it is ended.
const SCAN_PAUSE_MS: u64 = 1;

/// Pause between two looks for processes whose ends nothing tells of: pidfds are refused.
const UNWATCHED_PAUSE_MS: u64 = 20;

/// Looks that find nobody in a session whose number is taken, before that is believed: /proc may
/// hide processes (hidepid), and a look may miss who was forked during it.
const EMPTY_LOOKS: u32 = 8;

/// SIGKILL, SIGCONT and the default signal of kill_session, numbers of signal(7).
pub const SIGKILL: i32 = 9;
/// See [`SIGKILL`].
pub const SIGTERM: i32 = 15;
const SIGCONT: i32 = 18;
const EPERM: i32 = 1;

/// A process that was signalled.
#[derive(Debug)]
struct Member {
    target: Target,
    /// Whether the present signal was sent to the process.
    signalled: bool,
    /// The errno of the last signal that could not be sent.
    refused: Option<i32>,
}

/// The way to a session's end.
#[derive(Debug)]
pub struct Ending {
    whose: Members,
    began_ns: u64,
    /// The signal sent first.
    pub signal: i32,
    current: i32,
    escalate_ns: Option<u64>,
    give_up_ns: Option<u64>,
    /// Whether SIGKILL followed because something was left.
    pub escalated: bool,
    /// Whether the leader was sent a signal while it ran.
    reached_leader: bool,
    members: Vec<Member>,
    /// The signal that the process group was sent last, where /proc tells of no member.
    group_sent: Option<i32>,
    /// Until then the first signal is the leader's alone, while the leader lives.
    leader_first_ns: Option<u64>,
    /// Look for members again although no event came: the last look found new ones.
    rescan_ns: Option<u64>,
    state: State,
    /// Something asks for another look at the members, by a census of this turn or a later one.
    look: Option<u64>,
    /// Whether a first look was taken.
    looked: bool,
    /// Looks in a row that found nobody although the number is taken.
    empty_looks: u32,
}

/// What a look came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looked {
    /// Nobody of the session is left.
    Nobody,
    /// Somebody is, or it cannot be told now.
    Somebody,
    /// Nobody is where the census saw somebody.
    Moved,
    /// The look goes on in the next turn.
    Later,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Going,
    AllGone,
    GivenUp,
}

impl Ending {
    /// Begins to end members with `signal`; SIGKILL follows `grace_ms` later. Nothing has been
    /// sent yet: see [`Self::step`].
    pub fn new(whose: Members, signal: i32, grace_ms: u64, now_ns: u64, turn: u64) -> Self {
        let at_once = signal == SIGKILL;
        let give_up = now_ns + KILL_GIVE_UP_MS * NS_PER_MS;
        Self {
            whose,
            began_ns: now_ns,
            signal,
            current: signal,
            escalate_ns: (!at_once).then(|| now_ns + grace_ms * NS_PER_MS),
            give_up_ns: at_once.then_some(give_up),
            escalated: false,
            reached_leader: false,
            members: Vec::new(),
            group_sent: None,
            leader_first_ns: None,
            rescan_ns: None,
            state: State::Going,
            look: Some(turn),
            looked: false,
            empty_looks: 0,
        }
    }

    /// The leader ends what it has started by itself, and only it knows in which order: it has so
    /// long for that before all others are sent the signal too. SIGKILL is everybody's at once.
    pub fn leader_first(mut self, for_ms: u64) -> Self {
        let until_ns = self.began_ns + for_ms * NS_PER_MS;
        self.leader_first_ns = (self.current != SIGKILL).then_some(until_ns);
        self
    }

    /// The leader is gone, or had its time: what is there is sent the signal now, also what members
    /// have started.
    fn step_leader_first(&mut self, now_ns: u64) {
        let gone = self.whose.number != Number::Leads;
        if self.leader_first_ns.is_some_and(|until| gone || until <= now_ns) {
            self.leader_first_ns = None;
            self.group_sent = None;
            self.looked = false;
        }
    }

    /// Sends `signal` to what is there too (a second kill_session, or the shutdown): SIGKILL
    /// takes over at once, another one is sent besides.
    pub fn also(&mut self, signal: i32, grace_ms: u64, now_ns: u64, turn: u64) {
        self.state = State::Going;
        self.ask(turn);
        let sooner = now_ns + grace_ms * NS_PER_MS;
        if signal == SIGKILL {
            // The look that was just asked for is what sends it.
            self.escalate_ns = (self.current != SIGKILL).then_some(now_ns);
            if self.current == SIGKILL {
                self.give_up_ns = Some(now_ns + KILL_GIVE_UP_MS * NS_PER_MS);
            }
        } else if self.current != SIGKILL {
            self.current = signal;
            self.leader_first_ns = None;
            self.group_sent = None;
            self.escalate_ns = self.escalate_ns.map(|at| at.min(sooner));
            self.signal_all();
        }
    }

    /// Something happened in this turn: the members are to be looked at.
    pub fn ask(&mut self, turn: u64) {
        self.look = self.look.max(Some(turn));
    }

    /// Whether a look is asked for, or goes on.
    pub fn wants_look(&self) -> bool {
        self.look.is_some() && !self.over()
    }

    /// The leader was reaped: from here on its number is held by members only.
    pub fn leader_reaped(&mut self, number: Number, turn: u64) {
        self.whose.number = number;
        self.ask(turn);
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

    /// Whether nothing of the session is left.
    pub fn all_gone(&self) -> bool {
        self.state == State::AllGone
    }

    /// Whether it ended, or could not be ended in time.
    pub fn over(&self) -> bool {
        self.state != State::Going
    }

    /// Whether the leader was sent a signal: it had not ended before by itself.
    pub fn reached_leader(&self) -> bool {
        self.reached_leader
    }

    /// Whether SIGKILL was sent.
    pub fn sent_sigkill(&self) -> bool {
        self.current == SIGKILL
    }

    /// When to step again if no event comes. A look that is asked for is an event: it is taken in
    /// the next judgement, so nothing that is due with it is a deadline.
    pub fn next_due_ns(&self) -> Option<u64> {
        if self.over() || self.wants_look() {
            return None;
        }
        let due = [self.escalate_ns, self.give_up_ns, self.rescan_ns, self.leader_first_ns];
        due.into_iter().flatten().min()
    }

    /// Looks for members, signals those that are new, moves on to SIGKILL and to giving up when
    /// it is time. Gives the pidfds that are new: an event on one of them asks for another step.
    /// Sessions that are `ours` have none of those who left this one.
    pub fn step(
        &mut self,
        now_ns: u64,
        lookout: &mut Lookout,
        ours: &impl Fn(i32) -> bool,
    ) -> Vec<RawFd> {
        let mut watch = Vec::new();
        if self.over() {
            return watch;
        }
        let turn = self.look.take().unwrap_or_else(|| lookout.turn());
        self.rescan_ns = None;
        self.whose.number = self.whose.number.now(self.whose.sid);
        self.step_leader_first(now_ns);
        let looked = if proc_view::tells() {
            self.rescan(turn, lookout, ours, &mut watch)
        } else {
            Ok(self.signal_group())
        };
        let looked = looked.unwrap_or_else(|_| {
            // Whoever takes "cannot be told" for "gone" leaves them running.
            self.rescan_ns = Some(now_ns + SCAN_PAUSE_MS * NS_PER_MS);
            Looked::Somebody
        });
        match looked {
            Looked::Nobody if self.is_believed() => self.state = State::AllGone,
            Looked::Nobody => self.rescan_ns = Some(now_ns + SCAN_PAUSE_MS * NS_PER_MS),
            Looked::Moved => {
                self.empty_looks = 0;
                self.look = Some(lookout.turn() + 1);
            }
            Looked::Later => self.look = Some(turn),
            Looked::Somebody => self.empty_looks = 0,
        }
        if self.over() || looked == Looked::Later {
            return watch;
        }
        if self.group_sent.is_some() || self.members.iter().any(|one| one.target.fd().is_none()) {
            // Nothing will tell of its end.
            self.rescan_ns = Some(now_ns + UNWATCHED_PAUSE_MS * NS_PER_MS);
        }
        if self.escalate_ns.is_some_and(|at| at <= now_ns) {
            self.escalate_ns = None;
            self.escalated = true;
            self.current = SIGKILL;
            self.leader_first_ns = None;
            self.give_up_ns = Some(now_ns + KILL_GIVE_UP_MS * NS_PER_MS);
            self.signal_all();
            // What was forked while we looked is found by looking again.
            self.look = Some(lookout.turn() + 1);
        } else if self.give_up_ns.is_some_and(|at| at <= now_ns) {
            self.state = State::GivenUp;
        }
        watch
    }

    /// Whether a look that found nobody is the end: the number is free, or it was looked at often
    /// enough who has it. Those that have left have no number: a look may miss who was forked
    /// during it by one that died during it, and the next one sees him.
    fn is_believed(&mut self) -> bool {
        self.empty_looks += 1;
        let free = self.whose.is_over();
        let again = self.whose.takes_detached && self.empty_looks < 2;
        (free || self.empty_looks > EMPTY_LOOKS) && !again
    }

    /// One look: forgets who is gone, takes in who is new, signals them. Errors: it cannot be told
    /// now (EMFILE, ENOMEM).
    fn rescan(
        &mut self,
        turn: u64,
        lookout: &mut Lookout,
        ours: &impl Fn(i32) -> bool,
        watch: &mut Vec<RawFd>,
    ) -> Result<Looked, i32> {
        let fds = self.members.iter().filter_map(|one| one.target.fd());
        let mut ended = poll::are_readable(fds).into_iter();
        // First, because the look may need the descriptors that this gives back.
        self.members.retain(|one| match one.target.fd() {
            Some(_) => ended.next() == Some(false),
            None => one.target.is_there(),
        });
        let seen: Vec<i32> = self.members.iter().map(|one| one.target.pid()).collect();
        let Some(candidates) = self.whose.candidates(turn, lookout, ours, &seen)? else {
            return Ok(Looked::Later);
        };
        let is_candidate = |pid| candidates.binary_search_by_key(&pid, |one| one.0).is_ok();
        self.members.retain(|one| is_candidate(one.target.pid()));
        self.members.sort_by_key(|one| one.target.pid());
        let known = self.members.len();
        let (mut whole, mut moved, mut opened) = (true, false, Ok(()));
        for &(pid, sid) in &candidates {
            if self.members[..known].binary_search_by_key(&pid, |one| one.target.pid()).is_ok() {
                continue;
            }
            if !lookout.may_open() {
                whole = false;
                break;
            }
            match self.open_candidate((pid, sid), is_candidate, ours) {
                Err(errno) => {
                    // Those that were opened are signalled: their ends make room for the next.
                    opened = Err(errno);
                    break;
                }
                Ok(Some((_, seen))) if !seen.is_alive() => {}
                Ok(Some((target, seen))) if seen.start_ticks >= self.whose.start_ticks => {
                    watch.extend(target.fd());
                    self.members.push(Member { target, signalled: false, refused: None });
                }
                Ok(Some(_)) => {}
                Ok(None) => moved = true,
            }
        }
        self.signal_new();
        let leader = self.whose.sid;
        let is_reached =
            |one: &Member| one.target.pid() == leader && one.signalled && one.refused.is_none();
        self.reached_leader |= self.members.iter().any(is_reached);
        opened?;
        self.looked |= whole;
        Ok(match (whole, self.members.is_empty()) {
            (false, _) => Looked::Later,
            // Gone since the census, and perhaps with a child that it has not seen.
            (true, true) if moved => Looked::Moved,
            (true, true) => Looked::Nobody,
            (true, false) => Looked::Somebody,
        })
    }

    /// Pins a candidate. Where a session takes along what has left it, a candidate that called
    /// setsid after the census is a member while its parent is a candidate.
    fn open_candidate(
        &self,
        (pid, sid): (i32, i32),
        is_candidate: impl Fn(i32) -> bool,
        ours: &impl Fn(i32) -> bool,
    ) -> Result<Option<(Target, ProcStat)>, i32> {
        let opened = proc::open_member(pid, sid)?;
        if opened.is_some() || !self.whose.takes_detached {
            return Ok(opened);
        }
        let has_left = |now: &ProcStat| now.is_alive() && now.sid != sid && !ours(now.sid);
        let now = proc::stat(pid).filter(|now| has_left(now) && is_candidate(now.ppid));
        let Some(now) = now else { return Ok(None) };
        let opened = proc::open_member(pid, now.sid)?;
        Ok(opened.filter(|(_, seen)| seen.start_ticks == now.start_ticks))
    }

    /// Sends the present signal to the leader's process group, or to the leader alone while it is
    /// the first one. Nobody else has the number while the leader was not reaped or somebody is in
    /// its group.
    fn signal_group(&mut self) -> Looked {
        let leads = self.whose.number == Number::Leads;
        let group = -self.whose.sid;
        if self.whose.number == Number::Free || !leads && !pidfd::is_there(group) {
            return Looked::Nobody;
        }
        if self.group_sent != Some(self.current) {
            self.group_sent = Some(self.current);
            let to = if self.leader_first_ns.is_some() { -group } else { group };
            let sent = pidfd::by_number(to, self.current);
            self.reached_leader |= leads && sent.is_ok();
            if self.current != SIGKILL {
                let _ = pidfd::by_number(to, SIGCONT);
            }
        }
        Looked::Somebody
    }

    /// Sends the present signal to those who have not got it. What a member starts after the
    /// signal is how it cleans up (a trap's commands): it is spared until SIGKILL, for as long as
    /// the one who started it lives.
    fn signal_new(&mut self) {
        let spares = self.looked && self.current != SIGKILL;
        let pids: Vec<i32> = self.members.iter().map(|one| one.target.pid()).collect();
        let (leader, leader_first) = (self.whose.sid, self.leader_first_ns.is_some());
        let is_meant = |member: &&mut Member| {
            !member.signalled && (!leader_first || member.target.pid() == leader)
        };
        for member in self.members.iter_mut().filter(is_meant) {
            let is_child =
                || proc::stat(member.target.pid()).is_some_and(|one| pids.contains(&one.ppid));
            if !(spares && is_child()) {
                member.send(self.current);
            }
        }
    }

    /// What is still there, with the reason, at most [`NAMED_PROCESSES`] of them.
    pub fn survivors(&self) -> Vec<NamedProcess> {
        let named = |member: &Member| NamedProcess {
            pid: member.target.pid(),
            command: proc::name(member.target.pid()),
            reason: Some(match member.refused {
                Some(EPERM) => "EPERM: it belongs to another user".to_owned(),
                Some(errno) => format!("it could not be signalled (errno {errno})"),
                None if !member.signalled => "it was sent no signal".into(),
                None => "it does not end although SIGKILL was sent (uninterruptible)".into(),
            }),
        };
        self.members.iter().take(NAMED_PROCESSES).map(named).collect()
    }
}

impl Member {
    fn send(&mut self, signal: i32) {
        self.signalled = true;
        self.refused = self.target.signal(signal).err();
        if signal != SIGKILL {
            // A stopped process acts on a signal only when it is continued.
            let _ = self.target.signal(SIGCONT);
        }
    }
}
