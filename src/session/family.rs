//! Who belongs to a session (architecture.md, Ending a session): its members, by the number that
//! the kernel knows it by, and those who have left it by setsid.

use std::collections::HashSet;
use std::io;
use std::rc::Rc;

use super::SessionId;
use super::census::{Lookout, descendants};
use super::looks::Looks;
use crate::pure::run_mark::RunMark;
use crate::sys::host;
use crate::sys::proc::{self, ProcStat};
use crate::sys::run_limit;

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
    /// Those with a parent in the family, and orphans that have the marks of this session in their
    /// environment.
    Marked(SessionId),
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

impl Family {
    /// The session that members are in, while there can be any.
    pub fn members_sid(&self) -> Option<i32> {
        (self.number.now(self.sid) != Number::Free).then_some(self.sid)
    }

    /// Who may be of this family, each with the session that it was in, by pid. None: the census
    /// is not complete yet. Errors: it cannot be told now (EMFILE, ENOMEM).
    pub(super) fn candidates(
        &self,
        turn: u64,
        lookout: &mut Lookout,
        ours: &impl Fn(i32) -> bool,
    ) -> io::Result<Option<Vec<(i32, i32)>>> {
        let sid = Some(self.sid).filter(|_| self.number != Number::Free);
        if sid.is_none() && self.spares_detached() {
            return Ok(Some(Vec::new()));
        }
        let looks = Rc::clone(&lookout.looks);
        let Some(census) = lookout.since(turn)? else { return Ok(None) };
        let members =
            sid.into_iter().flat_map(|sid| census.pids_of(sid).map(move |pid| (pid, sid)));
        let mut found: Vec<(i32, i32)> = members.collect();
        if self.spares_detached() {
            return Ok(Some(found));
        }
        let execd = host::pid();
        let others = census.others(|sid| sid == self.sid || ours(sid));
        let orphans = others.iter().filter(|one| one.ppid == execd && one.sid != self.sid);
        let (marked, untold) = self.marked(orphans.copied().collect(), &mut looks.borrow_mut());
        let away =
            descendants(others, found.iter().map(|one| one.0), |one| marked.contains(&one.pid));
        if untold && found.is_empty() && away.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        found.extend(away.iter().filter(|one| Some(one.sid) != sid).map(|one| (one.pid, one.sid)));
        found.sort_unstable();
        Ok(Some(found))
    }

    /// Whether those who have left are left alone.
    pub(super) fn spares_detached(&self) -> bool {
        matches!(self.detached, Detached::Spared)
    }

    /// Which of these orphans are marked as ones of this family, and whether that cannot be told
    /// now of one of them.
    fn marked(&self, orphans: Vec<ProcStat>, looks: &mut Looks) -> (HashSet<i32>, bool) {
        let pids = |is_marked: &dyn Fn(i32) -> bool| {
            orphans.iter().map(|one| one.pid).filter(|pid| is_marked(*pid)).collect()
        };
        match &self.detached {
            Detached::Spared => (HashSet::new(), false),
            Detached::Marked(id) => {
                let owners = looks.owners(&orphans);
                (pids(&|pid| owners.get(&pid) == Some(&Some(*id))), owners.len() < orphans.len())
            }
            Detached::Run(mark) => {
                let is_on = |pid| {
                    mark.zip(run_limit::of(pid)).is_some_and(|(mark, limit)| mark.is_on(limit))
                };
                (pids(&is_on), false)
            }
        }
    }

    /// Whether nobody of this family lives; false where it cannot be told.
    pub fn is_gone(&self, lookout: &mut Lookout, ours: &impl Fn(i32) -> bool) -> bool {
        let number = self.number.now(self.sid);
        if self.spares_detached() {
            // Who is dead but not reaped has the number too: the reaping asks again.
            return number == Number::Free;
        }
        let (turn, now) = (lookout.turn(), Self { number, ..self.clone() });
        let found = lookout.at_once().is_ok().then(|| now.candidates(turn, lookout, ours));
        let lives = |one: &(i32, i32)| proc::stat(one.0).is_some_and(|one| one.is_alive());
        found.is_some_and(|found| matches!(found, Ok(Some(all)) if !all.iter().any(lives)))
    }
}
