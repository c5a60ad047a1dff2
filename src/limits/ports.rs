//! Bounds of looking for listeners, and of asking HTTP servers.

/// While somebody waits for a port, listeners are looked at as often as this.
pub const PORT_LOOK_MS: u64 = 50;
/// A listener that was found to be none of the session's is looked at again after one such pause,
/// then after twice as long, and so on up to this.
pub const PORT_DOUBT_MAX_MS: u64 = 1_000;
/// Listeners that one look takes in.
pub const LISTENERS_MAX: usize = 4_096;
/// Bytes of listeners read at a time.
pub const LISTENERS_READ_BYTES: usize = 32 * 1024;
/// Reads of listeners in one look, of each family: more than [`LISTENERS_MAX`] need.
pub const LISTENERS_READS: usize = 64;
/// Descriptors of one process that are looked at.
pub const PORT_FDS_PER_PROCESS: usize = 1_024;
/// Descriptors of a session's processes that one look looks at.
pub const PORT_FDS_PER_LOOK: usize = 4_096;
/// Descriptors that are looked at in one turn for what its replies and lists tell.
pub const TOLD_FDS_PER_TURN: usize = 8_192;
/// Once looks at these have used so much CPU time in a turn, no further one is begun in it.
pub const TOLD_TURN_MS: u64 = 5;
/// Listeners that are named in a reply or a row of a list.
pub const LISTENERS_NAMED: usize = 16;
/// Descriptors looked at in one turn, to find who holds a port that is not the session's.
pub const HOLDER_FDS_PER_TURN: usize = 2_048;

/// The longest that a server is waited for that was asked for a page, until it is asked again.
pub const HTTP_WAIT_MS: u64 = 5_000;
/// The pause until a server is asked again that did not answer as it was to, at first.
pub const HTTP_PAUSE_MS: u64 = 100;
/// It doubles up to this.
pub const HTTP_PAUSE_MAX_MS: u64 = 1_000;
/// Bytes of an answer within which its status must come.
pub const HTTP_HEAD_BYTES: usize = 16 * 1024;
/// Bytes of the rest of an answer that are read, so that its server can write in peace.
pub const HTTP_REST_BYTES: usize = 1024 * 1024;
/// The longest that the rest of an answer is read.
pub const HTTP_REST_MS: u64 = 1_000;
/// Waits of a session that ask a server at a time, and answers whose rest is read: others wait.
pub const HTTP_PROBES: usize = 16;
