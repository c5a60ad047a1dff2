//! Live chunks: what comes on a stream goes to the calls that asked for it.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::daemon::Daemon;
use crate::daemon::client::Client;
use crate::limits::LIVE_CHUNKS_MAX;
use crate::session::SessionId;
use crate::session::live::Piece;
use crate::session::output::Source;
use crate::session::wait::Wait;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChunkNote<'a> {
    #[serde(rename = "request_id")]
    request_id: &'a RawValue,
    session_id: SessionId,
    stream: &'static str,
    chunk: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped_bytes: Option<u64>,
}

/// Which stream a chunk is of, on the wire.
fn stream_name(source: Source) -> &'static str {
    match source {
        Source::Output => "stdout",
        Source::Errors => "stderr",
    }
}

impl Daemon {
    /// Sends what came on a stream to the calls that asked for it live.
    pub(in crate::daemon) fn send_chunks(&mut self, id: SessionId, source: Source, length: usize) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        for wait in session.waits.iter_mut() {
            let Some(live) = &mut wait.live else { continue };
            let Some(pending) = self.pending.get(&wait.ticket) else { continue };
            let Some(client) = self.clients.get_mut(pending.client) else { continue };
            let room = client.has_room() && live.has_room(client.outbox.sent_total());
            let pieces = live.pieces(source, &self.read_buffer[..length], room);
            let unsent = client.outbox.len();
            for piece in pieces {
                // Only the last one names the log.
                let last = matches!(piece, Piece::Last);
                let log = last.then(|| self.keeper.status(id)?.shown(false)).flatten();
                send_piece(client, (pending.id.as_json(), id, source, log.as_deref()), piece);
            }
            let outbox = &client.outbox;
            live.queued(outbox.len() - unsent, outbox.sent_total() + outbox.len() as u64);
        }
    }

    /// The unfinished characters at the end of a call's streams.
    pub(super) fn send_rest(&mut self, id: SessionId, wait: &mut Wait) {
        let (Some(live), Some(pending)) = (&mut wait.live, self.pending.get(&wait.ticket)) else {
            return;
        };
        let Some(client) = self.clients.get_mut(pending.client) else { return };
        for source in [Source::Output, Source::Errors] {
            for piece in live.rest(source) {
                send_piece(client, (pending.id.as_json(), id, source, None), piece);
            }
        }
    }
}

/// Sends one piece as a notification: request id, session, stream and log path in `whose`.
fn send_piece(client: &mut Client, whose: (&str, SessionId, Source, Option<&str>), piece: Piece) {
    let (request, session_id, source, log_path) = whose;
    let Ok(request_id) = serde_json::from_str::<&RawValue>(request) else { return };
    let (text, dropped_bytes) = match piece {
        Piece::Chunk { text, dropped_bytes } => {
            (text, (dropped_bytes > 0).then_some(dropped_bytes))
        }
        Piece::Last => {
            let rest = log_path.map_or_else(
                || "the rest is not sent".to_owned(),
                |path| format!("the rest is in the log: {path}"),
            );
            let text = format!(
                "[{LIVE_CHUNKS_MAX} chunks were sent, as many as one call sends; {rest}]\n"
            );
            (text, None)
        }
    };
    let note = ChunkNote {
        request_id,
        session_id,
        stream: stream_name(source),
        chunk: &text,
        dropped_bytes,
    };
    client.notify_of_chunk("tool_execution_output", &note);
}
