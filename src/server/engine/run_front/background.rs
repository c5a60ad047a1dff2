//! What the command in front leaves in the background: told and ended with execd, or waited for
//! (`--keep-background`).

use std::fmt::Write;

use super::RunFront;
use crate::server::engine::Engine;
use crate::server::engine::closing::Cause;
use crate::server::engine::contract::Families;
use crate::server::session::Session;
use crate::server::session::members::Members;
use crate::sys::proc;

/// Processes named in the line that tells what the command of `execd run` has left running.
const LEFT_NAMED: usize = 4;

impl<F: Families> Engine<F> {
    /// The command's session, wherever it is by now: in the table, or among those whose members
    /// outlive them.
    fn front_core(&self) -> Option<&Session> {
        let id = self.cx.front.as_ref()?.session;
        let outlived = &self.sessions.outlived;
        let mut left = outlived.over.iter().chain(outlived.left.values());
        let listed = || left.find(|one| one.id == id).map(|one| &one.entry.core);
        self.sessions.get(id).map(|one| &one.core).or_else(listed)
    }

    /// Whether nobody of the command's session is left; false where it cannot be told.
    fn nobody_is_left(&self, members: &Members) -> bool {
        let ours = |sid: i32| self.cx.leaders.contains_key(&sid);
        members.is_gone(&mut self.cx.lookout.borrow_mut(), &ours)
    }

    /// The command has ended by itself, and execd is about to end what it has left: the report says
    /// what that is, where something is left.
    pub(in crate::server::engine) fn note_background(&mut self) {
        let told = |front: &RunFront| front.timed_out.is_some() != front.kept.is_some();
        if self.cx.front.as_ref().is_none_or(told) {
            return;
        }
        let Some(core) = self.front_core().filter(|core| core.status().is_some()) else { return };
        let members = self.cx.members_of(core);
        if self.nobody_is_left(&members) {
            return;
        }
        let mut left = self.cx.living(&members);
        left.retain(|one| one.is_alive());
        let mut names = String::new();
        for one in left.iter().take(LEFT_NAMED) {
            let comma = if names.is_empty() { "" } else { ", " };
            // Writing to a string does not fail.
            let _ = write!(names, "{comma}{} ({})", proc::name(one.pid), one.pid);
        }
        if left.len() > LEFT_NAMED {
            let _ = write!(names, " and {} more", left.len() - LEFT_NAMED);
        }
        let timed_out = self.cx.front.as_ref().is_some_and(|front| front.timed_out.is_some());
        let note = if timed_out {
            format!("left running by the command, and ended by the timeout: {names}")
        } else {
            format!(
                "left running by the command, and ended with it: {names}; \
                 --keep-background waits for them"
            )
        };
        let report = self.cx.front.as_mut().and_then(|front| front.report.as_mut());
        if let Some(report) = report.filter(|_| !left.is_empty()) {
            report.note = Some(note);
        }
    }

    /// Ends execd once nothing is left of what the command has left in the background.
    pub(in crate::server::engine) fn look_at_background(&mut self) {
        let Some(front) = self.cx.front.as_ref().filter(|_| self.cx.closing.is_none()) else {
            return;
        };
        let Some(status) = front.kept else { return };
        let outlived = &self.sessions.outlived;
        let over = match self.sessions.get(front.session) {
            // Whoever holds the output is waited for as well.
            Some(entry) if !entry.core.life.finished() => false,
            Some(entry) => self.nobody_is_left(&self.cx.members_of(&entry.core)),
            None => outlived.over.is_empty() && !outlived.left.contains_key(&front.session),
        };
        if over {
            self.close(Cause::Ran(status), None);
        }
    }
}
