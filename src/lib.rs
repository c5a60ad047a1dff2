//! execd: the executor that coding agents and shell scripts use to run commands they can come
//! back to.
#![deny(unsafe_code)]

pub mod keeper;
pub mod limits;
pub mod pure;
pub mod sys;
