//! A flood's way into the log without a copy: the pages that lie in a child's pipe are put into
//! the log pipe too (tee(2), splice(2)), and only then read.
//!
//! A frame's length stands before its payload, and what lies in a child's pipe is nobody's alone
//! (a child may read its own output back through /proc). So the pages go through a pipe of our
//! own first, the tray: what is in there cannot change any more, and its length is known.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::{Hand, KeeperLink};
use crate::keeper::frames::push_data_header;
use crate::limits::{LOG_FRAME_BYTES, LOG_STAGING_BYTES, TRAY_PIPE_BYTES};
use crate::session::SessionId;
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
        io::set_nonblocking(&out).ok()?;
        // A frame has one page more than its bytes when it does not begin with a page.
        io::set_pipe_size(&into, TRAY_PIPE_BYTES).ok()?;
        Some(Self { out, into })
    }
}

impl KeeperLink {
    /// Hands over what lies in a child's output pipe, at most a frame, and leaves it there to be
    /// read. Gives how many bytes that was; 0 where the way of [`Self::append`] is to be taken.
    pub fn pass(&mut self, id: SessionId, output: RawFd) -> usize {
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
        let Io::Moved(length) = io::tee(output, tray.into.as_raw_fd(), LOG_FRAME_BYTES) else {
            return 0;
        };
        log.total += length as u64;
        self.bytes_handed += length as u64;
        push_data_header(self.staging.buffer(), id, length);
        let mut left = length;
        if self.write_staging(log_pipe)
            && let Some(tray) = &self.tray
        {
            while left > 0
                && let Io::Moved(moved) = io::splice(tray.out.as_raw_fd(), log_pipe, left)
            {
                left -= moved.min(left);
            }
            if left > 0 {
                self.pipe_full = true;
                self.stalls += 1;
            }
        }
        self.empty_tray(left);
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

    /// Stages the bytes of a frame that the log pipe has no room for.
    fn empty_tray(&mut self, mut left: usize) {
        let mut buffer = [0; 4096];
        while left > 0
            && let Some(tray) = &self.tray
        {
            let wanted = left.min(buffer.len());
            let Io::Moved(bytes) = io::read(tray.out.as_raw_fd(), &mut buffer[..wanted]) else {
                // Never seen: nobody else has this pipe. The frame must have its length.
                self.staging.buffer().extend(std::iter::repeat_n(b'?', left));
                self.tray = None;
                return;
            };
            self.staging.push(&buffer[..bytes]);
            left -= bytes;
        }
    }
}
