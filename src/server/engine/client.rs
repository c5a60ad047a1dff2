//! One connection: its requests in, its replies and notifications out, within bounds
//! (protocol.md, A slow reader).

mod taken;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use serde::Serialize;

use crate::limits::{
    MAX_PENDING_REQUESTS, OUTBOX_HIGH_BYTES, OUTBOX_LOW_BYTES, OUTBOX_STOP_BYTES,
    REPLY_WRITE_TURN_BYTES, REQUEST_READ_TURN_BYTES, SOCKET_READ_TURN_BYTES,
    SOCKET_WRITE_TURN_BYTES, VIEW_RESUME_BYTES, VIEW_STOP_BYTES,
};
use crate::pure::buffer::news::Told;
use crate::pure::buffer::outbox::Outbox;
use crate::pure::ledger::Place;
use crate::pure::text::lines::LineSplitter;
use crate::server::session::{ClientId, Ticket};
use crate::sys::io::Io;
use crate::sys::stdio::Channel;
use crate::wire::{self, Reason, RequestId, RpcError};

/// The client on stdin and stdout.
pub const STDIN_CLIENT: ClientId = 0;

/// A connection.
#[derive(Debug)]
pub struct Client {
    /// The client's number.
    pub id: ClientId,
    /// Where requests come from.
    pub input: Channel,
    /// Where replies go.
    pub output: Channel,
    /// Cuts the input into lines.
    pub lines: LineSplitter,
    /// What waits to be written.
    pub outbox: Outbox,
    /// The requests that wait for their answer.
    pub in_flight: BTreeMap<RequestId, Ticket>,
    /// There may be something to read (edge-triggered: until WouldBlock).
    pub input_ready: bool,
    /// End of input was read.
    pub input_ended: bool,
    /// The input did not end, but could not be read any further.
    pub input_failed: bool,
    /// What could not be done with the connection, and the errno, until somebody is told.
    pub failed: Option<(&'static str, i32)>,
    /// The output may take something.
    pub output_ready: bool,
    /// The poll is asked to tell when the output becomes writable.
    pub output_watched: bool,
    /// The output in the poll: the token, what the poll is asked for, and what it is asked for
    /// while the output has no room.
    pub output_watch: (Token, Interest, Interest),
    /// Nobody reads any more.
    pub reader_gone: bool,
    /// execd hung up on the client: what the client sent is void.
    hung_up: bool,
    /// The client has sent something or was answered since `active_ns` was last set.
    active: bool,
    /// When the client last sent something or was answered.
    pub active_ns: u64,
    /// How far the client was told the news of sessions.
    pub told: Told,
    /// Which events it was told.
    pub events: Place,
    /// The outbox went over its high mark and has not come below the low one.
    pub crowded: bool,
    /// stdin is not read until the outbox drains.
    pub stopped: bool,
    /// The client has taken output while its input was not read, since that was last asked.
    pub took_while_stopped: bool,
    /// After the end of its input: what its reader had to take then, and was written since.
    written: u64,
    /// What lay unread in its input when that was last looked at, while it is not read.
    unread: Option<usize>,
    /// The client is attached to a session whose output it has not been sent, for want of room.
    pub lags: bool,
    /// How many bytes of requests are read in one turn.
    pub read_turn_bytes: usize,
    /// How many bytes are written to the client in one turn.
    pub write_turn_bytes: usize,
    /// stdout belongs to a command (`execd run`): no protocol on it.
    pub quiet: bool,
    /// How many of its requests are kept until their turn, and how many of these have an id.
    pub kept: usize,
    /// See [`Self::kept`].
    pub kept_with_id: usize,
    /// Its next request starts a command, and the queue of these has no room.
    pub held: bool,
    /// How many of its lines were answered with an error, or would have been, had they an id.
    pub faults: u64,
    /// The number of the first of these lines, and the message.
    pub first_fault: Option<(u64, Box<str>)>,
}

impl Client {
    /// A client over these channels.
    pub fn new(id: ClientId, input: Channel, output: Channel, max_line_bytes: usize) -> Self {
        Self {
            id,
            input,
            output,
            lines: LineSplitter::new(max_line_bytes),
            outbox: Outbox::new(),
            in_flight: BTreeMap::new(),
            input_ready: true,
            input_ended: false,
            input_failed: false,
            failed: None,
            output_ready: true,
            output_watched: false,
            output_watch: (super::watch::REPLIES, Interest::PRIORITY, Interest::WRITABLE),
            reader_gone: false,
            hung_up: false,
            active: true,
            active_ns: 0,
            told: Told::default(),
            events: Place::default(),
            crowded: false,
            stopped: false,
            took_while_stopped: false,
            written: 0,
            unread: None,
            lags: false,
            read_turn_bytes: REQUEST_READ_TURN_BYTES,
            write_turn_bytes: REPLY_WRITE_TURN_BYTES,
            quiet: false,
            kept: 0,
            kept_with_id: 0,
            held: false,
            faults: 0,
            first_fault: None,
        }
    }

    /// Whether replies of waits may be built, and progress sent.
    pub fn has_room(&self) -> bool {
        !self.crowded
    }

    /// A client of the control socket.
    pub fn of_connection(id: ClientId, connection: OwnedFd, max_line_bytes: usize) -> Self {
        let connection = Rc::new(connection);
        let input = Channel::of_connection(Rc::clone(&connection));
        let output = Channel::of_connection(connection);
        Self {
            output_watch: (
                super::watch::client_token(id),
                Interest::READABLE,
                Interest::READABLE | Interest::WRITABLE,
            ),
            read_turn_bytes: SOCKET_READ_TURN_BYTES,
            write_turn_bytes: SOCKET_WRITE_TURN_BYTES,
            ..Self::new(id, input, output, max_line_bytes)
        }
    }

    /// Puts it into the poll.
    pub fn watch(&self, registry: &Registry) -> io::Result<()> {
        let (token, idle, _) = self.output_watch;
        let fd = self.output.poll_fd().ok_or(io::ErrorKind::NotConnected)?;
        registry.register(&mut SourceFd(&fd), token, idle)
    }

    /// Nothing more comes from it or goes to it, and what it sent and was not taken up is void.
    /// The client is told why, where no line to it has begun, as far as it takes that at once.
    pub fn hang_up(&mut self, why: Option<&RpcError>) {
        if let Some(why) = why.filter(|_| self.outbox.is_empty()) {
            let mut line = Vec::new();
            wire::push_error(&mut line, &RequestId::null(), why);
            // Who does not take it finds the connection ended.
            let _ = self.output.write(&line);
        }
        self.hung_up = true;
        self.reader_gone = true;
        self.input_ended = true;
        self.lines = LineSplitter::new(0);
        self.outbox.clear();
    }

    /// Lends the client's lines, so that a line can be carried out where it lies: see
    /// [`Self::give_lines_back`].
    pub fn lend_lines(&mut self) -> LineSplitter {
        std::mem::replace(&mut self.lines, LineSplitter::new(0))
    }

    /// The rest of its lines; void for one that was hung up on meanwhile.
    pub fn give_lines_back(&mut self, lines: LineSplitter) {
        if !self.hung_up {
            self.lines = lines;
        }
    }

    /// Sets when it was last active, where it was since this was last asked.
    pub fn note_activity(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.active) {
            self.active_ns = now_ns;
        }
    }

    /// Whether an attached client may be sent more output.
    pub fn may_view(&self) -> bool {
        self.outbox.len() <= VIEW_STOP_BYTES
    }

    /// Whether one that lagged behind may be sent more.
    pub fn may_resume_view(&self) -> bool {
        self.outbox.len() <= VIEW_RESUME_BYTES
    }

    /// Reads requests, a bounded amount; stops when a line is complete so that a flood of
    /// requests does not fill memory. Gives how many bytes came.
    pub fn read_input(&mut self, buffer: &mut [u8]) -> usize {
        let mut total = 0;
        while self.input_ready
            && !self.input_ended
            && !self.stopped
            && !self.is_held()
            && !self.lines.has_complete_line()
            && total < self.read_turn_bytes
        {
            match self.input.read(buffer) {
                Io::Moved(bytes) => {
                    total += bytes;
                    self.active = true;
                    self.lines.push(&buffer[..bytes]);
                }
                Io::WouldBlock => self.input_ready = false,
                ended @ (Io::Ended | Io::HungUp | Io::Failed(_)) => {
                    if let Io::Failed(errno) = ended {
                        self.failed = Some(("stdin cannot be read", errno));
                        self.input_failed = true;
                    }
                    self.end_input();
                    self.lines.finish();
                }
            }
        }
        total
    }

    /// Whether something can be done without waiting for an event: input to be taken up, or
    /// output that may be taken.
    pub fn has_work(&self) -> bool {
        let readable = self.input_ready && !self.input_ended;
        let taken = !self.stopped && !self.is_held();
        let input = taken && (readable || self.lines.has_complete_line());
        input || (self.output_ready && !self.outbox.is_empty())
    }

    /// Whether there was no room for what is to be written, when that was last tried.
    pub fn is_stuck(&self) -> bool {
        !self.outbox.is_empty() && !self.output_ready
    }

    /// Whether everything it asked for is answered and written, or nobody is there to read it.
    pub fn is_served(&self) -> bool {
        let answered = self.in_flight.is_empty() && self.kept == 0;
        self.reader_gone || (self.outbox.is_empty() && answered)
    }

    /// Whether nothing is left to be done for it. What a client sent before it hung up is still
    /// carried out, but for starts of commands that wait for their turn.
    pub fn is_over(&self) -> bool {
        if self.reader_gone && self.held {
            return true;
        }
        self.input_ended && !self.lines.has_complete_line() && self.is_served()
    }

    /// Queues a reply whose result is JSON text. One that `overtakes` goes before the live chunks
    /// that have piled up for a slow reader.
    pub fn reply_json(&mut self, id: &RequestId, json: &[u8], overtakes: bool) {
        let before = self.outbox.len();
        self.active = true;
        wire::push_result_json(self.outbox.buffer(), id, json);
        if overtakes {
            self.outbox.overtake(self.outbox.len() - before);
        } else {
            self.outbox.hold();
        }
        self.note_level();
    }

    /// Queues a reply.
    pub fn reply(&mut self, id: &RequestId, result: &impl Serialize) {
        self.active = true;
        wire::push_result(self.outbox.buffer(), id, result);
        self.outbox.hold();
        self.note_level();
    }

    /// Queues an error reply.
    pub fn refuse(&mut self, id: &RequestId, error: &RpcError) {
        self.active = true;
        wire::push_error(self.outbox.buffer(), id, error);
        self.outbox.hold();
        self.note_level();
    }

    /// Notes the error of a line, and queues the reply where the line has an id to be answered by:
    /// `data.line` has the line's number.
    pub fn refuse_line(&mut self, id: Option<&RequestId>, error: &RpcError, line: u64) {
        // Who cancels a request in line gets what was asked for.
        if !error.is(Reason::CancelledInLine) {
            self.faults += 1;
            self.first_fault.get_or_insert_with(|| (line, error.message.clone().into()));
        }
        if let Some(id) = id {
            self.refuse(id, &error.clone().with("line", line.into()));
        }
    }

    /// How many bytes the client has sent that were not carried out yet.
    pub fn unread_bytes(&self) -> usize {
        self.lines.buffered_bytes()
    }

    /// Whether no further line of it is taken up until a request of it has been answered, or has
    /// had its turn. Requests of the socket beyond what may wait are refused instead.
    pub fn is_held(&self) -> bool {
        self.held || (self.id == STDIN_CLIENT && self.waiting() >= MAX_PENDING_REQUESTS)
    }

    /// Whether a line of it can be taken up.
    pub fn has_line(&self) -> bool {
        !self.stopped && !self.is_held() && self.lines.has_complete_line()
    }

    /// How many of its requests wait for their answer, but for those that are kept.
    pub fn waiting(&self) -> usize {
        self.in_flight.len() - self.kept_with_id
    }

    /// Queues a notification that is never dropped.
    pub fn notify(&mut self, method: &str, params: &impl Serialize) {
        self.notify_of_chunk(method, params);
        self.outbox.hold();
    }

    /// Queues such a notification with params that are JSON text.
    pub fn notify_json(&mut self, method: &str, params: &[u8]) {
        if self.quiet || self.reader_gone {
            return;
        }
        wire::push_notification_json(self.outbox.buffer(), method, params);
        self.outbox.hold();
        self.note_level();
    }

    /// Queues a live chunk: what tells nothing of a session may overtake it.
    pub fn notify_of_chunk(&mut self, method: &str, params: &impl Serialize) {
        if self.quiet || self.reader_gone {
            return;
        }
        wire::push_notification(self.outbox.buffer(), method, params);
        self.note_level();
    }

    fn note_level(&mut self) {
        self.crowded |= self.outbox.len() > OUTBOX_HIGH_BYTES;
        self.stopped |= self.outbox.len() > OUTBOX_STOP_BYTES;
    }

    /// Asks the poll to tell when the output has room, while it has none.
    pub fn watch_output(&mut self, registry: &Registry) {
        let full = !self.outbox.is_empty() && !self.output_ready;
        if full == self.output_watched {
            return;
        }
        let (token, idle, busy) = self.output_watch;
        let interest = if full { busy } else { idle };
        match self.output.poll_fd() {
            Some(fd) if registry.reregister(&mut SourceFd(&fd), token, interest).is_ok() => {
                self.output_watched = full;
            }
            // What the poll does not watch is always ready, or tried again in the next turn.
            _ => self.output_ready = true,
        }
    }

    /// Writes what the reader takes, a bounded amount. True when room was made where there had
    /// been none.
    pub fn write_output(&mut self) -> bool {
        if self.reader_gone {
            self.outbox.clear();
        }
        let mut left = self.write_turn_bytes;
        while self.output_ready && !self.outbox.is_empty() && left > 0 {
            let front = self.outbox.front();
            match self.output.write(&front[..front.len().min(left)]) {
                Io::Moved(bytes) => {
                    self.outbox.consume(bytes);
                    self.written += bytes as u64;
                    self.took_while_stopped |= self.stopped;
                    left -= bytes;
                }
                Io::WouldBlock => self.output_ready = false,
                ended @ (Io::Ended | Io::HungUp | Io::Failed(_)) => {
                    if let Io::Failed(errno) = ended {
                        self.failed = Some(("stdout cannot be written", errno));
                    }
                    self.reader_gone = true;
                    self.outbox.clear();
                }
            }
        }
        let crowded = self.crowded;
        if self.outbox.len() < OUTBOX_LOW_BYTES {
            self.crowded = false;
            self.stopped &= self.quiet;
        }
        crowded && !self.crowded
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::wire::Reason;

    fn client() -> (Client, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Client::of_connection(7, OwnedFd::from(ours), 1024), theirs)
    }

    fn why() -> RpcError {
        RpcError::failed(Reason::TooManyClients, "for the test")
    }

    /// One that was hung up on in the middle of its own line got its other lines back behind it,
    /// and they still ran.
    /// rule: attach.md, Several clients: Who is hung up on does not get its lines back
    #[test]
    fn who_is_hung_up_on_in_its_own_line_does_not_get_its_lines_back() {
        for hung_up in [false, true] {
            let (mut client, _theirs) = client();
            client.lines.push(b"one\ntwo\n");
            let mut lines = client.lend_lines();
            assert!(lines.next_line().is_some() && !client.lines.has_complete_line());
            if hung_up {
                client.hang_up(Some(&why()));
            }
            client.give_lines_back(lines);
            assert_eq!(client.lines.has_complete_line(), !hung_up);
            assert_eq!(client.is_over(), hung_up);
        }
    }

    /// rule: attach.md, Several clients: Who is hung up on does not get its lines back
    #[test]
    fn who_is_hung_up_on_is_told_why_unless_that_would_end_in_the_middle_of_a_line() {
        for unsent in [false, true] {
            let (mut client, mut theirs) = client();
            if unsent {
                client.refuse(&RequestId::null(), &why());
            }
            client.hang_up(Some(&why()));
            client.write_output();
            assert!(client.is_over() && client.outbox.is_empty());
            drop(client);
            let mut said = String::new();
            theirs.read_to_string(&mut said).unwrap();
            assert_eq!(said.contains("too_many_clients"), !unsent, "{said}");
        }
    }

    /// rule: attach.md, Several clients: At the cap the one idle longest, over 30 s, without waits,
    ///   attachments or wakes makes room
    #[test]
    fn requests_and_answers_are_activity_and_notifications_are_none() {
        let (mut client, mut theirs) = client();
        client.note_activity(1);
        client.notify("a_note", &0);
        client.note_activity(2);
        assert_eq!(client.active_ns, 1);
        client.refuse(&RequestId::null(), &why());
        client.note_activity(3);
        assert_eq!(client.active_ns, 3);
        io::Write::write_all(&mut theirs, b"half a line").unwrap();
        client.read_input(&mut [0; 64]);
        client.note_activity(4);
        client.note_activity(5);
        assert_eq!(client.active_ns, 4);
    }
}
