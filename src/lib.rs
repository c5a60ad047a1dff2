//! execd: the executor that coding agents and shell scripts use to run commands they can come
//! back to. It owns the terminals and pipes of many long-lived sessions, and answers JSON-RPC
//! lines on stdin and stdout.
//!
//! The floors, from the top; an import goes down, never up and never in a circle
//! (tests/it/graph.rs):
//!
//! | floor | what is in it |
//! |---|---|
//! | [`cli`] | flags and commands |
//! | [`mcp`] | the program between a host and an execd: the Model Context Protocol |
//! | [`front`](server::front) | the table of methods, and those that are no family's |
//! | [`families`](server::families) | the families of tools, a folder each: methods, state, texts |
//! | [`engine`](server::engine) | the loop that owns and moves everything; knows no family |
//! | [`agent`] | the program that runs pi |
//! | [`wire`], [`config`] | JSON-RPC: envelopes, errors, params; the settings after checking |
//! | [`session`](server::session) | one session: processes and bytes, no JSON and no family |
//! | [`keeper`], [`client`] | the helper processes: log writer and guard; the way to an execd |
//! | [`sys`] | every system call, and all `unsafe` |
//! | [`pure`] | decisions: bytes and times in, values out |
//! | [`limits`] | every bound, named with its unit |
#![deny(unsafe_code)]
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

pub mod agent;
pub mod cli;
pub mod client;
pub mod config;
pub mod keeper;
pub mod limits;
pub mod mcp;
pub mod pure;
pub mod server;
pub mod sys;
pub mod wire;
