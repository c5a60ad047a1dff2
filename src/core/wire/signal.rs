//! The signal that a request names.

use serde_json::value::RawValue;

use super::{RpcError, quoted};
use crate::pure::process::signal_names::{can_end, parse_signal};

/// The number of a signal that was `given` by name or number, or of the `default`.
pub fn signal_number(given: Option<&RawValue>, default: &str) -> Result<i32, RpcError> {
    let text = match given.map(RawValue::get) {
        None => default.to_owned(),
        Some(raw) => serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned()),
    };
    let signal =
        parse_signal(&text).map_err(|message| RpcError::invalid_param("signal", message))?;
    if can_end(signal) {
        return Ok(signal);
    }
    let message = format!(
        "signal {} does not end a process (use SIGTERM, SIGINT, SIGKILL, …)",
        quoted(&text)
    );
    Err(RpcError::invalid_param("signal", message))
}
