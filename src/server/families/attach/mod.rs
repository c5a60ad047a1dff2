//! Attached clients (people.md): what they are sent of a session's output, and the size that its
//! terminal has for them. Who is attached is kept by the session (`session/viewers.rs`).

pub mod attach_input;
pub mod attach_session;
pub mod detach_session;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::{Cx, Family, Method};
use crate::pure::terminal::modes::{NO_MARGINS, TermModes};
use crate::server::engine::judge::status_fields;
use crate::server::session::output::Source;
use crate::server::session::viewers::Viewer;
use crate::server::session::wait::{Wait, Why};
use crate::server::session::{ClientId, Session, SessionId};
use crate::sys::pty::Size;

/// The rows of the table of methods.
pub const METHODS: &[Method] =
    &[attach_session::METHOD, attach_input::METHOD, detach_session::METHOD];

/// What this family keeps of a session: nothing, since it starts none. Who is attached is the
/// session's own affair.
#[derive(Debug)]
pub struct Attach;

/// Output of a session that this client is attached to.
#[derive(Serialize)]
struct OutputNote<'a> {
    session_id: SessionId,
    /// At most 64 KiB in base64.
    data_b64: &'a str,
    /// Where in the session's output the bytes begin; absent for bytes that are not of the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    /// Bytes before these that this client was too slow for.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped_bytes: Option<u64>,
    /// False where the terminal must not answer the program's questions: they are of the past,
    /// or another terminal answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<bool>,
}

/// The end of a session that this client is attached to.
#[derive(Serialize)]
struct EndedNote {
    session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    killed_by: Option<&'static str>,
}

/// How a client attaches.
#[derive(Clone, Copy, Debug)]
pub struct Attaching {
    /// The size of its terminal.
    pub size: Option<Size>,
    /// Whether the program is made to redraw.
    pub redraw: bool,
    /// The first byte of the output that the client wants.
    pub from: Option<u64>,
}

/// Bytes that a viewer is sent, where they begin in the output, and how many before them are lost.
type Part<'a> = (&'a [u8], Option<u64>, u64);

/// Where the replay of a session's output begins: at a line's start, where one is kept.
fn replay_start(core: &Session) -> u64 {
    let from = core.tail.starts_at();
    let kept = core.tail.to_vec();
    let line = kept.iter().position(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1);
    if from == 0 || line == kept.len() as u64 { from } else { from + line }
}

/// Attaches a client to a session. What it has missed is sent after the answer, when the session
/// is judged.
fn attach(core: &mut Session, client: ClientId, how: Attaching, cx: &mut Cx) {
    let Attaching { size, redraw, from } = how;
    let before = core.terminal_size();
    let total = core.output_bytes_total();
    let start = from.map_or_else(|| replay_start(core), |from| from.min(total));
    let fresh = from.is_none();
    let viewer = Viewer { client, size, sent: start, fresh, margins_end: None };
    core.viewers.attach(viewer, before);
    core.apply_size();
    // A size that has changed has the program redraw already.
    if redraw
        && let (Some(before), Some(now)) = (before, core.terminal_size())
        && before == now
        && !core.life.finished()
        && core.output.fd().is_some()
    {
        let other = core.viewers.begin_jiggle(now, cx.now_ns);
        // A terminal that takes no size is not redrawn; the client is attached all the same.
        let _ = core.resize_terminal(other);
    }
    cx.touch(core);
}

impl Family for Attach {
    type Books = ();

    /// Bytes of output have just been read: they go to whoever has seen all before them and has
    /// room. Who has not is served from what is kept, when it has room again.
    fn take(
        _own: Option<&mut Self>,
        core: &mut Session,
        (_, length): (Source, usize),
        cx: &mut Cx,
    ) {
        let data = &cx.reading.buffer[..length];
        if let Some(modes) = &mut core.modes {
            modes.feed(data);
        }
        if core.viewers.is_empty() {
            return;
        }
        let end = core.tail.total_bytes();
        let begin = end - length as u64;
        let mut encoded = None;
        let asked = core.viewers.newest();
        for viewer in core.viewers.iter_mut() {
            let Some(client) = cx.clients.get_mut(viewer.client) else { continue };
            let behind = viewer.sent != begin || viewer.fresh || viewer.margins_end.is_some();
            if behind || !client.may_view() {
                client.lags = true;
                continue;
            }
            let data_b64 = encoded.get_or_insert_with(|| STANDARD.encode(data));
            let (offset, dropped_bytes) = (Some(begin), None);
            let answer = (asked != Some(viewer.client)).then_some(false);
            let note = OutputNote { session_id: core.id, data_b64, offset, dropped_bytes, answer };
            client.notify("attach_output", &note);
            viewer.sent = end;
        }
    }

    /// Attached clients that have room get what they have not seen; at the session's end all get
    /// the rest, and the word of it.
    fn step(_own: Option<&mut Self>, core: &mut Session, cx: &mut Cx) {
        if core.viewers.jiggle_ends_ns().is_some_and(|at| at <= cx.now_ns) {
            core.viewers.end_jiggle();
            core.apply_size();
        }
        if core.viewers.is_empty() {
            return;
        }
        let ended = core.life.finished();
        let mut viewers = std::mem::take(&mut core.viewers);
        for viewer in viewers.iter_mut() {
            catch_up(core, viewer, ended, cx);
        }
        core.viewers = viewers;
        if ended {
            let (exit_code, signal) = status_fields(core.status());
            let note =
                EndedNote { session_id: core.id, exit_code, signal, killed_by: core.killed_by() };
            for viewer in core.viewers.take_all() {
                cx.clients.notify(viewer.client, "attach_ended", &note);
            }
        }
    }

    /// No call of this family waits.
    fn answer(
        _own: Option<&mut Self>,
        _core: &mut Session,
        _wait: Wait,
        _why: Why,
        _cx: &mut Cx,
    ) -> bool {
        false
    }
}

/// Sends an attached client what is kept of what it has not seen, and how much of that is lost; to
/// one that has no room only at the `last` opportunity.
fn catch_up(core: &Session, viewer: &mut Viewer, last: bool, cx: &mut Cx) {
    let Some(client) = cx.clients.get_mut(viewer.client) else { return };
    let end = core.tail.total_bytes();
    let behind = viewer.sent < end || viewer.fresh || viewer.margins_end.is_some();
    if !behind || !(last || client.may_view()) {
        client.lags |= behind;
        return;
    }
    let from = core.tail.starts_at();
    let begin = viewer.sent.max(from);
    let kept = core.tail.to_vec();
    let kept = &kept[usize::try_from(begin - from).unwrap_or(kept.len()).min(kept.len())..];
    let mut before = Vec::new();
    let mut margins_end = viewer.margins_end.take();
    if viewer.fresh
        && let Some(now) = &core.modes
    {
        // Modes that were set so long ago that the replay does not have them.
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
    let parts: [Part<'_>; 4] =
        [(&before, None, 0), (first, Some(begin), dropped), (reset, None, 0), (rest, Some(cut), 0)];
    for (data, offset, dropped) in parts {
        if data.is_empty() && dropped == 0 {
            continue;
        }
        let note = OutputNote {
            session_id: core.id,
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
