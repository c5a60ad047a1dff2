//! The text of a JSON string, read where it lies and as far as it is wanted.
//!
//! JavaScript's strings are UTF-16 and may be cut inside of a surrogate pair; JSON.stringify then
//! writes half of it as an escape (ECMA-262, QuoteJSONString). Such a half is put together with
//! its other one where that follows, else it becomes U+FFFD, as a TextDecoder has it.

use std::borrow::Cow;

use memchr::memchr;
use serde_json::value::RawValue;

use super::json_guard::{JsonFault, guard, unicode_escape};
use super::utf8::floor_boundary;

/// What stands for half a surrogate pair.
pub const REPLACEMENT: &str = "\u{FFFD}";

/// Text that stops growing at a number of bytes, on a boundary of characters, and counts what is
/// left out.
#[derive(Clone, Debug, Default)]
pub struct Bounded {
    /// What is kept.
    pub text: String,
    /// Bytes left out at its end.
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

/// Hands out the text of a string, given by what is between its quotes, piece by piece. `half` is
/// the first half of a surrogate pair that stands open: before the call the one at which the text
/// before was cut, after it the one at which this one is.
pub fn pieces(quoted: &str, half: &mut Option<u32>, take: &mut dyn FnMut(&str)) {
    let bytes = quoted.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let plain = memchr(b'\\', &bytes[at..]).map_or(bytes.len(), |run| at + run);
        if plain > at {
            close(half, take);
            take(&quoted[at..plain]);
        }
        at = plain;
        let Some(escape) = bytes.get(at + 1) else { break };
        let unit = match escape {
            b'u' => unicode_escape(bytes, at).unwrap_or(0xFFFD),
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => 0x0A,
            b'r' => 0x0D,
            b't' => 0x09,
            other => u32::from(*other),
        };
        at += if *escape == b'u' { 6 } else { 2 };
        let code = match (*half, unit) {
            (Some(high), 0xDC00..=0xDFFF) => {
                *half = None;
                0x1_0000 + ((high - 0xD800) << 10) + (unit - 0xDC00)
            }
            (_, 0xD800..=0xDBFF) => {
                close(half, take);
                *half = Some(unit);
                continue;
            }
            _ => unit,
        };
        close(half, take);
        let shown = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        take(shown.encode_utf8(&mut [0; 4]));
    }
}

/// Gives up a half pair whose other half does not come.
pub fn close(half: &mut Option<u32>, take: &mut dyn FnMut(&str)) {
    if half.take().is_some() {
        take(REPLACEMENT);
    }
}

/// Appends the text of a string to `to`; false if `value` is none.
pub fn append(value: &RawValue, to: &mut Bounded) -> bool {
    let Some(quoted) = quoted_text(value) else { return false };
    let mut half = None;
    pieces(quoted, &mut half, &mut |piece| to.push(piece));
    close(&mut half, &mut |piece| to.push(piece));
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
#[path = "tests_json_text.rs"]
mod tests;
