//! Bounds of the time after a shell's end while others hold its output.

/// How long a wait goes on after the shell is gone while its output is still held open: the wait of
/// unified-exec, and at least so long those that answer with an end.
pub const POST_EXIT_CLOSE_WAIT_MS: u64 = 50;
/// An answer that tells an end waits for output at most this long after the shell.
pub const DRAIN_MAX_MS: u64 = 2_000;
/// Output that came after the shell is followed by more: so long it is waited for.
pub const DRAIN_OUTPUT_MS: u64 = 100;
/// From the shell's end to the first look at who holds its output; most are gone by then.
pub const DRAIN_FIRST_LOOK_MS: u64 = 20;
/// From one look to the next.
pub const DRAIN_LOOK_MS: u64 = 30;
/// Looks come at multiples of this: what ended at about the same time shares a census.
pub const DRAIN_GRID_MS: u64 = 10;
/// A process that used less CPU time between two looks counts as asleep: some wake by a timer
/// only to sleep again.
pub const HOLDER_BUSY_NS: u64 = 100_000;
/// Members of a session that a look asks.
pub const HOLDERS_ASKED_MAX: usize = 64;
/// Looks at holders in one turn.
pub const HOLDER_LOOKS_PER_TURN: usize = 32;

const _: () = {
    assert!(DRAIN_FIRST_LOOK_MS + DRAIN_LOOK_MS <= POST_EXIT_CLOSE_WAIT_MS);
    assert!(DRAIN_GRID_MS < DRAIN_LOOK_MS && POST_EXIT_CLOSE_WAIT_MS < DRAIN_MAX_MS);
};
