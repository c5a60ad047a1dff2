//! Why execd ended a run of pi (agent.md, Why a run ends).

/// Why execd ended the run. It wins over what pi said of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// No event came from the model within so many milliseconds.
    FirstEventTimeout(u64),
    /// No event came for so many milliseconds.
    IdleTimeout(u64),
    /// The run was not done within so many milliseconds.
    HardTimeout(u64),
    /// The run has cost more than so many USD.
    Cost(f64),
    /// The run has used more than so many tokens.
    Tokens(u64),
    /// Another model has answered than the one that was asked.
    ModelMismatch,
    /// Somebody cancelled it.
    Cancelled,
    /// The run was done, and pi did not exit: the run keeps its success.
    Lingered,
}
