//! A command's arguments one by one, and the values of its flags. What a flag means is left to the
//! commands.

use std::ffi::{OsStr, OsString};

use lexopt::{Arg, Parser};

/// Why arguments make no sense, for people.
pub type Reason = String;

/// The arguments of a command.
#[derive(Debug)]
pub struct Arguments(Parser);

/// One argument.
#[derive(Debug)]
pub enum Argument {
    /// A flag with its dashes: `--json`, `-n`.
    Flag(String),
    /// Another word.
    Word(OsString),
}

impl Arguments {
    /// Of a command; its own name is not among them.
    pub fn new(arguments: impl IntoIterator<Item = OsString>) -> Self {
        Self(Parser::from_args(arguments))
    }

    /// The next argument.
    pub fn next(&mut self) -> Result<Option<Argument>, Reason> {
        let next = self.0.next().map_err(|fault| fault.to_string())?;
        Ok(next.map(|argument| match argument {
            Arg::Long(name) => Argument::Flag(format!("--{name}")),
            Arg::Short(letter) => Argument::Flag(format!("-{letter}")),
            Arg::Value(word) => Argument::Word(word),
        }))
    }

    /// The value of the flag that came last.
    pub fn value(&mut self) -> Result<OsString, Reason> {
        self.0.value().map_err(|fault| fault.to_string())
    }

    /// The value that is a number within a range.
    pub fn number(&mut self, flag: &str, low: u64, high: u64) -> Result<u64, Reason> {
        number(flag, &self.value()?, low, high)
    }

    /// What stands in one word with the flag of one letter that came last.
    pub fn attached(&mut self) -> OsString {
        self.0.optional_value().unwrap_or_default()
    }

    /// The arguments that are left, as they are: flags are not looked for among them.
    pub fn rest(&mut self) -> Result<impl Iterator<Item = OsString> + '_, Reason> {
        self.0.raw_args().map_err(|fault| fault.to_string())
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

/// A word as text.
pub fn text(word: OsString) -> Result<String, Reason> {
    word.into_string().map_err(|word| format!("{word:?} is not UTF-8"))
}

/// What is said of a flag that a command does not have.
pub fn unknown(flag: &str) -> Reason {
    format!("unknown flag {flag}")
}
