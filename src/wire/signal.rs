//! The signal that a request names.

use serde_json::value::RawValue;

use super::{Int, RpcError, quoted};
use crate::pure::process::signal_names::{can_end, parse_signal};

/// The number of a signal that was `given` by name or number, or of the `default`.
pub fn signal_number(given: Option<&RawValue>, default: &str) -> Result<i32, RpcError> {
    let raw = given.map(RawValue::get);
    // A number may be written 9.0, as any whole number of the protocol; errors quote it so.
    let number = raw.and_then(|raw| serde_json::from_str::<Int>(raw).ok());
    let text = match raw {
        None => default.to_owned(),
        Some(raw) => serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned()),
    };
    let signal = number.and_then(|number| parse_signal(&number.0.to_string()).ok());
    let signal = signal
        .map_or_else(|| parse_signal(&text), Ok)
        .map_err(|message| RpcError::invalid_param("signal", message))?;
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
        // `1e300` was told as 9223372036854775807, which nobody had given.
        for raw in ["9.5", "-9.0", "1e300", "\"9.0\""] {
            let message = of(raw).expect_err("no signal");
            let told = format!("unknown signal \"{}\" ", raw.trim_matches('"'));
            assert!(message.starts_with(&told), "{raw}: {message}");
        }
    }
}
