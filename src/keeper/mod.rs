//! `execd --keeper` (architecture.md, The keeper) is a helper process. One helper writes the logs,
//! so that the loop never waits for a disk. The other one, the guard, ends the sessions of an execd
//! that was killed, and never touches a disk.
//!
//! | file | what |
//! |---|---|
//! | `frames`, `records` | the formats on their three pipes |
//! | `place` | the log directory |
//! | `writer` | the logs |
//! | `one_log` | one of them and its books |
//! | `bounded` | its file, which loses its oldest bytes |
//! | `meta` | the facts beside each log |
//! | `index` | which bytes of a log are of which stream, and what it lacks |
//! | `range` | parts of a session's output, read from its log |
//! | `guard` | the recorded sessions and their end |
//! | `mod` | flags, and the loops that wait for the pipes |
//!
//! While there is nothing to do, each sleeps in one poll without a timeout. Each ends with 0 when
//! its pipe from execd has ended, and with 2 when what that pipe brings makes no sense.

mod bounded;
pub mod frames;
pub mod guard;
mod index;
pub mod meta;
mod one_log;
pub mod place;
pub mod range;
pub mod records;
pub mod writer;

use crate::limits::{CLEAN_EVERY_S, CLEAN_PAUSE_MS, LOG_KEEP_DAYS, MAX_LOG_KEEP_DAYS, NS_PER_MS};
use crate::pure::buffer::bound::Bounds;
use crate::sys::clock;
use crate::sys::io::{self, Io};
use crate::sys::keeper_calls::{self, GUARD_NAME, WRITER_NAME};
use crate::sys::log_place::Wanted;
use crate::sys::poll::{self, Watch};
use frames::{Ack, Frame, FrameDecoder, Nonsense};
use guard::Guard;
use std::ffi::OsString;
use std::os::fd::RawFd;
use writer::Writer;

/// Bytes the keeper reads from the log pipe at a time.
const KEEPER_READ_BYTES: usize = 128 * 1024;

/// The descriptors that the log writer is started with: frames come from the first one,
/// acknowledgements go to the second one.
const WRITER_PIPES: (RawFd, RawFd) = (0, 1);
/// The descriptor that the guard's records come from.
const GUARD_PIPE: RawFd = 0;
/// Exit status after flags or frames that make no sense.
const EXIT_NONSENSE: i32 = 2;
/// Longest value of --instance.
const MAX_INSTANCE_BYTES: usize = 64;
/// Between two looks for logs to be deleted.
const CLEAN_EVERY_MS: u64 = 1_000 * CLEAN_EVERY_S.unsigned_abs();
/// Bytes behind a record that are written at a time: PIPE_BUF.
const BEHIND_PIECE_BYTES: usize = 4096;
/// A pipe from execd is something else than that.
const UNREADABLE: Nonsense = Nonsense("a pipe cannot be read");
/// Guard records read at a time: a round number of records, though none is needed.
const GUARD_READ_BYTES: usize = 64 * frames::GUARD_RECORD_BYTES;

/// What execd starts a helper with.
#[derive(Debug)]
struct Flags {
    /// None: `--no-log`.
    log_dir: Option<Wanted>,
    keep_days: u64,
    /// The first look for logs to be deleted comes with the start, not an hour later.
    cleans: bool,
    bounds: Bounds,
    execd_pid: i32,
    instance: String,
    /// It is the guard, not the log writer.
    guards: bool,
}

/// Runs a helper until execd is gone: the log writer on fds 0 (log pipe) and 1 (ack pipe), or the
/// guard on fd 0. Takes the program's arguments without its name; gives the exit status.
pub fn main(args: impl IntoIterator<Item = OsString>) -> i32 {
    let flags = match parse(args) {
        Ok(flags) => flags,
        Err(error) => {
            keeper_calls::complain(&format!("execd --keeper is for execd itself: {error}"));
            return EXIT_NONSENSE;
        }
    };
    keeper_calls::settle(if flags.guards { GUARD_NAME } else { WRITER_NAME });
    let served = if flags.guards {
        watch(&mut Guard::new(&flags.instance, flags.execd_pid), GUARD_PIPE)
    } else {
        let (writer, told) = place::open(flags.log_dir.as_ref(), flags.bounds);
        let mut keeper = Keeper::new(WRITER_PIPES, writer);
        keeper.tell_place(told).and_then(|()| {
            let wait_ms = if flags.cleans { CLEAN_PAUSE_MS } else { CLEAN_EVERY_MS };
            keeper.writer.keep(flags.keep_days, clock::now_ns() + wait_ms * NS_PER_MS);
            keeper.serve()
        })
    };
    if served.is_ok() { 0 } else { EXIT_NONSENSE }
}

/// The guard's whole life: it learns who is to be ended until its pipe hangs up, and touches no
/// disk.
fn watch(guard: &mut Guard, pipe: RawFd) -> Result<(), Nonsense> {
    let mut buffer = [0; GUARD_READ_BYTES];
    loop {
        poll::is_readable(pipe, None);
        match io::read(pipe, &mut buffer) {
            Io::Moved(len) => guard.feed(&buffer[..len])?,
            Io::WouldBlock => {}
            Io::Ended => {
                guard.hung_up();
                return Ok(());
            }
            Io::HungUp | Io::Failed(_) => return Err(UNREADABLE),
        }
    }
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Flags, lexopt::Error> {
    use lexopt::prelude::*;
    let mut parser = lexopt::Parser::from_args(args);
    let (mut log_dir, mut no_log, mut keep_days) = (None, false, LOG_KEEP_DAYS);
    let mut cleans = true;
    let (mut execd_pid, mut instance, mut guards) = (None, None, false);
    let mut bounds = Bounds::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("keeper") => {}
            Long("log-dir") => log_dir = Some(Wanted::Given(parser.value()?.into())),
            Long("default-log-dir") => log_dir = Some(Wanted::Default(parser.value()?.into())),
            Long("no-log") => no_log = true,
            Long("log-keep-days") => keep_days = parser.value()?.parse()?,
            Long("leave-old-logs") => cleans = false,
            Long("log-max-bytes") => bounds.max_bytes = Some(parser.value()?.parse()?),
            Long("log-keep-bytes") => bounds.keep_bytes = Some(parser.value()?.parse()?),
            Long("log-total-bytes") => bounds.total_bytes = Some(parser.value()?.parse()?),
            Long("execd-pid") => execd_pid = Some(parser.value()?.parse()?),
            Long("guard") => guards = true,
            Long("instance") => instance = Some(parser.value()?.string()?),
            other => return Err(other.unexpected()),
        }
    }
    // An empty instance would be the mark of every process that has the variable empty.
    let is_id = |text: &String| {
        (1..=MAX_INSTANCE_BYTES).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if log_dir.is_none() && !no_log && !guards {
        return Err("--log-dir, --no-log or --guard is needed".into());
    }
    Ok(Flags {
        log_dir: log_dir.filter(|_| !no_log),
        keep_days: keep_days.min(MAX_LOG_KEEP_DAYS),
        cleans,
        bounds,
        execd_pid: execd_pid.ok_or("--execd-pid is needed")?,
        instance: instance.filter(is_id).ok_or("--instance needs hexadecimal digits")?,
        guards,
    })
}

/// The log writer's loop.
struct Keeper {
    log: RawFd,
    acks: RawFd,
    frames: FrameDecoder,
    writer: Writer,
}

impl Keeper {
    fn new((log, acks): (RawFd, RawFd), writer: Writer) -> Keeper {
        Keeper { log, acks, frames: FrameDecoder::default(), writer }
    }

    /// Works until the log pipe has ended.
    fn serve(&mut self) -> Result<(), Nonsense> {
        let mut buffer = vec![0; KEEPER_READ_BYTES];
        while self.read_log(&mut buffer)? {}
        self.writer.close_all();
        self.writer.end_cleaning();
        Ok(())
    }

    fn tell_place(&self, told: Option<place::Told>) -> Result<(), Nonsense> {
        let Some((ack, bytes)) = told else { return Ok(()) };
        self.send(&ack, &bytes)
    }

    /// Takes in what has come; false at the pipe's end.
    fn read_log(&mut self, buffer: &mut [u8]) -> Result<bool, Nonsense> {
        let due_ns = self.writer.due_ns();
        let ready = poll::is_readable(self.log, due_ns);
        self.writer.clean();
        self.writer.write_facts(!ready);
        self.send_told()?;
        if !ready {
            return Ok(true);
        }
        let mut input = match io::read(self.log, buffer) {
            Io::Moved(len) => &buffer[..len],
            Io::WouldBlock => return Ok(true),
            Io::Ended => return Ok(false),
            Io::HungUp | Io::Failed(_) => return Err(UNREADABLE),
        };
        while let Some(frame) = self.frames.next(&mut input)? {
            self.take(frame)?;
        }
        self.writer.write_indexes();
        Ok(true)
    }

    fn take(&mut self, frame: Frame) -> Result<(), Nonsense> {
        let mut behind = Vec::new();
        let ack = match frame {
            Frame::Open { session, name } => Some(self.writer.open(session, &name)),
            Frame::Reopen { session, log } => Some(self.writer.reopen(session, &log)),
            Frame::Data { session, source, bytes } => self.writer.data(session, source, bytes),
            Frame::Sync { session, token } => Some(self.writer.sync(session, token)),
            Frame::ReadRange(asked) => {
                let ack;
                (ack, behind) = self.writer.range(&asked);
                Some(ack)
            }
            Frame::Close { session } => {
                self.writer.close(session);
                None
            }
            Frame::Facts { session, line } => {
                self.writer.facts(session, line);
                None
            }
        };
        ack.iter().try_for_each(|ack| self.send(ack, &behind))?;
        self.send_told()
    }

    /// Tells of other logs than the one that was just dealt with.
    fn send_told(&mut self) -> Result<(), Nonsense> {
        self.writer.take_told().iter().try_for_each(|ack| self.send(ack, &[]))
    }

    /// Sends an acknowledgement, and the bytes that stand behind it, in pieces that a pipe takes
    /// whole or not at all (PIPE_BUF, pipe(7)). An execd that is gone needs none; its logs are
    /// written all the same.
    fn send(&self, ack: &Ack, behind: &[u8]) -> Result<(), Nonsense> {
        let ack = ack.encode();
        for piece in [&ack[..]].into_iter().chain(behind.chunks(BEHIND_PIECE_BYTES)) {
            loop {
                match io::write(self.acks, piece) {
                    Io::Moved(_) => break,
                    // Somebody made the pipe non-blocking; the wait is the same.
                    Io::WouldBlock => {
                        poll::wait_for(&mut [Watch::new(self.acks, false, true)], None);
                    }
                    Io::Ended | Io::HungUp => return Ok(()),
                    Io::Failed(_) => return Err(Nonsense("a pipe cannot be written")),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
