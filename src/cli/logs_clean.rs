//! `execd logs clean`: deletes logs that nobody uses, at once.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::PathBuf;

use super::arguments::{Argument, Arguments, Reason, duration};
use super::help;
use super::logs::{open_dir, size_text};
use super::say::{EXIT_FAILED, EXIT_USAGE, complain, say};
use crate::limits::LOG_KEEP_DAYS;
use crate::sys::errno::errno_text;
use crate::sys::host;
use crate::sys::log_clean::{CleanLimits, Cleaned, clean_logs};
use crate::sys::log_place::{Wanted, find};

/// What is to be deleted.
struct Options {
    /// Where; `None`: where logs go without `--log-dir`.
    dir: Option<PathBuf>,
    /// Logs of sessions that ended so many seconds ago; `None`: all.
    older_than_s: Option<u64>,
}

/// Deletes logs and says what was deleted and what was left; gives the exit status. Takes the
/// arguments behind `logs clean`.
pub fn main(arguments: &[OsString]) -> i32 {
    let done = match parse(arguments) {
        Ok(None) => return say(&help::of("logs clean")),
        Ok(Some(options)) => clean(options),
        Err(reason) => {
            complain(&format!("execd logs clean: {reason} (try execd logs clean --help)"));
            return EXIT_USAGE;
        }
    };
    done.unwrap_or_else(|reason| {
        complain(&format!("execd logs clean: {reason}"));
        EXIT_FAILED
    })
}

/// `None`: the help is asked for.
fn parse(arguments: &[OsString]) -> Result<Option<Options>, Reason> {
    let mut arguments = Arguments::of("logs clean", arguments.iter().cloned());
    let (mut dir, mut older_than_s, mut all) = (None, None, false);
    while let Some(argument) = arguments.next()? {
        match argument {
            Argument::Flag(flag) if matches!(&*flag, "-h" | "--help") => return Ok(None),
            Argument::Flag(flag) if flag == "--all" => all = true,
            Argument::Flag(flag) if flag == "--log-dir" => {
                dir = Some(arguments.path(&flag)?);
            }
            Argument::Flag(flag) if flag == "--older-than" => {
                older_than_s = Some(age_s(&flag, &arguments.value()?)?);
            }
            Argument::Flag(flag) => return Err(arguments.unknown(&flag)),
            Argument::Word(word) => return Err(format!("it does not take {word:?}")),
        }
    }
    if all && older_than_s.is_some() {
        return Err("--all and --older-than do not go together".to_owned());
    }
    let usual_s = LOG_KEEP_DAYS * 24 * 60 * 60;
    let older_than_s = (!all).then(|| older_than_s.unwrap_or(usual_s));
    Ok(Some(Options { dir, older_than_s }))
}

/// The value of `--older-than` in seconds. A plain number is refused, though it is so many seconds
/// elsewhere: who means days would lose nearly all logs.
fn age_s(flag: &str, value: &OsStr) -> Result<u64, Reason> {
    let text = value.to_string_lossy();
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(format!("{flag} must be a time with its unit such as 36h or 7d, not {text:?}"));
    }
    Ok(duration(flag, value)?.div_ceil(1_000))
}

fn clean(options: Options) -> Result<i32, Reason> {
    let dir = match &options.dir {
        // A directory that is named wrongly is not made, and nothing was deleted in it.
        Some(_) => open_dir(options.dir.as_ref())?,
        None => find(&Wanted::Default(host::current_dir().join(host::default_log_dir())))?.dir,
    };
    let limits = options.older_than_s.map_or(CleanLimits::ALL, CleanLimits::older_than_s);
    let cleaned = clean_logs(&dir, limits).map_err(errno_text)?;
    let said = say(&text(cleaned));
    Ok(if cleaned.failed > 0 { EXIT_FAILED } else { said })
}

fn text(cleaned: Cleaned) -> String {
    let logs = |count: u64| if count == 1 { "1 log".to_owned() } else { format!("{count} logs") };
    let mut text = format!("deleted {} ({})", logs(cleaned.logs), size_text(cleaned.bytes));
    for (count, why) in [
        (cleaned.used, "in use by an execd"),
        (cleaned.kept, "for good (--all deletes that too)"),
        (cleaned.failed, "that could not be deleted"),
    ] {
        if count > 0 {
            let _ = write!(text, "; left {} {why}", logs(count));
        }
    }
    text.push('\n');
    text
}
