//! A flood's way into the log without a copy: the pages that lie in a child's pipe are moved into
//! a pipe of our own, the tray (splice(2)), put from there into the log pipe too (tee(2)), and
//! only then read.
//!
//! A frame's length stands before its payload, and what lies in a child's pipe is nobody's alone: a
//! child may read its own output back through /proc. What is in the tray is taken from it for good:
//! the log gets exactly the bytes that are read.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::{Hand, KeeperLink};
use crate::keeper::frames::push_data_header;
use crate::limits::{LOG_FRAME_BYTES, LOG_STAGING_BYTES, TRAY_PIPE_BYTES};
use crate::pure::buffer::source::Source;
use crate::server::session::SessionId;
use crate::sys::io::{self, Io};

/// The pipe that holds the payload of one frame while its header is written. Empty between calls.
#[derive(Debug)]
pub struct Tray {
    out: OwnedFd,
    into: OwnedFd,
}

impl Tray {
    fn new() -> Option<Self> {
        let (out, into) = io::pipe().ok()?;
        io::set_nonblocking(out.as_raw_fd()).ok()?;
        // A frame has one page more than its bytes when it does not begin with a page.
        io::set_pipe_size(&into, TRAY_PIPE_BYTES).ok()?;
        Some(Self { out, into })
    }
}

impl KeeperLink {
    /// Whether the log pipe said EAGAIN and has not become writable since.
    pub fn is_full(&self) -> bool {
        self.pipe_full
    }

    /// The log pipe's descriptor, while there is a keeper.
    pub fn log_fd(&self) -> Option<RawFd> {
        match &self.hand {
            Hand::Process(Some(keeper)) => Some(keeper.log.as_raw_fd()),
            _ => None,
        }
    }

    /// The log pipe has become writable.
    pub fn pipe_writable(&mut self) {
        self.pipe_full = false;
    }

    /// Hands over what lies in a child's output pipe, at most a frame, and reads it into `buffer`.
    /// Gives how many bytes that was; 0 where the way of [`Self::append`] is to be taken.
    pub fn pass(
        &mut self,
        id: SessionId,
        source: Source,
        output: RawFd,
        buffer: &mut [u8],
    ) -> usize {
        let Hand::Process(Some(keeper)) = &self.hand else { return 0 };
        let log_pipe = keeper.log.as_raw_fd();
        let Some(log) = self.logs.get_mut(&id) else { return 0 };
        let direct = log.open_sent && log.queue.is_empty() && !self.pipe_full;
        if !direct || self.staging.len() >= LOG_STAGING_BYTES {
            return 0;
        }
        if self.tray.is_none() {
            self.tray = Tray::new();
        }
        let Some(tray) = &self.tray else { return 0 };
        let most = LOG_FRAME_BYTES.min(buffer.len());
        let Io::Moved(length) = io::splice(output, tray.into.as_raw_fd(), most) else {
            return 0;
        };
        let tray_out = tray.out.as_raw_fd();
        push_data_header(self.staging.buffer(), id, source, length);
        let passed = match self.write_staging(log_pipe) {
            true => match io::tee(tray_out, log_pipe, length) {
                Io::Moved(passed) => passed.min(length),
                _ => 0,
            },
            false => 0,
        };
        let bytes = &mut buffer[..length];
        if !read_all(tray_out, bytes) {
            // Never seen: nobody else has this pipe. The frame must have its length.
            bytes[passed..].fill(b'?');
            self.tray = None;
        }
        if passed < length {
            self.staging.push(&bytes[passed..]);
            self.pipe_full = true;
            self.stalls += 1;
        }
        if let Some(log) = self.logs.get_mut(&id) {
            log.count(source, length);
        }
        self.bytes_handed += length as u64;
        length
    }

    /// Writes what is staged; whether the pipe has taken all of it. A keeper that is gone is
    /// noticed by [`Self::pump`].
    fn write_staging(&mut self, log_pipe: RawFd) -> bool {
        while !self.staging.is_empty() {
            match io::write(log_pipe, self.staging.front()) {
                Io::Moved(bytes) => self.staging.consume(bytes),
                _ => return false,
            }
        }
        true
    }
}

/// Fills the buffer from a pipe that has as many bytes; false where it turns out not to.
fn read_all(pipe: RawFd, mut buffer: &mut [u8]) -> bool {
    while !buffer.is_empty() {
        let Io::Moved(bytes) = io::read(pipe, buffer) else { return false };
        buffer = &mut buffer[bytes..];
    }
    true
}
