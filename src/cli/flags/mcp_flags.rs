//! The flags of `execd mcp`.

use std::ffi::OsString;

use super::Command;
use crate::cli::arguments::Argument::{Flag, Word};
use crate::cli::arguments::{Arguments, Reason, text};
use crate::cli::settings::{OF_A_HOST, pass_on, setting};
use crate::config::Config;
use crate::mcp::{ON_CANCEL, OnCancel, SETS};

/// The range of that time.
const MCP_MAX_WAIT_RANGE_S: (u64, u64) = (10, 86_400);

/// `execd mcp`: the Model Context Protocol.
#[derive(Debug)]
pub struct McpOptions {
    /// The sets of tools, in the order in which they were given.
    pub sets: Vec<&'static str>,
    /// Results have structured content.
    pub structured: bool,
    /// What becomes of the command of a cancelled call, where the host's reason does not say it.
    pub on_cancel: Option<OnCancel>,
    /// How long a call without a progress token waits at most, where that is not the default.
    pub max_wait_s: Option<u64>,
    /// execd's settings.
    pub config: Config,
    /// The flags of the execd that is started.
    pub flags: Vec<OsString>,
}

/// Reads the arguments behind `mcp`.
pub fn mcp(words: Vec<OsString>, config: Config) -> Result<Command, Reason> {
    let mut arguments = Arguments::of("mcp", words);
    let mut options = McpOptions {
        sets: vec!["unified"],
        structured: false,
        on_cancel: None,
        max_wait_s: None,
        config,
        flags: Vec::new(),
    };
    while let Some(argument) = arguments.next()? {
        match argument {
            Flag(flag) => match flag.as_str() {
                "-h" | "--help" => return Ok(Command::Help),
                "--tools" => options.sets = tools(&text(arguments.value()?)?)?,
                "--mcp-structured" => options.structured = true,
                "--on-cancel" => {
                    let word = text(arguments.value()?)?;
                    let known = OnCancel::of(&word).ok_or_else(|| {
                        format!("--on-cancel must be of {}, not {word:?}", ON_CANCEL.join(", "))
                    })?;
                    options.on_cancel = Some(known);
                }
                "--mcp-max-wait-s" => {
                    let (low, high) = MCP_MAX_WAIT_RANGE_S;
                    options.max_wait_s = Some(arguments.number(&flag, low, high)?);
                }
                flag if OF_A_HOST.contains(&flag.trim_start_matches('-')) => {
                    drop(setting(flag, &mut arguments, &mut options.config)?);
                }
                flag => pass_on(flag, &mut arguments, &mut options.config, &mut options.flags)?,
            },
            Word(word) => {
                return Err(format!("mcp takes flags alone, not {:?}", word.to_string_lossy()));
            }
        }
    }
    Ok(Command::Mcp(Box::new(options)))
}

fn tools(given: &str) -> Result<Vec<&'static str>, Reason> {
    let mut found = Vec::new();
    for name in given.split(',').map(str::trim) {
        let set = SETS.iter().copied().find(|set| *set == name).ok_or_else(|| {
            format!(
                "--tools must be of {}, with commas between them, not {name:?}",
                SETS.join(", ")
            )
        })?;
        if !found.contains(&set) {
            found.push(set);
        }
    }
    Ok(found)
}
