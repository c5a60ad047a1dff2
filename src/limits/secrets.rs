//! Bounds of secrets that are given to sessions as input.

/// The shortest text that is masked: what is shorter stands in any output.
pub const SECRET_BYTES_MIN: usize = 4;
/// Bytes of one secret: as many as a line of a terminal has.
pub const SECRET_BYTES_MAX: usize = 4_096;
/// Lines of one secret.
pub const SECRET_LINES_MAX: usize = 32;
/// Secrets of one session that are masked at the same time.
pub const SECRETS_MAX: usize = 8;
/// How long a secret is masked.
pub const SECRET_MASKED_S: u64 = 60;
/// How long after the last output its end is held back that may be the beginning of a secret,
/// where it is shorter than [`SECRET_BYTES_MIN`].
pub const SECRET_HELD_MS: u64 = 50;
