//! Questions about the memory of processes (src/sys/look.rs), few and with a bound: their
//! names for people, and whose orphan one is.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

use super::SessionId;
use crate::limits::{
    LOOK_AGAIN_MS, LOOK_PIDS, LOOK_REMEMBERED, LOOK_WAIT_MS, NS_PER_MS, PROCESS_COMMAND_BYTES,
};
use crate::sys::clock;
use crate::sys::look::{self, Owner, Told, Wanted};
use crate::sys::poll;
use crate::sys::proc::{self, ProcStat};
use crate::sys::spawn::Spawner;

/// Asks about processes, and remembers the answers.
#[derive(Debug, Default)]
pub struct Looks {
    /// Starts those who look; None: nobody can be asked.
    spawner: Option<Rc<Spawner>>,
    instance: String,
    /// Whose marks an orphan has, by its pid and start; None: nobody's of this execd.
    owners: BTreeMap<(i32, u64), Option<SessionId>>,
    /// The pid of the log writer, which has no marks.
    pub helper: Option<i32>,
    /// A process that was to look and was killed, until it has ended.
    killed: Option<OwnedFd>,
    /// Until when a process that did not answer is not asked again.
    silent: BTreeMap<i32, u64>,
    /// Until when answers are waited for in this turn.
    until_ns: Option<u64>,
}

impl Looks {
    /// The questions of the execd with this id.
    pub fn new(spawner: Rc<Spawner>, instance: &str) -> Self {
        Self { spawner: Some(spawner), instance: instance.to_owned(), ..Self::default() }
    }

    /// A turn begins.
    pub fn begin_turn(&mut self) {
        self.until_ns = None;
    }

    /// The command lines of processes for people, in their order: `[name]` for a process that does
    /// not tell its own now, empty for one that is gone.
    pub fn commands(&mut self, pids: &[i32]) -> Vec<String> {
        let mut told = self.ask(Wanted::Commands, pids).into_iter();
        let mut next = told.next();
        let mut command = |pid: i32| match next.take_if(|one| one.pid == pid) {
            Some(one) => {
                next = told.next();
                one.command
            }
            None => proc::bracketed_name(pid, PROCESS_COMMAND_BYTES),
        };
        pids.iter().map(|pid| command(*pid)).collect()
    }

    /// The session whose marks each of these orphans has, where that can be told now.
    pub fn owners(&mut self, orphans: &[ProcStat]) -> BTreeMap<i32, Option<SessionId>> {
        let key = |one: &ProcStat| (one.pid, one.start_ticks);
        let known = |looks: &Self, one: &ProcStat| match looks.owners.get(&key(one)) {
            Some(owner) => Some(*owner),
            None => (looks.helper == Some(one.pid)).then_some(None),
        };
        let new: BTreeMap<i32, (i32, u64)> = orphans
            .iter()
            .filter(|one| known(self, one).is_none())
            .map(|one| (one.pid, key(one)))
            .collect();
        if !new.is_empty() {
            if self.owners.len() + new.len() > LOOK_REMEMBERED {
                self.owners.clear();
            }
            let pids: Vec<i32> = new.keys().copied().collect();
            let instance = self.instance.clone();
            for told in self.ask(Wanted::Sessions(&instance), &pids) {
                let Some(key) = new.get(&told.pid) else { continue };
                match told.owner {
                    Owner::Session(owner) => _ = self.owners.insert(*key, Some(owner)),
                    Owner::Nobody => _ = self.owners.insert(*key, None),
                    Owner::Untold => {}
                }
            }
        }
        orphans.iter().filter_map(|one| Some((one.pid, known(self, one)?))).collect()
    }

    /// Asks those who may be asked. Some answers may be missing, the order is kept.
    fn ask(&mut self, wanted: Wanted<'_>, pids: &[i32]) -> Vec<Told> {
        let now_ns = clock::now_ns();
        self.silent.retain(|_, until_ns| *until_ns > now_ns);
        let until_ns = *self.until_ns.get_or_insert(now_ns + LOOK_WAIT_MS * NS_PER_MS);
        let Some(spawner) = &self.spawner else { return Vec::new() };
        // As long as SIGKILL has not ended the one that was to look, no other one is started.
        if self.killed.as_ref().is_some_and(|pidfd| !poll::is_readable(pidfd.as_raw_fd(), Some(0)))
        {
            return Vec::new();
        }
        let asked: Vec<i32> =
            pids.iter().copied().filter(|pid| !self.silent.contains_key(pid)).collect();
        let mut told = Vec::new();
        for some in asked.chunks(LOOK_PIDS) {
            if clock::now_ns() >= until_ns {
                break;
            }
            let Some(answers) = look::ask(spawner, wanted, some, until_ns) else { break };
            // The first process without an answer is the one that the others waited for.
            let missing = some.get(answers.told.len()).filter(|_| answers.killed.is_some());
            self.silent.extend(missing.map(|pid| (*pid, now_ns + LOOK_AGAIN_MS * NS_PER_MS)));
            self.killed = answers.killed;
            told.extend(answers.told);
        }
        told
    }
}
