//! All processes that a run has started: what they use, and their end. This process is their
//! subreaper, so whoever of them loses its parent becomes its child: where it has no child, none of
//! them is left.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsRawFd;

use crate::limits::{KILL_GIVE_UP_MS, KILL_GRACE_MS, NS_PER_MS};
use crate::pure::process::life::ExitStatus;
use crate::sys::child::{self, Event, Usage};
use crate::sys::proc::{self, ProcStat};
use crate::sys::signals::{SIGCONT, SIGKILL, SIGTERM};
use crate::sys::spawn::Child;
use crate::sys::{host, pidfd, proc_view};

/// In this first part of the grace pi is left to end what it has started: it alone is sent SIGTERM.
const LEADER_FIRST_MS: u64 = 1_000;
/// Between two looks for processes that were forked since, before SIGKILL and behind it.
const LOOK_MS: [u64; 2] = [20, 2];
/// Ends taken at once.
const REAPS: usize = 1_024;

/// The processes below this one.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// The program that was started last.
    leader: Option<Child>,
    /// How it ended.
    pub status: Option<ExitStatus>,
    /// What it and all others have used, as far as they were reaped.
    pub usage: Usage,
    end: Option<TreeEnd>,
}

/// The way of all of them to their end.
#[derive(Debug)]
struct TreeEnd {
    leader_until_ns: u64,
    kill_ns: u64,
    killing: bool,
    look_ns: u64,
    /// Those that were sent SIGTERM, by pid and start.
    signalled: BTreeSet<(i32, u64)>,
}

impl Tree {
    /// A program was started.
    pub(super) fn lead(&mut self, leader: Child) {
        *self = Self { leader: Some(leader), ..Self::default() };
    }

    /// Takes the ends of children, a bounded number; whether there was one.
    fn reap(&mut self) -> bool {
        for round in 0..REAPS {
            let Ok(Some(peek)) = child::peek_any() else { return round > 0 };
            if peek.event != Event::Ended {
                child::take_stop(peek.pid);
                continue;
            }
            let leader = self.leader.as_ref().filter(|one| one.pid == peek.pid);
            let leader = leader.filter(|_| self.status.is_none());
            let used = match leader.map(|one| child::reap_pidfd(one.pidfd.as_raw_fd())) {
                Some(Ok(Some((status, used)))) => {
                    self.status = Some(status);
                    Some(used)
                }
                _ => child::take(peek.pid).ok().flatten(),
            };
            self.usage = used.map_or(self.usage, |used| self.usage.with(used));
        }
        true
    }

    /// Whether all are to end.
    pub(super) fn is_ending(&self) -> bool {
        self.end.is_some()
    }

    /// All are to end: pi is sent SIGTERM, the others when it is gone or has had its time, and
    /// whoever is left gets SIGKILL. `at_once`: SIGKILL is sent now.
    pub(super) fn end(&mut self, at_once: bool, now_ns: u64) {
        let grace_ms = if at_once { 0 } else { KILL_GRACE_MS };
        let end = self.end.get_or_insert(TreeEnd {
            leader_until_ns: now_ns + LEADER_FIRST_MS * NS_PER_MS,
            kill_ns: u64::MAX,
            killing: false,
            look_ns: now_ns,
            signalled: BTreeSet::new(),
        });
        let kill_ns = now_ns + grace_ms * NS_PER_MS;
        if kill_ns < end.kill_ns {
            end.kill_ns = kill_ns;
            end.look_ns = now_ns;
        }
    }

    /// Whether all of them are gone, or cannot be ended.
    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        let given_up = |end: &TreeEnd| end.kill_ns.saturating_add(KILL_GIVE_UP_MS * NS_PER_MS);
        !child::has_any() || self.end.as_ref().is_some_and(|end| given_up(end) <= now_ns)
    }

    /// When it is to be looked at again although no child ends.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.end.as_ref().map(|end| end.look_ns)
    }

    /// Moves their end along.
    pub(super) fn step(&mut self, now_ns: u64) {
        let reaped = self.reap();
        let leader = self.leader.as_ref().map(|one| one.pid).filter(|_| self.status.is_none());
        let Some(end) = self.end.as_mut().filter(|end| reaped || end.look_ns <= now_ns) else {
            return;
        };
        end.killing = end.kill_ns <= now_ns;
        let alone = leader.filter(|_| !end.killing && now_ns < end.leader_until_ns);
        let look_ns = now_ns + LOOK_MS[usize::from(end.killing)] * NS_PER_MS;
        end.look_ns = if end.killing { look_ns } else { look_ns.min(end.kill_ns) };
        let signal = if end.killing { SIGKILL } else { SIGTERM };
        if !proc_view::tells() {
            // The process group is all that is known of them.
            let group = self.leader.as_ref().map(|one| one.pid).filter(|pid| *pid > 1);
            if let Some(group) = group.filter(|_| end.killing || end.signalled.insert((0, 0))) {
                let _ = pidfd::by_number(-group, signal);
            }
            return;
        }
        let found = match alone {
            Some(pid) => proc::stat(pid).into_iter().collect(),
            None => descendants(),
        };
        for one in found.iter().filter(|one| one.is_alive()) {
            if end.killing || end.signalled.insert((one.pid, one.start_ticks)) {
                send(one, signal);
            }
        }
    }

    /// How long the one of them has waited for a processor that has waited for the longest.
    pub(super) fn starved_ns(&self) -> u64 {
        descendants().iter().map(|one| proc::starved_ns(one.pid)).max().unwrap_or(0)
    }
}

fn send(to: &ProcStat, signal: i32) {
    // Whoever cannot be pinned now is looked for again.
    let Ok(Some(target)) = proc::open_target(to) else { return };
    let _ = target.signal(signal);
    if signal == SIGTERM {
        // One that is stopped would not see it.
        let _ = target.signal(SIGCONT);
    }
}

/// All processes below this one.
fn descendants() -> Vec<ProcStat> {
    let Ok(pids) = proc::all_pids() else { return Vec::new() };
    let mut of_parent: BTreeMap<i32, Vec<ProcStat>> = BTreeMap::new();
    for one in pids.flatten().filter_map(proc::stat) {
        of_parent.entry(one.ppid).or_default().push(one);
    }
    let mut found = of_parent.remove(&host::pid()).unwrap_or_default();
    // Each process is found once.
    let mut at = 0;
    while let Some(pid) = found.get(at).map(|one| one.pid) {
        found.extend(of_parent.remove(&pid).unwrap_or_default());
        at += 1;
    }
    found
}
