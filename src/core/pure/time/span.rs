//! Spans of time as people write them: `90s`, `15m`, `36h`, `7d`.

const UNITS: [(char, u64); 4] = [('s', 1), ('m', 60), ('h', 60 * 60), ('d', 24 * 60 * 60)];

/// The seconds that such a text means; `None` for what is none, or too long.
pub fn seconds(text: &str) -> Option<u64> {
    let (unit, factor) = UNITS.into_iter().find(|(unit, _)| text.ends_with(*unit))?;
    let number = text.strip_suffix(unit)?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse::<u64>().ok().filter(|_| digits)?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_nothing_else_is() {
        for (text, span) in [("0s", 0), ("90s", 90), ("15m", 900), ("36h", 129_600)] {
            assert_eq!(seconds(text), Some(span), "{text}");
        }
        assert_eq!(seconds("7d"), Some(604_800));
        for text in ["", "d", "7", "7 d", "-7d", "+7d", "7dd", "7w", "1.5h", "7D", "7\u{e9}"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert_eq!(seconds("99999999999999999999d"), None);
        assert_eq!(seconds("999999999999999999d"), None);
    }
}
