//! Who holds ports that are not the session's: a search through the descriptors of all processes,
//! in pieces, for nobody else can be asked (waits.md, Impossible).

use crate::limits::PORT_FDS_PER_PROCESS;
use crate::pure::net::Listener;
use crate::sys::proc::{self, Pids};
use crate::sys::{host, listeners};
use std::collections::{BTreeMap, BTreeSet};

/// Who holds a listener: the process, and its descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The process.
    pub pid: i32,
    fd: i32,
}

/// A search for who holds some listeners.
#[derive(Debug)]
pub struct Search {
    wanted: BTreeSet<u64>,
    /// Those that are still to be looked at. None: the search is over.
    pids: Option<Pids>,
    found: BTreeMap<u64, Holder>,
}

impl Search {
    /// A search for who holds these.
    pub fn new(wanted: &[Listener]) -> Self {
        let wanted = wanted.iter().map(|one| one.inode).collect();
        Self { wanted, pids: proc::all_pids().ok(), found: BTreeMap::new() }
    }

    /// Goes on until `left` descriptors were looked at, or a few more. Whether the search is over.
    pub fn go_on(&mut self, left: &mut usize) -> bool {
        while *left > 0
            && let Some(pids) = &mut self.pids
        {
            let Some(pid) = pids.next().filter(|_| self.found.len() < self.wanted.len()) else {
                self.pids = None;
                break;
            };
            let Ok(pid) = pid else { continue };
            let (wanted, found) = (&self.wanted, &mut self.found);
            // A process is looked at as a whole, whatever is left.
            let mut most = PORT_FDS_PER_PROCESS;
            listeners::sockets(pid, &mut most, |fd, inode| {
                if wanted.contains(&inode) {
                    found.entry(inode).or_insert_with(|| Holder { pid, fd });
                }
            });
            // Whoever must not be looked at costs something too.
            *left = left.saturating_sub(PORT_FDS_PER_PROCESS - most + 1);
        }
        self.pids.is_none()
    }

    /// Who holds a listener, where that was found.
    pub fn holder(&self, listener: &Listener) -> Option<Holder> {
        self.found.get(&listener.inode).copied()
    }

    /// Whether another process of our own user may listen beside this one: both have asked for it
    /// (SO_REUSEPORT). What cannot be told counts as no.
    pub fn shares(&self, listener: &Listener) -> bool {
        let holder = self.holder(listener).filter(|_| listener.uid == host::uid());
        holder.is_some_and(|one| listeners::shares_its_port(one.pid, one.fd) == Some(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_holder_is_found_in_pieces() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let all = listeners::ours().unwrap();
        let wanted: Vec<Listener> = all.into_iter().filter(|one| one.port == port).collect();
        let mut search = Search::new(&wanted);
        let mut pieces = 0;
        while !search.go_on(&mut 3) {
            pieces += 1;
        }
        assert!(pieces > 0);
        assert_eq!(search.holder(&wanted[0]).map(|one| one.pid), Some(host::pid()));
        assert!(!search.shares(&wanted[0]));
        let nobody = Listener { inode: u64::MAX, ..wanted[0] };
        let mut search = Search::new(&[nobody]);
        assert!(search.go_on(&mut { usize::MAX }) && search.holder(&nobody).is_none());
    }
}
