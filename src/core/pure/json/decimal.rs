//! Numbers as people write them: `5`, `0.5`, `.5`, `1e3`. JSON knows fewer ways to write one, but
//! what reads them from JSON is in the binary anyway, and what the standard library has for these
//! would take twelve kilobytes more.

/// The number that a text is, exact to 15 digits. Infinity is none, nor is what is not a number.
pub fn decimal(text: &str) -> Option<f64> {
    let sign = if text.starts_with('-') { "-" } else { "" };
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if whole.len() + part.len() == 0 || ![whole, part, digits].into_iter().all(is_number) {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let zero = if whole.is_empty() { "0" } else { "" };
    serde_json::from_str(&[sign, zero, whole, ".", part, "0e", exponent].concat()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_standard_library_takes_is_the_same_number() {
        for text in [
            "0", "5", "007", "0.5", ".5", "5.", "+1", "-1.25", "1e3", "1E-3", "2.5e+2", "0.51",
            "0.1", "00.10", "-0", "600000",
        ] {
            assert_eq!(decimal(text), text.parse().ok(), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "", ".", "e3", "1e", "1e+", "--1", "+-1", "1.2.3", "1_000", " 1", "1 ", "0x10",
            "1e3e3", "1e5 ", "1e 5", "1e+-5", "1e5\n", "inf", "nan", "1e999", "1,5", "1e3.", "१",
        ] {
            assert_eq!(decimal(text), None, "{text}");
        }
    }
}
