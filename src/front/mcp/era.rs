//! The versions of the protocol, and what differs between its two eras (docs/mcp.md, Versions).

use serde_json::{Map, Value};

use super::words::{joined, value};
use crate::wire::{RequestId, RpcError, quoted};

/// The code of a request for a version that is not spoken.
const UNSUPPORTED_VERSION: i32 = -32022;
/// The versions with a handshake, newest first.
const CONNECTED: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The version in which each request stands for itself.
const STATELESS: &str = "2026-07-28";
/// Those of the requests that name theirs, as JSON.
pub(super) const VERSIONS: &str = r#"["2026-07-28"]"#;
/// Where a request says of which version it is.
const VERSION_FIELD: &str = "io.modelcontextprotocol/protocolVersion";
/// The server's name and version, as JSON.
pub(super) const SERVER: &str =
    concat!(r#"{"name":"execd","title":"execd","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);
/// The capability of a client that shows its model messages that nobody has asked for.
pub(super) const CHANNEL: &str = "claude/channel";

/// How long a client may keep a result, and for whom, as fields of JSON.
pub(super) type Fresh = &'static str;
/// What is always the same while the server runs, and holds nothing of its user: for an hour.
pub(super) const LASTING: Fresh = r#""ttlMs":3600000,"cacheScope":"public","#;
/// What may be another at any time.
pub(super) const CHANGING: Fresh = r#""ttlMs":0,"cacheScope":"private","#;
/// What is not to be kept, and says nothing of that.
pub(super) const ONCE: Fresh = "";

/// How a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// On a connection that begins with `initialize`.
    Connected,
    /// With its version in `_meta`.
    Stateless,
}

/// The version with a handshake that is answered to one that was asked for: it, or the newest.
pub(super) fn spoken(asked: &str) -> &'static str {
    CONNECTED.iter().find(|one| **one == asked).unwrap_or(&CONNECTED[0])
}

/// Of which era a request is. Errors: the version that it names is not spoken without a handshake.
pub(super) fn of(method: &str, params: &Map<String, Value>) -> Result<Era, RpcError> {
    let named = params.get("_meta").and_then(|meta| meta.get(VERSION_FIELD));
    let Some(named) = named.filter(|_| method != "initialize") else {
        return Ok(Era::Connected);
    };
    let name = named.as_str().unwrap_or_default();
    if name == STATELESS {
        return Ok(Era::Stateless);
    }
    let shown = quoted(&named.to_string());
    let message = joined(&["protocol version ", &shown, " is not spoken here without initialize"]);
    let error = RpcError::coded(UNSUPPORTED_VERSION, message);
    let requested = if name.len() <= 64 { name } else { "" };
    Err(error.with("supported", value(VERSIONS.as_bytes())).with("requested", requested.into()))
}

/// Appends a result: `body` is JSON text of an object.
pub(super) fn push_result(out: &mut Vec<u8>, id: &RequestId, era: Era, fresh: Fresh, body: &str) {
    let own = &body[1..];
    let parts: &[&str] = match era {
        Era::Connected => &["{"],
        Era::Stateless => &[
            r#"{"resultType":"complete","#,
            fresh,
            r#""_meta":{"io.modelcontextprotocol/serverInfo":"#,
            SERVER,
            if own == "}" { "}" } else { "}," },
        ],
    };
    let (head, result) = (r#"{"jsonrpc":"2.0","id":"#, r#","result":"#);
    let line = joined(&[head, id.as_json(), result, &parts.concat(), own, "}\n"]);
    out.extend_from_slice(line.as_bytes());
}

/// Appends a notification with params that are JSON text.
pub(super) fn push_notification(out: &mut Vec<u8>, method: &str, params: &[&str]) {
    let head = r#"{"jsonrpc":"2.0","method":""#;
    let line = joined(&[head, method, r#"","params":"#, &params.concat(), "}\n"]);
    out.extend_from_slice(line.as_bytes());
}

/// The field of `_meta` of a notification that is sent for a subscription, as JSON.
pub(super) fn of_subscription(id: &RequestId) -> String {
    joined(&[r#""_meta":{"io.modelcontextprotocol/subscriptionId":"#, id.as_json(), "},"])
}
