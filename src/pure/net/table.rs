//! /proc/net/tcp and /proc/net/tcp6 (proc_pid_net(5)). The listeners stand first in them.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Listener;

/// The state of a listener, as the file has it.
const LISTENS: &str = "0A";
/// Where the columns are that are read.
const LOCAL: usize = 1;
const STATE: usize = 3;
const INODE: usize = 9;

/// What a line of such a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A listener.
    Listener(Listener),
    /// A connection: no listener follows.
    Connection,
    /// The heading, or something that makes no sense.
    Other,
}

/// Reads a line.
pub fn line(text: &str) -> Line {
    let columns: Vec<&str> = text.split_ascii_whitespace().take(INODE + 1).collect();
    let Some(state) = columns.get(STATE) else { return Line::Other };
    if *state != LISTENS {
        let is_state = state.len() == LISTENS.len() && u8::from_str_radix(state, 16).is_ok();
        return if is_state { Line::Connection } else { Line::Other };
    }
    listener(&columns).map_or(Line::Other, Line::Listener)
}

fn listener(columns: &[&str]) -> Option<Listener> {
    let (address, port) = columns.get(LOCAL)?.split_once(':')?;
    Some(Listener {
        port: u16::from_str_radix(port, 16).ok()?,
        address: address_of(address)?.to_canonical(),
        inode: columns.get(INODE)?.parse().ok()?,
    })
}

/// An address: words of 32 bits, each printed as a number of this machine.
fn address_of(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = text.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?);
            }
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(text: &str) -> Listener {
        match line(text) {
            Line::Listener(one) => one,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn listeners_of_both_families_are_read() {
        let one = listener(
            "   0: 0200007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  \
                   0 123456 1 0000000000000000 100 0 0 10 0",
        );
        let expected =
            Listener { port: 8080, address: IpAddr::from([127, 0, 0, 2]), inode: 123_456 };
        assert_eq!(one, expected);
        let six = |address: &str| {
            listener(&format!(
                "  12: {address}:1451 00000000000000000000000000000000:0000 0A \
                 00000000:00000000 00:00000000 00000000     0        0 77 1 0 100 0 0 10 0"
            ))
        };
        let loopback = six("00000000000000000000000001000000");
        assert_eq!((loopback.address, loopback.port), (Ipv6Addr::LOCALHOST.into(), 5201));
        let any = six("00000000000000000000000000000000");
        assert_eq!((any.address, any.inode), (Ipv6Addr::UNSPECIFIED.into(), 77));
        let mapped = six("0000000000000000FFFF00000100007F");
        assert_eq!(mapped.address, IpAddr::from([127, 0, 0, 1]), "an address of IPv4");
    }

    #[test]
    fn what_is_no_listener_is_told_apart_from_nonsense() {
        let heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when";
        assert_eq!(line(heading), Line::Other);
        let connected = "   1: 0100007F:1F90 0100007F:9C40 01 0:0 0:0 0 0 0 5 1";
        assert_eq!(line(connected), Line::Connection);
        for nonsense in ["", "0: x y 0A", "0: 0100007F 0:0 0A 0:0 0:0 0 0 0 1", "1 2 3 zz 5"] {
            assert_eq!(line(nonsense), Line::Other, "{nonsense}");
        }
        let short = "0: 01007F:1F90 00000000:0000 0A 0:0 0:0 0 0 0 5";
        assert_eq!(line(short), Line::Other, "no address has so few digits");
    }
}
