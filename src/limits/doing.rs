//! Bounds of looks at what the processes of a session are at.

/// So long after the last output or input of a session the first looks are taken; most have gone on
/// by the first.
pub const LOOKS_AFTER_MS: [u64; 3] = [15, 50, 150];
/// The pause between all further looks.
pub const LOOK_PAUSE_MS: u64 = 500;
/// Two looks that are at least so far apart and agree say that somebody waits.
pub const DOING_AGREE_MS: u64 = 15;
/// How long before an answer that tells the state a first look is taken, for the second one to
/// agree with. It is far more than two looks must be apart: on a busy machine turns begin late.
pub const DOING_EARLY_MS: u64 = 120;
/// How long before such an answer the second look is taken, so that the answer itself has none to
/// wait for. Where many answers are due at once, their looks take several turns. If a program
/// begins to wait between the two looks, a look at the answer is far enough from this one to tell.
pub const DOING_READY_MS: u64 = 40;
/// How long before an answer was due a look may have been taken that it tells, unless something has
/// moved since.
pub const DOING_FRESH_MS: u64 = 50;
/// Once looks have used so much CPU time in a turn, no further one is begun in it.
pub const DOING_TURN_MS: u64 = 5;
/// The longest that a list waits for looks at its sessions.
pub const LIST_LOOKS_MS: u64 = 250;
/// How soon a look is tried again that could not be taken; each further time twice as long.
pub const DOING_RETRY_MS: u64 = 2;
/// The longest pause before it is.
pub const DOING_RETRY_MAX_MS: u64 = 64;
/// Processes outside all sessions that are looked through for descriptors of a session.
pub const STRANGERS_ASKED_MAX: usize = 16;
/// Bytes of the end of the output that are looked at for the last line.
pub const DOING_LAST_LINE_BYTES: usize = 256;

const _: () = {
    assert!(LOOKS_AFTER_MS[0] >= DOING_AGREE_MS);
    assert!(LOOKS_AFTER_MS[1] >= LOOKS_AFTER_MS[0] + DOING_AGREE_MS);
    assert!(DOING_EARLY_MS >= 2 * DOING_AGREE_MS + DOING_READY_MS);
    assert!(DOING_READY_MS >= DOING_AGREE_MS);
    assert!(DOING_FRESH_MS >= DOING_READY_MS);
};
