//! What memory has of a session's output, for pages of it.

use crate::daemon::pages::{PageSpec, begins_at};
use crate::limits::LOG_PAGE_LOOKBACK_BYTES;
use crate::session::Session;
use crate::session::output::Source;

/// The bytes that are kept of a stream, and the first one's offset.
pub(in crate::daemon) type KeptBytes = (Vec<u8>, u64);

/// Where what is kept ends.
pub(super) fn ends_at((bytes, starts_at): &KeptBytes) -> u64 {
    starts_at + bytes.len() as u64
}

/// Whether a page begins in what is kept.
pub(super) fn holds(kept: &KeptBytes, spec: &PageSpec) -> bool {
    // A few bytes more tell whether the page begins inside a character.
    kept.1 == 0 || begins_at(spec, ends_at(kept)) >= kept.1 + LOG_PAGE_LOOKBACK_BYTES
}

/// What memory has of one stream; `furthest`: also what it has of both in one.
pub(super) fn stream_of(session: &Session, source: Source, furthest: bool) -> KeptBytes {
    let Some(job) = &session.job else { return KeptBytes::default() };
    let own = job.ring(source);
    let mut kept = (own.to_vec(), own.starts_at());
    if furthest {
        let [out, err] = job.arrival().apart(&session.tail.to_vec());
        let more = if source == Source::Output { out } else { err };
        let total = ends_at(&kept);
        if more.len() > kept.0.len() && more.ends_with(&kept.0) {
            kept = (more, 0);
            kept.1 = total - kept.0.len() as u64;
        }
    }
    kept
}

/// The name of a log in its directory.
pub(super) fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}
