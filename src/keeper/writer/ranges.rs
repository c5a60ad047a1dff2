//! Answers who asks for parts of a session's output (`range`).

use super::Writer;
use crate::keeper::frames::{Ack, AckKind};
use crate::keeper::range;
use crate::keeper::range_record::ReadRange;

impl Writer {
    /// Reads a part of a session's output, also where the session is gone: what is said of it, and
    /// the bytes that stand behind that. What was handed over before is in it.
    pub fn range(&mut self, asked: &ReadRange) -> (Ack, Vec<u8>) {
        self.write_indexes();
        let read = self.dir().and_then(|dir| range::read(dir, &asked.name, &asked.wanted));
        let errno = read.as_ref().err().copied().unwrap_or(0);
        let bytes = read.map_or_else(|_| Vec::new(), |found| found.encode());
        let ack = Ack {
            token: asked.token,
            missing: bytes.len() as u64,
            errno,
            failing: errno != 0,
            ..Ack::of(AckKind::Range)
        };
        (ack, bytes)
    }
}
