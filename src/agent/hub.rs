//! What the program waits for and writes: signals, the lines of its stdin, the ends of its
//! children, and the two streams that execd reads.

use std::os::fd::RawFd;

use super::protocol::{EVENT_BEGINS, OtherStarts, Said};
use super::tree::Tree;
use crate::limits::{MAX_MAX_LINE_BYTES, READ_BUFFER_BYTES};
use crate::sys::io::{self, Io};
use crate::sys::poll::{self, Watch};
use crate::sys::signals::{SIGCHLD, SignalFd};
use crate::sys::spawn::Spawner;
use crate::sys::{clock, host};
use crate::wire;

/// Bytes that execd has not read yet of a stream, from which on pi is not read.
const UNREAD_BYTES: usize = 64 * 1024;
/// Bytes of the first line: the longest request, and what execd adds to it.
const ORDER_BYTES: usize = 2 * MAX_MAX_LINE_BYTES;

/// A stream that execd reads.
#[derive(Debug)]
pub(super) struct Outlet {
    fd: RawFd,
    unsent: Vec<u8>,
    sent: usize,
    gone: bool,
}

impl Outlet {
    fn new(fd: RawFd) -> Self {
        let _ = io::set_nonblocking(fd);
        Self { fd, unsent: Vec::new(), sent: 0, gone: false }
    }

    /// Queues bytes; whoever has them made asks [`Hub::is_held`] before.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if !self.gone {
            self.unsent.extend_from_slice(bytes);
        }
    }

    fn unread(&self) -> usize {
        self.unsent.len() - self.sent
    }

    fn write(&mut self) {
        while self.unread() > 0 {
            match io::write(self.fd, &self.unsent[self.sent..]) {
                Io::Moved(bytes) => self.sent += bytes,
                Io::WouldBlock => break,
                Io::HungUp | Io::Ended | Io::Failed(_) => {
                    self.gone = true;
                    self.sent = self.unsent.len();
                }
            }
        }
        if self.sent == self.unsent.len() {
            self.unsent.clear();
            self.unsent.shrink_to(UNREAD_BYTES);
            self.sent = 0;
        } else if self.sent > UNREAD_BYTES.max(self.unsent.len() / 2) {
            self.unsent.drain(..self.sent);
            self.sent = 0;
        }
    }
}

/// The reason for which a run ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndAsked {
    /// A signal.
    Signal,
    /// Nobody is there any more that a result could be told.
    Orphaned,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Hub {
    signals: SignalFd,
    /// Starts pi.
    pub spawner: Spawner,
    /// The lines that execd takes: events and the result.
    pub out: Outlet,
    /// What everybody may read.
    pub log: Outlet,
    /// The processes below this one.
    pub tree: Tree,
    /// The end was asked for.
    pub asked: Option<EndAsked>,
    /// How many other runs are starting.
    pub others: u64,
    line: Vec<u8>,
    stdin_open: bool,
}

impl Hub {
    /// Takes the signals and streams of this process. Errors: an errno.
    pub(super) fn open() -> Result<Self, i32> {
        // Of the dispositions as they were given.
        let spawner = Spawner::new(host::file_limit());
        let signals = SignalFd::open()?;
        host::become_subreaper()?;
        let _ = io::set_nonblocking(0);
        Ok(Self {
            signals,
            spawner,
            out: Outlet::new(1),
            log: Outlet::new(2),
            tree: Tree::default(),
            asked: None,
            others: 0,
            line: Vec::new(),
            stdin_open: true,
        })
    }

    /// The first line of stdin; none where the end comes before it.
    pub(super) fn order(&mut self) -> Option<Vec<u8>> {
        let mut seen = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.line[seen..]) {
                let rest = self.line.split_off(seen + end + 1);
                return Some(std::mem::replace(&mut self.line, rest));
            }
            seen = self.line.len();
            if self.asked.is_some() || self.line.len() > ORDER_BYTES {
                return None;
            }
            self.wait(&mut [], None);
        }
    }

    /// Says a line to execd.
    pub(super) fn say(&mut self, said: &Said<'_>) {
        self.out.push(&wire::to_json(said));
        self.out.push(b"\n");
    }

    /// Tells an event, which begins as [`EVENT_BEGINS`] says.
    pub(super) fn tell(&mut self, event: &[u8]) {
        debug_assert!(event.starts_with(EVENT_BEGINS), "an event's first field is its name");
        self.out.push(event);
        self.out.push(b"\n");
    }

    /// Writes what execd takes. Whether it reads so slowly that pi is not read: until the next call
    /// nothing is written but where the poll tells of room.
    pub(super) fn is_held(&mut self) -> bool {
        self.out.write();
        self.log.write();
        self.out.unread() > UNREAD_BYTES || self.log.unread() > UNREAD_BYTES
    }

    /// Waits until something happens, to one of `more` too, or `until_ns` has come, and takes it
    /// in.
    pub(super) fn wait(&mut self, more: &mut [Watch], until_ns: Option<u64>) {
        let room = |outlet: &Outlet| Watch::new(outlet.fd, false, outlet.unread() > 0);
        let mut all = vec![
            Watch::new(self.signals.fd(), true, false),
            Watch::new(0, self.stdin_open, false),
            room(&self.out),
            room(&self.log),
        ];
        let own = all.len();
        all.extend_from_slice(more);
        poll::wait_for(&mut all, until_ns);
        more.copy_from_slice(&all[own..]);
        if all[0].readable {
            self.take_signals();
        }
        if all[2].writable {
            self.out.write();
        }
        if all[3].writable {
            self.log.write();
        }
        if all[1].readable {
            self.take_lines();
        }
        self.tree.step(clock::now_ns());
        if self.asked == Some(EndAsked::Orphaned) && !self.tree.is_over(clock::now_ns()) {
            self.tree.end(true, clock::now_ns());
        }
    }

    /// Writes all that is queued; the end of execd ends that too.
    pub(super) fn flush(&mut self) {
        loop {
            self.out.write();
            self.log.write();
            let unread = self.out.unread() + self.log.unread();
            if unread == 0 || self.asked == Some(EndAsked::Orphaned) {
                return;
            }
            self.wait(&mut [], None);
        }
    }

    fn take_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            if signal != SIGCHLD {
                self.asked.get_or_insert(EndAsked::Signal);
            }
        }
    }

    fn take_lines(&mut self) {
        let mut buffer = [0; READ_BUFFER_BYTES];
        match io::read(0, &mut buffer) {
            Io::Moved(bytes) => self.line.extend_from_slice(&buffer[..bytes]),
            Io::WouldBlock => {}
            Io::Ended | Io::HungUp | Io::Failed(_) => {
                self.stdin_open = false;
                self.asked = Some(EndAsked::Orphaned);
            }
        }
    }

    /// Takes in what execd has said since.
    pub(super) fn take_news(&mut self) {
        while let Some(end) = memchr::memchr(b'\n', &self.line) {
            let rest = self.line.split_off(end + 1);
            let line = std::mem::replace(&mut self.line, rest);
            if let Ok(OtherStarts { others }) = serde_json::from_slice(&line) {
                self.others = self.others.max(others);
            }
        }
    }
}
