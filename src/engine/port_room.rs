//! Whether a port that is waited for can still come: it can't while another process holds it
//! (waits.md, Impossible).

use super::contract::Families;
use super::contract::cx::Cx;
use crate::limits::{HOLDER_PARENTS, NS_PER_MS, PORT_LITTLE_ROOM_MS, PORT_LOOK_MS};
use crate::pure::net::Listener;
use crate::pure::net::room::{self, Room};
use crate::pure::until::PortWanted;
use crate::session::port_holders::Search;
use crate::session::ports::{Held, Looked};
use crate::session::wait::Wait;
use crate::session::{Session, SessionId};
use crate::sys::{listeners, proc};

/// Whose a process is.
enum Whose {
    /// The session's own.
    Own,
    /// Another session's.
    Session(SessionId),
    /// No session's.
    Nobody,
}

/// Why none of the ports that `until` of a wait names can come. None: one can, or that is not
/// certain, or `until` names something else too, or there is none: a `stop` that can't come true
/// is no reason to end a wait.
pub fn why_none<F: Families>(
    core: &Session,
    wait: &mut Wait,
    looked: &Looked,
    cx: &mut Cx<F>,
) -> Option<String> {
    let asked = wait.asked.as_mut()?;
    let until = asked.until.as_ref()?;
    let more = until.has_more_than_ports();
    let ports: Vec<PortWanted> = until.ports().collect();
    let state = asked.ports.as_deref_mut()?;
    let held = if more { None } else { held(&ports, looked) };
    let Some(by) = held else {
        state.held = None;
        return None;
    };
    if state.held.as_ref().is_none_or(|held| held.by != by) {
        let search = Search::new(&by);
        state.held = Some(Held { by, since_ns: cx.now_ns, search, verdict: None });
        // A second look is to find the same.
        return None;
    }
    let mut held = state.held.take()?;
    let why = said_of(&mut held, &ports, core, cx);
    state.held = Some(held);
    why
}

/// What is said of ports that others hold, when it was so for long enough.
fn said_of<F: Families>(
    held: &mut Held,
    ports: &[PortWanted],
    core: &Session,
    cx: &mut Cx<F>,
) -> Option<String> {
    let since_ms = (cx.now_ns - held.since_ns) / NS_PER_MS;
    if since_ms < PORT_LOOK_MS / 2 || !held.search.go_on(&mut cx.ports.fds_left) {
        return None;
    }
    if held.verdict.is_none() {
        held.verdict = Some(judge(held, ports, core, cx));
    }
    let (room, why) = held.verdict.as_ref()?;
    let enough_ms = match room {
        Room::None => 0,
        Room::Little => PORT_LITTLE_ROOM_MS,
        Room::Enough => return None,
    };
    (since_ms >= enough_ms).then(|| why.clone())
}

/// What those who were found leave of the ports, and who they are.
fn judge<F: Families>(
    held: &Held,
    ports: &[PortWanted],
    core: &Session,
    cx: &Cx<F>,
) -> (Room, String) {
    let holds = |one: &&Listener| {
        let twice = |other: &Listener| other.inode != one.inode && at(other) == at(one);
        // Where two listen at one place, both let others listen beside them.
        !held.by.iter().any(twice) && !held.search.shares(one)
    };
    let mut said: Vec<String> = Vec::new();
    let mut left = Vec::new();
    for one in held.by.iter().filter(holds) {
        // What the session itself holds, unseen until now, is left out.
        let Some(text) = held_by(one, &held.search, core, cx) else { continue };
        left.push(*one);
        if !said.contains(&text) {
            said.push(text);
        }
    }
    (room_of(ports, &left), said.join("; "))
}

fn at(one: &Listener) -> (u16, core::net::IpAddr) {
    (one.port, one.address)
}

/// The listeners of others that leave too little room of each of these ports.
fn held(ports: &[PortWanted], looked: &Looked) -> Option<Vec<Listener>> {
    let others = looked.others.as_ref()?;
    let own = |port: &PortWanted| looked.own.iter().any(|one| port.takes(one.listener.port));
    if ports.iter().any(|port| *port == PortWanted::Any || own(port)) {
        return None;
    }
    (room_of(ports, others) != Room::Enough).then(|| others.clone())
}

/// What is left of the port that has most room.
fn room_of(ports: &[PortWanted], others: &[Listener]) -> Room {
    let has_ipv6 = listeners::has_ipv6();
    let left = |port: &PortWanted| {
        let on_it = others.iter().filter(|one| port.takes(one.port)).copied();
        room::left(&on_it.collect::<Vec<_>>(), has_ipv6)
    };
    ports.iter().map(left).max().unwrap_or(Room::Enough)
}

/// Who holds a port, in words. None: the session itself does.
fn held_by<F: Families>(
    one: &Listener,
    search: &Search,
    core: &Session,
    cx: &Cx<F>,
) -> Option<String> {
    let port = one.port;
    let Some(pid) = search.holder(one).map(|holder| holder.pid) else {
        return Some(format!("port {port} is held by another process"));
    };
    let name = proc::name(pid);
    match whose(pid, core, cx) {
        Whose::Own => None,
        Whose::Session(id) => {
            Some(format!("port {port} is held by {name} (pid {pid}) of session {id}"))
        }
        Whose::Nobody => {
            Some(format!("port {port} is held by another process (pid {pid}, {name})"))
        }
    }
}

/// Whose a process is, or one of those that it descends from.
fn whose<F: Families>(mut pid: i32, core: &Session, cx: &Cx<F>) -> Whose {
    for _ in 0..HOLDER_PARENTS {
        let Some(stat) = proc::stat(pid) else { break };
        match cx.leaders.get(&stat.sid) {
            Some(id) if *id == core.id => return Whose::Own,
            Some(id) => return Whose::Session(*id),
            None if stat.sid == core.facts.pid => return Whose::Own,
            None => pid = stat.ppid,
        }
    }
    Whose::Nobody
}
