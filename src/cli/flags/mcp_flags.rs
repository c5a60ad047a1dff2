//! The flags of `execd mcp`.

use std::ffi::OsString;

use super::Command;
use crate::cli::arguments::Argument::{Flag, Word};
use crate::cli::arguments::{Arguments, Reason, text};
use crate::cli::settings::{OF_A_HOST, pass_on, setting};
use crate::config::Config;
use crate::mcp::SETS;

/// The range of that time.
const MCP_MAX_WAIT_RANGE_S: (u64, u64) = (10, 86_400);

/// How long a tool waits at most for a client that gave no progress token: the SDK of most clients
/// gives a request up after 60 s.
const MCP_MAX_WAIT_S: u64 = 50;

/// `execd mcp`: the Model Context Protocol.
#[derive(Debug)]
pub struct McpOptions {
    /// The sets of tools, in the order in which they were given.
    pub sets: Vec<&'static str>,
    /// Results have structured content.
    pub structured: bool,
    /// How long a call without a progress token waits at most.
    pub max_wait_s: u64,
    /// execd's settings.
    pub config: Config,
    /// The flags of the execd that is started.
    pub flags: Vec<OsString>,
}

/// Reads the arguments behind `mcp`.
pub fn mcp(words: Vec<OsString>, config: Config) -> Result<Command, Reason> {
    let mut arguments = Arguments::of("mcp", words);
    let (sets, max_wait_s) = (vec!["unified"], MCP_MAX_WAIT_S);
    let flags = Vec::new();
    let mut options = McpOptions { sets, structured: false, max_wait_s, config, flags };
    while let Some(argument) = arguments.next()? {
        match argument {
            Flag(flag) => match flag.as_str() {
                "-h" | "--help" => return Ok(Command::Help),
                "--tools" => options.sets = tools(&text(arguments.value()?)?)?,
                "--mcp-structured" => options.structured = true,
                "--mcp-max-wait-s" => {
                    let (low, high) = MCP_MAX_WAIT_RANGE_S;
                    options.max_wait_s = arguments.number(&flag, low, high)?;
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
