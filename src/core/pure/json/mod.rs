//! JSON: reading parts of a text without building all of it.

pub mod fields;
pub mod guard;
pub mod text;
