//! Bounds of the Model Context Protocol's front.

/// How long a tool waits at most for a client that gave no progress token: the SDK of most clients
/// gives a request up after 60 s.
pub const MCP_MAX_WAIT_S: u64 = 50;
/// The range of that time.
pub const MCP_MAX_WAIT_RANGE_S: (u64, u64) = (10, 86_400);
/// The shortest pause between two notifications of progress for one call.
pub const MCP_PROGRESS_MS: u64 = 1_000;
/// After so long without output a call that waits tells all the same that it does, so that its
/// client does not give it up.
pub const MCP_ALIVE_MS: u64 = 15_000;
/// Characters of the message of a notification of progress.
pub const MCP_MESSAGE_CHARS: usize = 200;
/// Progress tokens with a point or an exponent are exact below this.
pub const MCP_TOKEN_MAX: f64 = 9_007_199_254_740_992.0;
/// Answers of cancelled calls that are kept for the next result.
pub const MCP_LATE_COUNT: usize = 8;
/// Bytes of their texts, all together: one whole answer, with its header. Beside it there must be
/// room for a short result.
pub const MCP_LATE_BYTES: usize = MCP_TEXT_BYTES + MCP_AROUND_BYTES - 1024;
/// Bytes of a result beside the output of a command: its header and footer, and as far as there is
/// room what it tells of other calls.
pub const MCP_AROUND_BYTES: usize = 3_000;
/// How many lines are kept at most of answers that there was no room for: one of each session.
pub const MCP_LATE_LINES: usize = 512;
/// Sessions whose logs a client may be subscribed to, and subscriptions to one log.
pub const MCP_SUBSCRIPTIONS_MAX: usize = 64;
/// Sessions that have ended and are still listed as resources.
pub const MCP_RECENT_COUNT: usize = 64;
/// Bytes of a log that one reading of its resource gives: what hosts cut is the same there.
pub const MCP_READ_BYTES: u64 = MCP_TEXT_BYTES as u64;
/// Bytes of a command's output in one result. Hosts cut a longer result, and not at its
/// beginning: Codex takes the middle out above 10,000 tokens, which it counts as 40,000 bytes,
/// Gemini CLI above 40,000 characters; OpenCode keeps the first 50 KiB, and of more than 50,000
/// characters Claude Code shows its model the first 2 KB. The rest is for header, footer and
/// events.
pub const MCP_TEXT_BYTES: usize = 36 * 1024;
/// Lines of it. OpenCode keeps the first 2,000 of a result.
pub const MCP_TEXT_LINES: usize = 1_900;
/// Characters of stdout, and of stderr, in one result of a stream tool: both stand in it.
pub const MCP_STREAM_CHARS: usize = MCP_TEXT_BYTES / 2;
