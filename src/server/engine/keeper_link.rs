//! The loop's side of the keeper: three non-blocking pipes, what waits for them, and what is
//! done when it dies (architecture.md, The keeper). With `--no-keeper` the same books are kept and
//! the files are written right here, a bounded amount a turn.

mod facts;
mod guard;
pub mod logs;
mod pages;
mod passing;
mod place;
mod process;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};

pub use place::{Place, flags_of, no_logs};

use crate::keeper::frames::{
    Ack, AckDecoder, AckKind, GuardRecord, Nonsense, push_close, push_data_header, push_open,
    push_sync,
};
use crate::keeper::writer::Writer;
use crate::limits::{LOG_FRAME_BYTES, LOG_STAGING_BYTES};
use crate::pure::buffer::bound::Bounds;
use crate::pure::buffer::outbox::Outbox;
use crate::pure::buffer::source::Source;
use crate::pure::time::restarts::Restarts;
use crate::server::session::SessionId;
use crate::sys::io::{self, Io};
use logs::{Log, LogStatus};

/// Bytes written to the log pipe in one turn.
const LOG_WRITE_TURN_BYTES: usize = 1024 * 1024;

/// Bytes of logs whose session is gone that wait for a stalled disk, all together.
const ORPHAN_LOG_BYTES: usize = 16 * 1024 * 1024;

/// A running log writer.
#[derive(Debug)]
struct Keeper {
    pid: i32,
    log: OwnedFd,
    acks: OwnedFd,
}

/// Who writes the log files.
#[derive(Debug)]
enum Hand {
    /// The helper process, while it is there.
    Process(Option<Keeper>),
    /// Ourselves (`--no-keeper`).
    Inline(Box<Writer>),
}

/// How the helpers are started, and started again.
#[derive(Debug)]
pub struct KeeperPlan {
    /// The flags of both.
    pub flags: Vec<CString>,
    /// More of them, for the log writer: which directory logs go to.
    pub place: Vec<CString>,
    /// execd's own process id.
    pub execd_pid: i32,
    /// Its environment.
    pub envp: Vec<CString>,
    /// How large logs become.
    pub bounds: Bounds,
    /// Texts name logs by their paths, not by their short names.
    pub by_path: bool,
}

/// The link to whoever writes the logs and guards the sessions.
#[derive(Debug)]
pub struct KeeperLink {
    hand: Hand,
    plan: KeeperPlan,
    /// The log directory.
    place: Place,
    /// What people are still to be told of it.
    place_note: Option<String>,
    logs: BTreeMap<SessionId, Log>,
    /// Logs with something to send, each at most once.
    busy: VecDeque<SessionId>,
    /// Whole frames on their way into the log pipe.
    staging: Outbox,
    guard_staging: Outbox,
    /// The guard, while there is one.
    guard: Option<guard::GuardProcess>,
    /// The guard reads its pipe no more.
    guard_is_gone: bool,
    /// Helpers that tidy up, by pid, until they are reaped.
    others: BTreeSet<i32>,
    /// The sessions that a new guard has to be told, by kernel session id.
    guarded: BTreeMap<i32, GuardRecord>,
    ack_bytes: AckDecoder,
    writer_restarts: Restarts,
    guard_restarts: Restarts,
    /// Bytes in queues of logs whose session is gone.
    orphan_bytes: usize,
    /// How often the log pipe was full.
    pub stalls: u64,
    /// Bytes handed over.
    pub bytes_handed: u64,
    /// The log pipe said EAGAIN and has not become writable since.
    pipe_full: bool,
    /// Made for the first flood.
    tray: Option<passing::Tray>,
    /// What is asked of logs, and what has come of it.
    reading: pages::Reading,
}

impl KeeperLink {
    /// A link without a keeper yet; `writer` is given with `--no-keeper`.
    pub fn new(plan: KeeperPlan, place: Place, writer: Option<Writer>) -> Self {
        let hand = writer.map_or(Hand::Process(None), |writer| Hand::Inline(Box::new(writer)));
        Self {
            hand,
            plan,
            place,
            place_note: None,
            logs: BTreeMap::new(),
            busy: VecDeque::new(),
            staging: Outbox::new(),
            guard_staging: Outbox::new(),
            guard: None,
            guard_is_gone: false,
            others: BTreeSet::new(),
            guarded: BTreeMap::new(),
            ack_bytes: AckDecoder::default(),
            writer_restarts: Restarts::default(),
            guard_restarts: Restarts::default(),
            orphan_bytes: 0,
            stalls: 0,
            bytes_handed: 0,
            pipe_full: false,
            tray: None,
            reading: pages::Reading::default(),
        }
    }

    /// Takes one record, and the bytes behind it. Whether there may be more in `input`.
    fn take_ack(
        &mut self,
        input: &mut &[u8],
        changed: &mut Vec<SessionId>,
    ) -> Result<bool, Nonsense> {
        if self.reading.coming.is_none() {
            let Some(ack) = self.ack_bytes.next(input)? else { return Ok(false) };
            if matches!(ack.kind, AckKind::Place | AckKind::Range) {
                self.reading.coming = Some((ack, Vec::new()));
            } else if let Some(log) = self.logs.get_mut(&ack.session) {
                log.acknowledge(&ack);
                changed.push(ack.session);
            }
        }
        if let Some((_, bytes)) = &mut self.reading.coming {
            bytes.extend_from_slice(self.ack_bytes.behind(input));
        }
        if self.ack_bytes.is_behind() {
            return Ok(false);
        }
        match self.reading.coming.take() {
            Some((ack, bytes)) if ack.kind == AckKind::Place => self.take_place(&ack, bytes),
            came => self.reading.take(came),
        }
        Ok(true)
    }

    // ---- Logs ----------------------------------------------------------------------------

    /// Begins a log for a session that is being started; nothing with `--no-log`.
    pub fn open(&mut self, id: SessionId, random: &str) {
        if matches!(self.place, Place::Off) {
            return;
        }
        let name = format!("execd-{id}-{}.log", random.get(..8).unwrap_or("00000000"));
        let mut log = Log::new(name);
        log.awaits_start = true;
        if matches!(self.hand, Hand::Process(None)) {
            // No keeper: the books say so until there is one.
            log.keeper_lost();
        }
        self.logs.insert(id, log);
        self.make_busy(id);
    }

    /// It is known whether the session's program could be started: if not, there is no log.
    pub fn start_is_known(&mut self, id: SessionId, runs: bool) {
        if !runs {
            self.logs.remove(&id);
        } else if let Some(log) = self.logs.get_mut(&id) {
            log.awaits_start = false;
            if let Hand::Inline(writer) = &mut self.hand {
                // Before anything is told of the session: all of that names its log.
                log.acknowledge(&writer.open(id, &log.name));
                log.open_sent = true;
            }
            self.make_busy(id);
        }
    }

    fn make_busy(&mut self, id: SessionId) {
        let Some(log) = self.logs.get_mut(&id) else { return };
        if !log.busy && log.wants_sending() {
            log.busy = true;
            self.busy.push_back(id);
        }
    }

    /// Whether a read of so many bytes may follow (always, where nothing is logged).
    pub fn has_room(&self, id: SessionId, bytes: usize) -> bool {
        self.logs.get(&id).is_none_or(|log| log.has_room(bytes))
    }

    /// Hands over bytes of one of a session's streams.
    pub fn append(&mut self, id: SessionId, source: Source, bytes: &[u8]) {
        let Some(log) = self.logs.get_mut(&id) else { return };
        log.count(source, bytes.len());
        if matches!(self.hand, Hand::Process(None)) {
            // Counted, and told by the next keeper: no child is blocked for it.
            return;
        }
        let direct = log.open_sent && log.queue.is_empty() && !self.pipe_full;
        if direct
            && self.staging.len() < LOG_STAGING_BYTES
            && let Hand::Process(Some(_)) = &self.hand
        {
            // The pipe takes it in this turn: no way through the session's own queue.
            for chunk in bytes.chunks(LOG_FRAME_BYTES) {
                push_data_header(self.staging.buffer(), id, source, chunk.len());
                self.staging.push(chunk);
            }
            self.bytes_handed += bytes.len() as u64;
            return;
        }
        log.queue.push(source, bytes);
        self.make_busy(id);
    }

    /// What has gone wrong with a log, as its writer has told it, and the first byte of the output
    /// that it still has.
    pub(in crate::server::engine) fn log_news(&self, id: SessionId) -> Option<(Option<&str>, u64)> {
        self.logs.get(&id)?.news()
    }

    /// Asks to be told when everything so far is in the file.
    pub fn ask_sync(&mut self, id: SessionId) {
        let Some(log) = self.logs.get_mut(&id) else { return };
        if !log.settled() && log.sync_wanted != Some(log.total) {
            log.sync_wanted = Some(log.total);
            self.make_busy(id);
        }
    }

    /// Whether a reply that says exited, or points at the log, may be written as far as the log
    /// goes.
    pub fn settled(&self, id: SessionId) -> bool {
        let down = matches!(self.hand, Hand::Process(None));
        self.logs.get(&id).is_none_or(|log| down || log.settled())
    }

    /// Whether a reply may name the log.
    pub fn named(&self, id: SessionId) -> bool {
        let down = matches!(self.hand, Hand::Process(None));
        self.logs.get(&id).is_none_or(|log| down || log.named())
    }

    /// An answer names the log now, whether the file exists or not.
    pub fn name_anyway(&mut self, id: SessionId) {
        self.logs.get_mut(&id).map(Log::name_anyway);
    }

    /// What a reply says of the log; `None` where nothing is logged.
    pub fn status(&self, id: SessionId) -> Option<LogStatus> {
        let bounds = self.plan.bounds;
        let is_short = !self.plan.by_path;
        self.logs.get(&id).map(|log| LogStatus { is_short, bounds, ..log.status(&self.place) })
    }

    /// The first byte of the output that a log still has, where it has lost some before it.
    pub fn log_from(&self, id: SessionId) -> Option<u64> {
        self.logs.get(&id).map(|log| log.from_output).filter(|from| *from > 0)
    }

    /// The session is gone: its log is closed when what waits has been handed over.
    pub fn close(&mut self, id: SessionId) {
        let Some(log) = self.logs.get_mut(&id) else { return };
        if self.orphan_bytes + log.queue.len() > ORPHAN_LOG_BYTES {
            // A disk that stalls for long while many sessions end: memory stays bounded.
            log.queue.clear();
        }
        self.orphan_bytes += log.queue.len();
        log.closing = true;
        let unwritten = log.awaits_start;
        self.make_busy(id);
        if unwritten || matches!(self.hand, Hand::Process(None)) {
            self.logs.remove(&id);
        }
    }

    /// Whether everything so far has been handed over and acknowledged.
    pub fn all_settled(&self) -> bool {
        let down = matches!(self.hand, Hand::Process(None));
        down || (self.staging.is_empty() && self.logs.values().all(Log::settled))
    }

    /// Asks for a sync of every log.
    pub fn ask_all_syncs(&mut self) {
        let ids: Vec<SessionId> = self.logs.keys().copied().collect();
        for id in ids {
            self.ask_sync(id);
        }
    }

    /// Whether [`Self::pump`] has something to do now.
    pub fn wants_pumping(&self) -> bool {
        let waiting = !self.staging.is_empty() || !self.busy.is_empty();
        !self.pipe_full && (waiting || self.reading.waits())
    }

    /// Moves frames into the pipe (or files), a bounded amount. `changed` gets the sessions
    /// whose queue shrank or whose log was acknowledged. False when the keeper is gone.
    pub fn pump(&mut self, changed: &mut Vec<SessionId>) -> bool {
        if matches!(self.hand, Hand::Process(None)) {
            // Nobody to send to: a new keeper is told everything when it starts.
            self.staging.clear();
            for id in std::mem::take(&mut self.busy) {
                if let Some(log) = self.logs.get_mut(&id) {
                    log.busy = false;
                }
            }
            return true;
        }
        let mut left = LOG_WRITE_TURN_BYTES;
        while left > 0 && !self.pipe_full {
            // What is staged already goes in the same write.
            if self.staging.len() < LOG_FRAME_BYTES {
                match self.busy.pop_front() {
                    Some(id) => {
                        changed.push(id);
                        let sent = self.send_for(id);
                        left = left.saturating_sub(sent.max(1));
                    }
                    None if self.staging.is_empty() => {
                        self.read_ranges();
                        return true;
                    }
                    None => {}
                }
            }
            let Hand::Process(Some(keeper)) = &self.hand else {
                self.staging.clear();
                continue;
            };
            while !self.staging.is_empty() {
                match io::write(keeper.log.as_raw_fd(), self.staging.front()) {
                    Io::Moved(bytes) => self.staging.consume(bytes),
                    Io::WouldBlock => {
                        self.pipe_full = true;
                        self.stalls += 1;
                        break;
                    }
                    Io::Ended | Io::HungUp | Io::Failed(_) => return false,
                }
            }
        }
        true
    }

    /// Puts the next frames of one log on their way; gives the bytes of its stream among them.
    fn send_for(&mut self, id: SessionId) -> usize {
        let Some(log) = self.logs.get_mut(&id) else { return 0 };
        log.busy = false;
        let (source, front) = log.queue.front();
        let chunk = front.len().min(LOG_FRAME_BYTES);
        let mut acks: Vec<Ack> = Vec::new();
        match &mut self.hand {
            Hand::Process(_) => {
                let out = self.staging.buffer();
                if !log.open_sent {
                    push_open(out, id, &log.name);
                }
                if chunk > 0 {
                    push_data_header(out, id, source, chunk);
                    out.extend_from_slice(&front[..chunk]);
                }
            }
            Hand::Inline(writer) => {
                // Nothing else here comes now and then.
                writer.clean();
                if !log.open_sent {
                    acks.push(writer.open(id, &log.name));
                }
                acks.extend(writer.data(id, source, &front[..chunk]));
                writer.write_indexes();
            }
        }
        log.open_sent = true;
        log.queue.consume(chunk);
        self.hand.send_facts(id, log, &mut self.staging);
        self.bytes_handed += chunk as u64;
        self.reading.sent(id, (chunk, log.queue.is_empty()), self.staging.buffer());
        if log.closing {
            self.orphan_bytes = self.orphan_bytes.saturating_sub(chunk);
        }
        if log.queue.is_empty() {
            if let Some(total) = log.sync_wanted.filter(|_| log.sync_due()) {
                log.sync_sent = Some(total);
                match &mut self.hand {
                    Hand::Process(_) => push_sync(self.staging.buffer(), id, total),
                    Hand::Inline(writer) => acks.push(writer.sync(id, total)),
                }
            }
            if log.closing {
                match &mut self.hand {
                    Hand::Process(_) => push_close(self.staging.buffer(), id),
                    Hand::Inline(writer) => writer.close(id),
                }
                self.logs.remove(&id);
                return chunk;
            }
        }
        for ack in &acks {
            log.acknowledge(ack);
        }
        if let Hand::Inline(writer) = &mut self.hand {
            for ack in writer.take_told() {
                if let Some(log) = self.logs.get_mut(&ack.session) {
                    log.acknowledge(&ack);
                }
            }
        }
        self.make_busy(id);
        chunk
    }

    /// Takes in what the keeper acknowledged; `changed` gets the sessions concerned. False when
    /// the keeper is gone.
    pub fn take_acks(&mut self, buffer: &mut [u8], changed: &mut Vec<SessionId>) -> bool {
        loop {
            let Hand::Process(Some(keeper)) = &self.hand else { return true };
            let bytes = match io::read(keeper.acks.as_raw_fd(), buffer) {
                Io::Moved(bytes) => bytes,
                Io::WouldBlock => return true,
                Io::Ended | Io::HungUp | Io::Failed(_) => return false,
            };
            let mut input = &buffer[..bytes];
            loop {
                match self.take_ack(&mut input, changed) {
                    Ok(true) => {}
                    Ok(false) => break,
                    // A keeper that talks nonsense is no keeper.
                    Err(_) => return false,
                }
            }
        }
    }
}
