//! The command line: flags into a [`Config`], and the commands.
//!
//! | file | what |
//! |---|---|
//! | `table` | the commands and their flags: help and completions come from it |
//! | `flags` | from arguments to what they ask for |
//! | `settings` | the flags that set an execd up |
//! | `run` | with the loop in this process |
//! | `fresh` | an execd that is started for one command |
//! | `agent`, `call` | with such an execd |
//! | `connection` | the way to an execd |
//! | `survey` | the execds that run |
//! | `ls`, `tail`, `kill`, `attach` | with those |
//! | `show` | a session in a terminal |

mod agent;
mod attach;
mod call;
mod completions;
mod connection;
mod flags;
mod fresh;
mod kill;
mod ls;
mod run;
mod settings;
mod show;
mod survey;
mod table;
mod tail;

use std::ffi::OsString;
use std::io::Write;

use crate::config::{
    Config, MAX_EMPTY_POLL_VARIABLE, SocketPlace, StreamSettings, max_empty_poll_ms,
};
use crate::families::Engine;
use crate::pure::text::visible;
use crate::sys::{host, look, stdio};
use crate::{front, keeper};
use flags::Command;

/// Exit status for flags that make no sense, and for a start that failed.
const EXIT_USAGE: i32 = 2;
const EXIT_START: i32 = 1;
/// Exit status after a timeout, as timeout(1) has it.
const EXIT_TIMEOUT: i32 = 124;
/// A signal's number is added to this, as shells do.
const EXIT_SIGNAL: i32 = 128;

/// Runs execd with these arguments (without the program's name); gives the exit status.
pub fn main(mut arguments: Vec<OsString>) -> i32 {
    if arguments.first().is_some_and(|first| first == "--keeper") {
        return keeper::main(arguments.into_iter().skip(1));
    }
    if let Some((first, rest)) = arguments.split_first()
        && first.as_encoded_bytes() == look::FLAG.to_bytes()
    {
        return look::answer(rest);
    }
    let one_session = arguments.first().is_some_and(|first| first == fresh::ONE_SESSION);
    if one_session {
        host::be_called(c"execd");
        arguments.remove(0);
    }
    host::give_memory_back();
    let mut config = Config::default();
    let variable = |name: &str| host::variable(name).map(|value| value.to_string_lossy().into());
    let cap: Option<String> = variable(MAX_EMPTY_POLL_VARIABLE);
    config.max_empty_poll_ms = max_empty_poll_ms(cap.as_deref());
    config.stream = StreamSettings::from_variables(variable);
    if let Some(pi) = variable("EXECD_PI").filter(|pi: &String| !pi.is_empty()) {
        config.pi = pi;
    }
    config.debug = variable("EXECD_LOG").as_deref() == Some("debug");
    match flags::parse(arguments, config) {
        Err(reason) => {
            complain(&format!("execd: {reason} (try execd --help)"));
            EXIT_USAGE
        }
        Ok(Command::Help) => say(&table::help()),
        Ok(Command::Version) => say(concat!("execd ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Command::Describe) => say(&format!("{:#}\n", front::describe())),
        Ok(Command::Serve(config)) => serve(*config, one_session),
        Ok(Command::Run(options)) => run::main(*options),
        Ok(Command::Agent(options)) => agent::main(*options),
        Ok(Command::Call(options)) => call::main(&options),
        Ok(Command::Ls(place, form)) => ls::main(&place, form),
        Ok(Command::Attach(id, place)) => attach::main(id, &place),
        Ok(Command::Tail(options, place)) => tail::main(options, &place),
        Ok(Command::Kill(id, signal, place)) => kill::main(id, signal.as_deref(), &place),
        Ok(Command::Completions(script)) => say(&script),
    }
}

/// Prints what was asked for; a reader that is gone wants no more.
fn say(text: &str) -> i32 {
    say_bytes(text.as_bytes())
}

fn say_bytes(bytes: &[u8]) -> i32 {
    let mut out = std::io::stdout();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    if let Err(error) = &written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        complain(&format!("execd: stdout cannot be written: {error}"));
    }
    i32::from(written.is_err())
}

/// One line on stderr for people.
fn complain(line: &str) {
    // It may quote what others have written.
    let _ = writeln!(std::io::stderr(), "{}", visible::lines(line));
}

/// Starts execd with its control socket. Says why where that is impossible.
fn start(config: Config) -> Option<Engine> {
    let asked_for = matches!(config.socket, SocketPlace::At(_));
    let started =
        Engine::start(config, front::METHODS).and_then(|mut daemon| match daemon.listen() {
            Err(reason) if asked_for => Err(reason),
            Err(reason) => {
                complain(&format!("execd: nobody can attach: {reason}"));
                Ok(daemon)
            }
            Ok(()) => Ok(daemon),
        });
    let daemon =
        started.map_err(|reason| complain(&format!("execd: cannot start: {reason}"))).ok()?;
    for lack in &daemon.degraded.lacks {
        complain(&format!("execd: does without {lack}"));
    }
    Some(daemon)
}

/// Serves requests on stdin and stdout; `one_session`: for one session, for which there is room.
fn serve(config: Config, one_session: bool) -> i32 {
    let Some(mut daemon) = start(config) else { return EXIT_START };
    if let Some(shrunk) = daemon.degraded.shrunk.as_ref().filter(|_| !one_session) {
        complain(&format!("execd: {shrunk}"));
    }
    if stdio::is_terminal(0) {
        complain(
            "execd runs commands that you can come back to; it reads JSON-RPC requests, one a \
             line. Type for example:",
        );
        complain(r#"{"id":1,"method":"exec_command","params":{"cmd":"echo hi"}}   (Ctrl-D ends)"#);
    }
    daemon.run()
}
