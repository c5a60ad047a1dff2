//! What execd and the program that runs pi say to each other: lines of JSON on the program's stdin
//! and stdout. Its stderr is what everybody may read of a run: the log.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What the program is to do: the first line of its stdin. The end of its stdin ends it.
#[derive(Debug, Deserialize, Serialize)]
pub struct Order<'a> {
    /// What is wanted.
    pub verb: Verb,
    /// The program of pi: a path, or a name on the PATH.
    pub pi: Cow<'a, str>,
    /// Where pi works; none: where the program is.
    pub workspace: Option<Cow<'a, str>>,
    /// The directory in which an agent directory is made that is kept.
    pub kept_in: Option<Cow<'a, str>>,
    /// What this pi has told of itself a while ago.
    pub known: Option<Known>,
    /// How many other runs are starting.
    pub others: u64,
    /// The params of the request.
    #[serde(borrow)]
    pub params: &'a RawValue,
}

/// What is wanted of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// A run, with the params of agent_execute.
    Run,
    /// The version of pi, with the params of agent_health.
    Health,
}

/// What a pi tells of itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Known {
    /// What `pi --version` says.
    pub version: String,
    /// What `pi --help` says, once it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

/// A later line of the program's stdin.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct OtherStarts {
    /// How many other runs are starting now.
    pub others: u64,
}

/// How every line begins that is an event of a run.
pub const EVENT_BEGINS: &[u8] = br#"{"event":"#;

/// Any other line of the program's stdout.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Said<'a> {
    /// What this pi tells of itself.
    Known(Known),
    /// The model has begun to answer: the run is starting no more.
    Begun(bool),
    /// How far the run is: an object whose fields stand in the answer of a run that goes on.
    #[serde(borrow)]
    SoFar(&'a RawValue),
    /// The params are wrong, as pi says: the message of the error.
    Refused(Cow<'a, str>),
    /// The result of a run that was not started.
    #[serde(borrow)]
    Unstarted(&'a RawValue),
    /// The result of a run that somebody else has ended: execd knows who.
    #[serde(borrow)]
    Cancelled(&'a RawValue),
    /// The result.
    #[serde(borrow)]
    Result(&'a RawValue),
}
