//! Secrets that a session was given as input: wherever its output shows one, each byte becomes an
//! asterisk before anything of that output is kept (protocol.md, Secrets).
//!
//! Each line of a secret is looked for, and all of its lines together, as a terminal may show them:
//! with any line end between them, and a control character as it is or as `^X` (ECHOCTL,
//! termios(3)). Output comes in pieces that are cut anywhere, so the end of a piece that may be the
//! beginning of a secret is held back until what follows says whether it is.

use std::fmt;
use std::hint::black_box;
use std::ops::Range;

use crate::limits::{
    NS_PER_MS, NS_PER_S, SECRET_BYTES_MAX, SECRET_BYTES_MIN, SECRET_HELD_MS, SECRET_LINES_MAX,
    SECRET_MASKED_S, SECRETS_MAX,
};

/// What each byte of a secret becomes.
const MASK: u8 = b'*';
/// What a terminal shows a control character with: the character itself with this bit changed
/// behind a `^`.
const SHOWN_BIT: u8 = 0x40;
/// The end-of-file character that terminals begin with: sent behind a secret, no part of it.
const END_OF_FILE: u8 = 0x04;

/// Overwrites what must not stay in memory. That the bytes are looked at keeps the compiler from
/// leaving the overwriting out.
pub fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    black_box(bytes);
}

/// Input as a terminal shows it where it is masked, for whoever expects its echo.
pub fn masked(bytes: &[u8]) -> Vec<u8> {
    let mut shown = bytes.to_vec();
    for form in forms_of(bytes) {
        mask_part(&mut shown[form]);
    }
    shown
}

/// Line ends stay: they tell nothing, and keep lines apart.
fn mask_part(part: &mut [u8]) {
    part.iter_mut().filter(|byte| !is_line_end(**byte)).for_each(|byte| *byte = MASK);
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// The parts of input that are looked for: its lines, and all of them together where one alone
/// would be too short.
fn forms_of(bytes: &[u8]) -> Vec<Range<usize>> {
    let is_end = |byte: &u8| is_line_end(*byte) || *byte == END_OF_FILE;
    let Some(first) = bytes.iter().position(|byte| !is_end(byte)) else { return Vec::new() };
    let last = bytes.iter().rposition(|byte| !is_end(byte)).unwrap_or(first);
    let whole = first..last + 1;
    let (mut forms, mut short, mut from) = (Vec::new(), false, whole.start);
    while from < whole.end {
        let rest = &bytes[from..whole.end];
        let length = rest.iter().position(|byte| is_line_end(*byte)).unwrap_or(rest.len());
        if length >= SECRET_BYTES_MIN {
            forms.push(from..from + length);
        }
        short |= (1..SECRET_BYTES_MIN).contains(&length);
        from += length + 1;
    }
    if short && whole.len() >= SECRET_BYTES_MIN {
        forms.push(whole);
    }
    forms
}

/// One secret.
struct Secret {
    bytes: Vec<u8>,
    forms: Vec<Range<usize>>,
    ends_ns: u64,
}

impl Drop for Secret {
    fn drop(&mut self) {
        wipe(&mut self.bytes);
    }
}

/// Why a secret is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has more than [`SECRET_BYTES_MAX`] bytes or [`SECRET_LINES_MAX`] lines.
    TooLong,
    /// There are [`SECRETS_MAX`] already, of which the first is forgotten at this moment.
    TooMany(u64),
}

/// What a text has of a form at some place.
enum Found {
    Nothing,
    /// The text ends before the form could.
    Beginning,
    /// All of it, up to here.
    Whole(usize),
}

/// The secrets of a session, and one of its streams as far as that is not decided.
#[derive(Default)]
pub struct Veil {
    secrets: Vec<Secret>,
    /// The bytes that what is looked for may begin with.
    firsts: Vec<u8>,
    /// The beginning of what may be a secret which others have seen already, masked or as it is.
    seen: Vec<u8>,
    /// What follows it, and nobody has seen.
    held: Vec<u8>,
    /// When the last output came.
    output_ns: u64,
}

impl fmt::Debug for Veil {
    /// Whatever has a secret in it may be printed to find a fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Veil")
    }
}

impl Drop for Veil {
    fn drop(&mut self) {
        wipe(&mut self.seen);
        wipe(&mut self.held);
        wipe(&mut self.firsts);
    }
}

impl Veil {
    /// Why these bytes can't be one secret more.
    pub fn refuses(&self, bytes: &[u8], now_ns: u64) -> Option<Refused> {
        let lines = bytes.split(|byte| is_line_end(*byte)).filter(|line| !line.is_empty()).count();
        if bytes.len() > SECRET_BYTES_MAX || lines > SECRET_LINES_MAX {
            return Some(Refused::TooLong);
        }
        let known = |one: &&Secret| one.ends_ns > now_ns;
        let others: Vec<&Secret> = self.secrets.iter().filter(known).collect();
        if forms_of(bytes).is_empty() || others.iter().any(|one| one.bytes == bytes) {
            return None;
        }
        let first_ns = others.iter().map(|one| one.ends_ns).min()?;
        (others.len() >= SECRETS_MAX).then_some(Refused::TooMany(first_ns))
    }

    /// From now on these bytes are masked, for [`SECRET_MASKED_S`].
    pub fn add(&mut self, bytes: &[u8], now_ns: u64) {
        let forms = forms_of(bytes);
        self.secrets.retain(|one| one.bytes != bytes);
        if !forms.is_empty() {
            let ends_ns = now_ns + SECRET_MASKED_S * NS_PER_S;
            self.secrets.push(Secret { bytes: bytes.to_vec(), forms, ends_ns });
        }
        self.note_firsts();
    }

    fn note_firsts(&mut self) {
        wipe(&mut self.firsts);
        let mut firsts = vec![0; 256];
        for one in &self.secrets {
            for form in &one.forms {
                let byte = one.bytes[form.start];
                firsts[usize::from(byte)] = 1;
                if byte.is_ascii_control() {
                    firsts[usize::from(b'^')] = 1;
                }
            }
        }
        self.firsts = firsts;
    }

    /// The bytes that were held back: they come before the next piece.
    pub fn held(&self) -> &[u8] {
        &self.held
    }

    /// Whether there is nothing to do any more.
    pub fn is_over(&self) -> bool {
        self.secrets.is_empty() && self.held.is_empty()
    }

    /// When something is to be done although no output comes.
    pub fn due_ns(&self) -> Option<u64> {
        let ends = self.secrets.iter().map(|one| one.ends_ns).min();
        let goes_ns = self.output_ns + SECRET_HELD_MS * NS_PER_MS;
        ends.into_iter().chain(self.may_go().then_some(goes_ns)).min()
    }

    /// Whether what is held back may be seen after a while. What is as long as a secret at least
    /// may not, however slowly a program prints: of a secret nobody sees more than the first bytes.
    fn may_go(&self) -> bool {
        !self.held.is_empty() && self.seen.len() + self.held.len() < SECRET_BYTES_MIN
    }

    /// Masks a piece of output, which begins with what was held back. Gives how many of its bytes
    /// may be seen; those behind them are held back.
    pub fn mask(&mut self, piece: &mut [u8], now_ns: u64) -> usize {
        self.output_ns = now_ns;
        let mut seen = std::mem::take(&mut self.seen);
        let lead = seen.len();
        let (mut at, mut covered) = (0, 0);
        let length = lead + piece.len();
        while at < length {
            let (end, begins) = self.find(&Text(&seen, piece), at);
            covered = covered.max(end);
            if begins {
                break;
            }
            if at >= lead && at < covered {
                mask_part(&mut piece[at - lead..=at - lead]);
            }
            at += 1;
        }
        // Of what may be a secret's beginning that part may go which is masked already.
        let go = at.max(covered).max(lead);
        wipe(&mut self.held);
        self.held.clear();
        self.held.extend_from_slice(&piece[go - lead..]);
        let from = at.max(lead) - lead;
        self.seen.extend_from_slice(&seen[at.min(lead)..]);
        self.seen.extend_from_slice(&piece[from..go - lead]);
        mask_part(&mut piece[from..(covered.max(lead) - lead).max(from)]);
        wipe(&mut seen);
        go - lead
    }

    /// Where the longest secret ends that the text has at this place (0: it has none), and whether
    /// it may be the beginning of one.
    fn find(&self, text: &Text<'_>, at: usize) -> (usize, bool) {
        let first = text.at(at).map_or(0, usize::from);
        let (mut longest, mut begins) = (0, false);
        if self.firsts.get(first).is_none_or(|is| *is == 0) {
            return (longest, begins);
        }
        for one in &self.secrets {
            for form in &one.forms {
                match found(&one.bytes[form.clone()], text, at) {
                    Found::Nothing => {}
                    Found::Beginning => begins = true,
                    Found::Whole(end) => longest = longest.max(end),
                }
            }
        }
        (longest, begins)
    }

    /// Forgets secrets whose time is over, and puts what is held back no longer into `buffer`,
    /// which has room for all of it. Gives how much that is.
    pub fn let_go(&mut self, buffer: &mut [u8], now_ns: u64) -> usize {
        let held = self.held.len();
        buffer[..held].copy_from_slice(&self.held);
        let (secrets, output_ns) = (self.secrets.len(), self.output_ns);
        self.secrets.retain(|one| one.ends_ns > now_ns);
        let mut gone = 0;
        if self.secrets.len() < secrets {
            self.note_firsts();
            gone = self.mask(&mut buffer[..held], now_ns);
            self.output_ns = output_ns;
        }
        if self.may_go() && now_ns >= output_ns + SECRET_HELD_MS * NS_PER_MS {
            self.seen.extend_from_slice(&self.held);
            wipe(&mut self.held);
            self.held.clear();
            gone = held;
        }
        gone
    }

    /// The stream has ended: what was held back is no secret. Gives how much that is.
    pub fn release(&mut self) -> usize {
        let released = self.held.len();
        for part in [&mut self.held, &mut self.seen] {
            wipe(part);
            part.clear();
        }
        released
    }
}

/// What others have seen already, and the piece behind it.
struct Text<'a>(&'a [u8], &'a [u8]);

impl Text<'_> {
    fn at(&self, at: usize) -> Option<u8> {
        let Self(seen, piece) = self;
        seen.get(at).or_else(|| piece.get(at.checked_sub(seen.len())?)).copied()
    }
}

/// What the text has of this form at this place.
fn found(form: &[u8], text: &Text<'_>, mut at: usize) -> Found {
    let mut rest = form;
    while let Some((byte, behind)) = rest.split_first() {
        let Some(given) = text.at(at) else { return Found::Beginning };
        rest = behind;
        let shown = given == b'^' && byte.is_ascii_control();
        at += match (given, text.at(at + 1)) {
            (b'\n', _) | (b'\r', Some(_)) if is_line_end(*byte) => {
                rest = if *byte == b'\r' { rest.strip_prefix(b"\n").unwrap_or(rest) } else { rest };
                if given == b'\r' && text.at(at + 1) == Some(b'\n') { 2 } else { 1 }
            }
            (b'\r', None) if is_line_end(*byte) => return Found::Beginning,
            (given, _) if given == *byte => 1,
            (_, None) if shown => return Found::Beginning,
            (_, Some(next)) if shown && next == byte ^ SHOWN_BIT => 2,
            _ => return Found::Nothing,
        };
    }
    Found::Whole(at)
}

#[cfg(test)]
#[path = "tests_secret.rs"]
mod tests;
