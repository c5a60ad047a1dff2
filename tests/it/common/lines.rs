//! Lines as execd wrote them, from whatever it writes to, and what such descriptors are like.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use super::PATIENCE;

/// Lines that a thread reads from somewhere, as text without their newline.
#[derive(Debug)]
pub struct Incoming {
    lines: Receiver<(Instant, String)>,
    /// Every line that was taken.
    pub seen: Vec<String>,
}

impl Incoming {
    pub fn from(source: impl Read + Send + 'static) -> Self {
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(source).split(b'\n') {
                // A terminal's end is EIO.
                let Ok(line) = line else { return };
                let line = String::from_utf8(line).expect("execd writes UTF-8");
                let line = line.trim_end_matches('\r').to_owned();
                if send.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        Self { lines, seen: Vec::new() }
    }

    /// The next line and when it came; why there is none in the time there is.
    pub fn next(&mut self, deadline: Instant) -> Result<(Instant, String), RecvTimeoutError> {
        self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()))
    }

    /// The next line.
    pub fn line(&mut self) -> String {
        match self.next(Instant::now() + PATIENCE) {
            Ok((_, line)) => {
                self.seen.push(line.clone());
                line
            }
            Err(why) => panic!("no line ({why}) after {:#?}", self.last_seen()),
        }
    }

    fn last_seen(&self) -> Vec<String> {
        let last = self.seen.iter().rev().take(4).rev();
        last.map(|line| line.chars().take(400).collect()).collect()
    }

    /// The next line that is no notification.
    pub fn reply_line(&mut self) -> String {
        loop {
            let line = self.line();
            if !is_notification(&line) {
                return line;
            }
        }
    }

    /// The next reply as a value.
    pub fn reply(&mut self) -> Value {
        value(&self.reply_line())
    }

    /// All lines until the end.
    pub fn rest(&mut self) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut rest = Vec::new();
        loop {
            match self.next(deadline) {
                Ok((_, line)) => rest.push(line),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => panic!("the lines do not end in {PATIENCE:?}"),
            }
        }
    }
}

/// Whether a line of execd is a notification.
pub fn is_notification(line: &str) -> bool {
    line.starts_with(r#"{"jsonrpc":"2.0","method":"#)
}

/// A line as JSON.
pub fn value(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|fault| panic!("{fault}: {line}"))
}

/// A pseudo-terminal: its master and its slave.
pub fn open_pty() -> (File, File) {
    let (mut master, mut slave) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: openpty writes the two descriptors, which nobody else owns.
    unsafe {
        let made = libc::openpty(&raw mut master, &raw mut slave, null, null.cast(), null.cast());
        assert_eq!(made, 0, "openpty: {}", std::io::Error::last_os_error());
        for fd in [master, slave] {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        (File::from_raw_fd(master), File::from_raw_fd(slave))
    }
}

/// Waits until a descriptor has something to read, or its other end is gone.
pub fn until_readable(descriptor: &impl AsRawFd) {
    assert!(is_readable(descriptor), "nothing came");
}

/// The same. False: nothing came in time.
pub fn is_readable(descriptor: &impl AsRawFd) -> bool {
    let mut entry = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let patience_ms = i32::try_from(PATIENCE.as_millis()).expect("it fits");
    // SAFETY: one live pollfd, and the count says so.
    let ready = unsafe { libc::poll(&raw mut entry, 1, patience_ms) };
    ready == 1
}

/// Turns off echo and line editing of a terminal.
pub fn make_raw(terminal: &impl AsRawFd) {
    // SAFETY: a termios of our own is filled, changed and set.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &raw mut modes), 0);
        libc::cfmakeraw(&raw mut modes);
        assert_eq!(libc::tcsetattr(terminal.as_raw_fd(), libc::TCSANOW, &raw const modes), 0);
    }
}

/// Whether O_NONBLOCK is set on the description behind a descriptor of ours.
pub fn is_nonblocking(descriptor: &impl AsRawFd) -> bool {
    // SAFETY: fcntl with integer arguments.
    let flags = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFL) };
    assert!(flags >= 0, "F_GETFL: {}", std::io::Error::last_os_error());
    flags & libc::O_NONBLOCK != 0
}
