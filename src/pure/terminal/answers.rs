//! Tells what a terminal answers from what a person types: both come as the same kind of bytes. The
//! forms of answers are those of XTerm Control Sequences.

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

/// What of these bytes was typed for whoever reads the terminal next: all but answers to questions
/// and reports of mouse and focus, up to the first key that is a control character and no Enter,
/// Tab or Esc, for such a key would throw away what was typed before it. What begins like an answer
/// and has no end is one that was cut.
pub fn typed_in(bytes: &[u8]) -> Vec<u8> {
    let mut typed = Vec::new();
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        let (length, is_answer) = match rest {
            [ESC, b'[', inner @ ..] => control(inner),
            [ESC, kind @ (b'P' | b']' | b'_' | b'^'), inner @ ..] => match string(inner) {
                Some(length) => (2 + length, true),
                None if may_be_answer(*kind, inner) => (rest.len(), true),
                // Alt and that key.
                None => (2, false),
            },
            [b'\r' | b'\t' | ESC | b' '.., ..] => (1, false),
            _ => break,
        };
        debug_assert!((1..=rest.len()).contains(&length), "{first}: {length}");
        let (sequence, behind) = rest.split_at(length.clamp(1, rest.len()));
        if !is_answer {
            typed.extend_from_slice(sequence);
        }
        rest = behind;
    }
    typed
}

/// The length of CSI and what follows, and whether that is an answer. `inner` begins behind CSI.
fn control(inner: &[u8]) -> (usize, bool) {
    let is_inner = |byte: &u8| (0x20..0x40).contains(byte);
    let count = inner.iter().take_while(|byte| is_inner(byte)).count();
    let (params, last) = (&inner[..count], inner.get(count));
    let private = params.first() == Some(&b'?');
    let (length, is_answer) = match last {
        // What are you; how are you; where is the cursor; how large; a mode; the terminal's
        // parameters.
        Some(b'c' | b'n' | b'R' | b't' | b'x') => (count + 1, !params.is_empty()),
        Some(b'y') => (count + 1, params.ends_with(b"$")),
        // Which keys kitty's protocol sends; which graphics there are.
        Some(b'u' | b'S') => (count + 1, private),
        // The mouse, in three bytes or in words; whether the terminal has the focus.
        Some(b'M') if params.is_empty() => ((count + 4).min(inner.len()), true),
        Some(b'M' | b'm') => (count + 1, params.first() == Some(&b'<')),
        Some(b'I' | b'O') => (count + 1, params.is_empty()),
        Some(0x40..=0x7e) => (count + 1, false),
        // Alt and [, or a sequence that something else has broken off.
        Some(_) => (count, count > 0),
        None => (count, count > 0),
    };
    (2 + length, is_answer)
}

/// Whether a string without an end is the beginning of an answer.
fn may_be_answer(kind: u8, inner: &[u8]) -> bool {
    let Some(first) = inner.first() else { return false };
    match kind {
        b']' => first.is_ascii_digit(),
        b'P' => first.is_ascii_digit() || b">+$!|".contains(first),
        b'_' => *first == b'G',
        _ => false,
    }
}

/// The length of a string with its end.
fn string(inner: &[u8]) -> Option<usize> {
    let bell = memchr::memchr(BEL, inner).map(|at| at + 1);
    let end = memchr::memmem::find(inner, &[ESC, b'\\']).map(|at| at + 2);
    bell.into_iter().chain(end).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::random;

    /// rule: attach.md, Several clients: A terminal's answer that comes after the end is not typed
    ///   into the shell
    #[test]
    fn answers_are_told_from_keys() {
        let answers =
            b"\x1b[0n#\x1b[?62;22c#\x1b[>0;276;0c#\x1b[12;40R#\x1b[?12;40R#\x1b[8;24;80t#\
            \x1b[?2026;2$y#\x1b[2;1;1;112;112;1;0x#\x1b[?1u#\x1b[?1;0;256S#\
            \x1bP>|XTerm(370)\x1b\\#\x1bP1+r544e=787465726d\x1b\\#\
            \x1b]11;rgb:0000/0000/0000\x07#\x1b]11;rgb:0000/0000/0000\x1b\\#\x1b_Gi=31;OK\x1b\\#\
            \x1b]11;rgb:00#\x1b[?62;2#\x1b[<35;20;10M#\x1b[<0;3;4m#\x1b[M !!#\x1b[I#\x1b[O";
        for answer in answers.split(|byte| *byte == b'#') {
            assert_eq!(typed_in(answer), b"", "{}", answer.escape_ascii());
            let among = [b"ls -l\r", answer, b"\x1b[A"].concat();
            if answer.ends_with(b"2") || answer.ends_with(b":00") {
                continue;
            }
            assert_eq!(typed_in(&among), b"ls -l\r\x1b[A", "{}", answer.escape_ascii());
        }
        let keys = b"make\r#\x1b#\x1bx#\x1b[A#\x1b[1;5C#\x1b[3~#\x1bOP#\x1b[Z#\x1b[97;5u#\
            \x1b_ ls -l\r#\x1b]#\x1b^x#\x1b[200~n\x1b[201~#\x1b[#a\tb\x7f#gr\xc3\xb6\xc3\x9fe\r";
        for keys in keys.split(|byte| *byte == b'#') {
            assert_eq!(typed_in(keys), keys, "{}", keys.escape_ascii());
        }
        // Ctrl-C throws away the line, Ctrl-D ends the shell, Ctrl-\\ begins the keys that detach.
        for cut in [&b"ls\x03rm"[..], b"ls\x04", b"ls\x1c\x04", b"ls\x00"] {
            assert_eq!(typed_in(cut), b"ls", "{}", cut.escape_ascii());
        }
    }

    #[test]
    fn any_bytes_are_taken_and_nothing_is_typed_that_was_not() {
        let mut random = random(11);
        let alphabet = b"\x1b[]P_?;$0123cnRtyxuSA~\\\x07a";
        for _ in 0..7_000 {
            let bytes: Vec<u8> =
                (0..random(24)).map(|_| alphabet[random(alphabet.len())]).collect();
            let typed = typed_in(&bytes);
            let mut rest = bytes.iter();
            assert!(typed.iter().all(|byte| rest.any(|one| one == byte)), "in order");
        }
    }
}
