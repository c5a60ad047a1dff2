//! What this version of execd does not know of pi's stream: counted, never fatal, never silent
//! (agent.md, Drift).

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::limits::{
    AGENT_DRIFT_BYTES, AGENT_DRIFT_ENTRY_BYTES, AGENT_DRIFT_VALUE_BYTES, AGENT_JSON_DEPTH,
    AGENT_NAME_BYTES,
};
use crate::pure::json::text::mended;
use crate::pure::text::utf8::floor_boundary;

/// Events and fields that are not known.
#[derive(Debug, Default)]
pub struct Drift {
    /// Types of events, with how many came.
    pub events: Map<String, Value>,
    /// `type.field`, with the first value.
    pub fields: Map<String, Value>,
    /// Events and fields for which there was no room.
    pub dropped: u64,
    bytes: usize,
}

impl Drift {
    /// Counts an event.
    pub fn event(&mut self, kind: &str) {
        let kind = &kind[..floor_boundary(kind, AGENT_NAME_BYTES.min(kind.len()))];
        if self.events.contains_key(kind) || self.has_room(json_bytes(&kind.into())) {
            count(&mut self.events, kind);
        }
    }

    /// Keeps a field of an event that is known, unless it is kept already.
    pub fn field(&mut self, kind: &str, name: &str, value: &RawValue) {
        let name = &name[..floor_boundary(name, AGENT_NAME_BYTES.min(name.len()))];
        let path = format!("{kind}.{name}");
        if self.fields.contains_key(&path) {
            return;
        }
        let text = value.get();
        let short = text.len() <= AGENT_DRIFT_VALUE_BYTES;
        let kept = &text[..floor_boundary(text, AGENT_DRIFT_VALUE_BYTES.min(text.len()))];
        // JSON that Value does not take (half a surrogate pair) is told as its text too, and so is
        // what would be nested too deep for who reads the result.
        let json = mended(kept, AGENT_JSON_DEPTH).filter(|_| short);
        let parsed = json.and_then(|_| serde_json::from_str(kept).ok());
        let told: Value = parsed.unwrap_or_else(|| kept.into());
        if self.has_room(json_bytes(&path.as_str().into()) + json_bytes(&told)) {
            self.fields.insert(path, told);
        }
    }

    /// Bytes of the JSON that is made of what is kept, at most AGENT_DRIFT_BYTES.
    pub fn heap_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether an entry fits whose parts take so many bytes of JSON.
    fn has_room(&mut self, bytes: usize) -> bool {
        let bytes = bytes + AGENT_DRIFT_ENTRY_BYTES;
        let fits = self.bytes + bytes <= AGENT_DRIFT_BYTES;
        if fits {
            self.bytes += bytes;
        } else {
            self.dropped += 1;
        }
        fits
    }
}

/// How long a value is as JSON: with its quotes, and each escape as it is written.
fn json_bytes(value: &Value) -> usize {
    value.to_string().len()
}

/// Adds one to the number of a name.
pub fn count(counts: &mut Map<String, Value>, name: &str) {
    let number = counts.get(name).and_then(Value::as_u64).unwrap_or_default();
    counts.insert(name.to_owned(), (number + 1).into());
}
