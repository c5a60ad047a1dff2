//! What methods ask of sessions: killing, listing, wakes, input.

use super::Daemon;
use super::answers::named;
use super::judge::status_fields;
use super::table::Leftover;
use crate::limits::{LISTED_COMMAND_BYTES, NAMED_PROCESSES, NS_PER_MS};
use crate::methods::Row;
use crate::pure::utf8::floor_boundary;
use crate::session::ending::detached;
use crate::session::input::Fed;
use crate::session::{ClientId, Listing, SessionId};
use crate::sys::host;
use crate::sys::proc::{self, ProcStat};

/// A command as a list shows it: whole, unless it is so long that all of them would be too much.
pub(super) fn command_for_lists(command: &str, most_bytes: usize) -> String {
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

    /// Our children among `all` that lead no session of ours: whoever came to us as an orphan.
    /// Only these have to be asked by their environment whose they are.
    pub(super) fn orphans(&self, all: &[ProcStat]) -> Vec<ProcStat> {
        if all.is_empty() {
            return Vec::new();
        }
        let (ours, keeper) = (host::pid(), self.keeper.pid());
        let came_to_us = |one: &&ProcStat| {
            one.ppid == ours && !self.leaders.contains_key(&one.pid) && keeper != Some(one.pid)
        };
        all.iter().filter(came_to_us).copied().collect()
    }

    /// The rows of list_sessions.
    pub fn rows(&self) -> Vec<Row> {
        let all = if self.listed == 0 { Vec::new() } else { proc::all() };
        let orphans = self.orphans(&all);
        let row = |session: &crate::session::Session| {
            let running = !session.life.finished();
            let log = self.log_status(session.id);
            let (exit_code, signal) = status_fields(session.status().filter(|_| !running));
            let ended_ns = session.finished_ns.unwrap_or(self.now_ns);
            let sid = self.family(session).members_sid();
            let away = detached(&all, &orphans, sid, &self.marks(session.id));
            let away = away.iter().filter(|one| one.is_alive()).take(NAMED_PROCESSES);
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
                shell_exited: session.life.shell_gone().then_some(true),
                detached: away.map(|one| named(one.pid)).collect(),
            }
        };
        self.listed().map(row).collect()
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
