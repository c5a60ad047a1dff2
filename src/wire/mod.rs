//! The envelope of the protocol: requests in, replies, errors and notifications out
//! (protocol.md). Knows JSON-RPC, not what the methods do.

mod error;
mod int;
mod params;
mod signal;
pub mod until;
mod wanted;

use std::fmt;

use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

pub use error::{Reason, RpcError};
pub use int::Int;
pub use params::{
    Declared, Kind, Param, check_params as check, decode_base64, known_param, params, quoted,
    read_params, schema,
};
pub use signal::signal_number;

use crate::limits::{MAX_ID_BYTES, MAX_JSON_DEPTH};
use crate::pure::json::guard::{self, Shape};

/// A request's id exactly as it was sent: JSON text of a string, a number or null.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(Box<str>);

impl RequestId {
    /// The JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// The id written by this JSON text, when it is of a type that an id may have.
    pub fn from_json(text: &str) -> Option<Self> {
        let fits = text.len() <= MAX_ID_BYTES
            && text.starts_with(|first: char| {
                matches!(first, '"' | '-' | 'n') || first.is_ascii_digit()
            });
        fits.then(|| Self(text.into()))
    }

    /// The id null, for answers to what could not be read.
    pub fn null() -> Self {
        Self("null".into())
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let json: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        json.serialize(to)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One request. Without an id it is carried out and never answered.
#[derive(Debug, PartialEq)]
pub struct Request<'a> {
    /// Absent for a notification of the client.
    pub id: Option<RequestId>,
    /// The method's name, known or not.
    pub method: String,
    /// JSON text of the params: an object (not looked into yet).
    pub params: &'a str,
}

/// A line that is no request: the error to answer, and the id where a valid one was there.
#[derive(Debug)]
pub struct Refused {
    /// The id to echo; null where none could be read. Absent for a notification with unfit
    /// params, which is not answered.
    pub id: Option<RequestId>,
    /// Why.
    pub error: RpcError,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "given")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    params: Option<&'a RawValue>,
}

/// A field that is there, even when its value is null.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// The id of an object that has another field twice.
fn id_among(text: &str) -> RequestId {
    let fields = params::fields_of(text).map(|fields| fields.0).unwrap_or_default();
    let mut ids = fields.iter().filter(|(name, _)| name == "id");
    let id = ids.next().filter(|_| ids.next().is_none());
    id.and_then(|(_, raw)| RequestId::from_json(raw.get())).unwrap_or_else(RequestId::null)
}

fn refused(id: RequestId, error: RpcError) -> Refused {
    Refused { id: Some(id), error }
}

/// Reads one line (without its newline). Gives the refusal to answer when it is no JSON
/// (-32700), no request (-32600) or its params are no object (-32602).
pub fn parse(line: &[u8]) -> Result<Request<'_>, Refused> {
    let no_json = |why: &dyn fmt::Display| refused(RequestId::null(), RpcError::parse(why));
    let no_request = |why: &str| refused(RequestId::null(), RpcError::invalid_request(why));
    let (text, shape) = guard::guard(line, MAX_JSON_DEPTH).map_err(|fault| no_json(&fault))?;
    if shape != Shape::Object {
        // Whether it is JSON at all decides between the two codes.
        serde_json::from_str::<&RawValue>(text).map_err(|fault| no_json(&fault))?;
        return Err(match shape {
            Shape::Array => no_request("batches are not supported: send one object per line"),
            _ => no_request("a request is a JSON object with a method"),
        });
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|fault| {
        // A field given twice ends the reading: the rest may still be no JSON.
        match serde_json::from_str::<&RawValue>(text) {
            Ok(_) => {
                let why = format!("the request cannot be read: {fault}");
                refused(id_among(text), RpcError::invalid_request(&why))
            }
            Err(fault) => no_json(&fault),
        }
    })?;
    let id = match envelope.id.map(RawValue::get) {
        None => None,
        Some(raw) => Some(RequestId::from_json(raw).ok_or_else(|| {
            no_request(&format!(
                "id must be a string, a number or null of at most {MAX_ID_BYTES} bytes, not {}",
                quoted(raw)
            ))
        })?),
    };
    let echoed = || id.clone().unwrap_or_else(RequestId::null);
    let Some(method) = envelope.method else {
        return Err(refused(echoed(), RpcError::invalid_request("the request has no method")));
    };
    let Ok(method) = serde_json::from_str::<String>(method.get()) else {
        let message = format!("method must be a string, not {}", quoted(method.get()));
        return Err(refused(echoed(), RpcError::invalid_request(&message)));
    };
    let params = envelope.params.map_or("{}", RawValue::get);
    if !params.starts_with('{') {
        let message =
            format!("params must be an object with the method's fields, not {}", quoted(params));
        let error = RpcError::invalid_param("params", message);
        // What is no object may hold one as text, with a secret in it.
        let error = if params.contains("secret") { error.without_value() } else { error };
        return Err(Refused { id, error });
    }
    Ok(Request { id, method, params })
}

/// Appends a value as JSON. The values written here are structs and maps with string keys, and
/// a Vec takes every byte: there is no way for this to fail.
fn push_json(out: &mut Vec<u8>, value: &impl Serialize) {
    let before = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(before);
        out.extend_from_slice(b"null");
    }
}

/// The JSON text of a value.
pub fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    push_json(&mut out, value);
    out
}

fn push_head(out: &mut Vec<u8>, id: &RequestId, field: &str) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_json().as_bytes());
    out.extend_from_slice(b",\"");
    out.extend_from_slice(field.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends a reply line with this result.
pub fn push_result(out: &mut Vec<u8>, id: &RequestId, result: &impl Serialize) {
    push_head(out, id, "result");
    push_json(out, result);
    out.extend_from_slice(b"}\n");
}

/// Appends a reply line whose result is JSON text already.
pub fn push_result_json(out: &mut Vec<u8>, id: &RequestId, json: &[u8]) {
    push_head(out, id, "result");
    out.extend_from_slice(json);
    out.extend_from_slice(b"}\n");
}

/// Appends an error reply line.
pub fn push_error(out: &mut Vec<u8>, id: &RequestId, error: &RpcError) {
    push_head(out, id, "error");
    push_json(out, error);
    out.extend_from_slice(b"}\n");
}

fn push_notification_head(out: &mut Vec<u8>, method: &str) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":""#);
    out.extend_from_slice(method.as_bytes());
    out.extend_from_slice(br#"","params":"#);
}

/// Appends a notification line.
pub fn push_notification(out: &mut Vec<u8>, method: &str, params: &impl Serialize) {
    push_notification_head(out, method);
    push_json(out, params);
    out.extend_from_slice(b"}\n");
}

/// Appends a notification line whose params are JSON text already.
pub fn push_notification_json(out: &mut Vec<u8>, method: &str, params: &[u8]) {
    push_notification_head(out, method);
    out.extend_from_slice(params);
    out.extend_from_slice(b"}\n");
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod tests_until;
