//! The stream that `pi --mode json` writes: bytes in, normalized events, totals and one result out
//! (agent.md). The process of pi, its deadlines and its end are its owner's.
//!
//! | file | what is in it |
//! |---|---|
//! | `agent_files.rs` | the files of a run's own agent directory |
//! | `mask.rs` | a secret made unreadable, in whole texts and in pieces |
//! | `event.rs` | looks at a line: which event it is, and the fields that are known |
//! | `run.rs` | [`AgentRun`]: the stream's lines, each read as far as it is needed |
//! | `meaning.rs` | what each event means for the run |
//! | `answers.rs` | answers from their beginning to their end, and all that is paid for |
//! | `model.rs` | the model that was asked, and whether another one has answered |
//! | `text.rs` | the assistant's text: deltas joined, blocks kept apart, the output bounded |
//! | `told.rs` | the events that a client is told, and the last line of them |
//! | `end.rs` | how the process has ended, as its owner tells it |
//! | `ending.rs` | why a run has ended, in a word, a kind and a text |
//! | `report.rs` | the result of agent_execute |
//! | `kind.rs` | of which kind a failure is, for who decides on another try |
//! | `cause.rs` | what pi and node write of a failure, made readable |
//! | `program.rs` | what pi says of itself: its version, its tools |

pub mod agent_files;
mod answers;
mod cause;
mod end;
mod ending;
mod event;
mod kind;
pub mod mask;
mod meaning;
mod model;
pub mod program;
mod report;
mod run;
mod text;
mod told;

pub use cause::{cleaned_stderr, paragraph, with_stderr};
pub use end::{End, Policy, Stop};
pub use kind::{ErrorKind, Evidence, advice, kind_of};
pub use model::Asked;
pub use report::{AgentReport, ProviderData, SoFar};
pub use run::{AgentRun, Clocks, RunSettings};
pub use told::{Compactions, Cost, Doing, Retries, Tell, Told, UsageReport};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_answers;
#[cfg(test)]
mod tests_keys;
#[cfg(test)]
mod tests_lines;
#[cfg(test)]
mod tests_report;
#[cfg(test)]
mod tests_text;
