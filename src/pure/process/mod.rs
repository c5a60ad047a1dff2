//! Processes: their lives, marks and names, and which session makes room for another.

pub mod life;
pub mod lru;
pub mod marks;
pub mod mounts;
pub mod run_mark;
pub mod signal_names;
pub mod stdin_asked;
