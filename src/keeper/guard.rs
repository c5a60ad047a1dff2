//! The guard: when execd is killed, nobody else is left to end its sessions.
//!
//! execd tells of each session's leader over a pipe of its own. When that pipe hangs up
//! without a goodbye, every member of the recorded sessions gets SIGKILL (architecture.md, The
//! keeper).

use super::frames::{GuardDecoder, GuardEvent, GuardRecord, Nonsense};
use crate::sys::poll::pause;
use crate::sys::proc::{self, ProcStat};
use crate::sys::signals::SIGKILL;
use crate::sys::{host, pidfd, proc_view};
use std::collections::{BTreeMap, BTreeSet};

/// The guard's pause between two scans.
const GUARD_SCAN_PAUSE_MS: u64 = 5;

/// Scans the guard makes for processes to end after execd was killed.
const GUARD_SCANS: usize = 200;

/// The user whose commands may run as anybody.
const ROOT: u32 = 0;

/// The recorded sessions and how to know their members.
#[derive(Debug)]
pub struct Guard {
    decoder: GuardDecoder,
    /// By session id.
    sessions: BTreeMap<i32, GuardRecord>,
    /// `EXECD_INSTANCE=…`, as members have it in their environment.
    mark: Vec<u8>,
    /// Never ended, whatever a record says.
    execd_pid: i32,
    goodbye: bool,
}

/// What the guard has found so far.
#[derive(Debug, Default)]
struct Found {
    /// The kernel sessions that have proved to be the recorded ones.
    ours: BTreeSet<i32>,
    /// Members of sessions that are ended as a whole, and what descends from them, by pid and
    /// start.
    whole: BTreeSet<(i32, u64)>,
}

impl Guard {
    /// Takes the id that execd gives to its children in EXECD_INSTANCE, and execd's pid.
    pub fn new(instance: &str, execd_pid: i32) -> Guard {
        Guard {
            decoder: GuardDecoder::default(),
            sessions: BTreeMap::new(),
            mark: format!("EXECD_INSTANCE={instance}").into_bytes(),
            execd_pid,
            goodbye: false,
        }
    }

    /// Takes in what the guard pipe brought.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), Nonsense> {
        while let Some(event) = self.decoder.next(&mut bytes)? {
            self.take(event);
        }
        Ok(())
    }

    /// Takes in one record from execd.
    pub fn take(&mut self, event: GuardEvent) {
        match event {
            GuardEvent::Add(record) => _ = self.sessions.insert(record.sid, record),
            GuardEvent::Remove(sid) => _ = self.sessions.remove(&sid),
            GuardEvent::Goodbye => self.goodbye = true,
        }
    }

    /// The guard pipe has hung up: without a goodbye, ends all members of the recorded
    /// sessions. Takes `GUARD_SCANS` pauses at most, for each of two times.
    pub fn hung_up(&mut self) {
        if self.goodbye {
            return;
        }
        let (last, first) = self.sessions.iter().partition(|(_, record)| record.ends_itself);
        self.sessions = first;
        self.end_sessions();
        self.sessions = last;
        // Such a leader, whom nobody of its own can leave, ends them better than we can.
        for _ in 0..GUARD_SCANS {
            self.sessions.retain(|sid, _| proc::id_in_use(*sid));
            if self.sessions.is_empty() {
                return;
            }
            pause(GUARD_SCAN_PAUSE_MS);
        }
        self.end_sessions();
    }

    fn end_sessions(&self) {
        if self.sessions.is_empty() {
        } else if proc_view::tells() {
            let mut found = Found::default();
            end_all(|| self.to_be_ended(&mut found));
        } else {
            self.end_groups();
        }
    }

    /// Without /proc a session is its leader's process group.
    fn end_groups(&self) {
        for sid in self.sessions.keys() {
            // Who has the number and leads no session of it is a stranger.
            if proc::session_of(*sid).is_none_or(|now| now == *sid) {
                let _ = pidfd::by_number(-sid, SIGKILL);
            }
        }
    }

    /// The living members of the recorded sessions, and of those that are ended as a whole what
    /// descends from them. Errors: it cannot be told now.
    fn to_be_ended(&self, found: &mut Found) -> Result<Vec<ProcStat>, i32> {
        let us = host::uid();
        // What a command of root's runs as somebody else (su, setpriv) is its own all the same.
        let may_be_ours = |pid: i32| us == ROOT || proc::is_users(pid, us);
        let takes_all = self.sessions.values().any(|record| record.whole);
        let mut living = Vec::new();
        for pid in proc::all_pids()? {
            let pid = pid?;
            let is_wanted = || {
                let sid = proc::session_of(pid);
                takes_all || sid.is_some_and(|sid| self.sessions.contains_key(&sid))
            };
            if pid != self.execd_pid && is_wanted() && may_be_ours(pid) {
                living.extend(proc::stat(pid).filter(ProcStat::is_alive));
            }
        }
        for one in &living {
            let is_new = !found.ours.contains(&one.sid) && self.is_young_enough(one);
            if is_new && self.proves_session(one) {
                found.ours.insert(one.sid);
            }
        }
        self.add_descendants(&living, found);
        living.retain(|one| {
            let is_member = found.ours.contains(&one.sid) && self.is_young_enough(one);
            is_member || found.whole.contains(&(one.pid, one.start_ticks))
        });
        Ok(living)
    }

    /// Finds what descends from a leader whose session is ended as a whole, or from a member of the
    /// session; and from whoever was found so before.
    fn add_descendants(&self, living: &[ProcStat], found: &mut Found) {
        let is_whole = |sid: i32| self.sessions.get(&sid).is_some_and(|record| record.whole);
        // A leader that has joined execd's own kernel session is known by its number alone.
        let is_leader = |one: &ProcStat| {
            self.sessions.get(&one.pid).is_some_and(|record| one.start_ticks >= record.start_ticks)
                && is_whole(one.pid)
        };
        let is_root = |one: &ProcStat| {
            found.whole.contains(&(one.pid, one.start_ticks))
                || is_leader(one)
                || (is_whole(one.sid) && found.ours.contains(&one.sid))
        };
        let mut roots: BTreeSet<i32> =
            living.iter().filter(|one| is_root(one)).map(|one| one.pid).collect();
        // Each round adds at least one process or is the last: bounded by their number.
        loop {
            let before = roots.len();
            let children = living.iter().filter(|one| roots.contains(&one.ppid));
            let children: Vec<i32> = children.map(|one| one.pid).collect();
            roots.extend(children);
            if roots.len() == before {
                break;
            }
        }
        let all = living.iter().filter(|one| roots.contains(&one.pid));
        found.whole.extend(all.map(|one| (one.pid, one.start_ticks)));
    }

    fn is_young_enough(&self, found: &ProcStat) -> bool {
        self.sessions.get(&found.sid).is_some_and(|record| found.start_ticks >= record.start_ticks)
    }

    /// A session id is not given out again while anyone has it, so one process that is
    /// certainly ours proves the whole session: the leader itself, or one with our mark. Its
    /// other members may have changed their environment (`env -i`). Where the leader is gone
    /// (the kernel ends it with execd) there may be nobody left with a mark: the number is still
    /// that of the recorded session, unless all of it ended, the number went once round and a
    /// new leader of it came and went as well, all before execd's word of the end.
    fn proves_session(&self, one: &ProcStat) -> bool {
        let is_leader = self
            .sessions
            .get(&one.sid)
            .is_some_and(|record| one.pid == record.sid && one.start_ticks == record.start_ticks);
        let by_number = || proc::stat(one.sid).is_none_or(|leader| !leader.is_alive());
        is_leader
            || by_number()
            || proc::environ_any(one.pid, |entry| entry == self.mark) == Some(true)
    }
}

/// Ends whoever `scan` finds until it finds nobody.
fn end_all(mut scan: impl FnMut() -> Result<Vec<ProcStat>, i32>) {
    let mut signalled = BTreeSet::new();
    for _ in 0..GUARD_SCANS {
        let Ok(members) = scan() else {
            // "Cannot be told" is not "gone".
            pause(GUARD_SCAN_PAUSE_MS);
            continue;
        };
        if members.is_empty() {
            break;
        }
        let mut all_known = true;
        for member in members {
            all_known &= !signalled.insert((member.pid, member.start_ticks));
            // Sent again each time: the first may have come to nothing for want of an fd.
            if let Ok(Some(target)) = proc::open_target(&member) {
                let _ = target.signal(SIGKILL);
            }
        }
        // Against a program that forks faster than it dies only speed helps.
        if all_known {
            pause(GUARD_SCAN_PAUSE_MS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::keeper_calls::testing::Spawned;

    /// rule: architecture.md, Ending a session: A signal never reaches a stranger and never a
    ///   reaped pid
    #[test]
    fn a_stranger_with_a_recorded_number_is_left_alone() {
        let other_instance = Spawned::shell("sleep 65; :", &["EXECD_INSTANCE=abcd"]);
        let older = Spawned::shell("sleep 66; :", &["EXECD_INSTANCE=abc"]);
        let mut guard = Guard::new("abc", 1);
        for (child, later) in [(&other_instance, -1), (&older, 1_000)] {
            let start_ticks = proc::stat(child.pid).unwrap().start_ticks;
            let start_ticks = start_ticks.saturating_add_signed(later);
            let record = GuardRecord {
                sid: child.pid,
                start_ticks,
                session: 1,
                whole: false,
                ends_itself: false,
            };
            guard.take(GuardEvent::Add(record));
        }
        guard.hung_up();
        assert!(proc::stat(other_instance.pid).unwrap().is_alive());
        assert!(proc::stat(older.pid).unwrap().is_alive());
    }
}
