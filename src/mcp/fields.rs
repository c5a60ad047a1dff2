//! The fields of JSON values as texts need them: nothing is missing, and all is on one line.

use serde_json::Value;

use crate::pure::text::visible::one_line;

/// The value of JSON text; null for what is none.
pub(super) fn value(json: &[u8]) -> Value {
    let text = str::from_utf8(json).unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

/// The text of a field; empty where there is none.
pub(super) fn str_of<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A number in a field; 0 where there is none.
pub(super) fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or_default()
}

/// Whether a field is true.
pub(super) fn is_set(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or_default()
}

/// A field on one line: a string without its quotes, anything else as JSON, nothing where it is not
/// there.
pub(super) fn shown(value: &Value, name: &str) -> String {
    value.get(name).map(plain).unwrap_or_default()
}

/// A value on one line, a string without its quotes.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), one_line)
}

/// The items of a field that is a list.
pub(super) fn items<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
