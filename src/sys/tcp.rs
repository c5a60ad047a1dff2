//! Connections to servers on this machine, without waiting (tcp(7)).

use core::net::SocketAddr;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};

use super::io::{done, owned};

/// How a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connecting {
    /// The other side has not answered yet.
    Goes,
    /// It is there.
    Done,
    /// It failed, with this errno.
    Failed(i32),
}

/// Begins to connect to `to`; the connection is ready to be written when that has ended. Gives an
/// errno where it cannot even begin.
pub fn connect(to: SocketAddr) -> Result<OwnedFd, i32> {
    let family = if to.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket takes three numbers.
    let socket = owned(unsafe { libc::socket(family, kind, 0) })?;
    let fd = socket.as_raw_fd();
    let connected = match to {
        SocketAddr::V4(to) => {
            let address = libc::sockaddr_in {
                sin_family: libc::sa_family_t::try_from(family).unwrap_or_default(),
                sin_port: to.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(*to.ip()).to_be() },
                sin_zero: [0; 8],
            };
            // SAFETY: a live address and its length.
            unsafe { libc::connect(fd, (&raw const address).cast(), length_of(&address)) }
        }
        SocketAddr::V6(to) => {
            let address = libc::sockaddr_in6 {
                sin6_family: libc::sa_family_t::try_from(family).unwrap_or_default(),
                sin6_port: to.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: to.ip().octets() },
                sin6_scope_id: 0,
            };
            // SAFETY: a live address and its length.
            unsafe { libc::connect(fd, (&raw const address).cast(), length_of(&address)) }
        }
    };
    match done(connected) {
        Ok(()) | Err(libc::EINPROGRESS | libc::EINTR) => Ok(socket),
        Err(errno) => Err(errno),
    }
}

/// How a connection stands that was begun.
pub fn state(socket: &OwnedFd) -> Connecting {
    match error_of(socket) {
        Ok(0) if has_peer(socket) => Connecting::Done,
        Ok(0) => Connecting::Goes,
        Ok(errno) | Err(errno) => Connecting::Failed(errno),
    }
}

fn has_peer(socket: &OwnedFd) -> bool {
    // SAFETY: all zero is a valid sockaddr_storage.
    let mut peer: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut length = length_of(&peer);
    // SAFETY: live memory for an address, and its length.
    let told =
        unsafe { libc::getpeername(socket.as_raw_fd(), (&raw mut peer).cast(), &raw mut length) };
    done(told).is_ok()
}

/// The error of a connection that has failed, else 0.
fn error_of(socket: &OwnedFd) -> Result<i32, i32> {
    let mut value = 0_i32;
    let mut length = length_of(&value);
    // SAFETY: live memory for a number, and its length.
    let told = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    done(told).map(|()| value)
}

fn length_of<T>(_: &T) -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{clock, io, poll};
    use std::io::Write;
    use std::net::TcpListener;

    #[test]
    fn a_connection_is_there_or_refused_and_never_waited_for() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(server) = TcpListener::bind(address) else { continue };
            let at = server.local_addr().unwrap();
            let socket = connect(at).unwrap();
            let mut end = server.accept().unwrap().0;
            assert_eq!(state(&socket), Connecting::Done);
            end.write_all(b"hi").unwrap();
            assert!(poll::is_readable(socket.as_raw_fd(), Some(clock::now_ns() + 20_000_000_000)));
            assert_eq!(io::read(socket.as_raw_fd(), &mut [0; 9]), io::Io::Moved(2));
            drop((server, end, socket));
            let failed = match connect(at) {
                Ok(socket) => {
                    poll::is_readable(socket.as_raw_fd(), Some(clock::now_ns() + 20_000_000_000));
                    state(&socket)
                }
                Err(errno) => Connecting::Failed(errno),
            };
            assert_eq!(failed, Connecting::Failed(libc::ECONNREFUSED));
        }
    }
}
