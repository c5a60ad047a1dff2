//! The requests that wait for several sessions: what has become of each of these, and the rows of
//! the answer as far as they are made.

use super::row::Row;
use crate::limits::NS_PER_MS;
use crate::pure::group::{Mode, One, Over};
use crate::server::session::asked::Outcome;
use crate::server::session::wait::{Cancel, Why};
use crate::server::session::wait_report::WaitReport;
use crate::server::session::{SessionId, Ticket};
use std::collections::BTreeMap;

/// That a session can't go on counts for so long: twice the longest pause between two looks. Only
/// input of another client changes it, which this client is not told of.
const STUCK_FRESH_MS: u64 = 1_000;

/// Output that a row of such an answer may have all the same.
const WAIT_FOR_ROW_BYTES: usize = 128;

/// How a group is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// What has become of its sessions, and the place of the one that decided.
    By(Over, usize),
    /// Its time, its client, or the end of execd.
    Early(Why),
}

/// One session of a group.
#[derive(Debug)]
struct Member {
    id: SessionId,
    one: One,
    /// When that was last found to be so.
    found_ns: u64,
    /// Why it could not go on then.
    stuck: Option<Box<Outcome>>,
    row: Option<Row>,
}

/// A request that waits for several sessions.
#[derive(Debug)]
pub struct Group {
    mode: Mode,
    /// Whether the output of those whose condition came true is told.
    take: bool,
    members: Vec<Member>,
    end: Option<End>,
    /// Bytes of output that the rows may still hold.
    text_left: usize,
    /// What is said of the wait itself.
    pub report: Option<WaitReport>,
    /// Whether output of any of the sessions came meanwhile.
    pub saw_new_output: bool,
    /// How long the wait may last.
    pub timeout_ms: u64,
    /// Whether the answer carries the events that its client was not told yet.
    pub tells_events: bool,
    /// A note that the answer passes on.
    pub note: Option<String>,
    /// Whether the text has only lines that tell something.
    pub compact: bool,
    /// How the client has cancelled it, where it did.
    pub cancel: Cancel,
}

impl Group {
    /// A group of these sessions, of none of which anything is known yet; `text_bytes`: output of
    /// all of them.
    pub fn new(
        mode: Mode,
        take: bool,
        ids: &[SessionId],
        timeout_ms: u64,
        text_bytes: usize,
    ) -> Self {
        let member = |id: &SessionId| Member {
            id: *id,
            one: One::Waits,
            found_ns: 0,
            stuck: None,
            row: None,
        };
        Self {
            mode,
            take,
            members: ids.iter().map(member).collect(),
            end: None,
            text_left: text_bytes,
            report: None,
            saw_new_output: false,
            timeout_ms,
            tells_events: false,
            note: None,
            compact: false,
            cancel: Cancel::default(),
        }
    }

    /// The sessions of the group.
    pub fn sessions(&self) -> Vec<SessionId> {
        self.members.iter().map(|member| member.id).collect()
    }

    /// The sessions, each with whether its row tells its end.
    pub fn told(&self) -> Vec<(SessionId, bool)> {
        let rows = self.members.iter().filter_map(|member| member.row.as_ref());
        rows.map(|row| (row.session_id, row.tells_end)).collect()
    }

    fn place(&self, id: SessionId) -> Option<usize> {
        self.members.iter().position(|member| member.id == id)
    }

    /// How the group is over, once it is.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Whether the client has cancelled it and may not look at the answer: then nothing is told of
    /// any output.
    pub fn is_unheard(&self) -> bool {
        self.end == Some(End::Early(Why::Cancelled)) && !self.cancel.take
    }

    /// The client has cancelled it.
    pub fn cancel(&mut self, how: &Cancel) {
        if self.end.is_none() {
            self.cancel = how.clone();
        }
        self.end_early(Why::Cancelled);
    }

    /// The group is over for a reason of its own.
    pub fn end_early(&mut self, why: Why) {
        self.end.get_or_insert(End::Early(why));
    }

    /// Notes what has become of a session, and whether the group is over with that. Of one that is
    /// over already the row tells the more.
    pub fn learn(&mut self, id: SessionId, one: One, now_ns: u64) {
        let Some(at) = self.place(id).filter(|_| !self.is_unheard()) else { return };
        let member = &mut self.members[at];
        member.one = self.mode.learn(member.one, one, self.end.is_some());
        member.found_ns = now_ns;
        if self.end.is_some() {
            return;
        }
        // Another client may have given input meanwhile to one that could not go on.
        let oldest_ns = now_ns.saturating_sub(STUCK_FRESH_MS * NS_PER_MS);
        let known = |member: &Member| match member.one {
            One::Stuck if member.found_ns < oldest_ns => One::Waits,
            one => one,
        };
        let all: Vec<One> = self.members.iter().map(known).collect();
        self.end = self.mode.over(&all, at).map(|(over, by)| End::By(over, by));
    }

    /// What has become of a session. That it could not go on is told only where that was the end of
    /// the wait.
    pub fn one(&self, id: SessionId) -> One {
        let impossible = matches!(self.end, Some(End::By(Over::Impossible, _)));
        let one = self.place(id).map_or(One::Waits, |at| self.members[at].one);
        if one == One::Stuck && !impossible { One::Waits } else { one }
    }

    /// Whether it is known for good what has become of a session.
    pub fn is_decided(&self, id: SessionId) -> bool {
        !matches!(self.one(id), One::Waits | One::Stuck)
    }

    /// The terminal of a session is asked for a password, which ends a wait of any mode. The client
    /// is going to wait again once somebody has answered: what this wait has not told before, the
    /// next one is to tell.
    pub fn end_for_password(&mut self, id: SessionId) {
        let Some(at) = self.place(id).filter(|_| !self.is_unheard()) else { return };
        self.end = Some(End::By(Over::Matched, at));
        self.take = false;
        for row in self.members.iter_mut().filter_map(|member| member.row.as_mut()) {
            row.output = None;
        }
    }

    /// Notes why a session can't go on.
    pub fn note_stuck(&mut self, id: SessionId, why: Option<Box<Outcome>>) {
        if let Some(at) = self.place(id) {
            self.members[at].stuck = why;
        }
    }

    /// Why a session could not go on, where that is what has become of it.
    pub fn stuck_by(&mut self, id: SessionId) -> Option<Box<Outcome>> {
        let stuck = self.one(id) == One::Stuck;
        let at = self.place(id).filter(|_| stuck)?;
        self.members[at].stuck.take()
    }

    /// The session that decided.
    pub fn decider(&self) -> Option<SessionId> {
        let Some(End::By(_, at)) = self.end else { return None };
        self.members.get(at).map(|member| member.id)
    }

    /// Notes a session that was over when the call came, with its row.
    pub fn put_over(&mut self, mut row: Row, now_ns: u64) {
        let failed = row.exit_code != Some(0);
        let report = row.wait.take();
        let one = match report.as_ref().map(|wait| wait.outcome) {
            Some("matched") => One::Matched,
            Some("stopped") => One::Stopped,
            _ => One::Exited { failed },
        };
        row.outcome = report.as_ref().map_or(row.outcome, |wait| wait.outcome);
        self.learn(row.session_id, one, now_ns);
        if failed {
            self.learn(row.session_id, One::Exited { failed }, now_ns);
        }
        if self.decided_by(row.session_id) {
            self.report = report;
        } else {
            row.wait = report.filter(|_| !matches!(one, One::Exited { .. }));
        }
        self.put(row);
    }

    /// Whether the session is the one that decided.
    pub fn decided_by(&self, id: SessionId) -> bool {
        self.decider() == Some(id)
    }

    /// Whether the output of a session is told: its condition came true, or it can't go on.
    pub fn tells(&self, id: SessionId) -> bool {
        self.take && !self.is_unheard() && self.one(id) != One::Waits
    }

    /// Bytes of output that the next row may have: its share of what those before have left.
    pub fn row_bytes(&self) -> usize {
        let to_come = self.members.iter().filter(|member| member.row.is_none()).count();
        (self.text_left / to_come.max(1)).max(WAIT_FOR_ROW_BYTES)
    }

    /// Puts the row of a session in its place.
    pub fn put(&mut self, mut row: Row) {
        let tells = self.take && !self.is_unheard();
        row.output = row.output.filter(|_| tells);
        self.text_left = self.text_left.saturating_sub(row.output.as_ref().map_or(0, String::len));
        if let Some(at) = self.place(row.session_id) {
            self.members[at].row = Some(row);
        }
    }

    /// Whether all rows are made.
    pub fn is_whole(&self) -> bool {
        self.end.is_some() && self.members.iter().all(|member| member.row.is_some())
    }

    /// The rows in the order of the request.
    pub fn into_rows(self) -> Vec<Row> {
        self.members.into_iter().filter_map(|member| member.row).collect()
    }
}

/// All groups, by the ticket of their request.
#[derive(Debug, Default)]
pub struct Groups(BTreeMap<Ticket, Group>);

impl Groups {
    /// The group of a request.
    pub fn get(&self, ticket: Ticket) -> Option<&Group> {
        self.0.get(&ticket)
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Group> {
        self.0.get_mut(&ticket)
    }

    /// Takes a group out, to make a row of it.
    pub fn take(&mut self, ticket: Ticket) -> Option<Group> {
        self.0.remove(&ticket)
    }

    /// Puts a group in.
    pub fn put_back(&mut self, ticket: Ticket, group: Group) {
        self.0.insert(ticket, group);
    }

    /// Forgets the groups of requests that nobody waits for any more: their client is gone.
    pub fn keep(&mut self, waits: impl Fn(Ticket) -> bool) {
        self.0.retain(|ticket, _| waits(*ticket));
    }
}
