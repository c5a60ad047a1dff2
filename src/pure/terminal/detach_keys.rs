//! The keys that end an attachment: Ctrl-\ and then Ctrl-d, in what a terminal in raw mode sends
//! (people.md, Attach).

/// How terminals send Ctrl-\: as one byte, or in the keyboard protocols that programs turn on
/// (CSI u, modifyOtherKeys).
const FIRST: [&[u8]; 3] = [b"\x1c", b"\x1b[92;5u", b"\x1b[27;5;92~"];
/// And Ctrl-d.
const SECOND: [&[u8]; 3] = [b"\x04", b"\x1b[100;5u", b"\x1b[27;5;100~"];

/// Looks for the keys in what is typed.
#[derive(Clone, Debug, Default)]
pub struct DetachKeys {
    /// The first key was pressed, and is held back until the next one says what it was.
    held: Option<&'static [u8]>,
}

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// For the program.
    Input(Vec<u8>),
    /// For the program, and then the keys were pressed.
    Detach(Vec<u8>),
}

fn prefix_of(bytes: &[u8], keys: &'static [&'static [u8]]) -> Option<&'static [u8]> {
    keys.iter().find(|key| bytes.starts_with(key)).copied()
}

impl DetachKeys {
    /// Nothing was pressed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what was typed. Twice the first key is the key itself, for the program.
    pub fn typed(&mut self, mut bytes: &[u8]) -> Typed {
        let mut input = Vec::new();
        while !bytes.is_empty() {
            if let Some(first) = self.held.take() {
                if prefix_of(bytes, &SECOND).is_some() {
                    return Typed::Detach(input);
                }
                input.extend_from_slice(first);
                if let Some(again) = prefix_of(bytes, &FIRST) {
                    bytes = &bytes[again.len()..];
                    continue;
                }
            }
            match prefix_of(bytes, &FIRST) {
                Some(first) => {
                    self.held = Some(first);
                    bytes = &bytes[first.len()..];
                }
                None => {
                    input.push(bytes[0]);
                    bytes = &bytes[1..];
                }
            }
        }
        Typed::Input(input)
    }

    /// Whether the first key waits for the second one.
    pub fn is_waiting(&self) -> bool {
        self.held.is_some()
    }

    /// The second key has not come: the first one is the program's.
    pub fn give_up(&mut self) -> &'static [u8] {
        self.held.take().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(text: &[u8]) -> Typed {
        Typed::Input(text.to_vec())
    }

    /// rule: attach.md, execd attach: Detach with Ctrl-\ Ctrl-d
    #[test]
    fn the_two_keys_detach_and_everything_else_is_the_programs() {
        let mut keys = DetachKeys::new();
        assert_eq!(keys.typed(b"ls\x04\r"), input(b"ls\x04\r"));
        assert_eq!(keys.typed(b"a\x1c"), input(b"a"));
        assert!(keys.is_waiting());
        assert_eq!(keys.typed(b"b"), input(b"\x1cb"));
        assert!(!keys.is_waiting());
        assert_eq!(keys.typed(b"x\x1c\x1cy"), input(b"x\x1cy"));
        assert_eq!(keys.typed(b"x\x1c"), input(b"x"));
        assert_eq!(keys.give_up(), b"\x1c");
        assert_eq!(keys.typed(b"\x04"), input(b"\x04"), "too late");
        assert_eq!(keys.typed(b"q\x1c\x04rest"), Typed::Detach(b"q".to_vec()));
        assert_eq!(keys.typed(b"\x1c"), input(b""));
        assert_eq!(keys.typed(b"\x04"), Typed::Detach(vec![]));
    }

    /// rule: attach.md, execd attach: Detach with Ctrl-\ Ctrl-d
    #[test]
    fn the_keys_are_known_in_the_keyboard_protocols_too() {
        let mut keys = DetachKeys::new();
        assert_eq!(keys.typed(b"\x1b[92;5u"), input(b""));
        assert_eq!(keys.typed(b"\x1b[100;5u"), Typed::Detach(vec![]));
        assert_eq!(keys.typed(b"\x1b[27;5;92~\x1b[27;5;100~"), Typed::Detach(vec![]));
        assert_eq!(keys.typed(b"\x1b[92;5u\x1b[A"), input(b"\x1b[92;5u\x1b[A"));
    }
}
