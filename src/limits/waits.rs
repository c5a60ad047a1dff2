//! Bounds of waits that end when something happens (waits.md).

/// Output that has not come for so long is quiet: the end of its unfinished line may be judged.
pub const QUIET_MS: u64 = 20;
