//! The name of one of a command's two streams.

/// Which of a session's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// stdout, a terminal's output, or both streams on one pipe.
    Output,
    /// stderr on a pipe of its own.
    Errors,
}

impl Source {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Output => Self::Errors,
            Self::Errors => Self::Output,
        }
    }
}
