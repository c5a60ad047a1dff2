//! The loop: one process that owns sessions and answers lines. Its folders are floors, from the
//! top: [`front`], [`families`], [`engine`], [`session`].

pub mod engine;
pub mod families;
pub mod front;
pub mod session;
