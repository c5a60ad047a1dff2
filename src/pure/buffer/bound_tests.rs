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
        ((1 << 20) + 4096 * 16 - 1, 64 << 10),
        ((1 << 20) + 4096 * 16, 68 << 10),
        (4096, 4096),
        (1, 4096),
    ] {
        assert_eq!(step_bytes(keep_bytes), step, "{keep_bytes}");
    }
}

#[test]
fn the_first_segment_has_the_name_of_its_log() {
    assert_eq!(segment_name("execd-3-ab12cd34.log", 1), "execd-3-ab12cd34.log");
    assert_eq!(segment_name("execd-3-ab12cd34.log", 12), "execd-3-ab12cd34.log.12");
    let kept = Kept::of(1 << 20);
    let step = kept.step();
    for (place, number) in [(0, 1), (step - 1, 1), (step, 2), (11 * step, 12)] {
        assert_eq!(kept.segment_of(place), number, "{place}");
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
        (5, 0, MIB + 48 * KIB - 5),
        (MIB + 48 * KIB, 0, 0),
        (MIB + 48 * KIB, 48 * KIB, 48 * KIB),
    ] {
        assert_eq!(kept.room(Form::Holes, size, from), room, "{size} {from}");
    }
    for (size, from, room) in [
        (0, 0, 64 * KIB),
        (64 * KIB - 1, 0, 1),
        (64 * KIB, 0, 64 * KIB),
        (MIB, 0, 64 * KIB),
        (MIB + 64 * KIB, 0, 0),
        (MIB + 64 * KIB, 64 * KIB, 64 * KIB),
    ] {
        assert_eq!(kept.room(Form::Segments, size, from), room, "{size} {from}");
    }
    for (form, size, from, keep, begins) in [
        (Form::Holes, MIB, 0, None, 0),
        (Form::Holes, MIB + 4095, 0, None, 0),
        (Form::Holes, MIB + 4096, 0, None, 4096),
        (Form::Holes, MIB + 4096, 8192, None, 8192),
        (Form::Holes, MIB, 0, Some(0), MIB - 4 * KIB),
        (Form::Holes, MIB + 1, 0, Some(MIB / 2), MIB / 2),
        (Form::Segments, MIB + 64 * KIB - 1, 0, None, 0),
        (Form::Segments, MIB + 64 * KIB, 0, None, 64 * KIB),
        (Form::Segments, MIB + 1, 0, Some(MIB / 2), MIB / 2),
        (Form::Segments, MIB - 1, 0, Some(MIB / 2), MIB / 2 - 64 * KIB),
        (Form::Segments, MIB, 0, Some(0), MIB - 64 * KIB),
    ] {
        let got = kept.trimmed(form, size, from, keep);
        assert_eq!(got, begins, "{form:?} {size} {from} {keep:?}");
    }
}

/// rule: unified-exec.md, Logs: The log takes no more of the disk than N and a sixteenth of it
#[test]
fn random_logs_keep_what_they_should_and_take_no_more_than_they_may() {
    let mut random = Random(0x0B0D_0B0D_0B0D_0B0D);
    for round in 0..2_000_u64 {
        let bytes = MIN_LOG_BOUND_BYTES + random.below(1 << 24) as u64;
        let (kept, form) = (Kept::of(bytes), [Form::Holes, Form::Segments][random.below(2)]);
        let step = kept.step();
        let (mut size, mut from) = (0_u64, 0_u64);
        for _ in 0..200 {
            let mut left = random.below(1 << 18) as u64;
            while left > 0 {
                let mut room = kept.room(form, size, from);
                if room == 0 {
                    let before = from;
                    from = kept.trimmed(form, size, from, None);
                    assert!(from > before, "round {round}: nothing went");
                    assert!(size - from >= bytes, "round {round}: too much went");
                    room = kept.room(form, size, from);
                    assert!(room > 0, "round {round}: still no room");
                }
                let piece = left.min(room);
                (size, left) = (size + piece, left - piece);
                let taken = match form {
                    Form::Holes => size.div_ceil(LOG_BLOCK_BYTES) * LOG_BLOCK_BYTES - from,
                    Form::Segments => size - from,
                };
                assert!(taken <= bytes + step, "round {round}: takes {taken}");
            }
            if random.below(20) == 0 {
                // Room is wanted for others.
                let keep = random.below(1 << 24) as u64;
                let begins = kept.trimmed(form, size, from, Some(keep));
                assert!(
                    begins >= from && size - begins >= keep.max(LOG_BLOCK_BYTES).min(size - from)
                );
                from = begins;
            }
            assert!(from % LOG_BLOCK_BYTES == 0 && from <= size);
            assert!(form == Form::Holes || from % step == 0, "round {round}: a part of a segment");
        }
    }
}
