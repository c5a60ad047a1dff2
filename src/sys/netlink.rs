//! The TCP listeners of our network namespace, asked of the kernel (sock_diag(7)). It answers from
//! its table of listeners alone, however many connections there are, and never waits.

use std::os::fd::{AsRawFd, OwnedFd};

use super::io::{owned, retried};
use crate::limits::{LISTENERS_MAX, LISTENERS_READ_BYTES, LISTENERS_READS};
use crate::pure::net::Listener;
use crate::pure::net::diag::{Family, Progress, question, take};

/// All listeners, as far as [`LISTENERS_MAX`]. Gives an errno where the kernel, or a filter of
/// system calls, refuses the question.
pub fn listeners() -> Result<Vec<Listener>, i32> {
    let socket = socket()?;
    let mut found = Vec::new();
    let mut buffer = vec![0; LISTENERS_READ_BYTES];
    ask(&socket, Family::V4, &mut buffer, &mut found)?;
    // A kernel without IPv6 has no listeners of it: those of IPv4 are all.
    let before = found.len();
    if ask(&socket, Family::V6, &mut buffer, &mut found).is_err() {
        found.truncate(before);
    }
    found.truncate(LISTENERS_MAX);
    Ok(found)
}

fn socket() -> Result<OwnedFd, i32> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket takes three numbers.
    owned(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) })
}

fn ask(
    socket: &OwnedFd,
    family: Family,
    buffer: &mut [u8],
    found: &mut Vec<Listener>,
) -> Result<(), i32> {
    let fd = socket.as_raw_fd();
    let question = question(family);
    // SAFETY: the pointer and the length are those of a live array. A socket that is connected to
    // nobody sends to the kernel.
    let send = || unsafe { libc::send(fd, question.as_ptr().cast(), question.len(), 0) };
    retried(send)?;
    for _ in 0..LISTENERS_READS {
        // SAFETY: the pointer and the length are those of a live, writable slice.
        let read = || unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let length = retried(read)?;
        match take(&buffer[..length], found) {
            Progress::More if found.len() < LISTENERS_MAX => {}
            Progress::Refused(errno) => return Err(errno),
            _ => return Ok(()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn our_own_listeners_are_told_with_their_addresses() {
        let four = TcpListener::bind("127.0.0.1:0").unwrap();
        let six = TcpListener::bind("[::1]:0").ok();
        let found = listeners().unwrap();
        for one in [Some(four), six].into_iter().flatten() {
            let address = one.local_addr().unwrap();
            let is_it =
                |told: &&Listener| told.port == address.port() && told.address == address.ip();
            assert!(found.iter().any(|told| is_it(&told)), "{address} in {found:?}");
        }
    }
}
