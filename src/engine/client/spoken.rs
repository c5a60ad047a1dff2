//! A client that speaks another protocol: what it says and is told goes through its codec.

use super::Client;
use crate::engine::codec::Asked;
use crate::wire::{self, RequestId};

impl Client {
    /// Notes what lies unread in its input, once its input is not read any more.
    pub fn note_unread(&mut self) {
        let is_read = !self.stopped && !self.is_held();
        self.unread = self.unread.filter(|_| !is_read);
        if !is_read && self.unread.is_none() {
            self.unread = Some(self.input.unread());
        }
    }

    /// Whether it has sent something that is not read yet, since that was last asked. Who may
    /// have no room to send more counts as one who has, where execd does not read it for its own
    /// requests' sake.
    pub fn has_sent(&mut self) -> bool {
        let unread = self.input.unread();
        let grew = self.unread.replace(unread).is_some_and(|before| before < unread);
        grew || (!self.stopped && self.is_held() && self.input.may_be_full(unread))
    }

    /// A reply in execd's own protocol stands in the buffer behind `before`.
    pub(super) fn replied(&mut self, id: &RequestId, before: usize) {
        if self.codec.is_some() {
            let line = self.outbox.buffer().split_off(before);
            return self.reply_json(id, wire::result_in(&line, id), false);
        }
        self.outbox.hold();
        self.note_level();
    }

    /// Such a notification does; true where its client speaks another protocol, and has it in that.
    pub(super) fn is_recoded(&mut self, method: &str, before: usize) -> bool {
        if self.codec.is_some() {
            let line = self.outbox.buffer().split_off(before);
            self.notify_json(method, wire::params_in(&line, method));
        }
        self.codec.is_some()
    }

    /// Takes a line of a client that speaks another protocol, and gives what it asks; `None` for a
    /// client that speaks execd's own.
    pub(in crate::engine) fn decode(&mut self, line: &[u8]) -> Option<Vec<Asked>> {
        let asked = self.codec.as_mut()?.read(line, self.outbox.buffer());
        self.active = true;
        self.outbox.hold();
        self.note_level();
        Some(asked)
    }

    /// The time has come that the client's protocol has asked for.
    pub(in crate::engine) fn tick(&mut self, now_ns: u64) {
        if self.reader_gone || self.left {
            return;
        }
        if let Some(codec) = &mut self.codec {
            codec.tick(now_ns, self.outbox.buffer());
            self.outbox.hold();
            self.note_level();
        }
    }
}
