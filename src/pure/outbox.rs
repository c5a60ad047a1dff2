//! Bytes on their way to a file descriptor that may say EAGAIN.
//!
//! Source: protocol.md, A slow reader: replies queue in memory until the reader takes them.
//! The bound on that memory is the owner's (limits `OUTBOX_*`); this is only the queue.

use crate::limits::BUFFER_KEEP_BYTES;

/// A queue of bytes, contiguous from its front, with amortised constant cost per byte.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    buf: Vec<u8>,
    /// Bytes at the beginning of `buf` that are sent already.
    sent: usize,
}

impl Outbox {
    /// An empty queue that takes no memory.
    pub const fn new() -> Self {
        Self { buf: Vec::new(), sent: 0 }
    }

    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    /// The buffer itself, to serialise straight into its end. Append to it, and cut off only
    /// what was appended: its beginning may be bytes that are sent already.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buf
    }

    /// All unsent bytes, oldest first.
    pub fn front(&self) -> &[u8] {
        self.buf.get(self.sent..).unwrap_or_default()
    }

    /// Takes `n` bytes off the front; more than there are takes all.
    pub fn consume(&mut self, n: usize) {
        self.sent = self.sent.saturating_add(n).min(self.buf.len());
        let unsent = self.buf.len() - self.sent;
        if unsent == 0 {
            self.clear();
        } else if self.sent >= unsent {
            // Fewer bytes move than were sent since the last move, so each byte that is ever
            // pushed pays for less than one move.
            self.buf.drain(..self.sent);
            self.sent = 0;
            if self.buf.capacity() > BUFFER_KEEP_BYTES && unsent < self.buf.capacity() / 4 {
                self.buf.shrink_to(BUFFER_KEEP_BYTES.max(unsent * 2));
            }
        }
    }

    /// How many bytes are unsent.
    pub fn len(&self) -> usize {
        self.front().len()
    }

    /// Whether nothing is unsent.
    pub fn is_empty(&self) -> bool {
        self.front().is_empty()
    }

    /// How many bytes of memory the queue holds, used or not.
    pub fn heap_bytes(&self) -> usize {
        self.buf.capacity()
    }

    /// Drops everything unsent, and the memory when it is much.
    pub fn clear(&mut self) {
        self.sent = 0;
        if self.buf.capacity() > BUFFER_KEEP_BYTES {
            self.buf = Vec::new();
        } else {
            self.buf.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 >> 11).unwrap() % bound
        }
    }

    #[test]
    fn same_as_a_deque() {
        let mut random = Random(0xdead_beef_0bad_cafe);
        for _ in 0..300 {
            let mut outbox = Outbox::new();
            let mut model: VecDeque<u8> = VecDeque::new();
            for step in 0..200 {
                let n = random.below(40);
                let byte = u8::try_from(step % 251).unwrap();
                match random.below(10) {
                    0..=3 => {
                        outbox.push(&vec![byte; n]);
                        model.extend(std::iter::repeat_n(byte, n));
                    }
                    4 => {
                        outbox.buffer().extend_from_slice(&[byte, byte]);
                        model.extend([byte, byte]);
                    }
                    5 if n == 0 => {
                        outbox.clear();
                        model.clear();
                    }
                    _ => {
                        outbox.consume(n);
                        model.drain(..n.min(model.len()));
                    }
                }
                assert_eq!(outbox.front(), model.make_contiguous());
                assert_eq!((outbox.len(), outbox.is_empty()), (model.len(), model.is_empty()));
                assert!(outbox.heap_bytes() >= outbox.len());
            }
        }
    }

    #[test]
    fn memory_is_given_back() {
        let mut outbox = Outbox::new();
        assert_eq!(outbox.heap_bytes(), 0);
        outbox.push(&vec![b'a'; 9 * 1024 * 1024]);
        outbox.consume(9 * 1024 * 1024 - 10);
        assert_eq!(outbox.front(), b"aaaaaaaaaa");
        assert!(outbox.heap_bytes() <= BUFFER_KEEP_BYTES);
        outbox.push(&vec![b'b'; BUFFER_KEEP_BYTES + 1]);
        outbox.consume(usize::MAX);
        assert!(outbox.is_empty());
        assert_eq!(outbox.heap_bytes(), 0);
        outbox.push(b"small");
        outbox.consume(5);
        assert!(outbox.heap_bytes() > 0, "a small buffer is kept for the next bytes");
    }

    #[test]
    fn a_wrong_cut_of_the_buffer_is_no_panic() {
        let mut outbox = Outbox::default();
        outbox.push(b"0123456789");
        outbox.consume(4);
        outbox.buffer().truncate(2);
        assert_eq!((outbox.front(), outbox.len()), (&b""[..], 0));
        outbox.consume(1);
        outbox.push(b"x");
        assert_eq!(outbox.front(), b"x");
    }

    #[test]
    fn a_queue_that_never_drains_costs_a_constant_per_byte() {
        let mut outbox = Outbox::new();
        outbox.push(&[b'.'; 1000]);
        for _ in 0..100_000 {
            outbox.push(&[b'.'; 100]);
            outbox.consume(100);
        }
        assert_eq!(outbox.len(), 1000);
        assert!(outbox.heap_bytes() < 10_000);
    }
}
