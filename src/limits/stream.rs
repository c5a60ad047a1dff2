//! Bounds of the stream family: its replies, its live output, its polls, and its memory of sessions
//! that have ended (bash-stream.md).

/// Longest wait of poll_process for the end.
pub const JOB_WAIT_MAX_MS: u64 = 1_800_000;
/// How long a finished session is remembered when nothing else is configured.
pub const JOB_TTL_MS: u64 = 1_800_000;
/// Shortest and longest time that may be configured for that.
pub const JOB_TTL_RANGE_MS: (u64, u64) = (60_000, 10_800_000);
/// Finished sessions that are remembered when nothing else is configured.
pub const FINISHED_JOBS_MAX: usize = 256;
/// Fewest and most finished sessions that may be configured.
pub const FINISHED_JOBS_RANGE: (u64, u64) = (1, 1_024);
/// Memory of what is remembered of finished sessions, all together: above, the texts of the oldest
/// are cut. At the default cap 256 of them fit, whatever their characters.
pub const FINISHED_JOBS_BYTES: usize = 64 * 1024 * 1024;
/// Sessions of the family that run at once.
pub const RUNNING_JOBS_MAX: usize = 64;
/// Most bytes that are kept of one stream of a session: 150,000 characters of three bytes.
pub const JOB_RING_BYTES_MAX: usize = 450_000;
/// Runs of bytes of one stream behind which the order of a session's two streams is forgotten.
pub const ARRIVAL_RUNS_MAX: usize = 16 * 1024;
/// Text of one live chunk (bash-stream.md, Live output).
pub const LIVE_CHUNK_BYTES: usize = 8 * 1024;
/// Unsent chunks of one call; above, its chunks are dropped and counted until all are sent, so that
/// a flood leaves room for the chunks of others.
pub const LIVE_BACKLOG_BYTES: usize = 768 * 1024;
/// Live chunks of one call; then one notification says that no more of them come.
pub const LIVE_CHUNKS_MAX: usize = 10_000;
/// The last output told by a call whose session goes on.
pub const JOB_TAIL_BYTES: usize = 2 * 1024;
/// Characters of each text of a reply unless something else is asked for.
pub const JOB_OUTPUT_CHARS: usize = 30_000;
/// Most characters of each text that may be asked for.
pub const JOB_OUTPUT_CHARS_MAX: usize = 150_000;
/// Wait of bash_stream when none is given.
pub const JOB_YIELD_MS: u64 = 60_000;
/// Shortest wait of bash_stream.
pub const JOB_YIELD_MIN_MS: u64 = 1_000;
/// Longest wait of bash_stream, and of poll_process for the next output.
pub const JOB_YIELD_MAX_MS: u64 = 120_000;
/// Input that a session takes over its life unless --stdin-cap-bytes says otherwise.
pub const JOB_STDIN_CAP_BYTES: u64 = 256 * 1024;
/// How long kill_process waits for a signal other than SIGKILL.
pub const JOB_KILL_WAIT_MS: u64 = 2_000;
/// What is remembered of one finished session (architecture.md, Bounds), unless its texts alone
/// take more: later polls must give these again.
pub const FINISHED_JOB_BYTES: usize = 64 * 1024;
/// Characters that are left of each text of a finished session whose texts are cut.
pub const SHRUNK_JOB_CHARS: usize = 2_000;
/// Bytes of a command in a row of list_processes, which may have many more rows.
pub const LISTED_JOB_COMMAND_BYTES: usize = 1024;
