//! Buffers: bytes on their way or kept for later, each within a bound.

pub mod arrival;
pub mod bound;
pub mod byte_queue;
pub mod handed_out;
pub mod head_tail;
pub mod news;
pub mod outbox;
pub mod remembered;
pub mod source;
pub mod stream_queue;
