//! The guard: when execd is killed, nobody else is left to end its sessions.
//!
//! execd tells of each session's leader over a pipe of its own. When that pipe hangs up
//! without a goodbye, every member of the recorded sessions gets SIGKILL (architecture.md, The
//! keeper).

use super::frames::{GuardDecoder, GuardEvent, GuardRecord, Nonsense};
use crate::limits::{GUARD_DOUBTS, GUARD_SCAN_PAUSE_MS, GUARD_SCANS};
use crate::pure::process::run_mark::{RunMark, RunMarks};
use crate::sys::host;
use crate::sys::poll::pause;
use crate::sys::proc::{self, ProcStat};
use crate::sys::proc_view::{self, View};
use crate::sys::run_limit;
use crate::sys::signals::SIGKILL;
use std::collections::{BTreeMap, BTreeSet};

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
    /// What all processes of runs of pi have, whatever session they are in; None where only their
    /// sessions are known.
    run_mark: Option<RunMark>,
    /// Never ended, whatever a record says.
    execd_pid: i32,
    /// Whether a run of pi was among the sessions.
    had_runs: bool,
    goodbye: bool,
}

impl Guard {
    /// Takes the id that execd gives to its children in EXECD_INSTANCE, and execd's pid.
    pub fn new(instance: &str, execd_pid: i32) -> Guard {
        Guard {
            decoder: GuardDecoder::default(),
            sessions: BTreeMap::new(),
            mark: format!("EXECD_INSTANCE={instance}").into_bytes(),
            // The guard has inherited execd's own limit.
            run_mark: run_limit::of(0).and_then(|own| RunMarks::new(instance, own)?.of_all_runs()),
            execd_pid,
            had_runs: false,
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
            GuardEvent::Add(record) => {
                self.had_runs |= record.whole;
                self.sessions.insert(record.sid, record);
            }
            GuardEvent::Remove(sid) => _ = self.sessions.remove(&sid),
            GuardEvent::Goodbye => self.goodbye = true,
        }
    }

    /// Whether somebody is to be ended should execd be gone now.
    pub fn has_work(&self) -> bool {
        !self.goodbye && (self.had_runs || !self.sessions.is_empty())
    }

    /// The guard pipe has hung up: without a goodbye, ends all members of the recorded
    /// sessions. Takes `GUARD_SCANS` pauses at most.
    pub fn hung_up(&self) {
        let mut ours = BTreeSet::new();
        if self.has_work() {
            proc_view::look();
            end_all(|| self.to_be_ended(&mut ours));
        }
    }

    /// Who is to be ended. Where /proc does not list everybody, who may be left out is looked for
    /// under the numbers that processes have, and a session of which nobody at all was seen, not
    /// even who is dead, under every number.
    fn to_be_ended(&self, ours: &mut BTreeSet<i32>) -> Result<Vec<ProcStat>, i32> {
        let mut seen = BTreeSet::new();
        for doubts in 0..GUARD_DOUBTS {
            let found = self.found(doubts, &mut seen, ours)?;
            let is_missing =
                |sid: &i32| (doubts == 0 || !seen.contains(sid)) && proc::id_in_use(*sid);
            let all = !found.is_empty() || proc_view::view() == View::Whole;
            if all || !(self.had_runs || self.sessions.keys().any(is_missing)) {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    /// The living members of the recorded sessions, and what runs of pi started in others. `ours`
    /// remembers the sessions that have proved to be the recorded ones, `seen` those that somebody
    /// has the number of. `doubts`: see [`proc::all_pids`].
    fn found(
        &self,
        doubts: u32,
        seen: &mut BTreeSet<i32>,
        ours: &mut BTreeSet<i32>,
    ) -> Result<Vec<ProcStat>, i32> {
        let us = host::uid();
        // What a command of root's runs as somebody else (su, setpriv) is its own all the same.
        let may_be_ours = |pid: i32| us == ROOT || proc::is_users(pid, us);
        let pids: Vec<i32> = proc::all_pids(doubts)?.collect::<Result<_, _>>()?;
        let (recorded, others): (Vec<i32>, Vec<i32>) =
            pids.into_iter().filter(|pid| *pid != self.execd_pid).partition(|pid| {
                let sid = proc::session_of(*pid).filter(|sid| self.sessions.contains_key(sid));
                seen.extend(sid);
                sid.is_some()
            });
        let living: Vec<ProcStat> = recorded
            .into_iter()
            .filter(|pid| may_be_ours(*pid))
            .filter_map(proc::stat)
            .filter(|found| found.is_alive() && self.is_young_enough(found))
            .collect();
        for one in &living {
            if !ours.contains(&one.sid) && self.proves_session(one) {
                ours.insert(one.sid);
            }
        }
        let members = living.into_iter().filter(|one| ours.contains(&one.sid));
        let of_runs = others
            .into_iter()
            .filter(|pid| self.had_runs && may_be_ours(*pid) && self.is_of_a_run(*pid))
            .filter_map(proc::stat)
            .filter(ProcStat::is_alive);
        Ok(members.chain(of_runs).collect())
    }

    fn is_of_a_run(&self, pid: i32) -> bool {
        let Some(mark) = self.run_mark else { return false };
        run_limit::of(pid).is_some_and(|limit| mark.is_on(limit))
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
        // Where nothing tells since when a leader lives, execd's word is all there is.
        let by_number =
            || !one.has_start() || proc::stat(one.sid).is_none_or(|leader| !leader.is_alive());
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
