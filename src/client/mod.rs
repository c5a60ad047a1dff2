//! The one way to speak to an execd, for all commands and programs: it is started for them, or it
//! listens on a control socket. What is asked and what the answers mean is left to them.

pub mod connection;
pub mod fresh;
