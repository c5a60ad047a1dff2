//! How long the unfinished line is that a terminal in canonical mode has been given.
//!
//! Source: termios(3), "Canonical and
//! noncanonical mode": after 4,095 characters of a line, the rest up to its end is discarded.
//! The order of the checks is that of the kernel's line discipline: signals, then the mapping
//! of CR and NL, then erase and kill, then the ends of a line.
//!
//! Best effort: the word erase, literal-next and flow control characters are counted as any
//! other byte, and an erase takes one byte back where the terminal may take a whole character.

use crate::limits::CANONICAL_LINE_BYTES;

/// The special characters and input modes of a terminal, as tcgetattr(3) gives them. A
/// character that is 0 is disabled (`_POSIX_VDISABLE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "four independent flags of one termios")]
pub struct LineChars {
    /// VEOF: ends a line without being part of it.
    pub eof: u8,
    /// VEOL: ends a line like a newline.
    pub eol: u8,
    /// VEOL2: ends a line like a newline.
    pub eol2: u8,
    /// VKILL: erases the line.
    pub kill: u8,
    /// VERASE: erases the last character.
    pub erase: u8,
    /// ICRNL: a carriage return is taken as a newline.
    pub icrnl: bool,
    /// INLCR: a newline is taken as a carriage return.
    pub inlcr: bool,
    /// IGNCR: a carriage return is dropped.
    pub igncr: bool,
    /// ISIG: `intr`, `quit` and `susp` send signals and flush the input.
    pub isig: bool,
    /// VINTR.
    pub intr: u8,
    /// VQUIT.
    pub quit: u8,
    /// VSUSP.
    pub susp: u8,
}

/// What one byte does to the open line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Effect {
    Adds,
    Erases,
    Nothing,
    /// The line is complete, or it is gone; either way the next one begins.
    StartsAnew,
}

/// The open line of a terminal: how many bytes of it have been written, without its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TtyLine {
    open_bytes: usize,
}

impl TtyLine {
    /// An empty line.
    pub const fn new() -> Self {
        Self { open_bytes: 0 }
    }

    /// How many bytes of the open line the terminal holds, at most `CANONICAL_LINE_BYTES`.
    pub fn open_bytes(&self) -> usize {
        self.open_bytes
    }

    /// The line after `data` is written too. The error is the length in bytes, without its
    /// end, of the first line that the terminal would cut; then `data` should not be written.
    pub fn after(&self, data: &[u8], chars: &LineChars) -> Result<TtyLine, usize> {
        let mut open = self.open_bytes;
        for (at, byte) in data.iter().enumerate() {
            match effect(*byte, chars) {
                Effect::Adds => open += 1,
                Effect::Erases => open = open.saturating_sub(1),
                Effect::Nothing => {}
                Effect::StartsAnew => open = 0,
            }
            if open > CANONICAL_LINE_BYTES {
                // What is cut stays cut: a later erase does not shorten the line any more.
                let effects = data[at + 1..].iter().map(|byte| effect(*byte, chars));
                let more = effects
                    .take_while(|effect| *effect != Effect::StartsAnew)
                    .filter(|effect| *effect == Effect::Adds)
                    .count();
                return Err(open + more);
            }
        }
        Ok(Self { open_bytes: open })
    }
}

fn effect(byte: u8, chars: &LineChars) -> Effect {
    let is = |byte: u8, special: u8| special != 0 && byte == special;
    if chars.isig && [chars.intr, chars.quit, chars.susp].iter().any(|one| is(byte, *one)) {
        return Effect::StartsAnew;
    }
    let byte = match byte {
        b'\r' if chars.igncr => return Effect::Nothing,
        b'\r' if chars.icrnl => b'\n',
        b'\n' if chars.inlcr => b'\r',
        _ => byte,
    };
    if is(byte, chars.erase) {
        return Effect::Erases;
    }
    let ends = [chars.kill, chars.eof, chars.eol, chars.eol2];
    if byte == b'\n' || ends.iter().any(|one| is(byte, *one)) {
        return Effect::StartsAnew;
    }
    Effect::Adds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::random;

    /// What a new PTY has: ^D, no EOLs, ^U, DEL, CR to NL, signals at ^C, ^\ and ^Z.
    const USUAL: LineChars = LineChars {
        eof: 4,
        eol: 0,
        eol2: 0,
        kill: 21,
        erase: 127,
        icrnl: true,
        inlcr: false,
        igncr: false,
        isig: true,
        intr: 3,
        quit: 28,
        susp: 26,
    };

    fn open(data: &[u8], chars: LineChars) -> usize {
        TtyLine::new().after(data, &chars).expect("short").open_bytes()
    }

    #[test]
    fn table() {
        assert_eq!(open(b"", USUAL), 0);
        assert_eq!(open(b"abc", USUAL), 3);
        assert_eq!(open(b"abc\nde", USUAL), 2);
        assert_eq!(open(b"abc\rde", USUAL), 2);
        assert_eq!(open(b"abc\x04de", USUAL), 2);
        assert_eq!(open(b"abc\x15d", USUAL), 1);
        assert_eq!(open(b"abc\x7f\x7fd", USUAL), 2);
        assert_eq!(open(b"\x7f\x7f\x7fd", USUAL), 1);
        for signal in [3, 28, 26] {
            assert_eq!(open(&[b'a', b'b', signal, b'c'], USUAL), 1);
            assert_eq!(open(&[b'a', b'b', signal, b'c'], LineChars { isig: false, ..USUAL }), 4);
        }
        assert_eq!(open(b"a\0b", USUAL), 3, "0 is disabled, no character");
        assert_eq!(open(b"a\0b\x04\x15\x7f\x03c", LineChars::default()), 8);
        assert_eq!(open(b"ab;c|d", LineChars { eol: b';', eol2: b'|', ..USUAL }), 1);
        assert_eq!(open(b"ab\rc", LineChars { icrnl: false, ..USUAL }), 4);
        assert_eq!(open(b"ab\rc", LineChars { igncr: true, ..USUAL }), 3);
        assert_eq!(open(b"ab\nc", LineChars { inlcr: true, ..USUAL }), 4);
        assert_eq!(open(b"ab\nc", LineChars { inlcr: true, eol: b'\r', ..USUAL }), 1);
        assert_eq!(open(b"ab\n\rc", LineChars { inlcr: true, ..USUAL }), 1);
        assert_eq!(TtyLine::default(), TtyLine::new());
    }

    /// rule: unified-exec.md, write_stdin: Bytes of earlier calls count towards the line
    #[test]
    fn the_limit_is_exact_and_counts_earlier_calls() {
        let full = vec![b'x'; CANONICAL_LINE_BYTES];
        let line = TtyLine::new().after(&full, &USUAL).expect("just fits");
        assert_eq!(line.open_bytes(), 4_095);
        assert_eq!(line.after(b"\n", &USUAL), Ok(TtyLine::new()));
        assert_eq!(line.after(b"x", &USUAL), Err(4_096));
        assert_eq!(line.after(b"xyz\nab", &USUAL), Err(4_098));
        assert_eq!(line.after(b"x\x7fyz\x15ab", &USUAL), Err(4_098));
        assert_eq!(line.after(b"\x7fx\r", &USUAL), Ok(TtyLine::new()));
        assert_eq!(line.open_bytes(), 4_095, "a refused write changes nothing");
        let many = [&full[..], b"\n"].concat().repeat(50);
        assert_eq!(TtyLine::new().after(&many, &USUAL), Ok(TtyLine::new()));
        let long_in_the_middle = [&many[..], &full, b"xx\nshort\n"].concat();
        assert_eq!(TtyLine::new().after(&long_in_the_middle, &USUAL), Err(4_097));
    }

    #[test]
    fn the_same_in_one_call_or_many() {
        let mut below = random(0xabcd_ef01_2345_6789);
        let alphabet = b"aaaaaaaa\n\r\x04\x15\x7f\x03\0";
        for _ in 0..700 {
            let data: Vec<u8> = (0..below(60)).map(|_| alphabet[below(alphabet.len())]).collect();
            let flags = below(8);
            let chars = LineChars {
                icrnl: flags & 1 != 0,
                igncr: flags & 2 != 0,
                inlcr: flags & 4 != 0,
                ..USUAL
            };
            let mut line = TtyLine::new();
            for byte in &data {
                line = line.after(&[*byte], &chars).expect("short");
            }
            assert_eq!(TtyLine::new().after(&data, &chars), Ok(line));
        }
    }
}
