//! Durations as people give them to a flag: `0.5`, `500ms`, `5m`, `1h30m`.

use crate::limits::MAX_CONFIGURABLE_POLL_MS;

/// The units, longest first, each in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
/// A plain number counts these.
const SECOND_MS: u64 = 1_000;
/// Digits behind the point that count: the rest is less than a millisecond of a day.
const FRACTION_DIGITS: usize = 9;

/// The milliseconds that a text means: a plain number of seconds, or numbers with units, the longer
/// unit first. What is more than nothing is a millisecond at least. Gives a reason for people,
/// which follows the flag's name.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let wrong = || format!("must be a time such as 0.5, 500ms, 5m or 1h30m, not {text:?}");
    let ms = milliseconds(text).ok_or_else(wrong)?;
    if ms > MAX_CONFIGURABLE_POLL_MS {
        let days = MAX_CONFIGURABLE_POLL_MS / UNITS[0].1;
        return Err(format!("must be {days}d at most, not {text:?}"));
    }
    Ok(ms)
}

fn milliseconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut units = UNITS.iter();
    let mut sum: u64 = 0;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(digits);
        let letters = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(letters);
        let plain = unit.is_empty() && number.len() == text.len();
        // Each unit once, and never a longer one behind a shorter one: the iterator goes on.
        let unit_ms = if plain {
            SECOND_MS
        } else {
            units.find(|(name, _)| *name == unit).map(|(_, unit_ms)| *unit_ms)?
        };
        sum = sum.checked_add(scaled(number, unit_ms)?)?;
        if behind.is_empty() {
            return Some(sum);
        }
        rest = behind;
    }
}

/// A decimal number of units in milliseconds, rounded up.
fn scaled(number: &str, unit_ms: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    let fraction = &fraction[..fraction.len().min(FRACTION_DIGITS)];
    let parts = if fraction.is_empty() { 0 } else { fraction.parse::<u64>().ok()? };
    let scale = u64::pow(10, u32::try_from(fraction.len()).ok()?);
    let of_fraction = parts.checked_mul(unit_ms)?.div_ceil(scale);
    whole.checked_mul(unit_ms)?.checked_add(of_fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is a time and what is not, also for who reads the flags of another execd.
    #[test]
    fn durations_are_read_and_nothing_else_is() {
        let json =
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/durations.json"));
        let table: serde_json::Value = serde_json::from_str(json).expect("the table");
        let taken = table["taken"].as_object().expect("times");
        let refused = table["refused"].as_array().expect("no times");
        assert!(taken.len() >= 18 && refused.len() >= 26, "the whole table");
        for (text, ms) in taken {
            assert_eq!(parse_duration(text).ok(), ms.as_u64(), "{text}");
        }
        for text in refused.iter().filter_map(|text| text.as_str()) {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert_eq!(taken["3650d"], MAX_CONFIGURABLE_POLL_MS);
        let reason = parse_duration("soon").unwrap_err();
        assert_eq!(reason, "must be a time such as 0.5, 500ms, 5m or 1h30m, not \"soon\"");
    }
}
