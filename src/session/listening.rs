//! The TCP ports that the processes of a session listen on (waits.md, Listening): of the listeners
//! that the kernel knows those whose descriptors these processes have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;

use crate::pure::net::Listener;
use crate::sys::listeners::{self, Looked, Network};
use crate::sys::proc;

/// Listeners that are named in a reply or a row of a list.
const LISTENERS_NAMED: usize = 16;

/// A TCP port that a process of a session listens on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listening {
    /// The port.
    pub port: u16,
    /// The address that is listened on.
    pub address: String,
    /// The process: of those that have the listener the one that is nearest to the leader.
    pub pid: i32,
    /// The process's name.
    pub command: String,
}

/// A listener of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// The listener.
    pub listener: Listener,
    /// The process that has it.
    pub pid: i32,
    /// Whether it is in execd's own network, and so can be connected to.
    pub reachable: bool,
}

impl Own {
    /// As it is told.
    pub fn told(&self) -> Listening {
        Listening {
            port: self.listener.port,
            address: self.listener.address.to_string(),
            pid: self.pid,
            command: proc::name(self.pid),
        }
    }
}

/// The listeners of execd's own network.
#[derive(Debug, Default)]
pub struct Table {
    /// All of them.
    pub all: Vec<Listener>,
    /// The network.
    pub network: Option<Network>,
}

/// What a look for listeners of a session has found.
#[derive(Debug, Default)]
pub struct Found {
    /// Those of the session, by port and address.
    pub own: Vec<Own>,
    /// Whether all descriptors of all processes were looked at.
    pub complete: bool,
    /// Whether a process is in a network of its own.
    pub apart: bool,
}

/// Which of the listeners that are `wanted` belong to these processes, parents before their
/// children. Descriptors are looked at only where there is such a listener. A process in a network
/// of its own has its listeners there. At most `left` descriptors are looked at, which counts down.
pub fn find(
    pids: &[i32],
    table: &Table,
    left: &mut usize,
    wanted: &dyn Fn(&Listener) -> bool,
) -> Found {
    let inodes = |all: &[Listener]| -> BTreeMap<u64, Listener> {
        all.iter().filter(|one| wanted(one)).map(|one| (one.inode, *one)).collect()
    };
    let here = inodes(&table.all);
    let mut elsewhere: Vec<(Network, BTreeMap<u64, Listener>)> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut found = Found { complete: true, ..Found::default() };
    for pid in pids {
        let away = listeners::network_of(*pid).filter(|one| Some(*one) != table.network);
        found.apart |= away.is_some();
        let candidates = match away {
            None => &here,
            Some(network) => {
                let known = elsewhere.iter().position(|one| one.0 == network);
                let at = known.unwrap_or_else(|| {
                    let all = listeners::beside(*pid).unwrap_or_default();
                    elsewhere.push((network, inodes(&all)));
                    elsewhere.len() - 1
                });
                &elsewhere[at].1
            }
        };
        if candidates.is_empty() {
            continue;
        }
        let looked = listeners::sockets(*pid, left, |inode| {
            if let Some(listener) = candidates.get(&inode).filter(|_| seen.insert(inode)) {
                let listener = *listener;
                found.own.push(Own { listener, pid: *pid, reachable: away.is_none() });
            }
        });
        found.complete &= matches!(looked, Looked::All | Looked::Gone);
    }
    found.own.sort_by_key(|one| (one.listener.port, one.listener.address));
    found
}

/// Listeners as they are told: each port and address once, and not too many.
pub fn told(own: &[Own]) -> Vec<Listening> {
    let place = |one: &Own| (one.listener.port, one.listener.address, one.reachable);
    let mut each = own.to_vec();
    each.dedup_by_key(|one| place(one));
    each.iter().take(LISTENERS_NAMED).map(Own::told).collect()
}

/// The line that names them: `5173 (node), 8000 (python3)`. None where there are none.
pub fn line(all: &[Listening]) -> Option<String> {
    let mut text = String::new();
    let mut last = None;
    for one in all {
        // A port of both families is one port to people.
        if last.replace(one.port) != Some(one.port) {
            let comma = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{comma}{} ({})", one.port, one.command);
        }
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::host;
    use std::net::TcpListener;

    fn table() -> Table {
        let all = listeners::ours().unwrap();
        Table { all, network: listeners::own_network() }
    }

    /// rule: waits.md, Listening: `listening` names the TCP ports that processes of the session
    ///   listen on, with `port`, `address`, `pid` and `command`
    #[test]
    fn listeners_are_told_by_port_each_once() {
        let one = |port, address: &str, pid| {
            let address = address.parse().unwrap();
            let listener = Listener { port, address, inode: 1 };
            Own { listener, pid, reachable: true }
        };
        let own = host::pid();
        let all = [one(80, "0.0.0.0", own), one(80, "0.0.0.0", 1), one(80, "::", own)];
        let all = told(&[&all[..], &[one(90, "::1", own)]].concat());
        let places: Vec<_> = all.iter().map(|one| (one.port, one.address.as_str())).collect();
        assert_eq!(places, [(80, "0.0.0.0"), (80, "::"), (90, "::1")]);
        assert!(all.iter().all(|one| one.pid == own));
        let name = proc::name(own);
        assert_eq!(line(&all), Some(format!("80 ({name}), 90 ({name})")));
        assert_eq!(line(&[]), None);
    }

    #[test]
    fn a_listener_belongs_to_the_first_process_that_has_it() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let found = find(&[i32::MAX, host::pid()], &table(), &mut 4_096, &|one| one.port == port);
        assert!(found.complete, "who has gone hides nothing");
        let own: Vec<_> = found.own.iter().map(|one| (one.listener.port, one.pid)).collect();
        assert_eq!(own, [(port, host::pid())]);
        assert!(found.own[0].reachable);
        let none = find(&[host::parent_pid()], &table(), &mut 4_096, &|one| one.port == port);
        assert_eq!(none.own, []);
    }
}
