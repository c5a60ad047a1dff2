//! The process `execd --keeper` (architecture.md, 6): writes the logs, so that the loop never
//! waits for a disk, and ends the sessions of an execd that was killed.
//!
//! | file | what |
//! |---|---|
//! | `frames`, `records` | the formats on its three pipes |
//! | `writer` | the logs and their books |
//! | `guard` | the recorded sessions and their end |
//! | here | flags, and the loop that waits for the pipes |
//!
//! Idle it sleeps in one poll without a timeout. It ends with 0 when both pipes from execd
//! have ended, and with 2 when what they bring makes no sense.

pub mod frames;
pub mod guard;
pub mod records;
pub mod writer;

use crate::limits::{KEEPER_READ_BYTES, LOG_KEEP_DAYS, MAX_LOG_KEEP_DAYS};
use crate::sys::keeper_calls::{self, Pipes};
use crate::sys::log_files::{ENOENT, LogDir, errno_of};
use frames::{Ack, Frame, FrameDecoder, Nonsense};
use guard::Guard;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use writer::Writer;

/// Exit status after flags or frames that make no sense.
const EXIT_NONSENSE: i32 = 2;
/// Longest value of --instance.
const MAX_INSTANCE_BYTES: usize = 64;
/// Bytes of a page written at a time: PIPE_BUF.
const PAGE_PIECE_BYTES: usize = 4096;
/// Guard records read at a time: a round number of records, though none is needed.
const GUARD_READ_BYTES: usize = 64 * frames::GUARD_RECORD_BYTES;

/// What execd starts its keeper with.
#[derive(Debug)]
struct Flags {
    /// None: `--no-log`.
    log_dir: Option<PathBuf>,
    keep_days: u64,
    max_bytes: Option<u64>,
    execd_pid: i32,
    instance: String,
}

/// Runs the keeper on fds 0 (log pipe), 1 (ack pipe) and 2 (guard pipe) until execd is gone.
/// Takes the program's arguments without its name; gives the exit status.
pub fn main(args: impl IntoIterator<Item = OsString>) -> i32 {
    let flags = match parse(args) {
        Ok(flags) => flags,
        Err(error) => {
            keeper_calls::complain(&format!("execd --keeper is for execd itself: {error}"));
            return EXIT_NONSENSE;
        }
    };
    keeper_calls::settle();
    let dir = match &flags.log_dir {
        Some(path) => LogDir::open(path).map_err(|error| errno_of(&error)),
        // No Open should come then; if one does, it is refused.
        None => Err(ENOENT),
    };
    if let Ok(dir) = &dir {
        dir.delete_old(flags.keep_days);
    }
    let writer = Writer::new(dir, flags.max_bytes);
    let guard = Guard::new(&flags.instance, flags.execd_pid);
    match Keeper::new(keeper_calls::own_pipes(), writer, guard).serve() {
        Ok(()) => 0,
        Err(_) => EXIT_NONSENSE,
    }
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Flags, lexopt::Error> {
    use lexopt::prelude::*;
    let mut parser = lexopt::Parser::from_args(args);
    let (mut log_dir, mut no_log, mut keep_days) = (None, false, LOG_KEEP_DAYS);
    let (mut max_bytes, mut execd_pid, mut instance) = (None, None, None);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("keeper") => {}
            Long("log-dir") => log_dir = Some(PathBuf::from(parser.value()?)),
            Long("no-log") => no_log = true,
            Long("log-keep-days") => keep_days = parser.value()?.parse()?,
            Long("log-max-bytes") => max_bytes = Some(parser.value()?.parse()?),
            Long("execd-pid") => execd_pid = Some(parser.value()?.parse()?),
            Long("instance") => instance = Some(parser.value()?.string()?),
            other => return Err(other.unexpected()),
        }
    }
    // An empty instance would be the mark of every process that has the variable empty.
    let is_id = |text: &String| {
        (1..=MAX_INSTANCE_BYTES).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if log_dir.is_none() && !no_log {
        return Err("--log-dir or --no-log is needed".into());
    }
    Ok(Flags {
        log_dir: log_dir.filter(|_| !no_log),
        keep_days: keep_days.min(MAX_LOG_KEEP_DAYS),
        max_bytes,
        execd_pid: execd_pid.ok_or("--execd-pid is needed")?,
        instance: instance.filter(is_id).ok_or("--instance needs hexadecimal digits")?,
    })
}

/// Why the loop cannot go on.
#[derive(Debug)]
enum Stop {
    Nonsense(#[allow(dead_code, reason = "for whoever prints it in a test")] Nonsense),
    Pipe(#[allow(dead_code, reason = "for whoever prints it in a test")] io::Error),
}

impl From<Nonsense> for Stop {
    fn from(what: Nonsense) -> Stop {
        Stop::Nonsense(what)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Pipe(error)
    }
}

struct Keeper<'a> {
    pipes: Pipes<'a>,
    frames: FrameDecoder,
    writer: Writer,
    guard: Guard,
    log_open: bool,
    guard_open: bool,
}

impl<'a> Keeper<'a> {
    fn new(pipes: Pipes<'a>, writer: Writer, guard: Guard) -> Keeper<'a> {
        let frames = FrameDecoder::default();
        Keeper { pipes, frames, writer, guard, log_open: true, guard_open: true }
    }

    /// Works until both pipes have ended.
    fn serve(&mut self) -> Result<(), Stop> {
        let mut buffer = vec![0; KEEPER_READ_BYTES];
        while self.log_open || self.guard_open {
            let log = self.log_open.then_some(self.pipes.log);
            let guard = self.guard_open.then_some(self.pipes.guard);
            let (log_ready, guard_ready) = keeper_calls::wait(log, guard, -1)?;
            // The guard first: processes of a dead execd come before its logs.
            if guard_ready {
                self.read_guard()?;
            }
            if log_ready {
                self.read_log(&mut buffer)?;
            }
        }
        self.writer.close_all();
        Ok(())
    }

    fn read_log(&mut self, buffer: &mut [u8]) -> Result<(), Stop> {
        let Some(len) = keeper_calls::read(self.pipes.log, buffer)? else {
            self.log_open = false;
            return Ok(());
        };
        let mut input = buffer.get(..len).unwrap_or_default();
        while let Some(frame) = self.frames.next(&mut input)? {
            self.take(frame)?;
        }
        Ok(())
    }

    fn take(&mut self, frame: Frame) -> Result<(), Stop> {
        match frame {
            Frame::Open { session, name } => {
                let ack = self.writer.open(session, &name);
                self.send(ack)?;
            }
            Frame::Reopen { session, log } => {
                let ack = self.writer.reopen(session, &log);
                self.send(ack)?;
            }
            Frame::Data { session, bytes } => {
                // A write may take long on a bad disk, and much may be queued behind it.
                self.look_at_guard()?;
                if let Some(ack) = self.writer.data(session, bytes) {
                    self.send(ack)?;
                }
            }
            Frame::Sync { session, token } => {
                let ack = self.writer.sync(session, token);
                self.send(ack)?;
            }
            Frame::ReadPage(page) => {
                let (ack, bytes) = self.writer.page(&page);
                self.send(ack)?;
                self.send_page(&bytes)?;
            }
            Frame::Close { session } => self.writer.close(session),
            Frame::Goodbye => self.guard.goodbye(),
        }
        Ok(())
    }

    /// An execd that is gone needs no acks; its logs are written all the same.
    fn send(&self, ack: Ack) -> Result<(), Stop> {
        match keeper_calls::write_record(self.pipes.ack, &ack.encode()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// In pieces that a pipe takes whole or not at all: see pipe(7), PIPE_BUF.
    fn send_page(&self, bytes: &[u8]) -> Result<(), Stop> {
        for piece in bytes.chunks(PAGE_PIECE_BYTES) {
            match keeper_calls::write_record(self.pipes.ack, piece) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes in all that the guard pipe has, without waiting.
    fn look_at_guard(&mut self) -> Result<(), Stop> {
        while self.guard_open {
            let (_, ready) = keeper_calls::wait(None, Some(self.pipes.guard), 0)?;
            if !ready {
                break;
            }
            self.read_guard()?;
        }
        Ok(())
    }

    fn read_guard(&mut self) -> Result<(), Stop> {
        let mut buffer = [0; GUARD_READ_BYTES];
        match keeper_calls::read(self.pipes.guard, &mut buffer)? {
            Some(len) => self.guard.feed(buffer.get(..len).unwrap_or_default())?,
            None => {
                self.guard_open = false;
                self.guard.hung_up();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
