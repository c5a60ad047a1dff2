//! Two facts about a session: what became of its leader, and what of its output.
//!
//! Exit and end of output are two facts (architecture.md, A session). The two meet here and nowhere
//! else.

/// The exit status after a signal is this and the signal's number, as shells have it.
pub const EXIT_SIGNAL: i32 = 128;

/// How a process ended, as wait(2) tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitStatus {
    /// The process exited with this code, 0 to 255; -1 where its program could not be started.
    Code(i32),
    /// This signal ended the process, 1 to 64.
    Signal(i32),
}

/// What is known of the session's leader.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Leader {
    /// The leader runs, or sleeps.
    #[default]
    Alive,
    /// A signal stopped it; it may be continued.
    Stopped,
    /// The leader was reaped.
    Dead(ExitStatus),
}

/// What is known of the session's output.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Somebody may still write.
    #[default]
    Open,
    /// A PTY with no slave open just now. While the leader lives it may open it again.
    Quiet,
    /// Nothing will come any more, or nobody cares for it any more.
    Ended,
}

/// One piece of news.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fact {
    /// Output was read.
    Bytes,
    /// Reading the PTY's master gave EIO: no slave is open.
    TtyHangUp,
    /// Reading the pipe gave end of file: nobody has it open for writing.
    PipeEof,
    /// The leader was stopped by a signal.
    Stopped,
    /// The leader was continued.
    Continued,
    /// The leader was reaped. Before telling this of a PTY, read what lies in it.
    Reaped(ExitStatus),
    /// From now on the output is read and thrown away.
    Dropped,
}

/// The state of a session; by default that of one that was just started.
///
/// A dead leader with a quiet stream does not arise from facts: that is an ended stream. Where
/// such a value is made by hand, it is taken as one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Life {
    /// The leader's side.
    pub leader: Leader,
    /// The output's side.
    pub stream: Stream,
}

impl Life {
    /// The state after one more fact. Facts may come in any order and more than once: what has
    /// ended stays ended, and the first exit status stays.
    #[must_use]
    pub fn after(self, fact: Fact) -> Self {
        let leader = match (fact, self.leader) {
            // A pid is reaped once; news of a dead leader is late news.
            (_, dead @ Leader::Dead(_)) => dead,
            (Fact::Reaped(status), Leader::Alive | Leader::Stopped) => Leader::Dead(status),
            (Fact::Stopped, Leader::Alive | Leader::Stopped) => Leader::Stopped,
            (Fact::Continued, Leader::Alive | Leader::Stopped) => Leader::Alive,
            // Output says nothing about a stopped leader: others in the session may write.
            (
                Fact::Bytes | Fact::TtyHangUp | Fact::PipeEof | Fact::Dropped,
                same @ (Leader::Alive | Leader::Stopped),
            ) => same,
        };
        let stream = match (fact, self.stream) {
            // Bytes after the end are those that are thrown away.
            (_, Stream::Ended) => Stream::Ended,
            (Fact::PipeEof | Fact::Dropped, Stream::Open | Stream::Quiet) => Stream::Ended,
            (Fact::TtyHangUp, Stream::Open | Stream::Quiet) => Stream::Quiet,
            // Somebody opened the slave again.
            (Fact::Bytes, Stream::Open) => Stream::Open,
            (Fact::Bytes, Stream::Quiet) if matches!(self.leader, Leader::Dead(_)) => Stream::Ended,
            (Fact::Bytes, Stream::Quiet) => Stream::Open,
            (
                Fact::Stopped | Fact::Continued | Fact::Reaped(_),
                same @ (Stream::Open | Stream::Quiet),
            ) => same,
        };
        match (leader, stream) {
            // With the leader gone, no one is left to open the terminal again.
            (Leader::Dead(_), Stream::Quiet) => Self { leader, stream: Stream::Ended },
            _ => Self { leader, stream },
        }
    }

    /// Whether the session is over: its leader was reaped and its output has ended.
    pub fn finished(self) -> bool {
        matches!(self.leader, Leader::Dead(_)) && self.stream != Stream::Open
    }

    /// How the leader ended; None while it lives, stopped or not.
    pub fn status(self) -> Option<ExitStatus> {
        match self.leader {
            Leader::Dead(status) => Some(status),
            Leader::Alive | Leader::Stopped => None,
        }
    }

    /// Whether the leader is dead while somebody still holds its output.
    pub fn shell_gone(self) -> bool {
        matches!(self.leader, Leader::Dead(_)) && !self.finished()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: ExitStatus = ExitStatus::Code(3);
    const SECOND: ExitStatus = ExitStatus::Signal(9);
    const FACTS: [Fact; 7] = [
        Fact::Bytes,
        Fact::TtyHangUp,
        Fact::PipeEof,
        Fact::Stopped,
        Fact::Continued,
        Fact::Reaped(SECOND),
        Fact::Dropped,
    ];

    /// Two letters for a state: A, S, D for a leader that was reaped before, K for one that is
    /// reaped by the fact; o, q, e for the stream.
    fn state(text: &str) -> Life {
        let leader = match &text[..1] {
            "A" => Leader::Alive,
            "S" => Leader::Stopped,
            "D" => Leader::Dead(FIRST),
            "K" => Leader::Dead(SECOND),
            other => panic!("{other}"),
        };
        let stream = match &text[1..] {
            "o" => Stream::Open,
            "q" => Stream::Quiet,
            "e" => Stream::Ended,
            other => panic!("{other}"),
        };
        Life { leader, stream }
    }

    /// rule: architecture.md, Ending a session: A session is over when its leader was reaped and
    ///   its output has ended
    #[test]
    fn every_cell() {
        // Columns: Bytes, TtyHangUp, PipeEof, Stopped, Continued, Reaped, Dropped.
        let table = [
            ("Ao", ["Ao", "Aq", "Ae", "So", "Ao", "Ko", "Ae"]),
            ("Aq", ["Ao", "Aq", "Ae", "Sq", "Aq", "Ke", "Ae"]),
            ("Ae", ["Ae", "Ae", "Ae", "Se", "Ae", "Ke", "Ae"]),
            ("So", ["So", "Sq", "Se", "So", "Ao", "Ko", "Se"]),
            ("Sq", ["So", "Sq", "Se", "Sq", "Aq", "Ke", "Se"]),
            ("Se", ["Se", "Se", "Se", "Se", "Ae", "Ke", "Se"]),
            ("Do", ["Do", "De", "De", "Do", "Do", "Do", "De"]),
            // This state does not arise; every fact makes it the one it is taken for.
            ("Dq", ["De", "De", "De", "De", "De", "De", "De"]),
            ("De", ["De", "De", "De", "De", "De", "De", "De"]),
        ];
        for (before, row) in table {
            for (fact, expected) in FACTS.into_iter().zip(row) {
                assert_eq!(state(before).after(fact), state(expected), "{before} {fact:?}");
            }
        }
    }
}
