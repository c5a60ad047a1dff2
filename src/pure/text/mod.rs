//! Text: from bytes to what people and models read, within bounds on lines and bytes.

pub mod clean;
pub mod fit;
pub mod interleave;
pub mod lines;
pub mod near;
pub mod page;
pub mod shell_word;
pub mod truncate;
pub mod unescape;
pub mod utf8;
pub mod visible;
