//! Bytes of one session on their way somewhere, in memory that never exceeds its limit.
//!
//! Unlike an [`super::outbox::Outbox`] it is a ring: what was taken makes room for what comes,
//! so that many full queues together cost what they hold (architecture.md, Bounds), and
//! all memory is given back when it is drained.

use std::collections::VecDeque;

/// An empty queue keeps this much memory at most: an idle session should cost little.
const KEPT_WHEN_EMPTY_BYTES: usize = 1024;

/// A ring of bytes.
#[derive(Debug)]
pub struct ByteQueue {
    bytes: VecDeque<u8>,
    /// The memory it grows to by doubling; above, only as much as is needed.
    limit_bytes: usize,
}

impl ByteQueue {
    /// An empty queue, which takes no memory. Its owner keeps it within `limit_bytes`.
    pub const fn new(limit_bytes: usize) -> Self {
        Self { bytes: VecDeque::new(), limit_bytes }
    }

    /// Appends bytes.
    pub fn push(&mut self, more: &[u8]) {
        let needed = self.bytes.len() + more.len();
        if needed > self.bytes.capacity() {
            let doubled = self.bytes.capacity().saturating_mul(2).min(self.limit_bytes);
            self.bytes.reserve_exact(needed.max(doubled) - self.bytes.len());
        }
        self.bytes.extend(more);
    }

    /// The oldest bytes that lie together: all of them, or those up to the ring's end.
    pub fn front(&self) -> &[u8] {
        self.bytes.as_slices().0
    }

    /// Takes `n` bytes off the front; more than there are takes all.
    pub fn consume(&mut self, n: usize) {
        if n >= self.bytes.len() {
            self.clear();
        } else {
            self.bytes.drain(..n);
        }
    }

    /// How many bytes are queued.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Drops everything, and the memory with it.
    pub fn clear(&mut self) {
        if self.bytes.capacity() > KEPT_WHEN_EMPTY_BYTES {
            self.bytes = VecDeque::new();
        } else {
            self.bytes.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::random;

    #[test]
    fn bytes_come_out_as_they_went_in_and_memory_stays_within_the_limit() {
        const LIMIT: usize = 10_000;
        let mut random = random(0x2545_f491_4f6c_dd1d);
        let (mut queue, mut model) = (ByteQueue::new(LIMIT), VecDeque::new());
        let mut next = 0_u8;
        for _ in 0..7_000 {
            let more: Vec<u8> = (0..random(700).min(LIMIT - queue.len()))
                .map(|_| {
                    next = next.wrapping_add(1);
                    next
                })
                .collect();
            queue.push(&more);
            model.extend(more);
            assert!(queue.bytes.capacity() <= LIMIT, "{}", queue.bytes.capacity());
            assert_eq!((queue.len(), queue.is_empty()), (model.len(), model.is_empty()));
            let front = queue.front();
            assert!(front.iter().eq(model.iter().take(front.len())));
            assert_eq!(front.is_empty(), model.is_empty(), "what is there can be taken");
            let take = random(900).min(front.len() + random(3));
            queue.consume(take);
            model.drain(..take.min(model.len()));
        }
    }
}
