//! A child's stdin: what is queued for it, and how it ends.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;

use crate::limits::STDIN_BACKLOG_BYTES;
use crate::pure::buffer::byte_queue::ByteQueue;
use crate::pure::terminal::line::TtyLine;
use crate::sys::io::{self, Io};
use crate::sys::pty;

/// Bytes written to one child's stdin in one turn.
const FEED_SESSION_TURN_BYTES: usize = 64 * 1024;

/// Where input goes.
#[derive(Debug)]
enum Way {
    /// A pipe of its own.
    Pipe(OwnedFd),
    /// The PTY's master, which the output is read from too.
    Terminal(Rc<OwnedFd>),
    /// Nowhere: stdin is /dev/null.
    Null,
    /// Nowhere: stdin is our own, or was closed by us or by the child.
    Closed,
}

/// A child's stdin.
#[derive(Debug)]
pub struct Input {
    way: Way,
    queue: ByteQueue,
    /// Close after what is queued.
    eof: bool,
    /// The child closed its end while something was still to be written.
    broken: bool,
    /// The poll is asked to tell when the child's stdin becomes writable.
    pub watched: bool,
    /// Bytes that the session takes as input over its life; `None`: any amount.
    pub cap_bytes: Option<u64>,
    /// Bytes of input that the session was given.
    pub given_bytes: u64,
    /// The unfinished line given to a terminal in canonical mode.
    pub line: TtyLine,
}

/// Who may show what is written to a child's stdin now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownBy {
    /// Nobody: a pipe, or a terminal that hands over lines and does not echo them.
    Nobody,
    /// The program, or a terminal within it (ssh): the terminal passes on each byte as it comes.
    Program,
    /// The terminal itself: it echoes, or it may do so again before it takes what is queued.
    Terminal,
}

/// What feeding did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// All that was queued is written.
    Drained,
    /// The child does not read now: watch for its becoming writable.
    Full,
    /// The turn's allowance is used up; more can be written at once.
    More,
    /// The child closed its stdin: what was queued is lost.
    Broken,
}

impl Input {
    /// Stdin through a pipe.
    pub fn pipe(fd: OwnedFd) -> Self {
        Self::new(Way::Pipe(fd))
    }

    /// Stdin through a PTY.
    pub fn terminal(fd: Rc<OwnedFd>) -> Self {
        Self::new(Way::Terminal(fd))
    }

    /// /dev/null, which is at its end from the start.
    pub fn null() -> Self {
        Self::new(Way::Null)
    }

    /// No stdin to write to.
    pub fn none() -> Self {
        Self::new(Way::Closed)
    }

    fn new(way: Way) -> Self {
        let (eof, broken, watched) = (false, false, false);
        Self {
            way,
            queue: ByteQueue::new(STDIN_BACKLOG_BYTES),
            eof,
            broken,
            watched,
            cap_bytes: None,
            given_bytes: 0,
            line: TtyLine::new(),
        }
    }

    /// The descriptor written to, while it is open.
    pub fn fd(&self) -> Option<RawFd> {
        match &self.way {
            Way::Pipe(fd) => Some(fd.as_raw_fd()),
            Way::Terminal(fd) => Some(fd.as_raw_fd()),
            Way::Null | Way::Closed => None,
        }
    }

    /// Whether it is /dev/null.
    pub fn is_null(&self) -> bool {
        matches!(self.way, Way::Null)
    }

    /// Whether further input can't be taken: never was, or eof was asked for.
    pub fn is_closed(&self) -> bool {
        (self.eof || self.fd().is_none()) && !self.broken
    }

    /// Whether the child closed its end.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Bytes that the child has not taken yet.
    pub fn backlog_bytes(&self) -> usize {
        self.queue.len()
    }

    /// Whether so many bytes more fit.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.queue.len() + bytes <= STDIN_BACKLOG_BYTES
    }

    /// Who may show what is written now.
    pub fn shown_by(&self) -> ShownBy {
        let Way::Terminal(fd) = &self.way else { return ShownBy::Nobody };
        match pty::echo_flags(fd.as_raw_fd()) {
            Some(flags) if flags.echo || !self.queue.is_empty() => ShownBy::Terminal,
            Some(flags) if !flags.canonical => ShownBy::Program,
            // A terminal that cannot be asked takes nothing.
            _ => ShownBy::Nobody,
        }
    }

    /// Queues bytes; the caller has asked [`Self::has_room`].
    pub fn push(&mut self, bytes: &[u8]) {
        self.queue.push(bytes);
    }

    /// Closes stdin after what is queued (a pipe's; a terminal has no such end).
    pub fn close_after(&mut self) {
        self.eof = true;
    }

    /// Whether something is to be done by [`Self::feed`].
    pub fn wants_feeding(&self) -> bool {
        self.fd().is_some() && (!self.queue.is_empty() || self.eof)
    }

    /// Writes what the child takes, a bounded amount.
    pub fn feed(&mut self) -> Fed {
        let mut left = FEED_SESSION_TURN_BYTES;
        while let Some(fd) = self.fd() {
            let front = self.queue.front();
            if front.is_empty() {
                if self.eof {
                    self.way = Way::Closed;
                }
                return Fed::Drained;
            }
            if left == 0 {
                return Fed::More;
            }
            match io::write(fd, &front[..front.len().min(left)]) {
                Io::Moved(bytes) => {
                    self.queue.consume(bytes);
                    left -= bytes;
                }
                Io::WouldBlock => return Fed::Full,
                Io::HungUp | Io::Ended | Io::Failed(_) => {
                    self.broken = true;
                    self.close();
                    return Fed::Broken;
                }
            }
        }
        Fed::Drained
    }

    /// Closes stdin at once and forgets what was queued.
    pub fn close(&mut self) {
        if !self.is_null() {
            self.way = Way::Closed;
        }
        self.queue.clear();
    }
}
