//! The assistant's text: deltas joined, blocks kept apart, and all of it for the result.

use serde_json::value::RawValue;

use super::told::{Tell, Told};
use crate::limits::{AGENT_DELTA_BYTES, AGENT_OUTPUT_BYTES};
use crate::pure::head_tail::HeadTail;
use crate::pure::json_fields::{Fields, each_item};
use crate::pure::json_text::{REPLACEMENT, pieces, quoted_text};
use crate::pure::utf8::{floor_boundary, incomplete_suffix_len, lossy};

/// What lies between two blocks of text.
const BETWEEN_BLOCKS: &str = "\n\n";

/// Which block a delta belongs to: text or thinking, and its place in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Whether it is thinking.
    pub thinking: bool,
    /// Its contentIndex.
    pub index: u64,
}

/// The text so far.
#[derive(Debug)]
pub struct Transcript {
    output: HeadTail,
    /// Message and contentIndex of the last block of text that was told.
    last_block: Option<(u64, u64)>,
    /// Counts the messages.
    message: u64,
    /// Whether text of this message was told.
    spoke: bool,
    /// A delta ended inside a surrogate pair.
    half: Option<(Block, u32)>,
    /// When the first text came.
    pub first_text_ms: Option<u64>,
}

impl Transcript {
    /// No text yet.
    pub fn new() -> Self {
        Self {
            output: HeadTail::new(AGENT_OUTPUT_BYTES),
            last_block: None,
            message: 0,
            spoke: false,
            half: None,
            first_text_ms: None,
        }
    }

    /// Another message begins, or could.
    pub fn next_message(&mut self, now_ms: u64, tell: Tell<'_>) {
        self.close_half(now_ms, tell);
        self.message += 1;
        self.spoke = false;
    }

    /// Tells a delta, in pieces if it is long. What is no string is nothing.
    pub fn delta(&mut self, block: Block, delta: &RawValue, now_ms: u64, tell: Tell<'_>) {
        let Some(quoted) = quoted_text(delta) else { return };
        if self.half.is_some_and(|(other, _)| other != block) {
            self.close_half(now_ms, tell);
        }
        let mut half = self.half.take().map(|(_, unit)| unit);
        if half.is_none() && quoted.len() <= AGENT_DELTA_BYTES && !quoted.contains('\\') {
            return self.say(block, quoted, now_ms, tell);
        }
        let mut joined = String::new();
        pieces(quoted, &mut half, &mut |mut piece| {
            while !piece.is_empty() {
                let room = (AGENT_DELTA_BYTES - joined.len()).min(piece.len());
                let fits = floor_boundary(piece, room);
                joined.push_str(&piece[..fits]);
                piece = &piece[fits..];
                if !piece.is_empty() {
                    self.say(block, &joined, now_ms, tell);
                    joined.clear();
                }
            }
        });
        self.say(block, &joined, now_ms, tell);
        self.half = half.map(|unit| (block, unit));
    }

    /// Tells the text of a message of which no delta came. `content` is its blocks, or a string.
    pub fn whole(&mut self, content: Option<&RawValue>, now_ms: u64, tell: Tell<'_>) {
        self.close_half(now_ms, tell);
        let Some(content) = content.filter(|_| !self.spoke) else { return };
        let mut index = 0;
        self.delta(Block { thinking: false, index }, content, now_ms, tell);
        each_item(content, &mut |item| {
            let item = Fields::of(Some(item));
            let kind = item.get("type").map_or("", RawValue::get);
            if let Some(text) = item.get("text").filter(|_| kind == r#""text""#) {
                self.delta(Block { thinking: false, index }, text, now_ms, tell);
            }
            index += 1;
        });
        self.close_half(now_ms, tell);
    }

    /// The other half of a surrogate pair will not come.
    pub fn close_half(&mut self, now_ms: u64, tell: Tell<'_>) {
        if let Some((block, _)) = self.half.take() {
            self.say(block, REPLACEMENT, now_ms, tell);
        }
    }

    fn say(&mut self, block: Block, text: &str, now_ms: u64, tell: Tell<'_>) {
        if text.is_empty() {
            return;
        }
        if block.thinking {
            return tell(&Told { event: "thinking", delta: Some(text), ..Told::default() });
        }
        let here = Some((self.message, block.index));
        let apart = self.last_block.is_some() && self.last_block != here;
        let joined = apart.then(|| [BETWEEN_BLOCKS, text].concat());
        let text = joined.as_deref().unwrap_or(text);
        self.output.push(text.as_bytes());
        self.last_block = here;
        self.spoke = true;
        self.first_text_ms.get_or_insert(now_ms);
        tell(&Told { event: "text", delta: Some(text), ..Told::default() });
    }

    /// All of the text; where there was too much of it, its middle is a line that says so.
    pub fn output(&self) -> String {
        let kept = self.output.peek();
        let (mut head, mut tail) = (kept.head, kept.tail.as_slice());
        let mut omitted_bytes = kept.omitted_bytes;
        if omitted_bytes > 0 {
            let cut = incomplete_suffix_len(&head);
            head.truncate(head.len() - cut);
            let rest = tail.iter().take_while(|byte| **byte & 0xC0 == 0x80).count();
            tail = &tail[rest..];
            omitted_bytes += (cut + rest) as u64;
            let gap = format!("\n\n[{omitted_bytes} bytes of text are left out here]\n\n");
            head.extend_from_slice(gap.as_bytes());
        }
        head.extend_from_slice(tail);
        String::from_utf8(head).unwrap_or_else(|fault| lossy(fault.as_bytes()))
    }

    /// Bytes of heap owned.
    pub fn heap_bytes(&self) -> usize {
        self.output.heap_bytes()
    }
}
