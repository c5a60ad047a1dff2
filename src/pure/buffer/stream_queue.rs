//! Bytes of two streams on their way to one place, in the order in which they came.

use std::collections::VecDeque;

use crate::pure::buffer::byte_queue::ByteQueue;
use crate::pure::buffer::source::Source;

/// Runs of bytes of one stream in a log's queue: above, its session's output is not read.
const LOG_QUEUE_RUNS_MAX: usize = 16 * 1024;

/// A queue of bytes that knows whose they are.
#[derive(Debug)]
pub struct StreamQueue {
    bytes: ByteQueue,
    /// Runs of bytes of one stream; all of them together are the queue's bytes.
    runs: VecDeque<(Source, usize)>,
    limit_bytes: usize,
}

impl StreamQueue {
    /// An empty queue, which takes no memory. Its owner keeps it within `limit_bytes`.
    pub const fn new(limit_bytes: usize) -> Self {
        Self { bytes: ByteQueue::new(limit_bytes), runs: VecDeque::new(), limit_bytes }
    }

    /// Whether so many bytes more may come, and one more run.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.len() + bytes <= self.limit_bytes && self.runs.len() < LOG_QUEUE_RUNS_MAX
    }

    /// Appends bytes of a stream.
    pub fn push(&mut self, source: Source, more: &[u8]) {
        match self.runs.back_mut() {
            Some((last, length)) if *last == source => *length += more.len(),
            _ if more.is_empty() => {}
            _ => self.runs.push_back((source, more.len())),
        }
        self.bytes.push(more);
    }

    /// The oldest bytes of one stream that lie together, and whose they are.
    pub fn front(&self) -> (Source, &[u8]) {
        let (source, length) = self.runs.front().copied().unwrap_or((Source::Output, 0));
        let front = self.bytes.front();
        (source, &front[..front.len().min(length)])
    }

    /// Takes `n` bytes off the front; more than there are takes all.
    pub fn consume(&mut self, n: usize) {
        let mut left = n;
        while let Some((_, length)) = self.runs.front_mut().filter(|_| left > 0) {
            let taken = left.min(*length);
            *length -= taken;
            left -= taken;
            if *length == 0 {
                self.runs.pop_front();
            }
        }
        self.bytes.consume(n);
        if self.runs.is_empty() {
            self.runs = VecDeque::new();
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
        self.bytes.clear();
        self.runs = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::random;

    #[test]
    fn each_byte_comes_out_with_its_stream() {
        let mut queue = StreamQueue::new(100_000);
        let mut below = random(0x2545_f491_4f6c_dd1d);
        let (mut model, mut next) = (VecDeque::new(), 0_u8);
        for _ in 0..5_000 {
            let source = if below(2) == 0 { Source::Output } else { Source::Errors };
            let more: Vec<u8> = (0..below(9))
                .map(|_| {
                    next = next.wrapping_add(1);
                    next
                })
                .collect();
            queue.push(source, &more);
            model.extend(more.iter().map(|byte| (source, *byte)));
            let (source, front) = queue.front();
            assert!(front.iter().eq(model.iter().take(front.len()).map(|(_, byte)| byte)));
            assert!(model.iter().take(front.len()).all(|(whose, _)| *whose == source));
            assert_eq!((queue.len(), front.is_empty()), (model.len(), model.is_empty()));
            let taken = below(10).min(front.len());
            queue.consume(taken);
            model.drain(..taken);
        }
        queue.clear();
        assert!(queue.is_empty() && queue.front().1.is_empty());
    }

    #[test]
    fn many_short_runs_fill_it_as_many_bytes_do() {
        let mut queue = StreamQueue::new(1 << 20);
        for _ in 0..LOG_QUEUE_RUNS_MAX / 2 {
            assert!(queue.has_room(1));
            queue.push(Source::Output, b"a");
            queue.push(Source::Errors, b"b");
        }
        assert!(!queue.has_room(1));
        queue.consume(1);
        assert!(queue.has_room(1) && !queue.has_room(1 << 20));
    }
}
