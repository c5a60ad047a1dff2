//! The live chunks of one call: text cut into bounded pieces at
//! characters. Sending them is left to `chunks`.

use crate::limits::{LIVE_BACKLOG_BYTES, LIVE_CHUNKS_MAX};
use crate::pure::text::utf8::{Decoder, floor_boundary};
use crate::server::session::output::Source;

/// Text of one live chunk.
const LIVE_CHUNK_BYTES: usize = 8 * 1024;

/// What becomes of a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The piece is sent; so many bytes before it were dropped.
    Chunk {
        /// Its text.
        text: String,
        /// Bytes of text dropped since the last chunk.
        dropped_bytes: u64,
    },
    /// The bound of the call is reached: no more chunks come.
    Truncated,
}

/// The state of one call's chunks.
#[derive(Clone, Debug)]
pub struct Chunks {
    decoders: [Decoder; 2],
    sent: usize,
    /// The client was told that no more chunks come.
    truncated: bool,
    /// Bytes dropped since the last chunk.
    dropped_bytes: u64,
    /// Bytes dropped in all.
    pub dropped_total: u64,
    /// Bytes of the call's chunks that were queued since all of them were sent: no more than these
    /// are unsent.
    unsent: usize,
    /// What the client will have been sent, in all, when the last of these chunks is.
    sent_at: u64,
}

impl Chunks {
    /// No chunk yet.
    pub fn new() -> Self {
        let decoders = [Decoder::new(), Decoder::new()];
        Self {
            decoders,
            sent: 0,
            truncated: false,
            dropped_bytes: 0,
            dropped_total: 0,
            unsent: 0,
            sent_at: 0,
        }
    }

    /// Whether it may queue more, when the client was sent `sent_total` bytes in all.
    pub fn has_room(&mut self, sent_total: u64) -> bool {
        if sent_total >= self.sent_at {
            self.unsent = 0;
        }
        self.unsent < LIVE_BACKLOG_BYTES
    }

    /// Chunks were queued, `bytes` of them; all are sent when `sent_at` bytes are.
    pub fn queued(&mut self, bytes: usize, sent_at: u64) {
        if bytes > 0 {
            self.unsent += bytes;
            self.sent_at = sent_at;
        }
    }

    /// The pieces that `bytes` of `source` give; without `room` for them they are dropped and
    /// counted.
    pub fn pieces(&mut self, source: Source, bytes: &[u8], room: bool) -> Vec<Piece> {
        let text = self.decoders[source as usize].push(bytes);
        self.cut(&text, room)
    }

    /// What is left of `source` at the end of its stream: an unfinished character.
    pub fn rest(&mut self, source: Source) -> Vec<Piece> {
        let text = self.decoders[source as usize].finish();
        self.cut(&text, true)
    }

    fn cut(&mut self, mut text: &str, room: bool) -> Vec<Piece> {
        let mut pieces = Vec::new();
        while !text.is_empty() {
            let (chunk, rest) = text.split_at(floor_boundary(text, LIVE_CHUNK_BYTES));
            text = rest;
            let all_sent = self.sent == LIVE_CHUNKS_MAX;
            if !room || all_sent {
                self.dropped_bytes += chunk.len() as u64;
                self.dropped_total += chunk.len() as u64;
                // One small line a call: it waits for no room.
                if all_sent && !std::mem::replace(&mut self.truncated, true) {
                    pieces.push(Piece::Truncated);
                }
                continue;
            }
            self.sent += 1;
            let dropped_bytes = std::mem::take(&mut self.dropped_bytes);
            pieces.push(Piece::Chunk { text: chunk.to_owned(), dropped_bytes });
        }
        pieces
    }
}

impl Default for Chunks {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(pieces: Vec<Piece>) -> Vec<String> {
        let text = |piece| match piece {
            Piece::Chunk { text, .. } => text,
            Piece::Truncated => panic!("far too early"),
        };
        pieces.into_iter().map(text).collect()
    }

    /// rule: bash-stream.md, The stream family: At most 8 KiB a chunk, never splitting a character
    #[test]
    fn a_character_is_never_split_neither_between_reads_nor_between_chunks() {
        let mut live = Chunks::new();
        assert_eq!(texts(live.pieces(Source::Output, b"a\xc3", true)), ["a"]);
        assert_eq!(texts(live.pieces(Source::Errors, b"x", true)), ["x"], "each has its own");
        assert_eq!(texts(live.pieces(Source::Output, b"\xa4b", true)), ["äb"]);
        let long = "ä".repeat(LIVE_CHUNK_BYTES);
        let pieces = texts(live.pieces(Source::Output, format!("x{long}").as_bytes(), true));
        assert!(pieces.iter().all(|piece| piece.len() <= LIVE_CHUNK_BYTES));
        assert_eq!(pieces.concat(), format!("x{long}"));
        assert_eq!(texts(live.pieces(Source::Output, b"\xc3", true)), [""; 0]);
        assert_eq!(texts(live.rest(Source::Output)), ["\u{fffd}"]);
    }
}
