//! The signal that a request names.

use serde_json::value::RawValue;

use super::{Int, RpcError, quoted};
use crate::pure::process::signal_names::{can_end, parse_signal};

/// The number of a signal that was `given` by name or number, or of the `default`.
pub fn signal_number(given: Option<&RawValue>, default: &str) -> Result<i32, RpcError> {
    let text = match given.map(RawValue::get) {
        None => default.to_owned(),
        // A number may be written 9.0, as any whole number of the protocol.
        Some(raw) => match serde_json::from_str::<Int>(raw) {
            Ok(number) => number.0.to_string(),
            Err(_) => serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned()),
        },
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

#[cfg(test)]
mod tests {
    use super::*;

    /// rule: protocol.md, Framing: Integers may be written `250`, `250.0` or `2.5e2`
    #[test]
    fn the_number_of_a_signal_may_be_written_as_any_integer() {
        let of = |raw: &str| {
            let raw: &RawValue = serde_json::from_str(raw).expect("JSON");
            signal_number(Some(raw), "SIGTERM").map_err(|error| error.message)
        };
        for raw in ["9", "9.0", "0.9e1", "\"9\"", "\"kill\""] {
            assert_eq!(of(raw), Ok(9), "{raw}");
        }
        for raw in ["9.5", "-9.0", "1e300", "\"9.0\""] {
            let message = of(raw).expect_err("no signal");
            assert!(message.starts_with("unknown signal "), "{raw}: {message}");
        }
    }
}
