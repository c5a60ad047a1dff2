//! Attached clients: what they are sent of a session's output, and the size that it has.

pub mod attach_input;
pub mod attach_session;
pub mod detach_session;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::engine::Daemon;
use crate::engine::judge::status_fields;
use crate::pure::terminal::modes::{NO_MARGINS, TermModes};
use crate::session::viewers::Viewer;
use crate::session::{ClientId, Session, SessionId};
use crate::sys::pty::{self, Size};

#[derive(Serialize)]
struct OutputNote<'a> {
    session_id: SessionId,
    data_b64: &'a str,
    /// Where in the session's output the bytes begin; absent for what is not of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped_bytes: Option<u64>,
    /// False where the terminal must not answer the program's questions: they are of the past,
    /// or another terminal answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<bool>,
}

#[derive(Serialize)]
struct EndedNote {
    session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
}

/// How a client attaches.
#[derive(Clone, Copy, Debug)]
pub struct Attaching {
    /// The size of its terminal.
    pub size: Option<Size>,
    /// Whether the program is made to redraw.
    pub redraw: bool,
    /// The first byte of the output that it wants.
    pub from: Option<u64>,
}

/// Bytes that a viewer is sent, where they begin in the output, and how many before them are lost.
type Part<'a> = (&'a [u8], Option<u64>, u64);

/// The size of a session's terminal as it is.
fn size_now(session: &Session) -> Option<Size> {
    session.output.fd().filter(|_| session.facts.tty).and_then(pty::size_of)
}

/// Where the replay of a session's output begins: at a line's start, where one is kept.
fn replay_start(session: &Session) -> u64 {
    let from = session.tail.starts_at();
    let kept = session.tail.to_vec();
    let line = kept.iter().position(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1);
    if from == 0 || line == kept.len() as u64 { from } else { from + line }
}

impl Daemon {
    /// Attaches a client to a session. What it has missed is sent after the answer, when the
    /// session is judged.
    pub fn attach(&mut self, id: SessionId, client: ClientId, how: Attaching) {
        let Attaching { size, redraw, from } = how;
        let now_ns = self.now_ns;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let before = size_now(session);
        let total = session.output_bytes_total();
        let start = from.map_or_else(|| replay_start(session), |from| from.min(total));
        let fresh = from.is_none();
        let viewer = Viewer { client, size, sent: start, fresh, margins_end: None };
        session.viewers.attach(viewer, before);
        self.apply_size(id);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        // A size that has changed has the program redraw already.
        if redraw
            && let (Some(before), Some(now)) = (before, size_now(session))
            && before == now
            && !session.life.finished()
            && session.output.fd().is_some()
        {
            let other = session.viewers.begin_jiggle(now, now_ns);
            // A terminal that takes no size is not redrawn, and nothing else.
            let _ = self.resize_terminal(id, other);
        }
        self.touch(id);
    }

    /// The size of an attached client's terminal has changed.
    pub fn resize_viewer(&mut self, id: SessionId, client: ClientId, size: Size) {
        if let Some(session) = self.sessions.get_mut(&id) {
            let now = size_now(session);
            session.viewers.resize(client, size, now);
        }
        self.apply_size(id);
    }

    /// Detaches a client; whether it was attached.
    pub fn detach(&mut self, id: SessionId, client: ClientId) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else { return false };
        let was = session.viewers.detach(client);
        if was {
            self.apply_size(id);
        }
        was
    }

    /// Gives a session's terminal the size that is to be in force.
    fn apply_size(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(size) = session.viewers.wanted() else { return };
        session.viewers.end_jiggle();
        if session.facts.tty {
            let _ = self.resize_terminal(id, size);
        }
    }

    /// Gives a session's terminal another size; an errno where it takes none, `None` where it is
    /// gone. As with any terminal that changes its size, margins do not outlive that: a program
    /// that redraws takes the whole screen to scroll, and does not say so.
    pub fn resize_terminal(&mut self, id: SessionId, size: Size) -> Option<Result<(), i32>> {
        let session = self.sessions.get_mut(&id)?;
        let before = size_now(session);
        // The kernel tells the program only when the size is another one.
        let done = session.output.fd().map(|master| pty::set_size(master, size))?;
        if done.is_ok()
            && before != Some(size)
            && session.modes.as_mut().is_some_and(|modes| modes.resized())
        {
            let at = session.tail.total_bytes();
            for viewer in session.viewers.iter_mut() {
                viewer.margins_end = Some(at);
            }
            self.touch(id);
        }
        Some(done)
    }

    /// Bytes of output have just been read: they go to whoever has seen all before them and has
    /// room. Who has not is served from what is kept, when it has room again.
    pub(crate) fn show(&mut self, id: SessionId, bytes: usize) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let data = &self.read_buffer[..bytes];
        if let Some(modes) = &mut session.modes {
            modes.feed(data);
        }
        if session.viewers.is_empty() {
            return;
        }
        let end = session.tail.total_bytes();
        let begin = end - bytes as u64;
        let mut encoded = None;
        let asked = session.viewers.newest();
        for viewer in session.viewers.iter_mut() {
            let Some(client) = self.clients.get_mut(viewer.client) else { continue };
            let behind = viewer.sent != begin || viewer.fresh || viewer.margins_end.is_some();
            if behind || !client.may_view() {
                client.lags = true;
                continue;
            }
            let data_b64 = encoded.get_or_insert_with(|| STANDARD.encode(data));
            let (offset, dropped_bytes) = (Some(begin), None);
            let answer = (asked != Some(viewer.client)).then_some(false);
            let note = OutputNote { session_id: id, data_b64, offset, dropped_bytes, answer };
            client.notify("attach_output", &note);
            viewer.sent = end;
        }
    }

    /// Step of a session's judgement: attached clients that have room get what they have not
    /// seen; at the session's end all get the rest, and the word of it.
    pub(crate) fn step_viewers(&mut self, id: SessionId) {
        let now_ns = self.now_ns;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.viewers.jiggle_ends_ns().is_some_and(|at| at <= now_ns) {
            session.viewers.end_jiggle();
            self.apply_size(id);
        }
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.viewers.is_empty() {
            return;
        }
        let ended = session.life.finished();
        let mut viewers = std::mem::take(&mut session.viewers);
        for viewer in viewers.iter_mut() {
            self.catch_up(id, viewer, ended);
        }
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.viewers = viewers;
        if ended {
            let (exit_code, signal) = status_fields(session.status());
            let note = EndedNote { session_id: id, exit_code, signal };
            for viewer in session.viewers.take_all() {
                self.clients.notify(viewer.client, "attach_ended", &note);
            }
        }
    }

    /// Sends an attached client what is kept of what it has not seen, and how much of that is
    /// lost; to one that has no room only at the `last` opportunity.
    fn catch_up(&mut self, id: SessionId, viewer: &mut Viewer, last: bool) {
        let Some(session) = self.sessions.get(&id) else { return };
        let Some(client) = self.clients.get_mut(viewer.client) else { return };
        let end = session.tail.total_bytes();
        let behind = viewer.sent < end || viewer.fresh || viewer.margins_end.is_some();
        if !behind || !(last || client.may_view()) {
            client.lags |= behind;
            return;
        }
        let from = session.tail.starts_at();
        let begin = viewer.sent.max(from);
        let kept = session.tail.to_vec();
        let kept = &kept[usize::try_from(begin - from).unwrap_or(kept.len()).min(kept.len())..];
        let mut before = Vec::new();
        let mut margins_end = viewer.margins_end.take();
        if viewer.fresh
            && let Some(now) = &session.modes
        {
            // What was set so long ago that the replay does not have it.
            let mut known = TermModes::new();
            known.feed(kept);
            // Margins of the replay that a size has made void since are so behind it.
            let void = !now.has_margins() && known.resized();
            margins_end = void.then_some(end);
            before = known.change_to(now);
        }
        let dropped = begin - viewer.sent;
        let cut = margins_end.map_or(end, |at| at.clamp(begin, end));
        let (first, rest) = kept.split_at(usize::try_from(cut - begin).unwrap_or(kept.len()));
        let reset = margins_end.map_or("", |_| NO_MARGINS).as_bytes();
        let parts: [Part<'_>; 4] = [
            (&before, None, 0),
            (first, Some(begin), dropped),
            (reset, None, 0),
            (rest, Some(cut), 0),
        ];
        for (data, offset, dropped) in parts {
            if data.is_empty() && dropped == 0 {
                continue;
            }
            let note = OutputNote {
                session_id: id,
                data_b64: &STANDARD.encode(data),
                offset,
                dropped_bytes: (dropped > 0).then_some(dropped),
                answer: offset.map(|_| false),
            };
            client.notify("attach_output", &note);
        }
        viewer.sent = end;
        viewer.fresh = false;
    }

    /// Clients that lagged behind and have room now: their sessions are judged.
    pub(crate) fn wake_viewers(&mut self) {
        if !self.clients.iter().any(|client| client.lags) {
            return;
        }
        for client in self.clients.iter_mut().filter(|client| client.lags) {
            if !client.may_resume_view() {
                continue;
            }
            client.lags = false;
            let id = client.id;
            let of_it = |session: &&Session| session.viewers.has(id);
            let behind: Vec<SessionId> =
                self.sessions.values().filter(of_it).map(|session| session.id).collect();
            for id in behind {
                if let Some(session) = self.sessions.get_mut(&id)
                    && !session.touched
                {
                    session.touched = true;
                    self.touched.push_back(id);
                }
            }
        }
    }

    /// A client is gone: it is attached to nothing any more.
    pub(crate) fn detach_everywhere(&mut self, client: ClientId) {
        let of_it = |session: &&Session| session.viewers.has(client);
        let ids: Vec<SessionId> =
            self.sessions.values().filter(of_it).map(|session| session.id).collect();
        for id in ids {
            self.detach(id, client);
        }
    }
}
