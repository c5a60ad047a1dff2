//! A command's arguments one by one, and the values of its flags. What a flag means is left to the
//! commands.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use lexopt::{Arg, Parser};

use super::table::{COMMANDS, Command, command, names};
use crate::pure::text::near::nearest;
use crate::pure::time::duration::parse_duration;

/// Why arguments make no sense, for people.
pub type Reason = String;

/// The arguments of a command.
#[derive(Debug)]
pub struct Arguments {
    command: &'static str,
    parser: Parser,
}

/// One argument.
#[derive(Debug)]
pub enum Argument {
    /// A flag with its dashes: `--json`, `-n`.
    Flag(String),
    /// Another word.
    Word(OsString),
}

impl Arguments {
    /// Of the command of that name, which is not among them.
    pub fn of(command: &'static str, arguments: impl IntoIterator<Item = OsString>) -> Self {
        Self { command, parser: Parser::from_args(arguments) }
    }

    /// The next argument.
    pub fn next(&mut self) -> Result<Option<Argument>, Reason> {
        let next = self.parser.next().map_err(|fault| fault.to_string())?;
        Ok(next.map(|argument| match argument {
            Arg::Long(name) => Argument::Flag(format!("--{name}")),
            Arg::Short(letter) => Argument::Flag(format!("-{letter}")),
            Arg::Value(word) => Argument::Word(word),
        }))
    }

    /// The value of the flag that came last.
    pub fn value(&mut self) -> Result<OsString, Reason> {
        self.parser.value().map_err(|fault| fault.to_string())
    }

    /// The value of the flag that came last, where the next argument is none of the flags.
    pub fn value_if_any(&mut self) -> Option<OsString> {
        if let Some(attached) = self.parser.optional_value() {
            return Some(attached);
        }
        let is_word = |next: &OsStr| !next.as_encoded_bytes().starts_with(b"-");
        let takes = self.parser.try_raw_args()?.peek().is_some_and(is_word);
        if takes { self.parser.value().ok() } else { None }
    }

    /// The value that is a number within a range.
    pub fn number(&mut self, flag: &str, low: u64, high: u64) -> Result<u64, Reason> {
        number(flag, &self.value()?, low, high)
    }

    /// The value that is a time, in milliseconds.
    pub fn duration(&mut self, flag: &str) -> Result<u64, Reason> {
        duration(flag, &self.value()?)
    }

    /// The value that is a path.
    pub fn path(&mut self, flag: &str) -> Result<PathBuf, Reason> {
        path(flag, &self.value()?)
    }

    /// What stands in one word with the flag of one letter that came last.
    pub fn attached(&mut self) -> OsString {
        self.parser.optional_value().unwrap_or_default()
    }

    /// The arguments that are left, as they are: flags are not looked for among them.
    pub fn rest(&mut self) -> Result<impl Iterator<Item = OsString> + '_, Reason> {
        self.parser.raw_args().map_err(|fault| fault.to_string())
    }
}

/// A flag's value as a number within a range.
pub fn number(flag: &str, value: &OsStr, low: u64, high: u64) -> Result<u64, Reason> {
    let number = value.to_str().and_then(|text| text.parse().ok());
    number.filter(|number| (low..=high).contains(number)).ok_or_else(|| {
        // A flag of one letter is shown as the long ones are.
        let name = flag.trim_start_matches('-');
        format!("--{name} must be a number from {low} to {high}, not {value:?}")
    })
}

/// A flag's value as a time, in milliseconds.
pub fn duration(flag: &str, value: &OsStr) -> Result<u64, Reason> {
    // What is not UTF-8 is no time either.
    parse_duration(&value.to_string_lossy()).map_err(|reason| format!("{flag} {reason}"))
}

/// A flag's value as a path. An empty one would be told by what the kernel says of it.
pub fn path(flag: &str, value: &OsStr) -> Result<PathBuf, Reason> {
    let given = (!value.is_empty()).then(|| value.into());
    given.ok_or_else(|| format!("{flag} must be a path, not \"\""))
}

/// A word as text.
pub fn text(word: OsString) -> Result<String, Reason> {
    word.into_string().map_err(|word| format!("{word:?} is not UTF-8"))
}

impl Arguments {
    /// What is said of a flag that the command does not have: where it goes, or which one is near.
    pub fn unknown(&self, flag: &str) -> Reason {
        let has = |command: &&Command| {
            let short = |letter| format!("-{letter}") == flag;
            command
                .all_flags()
                .iter()
                .any(|one| one.dashed() == flag || one.letter.is_some_and(short))
        };
        let others: Vec<String> = COMMANDS.iter().filter(has).map(Command::called).collect();
        if !others.is_empty() {
            return format!("unknown flag {flag}: it goes with {}", others.join(", "));
        }
        let own = command(self.command).into_iter().flat_map(Command::all_flags);
        let near =
            flag.strip_prefix("--").and_then(|given| nearest(given, own.map(|one| one.name)));
        let near = near.map_or_else(String::new, |near| format!(": did you mean --{near}?"));
        format!("unknown flag {flag}{near}")
    }
}

/// What is said of a word that stands where a command is wanted.
pub fn unknown_command(word: &str) -> Reason {
    if names().any(|name| name == word) {
        return format!("{word} comes first, its flags behind it: execd {word} [FLAGS]");
    }
    let near = nearest(word, names()).map(|near| format!("did you mean {near}?"));
    let known = || names().collect::<Vec<_>>().join(", ");
    format!("unknown command {word:?}: {}", near.unwrap_or_else(known))
}
