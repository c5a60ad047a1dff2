//! A connection to an execd that runs: requests out, replies and notifications in. It waits in
//! poll(2), with a deadline where somebody waits for it.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::daemon::logs::errno_text;
use crate::limits::{MAX_MAX_LINE_BYTES, NS_PER_MS, READ_BUFFER_BYTES};
use crate::pure::buffer::outbox::Outbox;
use crate::pure::text::lines::{Line, LineSplitter};
use crate::sys::clock;
use crate::sys::io::Io;
use crate::sys::poll::{self, Watch};
use crate::sys::{host, socket};

/// The user who may be everybody's.
const ROOT: u32 = 0;

/// A result, or an error object.
pub type Outcome = Result<Value, Value>;

/// What execd says.
#[derive(Debug)]
pub enum Message {
    /// The answer to the request of this number.
    Reply(u64, Outcome),
    /// A notification: its method and params.
    Note(String, Value),
    /// It does not talk to us: why.
    Refusal(String),
}

/// A connection to the control socket.
#[derive(Debug)]
pub struct Connection {
    fd: OwnedFd,
    path: PathBuf,
    lines: LineSplitter,
    outbox: Outbox,
    next_id: u64,
    ended: bool,
    /// Messages that came while an answer was waited for.
    kept: VecDeque<Message>,
}

/// The message of an error object.
pub fn message_of(error: &Value) -> String {
    error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned)
}

impl Connection {
    /// Connects to the execd that listens at `path`. Gives a reason for people.
    pub fn open(path: &Path) -> Result<Self, String> {
        let fd = socket::connect(path).map_err(|errno| {
            let shown = path.display();
            match errno {
                socket::NOBODY_LISTENS => format!("{shown}: no execd listens there any more"),
                socket::NOT_ALLOWED => format!("{shown}: it is another user's"),
                errno => format!("{shown}: {}", errno_text(errno)),
            }
        })?;
        let (listener, own) = (socket::peer_uid(&fd), host::uid());
        if !listener.is_ok_and(|uid| uid == own || uid == ROOT || own == ROOT) {
            let shown = path.display();
            return Err(format!("{shown}: another user listens there: it is not asked"));
        }
        Ok(Self {
            fd,
            path: path.to_owned(),
            lines: LineSplitter::new(MAX_MAX_LINE_BYTES),
            outbox: Outbox::new(),
            next_id: 1,
            ended: false,
            kept: VecDeque::new(),
        })
    }

    /// The descriptor, to wait for.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Where it leads.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sends a request; gives its number.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let line = format!("{}\n", json!({"id": id, "method": method, "params": params}));
        self.outbox.push(line.as_bytes());
        self.flush();
        id
    }

    /// Sends what is taken now.
    pub fn flush(&mut self) {
        while !self.outbox.is_empty() {
            match socket::send(&self.fd, self.outbox.front()) {
                Io::Moved(bytes) => self.outbox.consume(bytes),
                Io::WouldBlock => return,
                // Its last words may still be there to be read.
                Io::Ended | Io::HungUp | Io::Failed(_) => return self.outbox.clear(),
            }
        }
    }

    /// Bytes that wait to be sent.
    pub fn unsent_bytes(&self) -> usize {
        self.outbox.len()
    }

    /// Whether it has ended, and everything that came was given.
    pub fn is_over(&self) -> bool {
        self.ended && !self.has_message()
    }

    /// Whether a message has come that was not taken.
    pub fn has_message(&self) -> bool {
        !self.kept.is_empty() || self.lines.has_complete_line()
    }

    /// Reads a piece of what is there.
    pub fn fill(&mut self) {
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        match socket::receive(&self.fd, &mut buffer) {
            Io::Moved(bytes) => self.lines.push(&buffer[..bytes]),
            Io::WouldBlock => {}
            Io::Ended | Io::HungUp | Io::Failed(_) => self.ended = true,
        }
    }

    /// The next message that has come.
    pub fn next(&mut self) -> Option<Message> {
        self.kept.pop_front().or_else(|| self.next_new())
    }

    fn next_new(&mut self) -> Option<Message> {
        while let Some(line) = self.lines.next_line() {
            let Line::Text(line) = line else { continue };
            if let Ok(Value::Object(object)) = serde_json::from_slice(line)
                && let Some(message) = read(object)
            {
                return Some(message);
            }
        }
        None
    }

    /// The answer to a request that was sent, within `wait_ms` (for ever without).
    pub fn answer(&mut self, id: u64, wait_ms: Option<u64>) -> Result<Outcome, String> {
        let due_ns = wait_ms.map(|ms| clock::now_ns() + ms * NS_PER_MS);
        loop {
            while let Some(message) = self.next_new() {
                match message {
                    Message::Reply(of, outcome) if of == id => return Ok(outcome),
                    Message::Refusal(why) => return Err(why),
                    other => self.kept.push_back(other),
                }
            }
            if self.ended {
                return Err(format!("{}: execd has ended", self.path.display()));
            }
            if due_ns.is_some_and(|due_ns| due_ns <= clock::now_ns()) {
                return Err(format!("{}: no answer", self.path.display()));
            }
            let mut watch = [Watch::new(self.fd(), true, self.unsent_bytes() > 0)];
            poll::wait_for(&mut watch, due_ns);
            if watch[0].writable {
                self.flush();
            }
            if watch[0].readable {
                self.fill();
            }
        }
    }

    /// A request and its answer.
    pub fn call(
        &mut self,
        method: &str,
        params: &Value,
        wait_ms: Option<u64>,
    ) -> Result<Outcome, String> {
        let id = self.send(method, params);
        self.answer(id, wait_ms)
    }
}

/// A line as a message.
fn read(mut object: Map<String, Value>) -> Option<Message> {
    if let Some(Value::String(method)) = object.remove("method") {
        return Some(Message::Note(method, object.remove("params").unwrap_or_default()));
    }
    let id = object.get("id").and_then(Value::as_u64);
    let outcome = match object.remove("result") {
        Some(result) => Ok(result),
        None => Err(object.remove("error")?),
    };
    match (id, outcome) {
        (Some(id), outcome) => Some(Message::Reply(id, outcome)),
        (None, Err(error)) => Some(Message::Refusal(message_of(&error))),
        (None, Ok(_)) => None,
    }
}
