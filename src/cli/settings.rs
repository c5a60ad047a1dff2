//! The flags that set an execd up (`table::SETTINGS`), read into its settings or passed on to
//! another execd.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::arguments::{Arguments, Reason, number};
use super::table::SETTINGS;
use crate::config::{
    Config, OnEof, OnImpossible, SocketPlace, job_output_chars, job_ttl_ms, job_yield_ms, jobs_kept,
};
use crate::limits::{
    DEFAULT_MAX_BYTES, FINISHED_JOBS_RANGE, HEAD_TAIL_MAX_BYTES, MAX_CONFIGURABLE_POLL_MS,
    MAX_LOG_BOUND_BYTES, MAX_LOG_KEEP_DAYS, MAX_MAX_LINE_BYTES, MAX_SESSIONS_LIMIT, MAX_SILENCE_S,
    MIN_EMPTY_YIELD_TIME_MS, MIN_LOG_BOUND_BYTES, MIN_MAX_LINE_BYTES,
};

/// Reads a flag of the settings into `config`; gives the flag's value, where the flag has one, as
/// it was typed.
pub fn setting(
    flag: &str,
    arguments: &mut Arguments,
    config: &mut Config,
) -> Result<Option<OsString>, Reason> {
    match flag {
        "--no-socket" => config.socket = SocketPlace::Off,
        "--no-log" => config.logs.off = true,
        "--no-keeper" => config.keeper = false,
        "--no-vfork" => config.vfork = false,
        "--kill-detached" => config.kill_detached = true,
        _ if SETTINGS.iter().any(|setting| setting.dashed() == flag) => {
            let value = arguments.value()?;
            set(flag, &value, config)?;
            return Ok(Some(value));
        }
        _ => return Err(arguments.unknown(flag)),
    }
    Ok(None)
}

/// Checks a flag of the settings and adds it to the flags of another execd; `config` takes the
/// flag's value too.
pub fn pass_on(
    flag: &str,
    arguments: &mut Arguments,
    config: &mut Config,
    flags: &mut Vec<OsString>,
) -> Result<(), Reason> {
    let value = setting(flag, arguments, config)?;
    flags.push(flag.into());
    flags.extend(value);
    Ok(())
}

/// Sets what a flag with a value is for. Numbers of the stream family are clamped, as the family's
/// params are.
fn set(flag: &str, value: &OsStr, config: &mut Config) -> Result<(), Reason> {
    let given = |low: u64, high: u64| number(flag, value, low, high);
    let any = || given(0, u64::MAX);
    let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let stream = &mut config.stream;
    match flag {
        "--on-eof" => {
            config.on_eof = match value.to_str() {
                Some("end") => OnEof::End,
                Some("wait") => OnEof::Wait,
                _ => return Err(format!("--on-eof must be end or wait, not {value:?}")),
            };
        }
        "--on-impossible" => {
            config.on_impossible = match value.to_str() {
                Some("answer") => OnImpossible::Answer,
                Some("wait") => OnImpossible::Wait,
                _ => return Err(format!("--on-impossible must be answer or wait, not {value:?}")),
            };
        }
        "--log-dir" => config.logs.dir = Some(PathBuf::from(value)),
        "--socket" => config.socket = SocketPlace::At(PathBuf::from(value)),
        "--max-sessions" => config.max_sessions = size(given(1, MAX_SESSIONS_LIMIT as u64)?),
        "--max-line-bytes" => {
            let (low, high) = (MIN_MAX_LINE_BYTES as u64, MAX_MAX_LINE_BYTES as u64);
            config.max_line_bytes = size(given(low, high)?);
        }
        "--max-output-bytes" => {
            config.text.max_bytes = size(given(1, DEFAULT_MAX_BYTES as u64 * 2)?);
        }
        "--max-output-lines" => config.text.max_lines = size(given(1, HEAD_TAIL_MAX_BYTES as u64)?),
        "--max-empty-poll-ms" => {
            config.max_empty_poll_ms = given(MIN_EMPTY_YIELD_TIME_MS, MAX_CONFIGURABLE_POLL_MS)?;
        }
        "--first-session-id" => config.first_session_id = given(1, 1 << 53)?,
        "--exit-after-silence" => config.exit_after_silence_s = Some(given(1, MAX_SILENCE_S)?),
        "--log-max-bytes" => config.logs.bounds.max_bytes = Some(any()?),
        "--log-keep-bytes" => config.logs.bounds.keep_bytes = log_bound(flag, value)?,
        "--log-total-bytes" => config.logs.bounds.total_bytes = log_bound(flag, value)?,
        "--log-keep-days" => config.logs.keep_days = given(0, MAX_LOG_KEEP_DAYS)?,
        "--bash-yield-ms" => stream.yield_ms = job_yield_ms(any()?),
        "--bash-max-output-chars" => stream.max_chars = job_output_chars(any()?),
        "--bash-job-ttl-ms" => stream.ttl_ms = job_ttl_ms(any()?),
        "--bash-jobs-kept" => {
            let (low, high) = FINISHED_JOBS_RANGE;
            stream.jobs_kept = jobs_kept(given(low, high)?);
        }
        "--stdin-cap-bytes" => stream.stdin_cap_bytes = Some(any()?).filter(|bytes| *bytes > 0),
        _ => return Err(format!("unknown flag {flag}")),
    }
    Ok(())
}

/// A bound of what logs take on the disk; 0 is none.
fn log_bound(flag: &str, value: &OsStr) -> Result<Option<u64>, Reason> {
    if value == "0" {
        return Ok(None);
    }
    let (low, high) = (MIN_LOG_BOUND_BYTES, MAX_LOG_BOUND_BYTES);
    let bytes = number(flag, value, low, high);
    bytes.map(Some).map_err(|reason| format!("{reason}; 0 is no bound"))
}
