//! Clean text: what a terminal of endless width would show, line by line.
//!
//! Escape sequences and control characters are taken out, with effect where they edit a line
//! or redraw the lines just above it; a progress bar that rewrote its line 1,000 times is one
//! line. Columns count characters: a wide character and a combining one are one column each,
//! a tab too, which keeps rewritten lines aligned with themselves but not with a grid of cells.
//!
//! Programs that paint the whole screen are not emulated: a jump to a row (CSI H, f, d) starts
//! a fresh line below what is there, erasing upwards or everything is ignored. Nothing that was
//! shown gets lost that way, and text of different rows does not run together. For the same
//! reason a string (OSC, DCS, …) that is not ended by the end of its line ends there.

pub mod cut;
pub mod live;
mod screen;

use memchr::memchr;
use vte::{Params, Parser, Perform};

use crate::limits::WINDOW_LEAD_BYTES;
use crate::pure::buffer::head_tail::Kept;
use crate::pure::text::clean::screen::Screen;
use crate::pure::text::utf8;

/// Cancels a sequence (ECMA-48, 8.3.6).
const CAN: u8 = 0x18;
/// No character of text, and no part of any sequence either.
const DEL: u8 = 0x7F;

/// Makes one stream's clean text, call by call. An escape sequence or a character that a read
/// or a call cut in the middle goes on in the next one. Takes under 1 KiB and no heap.
pub struct Cleaner {
    /// Parses sequences only, never text; it has no buffer for OSC strings, nobody reads them.
    parser: Parser<0>,
    /// Whether the parser is inside a sequence.
    in_sequence: bool,
    /// The start of a character at the end of what came so far, at most 3 bytes.
    partial: [u8; 4],
    partial_len: usize,
}

impl Default for Cleaner {
    fn default() -> Self {
        Cleaner::new()
    }
}

impl std::fmt::Debug for Cleaner {
    // vte's parser has no Debug, and what matters is only whether something is unfinished.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cleaner")
            .field("in_sequence", &self.in_sequence)
            .field("partial_len", &self.partial_len)
            .finish_non_exhaustive()
    }
}

impl Cleaner {
    /// A cleaner at the start of a stream.
    pub fn new() -> Self {
        Cleaner { parser: Parser::default(), in_sequence: false, partial: [0; 4], partial_len: 0 }
    }

    /// Whether nothing is unfinished: neither a sequence nor a character.
    fn is_idle(&self) -> bool {
        !self.in_sequence && self.partial_len == 0
    }

    /// Reads bytes that are not shown, only to know whether what follows begins inside a sequence
    /// or a character.
    fn read_over(&mut self, lead: &[u8]) {
        self.feed(&mut Screen::below(String::new()), lead);
    }

    /// One call's text: starts with an empty line at column 0 and shows what was added since
    /// the last call, `kept`. Cursor movement reaches no further back than this call.
    ///
    /// Where bytes were omitted there is a line of its own, `gap_notice`; behind it the parser
    /// starts anew and the broken line is dropped, unless nothing would be left. `last` says
    /// that the stream has ended: an unfinished character becomes U+FFFD. Never fails; the text
    /// takes at most 3 bytes per byte kept plus CLEAN_PADDING_CHARS.
    pub fn call_text(&mut self, kept: &Kept, gap_notice: &str, last: bool) -> String {
        let expected = kept.head.len() + kept.tail.len();
        let mut screen = Screen::below(String::with_capacity(expected));
        self.feed(&mut screen, &kept.head);
        if kept.omitted_bytes == 0 {
            self.feed(&mut screen, &kept.tail);
        } else {
            screen.fresh_line();
            let mut text = screen.into_text();
            text.push_str(gap_notice);
            text.push('\n');
            *self = Cleaner::new();
            screen = Screen::below(text);
            self.feed(&mut screen, without_broken_line(&kept.tail));
        }
        if last {
            if self.partial_len > 0 {
                screen.write("\u{fffd}");
            }
            *self = Cleaner::new();
        }
        screen.into_text()
    }

    /// Shows `bytes` on `screen`, from where the last ones ended.
    fn feed(&mut self, screen: &mut Screen, bytes: &[u8]) {
        let mut at = self.complete_partial(screen, bytes);
        // Bytes before this index are known to need no look at each.
        let mut plain_until = at;
        while let Some(&byte) = bytes.get(at) {
            if self.in_sequence {
                self.sequence_byte(screen, byte);
                at += 1;
                continue;
            }
            if plain_until <= at {
                plain_until = at + plain_len(&bytes[at..]);
            }
            if plain_until > at {
                at += self.text(screen, &bytes[at..plain_until], plain_until == bytes.len());
                continue;
            }
            match byte {
                // U+0080 to U+00BF; the lower half are control characters.
                0xC2 => {
                    let character = &bytes[at..bytes.len().min(at + 2)];
                    if matches!(character, [_, 0x80..=0x9F]) {
                        at += 2;
                    } else {
                        at += self.text(screen, character, at + character.len() == bytes.len());
                    }
                    continue;
                }
                0x1B => self.sequence_byte(screen, byte),
                _ => screen.control(byte),
            }
            at += 1;
        }
    }

    /// Shows the text at the start of `bytes`, which holds no control character but \n and \t,
    /// up to its end or through the first invalid sequence; gives the number of bytes used.
    /// `open_end`: more input may complete a character at the end, so it is held back.
    fn text(&mut self, screen: &mut Screen, bytes: &[u8], open_end: bool) -> usize {
        let Some(chunk) = bytes.utf8_chunks().next() else { return bytes.len() };
        let (valid, invalid) = (chunk.valid(), chunk.invalid());
        if !valid.is_empty() {
            screen.write(valid);
        }
        let used = valid.len() + invalid.len();
        let unfinished =
            open_end && used == bytes.len() && utf8::incomplete_suffix_len(invalid) > 0;
        if unfinished {
            self.partial[..invalid.len()].copy_from_slice(invalid);
            self.partial_len = invalid.len();
        } else if !invalid.is_empty() {
            screen.write("\u{fffd}");
        }
        used
    }

    /// Completes the character that the last bytes broke off in, with the first of `bytes`;
    /// gives how many of them it took. What cannot be completed is shown as U+FFFD.
    fn complete_partial(&mut self, screen: &mut Screen, bytes: &[u8]) -> usize {
        if self.partial_len == 0 {
            return 0;
        }
        for (used, byte) in bytes.iter().enumerate() {
            let mut longer = self.partial;
            longer[self.partial_len] = *byte;
            let longer_len = self.partial_len + 1;
            match std::str::from_utf8(&longer[..longer_len]) {
                Ok(character) => {
                    self.partial_len = 0;
                    if !character.starts_with(char::is_control) {
                        screen.write(character);
                    }
                    return used + 1;
                }
                Err(error) if error.error_len().is_none() => {
                    self.partial = longer;
                    self.partial_len = longer_len;
                }
                Err(_) => {
                    self.partial_len = 0;
                    screen.write("\u{fffd}");
                    return used;
                }
            }
        }
        bytes.len()
    }

    /// Takes one byte of a sequence, beginning with its ESC.
    fn sequence_byte(&mut self, screen: &mut Screen, byte: u8) {
        self.in_sequence = true;
        // Bytes of characters occur in strings only, where 0x9C would end some of them.
        if !byte.is_ascii() {
            return;
        }
        let mut effects = Effects { screen, ended: false, executed: false };
        self.parser.advance(&mut effects, &[byte]);
        if byte == b'\n' && !effects.executed {
            // A string that nobody ended, in binary data say, must not swallow all that follows:
            // it ends with its line. The parser leaves it on CAN.
            self.parser.advance(&mut effects, &[CAN]);
            effects.screen.newline();
            effects.ended = true;
        }
        // Some sequences end without a word. The parser prints a DEL outside of sequences and
        // ignores it inside of all: a probe that tells where it is.
        if !effects.ended {
            self.parser.advance(&mut effects, &[DEL]);
        }
        self.in_sequence = !effects.ended;
    }
}

/// The clean text of a window of a stream, for example its last 32 KiB. `broken_start` says
/// that it does not begin at the stream's or a line's start: its first line is dropped then,
/// unless nothing would be left. A character that is unfinished at the end is left out.
pub fn window_text(bytes: &[u8], broken_start: bool) -> String {
    let whole = if broken_start { without_broken_line(bytes) } else { bytes };
    // A single line that began long before: a sequence may have begun there too.
    let torn = broken_start && memchr(b'\n', bytes).is_none_or(|at| at + 1 == bytes.len());
    let lead = if torn && whole.len() > 2 * WINDOW_LEAD_BYTES { WINDOW_LEAD_BYTES } else { 0 };
    text_behind(whole, lead)
}

/// The clean text of `bytes` behind the first `lead_bytes`, which are read only to know whether
/// the text begins inside an escape sequence or a character.
pub fn text_behind(bytes: &[u8], lead_bytes: usize) -> String {
    let (lead, shown) = bytes.split_at(lead_bytes.min(bytes.len()));
    let mut cleaner = Cleaner::new();
    cleaner.read_over(lead);
    let mut screen = Screen::below(String::with_capacity(shown.len()));
    cleaner.feed(&mut screen, shown);
    screen.into_text()
}

/// `bytes` behind their first newline; where that would leave nothing, all of them from the
/// first byte that may start a character.
fn without_broken_line(bytes: &[u8]) -> &[u8] {
    &bytes[broken_line_len(bytes)..]
}

/// How many of `bytes`, which begin inside of a line, stand before their text: see
/// [`without_broken_line`].
pub fn broken_line_len(bytes: &[u8]) -> usize {
    match memchr(b'\n', bytes) {
        Some(newline) if newline + 1 < bytes.len() => newline + 1,
        _ => utf8::continuation_len(&bytes[..bytes.len().min(3)]),
    }
}

/// How many bytes at the start of `bytes` hold no control character but \n and \t, and no
/// 0xC2 either, with which the control characters U+0080 to U+009F begin.
pub fn plain_len(bytes: &[u8]) -> usize {
    fn is_special(byte: u8) -> bool {
        (byte < b' ' && byte != b'\n' && byte != b'\t') || byte == 0x7F || byte == 0xC2
    }
    // Without a branch in it, a block is looked at many bytes at a time.
    let has_special = |block: &[u8]| block.iter().fold(false, |any, byte| any | is_special(*byte));
    let (blocks, _) = bytes.as_chunks::<64>();
    let clear = 64 * blocks.iter().take_while(|block| !has_special(*block)).count();
    let rest = &bytes[clear..];
    clear + rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len())
}

/// What sequences do on the screen (ECMA-48, 8.3; the others do nothing).
struct Effects<'a> {
    screen: &'a mut Screen,
    /// Whether the parser is outside of sequences again.
    ended: bool,
    /// Whether the parser took the byte as a control character.
    executed: bool,
}

impl Effects<'_> {
    fn csi(&mut self, params: &[usize; 2], action: char) {
        let screen = &mut *self.screen;
        let (first, count) = (params[0], params[0].max(1));
        match action {
            'A' => screen.up(count),
            'B' | 'e' => screen.down(count),
            'C' | 'a' => screen.right(count),
            'D' => screen.left(count),
            'E' if screen.is_at_last_line() => screen.newline(),
            'E' => {
                screen.down(count);
                screen.move_to_column(0);
            }
            'F' => {
                screen.up(count);
                screen.move_to_column(0);
            }
            'G' | '`' => screen.move_to_column(count - 1),
            'H' | 'f' | 'd' => {
                screen.jump();
                if action != 'd' && params[1] > 1 {
                    screen.move_to_column(params[1] - 1);
                }
            }
            'J' if first == 0 => screen.erase_below(),
            'K' => screen.erase_in_line(first),
            'P' => screen.delete_chars(count),
            'X' => screen.erase_chars(count),
            '@' => screen.insert_blanks(count),
            's' => screen.save_cursor(),
            'u' => screen.restore_cursor(),
            _ => {}
        }
    }
}

impl Perform for Effects<'_> {
    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: char) {
        self.ended = true;
        if ignore || !intermediates.is_empty() {
            return;
        }
        let mut numbers = params.iter().map(|param| param.first().map_or(0, |n| usize::from(*n)));
        let first_two = [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)];
        self.csi(&first_two, action);
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _ignore: bool, byte: u8) {
        self.ended = true;
        match (intermediates, byte) {
            ([], b'7') => self.screen.save_cursor(),
            ([], b'8') => self.screen.restore_cursor(),
            _ => {}
        }
    }

    fn execute(&mut self, byte: u8) {
        // Terminals carry out control characters in the middle of a sequence.
        self.executed = true;
        match byte {
            b'\n' => self.screen.newline(),
            b'\t' => self.screen.write("\t"),
            _ => self.screen.control(byte),
        }
    }

    fn print(&mut self, _probe: char) {
        self.ended = true;
    }
}

#[cfg(test)]
#[path = "tests_clean.rs"]
mod tests;
