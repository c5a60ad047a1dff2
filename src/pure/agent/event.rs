//! Looks at a line of pi's stream: which event it is, how much of it is needed, and which of its
//! fields are known. What is not known is counted, never fatal, never silent (agent.md, Drift).
//!
//! Source: the event types of pi 0.73.1 and 0.87.1 (AgentEvent of pi-agent-core, AgentSessionEvent
//! and SessionHeader of pi-coding-agent, AssistantMessageEvent of pi-ai), and streams of 1.5.2.

use crate::limits::{AGENT_DRIFT_BYTES, AGENT_JSON_DEPTH, AGENT_NAME_BYTES, MAX_PARAMS};
use crate::pure::json::fields::{Fields, Name};
use crate::pure::json::text::mended;
use crate::pure::text::utf8::floor_boundary;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::str;

/// What is kept of one value of such a field.
const AGENT_DRIFT_VALUE_BYTES: usize = 1024;

/// What an entry of them takes besides its name and value: colon, comma, and a count of 20 digits.
const AGENT_DRIFT_ENTRY_BYTES: usize = 22;

/// The events that are known, with their fields besides `type`.
const KNOWN: [(&str, &[&str]); 26] = [
    ("session", &["version", "id", "timestamp", "cwd", "parentSession"]),
    ("agent_start", &[]),
    ("agent_end", &["messages", "willRetry"]),
    ("agent_settled", &["aborted"]),
    ("turn_start", &[]),
    ("turn_end", &["message", "toolResults"]),
    ("message_start", &["message"]),
    ("message_update", &["message", "usage", "assistantMessageEvent"]),
    ("message_end", &["message"]),
    ("tool_execution_start", &["toolCallId", "toolName", "args"]),
    ("tool_execution_update", &["toolCallId", "toolName", "args", "partialResult"]),
    ("tool_execution_end", &["toolCallId", "toolName", "result", "isError", "durationMs"]),
    ("queue_update", &["steering", "followUp"]),
    ("compaction_start", &["reason"]),
    ("compaction_end", &["reason", "result", "aborted", "willRetry", "errorMessage"]),
    ("auto_compaction_start", &["reason"]),
    ("auto_compaction_end", &["reason", "result", "aborted", "willRetry", "errorMessage"]),
    ("session_info_changed", &["name"]),
    ("thinking_level_changed", &["level"]),
    ("auto_retry_start", &["attempt", "maxAttempts", "delayMs", "errorMessage"]),
    ("auto_retry_end", &["success", "attempt", "finalError"]),
    ("summarization_retry_scheduled", &["attempt", "maxAttempts", "delayMs", "errorMessage"]),
    ("summarization_retry_attempt_start", &["source", "reason"]),
    ("summarization_retry_finished", &[]),
    ("entry_appended", &["entry"]),
    ("bash_execution_update", &["id", "delta"]),
];

/// The name of an event, and its fields besides `type`; None if the event is not known.
pub fn known(event: &str) -> Option<(&'static str, &'static [&'static str])> {
    KNOWN.iter().find(|(name, _)| *name == event).copied()
}

/// Events that tell a text in pieces, of which a secret could be put together.
const IN_PIECES: [&str; 3] = ["message_update", "tool_execution_update", "bash_execution_update"];

/// Whether an event holds what it tells as a whole, as far as is known.
pub fn is_whole(event: &str) -> bool {
    known(event).is_some() && !IN_PIECES.contains(&event)
}

/// What a line is, as far as it was looked at.
#[derive(Debug)]
pub enum Look<'a> {
    /// Too little of it is there to be told.
    More,
    /// No event: no JSON object, or one without a type in words.
    Nothing,
    /// An event that takes all of the line.
    Whole,
    /// A tool_execution_update: it repeats what its tool_execution_end will say.
    ToolUpdate,
    /// A message_update.
    Update(Update<'a>),
}

/// What is needed of a message_update. What it repeats of the message (`partial`, `message`) is not
/// read; nor is, therefore, what follows that.
#[derive(Debug, Default)]
pub struct Update<'a> {
    /// The JSON text of `assistantMessageEvent.type`; empty if there is none.
    pub kind: &'a str,
    /// `contentIndex`, 0 if there is none.
    pub content_index: u64,
    /// It was there.
    index_seen: bool,
    /// `delta` of a text_delta or thinking_delta, `toolCall` of a toolcall_end.
    pub value: Option<&'a RawValue>,
    /// Fields of the event that are not known.
    pub unknown: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// Looks at the beginning of a line. What is once told of it does not change with the bytes that
/// follow. With `complete` the line is all there, and the answer is never [`Look::More`].
pub fn look(head: &[u8], complete: bool) -> Look<'_> {
    let (text, broken) = match str::from_utf8(head) {
        Ok(text) => (text, false),
        Err(fault) => {
            let sound = &head[..fault.valid_up_to()];
            (str::from_utf8(sound).unwrap_or_default(), fault.error_len().is_some())
        }
    };
    // The parser would quote in its complaint what is there in place of an object, all of it.
    if text.trim_ascii_start().bytes().next().is_some_and(|byte| byte != b'{') {
        return Look::Nothing;
    }
    let mut found = Look::Nothing;
    let read = serde_json::Deserializer::from_str(text).deserialize_map(Line(&mut found));
    let open = |fault: serde_json::Error| {
        // A number that is cut (`0.`) is no end of file to the parser, but a fault at the end.
        fault.is_eof() || fault.column() >= text.len()
    };
    match found {
        Look::Nothing if !complete && !broken && read.is_err_and(open) => Look::More,
        // The parser was stopped when this was found.
        found => found,
    }
}

/// What a whole `assistantMessageEvent` says.
pub fn update_of(event: &RawValue) -> Update<'_> {
    let mut update = Update::default();
    // The reader stops by an error, when it has what it needs.
    let _ = serde_json::Deserializer::from_str(event.get()).deserialize_map(Message(&mut update));
    update
}

/// The type of the event that a line begins with.
pub fn type_of(head: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Type(String);

    struct First(Option<String>);

    impl<'de> Visitor<'de> for &mut First {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
            while let Some(Name(name)) = fields.next_key()? {
                if name == "type" {
                    let Type(kind) = fields.next_value()?;
                    self.0 = Some(kind);
                    return Err(enough());
                }
                fields.next_value::<IgnoredAny>()?;
            }
            Ok(())
        }
    }

    let mut first = First(None);
    // The line ends somewhere behind its head, and the parser is stopped before.
    let _ = serde_json::Deserializer::from_slice(head).deserialize_map(&mut first);
    first.0
}

/// Whether a message is the model's.
pub fn is_assistant(message: &Fields<'_>) -> bool {
    message.get("role").is_some_and(|role| role.get() == r#""assistant""#)
}

/// Stops the parser.
fn enough<E: Error>() -> E {
    E::custom("enough")
}

/// Reads the fields of a line up to what is needed.
struct Line<'t, 'a>(&'t mut Look<'a>);

impl<'de> Visitor<'de> for Line<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let Some(Name(first)) = fields.next_key()? else { return Ok(()) };
        if first != "type" {
            // No known version does that; it is found in the whole line.
            *self.0 = Look::Whole;
            return Err(enough());
        }
        let kind: &RawValue = fields.next_value()?;
        if kind.get() != r#""message_update""# {
            *self.0 = match kind.get() {
                r#""tool_execution_update""# => Look::ToolUpdate,
                text if text.starts_with('"') => Look::Whole,
                _ => Look::Nothing,
            };
            return Err(enough());
        }
        let mut update = Update::default();
        let (_, known) = known("message_update").unwrap_or_default();
        while let Some(Name(name)) = fields.next_key()? {
            if name == "assistantMessageEvent" {
                let read = fields.next_value_seed(Message(&mut update));
                if read.is_ok() || update.is_enough() {
                    *self.0 = Look::Update(update);
                }
                return Err(read.err().unwrap_or_else(enough));
            }
            let value = fields.next_value()?;
            if !known.contains(&name.as_ref()) && update.unknown.len() < MAX_PARAMS {
                update.unknown.push((name, value));
            }
        }
        *self.0 = Look::Update(update);
        Ok(())
    }
}

/// Reads the fields of an assistantMessageEvent up to what is needed.
struct Message<'t, 'a>(&'t mut Update<'a>);

impl Update<'_> {
    /// Whether nothing more is needed.
    fn is_enough(&self) -> bool {
        let index_wanted = self.block_ended().is_some() && !self.index_seen;
        self.value.is_some() || !(self.kind.is_empty() || self.wanted().is_some() || index_wanted)
    }

    /// Where the event ends a block: whether that is one of thinking.
    pub fn block_ended(&self) -> Option<bool> {
        match self.kind {
            r#""text_end""# => Some(false),
            r#""thinking_end""# => Some(true),
            _ => None,
        }
    }

    /// The field that is needed of an event of this kind.
    fn wanted(&self) -> Option<&'static str> {
        match self.kind {
            r#""text_delta""# | r#""thinking_delta""# => Some("delta"),
            r#""toolcall_end""# => Some("toolCall"),
            _ => None,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Message<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Message<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        // A field that is needed may stand before the type that says so.
        let (mut delta, mut tool_call) = (None, None);
        while let Some(Name(name)) = fields.next_key()? {
            let value: &RawValue = fields.next_value()?;
            match name.as_ref() {
                "type" => self.0.kind = value.get(),
                "contentIndex" => {
                    self.0.content_index = value.get().parse().unwrap_or_default();
                    self.0.index_seen = true;
                }
                "delta" => delta = Some(value),
                "toolCall" => tool_call = Some(value),
                _ => {}
            }
            self.0.value = match self.0.wanted() {
                Some("delta") => delta,
                Some(_) => tool_call,
                None => None,
            };
            if self.0.is_enough() {
                return Err(enough());
            }
        }
        Ok(())
    }
}

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
