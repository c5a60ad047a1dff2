//! Bytes on their way to a file descriptor that may say EAGAIN.
//!
//! Replies queue in memory until their reader takes them (protocol.md, A slow reader). The bound on
//! that memory is the owner's (limits `OUTBOX_*`); this is only the queue.

use crate::limits::BUFFER_KEEP_BYTES;

/// A queue of bytes, contiguous from its front, with amortised constant cost per byte.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    buf: Vec<u8>,
    /// Bytes at the beginning of `buf` that are sent already.
    sent: usize,
    /// Bytes at the beginning of `buf` behind which a line that overtakes others goes.
    overtaken: usize,
    /// The last byte that was sent did not end a line.
    mid_line: bool,
    /// Bytes sent ever.
    sent_total: u64,
}

impl Outbox {
    /// An empty queue that takes no memory.
    pub const fn new() -> Self {
        Self { buf: Vec::new(), sent: 0, overtaken: 0, mid_line: false, sent_total: 0 }
    }

    /// Bytes taken off the front ever.
    pub fn sent_total(&self) -> u64 {
        self.sent_total
    }

    /// Nothing that comes later overtakes what is there now.
    pub fn hold(&mut self) {
        self.overtaken = self.buf.len();
    }

    /// Lets the lines at the end, `bytes` of them, overtake what is unsent but a line that has
    /// begun, what is held, and lines that overtook before. Costs a move of what is overtaken.
    pub fn overtake(&mut self, bytes: usize) {
        let lines_from = self.buf.len().saturating_sub(bytes).max(self.sent);
        let mut at = self.overtaken.clamp(self.sent, lines_from);
        if at == self.sent && self.mid_line {
            let rest = &self.buf[at..lines_from];
            at += memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        }
        let overtaking = self.buf.len() - lines_from;
        self.buf[at..].rotate_right(overtaking);
        self.overtaken = at + overtaking;
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
        let before = self.sent;
        self.sent = self.sent.saturating_add(n).min(self.buf.len());
        if let Some(last) = self.buf.get(before..self.sent).and_then(<[u8]>::last) {
            self.mid_line = *last != b'\n';
            self.sent_total += (self.sent - before) as u64;
        }
        let unsent = self.buf.len() - self.sent;
        if unsent == 0 {
            self.clear();
        } else if self.sent >= unsent {
            // Fewer bytes move than were sent since the last move, so each byte that is ever
            // pushed pays for less than one move.
            self.buf.drain(..self.sent);
            self.overtaken = self.overtaken.saturating_sub(self.sent);
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

    /// Drops everything unsent, and the memory when it is much.
    pub fn clear(&mut self) {
        self.sent = 0;
        self.overtaken = 0;
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
    use crate::pure::tests_random::Random;
    use std::collections::VecDeque;

    #[test]
    fn same_as_a_deque() {
        let mut random = Random(0xdead_beef_0bad_cafe);
        for _ in 0..100 {
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
                assert!(outbox.buf.capacity() >= outbox.len());
            }
        }
    }

    #[test]
    fn lines_that_overtake_keep_their_order_whatever_is_sent_between() {
        let mut random = Random(0x1234_5678_9abc_def1);
        for _ in 0..100 {
            let mut outbox = Outbox::new();
            let (mut sent, mut made) = (Vec::new(), [0_u32; 2]);
            for _ in 0..200 {
                if random.below(2) == 0 {
                    let quick = random.below(4) == 0;
                    let number = &mut made[usize::from(quick)];
                    let line = format!("{} {number}\n", if quick { "quick" } else { "slow" });
                    *number += 1;
                    outbox.push(line.as_bytes());
                    if quick {
                        outbox.overtake(line.len());
                    }
                } else {
                    let count = random.below(30).min(outbox.len());
                    sent.extend_from_slice(&outbox.front()[..count]);
                    outbox.consume(count);
                }
            }
            sent.extend_from_slice(outbox.front());
            let sent = String::from_utf8(sent).unwrap();
            for (kind, count) in [("slow", made[0]), ("quick", made[1])] {
                let wanted: Vec<String> = (0..count).map(|at| format!("{kind} {at}")).collect();
                let came: Vec<&str> = sent.lines().filter(|one| one.starts_with(kind)).collect();
                assert_eq!(came, wanted, "{sent}");
            }
            assert_eq!(sent.lines().count(), (made[0] + made[1]) as usize, "{sent}");
        }
    }

    #[test]
    fn memory_is_given_back() {
        let mut outbox = Outbox::new();
        assert_eq!(outbox.buf.capacity(), 0);
        outbox.push(&vec![b'a'; 9 * 1024 * 1024]);
        outbox.consume(9 * 1024 * 1024 - 10);
        assert_eq!(outbox.front(), b"aaaaaaaaaa");
        assert!(outbox.buf.capacity() <= BUFFER_KEEP_BYTES);
        outbox.push(&vec![b'b'; BUFFER_KEEP_BYTES + 1]);
        outbox.consume(usize::MAX);
        assert!(outbox.is_empty());
        assert_eq!(outbox.buf.capacity(), 0);
        outbox.push(b"small");
        outbox.consume(5);
        assert!(outbox.buf.capacity() > 0, "a small buffer is kept for the next bytes");
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
        assert!(outbox.buf.capacity() < 10_000);
    }
}
