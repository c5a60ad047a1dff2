//! Looks at all processes, shared by all who need one (architecture.md, Ending a session).
//!
//! A census tells who is in which session. It is read in pieces where there are many processes,
//! and is as old as its first piece: who was forked since may be missing, so whoever has sent
//! signals or heard of an end asks for one that began later.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::limits::NS_PER_MS;
use crate::sys::clock;
use crate::sys::io::ENOENT;
use crate::sys::proc::{self, Pids, ProcStat};
use crate::sys::tree::Orphans;

/// Processes opened in one turn, to signal them.
const OPENED_PER_TURN: usize = 256;

/// A census is kept for so many turns, for those who have not come to it yet.
const CENSUS_KEPT_TURNS: u64 = 64;

/// Processes that a census reads of in one turn.
const CENSUS_TURN_PROCESSES: usize = 4_096;

/// Looks at holders in one turn.
const HOLDER_LOOKS_PER_TURN: usize = 32;

/// Once looks have used so much CPU time in a turn, no further one is begun in it.
const DOING_TURN_MS: u64 = 5;

/// Who was in which session at a time.
#[derive(Debug, Default)]
pub struct Census {
    /// The turn in which the census was begun.
    begun: u64,
    /// Session id and pid, in order.
    by_sid: Vec<(i32, i32)>,
    others: OnceCell<Vec<ProcStat>>,
}

/// A census that is being taken.
#[derive(Debug)]
struct Taking {
    pids: Pids,
    census: Census,
}

/// What there is to look at processes with in a turn.
#[derive(Debug, Default)]
pub struct Lookout {
    turn: u64,
    last: Option<Census>,
    taking: Option<Taking>,
    /// Processes that a census may still read of in this turn.
    reads_left: usize,
    /// Processes that may still be opened in this turn.
    opens_left: usize,
    /// Looks at who holds a session's output that may still be taken in this turn.
    looks_left: usize,
    /// The helpers that are children of execd: they have descriptors of all sessions, and are
    /// nobody's orphans.
    pub helpers: Vec<i32>,
    /// The children of execd that lead no session, once they were read in this turn.
    orphans: Option<Rc<Orphans>>,
    /// The CPU time at which the last look at what processes are at was begun in this turn, and
    /// what all of these looks have used. On a busy machine another process may run in the middle
    /// of one.
    seeing: (u64, u64),
}

impl Census {
    /// The processes of a session, by pid.
    pub fn pids_of(&self, sid: i32) -> impl Iterator<Item = i32> {
        let from = self.by_sid.partition_point(|one| one.0 < sid);
        self.by_sid[from..].iter().take_while(move |one| one.0 == sid).map(|one| one.1)
    }

    /// What /proc says of the members of a session that live.
    pub fn living(&self, sid: i32) -> Vec<ProcStat> {
        let is_member = |one: &ProcStat| one.sid == sid && one.is_alive();
        self.pids_of(sid).filter_map(proc::stat).filter(is_member).collect()
    }

    /// What /proc says of those who live and are in none of the sessions that are `ours`: whoever
    /// has left one of these is among them. Read once.
    pub fn others(&self, ours: impl Fn(i32) -> bool) -> &[ProcStat] {
        self.others.get_or_init(|| {
            // Who has called setsid is in a session of this namespace; kernel threads are in none.
            let left = |one: &&(i32, i32)| one.0 != 0 && !ours(one.0);
            let found = self.by_sid.iter().filter(left).filter_map(|one| proc::stat(one.1));
            found.filter(ProcStat::is_alive).collect()
        })
    }
}

impl Lookout {
    /// A turn begins.
    pub fn begin_turn(&mut self, turn: u64) {
        self.turn = turn;
        self.reads_left = CENSUS_TURN_PROCESSES;
        self.opens_left = OPENED_PER_TURN;
        self.looks_left = HOLDER_LOOKS_PER_TURN;
        self.orphans = None;
        self.seeing = (0, 0);
        let old = |census: &Census| census.begun + CENSUS_KEPT_TURNS < turn;
        if self.last.as_ref().is_some_and(old) {
            self.last = None;
        }
    }

    /// The turn that goes on.
    pub fn turn(&self) -> u64 {
        self.turn
    }

    /// A census that was not begun before `turn`. None: it is not complete yet, and goes on in the
    /// next turn. Errors: it cannot be told now (EMFILE, ENOMEM).
    pub fn since(&mut self, turn: u64) -> Result<Option<&Census>, i32> {
        while self.last.as_ref().is_none_or(|last| last.begun < turn) {
            if turn > self.turn || !self.go_on()? {
                return Ok(None);
            }
        }
        Ok(self.last.as_ref())
    }

    /// A census of this turn, whatever it takes. Errors: as above.
    pub fn at_once(&mut self) -> Result<&Census, i32> {
        while self.last.as_ref().is_none_or(|last| last.begun < self.turn) {
            let left = std::mem::replace(&mut self.reads_left, usize::MAX);
            let done = self.go_on();
            self.reads_left = left;
            done?;
        }
        self.last.as_ref().ok_or(ENOENT)
    }

    /// Reads on, a bounded amount. Whether a census is complete by now.
    fn go_on(&mut self) -> Result<bool, i32> {
        let mut taking = match self.taking.take() {
            Some(taking) => taking,
            None => Taking {
                pids: proc::all_pids()?,
                census: Census { begun: self.turn, ..Census::default() },
            },
        };
        while self.reads_left > 0 {
            let Some(pid) = taking.pids.next().transpose()? else {
                taking.census.by_sid.sort_unstable();
                self.last = Some(taking.census);
                return Ok(true);
            };
            self.reads_left -= 1;
            if let Some(sid) = proc::session_of(pid) {
                taking.census.by_sid.push((sid, pid));
            }
        }
        self.taking = Some(taking);
        Ok(false)
    }

    /// Whether one more process may be opened in this turn.
    pub fn may_open(&mut self) -> bool {
        let may = self.opens_left > 0;
        self.opens_left = self.opens_left.saturating_sub(1);
        may
    }

    /// Whether one more session's holders may be looked at in this turn.
    pub fn may_look(&mut self) -> bool {
        let may = self.looks_left > 0;
        self.looks_left = self.looks_left.saturating_sub(1);
        may
    }

    /// Whether what one more session's processes are at may be looked at in this turn. Whoever
    /// looks says when that is done ([`Self::has_seen`]).
    pub fn may_see(&mut self) -> bool {
        self.seeing.0 = clock::used_ns();
        self.seeing.1 < DOING_TURN_MS * NS_PER_MS
    }

    /// A look at what processes are at is done.
    pub fn has_seen(&mut self) {
        self.seeing.1 += clock::used_ns().saturating_sub(self.seeing.0);
    }

    /// The children of execd that lead no session, as they are in this turn.
    pub fn orphans(&mut self, leads: impl Fn(i32) -> bool) -> Rc<Orphans> {
        let helpers = &self.helpers;
        let known = |pid| leads(pid) || helpers.contains(&pid);
        Rc::clone(self.orphans.get_or_insert_with(|| Rc::new(Orphans::read(known))))
    }
}

/// Those of `others` that descend from one of `roots`, or are such themselves by `is_root`.
pub fn descendants(
    others: &[ProcStat],
    roots: impl IntoIterator<Item = i32>,
    is_root: impl Fn(&ProcStat) -> bool,
) -> Vec<ProcStat> {
    let mut known: BTreeSet<i32> = roots.into_iter().collect();
    let mut found: Vec<ProcStat> = others.iter().copied().filter(is_root).collect();
    known.extend(found.iter().map(|one| one.pid));
    // Each round adds at least one process or is the last: bounded by their number.
    loop {
        let is_new = |one: &&ProcStat| known.contains(&one.ppid) && !known.contains(&one.pid);
        let next: Vec<ProcStat> = others.iter().filter(is_new).copied().collect();
        if next.is_empty() {
            return found;
        }
        known.extend(next.iter().map(|one| one.pid));
        found.extend(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rule: architecture.md, Ending a session: Ends share their looks at all processes
    #[test]
    fn a_census_is_shared_until_a_later_one_is_asked_for() {
        let own = proc::stat(crate::sys::host::pid()).unwrap();
        let mut lookout = Lookout::default();
        lookout.begin_turn(7);
        assert!(lookout.since(7).unwrap().unwrap().pids_of(own.sid).any(|pid| pid == own.pid));
        assert!(lookout.since(8).unwrap().is_none(), "that turn has not come");
        lookout.begin_turn(8);
        assert_eq!(lookout.since(7).unwrap().map(|one| one.begun), Some(7));
        assert_eq!(lookout.since(8).unwrap().map(|one| one.begun), Some(8));
        lookout.begin_turn(9);
        lookout.reads_left = 1;
        assert!(lookout.since(9).unwrap().is_none(), "it is read in pieces");
        lookout.begin_turn(10);
        assert_eq!(lookout.since(9).unwrap().map(|one| one.begun), Some(9));
        assert_eq!(lookout.at_once().unwrap().begun, 10);
        let census = lookout.at_once().unwrap();
        assert!(census.living(own.sid).iter().any(|one| one.pid == own.pid));
        assert!(census.others(|sid| sid == own.sid).iter().all(|one| one.sid != own.sid));
    }

    /// rule: architecture.md, Ending a session: Ends share their looks at all processes
    #[test]
    fn who_descends_from_a_session() {
        let one = |pid, ppid| ProcStat { pid, ppid, pgrp: 1, sid: 1, state: b'S', start_ticks: 0 };
        let others = [one(5, 4), one(4, 3), one(9, 8), one(7, 6), one(6, 1)];
        let pids = |found: Vec<ProcStat>| {
            let mut pids: Vec<i32> = found.iter().map(|one| one.pid).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(pids(descendants(&others, [3], |_| false)), [4, 5]);
        assert_eq!(pids(descendants(&others, [3], |one| one.pid == 6)), [4, 5, 6, 7]);
        assert_eq!(pids(descendants(&others, [], |_| false)), [0_i32; 0]);
    }
}
