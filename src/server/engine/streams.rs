//! Children's output and stdin: reading round-robin within bounds, feeding what they take. Which
//! session is read next, how much, and why not, is decided here; what the bytes mean is left to the
//! families.

use mio::Interest;

use super::Engine;
use super::contract::Families;
use super::contract::cx::Cx;
use super::sessions::Entry;
use super::watch::{Port, token_of};
use crate::limits::{
    DRAIN_TURN_BYTES, FLOOD_READ_BYTES, NS_PER_MS, READ_BUFFER_BYTES, READ_SESSION_TURN_BYTES,
    READ_TURN_BYTES,
};
use crate::pure::process::life::{Fact, Stream};
use crate::server::session::input::Fed;
use crate::server::session::output::{Hold, Output, Piece, Source};
use crate::server::session::wait::Wait;
use crate::server::session::{Session, SessionId};
use crate::sys::clock;
use crate::sys::errno::errno_text;

/// Reads of one stream that may fail one after the other, before it is given up.
const READ_TRIES: usize = 3;

/// Output read of one session before the end of its leader is noted: one reply has all of it.
const DRAIN_BYTES: usize = 1024 * 1024;

/// Once a turn has lasted so long, no further session is read in it behind one whose output a wait
/// searches.
const SEARCH_TURN_MS: u64 = 5;

/// A piece that is read and searched within this time may be followed by larger ones.
const SEARCH_FAST_US: u64 = 500;
const NS_PER_US: u64 = 1_000;

/// Why reading a session stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    /// Nothing is there now.
    Dry,
    /// The stream has changed.
    Changed,
    /// The allowance is used up.
    Allowance,
    /// The log's queue is full.
    Log,
    /// Whoever reads the output has no room for more.
    Reader,
    /// The stream could not be read, and is tried again.
    Failed,
}

impl<F: Families> Engine<F> {
    /// Step: reads what is there, each session a bounded amount, from where the last turn
    /// stopped. Who is not dry stays on the list: events come only once (edge-triggered).
    pub(super) fn read_sessions(&mut self) {
        let cx = &mut self.cx;
        let deferred = std::mem::take(&mut cx.reading.drain_deferred);
        let drains = deferred || !cx.queues.ended_leaders.is_empty();
        let reserved = if drains { DRAIN_TURN_BYTES } else { 0 };
        cx.reading.left = READ_TURN_BYTES;
        for _ in 0..cx.queues.readable.len() {
            if cx.reading.left <= reserved {
                break;
            }
            let Some(id) = cx.queues.readable.pop_front() else { break };
            let Some(entry) = self.sessions.get_mut(id) else { continue };
            let allowance = READ_SESSION_TURN_BYTES.min(cx.reading.left - reserved);
            let (_, stopped) = read(entry, allowance, false, cx);
            entry.core.output.queued = matches!(stopped, Stopped::Allowance | Stopped::Failed);
            if entry.core.output.queued {
                cx.queues.readable.push_back(id);
            }
            if entry.core.waits.iter().any(Wait::looks_for_text)
                && clock::now_ns() > cx.now_ns + SEARCH_TURN_MS * NS_PER_MS
            {
                // A pattern that is slow to search for takes no more of this turn.
                break;
            }
        }
    }

    /// Readers have taken something: the reading of sessions that were held up for them goes on.
    pub(super) fn resume_readers(&mut self) {
        for id in std::mem::take(&mut self.cx.queues.held_readers) {
            let Some(Entry { core, .. }) = self.sessions.get_mut(id) else { continue };
            for source in [Source::Output, Source::Errors] {
                let may = may_pass(core, source, &self.cx);
                let Some(stream) = core.stream(source) else { continue };
                if !stream.is_held_for(Hold::Reader) {
                    continue;
                }
                if may {
                    stream.release(Hold::Reader);
                    output_ready(core, source, &mut self.cx);
                    self.cx.touch(core);
                } else {
                    self.cx.queues.held_readers.insert(id);
                }
            }
        }
    }

    /// The log of a session has moved: what was held back for it goes on.
    pub(super) fn log_moved(&mut self, id: SessionId) {
        let Some(entry) = self.sessions.get_mut(id) else { return };
        let (core, cx) = (&mut entry.core, &mut self.cx);
        if core.output.is_held_for(Hold::Log) && cx.keeper.has_room(id, READ_BUFFER_BYTES) {
            core.output.release(Hold::Log);
            if !core.output.queued && is_readable(core) {
                core.output.queued = true;
                cx.queues.readable.push_back(id);
            }
        }
        cx.note_log_trouble(core);
        cx.touch(core);
    }

    /// Step: gives children the input that they take.
    pub(super) fn feed_children(&mut self) {
        for _ in 0..self.cx.queues.feedable.len() {
            let Some(id) = self.cx.queues.feedable.pop_front() else { break };
            if self.feed(id) == Some(Fed::More) {
                self.cx.queues.feedable.push_back(id);
            }
        }
    }

    /// Gives a child its queued input now: the same call then tells when it closed its stdin.
    pub fn feed_now(&mut self, id: SessionId) {
        if self.feed(id) == Some(Fed::More) {
            self.cx.queues.input_ready(id);
        }
    }

    /// Writes one session's input, a bounded amount, and watches for room where there is none.
    fn feed(&mut self, id: SessionId) -> Option<Fed> {
        let entry = self.sessions.get_mut(id)?;
        let fed = feed(&mut entry.core, &mut self.cx);
        self.cx.front_fed(&entry.core);
        fed
    }
}

/// Of which stream these bytes are for the log: of both in one, unless the log keeps them apart.
fn logged_as(core: &Session, source: Source) -> Source {
    if core.ways.apart { source } else { Source::Output }
}

/// An event says that a session has output on one of its streams.
pub fn output_ready<F: Families>(core: &mut Session, source: Source, cx: &mut Cx<F>) {
    let other = core.output.ready || core.errors.as_ref().is_some_and(|one| one.ready);
    if !other {
        // The kernel tells events in the order in which they came.
        core.errors_first = source == Source::Errors;
    }
    let Some(stream) = core.stream(source) else { return };
    stream.ready = true;
    if !core.output.queued && is_readable(core) {
        core.output.queued = true;
        cx.queues.readable.push_back(core.id);
    }
}

/// Reads one session's output, up to `allowance` bytes of what may be read in this turn;
/// `regardless` of whether log and readers have room for it. Gives how many and why it stopped.
fn read<F: Families>(
    entry: &mut Entry<F>,
    allowance: usize,
    regardless: bool,
    cx: &mut Cx<F>,
) -> (usize, Stopped) {
    let (bytes, stopped) = read_pieces(entry, allowance, regardless, cx);
    cx.reading.left = cx.reading.left.saturating_sub(bytes);
    (bytes, stopped)
}

/// Of two streams one piece is read in turn, so that neither waits for the other's end.
fn read_pieces<F: Families>(
    entry: &mut Entry<F>,
    allowance: usize,
    regardless: bool,
    cx: &mut Cx<F>,
) -> (usize, Stopped) {
    let mut total = 0;
    let mut order = [Source::Output, Source::Errors];
    if entry.core.errors_first {
        order.reverse();
    }
    // Where both streams are one, there is no second one to read.
    let mut dry = order.map(|one| one == Source::Errors && entry.core.errors.is_none());
    let mut stopped = Stopped::Dry;
    while total < allowance {
        for (at, source) in order.into_iter().enumerate() {
            if dry[at] {
                continue;
            }
            let searches = entry.core.waits.iter().any(Wait::looks_for_text);
            let begun_ns = if searches { clock::now_ns() } else { 0 };
            match read_piece(entry, source, regardless, cx) {
                Ok(bytes) if searches => {
                    total += bytes;
                    let took_ns = clock::now_ns() - begun_ns;
                    entry.core.note_search(took_ns < SEARCH_FAST_US * NS_PER_US);
                    if took_ns > SEARCH_TURN_MS * NS_PER_MS {
                        // The turn has others to serve.
                        return (total, Stopped::Allowance);
                    }
                }
                Ok(bytes) => total += bytes,
                Err(why @ (Stopped::Log | Stopped::Failed)) => return (total, why),
                Err(why) => {
                    dry[at] = true;
                    if why != Stopped::Dry {
                        stopped = why;
                    }
                }
            }
        }
        if dry == [true, true] {
            return (total, stopped);
        }
    }
    (total, Stopped::Allowance)
}

/// Whether this stream of a session speaks to the session's family alone.
fn speaks(core: &Session, source: Source) -> bool {
    core.ways.speaks && source == Source::Output
}

/// Whether a stream of a session may be read as far as its readers go: a command in front waits for
/// a slow stdout, as it would without execd, and a program that speaks to its family waits for the
/// clients that it is passed on to, until it is to end.
fn may_pass<F: Families>(core: &Session, source: Source, cx: &Cx<F>) -> bool {
    let passed_on = speaks(core, source) && core.ending.is_none();
    let room = || core.waits.iter().all(|wait| cx.has_room_for(wait));
    cx.front_has_room(core.id, source) && (!passed_on || room())
}

/// Reads one piece of one stream: its bytes, or why there are none.
fn read_piece<F: Families>(
    entry: &mut Entry<F>,
    source: Source,
    regardless: bool,
    cx: &mut Cx<F>,
) -> Result<usize, Stopped> {
    let Entry { core, .. } = entry;
    let id = core.id;
    let checks = !regardless && !core.output.dropped;
    if checks && !cx.keeper.has_room(id, READ_BUFFER_BYTES) {
        core.output.hold(Hold::Log);
        return Err(Stopped::Log);
    }
    if !regardless && !may_pass(core, source, cx) {
        if let Some(stream) = core.stream(source) {
            stream.hold(Hold::Reader);
        }
        cx.queues.held_readers.insert(id);
        return Err(Stopped::Reader);
    }
    let logged_as = logged_as(core, source);
    let (most, unseen) = (core.piece_bytes(), speaks(core, source));
    let stream = core.stream(source).ok_or(Stopped::Dry)?;
    let passed = match stream.fd() {
        Some(fd) if stream.flooding && checks && most == READ_BUFFER_BYTES && !unseen => {
            cx.keeper.pass(id, logged_as, fd, &mut cx.reading.buffer)
        }
        _ => 0,
    };
    if passed > 0 {
        stream.flooding = passed >= FLOOD_READ_BYTES;
        cx.counters.bytes_read += passed as u64;
        accept(entry, source, passed, true, cx);
        return Ok(passed);
    }
    match stream.read(&mut cx.reading.buffer[..most]) {
        Piece::Bytes(bytes) => {
            cx.counters.bytes_read += bytes as u64;
            accept(entry, source, bytes, false, cx);
            Ok(bytes)
        }
        Piece::Nothing => Err(Stopped::Dry),
        Piece::Changed(fact) => {
            stream_changed(core, source, fact, cx);
            Err(Stopped::Changed)
        }
        Piece::Failed(_) if stream.failures < READ_TRIES => {
            output_ready(core, source, cx);
            Err(Stopped::Failed)
        }
        Piece::Failed(errno) => {
            // Closed, so that nobody waits for its end; and never told as one.
            let why = errno_text(errno);
            core.note_trouble(format!(
                "the command's output could not be read ({why}): the rest of it is lost"
            ));
            stream_changed(core, source, Fact::Dropped, cx);
            Err(Stopped::Changed)
        }
    }
}

/// Takes in bytes that were read: memory, tail, the log unless it has them, and the family.
pub(super) fn accept<F: Families>(
    entry: &mut Entry<F>,
    source: Source,
    length: usize,
    logged: bool,
    cx: &mut Cx<F>,
) {
    let Entry { core, family } = entry;
    if core.output.dropped {
        return;
    }
    if speaks(core, source) {
        family.hear(core, length, cx);
        return cx.touch(core);
    }
    show(entry, source, length, logged, cx);
}

/// Shows the first bytes of the buffer to everybody who sees a session's output.
fn show<F: Families>(
    entry: &mut Entry<F>,
    source: Source,
    length: usize,
    logged: bool,
    cx: &mut Cx<F>,
) {
    let Entry { core, family } = entry;
    let bytes = &cx.reading.buffer[..length];
    core.take(source, bytes, cx.now_ns);
    let matched = core.show_waits(bytes);
    let moved = core.note_move(cx.now_ns);
    if !logged {
        let source = logged_as(core, source);
        cx.keeper.append(core.id, source, bytes);
    }
    // Most waits are not ended by output; only progress is due for it.
    if matched || moved || core.waits.iter().any(|wait| wait.progress.is_some() || wait.by_output) {
        cx.touch(core);
    }
    family.take(core, source, length, cx);
    cx.pass_on(core.id, source, length);
}

/// End of file or hang-up of one of a session's streams. The output has ended when both have.
fn stream_changed<F: Families>(core: &mut Session, source: Source, fact: Fact, cx: &mut Cx<F>) {
    cx.debug(format_args!("session {}: {source:?} {fact:?}", core.id));
    if core.errors.is_some() {
        if let Some(stream) = core.stream(source) {
            stream.close();
        }
        if !core.streams_closed() {
            return;
        }
    }
    core.learn(fact, cx.now_ns);
    if core.life.stream == Stream::Ended {
        close(core, cx);
    }
    // Asked for early: the file is likely to be complete when the leader is reaped.
    cx.keeper.ask_sync(core.id);
    cx.touch(core);
}

/// Closes a session's descriptors for good.
pub fn close<F: Families>(core: &mut Session, cx: &mut Cx<F>) {
    cx.reading.raised_pipe_bytes -= core.output.pipe_bytes;
    core.output.pipe_bytes = 0;
    core.output.close();
    if let Some(errors) = &mut core.errors {
        errors.close();
    }
    if core.facts.tty || core.status().is_some() {
        core.input.close();
        core.input.watched = false;
    }
}

/// Reads what lies in a session's output now, to its end: a bounded amount, within what may be
/// read in this turn. False: it is not done, and goes on in the next turn. `regardless`: see
/// `read`.
pub fn drain<F: Families>(entry: &mut Entry<F>, regardless: bool, cx: &mut Cx<F>) -> bool {
    let most = DRAIN_BYTES.saturating_sub(entry.core.drained_bytes);
    let (bytes, stopped) = read(entry, most.min(cx.reading.left), regardless, cx);
    let core = &mut entry.core;
    core.drained_bytes += bytes;
    let more = stopped == Stopped::Allowance && core.drained_bytes < DRAIN_BYTES;
    if more || stopped == Stopped::Failed {
        cx.reading.drain_deferred = true;
        return false;
    }
    core.drained_bytes = 0;
    if stopped != Stopped::Changed && core.life.stream == Stream::Quiet {
        // No EIO: somebody has the terminal open again, or bytes wait to be read.
        core.learn(Fact::Bytes, cx.now_ns);
    }
    true
}

fn feed<F: Families>(core: &mut Session, cx: &mut Cx<F>) -> Option<Fed> {
    if !core.input.wants_feeding() {
        return None;
    }
    let fd = core.input.fd();
    let fed = core.input.feed();
    core.note_input(cx.now_ns);
    let watch = fed == Fed::Full;
    let was_watched = std::mem::replace(&mut core.input.watched, watch);
    core.input_lost |= fed == Fed::Broken;
    if let Some(fd) = fd
        && watch != was_watched
    {
        watch_input(core, fd, watch, cx);
    }
    if fed == Fed::Broken {
        cx.debug(format_args!("session {}: stdin closed by the child", core.id));
    }
    Some(fed)
}

fn watch_input<F: Families>(core: &mut Session, fd: i32, watch: bool, cx: &Cx<F>) {
    let both = Interest::READABLE | Interest::WRITABLE;
    let (output, input) = (token_of(core.id, Port::Output), token_of(core.id, Port::Input));
    let done = match (core.facts.tty, watch) {
        // The master is in the poll already, for its output.
        (true, true) => cx.watch.change(fd, output, both),
        (true, false) => cx.watch.change(fd, output, Interest::READABLE),
        (false, true) => cx.watch.add(fd, input, Interest::WRITABLE),
        (false, false) => {
            cx.watch.remove(fd);
            Ok(())
        }
    };
    if done.is_err() && watch {
        // No memory for a watch: tried again at the next call that touches the session.
        core.input.watched = false;
    }
}

/// Whether anything of a session can be read without waiting for an event.
pub fn is_readable(core: &Session) -> bool {
    let reads = |one: &Output| one.ready && !one.is_held_for(Hold::Reader);
    let ready = reads(&core.output) || core.errors.as_ref().is_some_and(reads);
    ready && !core.output.is_held_for(Hold::Log)
}
