//! What methods ask of sessions: killing, listing, wakes, input.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::Daemon;
use super::judge::status_fields;
use super::table::Leftover;
use crate::families::unified::list_sessions::Row;
use crate::limits::{LISTED_COMMAND_BYTES, NAMED_PROCESSES, NS_PER_MS};
use crate::pure::text::utf8::floor_boundary;
use crate::session::input::Fed;
use crate::session::report::NamedProcess;
use crate::session::{ClientId, Listing, SessionId};
use crate::sys::host;
use crate::sys::proc::ProcStat;

/// A command as a list shows it: whole, unless it is so long that all of them would be too much.
pub(crate) fn command_for_lists(command: &str, most_bytes: usize) -> String {
    let cut = floor_boundary(command, most_bytes);
    if cut == command.len() { command.to_owned() } else { format!("{}…", &command[..cut]) }
}

impl Daemon {
    /// Arms the wake of a session for a client.
    pub fn arm_wake(&mut self, id: SessionId, client: ClientId) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.wake = Some(client);
        }
    }

    /// Gives a child its queued input now: the same call then tells when it closed its stdin.
    pub fn feed_now(&mut self, id: SessionId) {
        if self.feed(id) == Some(Fed::More) {
            self.input_ready(id);
        }
    }

    /// Ends everything in a session that is in the table.
    pub fn kill(&mut self, id: SessionId, signal: i32, grace_ms: u64) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.wake = None;
        self.begin_ending(id, signal, grace_ms);
    }

    /// The members that outlived a session are to be ended under its old id: what is known of
    /// it comes back for that. Whether there were any.
    pub fn readopt_left(&mut self, id: SessionId) -> bool {
        match self.take_left(id) {
            Some(Leftover { session, .. }) => {
                self.sessions.insert(id, *session);
                true
            }
            None => false,
        }
    }

    /// Whether a session that left the table is still being ended.
    pub fn is_being_ended(&self, id: SessionId) -> bool {
        self.sessions.get(&id).and_then(|session| session.ending.as_ref()).is_some()
    }

    /// Who has left a session by setsid, by the session that it left: what descends from a member,
    /// or from an orphan that came to us with our marks in its environment. Each process is looked
    /// at once, however many sessions there are.
    pub(crate) fn detached(&self) -> BTreeMap<SessionId, Vec<ProcStat>> {
        let mut away: BTreeMap<SessionId, Vec<ProcStat>> = BTreeMap::new();
        let mut lookout = self.lookout.borrow_mut();
        let looks = Rc::clone(&lookout.looks);
        let Ok(census) = lookout.at_once() else { return away };
        let mut owners: BTreeMap<i32, SessionId> = BTreeMap::new();
        for session in self.listed() {
            if let Some(sid) = self.family(session).members_sid() {
                owners.extend(census.pids_of(sid).map(|pid| (pid, session.id)));
            }
        }
        let others = census.others(|sid| self.leaders.contains_key(&sid));
        let others: Vec<&ProcStat> =
            others.iter().filter(|one| !owners.contains_key(&one.pid)).collect();
        let orphans = others.iter().filter(|one| one.ppid == host::pid());
        let orphans: Vec<ProcStat> = orphans.map(|one| **one).collect();
        let marked = looks.borrow_mut().owners(&orphans);
        for orphan in orphans {
            if let Some(Some(id)) = marked.get(&orphan.pid) {
                owners.insert(orphan.pid, *id);
                away.entry(*id).or_default().push(orphan);
            }
        }
        // Each round adds at least one process or is the last: bounded by their number.
        loop {
            let is_new = |one: &&ProcStat| !owners.contains_key(&one.pid);
            let next = others.iter().copied().filter(is_new);
            let next = next.filter_map(|one| Some((*owners.get(&one.ppid)?, *one)));
            let next: Vec<(SessionId, ProcStat)> = next.collect();
            if next.is_empty() {
                return away;
            }
            for (id, one) in next {
                owners.insert(one.pid, id);
                away.entry(id).or_default().push(one);
            }
        }
    }

    /// The rows of list_sessions.
    pub fn rows(&self) -> Vec<Row> {
        let mut away = if self.listed == 0 { BTreeMap::new() } else { self.detached() };
        away.values_mut().for_each(|some| some.truncate(NAMED_PROCESSES));
        // All of them are named by one look.
        let away_all: Vec<ProcStat> = away.values().flatten().copied().collect();
        let mut named = self.named(&away_all).into_iter();
        let mut away: BTreeMap<SessionId, Vec<NamedProcess>> = away
            .into_iter()
            .map(|(id, some)| (id, named.by_ref().take(some.len()).collect()))
            .collect();
        let mut row = |session: &crate::session::Session| {
            let running = !session.life.finished();
            let log = self.log_status(session.id);
            let (exit_code, signal) = status_fields(session.status().filter(|_| !running));
            let ended_ns = session.finished_ns.unwrap_or(self.now_ns);
            Row {
                session_id: session.id,
                name: session.facts.name.clone(),
                command: command_for_lists(&session.facts.command, LISTED_COMMAND_BYTES),
                cwd: session.facts.cwd.clone(),
                tty: session.facts.tty,
                pid: session.facts.pid,
                started_at_ms: session.facts.started_wall_ms,
                elapsed_ms: (ended_ns - session.facts.started_ns) / NS_PER_MS,
                running,
                exit_code,
                signal,
                failure_message: log.as_ref().and_then(|log| log.failure.clone()),
                output_bytes_total: session.output_bytes_total(),
                log_path: log.and_then(|log| log.path),
                wake_armed: session.wake.is_some(),
                window: session.window.is_some().then(|| format!("@{}", session.id)),
                shell_exited: session.life.shell_gone().then_some(true),
                detached: away.remove(&session.id).unwrap_or_default(),
            }
        };
        self.listed().map(&mut row).collect()
    }

    /// These exits were told by a listing: the sessions leave the table.
    pub fn observe_exits(&mut self, exited: &[SessionId]) {
        for &id in exited {
            self.set_listing(id, Listing::Gone);
            if let Some(session) = self.sessions.get_mut(&id) {
                session.observed = true;
            }
            self.touch(id);
        }
    }
}
