//! A client of the control socket.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

use serde_json::{Value, json};

use super::lines::{Incoming, value};
use super::{PATIENCE, comes_within};

/// A connection whose lines a thread reads.
pub struct Wire {
    stream: UnixStream,
    incoming: Incoming,
    /// Every line that has come, and when.
    pub seen: Vec<(Instant, Value)>,
    next_id: u64,
}

/// Connects without reading anything.
pub fn connect(path: &Path) -> UnixStream {
    let mut connected = UnixStream::connect(path);
    comes_within(PATIENCE, || {
        if connected.is_err() {
            connected = UnixStream::connect(path);
        }
        connected.is_ok()
    });
    connected.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Wire {
    pub fn connect(path: &Path) -> Self {
        let stream = connect(path);
        let incoming = Incoming::from(stream.try_clone().expect("a copy"));
        Self { stream, incoming, seen: Vec::new(), next_id: 0 }
    }

    /// Writes bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("execd reads its socket");
    }

    /// Sends a request under this id.
    pub fn send_as(&mut self, id: u64, method: &str, params: &Value) {
        let line = format!("{}\n", json!({"id": id, "method": method, "params": params}));
        self.raw(line.as_bytes());
    }

    /// Sends a request; gives its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        self.send_as(self.next_id, method, &params);
        self.next_id
    }

    /// Says that no more requests come.
    pub fn no_more(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("connected");
    }

    /// The next line; `None` when the connection has ended.
    pub fn line(&mut self) -> Option<&Value> {
        match self.incoming.next(Instant::now() + PATIENCE) {
            Ok((at, line)) => {
                self.seen.push((at, value(&line)));
                self.seen.last().map(|(_, line)| line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line after {:?}", self.seen.last()),
        }
    }

    /// The first line that fits and has come, or comes.
    pub fn until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some((_, line)) = self.seen.iter().find(|(_, line)| fits(line)) {
            return line.clone();
        }
        loop {
            match self.line() {
                Some(line) if fits(line) => return line.clone(),
                Some(_) => {}
                None => panic!("the connection ended before {what}: {:?}", self.seen.last()),
            }
        }
    }

    /// The reply to a request.
    pub fn reply(&mut self, id: u64) -> Value {
        let fits = |line: &Value| line.get("method").is_none() && line["id"] == id;
        self.until(&format!("the reply to {id}"), fits)
    }

    /// A request and its result.
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let reply = self.reply(id);
        assert!(reply.get("result").is_some(), "{method}: {reply}");
        reply["result"].clone()
    }

    /// A request and its error.
    pub fn error(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let reply = self.reply(id);
        assert!(reply.get("error").is_some(), "{method}: {reply}");
        reply["error"].clone()
    }

    /// The first notification of a method that fits.
    pub fn note(&mut self, method: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let is = |line: &Value| line["method"] == method && fits(&line["params"]);
        self.until(&format!("a notification {method}"), is)["params"].clone()
    }

    /// All notifications of a method until now.
    pub fn notes(&mut self, method: &str) -> Vec<Value> {
        self.result("ping", json!({}));
        let all = self.seen.iter().map(|(_, line)| line);
        all.filter(|line| line["method"] == method).map(|line| line["params"].clone()).collect()
    }

    /// All lines until the connection ends.
    pub fn all_to_the_end(&mut self) -> Vec<Value> {
        while self.line().is_some() {}
        self.seen.iter().map(|(_, line)| line.clone()).collect()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // The reader has a copy of its own.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
