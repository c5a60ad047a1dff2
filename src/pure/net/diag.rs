//! Questions about TCP sockets and their answers, as they go through a netlink socket
//! (sock_diag(7), netlink(7)). All numbers are those of this machine, but for ports and addresses.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Listener;

/// Bytes of a message before what it is about: length u32, type u16, flags u16, number u32, u32.
const HEADER_BYTES: usize = 16;
/// Bytes of a question behind that: family, protocol, extensions, a pad, states u32, a socket.
const REQUEST_BYTES: usize = 56;
/// Bytes of an answer behind that: family, state, two counters, a socket, five numbers of 32 bits.
const ANSWER_BYTES: usize = 72;
/// Within an answer: where the socket begins (port, the other port, address, …).
const SOCKET: usize = 4;
const ADDRESS: usize = SOCKET + 4;
/// The last two of the five numbers.
const UID: usize = 64;
const INODE: usize = 68;

/// SOCK_DIAG_BY_FAMILY.
const ASK: u16 = 20;
/// NLMSG_ERROR and NLMSG_DONE.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// NLM_F_REQUEST and NLM_F_DUMP.
const DUMP: u16 = 0x301;
/// IPPROTO_TCP.
const TCP: u8 = 6;
/// TCP_LISTEN, as a bit.
const LISTENS: u32 = 1 << 10;
/// INET_DIAG_SKV6ONLY: whether a socket of IPv6 takes that alone.
const ONLY_V6: u16 = 11;

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// AF_INET, AF_INET6.
    fn number(self) -> u8 {
        match self {
            Self::V4 => 2,
            Self::V6 => 10,
        }
    }
}

/// The question for all listeners of a family.
pub fn question(family: Family) -> [u8; HEADER_BYTES + REQUEST_BYTES] {
    let mut bytes = [0; HEADER_BYTES + REQUEST_BYTES];
    let length = u32::try_from(bytes.len()).unwrap_or_default();
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&ASK.to_ne_bytes());
    bytes[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    bytes[HEADER_BYTES] = family.number();
    bytes[HEADER_BYTES + 1] = TCP;
    bytes[HEADER_BYTES + 4..HEADER_BYTES + 8].copy_from_slice(&LISTENS.to_ne_bytes());
    bytes
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More follows.
    More,
    /// That was all.
    Done,
    /// The question was refused, with this errno, or what came makes no sense (0).
    Refused(i32),
}

/// Takes the listeners out of what was read at once.
pub fn take(bytes: &[u8], into: &mut Vec<Listener>) -> Progress {
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some((message, behind)) = split(rest, HEADER_BYTES) else {
            return Progress::Refused(0);
        };
        let body = &message[HEADER_BYTES..];
        match u16_at(message, 4) {
            Some(DONE) => return Progress::Done,
            Some(ERROR) => {
                let errno = u32_at(body, 0).map_or(0, u32::cast_signed);
                return Progress::Refused(errno.saturating_neg());
            }
            Some(ASK) => into.extend(listener(body)),
            _ => {}
        }
        rest = behind;
    }
    Progress::More
}

/// Splits off what begins with its own length, of at least `least` bytes; lengths are rounded up to
/// 4 in between. A length of two bytes is that of an attribute, one of four that of a message.
fn split(bytes: &[u8], least: usize) -> Option<(&[u8], &[u8])> {
    let length = match least {
        HEADER_BYTES => usize::try_from(u32_at(bytes, 0)?).ok()?,
        _ => usize::from(u16_at(bytes, 0)?),
    };
    let one = bytes.get(..length).filter(|one| one.len() >= least)?;
    Some((one, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

fn listener(body: &[u8]) -> Option<Listener> {
    let fixed = body.get(..ANSWER_BYTES)?;
    let port = u16::from_be_bytes(fixed.get(SOCKET..SOCKET + 2)?.try_into().ok()?);
    let words = fixed.get(ADDRESS..ADDRESS + 16)?;
    let (address, takes_v4) = if fixed[0] == Family::V6.number() {
        let bytes: [u8; 16] = words.try_into().ok()?;
        (IpAddr::from(Ipv6Addr::from(bytes)), takes_both(&body[ANSWER_BYTES..]))
    } else {
        let bytes: [u8; 4] = words[..4].try_into().ok()?;
        (IpAddr::from(Ipv4Addr::from(bytes)), false)
    };
    let address = address.to_canonical();
    let inode = u64::from(u32_at(fixed, INODE)?);
    Some(Listener {
        port,
        address,
        takes_v4: takes_v4 && address == IpAddr::from(Ipv6Addr::UNSPECIFIED),
        inode,
        uid: u32_at(fixed, UID)?,
    })
}

/// Whether the attributes say that the socket takes IPv4 too.
fn takes_both(mut attributes: &[u8]) -> bool {
    const LEAST: usize = 4;
    while let Some((one, behind)) = split(attributes, LEAST) {
        if u16_at(one, 2) == Some(ONLY_V6) {
            return one.get(LEAST) == Some(&0);
        }
        attributes = behind;
    }
    false
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::Random;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let length = HEADER_BYTES + body.len();
        let mut bytes = u32::try_from(length).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend(body);
        bytes.resize(length.next_multiple_of(4), 0);
        bytes
    }

    fn answer(family: Family, address: &[u8], port: u16, only_v6: Option<bool>) -> Vec<u8> {
        let mut body = vec![0; ANSWER_BYTES];
        body[0] = family.number();
        body[SOCKET..SOCKET + 2].copy_from_slice(&port.to_be_bytes());
        body[ADDRESS..ADDRESS + address.len()].copy_from_slice(address);
        body[UID..UID + 4].copy_from_slice(&1000_u32.to_ne_bytes());
        body[INODE..INODE + 4].copy_from_slice(&77_u32.to_ne_bytes());
        // An attribute of another kind, whose length is rounded up, stands before the one wanted.
        body.extend([5_u16.to_ne_bytes(), 5_u16.to_ne_bytes()].concat());
        body.extend([1, 0, 0, 0]);
        if let Some(only) = only_v6 {
            body.extend([5_u16.to_ne_bytes(), ONLY_V6.to_ne_bytes()].concat());
            body.extend([u8::from(only), 0, 0, 0]);
        }
        message(ASK, &body)
    }

    #[test]
    fn listeners_are_taken_out_of_several_messages() {
        let loopback = Ipv6Addr::LOCALHOST.octets();
        let bytes = [
            answer(Family::V4, &[127, 0, 0, 1], 80, None),
            message(99, &[1, 2, 3]),
            answer(Family::V6, &[0; 16], 81, Some(false)),
            answer(Family::V6, &[0; 16], 82, Some(true)),
            answer(Family::V6, &[0; 16], 83, None),
            answer(Family::V6, &loopback, 84, Some(false)),
        ]
        .concat();
        let mut found = Vec::new();
        assert_eq!(take(&bytes, &mut found), Progress::More);
        let told: Vec<_> =
            found.iter().map(|one| (one.port, one.address.to_string(), one.takes_v4)).collect();
        let expected = [
            (80, "127.0.0.1".to_owned(), false),
            (81, "::".to_owned(), true),
            (82, "::".to_owned(), false),
            (83, "::".to_owned(), false),
            (84, "::1".to_owned(), false),
        ];
        assert_eq!(told, expected);
        assert!(found.iter().all(|one| one.inode == 77 && one.uid == 1000));
    }

    #[test]
    fn the_end_and_a_refusal_are_told() {
        let mut found = Vec::new();
        let listener = answer(Family::V4, &[0; 4], 80, None);
        let done = [listener.clone(), message(DONE, &[0; 4])].concat();
        assert_eq!(take(&done, &mut found), Progress::Done);
        assert_eq!(found.len(), 1);
        let refused = message(ERROR, &(-2_i32).to_ne_bytes());
        assert_eq!(take(&refused, &mut found), Progress::Refused(2));
        assert_eq!(take(&listener[..listener.len() - 1], &mut found), Progress::Refused(0));
        assert_eq!(take(&[], &mut found), Progress::More);
    }

    #[test]
    fn no_bytes_are_too_strange_to_be_read() {
        let mut random = Random(5);
        let good = [answer(Family::V6, &[0; 16], 81, Some(false)), message(DONE, &[0; 4])].concat();
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..=random.below(4_usize) {
                let at = random.below(bytes.len());
                bytes[at] = u8::try_from(random.below(256_u64)).unwrap();
            }
            bytes.truncate(random.below(good.len() + 1));
            let mut found = Vec::new();
            let _ = take(&bytes, &mut found);
            assert!(found.len() <= 1, "{bytes:?}");
        }
    }

    #[test]
    fn the_question_is_for_listeners_of_tcp_alone() {
        let bytes = question(Family::V6);
        assert_eq!(u32_at(&bytes, 0), Some(72));
        assert_eq!((u16_at(&bytes, 4), u16_at(&bytes, 6)), (Some(ASK), Some(DUMP)));
        assert_eq!(&bytes[16..20], &[10, 6, 0, 0]);
        assert_eq!(u32_at(&bytes, 20), Some(1 << 10));
        assert_eq!(question(Family::V4)[16], 2);
    }
}
