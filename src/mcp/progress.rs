//! What a client is told of a call while it waits: at most once a second, with the last line of the
//! output, and every 15 s where there is none. Clients begin their timeouts anew with each.

use serde_json::{Value, json};

use super::fields::{shown, str_of, value};
use crate::limits::{COUNT_MAX, MCP_ALIVE_MS, MCP_PROGRESS_MS, NS_PER_MS};
use crate::pure::agent::Doing;
use crate::pure::text::visible::one_line;
use crate::wire::{self, RequestId};

/// Characters of the message of a notification of progress.
const MCP_MESSAGE_CHARS: usize = 200;

/// What is looked at in execd's notifications.
#[derive(Debug)]
pub(super) struct Note {
    /// The request that it is about, as the id was sent.
    pub request_id: Option<RequestId>,
    pub session_id: Option<u64>,
    /// All of it.
    pub fields: Value,
}

impl Note {
    /// Reads the params of a notification.
    pub(super) fn read(params: &[u8]) -> Self {
        let fields = value(params);
        let session_id = fields.get("session_id").and_then(Value::as_u64);
        Self {
            request_id: request_id(str::from_utf8(params).unwrap_or_default()),
            session_id,
            fields,
        }
    }

    /// A text in it; empty where there is none.
    pub(super) fn text(&self, name: &str) -> &str {
        str_of(&self.fields, name)
    }
}

/// The id that a notification about a request begins with, as it was sent: a parsed one may have
/// lost an escape or a digit.
fn request_id(params: &str) -> Option<RequestId> {
    let rest = params.strip_prefix("{\"request_id\":")?;
    let end = if rest.starts_with('"') {
        let mut escaped = false;
        let closing = rest.bytes().skip(1).position(|byte| {
            let was_escaped = escaped;
            escaped = byte == b'\\' && !was_escaped;
            byte == b'"' && !was_escaped
        });
        closing? + 2
    } else {
        rest.find([',', '}'])?
    };
    RequestId::from_json(&rest[..end])
}

/// The progress of one call.
#[derive(Debug)]
pub(super) struct Progress {
    token: Value,
    since_ns: u64,
    sent_ns: Option<u64>,
    /// The number that was sent last: each is greater than the one before.
    sent: u64,
    /// The newest line that was not told yet.
    untold: Option<String>,
    /// The last line of a run of pi, whose text comes in pieces.
    doing: Doing,
}

impl Progress {
    /// The progress of a call that begins now; `None` for a token that is none.
    pub(super) fn new(token: &Value, now_ns: u64) -> Option<Self> {
        // 1.0 is a whole number too. One that is read as another is none: nobody would know it.
        let is_whole = |number: f64| number.fract() == 0.0 && number.abs() < COUNT_MAX;
        let fits = token.is_string() || token.is_u64() || token.as_f64().is_some_and(is_whole);
        fits.then(|| Self {
            token: token.clone(),
            since_ns: now_ns,
            sent_ns: None,
            sent: 0,
            untold: None,
            doing: Doing::default(),
        })
    }

    /// Output has come.
    pub(super) fn heard(&mut self, note: &Note, now_ns: u64, out: &mut Vec<u8>) {
        let text = match note.text("tail") {
            "" => note.text("chunk"),
            tail => tail,
        };
        let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        self.untold = Some(one_line(line).chars().take(MCP_MESSAGE_CHARS).collect());
        self.tick(now_ns, out);
    }

    /// A run of pi has told something.
    pub(super) fn heard_agent(&mut self, note: &Note, now_ns: u64, out: &mut Vec<u8>) {
        match note.text("event") {
            "text" => self.doing.read_on(note.text("delta")),
            "tool_use" => self.doing.call(note.text("name"), &shown(&note.fields, "input")),
            "retry" => self.doing.call("tries again:", note.text("message")),
            _ => return,
        }
        self.untold = Some(self.doing.line());
        self.tick(now_ns, out);
    }

    /// When there is something to tell.
    pub(super) fn due_ns(&self) -> u64 {
        match (&self.untold, self.sent_ns) {
            (Some(_), None) => self.since_ns,
            (Some(_), Some(sent_ns)) => sent_ns + MCP_PROGRESS_MS * NS_PER_MS,
            (None, sent_ns) => sent_ns.unwrap_or(self.since_ns) + MCP_ALIVE_MS * NS_PER_MS,
        }
    }

    /// Tells it once that is due.
    pub(super) fn tick(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        if now_ns < self.due_ns() {
            return;
        }
        let elapsed_ms = now_ns.saturating_sub(self.since_ns) / NS_PER_MS;
        self.sent = elapsed_ms.max(self.sent + 1);
        self.sent_ns = Some(now_ns);
        let line = self.untold.take().filter(|line| !line.is_empty());
        let message = line.as_deref().unwrap_or("still waiting");
        let told = json!({
            "progressToken": self.token, "progress": self.sent, "message": message,
        });
        wire::push_notification(out, "notifications/progress", &told);
    }
}
