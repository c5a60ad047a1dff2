//! What the flags and the environment decide, after checking.

use std::path::PathBuf;

use crate::limits::{
    DEFAULT_MAX_BACKGROUND_POLL_MS, DEFAULT_MAX_BYTES, DEFAULT_MAX_LINES, LOG_KEEP_DAYS,
    MAX_CONFIGURABLE_POLL_MS, MAX_LINE_BYTES, MAX_SESSIONS, MIN_EMPTY_YIELD_TIME_MS,
};
use crate::session::view::TextLimits;

/// What happens to live sessions at the end of stdin, once pending requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnEof {
    /// They are ended.
    End,
    /// They run to their own end first.
    Wait,
}

/// Where logs go and what bounds them.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// No log files at all.
    pub off: bool,
    /// The directory; `None`: `$TMPDIR/pi-execd-<uid>`.
    pub dir: Option<PathBuf>,
    /// Bytes of a session's stream that are logged at most.
    pub max_bytes: Option<u64>,
    /// Logs older than this are deleted at start; 0 keeps them for ever.
    pub keep_days: u64,
}

/// The settings of one execd.
#[derive(Clone, Debug)]
pub struct Config {
    /// Sessions in the table before the least recently used is evicted.
    pub max_sessions: usize,
    /// The first session's id.
    pub first_session_id: u64,
    /// Longest request line.
    pub max_line_bytes: usize,
    /// How much text one reply may hold.
    pub text: TextLimits,
    /// Longest empty poll, where the client names none.
    pub max_empty_poll_ms: u64,
    /// What the end of stdin does to live sessions.
    pub on_eof: OnEof,
    /// Ends execd when nothing came for so long.
    pub exit_after_silence_s: Option<u64>,
    /// Where logs go.
    pub logs: LogSettings,
    /// Whether the helper process is used: log writer and guard.
    pub keeper: bool,
    /// Whether programs that detached themselves by setsid are ended too.
    pub kill_detached: bool,
    /// Off: children are made by fork and an error pipe, as where vfork isn't real.
    pub vfork: bool,
    /// One line per state change on stderr (EXECD_LOG=debug).
    pub debug: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_sessions: MAX_SESSIONS,
            first_session_id: 1,
            max_line_bytes: MAX_LINE_BYTES,
            text: TextLimits { max_lines: DEFAULT_MAX_LINES, max_bytes: DEFAULT_MAX_BYTES },
            max_empty_poll_ms: DEFAULT_MAX_BACKGROUND_POLL_MS,
            on_eof: OnEof::End,
            exit_after_silence_s: None,
            logs: LogSettings { off: false, dir: None, max_bytes: None, keep_days: LOG_KEEP_DAYS },
            keeper: true,
            kill_detached: false,
            vfork: true,
            debug: false,
        }
    }
}

/// The environment variable that caps empty polls, in milliseconds.
pub const MAX_EMPTY_POLL_VARIABLE: &str = "PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS";

/// The cap of empty polls from its variable's value (unified-exec.md, Constants): unset, not a
/// number or not positive gives the default, a positive value below 5,000 gives 5,000.
pub fn max_empty_poll_ms(value: Option<&str>) -> u64 {
    match value.map(|text| text.trim().parse::<f64>()) {
        Some(Ok(ms)) if ms > 0.0 && ms.is_finite() => {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates.
            let ms = ms as u64;
            ms.clamp(MIN_EMPTY_YIELD_TIME_MS, MAX_CONFIGURABLE_POLL_MS)
        }
        _ => DEFAULT_MAX_BACKGROUND_POLL_MS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_of_the_poll_cap() {
        let cases = [
            (None, 1_800_000),
            (Some(""), 1_800_000),
            (Some("abc"), 1_800_000),
            (Some("0"), 1_800_000),
            (Some("-5"), 1_800_000),
            (Some("NaN"), 1_800_000),
            (Some("1"), 5_000),
            (Some("4999"), 5_000),
            (Some("5000"), 5_000),
            (Some("5001"), 5_001),
            (Some(" 300000 "), 300_000),
            (Some("1e30"), 315_360_000_000),
        ];
        for (value, ms) in cases {
            assert_eq!(max_empty_poll_ms(value), ms, "{value:?}");
        }
    }
}
