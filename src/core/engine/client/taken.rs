//! What a client's reader has taken of what was written to it, and how long it is waited for at the
//! end (protocol.md, How execd ends).

use super::Client;
impl Client {
    /// What lies in its output that its reader has not taken, while there is more to write. A
    /// reader that takes a line now and then makes no room in a pipe for long: a page has room
    /// when it is empty.
    pub fn untaken(&self) -> usize {
        if self.outbox.is_empty() { 0 } else { self.output.unread() }
    }

    /// Whether it has not all that was written to it, and has read from its pipe before: it is no
    /// reader that never reads, but a shell's loop, say, that is at work on a line.
    pub fn is_slow(&self) -> bool {
        let reads = || self.output.is_pipe() && self.written > self.output.unread() as u64;
        !self.outbox.is_empty() && !self.left && !self.reader_gone && reads()
    }
}
