//! What a request line must satisfy beyond the checks of the JSON parser.
//!
//! Source: protocol.md, Errors, and RFC 8259, sections 7 and 8. A value that is kept as raw text is
//! not looked into by the parser, so these checks come first. This is no validator: what is
//! no JSON in any other way passes here and is refused by the parser.

use memchr::{memchr, memchr2};
use std::{fmt, str};

/// Why a line is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JsonFault {
    /// The bytes are no UTF-8.
    NotUtf8,
    /// More arrays and objects are open at once than allowed.
    TooDeep,
    /// A `\uD800`–`\uDFFF` escape in a string that is not half of a pair.
    LoneSurrogate,
    /// A NUL byte, anywhere. (The escape `\u0000` is fine.)
    Nul,
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotUtf8 => "the line is not valid UTF-8",
            Self::TooDeep => "arrays and objects are nested too deeply",
            Self::LoneSurrogate => "a \\u escape is one half of a surrogate pair without the other",
            Self::Nul => "the line has a NUL byte in it",
        })
    }
}

/// What a line begins with, after white space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// `{`: a request.
    Object,
    /// `[`: a batch.
    Array,
    /// Anything else, or nothing.
    Other,
}

/// Checks a line and gives it as text, with its shape. At most `max_depth` arrays and objects
/// may be open at once. Of several faults one is told: UTF-8 before NUL before the first of
/// the others. Takes constant memory and one pass for each kind of check.
pub fn guard(line: &[u8], max_depth: usize) -> Result<(&str, Shape), JsonFault> {
    let text = str::from_utf8(line).map_err(|_| JsonFault::NotUtf8)?;
    if memchr(0, line).is_some() {
        return Err(JsonFault::Nul);
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        at += 1;
        match byte {
            b'"' => at = after_string(line, at)?,
            b'{' | b'[' if depth >= max_depth => return Err(JsonFault::TooDeep),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    let first = line.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
    let shape = match first {
        Some(b'{') => Shape::Object,
        Some(b'[') => Shape::Array,
        _ => Shape::Other,
    };
    Ok((text, shape))
}

/// Where the string that has been entered before `at` is left: behind its closing quote, or at
/// the end of the line.
fn after_string(line: &[u8], mut at: usize) -> Result<usize, JsonFault> {
    loop {
        match line.get(at) {
            None => return Ok(line.len()),
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = after_escape(line, at)?,
            Some(_) => {
                // Text full of escapes would lose more by setting up a search for each than
                // by looking at the next byte first.
                let rest = &line[at..];
                at += memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            }
        }
    }
}

/// Where the escape whose backslash is at `at` ends. A pair of surrogates counts as one.
fn after_escape(line: &[u8], at: usize) -> Result<usize, JsonFault> {
    match unicode_escape(line, at) {
        Some(0xD800..=0xDBFF) => match unicode_escape(line, at + 6) {
            Some(0xDC00..=0xDFFF) => Ok(at + 12),
            _ => Err(JsonFault::LoneSurrogate),
        },
        Some(0xDC00..=0xDFFF) => Err(JsonFault::LoneSurrogate),
        Some(_) => Ok(at + 6),
        None => Ok(at + 2),
    }
}

/// The value of `\uHHHH` at `at`; None if that is not what stands there.
pub fn unicode_escape(line: &[u8], at: usize) -> Option<u32> {
    let [b'\\', b'u', hex @ ..] = line.get(at..at.checked_add(6)?)? else { return None };
    hex.iter().try_fold(0, |value, byte| Some(value << 4 | char::from(*byte).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::random;

    const OBJECT: Result<Shape, JsonFault> = Ok(Shape::Object);

    fn shape(line: &[u8], depth: usize) -> Result<Shape, JsonFault> {
        guard(line, depth).map(|(text, shape)| {
            assert_eq!(text.as_bytes(), line);
            shape
        })
    }

    /// rule: protocol.md, Errors: Invalid UTF-8, NUL bytes, lone surrogates, 10,000-deep nesting:
    ///   one −32700 each
    #[test]
    fn table() {
        let lone = Err(JsonFault::LoneSurrogate);
        let table: &[(&[u8], Result<Shape, JsonFault>)] = &[
            (b"", Ok(Shape::Other)),
            (b" \t{\"id\":1}", OBJECT),
            (b"\r\n[1]", Ok(Shape::Array)),
            (b"\"{\"", Ok(Shape::Other)),
            (b"\xEF\xBB\xBF{}", Ok(Shape::Other)),
            (b"\0\xff", Err(JsonFault::NotUtf8)),
            (br#"{"a":"\ud800"}"#, lone),
            (br#"{"a":"open [[[[[[[[["#, OBJECT),
            (b"[{\"a\":[{\"b\":[[]]}]}]", Err(JsonFault::TooDeep)),
        ];
        for (line, expected) in table {
            assert_eq!(shape(line, 5), *expected, "{}", String::from_utf8_lossy(line));
        }
        assert_eq!(shape(b"1", 0), Ok(Shape::Other));
        assert_eq!(shape(b"{}", 0), Err(JsonFault::TooDeep));
        assert_eq!(shape(&b"[".repeat(1_000_000), 128), Err(JsonFault::TooDeep));
        assert_eq!(shape(&b"[".repeat(100_000), usize::MAX), Ok(Shape::Array));
    }

    /// Reads a value's brackets by recursion and a string's escapes into a list of units first.
    fn naive(line: &[u8], max_depth: usize) -> Result<(), JsonFault> {
        fn level(chars: &[char], mut at: usize, left: usize) -> Result<usize, JsonFault> {
            while at < chars.len() {
                match chars[at] {
                    '"' => at = string(chars, at + 1)?,
                    '[' | '{' if left == 0 => return Err(JsonFault::TooDeep),
                    '[' | '{' => at = level(chars, at + 1, left - 1)?,
                    ']' | '}' => return Ok(at + 1),
                    _ => at += 1,
                }
            }
            Ok(at)
        }
        fn string(chars: &[char], mut at: usize) -> Result<usize, JsonFault> {
            let mut units = Vec::new();
            while at < chars.len() && chars[at] != '"' {
                let unit = chars
                    .get(at + 2..at + 6)
                    .filter(|_| chars[at..].starts_with(&['\\', 'u']))
                    .filter(|hex| hex.iter().all(char::is_ascii_hexdigit))
                    .map(|hex| u16::from_str_radix(&hex.iter().collect::<String>(), 16).unwrap());
                units.push(unit.unwrap_or(u16::from(b'x')));
                at += match (chars[at], unit) {
                    (_, Some(_)) => 6,
                    ('\\', None) => 2,
                    _ => 1,
                };
            }
            if char::decode_utf16(units).any(|unit| unit.is_err()) {
                return Err(JsonFault::LoneSurrogate);
            }
            Ok((at + 1).min(chars.len()))
        }
        let chars: Vec<char> =
            str::from_utf8(line).map_err(|_| JsonFault::NotUtf8)?.chars().collect();
        if chars.contains(&'\0') {
            return Err(JsonFault::Nul);
        }
        let mut at = 0;
        while at < chars.len() {
            // A bracket closed too often returns to here, and depth is 0 again.
            at = level(&chars, at, max_depth)?;
        }
        Ok(())
    }

    #[test]
    fn same_as_a_recursive_model() {
        let all = b"[|{|]|}|\"|\"|\\|\\u|\\ud83d|\\uDE00|\\ud83d\\ude00|\\u0041|D8|00|u|a|\
            \xc3\xa9| |[\"|\\\\|\"]|[\"x\",";
        let pieces: Vec<&[u8]> = all.split(|byte| *byte == b'|').collect();
        let mut below = random(0xfeed_f00d_1234_0001);
        let mut refused = 0;
        for _ in 0..70_000 {
            let mut line = Vec::new();
            for _ in 0..below(12) {
                line.extend_from_slice(pieces[below(pieces.len())]);
            }
            match below(40) {
                0 => line.push(0xff),
                1 => line.insert(0, 0),
                _ => {}
            }
            let depth = below(4);
            let got = guard(&line, depth).map(|_| ());
            let expected = naive(&line, depth);
            assert_eq!(got, expected, "{} depth {depth}", String::from_utf8_lossy(&line));
            refused += usize::from(got.is_err());
        }
        assert!((7_000..63_000).contains(&refused), "{refused} refused");
    }
}
