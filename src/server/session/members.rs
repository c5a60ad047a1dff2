//! Who belongs to a session (architecture.md, Ending a session): the processes that have its number
//! in the kernel, and those that have left it by setsid. Signals nobody: that is `ending`.

use super::census::{Census, Lookout, descendants};
use crate::sys::host;
use crate::sys::proc::{self, ProcStat};
use crate::sys::tree::Orphans;

/// Those whose end a session's end is.
#[derive(Clone, Debug)]
pub struct Members {
    /// The leader's pid, and the kernel session id that members have.
    pub sid: i32,
    /// The kernel session of execd that members are in instead: there they are those that descend
    /// from execd, to which what their parents leave behind comes (PR_SET_CHILD_SUBREAPER).
    pub joined: Option<i32>,
    /// No member started before the leader did (clock ticks since boot).
    pub start_ticks: u64,
    /// What became of the number `sid`.
    pub number: Number,
    /// Those that have left the session by setsid are members too while a member is their parent,
    /// and once they were seen so.
    pub takes_detached: bool,
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
    /// What the number is now: once free for us it stays so, whoever gets it next.
    pub fn now(self, sid: i32) -> Self {
        match self {
            Self::Inherited if proc::session_is_over(sid) => Self::Free,
            other => other,
        }
    }
}

impl Members {
    /// The session that members are in, while there can be any.
    pub fn members_sid(&self) -> Option<i32> {
        let has_number = || self.number.now(self.sid) != Number::Free;
        self.joined.or_else(|| has_number().then_some(self.sid))
    }

    /// Who may be a member, by pid, each with the kernel session that the census saw it in. `seen`:
    /// those that were seen to be members before, and live. None: the census is not complete yet.
    /// Errors: members cannot be told now (EMFILE, ENOMEM).
    pub(super) fn candidates(
        &self,
        turn: u64,
        lookout: &mut Lookout,
        ours: &impl Fn(i32) -> bool,
        seen: &[i32],
    ) -> Result<Option<Vec<(i32, i32)>>, i32> {
        if self.is_over() && !self.takes_detached {
            return Ok(Some(Vec::new()));
        }
        let sid = self.joined.or((self.number != Number::Free).then_some(self.sid));
        let Some(census) = lookout.since(turn)? else { return Ok(None) };
        let mut found: Vec<(i32, i32)> = match (self.joined, sid) {
            (Some(_), _) => self.living(census).iter().map(|one| (one.pid, one.sid)).collect(),
            (None, Some(sid)) => census.pids_of(sid).map(|pid| (pid, sid)).collect(),
            (None, None) => Vec::new(),
        };
        self.add_leader(&mut found);
        if !self.takes_detached {
            return Ok(Some(found));
        }
        let others = census.others(|other| Some(other) == sid || ours(other));
        let roots = found.iter().map(|one| one.0);
        let away = descendants(others, roots, |one| seen.contains(&one.pid));
        found.extend(away.iter().filter(|one| Some(one.sid) != sid).map(|one| (one.pid, one.sid)));
        found.sort_unstable();
        Ok(Some(found))
    }

    /// A leader that has only just been made is still in the kernel session of execd.
    fn add_leader(&self, found: &mut Vec<(i32, i32)>) {
        if self.joined.is_none()
            && self.number == Number::Leads
            && let Err(place) = found.binary_search_by_key(&self.sid, |one| one.0)
            && let Some(sid) = proc::session_of(self.sid)
        {
            found.insert(place, (self.sid, sid));
        }
    }

    /// Whether nobody is left in the members' kernel session: the leader was reaped, and so was all
    /// that came to execd. False where that cannot be told.
    pub fn is_over(&self) -> bool {
        match self.joined {
            None => self.number == Number::Free,
            // Nothing leaves the list while it is read: only execd itself reaps its children.
            Some(own) => {
                let children = Orphans::read(|_| false);
                children.are_all() && children.of(own).next().is_none()
            }
        }
    }

    /// The members in their kernel session that live, as a census has seen them.
    pub fn living(&self, census: &Census) -> Vec<ProcStat> {
        let all = census.living(self.joined.unwrap_or(self.sid));
        match self.joined {
            Some(_) => descendants(&all, [host::pid()], |_| false),
            None => all,
        }
    }

    /// Whether no member lives; false where it cannot be told.
    pub fn is_gone(&self, lookout: &mut Lookout, ours: &impl Fn(i32) -> bool) -> bool {
        let number = self.number.now(self.sid);
        if !self.takes_detached {
            // Who is dead but not reaped has the number too: the reaping asks again.
            return Self { number, ..self.clone() }.is_over();
        }
        let (turn, now) = (lookout.turn(), Self { number, ..self.clone() });
        let found = lookout.at_once().is_ok().then(|| now.candidates(turn, lookout, ours, &[]));
        let lives = |one: &(i32, i32)| proc::stat(one.0).is_some_and(|one| one.is_alive());
        found.is_some_and(|found| matches!(found, Ok(Some(all)) if !all.iter().any(lives)))
    }
}
