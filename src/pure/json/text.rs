//! The text of a JSON string, read in place, and no further than is wanted.
//!
//! JavaScript's strings are UTF-16 and may be cut inside of a surrogate pair; JSON.stringify then
//! writes half of it as an escape (ECMA-262, QuoteJSONString). Such a half is put together with
//! its other one where that follows, else it becomes U+FFFD, as a TextDecoder has it.

use std::borrow::Cow;

use memchr::memchr;
use serde_json::value::RawValue;

use super::guard::{JsonFault, guard, unicode_escape};
use crate::pure::text::utf8::floor_boundary;

/// What stands for half a surrogate pair.
pub const REPLACEMENT: &str = "\u{FFFD}";

/// So many bytes at least make a piece of their own.
const JOINED_BYTES: usize = 256;
/// So many bytes are looked at one by one for the next escape.
const NEAR_BYTES: usize = 16;

/// Text that stops growing at a number of bytes, on a boundary of characters, and counts what is
/// left out.
#[derive(Clone, Debug, Default)]
pub struct Bounded {
    /// What is kept.
    pub text: String,
    /// Bytes left out at its end. What is not decoded any more counts as JSON has it: a `\n` as
    /// two.
    pub omitted_bytes: u64,
    most_bytes: usize,
}

impl Bounded {
    /// No text yet, and at most `most_bytes` of it.
    pub fn new(most_bytes: usize) -> Self {
        Self { text: String::new(), omitted_bytes: 0, most_bytes }
    }

    /// Appends a piece, or what still fits of it.
    pub fn push(&mut self, piece: &str) {
        let room = if self.omitted_bytes > 0 { 0 } else { self.most_bytes - self.text.len() };
        let kept = floor_boundary(piece, room.min(piece.len()));
        self.text.push_str(&piece[..kept]);
        self.omitted_bytes += (piece.len() - kept) as u64;
    }
}

/// The text between the quotes of a JSON string, its escapes as they are; None if `value` is no
/// string.
pub fn quoted_text(value: &RawValue) -> Option<&str> {
    value.get().strip_prefix('"')?.strip_suffix('"')
}

/// Hands out the text of a string, given by what is between its quotes, piece by piece, as long as
/// `take` says that it wants more. Gives how many bytes of `quoted` were read: all, or those up to
/// the end of the last piece. `half` is the first half of a surrogate pair that stands open: before
/// the call the one at which the text before was cut, after it the one at which this one is.
pub fn pieces(quoted: &str, half: &mut Option<u32>, take: &mut dyn FnMut(&str) -> bool) -> usize {
    let bytes = quoted.as_bytes();
    // What is short is handed out together: text full of escapes is no faster than its calls.
    let mut joined = String::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if *byte == b'\\' {
            at = escape(bytes, at, half, &mut joined);
            if joined.len() < JOINED_BYTES {
                continue;
            }
        }
        let plain = plain_end(bytes, at);
        if plain > at && half.take().is_some() {
            joined.push_str(REPLACEMENT);
        }
        if plain - at < JOINED_BYTES && joined.len() < JOINED_BYTES {
            joined.push_str(&quoted[at..plain]);
            at = plain;
            continue;
        }
        if !joined.is_empty() && !take(&joined) {
            return at;
        }
        joined.clear();
        if plain > at && !take(&quoted[at..plain]) {
            return plain;
        }
        at = plain;
    }
    if !joined.is_empty() {
        take(&joined);
    }
    bytes.len()
}

/// Where the text without escapes ends that begins at `at`.
fn plain_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    // To set up a search for each word between two escapes would take longer than to read it.
    let near = rest.iter().take(NEAR_BYTES).position(|byte| *byte == b'\\');
    at + near.or_else(|| memchr(b'\\', rest)).unwrap_or(rest.len())
}

/// Appends what the escape at `at` stands for, and gives where it ends. The first half of a pair is
/// kept in `half` until the other one comes.
fn escape(bytes: &[u8], at: usize, half: &mut Option<u32>, to: &mut String) -> usize {
    let unit = match bytes.get(at + 1) {
        Some(b'u') => unicode_escape(bytes, at).unwrap_or(0xFFFD),
        Some(b'b') => 0x08,
        Some(b'f') => 0x0C,
        Some(b'n') => 0x0A,
        Some(b'r') => 0x0D,
        Some(b't') => 0x09,
        Some(other) => u32::from(*other),
        None => return bytes.len(),
    };
    let end = at + if bytes[at + 1] == b'u' { 6 } else { 2 };
    let code = match (half.take(), unit) {
        (Some(high), 0xDC00..=0xDFFF) => 0x1_0000 + ((high - 0xD800) << 10) + (unit - 0xDC00),
        (open, _) => {
            if open.is_some() {
                to.push_str(REPLACEMENT);
            }
            if let 0xD800..=0xDBFF = unit {
                *half = Some(unit);
                return end;
            }
            unit
        }
    };
    to.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    end
}

/// Appends the text of a string to `to`; false if `value` is none. What is behind its end is not
/// decoded.
pub fn append(value: &RawValue, to: &mut Bounded) -> bool {
    let Some(quoted) = quoted_text(value) else { return false };
    if to.omitted_bytes > 0 {
        to.omitted_bytes += quoted.len() as u64;
        return true;
    }
    let mut half = None;
    let read = pieces(quoted, &mut half, &mut |piece| {
        to.push(piece);
        to.omitted_bytes == 0
    });
    to.omitted_bytes += (quoted.len() - read) as u64;
    if half.is_some() {
        to.push(REPLACEMENT);
    }
    true
}

/// The text of a string, at most its first `most_bytes`; None if there is no value or it is no
/// string.
pub fn string(value: Option<&RawValue>, most_bytes: usize) -> Option<Cow<'_, str>> {
    let value = value?;
    let quoted = quoted_text(value)?;
    if quoted.len() <= most_bytes && !quoted.contains('\\') {
        return Some(Cow::Borrowed(quoted));
    }
    let mut text = Bounded::new(most_bytes);
    append(value, &mut text);
    Some(Cow::Owned(text.text))
}

/// JSON that any reader takes: each half of a surrogate pair is replaced by U+FFFD (in as many
/// bytes). None if it is nested more than `max_depth` deep. `json` has passed a parser.
pub fn mended(json: &str, max_depth: usize) -> Option<Cow<'_, str>> {
    match guard(json.as_bytes(), max_depth) {
        Ok(_) => return Some(Cow::Borrowed(json)),
        Err(JsonFault::LoneSurrogate) => {}
        Err(_) => return None,
    }
    let mut bytes = json.as_bytes().to_vec();
    let mut at = 0;
    while let Some(run) = bytes.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        at += run;
        let other = unicode_escape(&bytes, at + 6);
        at += match (unicode_escape(&bytes, at), other) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                bytes[at + 2..at + 6].copy_from_slice(b"fffd");
                6
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
    }
    guard(&bytes, max_depth).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
#[path = "tests_text.rs"]
mod tests;
