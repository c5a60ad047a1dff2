//! Tests of what is kept of a log: a table of steps, and random logs of which each rule holds.

use super::*;
use crate::limits::MIN_LOG_BOUND_BYTES;
use crate::pure::tests_random::Random;

#[test]
fn a_step_is_a_sixteenth_in_whole_blocks() {
    for (keep_bytes, step) in [
        (1 << 30, 64 << 20),
        (16 << 20, 1 << 20),
        (1 << 20, 64 << 10),
        ((1 << 20) + 4096 * 16, 68 << 10),
        (4096, 4096),
        (1, 4096),
    ] {
        assert_eq!(step_bytes(keep_bytes), step, "{keep_bytes}");
    }
}

#[test]
fn a_log_has_room_until_it_has_to_lose_its_oldest_bytes() {
    const MIB: u64 = 1 << 20;
    const KIB: u64 = 1 << 10;
    let kept = Kept::of(MIB);
    // Four blocks of a step of 64 KiB stay free.
    for (size, from, room) in [
        (0, 0, MIB + 48 * KIB),
        (MIB + 48 * KIB, 0, 0),
        (MIB + 48 * KIB, 48 * KIB, 48 * KIB),
    ] {
        assert_eq!(kept.room(size, from), room, "{size} {from}");
    }
    for (size, from, begins) in
        [(MIB, 0, 0), (MIB + 4095, 0, 0), (MIB + 4096, 0, 4096), (MIB + 4096, 8192, 8192)]
    {
        assert_eq!(kept.trimmed(size, from), begins, "{size} {from}");
    }
}

/// rule: unified-exec.md, Logs: The log takes no more of the disk than N and a sixteenth of it
#[test]
fn random_logs_keep_what_they_should_and_take_no_more_than_they_may() {
    let mut random = Random(0x0B0D_0B0D_0B0D_0B0D);
    for round in 0..700_u64 {
        let bytes = MIN_LOG_BOUND_BYTES + random.below(1 << 24) as u64;
        let (kept, step) = (Kept::of(bytes), step_bytes(bytes));
        let (mut size, mut from) = (0_u64, 0_u64);
        for _ in 0..200 {
            let mut left = random.below(1 << 18) as u64;
            while left > 0 {
                let mut room = kept.room(size, from);
                if room == 0 {
                    let before = from;
                    from = kept.trimmed(size, from);
                    assert!(from > before, "round {round}: nothing went");
                    assert!(size - from >= bytes, "round {round}: too much went");
                    room = kept.room(size, from);
                    assert!(room > 0, "round {round}: still no room");
                }
                let piece = left.min(room);
                (size, left) = (size + piece, left - piece);
                let taken = size.div_ceil(LOG_BLOCK_BYTES) * LOG_BLOCK_BYTES - from;
                assert!(taken <= bytes + step, "round {round}: takes {taken}");
            }
            assert!(from % LOG_BLOCK_BYTES == 0 && from <= size);
        }
    }
}
