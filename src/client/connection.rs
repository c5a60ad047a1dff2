//! The way to an execd, over its control socket or over pipes: requests go out, replies and
//! notifications come in. A connection waits in poll(2), with a deadline where its caller has one.
//! What the messages mean is left to the commands.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Map, Value, json};

use crate::limits::{MAX_MAX_LINE_BYTES, NS_PER_MS, READ_BUFFER_BYTES};
use crate::pure::buffer::outbox::Outbox;
use crate::pure::text::lines::{Line, LineSplitter};
use crate::sys::clock;
use crate::sys::errno::errno_text;
use crate::sys::io::{self, Io};
use crate::sys::poll::{self, Watch};
use crate::sys::{host, socket};

/// The user whose execd is spoken to whoever asks, and who may speak to everybody's.
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
    /// An error that names no request: what was sent could not be read, or execd does not talk to
    /// this client.
    Refusal(Value),
}

/// A connection to one execd.
#[derive(Debug)]
pub struct Connection {
    /// Where messages come from.
    from: Rc<OwnedFd>,
    /// Where requests go, which is the same descriptor for a socket; absent after
    /// [`Self::end_requests`].
    to: Option<Rc<OwnedFd>>,
    /// The control socket; absent where execd was started for this connection.
    path: Option<PathBuf>,
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
        let fd = Rc::new(fd);
        Ok(Self::over(Rc::clone(&fd), fd, Some(path.to_owned())))
    }

    /// A connection over two pipes, both non-blocking, to an execd that was started for it. Of what
    /// that execd says only answers are kept.
    pub fn of_pipes(from: OwnedFd, to: OwnedFd) -> Self {
        Self::over(Rc::new(from), Rc::new(to), None)
    }

    fn over(from: Rc<OwnedFd>, to: Rc<OwnedFd>, path: Option<PathBuf>) -> Self {
        Self {
            from,
            to: Some(to),
            path,
            lines: LineSplitter::new(MAX_MAX_LINE_BYTES),
            outbox: Outbox::new(),
            next_id: 1,
            ended: false,
            kept: VecDeque::new(),
        }
    }

    /// What is to be waited for: messages, where the caller may take them (`may_read`), and room
    /// for requests that are not sent yet.
    pub fn watches(&self, may_read: bool) -> [Watch; 2] {
        let to = self.to.as_ref().map_or(-1, |to| to.as_raw_fd());
        let unsent = !self.outbox.is_empty();
        [Watch::new(self.from.as_raw_fd(), may_read, false), Watch::new(to, false, unsent)]
    }

    /// Sends and reads what can be, after a wait for [`Self::watches`].
    pub fn move_on(&mut self, watches: &[Watch]) {
        if watches.iter().any(|watch| watch.writable) {
            self.flush();
        }
        if watches.iter().any(|watch| watch.readable) {
            self.fill();
        }
    }

    /// The control socket, where the connection leads to one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// No more requests will come: what is unsent is dropped, and execd reads the end of its
    /// stdin.
    pub fn end_requests(&mut self) {
        self.outbox.clear();
        self.to = None;
    }

    /// Sends a request; gives its number.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let line = format!("{}\n", json!({"id": id, "method": method, "params": params}));
        self.send_lines(line.as_bytes());
        id
    }

    /// Sends whole lines, their newlines included, whose ids are the caller's own.
    pub fn send_lines(&mut self, lines: &[u8]) {
        self.outbox.push(lines);
        self.flush();
    }

    /// Sends what is taken now.
    fn flush(&mut self) {
        while !self.outbox.is_empty() {
            let Some(to) = &self.to else { return self.outbox.clear() };
            match io::write(to.as_raw_fd(), self.outbox.front()) {
                Io::Moved(bytes) => self.outbox.consume(bytes),
                Io::WouldBlock => return,
                // The last words of an execd that is gone may still be there to be read.
                Io::Ended | Io::HungUp | Io::Failed(_) => return self.outbox.clear(),
            }
        }
    }

    /// Bytes that wait to be sent.
    pub fn unsent_bytes(&self) -> usize {
        self.outbox.len()
    }

    /// Whether the connection has ended, and everything that came was given.
    pub fn is_over(&self) -> bool {
        self.ended && !self.has_message()
    }

    /// Whether a message has come that was not taken.
    pub fn has_message(&self) -> bool {
        !self.kept.is_empty() || self.lines.has_complete_line()
    }

    /// Reads a piece of what is there.
    fn fill(&mut self) {
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        match io::read(self.from.as_raw_fd(), &mut buffer) {
            Io::Moved(bytes) => self.lines.push(&buffer[..bytes]),
            Io::WouldBlock => {}
            Io::Ended | Io::HungUp | Io::Failed(_) => self.ended = true,
        }
    }

    /// The next line as it came, for a caller that passes messages on.
    pub fn next_text(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Line::Text(line) = self.lines.next_line()? {
                return Some(line.to_vec());
            }
        }
    }

    /// The next message that has come.
    pub fn next_message(&mut self) -> Option<Message> {
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
                    // Nobody else speaks to this execd: what is refused is this request.
                    Message::Refusal(error) if self.path.is_none() => return Ok(Err(error)),
                    Message::Refusal(error) => return Err(message_of(&error)),
                    Message::Note(..) if self.path.is_none() => {}
                    other => self.kept.push_back(other),
                }
            }
            if self.ended {
                return Err(match &self.path {
                    Some(path) => format!("{}: execd has ended", path.display()),
                    None => "execd ended without an answer: see its message above".to_owned(),
                });
            }
            if due_ns.is_some_and(|due_ns| due_ns <= clock::now_ns()) {
                let path = self.path.as_deref().unwrap_or(Path::new("execd"));
                return Err(format!("{}: no answer", path.display()));
            }
            let mut watches = self.watches(true);
            poll::wait_for(&mut watches, due_ns);
            self.move_on(&watches);
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

    /// A request and its result. Gives a reason for people where there is none.
    pub fn result(
        &mut self,
        method: &str,
        params: &Value,
        wait_ms: Option<u64>,
    ) -> Result<Value, String> {
        self.call(method, params, wait_ms)?.map_err(|error| message_of(&error))
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
        (None, Err(error)) => Some(Message::Refusal(error)),
        (None, Ok(_)) => None,
    }
}
