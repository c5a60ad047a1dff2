//! Every system call of execd and all of its `unsafe` (src/lib.rs has the table of the rooms).
//!
//! | file | what it wraps |
//! |---|---|
//! | `io` | read, write and pipes of raw descriptors, as one enum of outcomes; errnos |
//! | `poll` | waiting for descriptors |
//! | `stdio` | stdin and stdout of whatever kind, without leaking O_NONBLOCK |
//! | `terminal` | the terminal that somebody sits at |
//! | `clock` | the monotonic and the wall clock, and their timerfds |
//! | `signals` | the signalfd, and what children must find reset |
//! | `spawn` | the path from clone to exec, with failures as (step, errno) |
//! | `raw` | system calls that touch no errno, for a new process in our memory |
//! | `pty` | opening, sizing and asking pseudo-terminals |
//! | `child` | waiting for children |
//! | `pidfd` | processes by descriptors that mean no other |
//! | `proc` | /proc, and signals through verified pidfds |
//! | `proc_view` | whether /proc tells of the processes here |
//! | `tree` | the processes of a session, from its leader down |
//! | `listeners` | TCP listeners, and whose descriptors they are |
//! | `tcp` | connections to servers on this machine |
//! | `doing` | what the threads of other processes wait on |
//! | `proc_work` | what other processes are at: their pipes, their CPU time |
//! | `socket` | the control socket: listening, connecting, who knocks |
//! | `agent_dirs` | directories and prompts of runs of pi, with locks that outlive nobody |
//! | `memory_file` | a file in memory that is gone with its owner |
//! | `beside_files` | the index and the facts beside a log, and parts of the log |
//! | `log_files` | the log directory and its files |
//! | `log_place` | which directory logs go to |
//! | `log_walk` | the names in the log directory: which logs there are |
//! | `log_clean` | deleting logs that are old, or too much, or that a person wants gone |
//! | `keeper_calls` | making the keeper's processes what they are |
//! | `host` | facts about this process: environment, limits, ids |
//!
//! Each of these files says what the kernel said, as values or as errnos; what follows from it is
//! decided above. Nothing here knows sessions, requests or JSON.
#![allow(unsafe_code)]

pub mod agent_dirs;
pub mod beside_files;
pub mod child;
pub mod clock;
pub mod doing;
pub mod errno;
pub mod given;
pub mod host;
pub mod io;
pub mod keeper_calls;
pub mod listeners;
pub mod log_clean;
pub mod log_files;
pub mod log_place;
pub mod log_walk;
pub mod memory_file;
pub mod pidfd;
pub mod poll;
pub mod proc;
pub mod proc_view;
pub mod proc_work;
pub mod pty;
mod raw;
pub mod signals;
pub mod socket;
pub mod spawn;
pub mod stdio;
pub mod tcp;
pub mod terminal;
pub mod tree;
