//! A long line of pi's stream, read as it comes: what is needed of it is copied into a short line
//! that means the same, so that no moment has to take all of it apart.
//!
//! Left out are what is in objects and arrays that nobody looks into, once that is much, the rest
//! of a string behind what can be told of it, and the blocks of a content behind so many. Where
//! something is missing, the counts in [`Cut`] say how much. The short line is read as any other:
//! what is copied is checked there; of what is left out only strings, brackets and UTF-8 are.

mod strings;

pub use strings::Flow;

use std::str;

use crate::limits::{
    AGENT_BLOCKS, AGENT_CONTENT_BYTES, AGENT_JSON_LEVELS, AGENT_LINE_STEP_BYTES, AGENT_SHORT_BYTES,
    AGENT_SHORT_VALUE_BYTES, AGENT_TOOL_OUTPUT_BYTES,
};

/// How much more than can be told is kept of a text, so that who reads it sees that there is more.
const OVER_BYTES: usize = 16;
/// Of more blanks than this in a row, outside of strings, one is kept: they mean nothing.
const BLANK_BYTES: usize = 64;
/// Bytes of a character that may be there before its last one.
const MOST_CUT_BYTES: usize = 3;
/// Longest name of a field that is looked at.
const NAME_BYTES: usize = 32;

/// Bytes of a line that its short form lacks, as JSON has them, where somebody has to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Of the text of an answer or of a delta.
    pub text_bytes: usize,
    /// Of the output of a tool.
    pub output_bytes: usize,
    /// How long the input of a tool call is, where it is left out.
    pub input_bytes: Option<usize>,
}

/// What an object or array is, as far as somebody looks into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Line,
    Message,
    Result,
    Update,
    ToolCall,
    /// The blocks of a message.
    MessageContent,
    /// The blocks of a tool's result.
    ResultContent,
    MessageBlock,
    ResultBlock,
    /// A tool's input, of which nothing is told where it is long.
    Input,
    /// Nobody looks into it.
    Closed,
}

/// A string that is needed, and how much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Other,
    Name,
    Text,
    Output,
    Input,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    place: Place,
    object: bool,
    /// A name comes next, if this is an object.
    name_next: bool,
    /// Commas so far.
    items: u64,
    /// Where it begins in the short line.
    begins_at: usize,
    /// Where it begins in the line.
    raw_at: usize,
}

/// The string that is open.
#[derive(Debug, Default)]
struct Open {
    kind: Kind,
    /// Characters so far, an escape counting as one byte.
    decoded_bytes: usize,
    most_bytes: usize,
    /// Nothing of it is copied any more.
    cut: bool,
    /// Whether it was asked if the string is told as it comes.
    asked: bool,
    /// Whether the string is told as it comes.
    flows: bool,
    raw_at: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Outside,
    InString,
    /// Behind a backslash.
    Escape,
    /// So many digits of a `\u` escape are missing.
    Digits(u8),
}

/// The line so far.
#[derive(Debug, Default)]
pub struct LongLine {
    short: Vec<u8>,
    cut: Cut,
    levels: Vec<Level>,
    state: State,
    open: Open,
    /// The name of the field whose value comes next.
    name: Vec<u8>,
    /// Nothing is copied until there are only so many levels.
    skip_to: Option<usize>,
    /// Of a tool's output, with what is between its blocks.
    output_bytes: usize,
    /// The outermost level that nobody looks into, and how long it may be in the short line.
    closed: Option<(usize, usize)>,
    /// Where its end will be counted from in the line.
    raw_bytes: usize,
    /// Bytes of a character that was cut.
    carry: Vec<u8>,
    /// The line is no JSON.
    broken: bool,
    /// The line had an assistantMessageEvent with a delta.
    delta_ended: bool,
    /// What came of a text that is told as it comes, and was not taken yet.
    flow: Vec<u8>,
    /// The bytes of `flow` up to the last escape that may be open.
    flow_whole_bytes: usize,
    /// Set when that text has ended: whether it was a delta.
    flow_ended: Option<bool>,
}

impl LongLine {
    /// The short line, and what it lacks; None if the line is no JSON, or has not ended.
    pub fn end(&self) -> Option<(&[u8], Cut)> {
        let whole = self.state == State::Outside && self.levels.is_empty();
        (whole && !self.broken && self.carry.is_empty()).then_some((&self.short, self.cut))
    }

    /// The short line so far.
    pub fn short(&self) -> &[u8] {
        &self.short
    }

    /// What the short line lacks, once, when all is there that is needed of a message_update.
    pub fn update_is_there(&mut self) -> Option<Cut> {
        let ended = std::mem::take(&mut self.delta_ended);
        (ended && !self.broken).then_some(self.cut)
    }

    /// Bytes of heap owned.
    pub fn heap_bytes(&self) -> usize {
        self.short.capacity() + self.levels.capacity() * size_of::<Level>()
    }

    /// Takes in what follows. Its cost is that of these bytes, whatever came before.
    pub fn push(&mut self, bytes: &[u8]) {
        self.check_utf8(bytes);
        let mut at = 0;
        while at < bytes.len() && !self.broken {
            let from = at;
            at = match self.state {
                State::Outside => self.outside(bytes, at),
                State::InString => self.string(bytes, at),
                State::Escape | State::Digits(_) => self.escape(bytes[at], at),
            };
            self.raw_bytes += at - from;
        }
    }

    fn check_utf8(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !self.carry.is_empty()
            && let Some((first, more)) = rest.split_first()
        {
            self.carry.push(*first);
            rest = more;
            match str::from_utf8(&self.carry) {
                Ok(_) => self.carry.clear(),
                Err(fault) if fault.error_len().is_some() => return self.broken = true,
                Err(_) => {}
            }
        }
        if let Err(fault) = str::from_utf8(rest) {
            self.broken |= fault.error_len().is_some();
            let cut = &rest[fault.valid_up_to()..];
            self.carry.extend_from_slice(&cut[..cut.len().min(MOST_CUT_BYTES)]);
        }
    }

    /// Copies bytes into the short line, unless they are left out.
    fn copy(&mut self, bytes: &[u8]) {
        if self.skip_to.is_some() {
            return;
        }
        if self.short.len() + bytes.len() > self.short.capacity() {
            // In steps: room for as much again would be too much for one that is long itself.
            self.short.reserve_exact(bytes.len() + AGENT_LINE_STEP_BYTES);
        }
        self.short.extend_from_slice(bytes);
        let Some((depth, most_bytes)) = self.closed else { return };
        let Some(level) = self.levels.get(depth) else { return };
        if self.short.len() - level.begins_at > most_bytes {
            // Too long for what nobody looks into: an empty one stands for it.
            self.short.truncate(level.begins_at);
            self.short.push(if level.object { b'{' } else { b'[' });
            self.skip_to = Some(depth);
        }
    }

    /// Reads what is in no string, up to the next byte that means something.
    fn outside(&mut self, bytes: &[u8], from: usize) -> usize {
        let rest = &bytes[from..];
        let means = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b',');
        let plain = rest.iter().position(means).unwrap_or(rest.len());
        if plain > 0 {
            let piece = &rest[..plain];
            let blank = plain > BLANK_BYTES && piece.iter().all(u8::is_ascii_whitespace);
            self.copy(if blank { b" " } else { piece });
            return from + plain;
        }
        match rest[0] {
            b'"' => self.begin_string(),
            open @ (b'{' | b'[') => self.begin_level(open),
            b',' => self.comma(),
            close => self.end_level(close),
        }
        from + 1
    }

    fn comma(&mut self) {
        let short_bytes = self.short.len();
        let depth = self.levels.len();
        if let Some(level) = self.levels.last_mut() {
            level.name_next = level.object;
            level.items += 1;
            let bytes = short_bytes - level.begins_at.min(short_bytes);
            let enough = match level.place {
                Place::MessageContent => level.items > AGENT_BLOCKS || bytes > AGENT_CONTENT_BYTES,
                Place::ResultContent => {
                    self.output_bytes += 1;
                    let told = self.output_bytes <= AGENT_TOOL_OUTPUT_BYTES + OVER_BYTES;
                    !told || bytes > AGENT_SHORT_BYTES
                }
                _ => level.object && bytes > AGENT_CONTENT_BYTES,
            };
            if enough && self.skip_to.is_none() {
                // What is behind is left out, with its comma.
                level.raw_at = self.raw_bytes;
                self.skip_to = Some(depth - 1);
            }
        }
        self.copy(b",");
    }

    fn begin_level(&mut self, open: u8) {
        let parent = self.levels.last().copied();
        let place = self.place_of(parent.as_ref(), open == b'{');
        let level = Level {
            place,
            object: open == b'{',
            name_next: open == b'{',
            items: 0,
            begins_at: self.short.len(),
            raw_at: self.raw_bytes,
        };
        let depth = self.levels.len();
        self.levels.push(level);
        self.broken |= self.levels.len() > AGENT_JSON_LEVELS;
        if self.closed.is_none() {
            self.closed = match place {
                Place::Closed => Some((depth, AGENT_SHORT_VALUE_BYTES)),
                Place::Input => Some((depth, AGENT_TOOL_OUTPUT_BYTES)),
                _ => None,
            };
        }
        self.copy(&[open]);
    }

    fn end_level(&mut self, close: u8) {
        let Some(level) = self.levels.pop() else { return self.broken = true };
        self.broken |= level.object != (close == b'}');
        let depth = self.levels.len();
        if self.skip_to == Some(depth) {
            let left_out_bytes = self.raw_bytes - level.raw_at;
            match level.place {
                Place::MessageContent => self.cut.text_bytes += left_out_bytes,
                Place::ResultContent => self.cut.output_bytes += left_out_bytes,
                Place::Input => self.cut.input_bytes = Some(left_out_bytes + 1),
                _ => {}
            }
            self.skip_to = None;
            self.short.push(close);
        } else {
            self.copy(&[close]);
        }
        if self.closed.is_some_and(|(closed, _)| closed == depth) {
            self.closed = None;
        }
    }

    /// What an object or array is that begins here.
    fn place_of(&self, parent: Option<&Level>, object: bool) -> Place {
        let Some(parent) = parent else { return Place::Line };
        match (parent.place, self.name.as_slice(), object) {
            (Place::Line, b"message", true) => Place::Message,
            // Of an entry of the session only what it has used is looked at, as of a compaction's
            // result.
            (Place::Line, b"result" | b"entry", true) => Place::Result,
            (Place::Line, b"assistantMessageEvent", true) => Place::Update,
            (Place::Line, b"args", _) | (Place::ToolCall, b"arguments", _) => Place::Input,
            (Place::Update, b"toolCall", true) => Place::ToolCall,
            (Place::Message, b"content", false) => Place::MessageContent,
            (Place::Result, b"content", false) => Place::ResultContent,
            (Place::MessageContent, _, true) => Place::MessageBlock,
            (Place::ResultContent, _, true) => Place::ResultBlock,
            _ => Place::Closed,
        }
    }
}
