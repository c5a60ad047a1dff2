//! A secret is made unreadable (agent.md, Keys): wherever it is whole in a text, and in texts that
//! come in pieces, of which the end is held back that may be the secret's beginning.

use std::borrow::Cow;
use std::fmt;

use memchr::{memchr, memchr2};

use crate::limits::AGENT_SECRET_HINT_BYTES;

/// Blocks of a message whose last bytes may be the beginning of an api_key at once.
const AGENT_HOLDS_MAX: usize = 64;

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

    /// A text as JSON writes it with this secret masked; `None` where the text does not have it.
    pub fn masked(&self, json: &[u8]) -> Option<Vec<u8>> {
        self.next(json, 0, Form::Json).filter(|(_, found)| matches!(found, Found::Whole(_)))?;
        let mut text = json.to_vec();
        let (length, _) = self.hide(&mut text, Form::Json);
        text.truncate(length);
        Some(text)
    }

    /// Masks it wherever it is whole in a text, from the left. Gives how long the text is then (a
    /// backslash of JSON is no part of the mask), and where its end begins that may be the
    /// beginning of the secret.
    pub fn hide(&self, text: &mut [u8], form: Form) -> (usize, usize) {
        // Each byte is moved once, however often the secret is there.
        let (mut from, mut kept) = (0, 0);
        loop {
            let next = self.next(text, from, form);
            let upto = next.as_ref().map_or(text.len(), |(at, _)| *at);
            text.copy_within(from..upto, kept);
            kept += upto - from;
            match next {
                Some((_, Found::Whole(bytes))) => {
                    text[kept..kept + self.0.len()].fill(MASK);
                    kept += self.0.len();
                    from = upto + bytes;
                }
                _ => {
                    text.copy_within(upto.., kept);
                    return (kept + text.len() - upto, kept);
                }
            }
        }
    }

    /// The next place where a text has it, or ends before it could.
    fn next(&self, text: &[u8], mut from: usize, form: Form) -> Option<(usize, Found)> {
        let first = *self.0.first()?;
        loop {
            let rest = &text[from..];
            let found = match form {
                Form::Json => memchr2(first, b'\\', rest)?,
                Form::Plain => memchr(first, rest)?,
            };
            let at = from + found;
            match self.at(&text[at..], form) {
                Found::Nothing => {}
                found => return Some((at, found)),
            }
            // A backslash that another one stands for begins nothing.
            from = at + if text[at..].starts_with(br"\\") { 2 } else { 1 };
        }
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

/// A text of any kind that comes in pieces, with a secret masked in it.
#[derive(Debug, Default)]
pub struct MaskedText {
    secret: Option<Secret>,
    /// What may be the beginning of the secret.
    held: Vec<u8>,
}

impl MaskedText {
    /// A text of which nothing has come; without a secret nothing is masked.
    pub fn new(secret: Option<Secret>) -> Self {
        Self { secret, held: Vec::new() }
    }

    /// Takes more of the text. Gives what may be seen of it now.
    pub fn take(&mut self, piece: &[u8]) -> Vec<u8> {
        let Some(secret) = &self.secret else { return piece.to_vec() };
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(piece);
        let (length, open) = secret.hide(&mut text, Form::Json);
        text.truncate(length);
        self.held = text.split_off(open);
        text
    }

    /// The text has ended: gives what was held back, which is no secret.
    pub fn end(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

/// Which block a delta belongs to: text or thinking, and its place in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Whether it is thinking.
    pub thinking: bool,
    /// Its contentIndex.
    pub index: u64,
}

/// The end of what came of a block.
#[derive(Clone, Copy, Debug)]
struct Hold {
    block: Block,
    /// So many of its last bytes are as the secret begins.
    begun_bytes: usize,
    /// So many of these were told, since another block came between.
    told_bytes: usize,
}

/// What is held back of each block.
#[derive(Debug, Default)]
pub struct Holds {
    secret: Option<Secret>,
    holds: Vec<Hold>,
}

impl Holds {
    /// Nothing is held back; without a secret nothing ever will be.
    pub fn new(secret: Option<Secret>) -> Self {
        Self { secret, holds: Vec::new() }
    }

    /// Takes more of a block's text, and gives what may be told of the block now.
    pub fn take<'a>(&mut self, block: Block, text: &'a str) -> Cow<'a, str> {
        let Some(secret) = &self.secret else { return Cow::Borrowed(text) };
        let at = self.holds.iter().position(|hold| hold.block == block);
        let hold = at.map(|at| self.holds.swap_remove(at));
        let (begun_bytes, told_bytes) =
            hold.map_or((0, 0), |one| (one.begun_bytes, one.told_bytes));
        let mut joined = [secret.beginning(begun_bytes), text].concat().into_bytes();
        let (length, open) = secret.hide(&mut joined, Form::Plain);
        if open < length {
            let told_bytes = told_bytes.saturating_sub(open);
            self.holds.push(Hold { block, begun_bytes: length - open, told_bytes });
        }
        joined.truncate(open);
        // The secret is ASCII, so all of these are boundaries of characters.
        let text = String::from_utf8(joined.split_off(told_bytes.min(open)));
        Cow::Owned(text.unwrap_or_default())
    }

    /// A block has ended: gives what was held back of the block, which is no secret.
    pub fn end(&mut self, block: Block) -> String {
        let at = self.holds.iter().position(|hold| hold.block == block);
        at.map(|at| self.holds.swap_remove(at)).map_or_else(String::new, |hold| self.held(hold))
    }

    /// Any block has ended: gives what was held back of one, until there is none.
    pub fn end_one(&mut self) -> Option<(Block, String)> {
        let hold = (!self.holds.is_empty()).then(|| self.holds.remove(0))?;
        Some((hold.block, self.held(hold)))
    }

    /// Something else comes than more of `block`. Pi ends blocks only when the whole message has
    /// come, so the end of another block, which may never go on, is told now, in its order. Only
    /// so much of it is told as is no help to guess the secret. Gives the next such end.
    pub fn hint(&mut self, block: Option<Block>) -> Option<(Block, String)> {
        if self.holds.len() > AGENT_HOLDS_MAX {
            return self.end_one();
        }
        let secret = self.secret.as_ref()?;
        let most_bytes = AGENT_SECRET_HINT_BYTES.min(secret.bytes() / 4);
        let hold = self.holds.iter_mut().find(|hold| {
            let other = Some(hold.block) != block;
            other && hold.begun_bytes <= most_bytes && hold.told_bytes < hold.begun_bytes
        })?;
        let text = secret.beginning(hold.begun_bytes)[hold.told_bytes..].to_owned();
        hold.told_bytes = hold.begun_bytes;
        Some((hold.block, text))
    }

    fn held(&self, hold: Hold) -> String {
        let secret = self.secret.as_ref();
        let text = secret.map_or("", |secret| secret.beginning(hold.begun_bytes));
        text[hold.told_bytes.min(text.len())..].to_owned()
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
            assert!(Secret::new(b"sk-/Ab").masked(whole.as_bytes()).is_some(), "{text}");
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
