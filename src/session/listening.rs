//! The TCP ports that the processes of a session listen on.

use serde::Serialize;

/// A TCP port that a process of a session listens on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listening {
    /// The port.
    pub port: u16,
    /// The address that is listened on.
    pub address: String,
    /// The process.
    pub pid: i32,
    /// The process's name.
    pub command: String,
}
