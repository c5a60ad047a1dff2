//! One run of pi: its stream is cut into lines, each is read as far as it is needed, and handed to
//! what its event means (`meaning.rs`).

use std::borrow::Cow;
use std::str;

use memchr::memchr;
use serde_json::{Map, Value};

use super::drift::Drift;
use super::event::{Look, look};
use super::lines::{Known, OpenLine};
use super::long::{Cut, Flow, LongLine};
use super::mask::Secret;
use super::model::{Answered, Asked};
use super::text::Transcript;
use super::told::{Compactions, Failure, Retries, Tell, Told};
use super::usage::Totals;
use super::visible::is_whole;
use crate::limits::{
    AGENT_DELTA_BYTES, AGENT_HEAD_BYTES, AGENT_LINE_MAX_BYTES, AGENT_LONG_LINE_BYTES,
    AGENT_NAME_BYTES,
};
use crate::pure::json::fields::Fields;
use crate::pure::json::text::string;

/// The type of the events that are told apart by nothing but their type.
const TOOL_UPDATE: &str = "tool_execution_update";

/// How a run is read.
#[derive(Clone, Debug, Default)]
pub struct RunSettings {
    /// Whether raw events are kept for the report.
    pub keep_events: bool,
    /// The model that is to answer.
    pub asked: Asked,
    /// What the client calls the run: each event has it, and the report.
    pub label: Option<String>,
    /// What nobody may read in what is told. (Lines that hold a text whole come with it masked.)
    pub secret: Option<Secret>,
}

/// What the deadlines of a run go by. Times are milliseconds since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// When the model's first event came: an assistant message_start, a message_update, or an
    /// assistant message_end without either.
    pub first_event_ms: Option<u64>,
    /// When the last event of any kind came.
    pub last_event_ms: u64,
    /// Tools that run now; while there is one, the idle clock stands still.
    pub tools_running: usize,
    /// Since when the run is done and pi should exit; None while it is not.
    pub settled_ms: Option<u64>,
}

/// The stream of one run: bytes in, normalized events out, totals kept.
#[derive(Debug, Default)]
pub struct AgentRun {
    pub(super) settings: RunSettings,
    line: OpenLine,
    /// A longer line is not kept.
    pub(super) long_bytes: usize,
    /// What the line lacks that is being read: it was a long one.
    pub(super) cut: Cut,
    /// Raw events, one a line.
    pub(super) events: String,
    pub(super) events_dropped: u64,
    /// Raw events that tell in pieces what others hold whole, where there is a secret.
    pub(super) events_left_out: u64,
    pub(super) unparsed_lines: u64,
    pub(super) drift: Drift,
    pub(super) clocks: Clocks,
    /// The type of the last event that came.
    pub(super) last_event: Option<Cow<'static, str>>,
    /// The turn that has begun and is not told yet.
    pub(super) held_turn: Option<u64>,
    /// What pi told last of the model that answers.
    pub(super) answered: Answered,
    /// The first answer that came from another model than the one that was asked.
    pub(super) other_model: Option<Answered>,
    /// An agent_end came, and no agent_start since.
    pub(super) agent_ended: bool,
    /// An agent_start came, and no agent_end or agent_settled since.
    pub(super) agent_open: bool,
    pub(super) transcript: Transcript,
    pub(super) totals: Totals,
    /// Of this turn.
    pub(super) turn: Totals,
    pub(super) turn_starts: u64,
    pub(super) turn_ends: u64,
    /// Hashes of the ids of tool calls that were told in this turn.
    pub(super) tools_told: Vec<u64>,
    /// Hashes of the ids of tools that run.
    pub(super) tools_running: Vec<u64>,
    pub(super) tool_call_count: u64,
    pub(super) tool_calls: Map<String, Value>,
    /// When the open answer began.
    pub(super) answer_began_ms: Option<u64>,
    /// Time and tokens of answers whose beginning was seen.
    pub(super) answers_ms: u64,
    pub(super) answers_tokens: u64,
    /// The last settled one, as pi has it.
    pub(super) stop_reason: Option<String>,
    /// What the last answer, or the last of pi's retries, failed with.
    pub(super) failure: Option<Failure>,
    /// An answer has begun, and its end has not come.
    pub(super) answer_open: bool,
    /// The answer of this turn is settled.
    pub(super) turn_answered: bool,
    /// What ended the last turn, hashed; None when another one has begun.
    pub(super) turn_ended: Option<u64>,
    /// Answers that were settled by another event than their own end.
    pub(super) recovered: u64,
    /// None while pi has not made its conversation shorter.
    pub(super) compactions: Option<Compactions>,
    /// Compactions that have begun, and whose end has not come.
    pub(super) compactions_open: u64,
    /// Hashes of the ids of tool calls of this turn whose own usage is counted.
    pub(super) tools_paid: Vec<u64>,
    /// This version of pi says whether it tries again (since 0.87), and waits for its compactions.
    pub(super) tells_retries: bool,
    /// The first thing that is wrong with what an answer says it has used.
    pub(super) wire_fault: Option<String>,
    /// What the provider itself said of why the last answer ended.
    pub(super) raw_stop_reason: Option<String>,
    /// When the first tool was called that changes something.
    pub(super) first_attempt_ms: Option<u64>,
    pub(super) retries: Retries,
    pub(super) session_id: Option<String>,
}

impl AgentRun {
    /// A run of which nothing was read.
    pub fn new(settings: RunSettings) -> Self {
        let transcript = Transcript::new(settings.secret.clone());
        Self { settings, transcript, long_bytes: AGENT_LONG_LINE_BYTES, ..Self::default() }
    }

    /// Takes bytes of pi's stdout as they came. `now_ms` is the time since the run's start.
    pub fn push(&mut self, bytes: &[u8], now_ms: u64, tell: Tell<'_>) {
        self.labelled(tell, |run, tell| {
            let mut rest = bytes;
            while !rest.is_empty() {
                let end = memchr(b'\n', rest);
                let part = &rest[..end.unwrap_or(rest.len())];
                rest = end.map_or(&[], |end| &rest[end + 1..]);
                run.part(part, end.is_some(), now_ms, tell);
            }
        });
    }

    /// The stream has ended. What is left of it without an end of line was cut and counts as
    /// unparsed, unless it is an event as a whole. (Of a message_update that is not known: its end
    /// is never looked at.)
    pub fn finish(&mut self, now_ms: u64, tell: Tell<'_>) {
        self.labelled(tell, |run, tell| {
            run.last_line(now_ms, tell);
            run.release_turn(tell);
            run.unsettled(&mut |_| {});
            run.incomplete(&mut |_| {});
            run.transcript.end_blocks(now_ms, tell);
        });
    }

    /// Each event that is told meanwhile has the run's label.
    fn labelled(&mut self, tell: Tell<'_>, read: impl FnOnce(&mut Self, Tell<'_>)) {
        // Taken out of self for as long as self tells.
        let label = self.settings.label.take();
        match &label {
            None => read(self, tell),
            Some(label) => read(self, &mut |told: &Told<'_>| {
                tell(&Told { label: Some(label), ..*told });
            }),
        }
        self.settings.label = label;
    }

    /// Reads what is left of the stream.
    fn last_line(&mut self, now_ms: u64, tell: Tell<'_>) {
        if self.line.long.is_some() {
            return self.end_of_long(now_ms, tell);
        }
        let line = std::mem::take(&mut self.line.kept);
        if self.line.known == Known::Nothing {
            self.line.looked_bytes = 0;
            self.find_out(&line, false, now_ms, tell);
        }
        self.line.known = match self.line.known {
            Known::Nothing if is_blank(&line) => Known::Nothing,
            Known::Whole => Known::Whole,
            _ => Known::Unparsed,
        };
        self.end_of_line(&line, now_ms, tell);
    }

    /// What the deadlines go by.
    pub fn clocks(&self) -> Clocks {
        Clocks { tools_running: self.tools_running.len(), ..self.clocks }
    }

    /// Whether another model has answered than the only one that may.
    pub fn mismatch(&self) -> bool {
        self.other_model.is_some() && self.settings.asked.strict_model
    }

    /// The type of the last event that came; None if pi has said nothing.
    pub fn last_event(&self) -> Option<&str> {
        self.last_event.as_deref()
    }

    /// USD spent so far.
    pub fn cost_usd(&self) -> f64 {
        self.totals.cost.total
    }

    /// Tokens that count for max_tokens: input, cache writes and output with its reasoning.
    pub fn budget_tokens(&self) -> u64 {
        self.totals.budget_tokens()
    }

    /// Bytes of heap owned now, about.
    pub fn heap_bytes(&self) -> usize {
        self.line.kept.capacity()
            + self.line.long.as_ref().map_or(0, |long| long.heap_bytes())
            + self.events.capacity()
            + self.drift.heap_bytes()
            + self.transcript.heap_bytes()
            + [&self.tools_told, &self.tools_running, &self.tools_paid]
                .map(|ids| ids.capacity() * size_of::<u64>())
                .iter()
                .sum::<usize>()
    }

    /// An event of this type came.
    pub(super) fn came(&mut self, kind: &'static str, now_ms: u64) {
        self.last_event = Some(Cow::Borrowed(kind));
        self.clocks.last_event_ms = now_ms;
    }

    /// Takes a part of a line: all of it that was read now. `ended`: its end was read too.
    fn part(&mut self, part: &[u8], ended: bool, now_ms: u64, tell: Tell<'_>) {
        if part.len() > self.long_bytes.max(1) && self.line.long.is_none() {
            // Its beginning may say that nothing else is needed.
            let (head, rest) = part.split_at(self.long_bytes.max(1));
            self.part(head, false, now_ms, tell);
            return self.part(rest, ended, now_ms, tell);
        }
        let held_bytes = self.line.kept.len();
        self.line.bytes = self.line.bytes.saturating_add(part.len());
        if self.line.bytes > self.long_bytes
            && matches!(self.line.known, Known::Nothing | Known::Whole)
        {
            return self.part_of_long(part, ended, now_ms, tell);
        }
        if self.line.known == Known::Told && !self.has_room(held_bytes + part.len()) {
            self.line.lost = true;
            self.line.forget();
        }
        // A line that lies whole in what was read is read there, without a copy.
        let in_place = held_bytes == 0;
        let skipped = self.line.lost || self.line.known == Known::Unparsed;
        if skipped || (!in_place && !self.line.keep(part)) {
            if ended {
                self.end_of_line(&[], now_ms, tell);
            }
            return;
        }
        // What was kept is taken out of self for as long as it is looked at.
        let kept = std::mem::take(&mut self.line.kept);
        let line = if in_place { part } else { kept.as_slice() };
        if self.line.known == Known::Nothing {
            self.find_out(line, ended, now_ms, tell);
        }
        if ended {
            self.end_of_line(line, now_ms, tell);
            self.line.reuse(kept);
            return;
        }
        self.line.kept = kept;
        match self.line.known {
            Known::Unparsed => self.line.forget(),
            Known::Told if !self.settings.keep_events => self.line.forget(),
            _ if in_place => {
                self.line.keep(part);
            }
            _ => {}
        }
    }

    /// Takes a part of a line that is too long to be kept.
    fn part_of_long(&mut self, part: &[u8], ended: bool, now_ms: u64, tell: Tell<'_>) {
        let mut long = self.line.long.take().unwrap_or_else(|| {
            let mut long = Box::<LongLine>::default();
            long.push(&self.line.kept);
            long
        });
        for piece in part.chunks(AGENT_DELTA_BYTES) {
            long.push(piece);
            self.tell_flow(&mut long, now_ms, tell);
        }
        // The raw event may be wanted besides.
        self.line.lost |= !self.has_room(self.line.kept.len() + part.len());
        if self.line.lost || !self.line.keep(part) {
            self.line.forget();
        }
        if self.line.bytes > AGENT_LINE_MAX_BYTES {
            self.line.known = Known::Unparsed;
            self.transcript.give_up_line();
            self.line.forget();
        } else if let Some(cut) = long.update_is_there() {
            self.cut = cut;
            if let Look::Update(update) = look(long.short(), false) {
                self.update(&update, now_ms, tell);
                self.line.known = Known::Told;
            }
            self.cut = Cut::default();
        }
        if matches!(self.line.known, Known::Nothing | Known::Whole) {
            self.line.long = Some(long);
            if ended {
                self.end_of_long(now_ms, tell);
            }
        } else if ended {
            let kept = std::mem::take(&mut self.line.kept);
            self.end_of_line(&kept, now_ms, tell);
        }
    }

    /// Tells what came of a long text in a long line.
    fn tell_flow(&mut self, long: &mut LongLine, now_ms: u64, tell: Tell<'_>) {
        if let Some(line) = long.ask_flow() {
            long.answer_flow(self.begin_flow(&line, now_ms, tell));
        }
        match long.take_flow() {
            None => {}
            Some(Flow::Part(text)) => self.transcript.flow(&text, now_ms, tell),
            Some(Flow::Ended { rest, delta }) => {
                self.transcript.flow(&rest, now_ms, tell);
                self.transcript.end_flow(now_ms, tell);
                if delta {
                    self.line.known = Known::Told;
                }
            }
        }
    }

    /// The end of such a line: its short form says what it means.
    fn end_of_long(&mut self, now_ms: u64, tell: Tell<'_>) {
        let raw = std::mem::take(&mut self.line.kept);
        let lost = self.line.lost;
        if let Some(long) = self.line.long.take() {
            match long.end() {
                Some((short, _)) if is_blank(short) => {}
                Some((short, cut)) => {
                    self.cut = cut;
                    self.short_line(short, (!lost).then_some(&raw), now_ms, tell);
                    self.cut = Cut::default();
                }
                None => self.unparsed_lines += 1,
            }
            self.transcript.give_up_line();
        }
        self.line.next();
    }

    /// Reads the short form of a line; `raw` is the line itself, where that is kept.
    fn short_line(&mut self, short: &[u8], raw: Option<&[u8]>, now_ms: u64, tell: Tell<'_>) {
        match look(short, true) {
            Look::More | Look::Nothing => return self.unparsed_lines += 1,
            Look::Whole => return self.whole(short, raw, now_ms, tell),
            Look::ToolUpdate => self.came(TOOL_UPDATE, now_ms),
            Look::Update(update) => self.update(&update, now_ms, tell),
        }
        self.keep_raw(raw, false);
    }

    /// Looks at the beginning of a line, and at more of it until it is known what it is.
    fn find_out(&mut self, line: &[u8], ended: bool, now_ms: u64, tell: Tell<'_>) {
        let line = &line[..line.len().min(AGENT_LINE_MAX_BYTES)];
        let mut upto = (2 * self.line.looked_bytes).max(1);
        if !ended && line.len() < upto {
            return;
        }
        upto = upto.max(AGENT_HEAD_BYTES);
        loop {
            let all = upto >= line.len();
            match look(&line[..upto.min(line.len())], all && ended) {
                Look::More if !all => upto *= 2,
                Look::More => return self.line.looked_bytes = line.len(),
                Look::Nothing if ended && is_blank(line) => return,
                Look::Nothing => return self.line.known = Known::Unparsed,
                Look::Whole => return self.line.known = Known::Whole,
                Look::ToolUpdate => {
                    self.came(TOOL_UPDATE, now_ms);
                    return self.line.known = Known::Told;
                }
                Look::Update(update) => {
                    self.update(&update, now_ms, tell);
                    return self.line.known = Known::Told;
                }
            }
        }
    }

    /// The end of a line: what takes all of it is done.
    fn end_of_line(&mut self, line: &[u8], now_ms: u64, tell: Tell<'_>) {
        match self.line.known {
            Known::Nothing => {}
            Known::Whole => self.whole(line, Some(line), now_ms, tell),
            // Its beginning was told, but nobody would take all of it for a line.
            Known::Told if self.line.bytes > AGENT_LINE_MAX_BYTES => self.unparsed_lines += 1,
            Known::Told if self.settings.secret.is_some() => self.leave_out_event(),
            Known::Told if self.line.lost => {
                self.events_dropped += u64::from(self.settings.keep_events);
            }
            Known::Told => self.keep_event(line),
            Known::Unparsed => self.unparsed_lines += 1,
        }
        self.line.next();
    }

    /// Reads a whole line; `raw` is what it was before it was made shorter, where that is kept.
    fn whole(&mut self, line: &[u8], raw: Option<&[u8]>, now_ms: u64, tell: Tell<'_>) {
        let fields = str::from_utf8(line).ok().and_then(|text| Fields::parse(text).ok());
        let fields = fields.filter(|_| line.len() <= AGENT_LINE_MAX_BYTES);
        let kind = fields.as_ref().and_then(|fields| string(fields.get("type"), AGENT_NAME_BYTES));
        let (Some(fields), Some(kind)) = (&fields, kind) else {
            self.unparsed_lines += 1;
            return;
        };
        self.keep_raw(raw, is_whole(&kind));
        self.event(&kind, fields, now_ms, tell);
    }
}

/// Whether a line holds nothing but what JSON takes for white space.
fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}
