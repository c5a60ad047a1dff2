//! Whom the listeners of others leave room for (bind(2), ip(7), ipv6(7)). Two sockets cannot listen
//! on one port where one of their addresses includes the other, unless both have asked for it
//! (SO_REUSEPORT) and are the same user's.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Listener;

/// What is left of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// Nothing: no address is left to listen on.
    None,
    /// The addresses that servers of IPv4 listen on are taken, and a server that listens on IPv6
    /// alone can still come.
    Little,
    /// Addresses that servers often listen on are left.
    Enough,
}

/// What the listeners of others, all of one port and none with SO_REUSEPORT, leave of the port.
pub fn left(others: &[Listener], has_ipv6: bool) -> Room {
    let any_v4 = IpAddr::from(Ipv4Addr::UNSPECIFIED);
    let any_v6 = IpAddr::from(Ipv6Addr::UNSPECIFIED);
    let has = |address: IpAddr| others.iter().any(|one| one.address == address);
    let all_v4 = has(any_v4) || others.iter().any(|one| one.takes_v4);
    if all_v4 && (has(any_v6) || !has_ipv6) {
        Room::None
    } else if all_v4 || has(Ipv4Addr::LOCALHOST.into()) {
        Room::Little
    } else {
        Room::Enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(addresses: &[&str]) -> Vec<Listener> {
        let one = |text: &&str| {
            let takes_v4 = *text == "both";
            let address = if takes_v4 { "::" } else { text };
            let address = address.parse().unwrap();
            Listener { port: 80, address, takes_v4, inode: 1, uid: 0 }
        };
        addresses.iter().map(one).collect()
    }

    #[test]
    fn only_all_addresses_of_both_families_leave_no_room() {
        for (addresses, with_ipv6, without) in [
            (&["both"][..], Room::None, Room::None),
            (&["0.0.0.0", "::"], Room::None, Room::None),
            (&["0.0.0.0"], Room::Little, Room::None),
            (&["0.0.0.0", "::1"], Room::Little, Room::None),
            (&["127.0.0.1"], Room::Little, Room::Little),
            (&["127.0.0.1", "::"], Room::Little, Room::Little),
            (&["::"], Room::Enough, Room::Enough),
            (&["::1"], Room::Enough, Room::Enough),
            (&["127.0.0.2", "10.0.0.1"], Room::Enough, Room::Enough),
            (&[], Room::Enough, Room::Enough),
        ] {
            assert_eq!(left(&on(addresses), true), with_ipv6, "{addresses:?}");
            assert_eq!(left(&on(addresses), false), without, "{addresses:?}");
        }
    }
}
