//! Bounds of one turn of the loop.

/// Events taken from the kernel in one turn.
pub const EVENTS_PER_TURN: usize = 256;
/// The buffer that children's output is read into.
pub const READ_BUFFER_BYTES: usize = 64 * 1024;
/// A read of a pipe that gives so much: what follows is worth passing on whole.
pub const FLOOD_READ_BYTES: usize = 16 * 1024;
/// Output read from one session in one turn.
pub const READ_SESSION_TURN_BYTES: usize = 64 * 1024;
/// Output read from all sessions in one turn.
pub const READ_TURN_BYTES: usize = 512 * 1024;
/// Once a turn has lasted so long, no further session is read in it behind one whose output a wait
/// searches.
pub const SEARCH_TURN_MS: u64 = 5;
/// Output read of one session before the end of its leader is noted: one reply has all of it.
pub const DRAIN_BYTES: usize = 1024 * 1024;
/// Of the output read in one turn what is left to leaders that have ended, while there are any.
pub const DRAIN_TURN_BYTES: usize = READ_TURN_BYTES / 2;
/// Reads of one stream that may fail one after the other, before it is given up.
pub const READ_TRIES: usize = 3;
/// How soon a child is asked for again whose end could not be taken.
pub const REAP_RETRY_MS: u64 = 20;
/// How often, before its end counts as one that cannot be learnt.
pub const REAP_TRIES: u32 = 50;
/// Requests taken up in one turn.
pub const REQUESTS_PER_TURN: usize = 32;
/// Children started in one turn.
pub const SPAWNS_PER_TURN: usize = 4;
/// Once a turn has lasted so long, no further child is started in it.
pub const SPAWNS_TURN_MS: u64 = 5;
/// Bytes of requests read from stdin in one turn.
pub const REQUEST_READ_TURN_BYTES: usize = 1024 * 1024;
/// Unread output that replies are made from in one turn; the reply that reaches it is the last.
pub const TEXT_TURN_BYTES: usize = 1024 * 1024;
/// Bytes written to stdout in one turn.
pub const REPLY_WRITE_TURN_BYTES: usize = 256 * 1024;
/// Bytes written to one child's stdin in one turn.
pub const FEED_SESSION_TURN_BYTES: usize = 64 * 1024;
/// Bytes written to the log pipe in one turn.
pub const LOG_WRITE_TURN_BYTES: usize = 1024 * 1024;
/// Records read from one signalfd in one turn.
pub const SIGNALS_PER_TURN: usize = 64;
/// Children reaped in one turn, where a leader counts as [`LEADER_REAPS`]; the rest is reaped in
/// the next one.
pub const REAPS_PER_TURN: usize = 1_024;
/// How many other children the end of a leader costs as much as.
pub const LEADER_REAPS: usize = 8;
/// Sessions judged in one turn.
pub const JUDGED_PER_TURN: usize = 128;
/// Processes that a census reads of in one turn.
pub const CENSUS_TURN_PROCESSES: usize = 4_096;
/// A census is kept for so many turns, for those who have not come to it yet.
pub const CENSUS_KEPT_TURNS: u64 = 64;
/// Processes opened in one turn, to signal them.
pub const OPENED_PER_TURN: usize = 256;
/// Looks that find nobody in a session whose number is taken, before that is believed: /proc may
/// hide processes (hidepid), and a look may miss who was forked during it.
pub const EMPTY_LOOKS: u32 = 8;
/// Rounds of that before execd exits: what is reaped last leaves no zombie to somebody else.
pub const LAST_REAPS: usize = 64;
/// Pause between two looks for processes whose ends nothing tells of: pidfds are refused.
pub const UNWATCHED_PAUSE_MS: u64 = 20;
/// Pause between two looks for processes of a session that makes new ones while it is ended.
pub const SCAN_PAUSE_MS: u64 = 1;

/// Counts up when the protocol changes in a way that a client can notice.
pub const PROTOCOL_REVISION: u32 = 1;
