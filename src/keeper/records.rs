//! Records of fixed size: the keeper's acknowledgements and the guard's table (layouts and
//! the books they keep: frames.rs). Bytes in, values out, no I/O.

use crate::limits::LOG_RANGE_ANSWER_BYTES;

/// Bytes of one acknowledgement; below PIPE_BUF, so a record is never cut by another writer.
pub const ACK_BYTES: usize = 64;
/// Bytes of what is said of a range, in front of its bytes (range.rs).
pub const RANGE_HEAD_BYTES: usize = 48;
/// Bytes of one guard record.
pub const GUARD_RECORD_BYTES: usize = 32;

pub(super) const FLAG_TRUNCATED: u8 = 1;
const FLAG_FAILING: u8 = 2;
const FLAG_SPACE: u8 = 4;
const FLAG_NAMED: u8 = 8;

const GUARD_ADD: u8 = 1;
const GUARD_REMOVE: u8 = 2;
const GUARD_GOODBYE: u8 = 3;
/// Most bytes behind an acknowledgement: those of a range and its head.
const BEHIND_MAX_BYTES: u64 = LOG_RANGE_ANSWER_BYTES + RANGE_HEAD_BYTES as u64;

/// In an added record: see [`GuardRecord`].
const FLAG_WHOLE: u8 = 1;
const FLAG_ENDS_ITSELF: u8 = 2;

/// The bytes are not in the format above; holds what is wrong with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonsense(pub &'static str);

/// Why an acknowledgement was sent. Each carries the whole state, whatever its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckKind {
    /// Answers Open and Reopen. After Open there is a file unless `failing` is set.
    Opened = 1,
    /// Answers Sync; carries its token.
    Synced = 2,
    /// Writing began to fail, or fails for another reason than before.
    Trouble = 3,
    /// Writing works again, and the log says how many bytes it lacks.
    Recovered = 4,
    /// The log has ended at a limit; what comes later is counted as missing and dropped.
    Truncated = 5,
    /// Which directory logs go to, once, before all else: its path follows this record, and where
    /// people are to be told something of it, a NUL and that. With `failing` there is none, and
    /// the reason follows. `missing` is how many bytes that are.
    Place = 7,
    /// The log has lost its oldest bytes to its bound.
    Trimmed = 8,
    /// Answers ReadRange; carries its token. `missing` is how many bytes follow: a head and what
    /// was read.
    Range = 9,
}

impl AckKind {
    /// Whether bytes follow the record, `missing` of them.
    fn has_bytes(self) -> bool {
        matches!(self, Self::Place | Self::Range)
    }
}

/// One record of the ack pipe: the state of a session's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// Why it was sent.
    pub kind: AckKind,
    /// Whose log.
    pub session: u64,
    /// The token of Sync, else 0.
    pub token: u64,
    /// Bytes of the stream that are in the file.
    pub logged: u64,
    /// Bytes of the stream that were handed over and are not in the file.
    pub missing: u64,
    /// Bytes in the file that are the keeper's own notes.
    pub noted: u64,
    /// The file's first byte that is kept: what is before it has been given back to the disk.
    pub from: u64,
    /// The first byte of the output that is kept.
    pub from_output: u64,
    /// errno of the latest failure since this keeper opened the log, 0 if there was none. Of a
    /// range it is negative where it says what stands in the place of the log (`LogDir::check`).
    pub errno: i32,
    /// The log has ended at a limit, or stands still for want of space.
    pub truncated: bool,
    /// The log stands still for want of space, and goes on when there is some.
    pub space: bool,
    /// A file of its name is there.
    pub named: bool,
    /// The latest write or open failed.
    pub failing: bool,
}

/// A session's leader, as the guard must know it to end the session's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardRecord {
    /// The kernel's session id: the leader's pid.
    pub sid: i32,
    /// When the leader started, in clock ticks since boot.
    pub start_ticks: u64,
    /// execd's id of the session, for people who read a trace.
    pub session: u64,
    /// Whether its end is the end of all that descends from it.
    pub whole: bool,
    /// Whether its leader ends it by itself when execd is gone, and is left some time for that.
    pub ends_itself: bool,
}

impl GuardRecord {
    fn flags(self) -> u8 {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        flag(self.whole, FLAG_WHOLE) | flag(self.ends_itself, FLAG_ENDS_ITSELF)
    }
}

/// One record of the guard pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardEvent {
    /// This session is alive.
    Add(GuardRecord),
    /// Nothing of the session with this sid is left.
    Remove(i32),
    /// execd is about to end in good order.
    Goodbye,
}

/// Appends the record of a new session to `out`.
pub fn push_guard_add(out: &mut Vec<u8>, record: GuardRecord) {
    push_guard(out, GUARD_ADD, record);
}

/// The bytes of such a record around the sid, which is the second four of them: for a leader
/// that writes the record about itself, whose `sid` is not known yet.
pub fn guard_add_around_sid(record: GuardRecord) -> ([u8; 4], [u8; 24]) {
    let mut tail = [0; 24];
    tail[..8].copy_from_slice(&record.start_ticks.to_le_bytes());
    tail[8..16].copy_from_slice(&record.session.to_le_bytes());
    ([GUARD_ADD, record.flags(), 0, 0], tail)
}

/// Appends to `out` that nothing of the session `sid` is left.
pub fn push_guard_remove(out: &mut Vec<u8>, sid: i32) {
    push_guard(out, GUARD_REMOVE, GuardRecord { sid, ..NOBODY });
}

/// Appends to `out` that execd is about to end in good order.
pub fn push_guard_goodbye(out: &mut Vec<u8>) {
    push_guard(out, GUARD_GOODBYE, NOBODY);
}

const NOBODY: GuardRecord =
    GuardRecord { sid: 0, start_ticks: 0, session: 0, whole: false, ends_itself: false };

fn push_guard(out: &mut Vec<u8>, kind: u8, record: GuardRecord) {
    out.extend_from_slice(&[kind, record.flags(), 0, 0]);
    out.extend_from_slice(&record.sid.to_le_bytes());
    out.extend_from_slice(&record.start_ticks.to_le_bytes());
    out.extend_from_slice(&record.session.to_le_bytes());
    out.extend_from_slice(&[0; 8]);
}

impl Ack {
    /// An acknowledgement of this kind that tells nothing else.
    pub const fn of(kind: AckKind) -> Self {
        let (session, token, logged, missing, noted, errno) = (0, 0, 0, 0, 0, 0);
        let (from, from_output) = (0, 0);
        let (truncated, space, named, failing) = (false, false, false, false);
        Self {
            kind,
            session,
            token,
            logged,
            missing,
            noted,
            from,
            from_output,
            errno,
            truncated,
            space,
            named,
            failing,
        }
    }

    /// The record's bytes.
    pub fn encode(&self) -> [u8; ACK_BYTES] {
        let flags = if self.truncated { FLAG_TRUNCATED } else { 0 }
            | if self.failing { FLAG_FAILING } else { 0 }
            | if self.space { FLAG_SPACE } else { 0 }
            | if self.named { FLAG_NAMED } else { 0 };
        let mut out = [0; ACK_BYTES];
        out[0] = self.kind as u8;
        out[1] = flags;
        out[4..8].copy_from_slice(&self.errno.to_le_bytes());
        let books = [self.logged, self.missing, self.noted, self.from, self.from_output];
        let numbers = [self.session, self.token].into_iter().chain(books);
        for (place, number) in out[8..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        out
    }

    /// Reads a record. Errors: an unknown kind or flag.
    pub fn decode(bytes: &[u8; ACK_BYTES]) -> Result<Ack, Nonsense> {
        let mut rest = bytes.as_slice();
        let [kind, flags, zeros @ ..] = take::<4>(&mut rest)?;
        let kind = match kind {
            1 => AckKind::Opened,
            2 => AckKind::Synced,
            3 => AckKind::Trouble,
            4 => AckKind::Recovered,
            5 => AckKind::Truncated,
            7 => AckKind::Place,
            8 => AckKind::Trimmed,
            9 => AckKind::Range,
            _ => return Err(Nonsense("an ack of an unknown kind")),
        };
        if zeros != [0, 0]
            || flags & !(FLAG_TRUNCATED | FLAG_FAILING | FLAG_SPACE | FLAG_NAMED) != 0
        {
            return Err(Nonsense("an ack with unknown flags"));
        }
        Ok(Ack {
            kind,
            errno: i32::from_le_bytes(take(&mut rest)?),
            session: take_u64(&mut rest)?,
            token: take_u64(&mut rest)?,
            logged: take_u64(&mut rest)?,
            missing: take_u64(&mut rest)?,
            noted: take_u64(&mut rest)?,
            from: take_u64(&mut rest)?,
            from_output: take_u64(&mut rest)?,
            truncated: flags & FLAG_TRUNCATED != 0,
            failing: flags & FLAG_FAILING != 0,
            space: flags & FLAG_SPACE != 0,
            named: flags & FLAG_NAMED != 0,
        })
    }
}

pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Nonsense> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or(Nonsense("a record is too short"))?;
    *rest = tail;
    Ok(*head)
}

pub(super) fn take_u64(rest: &mut &[u8]) -> Result<u64, Nonsense> {
    take(rest).map(u64::from_le_bytes)
}

/// Splits at most `most` bytes off the front of `input`.
pub(super) fn take_up_to<'a>(input: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (head, tail) = input.split_at(most.min(input.len()));
    *input = tail;
    head
}

/// Gathers a record of fixed size from reads that cut it anywhere.
#[derive(Debug)]
pub(super) struct Gather<const N: usize> {
    bytes: [u8; N],
    /// How many are there; below N between calls.
    have: usize,
}

impl<const N: usize> Default for Gather<N> {
    fn default() -> Self {
        Self { bytes: [0; N], have: 0 }
    }
}

impl<const N: usize> Gather<N> {
    /// The next record, taken off the front of `input`; None when `input` is used up.
    pub(super) fn take(&mut self, input: &mut &[u8]) -> Option<[u8; N]> {
        let free = self.bytes.iter_mut().skip(self.have);
        let now = take_up_to(input, free.len());
        free.zip(now).for_each(|(place, byte)| *place = *byte);
        self.have += now.len();
        if self.have < N {
            return None;
        }
        self.have = 0;
        Some(self.bytes)
    }
}

/// Takes acknowledgements out of the bytes of the ack pipe, however reads cut them.
#[derive(Debug, Default)]
pub struct AckDecoder {
    record: Gather<ACK_BYTES>,
    /// Bytes behind the latest record that are still to come.
    left: usize,
}

impl AckDecoder {
    /// The next record, taken off the front of `input`; None when `input` is used up. Behind a
    /// Range or Place its bytes have to be taken first, by [`Self::behind`]. Errors: an unknown
    /// kind or flag, more bytes than are ever asked for.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Ack>, Nonsense> {
        let ack = self.record.take(input).map(|bytes| Ack::decode(&bytes)).transpose()?;
        if let Some(ack) = ack.filter(|ack| ack.kind.has_bytes()) {
            if ack.missing > BEHIND_MAX_BYTES {
                return Err(Nonsense("a record has too many bytes behind it"));
            }
            self.left = usize::try_from(ack.missing).unwrap_or(0);
        }
        Ok(ack)
    }

    /// What `input` has of the bytes behind the latest record.
    pub fn behind<'a>(&mut self, input: &mut &'a [u8]) -> &'a [u8] {
        let bytes = take_up_to(input, self.left);
        self.left -= bytes.len();
        bytes
    }

    /// Whether bytes behind the latest record are still to come.
    pub fn is_behind(&self) -> bool {
        self.left > 0
    }
}

/// Takes guard records out of the bytes of the guard pipe, however reads cut them.
#[derive(Debug, Default)]
pub struct GuardDecoder(Gather<GUARD_RECORD_BYTES>);

impl GuardDecoder {
    /// The next record, taken off the front of `input`; None when `input` is used up.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<GuardEvent>, Nonsense> {
        self.0.take(input).map(|bytes| GuardEvent::decode(&bytes)).transpose()
    }
}

impl GuardEvent {
    /// Reads a record. Errors: an unknown kind, flag or sid.
    pub fn decode(bytes: &[u8; GUARD_RECORD_BYTES]) -> Result<GuardEvent, Nonsense> {
        let mut rest = bytes.as_slice();
        let [kind, flags, zeros @ ..] = take::<4>(&mut rest)?;
        let sid = i32::from_le_bytes(take(&mut rest)?);
        let record = GuardRecord {
            sid,
            start_ticks: take_u64(&mut rest)?,
            session: take_u64(&mut rest)?,
            whole: flags & FLAG_WHOLE != 0,
            ends_itself: flags & FLAG_ENDS_ITSELF != 0,
        };
        match kind {
            _ if zeros != [0, 0] => Err(Nonsense("a guard record's padding is not zero")),
            _ if flags & !(FLAG_WHOLE | FLAG_ENDS_ITSELF) != 0 => {
                Err(Nonsense("a guard record with unknown flags"))
            }
            // 0 and 1 are no sessions of ours; an entry for them would make the guard a danger.
            GUARD_ADD if sid > 1 => Ok(GuardEvent::Add(record)),
            GUARD_REMOVE if sid > 1 => Ok(GuardEvent::Remove(sid)),
            GUARD_GOODBYE => Ok(GuardEvent::Goodbye),
            _ => Err(Nonsense("a guard record of an unknown kind or sid")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_writes_the_same_record_about_itself() {
        for (whole, ends_itself) in [(false, false), (true, false), (true, true)] {
            let (sid, start_ticks, session) = (0x0102_0304, 77, 9);
            let record = GuardRecord { sid, start_ticks, session, whole, ends_itself };
            let mut expected = Vec::new();
            push_guard_add(&mut expected, record);
            let (head, tail) = guard_add_around_sid(record);
            assert_eq!([&head[..], &record.sid.to_le_bytes(), &tail].concat(), expected);
            let read = GuardDecoder::default().next(&mut expected.as_slice());
            assert_eq!(read, Ok(Some(GuardEvent::Add(record))));
        }
    }
}
