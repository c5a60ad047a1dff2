//! Reading a child's output, a bounded piece at a time (architecture.md, A session).

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;

use crate::limits::FLOOD_READ_BYTES;
use crate::pure::process::life::Fact;
use crate::sys::io::{self, NOTHING_NOW, TERMINAL_CLOSED};

pub use crate::pure::buffer::source::Source;

/// The reading end of a child's output: a pipe's or a PTY's master.
#[derive(Debug)]
pub struct Output {
    fd: Option<Rc<OwnedFd>>,
    tty: bool,
    /// An event said that there is something; cleared by WouldBlock only (edge-triggered).
    pub ready: bool,
    /// The session is in the engine's queue of sessions to read.
    pub queued: bool,
    /// The causes for which the output is not read now.
    held: [bool; Hold::ALL.len()],
    /// What comes is read and dropped: the session was ended, its holder left alone.
    pub dropped: bool,
    /// The last read filled the buffer: a pipe in flood, whose pages are worth passing on whole.
    pub flooding: bool,
    /// Reads that failed, one after the other.
    pub failures: usize,
    /// How much a raised pipe counts against the limit of all raised pipes.
    pub pipe_bytes: usize,
}

/// Why output is not read although there is some. Each cause is ended by its own event alone: an
/// acknowledgement of the log says nothing about a slow reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The log's queue is full.
    Log,
    /// Whoever reads the output has much that is unsent.
    Reader,
}

impl Hold {
    const ALL: [Self; 2] = [Self::Log, Self::Reader];
}

/// What one read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// So many bytes are in the buffer.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The stream has changed: end of file or hang-up.
    Changed(Fact),
    /// The stream could not be read: that is no end of it, and nothing was read.
    Failed(i32),
}

impl Output {
    /// Output from `fd`, a PTY's master when `tty`.
    pub fn new(fd: Rc<OwnedFd>, tty: bool, pipe_bytes: usize) -> Self {
        Self {
            fd: Some(fd),
            tty,
            ready: false,
            queued: false,
            held: [false; Hold::ALL.len()],
            dropped: false,
            flooding: false,
            failures: 0,
            pipe_bytes,
        }
    }

    /// The descriptor while it is open.
    pub fn fd(&self) -> Option<RawFd> {
        self.fd.as_ref().map(|fd| fd.as_raw_fd())
    }

    /// Stops reading the output for this cause.
    pub fn hold(&mut self, cause: Hold) {
        self.held[cause as usize] = true;
    }

    /// This cause is over; others may still hold the output up.
    pub fn release(&mut self, cause: Hold) {
        self.held[cause as usize] = false;
    }

    /// Whether the output is not read for this cause.
    pub fn is_held_for(&self, cause: Hold) -> bool {
        self.held[cause as usize]
    }

    /// Whether the output is not read, for whatever cause.
    pub fn is_held(&self) -> bool {
        Hold::ALL.into_iter().any(|cause| self.is_held_for(cause))
    }

    /// Closes the descriptor: the stream has ended for good.
    pub fn close(&mut self) {
        self.fd = None;
        self.ready = false;
    }

    /// Reads one piece. A short read does not mean drained: only [`Piece::Nothing`]
    /// does, and it clears `ready`, as does a change.
    pub fn read(&mut self, buffer: &mut [u8]) -> Piece {
        let Some(fd) = self.fd() else {
            self.ready = false;
            return Piece::Nothing;
        };
        let piece = match io::read_or_errno(fd, buffer) {
            Ok(bytes @ 1..) => {
                self.failures = 0;
                // The pages of a flood are passed on unseen.
                self.flooding = !self.tty && bytes >= FLOOD_READ_BYTES;
                return Piece::Bytes(bytes);
            }
            Err(errno) if NOTHING_NOW.contains(&errno) => Piece::Nothing,
            Err(errno) if !(self.tty && errno == TERMINAL_CLOSED) => {
                // The stream stays ready: it is tried again in the next turn.
                self.failures += 1;
                return Piece::Failed(errno);
            }
            // A PTY's master says EIO while no slave is open, and may go on later.
            _ if self.tty => Piece::Changed(Fact::TtyHangUp),
            _ => Piece::Changed(Fact::PipeEof),
        };
        self.ready = false;
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There was one flag for both causes: an acknowledgement of the log released a run of pi
    /// whose reader was slow, and restarted the clock by which a stuck run is ended.
    /// rule: architecture.md, The keeper: Reading that is held up for two causes goes on when both
    ///   are over
    #[test]
    fn the_end_of_one_cause_does_not_release_what_is_held_for_another() {
        let (out, _into) = io::pipe().unwrap();
        let mut output = Output::new(Rc::new(out), false, 0);
        output.hold(Hold::Reader);
        output.hold(Hold::Log);
        output.release(Hold::Log);
        assert!(output.is_held() && !output.is_held_for(Hold::Log));
        output.release(Hold::Reader);
        assert!(!output.is_held());
    }
}
