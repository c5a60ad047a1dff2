//! The TCP ports that the processes of a session listen on (waits.md, Listening): of the listeners
//! that the kernel knows those whose descriptors these processes have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

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

/// Tables of listeners, as they were read.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// The listeners of execd's own network.
    pub ours: Rc<Vec<Listener>>,
    /// Those of networks of processes.
    apart: Vec<(Network, Vec<Listener>)>,
}

/// The sockets of a session's processes, of every kind.
#[derive(Debug, Default)]
pub struct Sockets {
    /// Parents before their children: the socket's number, the process, and its network where that
    /// is not execd's own.
    all: Vec<(u64, i32, Option<Network>)>,
    /// Whether all descriptors of all processes were looked at.
    pub complete: bool,
    /// Whether a process is in a network of its own.
    pub apart: bool,
}

impl Sockets {
    /// The sockets of these processes, parents before their children. `own` is execd's network. At
    /// most `left` descriptors are looked at, which counts down.
    pub fn of(pids: &[i32], own: Option<Network>, left: &mut usize) -> Self {
        let mut sockets = Self { complete: true, ..Self::default() };
        for pid in pids {
            let away = listeners::network_of(*pid).filter(|one| Some(*one) != own);
            sockets.apart |= away.is_some();
            let looked =
                listeners::sockets(*pid, left, |inode| sockets.all.push((inode, *pid, away)));
            sockets.complete &= matches!(looked, Looked::All | Looked::Gone);
        }
        sockets
    }

    /// Their numbers.
    pub fn inodes(&self) -> impl Iterator<Item = u64> {
        self.all.iter().map(|one| one.0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The tables of all networks that the sockets are in; `ours` is the one of execd's own.
    pub fn tables(&self, ours: Rc<Vec<Listener>>) -> Tables {
        let mut apart: Vec<(Network, Vec<Listener>)> = Vec::new();
        for (_, pid, away) in &self.all {
            if let Some(network) = away
                && apart.iter().all(|one| one.0 != *network)
            {
                apart.push((*network, listeners::beside(*pid).unwrap_or_default()));
            }
        }
        Tables { ours, apart }
    }

    /// Those that are listeners and `wanted`, each with the first process that has it, by port and
    /// address.
    pub fn listeners(&self, tables: &Tables, wanted: &dyn Fn(&Listener) -> bool) -> Vec<Own> {
        let by_inode = |all: &[Listener]| -> BTreeMap<u64, Listener> {
            all.iter().filter(|one| wanted(one)).map(|one| (one.inode, *one)).collect()
        };
        let ours = by_inode(&tables.ours);
        let apart: Vec<_> = tables.apart.iter().map(|one| (one.0, by_inode(&one.1))).collect();
        let mut seen = BTreeSet::new();
        let mut own = Vec::new();
        for (inode, pid, away) in &self.all {
            let known = match away {
                None => Some(&ours),
                Some(network) => apart.iter().find(|one| one.0 == *network).map(|one| &one.1),
            };
            if let Some(listener) = known.and_then(|all| all.get(inode))
                && seen.insert(*inode)
            {
                own.push(Own { listener: *listener, pid: *pid, reachable: away.is_none() });
            }
        }
        own.sort_by_key(|one| (one.listener.port, one.listener.address));
        own
    }
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

    #[test]
    fn a_listener_belongs_to_the_first_process_that_has_it() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let find = |pids: &[i32]| {
            let sockets = Sockets::of(pids, listeners::own_network(), &mut 4_096);
            assert!(sockets.complete, "a process that has gone hides nothing");
            let tables = sockets.tables(Rc::new(listeners::ours().unwrap()));
            sockets.listeners(&tables, &|one| one.port == port)
        };
        let own = find(&[i32::MAX, host::pid()]);
        let places: Vec<_> = own.iter().map(|one| (one.listener.port, one.pid)).collect();
        assert_eq!(places, [(port, host::pid())]);
        assert!(own[0].reachable);
        assert_eq!(find(&[host::parent_pid()]), []);
    }
}
