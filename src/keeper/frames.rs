//! The formats spoken between execd and its keeper: bytes in, values out, no I/O.
//!
//! All integers are little-endian. Three pipes, each with records of its own:
//!
//! **Log pipe** (execd to the log writer): frames of a 16-byte header and a payload of at most
//! `LOG_FRAME_BYTES`. Header: kind u8, stream u8, two zero bytes, payload length u32, session u64.
//! The stream is 0 in frames that are of none, 1 for stdout (and for both on one pipe), 2 for
//! stderr.
//!
//! | kind | payload |
//! |---|---|
//! | 1 Open | the file's name |
//! | 2 Reopen | total u64, stderr's u64, noted u64, from u64, from_output u64, flags u32 |
//! | | (1 = truncated), zero u32, name |
//! | 3 Data | bytes of the stream that the header names |
//! | 4 Sync | token u64 |
//! | 5 Close | none |
//! | 9 ReadRange | token u64, from i64 (negative: from the end), to u64, most bytes u64, total u64
//! | | (all ones: unknown), the file's name; of the stream that the header names, of both with 0 |
//! | 10 Facts | what is known of the session, one line of JSON (meta.rs) |
//!
//! **Ack pipe** (log writer to execd): records of 64 bytes: kind u8, flags u8 (1 = truncated,
//! 2 = failing, 4 = for want of space, 8 = there is a file), two zero bytes, errno i32, session
//! u64, token u64, logged u64, missing u64, noted u64, from u64, from_output u64. Behind a Place
//! record comes a path or reason, behind a Range record a head of six u64 (from, to, the gap's two
//! ends, first byte in the log, total) and the bytes.
//!
//! **Guard pipe** (execd to the guard): records of 32 bytes: kind u8 (1 add, 2 remove,
//! 3 goodbye), flags u8 (1 = a run of pi), two zero bytes, sid i32, start ticks u64, session u64,
//! zero u64.
//!
//! **The books.** A log holds `logged` bytes of the stream and `noted` bytes that the keeper wrote
//! into it about itself, so its size is `logged + noted`. Of these bytes the first `from` have been
//! given back to the disk: they count as logged (or noted) all the same, and no place in the file
//! changes. `from_output` is the first byte of the output that is kept. Every byte handed over is
//! either logged or missing. Whenever `noted` changes an ack says so at once; execd keeps the
//! latest ack of each session and gives `noted`, `from` and `from_output` back in Reopen, so that a
//! new keeper can tell from the size of the file alone how much of the stream is in it, after any
//! number of restarts. (A keeper killed between writing a note and acknowledging it makes the next
//! count too small by the length of that one note.)

use super::range::READ_RANGE_FIXED_BYTES;
pub use super::range::{Head, ReadRange, Wanted};
pub use super::records::{
    ACK_BYTES, Ack, AckDecoder, AckKind, GUARD_RECORD_BYTES, GuardDecoder, GuardEvent, GuardRecord,
    Nonsense, RANGE_HEAD_BYTES, guard_add_around_sid, push_guard_add, push_guard_goodbye,
    push_guard_remove,
};
use super::records::{FLAG_TRUNCATED, Gather, take, take_u64, take_up_to};
use crate::limits::{LOG_FACTS_BYTES, LOG_FRAME_BYTES};
use crate::pure::buffer::source::Source;

/// Longest name of a log file: NAME_MAX, see pathconf(3).
const LOG_NAME_BYTES: usize = 255;

/// Bytes of a frame's header.
pub const FRAME_HEADER_BYTES: usize = 16;
const OPEN: u8 = 1;
const REOPEN: u8 = 2;
const DATA: u8 = 3;
const SYNC: u8 = 4;
const CLOSE: u8 = 5;
const READ_RANGE: u8 = 9;
const FACTS: u8 = 10;

/// Bytes of Reopen's payload before the name.
const REOPEN_FIXED_BYTES: usize = 48;

/// One frame of the log pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Create this new log.
    Open {
        /// Whose log.
        session: u64,
        /// The file's name inside the log directory.
        name: String,
    },
    /// Go on with a log that an earlier keeper wrote.
    Reopen {
        /// Whose log.
        session: u64,
        /// What execd knows about it.
        log: Reopen,
    },
    /// Bytes of the stream. A frame may come in several pieces, as the pipe cuts it.
    Data {
        /// Whose bytes.
        session: u64,
        /// Of which of its streams.
        source: Source,
        /// At least one byte.
        bytes: &'a [u8],
    },
    /// Say when all that came before has been dealt with.
    Sync {
        /// Whose log.
        session: u64,
        /// Comes back in the acknowledgement.
        token: u64,
    },
    /// Send a part of a session's output back.
    ReadRange(ReadRange),
    /// What is known of the session, for the file beside its log.
    Facts {
        /// Whose log.
        session: u64,
        /// JSON text of an object, without a newline.
        line: Vec<u8>,
    },
    /// Nothing more will come for this log.
    Close {
        /// Whose log.
        session: u64,
    },
}

/// What a new keeper is told about a log that exists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reopen {
    /// The file's name inside the log directory.
    pub name: String,
    /// Stream bytes that execd has handed over or counted as missing until now.
    pub total: u64,
    /// The bytes of `total` that are stderr's, where stderr is apart.
    pub errors_total: u64,
    /// `noted` of the latest acknowledgement of this session, else 0.
    pub noted: u64,
    /// `from` of that acknowledgement.
    pub from: u64,
    /// `from_output` of that acknowledgement.
    pub from_output: u64,
    /// Whether an acknowledgement said that the log has ended early.
    pub truncated: bool,
}

/// Appends Open to `out`. The name is that of a file, at most `LOG_NAME_BYTES` long.
pub fn push_open(out: &mut Vec<u8>, session: u64, name: &str) {
    push_header(out, (OPEN, None), session, name.len());
    out.extend_from_slice(name.as_bytes());
}

/// Appends Reopen to `out`.
pub fn push_reopen(out: &mut Vec<u8>, session: u64, log: &Reopen) {
    push_header(out, (REOPEN, None), session, REOPEN_FIXED_BYTES + log.name.len());
    out.extend_from_slice(&log.total.to_le_bytes());
    out.extend_from_slice(&log.errors_total.to_le_bytes());
    out.extend_from_slice(&log.noted.to_le_bytes());
    out.extend_from_slice(&log.from.to_le_bytes());
    out.extend_from_slice(&log.from_output.to_le_bytes());
    out.extend_from_slice(&u64::from(log.truncated).to_le_bytes());
    out.extend_from_slice(log.name.as_bytes());
}

/// Appends the header of Data to `out`; the caller appends `len` bytes, at most
/// `LOG_FRAME_BYTES`, behind it.
pub fn push_data_header(out: &mut Vec<u8>, session: u64, source: Source, len: usize) {
    push_header(out, (DATA, Some(source)), session, len);
}

/// Appends Sync to `out`.
pub fn push_sync(out: &mut Vec<u8>, session: u64, token: u64) {
    push_header(out, (SYNC, None), session, 8);
    out.extend_from_slice(&token.to_le_bytes());
}

/// Appends ReadRange to `out`.
pub fn push_read_range(out: &mut Vec<u8>, asked: &ReadRange) {
    let length = READ_RANGE_FIXED_BYTES + asked.name.len();
    push_header(out, (READ_RANGE, asked.wanted.only), 0, length);
    asked.push(out);
}

/// Appends Facts to `out`. The line has at most `LOG_FACTS_BYTES`.
pub fn push_facts(out: &mut Vec<u8>, session: u64, line: &[u8]) {
    push_header(out, (FACTS, None), session, line.len());
    out.extend_from_slice(line);
}

/// Appends Close to `out`.
pub fn push_close(out: &mut Vec<u8>, session: u64) {
    push_header(out, (CLOSE, None), session, 0);
}

fn push_header(out: &mut Vec<u8>, (kind, source): (u8, Option<Source>), session: u64, len: usize) {
    debug_assert!(len <= LOG_FRAME_BYTES, "a frame of {len} bytes");
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    let stream = match source {
        None => 0,
        Some(Source::Output) => 1,
        Some(Source::Errors) => 2,
    };
    out.extend_from_slice(&[kind, stream, 0, 0]);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&session.to_le_bytes());
}

#[derive(Debug, Clone, Copy)]
struct Header {
    kind: u8,
    source: Option<Source>,
    session: u64,
    /// Bytes of the payload that have not come yet.
    left: usize,
}

impl Header {
    fn parse(bytes: &[u8; FRAME_HEADER_BYTES]) -> Result<Header, Nonsense> {
        let mut rest = bytes.as_slice();
        let [kind, stream, zeros @ ..] = take::<4>(&mut rest)?;
        let source = match stream {
            0 => None,
            1 => Some(Source::Output),
            2 => Some(Source::Errors),
            _ => return Err(Nonsense("a frame of an unknown stream")),
        };
        let len = u32::from_le_bytes(take(&mut rest)?) as usize;
        let fits = match kind {
            OPEN => (1..=LOG_NAME_BYTES).contains(&len),
            REOPEN => (1..=LOG_NAME_BYTES).contains(&len.saturating_sub(REOPEN_FIXED_BYTES)),
            READ_RANGE => {
                (1..=LOG_NAME_BYTES).contains(&len.saturating_sub(READ_RANGE_FIXED_BYTES))
            }
            DATA => len <= LOG_FRAME_BYTES && source.is_some(),
            FACTS => (1..=LOG_FACTS_BYTES).contains(&len),
            SYNC => len == 8,
            CLOSE => len == 0,
            _ => return Err(Nonsense("a frame of an unknown kind")),
        };
        let of_none = source.is_none() || matches!(kind, DATA | READ_RANGE);
        if !fits || !of_none || zeros != [0, 0] {
            return Err(Nonsense("a frame's header is wrong"));
        }
        Ok(Header { kind, source, session: take_u64(&mut rest)?, left: len })
    }
}

/// Takes frames out of the bytes of the log pipe, however reads cut them.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    header: Gather<FRAME_HEADER_BYTES>,
    current: Option<Header>,
    /// What has come of a payload that is not Data; bounded by `Header::parse`.
    payload: Vec<u8>,
}

impl FrameDecoder {
    /// The next frame, taken off the front of `input`; None when `input` is used up. Data
    /// comes in pieces as it arrives, so that nothing is copied and nothing lost at the end.
    /// Errors: the stream makes no sense, and nothing after this can be trusted.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Frame<'a>>, Nonsense> {
        loop {
            let Some(header) = self.current.as_mut() else {
                let Some(bytes) = self.header.take(input) else { return Ok(None) };
                self.payload.clear();
                self.current = Some(Header::parse(&bytes)?);
                continue;
            };
            let bytes = take_up_to(input, header.left);
            header.left -= bytes.len();
            let header = *header;
            if header.left == 0 {
                self.current = None;
            }
            if let (DATA, Some(source), false) = (header.kind, header.source, bytes.is_empty()) {
                return Ok(Some(Frame::Data { session: header.session, source, bytes }));
            }
            if header.kind != DATA {
                self.payload.extend_from_slice(bytes);
                if header.left == 0 {
                    return control_frame(header, &self.payload).map(Some);
                }
            }
            if header.left > 0 {
                return Ok(None);
            }
        }
    }
}

fn control_frame(header: Header, payload: &[u8]) -> Result<Frame<'static>, Nonsense> {
    let session = header.session;
    let mut rest = payload;
    Ok(match header.kind {
        OPEN => Frame::Open { session, name: file_name(rest)? },
        REOPEN => {
            let total = take_u64(&mut rest)?;
            let errors_total = take_u64(&mut rest)?;
            let noted = take_u64(&mut rest)?;
            let from = take_u64(&mut rest)?;
            let from_output = take_u64(&mut rest)?;
            let flags = take_u64(&mut rest)?;
            if flags & !u64::from(FLAG_TRUNCATED) != 0 {
                return Err(Nonsense("a Reopen with unknown flags"));
            }
            let (truncated, name) = (flags != 0, file_name(rest)?);
            let log = Reopen { name, total, errors_total, noted, from, from_output, truncated };
            Frame::Reopen { session, log }
        }
        SYNC => Frame::Sync { session, token: take_u64(&mut rest)? },
        READ_RANGE => {
            let (token, wanted) = ReadRange::take(header.source, &mut rest)?;
            Frame::ReadRange(ReadRange { token, wanted, name: file_name(rest)? })
        }
        FACTS => Frame::Facts { session, line: rest.to_vec() },
        _ => Frame::Close { session },
    })
}

/// A name must stay inside the log directory, whoever sent it.
fn file_name(bytes: &[u8]) -> Result<String, Nonsense> {
    let inside = !bytes.iter().any(|byte| *byte == b'/' || *byte == 0);
    let real = bytes != b"." && bytes != b"..";
    match String::from_utf8(bytes.to_vec()) {
        Ok(name) if inside && real => Ok(name),
        _ => Err(Nonsense("a log's name is no file name")),
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
