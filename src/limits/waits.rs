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

/// Why a client cancels a request, in its words.
pub const CANCEL_REASON_BYTES: usize = 200;
/// Wait of wait_for when none is given.
pub const DEFAULT_WAIT_FOR_MS: u64 = 30_000;
/// Sessions in one wait_for: as many as all families may have running at once.
pub const WAIT_FOR_SESSIONS_MAX: usize = 256;
/// Output in all rows of one answer of wait_for together.
pub const WAIT_FOR_TEXT_BYTES: usize = 512 * 1024;
/// Output that a row of such an answer may have all the same.
pub const WAIT_FOR_ROW_BYTES: usize = 128;
/// That a session can't go on counts for so long: twice the longest pause between two looks. Only
/// input of another client changes it, which this client is not told of.
pub const STUCK_FRESH_MS: u64 = 1_000;

/// So long the time of a wait stands still for a password that its client was told of: a person
/// who has to look it up finds it, and no call waits for ever for one who has left.
pub const PASSWORD_HOLD_MS: u64 = 10 * 60 * 1_000;
/// Waits of one session that look for patterns: each byte of output is looked at by all of them.
pub const TEXT_WAITS_MAX: usize = 16;

/// How long a secret waits for its terminal to show no input before it is refused.
pub const SECRET_ECHO_WAIT_MS: u64 = 2_000;
/// How often the terminal is looked at meanwhile.
pub const SECRET_ECHO_LOOK_MS: u64 = 20;
/// Secrets that wait so at the same time; further ones are refused at once.
pub const SECRETS_WAITING_MAX: usize = 64;
