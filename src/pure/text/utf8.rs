//! UTF-8 at the edges: invalid bytes, characters cut by a read, cuts at a byte limit.
//!
//! What is text follows Unicode 16, 3.9 (and RFC 3629), as the standard library decodes it:
//! each maximal part of an invalid sequence is one U+FFFD.

/// The longest start of a character that is not yet the character, in bytes.
const PARTIAL_MAX_BYTES: usize = 3;

/// `bytes` as text; what is invalid becomes U+FFFD, an unfinished character at the end too.
pub fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// How many bytes at the end of `bytes` are the start of a valid but unfinished character:
/// 0 to 3. More input may complete these; what comes before them is final.
pub fn incomplete_suffix_len(bytes: &[u8]) -> usize {
    let longest = PARTIAL_MAX_BYTES.min(bytes.len());
    (1..=longest).find(|len| is_partial_char(&bytes[bytes.len() - len..])).unwrap_or(0)
}

/// Whether `bytes` are the start of exactly one character of which bytes are missing.
fn is_partial_char(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => false,
        // "No error length" is how the standard library says that the input ended too early.
        Err(error) => error.valid_up_to() == 0 && error.error_len().is_none(),
    }
}

/// How many bytes at the start of `bytes` go on with a character that began before them.
pub fn continuation_len(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|&&byte| byte & 0xC0 == 0x80).count()
}

/// The last character boundary of `text` at or before the byte index `at`; an index past the
/// end gives the end.
pub fn floor_boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

/// The first character boundary of `text` at or after the byte index `at`; an index past the
/// end gives the end.
pub fn ceil_boundary(text: &str, at: usize) -> usize {
    text.ceil_char_boundary(at)
}

/// Decodes a stream of bytes piece by piece: a character split over pushes comes out whole,
/// and all pieces together are what [`lossy`] gives for all bytes together.
#[derive(Debug, Default, Clone)]
pub struct Decoder {
    /// The start of a character at the end of the last push, at most 3 bytes.
    partial: [u8; PARTIAL_MAX_BYTES],
    partial_len: usize,
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub const fn new() -> Self {
        Decoder { partial: [0; PARTIAL_MAX_BYTES], partial_len: 0 }
    }

    /// The text that `bytes` complete. The start of a character at their end, at most 3
    /// bytes, is held back until the next call.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let joined;
        let all = if self.partial_len == 0 {
            bytes
        } else {
            joined = [&self.partial[..self.partial_len], bytes].concat();
            &joined[..]
        };
        let (complete, partial) = all.split_at(all.len() - incomplete_suffix_len(all));
        self.partial_len = partial.len();
        self.partial[..partial.len()].copy_from_slice(partial);
        lossy(complete)
    }

    /// Ends the stream: what is unfinished becomes one U+FFFD, nothing gives an empty text.
    /// The decoder is at the start of a stream again.
    pub fn finish(&mut self) -> String {
        let text = lossy(&self.partial[..self.partial_len]);
        self.partial_len = 0;
        text
    }
}

/// The characters that begin in `bytes`: all bytes but those that go on with one. Every byte of
/// output passes here, so eight are looked at in one step, whatever the compiler makes of loops.
pub fn chars_in(bytes: &[u8]) -> u64 {
    const LOW_BITS: u64 = 0x0101_0101_0101_0101;
    const EVEN_BYTES: u64 = 0x00FF_00FF_00FF_00FF;
    // Sums of bytes stay within a byte for so many words.
    const WORDS: usize = 255;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut count = 0;
    for words in words.chunks(WORDS) {
        let mut sums = 0_u64;
        for word in words {
            let word = u64::from_ne_bytes(*word);
            sums = sums.wrapping_add(((!word >> 7) | (word >> 6)) & LOW_BITS);
        }
        let pairs = (sums & EVEN_BYTES) + ((sums >> 8) & EVEN_BYTES);
        count += pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48;
    }
    count + rest.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::random;

    #[test]
    fn characters_are_counted_as_one_by_one() {
        let mut below = random(0x9E37_79B9_7F4A_7C15);
        let mut bytes = Vec::new();
        for length in 0..5_000 {
            if length % 97 == 0 {
                let one_by_one = bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u64;
                assert_eq!(chars_in(&bytes), one_by_one, "{length}");
            }
            bytes.push(u8::try_from(below(256)).unwrap());
        }
        assert_eq!(chars_in(&[b'x'; 9_999]), 9_999);
        assert_eq!(chars_in(&[0x80; 9_999]), 0);
        assert_eq!(chars_in("ä漢😀x".as_bytes()), 4);
    }

    #[test]
    fn unfinished_characters_at_the_end_are_counted() {
        let table: &[(&[u8], usize)] = &[
            (b"", 0),
            (b"a", 0),
            (b"\xC3", 1),
            (b"\xC3\xA9", 0),
            (b"ab\xE2", 1),
            (b"ab\xE2\x82", 2),
            (b"ab\xE2\x82\xAC", 0),
            (b"\xF0\x9F", 2),
            (b"\xF0\x9F\x98", 3),
            (b"\xF0\x9F\x98\x80", 0),
            (b"\xF0\x9F\x98\xE2\x82", 2),
            // Starts that no continuation makes valid are not unfinished but wrong.
            (b"\xC0", 0),
            (b"\xE0\x80", 0),
            (b"\xED\xA0", 0),
            (b"\xF4\x90", 0),
            (b"\xFF", 0),
            (b"\x80\x80\x80", 0),
        ];
        for (bytes, expected) in table {
            assert_eq!(incomplete_suffix_len(bytes), *expected, "{bytes:x?}");
        }
    }

    #[test]
    fn boundaries_are_found_on_both_sides() {
        let text = "a\u{20ac}b";
        let table = [(0, 0, 0), (1, 1, 1), (2, 1, 4), (3, 1, 4), (4, 4, 4), (5, 5, 5), (9, 5, 5)];
        for (at, floor, ceil) in table {
            assert_eq!(floor_boundary(text, at), floor, "floor {at}");
            assert_eq!(ceil_boundary(text, at), ceil, "ceil {at}");
        }
        assert_eq!((floor_boundary("", 3), ceil_boundary("", 3)), (0, 0));
    }

    #[test]
    fn random_bytes_in_random_pieces_give_what_the_whole_gives() {
        let mut random = random(0x9E37_79B9_7F4A_7C15);
        // Few different bytes, so that whole characters come about often.
        let alphabet = b"a\x80\x82\xAC\xC3\xE2\xF0\x9F\x98\xED\xA0\xFF";
        for _ in 0..700 {
            let bytes: Vec<u8> =
                (0..random(60)).map(|_| alphabet[random(alphabet.len())]).collect();
            let mut decoder = Decoder::new();
            let (mut text, mut rest) = (String::new(), &bytes[..]);
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(1 + random(rest.len().min(5)));
                text += &decoder.push(piece);
                rest = after;
            }
            text += &decoder.finish();
            assert_eq!(text, lossy(&bytes), "{bytes:x?}");
        }
    }
}
