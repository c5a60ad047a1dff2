//! JSON: reading parts of a text without building all of it, and the numbers that it
//! has.

pub mod fields;
pub mod guard;
pub mod text;
