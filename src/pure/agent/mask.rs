//! A secret is made unreadable wherever it is whole in a text (agent.md, Keys).

use std::fmt;

use memchr::{memchr, memchr2};

/// What each byte of the secret becomes.
const MASK: u8 = b'*';

/// How a text writes a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As it is.
    Plain,
    /// As it is, or as JSON may have it: with a backslash before a slash, and any of its characters
    /// as `\uXXXX`.
    Json,
}

/// What a text has of the secret at some place.
enum Found {
    Nothing,
    /// The text ends before the secret could.
    Beginning,
    /// All of it, in so many bytes.
    Whole(usize),
}

/// A secret of printable ASCII, which is not empty.
#[derive(Clone)]
pub struct Secret(Box<[u8]>);

impl fmt::Debug for Secret {
    /// Whatever has a secret in it may be printed to find a fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// This secret.
    pub fn new(secret: &[u8]) -> Self {
        Self(secret.into())
    }

    /// Its first bytes as text.
    pub fn beginning(&self, bytes: usize) -> &str {
        std::str::from_utf8(&self.0[..bytes]).unwrap_or_default()
    }

    /// How long it is.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Whether it is somewhere in a text as JSON writes it.
    pub fn is_in(&self, text: &[u8]) -> bool {
        let mut from = 0;
        while let Some(found) = self.start(&text[from..], Form::Json) {
            from += found;
            if let Found::Whole(_) = self.found(text, from, Form::Json) {
                return true;
            }
            from += 1;
        }
        false
    }

    /// Masks it wherever it is whole in a text, from the left. Gives how long the text is then (a
    /// backslash of JSON is no part of the mask), and where its end begins that may be the
    /// beginning of the secret.
    pub fn hide(&self, text: &mut [u8], form: Form) -> (usize, usize) {
        let (mut from, mut length) = (0, text.len());
        while let Some(found) = self.start(&text[from..length], form) {
            let at = from + found;
            match self.found(&text[..length], at, form) {
                Found::Nothing => from = at + 1,
                Found::Beginning => return (length, at),
                Found::Whole(bytes) => {
                    from = at + self.0.len();
                    text[at..from].fill(MASK);
                    text.copy_within(at + bytes..length, from);
                    length -= bytes - self.0.len();
                }
            }
        }
        (length, length)
    }

    /// Where a text has the secret's first byte, or may have it.
    fn start(&self, text: &[u8], form: Form) -> Option<usize> {
        let first = *self.0.first()?;
        if form == Form::Json { memchr2(first, b'\\', text) } else { memchr(first, text) }
    }

    /// What the text has of it at this place. A backslash that another one stands for begins
    /// nothing.
    fn found(&self, text: &[u8], at: usize, form: Form) -> Found {
        if text[at] == b'\\' {
            let before = text[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
            if before % 2 == 1 {
                return Found::Nothing;
            }
        }
        self.at(&text[at..], form)
    }

    fn at(&self, text: &[u8], form: Form) -> Found {
        if text.starts_with(&self.0) {
            return Found::Whole(self.0.len());
        }
        let mut at = 0;
        for byte in &self.0 {
            match one(*byte, &text[at..], form) {
                Found::Whole(bytes) => at += bytes,
                other => return other,
            }
        }
        Found::Whole(at)
    }
}

/// What the text has of one byte of the secret at its beginning.
fn one(byte: u8, text: &[u8], form: Form) -> Found {
    let (escape, rest) = match text {
        [] => return Found::Beginning,
        [first, ..] if *first == byte => return Found::Whole(1),
        [b'\\', rest @ ..] if form == Form::Json => (rest.first(), rest.get(1..)),
        _ => return Found::Nothing,
    };
    match (escape, rest.unwrap_or_default()) {
        (None, _) => Found::Beginning,
        (Some(b'/'), _) if byte == b'/' => Found::Whole(2),
        (Some(b'u'), digits) => {
            let expected = format!("{byte:04x}");
            let given = &digits[..digits.len().min(expected.len())];
            if !given.eq_ignore_ascii_case(&expected.as_bytes()[..given.len()]) {
                Found::Nothing
            } else if given.len() < expected.len() {
                Found::Beginning
            } else {
                Found::Whole(2 + expected.len())
            }
        }
        _ => Found::Nothing,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The whole text at once.
    pub fn naive(text: &[u8], secret: &[u8]) -> Vec<u8> {
        let mut out = text.to_vec();
        let mut at = 0;
        while at + secret.len() <= out.len() {
            if out[at..].starts_with(secret) {
                out[at..at + secret.len()].fill(MASK);
                at += secret.len();
            } else {
                at += 1;
            }
        }
        out
    }

    fn hidden(secret: &str, text: &str) -> (String, String) {
        let mut bytes = text.as_bytes().to_vec();
        let (length, open) = Secret::new(secret.as_bytes()).hide(&mut bytes, Form::Json);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (text(&bytes[..open]), text(&bytes[open..length]))
    }

    /// rule: agent.md, Keys: A key is masked also where JSON writes its characters as \uXXXX
    #[test]
    fn json_may_write_any_of_its_characters_in_another_way() {
        let all = ["\\u0073k-\\u002fAb", "sk-\\/Ab", "sk-/A\\u0062", "\\u0073\\u006B-/\\u0041b"];
        for text in all {
            let whole = format!("{{\"a\":\"\\n{text}.\"}}");
            assert!(Secret::new(b"sk-/Ab").is_in(whole.as_bytes()), "{text}");
            assert_eq!(hidden("sk-/Ab", &whole).0, "{\"a\":\"\\n******.\"}", "{text}");
            // Cut anywhere it is held back until it is whole.
            for cut in 1..text.len() {
                let (told, held) = hidden("sk-/Ab", &text[..cut]);
                assert_eq!((told.as_str(), held.as_str()), ("", &text[..cut]));
            }
        }
        // A backslash of the text's own, and what is no escape of this character.
        for text in ["\\\\u0073k-/Ab", "\\u0074k-/Ab", "\\sk-/Ac", "s\\k-/Ab", "\\\\", "\\n"] {
            assert_eq!(hidden("sk-/Ab", text), (text.to_owned(), String::new()), "{text}");
        }
    }

    #[test]
    fn nothing_prints_it_to_find_a_fault() {
        assert_eq!(format!("{:?}", Secret::new(b"s3cret")), "Secret");
    }
}
