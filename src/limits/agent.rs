//! Bounds of the pi harness (agent-harness.md).

/// Runs of pi that go on at once.
pub const RUNNING_AGENTS_MAX: usize = 64;
/// A run of pi is ended after this, unless the call says otherwise.
pub const AGENT_TIMEOUT_MS: u64 = 600_000;
/// It is ended when no event came for this long, unless the call says otherwise.
pub const AGENT_IDLE_TIMEOUT_MS: u64 = 180_000;
/// It is ended when the model's first event took longer, unless the call says otherwise.
pub const AGENT_FIRST_EVENT_TIMEOUT_MS: u64 = 30_000;
/// How long pi may take to exit after its last agent_end.
pub const AGENT_EXIT_MS: u64 = 10_000;
/// How long `pi --version` may take.
pub const AGENT_VERSION_MS: u64 = 5_000;
/// Bytes of what it said that are told.
pub const AGENT_VERSION_BYTES: usize = 200;
/// Programs whose version is remembered.
pub const AGENT_VERSIONS_MAX: usize = 64;
/// A longer prompt goes through a temporary file: an argument is 128 KiB at most, and pi's other
/// arguments need room too.
pub const AGENT_PROMPT_ARG_BYTES: usize = 100 * 1024;
/// Bytes of pi's stderr that are kept for its error.
pub const AGENT_STDERR_BYTES: usize = 4 * 1024;
/// Bytes of a run's raw output that no unified-exec call has told.
pub const AGENT_UNREAD_BYTES: usize = 64 * 1024;
/// Characters of an argument, or of an event, where people see it in a line.
pub const AGENT_SHOWN_CHARS: usize = 160;
/// Bytes of such lines that `execd agent` holds back until stdout has what came before.
pub const AGENT_NOTES_BYTES: usize = 64 * 1024;
