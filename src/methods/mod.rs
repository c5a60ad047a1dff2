//! The table of methods. A method is one file with its params, its text, its handler and its
//! tests, plus one row here (CONTRIBUTING.md, Add a method); `execd --describe` prints the table.

mod agent_capabilities;
mod agent_execute;
mod agent_health;
mod attach_input;
mod attach_session;
mod bash;
mod bash_stream;
mod cancel;
mod detach_session;
mod exec_command;
mod get_process_log;
mod job_input;
mod kill_process;
mod kill_session;
mod list_processes;
mod list_sessions;
mod ping;
mod poll_process;
mod reserve_session_ids;
mod resize_session;
mod server_info;
mod set_on_exit;
mod shutdown;
#[cfg(test)]
mod table_tests;
mod tmux;
mod window_context;
mod write_stdin;

pub use agent_execute::THINKING;
pub use list_sessions::Row;
use serde::Serialize;
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::limits::PROTOCOL_REVISION;
use crate::session::{ClientId, SessionId};
use crate::wire::{self, Int, Param, RequestId, RpcError};

/// A request as a method sees it.
#[derive(Debug)]
pub struct Call<'a> {
    /// Whose it is.
    pub client: ClientId,
    /// Its id; absent for one that is never answered.
    pub id: Option<RequestId>,
    /// JSON text of its params: an object.
    pub params: &'a str,
}

/// What a method leads to at once.
#[derive(Debug)]
pub enum Answer {
    /// The result, as JSON text.
    Json(Vec<u8>),
    /// The request waits; it is answered later.
    Waits,
}

impl Answer {
    /// A result from a value.
    fn of(result: &impl Serialize) -> Self {
        Self::Json(wire::to_json(result))
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// Its name on the wire.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// Its params.
    pub params: &'static [Param],
    /// Whether it may wait: then it counts against the limit of pending requests.
    pub waits: bool,
    /// Whether it is still carried out while execd is ending.
    pub while_closing: bool,
    /// Reads its params and acts on nothing: the error that they would be refused with.
    pub check: fn(&str) -> Result<(), RpcError>,
    /// Its handler.
    pub call: fn(&mut Daemon, &Call<'_>) -> Result<Answer, RpcError>,
}

impl Method {
    /// Whether its reply goes before what is unsent: it says nothing of any session, whose history
    /// stays in order, and tells whether execd lives.
    pub fn overtakes(&self) -> bool {
        matches!(self.name, "ping" | "server_info")
    }

    /// The params of the method's other form, where it has one: write_stdin with sessionId.
    pub fn other_params(&self) -> Option<&'static [Param]> {
        (self.name == write_stdin::METHOD.name).then_some(job_input::PARAMS)
    }
}

/// All methods, in the order of the documentation.
pub const METHODS: &[Method] = &[
    exec_command::METHOD,
    write_stdin::METHOD,
    kill_session::METHOD,
    list_sessions::METHOD,
    set_on_exit::METHOD,
    resize_session::METHOD,
    bash_stream::METHOD,
    poll_process::METHOD,
    kill_process::METHOD,
    list_processes::METHOD,
    get_process_log::METHOD,
    bash::METHOD,
    tmux::METHOD,
    agent_execute::METHOD,
    agent_health::METHOD,
    agent_capabilities::METHOD,
    attach_session::METHOD,
    attach_input::METHOD,
    detach_session::METHOD,
    cancel::METHOD,
    reserve_session_ids::METHOD,
    ping::METHOD,
    server_info::METHOD,
    shutdown::METHOD,
];

/// The method of this name.
pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// Whether a method would take these params (JSON text of an object): what it can refuse without
/// looking at a session.
pub fn check_params(method: &str, raw: &str) -> Result<(), RpcError> {
    let method = find(method).ok_or_else(|| RpcError::unknown_method(method, &names()))?;
    (method.check)(raw)
}

/// The names of all methods.
pub fn names() -> Vec<&'static str> {
    METHODS.iter().map(|method| method.name).collect()
}

/// The table as JSON, for `execd --describe`.
pub fn describe() -> Value {
    let methods: Vec<Value> = METHODS
        .iter()
        .map(|method| {
            json!({
                "name": method.name,
                "summary": method.summary,
                "params": wire::schema(method.params),
                "otherParams": method.other_params().map(wire::schema),
            })
        })
        .collect();
    json!({
        "name": "execd",
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": PROTOCOL_REVISION,
        "methods": methods,
    })
}

/// A session id from its number on the wire; one that can't be an id names no session.
fn session_id(number: Int) -> SessionId {
    SessionId::try_from(number.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_row_has_its_text() {
        for (at, method) in METHODS.iter().enumerate() {
            assert!(!METHODS[..at].iter().any(|other| other.name == method.name));
            assert!(method.summary.ends_with('.'), "{}", method.name);
            for param in method.params {
                assert!(!param.doc.is_empty(), "{} {}", method.name, param.name);
            }
        }
        assert_eq!(find("ping").map(|method| method.name), Some("ping"));
        assert!(find("Ping").is_none());
    }

    #[test]
    fn the_description_is_a_schema_per_method() {
        let all = describe();
        let exec = &all["methods"][0];
        assert_eq!(exec["name"], "exec_command");
        assert_eq!(exec["params"]["required"], json!(["cmd"]));
        assert_eq!(exec["params"]["additionalProperties"], json!(false));
        assert_eq!(exec["params"]["properties"]["tty"]["type"], "boolean");
    }
}
