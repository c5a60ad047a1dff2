//! The flags of `execd run`.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Command;
use crate::cli::arguments::Argument::{Flag, Word};
use crate::cli::arguments::{Arguments, Reason, text};
use crate::cli::settings::setting;
use crate::config::Config;
use crate::limits::SHUTDOWN_GRACE_MS;
use crate::pure::process::signal_names::{can_end, parse_signal};

/// The shell of `-c` where none is named.
const SHELL: &str = "bash";
/// The signal that a timeout sends where none is named, and its number in signal(7).
const SIGTERM: i32 = 15;

/// `execd run`: one command to its end.
#[derive(Debug)]
pub struct RunOptions {
    /// What is run.
    pub what: What,
    /// Ends the command after so long.
    pub timeout_ms: Option<u64>,
    /// Ends it when it has written nothing for so long.
    pub idle_timeout_ms: Option<u64>,
    /// From the signal of a timeout to SIGKILL.
    pub kill_after_ms: u64,
    /// What a timeout sends first.
    pub signal: i32,
    /// Waits for what the command leaves in the background instead of ending it.
    pub keep_background: bool,
    /// Runs the command on a terminal.
    pub tty: bool,
    /// stdout and stderr are one pipe.
    pub merge: bool,
    /// Says nothing of its own, but why a command could not be started.
    pub quiet: bool,
    /// Prints one JSON object at the end instead of the output.
    pub json: bool,
    /// A label that lists show.
    pub name: Option<String>,
    /// Where the log is to be in the end.
    pub log: Option<PathBuf>,
    /// execd's settings.
    pub config: Config,
}

/// What `execd run` runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A program and its arguments, as they are given: of any bytes.
    Program(Vec<OsString>),
    /// Code of a shell.
    Code {
        /// The code.
        code: String,
        /// The shell.
        shell: String,
        /// What the code finds as `$0`, `$1` and so on.
        words: Vec<OsString>,
    },
}

/// A signal that can end a program.
fn ending_signal(arguments: &mut Arguments) -> Result<i32, Reason> {
    let value = text(arguments.value()?)?;
    let signal = parse_signal(&value).map_err(|reason| format!("--signal: {reason}"))?;
    if can_end(signal) {
        Ok(signal)
    } else {
        Err(format!("--signal: {value} ends no program: name one that can, TERM or INT say"))
    }
}

/// Reads the words behind `run`.
pub fn run(words: Vec<OsString>, config: Config) -> Result<Command, Reason> {
    let (mut code, mut shell, mut command) = (None, None, Vec::<OsString>::new());
    let mut options = RunOptions {
        what: What::Program(vec![]),
        timeout_ms: None,
        idle_timeout_ms: None,
        kill_after_ms: SHUTDOWN_GRACE_MS,
        signal: SIGTERM,
        keep_background: false,
        tty: false,
        merge: false,
        quiet: false,
        json: false,
        name: None,
        log: None,
        config,
    };
    let mut arguments = Arguments::of("run", words);
    while let Some(argument) = arguments.next()? {
        let flag = match argument {
            Flag(flag) => flag,
            Word(program) => {
                command.push(program);
                command.extend(arguments.rest()?);
                break;
            }
        };
        // As for timeout(1), no time is no timeout.
        match flag.as_str() {
            "-h" | "--help" => return Ok(Command::Help),
            "-c" => code = Some(text(arguments.value()?)?),
            "--shell" => shell = Some(text(arguments.value()?)?),
            "--timeout" => {
                options.timeout_ms = Some(arguments.duration(&flag)?).filter(|ms| *ms > 0);
            }
            "--idle-timeout" => {
                let ms = arguments.duration(&flag)?;
                options.idle_timeout_ms = Some(ms).filter(|ms| *ms > 0);
            }
            "--kill-after" => options.kill_after_ms = arguments.duration(&flag)?,
            "--signal" => options.signal = ending_signal(&mut arguments)?,
            "-t" | "--tty" => options.tty = true,
            "--keep-background" => options.keep_background = true,
            "--merge" => options.merge = true,
            "-q" | "--quiet" => options.quiet = true,
            "--json" => options.json = true,
            "--name" => options.name = Some(text(arguments.value()?)?),
            "--log" => options.log = Some(arguments.path(&flag)?),
            flag => drop(setting(flag, &mut arguments, &mut options.config)?),
        }
    }
    options.what = what(code, shell, command)?;
    if options.log.is_some() && options.config.logs.off {
        return Err("--log FILE asks for a log: leave out --no-log (EXECD_NO_LOG)".to_owned());
    }
    Ok(Command::Run(Box::new(options)))
}

/// What the words mean together.
fn what(code: Option<String>, shell: Option<String>, words: Vec<OsString>) -> Result<What, Reason> {
    match (code, shell) {
        (_, Some(shell)) if shell.is_empty() => {
            Err("--shell must be a shell, by its name or path, not \"\"".to_owned())
        }
        (Some(code), shell) => {
            Ok(What::Code { code, shell: shell.unwrap_or_else(|| SHELL.to_owned()), words })
        }
        (None, Some(shell)) => {
            Err(format!("--shell is the shell of -c: execd run --shell {shell} -c 'CODE'"))
        }
        (None, None) if words.is_empty() => {
            Err("run needs a command: execd run -- make -j2, or execd run -c 'make | tail'"
                .to_owned())
        }
        (None, None) => {
            // The arguments may be of any bytes; the program is told of by its name.
            text(words[0].clone())?;
            Ok(What::Program(words))
        }
    }
}
