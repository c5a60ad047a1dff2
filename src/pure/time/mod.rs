//! Time: deadlines, dates, and how long something is waited for. The time itself always comes in.

pub mod deadlines;
pub mod drain;
pub mod duration;
pub mod quiet;
pub mod restarts;
pub mod rfc3339;
