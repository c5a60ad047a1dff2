//! TCP listeners, and whose descriptors they are. Nothing here waits for a process: the links of
//! descriptors are read and not followed, and no memory of another process is looked at.

use std::io::Read;

use super::{proc, proc_view};
use crate::limits::PORT_FDS_PER_PROCESS;
use crate::pure::net::Listener;
use crate::pure::net::table::{Line, line};

/// Reads of listeners in one look, of each family: more than [`LISTENERS_MAX`] need, of 150 bytes
/// each, for a read gives a page of them.
const LISTENERS_READS: usize = 256;

/// Bytes of listeners read at a time.
const LISTENERS_READ_BYTES: usize = 32 * 1024;

/// Listeners that one look takes in.
const LISTENERS_MAX: usize = 4_096;

/// A network namespace, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(u64);

/// The network namespace of a process. None: it is gone, or must not be looked at.
pub fn network_of(pid: i32) -> Option<Network> {
    network_at(&format!("/proc/{pid}/ns/net")).filter(|_| proc_view::tells())
}

/// Our own network namespace.
pub fn own_network() -> Option<Network> {
    network_at("/proc/self/ns/net")
}

fn network_at(path: &str) -> Option<Network> {
    let link = std::fs::read_link(path).ok()?;
    number_in(link.to_str()?, "net:[").map(Network)
}

/// The listeners of our own network namespace. None: /proc does not tell.
pub fn ours() -> Option<Vec<Listener>> {
    tables("self")
}

/// The listeners of the network namespace of a process.
pub fn beside(pid: i32) -> Option<Vec<Listener>> {
    tables(&pid.to_string())
}

/// What both tables of /proc have; one of IPv6 may be missing.
fn tables(process: &str) -> Option<Vec<Listener>> {
    let mut found = Vec::new();
    table(&format!("/proc/{process}/net/tcp"), &mut found)?;
    table(&format!("/proc/{process}/net/tcp6"), &mut found);
    found.truncate(LISTENERS_MAX);
    Some(found)
}

/// Reads the listeners of a table: they stand before all connections.
fn table(path: &str, found: &mut Vec<Listener>) -> Option<()> {
    let mut file = proc::open(path).ok()?;
    let (mut buffer, mut filled) = (vec![0; LISTENERS_READ_BYTES], 0);
    for _ in 0..LISTENERS_READS {
        let length = match file.read(&mut buffer[filled..]) {
            Ok(0) => return Some(()),
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return None,
        };
        filled += length;
        let whole = buffer[..filled].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for text in String::from_utf8_lossy(&buffer[..whole]).lines() {
            match line(text) {
                Line::Listener(one) => found.push(one),
                Line::Connection => return Some(()),
                Line::Other => {}
            }
        }
        buffer.copy_within(whole..filled, 0);
        filled -= whole;
    }
    Some(())
}

/// Whether this machine has an address of IPv6 at all.
pub fn has_ipv6() -> bool {
    let mut byte = [0; 1];
    let read = proc::open("/proc/self/net/if_inet6").map(|mut file| file.read(&mut byte));
    matches!(read, Ok(Ok(1)))
}

/// What a look at the descriptors of a process has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    /// All were looked at.
    All,
    /// There are more than may be looked at.
    Some,
    /// The process is gone.
    Gone,
    /// The process must not be looked at: it is another user's.
    Hidden,
}

/// Tells the numbers of the sockets that a process has. At most `left` descriptors are looked at,
/// which counts down.
pub fn sockets(pid: i32, left: &mut usize, mut tell: impl FnMut(u64)) -> Looked {
    let directory = format!("/proc/{pid}/fd");
    let entries = match proc::open_dir(&directory) {
        Ok(entries) => entries,
        Err(libc::EACCES | libc::EPERM) => return Looked::Hidden,
        Err(libc::ENOENT | libc::ESRCH) => return Looked::Gone,
        Err(_) => return Looked::Some,
    };
    for (at, entry) in entries.enumerate() {
        let Ok(entry) = entry else { return Looked::Some };
        if at >= PORT_FDS_PER_PROCESS || *left == 0 {
            return Looked::Some;
        }
        *left -= 1;
        let link = std::fs::read_link(entry.path());
        let inode = link.ok().and_then(|link| number_in(link.to_str()?, "socket:["));
        inode.into_iter().for_each(&mut tell);
    }
    Looked::All
}

/// The number in a link like `socket:[12]`.
fn number_in(link: &str, kind: &str) -> Option<u64> {
    link.strip_prefix(kind)?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::host;

    #[test]
    fn a_look_stops_at_its_bound_and_says_so() {
        let mut left = 1;
        assert_eq!(sockets(host::pid(), &mut left, |_| {}), Looked::Some);
        assert_eq!(left, 0);
        assert_eq!(sockets(i32::MAX, &mut left, |_| {}), Looked::Gone);
        assert_eq!(network_of(i32::MAX), None);
        assert_eq!(network_of(host::pid()), own_network());
        assert!(own_network().is_some());
    }
}
