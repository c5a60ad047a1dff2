//! What a wait may be told to wait for, besides a time and an exit: text, ports, a question of the
//! program's, quiet.

use std::rc::Rc;

/// What `until` or `stop` asked for: it comes true when any of its fields does.
#[derive(Debug)]
pub struct Condition {
    /// Texts and regular expressions that output may match.
    pub patterns: Vec<Pattern>,
    /// Only the match of this number counts.
    pub count: u32,
    /// A TCP port that a process of the session listens on.
    pub port: Option<PortWanted>,
    /// A page that a listener of the session answers with.
    pub http: Option<HttpWanted>,
    /// The session waits for input.
    pub input: Option<InputWanted>,
    /// No output came for so long, and no CPU time was used.
    pub idle_ms: Option<u64>,
    /// Whether CPU time does not matter for `idle_ms`.
    pub idle_cpu: bool,
    /// Everything of the session has gone.
    pub tree_exit: bool,
}

/// A pattern that output may match: `index` is its place in the list of its field.
#[derive(Debug)]
pub enum Pattern {
    /// This text.
    Text {
        /// Its place in `text`.
        index: usize,
        /// What is looked for.
        text: String,
    },
    /// This regular expression.
    Regex {
        /// Its place in `regex`.
        index: usize,
        /// The expression as given.
        source: String,
    },
}

/// Which port is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortWanted {
    /// Any.
    Any,
    /// This one.
    Number(u16),
}

/// Which kind of input the session is to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputWanted {
    /// Any kind.
    Any,
    /// A line, whose characters the terminal shows.
    Line,
    /// A line, whose characters the terminal does not show.
    Password,
    /// A key.
    Key,
}

/// Which page is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpWanted {
    /// The listener's port, where one is given.
    pub port: Option<PortWanted>,
    /// The path, which begins with a slash.
    pub path: String,
    /// The first and the last status that count.
    pub status: (u16, u16),
}

/// Who may echo what was written to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// The terminal, line by line: canonical mode with echo.
    Terminal,
    /// The program: a terminal out of canonical mode.
    Program,
    /// Nobody.
    Nothing,
}

/// A match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Whether a pattern of `stop` matched.
    pub by_stop: bool,
    /// The field of the pattern: `text` or `regex`.
    pub by: &'static str,
    /// The pattern's place in the list of its field.
    pub index: usize,
    /// The line that matched.
    pub text: String,
    /// The groups of a regular expression, without the whole.
    pub captures: Vec<Option<String>>,
    /// The byte of the session's output at which the line begins.
    pub offset: u64,
    /// The byte behind what was looked at of the line.
    pub next_offset: u64,
}

/// Looks for the patterns of a wait in output, as the output comes.
#[derive(Debug)]
pub struct TextWatch {
    hit: Option<Hit>,
}

impl TextWatch {
    /// A watch of output from this byte on; None where neither has patterns.
    pub fn new(
        _until: Option<Rc<Condition>>,
        _stop: Option<Rc<Condition>>,
        _offset: u64,
    ) -> Option<Self> {
        None
    }

    /// Looks at output, each byte once.
    pub fn push(&mut self, _bytes: &[u8]) {}

    /// So many bytes are not there to be looked at.
    pub fn skip(&mut self, _bytes: u64) {}

    /// Input was written, which may come back as output.
    pub fn sent(&mut self, _bytes: &[u8], _echo: Echo) {}

    /// No output has come for a while: the unfinished line may be judged by its end.
    pub fn quiet(&mut self) {}

    /// Whether a match rests on the end of the unfinished line.
    pub fn wants_quiet(&self) -> bool {
        false
    }

    /// The output has ended.
    pub fn end(&mut self) {}

    /// The first match.
    pub fn hit(&self) -> Option<&Hit> {
        self.hit.as_ref()
    }
}
