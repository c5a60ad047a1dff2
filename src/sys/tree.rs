//! The processes of a session, found by walking down from its leader through the lists of children
//! that /proc has of each thread (proc_pid_task(5)). All of /proc is never listed for this: a look
//! costs as much as the session has processes, however many others the machine has.

use std::io::Read;
use std::str::FromStr;

use super::{given, host, proc};

/// Threads of a session that such a walk looks at in all.
const TREE_THREADS_ALL: usize = 512;

/// Bytes read of the list of a thread's children: more than the pids of all that execd may start.
const CHILDREN_BYTES: u64 = 256 * 1024;

/// Threads of a process that such a walk looks at.
const TREE_THREADS: usize = 64;

/// Processes of a session that a walk down from its leader looks at.
const TREE_PROCESSES: usize = 512;

/// The children of execd that lead no session of its own making: processes whose parents have
/// ended. They are read once for all sessions that are looked at in a turn.
#[derive(Debug, Default)]
pub struct Orphans {
    /// Session id and pid, in order.
    by_sid: Vec<(i32, i32)>,
    complete: bool,
}

impl Orphans {
    /// Reads the list of execd's own children. `leads` tells whether a pid is that of a leader,
    /// which is no orphan.
    pub fn read(leads: impl Fn(i32) -> bool) -> Self {
        let own = host::pid();
        let Some(children) = children(own, own) else { return Self::default() };
        let mut by_sid: Vec<(i32, i32)> = children
            .into_iter()
            .filter(|pid| !leads(*pid))
            .filter_map(|pid| Some((proc::session_of(pid)?, pid)))
            .collect();
        by_sid.sort_unstable();
        Self { by_sid, complete: true }
    }

    /// Whether these are all of them: /proc has lists of children, and hides none.
    pub fn are_all(&self) -> bool {
        self.complete
    }

    /// Those of a session, by pid.
    pub fn of(&self, sid: i32) -> impl Iterator<Item = i32> {
        let from = self.by_sid.partition_point(|one| one.0 < sid);
        self.by_sid[from..].iter().take_while(move |one| one.0 == sid).map(|one| one.1)
    }

    /// Those that are in none of the sessions that are `known`: each may have been started by any
    /// session, and have left it by setsid(2).
    pub fn strangers(&self, known: impl Fn(i32) -> bool) -> impl Iterator<Item = i32> {
        self.by_sid.iter().filter(move |one| !known(one.0)).map(|one| one.1)
    }
}

/// The kernel session of execd that a command in front stays in, so that it has our terminal: where
/// we have one, and the lists of children tell what the command leaves behind.
pub fn joined_session() -> Option<i32> {
    let session = given::session_with_terminal()?;
    Orphans::read(|_| false).are_all().then_some(session)
}

/// A process of a session, and its threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The process id.
    pub pid: i32,
    /// The ids of its threads, the first of them first.
    pub tids: Vec<i32>,
}

/// The processes of a session: its leader, what descends from the leader (also what has called
/// setsid(2) since), and orphans that are still in the session, with what descends from those.
#[derive(Debug, Default)]
pub struct Tree {
    /// The processes, parents before their children.
    pub pids: Vec<i32>,
    /// The same with their threads.
    pub members: Vec<Member>,
    /// Whether these are all: no bound was reached and nothing was hidden.
    pub complete: bool,
}

/// Walks a session. `leads`: the leader has not been reaped; after that its pid is nobody's, and
/// only the orphans are left.
pub fn walk(sid: i32, leads: bool, orphans: &Orphans) -> Tree {
    let mut tree = Tree { complete: orphans.complete, ..Tree::default() };
    tree.pids.extend(leads.then_some(sid));
    tree.pids.extend(orphans.of(sid).filter(|pid| !leads || *pid != sid));
    tree.go_on();
    tree
}

impl Tree {
    /// Adds processes that are not among these yet, and what descends from them.
    pub fn add(&mut self, pids: Vec<i32>) {
        let known = self.pids.len();
        let is_new = |pid: &i32| !self.pids[..known].contains(pid);
        let more: Vec<i32> = pids.into_iter().filter(is_new).collect();
        self.pids.extend(more);
        self.go_on();
    }

    /// Looks at the processes that were not looked at yet, and finds their children.
    fn go_on(&mut self) {
        let mut threads: usize = self.members.iter().map(|one| one.tids.len()).sum();
        while let Some(pid) = self.pids.get(self.members.len()).copied() {
            if self.members.len() >= TREE_PROCESSES || threads >= TREE_THREADS_ALL {
                self.pids.truncate(self.members.len());
                self.complete = false;
                return;
            }
            threads += self.visit(pid);
        }
    }

    /// Looks at one process: its threads, and the children of each. Gives how many threads.
    fn visit(&mut self, pid: i32) -> usize {
        let tids = threads(pid);
        let mut whole = tids.as_ref().is_some_and(|tids| tids.len() <= TREE_THREADS);
        let mut tids = tids.unwrap_or_default();
        tids.truncate(TREE_THREADS);
        for tid in &tids {
            match children(pid, *tid) {
                Some(children) => self.pids.extend(children),
                None => whole = false,
            }
        }
        // Who has ended meanwhile has hidden nothing: its children are execd's own by now, and the
        // next look finds them.
        self.complete &= whole || proc::session_of(pid).is_none();
        let count = tids.len();
        self.members.push(Member { pid, tids });
        count
    }
}

/// The ids of a process's threads, as far as one more than [`TREE_THREADS`]. None: they cannot be
/// listed.
fn threads(pid: i32) -> Option<Vec<i32>> {
    let found = proc::open_dir(&format!("/proc/{pid}/task")).ok()?;
    let mut tids = Vec::new();
    for thread in found.take(TREE_THREADS + 1) {
        tids.push(thread.ok()?.file_name().to_str()?.parse().ok()?);
    }
    Some(tids)
}

/// The children of a thread. None: they cannot be told, or are too many.
fn children(pid: i32, tid: i32) -> Option<Vec<i32>> {
    let mut text = String::new();
    let file = proc::open(&format!("/proc/{pid}/task/{tid}/children")).ok()?;
    file.take(CHILDREN_BYTES).read_to_string(&mut text).ok()?;
    if text.len() as u64 >= CHILDREN_BYTES {
        return None;
    }
    Some(text.split_ascii_whitespace().map_while(|word| i32::from_str(word).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::keeper_calls::testing::{Spawned, members_of};
    use crate::sys::poll;

    /// Ends the processes of a test.
    fn end(pids: &[i32], child: &Spawned) {
        for pid in pids {
            if let Some(target) = proc::stat(*pid).and_then(|one| proc::open_target(&one).unwrap())
            {
                target.signal(9).unwrap();
            }
        }
        child.wait();
    }

    #[test]
    fn a_walk_finds_descendants_also_those_that_have_left_the_session() {
        let child = Spawned::shell("(sleep 60 & setsid sleep 60 & wait) & wait", &[]);
        let tree = loop {
            let tree = walk(child.pid, true, &Orphans::read(|pid| pid == child.pid));
            let names: Vec<String> = tree.pids.iter().map(|pid| proc::name(*pid)).collect();
            if names.iter().filter(|name| *name == "sleep").count() == 2 {
                break tree;
            }
            poll::pause(1);
        };
        let inside = members_of(child.pid);
        assert!(inside.iter().all(|one| tree.pids.contains(&one.pid)), "{tree:?} {inside:?}");
        assert_eq!(tree.pids.len(), inside.len() + 1, "and the one that has left");
        assert!(tree.complete);
        assert_eq!(tree.pids[0], child.pid);
        let all: Vec<i32> = tree.members.iter().map(|one| one.pid).collect();
        assert_eq!(all, tree.pids);
        end(&tree.pids, &child);
        let gone = walk(child.pid, false, &Orphans::read(|_| false));
        assert!(gone.pids.is_empty());
    }

    #[test]
    fn a_walk_of_more_threads_than_the_bound_says_that_it_is_not_complete() {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let all: Vec<_> = (0..=TREE_THREADS)
            .map(|_| {
                let stop = stop.clone();
                std::thread::spawn(move || {
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        std::thread::park_timeout(std::time::Duration::from_millis(5));
                    }
                })
            })
            .collect();
        let tree = walk(host::pid(), true, &Orphans { complete: true, ..Orphans::default() });
        assert!(!tree.complete);
        assert!(tree.members[0].tids.len() == TREE_THREADS);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for thread in all {
            thread.join().unwrap();
        }
    }
}
