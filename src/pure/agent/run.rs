//! One run of pi: its stream is cut into lines, each is read as far as it is needed, and handed to
//! what its event means (`meaning.rs`). A line is kept to its end only where all of it is needed,
//! and no line of more than AGENT_LINE_MAX_BYTES is.

use std::borrow::Cow;
use std::str;

use memchr::memchr;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::event::Drift;
use super::event::{Look, is_whole, look, type_of};
use super::mask::Secret;
use super::model::{Answered, Asked};
use super::text::Transcript;
use super::told::{Compactions, Failure, Retries, Tell, Told, Totals};
use crate::limits::{
    AGENT_EVENTS_BYTES, AGENT_HEAD_BYTES, AGENT_JSON_DEPTH, AGENT_LINE_MAX_BYTES,
    AGENT_LINE_STEP_BYTES, AGENT_NAME_BYTES, BUFFER_KEEP_BYTES,
};
use crate::pure::json::fields::Fields;
use crate::pure::json::text::{mended, string};

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
    /// What nobody may read in what is told.
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

/// What is known of a line whose end has not come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    /// Nothing yet: all of it is kept.
    #[default]
    Nothing,
    /// All of it is needed, and kept.
    Whole,
    /// The event of the line was told. Nothing more is needed, but raw events may be kept.
    Told,
    /// The line is too long to be kept. Its beginning is, which has its type.
    Skipped,
    /// The line is no event. Nothing of it is kept.
    Unparsed,
}

/// The open line.
#[derive(Debug, Default)]
struct OpenLine {
    kept: Vec<u8>,
    known: Known,
    /// How long it is so far, whether it is kept or not.
    bytes: usize,
    /// So many of its bytes were looked at in vain: it is looked at again when there are twice as
    /// many, so that all looks together cost no more than the line is long.
    looked_bytes: usize,
    /// The raw text of the line is wanted and did not fit.
    lost: bool,
}

impl OpenLine {
    /// Keeps more bytes. The room for them grows in steps: a long line takes its own length and a
    /// step, not twice its length.
    fn keep(&mut self, bytes: &[u8]) {
        let needed = self.kept.len() + bytes.len();
        if needed > self.kept.capacity() {
            let step = needed.min(AGENT_LINE_STEP_BYTES);
            self.kept.reserve_exact(needed + step - self.kept.len());
        }
        self.kept.extend_from_slice(bytes);
    }

    /// The line is too long: only its beginning stays, where nothing was told of the line.
    fn skip(&mut self) {
        if matches!(self.known, Known::Nothing | Known::Whole) {
            self.known = Known::Skipped;
            self.kept.truncate(AGENT_HEAD_BYTES);
            self.kept.shrink_to_fit();
        }
    }

    /// Nothing is kept of this line any more.
    fn forget(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        self.reuse(kept);
    }

    /// Takes a buffer back for what is kept next, unless it is a large one.
    fn reuse(&mut self, mut kept: Vec<u8>) {
        if kept.capacity() <= BUFFER_KEEP_BYTES {
            kept.clear();
            self.kept = kept;
        }
    }

    /// The line has ended, the next one begins.
    fn next(&mut self) {
        self.forget();
        *self = Self { kept: std::mem::take(&mut self.kept), ..Self::default() };
    }
}

/// The stream of one run: bytes in, normalized events out, totals kept.
#[derive(Debug, Default)]
pub struct AgentRun {
    pub(super) settings: RunSettings,
    line: OpenLine,
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
        Self { settings, transcript, ..Self::default() }
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
        let held_bytes = self.line.kept.len();
        self.line.bytes = self.line.bytes.saturating_add(part.len());
        if self.line.known == Known::Told && !self.has_room(held_bytes + part.len()) {
            self.line.lost = true;
            self.line.forget();
        }
        if self.line.bytes > AGENT_LINE_MAX_BYTES {
            self.skip(part, now_ms, tell);
        }
        // A line that lies whole in what was read is read there, without a copy.
        let in_place = held_bytes == 0;
        let ignored = matches!(self.line.known, Known::Skipped | Known::Unparsed);
        if self.line.lost || ignored {
            if ended {
                self.end_of_line(&[], now_ms, tell);
            }
            return;
        }
        if !in_place {
            self.line.keep(part);
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
            _ if in_place => self.line.keep(part),
            _ => {}
        }
    }

    /// The line has become too long to be kept. Where all of it came at once, nobody has looked at
    /// its beginning yet.
    fn skip(&mut self, part: &[u8], now_ms: u64, tell: Tell<'_>) {
        if self.line.bytes == part.len() {
            let head = &part[..part.len().min(AGENT_LINE_MAX_BYTES)];
            self.find_out(head, false, now_ms, tell);
            self.line.keep(&part[..AGENT_HEAD_BYTES]);
        }
        self.line.skip();
    }

    /// Looks at the beginning of a line, and at more of it until it is known what it is.
    fn find_out(&mut self, line: &[u8], ended: bool, now_ms: u64, tell: Tell<'_>) {
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
            Known::Whole => self.whole(line, now_ms, tell),
            // Its beginning was told, but nobody would take all of it for a line.
            Known::Told if self.line.bytes > AGENT_LINE_MAX_BYTES => self.unparsed_lines += 1,
            Known::Told if self.settings.secret.is_some() => self.leave_out_event(),
            Known::Told if self.line.lost => {
                self.events_dropped += u64::from(self.settings.keep_events);
            }
            Known::Told => self.keep_event(line),
            Known::Skipped => {
                self.unparsed_lines += 1;
                let head = std::mem::take(&mut self.line.kept);
                if let Some(kind) = type_of(&head) {
                    self.skipped(&kind, now_ms, tell);
                }
            }
            Known::Unparsed => self.unparsed_lines += 1,
        }
        self.line.next();
    }

    /// Reads a whole line.
    fn whole(&mut self, line: &[u8], now_ms: u64, tell: Tell<'_>) {
        let masked = self.settings.secret.as_ref().and_then(|secret| secret.masked(line));
        let line = masked.as_deref().unwrap_or(line);
        let fields = str::from_utf8(line).ok().and_then(|text| Fields::parse(text).ok());
        let kind = fields.as_ref().and_then(|fields| string(fields.get("type"), AGENT_NAME_BYTES));
        let (Some(fields), Some(kind)) = (&fields, kind) else {
            self.unparsed_lines += 1;
            return;
        };
        if is_whole(&kind) || self.settings.secret.is_none() {
            self.keep_event(line);
        } else {
            self.leave_out_event();
        }
        self.event(&kind, fields, now_ms, tell);
    }

    /// The raw events that are kept; None if they were not asked for.
    pub(super) fn raw_events(&self) -> Option<Vec<&RawValue>> {
        let lines = self.events.lines().filter_map(|line| serde_json::from_str(line).ok());
        self.settings.keep_events.then(|| lines.collect())
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.settings.keep_events && self.events.len() + bytes < AGENT_EVENTS_BYTES
    }

    fn leave_out_event(&mut self) {
        self.events_left_out += u64::from(self.settings.keep_events);
    }

    /// Keeps a raw event, if that was asked for.
    fn keep_event(&mut self, line: &[u8]) {
        if !self.settings.keep_events {
            return;
        }
        // Of a line that was told by its beginning nobody knows yet that it is JSON to its end.
        let text = str::from_utf8(line).ok().filter(|_| self.has_room(line.len()));
        let raw = text.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        match raw.and_then(|raw| mended(raw.get(), AGENT_JSON_DEPTH)) {
            Some(json) => {
                let needed = self.events.len() + json.len() + 1;
                if needed > self.events.capacity() {
                    let room = (2 * needed).min(AGENT_EVENTS_BYTES) - self.events.len();
                    self.events.reserve_exact(room);
                }
                self.events.push_str(&json);
                self.events.push('\n');
            }
            None => self.events_dropped += 1,
        }
    }
}

/// Whether a line holds nothing but what JSON takes for white space.
fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}
