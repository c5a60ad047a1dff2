//! What a session's processes are at (waits.md, State): looks at them, what the last ones have
//! found, and what of that may be told. A state of waiting is told only after two looks that agree.

use super::census::Lookout;
use super::listening::Listening;
use super::{Session, SessionId};
use crate::limits::{DOING_AGREE_MS, NS_PER_MS};
use crate::pure::process::doing::{self as pure, Found, Input, Process, Waiter};
use crate::pure::time::quiet::Quiet;
use crate::sys::doing::{self, Ours};
use crate::sys::tree::{self, Orphans};
use crate::sys::{io, proc_view, proc_work, pty};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of the end of the output that are looked at for the last line.
const DOING_LAST_LINE_BYTES: usize = 256;

/// Processes outside all sessions that are looked through for descriptors of a session.
const STRANGERS_ASKED_MAX: usize = 16;

/// What a session is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It computes, sleeps, serves, or what it does is not known.
    #[default]
    Running,
    /// It waits for input.
    Waits(Input),
    /// Its processes are stopped.
    Stopped,
    /// The shell is gone, others hold the output.
    Held,
}

impl State {
    /// The word of `state`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waits(input) => input.state(),
            Self::Stopped => "stopped",
            Self::Held => "held",
        }
    }
}

/// Who waits for input, and on what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The process.
    pub pid: i32,
    /// The process's name.
    pub command: String,
    /// Whether it waits on the terminal, else on the stdin pipe.
    pub terminal: bool,
    /// For how long it has been seen to wait.
    pub since_ms: u64,
    /// The kind is told by the last line of the output alone.
    pub by_text: bool,
}

/// What a list still needs of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextLook {
    /// No further look.
    None,
    /// A look at this time.
    At(u64),
    /// A look that this turn had no time for.
    NextTurn,
}

/// What may be told of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// What it is doing. None: nobody has looked.
    pub state: Option<State>,
    /// Who waits.
    pub detail: Option<Detail>,
    /// The program has its terminal's other screen.
    pub full_screen: bool,
    /// Why nothing but our own input can move it on, where that is so.
    pub closed: Option<String>,
    /// Two looks have found the same.
    pub settled: bool,
}

/// What looks at sessions are taken with.
#[derive(Debug)]
pub struct Sight<'a> {
    /// The turn's time.
    pub now_ns: u64,
    /// What there is to look with in this turn.
    pub lookout: &'a mut Lookout,
    /// The leaders that have not been reaped, by pid.
    pub leaders: &'a BTreeMap<i32, SessionId>,
}

/// A look, and since when looks have found the same.
#[derive(Debug)]
pub(super) struct Look {
    pub at_ns: u64,
    pub found: Found,
    /// When the look before this one was taken.
    before_ns: u64,
    /// The processes that were looked at, where these were all.
    pids: Option<Vec<i32>>,
    /// Since when the same process was seen to wait in the same call.
    waits_since_ns: u64,
    /// Since when nothing at all has moved.
    same_since_ns: u64,
    /// Since when nothing but input could move the session on.
    closed_since_ns: u64,
}

/// What is known of the processes of a session.
#[derive(Debug, Default)]
pub struct Doing {
    /// The last look.
    pub(super) last: Option<Look>,
    /// When the next one is due.
    pub(super) quiet: Quiet,
    /// No look before this moment: one was due and could not be taken.
    pub(super) not_before_ns: u64,
    /// For how long it was put off then; nothing once a look was taken.
    pub(super) put_off_ms: u64,
    /// The ports that were listened on just before an answer is due, and when that was.
    listened: Option<(u64, Vec<Listening>)>,
}

impl Look {
    /// Whether what was so since then was seen twice, far enough apart.
    fn agrees_since(&self, since_ns: u64) -> bool {
        self.at_ns.saturating_sub(since_ns) >= DOING_AGREE_MS * NS_PER_MS
    }

    /// Who waits, once two looks agree.
    pub fn waiter(&self) -> Option<&Waiter> {
        self.found.waiter.as_ref().filter(|_| self.agrees_since(self.waits_since_ns))
    }

    /// Whether nobody waits, or two looks agree on who does.
    fn is_agreed(&self) -> bool {
        self.found.waiter.is_none() || self.waiter().is_some()
    }

    /// Whether looks since then tell what the session is doing. A session that waits has moved
    /// between two looks that do not agree: it runs.
    fn is_sure_since(&self, since_ns: u64) -> bool {
        let has_moved = || since_ns <= self.before_ns && self.agrees_since(self.before_ns);
        since_ns <= self.at_ns && (self.is_agreed() || has_moved())
    }

    /// Since when somebody has been seen to wait.
    pub fn waits_since_ns(&self) -> u64 {
        self.waits_since_ns
    }

    /// Whether nothing has moved between two looks.
    pub fn is_settled(&self) -> bool {
        self.agrees_since(self.same_since_ns)
    }

    /// Who waits, where two looks agree that nothing but input can move the session on.
    pub fn closed(&self) -> Option<&Waiter> {
        let agree = self.found.closed && self.is_settled();
        self.waiter().filter(|_| agree && self.agrees_since(self.closed_since_ns))
    }
}

/// Why a session can't move on: who waits for what.
pub(super) fn why(waiter: &Waiter) -> String {
    let on = if waiter.terminal { "its terminal" } else { "stdin" };
    format!("{} waits for {} on {on}; nothing else runs", waiter.name, waiter.input.words())
}

impl Session {
    /// Looks at the session's processes, once a turn at most, and while the turn has time for it.
    /// Whether what is known is of this turn.
    pub fn look_at_processes(&mut self, sight: &mut Sight<'_>) -> bool {
        let now_ns = sight.now_ns;
        if self.doing.last.as_ref().is_some_and(|last| last.at_ns == now_ns) {
            return true;
        }
        if self.life.finished() || !sight.lookout.may_see() {
            return false;
        }
        let (found, pids) = self.found(sight);
        sight.lookout.has_seen();
        let last = self.doing.last.take();
        let since = |same: fn(&Look, &Found) -> bool, since: fn(&Look) -> u64| {
            last.as_ref().filter(|last| same(last, &found)).map_or(now_ns, since)
        };
        let waits_since_ns = since(|a, b| a.found.waiter == b.waiter, |a| a.waits_since_ns);
        let same_since_ns = since(|a, b| a.found.mark == b.mark, |a| a.same_since_ns);
        let closed_since_ns = since(|a, b| a.found.closed && b.closed, |a| a.closed_since_ns);
        let before_ns = last.as_ref().map_or(0, |last| last.at_ns);
        let at_ns = now_ns;
        self.doing.last = Some(Look {
            at_ns,
            before_ns,
            found,
            pids,
            waits_since_ns,
            same_since_ns,
            closed_since_ns,
        });
        self.doing.put_off_ms = 0;
        true
    }

    fn found(&self, sight: &mut Sight<'_>) -> (Found, Option<Vec<i32>>) {
        let leads = |pid: i32| sight.leaders.contains_key(&pid);
        let orphans = sight.lookout.orphans(leads);
        let ours = self.ours();
        let tree = tree::walk(self.facts.pid, self.status().is_none(), &orphans);
        let mut all: Vec<Process> = Vec::new();
        let mut busy = false;
        for member in &tree.members {
            // Once somebody is busy, only those matter whose own waiting is told.
            let Some(one) = doing::process(member, &tree, &ours, !busy) else { continue };
            busy |= !one.is_blocked();
            all.push(one);
        }
        let modes = self.output.fd().filter(|_| self.facts.tty).and_then(doing::modes);
        let whole = tree.complete && !busy && self.is_only_ours();
        let whole = whole && !is_reached(&orphans, &leads, &all, &ours);
        let mut found = pure::decide(&all, modes, whole, &self.last_line());
        if found.waiter.is_some() && self.has_unread_keys() {
            (found.waiter, found.closed) = (None, false);
        }
        (found, tree.complete.then_some(tree.pids))
    }

    /// The session's processes, where a look of this turn has walked all of them.
    pub fn walked(&self, now_ns: u64) -> Option<&[i32]> {
        let last = self.doing.last.as_ref().filter(|last| last.at_ns == now_ns)?;
        last.pids.as_deref()
    }

    /// Whether nobody but a client's next request gives the session input: all that was given has
    /// been taken, nobody is attached, and its program runs.
    fn is_only_ours(&self) -> bool {
        let unread = || self.input.fd().filter(|_| !self.facts.tty).map_or(0, io::unread);
        let taken = self.input.backlog_bytes() == 0 && !self.input.wants_feeding();
        taken && self.viewers.is_empty() && !self.is_starting() && unread() == 0
    }

    /// Whether the terminal has input that its program is about to read: nobody waits for more.
    fn has_unread_keys(&self) -> bool {
        self.output.fd().filter(|_| self.facts.tty).is_some_and(pty::has_input)
    }

    fn ours(&self) -> Ours {
        let master = self.output.fd().filter(|_| self.facts.tty);
        let stdin = self.input.fd().filter(|_| !self.facts.tty);
        Ours {
            sid: self.facts.pid,
            terminal: master.and_then(doing::terminal_number),
            foreground: master.and_then(doing::foreground),
            stdin: stdin.and_then(proc_work::own_pipe),
            outputs: if self.facts.tty { Vec::new() } else { self.output_pipes() },
        }
    }

    /// The end of the output behind its last newline.
    fn last_line(&self) -> Vec<u8> {
        let (mut bytes, _) = self.tail.last(DOING_LAST_LINE_BYTES);
        let begins = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.split_off(begins)
    }

    /// The last look, where what it has found may be told: it is of this turn, or was taken since
    /// `since_ns`, and no output came behind it. Output says
    /// nothing new of a session that ran: another look could not say yet that it waits. Of one
    /// that seems to wait, another look may say that it does.
    fn fresh_look(&self, since_ns: u64, now_ns: u64) -> Option<&Look> {
        let ran = |last: &Look| last.found.waiter.is_none() && !last.found.stopped;
        let unmoved = |last: &Look| self.output_ns <= last.at_ns && !self.output.queued;
        let holds = |last: &Look| ran(last) || (last.is_agreed() && unmoved(last));
        let last = self.doing.last.as_ref()?;
        (last.at_ns == now_ns || (since_ns <= last.at_ns && holds(last))).then_some(last)
    }

    /// What may be told of the session by what the last look has found, if that was in this turn.
    pub fn seen(&self, now_ns: u64) -> Seen {
        self.seen_by(self.fresh_look(now_ns, now_ns), now_ns)
    }

    /// What a list may tell of the session by what looks have found since `since_ns`.
    pub fn seen_for_list(&self, since_ns: u64, now_ns: u64) -> Seen {
        let last = self.doing.last.as_ref();
        self.seen_by(last.filter(|last| last.is_sure_since(since_ns)), now_ns)
    }

    /// Looks at the session's processes for a list that counts looks since `since_ns`.
    pub fn look_for_list(&mut self, since_ns: u64, sight: &mut Sight<'_>) -> NextLook {
        let known = |core: &Self| {
            let last = core.doing.last.as_ref();
            core.life.shell_gone() || last.is_some_and(|last| last.is_sure_since(since_ns))
        };
        let again_ns = |core: &Self| {
            let last = core.doing.last.as_ref().filter(|last| since_ns <= last.at_ns);
            last.map_or(0, |last| last.at_ns + DOING_AGREE_MS * NS_PER_MS)
        };
        if known(self) || self.life.finished() {
            return NextLook::None;
        }
        if sight.now_ns < again_ns(self) {
            return NextLook::At(again_ns(self));
        }
        if !self.look_at_processes(sight) {
            return NextLook::NextTurn;
        }
        if known(self) { NextLook::None } else { NextLook::At(again_ns(self)) }
    }

    fn seen_by(&self, last: Option<&Look>, now_ns: u64) -> Seen {
        let full_screen = self.modes.as_ref().is_some_and(|modes| modes.alternate_screen());
        let waiter = last.and_then(Look::waiter);
        let state = match (waiter, last) {
            _ if self.life.shell_gone() => Some(State::Held),
            (Some(waiter), _) => Some(State::Waits(waiter.input)),
            (None, Some(last)) if last.found.stopped => Some(State::Stopped),
            // Without /proc a look sees nobody.
            (None, Some(_)) if proc_view::tells() => Some(State::Running),
            (None, _) => None,
        };
        let told = waiter.zip(last).filter(|_| matches!(state, Some(State::Waits(_))));
        Seen {
            state,
            detail: told.map(|(waiter, last)| Detail {
                pid: waiter.pid,
                command: waiter.name.clone(),
                terminal: waiter.terminal,
                since_ms: (now_ns - last.waits_since_ns) / NS_PER_MS,
                by_text: waiter.by_text,
            }),
            full_screen,
            closed: last.and_then(Look::closed).map(why),
            settled: last.is_some_and(Look::is_settled),
        }
    }

    /// What the session is doing now, as far as two looks agree; what was seen since `since_ns`
    /// may do where it is fresh.
    pub fn doing(&mut self, since_ns: u64, sight: &mut Sight<'_>) -> Seen {
        let now_ns = sight.now_ns;
        if self.fresh_look(since_ns, now_ns).is_none() {
            self.look_at_processes(sight);
        }
        self.seen_by(self.fresh_look(since_ns, now_ns), now_ns)
    }

    /// Notes which ports the session listens on, for the answer that is due soon.
    pub fn note_listening(&mut self, now_ns: u64, all: Vec<Listening>) {
        self.doing.listened = Some((now_ns, all));
    }

    /// What was noted, where that was since `since_ns`.
    pub fn listened_since(&self, since_ns: u64) -> Option<&[Listening]> {
        let noted = self.doing.listened.as_ref();
        noted.filter(|one| since_ns <= one.0).map(|one| one.1.as_slice())
    }
}

/// Whether a process that has left some session has one of this session's descriptors, or that is
/// not known.
fn is_reached(
    orphans: &Orphans,
    leads: &impl Fn(i32) -> bool,
    all: &[Process],
    ours: &Ours,
) -> bool {
    let own = |sid: i32| sid == ours.sid || leads(sid);
    let mut strangers = orphans.strangers(own).peekable();
    if strangers.peek().is_none() {
        return false;
    }
    let mut pipes: BTreeSet<u64> = all.iter().flat_map(Process::pipes).collect();
    pipes.extend(ours.stdin);
    pipes.extend(ours.outputs.iter().copied());
    strangers
        .enumerate()
        .any(|(at, pid)| at >= STRANGERS_ASKED_MAX || doing::reaches_into(pid, &pipes, ours))
}
