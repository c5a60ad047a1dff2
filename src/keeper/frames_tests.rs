//! Tests of the formats: what is written is read back, wherever the pipe cuts it.

use super::*;
use crate::pure::tests_random::Random;

/// A frame with its bytes owned; neighbouring pieces of one session's data are joined.
#[derive(Debug, PartialEq)]
enum Owned {
    Data(u64, Source, Vec<u8>),
    Other(Frame<'static>),
}

fn sample(random: &mut Random) -> (Vec<u8>, Vec<Owned>) {
    let (mut out, mut expected) = (Vec::new(), Vec::new());
    for n in 0..40 {
        let session = random.below(3) as u64 + (u64::MAX - 3);
        let name = format!("execd-{n}-0123abcd.log");
        let other = match random.below(9) {
            0 => {
                push_open(&mut out, session, &name);
                Frame::Open { session, name }
            }
            1 => {
                let (total, errors_total) = (1 << 40, 1 << 39);
                let truncated = n % 2 == 0;
                let (from, from_output) = (1 << 38, 1 << 37);
                let log =
                    Reopen { name, total, errors_total, noted: n, from, from_output, truncated };
                push_reopen(&mut out, session, &log);
                Frame::Reopen { session, log }
            }
            2 => {
                push_sync(&mut out, session, n);
                Frame::Sync { session, token: n }
            }
            3 => {
                push_close(&mut out, session);
                Frame::Close { session }
            }
            4 => {
                let only = [None, Some(Source::Output), Some(Source::Errors)][random.below(3)];
                let total = (n % 3 > 0).then_some(1 << n);
                let (from, to, max_bytes) = (-1 << n, u64::MAX - n, 1 << n);
                let wanted = Wanted { only, from, to, max_bytes, total };
                let asked = ReadRange { token: n, wanted, name };
                push_read_range(&mut out, &asked);
                Frame::ReadRange(asked)
            }
            8 => {
                let line = format!(r#"{{"session_id":{n}}}"#).into_bytes();
                push_facts(&mut out, session, &line);
                Frame::Facts { session, line }
            }
            kind => {
                let len = if kind == 5 { random.below(50) } else { 5_000 };
                let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
                let source = [Source::Output, Source::Errors][random.below(2)];
                push_data_header(&mut out, session, source, len);
                out.extend_from_slice(&bytes);
                push_piece(&mut expected, (session, source), &bytes);
                continue;
            }
        };
        expected.push(Owned::Other(other));
    }
    (out, expected)
}

fn push_piece(list: &mut Vec<Owned>, of: (u64, Source), bytes: &[u8]) {
    match list.last_mut() {
        _ if bytes.is_empty() => {}
        Some(Owned::Data(session, source, all)) if (*session, *source) == of => {
            all.extend_from_slice(bytes);
        }
        _ => list.push(Owned::Data(of.0, of.1, bytes.to_vec())),
    }
}

fn decode(chunks: &mut dyn Iterator<Item = &[u8]>) -> Result<Vec<Owned>, Nonsense> {
    let (mut decoder, mut found) = (FrameDecoder::default(), Vec::new());
    for mut chunk in chunks {
        while let Some(frame) = decoder.next(&mut chunk)? {
            let mut other = |frame| found.push(Owned::Other(frame));
            match frame {
                Frame::Data { session, source, bytes } => {
                    push_piece(&mut found, (session, source), bytes);
                }
                Frame::Open { session, name } => other(Frame::Open { session, name }),
                Frame::Reopen { session, log } => other(Frame::Reopen { session, log }),
                Frame::Sync { session, token } => other(Frame::Sync { session, token }),
                Frame::ReadRange(asked) => other(Frame::ReadRange(asked)),
                Frame::Facts { session, line } => other(Frame::Facts { session, line }),
                Frame::Close { session } => other(Frame::Close { session }),
            }
        }
        assert!(chunk.is_empty());
    }
    Ok(found)
}

#[test]
fn frames_survive_any_cutting() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..70 {
        let (bytes, expected) = sample(&mut random);
        let longest = [2, 40, 100_000][random.below(3)];
        let (mut rest, mut chunks) = (bytes.as_slice(), Vec::new());
        while !rest.is_empty() {
            let (head, tail) = rest.split_at((1 + random.below(longest)).min(rest.len()));
            chunks.push(head);
            rest = tail;
        }
        assert_eq!(decode(&mut chunks.into_iter()).unwrap(), expected);
    }
}

#[test]
fn data_that_is_cut_off_by_the_end_is_not_lost() {
    let mut out = Vec::new();
    push_data_header(&mut out, 7, Source::Errors, 100);
    out.extend_from_slice(b"only this");
    let found = decode(&mut std::iter::once(out.as_slice())).unwrap();
    assert_eq!(found, [Owned::Data(7, Source::Errors, b"only this".to_vec())]);
}

#[test]
fn frames_that_make_no_sense_are_refused() {
    let header = |kind: u8, zero: u8, len: u32| {
        let stream = u8::from(kind == DATA);
        [&[kind, stream, zero, 0][..], &len.to_le_bytes(), &[0; 8]].concat()
    };
    let too_long = u32::try_from(LOG_FRAME_BYTES).unwrap() + 1;
    let bad = [
        header(0, 0, 0),
        header(7, 0, 24),
        header(READ_RANGE, 0, 40),
        header(READ_RANGE, 0, 40 + 256),
        header(255, 0, 0),
        header(DATA, 1, 0),
        header(DATA, 0, too_long),
        header(SYNC, 0, 7),
        header(OPEN, 0, 0),
        header(OPEN, 0, 256),
        [&[DATA, 0, 0, 0][..], &[0; 12]].concat(),
        [&[DATA, 3, 0, 0][..], &[0; 12]].concat(),
        [&[SYNC, 1, 0, 0, 8, 0, 0, 0][..], &[0; 16]].concat(),
        header(REOPEN, 0, 48),
        header(REOPEN, 0, 304),
    ];
    for bytes in bad {
        assert!(decode(&mut std::iter::once(bytes.as_slice())).is_err(), "{bytes:?}");
    }
    for name in [".", "..", "a/b", "/", "a\0b"] {
        let mut out = Vec::new();
        push_open(&mut out, 1, name);
        assert!(decode(&mut std::iter::once(out.as_slice())).is_err(), "{name:?}");
    }
}

/// rule: architecture.md, Bounds: No panics on input
#[test]
fn random_bytes_never_panic() {
    let mut random = Random(42);
    for _ in 0..7_000 {
        let mut bytes: Vec<u8> = (0..64).map(|_| random.below(256) as u8).collect();
        // Mostly plausible headers, or nothing would get past the first byte.
        bytes[0] = random.below(11) as u8;
        bytes[1..4].fill(0);
        bytes[5..8].fill(0);
        let _ = decode(&mut bytes.chunks(1 + random.below(20)));
        let _ = GuardDecoder::default().next(&mut bytes.as_slice());
        let _ = AckDecoder::default().next(&mut bytes.as_slice());
    }
}

#[test]
fn acks_survive_any_cutting() {
    let kinds = [
        AckKind::Opened,
        AckKind::Synced,
        AckKind::Trouble,
        AckKind::Recovered,
        AckKind::Truncated,
        AckKind::Trimmed,
    ];
    let ack = |n: usize| Ack {
        kind: kinds[n % kinds.len()],
        session: u64::MAX - n as u64,
        token: 2,
        logged: 1 << 50,
        missing: 4,
        noted: 5,
        from: 1 << 49,
        from_output: 6,
        errno: -28,
        space: n % 4 == 1,
        named: n % 5 == 2,
        truncated: n.is_multiple_of(2),
        failing: n.is_multiple_of(3),
    };
    let acks: Vec<Ack> = (0..30).map(ack).collect();
    let bytes: Vec<u8> = acks.iter().flat_map(Ack::encode).collect();
    assert_eq!(bytes.len(), acks.len() * ACK_BYTES);
    for size in [1, 7, 63, 64, 65, 1000, bytes.len()] {
        let (mut decoder, mut found) = (AckDecoder::default(), Vec::new());
        for mut chunk in bytes.chunks(size) {
            while let Some(ack) = decoder.next(&mut chunk).unwrap() {
                found.push(ack);
            }
        }
        assert_eq!(found, acks);
    }
    assert!(Ack::decode(&[0; ACK_BYTES]).is_err());
}

#[test]
fn guard_records_survive_any_cutting() {
    let record = GuardRecord {
        sid: 12_345,
        start_ticks: u64::MAX,
        session: 9,
        whole: true,
        ends_itself: false,
    };
    let mut bytes = Vec::new();
    push_guard_add(&mut bytes, record);
    push_guard_remove(&mut bytes, 12_345);
    push_guard_goodbye(&mut bytes);
    assert_eq!(bytes.len(), 3 * GUARD_RECORD_BYTES);
    for size in 1..bytes.len() {
        let (mut decoder, mut found) = (GuardDecoder::default(), Vec::new());
        for mut chunk in bytes.chunks(size) {
            while let Some(event) = decoder.next(&mut chunk).unwrap() {
                found.push(event);
            }
        }
        let expected = [GuardEvent::Add(record), GuardEvent::Remove(12_345), GuardEvent::Goodbye];
        assert_eq!(found, expected);
    }
    for sid in [i32::MIN, -1, 0, 1] {
        let mut bytes = Vec::new();
        push_guard_add(&mut bytes, GuardRecord { sid, ..record });
        assert!(GuardDecoder::default().next(&mut bytes.as_slice()).is_err(), "{sid}");
    }
}
