//! What others than the reader of a run may see of pi's stdout where there is a secret: lines that
//! hold a text whole, with the secret masked. Lines that tell a text in pieces are left out, since
//! the secret could be put together from them (agent.md, Keys).

use std::fmt;
use std::ops::Range;

use memchr::memchr;

use super::event::is_whole;
use super::mask::{Form, Secret};
use crate::limits::AGENT_TYPE_BYTES;

/// The line that says so, at the beginning of what others see.
pub const NOTE: &str = "{\"type\":\"execd\",\"note\":\"message_update and tool_execution_update \
                        lines are left out: this run has an api_key\"}\n";
/// The one whose pieces the run's reader puts together.
const TEXT: &str = "message_update";

/// What a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    /// It begins, and it is not known yet.
    #[default]
    New,
    /// The secret is masked in it, and others see it.
    Seen,
    /// The secret is masked in it, and nobody else sees it.
    LeftOut,
    /// A message_update: nobody else sees it, and it comes as it is, since its reader masks what
    /// pieces tell together.
    Text,
}

/// The stream so far.
#[derive(Clone)]
pub struct Visible {
    secret: Secret,
    /// The stream is text of any kind: all of it may be seen, with the secret masked.
    any: bool,
    /// The beginning of a line that is not known yet, or of what may be the secret.
    held: Vec<u8>,
    line: Line,
    /// Where the last piece has lines that are left out.
    left_out: Vec<Range<usize>>,
}

impl fmt::Debug for Visible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Visible")
    }
}

impl Visible {
    /// A stream of events, and the secret in it.
    pub fn of_events(secret: Secret) -> Self {
        Self { secret, any: false, held: Vec::new(), line: Line::New, left_out: Vec::new() }
    }

    /// A stream of any text, and the secret in it.
    pub fn of_text(secret: Secret) -> Self {
        Self { any: true, line: Line::Seen, ..Self::of_events(secret) }
    }

    /// The bytes that were held back: they come before the next piece.
    pub fn held(&self) -> &[u8] {
        &self.held
    }

    /// Masks a piece of the stream, which begins with what was held back, for the run's reader.
    /// Gives how many of its bytes may be passed on; those behind them are held back.
    pub fn mask(&mut self, piece: &mut [u8]) -> usize {
        (self.held, self.left_out) = (Vec::new(), Vec::new());
        let (mut at, mut length) = (0, piece.len());
        while at < length {
            let end = memchr(b'\n', &piece[at..length]).map(|end| at + end + 1);
            let mut upto = end.unwrap_or(length);
            if self.line == Line::New {
                let Some(line) = line_of(&piece[at..upto], end.is_some()) else {
                    self.held = piece[at..length].to_vec();
                    return at;
                };
                self.line = line;
            }
            if self.line != Line::Text {
                let (short, open) = self.secret.hide(&mut piece[at..upto], Form::Json);
                if at + short < upto {
                    piece.copy_within(upto..length, at + short);
                    length -= upto - at - short;
                }
                upto = at + open;
                self.held = piece[upto..at + short].to_vec();
            }
            self.leave_out(at..upto);
            at = upto;
            match end {
                None => break,
                Some(_) if self.any => {}
                Some(_) => self.line = Line::New,
            }
        }
        at
    }

    /// The stream has ended: what was held back is no secret. Gives how much that is.
    pub fn release(&mut self) -> usize {
        let released = std::mem::take(&mut self.held).len();
        self.left_out = Vec::new();
        if self.line == Line::New {
            // Nobody knows what the line would have become.
            self.line = Line::LeftOut;
        }
        self.leave_out(0..released);
        released
    }

    /// Takes out of the last piece, of which so many bytes were passed on, what nobody else may
    /// see. Gives how many bytes are left.
    pub fn take_out(&mut self, piece: &mut [u8], length: usize) -> usize {
        let (mut kept, mut from) = (0, 0);
        for gap in std::mem::take(&mut self.left_out) {
            piece.copy_within(from..gap.start, kept);
            kept += gap.start - from;
            from = gap.end;
        }
        piece.copy_within(from..length, kept);
        kept + length - from
    }

    fn leave_out(&mut self, part: Range<usize>) {
        if self.line == Line::Seen || part.is_empty() {
            return;
        }
        match self.left_out.last_mut().filter(|last| last.end == part.start) {
            Some(last) => last.end = part.end,
            None => self.left_out.push(part),
        }
    }
}

/// What a line is that begins so; `ended`: all of it is there. None if more of it is needed.
fn line_of(line: &[u8], ended: bool) -> Option<Line> {
    let decided = ended || line.len() > AGENT_TYPE_BYTES;
    let head = line[..line.len().min(AGENT_TYPE_BYTES)].trim_ascii_start();
    if head.first().is_some_and(|byte| *byte != b'{') || (head.is_empty() && ended) {
        // Text that is no event.
        return Some(Line::Seen);
    }
    // Its type comes late, or it has none: who knows what it is.
    let other = Some(Line::LeftOut);
    let mut rest = head;
    for token in ["{", "\"type\"", ":", "\""] {
        rest = rest.trim_ascii_start();
        match rest.strip_prefix(token.as_bytes()) {
            Some(behind) => rest = behind,
            None if token.as_bytes().starts_with(rest) && !decided => return None,
            None => return other,
        }
    }
    let Some(end) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) else {
        return if decided { other } else { None };
    };
    let name = std::str::from_utf8(&rest[..end]).unwrap_or_default();
    match name {
        _ if rest[end] == b'\\' => other,
        TEXT => Some(Line::Text),
        name if is_whole(name) => Some(Line::Seen),
        _ => other,
    }
}
