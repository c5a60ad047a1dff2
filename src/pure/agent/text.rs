//! The assistant's text: deltas joined, blocks kept apart, told once however often pi repeats it,
//! and all of it kept for the result within its bound.

pub use super::mask::Block;
use super::mask::{Holds, Secret};
use super::told::{Tell, Told};
use crate::limits::{AGENT_DELTA_BYTES, AGENT_OUTPUT_BYTES};
use crate::pure::buffer::head_tail::HeadTail;
use crate::pure::json::fields::{Fields, each_item};
use crate::pure::json::text::{REPLACEMENT, pieces, quoted_text};
use crate::pure::text::utf8::{continuation_len, floor_boundary, incomplete_suffix_len, lossy};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};

/// Blocks of one message whose texts are told where no deltas came of them.
const AGENT_BLOCKS: u64 = 4_096;

/// What lies between two blocks of text.
const BETWEEN_BLOCKS: &str = "\n\n";

/// Blocks that only the end of a message tells of have this place and those behind it, so that none
/// is taken for one that deltas told of.
const ONLY_WHOLE: u64 = 1 << 63;

/// What was told of a message: enough to know the text again, and no copy of it.
#[derive(Debug, Default)]
struct Spoken {
    /// How many bytes.
    bytes: usize,
    /// However the text was cut into pieces. (That is so of `write`, and a test holds it.)
    hash: DefaultHasher,
    /// Not all of it was told.
    cut: bool,
}

impl Spoken {
    /// More of it was told.
    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.hash.write(text.as_bytes());
    }
}

/// The text of one line on its way: what of it was told before, and for how much more there is
/// room.
#[derive(Debug)]
struct LineText {
    /// So many bytes at its beginning were told by deltas.
    known_bytes: usize,
    /// Their hash.
    hash: u64,
    /// The hash of the known bytes that were seen again.
    seen: DefaultHasher,
    /// What was seen again is not what was told.
    differs: bool,
    /// A block of text came.
    begun: bool,
    /// The text is that of a delta, so what was cut off may come with the next one.
    is_delta: bool,
    room_bytes: usize,
    /// So many bytes of the line, as it has them, found no room.
    left_out_bytes: usize,
}

impl Default for LineText {
    fn default() -> Self {
        Self {
            known_bytes: 0,
            hash: 0,
            seen: DefaultHasher::new(),
            differs: false,
            begun: false,
            is_delta: false,
            room_bytes: AGENT_OUTPUT_BYTES,
            left_out_bytes: 0,
        }
    }
}

impl LineText {
    /// That of a delta.
    fn of_delta() -> Self {
        Self { is_delta: true, ..Self::default() }
    }

    /// That of a message which has ended, of which so many bytes with this hash are known.
    fn of_message(known_bytes: usize, hash: u64) -> Self {
        Self { known_bytes, hash, ..Self::default() }
    }

    /// Gives what is to be told of a piece of its text.
    fn take<'a>(&mut self, piece: &'a str) -> &'a str {
        let (known, new) = piece.as_bytes().split_at(self.known_bytes.min(piece.len()));
        if !known.is_empty() {
            self.seen.write(known);
            self.known_bytes -= known.len();
            self.differs |= self.known_bytes == 0 && self.seen.finish() != self.hash;
        }
        if self.differs || new.is_empty() {
            return "";
        }
        let new = piece.get(known.len()..).unwrap_or_default();
        let fits = floor_boundary(new, self.room_bytes.min(new.len()));
        self.room_bytes -= fits;
        self.left_out_bytes += new.len() - fits;
        &new[..fits]
    }

    /// Whether more of it is wanted.
    fn goes_on(&self) -> bool {
        !self.differs && self.left_out_bytes == 0
    }
}

/// The text so far.
#[derive(Debug, Default)]
pub struct Transcript {
    /// All of it, within its bound.
    pub output: Output,
    /// Message and contentIndex of the last block of text that was told.
    last_block: Option<(u64, u64)>,
    /// Counts the messages.
    message: u64,
    /// What was told of this message.
    spoken: Spoken,
    /// Messages whose end has another text than was told of them.
    pub mismatches: u64,
    /// A delta ended inside a surrogate pair.
    half: Option<(Block, u32)>,
    /// What may be the beginning of the secret.
    holds: Holds,
    /// When the first text came.
    pub first_text_ms: Option<u64>,
}

impl Transcript {
    /// No text yet; this secret is masked in what deltas tell together.
    pub fn new(secret: Option<Secret>) -> Self {
        Self { holds: Holds::new(secret), ..Self::default() }
    }

    /// Another message begins, or could.
    pub fn next_message(&mut self, now_ms: u64, tell: Tell<'_>) {
        self.end_blocks(now_ms, tell);
        self.message += 1;
        self.spoken = Spoken::default();
    }

    /// Tells a delta, in pieces if it is long. What is no string is nothing.
    pub fn delta(&mut self, block: Block, delta: &RawValue, now_ms: u64, tell: Tell<'_>) {
        let Some(quoted) = quoted_text(delta) else { return };
        if self.half.is_some_and(|(other, _)| other != block) {
            self.close_half(now_ms, tell);
        }
        self.pause(Some(block), now_ms, tell);
        let half = self.half.take().map(|(_, unit)| unit);
        let mut line = LineText::of_delta();
        let half = self.string(block, quoted, half, &mut line, now_ms, tell);
        self.half = half.map(|unit| (block, unit));
        self.spoken.cut |= !block.thinking && line.left_out_bytes > 0;
        self.gap(block, &line, now_ms, tell);
    }

    /// Something else comes than more of this block: see [`Holds::hint`].
    pub fn pause(&mut self, block: Option<Block>, now_ms: u64, tell: Tell<'_>) {
        while let Some((block, text)) = self.holds.hint(block) {
            self.say(block, &text, now_ms, tell);
        }
    }

    /// A block has ended: what was held back of it is told.
    pub fn end_block(&mut self, block: Block, now_ms: u64, tell: Tell<'_>) {
        let text = self.holds.end(block);
        self.say(block, &text, now_ms, tell);
    }

    /// All blocks have ended: what was held back of them is told.
    pub fn end_blocks(&mut self, now_ms: u64, tell: Tell<'_>) {
        self.close_half(now_ms, tell);
        while let Some((block, text)) = self.holds.end_one() {
            self.say(block, &text, now_ms, tell);
        }
    }

    /// Tells what deltas have not told of a message that has ended: the rest, or all of it. Where
    /// they have told something else, that is counted. `content` is its blocks, or a string.
    pub fn whole(&mut self, content: Option<&RawValue>, now_ms: u64, tell: Tell<'_>) {
        if self.spoken.bytes == 0 {
            // The last message is this one, whether it has text or not.
            self.output.next_message(0);
        }
        let Some(content) = content else { return self.close_half(now_ms, tell) };
        let half = self.half.take_if(|(block, _)| !block.thinking);
        self.end_blocks(now_ms, tell);
        self.half = half;
        if self.spoken.cut || self.spoken.bytes > AGENT_OUTPUT_BYTES {
            return self.close_half(now_ms, tell);
        }
        // Its other half may be in what is told now.
        let half = self.half.take();
        let told_bytes = self.spoken.bytes;
        let mut line = LineText::of_message(told_bytes, self.spoken.hash.finish());
        let behind = self.blocks(content, &mut line, now_ms, tell);
        if line.differs || (line.known_bytes > 0 && behind == 0) {
            self.mismatches += 1;
        } else if line.known_bytes == 0 {
            line.left_out_bytes += behind;
            let here = self.last_block.filter(|(message, _)| *message == self.message);
            let index = here.map_or(ONLY_WHOLE, |(_, index)| index);
            self.gap(Block { thinking: false, index }, &line, now_ms, tell);
        }
        if self.spoken.bytes == told_bytes {
            self.half = half;
            self.close_half(now_ms, tell);
        }
    }

    /// Tells what is not known of the blocks of a message that has ended. Gives how many bytes
    /// behind them were not looked at.
    fn blocks(
        &mut self,
        content: &RawValue,
        line: &mut LineText,
        now_ms: u64,
        tell: Tell<'_>,
    ) -> usize {
        if let Some(quoted) = quoted_text(content) {
            self.block(ONLY_WHOLE, quoted, line, now_ms, tell);
        }
        let mut at = 0;
        each_item(content, &mut |item| {
            let item = Fields::of(Some(item));
            let is_text = item.get("type").is_some_and(|kind| kind.get() == r#""text""#);
            let text = item.get("text").filter(|_| is_text);
            if let Some(quoted) = text.and_then(quoted_text) {
                self.block(ONLY_WHOLE + at, quoted, line, now_ms, tell);
            }
            at += 1;
            line.goes_on() && at < AGENT_BLOCKS
        })
    }

    /// Where a text that begins stands: behind what came before it.
    fn begin_block(&mut self, index: u64, line: &mut LineText) -> Block {
        if std::mem::replace(&mut line.begun, true) {
            line.take(BETWEEN_BLOCKS);
        }
        // The block in which the deltas have ended goes on, whatever place they gave it.
        let open = self.last_block.filter(|_| line.known_bytes > 0);
        Block { thinking: false, index: open.map_or(index, |(_, index)| index) }
    }

    /// Tells what is not known of a block of a message that has ended.
    fn block(
        &mut self,
        index: u64,
        quoted: &str,
        line: &mut LineText,
        now_ms: u64,
        tell: Tell<'_>,
    ) {
        if quoted.is_empty() {
            return;
        }
        let block = self.begin_block(index, line);
        if self.string(block, quoted, None, line, now_ms, tell).is_some() {
            self.say(block, line.take(REPLACEMENT), now_ms, tell);
        }
    }

    /// Tells the text of a string in pieces, as far as there is room for it and it is not known.
    /// `half` is as in [`pieces`]; it is given back as it stands at the end.
    fn string(
        &mut self,
        block: Block,
        quoted: &str,
        mut half: Option<u32>,
        line: &mut LineText,
        now_ms: u64,
        tell: Tell<'_>,
    ) -> Option<u32> {
        if half.is_none() && quoted.len() <= AGENT_DELTA_BYTES && !quoted.contains('\\') {
            let text = self.masked(block, quoted, line);
            self.say(block, line.take(&text), now_ms, tell);
            return None;
        }
        let mut joined = String::new();
        let read = pieces(quoted, &mut half, &mut |piece| {
            let text = self.masked(block, piece, line);
            let mut piece = line.take(&text);
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
            line.goes_on()
        });
        line.left_out_bytes += quoted.len() - read;
        self.say(block, &joined, now_ms, tell);
        half.filter(|_| line.goes_on())
    }

    /// What may be told now of more text of a block. (A line that is no delta is masked as a whole
    /// before it is read.)
    fn masked<'a>(&mut self, block: Block, text: &'a str, line: &LineText) -> Cow<'a, str> {
        if line.is_delta { self.holds.take(block, text) } else { Cow::Borrowed(text) }
    }

    /// Tells that there was no room for all of the text of a line.
    fn gap(&mut self, block: Block, line: &LineText, now_ms: u64, tell: Tell<'_>) {
        if line.left_out_bytes > 0 {
            self.end_block(block, now_ms, tell);
            self.say(block, &left_out(line.left_out_bytes as u64), now_ms, tell);
        }
    }

    /// The other half of a surrogate pair will not come.
    pub fn close_half(&mut self, now_ms: u64, tell: Tell<'_>) {
        if let Some((block, _)) = self.half.take() {
            let text = self.holds.take(block, REPLACEMENT);
            self.say(block, &text, now_ms, tell);
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
        // What stands between two messages is part of neither.
        let in_message = if self.spoken.bytes == 0 { Some(text) } else { joined.as_deref() };
        self.spoken.add(in_message.unwrap_or(text));
        let in_message_bytes = in_message.unwrap_or(text).len();
        let text = joined.as_deref().unwrap_or(text);
        if self.spoken.bytes == in_message_bytes {
            self.output.next_message(text.len() - in_message_bytes);
        }
        self.output.push(text);
        self.last_block = here;
        self.first_text_ms.get_or_insert(now_ms);
        tell(&Told { event: "text", delta: Some(text), ..Told::default() });
    }

    /// Bytes of heap owned.
    pub fn heap_bytes(&self) -> usize {
        self.output.heap_bytes()
    }
}

/// The text so far.
#[derive(Debug)]
pub struct Output {
    kept: HeadTail,
    /// So many bytes came before the last message.
    last_from: u64,
}

impl Default for Output {
    fn default() -> Self {
        Self { kept: HeadTail::new(AGENT_OUTPUT_BYTES), last_from: 0 }
    }
}

impl Output {
    /// Takes in what was told.
    pub fn push(&mut self, text: &str) {
        self.kept.push(text.as_bytes());
    }

    /// Another message begins behind so many bytes that come next.
    pub fn next_message(&mut self, behind_bytes: usize) {
        self.last_from = self.kept.total_bytes() + behind_bytes as u64;
    }

    /// All of the text; where there was too much of it, its middle is a line that says so.
    pub fn all(&self) -> String {
        self.from(0)
    }

    /// The text of the last message alone, as far as it was kept.
    pub fn last(&self) -> String {
        self.from(self.last_from)
    }

    /// The text without so many bytes at its beginning, which end where a character does. Each byte
    /// is copied once: a result with much text is made in one turn of the loop.
    fn from(&self, from: u64) -> String {
        let [mut head, older, newer] = self.kept.parts();
        let at_most =
            |bytes: u64, most: usize| usize::try_from(bytes).map_or(most, |n| n.min(most));
        let behind_head = from.saturating_sub(head.len() as u64);
        head = &head[at_most(from, head.len())..];
        let mut omitted_bytes = self.kept.omitted_bytes();
        let behind_gap = behind_head.saturating_sub(omitted_bytes);
        let mut skipped = at_most(behind_gap, older.len() + newer.len());
        omitted_bytes = omitted_bytes.saturating_sub(behind_head);
        let mut gap = String::new();
        if omitted_bytes > 0 {
            let cut = incomplete_suffix_len(head);
            head = &head[..head.len() - cut];
            // No character is longer than this.
            let begins: Vec<u8> =
                older.iter().chain(newer).skip(skipped).take(4).copied().collect();
            let rest = continuation_len(&begins);
            skipped += rest;
            gap = left_out(omitted_bytes + (cut + rest) as u64);
        }
        let older_kept = &older[skipped.min(older.len())..];
        let newer_kept = &newer[skipped.saturating_sub(older.len())..];
        let text = [head, gap.as_bytes(), older_kept, newer_kept].concat();
        String::from_utf8(text).unwrap_or_else(|fault| lossy(fault.as_bytes()))
    }

    /// Bytes of heap owned.
    pub fn heap_bytes(&self) -> usize {
        self.kept.heap_bytes()
    }
}

/// The line that stands for text that is left out.
pub fn left_out(bytes: u64) -> String {
    format!("\n\n[{bytes} bytes of text are left out here]\n\n")
}
