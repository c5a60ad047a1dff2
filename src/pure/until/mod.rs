//! What a wait may end by, and the part of it that is text: patterns in the lines of clean output
//! (waits.md, until and stop).

mod echo;
mod pattern;
mod watch;

pub use echo::Echo;
pub use pattern::{Pattern, PatternError};
pub use watch::{Hit, TextWatch};

/// What ends a wait: any of the fields that are given. `until` and `stop` are one each.
#[derive(Debug, Default)]
pub struct Condition {
    /// Texts and regexes, in the order given, texts first.
    pub patterns: Vec<Pattern>,
    /// Which match of the patterns counts, all of them together; 0 is taken as 1.
    pub count: u32,
    /// A TCP port that a process of the session listens on.
    pub port: Option<PortWanted>,
    /// An HTTP answer of such a listener.
    pub http: Option<HttpWanted>,
    /// The session waits for input.
    pub input: Option<InputWanted>,
    /// So long no output, and no CPU time used.
    pub idle_ms: Option<u64>,
    /// With `idle_ms`: the CPU time is left aside.
    pub idle_cpu: bool,
    /// Everything that the session started has gone.
    pub tree_exit: bool,
}

impl Condition {
    /// Whether text can make it come true.
    pub fn has_patterns(&self) -> bool {
        !self.patterns.is_empty()
    }
}

/// A TCP port that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortWanted {
    /// Whichever comes.
    Any,
    /// This one.
    Number(u16),
}

/// Which kind of waiting for input is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputWanted {
    /// Whichever comes.
    Any,
    /// A line, with echo.
    Line,
    /// A line that is not echoed.
    Password,
    /// A key: the program reads in raw mode.
    Key,
}

/// An HTTP answer that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpWanted {
    /// Where to ask; none is any port that the session listens on.
    pub port: Option<PortWanted>,
    /// The path, with its slash at the beginning.
    pub path: String,
    /// The lowest and the highest status that will do.
    pub status: (u16, u16),
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod tests_echo;
