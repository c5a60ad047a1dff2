//! Time stamps of RFC 3339 in UTC: read strictly, written with milliseconds.
//!
//! Source: RFC 3339, section 5.6, narrowed for `yield_until`:
//! capital T and Z, 0–3 fraction digits, a real date. The calendar is the proleptic Gregorian one;
//! leap seconds do not exist, as in POSIX time.

const MS_PER_DAY: i64 = 86_400_000;
const DAYS_PER_400_YEARS: i64 = 146_097;
/// Days from 0000-01-01 to 1970-01-01.
const EPOCH_DAY: i64 = 719_528;
const FORM: &str = "it is not of the form YYYY-MM-DDTHH:MM:SSZ or YYYY-MM-DDTHH:MM:SS.mmmZ";

/// A moment of the wall clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UtcStamp {
    /// Milliseconds since 1970-01-01T00:00:00Z; negative before it.
    pub unix_ms: i64,
}

/// Reads `YYYY-MM-DDTHH:MM:SS[.f{1,3}]Z` with years 0000 to 9999. The error is a plain reason
/// that fits after the value and a colon.
pub fn parse_utc(text: &str) -> Result<UtcStamp, String> {
    let (head, ms) = split_fraction(text.as_bytes())?;
    if [head[4], head[7], head[10], head[13], head[16]] != *b"--T::" {
        return Err(FORM.to_owned());
    }
    let (year, month, day) = (digits(&head[..4])?, digits(&head[5..7])?, digits(&head[8..10])?);
    let (hour, minute, second) =
        (digits(&head[11..13])?, digits(&head[14..16])?, digits(&head[17..])?);
    if !(1..=12).contains(&month) {
        return Err(format!("there is no month {month:02}"));
    }
    let length = days_in_month(year, month);
    if !(1..=length).contains(&day) {
        return Err(format!("there is no day {day:02} in {year:04}-{month:02}"));
    }
    if hour > 23 {
        return Err(format!("the hour {hour:02} is over 23"));
    }
    if minute > 59 {
        return Err(format!("the minute {minute:02} is over 59"));
    }
    if second > 59 {
        return Err(format!("the second {second:02} is over 59"));
    }
    let days_of_months: i64 = (1..month).map(|earlier| days_in_month(year, earlier)).sum();
    let days = days_before_year(year) + days_of_months + day - 1 - EPOCH_DAY;
    let seconds = (hour * 60 + minute) * 60 + second;
    Ok(UtcStamp { unix_ms: days * MS_PER_DAY + seconds * 1000 + ms })
}

/// Writes milliseconds since 1970 as `2026-07-21T18:30:00.123Z`. Exact for years 0000 to 9999;
/// a year outside has more digits or a minus sign, which no reader of RFC 3339 takes.
pub fn format_utc_ms(unix_ms: i64) -> String {
    let (year, month, day) = date_of(unix_ms.div_euclid(MS_PER_DAY));
    let ms_of_day = unix_ms.rem_euclid(MS_PER_DAY);
    let second_of_day = ms_of_day / 1000;
    let (hour, minute, second) =
        (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    let ms = ms_of_day % 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// The 19 bytes before the fraction, and the fraction in milliseconds.
fn split_fraction(text: &[u8]) -> Result<(&[u8; 19], i64), String> {
    let Some((b'Z', rest)) = text.split_last() else {
        return Err(if text.last() == Some(&b'z') || has_offset(text) {
            "it must be in UTC and end with a capital Z".to_owned()
        } else {
            FORM.to_owned()
        });
    };
    let Some((head, tail)) = rest.split_first_chunk() else { return Err(FORM.to_owned()) };
    match tail {
        [] => Ok((head, 0)),
        [b'.', a] => Ok((head, digits(&[*a])? * 100)),
        [b'.', a, b] => Ok((head, digits(&[*a, *b])? * 10)),
        [b'.', a, b, c] => Ok((head, digits(&[*a, *b, *c])?)),
        [b'.', ..] => Err("the fraction of a second must have 1 to 3 digits".to_owned()),
        _ => Err(FORM.to_owned()),
    }
}

/// Whether the text ends like an offset from UTC: `+02:00`.
fn has_offset(text: &[u8]) -> bool {
    matches!(text, [.., b'+' | b'-', _, _, b':', _, _])
}

/// The value of a few ASCII digits.
fn digits(text: &[u8]) -> Result<i64, String> {
    text.iter().try_fold(0, |value, byte| match byte {
        b'0'..=b'9' => Ok(value * 10 + i64::from(byte - b'0')),
        _ => Err(FORM.to_owned()),
    })
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days of a month; `month` is 1 to 12.
fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 0000-01-01 to the first day of `year`, which is not negative.
fn days_before_year(year: i64) -> i64 {
    // Year 0 is a leap year, so the leap years before `year` are the multiples of 4 in
    // 0..year, counted by rounding up, less those of 100, plus those of 400.
    year * 365 + (year + 3) / 4 - (year + 99) / 100 + (year + 399) / 400
}

/// Year, month and day of a day counted from 1970-01-01.
fn date_of(unix_day: i64) -> (i64, i64, i64) {
    let day = unix_day + EPOCH_DAY;
    let cycle = day.div_euclid(DAYS_PER_400_YEARS);
    let mut left = day.rem_euclid(DAYS_PER_400_YEARS);
    // Dividing by the longest year is never too high and at most one too low in 400 years.
    let mut year = left / 366;
    if days_before_year(year + 1) <= left {
        year += 1;
    }
    left -= days_before_year(year);
    let mut month = 1;
    while month < 12 && left >= days_in_month(year, month) {
        left -= days_in_month(year, month);
        month += 1;
    }
    (cycle * 400 + year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> i64 {
        parse_utc(text).unwrap_or_else(|reason| panic!("{text}: {reason}")).unix_ms
    }

    #[test]
    fn known_stamps() {
        assert_eq!(ms("1970-01-01T00:00:00Z"), 0);
        assert_eq!(ms("1969-12-31T23:59:59.999Z"), -1);
        assert_eq!(ms("2000-02-29T12:34:56.789Z"), 951_827_696_789);
        assert_eq!(ms("2026-07-21T18:30:00Z"), 1_784_658_600_000);
        assert_eq!(ms("2026-07-21T18:30:00.5Z"), 1_784_658_600_500);
        assert_eq!(format_utc_ms(1_784_658_600_123), "2026-07-21T18:30:00.123Z");
        assert_eq!(format_utc_ms(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(format_utc_ms(253_402_300_799_999), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn every_day_from_1970_to_2100_and_every_month_of_ten_thousand_years() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        let mut unix_ms = 0;
        while year <= 2100 {
            let text = format!("{year:04}-{month:02}-{day:02}T00:00:00.000Z");
            assert_eq!(format_utc_ms(unix_ms), text);
            assert_eq!(ms(&text), unix_ms);
            let last = format_utc_ms(unix_ms + MS_PER_DAY - 1);
            assert_eq!(last, format!("{}T23:59:59.999Z", &text[..10]));
            assert_eq!(ms(&last), unix_ms + MS_PER_DAY - 1);
            unix_ms += MS_PER_DAY;
            day += 1;
            if day > days_in_month(year, month) {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
        let mut expected = -EPOCH_DAY * MS_PER_DAY;
        for year in 0..=9999 {
            for month in 1..=12 {
                let text = format!("{year:04}-{month:02}-01T00:00:00.000Z");
                assert_eq!((ms(&text), format_utc_ms(expected)), (expected, text));
                expected += days_in_month(year, month) * MS_PER_DAY;
            }
        }
    }

    /// rule: unified-exec.md, write_stdin: `yield_until` is strict RFC 3339 UTC
    #[test]
    fn bad_stamps() {
        let table = [
            ("", "form"),
            ("2026-07-21T18:30:00", "form"),
            ("2026-07-21 18:30:00Z", "form"),
            ("2026-07-21T20:30:00+02:00", "capital Z"),
            ("2026-07-21T18:30:00Z\n", "form"),
            ("2026-07-21T18:30:00.Z", "1 to 3 digits"),
            ("2026-07-21T18:30:00.1234Z", "1 to 3 digits"),
            ("2026-07-21T18:30:00.12aZ", "form"),
            ("12026-07-21T18:30:00Z", "form"),
            ("2026-7-21T18:30:00Z", "form"),
            ("2026-13-21T18:30:00Z", "no month 13"),
            ("2026-06-31T18:30:00Z", "no day 31 in 2026-06"),
            ("2026-02-29T18:30:00Z", "no day 29 in 2026-02"),
            ("1900-02-29T18:30:00Z", "no day 29 in 1900-02"),
            ("2026-07-21T24:00:00Z", "hour 24"),
            ("2026-07-21T18:60:00Z", "minute 60"),
            ("2026-07-21T18:30:60Z", "second 60"),
            ("２026-07-21T18:30:00Z", "form"),
        ];
        for (text, expected) in table {
            let reason = parse_utc(text).expect_err(text);
            assert!(reason.contains(expected), "{text:?}: {reason}");
        }
    }
}
