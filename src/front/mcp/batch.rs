//! Batches of 2025-03-26, the one version that has them: several messages on a line, whose answers
//! come together on one, once all of them are there.

use serde_json::Value;

use super::Mcp;
use crate::engine::codec::{Asked, Codec};
use crate::wire::RequestId;

/// The version that has them.
pub(super) const VERSION: &str = "2025-03-26";

/// A batch that is not answered yet.
#[derive(Debug)]
pub(super) struct Batch {
    /// Its requests that run.
    ids: Vec<RequestId>,
    /// The answers that there are, a line each.
    told: Vec<u8>,
}

impl Batch {
    /// Writes the answers once all are there; those of cancelled requests never come.
    fn is_over(&mut self, out: &mut Vec<u8>) -> bool {
        if self.ids.is_empty() && self.told.pop().is_some() {
            // In a line of JSON a newline is its end, and nothing else.
            let newlines = self.told.iter_mut().filter(|byte| **byte == b'\n');
            newlines.for_each(|byte| *byte = b',');
            out.push(b'[');
            out.extend_from_slice(&self.told);
            out.extend_from_slice(b"]\n");
        }
        self.ids.is_empty()
    }
}

impl Mcp {
    /// Takes a line with several messages.
    pub(super) fn read_batch(&mut self, messages: &[Value], out: &mut Vec<u8>) -> Vec<Asked> {
        let mut batch = Batch { ids: Vec::new(), told: Vec::new() };
        let mut asked = Vec::new();
        // There is no batch within another.
        self.takes_batches = false;
        for message in messages {
            let before = self.running.len();
            asked.extend(self.read(message.to_string().as_bytes(), &mut batch.told));
            // A message is one request at most.
            if let Some((id, _)) = self.running.get(before) {
                batch.ids.push(id.clone());
            }
        }
        self.takes_batches = true;
        if !batch.is_over(out) {
            self.batches.push(batch);
        }
        asked
    }
}

/// Keeps what was appended since `from` for the batch that the request is of, if any.
pub(super) fn gather(batches: &mut Vec<Batch>, id: &RequestId, from: usize, out: &mut Vec<u8>) {
    let Some(at) = batches.iter().position(|one| one.ids.contains(id)) else { return };
    let batch = &mut batches[at];
    batch.ids.retain(|own| own != id);
    batch.told.extend_from_slice(&out[from..]);
    out.truncate(from);
    if batch.is_over(out) {
        batches.remove(at);
    }
}
