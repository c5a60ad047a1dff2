//! A waiting request as plain data, judged once a turn (architecture.md, A session).

use super::asked::{Asked, Outcome, OutcomeKind};
use super::{SessionId, Ticket};
use crate::limits::{NS_PER_MS, PROGRESS_INTERVAL_MS};

/// So long the time of a wait stands still for a password that its client was told of: a person
/// who has to look it up finds it, and no call waits for ever for one who has left.
const PASSWORD_HOLD_MS: u64 = 10 * 60 * 1_000;

/// The family whose call waits, by its number in the families' table. The floors below the
/// families hand the number back and look no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyId(pub u8);

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// The call has started the session.
    Start,
    /// The call has given the session input, or ended its input.
    Input,
    /// The call looks at the session: what came, or whether the session has ended.
    Poll,
    /// The call waits for the end alone. `or_kill`: what has not ended when the time is over is
    /// ended.
    End {
        /// See above.
        or_kill: bool,
    },
    /// The call ends everything in the session.
    Kill,
}

/// An absolute end of a wait on the wall clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Until {
    /// The stamp as given.
    pub stamp: String,
    /// The stamp's time in milliseconds since 1970.
    pub wall_ms: i64,
}

/// Throttling of a wait's progress notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Two notifications come no closer together than this.
    pub interval_ms: u64,
    /// When the last notification was sent.
    pub sent_ns: Option<u64>,
    /// How much output there had been at the last notification, or at the start of the wait.
    pub sent_total: u64,
}

impl Default for Progress {
    fn default() -> Self {
        Self { interval_ms: PROGRESS_INTERVAL_MS, sent_ns: None, sent_total: 0 }
    }
}

/// How a client cancels a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cancel {
    /// Why, in the client's words.
    pub reason: Option<Box<str>>,
    /// Whether the answer is looked at: then it takes the output so far, like any other answer.
    pub take: bool,
    /// A foreground command of bash goes on in the background, where another cancel ends it.
    pub leave: bool,
    /// What becomes of the command that the request has started; absent: it is left alone.
    pub end: Option<CancelEnd>,
}

/// How the command of a cancelled request is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelEnd {
    /// By SIGINT; where it goes on, it is left running.
    Interrupt,
    /// By SIGTERM, and SIGKILL behind that.
    Kill,
}

/// A password is asked for while a wait lasts whose client is told of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasswordAsked {
    /// What was left of the wait's time then: the time stands still.
    pub left_ns: u64,
    /// Whether its client was told.
    pub told: bool,
}

/// One waiting request.
#[derive(Debug)]
pub struct Wait {
    /// Whom to answer.
    pub ticket: Ticket,
    /// Which family asked, and answers.
    pub asked_by: FamilyId,
    /// What the wait is for.
    pub kind: WaitKind,
    /// Whether new output may end the wait.
    pub by_output: bool,
    /// Whether the answer tells a shell's end as the session's end, so that the answer waits for
    /// the output that others still hold (`pure/time/drain.rs`).
    pub drains: bool,
    /// When the wait began.
    pub since_ns: u64,
    /// When the wait is over on the monotonic clock, where that ends it.
    pub due_ns: Option<u64>,
    /// When the wait is over on the wall clock, where that ends it.
    pub until: Option<Until>,
    /// The relative wait after clamping.
    pub yield_time_ms: Option<u64>,
    /// Gives the text unprocessed.
    pub raw_output: bool,
    /// Present when progress was asked for.
    pub progress: Option<Progress>,
    /// Whether the client cancelled the request.
    pub cancelled: bool,
    /// How, where it did.
    pub cancel: Cancel,
    /// Whether the leader lived when the wait began.
    pub saw_leader: bool,
    /// Since when the wait has its verdict and only the log keeps it from being answered.
    pub held_since_ns: Option<u64>,
    /// The wait is over, but its client has no room for the answer.
    pub held_back: bool,
    /// The shutdown reached the wait while its session ran: that is the answer, whatever follows.
    pub shut_down: bool,
    /// What the wait is for is known of this session, which has ended; the request goes on for
    /// others, and is answered with them.
    pub parked: bool,
    /// What went wrong in this call besides the session's own trouble.
    pub failure: Option<String>,
    /// Whether the answer carries the events that its client was not told yet.
    pub tells_events: bool,
    /// Whether the answer's header has only lines that tell something.
    pub compact: bool,
    /// The sessions that were evicted for the one that the call has started, as the warning says.
    pub evicted: Vec<SessionId>,
    /// A note that the answer passes on.
    pub note: Option<String>,
    /// A warning that the answer passes on.
    pub warning: Option<String>,
    /// What the call waits for besides its time and the exit, where it said so.
    pub asked: Option<Box<Asked>>,
    /// Whether a wait that nothing but our own input can end is answered then.
    pub answers_impossible: bool,
    /// The wait ends when the session's terminal is asked for a password.
    pub until_password: bool,
    /// Its client is told when the session's terminal is asked for a password.
    pub tells_password: bool,
    /// Since that is so.
    pub password: Option<PasswordAsked>,
    /// Whether the answer tells what the session is doing, where the session goes on.
    pub tells_state: bool,
    /// When that will be, at the latest. Of a wait until a time of the wall clock it is what that
    /// clock said when the wait began.
    pub tells_ns: Option<u64>,
    /// What ended the wait, where that is neither a time nor an exit: set once, before the
    /// verdict.
    pub outcome: Option<Box<Outcome>>,
    /// When what the wait is for is to be looked at again, although nothing happens.
    pub look_ns: Option<u64>,
    /// How much output the session had written when the wait began.
    pub began_total: u64,
}

impl Wait {
    /// A wait without a deadline, that asks for nothing special.
    pub fn new(ticket: Ticket, asked_by: FamilyId, kind: WaitKind, since_ns: u64) -> Self {
        Self {
            ticket,
            asked_by,
            kind,
            by_output: false,
            drains: true,
            since_ns,
            due_ns: None,
            until: None,
            yield_time_ms: None,
            raw_output: false,
            progress: None,
            cancelled: false,
            cancel: Cancel::default(),
            saw_leader: true,
            held_since_ns: None,
            held_back: false,
            shut_down: false,
            parked: false,
            failure: None,
            tells_events: false,
            compact: false,
            evicted: Vec::new(),
            note: None,
            warning: None,
            asked: None,
            answers_impossible: false,
            until_password: false,
            tells_password: false,
            password: None,
            tells_state: false,
            tells_ns: None,
            outcome: None,
            look_ns: None,
            began_total: 0,
        }
    }
}

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The session has exited.
    Completed,
    /// The wait's time is over.
    Deadline,
    /// The stamp of yield_until has come.
    AbsoluteDeadline,
    /// The client cancelled it.
    Cancelled,
    /// execd is ending.
    ShuttingDown,
    /// The shell has exited, but others hold its output.
    ShellGone,
    /// What `until` asked for has come true.
    Matched,
    /// What `stop` asked for has come true.
    Stopped,
    /// Nothing that was asked for can come true any more.
    Impossible,
}

impl Why {
    /// The word of `wait_status`. A wait that ended with the shell ended at a deadline of its
    /// own, 50 ms after it; `note` tells which.
    pub fn wait_status(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Deadline | Self::ShellGone => "deadline_reached",
            Self::AbsoluteDeadline => "absolute_deadline_reached",
            Self::Cancelled => "cancelled",
            Self::ShuttingDown => "shutting_down",
            Self::Matched | Self::Stopped | Self::Impossible => "condition_met",
        }
    }
}

/// What a wait is judged against.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The turn's time.
    pub now_ns: u64,
    /// The turn's time on the wall clock.
    pub wall_ms: i64,
    /// Whether the session is over.
    pub finished: bool,
    /// Whether those that saw the shell end wait no more for the output that others hold.
    pub left_to_holders: bool,
    /// Whether pending requests answer with what they have.
    pub closing: bool,
}

impl Wait {
    /// The note of an answer about a port that was waited for and that somebody else holds.
    pub fn held_port_note(&self) -> Option<String> {
        let asked = self.asked.as_ref().filter(|_| self.outcome.is_none());
        asked.and_then(|asked| asked.held_port_words())
    }

    /// Why this wait is over at `moment`; `None` while it goes on. The wait of a kill is judged
    /// by the end that it waits for (`Session::verdict`), and comes here only when it was
    /// cancelled.
    pub fn verdict(&self, moment: &Moment) -> Option<Why> {
        let tells_exit = self.cancel.take && moment.finished && !self.waits_for_members();
        if self.cancelled && !tells_exit {
            return Some(Why::Cancelled);
        }
        if self.shut_down {
            return Some(Why::ShuttingDown);
        }
        if moment.finished && !self.waits_for_members() {
            return Some(Why::Completed);
        }
        if let Some(outcome) = &self.outcome {
            return Some(match outcome.kind {
                OutcomeKind::Matched => Why::Matched,
                OutcomeKind::Stopped => Why::Stopped,
                OutcomeKind::Impossible => Why::Impossible,
            });
        }
        self.late(moment)
    }

    /// Why this wait is over although nothing came true that it was for.
    fn late(&self, moment: &Moment) -> Option<Why> {
        let time = if moment.finished { Why::Completed } else { Why::Deadline };
        if self.due_ns.is_some_and(|due| due <= moment.now_ns) {
            return Some(time);
        }
        if self.until.as_ref().is_some_and(|until| until.wall_ms <= moment.wall_ms) {
            let absolute = if moment.finished { time } else { Why::AbsoluteDeadline };
            return Some(absolute);
        }
        if self.ends_with_shell() && moment.left_to_holders {
            return Some(Why::ShellGone);
        }
        moment.closing.then_some(Why::ShuttingDown)
    }

    /// When its time is over, as the two clocks are now.
    pub fn ends_ns(&self, now_ns: u64, wall_ms: i64) -> Option<u64> {
        let left_ms = |until: &Until| u64::try_from(until.wall_ms - wall_ms).unwrap_or(0);
        let at_ns = |until| now_ns.saturating_add(left_ms(until).saturating_mul(NS_PER_MS));
        self.due_ns.or_else(|| self.until.as_ref().map(at_ns))
    }

    /// Whether the end of the shell ends the wait also where others hold the output. Who says what
    /// he waits for waits on.
    pub fn ends_with_shell(&self) -> bool {
        self.saw_leader && self.asked.is_none()
    }

    /// Whether the session's end does not end the wait, for members of the session are waited for.
    fn waits_for_members(&self) -> bool {
        self.outcome.is_none()
            && self.asked.as_ref().is_some_and(|asked| asked.awaits_members().is_some())
    }

    /// Whether the answer is one that nobody may look at: it tells nothing for sure.
    pub fn is_unheard(&self, why: Why) -> bool {
        why == Why::Cancelled && !self.cancel.take
    }

    /// A password is asked for: until somebody has answered the wait's time stands still, for
    /// [`PASSWORD_HOLD_MS`] at most.
    pub fn hold_for_password(&mut self, now_ns: u64) {
        if let (None, Some(due_ns)) = (self.password, self.due_ns) {
            let left_ns = due_ns.saturating_sub(now_ns);
            self.password = Some(PasswordAsked { left_ns, told: false });
            self.set_due(now_ns + PASSWORD_HOLD_MS * NS_PER_MS);
        }
    }

    /// The password is waited for no more: the wait's time goes on.
    pub fn go_on_behind_password(&mut self, now_ns: u64) {
        if let Some(asked) = self.password.take() {
            self.set_due(now_ns + asked.left_ns);
        }
    }

    fn set_due(&mut self, due_ns: u64) {
        self.due_ns = Some(due_ns);
        self.tells_ns = self.tells_ns.and(self.due_ns);
    }

    /// Asks to be looked at again, no later than at `at_ns`.
    pub fn look_at(&mut self, at_ns: u64) {
        self.look_ns = Some(self.look_ns.map_or(at_ns, |sooner| sooner.min(at_ns)));
    }

    /// Whether it looks for patterns in output.
    pub fn looks_for_text(&self) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.text.is_some())
    }

    /// Whether it is of interest what the session does: the wait may end by it, and has not yet.
    pub fn wants_look(&self) -> bool {
        let asks = self.asked.is_some() || self.answers_impossible;
        asks && self.outcome.is_none() && !self.parked
    }

    /// Whether its time is over and what it waited for is to be ended then.
    pub fn kills_now(&self, now_ns: u64) -> bool {
        let asked = self.kind == WaitKind::End { or_kill: true };
        let goes_on = !self.cancelled && !self.shut_down;
        asked && goes_on && self.due_ns.is_some_and(|due| due <= now_ns)
    }

    /// When the next progress notification is due, given how much output there has been.
    /// The first one is due at once.
    pub fn progress_due_ns(&self, output_bytes_total: u64) -> Option<u64> {
        let progress = self.progress.filter(|sent| sent.sent_total < output_bytes_total)?;
        Some(progress.sent_ns.map_or(0, |sent| sent + progress.interval_ms * NS_PER_MS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait() -> Wait {
        Wait {
            due_ns: Some(100),
            yield_time_ms: Some(1),
            ..Wait::new(1, FamilyId(0), WaitKind::Poll, 0)
        }
    }

    fn moment() -> Moment {
        Moment { now_ns: 50, wall_ms: 0, finished: false, left_to_holders: false, closing: false }
    }

    /// rule: unified-exec.md, exec_command, result: `wait_status`: completed, deadline_reached,
    ///   absolute_deadline_reached, cancelled, shutting_down
    #[test]
    fn each_reason_ends_a_wait_and_the_exit_beats_the_deadline() {
        let wait = wait();
        assert_eq!(wait.verdict(&moment()), None);
        assert_eq!(wait.verdict(&Moment { now_ns: 100, ..moment() }), Some(Why::Deadline));
        let both = Moment { now_ns: 100, finished: true, ..moment() };
        assert_eq!(wait.verdict(&both), Some(Why::Completed));
        assert_eq!(wait.verdict(&Moment { closing: true, ..moment() }), Some(Why::ShuttingDown));
        let grace = Moment { left_to_holders: true, ..moment() };
        assert_eq!(wait.verdict(&grace), Some(Why::ShellGone));
        let later = Wait { saw_leader: false, ..wait };
        assert_eq!(later.verdict(&grace), None, "a later poll waits normally");
        let cancelled = Wait { cancelled: true, ..later };
        assert_eq!(cancelled.verdict(&both), Some(Why::Cancelled));
        let heard = Wait { cancel: Cancel { take: true, ..Cancel::default() }, ..cancelled };
        assert_eq!(heard.verdict(&both), Some(Why::Completed), "its client is told the exit");
        assert_eq!(heard.verdict(&moment()), Some(Why::Cancelled));
    }

    /// rule: protocol.md, password_asked: Meanwhile its time stands still, for 10 minutes at most
    #[test]
    fn the_time_of_a_wait_stands_still_while_a_password_is_asked_for() {
        let hold_ns = PASSWORD_HOLD_MS * NS_PER_MS;
        let mut wait = Wait { tells_ns: Some(100), ..wait() };
        wait.hold_for_password(30);
        assert_eq!((wait.due_ns, wait.tells_ns), (Some(30 + hold_ns), Some(30 + hold_ns)));
        wait.hold_for_password(40);
        assert_eq!(wait.due_ns, Some(30 + hold_ns), "it is the same prompt");
        wait.go_on_behind_password(1_000);
        assert_eq!((wait.due_ns, wait.tells_ns, wait.password), (Some(1_070), Some(1_070), None));
        wait.go_on_behind_password(2_000);
        assert_eq!(wait.due_ns, Some(1_070));
    }

    #[test]
    fn an_absolute_wait_follows_the_wall_clock_only() {
        let until = Until { stamp: String::new(), wall_ms: 10 };
        let wait = Wait { due_ns: None, until: Some(until), ..wait() };
        assert_eq!(wait.verdict(&Moment { now_ns: u64::MAX, wall_ms: 9, ..moment() }), None);
        let then = Moment { wall_ms: 10, ..moment() };
        assert_eq!(wait.verdict(&then), Some(Why::AbsoluteDeadline));
    }

    /// rule: protocol.md, Notifications: At most four `progress` a second
    #[test]
    fn progress_is_due_at_once_then_four_times_a_second_and_only_when_output_came() {
        let mut wait = wait();
        assert_eq!(wait.progress_due_ns(10), None, "not asked for");
        wait.progress = Some(Progress::default());
        assert_eq!(wait.progress_due_ns(0), None);
        assert_eq!(wait.progress_due_ns(10), Some(0));
        wait.progress = Some(Progress { sent_ns: Some(7), sent_total: 10, ..Progress::default() });
        assert_eq!(wait.progress_due_ns(10), None);
        assert_eq!(wait.progress_due_ns(11), Some(7 + 250_000_000));
    }
}
