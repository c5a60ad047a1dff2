//! Which of some names somebody may have meant who wrote another one.

/// How many letters two names may differ in: one where the shorter has no more than five.
fn most(a: &str, b: &str) -> usize {
    if a.len().min(b.len()) <= SHORT_NAME_BYTES { 1 } else { 2 }
}

/// A name that is so short that two wrong letters make another word of it.
const SHORT_NAME_BYTES: usize = 5;
/// Names that are longer are near to none.
const LONG_NAME_BYTES: usize = 64;

/// A name as it is compared: camelCase as snake_case, in small letters.
pub fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut before_small = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && before_small {
            out.push('_');
        }
        before_small = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// How many letters must be put in, left out, exchanged or swapped with their neighbour to make one
/// name of the other.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let exchanged = last[j] + usize::from(a[i] != b[j]);
            let mut least = exchanged.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// The nearest of these names to one that is none of them, where any is near; of several the first.
pub fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > LONG_NAME_BYTES {
        return None;
    }
    let given = snake(given);
    let mut found: Option<(usize, &str)> = None;
    for name in names {
        let whole = snake(name);
        let apart = distance(given.as_bytes(), whole.as_bytes());
        let nearer = found.is_none_or(|(least, _)| apart < least);
        if apart <= most(&given, &whole) && nearer {
            found = Some((apart, name));
        }
    }
    found.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_is_compared() {
        for (given, expected) in [
            ("sessionId", "session_id"),
            ("SessionID", "session_id"),
            ("yieldTimeMs", "yield_time_ms"),
            ("charsB64", "chars_b64"),
            ("é", "é"),
        ] {
            assert_eq!(snake(given), expected);
        }
    }

    #[test]
    fn a_name_is_near_by_two_letters_a_short_one_by_one() {
        let names = ["cmd", "chars", "eof", "rows", "cols", "yield_time_ms", "session_id"];
        let near = |given: &str| nearest(given, names.iter().copied());
        for (given, expected) in [
            ("char", Some("chars")),
            ("cahrs", Some("chars")),
            ("cdm", Some("cmd")),
            ("row", Some("rows")),
            ("yield_time", None),
            ("yieldTimMs", Some("yield_time_ms")),
            ("sesionid", Some("session_id")),
            ("", None),
            ("temperature", None),
        ] {
            assert_eq!(near(given), expected, "{given}");
        }
        assert_eq!(near(&"chars".repeat(1_000)), None);
    }
}
