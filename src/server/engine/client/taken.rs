//! What a client's reader has taken of what was written to it, and how long it is waited for at the
//! end (protocol.md, How execd ends); what the client has sent that is not read.

use super::Client;
use crate::limits::LAST_FLUSH_MS;

/// How long one that has taken something since the end of stdin may rest before it takes more.
const SLOW_FLUSH_MS: u64 = 10_000;

impl Client {
    /// What lies in its output that its reader has not taken, while there is more to write. A
    /// reader that takes a line now and then makes no room in a pipe for long: a page has room
    /// when it is empty.
    pub fn untaken(&self) -> usize {
        if self.outbox.is_empty() { 0 } else { self.output.unread() }
    }

    /// Its input is at its end: see [`Self::rest_ms`].
    pub(super) fn end_input(&mut self) {
        self.input_ended = true;
        self.written = self.output.unread() as u64;
    }

    /// How long its reader may take nothing after the end of its input before what is unsent is
    /// given up. One that has taken something of a pipe since then is no reader that never
    /// reads, but a shell's loop, say, that is at work on a line; silence is bounded by the lease.
    pub fn rest_ms(&self, lease_ms: Option<u64>) -> u64 {
        let rests = || self.output.is_pipe() && self.written > self.output.unread() as u64;
        if self.outbox.is_empty() || !rests() {
            return LAST_FLUSH_MS;
        }
        lease_ms.map_or(SLOW_FLUSH_MS, |ms| ms.clamp(LAST_FLUSH_MS, SLOW_FLUSH_MS))
    }

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
}
