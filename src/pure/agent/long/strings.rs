//! The strings of a long line: how much of each is copied, and texts that are told as they come.

use memchr::memchr2;

use super::{Kind, LongLine, NAME_BYTES, OVER_BYTES, Open, Place, State};
use crate::limits::{
    AGENT_DELTA_BYTES, AGENT_OUTPUT_BYTES, AGENT_SHORT_VALUE_BYTES, AGENT_TOOL_OUTPUT_BYTES,
};
use crate::pure::text::utf8::{continuation_len, incomplete_suffix_len};

/// What there is of a text that is told as it comes.
#[derive(Debug, PartialEq, Eq)]
pub enum Flow {
    /// More of it, in JSON without its quotes.
    Part(String),
    /// The end of the text; `delta`: the text was that of a message_update.
    Ended { rest: String, delta: bool },
}

impl LongLine {
    /// The line as far as it came, closed, once for each text in whose middle it stands that is
    /// long: such a text may be told as it comes.
    pub fn ask_flow(&mut self) -> Option<Vec<u8>> {
        let place = self.levels.last().map(|level| level.place);
        let inside = self.state == State::InString && self.open.kind == Kind::Text;
        let all_there = self.skip_to.is_none() && self.closed.is_none() && !self.broken;
        let long = self.open.decoded_bytes >= AGENT_DELTA_BYTES && !self.open.cut;
        if !inside || !all_there || !long || self.open.asked {
            return None;
        }
        self.open.asked = true;
        let cut = incomplete_suffix_len(&self.short);
        self.flow = self.short.split_off(self.short.len() - cut);
        let closers: &[u8] = match place {
            Some(Place::MessageBlock) => b"\"}]}}",
            _ => b"\"}}",
        };
        Some([&self.short, closers].concat())
    }

    /// The answer to [`Self::ask_flow`]: the text is told as it comes, or copied like others.
    pub fn answer_flow(&mut self, flows: bool) {
        self.open.flows = flows;
        self.flow_whole_bytes = self.flow.len();
        if flows {
            self.open.most_bytes = usize::MAX;
        } else {
            self.short.append(&mut self.flow);
        }
    }

    /// What came of such a text.
    pub fn take_flow(&mut self) -> Option<Flow> {
        if let Some(delta) = self.flow_ended.take() {
            let rest = String::from_utf8(std::mem::take(&mut self.flow)).ok()?;
            return Some(Flow::Ended { rest, delta });
        }
        let whole = &self.flow[..self.flow_whole_bytes];
        let whole_bytes = whole.len() - incomplete_suffix_len(whole);
        let behind = self.flow.split_off(whole_bytes);
        let part = String::from_utf8(std::mem::replace(&mut self.flow, behind)).ok()?;
        self.flow_whole_bytes -= whole_bytes;
        (!part.is_empty()).then_some(Flow::Part(part))
    }

    pub(super) fn begin_string(&mut self) {
        let is_name = self.levels.last().is_some_and(|level| level.object && level.name_next);
        let place = self.levels.last().map(|level| level.place);
        let kind = match (place, self.name.as_slice()) {
            _ if is_name => Kind::Name,
            (Some(Place::Update), b"delta")
            | (Some(Place::Message), b"content")
            | (Some(Place::MessageBlock), b"text") => Kind::Text,
            (Some(Place::Line), b"result")
            | (Some(Place::Result), b"content")
            | (Some(Place::ResultBlock), b"text") => Kind::Output,
            (Some(Place::Line), b"args") | (Some(Place::ToolCall), b"arguments") => Kind::Input,
            _ => Kind::Other,
        };
        let most_bytes = match kind {
            // Deltas may have told as much, and as much again is told besides.
            Kind::Text => 2 * AGENT_OUTPUT_BYTES + OVER_BYTES,
            Kind::Output | Kind::Input => AGENT_TOOL_OUTPUT_BYTES + OVER_BYTES,
            Kind::Other | Kind::Name => AGENT_SHORT_VALUE_BYTES,
        };
        if is_name {
            self.name.clear();
        }
        let raw_at = self.raw_bytes;
        self.open = Open { kind, most_bytes, raw_at, ..Open::default() };
        self.state = State::InString;
        self.copy(b"\"");
    }

    /// Copies bytes of the open string, as long as they are wanted.
    fn copy_text(&mut self, bytes: &[u8], decoded_bytes: usize) {
        if self.open.kind == Kind::Name && self.name.len() < NAME_BYTES {
            self.name.extend_from_slice(&bytes[..bytes.len().min(NAME_BYTES)]);
        }
        if self.open.flows {
            return self.flow.extend_from_slice(bytes);
        }
        if !self.open.cut {
            self.open.decoded_bytes += decoded_bytes;
            if self.open.kind == Kind::Output {
                self.output_bytes += decoded_bytes;
            }
            return self.copy(bytes);
        }
        match self.open.kind {
            _ if self.skip_to.is_some() => {}
            Kind::Text => self.cut.text_bytes += bytes.len(),
            Kind::Output => self.cut.output_bytes += bytes.len(),
            Kind::Name | Kind::Input | Kind::Other => {}
        }
    }

    /// Reads a string up to its end or an escape.
    pub(super) fn string(&mut self, bytes: &[u8], from: usize) -> usize {
        let rest = &bytes[from..];
        let mut plain = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        if plain == 0 {
            if rest[0] == b'"' {
                self.end_string();
            } else {
                self.state = State::Escape;
            }
            return from + 1;
        }
        // Strings of what nobody looks into are cut with it.
        let whole = self.closed.is_some();
        let room = self.open.most_bytes.saturating_sub(self.open.decoded_bytes);
        if !whole && !self.open.cut && plain > room {
            let inside = continuation_len(&rest[room..plain]);
            if room + inside == 0 {
                self.open.cut = true;
            } else {
                plain = room + inside;
            }
        }
        let text = &rest[..plain];
        // A copy is checked by who reads the short line.
        let copied = !self.open.cut && !self.open.flows && self.skip_to.is_none();
        if !copied && text.iter().any(|byte| *byte < 0x20) {
            self.broken = true;
        }
        self.copy_text(text, plain);
        self.flow_whole_bytes = self.flow.len();
        from + plain
    }

    /// Reads a byte of an escape.
    pub(super) fn escape(&mut self, byte: u8, at: usize) -> usize {
        let fits = self.open.decoded_bytes < self.open.most_bytes || self.closed.is_some();
        match self.state {
            State::Escape => {
                self.open.cut |= !fits;
                self.copy_text(&[b'\\', byte], 1);
                self.state = match byte {
                    b'u' => State::Digits(4),
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => State::InString,
                    _ => return self.fail(at),
                };
            }
            State::Digits(left) => {
                if !byte.is_ascii_hexdigit() {
                    return self.fail(at);
                }
                self.copy_text(&[byte], 0);
                self.state = if left == 1 { State::InString } else { State::Digits(left - 1) };
            }
            State::Outside | State::InString => {}
        }
        if self.state == State::InString {
            self.flow_whole_bytes = self.flow.len();
        }
        at + 1
    }

    fn fail(&mut self, at: usize) -> usize {
        self.broken = true;
        at + 1
    }

    fn end_string(&mut self) {
        self.state = State::Outside;
        if self.open.kind == Kind::Input && self.open.cut && self.skip_to.is_none() {
            self.cut.input_bytes = Some(self.raw_bytes + 1 - self.open.raw_at);
        }
        if let Some(level) = self.levels.last_mut() {
            level.name_next = false;
            let delta = level.place == Place::Update && self.open.kind == Kind::Text;
            self.delta_ended |= delta && !self.open.flows;
            if self.open.flows {
                self.flow_ended = Some(delta);
            }
        }
        self.copy(b"\"");
    }
}
