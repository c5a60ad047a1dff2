//! The modes that a program has set in its terminal: the alternate screen, mouse reports and so on.
//!
//! A terminal that is attached to a session later has to get these modes too, and to be rid of them
//! when it detaches: one left in the alternate screen, or reporting its mouse to a shell, is
//! broken. Source: people.md, Attach; XTerm Control Sequences.

use memchr::memchr;

/// Keyboard modes that programs in a terminal have put on one another.
const KEYBOARD_STACK: usize = 8;

/// Bytes of an escape sequence's parameters that are looked at.
const CSI_PARAM_BYTES: usize = 32;

const ESC: u8 = 0x1b;

/// The private modes that matter, in the order in which they are set; unset in the opposite one.
/// The alternate screens come first: what is set belongs to the screen that is shown.
const PRIVATE: [u16; 17] =
    [1049, 1047, 47, 1, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 2004, 2031, 25];
/// Makes the whole screen scroll again. It moves the cursor, which is put back.
pub const NO_MARGINS: &str = "\x1b7\x1b[r\x1b8";
/// The one that is set from the start: the cursor is visible.
const CURSOR: u16 = 25;
/// The application keypad, which has sequences of its own too.
const KEYPAD: u16 = 66;

/// Where in a sequence the bytes so far have got to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Text,
    Escape,
    /// After ESC and an intermediate byte.
    Intermediate(u8),
    /// After ESC [; the bytes so far are in `params`.
    Control,
}

/// What a program has set in its terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermModes {
    at: At,
    params: [u8; CSI_PARAM_BYTES],
    length: usize,
    set: [bool; PRIVATE.len()],
    /// The scrolled region is not the whole screen.
    region: bool,
    /// The shape of the cursor (DECSCUSR), 0 for the terminal's own.
    cursor_style: u16,
    /// The line drawing characters are selected.
    drawing: bool,
    /// xterm's modifyOtherKeys, 0 for off.
    other_keys: u16,
    /// The keyboard protocol's flags, the last one in force.
    keyboard: [u16; KEYBOARD_STACK],
    keyboards: usize,
}

impl Default for TermModes {
    fn default() -> Self {
        Self {
            at: At::Text,
            params: [0; CSI_PARAM_BYTES],
            length: 0,
            set: PRIVATE.map(|mode| mode == CURSOR),
            region: false,
            cursor_style: 0,
            drawing: false,
            other_keys: 0,
            keyboard: [0; KEYBOARD_STACK],
            keyboards: 0,
        }
    }
}

/// The numbers of a sequence; what is no number counts as 0.
fn numbers(text: &[u8]) -> impl Iterator<Item = u16> {
    text.split(|byte| *byte == b';').map(|part| {
        let digits = part.iter().take_while(|byte| byte.is_ascii_digit());
        digits
            .fold(0_u16, |sum, digit| sum.saturating_mul(10).saturating_add((digit - b'0').into()))
    })
}

impl TermModes {
    /// A terminal as it is before anything was written to it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes note of what was written. Sequences may be split anywhere.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.at == At::Text {
                let Some(escape) = memchr(ESC, bytes) else { return };
                self.at = At::Escape;
                bytes = &bytes[escape + 1..];
                continue;
            }
            self.step(bytes[0]);
            bytes = &bytes[1..];
        }
    }

    fn step(&mut self, byte: u8) {
        self.at = match (self.at, byte) {
            (_, ESC) => At::Escape,
            (At::Escape, b'[') => {
                self.length = 0;
                At::Control
            }
            (At::Escape, b' '..=b'/') => At::Intermediate(byte),
            (At::Escape, _) => {
                self.short_sequence(byte);
                At::Text
            }
            (At::Intermediate(b'('), _) => {
                self.drawing = byte == b'0';
                At::Text
            }
            (At::Control, 0x40..=0x7e) => {
                self.control_sequence(byte);
                At::Text
            }
            (At::Control, b' '..=b'?') => {
                if let Some(place) = self.params.get_mut(self.length) {
                    *place = byte;
                }
                // A sequence that is too long is read to its end, and means nothing to us.
                self.length = (self.length + 1).min(CSI_PARAM_BYTES + 1);
                At::Control
            }
            // Other control characters act at once, in the middle of a sequence.
            (At::Control, 0..=0x17 | 0x19 | 0x1c..=0x1f) => At::Control,
            (At::Text | At::Intermediate(_) | At::Control, _) => At::Text,
        };
    }

    fn short_sequence(&mut self, last: u8) {
        match last {
            b'=' => self.set_private(KEYPAD, true),
            b'>' => self.set_private(KEYPAD, false),
            // RIS: everything as at the start.
            b'c' => *self = Self::default(),
            _ => {}
        }
    }

    fn control_sequence(&mut self, last: u8) {
        let params = self.params;
        let Some(params) = params.get(..self.length) else { return };
        let first = |text: &[u8]| numbers(text).next().unwrap_or(0);
        match (last, params) {
            (b'h' | b'l', [b'?', modes @ ..]) => {
                numbers(modes).for_each(|mode| self.set_private(mode, last == b'h'));
            }
            (b'r', [] | [b'0'..=b'9' | b';', ..]) => self.region = !params.is_empty(),
            (b'q', [style @ .., b' ']) => self.cursor_style = first(style),
            (b'm', [b'>', keys @ ..]) => {
                let mut keys = numbers(keys);
                if keys.next() == Some(4) {
                    self.other_keys = keys.next().unwrap_or(0);
                }
            }
            (b'u', [b'>', flags @ ..]) => self.push_keyboard(first(flags)),
            (b'u', [b'<', count @ ..]) => {
                let count = usize::from(first(count)).max(1);
                self.keyboards = self.keyboards.saturating_sub(count);
            }
            // DECSTR: a soft reset.
            (b'p', [b'!']) => {
                let screens = self.set;
                *self = Self::default();
                self.set[..3].copy_from_slice(&screens[..3]);
            }
            _ => {}
        }
    }

    fn push_keyboard(&mut self, flags: u16) {
        if self.keyboards == KEYBOARD_STACK {
            self.keyboard.rotate_left(1);
            self.keyboards -= 1;
        }
        self.keyboard[self.keyboards] = flags;
        self.keyboards += 1;
    }

    fn set_private(&mut self, mode: u16, on: bool) {
        if let Some(at) = PRIVATE.iter().position(|one| *one == mode) {
            self.set[at] = on;
        }
    }

    /// The terminal has got another size: its margins are those of the whole screen again. Whether
    /// that changed them.
    pub fn resized(&mut self) -> bool {
        std::mem::take(&mut self.region)
    }

    /// Whether the scrolled region is not the whole screen.
    pub fn has_margins(&self) -> bool {
        self.region
    }

    /// Whether the alternate screen is shown.
    pub fn alternate_screen(&self) -> bool {
        self.set[..3].contains(&true)
    }

    /// What to write to a terminal in these modes so that it is in those of `wanted`.
    pub fn change_to(&self, wanted: &Self) -> Vec<u8> {
        let mut out = String::new();
        let mut say = |text: &str| out.push_str(text);
        for _ in wanted.keyboards..self.keyboards {
            say("\x1b[<u");
        }
        if self.other_keys != wanted.other_keys && wanted.other_keys == 0 {
            say("\x1b[>4m");
        }
        if self.drawing && !wanted.drawing {
            say("\x1b(B");
        }
        if self.region && !wanted.region {
            say(NO_MARGINS);
        }
        let changed = |at: &usize| self.set[*at] != wanted.set[*at];
        for at in (0..PRIVATE.len()).rev().filter(changed).filter(|at| !wanted.set[*at]) {
            // Not every terminal knows the keypad's number.
            let off = format!("\x1b[?{}l", PRIVATE[at]);
            say(if PRIVATE[at] == KEYPAD { "\x1b>" } else { &off });
        }
        for at in (0..PRIVATE.len()).filter(changed).filter(|at| wanted.set[*at]) {
            let on = format!("\x1b[?{}h", PRIVATE[at]);
            say(if PRIVATE[at] == KEYPAD { "\x1b=" } else { &on });
        }
        if self.cursor_style != wanted.cursor_style {
            say(&format!("\x1b[{} q", wanted.cursor_style));
        }
        if self.other_keys != wanted.other_keys && wanted.other_keys != 0 {
            say(&format!("\x1b[>4;{}m", wanted.other_keys));
        }
        for flags in &wanted.keyboard[self.keyboards.min(wanted.keyboards)..wanted.keyboards] {
            say(&format!("\x1b[>{flags}u"));
        }
        out.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str) -> TermModes {
        let mut modes = TermModes::new();
        modes.feed(text.as_bytes());
        modes
    }

    fn restored(text: &str) -> String {
        String::from_utf8(after(text).change_to(&TermModes::new())).unwrap()
    }

    /// rule: attach.md, execd attach: What a program has set in the terminal is set for who
    ///   attaches later, and taken back at the end
    #[test]
    fn what_a_program_has_set_is_taken_back_and_nothing_else() {
        for (text, back) in [
            ("plain text\r\n\x1b[1;31mred\x1b[0m \x1b[2J\x1b[5;7H", ""),
            ("\x1b[?1049h\x1b[?25l\x1b[?1h\x1b=", "\x1b>\x1b[?1l\x1b[?1049l\x1b[?25h"),
            ("\x1b[?1000;1006h", "\x1b[?1006l\x1b[?1000l"),
            ("\x1b[?2004h$ ls\r\x1b[?2004l", ""),
            ("\x1b[?1049h\x1b[?1049l", ""),
            ("\x1b[2;23r", "\x1b7\x1b[r\x1b8"),
            ("\x1b[2;23r\x1b[r", ""),
            ("\x1b[6 q", "\x1b[0 q"),
            ("\x1b(0lqqk", "\x1b(B"),
            ("\x1b(0lqqk\x1b(B", ""),
            ("\x1b[>4;2m\x1b[>1u\x1b[>5u", "\x1b[<u\x1b[<u\x1b[>4m"),
            ("\x1b[>1u\x1b[<u", ""),
            ("\x1b[?1049h\x1b[?1003h\x1bc", ""),
            ("\x1b[?1003h\x1b[!p", ""),
            ("\x1b]0;a title\x07\x1b[?25l\x1b\\", "\x1b[?25h"),
            ("\x1b[?12h\x1b[4h\x1b[?99999999999h", ""),
        ] {
            assert_eq!(restored(text), back, "{text:?}");
        }
    }

    /// rule: attach.md, execd attach: A terminal that attaches, or that stays while the session's
    ///   size changes, has no margins of the former size
    #[test]
    fn margins_are_void_once_the_terminal_has_another_size() {
        let mut modes = after("\x1b[?25l\x1b[1;30r");
        assert!(modes.has_margins() && modes.resized() && !modes.has_margins());
        assert_eq!(modes.change_to(&TermModes::new()), b"\x1b[?25h", "nothing else is");
        assert!(!modes.resized(), "there are none");
    }

    #[test]
    fn sequences_may_be_split_anywhere() {
        let text = "a\x1b[?1049hb\x1b[?1000;1006hc\x1b(0d\x1b[3;9re\x1b[4 qf\x1b[>4;1mg\x1b[>3u";
        let whole = after(text);
        for at in 0..text.len() {
            let mut modes = TermModes::new();
            modes.feed(&text.as_bytes()[..at]);
            modes.feed(&text.as_bytes()[at..]);
            assert_eq!(modes.change_to(&TermModes::new()), whole.change_to(&TermModes::new()));
        }
    }

    /// rule: attach.md, execd attach: What a program has set in the terminal is set for who
    ///   attaches later, and taken back at the end
    #[test]
    fn a_change_leads_from_any_modes_to_any() {
        let texts = [
            "",
            "\x1b[?1049h\x1b[?25l",
            "\x1b[?1049h\x1b[?1003h\x1b[5 q",
            "\x1b[>4;2m\x1b[>1u\x1b=",
            "\x1b[?2004h",
        ];
        for from in texts.map(after) {
            for to in texts.map(after) {
                let mut modes = from.clone();
                modes.feed(&from.change_to(&to));
                assert_eq!(modes.set, to.set);
                assert_eq!(modes.keyboards, to.keyboards);
                let left = (modes.cursor_style, modes.other_keys);
                assert_eq!(left, (to.cursor_style, to.other_keys));
            }
        }
    }

    #[test]
    fn endless_sequences_take_no_memory_and_end() {
        let mut modes = TermModes::new();
        modes.feed(b"\x1b[");
        modes.feed(&[b'1'; 100_000]);
        modes.feed(b"h\x1b[?25l");
        assert_eq!(modes.change_to(&TermModes::new()), b"\x1b[?25h");
        // A sequence that is broken off leaves nothing behind.
        assert_eq!(restored("\x1b[?25\x18l"), "");
    }
}
