//! Bounds of the ledger of events (protocol.md, Events).

/// Events that are kept: the last ones.
pub const EVENTS_KEPT: usize = 1_024;
/// Events that one reply of a method other than `events` carries.
pub const EVENTS_PER_REPLY: usize = 16;
/// Events that `events` gives, where the call says nothing.
pub const EVENTS_DEFAULT: u64 = 100;
/// How long `events` waits at most.
pub const EVENTS_WAIT_MAX_MS: u64 = 300_000;
/// Bytes of a command in an event.
pub const EVENT_COMMAND_BYTES: usize = 200;
/// Bytes of a message in an event.
pub const EVENT_MESSAGE_BYTES: usize = 400;
/// The longest id of a request that an event names; a longer one is left out.
pub const EVENT_REQUEST_ID_BYTES: usize = 200;
