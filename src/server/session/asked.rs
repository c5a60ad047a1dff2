//! What a call waits for besides its time and the exit, what it is shown of output and of input,
//! and what came true of that (waits.md).

use std::rc::Rc;

use super::Session;
use super::doing::Seen;
use super::idle::Idle;
use super::listening::Listening;
use super::ports::{self, HeldPort, PortWait};
use crate::limits::READ_BUFFER_BYTES;
use crate::pure::until::{Condition, Echo, Hit, TextWatch};
use crate::sys::pty;

/// Bytes of output before the first one that is looked at, in which a sequence may have begun that
/// goes on there.
const LEAD_BYTES: usize = 4 * 1024;

/// Output that is searched at once while a search may be slow: a line of the longest kind.
const SEARCH_PIECE_BYTES: usize = 8 * 1024;

/// What `until` and `stop` of a call asked for.
pub type Conditions = (Option<Rc<Condition>>, Option<Rc<Condition>>);

/// What a call waits for: `until` ends the wait well, `stop` ends it as a failure.
#[derive(Debug)]
pub struct Asked {
    /// What ends the wait as matched.
    pub until: Option<Rc<Condition>>,
    /// What ends the wait as stopped.
    pub stop: Option<Rc<Condition>>,
    /// The look-out for the patterns of both, where there are any.
    pub text: Option<TextWatch>,
    /// The search of the last piece was quick: larger ones may be read.
    pub searches_fast: bool,
    /// Output from before the wait is still being shown to `text`: what comes meanwhile is not, and
    /// is among what follows.
    pub catching_up: bool,
    /// A deadline is set for the end of an unfinished line: further output need not ask for one.
    pub quiet_asked: bool,
    /// What is known of the session's quiet, for each that asked for it.
    pub idle: Vec<Idle>,
    /// How many of the session's processes were left when the wait was over.
    pub left: Option<usize>,
    /// What is kept for ports, where any are waited for.
    pub ports: Option<Box<PortWait>>,
}

impl Asked {
    /// What a call waits for that begins at `now_ns` and is told a session's output from the byte
    /// `offset` on; None where it asked for nothing. What is there of the output already is to be
    /// shown to `text` first.
    pub fn new((until, stop): Conditions, offset: u64, now_ns: u64) -> Option<Box<Self>> {
        if until.is_none() && stop.is_none() {
            return None;
        }
        let text = TextWatch::new(until.clone(), stop.clone(), offset);
        let (idle, left) = (Vec::new(), None);
        let ports = ports::wait_for(until.as_ref(), stop.as_ref());
        let (searches_fast, catching_up, quiet_asked) = (false, false, false);
        let mut asked =
            Self { until, stop, text, searches_fast, catching_up, quiet_asked, ports, idle, left };
        let idle = |(by_stop, one): (bool, &Rc<Condition>)| {
            one.idle_ms.map(|ms| Idle::new(by_stop, ms, !one.idle_cpu, now_ns))
        };
        asked.idle = asked.conditions().filter_map(idle).collect();
        Some(Box::new(asked))
    }

    /// What a call waits for that is told the session's unread output.
    pub fn of_unread(conditions: Conditions, core: &Session, now_ns: u64) -> Option<Box<Self>> {
        let offset = core.output_bytes_total().saturating_sub(core.view.shown_bytes());
        let mut asked = Self::new(conditions, offset, now_ns)?;
        if let Some(text) = &mut asked.text {
            text.goes_on_behind(&core.lead_of(offset));
            core.view.show(text);
        }
        Some(asked)
    }

    /// Input is about to be written, that may come back as output.
    pub fn sent(&mut self, bytes: &[u8], echo: Echo) {
        if let Some(text) = &mut self.text {
            text.sent(bytes, echo);
        }
    }

    /// Both conditions, each with whether it is that of `stop`.
    pub fn conditions(&self) -> impl Iterator<Item = (bool, &Rc<Condition>)> {
        let until = self.until.iter().map(|one| (false, one));
        until.chain(self.stop.iter().map(|one| (true, one)))
    }

    /// Whether the end of everything of the session is waited for, not of its leader alone: and
    /// then, whether it is `stop` that waits for it.
    pub fn awaits_members(&self) -> Option<bool> {
        self.conditions().find(|(_, one)| one.tree_exit).map(|(by_stop, _)| by_stop)
    }

    /// What an answer says of the members that are left although their end was waited for.
    pub fn left_words(&self) -> Option<String> {
        Some(match self.left? {
            1 => "1 process of the session is left".to_owned(),
            left => format!("{left} processes of the session are left"),
        })
    }

    /// Who holds a port that is waited for and that the session does not listen on.
    pub fn held_port_words(&self) -> Option<String> {
        self.ports.as_ref()?.held.as_ref().map(HeldPort::words)
    }

    /// Output came. Whether the session is to be judged for it: a pattern matched, or a match rests
    /// on the end of the line, and nobody looks for that yet.
    pub fn take(&mut self, bytes: &[u8]) -> bool {
        let catching_up = self.catching_up;
        let Some(text) = self.text.as_mut().filter(|text| !catching_up && text.hit().is_none())
        else {
            return false;
        };
        text.push(bytes);
        if text.hit().is_some() {
            return true;
        }
        let asks = text.wants_quiet() && !self.quiet_asked;
        self.quiet_asked |= asks;
        asks
    }

    /// The condition of `stop` or of `until`.
    pub fn condition(&self, by_stop: bool) -> Option<&Rc<Condition>> {
        if by_stop { self.stop.as_ref() } else { self.until.as_ref() }
    }
}

impl Session {
    /// The waits that search the output.
    fn searches(&mut self) -> impl Iterator<Item = &mut Asked> {
        let asked = self.waits.iter_mut().filter_map(|wait| wait.asked.as_deref_mut());
        asked.filter(|asked| asked.text.is_some())
    }

    /// How much output may be read at once: little while a wait may search slowly for a pattern.
    pub fn piece_bytes(&mut self) -> usize {
        let slow = self.searches().any(|asked| !asked.searches_fast);
        if slow { SEARCH_PIECE_BYTES } else { READ_BUFFER_BYTES }
    }

    /// A piece was read and searched within that time.
    pub fn note_search(&mut self, fast: bool) {
        self.searches().for_each(|asked| asked.searches_fast = fast);
    }

    /// What becomes of input that comes back as output.
    pub fn echo(&self) -> Echo {
        let terminal = self.output.fd().filter(|_| self.facts.tty);
        terminal.map_or(Echo::Nothing, pty::echo)
    }

    /// Input is about to be written: waits that look for patterns do not take its echo for output.
    pub fn note_sent(&mut self, bytes: &[u8]) {
        if bytes.is_empty() || !self.waits.iter().any(|wait| wait.looks_for_text()) {
            return;
        }
        let echo = self.echo();
        for asked in self.waits.iter_mut().filter_map(|wait| wait.asked.as_mut()) {
            asked.sent(bytes, echo);
        }
    }

    /// The last bytes of the output before `offset`, from the beginning of a line or of a sequence
    /// on; none where they are not kept any more.
    pub fn lead_of(&self, offset: u64) -> Vec<u8> {
        let behind = usize::try_from(self.tail.total_bytes() - offset).unwrap_or(usize::MAX);
        let (mut last, _) = self.tail.last(behind.saturating_add(LEAD_BYTES));
        last.truncate(last.len().saturating_sub(behind));
        let line = last_line_of(&last);
        // What begins in the middle of a line may begin in the middle of a sequence.
        let whole = line.len() < last.len() || last.len() as u64 == offset;
        let from = if whole { Some(0) } else { memchr::memchr(0x1B, line) };
        from.map(|from| line[from..].to_vec()).unwrap_or_default()
    }
}

/// What stands behind the last newline.
fn last_line_of(bytes: &[u8]) -> &[u8] {
    &bytes[memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1)..]
}

/// How a wait ended that neither its time nor an exit ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutcomeKind {
    /// What `until` asked for came true.
    #[default]
    Matched,
    /// What `stop` asked for came true.
    Stopped,
    /// Nothing that was asked for can come true any more.
    Impossible,
}

/// What ended a wait.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Which way.
    pub kind: OutcomeKind,
    /// The field that came true.
    pub by: &'static str,
    /// The place of what came true in the list of its field.
    pub index: Option<usize>,
    /// The line that matched.
    pub text: Option<String>,
    /// The groups of the regular expression that matched.
    pub captures: Vec<Option<String>>,
    /// The byte of the session's output at which the line begins.
    pub offset: Option<u64>,
    /// The byte behind what was looked at of the line.
    pub next_offset: Option<u64>,
    /// The port that is listened on.
    pub port: Option<Listening>,
    /// The status that a page was answered with.
    pub status: Option<u16>,
    /// What the session does: which kind of input it waits for.
    pub state: Option<&'static str>,
    /// The name of the process that waits for input.
    pub command: Option<String>,
    /// Whether it was so when the call came.
    pub present_at_entry: bool,
    /// Why nothing can come true any more.
    pub why: Option<String>,
    /// What the session was doing, where that is why.
    pub seen: Option<Seen>,
}

impl Outcome {
    /// What came true of `until`, or of `stop`.
    pub fn came_true(by: &'static str, by_stop: bool) -> Self {
        let kind = if by_stop { OutcomeKind::Stopped } else { OutcomeKind::Matched };
        Self { kind, by, ..Self::default() }
    }

    /// Nothing can come true any more.
    pub fn impossible(why: String) -> Self {
        Self { kind: OutcomeKind::Impossible, why: Some(why), ..Self::default() }
    }

    /// A pattern matched in a session that had written `began_total` bytes when the call came.
    pub fn of_hit(hit: &Hit, began_total: u64) -> Self {
        Self {
            index: Some(hit.index),
            text: Some(hit.text.clone()),
            captures: hit.captures.clone(),
            offset: Some(hit.offset),
            next_offset: Some(hit.next_offset),
            present_at_entry: hit.next_offset <= began_total,
            ..Self::came_true(hit.by, hit.by_stop)
        }
    }
}
