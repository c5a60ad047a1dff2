//! Children's output and stdin: reading round-robin within bounds, feeding what they take.

use mio::Interest;

use super::logs::errno_text;
use super::{Daemon, Port, token_of};
use crate::limits::{
    DRAIN_BYTES, DRAIN_TURN_BYTES, FLOOD_READ_BYTES, READ_BUFFER_BYTES, READ_SESSION_TURN_BYTES,
    READ_TRIES, READ_TURN_BYTES,
};
use crate::pure::process::life::{Fact, Stream};
use crate::session::input::Fed;
use crate::session::output::{Hold, Piece, Source};
use crate::session::wait::{Wait, WaitKind};
use crate::session::{Session, SessionId};

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
    /// stdout takes no more of the command in front.
    Reader,
    /// It could not be read, and is tried again.
    Failed,
}

/// Whose bytes the log of a session takes these for: of the stream family's alone the streams can
/// be asked for one by one.
fn logged_as(session: &Session, source: Source) -> Source {
    if session.job.is_some() { source } else { Source::Output }
}

impl Daemon {
    /// An event says that a session has output on one of its streams.
    pub(crate) fn output_ready(&mut self, id: SessionId, source: Source) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let other = session.output.ready || session.errors.as_ref().is_some_and(|one| one.ready);
        if !other {
            // The kernel tells events in the order in which they came.
            session.errors_first = source == Source::Errors;
        }
        let Some(stream) = session.stream(source) else { return };
        stream.ready = true;
        if !session.output.queued && !session.output.is_held() {
            session.output.queued = true;
            self.readable.push_back(id);
        }
    }

    /// Step: reads what is there, each session a bounded amount, from where the last turn
    /// stopped. Who is not dry stays on the list: events come only once (edge-triggered).
    pub(crate) fn read_sessions(&mut self) {
        let drains = std::mem::take(&mut self.drain_deferred) || !self.ended_leaders.is_empty();
        let reserved = if drains { DRAIN_TURN_BYTES } else { 0 };
        self.read_left = READ_TURN_BYTES;
        for _ in 0..self.readable.len() {
            if self.read_left <= reserved {
                break;
            }
            let Some(id) = self.readable.pop_front() else { break };
            let allowance = READ_SESSION_TURN_BYTES.min(self.read_left - reserved);
            let (_, stopped) = self.read_session(id, allowance, false);
            if let Some(session) = self.sessions.get_mut(&id) {
                session.output.queued = matches!(stopped, Stopped::Allowance | Stopped::Failed);
                if session.output.queued {
                    self.readable.push_back(id);
                }
            }
        }
    }

    /// Reads one session's output, up to `allowance` bytes of what may be read in this turn;
    /// `regardless` of whether log and stdout have room for it. Gives how many and why it stopped.
    fn read_session(
        &mut self,
        id: SessionId,
        allowance: usize,
        regardless: bool,
    ) -> (usize, Stopped) {
        let (bytes, stopped) = self.read_pieces(id, allowance, regardless);
        self.read_left = self.read_left.saturating_sub(bytes);
        (bytes, stopped)
    }

    /// Of two streams one piece is read in turn, so that neither waits for the other's end.
    fn read_pieces(
        &mut self,
        id: SessionId,
        allowance: usize,
        regardless: bool,
    ) -> (usize, Stopped) {
        let mut total = 0;
        let Some(session) = self.sessions.get(&id) else { return (0, Stopped::Dry) };
        let mut order = [Source::Output, Source::Errors];
        if session.errors_first {
            order.reverse();
        }
        // Where both streams are one, there is no second one to read.
        let mut dry = [false, session.errors.is_none()];
        let mut stopped = Stopped::Dry;
        while total < allowance {
            for (at, source) in order.into_iter().enumerate() {
                if dry[at] {
                    continue;
                }
                match self.read_piece(id, source, regardless) {
                    Ok(bytes) => total += bytes,
                    Err(why @ (Stopped::Log | Stopped::Reader | Stopped::Failed)) => {
                        return (total, why);
                    }
                    Err(why) => {
                        dry[at] = true;
                        if why == Stopped::Changed {
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

    /// Reads one piece of one stream: its bytes, or why there are none.
    fn read_piece(
        &mut self,
        id: SessionId,
        source: Source,
        regardless: bool,
    ) -> Result<usize, Stopped> {
        let session = self.sessions.get_mut(&id).ok_or(Stopped::Dry)?;
        let checks = !regardless && !session.output.dropped;
        if checks && !self.keeper.has_room(id, READ_BUFFER_BYTES) {
            session.output.hold(Hold::Log);
            return Err(Stopped::Log);
        }
        let may_pass = regardless || (self.front_has_room(id) && self.agent_has_room(id));
        let session = self.sessions.get_mut(&id).ok_or(Stopped::Dry)?;
        if !may_pass {
            session.output.hold(Hold::Reader);
            // The clocks of a run stand still from here on.
            self.touch(id);
            return Err(Stopped::Reader);
        }
        let logged_as = logged_as(session, source);
        let stream = session.stream(source).ok_or(Stopped::Dry)?;
        let passed = match stream.fd() {
            Some(fd) if stream.flooding && checks => {
                self.keeper.pass(id, logged_as, fd, &mut self.read_buffer)
            }
            _ => 0,
        };
        if passed > 0 {
            stream.flooding = passed >= FLOOD_READ_BYTES;
            self.counters.bytes_read += passed as u64;
            self.accept(id, source, passed, true);
            return Ok(passed);
        }
        match stream.read(&mut self.read_buffer) {
            Piece::Bytes(bytes) => {
                self.counters.bytes_read += bytes as u64;
                self.accept(id, source, bytes, false);
                Ok(bytes)
            }
            Piece::Nothing => Err(Stopped::Dry),
            Piece::Changed(fact) => {
                self.stream_changed(id, source, fact);
                Err(Stopped::Changed)
            }
            Piece::Failed(_) if stream.failures < READ_TRIES => {
                self.output_ready(id, source);
                Err(Stopped::Failed)
            }
            Piece::Failed(errno) => {
                // Closed, so that nobody waits for its end; and never told as one.
                let why = errno_text(errno);
                session.note_trouble(format!(
                    "the command's output could not be read ({why}): the rest of it is lost"
                ));
                self.stream_changed(id, source, Fact::Dropped);
                Err(Stopped::Changed)
            }
        }
    }

    /// Takes in bytes that were read: memory, tail, and the log unless it has them.
    fn accept(&mut self, id: SessionId, source: Source, bytes: usize, logged: bool) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.output.dropped {
            return;
        }
        let bytes = &self.read_buffer[..bytes];
        session.view.push(bytes);
        session.count_chars(bytes);
        session.tail.push(bytes);
        if let Some(job) = &mut session.job {
            job.push(source, bytes);
        }
        if let Some(window) = &mut session.window {
            window.push(bytes);
        }
        if session.life.stream == Stream::Quiet {
            session.learn(Fact::Bytes, self.now_ns);
        }
        session.note_output(self.now_ns);
        if !logged {
            let source = logged_as(session, source);
            self.keeper.append(id, source, bytes);
        }
        let length = bytes.len();
        // Most waits are not ended by output; only progress is due for it.
        let due = |wait: &Wait| wait.progress.is_some() || wait.kind == WaitKind::JobPoll;
        if session.waits.iter().any(due) {
            self.touch(id);
        }
        self.show(id, length);
        self.send_chunks(id, source, length);
        self.take_agent_output(id, source, length);
        self.pass_on(id, length);
    }

    /// End of file or hang-up of one of a session's streams. The output has ended when both
    /// have.
    fn stream_changed(&mut self, id: SessionId, source: Source, fact: Fact) {
        self.debug(format_args!("session {id}: {source:?} {fact:?}"));
        if let Some(session) = self.sessions.get_mut(&id) {
            if session.errors.is_some() {
                if let Some(stream) = session.stream(source) {
                    stream.close();
                }
                if !session.streams_closed() {
                    return;
                }
            }
            session.learn(fact, self.now_ns);
            if session.life.stream == Stream::Ended {
                self.close_streams(id);
            }
        }
        // Asked for early: the file is likely to be complete when the leader is reaped.
        self.keeper.ask_sync(id);
        self.touch(id);
    }

    /// Closes a session's descriptors for good.
    pub(crate) fn close_streams(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        self.raised_pipe_bytes -= session.output.pipe_bytes;
        session.output.pipe_bytes = 0;
        session.output.close();
        if let Some(errors) = &mut session.errors {
            errors.close();
        }
        if session.facts.tty || session.status().is_some() {
            session.input.close();
            session.input.watched = false;
        }
    }

    /// Reads what lies in a session's output now, to its end: a bounded amount, within what may be
    /// read in this turn. False: it is not done, and goes on in the next turn. `regardless`: as
    /// above.
    pub(crate) fn drain(&mut self, id: SessionId, regardless: bool) -> bool {
        let Some(session) = self.sessions.get(&id) else { return true };
        let most = DRAIN_BYTES.saturating_sub(session.drained_bytes);
        let (bytes, stopped) = self.read_session(id, most.min(self.read_left), regardless);
        let Some(session) = self.sessions.get_mut(&id) else { return true };
        session.drained_bytes += bytes;
        let more = stopped == Stopped::Allowance && session.drained_bytes < DRAIN_BYTES;
        if more || stopped == Stopped::Failed {
            self.drain_deferred = true;
            return false;
        }
        session.drained_bytes = 0;
        if stopped != Stopped::Changed && session.life.stream == Stream::Quiet {
            // No EIO: somebody has the terminal open again, or bytes wait to be read.
            session.learn(Fact::Bytes, self.now_ns);
        }
        true
    }

    /// The log of a session has moved: what was held back for it goes on.
    pub(crate) fn log_moved(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.output.is_held_for(Hold::Log) && self.keeper.has_room(id, READ_BUFFER_BYTES) {
            session.output.release(Hold::Log);
            if !session.output.queued && !session.output.is_held() {
                session.output.queued = true;
                self.readable.push_back(id);
            }
        }
        self.touch(id);
    }

    /// A session has input to write.
    pub(crate) fn input_ready(&mut self, id: SessionId) {
        if !self.feedable.contains(&id) {
            self.feedable.push_back(id);
        }
    }

    /// Step: gives children the input that they take.
    pub(crate) fn feed_children(&mut self) {
        for _ in 0..self.feedable.len() {
            let Some(id) = self.feedable.pop_front() else { break };
            if self.feed(id) == Some(Fed::More) {
                self.feedable.push_back(id);
            }
        }
    }

    /// Writes one session's input, a bounded amount, and watches for room where there is none.
    pub(crate) fn feed(&mut self, id: SessionId) -> Option<Fed> {
        let fed = self.feed_some(id);
        self.front_fed(id);
        fed
    }

    fn feed_some(&mut self, id: SessionId) -> Option<Fed> {
        let session = self.sessions.get_mut(&id)?;
        if !session.input.wants_feeding() {
            return None;
        }
        let fd = session.input.fd();
        let fed = session.input.feed();
        let watch = fed == Fed::Full;
        let was_watched = session.input.watched;
        session.input.watched = watch;
        session.input_lost |= fed == Fed::Broken;
        let tty = session.facts.tty;
        if let Some(fd) = fd
            && watch != was_watched
        {
            self.watch_input(id, fd, tty, watch);
        }
        if fed == Fed::Broken {
            self.debug(format_args!("session {id}: stdin closed by the child"));
        }
        Some(fed)
    }

    fn watch_input(&mut self, id: SessionId, fd: i32, tty: bool, watch: bool) {
        let both = Interest::READABLE | Interest::WRITABLE;
        let done = match (tty, watch) {
            // The master is in the poll already, for its output.
            (true, true) => self.rewatch(fd, token_of(id, Port::Output), both),
            (true, false) => self.rewatch(fd, token_of(id, Port::Output), Interest::READABLE),
            (false, true) => self.watch(fd, token_of(id, Port::Input), Interest::WRITABLE),
            (false, false) => {
                self.unwatch(fd);
                Ok(())
            }
        };
        if done.is_err()
            && watch
            && let Some(session) = self.sessions.get_mut(&id)
        {
            // No memory for a watch: tried again at the next call that touches the session.
            session.input.watched = false;
        }
    }

    /// Whether anything of a session can be read without waiting for an event.
    pub(crate) fn is_readable(session: &Session) -> bool {
        let ready = session.output.ready || session.errors.as_ref().is_some_and(|one| one.ready);
        ready && !session.output.is_held()
    }
}
