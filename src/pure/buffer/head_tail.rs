//! Byte buffers of bounded size: what came first and last, or only what came last.
//!
//! The output of a session that no call has told yet is held in a [`HeadTail`],
//! its tape, the last output kept, in a [`TailRing`]. Both take a flood at
//! the speed of memcpy and grow with their content, so that a quiet session owns no heap.

/// A buffer of bounded size that keeps the first and the last bytes pushed since the last
/// [`take`](HeadTail::take). The first half of the capacity is the head, the other half the
/// tail; what falls in between is dropped and counted.
#[derive(Clone, Debug)]
pub struct HeadTail {
    head: Vec<u8>,
    tail: TailRing,
    head_capacity: usize,
}

/// What a [`HeadTail`] held: everything in order is `head` followed by `tail` when
/// `omitted_bytes` is 0, else there is a gap of that many bytes between the two.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The first bytes, at most half of the capacity.
    pub head: Vec<u8>,
    /// How many bytes between head and tail were dropped.
    pub omitted_bytes: u64,
    /// The last bytes, at most half of the capacity (rounded up); empty unless the head is full.
    pub tail: Vec<u8>,
}

impl HeadTail {
    /// An empty buffer for `capacity_bytes` bytes (0 keeps nothing and counts all). No heap
    /// is taken before the first push.
    pub const fn new(capacity_bytes: usize) -> Self {
        let head_capacity = capacity_bytes / 2;
        let tail = TailRing::new(capacity_bytes - head_capacity);
        HeadTail { head: Vec::new(), tail, head_capacity }
    }

    /// Appends `bytes`. Costs at most one copy of each byte that is kept.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = self.head_capacity - self.head.len();
        let (head, tail) = bytes.split_at(room.min(bytes.len()));
        append_bounded(&mut self.head, head, self.head_capacity);
        self.tail.push(tail);
    }

    /// Bytes held now, 0 to the capacity.
    pub fn len(&self) -> usize {
        self.head.len() + self.tail.bytes.len()
    }

    /// Whether nothing was pushed since the last take (or the capacity is 0).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes pushed since the last take, kept or not.
    pub fn total_bytes(&self) -> u64 {
        self.head.len() as u64 + self.tail.total_bytes
    }

    /// Bytes pushed since the last take that were dropped between head and tail.
    pub fn omitted_bytes(&self) -> u64 {
        self.tail.starts_at()
    }

    /// Gives out what is held and starts over, empty. The heap goes with it.
    pub fn take(&mut self) -> Kept {
        let omitted_bytes = self.omitted_bytes();
        let empty = TailRing::new(self.tail.capacity);
        let tail = std::mem::replace(&mut self.tail, empty).into_vec();
        Kept { head: std::mem::take(&mut self.head), omitted_bytes, tail }
    }

    /// A copy of what is held; nothing is consumed.
    pub fn peek(&self) -> Kept {
        Kept {
            head: self.head.clone(),
            omitted_bytes: self.omitted_bytes(),
            tail: self.tail.to_vec(),
        }
    }

    /// What is held, in order and without a copy: the head, and the tail in two parts.
    pub fn parts(&self) -> [&[u8]; 3] {
        let [older, newer] = self.tail.parts();
        [&self.head, older, newer]
    }

    /// Bytes of heap owned now, at most the capacity; 0 when empty after a take.
    pub fn heap_bytes(&self) -> usize {
        self.head.capacity() + self.tail.bytes.capacity()
    }
}

impl Kept {
    /// Drops what is between the first `head_bytes` and the last `tail_bytes`.
    pub fn shorten(&mut self, head_bytes: usize, tail_bytes: usize) {
        if self.head.len() + self.tail.len() <= head_bytes + tail_bytes {
            return;
        }
        let rest = self.head.split_off(self.head.len().min(head_bytes));
        if self.omitted_bytes == 0 {
            self.tail.splice(0..0, rest);
        } else {
            self.omitted_bytes += rest.len() as u64;
        }
        let over = self.tail.len().saturating_sub(tail_bytes);
        self.tail.drain(..over);
        self.omitted_bytes += over as u64;
    }
}

/// The last bytes of everything pushed, up to a capacity.
#[derive(Clone, Debug)]
pub struct TailRing {
    /// Grows to the capacity with `oldest` at 0; from then on its length stays.
    bytes: Vec<u8>,
    /// Index of the oldest byte.
    oldest: usize,
    capacity: usize,
    total_bytes: u64,
}

impl TailRing {
    /// An empty ring for `capacity_bytes` bytes (0 keeps nothing and counts all). No heap is
    /// taken before the first push.
    pub const fn new(capacity_bytes: usize) -> Self {
        TailRing { bytes: Vec::new(), oldest: 0, capacity: capacity_bytes, total_bytes: 0 }
    }

    /// Appends `bytes`, dropping the oldest ones over the capacity. Costs at most one copy of
    /// each byte that is kept.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        if bytes.len() >= self.capacity {
            // Nothing older survives, so nothing older is looked at.
            self.bytes.clear();
            self.oldest = 0;
            let kept = &bytes[bytes.len() - self.capacity..];
            append_bounded(&mut self.bytes, kept, self.capacity);
            return;
        }
        let room = self.capacity - self.bytes.len();
        let (filling, over) = bytes.split_at(room.min(bytes.len()));
        append_bounded(&mut self.bytes, filling, self.capacity);
        // The rest overwrites the oldest bytes, up to the end of the ring and from its start.
        let (until_end, wrapped) = over.split_at(over.len().min(self.bytes.len() - self.oldest));
        self.bytes[self.oldest..self.oldest + until_end.len()].copy_from_slice(until_end);
        self.bytes[..wrapped.len()].copy_from_slice(wrapped);
        self.oldest += over.len();
        if self.oldest >= self.capacity {
            self.oldest -= self.capacity;
        }
    }

    /// Whether so many bytes more would drop some.
    pub fn would_drop(&self, bytes: usize) -> bool {
        self.bytes.len() + bytes > self.capacity
    }

    /// Bytes pushed ever, kept or not.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Gives the kept bytes and their heap up, and keeps none from now on; the count goes on.
    pub fn stop_keeping(&mut self) {
        self.bytes = Vec::new();
        self.oldest = 0;
        self.capacity = 0;
    }

    /// A copy of the kept bytes, oldest first.
    pub fn to_vec(&self) -> Vec<u8> {
        self.parts().concat()
    }

    /// The kept bytes, the older ones first.
    fn parts(&self) -> [&[u8]; 2] {
        let (newer, older) = self.bytes.split_at(self.oldest);
        [older, newer]
    }

    /// A copy of the last `most_bytes` of the kept bytes, and the first one's offset in the stream.
    pub fn last(&self, most_bytes: usize) -> (Vec<u8>, u64) {
        let (newer, older) = self.bytes.split_at(self.oldest);
        let dropped = self.bytes.len().saturating_sub(most_bytes);
        let older_kept = &older[dropped.min(older.len())..];
        let newer_kept = &newer[dropped.saturating_sub(older.len())..];
        ([older_kept, newer_kept].concat(), self.starts_at() + dropped as u64)
    }

    /// Offset in the stream of the first kept byte, counted from 0; the stream's length when
    /// nothing is kept.
    pub fn starts_at(&self) -> u64 {
        self.total_bytes - self.bytes.len() as u64
    }

    /// The kept bytes, oldest first, in the ring's own heap.
    fn into_vec(mut self) -> Vec<u8> {
        self.bytes.rotate_left(self.oldest);
        self.bytes
    }
}

/// Appends `more` to `buffer`, which never gets longer than `limit`: its heap doubles as a
/// Vec's does, but stops at the limit instead of the next power of two.
fn append_bounded(buffer: &mut Vec<u8>, more: &[u8], limit: usize) {
    let needed = buffer.len() + more.len();
    if needed > buffer.capacity() {
        let target = needed.max(2 * buffer.capacity()).min(limit.max(needed));
        buffer.reserve_exact(target - buffer.len());
    }
    buffer.extend_from_slice(more);
}

#[cfg(test)]
#[path = "tests_head_tail.rs"]
mod tests;
