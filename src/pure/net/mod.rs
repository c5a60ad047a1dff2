//! TCP listeners: what the kernel tells of them, whom they leave room for, and the first line of
//! what an HTTP server answers.

pub mod diag;
pub mod http;
pub mod room;
pub mod table;

use core::net::IpAddr;

/// A TCP socket that is listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listener {
    /// The port.
    pub port: u16,
    /// The address that it is bound to.
    pub address: IpAddr,
    /// Whether it is known to take connections to IPv4 addresses too, although its own address is
    /// one of IPv6 (ipv6(7), IPV6_V6ONLY).
    pub takes_v4: bool,
    /// The number by which a descriptor's link in /proc names the socket.
    pub inode: u64,
    /// The user who made it.
    pub uid: u32,
}
