//! The families of tools: each has its methods, its state, its report, its notices.

pub mod agent;
pub mod attach;
pub mod stream;
pub mod unified;
pub mod windows;
