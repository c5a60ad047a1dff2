//! Answers who asks for parts of a session's output (`range`).

use super::Writer;
use crate::keeper::frames::{Ack, AckKind};
use crate::keeper::log_bytes::{self, Layout};
use crate::keeper::range;
use crate::keeper::range_record::ReadRange;
use crate::sys::clock;
use crate::sys::io::ENOENT;

impl Writer {
    /// Reads a part of a session's output, also where the session is gone: what is said of it, and
    /// the bytes that stand behind that. What was handed over before is in it.
    pub fn range(&mut self, asked: &ReadRange) -> (Ack, Vec<u8>) {
        self.look_at_log(&asked.name);
        if !self.logs.values().any(|log| log.name == asked.name) {
            // How long the segments of a log that was closed are is told by its facts.
            self.write_facts_of(&asked.name);
        }
        let log = self.logs.values().find(|log| log.name == asked.name);
        let read = self.dir().and_then(|dir| match log {
            Some(log) => {
                let layout = Layout {
                    kept_from: log.state.from,
                    size: log.logged.saturating_add(log.state.noted),
                    segment_bytes: log.segment_bytes(),
                };
                range::read_live(dir, &log.name, &asked.wanted, (&log.index, layout))
            }
            None => match log_bytes::check(dir, &asked.name) {
                Ok(()) | Err(ENOENT) => range::read(dir, &asked.name, &asked.wanted),
                Err(errno) => Err(-errno),
            },
        });
        let errno = read.as_ref().err().copied().unwrap_or(0);
        let bytes = read.map_or_else(|_| Vec::new(), |found| found.encode());
        let ack = Ack {
            token: asked.token,
            missing: bytes.len() as u64,
            errno,
            failing: errno != 0,
            ..Ack::of(AckKind::Range)
        };
        (ack, bytes)
    }

    /// A log that was deleted, or in whose place there is another file, is not read on.
    fn look_at_log(&mut self, name: &str) {
        self.look_at_dir();
        let found = self.logs.iter_mut().find(|(_, log)| log.name == name);
        if let Some((&session, log)) = found {
            log.looked_ns = clock::now_ns();
            if log.notice_gone(self.dir.as_ref().ok()) {
                self.told.push(log.ack(AckKind::Trouble, session, 0));
            }
        }
    }
}
