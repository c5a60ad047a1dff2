//! Bounds of how large logs become, of the index of a log that two streams share, and of pages of
//! one of them, see the parent module.

/// Bytes of a log that are kept, unless `--log-keep-bytes` says otherwise.
pub const LOG_KEEP_BYTES: u64 = 1024 * 1024 * 1024;
/// Smallest value of `--log-keep-bytes` and of `--log-total-bytes` but for 0.
pub const MIN_LOG_BOUND_BYTES: u64 = 1024 * 1024;
/// Largest value of both: what every JSON reader takes as a whole number.
pub const MAX_LOG_BOUND_BYTES: u64 = 1 << 53;
/// A log loses its oldest bytes in steps of this part of what is kept.
pub const LOG_KEEP_STEPS: u64 = 16;
/// This part of a step, and so many blocks at least, are left for the file system's own books of a
/// log's blocks, which count as the log's.
pub const LOG_SPARE_PARTS: u64 = 8;
/// See [`LOG_SPARE_PARTS`].
pub const LOG_SPARE_BLOCKS_MIN: u64 = 4;
/// What a file system gives to a file at a time.
pub const LOG_BLOCK_BYTES: u64 = 4096;
/// Bytes of disk that all logs of a directory take, unless `--log-total-bytes` says otherwise.
pub const LOG_TOTAL_BYTES: u64 = 8 * 1024 * 1024 * 1024;
/// All logs of a directory take at most this part of its file system.
pub const LOG_TOTAL_PERCENT: u64 = 10;
/// A log directory is cleaned at most once in this time.
pub const CLEAN_EVERY_S: i64 = 60 * 60;
/// Where all files take too much, this part of what they may take is made free.
pub const CLEAN_FREED_PARTS: u64 = 8;
/// A log is not deleted for what all take within this time after its end.
pub const CLEAN_SPARED_S: i64 = 60;
/// Logs that one look deletes at most for what all take: the ends and names of so many are
/// remembered, in 10 MiB.
pub const CLEAN_LOGS_MAX: usize = 100_000;
/// Names that a log writer looks at at a time.
pub const CLEAN_NAMES: usize = 256;
/// Names looked at between two looks at the clock.
pub const CLEAN_NAMES_UNTIMED: usize = 16;
/// A step of a look ends after this time, for the disk may be slow.
pub const CLEAN_TURN_MS: u64 = 5;
/// The pause between two steps, and before the first one: beside 100,000 logs and their facts less
/// than 1 % of a core for 80 s.
pub const CLEAN_PAUSE_MS: u64 = 100;
/// How long a log writer whose execd has ended goes on with a look.
pub const CLEAN_LINGER_MS: u64 = 2_000;

/// The index of a log keeps so many bytes at most: this part of what is kept of its log.
pub const LOG_INDEX_PARTS: u64 = 8;
/// Bytes of records that wait to be written; where more do, what they tell is forgotten.
pub const LOG_INDEX_QUEUE_BYTES: usize = 64 * 1024;
/// Bytes of the index that are read at a time.
pub const LOG_INDEX_READ_BYTES: usize = 4096;
/// Bytes of the index that one page looks at.
pub const LOG_INDEX_LOOK_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes of the log that are read at a time for a page of a stream.
pub const LOG_PAGE_READ_BYTES: usize = 32 * 1024;
/// How often the log is read for one page of a stream: above, the page is shorter than was asked.
pub const LOG_PAGE_READS_MAX: usize = 256;
/// Most bytes of one part of a session's output that is read from its log.
pub const LOG_RANGE_MAX_BYTES: u64 = 1024 * 1024;
/// Most bytes of one answer of the log writer: those of a part, and the few before it that tell how
/// it may begin.
pub const LOG_RANGE_ANSWER_BYTES: u64 = LOG_RANGE_MAX_BYTES + super::LOG_PAGE_LOOKBACK_BYTES;
/// Bytes of the line of facts beside a log: it lies in one block of the disk, so that it is written
/// whole or not at all, and an end that takes the place of a start needs no more room.
pub const LOG_FACTS_BYTES: usize = 4_000;
/// Bytes of the command in that line.
pub const LOG_FACTS_COMMAND_BYTES: usize = 2_000;
/// How long facts wait at least: those of a command that ends meanwhile are written once.
pub const LOG_FACTS_DELAY_MS: u64 = 50;
/// How long facts wait at most, where the log writer has no pause.
pub const LOG_FACTS_LATEST_MS: u64 = 1_000;
/// Lines of facts that wait at most: above, the oldest one is written at once.
pub const LOG_FACTS_WAITING_MAX: usize = 64;
/// Runs of bytes of one stream in a log's queue: above, its session's output is not read.
pub const LOG_QUEUE_RUNS_MAX: usize = 16 * 1024;
