//! Terminals: what programs set in them and ask them, and what keys mean to them.

pub mod answers;
pub mod detach_keys;
pub mod line;
pub mod modes;
pub mod queries;
