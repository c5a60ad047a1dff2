//! The arguments of `execd log` and `execd logs`.

use std::ffi::OsString;
use std::path::Path;

use super::super::arguments::Argument::{Flag, Word};
use super::super::arguments::{Arguments, Reason, number, text};
use super::super::log_source::{LogOptions, Whose};
use super::super::logs::LogsOptions;
use super::super::survey::{Place, Which};
use super::{Command, place_flag, session};
use crate::limits::MAX_LOG_BOUND_BYTES;
use crate::sys::log_files::is_log_name;

/// Logs that `execd logs` shows, unless it is asked for all.
const LOGS_SHOWN: usize = 50;

pub(super) fn log(words: Vec<OsString>) -> Result<Command, Reason> {
    let mut arguments = Arguments::of("log", words);
    let (mut place, mut word) = (Place::default(), None);
    let (mut from, mut lines, mut log_dir) = (None, None, None);
    let (mut follow, mut raw) = (false, false);
    while let Some(argument) = arguments.next()? {
        let flag = match argument {
            Flag(flag) => flag,
            Word(extra) if word.is_some() => return Err(format!("log does not take {extra:?}")),
            Word(first) => {
                word = Some(text(first)?);
                continue;
            }
        };
        match flag.as_str() {
            "-h" | "--help" => return Ok(Command::Help),
            "--from" => from = Some(offset(&text(arguments.value()?)?)?),
            "-n" | "--lines" => {
                let given = arguments.number("--lines", 1, u32::MAX.into())?;
                lines = u32::try_from(given).ok();
            }
            "-f" | "--follow" => follow = true,
            "--raw" => raw = true,
            "--log-dir" => log_dir = Some(arguments.path(&flag)?),
            "--pid" | "--socket" => place_flag(&flag, &mut arguments, &mut place)?,
            flag => return Err(arguments.unknown(flag)),
        }
    }
    let whose = match word.as_deref().and_then(log_of) {
        Some(log) => log,
        None if word.as_deref().is_some_and(is_name) => Whose::Named(word.unwrap_or_default()),
        None => match session(word.as_deref(), "log", &mut place)? {
            Some(Which::Id(id)) => Whose::Session(id),
            Some(Which::Name(name)) => Whose::Named(name),
            None => {
                let needed = "log needs a session: execd log @3 (execd logs lists logs)";
                return Err(needed.to_owned());
            }
        },
    };
    Ok(Command::Log(LogOptions { whose, from, lines, follow, raw, log_dir }, place))
}

/// An offset; a negative one counts from the end.
fn offset(given: &str) -> Result<i64, Reason> {
    let (digits, back) = given.strip_prefix('-').map_or((given, false), |digits| (digits, true));
    let far = number("--from", digits.as_ref(), 0, MAX_LOG_BOUND_BYTES)?.cast_signed();
    Ok(if back { -far } else { far })
}

/// Whether a word is no id of a session, and so a session's name.
fn is_name(word: &str) -> bool {
    let id = word.strip_prefix('@').unwrap_or(word);
    let is_id = word.starts_with("execd-") || word.contains(":@") || id.len() < word.len();
    !is_id && !id.bytes().all(|byte| byte.is_ascii_digit())
}

/// A log by its name, `execd-3-ab12cd34.log` or `3-ab12cd34`, with or without a directory.
fn log_of(word: &str) -> Option<Whose> {
    let path = Path::new(word);
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".log").or(name.strip_suffix(".meta")).unwrap_or(name);
    let head = if stem.starts_with("execd-") { "" } else { "execd-" };
    let name = format!("{head}{stem}.log");
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).map(Path::to_path_buf);
    is_log_name(name.as_bytes()).then_some(Whose::Log(dir, name))
}

pub(super) fn logs(words: Vec<OsString>) -> Result<Command, Reason> {
    let mut arguments = Arguments::of("logs", words);
    let mut options = LogsOptions { most: LOGS_SHOWN, log_dir: None };
    while let Some(argument) = arguments.next()? {
        match argument {
            Flag(flag) => match flag.as_str() {
                "-h" | "--help" => return Ok(Command::Help),
                "--all" => options.most = usize::MAX,
                "--log-dir" => options.log_dir = Some(arguments.path(&flag)?),
                flag => return Err(arguments.unknown(flag)),
            },
            Word(extra) => return Err(format!("logs does not take {extra:?}")),
        }
    }
    Ok(Command::Logs(options))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn logs_are_told_from_sessions() {
        let log = |dir: Option<&str>| {
            Some(Whose::Log(dir.map(PathBuf::from), "execd-3-ab12cd34.log".to_owned()))
        };
        for (word, whose) in [
            ("execd-3-ab12cd34", log(None)),
            ("3-ab12cd34", log(None)),
            ("execd-3-ab12cd34.log", log(None)),
            ("/x/execd-3-ab12cd34.log", log(Some("/x"))),
            ("./3-ab12cd34.meta", log(Some("."))),
            ("@3", None),
            ("3", None),
            ("execd-42:@3", None),
            ("execd-42-0af3", None),
        ] {
            assert_eq!(log_of(word), whose, "{word}");
        }
        for (word, is) in [("npm", true), ("3 d", true), ("@3", false), ("@npm", false)] {
            assert_eq!(is_name(word), is, "{word}");
        }
        for word in ["3", "", "execd-42:@3"] {
            assert!(!is_name(word), "{word}");
        }
        assert_eq!((offset("-7"), offset("7")), (Ok(-7), Ok(7)));
        assert!(offset("--7").is_err());
    }
}
