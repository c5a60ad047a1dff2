//! Output that is held back while it may be the beginning of a secret, and secrets whose time is
//! over (protocol.md, Secrets). Output that comes is masked where it is read.

use super::contract::Families;
use super::contract::cx::Cx;
use super::sessions::Entry;
use super::streams;
use crate::session::output::Source;

const STREAMS: [Source; 2] = [Source::Output, Source::Errors];

/// Lets go of what is held back no longer, and forgets secrets whose time is over.
pub(super) fn step<F: Families>(entry: &mut Entry<F>, cx: &mut Cx<F>) {
    let now_ns = cx.now_ns;
    if entry.core.secrets_due_ns().is_none_or(|due| due > now_ns) {
        return;
    }
    for source in STREAMS {
        let Some(stream) = entry.core.stream(source) else { continue };
        let Some(veil) = &mut stream.veil else { continue };
        let gone = veil.let_go(&mut cx.reading.buffer, now_ns);
        if veil.is_over() {
            stream.veil = None;
        }
        pass_on(entry, source, gone, cx);
    }
}

/// Nothing more of the session's output is taken in: what was held back is no secret.
pub(super) fn release<F: Families>(entry: &mut Entry<F>, cx: &mut Cx<F>) {
    for source in STREAMS {
        let stream = entry.core.stream(source);
        let Some(veil) = stream.and_then(|stream| stream.veil.as_mut()) else { continue };
        cx.reading.buffer[..veil.held().len()].copy_from_slice(veil.held());
        let released = veil.release();
        pass_on(entry, source, released, cx);
    }
}

fn pass_on<F: Families>(entry: &mut Entry<F>, source: Source, bytes: usize, cx: &mut Cx<F>) {
    if bytes > 0 {
        streams::accept(entry, source, bytes, false, cx);
        cx.touch(&mut entry.core);
    }
}
