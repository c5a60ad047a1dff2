//! Who holds the output of a session whose shell has ended, and whether work towards it goes on.

use super::census::Census;
use crate::limits::HOLDER_BUSY_NS;
use crate::sys::proc;
use crate::sys::proc_work::{self, Pipes};
use std::collections::BTreeSet;

/// Members of a session that a look asks.
const HOLDERS_ASKED_MAX: usize = 64;

/// A process of the session whose output others hold.
#[derive(Clone, Copy, Debug)]
struct Member {
    pid: i32,
    /// Who started it and lives, where that one may read what it writes.
    parent: Option<i32>,
    pipes: Pipes,
}

impl Member {
    fn look(pid: i32) -> Self {
        let pipes = proc_work::pipes(pid);
        let stat = pipes.may_be_read().then(|| proc::stat(pid)).flatten();
        let parent = stat.map(|stat| stat.ppid);
        Self { pid, parent, pipes }
    }
}

/// The holders as the last look found them.
#[derive(Debug, Default)]
pub struct Holders {
    /// Each with the CPU time that it had used; None before the first look.
    seen: Option<Vec<(i32, u64)>>,
}

impl Holders {
    /// Whether one of those that are known has worked since the last look.
    pub fn have_worked(&mut self) -> bool {
        let mut worked = false;
        for (pid, used_ns) in self.seen.iter_mut().flatten() {
            let before_ns = std::mem::replace(used_ns, proc_work::cpu_ns(*pid));
            let busy = used_ns.abs_diff(before_ns) >= HOLDER_BUSY_NS;
            // Where there are more processes than processors, it may have to wait for its turn.
            worked |= busy || proc::has_work(*pid);
        }
        worked
    }

    /// Finds who holds the output now: members of the session `sid` with one of `outputs`. Whether
    /// they are others than before: who is new has worked, and who is gone has too.
    pub fn find(&mut self, census: &Census, sid: i32, outputs: &[u64]) -> bool {
        let members = census.pids_of(sid).take(HOLDERS_ASKED_MAX);
        let members: Vec<Member> = members.map(Member::look).collect();
        let held = holding(&members, outputs);
        let found: Vec<(i32, u64)> =
            held.into_iter().map(|pid| (pid, proc_work::cpu_ns(pid))).collect();
        let pids = |all: &[(i32, u64)]| -> Vec<i32> { all.iter().map(|one| one.0).collect() };
        let same = self.seen.as_deref().is_some_and(|seen| pids(seen) == pids(&found));
        self.seen = Some(found);
        !same
    }
}

/// Those of `members` that have one of the pipes `outputs`, or work for one that has: they feed
/// its stdin through a pipe, or it has started them and they write to a pipe or a socket, which it
/// may have at any descriptor. All of them where that is nobody: none has an output at its
/// standard descriptors.
fn holding(members: &[Member], outputs: &[u64]) -> Vec<i32> {
    let mut wanted: BTreeSet<u64> = outputs.iter().copied().collect();
    let mut held = BTreeSet::new();
    // Each round finds at least one process or is the last: bounded by their number.
    loop {
        let writes =
            |one: &Member| one.pipes.outputs.iter().flatten().any(|pipe| wanted.contains(pipe));
        let is_child = |one: &Member| one.parent.is_some_and(|pid| held.contains(&pid));
        let counts = |one: &Member| one.pipes.hidden || writes(one) || is_child(one);
        let is_new = |one: &&Member| !held.contains(&one.pid) && counts(one);
        let found: Vec<Member> = members.iter().filter(is_new).copied().collect();
        if found.is_empty() {
            break;
        }
        wanted.extend(found.iter().filter_map(|one| one.pipes.input));
        held.extend(found.iter().map(|one| one.pid));
    }
    if held.is_empty() {
        members.iter().map(|one| one.pid).collect()
    } else {
        held.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(pid: i32, input: u64, output: u64) -> Member {
        let outputs = [Some(output), None];
        let pipes = Pipes { input: Some(input), outputs, ..Pipes::default() };
        Member { pid, parent: None, pipes }
    }

    /// rule: bash-stream.md, The stream family: The shell is gone: while output comes or a holder
    ///   works the answer waits, 2 s at most; bash too
    #[test]
    fn who_has_the_output_holds_it_and_so_does_who_feeds_him() {
        // 1 | 2 | 3 writes the output 9; 4 writes to a file, 5 to a pipe of its own.
        let members = [one(1, 4, 6), one(2, 6, 7), one(3, 7, 9), one(4, 4, 5), one(5, 4, 8)];
        assert_eq!(holding(&members, &[9]), [1, 2, 3]);
        assert_eq!(holding(&members, &[8, 9]), [1, 2, 3, 5]);
        let pipes = Pipes { hidden: true, ..Pipes::default() };
        let hidden = Member { pid: 6, parent: None, pipes };
        assert_eq!(holding(&[members[3], hidden], &[9]), [6], "it may be the one");
        assert_eq!(holding(&members[3..], &[9]), [4, 5], "nobody: each of them may be");
        assert_eq!(holding(&[], &[9]), [0_i32; 0]);
    }

    /// rule: bash-stream.md, The stream family: The shell is gone: while output comes or a holder
    ///   works the answer waits, 2 s at most; bash too
    #[test]
    fn whoever_a_holder_has_started_works_for_it_and_so_do_their_own() {
        let started_by = |parent, member: Member| Member { parent: Some(parent), ..member };
        // 1 has the output; it started 2, which started 3, which 4 feeds. 5 is a stranger's.
        let workers = [started_by(1, one(2, 0, 20)), started_by(2, one(3, 30, 20))];
        let others = [one(4, 0, 30), started_by(8, one(5, 0, 50))];
        let members = [&[one(1, 0, 9)][..], &workers, &others].concat();
        assert_eq!(holding(&members, &[9]), [1, 2, 3, 4]);
    }
}
