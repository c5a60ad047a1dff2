//! The way in and out of the protocol: what each line of the host and of execd leads to. Each
//! function appends whole lines to `out`, or none.

use serde_json::{Value, json};

use super::era::{self, Freshness};
use super::fields::{is_set, shown, value};
use super::progress::{Note, Progress};
use super::resources;
use super::text;
use super::{Asked, Mcp, What};
use crate::pure::text::visible;
use crate::sys::clock;
use crate::wire::{self, RequestId, RpcError};

impl Mcp {
    /// Takes a line of the host, without its newline. Gives what the line asks of execd, in this
    /// order; what needs nothing of execd is answered at once.
    pub(super) fn read(&mut self, line: &[u8], out: &mut Vec<u8>) -> Vec<Asked> {
        if line.trim_ascii().is_empty() {
            return Vec::new();
        }
        match wire::parse(line) {
            Ok(request) => match unlike_the_protocol(line, &request) {
                None => return self.take(&request, out),
                Some((id, error)) => Self::push_error(&id, &error, out),
            },
            // An answer to a request of ours: there are none.
            Err(_) if is_answer(line) => {}
            Err(refused) => {
                if let Some(id) = refused.id {
                    Self::push_error(&id, &refused.error, out);
                }
            }
        }
        Vec::new()
    }

    /// Takes the result of a request, JSON text.
    pub(super) fn reply(&mut self, id: &RequestId, result: &[u8], out: &mut Vec<u8>) {
        match id.as_json() {
            super::OWN_EVENTS => return self.late.events(&value(result)),
            super::OWN_ENDED => return self.resources.ended(&value(result)),
            _ => {}
        }
        let Some(running) = self.take_running(id) else {
            return self.resources.attached_by(id, true, out);
        };
        match &running.what {
            What::Tool { .. } => self.answer_tool(id, running, result, out),
            _ if running.cancelled => {}
            What::Subscribe(session, _) => {
                era::push_result(out, id, running.era, Freshness::Once, &json!({}));
                self.resources.attached(*session, true, out);
            }
            What::ListResources => {
                let body = self.resources.list(result);
                era::push_result(out, id, running.era, Freshness::Changing, &body);
            }
            What::ReadResource(uri) => match resources::contents(uri, result, running.era) {
                Ok(body) => era::push_result(out, id, running.era, Freshness::Changing, &body),
                Err(error) => wire::push_error(out, id, &error),
            },
        }
    }

    /// Takes the error that a request is answered with. The id is null where a line could not be
    /// read.
    pub(super) fn refuse(&mut self, id: &RequestId, error: &RpcError, out: &mut Vec<u8>) {
        let Some(running) = self.take_running(id) else {
            // What is asked for on our own account fails without a word.
            if *id == RequestId::null() {
                Self::push_error(id, error, out);
            }
            self.resources.attached_by(id, false, out);
            return;
        };
        if let What::Subscribe(session, _) = running.what {
            self.resources.attached(session, false, out);
        }
        if running.cancelled {
            return;
        }
        match &running.what {
            What::Tool { tool, .. } => {
                let body = self.told(text::refused(*tool, &error.message), true, None);
                era::push_result(out, id, running.era, Freshness::Once, &body);
            }
            What::ReadResource(uri) => {
                let error = resources::unreadable(uri, error, running.era);
                wire::push_error(out, id, &error);
            }
            What::Subscribe(session, uri) => {
                let error = resources::unwatched(*session, uri, error);
                wire::push_error(out, id, &error);
            }
            What::ListResources => wire::push_error(out, id, error),
        }
    }

    /// Takes a notification of execd with its params, JSON text.
    /// `crowded`: the host reads nothing, so that what goes on is told later, or not at all.
    pub(super) fn notify(&mut self, method: &str, params: &[u8], crowded: bool, out: &mut Vec<u8>) {
        let note = Note::read(params);
        match method {
            "progress" | "tool_execution_output" | "agent_event" => {
                let id = note.request_id.as_ref();
                let running = id.and_then(|id| self.running_mut(id));
                let progress = running.and_then(|one| one.progress.as_mut());
                if let Some(progress) = progress.filter(|_| !crowded) {
                    let heard = match method {
                        "agent_event" => Progress::heard_agent,
                        _ => Progress::heard,
                    };
                    heard(progress, &note, clock::now_ns(), out);
                }
            }
            "session_exited" if self.has_channel && is_set(&note.fields, "wake") => {
                push_channel(&note, out);
            }
            "window_exited" => self.late.window_exited(&note.fields),
            "attach_output" => self.resources.changed(&note),
            "attach_ended" => self.resources.over(&note, out),
            _ => {}
        }
    }

    /// When [`Self::tick`] is to be called, on the monotonic clock; `None`: not before something
    /// else happens.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let calls = self.running.iter().filter_map(|(_, one)| one.progress.as_ref());
        calls.map(Progress::due_ns).chain(self.resources.due_ns()).min()
    }

    /// Tells what is due.
    pub(super) fn tick(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        for progress in self.running.iter_mut().filter_map(|(_, one)| one.progress.as_mut()) {
            progress.tick(now_ns, out);
        }
        self.resources.tick(now_ns, out);
    }
}

/// What of a request is right for execd, which is lenient, and not for the protocol: the id to
/// refuse it by, and why. Nobody is told of a notification.
fn unlike_the_protocol(line: &[u8], request: &wire::Request<'_>) -> Option<(RequestId, RpcError)> {
    let id = request.id.clone()?;
    if id.as_json().starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && id.as_json().contains(['.', 'e', 'E'])
    {
        let why = "id must be a string or a whole number";
        return Some((RequestId::null(), RpcError::invalid_request(why)));
    }
    let is_named = value(line).get("jsonrpc").is_some();
    (!is_named).then(|| (id, RpcError::invalid_request("jsonrpc must be \"2.0\"")))
}

/// Whether a line without a method is an answer.
fn is_answer(line: &[u8]) -> bool {
    let message = value(line);
    let has = |name: &str| message.get(name).is_some();
    !has("method") && (has("result") || has("error"))
}

/// Tells the model of a session's end that it wanted to be woken for.
fn push_channel(note: &Note, out: &mut Vec<u8>) {
    let id = note.session_id.unwrap_or_default();
    let (code, signal) = (shown(&note.fields, "exit_code"), note.text("signal"));
    let how = if code.is_empty() { "ended" } else { "exited" };
    let log = match shown(&note.fields, "log_path") {
        log if log.is_empty() => log,
        log => format!("; log: {log}"),
    };
    let name = visible::name(note.fields.get("name").and_then(Value::as_str), "");
    let said = format!("session {id}{name} {how} {code}{signal}{log}");
    let params = json!({"content": said, "meta": {"session_id": id.to_string()}});
    wire::push_notification(out, "notifications/claude/channel", &params);
}
