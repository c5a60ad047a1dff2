//! Processes: what became of them, how they are known again, what their signals are called, which
//! session makes room for another, and what a command line and its paths would do.

pub mod doing;
pub mod killed;
pub mod life;
pub mod login_shell;
pub mod lru;
pub mod marks;
pub mod signal_names;
pub mod starts;
