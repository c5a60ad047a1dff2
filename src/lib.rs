//! execd: the executor that coding agents and shell scripts use to run commands they can come
//! back to. It owns the terminals and pipes of many long-lived sessions, and answers JSON-RPC
//! lines on stdin and stdout.
//!
//! | room | what is in it | may use |
//! |---|---|---|
//! | [`limits`] | every bound, named with its unit | nothing |
//! | [`pure`] | decisions: bytes and times in, values out | limits |
//! | [`sys`] | every system call, and all `unsafe` | limits, pure |
//! | [`keeper`] | the helper processes: log writer and guard | limits, pure, sys |
//! | [`session`] | one session: processes and bytes, no JSON | limits, pure, sys, families |
//! | [`wire`] | JSON-RPC: envelopes, errors, params | limits, pure |
//! | [`engine`] | the loop that owns and moves everything | all |
//! | [`families`] | the families of tools: methods, state, reports | all |
//! | [`front`] | the table of methods, and those that are no family's | all |
//! | [`cli`] | flags, `run`, `call`, help | all |
//!
//! tests/tidy.rs holds the `use` lines against this table.
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

pub mod cli;
pub mod config;
pub mod engine;
pub mod families;
pub mod front;
pub mod keeper;
pub mod limits;
pub mod pure;
pub mod session;
pub mod sys;
pub mod wire;
