//! Error replies: codes, messages and their data (protocol.md, Errors).

use std::fmt::Display;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::limits::QUOTED_VALUE_BYTES;
use crate::pure::text::utf8::floor_boundary;

/// The stable words of `data.reason` in a -32000 error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// No such session, or not any more.
    UnknownSession,
    /// The session has exited.
    SessionExited,
    /// The child's stdin is closed.
    StdinClosed,
    /// More input is queued than the child reads.
    StdinBacklogFull,
    /// A line longer than a canonical-mode terminal delivers.
    LineTooLongForTerminal,
    /// Too many requests of this client are waiting.
    TooManyRequests,
    /// The request was cancelled before its turn had come.
    CancelledInLine,
    /// As many clients are connected as may be.
    TooManyClients,
    /// The socket is another user's.
    NotYours,
    /// As many jobs run as may at once.
    TooManySessions,
    /// More input than a job takes over its life.
    StdinCapExceeded,
    /// The terminal would show a secret.
    EchoIsOn,
    /// execd is ending.
    ShuttingDown,
    /// A request line over --max-line-bytes.
    LineTooLong,
    /// The operating system refused the operation.
    System,
}

/// An error reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RpcError {
    /// JSON-RPC's code.
    pub code: i32,
    /// What is wrong, and what to do instead where that is known.
    pub message: String,
    /// What a program needs to act on it.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
    /// Where in the message the method is named, once it is known.
    #[serde(skip)]
    method_at: Option<usize>,
}

impl RpcError {
    fn new(code: i32, message: String) -> Self {
        Self { code, message, data: Map::new(), method_at: None }
    }

    /// Adds a field to the data.
    #[must_use]
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.data.insert(key.to_owned(), value);
        self
    }

    /// An error of another protocol than execd's own.
    pub fn coded(code: i32, message: String) -> Self {
        Self::new(code, message)
    }

    /// -32700: the line is no JSON.
    pub fn parse(why: &dyn Display) -> Self {
        Self::new(-32700, format!("the line is not valid JSON: {why}"))
    }

    /// -32600: JSON, but no request.
    pub fn invalid_request(why: &str) -> Self {
        Self::new(-32600, why.to_owned())
    }

    /// -32601: an unknown method; the known ones are listed.
    pub fn unknown_method(name: &str, known: &[&str]) -> Self {
        let cut = name.len() - floor_boundary(name, QUOTED_VALUE_BYTES);
        let shown = if cut == 0 {
            super::quoted(&json!(name).to_string())
        } else {
            format!("{}… ({} bytes)", json!(&name[..name.len() - cut]), name.len())
        };
        let message = format!("unknown method {shown} (data.methods lists the known ones)");
        Self::new(-32601, message).with("methods", json!(known))
    }

    /// -32602: something is wrong with the param `param`.
    pub fn invalid_param(param: &str, message: impl Into<String>) -> Self {
        Self::new(-32602, message.into()).with("param", json!(param))
    }

    /// -32602: there is no param `param`, in a line `shown`; `what` says what there is instead.
    pub fn unknown_param(param: &str, shown: &str, what: &str) -> Self {
        let message = format!("{shown}: unknown param");
        let method_at = Some(message.len());
        let error = Self::invalid_param(param, message + what);
        Self { method_at, ..error }
    }

    /// The same error of this method.
    #[must_use]
    pub fn of_method(mut self, method: &str) -> Self {
        if let Some(at) = self.method_at.take() {
            self.message.insert_str(at, &format!(" of {method}"));
        }
        self
    }

    /// The same without what the message quotes, which may be a secret.
    #[must_use]
    pub fn without_value(mut self) -> Self {
        let quote = [", not ", ". ("].iter().filter_map(|mark| self.message.find(mark)).min();
        if let Some(at) = quote {
            self.message.truncate(at);
        }
        self
    }

    /// Whether the operation failed for `reason`.
    pub fn is(&self, reason: Reason) -> bool {
        self.data.get("reason").is_some_and(|told| *told == json!(reason))
    }

    /// -32000: the operation failed for `reason`.
    pub fn failed(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(-32000, message.into()).with("reason", json!(reason))
    }
}
