//! What calls of the stream family may wait for besides time and end (waits.md): which output is
//! looked at, and what is said of it.

use serde_json::value::RawValue;

use super::output::Stream;
use crate::pure::until::Hit;
use crate::server::families::Cx;
use crate::server::families::unified::{PASSWORD_REMEDY, asks_password};
use crate::server::session::Session;
use crate::server::session::asked::{Asked, Conditions};
use crate::server::session::wait_report::WaitReport;
use crate::wire::RpcError;
use crate::wire::until::{self, Spelling};

/// What a poll is to wait for: it looks at what no stream call has told, stdout and stderr in the
/// order in which they came.
pub fn of_untold(
    own: Option<&Stream>,
    core: &Session,
    conditions: Conditions,
    cx: &Cx,
) -> Option<Box<Asked>> {
    let total = core.output_bytes_total();
    let untold = own.map_or_else(|| total - cx.books.stream.told(core.id).0, Stream::untold_bytes);
    let mut asked = Asked::new(conditions, total - untold.min(total), cx.now_ns)?;
    if let Some(text) = &mut asked.text {
        let kept = own.map_or_else(|| core.tail.to_vec(), Stream::merged);
        text.goes_on_behind(&core.lead_of(total - untold.min(total)));
        let wanted = usize::try_from(untold).unwrap_or(usize::MAX);
        let shown = &kept[kept.len().saturating_sub(wanted)..];
        match untold - shown.len() as u64 {
            0 => {}
            lost => text.skip(lost),
        }
        text.push(shown);
    }
    Some(asked)
}

/// What `until` and `stop` ask for, as this family spells them.
pub fn conditions(
    until: Option<&RawValue>,
    stop: Option<&RawValue>,
) -> Result<Conditions, RpcError> {
    until::read(until, stop, Spelling::Camel)
}

/// What is said of the wait for a session that was over when the call came, and whose answer tells
/// `text`; None where nothing was asked for.
pub fn of_over(conditions: &Conditions, id: u64, text: &str) -> Option<WaitReport> {
    let mut asked = Asked::new(conditions.clone(), 0, 0)?;
    let hit: Option<Hit> = asked.text.as_mut().and_then(|watch| {
        watch.push(text.as_bytes());
        watch.end();
        watch.hit().cloned()
    });
    let report = WaitReport { session_id: Some(id), ..WaitReport::default() };
    let Some(hit) = hit else {
        return Some(WaitReport { outcome: "exited", line: "exited".to_owned(), ..report });
    };
    let outcome = if hit.by_stop { "stopped" } else { "matched" };
    Some(WaitReport {
        outcome,
        line: format!("{outcome} {}", hit.by),
        by: Some(hit.by),
        index: Some(hit.index),
        text: Some(hit.text),
        captures: hit.captures,
        present_at_entry: Some(true),
        ..report
    })
}

/// What is to be done about a session that only input can move on, which waits in this state.
pub fn what_to_do(core: &Session, why: &str, state: Option<&str>) -> String {
    if asks_password(state) {
        return format!("{why}: {PASSWORD_REMEDY}; kill_process ends it");
    }
    if core.facts.tty {
        return format!("{why}: write to it (write_stdin), or end it (kill_process)");
    }
    format!(
        "{why}: write to it (write_stdin), close its stdin (eof), or run it again with \
         \"stdinMode\":\"null\""
    )
}
