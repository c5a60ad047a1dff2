//! execd: the executor that coding agents and shell scripts use to run commands they can come
//! back to. It owns the terminals and pipes of many long-lived sessions, and answers JSON-RPC
//! lines on stdin and stdout.
//!
//! The floors, from the top; an import goes down, never up and never in a circle (tests/graph.rs):
//!
//! | floor | what is in it |
//! |---|---|
//! | [`cli`] | flags and commands |
//! | [`front`] | the table of methods, and those that are no family's |
//! | [`families`] | the families of tools, a folder each: methods, state, reports, notices |
//!
//! The floors below, from [`engine`] to [`limits`], are the package in src/core: the release is
//! made small here and fast there, and only a package can have its own profile.
#![forbid(unsafe_code)]
// Unit tests may use std's threads, say why they leave something out, and cast small numbers.
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::disallowed_methods,
        clippy::print_stderr,
        clippy::unwrap_used
    )
)]

pub mod cli;
pub mod families;
pub mod front;

pub use execd_core::{config, engine, keeper, limits, pure, session, sys, wire};
