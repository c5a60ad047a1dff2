//! The command line: which command is meant, and each command as a person or a script sees it. What
//! sessions do is left to execd: a command starts one, or speaks to one that runs.
//!
//! | file | what |
//! |---|---|
//! | `table` | the commands and their flags: help, man pages and completions come from it |
//! | `arguments` | the arguments one by one |
//! | `flags` | from arguments to what they ask for |
//! | `settings` | the flags that set an execd up |
//! | `help` | what commands and flags do, and man pages |
//! | `say` | what is printed |
//! | `serve`, `run` | with the loop in this process |
//! | `agent`, `call`, `mcp` | with an execd that is started for it |
//! | `survey` | the execds that run |
//! | `ls`, `tail`, `kill`, `attach` | with those |
//! | `log`, `logs` | the output of a session, and which logs there are |
//! | `logs_clean` | the deletion of logs |
//! | `show` | a session in a terminal |

mod agent;
mod arguments;
mod attach;
mod call;
mod completions;
mod flags;
mod help;
mod kill;
mod log;
mod log_source;
mod log_whose;
mod logs;
mod logs_clean;
mod ls;
mod mcp;
mod run;
mod say;
mod serve;
mod settings;
mod show;
mod survey;
mod table;
mod tail;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use crate::agent as runner;
use crate::client::fresh;
use crate::config::{Config, MAX_EMPTY_POLL_VARIABLE, max_empty_poll_ms};
use crate::keeper;
use crate::server::front;
use crate::sys::host;
use flags::Command;
use say::{EXIT_FAILED, EXIT_USAGE, complain, say};

/// Runs execd with these arguments (without the program's name); gives the exit status.
pub fn main(mut arguments: Vec<OsString>) -> i32 {
    if arguments.first().is_some_and(|first| first == "--keeper") {
        return keeper::main(arguments.into_iter().skip(1));
    }
    match arguments.split_first() {
        Some((first, [second, rest @ ..])) if first == "logs" && second == "clean" => {
            return logs_clean::main(rest);
        }
        Some((first, [])) if first.as_bytes() == runner::FLAG.to_bytes() => return runner::main(),
        _ => {}
    }
    let is_first = |flag: &str| arguments.first().is_some_and(|first| first == flag);
    let (one_session, for_host) = (is_first(fresh::ONE_SESSION), is_first(fresh::FOR_HOST));
    let is_started = one_session || for_host;
    if is_started {
        host::be_called(c"execd");
        arguments.remove(0);
    }
    host::give_memory_back();
    let mut config = Config::default();
    let name = table::first(&arguments);
    if name == "mcp" {
        config.text = mcp::SHOWN;
    } else if for_host {
        mcp::widen_texts(&mut config);
    }
    let variable = |name: &str| host::variable(name).map(|value| value.to_string_lossy().into());
    let cap: Option<String> = variable(MAX_EMPTY_POLL_VARIABLE);
    config.max_empty_poll_ms = max_empty_poll_ms(cap.as_deref());
    config.stream = config.stream.with_variables(variable);
    if let Some(pi) = variable("EXECD_PI").filter(|pi: &String| !pi.is_empty()) {
        config.pi = pi;
    }
    config.logs.by_path = one_session;
    // Whoever has started such an execd reads its answers.
    config.lenient = is_started;
    let not_taken = match (one_session, for_host) {
        (true, _) => settings::NOT_OF_ONE_SESSION,
        (_, true) => settings::OF_A_HOST,
        _ => &[],
    };
    let of_variables = settings::from_variables(&mut config, not_taken, host::variable);
    config.debug = variable("EXECD_LOG").as_deref() == Some("debug");
    let before_words = arguments.iter().take_while(|word| *word != "--");
    let json = name == "run" && before_words.into_iter().any(|word| word == "--json");
    let command = match flags::parse(arguments, config) {
        Ok(command) => command,
        Err(reason) => {
            let behind = if name.is_empty() { "" } else { " " };
            complain(&format!("execd: {reason} (try execd {name}{behind}--help)"));
            if json {
                run::tell_usage(&reason);
            }
            return EXIT_USAGE;
        }
    };
    if let (Err(reason), true) = (of_variables, command.has_settings()) {
        complain(&format!("execd: {reason}"));
        return EXIT_USAGE;
    }
    // 1 would say that a line was refused.
    let serves = matches!(command, Command::Serve(_));
    carry_out(command, name, one_session).unwrap_or_else(|reason| {
        complain(&format!("execd: {reason}"));
        if serves { EXIT_USAGE } else { EXIT_FAILED }
    })
}

/// Carries out what the command line asks for, of the command with this name; gives the exit
/// status, or why there is nothing to show.
fn carry_out(command: Command, name: &str, one_session: bool) -> Result<i32, String> {
    match command {
        Command::Help => Ok(say(&help::of(name))),
        Command::HelpOf(asked) => Ok(say(&help::told(asked))),
        Command::Version => Ok(say(concat!("execd ", env!("CARGO_PKG_VERSION"), "\n"))),
        Command::Describe(for_models) => {
            let all = || format!("{:#}", front::describe());
            let told = if for_models { front::describe_models() } else { all() };
            Ok(say(&format!("{told}\n")))
        }
        Command::Completions(script) => Ok(say(&script)),
        Command::Serve(config) => serve::main(*config, one_session),
        Command::Mcp(options) => mcp::main(*options),
        Command::Run(options) => Ok(run::main(*options)),
        Command::Agent(options) => agent::main(*options),
        Command::AgentHealth(options) => agent::health(&options),
        Command::Call(options) => call::main(&options),
        Command::Ls(place, form) => ls::main(&place, form),
        Command::Attach(which, place) => attach::main(which, &place),
        Command::Tail(options, place) => tail::main(&options, &place),
        Command::Log(options, place) => log::main(&options, &place),
        Command::Logs(options) => logs::main(&options),
        Command::Kill(targets, signal) => kill::main(&targets, signal.as_deref()),
    }
}
