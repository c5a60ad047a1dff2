//! By whom a session was ended (protocol.md, killed_by). It is told only where it is true: execd
//! has sent its leader a signal while the leader ran, or the leader was ended by a signal that
//! neither execd nor the program itself can have sent.

use super::life::ExitStatus;
use crate::limits::{JOB_KILL_WAIT_MS, NS_PER_MS};

/// SIGKILL and the signals that a terminal sends for keys, numbers of signal(7).
const SIGKILL: i32 = 9;
const OF_KEYS: [i32; 2] = [2, 3];
/// Signals that a program brings on itself, or that the kernel sends for what the program did:
/// SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGPIPE, SIGALRM, SIGXCPU, SIGXFSZ,
/// SIGVTALRM, SIGPROF, SIGSYS.
const OF_ITS_OWN: [i32; 13] = [4, 5, 6, 7, 8, 11, 13, 14, 24, 25, 26, 27, 31];

/// By whom, or for what, a session was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KilledBy {
    /// Its time was over.
    Timeout,
    /// It went over a bound that its call had set, in cost say.
    Limit,
    /// A new session needed its place in the table.
    Eviction,
    /// The method kill_session.
    KillSession,
    /// A person, by `execd kill`.
    ExecdKill,
    /// A person, in the program that the client is.
    TheUser,
    /// The methods kill_process, and poll_process with killIf.
    KillProcess,
    /// The action kill of tmux.
    KillWindow,
    /// The request that waited for it was cancelled.
    Cancel,
    /// The end of execd.
    Shutdown,
    /// The end of execd, or of the session, because its client had gone.
    ClientGone,
    /// A signal that execd did not send.
    Outside,
}

impl KilledBy {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Limit => "limit",
            Self::Eviction => "eviction",
            Self::KillSession => "kill_session",
            Self::ExecdKill => "execd kill",
            Self::TheUser => "the user",
            Self::KillProcess => "kill_process",
            Self::KillWindow => "kill_window",
            Self::Cancel => "cancel",
            Self::Shutdown => "shutdown",
            Self::ClientGone => "client_gone",
            Self::Outside => "signal from outside",
        }
    }
}

/// Who ended a session, for whoever asks for that session and did not end it; `None` where nobody
/// else has. `word` is that of [`KilledBy::as_str`].
pub fn who(word: &str) -> Option<&'static str> {
    Some(match word {
        "execd kill" => "execd kill (a person)",
        "the user" => "the user",
        "eviction" => "eviction (a new session needed its place)",
        "timeout" => "its timeout",
        "limit" => "a limit of its run",
        "client_gone" => "the end of its client",
        "shutdown" => "the end of execd",
        "kill_session" => "kill_session of another client",
        "kill_process" => "kill_process of another client",
        "kill_window" => "another client, which closed its window",
        "cancel" => "another client, which cancelled its call",
        _ => return None,
    })
}

/// What execd does to end a session whose leader runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Killing {
    /// Who asked for it.
    pub by: KilledBy,
    /// The signal that is sent first.
    pub signal: i32,
    /// When it began.
    pub since_ns: u64,
    /// The end is sure: SIGKILL follows the signal, or is the signal.
    pub sure: bool,
    /// The leader was sent a signal.
    pub reached: bool,
}

impl Killing {
    /// What is told as the reason when one more end is asked for: the first one that is sure stays
    /// the reason, whoever asks later.
    pub fn or_later(first: Option<Self>, later: Self) -> Self {
        first.filter(|first| first.sure).unwrap_or(later)
    }

    /// Whether an end at `ended_ns` followed from it. A program may handle a signal that no SIGKILL
    /// follows, and end by itself much later.
    fn ended(&self, status: ExitStatus, ended_ns: u64) -> bool {
        let soon = ended_ns.saturating_sub(self.since_ns) <= JOB_KILL_WAIT_MS * NS_PER_MS;
        self.reached && (self.sure || soon || status == ExitStatus::Signal(self.signal))
    }
}

/// What is known of a leader that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// When.
    pub at_ns: u64,
    /// Whether execd has sent SIGKILL.
    pub sigkill_sent: bool,
    /// Whether it had a terminal, whose keys send signals.
    pub tty: bool,
}

/// By whom a session was ended; `None`: it ended by itself, or that can't be told.
pub fn killed_by(ended: Ended, killing: Option<Killing>) -> Option<KilledBy> {
    let ours = killing.filter(|one| one.ended(ended.status, ended.at_ns)).map(|one| one.by);
    match ended.status {
        ExitStatus::Code(_) => ours,
        ExitStatus::Signal(SIGKILL) if !ended.sigkill_sent => Some(KilledBy::Outside),
        ExitStatus::Signal(signal) => {
            let keys = ended.tty && OF_KEYS.contains(&signal);
            let own = keys || OF_ITS_OWN.contains(&signal);
            ours.or_else(|| (!own).then_some(KilledBy::Outside))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: ExitStatus) -> Ended {
        Ended { status, at_ns: 0, sigkill_sent: false, tty: false }
    }

    fn killing(signal: i32, sure: bool) -> Killing {
        Killing { by: KilledBy::Timeout, signal, since_ns: 0, sure, reached: true }
    }

    /// rule: protocol.md, killed_by: An end that execd did not bring about is told as a signal from
    ///   outside, or not at all
    #[test]
    fn without_a_kill_only_a_signal_that_cannot_be_its_own_is_from_outside() {
        use ExitStatus::{Code, Signal};
        assert_eq!(killed_by(ended(Code(0)), None), None);
        assert_eq!(killed_by(ended(Signal(15)), None), Some(KilledBy::Outside));
        assert_eq!(killed_by(ended(Signal(9)), None), Some(KilledBy::Outside));
        assert_eq!(killed_by(ended(Signal(11)), None), None, "a crash is its own");
        assert_eq!(killed_by(ended(Signal(2)), None), Some(KilledBy::Outside));
        let tty = Ended { tty: true, ..ended(Signal(2)) };
        assert_eq!(killed_by(tty, None), None, "a key may have sent it");
    }

    /// rule: protocol.md, killed_by: Who asked is told where execd has sent the shell a signal that
    ///   ended it
    #[test]
    fn a_kill_is_the_reason_where_it_reached_the_leader_and_ended_it() {
        use ExitStatus::{Code, Signal};
        let term = killing(15, true);
        assert_eq!(killed_by(ended(Code(143)), Some(term)), Some(KilledBy::Timeout));
        assert_eq!(killed_by(ended(Signal(6)), Some(term)), Some(KilledBy::Timeout));
        // The out-of-memory killer was faster than our SIGTERM's SIGKILL.
        assert_eq!(killed_by(ended(Signal(9)), Some(term)), Some(KilledBy::Outside));
        let sent = Ended { sigkill_sent: true, ..ended(Signal(9)) };
        assert_eq!(killed_by(sent, Some(term)), Some(KilledBy::Timeout));
        let missed = Killing { reached: false, ..term };
        assert_eq!(killed_by(ended(Code(0)), Some(missed)), None, "it had ended by itself");
    }

    /// rule: protocol.md, killed_by: A signal that no SIGKILL follows counts for 2 s, and where the
    ///   session ended by it
    #[test]
    fn a_signal_that_may_be_handled_is_the_reason_for_a_while_only() {
        use ExitStatus::{Code, Signal};
        let int = killing(2, false);
        let later = |status| Ended { at_ns: JOB_KILL_WAIT_MS * NS_PER_MS + 1, ..ended(status) };
        assert_eq!(killed_by(ended(Code(1)), Some(int)), Some(KilledBy::Timeout));
        assert_eq!(killed_by(later(Code(1)), Some(int)), None);
        assert_eq!(killed_by(later(Signal(2)), Some(int)), Some(KilledBy::Timeout));
        assert_eq!(killed_by(later(Signal(15)), Some(int)), Some(KilledBy::Outside));
    }

    #[test]
    fn the_first_sure_end_stays_the_reason() {
        let later = Killing { by: KilledBy::Shutdown, ..killing(15, true) };
        let by = |first| Killing::or_later(first, later).by;
        assert_eq!(by(None), KilledBy::Shutdown);
        assert_eq!(by(Some(killing(15, true))), KilledBy::Timeout);
        assert_eq!(by(Some(killing(2, false))), KilledBy::Shutdown);
    }
}
