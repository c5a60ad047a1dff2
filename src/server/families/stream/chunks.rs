//! Live chunks: what comes on a stream is sent to the call that asked for it. How a call's text is
//! cut into chunks, and which are dropped, is decided in `live`.

use serde::Serialize;
use serde_json::value::RawValue;

use super::live::Piece;
use super::output::{Live, Stream};
use crate::limits::LIVE_CHUNKS_MAX;
use crate::server::engine::client::Client;
use crate::server::engine::keeper_link::logs::{LogStatus, LogTrouble};
use crate::server::families::Cx;
use crate::server::session::SessionId;
use crate::server::session::output::Source;

/// A piece of output while `bash_stream` waits.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChunkNote<'a> {
    #[serde(rename = "request_id")]
    request_id: &'a RawValue,
    session_id: SessionId,
    stream: &'static str,
    /// Raw text, at most 8 KiB.
    chunk: &'a str,
    /// Text before this chunk that was dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped_bytes: Option<u64>,
}

/// In the place of chunk 10,001 of a request: no more come.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TruncatedNote<'a> {
    #[serde(rename = "request_id")]
    request_id: &'a RawValue,
    session_id: SessionId,
    chunks: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_path: Option<String>,
    #[serde(flatten)]
    log: LogTrouble,
}

/// Which stream a chunk is of, on the wire.
fn stream_name(source: Source) -> &'static str {
    match source {
        Source::Output => "stdout",
        Source::Errors => "stderr",
    }
}

impl Stream {
    /// Sends what came on a stream to the call that asked for it live.
    pub fn send_chunks(&mut self, id: SessionId, source: Source, length: usize, cx: &mut Cx) {
        let Some(live) = self.live() else { return };
        let Some(pending) = cx.pending.get(&live.ticket) else { return };
        let Some(client) = cx.clients.get_mut(pending.client) else { return };
        let chunks = &mut live.chunks;
        let room = client.has_room() && chunks.has_room(client.outbox.sent_total());
        let pieces = chunks.pieces(source, &cx.reading.buffer[..length], room);
        let unsent = client.outbox.len();
        for piece in pieces {
            // Only what is said instead of more of them names the log.
            let truncated = matches!(piece, Piece::Truncated);
            let log = truncated.then(|| cx.keeper.status(id)).flatten();
            send_piece(client, (pending.id.as_json(), id, source, log), piece);
        }
        let outbox = &client.outbox;
        chunks.queued(outbox.len() - unsent, outbox.sent_total() + outbox.len() as u64);
    }
}

/// Sends the unfinished characters at the end of a call's streams.
pub fn send_rest(live: &mut Live, id: SessionId, cx: &mut Cx) {
    let Some(pending) = cx.pending.get(&live.ticket) else { return };
    let Some(client) = cx.clients.get_mut(pending.client) else { return };
    for source in [Source::Output, Source::Errors] {
        for piece in live.chunks.rest(source) {
            send_piece(client, (pending.id.as_json(), id, source, None), piece);
        }
    }
}

/// Whose a piece is: request id, session and stream; and its log, where that is to be told.
type Whose<'a> = (&'a str, SessionId, Source, Option<LogStatus>);

/// Sends one piece as a notification.
fn send_piece(client: &mut Client, whose: Whose<'_>, piece: Piece) {
    let (request, session_id, source, log) = whose;
    let Ok(request_id) = serde_json::from_str::<&RawValue>(request) else { return };
    match piece {
        Piece::Chunk { text, dropped_bytes } => {
            let note = ChunkNote {
                request_id,
                session_id,
                stream: stream_name(source),
                chunk: &text,
                dropped_bytes: (dropped_bytes > 0).then_some(dropped_bytes),
            };
            client.notify_of_chunk("tool_execution_output", &note);
        }
        Piece::Truncated => {
            let log_path = log.as_ref().and_then(|log| log.path.clone());
            let log = log.map(|log| log.trouble(false)).unwrap_or_default();
            let chunks = LIVE_CHUNKS_MAX;
            let note = TruncatedNote { request_id, session_id, chunks, log_path, log };
            client.notify_of_chunk("tool_execution_truncated", &note);
        }
    }
}
