//! The versions of the protocol, and what differs between its two eras (docs/mcp.md, Versions).

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::wire::{self, RequestId, RpcError, quoted};

/// The code of a request for a version that is not spoken.
const UNSUPPORTED_VERSION: i32 = -32022;
/// The versions with a handshake, newest first.
const CONNECTED: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The version in which each request stands for itself.
const STATELESS: &str = "2026-07-28";
/// Those of the requests that name theirs.
pub(super) const VERSIONS: [&str; 1] = [STATELESS];
/// Where a request says of which version it is.
const VERSION_FIELD: &str = "io.modelcontextprotocol/protocolVersion";
/// Where such a request says what its client can do.
const CAPABILITIES_FIELD: &str = "io.modelcontextprotocol/clientCapabilities";
/// The capability of a client that shows its model messages that nobody has asked for.
pub(super) const CHANNEL: &str = "claude/channel";

/// The server's name and version.
pub(super) fn server() -> Value {
    json!({"name": "execd", "title": "execd", "version": env!("CARGO_PKG_VERSION")})
}

/// How long a client may keep a result, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freshness {
    /// What is always the same while the server runs, and holds nothing of its user: for an hour.
    Lasting,
    /// What may be another at any time.
    Changing,
    /// What is not to be kept, and says nothing of that.
    Once,
}

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

/// Whether a client with these capabilities shows its model messages that nobody has asked for.
pub(super) fn has_channel(capabilities: Option<&Value>) -> bool {
    let experimental = capabilities.and_then(|all| all.get("experimental"));
    experimental.and_then(|all| all.get(CHANNEL)).is_some_and(Value::is_object)
}

/// The capabilities that a request of the newer era names.
pub(super) fn capabilities(params: &Map<String, Value>) -> Option<&Value> {
    params.get("_meta")?.get(CAPABILITIES_FIELD).filter(|all| all.is_object())
}

/// Of which era a request is. Errors: the version that it names is not spoken without a handshake,
/// or it does not say what its client can do.
pub(super) fn of(method: &str, params: &Map<String, Value>) -> Result<Era, RpcError> {
    let named = params.get("_meta").and_then(|meta| meta.get(VERSION_FIELD));
    let Some(named) = named.filter(|_| method != "initialize") else {
        return Ok(Era::Connected);
    };
    let name = named.as_str().unwrap_or_default();
    if name == STATELESS {
        let message = "it must be an object, {} where the client can do nothing of it";
        let error = || RpcError::invalid_param(CAPABILITIES_FIELD, message);
        return capabilities(params).map(|_| Era::Stateless).ok_or_else(error);
    }
    let shown = quoted(&named.to_string());
    let message = format!("protocol version {shown} is not spoken here without initialize");
    let error = RpcError::coded(UNSUPPORTED_VERSION, message);
    let requested = if name.len() <= 64 { name } else { "" };
    Err(error.with("supported", json!(VERSIONS)).with("requested", requested.into()))
}

/// What each result has in the newer era.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Stateless {
    result_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<&'static str>,
    #[serde(rename = "_meta")]
    meta: Value,
}

impl Stateless {
    fn of(fresh: Freshness) -> Self {
        let (ttl_ms, cache_scope) = match fresh {
            Freshness::Lasting => (Some(3_600_000), Some("public")),
            Freshness::Changing => (Some(0), Some("private")),
            Freshness::Once => (None, None),
        };
        let meta = json!({"io.modelcontextprotocol/serverInfo": server()});
        Self { result_type: "complete", ttl_ms, cache_scope, meta }
    }
}

/// Appends a result: `body` is an object.
pub(super) fn push_result(
    out: &mut Vec<u8>,
    id: &RequestId,
    era: Era,
    fresh: Freshness,
    body: &impl Serialize,
) {
    #[derive(Serialize)]
    struct Whole<'a, T: Serialize> {
        #[serde(flatten)]
        of_era: Option<Stateless>,
        #[serde(flatten)]
        body: &'a T,
    }
    let of_era = (era == Era::Stateless).then(|| Stateless::of(fresh));
    wire::push_result(out, id, &Whole { of_era, body });
}

/// The `_meta` of a notification that is sent for a subscription.
#[derive(Debug, Serialize)]
pub(super) struct OfSubscription<'a> {
    /// The request that listens.
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    pub id: &'a RequestId,
}
