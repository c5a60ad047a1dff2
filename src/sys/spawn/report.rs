//! How far a child has got that does not share our memory, as it tells through a pipe: records of
//! a fixed size, then the end of the pipe, when exec has closed it.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::plan::{SpawnError, Step};
use crate::sys::io::{self, Io};

/// Bytes of a record: what it is, and a number.
const RECORD_BYTES: usize = 8;
/// The first halves of records that are no failed step.
const PREPARED: i32 = 0;
const TRIES: i32 = -1;
/// Records that are read at once.
const RECORDS_PER_READ: usize = 64;
/// Reads at one look: more records than a PATH may have places (128 KiB, execve(2)).
const LOOKS: usize = 2_048;

/// A word of a child on its way to exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The child leads its session, and goes on to what may hang.
    Prepared,
    /// The child tries the program of this number.
    Tries(i32),
    /// The child could not be started.
    Failed(SpawnError),
}

/// What has become of a child when the call returns.
#[derive(Debug)]
pub enum Began {
    /// The child runs the program of this number.
    Runs(usize),
    /// The child is on its way there.
    Starting(Starting),
}

/// A child that was left on its way to exec.
#[derive(Debug)]
pub struct Starting {
    report: OwnedFd,
    tried: usize,
    prepared: bool,
}

/// Sends a word. Async-signal-safe.
pub(super) fn send(fd: RawFd, report: Report) {
    let (what, number) = match report {
        Report::Prepared => (PREPARED, 0),
        Report::Tries(number) => (TRIES, number),
        Report::Failed(SpawnError { step, errno }) => (step.code(), errno),
    };
    let mut record = [0; RECORD_BYTES];
    let bytes = what.to_ne_bytes().into_iter().chain(number.to_ne_bytes());
    record.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
    io::write(fd, &record);
}

fn report_of(record: &[u8]) -> Report {
    let half = |at: usize| {
        let mut bytes = [0; 4];
        bytes.iter_mut().zip(&record[at..]).for_each(|(place, byte)| *place = *byte);
        i32::from_ne_bytes(bytes)
    };
    match half(0) {
        PREPARED => Report::Prepared,
        TRIES => Report::Tries(half(4)),
        code => Report::Failed(SpawnError { step: Step::from_code(code), errno: half(4) }),
    }
}

impl Starting {
    /// Of a child that writes into the other end of this pipe, which blocks.
    pub(super) fn new(report: OwnedFd) -> Self {
        Self { report, tried: 0, prepared: false }
    }

    /// What has become of the child when the call that started it returns: what came of it in the
    /// end, or with `apart` that it is on its way.
    pub(super) fn outcome(mut self, apart: bool) -> Result<Began, SpawnError> {
        // What comes behind the word that it is on its way is left to `look`.
        let records = if apart { 1 } else { RECORDS_PER_READ };
        loop {
            match self.take(records) {
                Taken::Failed(failure) => return Err(failure),
                Taken::Some if apart && self.prepared => {
                    // Of a pipe, with nothing but numbers: this cannot fail.
                    let _ = io::set_nonblocking(self.fd());
                    return Ok(Began::Starting(self));
                }
                Taken::Some => {}
                // A child that was killed on its way tells so by its end.
                Taken::Nothing | Taken::Ended => return Ok(Began::Runs(self.tried)),
            }
        }
    }

    /// The descriptor, for the poll.
    pub fn fd(&self) -> RawFd {
        self.report.as_raw_fd()
    }

    /// What has come of it: the number of the program that it runs, or why it could not be
    /// started; `None` while it is on its way.
    pub fn look(&mut self) -> Option<Result<usize, SpawnError>> {
        for _ in 0..LOOKS {
            match self.take(RECORDS_PER_READ) {
                Taken::Failed(failure) => return Some(Err(failure)),
                Taken::Some => {}
                Taken::Nothing => return None,
                Taken::Ended => return Some(Ok(self.tried)),
            }
        }
        None
    }

    /// Takes in what has come, so many records at most.
    fn take(&mut self, most: usize) -> Taken {
        let mut records = [0; RECORD_BYTES * RECORDS_PER_READ];
        let room = &mut records[..RECORD_BYTES * most.min(RECORDS_PER_READ)];
        let bytes = match io::read(self.report.as_raw_fd(), room) {
            Io::Moved(bytes) => bytes,
            Io::WouldBlock => return Taken::Nothing,
            _ => return Taken::Ended,
        };
        // A record is written whole, and the buffer has room for whole ones only.
        for record in records[..bytes].chunks_exact(RECORD_BYTES) {
            match report_of(record) {
                Report::Prepared => self.prepared = true,
                Report::Tries(number) => self.tried = usize::try_from(number).unwrap_or(0),
                Report::Failed(failure) => return Taken::Failed(failure),
            }
        }
        Taken::Some
    }
}

/// What one read of the pipe gave.
enum Taken {
    Some,
    Nothing,
    Ended,
    Failed(SpawnError),
}
