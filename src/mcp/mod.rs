//! `execd mcp`, the Model Context Protocol on stdin and stdout (docs/mcp.md): a program between its
//! host and an execd that it starts. It turns the host's messages into requests of the table of
//! methods. Tools are rows of the table; no method knows of this protocol, and of methods only that
//! is known here which a host knows: how its model reads their replies.
//!
//! | file | what |
//! |---|---|
//! | `program` | the process: its host, its execd, and the end of each |
//! | `cancel` | what becomes of the command of a cancelled call |
//! | `codec` | the way in and out: lines, replies, notifications, time |
//! | `era` | the versions, and how a result looks in each |
//! | `fields` | fields of JSON values, for texts |
//! | `tools` | which tools there are, and a call's params |
//! | `output` | how much of a program's output a result shows, and the fence around it |
//! | `text` | what a model reads of a result |
//! | `stream_text` | the same of the stream family |
//! | `agent_text` | the same of runs of pi |
//! | `late` | what the next result tells besides its own |
//! | `progress` | what a client is told while it waits |
//! | `resources` | logs as resources, and subscriptions to them |
//!
//! Two eras of the protocol are spoken side by side: in the older one a connection begins with
//! `initialize`, in the newer one each request says which version it is of.

mod agent_text;
mod cancel;
mod codec;
mod era;
mod fields;
mod late;
mod output;
mod program;
mod progress;
mod resources;
mod stream_text;
#[cfg(test)]
mod tests;
mod text;
mod tools;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::limits::MAX_PENDING_REQUESTS;
use crate::server::session::view::TextLimits;
use crate::sys::clock;
use crate::wire::{self, Reason, RequestId, RpcError};
use era::{Era, Freshness};
use late::Late;
use output::ShownCall;
use progress::Progress;
use resources::Resources;
use tools::{CallParams, Tool};

pub use agent_text::summary;
pub use cancel::{ON_CANCEL, OnCancel};
pub use program::{HostProgram, HostedStart};
pub use tools::{SETS, Settings};

/// The methods, for who asks for another one.
const METHODS: &[&str] = &[
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
];

/// What the ids begin with of what is asked for on our own account.
const OWN: &str = "\"execd ";
/// The id of a request for events.
const OWN_EVENTS: &str = "\"execd events\"";
/// The id of a request for the sessions that have ended.
const OWN_ENDED: &str = "\"execd ended\"";

/// A request of execd that a line of the client stands for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The id that the answer goes to, unlike all ids in flight; none where nobody is answered.
    pub id: Option<RequestId>,
    /// The method, as the table has it.
    pub method: &'static str,
    /// JSON text of the params: an object.
    pub params: String,
}

/// Requests on our own account that may wait in execd besides the client's.
const OWN_REQUESTS: usize = 24;

/// What a request of the client's is for.
#[derive(Debug)]
enum What {
    /// A tool; whether the call starts something that the model does not know of yet, what was
    /// asked for, how much output its result shows, and what it says of a clamped time.
    Tool { tool: Tool, starts: bool, asked_for: Value, limits: TextLimits, note: String },
    /// The list of resources.
    ListResources,
    /// A part of a log, by its URI.
    ReadResource(String),
    /// A log that is to be watched from now on, by its session and its URI.
    Subscribe(u64, String),
}

/// A request of the client's that is not answered yet.
#[derive(Debug)]
struct Running {
    what: What,
    era: Era,
    progress: Option<Progress>,
    /// When it came.
    since_ns: u64,
    /// Its client wants no answer any more.
    cancelled: bool,
    /// How its command is to end for that.
    end: Option<&'static str>,
}

/// The result of a tool.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult {
    content: Value,
    /// What execd has answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

/// The params of `cancel`.
#[derive(Debug, Serialize)]
struct Cancel<'a> {
    id: &'a RequestId,
    leave: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<&'static str>,
}

/// The state of one connection.
#[derive(Debug)]
pub struct Mcp {
    settings: Settings,
    /// Few at a time: a list is small enough.
    running: Vec<(RequestId, Running)>,
    resources: Resources,
    /// What the next result tells besides its own.
    late: Late,
    /// The client shows messages to its model that nobody has asked for.
    has_channel: bool,
}

/// A request as it came.
struct Request<'a> {
    id: RequestId,
    params: &'a Map<String, Value>,
    era: Era,
    /// Its client shows messages to its model that nobody has asked for.
    has_channel: bool,
}

impl Request<'_> {
    /// Whether it asks for another page than the first. An empty cursor is taken for none.
    fn has_cursor(&self) -> bool {
        let cursor = self.params.get("cursor").and_then(Value::as_str);
        cursor.is_some_and(|cursor| !cursor.is_empty())
    }
}

impl Mcp {
    /// A connection that nothing has come on yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            running: Vec::new(),
            resources: Resources::default(),
            late: Late::default(),
            has_channel: false,
        }
    }

    /// Takes a request and gives what it asks of execd.
    fn request(
        &mut self,
        method: &str,
        request: &Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Vec<Asked>, RpcError> {
        let era = request.era;
        let old = era == Era::Connected;
        if method.ends_with("/list") && request.has_cursor() {
            let message = "there is no such cursor: each list is told whole";
            return Err(RpcError::invalid_param("cursor", message));
        }
        let (fresh, result) = match method {
            "initialize" => (Freshness::Once, self.initialize(request.params)?),
            "ping" if old => (Freshness::Once, json!({})),
            "server/discover" => (Freshness::Lasting, self.discover(request.has_channel)),
            "tools/list" => {
                let tools = tools::list(&self.settings, request.has_channel);
                era::push_result(out, &request.id, era, Freshness::Lasting, &tools);
                return Ok(Vec::new());
            }
            "resources/templates/list" => (Freshness::Lasting, resources::templates()),
            "tools/call" => return self.call_tool(request, out),
            "resources/list" => {
                self.run(request, What::ListResources, None);
                let listed = asked(request, "list_sessions", &json!({"peek": true}));
                return Ok([vec![resources::ask_ended()], listed].concat());
            }
            "resources/read" => {
                let (uri, params) = resources::reading(request.params, era)?;
                self.run(request, What::ReadResource(uri), None);
                return Ok(asked(request, "read_output", &params));
            }
            "resources/subscribe" | "resources/unsubscribe" if old => {
                let on = method == "resources/subscribe";
                let (id, uri, mut asked) = self.resources.subscribe(request.params, on)?;
                match asked.first_mut().filter(|_| on) {
                    // Whether there is such a session is told by what it answers.
                    Some(attach) => {
                        attach.id = Some(request.id.clone());
                        self.run(request, What::Subscribe(id, uri), None);
                    }
                    None => era::push_result(out, &request.id, era, Freshness::Once, &json!({})),
                }
                return Ok(asked);
            }
            "subscriptions/listen" if !old => {
                return self.resources.listen(&request.id, request.params, out);
            }
            _ => return Err(RpcError::unknown_method(method, METHODS)),
        };
        let era = if method == "server/discover" { Era::Stateless } else { era };
        era::push_result(out, &request.id, era, fresh, &result);
        Ok(Vec::new())
    }

    fn initialize(&mut self, params: &Map<String, Value>) -> Result<Value, RpcError> {
        let asked = params.get("protocolVersion").and_then(Value::as_str).ok_or_else(|| {
            RpcError::invalid_param("protocolVersion", "protocolVersion must be a string")
        })?;
        let version = era::spoken(asked);
        self.has_channel = era::has_channel(params.get("capabilities"));
        let mut about = self.about(self.has_channel);
        about["protocolVersion"] = version.into();
        about["serverInfo"] = era::server();
        Ok(about)
    }

    fn discover(&self, has_channel: bool) -> Value {
        let mut about = self.about(has_channel);
        about["supportedVersions"] = json!(era::VERSIONS);
        about
    }

    /// What the server says of itself in both eras.
    fn about(&self, has_channel: bool) -> Value {
        let mut capabilities = json!({"tools": {}, "resources": {"subscribe": true}});
        if has_channel {
            capabilities["experimental"] = json!({era::CHANNEL: {}});
        }
        json!({
            "capabilities": capabilities, "instructions": tools::instructions(&self.settings),
        })
    }

    /// Calls a tool. What is wrong with the arguments is told to the model.
    fn call_tool(
        &mut self,
        request: &Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Vec<Asked>, RpcError> {
        let name = request.params.get("name").and_then(Value::as_str).unwrap_or_default();
        let given = match request.params.get("arguments") {
            Some(Value::Object(given)) => given.clone(),
            _ => Map::new(),
        };
        let tool = tools::find(&self.settings, name, &given)?;
        let token = request.params.get("_meta").and_then(|meta| meta.get("progressToken"));
        let progress = token.and_then(|token| Progress::new(token, clock::now_ns()));
        let none_or_object = |all: &Value| all.is_object() || all.is_null();
        let is_object = request.params.get("arguments").is_none_or(none_or_object);
        let own = (progress.as_ref(), request.has_channel);
        let params = if is_object {
            tools::params(&self.settings, tool, given, own)
        } else {
            Err("arguments must be an object".to_owned())
        };
        match params {
            Ok(CallParams { params, limits, note }) => {
                let known = |name: &String| name.starts_with("session") || name == "run_id";
                let starts = tool.row.starts || !params.keys().any(known);
                let asked_for = Value::Object(params);
                let called = asked(request, tool.row.name, &asked_for);
                self.run(request, What::Tool { tool, starts, asked_for, limits, note }, progress);
                if tools::carries_events(tool) || !self.late.has_no_events() {
                    return Ok(called);
                }
                let id = RequestId::from_json(OWN_EVENTS);
                let params = json!({"untold": true}).to_string();
                Ok([vec![Asked { id, method: "events", params }], called].concat())
            }
            Err(said) => {
                let body = self.told(said, true, None);
                era::push_result(out, &request.id, request.era, Freshness::Once, &body);
                Ok(Vec::new())
            }
        }
    }

    fn run(&mut self, request: &Request<'_>, what: What, progress: Option<Progress>) {
        let since_ns = clock::now_ns();
        let running =
            Running { what, era: request.era, progress, since_ns, cancelled: false, end: None };
        self.running.push((request.id.clone(), running));
    }

    fn running_mut(&mut self, id: &RequestId) -> Option<&mut Running> {
        self.running.iter_mut().find(|(own, _)| own == id).map(|(_, running)| running)
    }

    fn take_running(&mut self, id: &RequestId) -> Option<Running> {
        let at = self.running.iter().position(|(own, _)| own == id)?;
        Some(self.running.swap_remove(at).1)
    }

    /// A result of a tool, with what else is to be told.
    fn told(&mut self, mut said: String, is_error: bool, reply: Option<Value>) -> ToolResult {
        self.late.tell(&mut said, self.settings.result_bytes);
        ToolResult {
            content: json!([{"type": "text", "text": said}]),
            structured_content: reply.filter(|_| self.settings.structured),
            is_error,
        }
    }

    /// The client wants no answer of a request any more: its wait ends. What becomes of a command
    /// that it has started is said by a flag, or by the reason.
    fn cancel(&mut self, params: &Map<String, Value>) -> Vec<Asked> {
        let Some(id) = params.get("requestId").and_then(|id| RequestId::from_json(&id.to_string()))
        else {
            return Vec::new();
        };
        if let Some(asked) = self.resources.hang_up(&id) {
            return asked;
        }
        let reason = params.get("reason").and_then(Value::as_str).unwrap_or_default();
        let on_cancel = self.settings.on_cancel.unwrap_or_else(|| OnCancel::by_reason(reason));
        let Some(running) = self.running_mut(&id) else { return Vec::new() };
        (running.cancelled, running.progress) = (true, None);
        if let What::Subscribe(_, uri) = &running.what {
            let params = Map::from_iter([("uri".to_owned(), Value::from(uri.as_str()))]);
            let ended = self.resources.subscribe(&params, false);
            return ended.map(|(_, _, asked)| asked).unwrap_or_default();
        }
        // A cancelled run of pi ends anyway.
        let begins = |tool: &Tool| tool.row.starts && tool.model.set != "agent";
        let is_ours = matches!(&running.what, What::Tool { tool, .. } if begins(tool));
        running.end = on_cancel.end().filter(|_| is_ours);
        let params = wire::to_json(&Cancel { id: &id, leave: true, end: running.end });
        let params = String::from_utf8(params).unwrap_or_default();
        vec![Asked { id: None, method: "cancel", params }]
    }

    /// The end of stdin has come. Requests that listen are over, and of calls only those are
    /// answered that have come since this moment.
    fn leave(&mut self, since_ns: u64, out: &mut Vec<u8>) {
        self.resources.close(out);
        self.resources = Resources::default();
        for (_, one) in self.running.iter_mut().filter(|(_, one)| one.since_ns < since_ns) {
            (one.cancelled, one.progress) = (true, None);
        }
    }

    /// Whether somebody waits for an answer.
    fn is_waited_for(&self) -> bool {
        self.running.iter().any(|(_, one)| !one.cancelled)
    }

    /// execd has ended in this way, and all that it ran with it: what waits is answered, and the
    /// next result says that another execd runs now.
    fn lost_execd(&mut self, how: &str, out: &mut Vec<u8>) {
        self.resources.close(out);
        self.resources = Resources::default();
        for (id, running) in std::mem::take(&mut self.running) {
            if running.cancelled {
                continue;
            }
            let why = format!("execd has ended ({how}) before it answered");
            if let What::Tool { .. } = running.what {
                let said = format!("{why}. What it ran has ended; `execd logs` lists its logs.");
                let body = self.told(said, true, None);
                era::push_result(out, &id, running.era, Freshness::Once, &body);
            } else {
                wire::push_error(out, &id, &RpcError::failed(Reason::System, why));
            }
        }
        self.late.lost_execd(how);
    }

    /// Writes an error of the protocol; nothing for a line that could not be read and has no id
    /// but in that the error says so.
    fn push_error(id: &RequestId, error: &RpcError, out: &mut Vec<u8>) {
        if *id != RequestId::null() {
            return wire::push_error(out, id, error);
        }
        // An id of null is none that the protocol knows.
        out.extend_from_slice(&wire::to_json(&json!({"jsonrpc": "2.0", "error": error})));
        out.push(b'\n');
    }

    /// Takes a message that has a method.
    fn take(&mut self, request: &wire::Request<'_>, out: &mut Vec<u8>) -> Vec<Asked> {
        let Value::Object(params) = fields::value(request.params.as_bytes()) else {
            return Vec::new();
        };
        let Some(id) = request.id.clone() else {
            return match request.method.as_str() {
                "notifications/cancelled" => self.cancel(&params),
                _ => Vec::new(),
            };
        };
        let outcome = self.fits(&id).and_then(|()| {
            let era = era::of(&request.method, &params)?;
            let has_channel = match era {
                Era::Connected => self.has_channel,
                Era::Stateless => era::has_channel(era::capabilities(&params)),
            };
            let asked = Request { id: id.clone(), params: &params, era, has_channel };
            self.request(&request.method, &asked, out)
        });
        outcome.unwrap_or_else(|error| {
            Self::push_error(&id, &error, out);
            Vec::new()
        })
    }

    /// Whether a request of this id may be taken up.
    fn fits(&mut self, id: &RequestId) -> Result<(), RpcError> {
        if *id == RequestId::null() {
            return Err(RpcError::invalid_request("id must be a string or a number, not null"));
        }
        if id.as_json().starts_with(OWN) {
            return Err(RpcError::invalid_request(
                "ids that begin with \"execd \" are execd's own",
            ));
        }
        if self.running_mut(id).is_some() || self.resources.listens(id) {
            let shown = wire::quoted(id.as_json());
            return Err(RpcError::invalid_request(&format!("id {shown} is still in flight")));
        }
        // execd does not read on while so many of its requests wait, nor what is asked besides.
        if self.running.len() >= MAX_PENDING_REQUESTS - OWN_REQUESTS {
            let message = "too many requests are waiting: await or cancel some first";
            return Err(RpcError::invalid_request(message));
        }
        Ok(())
    }

    /// Answers a tool's call with what a model reads of the result.
    fn answer_tool(&mut self, id: &RequestId, running: Running, result: &[u8], out: &mut Vec<u8>) {
        let What::Tool { tool, starts, asked_for, limits, note } = running.what else { return };
        let mut reply = fields::value(result);
        // What rides on a later result has no room for more.
        let limits = if running.cancelled { self.settings.text } else { limits };
        let settings = &self.settings;
        let begins = tool.row.starts;
        let fence = output::frame(&mut reply, ShownCall { settings, tool, starts: begins, limits });
        let (mut said, is_error) = match tool.model.set {
            "agent" => agent_text::of(&reply, &fence),
            _ => text::of(tool, &reply, &asked_for, &fence),
        };
        said += &note;
        if running.cancelled {
            // What nobody has read is told with the next result.
            if starts || text::is_news(&reply) {
                self.late.answered(&said, &reply, running.end);
            }
            return;
        }
        let body = self.told(said, is_error, Some(reply));
        era::push_result(out, id, running.era, Freshness::Once, &body);
    }
}

/// The one request that a message of the client's leads to.
fn asked(request: &Request<'_>, method: &'static str, params: &Value) -> Vec<Asked> {
    vec![Asked { id: Some(request.id.clone()), method, params: params.to_string() }]
}
