//! Who holds the output of a session whose shell has ended, and whether work towards it goes on
//! (bash-stream.md, Output after the shell).

use std::collections::BTreeSet;

use super::census::Census;
use crate::limits::{HOLDER_BUSY_NS, HOLDERS_ASKED_MAX};
use crate::sys::proc;
use crate::sys::proc_work::{self, Pipes};

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
        let members: Vec<(i32, Pipes)> = members.map(|pid| (pid, proc_work::pipes(pid))).collect();
        let held = holding(&members, outputs);
        let found: Vec<(i32, u64)> =
            held.into_iter().map(|pid| (pid, proc_work::cpu_ns(pid))).collect();
        let pids = |all: &[(i32, u64)]| -> Vec<i32> { all.iter().map(|one| one.0).collect() };
        let same = self.seen.as_deref().is_some_and(|seen| pids(seen) == pids(&found));
        self.seen = Some(found);
        !same
    }
}

/// Those of `members` that have one of the pipes `outputs`, or feed through a pipe one that has.
/// All of them where that is nobody: none has it at its standard descriptors.
fn holding(members: &[(i32, Pipes)], outputs: &[u64]) -> Vec<i32> {
    let mut wanted: BTreeSet<u64> = outputs.iter().copied().collect();
    let mut held = BTreeSet::new();
    // Each round finds at least one process or is the last: bounded by their number.
    loop {
        let writes = |one: &Pipes| one.outputs.iter().flatten().any(|pipe| wanted.contains(pipe));
        let is_new =
            |one: &&(i32, Pipes)| !held.contains(&one.0) && (one.1.hidden || writes(&one.1));
        let found: Vec<(i32, Pipes)> = members.iter().filter(is_new).copied().collect();
        if found.is_empty() {
            break;
        }
        wanted.extend(found.iter().filter_map(|one| one.1.input));
        held.extend(found.iter().map(|one| one.0));
    }
    if held.is_empty() {
        members.iter().map(|one| one.0).collect()
    } else {
        held.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(pid: i32, input: u64, output: u64) -> (i32, Pipes) {
        (pid, Pipes { input: Some(input), outputs: [Some(output), None], hidden: false })
    }

    #[test]
    fn who_has_the_output_holds_it_and_so_does_who_feeds_him() {
        // 1 | 2 | 3 writes the output 9; 4 writes to a file, 5 to a pipe of its own.
        let members = [one(1, 4, 6), one(2, 6, 7), one(3, 7, 9), one(4, 4, 5), one(5, 4, 8)];
        assert_eq!(holding(&members, &[9]), [1, 2, 3]);
        assert_eq!(holding(&members, &[8, 9]), [1, 2, 3, 5]);
        let hidden = (6, Pipes { hidden: true, ..Pipes::default() });
        assert_eq!(holding(&[members[3], hidden], &[9]), [6], "it may be the one");
        assert_eq!(holding(&members[3..], &[9]), [4, 5], "nobody: each of them may be");
        assert_eq!(holding(&[], &[9]), [0_i32; 0]);
    }
}
