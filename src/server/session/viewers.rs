//! Who is attached to a session, how far each has seen its output, and whose size it has
//! (people.md, The control socket).

use super::{ClientId, Session};
use crate::limits::{JIGGLE_MS, NS_PER_MS, PTY_ROWS_RANGE};
use crate::sys::pty::{self, Size};

/// A client that is attached.
#[derive(Clone, Debug)]
pub struct Viewer {
    /// The client.
    pub client: ClientId,
    /// The size of its terminal, where it has told one.
    pub size: Option<Size>,
    /// How far into the output the client has been sent it.
    pub sent: u64,
    /// The client has not been sent anything yet, and its terminal has no modes of the program's.
    pub fresh: bool,
    /// Where in the output the terminal got another size while margins were set: the margins are
    /// void from there on.
    pub margins_end: Option<u64>,
}

/// All that are attached to a session.
#[derive(Debug, Default)]
pub struct Viewers {
    /// Whoever has told its size last, else attached last, stands at the end.
    all: Vec<Viewer>,
    /// The size without anybody attached; known while one with a size is.
    own: Option<Size>,
    /// When the size that was changed to have the program redraw is put right.
    jiggle_ends_ns: Option<u64>,
}

impl Viewers {
    /// Whether nobody is attached.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many are attached.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// All of them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Viewer> {
        self.all.iter_mut()
    }

    /// The one that has told its size last, else that has attached last: its terminal answers
    /// the program's questions.
    pub fn newest(&self) -> Option<ClientId> {
        self.all.last().map(|viewer| viewer.client)
    }

    /// Whether this client is attached.
    pub fn has(&self, client: ClientId) -> bool {
        self.all.iter().any(|viewer| viewer.client == client)
    }

    /// Attaches one, in place of the client's former attachment. `now` is the size as it is.
    pub fn attach(&mut self, viewer: Viewer, now: Option<Size>) {
        self.all.retain(|other| other.client != viewer.client);
        let sized = viewer.size.is_some();
        self.all.push(viewer);
        if sized {
            self.own = self.own.or(now);
        }
    }

    /// The size of an attached client's terminal has changed: it is the newest now.
    pub fn resize(&mut self, client: ClientId, size: Size, now: Option<Size>) {
        if let Some(at) = self.all.iter().position(|viewer| viewer.client == client) {
            let viewer = self.all.remove(at);
            self.all.push(Viewer { size: Some(size), ..viewer });
            self.own = self.own.or(now);
        }
    }

    /// Somebody who is not attached has set the size. Whether it holds at once, or when all who
    /// have a size have detached.
    pub fn resize_own(&mut self, size: Size) -> bool {
        let holds = self.all.iter().all(|viewer| viewer.size.is_none());
        self.own = (!holds).then_some(size);
        if holds {
            self.jiggle_ends_ns = None;
        }
        holds
    }

    /// Detaches a client; whether it was attached.
    pub fn detach(&mut self, client: ClientId) -> bool {
        let before = self.all.len();
        self.all.retain(|viewer| viewer.client != client);
        before > self.all.len()
    }

    /// The session has ended: nobody is attached any more. Gives who was.
    pub fn take_all(&mut self) -> Vec<Viewer> {
        (self.own, self.jiggle_ends_ns) = (None, None);
        std::mem::take(&mut self.all)
    }

    /// The size that is to be in force; `None` when it is nobody's affair here. Once nobody
    /// with a size is left, the session has its own one back.
    pub fn wanted(&mut self) -> Option<Size> {
        let newest = self.all.iter().rev().find_map(|viewer| viewer.size);
        newest.or_else(|| self.own.take())
    }

    /// Has the program redraw: the size to give it for a moment, while `now` is the right one.
    pub fn begin_jiggle(&mut self, now: Size, now_ns: u64) -> Size {
        self.jiggle_ends_ns = Some(now_ns + JIGGLE_MS * NS_PER_MS);
        let rows = if now.rows > PTY_ROWS_RANGE.0 { now.rows - 1 } else { now.rows + 1 };
        self.own = self.own.or(Some(now));
        Size { rows, ..now }
    }

    /// When the size is put right.
    pub fn jiggle_ends_ns(&self) -> Option<u64> {
        self.jiggle_ends_ns
    }

    /// The size is right again.
    pub fn end_jiggle(&mut self) {
        self.jiggle_ends_ns = None;
    }
}

impl Session {
    /// The size of its terminal as it is.
    pub fn terminal_size(&self) -> Option<Size> {
        self.output.fd().filter(|_| self.facts.tty).and_then(pty::size_of)
    }

    /// Gives its terminal another size; an errno where it takes none, `None` where it is gone. As
    /// with any terminal that changes its size, margins do not outlive that: a program that
    /// redraws takes the whole screen to scroll, and does not say so. Who is attached is told of
    /// that when the session is judged.
    pub fn resize_terminal(&mut self, size: Size) -> Option<Result<(), i32>> {
        let before = self.terminal_size();
        // The kernel tells the program only when the size is another one.
        let done = self.output.fd().map(|master| pty::set_size(master, size))?;
        if done.is_ok()
            && before != Some(size)
            && self.modes.as_mut().is_some_and(|modes| modes.resized())
        {
            let at = self.tail.total_bytes();
            for viewer in self.viewers.iter_mut() {
                viewer.margins_end = Some(at);
            }
        }
        Some(done)
    }

    /// Gives its terminal the size that is to be in force.
    pub fn apply_size(&mut self) {
        let Some(size) = self.viewers.wanted() else { return };
        self.viewers.end_jiggle();
        if self.facts.tty {
            // A terminal that takes no size keeps the one it has.
            let _ = self.resize_terminal(size);
        }
    }

    /// Detaches a client; whether it was attached. Who was attached could have given input, so that
    /// what the session waits for is looked at anew.
    pub fn detach(&mut self, client: ClientId, now_ns: u64) -> bool {
        let was = self.viewers.detach(client);
        if was {
            self.apply_size();
            self.note_move(now_ns);
        }
        was
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn viewer(client: ClientId, size: Option<Size>) -> Viewer {
        Viewer { client, size, sent: 0, fresh: true, margins_end: None }
    }

    fn size(cols: u16) -> Size {
        Size { cols, rows: 24 }
    }

    /// rule: attach.md, attach_session, attach_input, detach_session: The newest attached size
    ///   wins, the former one returns at detach or when the client ends
    #[test]
    fn the_newest_size_wins_and_the_former_one_comes_back() {
        let mut viewers = Viewers::default();
        viewers.attach(viewer(1, Some(size(100))), Some(size(80)));
        assert_eq!(viewers.wanted(), Some(size(100)));
        viewers.attach(viewer(2, Some(size(60))), Some(size(100)));
        assert_eq!(viewers.wanted(), Some(size(60)));
        viewers.attach(viewer(3, None), Some(size(60)));
        assert_eq!(viewers.wanted(), Some(size(60)), "who has no size changes none");
        viewers.resize(1, size(101), Some(size(60)));
        assert_eq!(viewers.wanted(), Some(size(101)), "who told its size last is the newest");
        assert!(viewers.detach(1) && !viewers.detach(1));
        assert_eq!(viewers.wanted(), Some(size(60)));
        assert!(!viewers.resize_own(size(90)), "it holds when all have detached");
        assert!(viewers.detach(2));
        assert_eq!(viewers.wanted(), Some(size(90)));
        assert_eq!(viewers.wanted(), None, "given back once");
        assert!(viewers.resize_own(size(70)));
        assert!(viewers.has(3) && !viewers.is_empty());
    }
}
