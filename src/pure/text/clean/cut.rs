//! Where raw output may be cut so that the clean text of the parts is that of the whole: neither in
//! an escape sequence nor in a character.

use memchr::{memchr, memchr2, memrchr};

use super::screen::Screen;
use super::{Cleaner, plain_len};
use crate::pure::text::utf8::incomplete_suffix_len;

/// The last places at which some bytes may be cut, as numbers of bytes before the cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// Anywhere.
    pub any: usize,
    /// Behind the end of a line; 0 where there is none.
    pub line: usize,
}

/// The last places at which `bytes` may be cut, which begin outside of sequences and characters.
pub fn cuts(bytes: &[u8]) -> Cuts {
    let first = memchr(0x1B, bytes).unwrap_or(bytes.len());
    let plain = &bytes[..first];
    let mut cuts = Cuts { any: first, line: memrchr(b'\n', plain).map_or(0, |at| at + 1) };
    if first == bytes.len() {
        cuts.any = whole_len(bytes);
        return cuts;
    }
    let (mut cleaner, mut screen) = (Cleaner::new(), Screen::below(String::new()));
    let mut at = first;
    while at < bytes.len() {
        // Each part has one newline, at its end, or one sequence, at its beginning.
        let rest = &bytes[at..];
        let end = match memchr2(b'\n', 0x1B, &rest[1..]) {
            _ if rest[0] == b'\n' => 1,
            Some(next) if rest[next + 1] == b'\n' => next + 2,
            Some(next) => next + 1,
            None => rest.len(),
        };
        let part = &rest[..end];
        cleaner.feed(&mut screen, part);
        at += end;
        if cleaner.is_idle() {
            cuts.any = at;
            if part.ends_with(b"\n") {
                cuts.line = at;
                // What the lines look like is of no interest here.
                screen = Screen::below(String::new());
            }
        } else if !cleaner.in_sequence {
            cuts.any = at - cleaner.partial_len;
        }
    }
    cuts
}

/// How many of `bytes`, which hold no escape sequence, stand before an unfinished character at the
/// end.
fn whole_len(bytes: &[u8]) -> usize {
    debug_assert!(plain_len(bytes) <= bytes.len());
    bytes.len() - incomplete_suffix_len(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_outside_of_sequences_and_characters() {
        let cases: &[(&[u8], (usize, usize))] = &[
            (b"", (0, 0)),
            (b"abc", (3, 0)),
            (b"a\nbc", (4, 2)),
            (b"a\xE2\x82", (1, 0)),
            (b"a\xE2\x82\n", (4, 4)),
            (b"a\n\x1b[3", (2, 2)),
            (b"a\n\x1b[31m", (7, 2)),
            (b"a\n\x1b[31mx\xC3", (8, 2)),
            (b"\x1b]0;title\x07x", (11, 0)),
            (b"x\x1b]0;title\x1b", (1, 0)),
            (b"x\x1b]0;title\x1b\\", (12, 0)),
            // A string ends with its line, a newline inside another sequence does not end that.
            (b"x\x1b]0;title\ny", (12, 11)),
            (b"x\x1b[3\n", (1, 0)),
            (b"x\x1b[3\n1m", (7, 0)),
        ];
        for (bytes, (any, line)) in cases {
            let expected = Cuts { any: *any, line: *line };
            assert_eq!(cuts(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}
