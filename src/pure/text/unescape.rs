//! The C-style escapes of write_stdin's `chars`.

use memchr::memchr;

/// Bytes of `\uHHHH`.
const UNICODE_ESCAPE_LEN: usize = 6;
/// Most digits in `\u{H…}`.
const MAX_BRACED_DIGITS: usize = 6;

/// The bytes that `chars` stands for: escapes decoded, everything else as it is in UTF-8.
///
/// Known are `\n \r \t \b \f \v \0 \a \e \\ \" \'`, `\xHH` (exactly that byte), `\uHHHH` (a
/// surrogate pair of two is one character) and `\u{H…}` (1 to 6 digits, at most 10FFFF).
/// Whatever else follows a backslash, a lone surrogate too, keeps it and is taken literally.
/// `\0` is one NUL even before digits. Never fails; the result is no longer than `chars`.
pub fn unescape(chars: &str) -> Vec<u8> {
    let mut rest = chars.as_bytes();
    let mut decoded = Vec::with_capacity(rest.len());
    while let Some(backslash) = memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at(backslash);
        decoded.extend_from_slice(plain);
        let used = decode_escape(escape, &mut decoded).unwrap_or_else(|| {
            decoded.push(b'\\');
            1
        });
        rest = &escape[used..];
    }
    decoded.extend_from_slice(rest);
    decoded
}

/// Decodes the escape that `escape` begins with (its first byte is the backslash), appends
/// its bytes and gives its length; None when there is no such escape.
fn decode_escape(escape: &[u8], decoded: &mut Vec<u8>) -> Option<usize> {
    let byte = match *escape.get(1)? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'f' => 0x0C,
        b'v' => 0x0B,
        b'0' => 0x00,
        b'a' => 0x07,
        b'e' => 0x1B,
        same @ (b'\\' | b'"' | b'\'') => same,
        b'x' => {
            decoded.push(u8::try_from(hex(escape.get(2..4)?)?).ok()?);
            return Some(4);
        }
        b'u' => {
            let (character, used) = unicode(escape)?;
            decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(used);
        }
        _ => return None,
    };
    decoded.push(byte);
    Some(2)
}

/// The character of a `\u` escape and the escape's length in bytes.
fn unicode(escape: &[u8]) -> Option<(char, usize)> {
    if escape.get(2) == Some(&b'{') {
        let braced = &escape[3..];
        let digits_len = memchr(b'}', &braced[..braced.len().min(MAX_BRACED_DIGITS + 1)])?;
        let code = hex(&braced[..digits_len])?;
        return Some((char::from_u32(code)?, 3 + digits_len + 1));
    }
    let first = code_unit(escape)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, UNICODE_ESCAPE_LEN));
    }
    // Half of a pair: JSON writes characters above FFFF that way (RFC 8259, 7).
    let second = code_unit(&escape[UNICODE_ESCAPE_LEN..])?;
    if !matches!((first, second), (0xD800..=0xDBFF, 0xDC00..=0xDFFF)) {
        return None;
    }
    let code = 0x1_0000 + ((first & 0x3FF) << 10) + (second & 0x3FF);
    Some((char::from_u32(code)?, 2 * UNICODE_ESCAPE_LEN))
}

/// The number in a `\uHHHH` at the start of `escape`, 0 to FFFF.
fn code_unit(escape: &[u8]) -> Option<u32> {
    if !escape.starts_with(b"\\u") {
        return None;
    }
    hex(escape.get(2..UNICODE_ESCAPE_LEN)?)
}

/// The value of 1 to 6 hexadecimal digits; None when there is none or anything else.
fn hex(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > MAX_BRACED_DIGITS {
        return None;
    }
    digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::random;

    /// rule: unified-exec.md, write_stdin: Escapes: `\n \r \t \b \f \v \0 \a \e \\ \" \'`
    /// rule: unified-exec.md, write_stdin: `chars`: C-style escapes are decoded
    /// rule: unified-exec.md, write_stdin: `\xHH` is exactly that one byte
    /// rule: unified-exec.md, write_stdin: `\uHHHH` and `\u{H…}`
    #[test]
    fn every_escape_gives_its_bytes() {
        let table: &[(&str, &[u8])] = &[
            ("", b""),
            ("password\\n", b"password\n"),
            ("\\n\\r\\t\\b\\f\\v\\0\\a\\e", b"\n\r\t\x08\x0C\x0B\0\x07\x1B"),
            ("\\\\ \\\" \\'", b"\\ \" '"),
            ("\\x03", b"\x03"),
            ("\\x1b:wq\\n", b"\x1b:wq\n"),
            ("\\x1B[A", b"\x1b[A"),
            ("\\x80\\xFf\\x00", b"\x80\xFF\0"),
            ("\\x413", b"A3"),
            ("\\012", b"\x0012"),
            ("\\u0041\\u20AC\\u20ac", "A\u{20ac}\u{20ac}".as_bytes()),
            ("\\u00e9x", "\u{e9}x".as_bytes()),
            ("\\u{41}\\u{0}\\u{20ac}", "A\0\u{20ac}".as_bytes()),
            ("\\u{1F600}\\u{10FFFF}\\u{000041}", "\u{1f600}\u{10ffff}A".as_bytes()),
            ("\\uD83D\\uDE00", "\u{1f600}".as_bytes()),
            ("\\ud83d\\ude00!", "\u{1f600}!".as_bytes()),
            ("\\uDBFF\\uDFFF", "\u{10ffff}".as_bytes()),
            // The model's Windows path: only a doubled backslash is safe.
            ("C:\\\\temp", b"C:\\temp"),
            ("C:\\temp", b"C:\temp"),
            ("\\\\n", b"\\n"),
            ("\\\\\\n", b"\\\n"),
        ];
        for (chars, expected) in table {
            assert_eq!(unescape(chars), *expected, "{chars}");
        }
    }

    /// rule: unified-exec.md, write_stdin: Anything else keeps its backslash
    #[test]
    fn what_is_no_escape_is_taken_literally() {
        let all = "\\q|\\|a\\|\\N\\R\\X41\\U0041|\\1\\9\\ \\-|\\x|\\x1|\\x1g|\\xg1|\\x+1|\\x\u{e9}|\
            \\u|\\u123|\\u12g4|\\u+123|\\u{}|\\u{|\\u{41|\\u{110000}|\\u{0000041}|\\u{d800}|\
            \\u{DFFF}|\\u{4 1}|\\u{xyz}|\\uD83D|\\uD83Dx|\\uDE00\\uD83D|\\uDE00\\uDE00|\
            \\uD83D\\u{DE00}|\\\u{e9}\u{20ac}|\
            raw \u{1}\u{1b}[A\t\r\n\u{0} \u{1f600}";
        for chars in all.split('|') {
            assert_eq!(unescape(chars), chars.as_bytes(), "{chars:?}");
        }
    }

    /// rule: unified-exec.md, write_stdin: A pair of `\uD83D\uDE00` surrogates is one character
    #[test]
    fn a_lone_surrogate_does_not_hide_the_escape_after_it() {
        assert_eq!(unescape("\\uD83D\\n"), b"\\uD83D\n");
        assert_eq!(unescape("\\uD83D\\u0041"), b"\\uD83DA");
        assert_eq!(unescape("\\uD83D\\uD83D\\uDE00"), "\\uD83D\u{1f600}".as_bytes());
        assert_eq!(unescape("\\q\\n"), b"\\q\n");
    }

    /// rule: architecture.md, Bounds: No panics on input
    #[test]
    fn random_text_never_panics_or_grows() {
        let mut random = random(0x2545_F491_4F6C_DD1D);
        let alphabet: Vec<char> = "\\\\\\\\xu{}0aAdDeE8Fn'\"\u{e9}\u{1f600}".chars().collect();
        for _ in 0..7_000 {
            let text: String = (0..random(24)).map(|_| alphabet[random(alphabet.len())]).collect();
            let decoded = unescape(&text);
            assert!(decoded.len() <= text.len(), "{text:?}");
            if !text.contains('\\') {
                assert_eq!(decoded, text.as_bytes());
            }
        }
    }
}
