//! From the arguments to what they ask for: which command, and with what. The flags of `execd
//! agent` are read in `agent::flags`, those of the settings in `settings`.

use std::ffi::OsString;

use super::agent::flags::{self as agent, AgentOptions, Asked, HealthOptions};
use super::arguments::Argument::{Flag, Word};
use super::arguments::{Arguments, Reason, text, unknown_command};
use super::completions;
use super::help;
use super::log_source::LogOptions;
use super::logs::LogsOptions;
use super::ls::Form;
use super::settings::{any_setting, pass_on};
use super::survey::{Place, Which};
use super::table::{self, SHELLS};
use super::tail::TailOptions;
use crate::config::Config;
use crate::pure::process::signal_names::parse_signal;

mod log_flags;
mod mcp_flags;
mod run_flags;

pub use mcp_flags::McpOptions;
pub use run_flags::{RunOptions, What};

/// Lines that `execd tail` prints when no number is given.
const TAIL_LINES: u64 = 10;

/// The word of a `--marker` that is given none.
const MARKER_WORD: &str = "ready";

/// Longest word of `--marker`.
const MARKER_MAX_BYTES: usize = 64;

/// What the command line asks for.
#[derive(Debug)]
pub enum Command {
    /// Serve requests on stdin and stdout.
    Serve(Box<Config>),
    /// `execd mcp`.
    Mcp(Box<McpOptions>),
    /// `execd run`.
    Run(Box<RunOptions>),
    /// `execd agent`.
    Agent(Box<AgentOptions>),
    /// `execd agent --health`.
    AgentHealth(HealthOptions),
    /// `execd call`.
    Call(CallOptions),
    /// `execd ls`.
    Ls(Place, Form),
    /// `execd attach`.
    Attach(Option<Which>, Place),
    /// `execd tail`.
    Tail(TailOptions, Place),
    /// `execd log`.
    Log(LogOptions, Place),
    /// `execd logs`.
    Logs(LogsOptions),
    /// `execd kill`: the sessions, and a signal.
    Kill(Vec<(Which, Place)>, Option<String>),
    /// `execd completions`: the script.
    Completions(String),
    /// `--describe`; whether `--for-models`.
    Describe(bool),
    /// `--help`.
    Help,
    /// `execd help`.
    HelpOf(help::Asked),
    /// `--version`.
    Version,
}

impl Command {
    /// Whether the settings of an execd, and so their variables, are something to the command.
    pub fn has_settings(&self) -> bool {
        matches!(
            self,
            Self::Serve(_)
                | Self::Mcp(_)
                | Self::Run(_)
                | Self::Agent(_)
                | Self::AgentHealth(_)
                | Self::Call(_)
        )
    }
}

/// `execd call`: one request, its bare result.
#[derive(Debug)]
pub struct CallOptions {
    /// The method.
    pub method: String,
    /// Its params, JSON text.
    pub params: String,
    /// Flags that are passed on to the execd that is started for the request.
    pub flags: Vec<OsString>,
    /// The execd that the request is sent to, where that execd runs already.
    pub place: Option<Place>,
}

/// Reads the arguments over the defaults in `config`. Gives a reason of one line for arguments that
/// make no sense.
pub fn parse(mut arguments: Vec<OsString>, config: Config) -> Result<Command, Reason> {
    let name = table::first(&arguments);
    if !name.is_empty() {
        arguments.remove(0);
    }
    match name {
        "run" => run_flags::run(arguments, config),
        "mcp" => mcp_flags::mcp(arguments, config),
        "agent" => Ok(match agent::parse(arguments, config)? {
            Asked::Help => Command::Help,
            Asked::Health(options) => Command::AgentHealth(options),
            Asked::Run(options) => Command::Agent(options),
        }),
        "call" => parse_call(arguments, config),
        "log" => log_flags::log(arguments),
        "logs" => log_flags::logs(arguments),
        "help" => help::parse(arguments).map(Command::HelpOf),
        "" => parse_serve(arguments, config),
        command => parse_client(command, arguments),
    }
}

fn parse_serve(words: Vec<OsString>, mut config: Config) -> Result<Command, Reason> {
    let mut arguments = Arguments::of("", words);
    let (mut describes, mut for_models) = (false, false);
    while let Some(argument) = arguments.next()? {
        match argument {
            Flag(flag) => match flag.as_str() {
                "-h" | "--help" => return Ok(Command::Help),
                "-V" | "--version" => return Ok(Command::Version),
                "--describe" => describes = true,
                "--for-models" => for_models = true,
                "--marker" => config.marker = Some(marker(arguments.value_if_any())?),
                flag => drop(any_setting(flag, &mut arguments, &mut config)?),
            },
            Word(word) => {
                return Err(unknown_command(&word.to_string_lossy()));
            }
        }
    }
    match (describes, for_models) {
        (false, true) => Err("--for-models belongs to --describe".to_owned()),
        (true, for_models) => Ok(Command::Describe(for_models)),
        (false, false) => Ok(Command::Serve(Box::new(config))),
    }
}

/// The word of the first line, which no shell on the way may take for anything but a word.
fn marker(word: Option<OsString>) -> Result<String, Reason> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let word = word.map_or_else(|| Ok(MARKER_WORD.to_owned()), text)?;
    if (1..=MARKER_MAX_BYTES).contains(&word.len()) && word.bytes().all(fits) {
        return Ok(word);
    }
    Err(format!("--marker must be 1 to {MARKER_MAX_BYTES} of A-Z a-z 0-9 - _, not {word:?}"))
}

fn parse_call(words: Vec<OsString>, mut config: Config) -> Result<Command, Reason> {
    let mut arguments = Arguments::of("call", words);
    let mut words: Vec<String> = vec![];
    let mut flags: Vec<OsString> = vec![];
    let mut place: Option<Place> = None;
    while let Some(argument) = arguments.next()? {
        match argument {
            Flag(flag) => match flag.as_str() {
                "-h" | "--help" => return Ok(Command::Help),
                "--pid" | "--socket" => {
                    place_flag(&flag, &mut arguments, place.get_or_insert_default())?;
                }
                flag => pass_on(flag, &mut arguments, &mut config, &mut flags)?,
            },
            Word(word) => words.push(word.to_string_lossy().into_owned()),
        }
    }
    let mut words = words.into_iter();
    let method = words.next().ok_or("call needs a method: execd call ping")?;
    let params = words.next().unwrap_or_else(|| "{}".to_owned());
    if let Some(extra) = words.next() {
        return Err(format!("call takes a method and one JSON object, not also {extra:?}"));
    }
    if let (Some(flag), Some(_)) = (flags.first(), &place) {
        let flag = flag.to_string_lossy();
        return Err(format!("{flag} sets up a fresh execd: not with --socket or --pid"));
    }
    Ok(Command::Call(CallOptions { method, params, flags, place }))
}

/// A flag that says which execd is meant.
fn place_flag(flag: &str, arguments: &mut Arguments, place: &mut Place) -> Result<(), Reason> {
    if flag == "--pid" {
        let pid = arguments.number(flag, 1, i32::MAX.unsigned_abs().into())?;
        place.pid = i32::try_from(pid).ok();
    } else {
        place.socket = Some(arguments.path(flag)?);
    }
    Ok(())
}

/// A session: `@3`, `3` or its name, with its execd before it where there are several:
/// `execd-4242:@3`. The execd alone gives no session.
fn session(word: Option<&str>, command: &str, place: &mut Place) -> Result<Option<Which>, Reason> {
    let Some(word) = word else {
        return Err(format!("{command} needs a session: execd {command} @3 (execd ls lists them)"));
    };
    let no_session = || format!("{word:?} is no session: @3, 3 or its name (execd ls lists them)");
    let mut session = Some(word);
    let (before, behind) = word.split_once(':').map_or((word, None), |(b, a)| (b, Some(a)));
    let of_execd = before.strip_prefix("execd-").or_else(|| behind.map(|_| before));
    // A name of a session may have a colon.
    let pid = of_execd.and_then(|name| Some((name, socket_pid(name)?)));
    if let Some((name, pid)) = pid {
        if place.socket.is_some() || place.pid.is_some_and(|given| given != pid) {
            return Err(format!("{word} says which execd is meant: leave out --pid and --socket"));
        }
        place.name = Some(name.to_owned());
        session = behind;
    } else if before.starts_with("execd-") {
        return Err(no_session());
    }
    let which = |word: &str| {
        let digits = word.strip_prefix('@').unwrap_or(word);
        match digits.parse() {
            Ok(id) => Ok(Which::Id(id)),
            Err(_) if word.is_empty() || word.starts_with('@') => Err(no_session()),
            Err(_) => Ok(Which::Name(word.to_owned())),
        }
    };
    session.map(which).transpose()
}

/// The process in the name of an execd's socket, `4242` or `4242-INSTANCE`.
fn socket_pid(name: &str) -> Option<i32> {
    let (pid, instance) = name.split_once('-').unwrap_or((name, ""));
    let fits = instance.bytes().all(|byte| byte.is_ascii_alphanumeric());
    pid.parse().ok().filter(|pid| *pid > 0 && fits)
}

/// What `execd kill` is to end, and by which signal, which may also be the last of two words.
fn parse_kill(
    mut words: Vec<String>,
    mut signal: Option<String>,
    place: &Place,
) -> Result<Command, Reason> {
    if let ([_, last], None) = (words.as_slice(), &signal) {
        if last.parse::<u64>().is_ok() {
            return Err(format!(
                "{last} may be a session or a signal: say @{last}, or -s {last} before the session"
            ));
        }
        if parse_signal(last).is_ok() {
            signal = words.pop();
        }
    }
    signal.as_deref().map_or(Ok(0), parse_signal)?;
    if words.is_empty() {
        session(None, "kill", &mut place.clone())?;
    }
    let target = |word: &String| {
        let mut place = place.clone();
        let which = session(Some(word), "kill", &mut place)?;
        Ok((which.ok_or_else(|| needs_session("kill", &place))?, place))
    };
    let targets = words.iter().map(target).collect::<Result<_, Reason>>()?;
    Ok(Command::Kill(targets, signal))
}

/// That an execd is named alone, where one of its sessions is to be.
fn needs_session(command: &str, place: &Place) -> Reason {
    let which = place.name.as_deref().unwrap_or_default();
    format!("{command} needs a session: execd {command} execd-{which}:@3")
}

/// The commands that speak to execds that run.
fn parse_client(command: &'static str, words: Vec<OsString>) -> Result<Command, Reason> {
    let mut arguments = Arguments::of(command, words);
    let (mut place, mut form, mut words) = (Place::default(), Form::Table, Vec::<String>::new());
    let mut signal: Option<String> = None;
    let (mut lines, mut follow) = (TAIL_LINES, false);
    while let Some(argument) = arguments.next()? {
        let flag = match argument {
            Flag(flag) => flag,
            Word(word) => {
                words.push(word.to_string_lossy().into_owned());
                continue;
            }
        };
        match (command, flag.as_str()) {
            (_, "-h" | "--help") => return Ok(Command::Help),
            ("ls", "--json") => form = Form::Json,
            ("ls", "--ids") => form = Form::Ids,
            ("ls", "--all-users") => place.all_users = true,
            ("tail", "-f") => follow = true,
            ("tail", "-n") => lines = arguments.number(&flag, 0, u64::MAX)?,
            ("kill", "-s" | "--signal") => signal = Some(text(arguments.value()?)?),
            // kill(1) takes a signal in this way too.
            ("kill", flag) if !flag.starts_with("--") => {
                let first = flag.trim_start_matches('-');
                signal = Some(format!("{first}{}", arguments.attached().to_string_lossy()));
            }
            ("ls" | "attach" | "tail" | "kill", "--pid" | "--socket") => {
                place_flag(&flag, &mut arguments, &mut place)?;
            }
            (_, flag) => return Err(arguments.unknown(flag)),
        }
    }
    if command == "kill" {
        return parse_kill(words, signal, &place);
    }
    let most = usize::from(command != "ls");
    if let Some(extra) = words.get(most) {
        return Err(format!("{command} does not take {extra:?}"));
    }
    let word = words.first().map(String::as_str);
    match command {
        "ls" => Ok(Command::Ls(place, form)),
        "attach" => session(word, command, &mut place).map(|one| Command::Attach(one, place)),
        "tail" => {
            let which = session(word, command, &mut place)?;
            let which = which.ok_or_else(|| needs_session(command, &place))?;
            Ok(Command::Tail(TailOptions { which, lines, follow }, place))
        }
        _ => {
            let known = || format!("completions needs a shell: {}", SHELLS.join(", "));
            let script = completions::script(word.unwrap_or_default());
            script.map(Command::Completions).ok_or_else(known)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{COMMANDS, SETTINGS, Takes, Words};
    use super::*;
    use crate::config::OnEof;
    use crate::pure::buffer::bound::Bounds;

    fn parsed(line: &str) -> Result<Command, Reason> {
        parse(line.split_whitespace().map(OsString::from).collect(), Config::default())
    }

    /// rule: unified-exec.md, Constants: Caps are flags too
    /// rule: bash-stream.md, The stream family: A number of processes to remember that cannot be is
    ///   refused with the range
    #[test]
    fn settings_are_read_and_checked() {
        let line = "--max-sessions 4 --on-eof=wait --no-log --log-keep-days 0 --no-keeper";
        let Ok(Command::Serve(config)) = parsed(line) else { panic!("not understood") };
        assert_eq!((config.max_sessions, config.on_eof), (4, OnEof::Wait));
        assert!(config.logs.off && config.logs.keep_days == 0 && !config.keeper);
        let (keep, total) = (1 << 30, 8 << 30);
        let bounds = Bounds { max_bytes: None, keep_bytes: Some(keep), total_bytes: Some(total) };
        assert_eq!(config.logs.bounds, bounds);
        let line = "--log-keep-bytes 1048576 --log-total-bytes 0";
        let Ok(Command::Serve(config)) = parsed(line) else { panic!("not understood") };
        let bounds = Bounds { keep_bytes: Some(1 << 20), total_bytes: None, ..bounds };
        assert_eq!(config.logs.bounds, bounds);
        for (line, reason) in [
            ("--max-sessions 0", "--max-sessions must be a number from 1 to 16384, not \"0\""),
            ("--bash-jobs-kept 0", "--bash-jobs-kept must be a number from 1 to 1024, not \"0\""),
            ("--on-eof never", "--on-eof must be end or wait, not \"never\""),
            (
                "--log-keep-bytes 5",
                "--log-keep-bytes must be a number from 1048576 to 9007199254740992, not \"5\"; \
                 0 is no bound",
            ),
            ("--lease 0", "--lease must be more than nothing, not \"0\""),
            ("--marker a/b", "--marker must be 1 to 64 of A-Z a-z 0-9 - _, not \"a/b\""),
            ("--frobnicate", "unknown flag --frobnicate"),
            ("--max-session 3", "unknown flag --max-session: did you mean --max-sessions?"),
            ("run --idel-timeout 3 x", "unknown flag --idel-timeout: did you mean --idle-timeout?"),
            ("--ids ls", "unknown flag --ids: it goes with execd ls"),
            ("--no-log run true", "run comes first, its flags behind it: execd run [FLAGS]"),
            ("tial @3", "unknown command \"tial\": did you mean tail?"),
            ("tail @x", "\"@x\" is no session: @3, 3 or its name (execd ls lists them)"),
            ("attach 3 4", "attach does not take \"4\""),
            ("tail execd-7", "tail needs a session: execd tail execd-7:@3"),
            ("kill", "kill needs a session: execd kill @3 (execd ls lists them)"),
            ("kill execd-7", "kill needs a session: execd kill execd-7:@3"),
            ("kill @3 9", "9 may be a session or a signal: say @9, or -s 9 before the session"),
            ("run --jobs 3 true", "unknown flag --jobs: it goes with execd"),
            ("completions tcsh", "completions needs a shell: bash, zsh, fish"),
            ("run", "run needs a command: execd run -- make -j2, or execd run -c 'make | tail'"),
            ("run --shell zsh true", "--shell is the shell of -c: execd run --shell zsh -c 'CODE'"),
            ("call", "call needs a method: execd call ping"),
        ] {
            assert_eq!(parsed(line).expect_err(line), reason);
        }
    }

    /// rule: bash.md, In pi: `execd attach`, `tail` and `kill` take the addresses of windows; of an
    ///   execd alone attach takes the newest session
    #[test]
    fn commands_are_told_from_their_flags() {
        let line = "run --timeout 5 --tty -- make -j2 --tty";
        let Ok(Command::Run(run)) = parsed(line) else { panic!("not understood") };
        let What::Program(words) = &run.what else { panic!("not understood") };
        assert_eq!(*words, ["make", "-j2", "--tty"]);
        assert!(run.tty && run.timeout_ms == Some(5_000));
        let line = "run -qc x --shell zsh --timeout 1m30s --kill-after 0.5 --signal int --merge a";
        let Ok(Command::Run(run)) = parsed(line) else { panic!("not understood") };
        let code = What::Code { code: "x".into(), shell: "zsh".into(), words: vec!["a".into()] };
        assert_eq!((&run.what, run.quiet, run.merge), (&code, true, true));
        assert_eq!((run.timeout_ms, run.kill_after_ms, run.signal), (Some(90_000), 500, 2));
        let line = "call --max-sessions 3 ping {}";
        let Ok(Command::Call(call)) = parsed(line) else { panic!("not understood") };
        assert_eq!((call.method.as_str(), call.params.as_str()), ("ping", "{}"));
        assert_eq!(call.flags, ["--max-sessions", "3"]);
        let named = |name: &str| Which::Name(name.to_owned());
        for (line, signal, targets) in [
            ("kill @3", None, vec![Which::Id(3)]),
            ("kill 3 HUP", Some("HUP"), vec![Which::Id(3)]),
            ("kill -s INT @3 @4", Some("INT"), vec![Which::Id(3), Which::Id(4)]),
            ("kill @3 @4 5", None, vec![Which::Id(3), Which::Id(4), Which::Id(5)]),
            ("kill npm web:1", None, vec![named("npm"), named("web:1")]),
        ] {
            let Ok(Command::Kill(all, given)) = parsed(line) else { panic!("{line}") };
            let all: Vec<Which> = all.into_iter().map(|(which, _)| which).collect();
            assert_eq!((all, given.as_deref()), (targets, signal), "{line}");
        }
        let line = "tail -fn 20 --pid 7 @12";
        let Ok(Command::Tail(tail, place)) = parsed(line) else { panic!("not understood") };
        assert_eq!((tail.which, tail.lines, tail.follow), (Which::Id(12), 20, true));
        assert_eq!(place.pid, Some(7));
        for (line, id, name) in [
            ("attach execd-42:@3", Some(Which::Id(3)), "42"),
            ("attach 42:@3", Some(Which::Id(3)), "42"),
            ("attach execd-42:3 --pid 42", Some(Which::Id(3)), "42"),
            ("attach execd-42:npm", Some(named("npm")), "42"),
            ("attach execd-42-0af3", None, "42-0af3"),
        ] {
            let Ok(Command::Attach(given, place)) = parsed(line) else { panic!("{line}") };
            assert_eq!((given, place.name.as_deref()), (id, Some(name)), "{line}");
        }
    }

    /// rule: attach.md, ls, tail, kill, completions: Completions for bash, zsh and fish are
    ///   generated from the table of commands
    #[test]
    fn the_parser_knows_every_flag_of_the_table() {
        // `logs clean` is read in a file of its own.
        for command in COMMANDS.iter().filter(|command| !command.name.contains(' ')) {
            let settings = if command.settings { SETTINGS } else { &[] };
            for flag in command.flags.iter().chain(settings) {
                let value = match flag.takes {
                    Takes::Nothing => "",
                    // No number is in the range of them all.
                    Takes::Value(_) if flag.name == "bash-jobs-kept" => "700",
                    Takes::Value(_) if flag.name == "jobs" => "7",
                    Takes::Value("N") if flag.name.starts_with("log-") => "2000000",
                    Takes::Value("K=V") => "K=V",
                    Takes::Value("SHELL") => "sh -c x",
                    Takes::Value(_) => "7000",
                    Takes::Path(_) => "/tmp/x",
                    Takes::Signal => "INT",
                    Takes::Choice(words) => words[0],
                };
                let words = match command.words {
                    Words::None => "",
                    Words::Text => "task",
                    Words::Session | Words::SessionAndSignal => "@3",
                    Words::Method => "ping",
                    Words::Command => "run",
                    Words::Program => "true",
                    // Its word is read before all flags.
                    Words::OneOf(_) if command.name == "logs" => "",
                    Words::OneOf(words) => words[0],
                };
                // What some flags need beside them, and what none of the others takes.
                let (more, words) = match flag.name {
                    "keep-events" => ("--json", words),
                    "keep-agent-dir" => ("--isolate", words),
                    "health" => ("", ""),
                    "for-models" => ("--describe", words),
                    _ => ("", words),
                };
                let line = format!("{} {} {value} {more} {words}", command.name, flag.dashed());
                assert!(parsed(&line).is_ok(), "{line}: {:?}", parsed(&line));
            }
        }
    }
}
