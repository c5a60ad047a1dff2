//! Names and numbers of Linux signals on x86-64 and aarch64.
//!
//! Source: signal(7) for numbers, names and default actions, nptl(7) for the first real-time
//! signal that programs may use, protocol.md, kill_session for what a request may say.

use crate::limits::QUOTED_VALUE_BYTES;

/// Standard signals; of several names for one number the first is the one that is told.
const NAMES: [(&str, i32); 34] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("IOT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("POLL", 29),
    ("PWR", 30),
    ("SYS", 31),
];

/// SIGRTMIN as programs see it: glibc keeps 32 and 33 for its threads, see nptl(7).
const RT_MIN: i32 = 34;
/// SIGRTMAX.
const RT_MAX: i32 = 64;
/// No name or number of a signal is longer: `SIGRTMIN+30`.
const LONGEST_NAME: usize = 11;

/// The number of a signal, 0 to 64, from its name in any case, with or without `SIG`
/// (`TERM`, `sigusr1`, `SIGRTMIN+3`, `rtmax-1`), or from a decimal number. Whether the signal
/// can end a process is [`can_end`]'s to say.
pub fn parse_signal(text: &str) -> Result<i32, String> {
    number_of(text).ok_or_else(|| {
        let cut = text.get(..text.floor_char_boundary(QUOTED_VALUE_BYTES)).unwrap_or_default();
        format!("unknown signal {cut:?} (use SIGTERM, SIGINT, SIGKILL, …)")
    })
}

/// The name of a signal: `SIGTERM`, `SIGRTMIN+3`; for a number without a name `SIG77`.
pub fn signal_name(n: i32) -> String {
    match n {
        RT_MIN => "SIGRTMIN".to_owned(),
        _ if (RT_MIN..=RT_MAX).contains(&n) => format!("SIGRTMIN+{}", n - RT_MIN),
        _ => match NAMES.iter().find(|(_, number)| *number == n) {
            Some((name, _)) => format!("SIG{name}"),
            None => format!("SIG{n}"),
        },
    }
}

/// Whether the signal's default action is to end the process. The others, and numbers that are
/// no signal, are no way to kill (architecture.md, Ending a session).
pub fn can_end(n: i32) -> bool {
    // In order: CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG; then WINCH.
    (1..=RT_MAX).contains(&n) && !matches!(n, 17..=23 | 28)
}

fn number_of(text: &str) -> Option<i32> {
    if text.is_empty() || text.len() > LONGEST_NAME {
        return None;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().filter(|n| (0..=RT_MAX).contains(n));
    }
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    if let Some(from_min) = name.strip_prefix("RTMIN") {
        return Some(RT_MIN + offset(from_min, '+')?);
    }
    if let Some(from_max) = name.strip_prefix("RTMAX") {
        return Some(RT_MAX - offset(from_max, '-')?);
    }
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// The number behind RTMIN's `+` or RTMAX's `-`; nothing at all is 0.
fn offset(text: &str, sign: char) -> Option<i32> {
    if text.is_empty() {
        return Some(0);
    }
    let digits = text.strip_prefix(sign)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|n| (0..=RT_MAX - RT_MIN).contains(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_round_trip() {
        for n in 0..=64 {
            assert_eq!(parse_signal(&n.to_string()), Ok(n));
            if n != 0 && n != 32 && n != 33 {
                let name = signal_name(n);
                assert_eq!(parse_signal(&name), Ok(n), "{name}");
                assert_eq!(parse_signal(&name.to_ascii_lowercase()), Ok(n));
                assert_eq!(parse_signal(&name[3..]), Ok(n));
            }
        }
        assert!(NAMES.is_sorted_by_key(|(_, number)| *number));
    }

    #[test]
    fn table() {
        for (text, n) in [
            ("sigterm", 15),
            ("SigInt", 2),
            ("iot", 6),
            ("SIGPOLL", 29),
            ("RTMIN", 34),
            ("sigrtmin+30", 64),
            ("RTMAX", 64),
            ("SIGRTMAX-30", 34),
            ("015", 15),
        ] {
            assert_eq!(parse_signal(text), Ok(n), "{text}");
        }
        for (n, name) in [
            (15, "SIGTERM"),
            (29, "SIGIO"),
            (34, "SIGRTMIN"),
            (37, "SIGRTMIN+3"),
            (0, "SIG0"),
            (i32::MIN, "SIG-2147483648"),
        ] {
            assert_eq!(signal_name(n), name);
        }
    }

    #[test]
    fn unknown_ones_are_quoted() {
        let expected = "unknown signal \"FOO\" (use SIGTERM, SIGINT, SIGKILL, …)";
        assert_eq!(parse_signal("FOO"), Err(expected.to_owned()));
        let all = "|SIGSIGTERM|TERM |65|-1|0x9|99999999999|RTMIN+31|RTMAX+1|RTMIN+|RTMIN+000000001|\
            RTMINX|TER\nM";
        for text in all.split('|') {
            let message = parse_signal(text).expect_err(text);
            assert!(message.starts_with(&format!("unknown signal {text:?} (use")), "{message}");
        }
        let long = parse_signal(&"é".repeat(1_000_000)).expect_err("a long one");
        assert!(long.len() < QUOTED_VALUE_BYTES + 80);
    }

    /// rule: architecture.md, Ending a session: SIGSTOP, SIGCONT, 0 and the like are no way to
    ///   kill: −32602
    #[test]
    fn only_signals_that_end_a_process_can_end_one() {
        let cannot: Vec<i32> = (-1..=65).filter(|n| !can_end(*n)).collect();
        assert_eq!(cannot, [-1, 0, 17, 18, 19, 20, 21, 22, 23, 28, 65]);
        let names: Vec<String> = cannot[2..10].iter().map(|n| signal_name(*n)).collect();
        let expected = "SIGCHLD SIGCONT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGWINCH";
        assert_eq!(names.join(" "), expected);
    }
}
