//! What each line of `execd mcp` keeps to: the official schemas of the protocol's versions
//! (tests/fixtures/mcp-schemas). What belongs to a connection with a handshake must fit all
//! versions that have one, since the answers are the same in each.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use serde_json::Value;

use super::json_schema;

/// The versions with a handshake, oldest first.
pub const CONNECTED: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The version without one.
pub const STATELESS: [&str; 1] = ["2026-07-28"];
/// The versions whose errors need no id.
const WITHOUT_ID: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// The name of a method, and that of the type of its result.
const RESULTS: [(&str, &str); 11] = [
    ("initialize", "InitializeResult"),
    ("ping", "EmptyResult"),
    ("server/discover", "DiscoverResult"),
    ("tools/list", "ListToolsResult"),
    ("tools/call", "CallToolResult"),
    ("resources/list", "ListResourcesResult"),
    ("resources/templates/list", "ListResourceTemplatesResult"),
    ("resources/read", "ReadResourceResult"),
    ("resources/subscribe", "EmptyResult"),
    ("resources/unsubscribe", "EmptyResult"),
    ("subscriptions/listen", "SubscriptionsListenResult"),
];
const NOTIFICATIONS: [(&str, &str); 3] = [
    ("notifications/progress", "ProgressNotification"),
    ("notifications/resources/updated", "ResourceUpdatedNotification"),
    ("notifications/subscriptions/acknowledged", "SubscriptionsAcknowledgedNotification"),
];
/// Notifications of an extension, which no schema has a type for.
const EXTENSIONS: [&str; 1] = ["notifications/claude/channel"];

/// Checks a value against a type of a version. Errors: what does not fit, and where.
pub fn fits(version: &str, named: &str, value: &Value) -> Result<(), String> {
    static SCHEMAS: OnceLock<BTreeMap<String, Value>> = OnceLock::new();
    let all = SCHEMAS.get_or_init(|| {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mcp-schemas");
        let read = |version: &str| {
            let path = dir.join(format!("{version}.json"));
            let text = std::fs::read_to_string(&path).expect("the schema of a version");
            (version.to_owned(), serde_json::from_str(&text).expect("a schema is JSON"))
        };
        CONNECTED.iter().chain(&STATELESS).map(|version| read(version)).collect()
    });
    let root = &all[version];
    let types = root.get("definitions").or_else(|| root.get("$defs")).expect("types");
    let schema = types.get(named).unwrap_or_else(|| panic!("{version} has no type {named}"));
    json_schema::check(root, schema, value).map_err(|why| format!("{version} {named}: {why}"))
}

/// The requests of one connection, by which its answers are judged.
#[derive(Debug, Default)]
pub struct McpLines {
    /// What was sent and has no newline yet.
    unfinished: Vec<u8>,
    /// The method of each request and whether it names its version, by its id.
    asked: BTreeMap<String, (String, bool)>,
    /// How many lines were checked against each type of each version.
    pub checked: BTreeMap<(&'static str, String), usize>,
}

impl McpLines {
    /// Takes what is sent.
    pub fn sent(&mut self, bytes: &[u8]) {
        self.unfinished.extend_from_slice(bytes);
        while let Some(end) = self.unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unfinished.drain(..=end).collect();
            if let Ok(request) = serde_json::from_slice::<Value>(&line) {
                self.note(&request);
            }
        }
    }

    fn note(&mut self, request: &Value) {
        let Some(method) = request["method"].as_str() else { return };
        let version = &request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        self.asked.insert(request["id"].to_string(), (method.to_owned(), version.is_string()));
    }

    /// Checks a line of execd's.
    pub fn came(&mut self, line: &Value) {
        if let Some(method) = line["method"].as_str() {
            self.notification(method, line);
        } else if line.get("error").is_some() {
            self.error(line);
        } else {
            let (method, stateless) = self.asked(line);
            self.all(versions(stateless), result_type(), line);
            let named = named(&RESULTS, &method);
            self.all(versions(stateless), |_| named, &line["result"]);
        }
    }

    fn asked(&self, line: &Value) -> (String, bool) {
        let asked = self.asked.get(&line["id"].to_string());
        let (method, stateless) = asked.unwrap_or_else(|| panic!("nobody has asked: {line}"));
        // What is discovered is of the newer era, whoever asks.
        (method.clone(), *stateless || method == "server/discover")
    }

    fn error(&mut self, line: &Value) {
        let versions: &[&'static str] = if line.get("id").is_none() {
            &WITHOUT_ID
        } else {
            let asked = self.asked.get(&line["id"].to_string());
            versions(asked.is_some_and(|(_, stateless)| *stateless))
        };
        self.all(versions, error_type(), line);
        if line["error"]["code"] == -32022 {
            self.all(&STATELESS, |_| "UnsupportedProtocolVersionError", line);
        }
    }

    fn notification(&mut self, method: &str, line: &Value) {
        let field = "io.modelcontextprotocol/subscriptionId";
        let versions: &[&'static str] =
            if line["params"]["_meta"].get(field).is_some() { &STATELESS } else { &CONNECTED };
        self.all(versions, |_| "JSONRPCNotification", line);
        if EXTENSIONS.contains(&method) {
            return;
        }
        let own = named(&NOTIFICATIONS, method);
        self.all(versions, |_| own, line);
        self.all(versions, |_| "ServerNotification", line);
        // Who is told of progress may have asked in either era.
        if method == "notifications/progress" {
            self.all(&STATELESS, |_| own, line);
        }
    }

    fn all(
        &mut self,
        versions: &[&'static str],
        named: impl Fn(&str) -> &'static str,
        value: &Value,
    ) {
        for version in versions {
            let named = named(version);
            if let Err(why) = fits(version, named, value) {
                panic!("{why}\nin {value}");
            }
            *self.checked.entry((version, named.to_owned())).or_default() += 1;
        }
    }
}

fn versions(stateless: bool) -> &'static [&'static str] {
    if stateless { &STATELESS } else { &CONNECTED }
}

fn named(table: &[(&str, &'static str)], method: &str) -> &'static str {
    let found = table.iter().find(|(own, _)| *own == method);
    found.unwrap_or_else(|| panic!("execd has written of {method}, which has no type")).1
}

/// A result's line has another type's name since 2025-11-25, and so has an error's.
fn result_type() -> impl Fn(&str) -> &'static str {
    |version| if version < "2025-11-25" { "JSONRPCResponse" } else { "JSONRPCResultResponse" }
}

fn error_type() -> impl Fn(&str) -> &'static str {
    |version| if version < "2025-11-25" { "JSONRPCError" } else { "JSONRPCErrorResponse" }
}
