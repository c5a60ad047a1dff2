//! get_process_log: any part of a session's output, by pages.

use super::books::find_page;
use crate::limits::{LOG_PAGE_MAX_BYTES, MAX_CHAR_BYTES};
use crate::server::engine::contract::{Answer, Call, session_id};
use crate::server::engine::pages::{Found, PageSource, PageSpec, PendingPage, page_from_memory};
use crate::server::families::{Engine, Method};
use crate::server::session::output::Source;
use crate::wire::{self, Int, Kind, RpcError};

/// Bytes of one log page when none are asked for.
const LOG_PAGE_BYTES: u64 = 30_000;

pub(crate) const METHOD: Method = Method {
    name: "get_process_log",
    summary: "A page of a process's output, by byte offset; nextOffset leads to the next one. It \
              takes nothing away.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    starts: false,
    while_closing: false,
    models: &[super::model::GET_PROCESS_LOG],
    check: wire::check::<Params>,
    call,
};

wire::params! {
    struct Params {
        session_id "sessionId": Int = required(Kind::Session, "the process");
        offset "offset": Option<Int> = optional(
            Kind::Integer,
            "first byte; negative: from the end; default 0",
        );
        limit "limit": Option<Int> = optional(
            Kind::Integer,
            "bytes, clamped to 4..150000; default 30000",
        );
        stream "stream": Option<String> = optional(
            Kind::Choice(&["stdout", "stderr"]),
            "only this stream; default both, in the order in which they came",
        );
        encoding "encoding": Option<String> = optional(
            Kind::Choice(&["utf8", "base64"]),
            "\"base64\" gives exact bytes; default \"utf8\"",
        );
    }
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let params: Params = wire::read_params(call.params)?;
    let source = params.stream.as_deref().map(|stream| match stream {
        "stderr" => Source::Errors,
        _ => Source::Output,
    });
    let limit = params.limit.map_or(LOG_PAGE_BYTES, |given| {
        // A page of text has room for the longest character, so that each leads on.
        given.clamped(MAX_CHAR_BYTES as u64, LOG_PAGE_MAX_BYTES)
    });
    let spec = PageSpec {
        id: session_id(params.session_id),
        offset: params.offset.map_or(0, |given| given.0),
        limit,
        source,
        base64: params.encoding.as_deref() == Some("base64"),
    };
    let Found { from, finished, late_from, log } = find_page(engine, &spec)?;
    match from {
        PageSource::Memory(bytes, starts_at) => {
            let page = page_from_memory(&spec, (&bytes, starts_at), finished);
            Ok(Answer::of(&page.with(late_from, log)))
        }
        PageSource::Log(name, only, total) => {
            if let Some(ticket) = engine.open_ticket(call, &[]) {
                let page = PendingPage { spec, only, total, finished, late_from, log };
                engine.ask_page(ticket, name, page);
            }
            Ok(Answer::Waits)
        }
    }
}
