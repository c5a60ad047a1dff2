//! Logs of sessions as resources (docs/mcp.md, Logs): listed, read by parts, and watched.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Asked;
use super::era::{Era, OfSubscription};
use super::fields::{is_set, items, number, shown, str_of, value};
use super::progress::Note;
use crate::limits::{EVENTS_KEPT, MCP_PROGRESS_MS, MCP_READ_BYTES, NS_PER_MS};
use crate::pure::text::visible;
use crate::wire::{self, RequestId, RpcError, quoted};

/// Sessions that have ended and are still listed as resources.
const MCP_RECENT_COUNT: usize = 64;

/// Sessions whose logs a client may be subscribed to, and subscriptions to one log.
const MCP_SUBSCRIPTIONS_MAX: usize = 64;

/// The code of a resource that there is not, in the older era.
const NOT_FOUND: i32 = -32002;
/// The same in the newer one: the params are wrong.
const INVALID_PARAMS: i32 = -32602;

/// A log that is watched.
#[derive(Debug, Default)]
struct Watched {
    /// By `resources/subscribe`: the URIs as they were given.
    uris: Vec<String>,
    /// By `subscriptions/listen`: the requests, with the URIs.
    listeners: Vec<(RequestId, String)>,
    /// Its session is known to run.
    is_attached: bool,
    sent_ns: Option<u64>,
    /// More has come since.
    is_due: bool,
}

impl Watched {
    fn due_ns(&self) -> Option<u64> {
        self.is_due.then(|| self.sent_ns.map_or(0, |at| at + MCP_PROGRESS_MS * NS_PER_MS))
    }

    fn tell(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        (self.sent_ns, self.is_due) = (Some(now_ns), false);
        let plain = self.uris.iter().map(|uri| (None, uri));
        for (id, uri) in plain.chain(self.listeners.iter().map(|(id, uri)| (Some(id), uri))) {
            let meta = id.map(|id| OfSubscription { id });
            wire::push_notification(out, "notifications/resources/updated", &Updated { meta, uri });
        }
    }
}

/// What is told of a log of which more has come.
#[derive(Debug, Serialize)]
struct Updated<'a> {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<OfSubscription<'a>>,
    uri: &'a str,
}

/// What a request that listens is told first.
#[derive(Debug, Serialize)]
struct Acknowledged<'a> {
    #[serde(rename = "_meta")]
    meta: OfSubscription<'a>,
    notifications: Value,
}

/// The result of a request that listens.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Closed<'a> {
    result_type: &'static str,
    #[serde(rename = "_meta")]
    meta: OfSubscription<'a>,
}

/// A request that listens.
#[derive(Debug)]
struct Listening {
    request: RequestId,
    /// The logs, by their sessions and URIs; `None`: it has not asked for any.
    logs: Option<Vec<(u64, String)>>,
    /// Its client was told which of them it hears of. Nothing is told of them before that.
    is_acknowledged: bool,
}

/// What a connection has to do with logs.
#[derive(Debug, Default)]
pub(super) struct Resources {
    watched: Vec<(u64, Watched)>,
    /// The requests that listen, in the order in which they came.
    listening: Vec<Listening>,
    /// Sessions that had ended when this was asked for, their names and commands: the newest last.
    recent: Vec<(u64, String, String)>,
}

/// The name of a session behind its id.
fn name_of(row: &Value) -> String {
    visible::name(row.get("name").and_then(Value::as_str), str_of(row, "command"))
}

/// The session whose log a URI is, and where the part begins and ends that is asked for.
fn parse(uri: &str) -> Option<(u64, Option<i64>, Option<u64>)> {
    let rest = uri.strip_prefix("execd://session/")?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    // A larger number is none of a session's, and would be told as another one.
    let id = path.strip_suffix("/log")?.parse().ok().filter(|id| i64::try_from(*id).is_ok())?;
    let (mut from, mut to) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=')? {
            ("from", value) => from = Some(value.parse().ok()?),
            ("to", value) => to = Some(value.parse().ok()?),
            _ => return None,
        }
    }
    Some((id, from, to))
}

fn uri_of(params: &Map<String, Value>) -> Result<String, RpcError> {
    let uri = params.get("uri").and_then(Value::as_str);
    let uri = uri.ok_or_else(|| RpcError::invalid_param("uri", "uri must be a string"))?;
    Ok(uri.to_owned())
}

fn too_many() -> RpcError {
    let message = format!("at most {MCP_SUBSCRIPTIONS_MAX} subscriptions: end some first");
    RpcError::invalid_request(&message)
}

/// There is no such resource, or it cannot be read.
fn refused(uri: &str, era: Era, message: String) -> RpcError {
    let code = if era == Era::Stateless { INVALID_PARAMS } else { NOT_FOUND };
    RpcError::coded(code, message).with("uri", uri.into())
}

fn unknown(uri: &str, era: Era) -> RpcError {
    let shown = quoted(&Value::from(uri).to_string());
    let message = format!(
        "there is no resource {shown}: logs are execd://session/ID/log, a part of one \
         execd://session/ID/log?from=N"
    );
    refused(uri, era, message)
}

/// The URI of a request to read, and what execd is asked for it.
pub(super) fn reading(params: &Map<String, Value>, era: Era) -> Result<(String, Value), RpcError> {
    let uri = uri_of(params)?;
    let (id, from, to) = parse(&uri).ok_or_else(|| unknown(&uri, era))?;
    let mut asked = json!({"session_id": id, "max_bytes": MCP_READ_BYTES});
    if let Some(from) = from {
        asked["from"] = from.into();
    }
    if let Some(to) = to {
        asked["to"] = to.into();
    }
    Ok((uri, asked))
}

/// The result of a reading: the text, and where in the log it stands.
/// Errors: the session has ended, and nothing of its output was kept.
pub(super) fn contents(uri: &str, result: &[u8], era: Era) -> Result<Value, RpcError> {
    let reply = value(result);
    let is_gone = reply.get("gap").is_some() && str_of(&reply, "text").is_empty();
    if is_gone && str_of(&reply, "log_path").is_empty() {
        let message = "there is no log of it (--no-log), and memory does not have this part";
        return Err(refused(uri, era, message.to_owned()));
    }
    let meta = json!({
        "execd/from": number(&reply, "from"),
        "execd/next": number(&reply, "next_offset"),
        "execd/total": number(&reply, "total_bytes"),
        "execd/eof": is_set(&reply, "eof"),
    });
    let text = str_of(&reply, "text");
    let content = json!({"uri": uri, "mimeType": "text/plain", "text": text, "_meta": meta});
    Ok(json!({"contents": [content]}))
}

/// Why a log cannot be watched.
pub(super) fn unwatched(id: u64, uri: &str, error: &RpcError) -> RpcError {
    let why = &error.message;
    let message = format!("session {id} does not run ({why}): nothing more comes of it");
    refused(uri, Era::Connected, message)
}

/// Asks for the sessions that have ended.
pub(super) fn ask_ended() -> Asked {
    let params = json!({"peek": true, "max": EVENTS_KEPT}).to_string();
    Asked { id: RequestId::from_json(super::OWN_ENDED), method: "events", params }
}

/// Why a log could not be read.
pub(super) fn unreadable(uri: &str, error: &RpcError, era: Era) -> RpcError {
    refused(uri, era, error.message.clone())
}

/// The templates of the URIs.
pub(super) fn templates() -> Value {
    let description = "Its output as clean text, 36 KiB at most: from byte `from` on (negative: \
                       before the end), else the last. _meta has execd/next, the `from` of the \
                       next part.";
    json!({"resourceTemplates": [{
        "uriTemplate": "execd://session/{id}/log{?from,to}", "name": "log",
        "title": "Log of a session", "description": description, "mimeType": "text/plain",
    }]})
}

/// Asks on our own account; nobody sees the answer.
fn own(method: &'static str, id: u64, params: &Value) -> Asked {
    let asked_by = RequestId::from_json(&format!("\"execd {method}{id}\""));
    Asked { id: asked_by, method, params: params.to_string() }
}

fn attach(id: u64) -> Asked {
    // From far behind its end: what there is already is no news.
    let from = 1_u64 << 52;
    own("attach_session", id, &json!({"session_id": id, "from": from, "redraw": false}))
}

fn detach(id: u64) -> Asked {
    own("detach_session", id, &json!({"session_id": id}))
}

impl Resources {
    /// The result of a list: the sessions that there are, and those that have ended lately.
    pub(super) fn list(&self, result: &[u8]) -> Value {
        let reply = value(result);
        let rows = items(&reply, "sessions");
        let resource = |id: u64, name: &str, command: &str, runs: bool| {
            let state = if runs { " (runs)" } else { " (has ended)" };
            let about: String = command.chars().take(120).chain(state.chars()).collect();
            json!({
                "uri": format!("execd://session/{id}/log"), "name": format!("session {id}{name}"),
                "description": about.trim_start(), "mimeType": "text/plain",
            })
        };
        let mut resources = Vec::new();
        for row in rows {
            let (id, command) = (number(row, "session_id"), shown(row, "command"));
            resources.push(resource(id, &name_of(row), &command, is_set(row, "running")));
        }
        for (id, name, command) in self.recent.iter().rev() {
            if !rows.iter().any(|row| number(row, "session_id") == *id) {
                resources.push(resource(*id, name, command, false));
            }
        }
        json!({"resources": resources})
    }

    /// Takes the sessions that have ended from the events.
    pub(super) fn ended(&mut self, reply: &Value) {
        let ends =
            items(reply, "events").iter().rev().filter(|one| str_of(one, "what") == "exited");
        let row = |one: &Value| (number(one, "session_id"), name_of(one), shown(one, "command"));
        self.recent = ends.take(MCP_RECENT_COUNT).map(row).collect();
        self.recent.reverse();
    }

    /// Whether a session's log can be watched is known: there may be no such session, or it may
    /// run no more.
    pub(super) fn attached(&mut self, id: u64, runs: bool, out: &mut Vec<u8>) {
        if !runs {
            self.watched.retain(|(own, _)| *own != id);
        } else if let Some(watched) = self.watched_mut(id) {
            watched.is_attached = true;
        }
        self.acknowledge(out);
    }

    /// The same by the id under which it was asked on our own account.
    pub(super) fn attached_by(&mut self, asked: &RequestId, runs: bool, out: &mut Vec<u8>) {
        let mut ids = self.watched.iter().map(|(id, _)| *id);
        if let Some(id) = ids.find(|id| attach(*id).id.as_ref() == Some(asked)) {
            self.attached(id, runs, out);
        }
    }

    /// Tells those that listen which logs they hear of, once that is known of all of them.
    fn acknowledge(&mut self, out: &mut Vec<u8>) {
        let watched = &self.watched;
        let find = |id: u64| watched.iter().find(|(own, _)| *own == id).map(|(_, one)| one);
        for one in self.listening.iter_mut().filter(|one| !one.is_acknowledged) {
            let logs = one.logs.as_deref().unwrap_or_default();
            if logs.iter().any(|(id, _)| find(*id).is_some_and(|one| !one.is_attached)) {
                continue;
            }
            one.is_acknowledged = true;
            // What does not run is left out: nothing more comes of it.
            let run = logs.iter().filter(|(id, _)| find(*id).is_some());
            let uris: Vec<&String> = run.map(|(_, uri)| uri).collect();
            let notifications = match one.logs {
                Some(_) => json!({"resourceSubscriptions": uris}),
                None => json!({}),
            };
            let meta = OfSubscription { id: &one.request };
            let told = Acknowledged { meta, notifications };
            wire::push_notification(out, "notifications/subscriptions/acknowledged", &told);
        }
    }

    fn watched_mut(&mut self, id: u64) -> Option<&mut Watched> {
        self.watched.iter_mut().find(|(own, _)| *own == id).map(|(_, watched)| watched)
    }

    fn watch(&mut self, id: u64) -> Result<(&mut Watched, Vec<Asked>), RpcError> {
        let known = self.watched_mut(id).map(|one| one.uris.len() + one.listeners.len());
        if known.unwrap_or(self.watched.len()) >= MCP_SUBSCRIPTIONS_MAX {
            return Err(too_many());
        }
        if known.is_none() {
            self.watched.push((id, Watched::default()));
        }
        let asked = if known.is_none() { vec![attach(id)] } else { Vec::new() };
        self.watched_mut(id).map(|watched| (watched, asked)).ok_or_else(too_many)
    }

    /// Forgets a log that nobody watches any more.
    fn tidy(&mut self, id: u64) -> Vec<Asked> {
        let unused = |one: &Watched| one.uris.is_empty() && one.listeners.is_empty();
        if !self.watched_mut(id).is_some_and(|one| unused(one)) {
            return Vec::new();
        }
        self.watched.retain(|(own, _)| *own != id);
        vec![detach(id)]
    }

    /// Subscribes to a log, or ends that.
    pub(super) fn subscribe(
        &mut self,
        params: &Map<String, Value>,
        on: bool,
    ) -> Result<(u64, String, Vec<Asked>), RpcError> {
        let uri = uri_of(params)?;
        let (id, ..) = parse(&uri).ok_or_else(|| unknown(&uri, Era::Connected))?;
        if !on {
            if let Some(watched) = self.watched_mut(id) {
                watched.uris.retain(|one| *one != uri);
            }
            return Ok((id, uri, self.tidy(id)));
        }
        let (watched, asked) = self.watch(id)?;
        if !watched.uris.contains(&uri) {
            watched.uris.push(uri.clone());
        }
        Ok((id, uri, asked))
    }

    /// Takes a request that listens: it is answered never, and ends when it is cancelled.
    pub(super) fn listen(
        &mut self,
        request: &RequestId,
        params: &Map<String, Value>,
        out: &mut Vec<u8>,
    ) -> Result<Vec<Asked>, RpcError> {
        if self.listening.len() >= MCP_SUBSCRIPTIONS_MAX {
            return Err(too_many());
        }
        let Some(filter) = params.get("notifications").filter(|all| all.is_object()) else {
            let message = "notifications must be an object of what is to be told";
            return Err(RpcError::invalid_param("notifications", message));
        };
        let uris = filter.get("resourceSubscriptions").and_then(Value::as_array);
        let (mut asked, mut logs) = (Vec::new(), Vec::new());
        for uri in uris.into_iter().flatten().filter_map(Value::as_str) {
            // What cannot be watched is left out of what is acknowledged.
            let Some((id, ..)) = parse(uri) else { continue };
            let Ok((watched, attach)) = self.watch(id) else { continue };
            watched.listeners.push((request.clone(), uri.to_owned()));
            asked.extend(attach);
            logs.push((id, uri.to_owned()));
        }
        let logs = uris.map(|_| logs);
        self.listening.push(Listening { request: request.clone(), logs, is_acknowledged: false });
        self.acknowledge(out);
        Ok(asked)
    }

    /// Answers the requests that listen: nothing more is told.
    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        for one in std::mem::take(&mut self.listening) {
            let meta = OfSubscription { id: &one.request };
            wire::push_result(out, &one.request, &Closed { result_type: "complete", meta });
        }
    }

    /// Whether a request listens.
    pub(super) fn listens(&self, id: &RequestId) -> bool {
        self.listening.iter().any(|one| one.request == *id)
    }

    /// A request that listens is cancelled; `None` where it is none.
    pub(super) fn hang_up(&mut self, request: &RequestId) -> Option<Vec<Asked>> {
        let at = self.listening.iter().position(|one| one.request == *request)?;
        let mut asked = Vec::new();
        for (id, _) in self.listening.remove(at).logs.unwrap_or_default() {
            if let Some(watched) = self.watched_mut(id) {
                watched.listeners.retain(|(one, _)| one != request);
            }
            asked.extend(self.tidy(id));
        }
        Some(asked)
    }

    /// More of a log has come, which [`Self::tick`] tells.
    pub(super) fn changed(&mut self, note: &Note) {
        let watched = note.session_id.and_then(|id| self.watched_mut(id));
        if let Some(watched) = watched {
            watched.is_due = true;
        }
    }

    /// A log is complete.
    pub(super) fn over(&mut self, note: &Note, out: &mut Vec<u8>) {
        let Some(id) = note.session_id else { return };
        if let Some(watched) = self.watched_mut(id) {
            watched.tell(0, out);
            self.watched.retain(|(own, _)| *own != id);
        }
    }

    /// When there is something to tell.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.watched.iter().filter_map(|(_, one)| one.due_ns()).min()
    }

    /// Tells what is due.
    pub(super) fn tick(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        for (_, watched) in &mut self.watched {
            if watched.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
                watched.tell(now_ns, out);
            }
        }
    }
}
