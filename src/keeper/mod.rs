//! `execd --keeper` (architecture.md, The keeper), two processes: one writes the logs, so that the
//! loop never waits for a disk; the other, the guard, ends the sessions of an execd that was
//! killed, and never touches a disk.
//!
//! | file | what |
//! |---|---|
//! | `frames`, `records` | the formats on their three pipes |
//! | `place` | the log directory |
//! | `writer` | the logs |
//! | `one_log` | one of them and its books |
//! | `index` | whose the bytes of a log are that two streams share |
//! | `guard` | the recorded sessions and their end |
//! | `record` | the same on disk, for when the guard is killed too |
//! | here | flags, and the loops that wait for the pipes |
//!
//! Idle each sleeps in one poll without a timeout. It ends with 0 when its pipe from execd
//! has ended, and with 2 when what that brings makes no sense.

pub mod frames;
pub mod guard;
mod index;
mod one_log;
pub mod place;
pub mod record;
pub mod records;
pub mod writer;

use crate::limits::{
    EXECD_END_PAUSE_MS, EXECD_END_WAIT_MS, KEEPER_READ_BYTES, LOG_KEEP_DAYS, MAX_LOG_KEEP_DAYS,
};
use crate::sys::keeper_calls::{self, Pipes, Role};
use crate::sys::log_place::Wanted;
use crate::sys::start_pages;
use frames::{Ack, Frame, FrameDecoder, GuardEvent, Nonsense};
use guard::Guard;
use record::Record;
use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
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
    log_dir: Option<Wanted>,
    keep_days: u64,
    /// It looks for old logs at its start.
    cleans: bool,
    max_bytes: Option<u64>,
    execd_pid: i32,
    instance: String,
    /// None: both.
    role: Option<Role>,
}

/// Runs the keeper until execd is gone: on fds 0 (log pipe), 1 (ack pipe) and 2 (guard pipe) as
/// two processes, or as the one that its flags ask for. Takes the program's arguments without its
/// name; gives the exit status.
pub fn main(args: impl IntoIterator<Item = OsString>) -> i32 {
    let flags = match parse(args) {
        Ok(flags) => flags,
        Err(error) => {
            keeper_calls::complain(&format!("execd --keeper is for execd itself: {error}"));
            return EXIT_NONSENSE;
        }
    };
    let role = flags.role.unwrap_or_else(keeper_calls::split);
    keeper_calls::settle(role);
    let mut guard = Guard::new(&flags.instance, flags.execd_pid);
    let served = match role {
        Role::Guard => watch(&mut guard, keeper_calls::guard_pipe()),
        Role::Sweep => {
            record::end_what_is_left();
            Ok(())
        }
        Role::Writer => {
            let (writer, told) = place::open(flags.log_dir.as_ref(), flags.max_bytes);
            let execd = (flags.execd_pid, flags.instance.as_str());
            let pipes = keeper_calls::writer_pipes();
            let mut keeper = Keeper::new(pipes, writer, guard, execd);
            keeper.tell_place(told).and_then(|()| {
                start_pages::give_back();
                keeper.writer.keep(flags.keep_days);
                if flags.cleans {
                    keeper.writer.begin_cleaning(flags.keep_days);
                }
                keeper.serve()
            })
        }
    };
    if served.is_ok() { 0 } else { EXIT_NONSENSE }
}

/// The guard's whole life: it learns who is to be ended until its pipe hangs up, and touches no
/// disk.
fn watch(guard: &mut Guard, pipe: BorrowedFd) -> Result<(), Stop> {
    let mut buffer = [0; GUARD_READ_BYTES];
    start_pages::give_back();
    loop {
        keeper_calls::wait(pipe, None)?;
        match keeper_calls::read(pipe, &mut buffer)? {
            Some(len) => guard.feed(buffer.get(..len).unwrap_or_default())?,
            None => {
                guard.hung_up();
                return Ok(());
            }
        }
    }
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Flags, lexopt::Error> {
    use lexopt::prelude::*;
    let mut parser = lexopt::Parser::from_args(args);
    let (mut log_dir, mut no_log, mut keep_days) = (None, false, LOG_KEEP_DAYS);
    let mut cleans = true;
    let (mut max_bytes, mut execd_pid, mut instance, mut role) = (None, None, None, None);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("keeper") => {}
            Long("log-dir") => log_dir = Some(Wanted::Given(parser.value()?.into())),
            Long("default-log-dir") => log_dir = Some(Wanted::Default(parser.value()?.into())),
            Long("no-log") => no_log = true,
            Long("log-keep-days") => keep_days = parser.value()?.parse()?,
            Long("leave-old-logs") => cleans = false,
            Long("log-max-bytes") => max_bytes = Some(parser.value()?.parse()?),
            Long("execd-pid") => execd_pid = Some(parser.value()?.parse()?),
            Long("only-writer") => role = Some(Role::Writer),
            Long("only-guard") => role = Some(Role::Guard),
            Long("only-sweep") => role = Some(Role::Sweep),
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
        cleans,
        max_bytes,
        execd_pid: execd_pid.ok_or("--execd-pid is needed")?,
        instance: instance.filter(is_id).ok_or("--instance needs hexadecimal digits")?,
        role,
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

/// The log writer's loop.
struct Keeper<'a> {
    pipes: Pipes<'a>,
    frames: FrameDecoder,
    writer: Writer,
    /// What the guard knows, for when there is none.
    guard: Guard,
    /// The same on disk, for when nobody is left.
    record: Record,
    execd_pid: i32,
}

impl<'a> Keeper<'a> {
    fn new(
        pipes: Pipes<'a>,
        writer: Writer,
        guard: Guard,
        (execd_pid, instance): (i32, &str),
    ) -> Keeper<'a> {
        let (frames, record) = (FrameDecoder::default(), Record::new(instance, execd_pid));
        Keeper { pipes, frames, writer, guard, record, execd_pid }
    }

    /// Works until the log pipe has ended.
    fn serve(&mut self) -> Result<(), Stop> {
        let mut buffer = vec![0; KEEPER_READ_BYTES];
        while self.read_log(&mut buffer)? {}
        self.writer.close_all();
        if self.guard.said_goodbye() || self.execd_is_gone() {
            // Where nobody could be looked for, the next execd does it.
            if self.guard.hung_up() {
                self.record.delete();
            }
        }
        Ok(())
    }

    fn tell_place(&self, told: Option<place::Told>) -> Result<(), Stop> {
        let Some((ack, bytes)) = told else { return Ok(()) };
        self.send(ack)?;
        self.send_page(&bytes)
    }

    /// Whether execd has ended, where its pipe has: one that gave this process up and started
    /// another keeps its sessions. Its pipes end a moment before it does.
    fn execd_is_gone(&self) -> bool {
        let looks = EXECD_END_WAIT_MS / EXECD_END_PAUSE_MS;
        (0..looks).any(|_| {
            let gone = keeper_calls::parent() != self.execd_pid;
            if !gone {
                keeper_calls::pause(EXECD_END_PAUSE_MS);
            }
            gone
        })
    }

    /// Takes in what has come; false at the pipe's end.
    fn read_log(&mut self, buffer: &mut [u8]) -> Result<bool, Stop> {
        let ready = keeper_calls::wait(self.pipes.log, self.writer.clean_in_ms())?;
        self.writer.clean();
        if !ready {
            return Ok(true);
        }
        let Some(len) = keeper_calls::read(self.pipes.log, buffer)? else {
            return Ok(false);
        };
        let mut input = buffer.get(..len).unwrap_or_default();
        while let Some(frame) = self.frames.next(&mut input)? {
            // All sessions that a new writer is told of go down at once; none waits for a log.
            if !matches!(frame, Frame::Guard(_)) {
                self.record.write();
            }
            self.take(frame)?;
        }
        self.writer.write_indexes();
        self.record.write();
        Ok(true)
    }

    fn take(&mut self, frame: Frame) -> Result<(), Stop> {
        self.take_one(frame)?;
        self.writer.take_told().into_iter().try_for_each(|ack| self.send(ack))
    }

    fn take_one(&mut self, frame: Frame) -> Result<(), Stop> {
        match frame {
            Frame::Open { session, name } => {
                let ack = self.writer.open(session, &name);
                self.send(ack)?;
            }
            Frame::Reopen { session, log } => {
                let ack = self.writer.reopen(session, &log);
                self.send(ack)?;
            }
            Frame::Data { session, source, bytes } => {
                if let Some(ack) = self.writer.data(session, source, bytes) {
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
            Frame::Guard(event) => {
                self.guard.take(event);
                self.record.note(event);
            }
            Frame::Goodbye => self.guard.take(GuardEvent::Goodbye),
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
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
