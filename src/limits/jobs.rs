//! Bounds of the stream family's polls and of its memory of what has ended, see the parent module.

/// Longest wait of poll_process for the end.
pub const JOB_WAIT_MAX_MS: u64 = 1_800_000;
/// How long a finished job is remembered when nothing else is configured.
pub const JOB_TTL_MS: u64 = 1_800_000;
/// Shortest and longest time that may be configured for it.
pub const JOB_TTL_RANGE_MS: (u64, u64) = (60_000, 10_800_000);
/// Finished jobs that are remembered when nothing else is configured.
pub const FINISHED_JOBS_MAX: usize = 256;
/// Fewest and most that may be configured.
pub const FINISHED_JOBS_RANGE: (u64, u64) = (1, 1_024);
/// Memory of what is remembered of them, all together: above, the texts of the oldest are cut. At
/// the default cap 256 of them fit, whatever their characters.
pub const FINISHED_JOBS_BYTES: usize = 64 * 1024 * 1024;
