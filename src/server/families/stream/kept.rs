//! What memory has of a session's output, for pages of it.

use super::output::Stream;
use crate::limits::LOG_PAGE_LOOKBACK_BYTES;
use crate::pure::buffer::arrival::Arrival;
use crate::server::engine::pages::{KeptBytes, PageSpec, begins_at};
use crate::server::session::Session;
use crate::server::session::output::Source;

/// Where what is kept ends.
pub(super) fn ends_at((bytes, starts_at): &KeptBytes) -> u64 {
    starts_at + bytes.len() as u64
}

/// Whether a page begins in what is kept.
pub(super) fn holds(kept: &KeptBytes, spec: &PageSpec) -> bool {
    // A few bytes more tell whether the page begins inside a character.
    kept.1 == 0 || begins_at(spec, ends_at(kept)) >= kept.1 + LOG_PAGE_LOOKBACK_BYTES
}

/// What memory has of one stream; `both`: also what it has of both in one.
pub(super) fn stream_of(
    own: Option<&Stream>,
    core: &Session,
    source: Source,
    both: bool,
) -> KeptBytes {
    let Some(own) = own else { return KeptBytes::default() };
    let kept = (own.ring(source).to_vec(), own.ring(source).starts_at());
    if both { furthest(kept, own.arrival(), &core.tail.to_vec(), source) } else { kept }
}

/// The end of one stream, from its own bytes or from the last ones of both: what reaches further
/// back.
pub(super) fn furthest(own: KeptBytes, order: &Arrival, both: &[u8], source: Source) -> KeptBytes {
    let [out, err] = order.apart(both);
    let bytes = if source == Source::Output { out } else { err };
    if bytes.len() <= own.0.len() {
        return own;
    }
    let starts_at = ends_at(&own).saturating_sub(bytes.len() as u64);
    (bytes, starts_at)
}
