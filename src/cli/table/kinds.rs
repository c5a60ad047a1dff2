//! What the table of commands is made of.

use super::{COMMANDS, SETTINGS};

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// The flag has no value.
    Nothing,
    /// A value that is no path, a number say; this is what the help calls it.
    Value(&'static str),
    /// A path; this is what the help calls it.
    Path(&'static str),
    /// A signal, by its name or its number.
    Signal,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// A flag.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// The name behind the dashes. A name of one letter has one dash before it, others have two.
    pub name: &'static str,
    /// Its value.
    pub takes: Takes,
    /// What it does, for the help.
    pub doc: &'static str,
    /// The letter that is short for it behind one dash.
    pub letter: Option<char>,
    /// Whether only the whole help has it, and not the screen of its command.
    pub rare: bool,
}

/// What a command's words after its flags are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// The command takes no words.
    None,
    /// A session's id.
    Session,
    /// A session's id, and a signal where one is wanted.
    SessionAndSignal,
    /// A method and its params.
    Method,
    /// A program and its arguments.
    Program,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Any text.
    Text,
    /// The name of a command.
    Command,
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Its name, two words where it is a part of another command; empty for execd without one.
    pub name: &'static str,
    /// How it is called, after its name.
    pub usage: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
    /// What else is to be known, a paragraph a line, for the whole help and the man page.
    pub about: &'static str,
    /// What its exit statuses mean.
    pub status: &'static str,
    /// How it is used.
    pub examples: [&'static str; 2],
    /// Its flags.
    pub flags: &'static [Flag],
    /// Whether the settings of an execd are flags of it too.
    pub settings: bool,
    /// What the words behind its flags are.
    pub words: Words,
}

impl Flag {
    /// The variable that stands for the flag where the flag is not given; of a setting.
    pub fn variable(&self) -> String {
        format!("EXECD_{}", self.name.to_ascii_uppercase().replace('-', "_"))
    }

    /// The name with its dashes.
    pub fn dashed(&self) -> String {
        let dashes = if self.name.len() == 1 { "-" } else { "--" };
        format!("{dashes}{}", self.name)
    }

    /// The flag with what is short for it and what its value is called, as help shows it.
    pub fn shown(&self) -> String {
        let mut flag = self.letter.map_or_else(String::new, |letter| format!("-{letter}, "));
        flag.push_str(&self.dashed());
        match self.takes {
            Takes::Nothing => {}
            Takes::Value(name) | Takes::Path(name) => flag.extend([" ", name]),
            Takes::Signal => flag.push_str(" SIG"),
            Takes::Choice(words) => flag.extend([" ", &words.join("|")]),
        }
        flag
    }

    /// The flag with a letter that is short for it.
    pub const fn or(self, letter: char) -> Self {
        Self { letter: Some(letter), ..self }
    }
}

impl Command {
    /// How it is typed, without flags.
    pub fn called(&self) -> String {
        if self.name.is_empty() { "execd".to_owned() } else { format!("execd {}", self.name) }
    }

    /// Its own flags; the settings are those of execd itself.
    pub fn own_flags(&self) -> Vec<&'static Flag> {
        let mut all: Vec<&'static Flag> = self.flags.iter().collect();
        if self.name.is_empty() {
            all.extend(SETTINGS);
        }
        all
    }

    /// All that it takes: its own, the settings where it takes them too, `--help`. What means
    /// another thing to the command is the command's own.
    pub fn all_flags(&self) -> Vec<&'static Flag> {
        let mut all = self.own_flags();
        if !self.name.is_empty() {
            let own = all.len();
            let settings = if self.settings { SETTINGS } else { &[] };
            let help = COMMANDS[0].flags.iter().filter(|flag| flag.name == "help");
            for flag in settings.iter().chain(help) {
                if !all[..own].iter().any(|one| one.name == flag.name) {
                    all.push(flag);
                }
            }
        }
        all
    }
}
