//! A secret is made unreadable wherever it is whole in a text (agent.md, Keys).

use std::fmt;

use memchr::memchr;

/// What each byte of the secret becomes.
const MASK: u8 = b'*';

/// How a text writes a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As it is.
    Plain,
    /// As it is, or as JSON may have it: with a backslash before each slash.
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
        while let Some(found) = self.start(&text[from..]) {
            from += found;
            if let Found::Whole(_) = self.at(&text[from..], Form::Json) {
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
        while let Some(found) = self.start(&text[from..length]) {
            let at = from + found;
            match self.at(&text[at..length], form) {
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

    /// Where a text has the secret's first byte.
    fn start(&self, text: &[u8]) -> Option<usize> {
        memchr(*self.0.first()?, text)
    }

    fn at(&self, text: &[u8], form: Form) -> Found {
        if text.starts_with(&self.0) {
            return Found::Whole(self.0.len());
        }
        let mut at = 0;
        for byte in &self.0 {
            if *byte == b'/' && form == Form::Json && text.get(at) == Some(&b'\\') {
                at += 1;
            }
            match text.get(at) {
                None => return Found::Beginning,
                Some(other) if other != byte => return Found::Nothing,
                Some(_) => at += 1,
            }
        }
        Found::Whole(at)
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

    #[test]
    fn nothing_prints_it_to_find_a_fault() {
        assert_eq!(format!("{:?}", Secret::new(b"s3cret")), "Secret");
    }
}
