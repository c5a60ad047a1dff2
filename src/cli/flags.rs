//! Flags of the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

use crate::config::{Config, OnEof, SocketPlace, job_output_chars, job_ttl_ms, job_yield_ms};
use crate::limits::{
    DEFAULT_MAX_BYTES, HEAD_TAIL_MAX_BYTES, MAX_CONFIGURABLE_POLL_MS, MAX_LOG_KEEP_DAYS,
    MAX_MAX_LINE_BYTES, MAX_SESSIONS_LIMIT, MAX_SILENCE_S, MIN_EMPTY_YIELD_TIME_MS,
    MIN_MAX_LINE_BYTES,
};

/// What the command line asks for.
#[derive(Debug)]
pub enum Command {
    /// Serve requests on stdin and stdout.
    Serve(Box<Config>),
    /// `execd run`.
    Run(Box<RunOptions>),
    /// `execd call`.
    Call(CallOptions),
    /// `--describe`.
    Describe,
    /// `--help`.
    Help,
    /// `--version`.
    Version,
}

/// `execd run`: one command to its end.
#[derive(Debug)]
pub struct RunOptions {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Ends it after so long.
    pub timeout_s: Option<u64>,
    /// Runs it on a terminal.
    pub tty: bool,
    /// Prints one JSON object at the end instead of the output.
    pub json: bool,
    /// execd's settings.
    pub config: Config,
}

/// `execd call`: one request, its bare result.
#[derive(Debug)]
pub struct CallOptions {
    /// The method.
    pub method: String,
    /// Its params, JSON text.
    pub params: String,
    /// Flags passed on to the execd that is started for it.
    pub flags: Vec<OsString>,
}

/// The text of `--help`.
pub const HELP: &str = "\
execd - runs commands that you can come back to

usage:
  execd [FLAGS]                         serve JSON-RPC requests, one a line, on stdin and stdout
  execd run [--timeout S] [--tty] [--json] [FLAGS] -- COMMAND [ARG...]
                                        run one command to its end: its output, its exit status
  execd call [FLAGS] METHOD [PARAMS]    send one request, print its bare result

  printf '%s\\n' '{\"id\":1,\"method\":\"exec_command\",\"params\":{\"cmd\":\"git status\"}}' | execd

flags:
  --max-sessions N           sessions before the least recently used is evicted (64)
  --max-line-bytes N         longest request line (8388608)
  --max-output-bytes N       text of one reply, in bytes (51200)
  --max-output-lines N       text of one reply, in lines (2000)
  --max-empty-poll-ms N      longest poll without input (1800000)
  --first-session-id N       id of the first session (1)
  --bash-yield-ms N          wait of bash_stream, 1000 to 120000 (60000)
  --bash-max-output-chars N  characters of a bash_stream reply's texts, up to 150000 (30000)
  --bash-job-ttl-ms N        how long a finished process is remembered, 1 min to 3 h (1800000)
  --stdin-cap-bytes N        input a process of bash_stream takes over its life, 0: any (262144)
  --on-eof end|wait          at the end of stdin, once all is answered: end the sessions, or
                             let them run to their own end (end)
  --exit-after-silence S     end when no request came for S seconds (never)
  --kill-detached            ending a session also ends what left it by setsid
  --log-dir DIR              where logs go ($TMPDIR/pi-execd-UID)
  --log-max-bytes N          bytes of a session's output that are logged at most (all)
  --log-keep-days D          delete logs older than this at start, 0 keeps them (7)
  --no-log                   no log files
  --socket PATH              where the control socket is ($XDG_RUNTIME_DIR/execd/PID.sock, or
                             /tmp/execd-UID/PID.sock)
  --no-socket                no control socket: nobody can list or attach
  --no-keeper                no helper process: logs are written by the loop itself, and
                             nothing ends the sessions when execd is killed by SIGKILL
  --no-vfork                 start children by fork (for emulators)
  --describe                 print the methods and their params as JSON Schema
  --help, --version

EXECD_LOG=debug prints one line per change of state on stderr.
The protocol and every method: docs/protocol.md.
";

type Reason = String;

/// Reads the arguments over the defaults in `config`. Gives a one-line reason when they make no
/// sense.
pub fn parse(arguments: Vec<OsString>, config: Config) -> Result<Command, Reason> {
    let word = arguments.first().and_then(|first| first.to_str()).unwrap_or_default().to_owned();
    match word.as_str() {
        "run" => parse_run(arguments, config),
        "call" => parse_call(arguments, config),
        _ => parse_serve(arguments, config),
    }
}

fn parse_serve(arguments: Vec<OsString>, mut config: Config) -> Result<Command, Reason> {
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|fault| fault.to_string())? {
        match argument {
            Long("help") | Short('h') => return Ok(Command::Help),
            Long("version") | Short('V') => return Ok(Command::Version),
            Long("describe") => return Ok(Command::Describe),
            Long(name) => {
                let name = name.to_owned();
                setting(&name, &mut parser, &mut config)?;
            }
            Short(other) => return Err(format!("unknown flag -{other}")),
            Value(value) => {
                let value = value.to_string_lossy();
                return Err(format!("unknown command {value:?}: run, call, or flags only"));
            }
        }
    }
    Ok(Command::Serve(Box::new(config)))
}

fn parse_run(arguments: Vec<OsString>, config: Config) -> Result<Command, Reason> {
    let mut options =
        RunOptions { command: vec![], timeout_s: None, tty: false, json: false, config };
    let mut parser = lexopt::Parser::from_args(arguments.into_iter().skip(1));
    while let Some(argument) = parser.next().map_err(|fault| fault.to_string())? {
        match argument {
            Long("help") | Short('h') => return Ok(Command::Help),
            Long("timeout") => {
                let seconds = number("timeout", &mut parser, 1, MAX_SILENCE_S)?;
                options.timeout_s = Some(seconds);
            }
            Long("tty") => options.tty = true,
            Long("json") => options.json = true,
            Long(name) => {
                let name = name.to_owned();
                setting(&name, &mut parser, &mut options.config)?;
            }
            Short(other) => return Err(format!("unknown flag -{other}")),
            Value(program) => {
                let rest = parser.raw_args().map_err(|fault| fault.to_string())?;
                let words = std::iter::once(program).chain(rest);
                let text = |word: OsString| {
                    word.into_string().map_err(|word| format!("{word:?} is not UTF-8"))
                };
                options.command = words.map(text).collect::<Result<_, _>>()?;
                break;
            }
        }
    }
    if options.command.is_empty() {
        return Err("run needs a command: execd run -- make -j2".to_owned());
    }
    Ok(Command::Run(Box::new(options)))
}

fn parse_call(arguments: Vec<OsString>, mut config: Config) -> Result<Command, Reason> {
    let mut parser = lexopt::Parser::from_args(arguments.into_iter().skip(1));
    let mut words: Vec<String> = vec![];
    let mut flags: Vec<OsString> = vec![];
    while let Some(argument) = parser.next().map_err(|fault| fault.to_string())? {
        match argument {
            Long("help") | Short('h') => return Ok(Command::Help),
            Long(name) => {
                let name = name.to_owned();
                flags.push(format!("--{name}").into());
                flags.extend(setting(&name, &mut parser, &mut config)?);
            }
            Short(other) => return Err(format!("unknown flag -{other}")),
            Value(word) => words.push(word.to_string_lossy().into_owned()),
        }
    }
    let mut words = words.into_iter();
    let method = words.next().ok_or("call needs a method: execd call ping")?;
    let params = words.next().unwrap_or_else(|| "{}".to_owned());
    if let Some(extra) = words.next() {
        return Err(format!("call takes a method and one JSON object, not also {extra:?}"));
    }
    Ok(Command::Call(CallOptions { method, params, flags }))
}

/// A flag of the settings; gives its value, where it has one, as it was given.
fn setting(
    name: &str,
    parser: &mut lexopt::Parser,
    config: &mut Config,
) -> Result<Option<OsString>, Reason> {
    let mut given = |low: u64, high: u64| number(name, parser, low, high);
    let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let value = match name {
        "max-sessions" => {
            let value = given(1, MAX_SESSIONS_LIMIT as u64)?;
            config.max_sessions = size(value);
            value
        }
        "max-line-bytes" => {
            let value = given(MIN_MAX_LINE_BYTES as u64, MAX_MAX_LINE_BYTES as u64)?;
            config.max_line_bytes = size(value);
            value
        }
        "max-output-bytes" => {
            let value = given(1, DEFAULT_MAX_BYTES as u64 * 2)?;
            config.text.max_bytes = size(value);
            value
        }
        "max-output-lines" => {
            let value = given(1, HEAD_TAIL_MAX_BYTES as u64)?;
            config.text.max_lines = size(value);
            value
        }
        "max-empty-poll-ms" => {
            let value = given(MIN_EMPTY_YIELD_TIME_MS, MAX_CONFIGURABLE_POLL_MS)?;
            config.max_empty_poll_ms = value;
            value
        }
        "first-session-id" => {
            let value = given(1, 1 << 53)?;
            config.first_session_id = value;
            value
        }
        "exit-after-silence" => {
            let value = given(1, MAX_SILENCE_S)?;
            config.exit_after_silence_s = Some(value);
            value
        }
        "log-max-bytes" => {
            let value = given(0, u64::MAX)?;
            config.logs.max_bytes = Some(value);
            value
        }
        "log-keep-days" => {
            let value = given(0, MAX_LOG_KEEP_DAYS)?;
            config.logs.keep_days = value;
            value
        }
        _ => return setting_of_streams(name, parser, config),
    };
    Ok(Some(value.to_string().into()))
}

/// The flags of the stream family; their values are clamped, as its params are.
fn setting_of_streams(
    name: &str,
    parser: &mut lexopt::Parser,
    config: &mut Config,
) -> Result<Option<OsString>, Reason> {
    let stream = &mut config.stream;
    let mut given = || number(name, parser, 0, u64::MAX);
    let value = match name {
        "bash-yield-ms" => {
            let value = given()?;
            stream.yield_ms = job_yield_ms(value);
            value
        }
        "bash-max-output-chars" => {
            let value = given()?;
            stream.max_chars = job_output_chars(value);
            value
        }
        "bash-job-ttl-ms" => {
            let value = given()?;
            stream.ttl_ms = job_ttl_ms(value);
            value
        }
        "stdin-cap-bytes" => {
            let value = given()?;
            stream.stdin_cap_bytes = (value > 0).then_some(value);
            value
        }
        _ => return setting_of_words(name, parser, config),
    };
    Ok(Some(value.to_string().into()))
}

/// The flags whose value is no number, or that have none.
fn setting_of_words(
    name: &str,
    parser: &mut lexopt::Parser,
    config: &mut Config,
) -> Result<Option<OsString>, Reason> {
    match name {
        "on-eof" => {
            let value = parser.value().map_err(|fault| fault.to_string())?;
            config.on_eof = match value.to_str() {
                Some("end") => OnEof::End,
                Some("wait") => OnEof::Wait,
                _ => return Err(format!("--on-eof must be end or wait, not {value:?}")),
            };
            return Ok(Some(value));
        }
        "log-dir" => {
            let value = parser.value().map_err(|fault| fault.to_string())?;
            config.logs.dir = Some(PathBuf::from(&value));
            return Ok(Some(value));
        }
        "socket" => {
            let value = parser.value().map_err(|fault| fault.to_string())?;
            config.socket = SocketPlace::At(PathBuf::from(&value));
            return Ok(Some(value));
        }
        "no-socket" => config.socket = SocketPlace::Off,
        "no-log" => config.logs.off = true,
        "no-keeper" => config.keeper = false,
        "no-vfork" => config.vfork = false,
        "kill-detached" => config.kill_detached = true,
        _ => return Err(format!("unknown flag --{name}")),
    }
    Ok(None)
}

/// A number within a range.
fn number(name: &str, parser: &mut lexopt::Parser, low: u64, high: u64) -> Result<u64, Reason> {
    let value = parser.value().map_err(|fault| fault.to_string())?;
    let wanted = || format!("--{name} must be a number from {low} to {high}, not {value:?}");
    let number: u64 = value.to_str().and_then(|text| text.parse().ok()).ok_or_else(wanted)?;
    if (low..=high).contains(&number) { Ok(number) } else { Err(wanted()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, Reason> {
        parse(line.split_whitespace().map(OsString::from).collect(), Config::default())
    }

    #[test]
    fn settings_are_read_and_checked() {
        let line = "--max-sessions 4 --on-eof=wait --no-log --log-keep-days 0 --no-keeper";
        let Ok(Command::Serve(config)) = parsed(line) else { panic!("not understood") };
        assert_eq!((config.max_sessions, config.on_eof), (4, OnEof::Wait));
        assert!(config.logs.off && config.logs.keep_days == 0 && !config.keeper);
        for (line, reason) in [
            ("--max-sessions 0", "--max-sessions must be a number from 1 to 16384, not \"0\""),
            ("--max-sessions x", "--max-sessions must be a number from 1 to 16384, not \"x\""),
            ("--on-eof never", "--on-eof must be end or wait, not \"never\""),
            ("--frobnicate", "unknown flag --frobnicate"),
            ("-x", "unknown flag -x"),
            ("serve", "unknown command \"serve\": run, call, or flags only"),
            ("run", "run needs a command: execd run -- make -j2"),
            ("call", "call needs a method: execd call ping"),
        ] {
            assert_eq!(parsed(line).expect_err(line), reason);
        }
    }

    #[test]
    fn commands_are_told_from_their_flags() {
        let Ok(Command::Run(run)) = parsed("run --timeout 5 --tty -- make -j2 --tty") else {
            panic!("not understood")
        };
        assert_eq!(run.command, ["make", "-j2", "--tty"]);
        assert!(run.tty && run.timeout_s == Some(5));
        let Ok(Command::Call(call)) = parsed("call --max-sessions 3 ping {}") else {
            panic!("not understood")
        };
        assert_eq!((call.method.as_str(), call.params.as_str()), ("ping", "{}"));
        assert_eq!(call.flags, ["--max-sessions", "3"]);
    }
}
