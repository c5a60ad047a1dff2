//! What a call of read_output wants.

use crate::limits::LOG_RANGE_MAX_BYTES;
use crate::pure::text::page::Shown;
use crate::pure::until::TextWatch;
use crate::server::session::output::Source;
use crate::server::session::wait_report::WaitReport;
use crate::server::session::{Session, SessionId};

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At this byte.
    At(u64),
    /// So many bytes before the end.
    Back(u64),
    /// So that it reaches the end.
    Last,
}

/// Which part of a session's output is wanted, and how.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// The session.
    pub id: SessionId,
    /// The stream that is asked for alone; `None`: both in one.
    pub source: Option<Source>,
    /// Where the page begins.
    pub from: Begin,
    /// Behind the last byte; `None`: the end of the output.
    pub to: Option<u64>,
    /// Bytes at most.
    pub most: u64,
    /// The last so many lines.
    pub lines: Option<usize>,
    /// How it is shown.
    pub shown: Shown,
    /// The page begins where the call found the output's end, inside of a line or not.
    pub from_now: bool,
    /// The answer carries the events that its client was not told yet.
    pub tells_events: bool,
}

impl Ask {
    /// The first byte that is wanted of `total`, and the one behind the last.
    pub fn span(&self, total: u64) -> (u64, u64) {
        let to = self.to.map_or(total, |to| to.min(total));
        let back = |most: u64| to.saturating_sub(most);
        let from = match self.from {
            Begin::At(from) => from.min(total),
            Begin::Back(bytes) => total.saturating_sub(bytes),
            Begin::Last => back(self.most),
        };
        // Lines are told from one piece that is read at once, with the bytes in front of it.
        let piece = self.most.min(LOG_RANGE_MAX_BYTES);
        let from = if self.lines.is_some() { from.max(back(piece)) } else { from };
        (from, to.max(from))
    }
}

/// The look at the output of a session that has left the table.
#[derive(Debug)]
pub struct Scan {
    /// The look-out for what is asked for.
    pub watch: TextWatch,
    /// When the look is given up.
    pub due_ns: u64,
}

/// A call of read_output that waits.
#[derive(Debug)]
pub struct Plan {
    /// What is wanted.
    pub ask: Ask,
    /// From which byte on output is waited for or looked at.
    pub looks_from: u64,
    /// Output at or behind that byte ends the wait.
    pub by_output: bool,
    /// The look at what is there already, of a session that has left the table.
    pub scan: Option<Box<Scan>>,
    /// Where that look, of whatever session, goes on.
    pub scanned_to: u64,
    /// The keeper was asked for something to look at.
    pub scans: bool,
    /// The keeper was asked for the page.
    pub reads: bool,
    /// The client or the end of execd has ended the wait: nothing is read.
    pub ends_early: bool,
    /// What is said of the wait.
    pub told: Option<WaitReport>,
}

impl Plan {
    /// A call that does not wait.
    pub fn new(ask: Ask) -> Self {
        Self {
            ask,
            looks_from: 0,
            by_output: false,
            scan: None,
            scanned_to: 0,
            scans: false,
            reads: false,
            ends_early: false,
            told: None,
        }
    }

    /// Whether output has come at or behind the byte from which on it is waited for.
    pub fn has_come(&self, core: &Session) -> bool {
        total_of(core, self.ask.source) > self.looks_from
    }
}

/// Bytes of one of a session's streams, or of both.
pub fn total_of(core: &Session, source: Option<Source>) -> u64 {
    let total = core.output_bytes_total();
    match source {
        None => total,
        Some(Source::Output) => total - core.errors_total.min(total),
        Some(Source::Errors) => core.errors_total,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: Begin, to: Option<u64>, lines: Option<usize>, total: u64) -> (u64, u64) {
        let (id, source, shown, from_now) = (1, None, Shown::Clean, false);
        let tells_events = false;
        Ask { id, source, from, to, most: 10, lines, shown, from_now, tells_events }.span(total)
    }

    #[test]
    fn a_page_is_within_what_there_is() {
        use Begin::{At, Back, Last};
        assert_eq!(span(Last, None, None, 100), (90, 100));
        assert_eq!(span(Last, None, None, 7), (0, 7));
        assert_eq!(span(Last, Some(50), None, 100), (40, 50));
        assert_eq!(span(At(3), None, None, 100), (3, 100));
        assert_eq!(span(At(300), None, None, 100), (100, 100));
        assert_eq!(span(At(3), Some(300), None, 100), (3, 100));
        assert_eq!(span(Back(4), None, None, 100), (96, 100));
        assert_eq!(span(Back(400), None, None, 100), (0, 100));
        assert_eq!(span(Back(4), Some(50), None, 100), (96, 96));
        // Lines are the last ones: what is further back than a page is not looked at.
        assert_eq!(span(At(3), None, Some(2), 100), (90, 100));
        assert_eq!(span(At(95), None, Some(2), 100), (95, 100));
    }
}
