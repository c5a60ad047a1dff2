//! A question to a server of a session: connect, ask, read how the answer begins. Each step is
//! taken when the connection is ready, and none waits.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::listening::Own;
use crate::limits::NS_PER_MS;
use crate::pure::net::Listener;
use crate::pure::net::http::{self, Answer};
use crate::sys::io::{self, Io};
use crate::sys::listeners;
use crate::sys::tcp::{self, Connecting};

/// The longest that the rest of an answer is read.
const HTTP_REST_MS: u64 = 1_000;

/// Bytes of the rest of an answer that are read, so that its server can write in peace.
const HTTP_REST_BYTES: usize = 1024 * 1024;

/// Bytes of an answer within which its status must come.
const HTTP_HEAD_BYTES: usize = 16 * 1024;

/// The longest that a server is waited for that was asked for a page, until it is asked again.
const HTTP_WAIT_MS: u64 = 5_000;

/// How a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The answer is to come.
    Nothing,
    /// The server answered with this status.
    Status(u16),
    /// There is no answer: it took too long, or was none.
    Failed,
}

/// A question under way.
#[derive(Debug)]
pub struct Probe {
    socket: OwnedFd,
    request: Vec<u8>,
    sent: usize,
    answer: Vec<u8>,
    /// When it has taken too long.
    pub until_ns: u64,
    /// Whom it asks.
    pub server: Own,
    /// Which of those who want an answer asked.
    pub by_stop: bool,
}

/// The address at which a listener is reached from this machine.
fn reached_at(listener: &Listener) -> IpAddr {
    match listener.address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        // In a container without IPv6 it takes connections of IPv4 alone.
        IpAddr::V6(address) if address.is_unspecified() && !listeners::has_ipv6() => {
            Ipv4Addr::LOCALHOST.into()
        }
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

impl Probe {
    /// Begins to ask a server for `path`. Gives an errno where it can't.
    pub fn begin(server: Own, path: &str, by_stop: bool, now_ns: u64) -> Result<Self, i32> {
        let (host, port) = (reached_at(&server.listener), server.listener.port);
        Ok(Self {
            socket: tcp::connect(SocketAddr::new(host, port))?,
            request: http::request(path, host, port).into_bytes(),
            sent: 0,
            answer: Vec::new(),
            until_ns: now_ns + HTTP_WAIT_MS * NS_PER_MS,
            server,
            by_stop,
        })
    }

    /// The connection, for the poll.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Goes on as far as it can without waiting.
    pub fn go_on(&mut self, now_ns: u64, buffer: &mut [u8]) -> Told {
        let told = self.step(buffer);
        if told == Told::Nothing && self.until_ns <= now_ns { Told::Failed } else { told }
    }

    fn step(&mut self, buffer: &mut [u8]) -> Told {
        if self.sent == 0 {
            match tcp::state(&self.socket) {
                Connecting::Done => {}
                Connecting::Goes => return Told::Nothing,
                Connecting::Failed(_) => return Told::Failed,
            }
        }
        while self.sent < self.request.len() {
            match io::write(self.fd(), &self.request[self.sent..]) {
                Io::Moved(length) => self.sent += length,
                Io::WouldBlock => return Told::Nothing,
                _ => return Told::Failed,
            }
        }
        let most = buffer.len().min(HTTP_HEAD_BYTES);
        while self.answer.len() < HTTP_HEAD_BYTES {
            match io::read(self.fd(), &mut buffer[..most]) {
                Io::Moved(length) => self.answer.extend_from_slice(&buffer[..length]),
                Io::WouldBlock => return Told::Nothing,
                _ => return Told::Failed,
            }
            match http::status(&self.answer) {
                Answer::More => {}
                Answer::Status(status) => return Told::Status(status),
                Answer::Other => return Told::Failed,
            }
        }
        Told::Failed
    }

    /// The status is known: what remains is the rest of the answer.
    pub fn into_rest(self, now_ns: u64) -> Rest {
        let until_ns = now_ns + HTTP_REST_MS * NS_PER_MS;
        Rest { socket: self.socket, left: HTTP_REST_BYTES, until_ns }
    }
}

/// The rest of an answer, which is read and dropped, so that a server that is still writing finds
/// nobody gone and has nothing to complain about in the session's output.
#[derive(Debug)]
pub struct Rest {
    socket: OwnedFd,
    left: usize,
    /// When nothing more is read.
    pub until_ns: u64,
}

impl Rest {
    /// Reads what is there. Whether more is to come, and is wanted.
    pub fn go_on(&mut self, now_ns: u64, buffer: &mut [u8]) -> bool {
        while self.left > 0 && now_ns < self.until_ns {
            match io::read(self.socket.as_raw_fd(), buffer) {
                Io::Moved(length) => self.left = self.left.saturating_sub(length),
                Io::WouldBlock => return true,
                _ => return false,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_reached_on_loopback_or_at_its_own_address() {
        for (address, expected) in [
            ("0.0.0.0", "127.0.0.1"),
            ("::", if listeners::has_ipv6() { "::1" } else { "127.0.0.1" }),
            ("::1", "::1"),
            ("127.0.0.2", "127.0.0.2"),
            ("10.1.2.3", "10.1.2.3"),
        ] {
            let listener = Listener { port: 80, address: address.parse().unwrap(), inode: 1 };
            assert_eq!(reached_at(&listener).to_string(), expected);
        }
    }
}
