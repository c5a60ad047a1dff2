//! Tests of the bounded buffers: examples, and random pushes against plain vectors.

use super::*;
use crate::pure::tests_random::random;

/// Asserts what must always hold.
fn check(buffer: &HeadTail) {
    check_ring(&buffer.tail);
    assert!(buffer.head.len() <= buffer.head_capacity, "head over its capacity");
    let tail_used = buffer.tail.total_bytes > 0;
    assert!(!tail_used || buffer.head.len() == buffer.head_capacity, "tail used before head full");
    assert_eq!(buffer.total_bytes(), buffer.len() as u64 + buffer.omitted_bytes(), "bytes lost");
}

/// The same of a ring.
fn check_ring(ring: &TailRing) {
    assert!(ring.bytes.len() <= ring.capacity, "ring over its capacity");
    assert!(ring.oldest == 0 || ring.oldest < ring.bytes.len(), "oldest byte outside");
    assert!(ring.oldest == 0 || ring.bytes.len() == ring.capacity, "wrapped before full");
    assert!(ring.bytes.len() as u64 <= ring.total_bytes, "more kept than came");
}

/// What a head and tail of these sizes keep of `all`, told the slow way.
fn model(all: &[u8], head: usize, tail: usize) -> Kept {
    let head_end = head.min(all.len());
    let tail_start = all.len().saturating_sub(tail).max(head_end);
    Kept {
        head: all[..head_end].to_vec(),
        omitted_bytes: (tail_start - head_end) as u64,
        tail: all[tail_start..].to_vec(),
    }
}

#[test]
fn memory_grows_with_the_content_and_stops_at_the_capacity() {
    const CAPACITY: usize = 1000;
    let mut buffer = HeadTail::new(CAPACITY);
    buffer.push(b"0123456789");
    assert!(buffer.heap_bytes() <= 20, "{}", buffer.heap_bytes());
    for _ in 0..500 {
        buffer.push(b"0123456");
        check(&buffer);
        assert!(buffer.heap_bytes() <= CAPACITY, "{}", buffer.heap_bytes());
        assert!(buffer.heap_bytes() <= 2 * buffer.len() + 20);
    }
    assert_eq!((buffer.len(), buffer.omitted_bytes()), (CAPACITY, 2510));
}

/// rule: unified-exec.md, Truncation, retention, text: Unread output is held in a head and tail
///   buffer of 1 MiB
#[test]
fn random_pushes_keep_what_the_model_keeps() {
    let mut random = random(0x1234_5678_9ABC_DEF1);
    for _ in 0..140 {
        let capacity = random(70);
        let (head, tail) = (capacity / 2, capacity - capacity / 2);
        let mut buffer = HeadTail::new(capacity);
        let mut all = Vec::new();
        for _ in 0..random(40) {
            let piece: Vec<u8> = (0..random(30)).map(|_| random(256) as u8).collect();
            buffer.push(&piece);
            all.extend(piece);
            check(&buffer);
            let expected = model(&all, head, tail);
            let kept = [expected.head.clone(), expected.tail.clone()].concat();
            assert_eq!(buffer.parts().concat(), kept);
            assert_eq!(buffer.peek(), expected);
            assert_eq!(buffer.total_bytes(), all.len() as u64);
            assert_eq!(buffer.len(), expected.head.len() + expected.tail.len());
            assert_eq!(buffer.is_empty(), expected.head.is_empty() && expected.tail.is_empty());
            if random(12) == 0 {
                assert_eq!(buffer.take(), expected);
                all.clear();
            }
        }
    }
}

#[test]
fn a_ring_tells_before_whether_it_would_drop_something() {
    for pieces in [1, 3, 7, 10, 11] {
        let mut ring = TailRing::new(10);
        for _ in 0..20 {
            let would_drop = ring.would_drop(pieces);
            let dropped = ring.starts_at();
            ring.push(&b"0123456789x"[..pieces]);
            assert_eq!(would_drop, ring.starts_at() > dropped);
        }
    }
}

#[test]
fn the_ring_keeps_the_last_bytes_of_everything() {
    let mut random = random(0xFEED_FACE_CAFE_BEEF);
    for _ in 0..140 {
        let capacity = random(40);
        let mut ring = TailRing::new(capacity);
        let mut all = Vec::new();
        for _ in 0..random(40) {
            let piece: Vec<u8> = (0..random(60)).map(|_| random(256) as u8).collect();
            ring.push(&piece);
            all.extend(piece);
            check_ring(&ring);
            let start = all.len().saturating_sub(capacity);
            assert_eq!(ring.to_vec(), &all[start..]);
            assert_eq!(ring.starts_at(), start as u64);
            let last = start.max(all.len().saturating_sub(random(50)));
            let most = all.len() - last;
            assert_eq!(ring.last(most), (all[last..].to_vec(), last as u64));
            assert_eq!(ring.total_bytes(), all.len() as u64);
        }
    }
}

/// rule: mcp.md, Tools: What is left out is counted, whichever of it was kept before
#[test]
fn what_is_kept_is_shortened_to_its_beginning_and_its_end() {
    let bytes: Vec<u8> = (0..100).collect();
    for capacity in [0, 1, 10, 30, 99, 100, 200] {
        for (head_bytes, tail_bytes) in [(0, 0), (2, 8), (8, 2), (20, 80), (50, 50), (200, 200)] {
            let mut buffer = HeadTail::new(capacity);
            buffer.push(&bytes);
            let mut kept = buffer.take();
            let (had_head, had_tail) = (kept.head.len(), kept.tail.len());
            let was_whole = kept.omitted_bytes == 0;
            kept.shorten(head_bytes, tail_bytes);
            let held = kept.head.len() + kept.tail.len();
            assert_eq!(held as u64 + kept.omitted_bytes, 100, "{capacity} {head_bytes}");
            assert!(held <= head_bytes + tail_bytes, "{capacity} {head_bytes}");
            assert_eq!(kept.head, bytes[..kept.head.len()]);
            assert_eq!(kept.tail, bytes[100 - kept.tail.len()..]);
            let room = if was_whole { 100 } else { had_head };
            assert!(kept.head.len() >= head_bytes.min(room).min(had_head), "{capacity}");
            assert!(kept.tail.len() >= tail_bytes.min(had_tail), "{capacity} {tail_bytes}");
        }
    }
}
