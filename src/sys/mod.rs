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
//! | `index_files` | the file that tells whose the bytes of a log are |
//! | `log_bound` | giving the beginning of a log back to its disk |
//! | `log_files` | the log directory and its files |
//! | `log_list` | which logs there are, newest first |
//! | `log_meta` | the files of facts beside the logs |
//! | `log_place` | which directory logs go to |
//! | `log_clean`, `log_total` | deleting old logs, and those that are too much |
//! | `log_clean_now` | deleting logs because a person wants it |
//! | `log_walk`, `log_stamp` | what both do: the names in a directory, the stamps of looks |
//! | `keeper_calls` | making the keeper's processes what they are |
//! | `host` | facts about this process: environment, limits, ids |
//!
//! Each of these files says what the kernel said, as values or as errnos; what follows from it is
//! decided above. Nothing here knows sessions, requests or JSON.
#![allow(unsafe_code)]

pub mod agent_dirs;
pub mod child;
pub mod clock;
pub mod doing;
pub mod errno;
pub mod given;
pub mod host;
pub mod index_files;
pub mod io;
pub mod keeper_calls;
pub mod listeners;
pub mod log_bound;
pub mod log_clean;
pub mod log_clean_now;
pub mod log_files;
pub mod log_list;
pub mod log_meta;
pub mod log_place;
mod log_stamp;
pub mod log_total;
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
