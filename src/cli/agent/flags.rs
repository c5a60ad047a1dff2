//! The flags of `execd agent` as params of agent_execute, whose values execd checks.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Map, Number, Value as Json};

use crate::cli::arguments::{Argument, Arguments, Reason, duration, text};
use crate::cli::settings::{pass_on, setting};
use crate::cli::table::{COMMANDS, Flag};
use crate::config::Config;

/// Settings that are not passed on to the execd of a run: they are about a client that sends
/// several requests.
const NOT_PASSED_ON: [&str; 4] =
    ["--max-line-bytes", "--on-eof", "--lease", "--exit-after-silence"];

/// What `execd agent` is asked for.
#[derive(Debug)]
pub enum Asked {
    /// Its help.
    Help,
    /// Whether pi is there.
    Health(HealthOptions),
    /// A run.
    Run(Box<AgentOptions>),
}

/// A run of pi.
#[derive(Debug, Default)]
pub struct AgentOptions {
    /// The params of agent_execute.
    pub params: Map<String, Json>,
    /// Prints events and result as NDJSON instead of the text.
    pub json: bool,
    /// Shows what the model thinks.
    pub verbose: bool,
    /// Where the run's log is to be in the end.
    pub log: Option<PathBuf>,
    /// The longest request line that was asked for, in bytes.
    pub max_line_bytes: usize,
    /// Flags that are passed on to the execd that is started for the run.
    pub flags: Vec<OsString>,
}

/// A question for pi's version.
#[derive(Debug)]
pub struct HealthOptions {
    /// The params of agent_health.
    pub params: Map<String, Json>,
    /// Prints the result as JSON instead of a line.
    pub json: bool,
    /// Flags that are passed on to the execd that is started for the question.
    pub flags: Vec<OsString>,
}

/// Flags that exclude each other, and what would be right.
const NEVER_BOTH: [(&str, &str, &str); 5] = [
    ("--tools", "--no-tools", "name tools, or give --no-tools alone"),
    ("--system-prompt", "--append-system-prompt", "give one: each sets the system prompt"),
    ("-v", "--json", "leave out -v: the events of --json have what the model thinks"),
    ("--log", "--no-log", "leave out --no-log to have the log at the file of --log"),
    ("--log", "--log-dir", "--log names the log's file, --log-dir a directory for it: give one"),
];
/// Flags that say nothing without another one, and why.
const NEEDS: [(&str, &str, &str); 2] = [
    ("--keep-events", "--json", "the events are kept for the result, which only --json prints"),
    ("--keep-agent-dir", "--isolate", "without it the run has no agent directory of its own"),
];
/// The flags of `execd agent` that go with --health.
const OF_HEALTH: [&str; 4] = ["--health", "--pi", "--min-version", "--json"];

/// Reads the flags of `execd agent`: they become params of agent_execute, which looks at their
/// values.
pub fn parse(words: Vec<OsString>, mut config: Config) -> Result<Asked, Reason> {
    let mut options = AgentOptions::default();
    let mut given: Vec<String> = Vec::new();
    let mut arguments = Arguments::of("agent", words);
    while let Some(argument) = arguments.next()? {
        let params = &mut options.params;
        let flag = match argument {
            Argument::Flag(flag) => flag,
            Argument::Word(word) => {
                if params.insert("prompt".to_owned(), text(word)?.into()).is_some() {
                    return Err("agent takes one prompt: quote it, or - for stdin".to_owned());
                }
                continue;
            }
        };
        given.push(flag.clone());
        match flag.as_str() {
            "-h" | "--help" => return Ok(Asked::Help),
            "--health" => {}
            "--json" => options.json = true,
            "-v" => options.verbose = true,
            "--log" => options.log = Some(arguments.path(&flag)?),
            "--max-tokens" => {
                let tokens = arguments.number(&flag, 0, i64::MAX.unsigned_abs())?;
                params.insert("max_tokens".to_owned(), tokens.into());
            }
            flag if let Some((name, value)) = switch(flag) => {
                params.insert(name.to_owned(), value);
            }
            flag if param_of(flag).is_some() => take(params, flag, text(arguments.value()?)?)?,
            flag if NOT_PASSED_ON.contains(&flag) => {
                setting(flag, &mut arguments, &mut config)?;
            }
            flag => pass_on(flag, &mut arguments, &mut config, &mut options.flags)?,
        }
    }
    check(&given)?;
    if given.iter().any(|flag| flag == "--health") {
        return health(options, &given).map(Asked::Health);
    }
    if !options.params.contains_key("prompt") {
        let message = "agent needs a prompt: execd agent --model p/m 'Do it' (- is stdin)";
        return Err(message.to_owned());
    }
    options.max_line_bytes = config.max_line_bytes;
    Ok(Asked::Run(Box::new(options)))
}

/// Refuses flags that contradict each other.
fn check(given: &[String]) -> Result<(), Reason> {
    let has = |flag: &str| given.iter().any(|one| one == flag);
    for (one, other, right) in NEVER_BOTH {
        if has(one) && has(other) {
            return Err(format!("{one} and {other} contradict each other: {right}"));
        }
    }
    for (flag, needed, why) in NEEDS {
        if has(flag) && !has(needed) {
            return Err(format!("{flag} needs {needed}: {why}"));
        }
    }
    Ok(())
}

/// --health asks for nothing but pi's version: what is about a run has no effect, and is refused.
fn health(options: AgentOptions, given: &[String]) -> Result<HealthOptions, Reason> {
    let AgentOptions { params, json, flags, .. } = options;
    if params.contains_key("prompt") {
        return Err("--health takes no prompt: it only asks pi for its version".to_owned());
    }
    let of_a_run = |flag: &&String| {
        let own = *flag == "-e" || of_agent().any(|one| one == **flag);
        own && !OF_HEALTH.contains(&flag.as_str())
    };
    if let Some(flag) = given.iter().find(of_a_run) {
        return Err(format!("--health starts no run: leave out {flag}"));
    }
    Ok(HealthOptions { params, json, flags })
}

/// The flags of `execd agent` that are no settings of an execd.
fn of_agent() -> impl Iterator<Item = String> {
    let agent = COMMANDS.iter().filter(|command| command.name == "agent");
    agent.flat_map(|command| command.flags).map(Flag::dashed)
}

/// The param that a flag without a value sets.
fn switch(flag: &str) -> Option<(&'static str, Json)> {
    Some(match flag {
        "--no-tools" => ("allowed_tools", Json::Array(vec![])),
        "--isolate" => ("isolation", "run".into()),
        "--keep-agent-dir" => ("keep_agent_dir", true.into()),
        "--any-model" => ("strict_model", false.into()),
        "--keep-events" => ("keep_events", true.into()),
        _ => return None,
    })
}

/// What agent_execute calls the param of a flag with a value.
fn param_of(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "--model" => "model",
        "--workspace" => "workspace",
        "--thinking" => "thinking",
        "--session" => "session",
        "--system-prompt" | "--append-system-prompt" => "system_prompt",
        "--pi" => "pi_path",
        "--min-version" => "min_version",
        "--label" => "label",
        "--timeout" => "timeout_ms",
        "--idle-timeout" => "idle_timeout_ms",
        "--first-event-timeout" => "first_event_timeout_ms",
        "--max-cost" => "max_cost_usd",
        "--max-tokens" => "max_tokens",
        "--tools" => "allowed_tools",
        "-e" | "--extension" => "extensions",
        "--extra-arg" => "extra_args",
        "--env" => "env",
        _ => return None,
    })
}

/// A reason that begins with the name of a param, with the flag in its place: whoever types flags
/// knows no params.
pub fn as_of_flags(reason: &str) -> String {
    let (name, rest) = reason.split_at(reason.find([' ', ':']).unwrap_or(reason.len()));
    match of_agent().find(|flag| param_of(flag) == Some(name)) {
        // The name of the param tells the unit, that of the flag does not.
        Some(flag) if name.ends_with("_ms") => {
            format!("{flag}{}", rest.replacen(" or more", " ms or more", 1))
        }
        Some(flag) => format!("{flag}{rest}"),
        None => reason.to_owned(),
    }
}

/// Makes a param of a flag's value.
fn take(params: &mut Map<String, Json>, flag: &str, text: String) -> Result<(), Reason> {
    let Some(name) = param_of(flag) else { return Ok(()) };
    let value: Json = match flag {
        "--timeout" | "--idle-timeout" | "--first-event-timeout" => {
            match duration(flag, text.as_ref())? {
                0 => return Err(format!("{flag} must be more than nothing, not {text:?}")),
                ms => ms.into(),
            }
        }
        "--max-cost" => {
            let wanted = || format!("--max-cost must be a number of dollars, not {text:?}");
            text.parse().ok().and_then(Number::from_f64).ok_or_else(wanted)?.into()
        }
        "--tools" => text.split(',').map(str::trim).collect(),
        "-e" | "--extension" | "--extra-arg" => {
            let words = params.entry(name).or_insert_with(|| Json::Array(vec![]));
            if let Some(words) = words.as_array_mut() {
                words.push(text.into());
            }
            return Ok(());
        }
        "--env" => {
            // The value is not told: it may be a key.
            let wanted = || "--env must be NAME=VALUE".to_owned();
            let (variable, value) = text.split_once('=').ok_or_else(wanted)?;
            if variable.is_empty() {
                return Err(wanted());
            }
            let all = params.entry(name).or_insert_with(|| Json::Object(Map::new()));
            if let Some(all) = all.as_object_mut() {
                all.insert(variable.to_owned(), value.into());
            }
            return Ok(());
        }
        _ => text.into(),
    };
    params.insert(name.to_owned(), value);
    if flag == "--append-system-prompt" {
        params.insert("append_system_prompt".to_owned(), true.into());
    }
    Ok(())
}
