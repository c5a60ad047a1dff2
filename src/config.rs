//! What the flags and the environment decide, after checking.

use std::path::PathBuf;

use crate::limits::{
    DEFAULT_MAX_BACKGROUND_POLL_MS, DEFAULT_MAX_BYTES, DEFAULT_MAX_LINES, FINISHED_JOBS_MAX,
    FINISHED_JOBS_RANGE, JOB_OUTPUT_CHARS, JOB_OUTPUT_CHARS_MAX, JOB_YIELD_MAX_MS,
    JOB_YIELD_MIN_MS, JOB_YIELD_MS, LOG_KEEP_DAYS, MAX_CONFIGURABLE_POLL_MS, MAX_LINE_BYTES,
    MAX_SESSIONS, MIN_EMPTY_YIELD_TIME_MS, RUNNING_AGENTS_MAX, RUNNING_JOBS_MAX,
    RUNNING_WINDOWS_MAX,
};
use crate::pure::buffer::bound::Bounds;
use crate::server::session::view::TextLimits;

/// Output in all rows of one answer of wait_for together.
const WAIT_FOR_TEXT_BYTES: usize = 512 * 1024;

/// Input that a session takes over its life unless --stdin-cap-bytes says otherwise.
const JOB_STDIN_CAP_BYTES: u64 = 256 * 1024;

/// Shortest and longest time that may be configured for that.
const JOB_TTL_RANGE_MS: (u64, u64) = (60_000, 10_800_000);

/// How long a finished session is remembered when nothing else is configured.
const JOB_TTL_MS: u64 = 1_800_000;

/// Bytes of disk that all logs of a directory take, unless `--log-total-bytes` says otherwise.
const LOG_TOTAL_BYTES: u64 = 8 * 1024 * 1024 * 1024;

/// Bytes of a log that are kept, unless `--log-keep-bytes` says otherwise.
const LOG_KEEP_BYTES: u64 = 1024 * 1024 * 1024;

/// What happens to live sessions at the end of stdin, once pending requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnEof {
    /// They are ended.
    End,
    /// They run to their own end first.
    Wait,
}

/// What happens to a wait that nothing but input to its session can end any more (waits.md,
/// Impossible).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnImpossible {
    /// It is answered: the session still runs, and the answer says what it waits for.
    Answer,
    /// It goes on to its deadline.
    Wait,
}

/// Where logs go and what bounds them.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// No log files at all.
    pub off: bool,
    /// The directory; `None`: `$TMPDIR/pi-execd-<uid>`.
    pub dir: Option<PathBuf>,
    /// How large one log becomes, and all of them.
    pub bounds: Bounds,
    /// Logs older than this are deleted at start; 0 keeps them for ever.
    pub keep_days: u64,
    /// Texts name logs by their paths also where these lie in the default directory: who reads them
    /// may have another one.
    pub by_path: bool,
}

impl Default for LogSettings {
    fn default() -> Self {
        let bounds = Bounds {
            max_bytes: None,
            keep_bytes: Some(LOG_KEEP_BYTES),
            total_bytes: Some(LOG_TOTAL_BYTES),
        };
        Self { off: false, dir: None, bounds, keep_days: LOG_KEEP_DAYS, by_path: false }
    }
}

/// What the stream family goes by where a call says nothing.
#[derive(Clone, Copy, Debug)]
pub struct StreamSettings {
    /// How long bash_stream waits.
    pub yield_ms: u64,
    /// Characters of each text of a reply.
    pub max_chars: usize,
    /// How long a finished job is remembered.
    pub ttl_ms: u64,
    /// Finished jobs that are remembered.
    pub jobs_kept: usize,
    /// Input that a job takes over its life; `None`: any amount.
    pub stdin_cap_bytes: Option<u64>,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            yield_ms: JOB_YIELD_MS,
            max_chars: JOB_OUTPUT_CHARS,
            ttl_ms: JOB_TTL_MS,
            jobs_kept: FINISHED_JOBS_MAX,
            stdin_cap_bytes: Some(JOB_STDIN_CAP_BYTES),
        }
    }
}

/// Where the control socket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketPlace {
    /// In this user's directory, by our process id.
    Default,
    /// At this path.
    At(PathBuf),
    /// Nowhere.
    Off,
}

/// The settings of one execd.
#[derive(Clone, Debug)]
pub struct Config {
    /// Sessions in the table before the least recently used is evicted.
    pub max_sessions: usize,
    /// Commands of bash, processes of bash_stream and runs of pi that go on at once, of each.
    pub max_running: usize,
    /// The first session's id.
    pub first_session_id: u64,
    /// Longest request line.
    pub max_line_bytes: usize,
    /// How much text one reply may hold.
    pub text: TextLimits,
    /// Bytes of output that all sessions of one wait_for share.
    pub shared_text_bytes: usize,
    /// Longest empty poll, where the client names none.
    pub max_empty_poll_ms: u64,
    /// What the stream family goes by.
    pub stream: StreamSettings,
    /// pi's path, or its name on the PATH (EXECD_PI).
    pub pi: String,
    /// How many commands may run at once; `None`: any number.
    pub jobs: Option<usize>,
    /// execd's exit status tells nothing of lines that were answered with an error.
    pub lenient: bool,
    /// What the end of stdin does to live sessions.
    pub on_eof: OnEof,
    /// What happens to a wait that nothing but input can end any more, unless its call says.
    pub on_impossible: OnImpossible,
    /// Ends execd when nothing came on stdin for so long.
    pub lease_ms: Option<u64>,
    /// The word of the line that is written before everything else.
    pub marker: Option<String>,
    /// Where logs go.
    pub logs: LogSettings,
    /// Where the control socket is.
    pub socket: SocketPlace,
    /// Whether the helper process is used: log writer and guard.
    pub keeper: bool,
    /// Whether programs that detached themselves by setsid are ended too.
    pub kill_detached: bool,
    /// One line per state change on stderr (EXECD_LOG=debug).
    pub debug: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_sessions: MAX_SESSIONS,
            max_running: RUNNING_JOBS_MAX.max(RUNNING_WINDOWS_MAX).max(RUNNING_AGENTS_MAX),
            first_session_id: 1,
            max_line_bytes: MAX_LINE_BYTES,
            text: TextLimits {
                max_lines: DEFAULT_MAX_LINES,
                max_bytes: DEFAULT_MAX_BYTES,
                keeps_head: false,
            },
            shared_text_bytes: WAIT_FOR_TEXT_BYTES,
            max_empty_poll_ms: DEFAULT_MAX_BACKGROUND_POLL_MS,
            stream: StreamSettings::default(),
            pi: "pi".to_owned(),
            jobs: None,
            lenient: false,
            on_eof: OnEof::End,
            on_impossible: OnImpossible::Answer,
            lease_ms: None,
            marker: None,
            logs: LogSettings::default(),
            socket: SocketPlace::Default,
            keeper: true,
            kill_detached: false,
            debug: false,
        }
    }
}

/// The environment variable that caps empty polls, in milliseconds.
pub const MAX_EMPTY_POLL_VARIABLE: &str = "PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS";

/// The number that a text is, blanks around it aside; None for what is no number or not finite.
fn finite(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// The cap of empty polls from its variable's value (protocol.md, Bounds): unset, not a
/// number or not positive gives the default, a positive value below 5,000 gives 5,000.
pub fn max_empty_poll_ms(value: Option<&str>) -> u64 {
    match value.and_then(finite) {
        Some(ms) if ms > 0.0 => {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates.
            let ms = ms as u64;
            ms.clamp(MIN_EMPTY_YIELD_TIME_MS, MAX_CONFIGURABLE_POLL_MS)
        }
        _ => DEFAULT_MAX_BACKGROUND_POLL_MS,
    }
}

/// The variables of the stream family.
pub const JOB_YIELD_VARIABLE: &str = "PI_BASH_YIELD_MS";
/// See [`JOB_YIELD_VARIABLE`].
pub const JOB_OUTPUT_CHARS_VARIABLE: &str = "PI_BASH_MAX_OUTPUT_CHARS";
/// See [`JOB_YIELD_VARIABLE`].
pub const JOB_TTL_VARIABLE: &str = "PI_BASH_JOB_TTL_MS";
/// See [`JOB_YIELD_VARIABLE`].
pub const JOBS_KEPT_VARIABLE: &str = "PI_BASH_JOBS_KEPT";

impl StreamSettings {
    /// The settings as their variables say: what is unset or no
    /// positive number leaves what is here, what is out of range gives the nearest that is in it.
    pub fn with_variables(self, value: impl Fn(&str) -> Option<String>) -> Self {
        let own = self;
        let number = |name: &str| {
            let number = value(name).as_deref().and_then(finite);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates.
            number.filter(|number| *number > 0.0).map(|number| number as u64)
        };
        Self {
            yield_ms: number(JOB_YIELD_VARIABLE).map_or(own.yield_ms, job_yield_ms),
            max_chars: number(JOB_OUTPUT_CHARS_VARIABLE).map_or(own.max_chars, job_output_chars),
            ttl_ms: number(JOB_TTL_VARIABLE).map_or(own.ttl_ms, job_ttl_ms),
            jobs_kept: number(JOBS_KEPT_VARIABLE).map_or(own.jobs_kept, jobs_kept),
            ..own
        }
    }
}

/// A wait of bash_stream, clamped.
pub fn job_yield_ms(given: u64) -> u64 {
    given.clamp(JOB_YIELD_MIN_MS, JOB_YIELD_MAX_MS)
}

/// Characters of a stream reply's texts, clamped.
pub fn job_output_chars(given: u64) -> usize {
    usize::try_from(given).unwrap_or(usize::MAX).clamp(1, JOB_OUTPUT_CHARS_MAX)
}

/// A finished job's time to live, clamped.
pub fn job_ttl_ms(given: u64) -> u64 {
    given.clamp(JOB_TTL_RANGE_MS.0, JOB_TTL_RANGE_MS.1)
}

/// How many finished jobs are remembered, clamped.
pub fn jobs_kept(given: u64) -> usize {
    let kept = given.clamp(FINISHED_JOBS_RANGE.0, FINISHED_JOBS_RANGE.1);
    usize::try_from(kept).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rule: bash-stream.md, The stream family: Environment values: invalid, below, above
    /// rule: bash-stream.md, The stream family: How long and how many are remembered can be set,
    ///   and list_processes says how many are forgotten
    #[test]
    fn the_variables_of_the_stream_family() {
        let cases: [(Option<&str>, u64, usize, u64, usize); 9] = [
            (None, 60_000, 30_000, 1_800_000, 256),
            (Some("abc"), 60_000, 30_000, 1_800_000, 256),
            (Some("-1"), 60_000, 30_000, 1_800_000, 256),
            (Some("0"), 60_000, 30_000, 1_800_000, 256),
            (Some("1"), 1_000, 1, 60_000, 1),
            (Some("700"), 1_000, 700, 60_000, 700),
            (Some(" 100000 "), 100_000, 100_000, 100_000, 1_024),
            (Some("150001"), 120_000, 150_000, 150_001, 1_024),
            (Some("1e30"), 120_000, 150_000, 10_800_000, 1_024),
        ];
        for (value, yield_ms, max_chars, ttl_ms, jobs_kept) in cases {
            let own = StreamSettings::default();
            let settings = own.with_variables(|_| value.map(str::to_owned));
            let got = (settings.yield_ms, settings.max_chars, settings.ttl_ms);
            assert_eq!(got, (yield_ms, max_chars, ttl_ms), "{value:?}");
            assert_eq!(settings.jobs_kept, jobs_kept, "{value:?}");
        }
    }

    /// rule: unified-exec.md, Constants: PI_UNIFIED_EXEC_MAX_EMPTY_POLL_MS: invalid or unset is the
    ///   default; 0 < v < 5,000 is 5,000
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
