//! TCP listeners as /proc tells of them, and the first line of what an HTTP server answers.

pub mod http;
pub mod table;

use core::net::IpAddr;

/// A TCP socket that is listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listener {
    /// The port.
    pub port: u16,
    /// The address that it is bound to.
    pub address: IpAddr,
    /// The number by which a descriptor's link in /proc names the socket.
    pub inode: u64,
}
