//! What a helper has been told of the sessions, so that one that does not read (its disk stands
//! still, somebody has stopped it) makes nothing grow.

use super::KeeperLink;
use crate::keeper::frames::{GuardRecord, push_guard_add, push_guard_remove};
use crate::limits::GUARD_STAGING_BYTES;
use crate::pure::buffer::outbox::Outbox;
use crate::session::SessionId;
use std::collections::{BTreeMap, BTreeSet};

/// The sessions by kernel session id.
type Sessions = BTreeMap<i32, GuardRecord>;
/// Puts a record into a buffer, as its pipe wants it.
type Put = fn(&mut Vec<u8>, &[u8]);

impl KeeperLink {
    /// What has gone wrong with a log, as its writer has told it, and the first byte of the output
    /// that it still has.
    pub(in crate::engine) fn log_news(&self, id: SessionId) -> Option<(Option<&str>, u64)> {
        self.logs.get(&id)?.news()
    }
}

/// What one helper was told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    sessions: Sessions,
    /// There is more to tell, once less waits.
    behind: bool,
    /// A run of pi that was not told of: that there was one is to be told also when it is over.
    run: Option<GuardRecord>,
}

impl Told {
    /// A helper that has just been started.
    pub(crate) fn nothing() -> Self {
        Self { behind: true, ..Self::default() }
    }

    /// Whether there is more to tell.
    pub(crate) fn is_behind(&self) -> bool {
        self.behind
    }

    /// The helper has learnt of this session from somebody else.
    pub(crate) fn knows(&mut self, record: GuardRecord) {
        self.sessions.insert(record.sid, record);
    }

    /// Tells what has become of the session `sid`; later, where too much waits.
    pub(crate) fn change(&mut self, sid: i32, now: &Sessions, staging: &mut Outbox, put: Put) {
        self.behind |= staging.len() >= GUARD_STAGING_BYTES;
        if self.behind {
            self.run = now.get(&sid).copied().filter(|record| record.whole).or(self.run);
        } else {
            self.tell(sid, now, staging.buffer(), put);
        }
    }

    /// Tells what could not be told before, where there is room by now.
    pub(crate) fn catch_up(&mut self, now: &Sessions, staging: &mut Outbox, put: Put) {
        if !self.behind || staging.len() >= GUARD_STAGING_BYTES {
            return;
        }
        self.behind = false;
        if let Some(run) = self.run.take() {
            self.tell(run.sid, &Sessions::from_iter([(run.sid, run)]), staging.buffer(), put);
        }
        let sids: BTreeSet<i32> = self.sessions.keys().chain(now.keys()).copied().collect();
        for sid in sids {
            self.tell(sid, now, staging.buffer(), put);
        }
    }

    fn tell(&mut self, sid: i32, now: &Sessions, out: &mut Vec<u8>, put: Put) {
        let (record, told) = (now.get(&sid).copied(), self.sessions.get(&sid).copied());
        let mut bytes = Vec::new();
        match record {
            _ if record == told => return,
            Some(record) => {
                push_guard_add(&mut bytes, record);
                self.sessions.insert(sid, record);
            }
            None => {
                push_guard_remove(&mut bytes, sid);
                self.sessions.remove(&sid);
            }
        }
        put(out, &bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::guard::put_bare;
    use super::*;
    use crate::keeper::frames::{GuardDecoder, GuardEvent};

    /// Each session of a helper that did not read took its records' room for ever.
    /// rule: architecture.md, The keeper: What waits for a helper that does not read is bounded
    #[test]
    fn what_waits_for_a_helper_that_does_not_read_is_bounded_and_it_learns_all_later() {
        let (mut told, mut staging, mut now) = (Told::default(), Outbox::new(), Sessions::new());
        for n in 0..100_000 {
            let record =
                GuardRecord { sid: 2 + n % 4_000, start_ticks: 7, session: 1, whole: n == 90_000 };
            now.insert(record.sid, GuardRecord { session: n as u64, ..record });
            told.change(record.sid, &now, &mut staging, put_bare);
            if n % 3 > 0 {
                now.remove(&record.sid);
                told.change(record.sid, &now, &mut staging, put_bare);
            }
        }
        assert!(told.is_behind() && staging.len() <= GUARD_STAGING_BYTES + 64);
        let (mut seen, mut runs, mut decoder) = (Sessions::new(), 0, GuardDecoder::default());
        while !staging.is_empty() {
            let mut bytes = staging.front();
            while let Some(event) = decoder.next(&mut bytes).unwrap() {
                match event {
                    GuardEvent::Add(record) => {
                        runs += usize::from(record.whole);
                        seen.insert(record.sid, record);
                    }
                    GuardEvent::Remove(sid) => _ = seen.remove(&sid),
                    GuardEvent::Goodbye => {}
                }
            }
            staging.consume(staging.len());
            told.catch_up(&now, &mut staging, put_bare);
        }
        assert!(!told.is_behind() && runs == 1 && !seen.is_empty());
        assert_eq!(seen, now);
    }
}
