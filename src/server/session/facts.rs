//! What is known of a session from its start on, and does not change.

/// What does not change during a session's life.
#[derive(Clone, Debug)]
pub struct Facts {
    /// A label for lists.
    pub name: Option<String>,
    /// The command's text.
    pub command: String,
    /// Its working directory.
    pub cwd: String,
    /// Whether it has a PTY.
    pub tty: bool,
    /// The leader's pid: also the kernel's session id of its members.
    pub pid: i32,
    /// The kernel session that is execd's own too, where the leader has not left it (`execd run` on
    /// our terminal): then no kernel session has the leader's number.
    pub joins: Option<i32>,
    /// A lower bound of the leader's start time in clock ticks since boot.
    pub start_ticks: u64,
    /// Its id as a window, where it has one: lists and notices tell it.
    pub window: Option<String>,
    /// When it was started, monotonic.
    pub started_ns: u64,
    /// When it was started, wall clock.
    pub started_wall_ms: i64,
}
