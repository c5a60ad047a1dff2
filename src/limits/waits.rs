//! Bounds of waits that end when something happens (waits.md).

/// Output that has not come for so long is quiet: the end of its unfinished line may be judged.
pub const QUIET_MS: u64 = 20;
/// Two looks at the CPU time of a session's processes are at least so far apart.
pub const IDLE_LOOK_MIN_MS: u64 = 20;
/// So many looks are taken in the time for which a session is to be idle: CPU time that was used in
/// one of these parts begins the time anew at its end.
pub const IDLE_LOOKS: u64 = 4;
/// Members that outlive their session are looked at again after this, where no end of an orphan has
/// told before that they are gone.
pub const MEMBERS_LOOK_MS: u64 = 500;
