//! Bounds of looks at what the processes of a session are at.

/// From the last output or input of a session to the first look; most have gone on by then.
pub const DOING_FIRST_LOOK_MS: u64 = 20;
/// The longest pause between two looks at a session that has not settled.
pub const DOING_GAP_MAX_MS: u64 = 500;
/// The first pause before a look at a session that has settled; each further one is twice as long.
pub const DOING_BACKSTOP_MS: u64 = 60_000;
/// The longest one.
pub const DOING_BACKSTOP_MAX_MS: u64 = 60 * 60 * 1_000;
/// How long after a sleep or a timeout of a program has passed its session is looked at: most have
/// gone on to their next call by then.
pub const DOING_WAKE_MS: u64 = 10;
/// The shortest pause before such a look; each further one is twice as long, so that a program
/// which sleeps for a moment again and again is looked at ever more rarely.
pub const DOING_WAKE_MIN_MS: u64 = 100;
/// Two looks that are at least so far apart and agree say that somebody waits.
pub const DOING_AGREE_MS: u64 = 15;
/// How long before an answer that tells the state a first look is taken, for the second one to
/// agree with. It is far more than two looks must be apart: on a busy machine turns begin late.
pub const DOING_EARLY_MS: u64 = 120;
/// How long before such an answer the second look is taken, so that the answer itself has none to
/// wait for. Where many answers are due at once, their looks take several turns. Of who begins to
/// wait between the two, a look at the answer itself is far enough from this one to tell.
pub const DOING_READY_MS: u64 = 20;
/// Between the looks for two answers that are due at one time.
pub const DOING_SLOT_MS: u64 = 2;
/// Answers that are due at one time whose looks are taken one after another; of more, two or more
/// at once.
pub const DOING_SLOTS: u64 = 64;
/// Answers are due at one time that are due within so long.
pub const DOING_SLOTS_SPAN_MS: u64 = 64;
/// Times for which answers are counted.
pub const DOING_SPANS_MAX: usize = 256;
/// How long before an answer was due a look may have been taken that it tells, unless something has
/// moved since.
pub const DOING_FRESH_MS: u64 = 150;
/// Members of a settled session whose ends are watched for.
pub const DOING_WATCHED_MAX: usize = 8;
/// Once looks have taken so long in a turn, no further one is begun in it.
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
    assert!(DOING_FIRST_LOOK_MS >= DOING_AGREE_MS);
    assert!(DOING_EARLY_MS >= 2 * DOING_AGREE_MS + DOING_READY_MS);
    assert!(DOING_READY_MS >= DOING_AGREE_MS);
    assert!(DOING_FRESH_MS >= DOING_READY_MS + (DOING_SLOTS - 1) * DOING_SLOT_MS);
};
