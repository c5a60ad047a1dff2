//! Waits for a port of a session, and for a page of its servers (waits.md, until and stop). While
//! somebody waits so, the sockets of the session's processes are looked at on entry, and then every
//! PORT_LOOK_MS. The kernel's tables of listeners are large: they are read only where a session
//! has a socket that no table was read for, and once in a while; one read serves all sessions of a
//! turn.

use mio::Interest;

use super::contract::Families;
use super::contract::cx::Cx;
use super::watch::{Port, token_of};
use crate::pure::net::Listener;
use crate::pure::until::PortWanted;
use crate::server::session::Session;
use crate::server::session::asked::Outcome;
use crate::server::session::listening::{self, Listening, Own, Sockets};
use crate::server::session::members::Number;
use crate::server::session::ports::{Looked, PortLook, PortWait};
use crate::server::session::probe::{Probe, Told};
use crate::server::session::wait::{Wait, WaitKind};
use crate::sys::tree::{self, Tree};
use crate::sys::{clock, proc};

/// Waits of a session that ask a server at a time, and answers whose rest is read: others wait.
const HTTP_PROBES: usize = 16;

/// Descriptors of a session's processes that one look looks at.
const PORT_FDS_PER_LOOK: usize = 4_096;

impl<F: Families> Cx<F> {
    /// The processes of a session, the nearest to its leader first, and whether these are all.
    fn processes_of(&mut self, core: &Session) -> (Vec<i32>, bool) {
        let sid = core.facts.pid;
        let leaders = &self.leaders;
        let leads = |pid: i32| leaders.contains_key(&pid);
        let orphans = self.lookout.borrow_mut().orphans(leads);
        let (starts, keeper) = (&self.starts, &self.keeper);
        let session_of = |pid: i32| {
            let began = proc::stat(pid).filter(|_| !keeper.helpers().contains(&pid))?.start_ticks;
            starts.last_before(began)
        };
        let (adopted, all) = self.ports.adopted(core.id, &orphans, leads, session_of);
        // A look at what the processes are at has walked them already.
        let walked = core.walked(self.now_ns).filter(|_| core.number == Number::Leads);
        if let Some(pids) = walked.filter(|_| adopted.is_empty()) {
            return (pids.to_vec(), all);
        }
        let mut tree = match core.number.now(sid) {
            Number::Free => Tree::default(),
            _ => tree::walk(sid, core.number == Number::Leads, &orphans),
        };
        let complete = tree.complete || core.number == Number::Free;
        tree.complete = complete && all;
        tree.add(adopted);
        (tree.pids, tree.complete)
    }

    /// The sockets of a session's processes. At most `left` descriptors are looked at, which counts
    /// down.
    fn sockets_of(&mut self, core: &Session, left: &mut usize) -> Sockets {
        let own = self.ports.network();
        let (pids, all) = self.processes_of(core);
        let mut sockets = Sockets::of(&pids, own, left);
        sockets.complete &= all;
        sockets
    }

    /// The ports that the processes of a session listen on, for a reply; at the end of a wait's
    /// time, those that they listened on just before. None where the turn has no time left to look.
    pub fn listening(&mut self, core: &Session) -> Vec<Listening> {
        let since_ns = self.answers_since_ns;
        if let Some(all) = since_ns.and_then(|since_ns| core.listened_since(since_ns)) {
            return all.to_vec();
        }
        self.listening_at(core, self.now_ns).unwrap_or_default()
    }

    /// Notes the ports that the processes of a session listen on now, for an answer that is due
    /// soon, or a list. Whether the turn had time to look.
    pub fn note_listening(&mut self, core: &mut Session) -> bool {
        self.note_listening_at(core, self.now_ns)
    }

    fn note_listening_at(&mut self, core: &mut Session, since_ns: u64) -> bool {
        let Some(all) = self.listening_at(core, since_ns) else { return false };
        // The table may be older than this moment.
        core.note_listening(since_ns, all);
        true
    }

    /// Whether it is noted for a list on which ports a session listens, by a look since then or by
    /// one that this turn has time for.
    pub fn has_listening_since(&mut self, core: &mut Session, since_ns: u64) -> bool {
        core.listened_since(since_ns).is_some() || self.note_listening_at(core, since_ns)
    }

    /// The ports that a session listens on, by a table that was read at `since_ns` or later.
    fn listening_at(&mut self, core: &Session, since_ns: u64) -> Option<Vec<Listening>> {
        if core.life.finished() {
            return Some(Vec::new());
        }
        self.ports.begin_turn(self.counters.turns);
        let began_ns = self.ports.may_tell()?;
        // What is spent for one reply is not there for the next one of the turn.
        let mut left = self.ports.told_left;
        let sockets = self.sockets_of(core, &mut left);
        self.ports.told_left = left;
        self.ports.has_told(began_ns);
        if sockets.is_empty() {
            return Some(Vec::new());
        }
        let tables = sockets.tables(self.ports.table(since_ns));
        Some(listening::told(&sockets.listeners(&tables, &|_| true)))
    }
}

/// The ports that a wait could end by.
fn ports_of(wait: &Wait) -> Vec<PortWanted> {
    let conditions = wait.asked.iter().flat_map(|asked| asked.conditions());
    conditions.flat_map(|(_, one)| one.ports().collect::<Vec<_>>()).collect()
}

fn wants_port(wait: &Wait) -> bool {
    wait.wants_look() && wait.asked.as_ref().is_some_and(|asked| asked.ports.is_some())
}

/// What a wait keeps for its ports, while it waits for any.
fn of_wait(wait: &mut Wait) -> Option<&mut PortWait> {
    if wait.outcome.is_some() {
        return None;
    }
    wait.asked.as_mut()?.ports.as_deref_mut()
}

/// Goes on with what the waits of a session, which were taken out of it, want of ports.
pub fn step<F: Families>(core: &mut Session, waits: &mut [Wait], cx: &mut Cx<F>) {
    if !waits.iter().any(wants_port) {
        return;
    }
    cx.ports.begin_turn(cx.counters.turns);
    let mut look = core.ports.take().unwrap_or_default();
    // A wait that begins or ends has a look, and tables, of its own time.
    let mut wants_now = false;
    for wait in waits.iter_mut().filter(|wait| wants_port(wait)) {
        go_on_asking(wait, &mut look, cx);
        wants_now |= wait.due_ns.is_some_and(|due_ns| due_ns <= cx.now_ns);
        wants_now |= of_wait(wait).is_some_and(|one| !one.looked);
    }
    if wants_now {
        look.forget_tables();
    }
    if wants_now || look.next_ns <= cx.now_ns {
        let began_ns = clock::used_ns();
        if let Some(looked) = look_at_listeners(core, waits, &mut look, cx) {
            let asking = waits.iter_mut().filter_map(of_wait).filter(|one| one.probe.is_some());
            let mut room = HTTP_PROBES.saturating_sub(asking.count());
            for wait in waits.iter_mut().filter(|wait| wants_port(wait)) {
                take_looked(wait, &looked, cx);
                begin_asking(core, wait, &looked.own, &mut room, cx);
            }
        }
        let youngest_ns = waits.iter().filter(|wait| wants_port(wait)).map(|wait| wait.since_ns);
        let waited_ns = cx.now_ns.saturating_sub(youngest_ns.max().unwrap_or(cx.now_ns));
        look.rest(cx.now_ns, waited_ns, clock::used_ns().saturating_sub(began_ns));
    }
    for wait in waits.iter_mut().filter(|wait| wants_port(wait)) {
        let late_ns = of_wait(wait).and_then(|one| one.probe.as_ref()).map(|one| one.until_ns);
        wait.look_at(late_ns.map_or(look.next_ns, |at| at.min(look.next_ns)));
    }
    core.ports = Some(look);
}

/// Reads the rests of answers, and forgets what nobody needs any more.
pub fn read_rests<F: Families>(core: &mut Session, cx: &mut Cx<F>) {
    let Some(look) = &mut core.ports else { return };
    look.rests.retain_mut(|rest| rest.go_on(cx.now_ns, &mut cx.reading.buffer));
    if look.rests.is_empty() && !core.waits.iter().any(wants_port) {
        core.ports = None;
    }
}

/// None: nobody needs a look now, for all wait for answers of servers.
fn look_at_listeners<F: Families>(
    core: &Session,
    waits: &[Wait],
    look: &mut PortLook,
    cx: &mut Cx<F>,
) -> Option<Looked> {
    let needs = |wait: &&Wait| {
        let asked = wait.asked.as_ref();
        let asks = |one: &PortWait| one.probe.is_some() || one.probe_ns > cx.now_ns;
        let by_port = asked.is_some_and(|asked| asked.conditions().any(|one| one.1.port.is_some()));
        by_port || asked.and_then(|one| one.ports.as_deref()).is_some_and(|one| !asks(one))
    };
    let waits = || waits.iter().filter(|wait| wants_port(wait));
    if !waits().any(|wait| needs(&wait)) {
        return None;
    }
    let wanted: Vec<PortWanted> = waits().flat_map(ports_of).collect();
    let takes = |one: &Listener| wanted.iter().any(|port| port.takes(one.port));
    let sockets = cx.sockets_of(core, &mut PORT_FDS_PER_LOOK.clone());
    let now_ns = cx.now_ns;
    let tables = look.tables(&sockets, now_ns, || sockets.tables(cx.ports.table(now_ns)));
    let own = sockets.listeners(tables, &takes);
    let is_own = |inode| own.iter().any(|one: &Own| one.listener.inode == inode);
    let others = tables.ours.iter().filter(|one| takes(one) && !is_own(one.inode)).copied();
    let others = (sockets.complete && !sockets.apart).then(|| others.collect());
    Some(Looked { own, others })
}

/// Holds a wait against what a look has found.
fn take_looked<F: Families>(wait: &mut Wait, looked: &Looked, cx: &mut Cx<F>) {
    let Some(asked) = &mut wait.asked else { return };
    let found = asked.conditions().find_map(|(by_stop, condition)| {
        let wanted = condition.port?;
        let own = looked.own.iter().find(|one| wanted.takes(one.listener.port))?;
        Some((by_stop, own))
    });
    let holds = |port: PortWanted| looked.holds(port);
    let held = asked.conditions().find_map(|(_, one)| one.ports().find_map(holds));
    let Some(ports) = &mut asked.ports else { return };
    let is_first = !std::mem::replace(&mut ports.looked, true);
    ports.note_held(held, &mut cx.ports.fds_left);
    if let Some((by_stop, own)) = found {
        wait.outcome = Some(Box::new(Outcome {
            port: Some(own.told()),
            // Whom the call itself has started was not there when it came.
            present_at_entry: is_first && wait.kind != WaitKind::Start,
            ..Outcome::came_true("port", by_stop)
        }));
    }
}

/// Asks the next server, where a page is waited for and it is time.
fn begin_asking<F: Families>(
    core: &Session,
    wait: &mut Wait,
    own: &[Own],
    room: &mut usize,
    cx: &mut Cx<F>,
) {
    if *room == 0 || wait.outcome.is_some() {
        return;
    }
    let Some(asked) = &mut wait.asked else { return };
    let reachable = || own.iter().filter(|one| one.reachable);
    let pages = asked.conditions().filter_map(|(by_stop, one)| Some((by_stop, one.page()?)));
    let targets: Vec<(bool, String, Own)> = pages
        .flat_map(|(by_stop, (page, port))| {
            let fits = reachable().filter(move |one| port.takes(one.listener.port));
            fits.map(move |one| (by_stop, page.path.clone(), *one))
        })
        .collect();
    let Some(ports) = asked.ports.as_deref_mut() else { return };
    if targets.is_empty() || ports.probe.is_some() || ports.probe_ns > cx.now_ns {
        return;
    }
    let (by_stop, path, server) = &targets[ports.turn % targets.len()];
    ports.turn = (ports.turn + 1) % targets.len();
    ports.round_over = ports.turn == 0;
    let probe = Probe::begin(*server, path, *by_stop, cx.now_ns).ok().filter(|probe| {
        let interest = Interest::READABLE | Interest::WRITABLE;
        cx.watch.add(probe.fd(), token_of(core.id, Port::Probe), interest).is_ok()
    });
    match probe {
        Some(probe) => {
            ports.probe = Some(probe);
            *room -= 1;
        }
        None => ports.ask_later(cx.now_ns),
    }
}

/// Goes on with the question to a server that is under way.
fn go_on_asking<F: Families>(wait: &mut Wait, look: &mut PortLook, cx: &mut Cx<F>) {
    let Some(asked) = &mut wait.asked else { return };
    let Some(ports) = asked.ports.as_deref_mut() else { return };
    let Some(mut probe) = ports.probe.take() else { return };
    let told = probe.go_on(cx.now_ns, &mut cx.reading.buffer);
    if told == Told::Nothing {
        ports.probe = Some(probe);
        return;
    }
    ports.ask_later(cx.now_ns);
    let Told::Status(status) = told else { return cx.watch.remove(probe.fd()) };
    let (by_stop, server) = (probe.by_stop, probe.server);
    if look.rests.len() < HTTP_PROBES {
        look.rests.push(probe.into_rest(cx.now_ns));
    }
    let page = asked.condition(by_stop).and_then(|one| one.http.as_ref());
    if page.is_some_and(|page| (page.status.0..=page.status.1).contains(&status)) {
        wait.outcome = Some(Box::new(Outcome {
            port: Some(server.told()),
            status: Some(status),
            ..Outcome::came_true("http", by_stop)
        }));
    }
}
