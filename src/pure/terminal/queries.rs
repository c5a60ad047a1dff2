//! Takes the questions out of a program's output: where is the cursor, who are you, which colour.
//!
//! A terminal answers them as if it were typed. What it is shown later, or what another terminal
//! answers already, must not be answered (people.md, Attach): the program would take the
//! answer for keys.

/// Bytes of the longest question to a terminal that is looked for.
const QUERY_BYTES: usize = 256;

const ESC: u8 = 0x1b;
/// The first byte in UTF-8 of the control characters that stand for ESC and a byte.
const C1: u8 = 0xc2;
/// The beginning of a message to kitty's graphics, and what makes it be answered never.
const GRAPHICS: &[u8] = b"\x1b_G";
const QUIET: &[u8] = b"q=2";
const BEL: u8 = 0x07;
/// ENQ: answered with the terminal's answerback.
const ENQ: u8 = 0x05;
/// The reports of CSI … t, see XTerm Control Sequences.
const WINDOW_REPORTS: [&[u8]; 9] = [b"11", b"13", b"14", b"15", b"16", b"18", b"19", b"20", b"21"];

/// Passes bytes on but for the questions in them.
#[derive(Clone, Debug, Default)]
pub struct QueryFilter {
    /// A sequence whose end has not come.
    held: Vec<u8>,
    /// How many were taken out.
    count: u64,
}

/// What the bytes of a sequence so far are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Open,
    Plain,
    Question,
}

/// What follows ESC in a sequence, also where one character stands for both.
fn kind_of(text: &[u8]) -> Option<u8> {
    let kind = *text.get(1)?;
    match text[0] {
        ESC => Some(kind),
        // Any other character is one of the text.
        _ if (0x80..0xa0).contains(&kind) => Some(kind - 0x40),
        _ => Some(b' '),
    }
}

/// Looks at a sequence: `text` begins with ESC or C1.
fn look(text: &[u8]) -> Seen {
    let Some(kind) = kind_of(text) else { return Seen::Open };
    let Some((last, inner)) = text[2..].split_last().map(|(last, inner)| (*last, inner)) else {
        // These bytes begin a longer sequence.
        return match kind {
            b'[' | b']' | b'P' | b'_' => Seen::Open,
            // DECID: what are you.
            b'Z' => Seen::Question,
            _ => Seen::Plain,
        };
    };
    match kind {
        b'[' if (0x40..=0x7e).contains(&last) => control(inner, last),
        b'[' if !(b' '..0x7f).contains(&last) => Seen::Plain,
        b']' | b'P' | b'_' => {
            let end = match (last, inner.split_last()) {
                (BEL, _) if kind == b']' => Some(inner),
                (b'\\', Some((&ESC, text))) | (0x9c, Some((&C1, text))) => Some(text),
                _ => None,
            };
            let question = |text: &[u8]| match kind {
                b']' => text.ends_with(b";?"),
                b'_' => text.starts_with(b"G") && asks_graphics(text),
                _ => text.starts_with(b"+q") || text.starts_with(b"$q"),
            };
            match end {
                None => Seen::Open,
                Some(text) if question(text) => Seen::Question,
                Some(_) => Seen::Plain,
            }
        }
        _ => Seen::Open,
    }
}

/// Whether a message to kitty's graphics is nothing but a question.
fn asks_graphics(text: &[u8]) -> bool {
    let keys = text[1..].split(|byte| *byte == b';').next().unwrap_or_default();
    keys.split(|byte| *byte == b',').any(|key| key == b"a=q")
}

fn control(params: &[u8], last: u8) -> Seen {
    let question = match last {
        // XTSMGRAPHICS, DECRQCRA, DECRQPSR, the colours that are reported.
        b'S' => params.starts_with(b"?"),
        b'y' => params.ends_with(b"*"),
        b'w' => params.ends_with(b"$"),
        b'R' => params == b"#",
        b'n' => !params.starts_with(b">"),
        b'c' | b'x' => true,
        b'q' => params.starts_with(b">"),
        b'u' => params == b"?" || params.ends_with(b"$") || params == b"&",
        b'p' => params.ends_with(b"$"),
        b't' => {
            let first = params.split(|byte| *byte == b';').next().unwrap_or_default();
            WINDOW_REPORTS.contains(&first)
        }
        _ => false,
    };
    if question { Seen::Question } else { Seen::Plain }
}

impl QueryFilter {
    /// A filter at the start of the output.
    pub fn new() -> Self {
        Self::default()
    }

    /// Passes bytes on to `out`. Sequences may be split anywhere.
    pub fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for &byte in bytes {
            if self.held.is_empty() {
                match byte {
                    ESC | C1 => self.held.push(byte),
                    ENQ => {}
                    _ => out.push(byte),
                }
                continue;
            }
            self.held.push(byte);
            match look(&self.held) {
                Seen::Open if self.held.len() < QUERY_BYTES => {}
                Seen::Question => {
                    self.held.clear();
                    self.count += 1;
                }
                // No question is so long.
                Seen::Open | Seen::Plain => self.flush(out),
            }
        }
    }

    /// Passes on what was held back: nothing more is to be taken out.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if let Some(rest) = self.held.strip_prefix(GRAPHICS) {
            // A picture is answered too, unless it says that it wants no answer.
            out.extend_from_slice(GRAPHICS);
            out.extend_from_slice(QUIET);
            out.extend_from_slice(if matches!(rest, [b';' | ESC, ..]) { b"" } else { b"," });
            out.extend_from_slice(rest);
            self.held.clear();
        }
        out.append(&mut self.held);
    }

    /// How many questions there were until now.
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(text: &str, pieces: usize) -> String {
        let (mut filter, mut out) = (QueryFilter::new(), Vec::new());
        for piece in text.as_bytes().chunks(pieces) {
            filter.pass(piece, &mut out);
        }
        filter.flush(&mut out);
        String::from_utf8(out).unwrap()
    }

    /// rule: attach.md, attach_session, attach_input, detach_session: Only one attached terminal
    ///   answers the program's questions, and those of the past none
    #[test]
    fn questions_are_taken_out_and_nothing_else() {
        for (text, left) in [
            ("plain \x1b[1;31mred\x1b[m\r\n", "plain \x1b[1;31mred\x1b[m\r\n"),
            ("a\x1b[6nb\x1b[?6nc\x1b[5nd", "abcd"),
            ("a\x1b[cb\x1b[>cc\x1b[=0cd\x1b[>0qe\x1b[?uf", "abcdef"),
            ("a\x1b]10;?\x07b\x1b]11;?\x1b\\c\x1b]4;1;?\x07d", "abcd"),
            ("\x1b]0;what?\x07x", "\x1b]0;what?\x07x"),
            ("a\x1bP+q544e\x1b\\b\x1bP$qm\x1b\\c", "abc"),
            ("\x1bPzz\x1b\\x", "\x1bPzz\x1b\\x"),
            ("a\x1b[18tb\x1b[22;0;0tc", "ab\x1b[22;0;0tc"),
            ("a\x1b[?2026$pb\x1b[!pc", "ab\x1b[!pc"),
            ("\x1b[>4;2m\x1b[>1u\x1b[<u\x1b[4 q", "\x1b[>4;2m\x1b[>1u\x1b[<u\x1b[4 q"),
            ("\x1b(0\x1b7\x1b8\x1b=\x1bM\x05", "\x1b(0\x1b7\x1b8\x1b=\x1bM"),
            ("a\x1bZb\u{9a}c\u{9b}6nd\u{9b}31me", "abcd\u{9b}31me"),
            ("a\u{9d}11;?\u{9c}b\u{90}$qm\u{9c}c§é\u{a0}", "abc§é\u{a0}"),
            ("a\x1b_Gi=31,a=q,s=1;AAAA\x1b\\b", "ab"),
            ("a\x1b_Ga=p,i=1\x1b\\b\x1b_G;A\x1b\\", "a\x1b_Gq=2,a=p,i=1\x1b\\b\x1b_Gq=2;A\x1b\\"),
            ("a\x1b_other a=q\x1b\\b", "a\x1b_other a=q\x1b\\b"),
            ("a\x1b[?1;1;0Sb\x1b[3Sc", "ab\x1b[3Sc"),
            ("a\x1b[1;1;1;1;10;10*yb\x1b[1$wc\x1b[&ud", "abcd"),
            ("ends in \x1b[6", "ends in \x1b[6"),
        ] {
            for pieces in [1, 2, 3, 1000] {
                assert_eq!(passed(text, pieces), left, "{text:?} in pieces of {pieces}");
            }
        }
    }

    #[test]
    fn what_is_too_long_to_be_a_question_is_passed_on() {
        let long = format!("\x1b]52;c;{}\x07after", "x".repeat(10_000));
        assert_eq!(passed(&long, 7), long);
    }
}
