//! Bounds of requests that stand in line for their turn (protocol.md, At most so many at once).

use super::{MAX_PENDING_REQUESTS, MAX_SESSIONS};

/// The most commands at once that `--jobs` may ask for: as many as the table of sessions has room
/// for, so that none of them is evicted.
pub const JOBS_MAX: usize = MAX_SESSIONS;
/// Requests of one client in line; while there are so many, no further line of it is taken up.
pub const LINE_REQUESTS_MAX: usize = MAX_PENDING_REQUESTS;
/// Bytes of their params; the request that reaches this is the last.
pub const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// stdin has brought nothing for so long: what stands in line for want of room is refused.
pub const LINE_QUIET_MS: u64 = 1_000;
