//! Pure logic: bytes, times and facts in, decisions out. No I/O, no clock, no descriptor
//! (tests/it/tidy.rs keeps it so). This is where bugs hide, so this is what can be tested against
//! naive models and fuzzed.

pub mod agent;
pub mod buffer;
pub mod group;
pub mod json;
pub mod ledger;
pub mod net;
pub mod process;
pub mod terminal;
#[cfg(test)]
pub mod tests_random;
pub mod text;
pub mod time;
pub mod until;
