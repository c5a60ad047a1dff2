//! What was told of a message, and what of a line's text is therefore new.

use std::hash::{DefaultHasher, Hasher};

use crate::limits::AGENT_OUTPUT_BYTES;
use crate::pure::text::utf8::floor_boundary;

/// What was told of a message: enough to know the text again, and no copy of it.
#[derive(Debug, Default)]
pub struct Spoken {
    /// How many bytes.
    pub bytes: usize,
    /// However the text was cut into pieces. (That is so of `write`, and a test holds it.)
    pub hash: DefaultHasher,
    /// Not all of it was told.
    pub cut: bool,
}

impl Spoken {
    /// More of it was told.
    pub fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.hash.write(text.as_bytes());
    }
}

/// The text of one line on its way: what of it was told before, and for how much more there is
/// room.
#[derive(Debug)]
pub struct LineText {
    /// So many bytes at its beginning were told by deltas.
    pub known_bytes: usize,
    /// Their hash.
    hash: u64,
    /// The hash of the known bytes that were seen again.
    seen: DefaultHasher,
    /// What was seen again is not what was told.
    pub differs: bool,
    /// A block of text came.
    pub begun: bool,
    /// The text is that of a delta, so what was cut off may come with the next one.
    pub is_delta: bool,
    room_bytes: usize,
    /// So many bytes of the line, as it has them, found no room.
    pub left_out_bytes: usize,
}

impl Default for LineText {
    fn default() -> Self {
        Self {
            known_bytes: 0,
            hash: 0,
            seen: DefaultHasher::new(),
            differs: false,
            begun: false,
            is_delta: false,
            room_bytes: AGENT_OUTPUT_BYTES,
            left_out_bytes: 0,
        }
    }
}

impl LineText {
    /// That of a delta.
    pub fn of_delta() -> Self {
        Self { is_delta: true, ..Self::default() }
    }

    /// That of a message which has ended, of which so many bytes with this hash are known.
    pub fn of_message(known_bytes: usize, hash: u64) -> Self {
        Self { known_bytes, hash, ..Self::default() }
    }

    /// Gives what is to be told of a piece of its text.
    pub fn take<'a>(&mut self, piece: &'a str) -> &'a str {
        let (known, new) = piece.as_bytes().split_at(self.known_bytes.min(piece.len()));
        if !known.is_empty() {
            self.seen.write(known);
            self.known_bytes -= known.len();
            self.differs |= self.known_bytes == 0 && self.seen.finish() != self.hash;
        }
        if self.differs || new.is_empty() {
            return "";
        }
        let new = piece.get(known.len()..).unwrap_or_default();
        let fits = floor_boundary(new, self.room_bytes.min(new.len()));
        self.room_bytes -= fits;
        self.left_out_bytes += new.len() - fits;
        &new[..fits]
    }

    /// Whether more of it is wanted.
    pub fn goes_on(&self) -> bool {
        !self.differs && self.left_out_bytes == 0
    }
}
