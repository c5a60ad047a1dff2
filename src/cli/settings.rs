//! The flags that set an execd up (`table::SETTINGS`), read into its settings or passed on to
//! another execd.

use std::ffi::{OsStr, OsString};

use super::arguments::{Arguments, Reason, duration, number, path};
use super::table::{Flag, LINES, SETTINGS, Takes};
use crate::config::{
    Config, OnEof, OnImpossible, SocketPlace, job_output_chars, job_ttl_ms, job_yield_ms, jobs_kept,
};
use crate::limits::{
    DEFAULT_MAX_BYTES, FINISHED_JOBS_RANGE, HEAD_TAIL_MAX_BYTES, JOBS_MAX,
    MAX_CONFIGURABLE_POLL_MS, MAX_LOG_BOUND_BYTES, MAX_LOG_KEEP_DAYS, MAX_MAX_LINE_BYTES,
    MAX_SESSIONS_LIMIT, MIN_EMPTY_YIELD_TIME_MS, MIN_LOG_BOUND_BYTES, MIN_MAX_LINE_BYTES,
};

/// Settings that an execd does not take from variables that was started for one session: they are
/// about the lines of whoever has started it.
pub const NOT_OF_ONE_SESSION: &[&str] =
    &["on-eof", "lease", "exit-after-silence", "max-line-bytes", "jobs"];

/// Settings that are about the lines of a host and its results: the program between it and its
/// execd goes by them.
pub const OF_A_HOST: &[&str] = &[
    "on-eof",
    "lease",
    "exit-after-silence",
    "max-line-bytes",
    "max-output-bytes",
    "max-output-lines",
];

/// Reads a flag of the settings into `config`; gives the flag's value, where the flag has one, as
/// it was typed.
pub fn setting(
    flag: &str,
    arguments: &mut Arguments,
    config: &mut Config,
) -> Result<Option<OsString>, Reason> {
    if LINES.iter().any(|one| one.dashed() == flag) {
        return Err(arguments.unknown(flag));
    }
    any_setting(flag, arguments, config)
}

/// The same of execd itself, which has flags for its lines too.
pub fn any_setting(
    flag: &str,
    arguments: &mut Arguments,
    config: &mut Config,
) -> Result<Option<OsString>, Reason> {
    let row = all().find(|row| row.dashed() == flag).ok_or_else(|| arguments.unknown(flag))?;
    if row.takes == Takes::Nothing {
        switch_on(row, config);
        return Ok(None);
    }
    let value = arguments.value()?;
    set(flag, &value, config)?;
    Ok(Some(value))
}

fn all() -> impl Iterator<Item = &'static Flag> {
    SETTINGS.iter().chain(LINES)
}

/// Sets what the variables of the settings say; an empty one is as unset. Gives a reason that names
/// the variable.
pub fn from_variables(
    config: &mut Config,
    not_taken: &[&str],
    value: impl Fn(&str) -> Option<OsString>,
) -> Result<(), Reason> {
    for row in all().filter(|row| !not_taken.contains(&row.name)) {
        let name = row.variable();
        let Some(value) = value(&name).filter(|value| !value.is_empty()) else { continue };
        if row.takes != Takes::Nothing {
            let flag = row.dashed();
            let of_variable = |reason: Reason| reason.replacen(&flag, &name, 1);
            set(&flag, &value, config).map_err(of_variable)?;
            continue;
        }
        match value.to_str().map(str::to_ascii_lowercase).as_deref() {
            Some("1" | "true" | "yes" | "on") => switch_on(row, config),
            Some("0" | "false" | "no" | "off") => {}
            _ => return Err(format!("{name} must be 1 or 0, not {value:?}")),
        }
    }
    Ok(())
}

/// Sets what a flag without a value is for.
fn switch_on(row: &Flag, config: &mut Config) {
    match row.name {
        "no-socket" => config.socket = SocketPlace::Off,
        "no-log" => config.logs.off = true,
        "no-keeper" => config.keeper = false,
        "kill-detached" => config.kill_detached = true,
        "lenient" => config.lenient = true,
        _ => {}
    }
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
        "--log-dir" => config.logs.dir = Some(path(flag, value)?),
        "--socket" => config.socket = SocketPlace::At(path(flag, value)?),
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
        "--jobs" => config.jobs = Some(size(given(1, JOBS_MAX as u64)?)),
        "--lease" | "--exit-after-silence" => match duration(flag, value)? {
            0 => return Err(format!("{flag} must be more than nothing, not {value:?}")),
            ms => config.lease_ms = Some(ms),
        },
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::process::marks::OWN_SETTINGS;

    #[test]
    fn what_children_do_not_inherit_are_variables_of_the_table() {
        let all: Vec<String> = all().map(Flag::variable).collect();
        for name in OWN_SETTINGS {
            assert!(all.iter().any(|variable| variable == name), "{name}");
        }
    }

    #[test]
    fn each_setting_is_taken_from_its_variable() {
        let taken = |name: &str, value: &str, one_session: bool| {
            let mut config = Config::default();
            let given = |asked: &str| (asked == name).then(|| value.into());
            let not_taken = if one_session { NOT_OF_ONE_SESSION } else { &[] };
            from_variables(&mut config, not_taken, given).map(|()| config)
        };
        let plain = format!("{:?}", Config::default());
        for row in all() {
            let value = match row.takes {
                Takes::Nothing => "1",
                Takes::Signal => "INT",
                Takes::Choice(words) => words[words.len() - 1],
                Takes::Path(_) => "/tmp/x",
                Takes::Value("TIME") => "1h30m",
                // No number is in the range of them all.
                Takes::Value(_) if row.name == "jobs" => "63",
                Takes::Value(_) if row.name == "bash-jobs-kept" => "700",
                Takes::Value(_) if row.name.starts_with("log-") => "2000000",
                Takes::Value(_) => "7000",
            };
            let name = row.variable();
            let value = if row.name == "log-keep-days" { "9" } else { value };
            let config = taken(&name, value, false).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_ne!(format!("{config:?}"), plain, "{name}={value} changes nothing");
            let unset = taken(&name, "", false).expect("empty is as unset");
            assert_eq!(format!("{unset:?}"), plain, "{name}");
            if let Takes::Value(_) | Takes::Choice(_) = row.takes {
                let why = taken(&name, "so", false).expect_err("no value");
                assert!(why.starts_with(&format!("{name} must be ")), "{why}");
            }
        }
        for name in ["EXECD_LEASE", "EXECD_EXIT_AFTER_SILENCE"] {
            let config = taken(name, "0.5", false).expect("a time");
            assert_eq!(config.lease_ms, Some(500));
            let config = taken(name, "0.5", true).expect("not looked at");
            assert_eq!(config.lease_ms, None);
        }
        let config = taken("EXECD_NO_LOG", "Off", false).expect("a word");
        assert!(!config.logs.off);
    }
}
