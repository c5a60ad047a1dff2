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
    /// sessions. Takes `GUARD_SCANS` pauses at most.
    pub fn hung_up(&self) {
        if self.goodbye || self.sessions.is_empty() {
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
    use super::super::frames::{push_guard_add, push_guard_goodbye, push_guard_remove};
    use super::*;
    use crate::sys::keeper_calls::testing::{Spawned, members_of};

    fn add(guard: &mut Guard, child: &Spawned) {
        let start_ticks = proc::stat(child.pid).unwrap().start_ticks;
        let mut out = Vec::new();
        push_guard_add(
            &mut out,
            GuardRecord { sid: child.pid, start_ticks, session: 1, whole: false },
        );
        guard.feed(&out).unwrap();
    }

    fn wait_for_members(child: &Spawned, count: usize) {
        while members_of(child.pid).len() != count {
            pause(1);
        }
    }

    #[test]
    fn ends_recorded_sessions_and_nobody_else() {
        let marked = &["EXECD_INSTANCE=abc", "PATH=/usr/bin:/bin"][..];
        let jobs = Spawned::shell("sleep 61 & env -i sleep 61 & wait", marked);
        // The leader is gone; the process that is left has the mark.
        let orphans = Spawned::shell("trap '' HUP; sleep 62 & kill -9 $$", marked);
        let unrecorded = Spawned::shell("sleep 63; :", marked);
        let removed = Spawned::shell("sleep 64; :", marked);
        let mut guard = Guard::new("abc", 1);
        add(&mut guard, &jobs);
        add(&mut guard, &orphans);
        add(&mut guard, &removed);
        let mut out = Vec::new();
        push_guard_remove(&mut out, removed.pid);
        guard.feed(&out).unwrap();
        wait_for_members(&jobs, 3);
        assert_eq!(orphans.wait(), SIGKILL);
        wait_for_members(&orphans, 1);

        guard.hung_up();
        assert!(members_of(jobs.pid).is_empty());
        assert!(members_of(orphans.pid).is_empty());
        assert_eq!(jobs.wait(), SIGKILL);
        assert!(proc::stat(unrecorded.pid).unwrap().is_alive());
        assert!(proc::stat(removed.pid).unwrap().is_alive());
    }

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
            let mut out = Vec::new();
            push_guard_add(
                &mut out,
                GuardRecord { sid: child.pid, start_ticks, session: 1, whole: false },
            );
            guard.feed(&out).unwrap();
        }
        guard.hung_up();
        assert!(proc::stat(other_instance.pid).unwrap().is_alive());
        assert!(proc::stat(older.pid).unwrap().is_alive());
    }

    /// rule: architecture.md, The keeper: A goodbye leaves what may stay
    #[test]
    fn a_goodbye_leaves_everyone_alone() {
        let child = Spawned::shell("sleep 67; :", &["EXECD_INSTANCE=abc"]);
        let mut guard = Guard::new("abc", 1);
        add(&mut guard, &child);
        let mut out = Vec::new();
        push_guard_goodbye(&mut out);
        let (head, tail) = out.split_at(13);
        guard.feed(head).unwrap();
        guard.feed(tail).unwrap();
        guard.hung_up();
        assert!(proc::stat(child.pid).unwrap().is_alive());
    }

    /// rule: architecture.md, The keeper: Of a session that is ended as a whole the guard ends what
    ///   descends from its leader, also what has left by setsid
    #[test]
    fn of_a_whole_session_what_descends_from_the_leader_is_ended_too() {
        let script = "setsid env -i sh -c 'sleep 70 & wait' & sleep 70; :";
        for whole in [true, false] {
            let child = Spawned::shell(script, &["PATH=/usr/bin:/bin", "EXECD_INSTANCE=abc"]);
            let away = || {
                let all = proc::all_pids().unwrap().filter_map(|pid| proc::stat(pid.unwrap()));
                let all: Vec<ProcStat> = all.filter(ProcStat::is_alive).collect();
                let first = all.iter().find(|one| one.ppid == child.pid && one.sid != child.pid)?;
                Some(members_of(first.pid)).filter(|members| members.len() == 2)
            };
            let away = loop {
                match away() {
                    Some(away) => break away,
                    None => pause(1),
                }
            };
            let mut guard = Guard::new("abc", 1);
            let (sid, start_ticks) = (child.pid, proc::stat(child.pid).unwrap().start_ticks);
            guard.take(GuardEvent::Add(GuardRecord { sid, start_ticks, session: 1, whole }));
            guard.hung_up();
            assert!(members_of(child.pid).is_empty());
            assert_eq!(members_of(away[0].sid).is_empty(), whole);
            for left in members_of(away[0].sid) {
                let _ = pidfd::by_number(left.pid, SIGKILL);
            }
        }
    }

    #[test]
    fn ends_a_program_that_forks_faster_than_one_kill() {
        let script = "f() { sleep 68 & }; while :; do f; f; f; f; sleep 0.001; done";
        let child = Spawned::shell(script, &["EXECD_INSTANCE=abc", "PATH=/usr/bin:/bin"]);
        let mut guard = Guard::new("abc", 1);
        add(&mut guard, &child);
        while members_of(child.pid).len() < 20 {
            pause(1);
        }
        guard.hung_up();
        assert!(members_of(child.pid).is_empty());
    }
}
