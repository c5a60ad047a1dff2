//! What each event means for the run: what the client is told, and what is counted (agent.md,
//! Events). Which event a line is, event.rs has found out; answers, and what they have used, are in
//! answers.rs, texts in text.rs.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::value::RawValue;

use super::event::count;
use super::event::{Update, is_assistant, known, update_of};
use super::mask::Secret;
use super::run::AgentRun;
use super::text::Block;
use super::told::{Tell, Told};
use crate::limits::{
    AGENT_ERROR_BYTES, AGENT_JSON_DEPTH, AGENT_LINE_MAX_BYTES, AGENT_NAME_BYTES, AGENT_TOOL_IDS,
    AGENT_TOOL_OUTPUT_BYTES,
};
use crate::pure::json::fields::{Fields, each_item};
use crate::pure::json::text::{Bounded, append, mended, string};

/// Names of tools that are counted apart.
const AGENT_TOOL_NAMES: usize = 256;

/// Under this name all tools are counted for whose own there is no room.
const OTHER_TOOLS: &str = "…";
/// Tools that change something: the first call of one is the first attempt at the task.
const ATTEMPTS: [&str; 3] = ["write", "edit", "bash"];
/// The events that something is told of, but for those of messages.
const TELLING: [&str; 5] = [
    "turn_end",
    "tool_execution_start",
    "tool_execution_end",
    "auto_retry_start",
    "auto_retry_end",
];
/// The kinds of a message_update that are known, as JSON has them.
const UPDATES: [&str; 12] = [
    r#""start""#,
    r#""text_start""#,
    r#""text_delta""#,
    r#""text_end""#,
    r#""thinking_start""#,
    r#""thinking_delta""#,
    r#""thinking_end""#,
    r#""toolcall_start""#,
    r#""toolcall_delta""#,
    r#""toolcall_end""#,
    r#""done""#,
    r#""error""#,
];

impl AgentRun {
    /// An event of which all of the line was read.
    pub(super) fn event(&mut self, kind: &str, fields: &Fields<'_>, now_ms: u64, tell: Tell<'_>) {
        let Some((name, known)) = known(kind) else {
            self.came("", now_ms);
            self.last_event = Some(Cow::Owned(kind.to_owned()));
            return self.drift.event(kind);
        };
        self.came(name, now_ms);
        if TELLING.contains(&kind) {
            self.release_turn(tell);
        }
        for (name, value) in &fields.0 {
            if name != "type" && !known.contains(&name.as_ref()) {
                self.drift.field(kind, name, value);
            }
        }
        match kind {
            "session" => {
                self.session_id = string(fields.get("id"), AGENT_NAME_BYTES).map(Cow::into_owned);
            }
            "agent_start" => {
                (self.agent_open, self.agent_ended, self.clocks.settled_ms) = (true, false, None);
            }
            "agent_end" => {
                self.last_resort(fields.get("messages"), now_ms, tell);
                (self.agent_open, self.agent_ended) = (false, true);
                self.tells_retries |= fields.get("willRetry").is_some();
                self.tools_running.clear();
                self.settle(!fields.is_true("willRetry"), now_ms);
            }
            "agent_settled" | "auto_retry_end" => {
                self.agent_open &= kind != "agent_settled";
                self.settle(true, now_ms);
                if fields.get("success").is_some_and(|success| success.get() == "false") {
                    self.retries.exhausted = true;
                    self.fail(fields.get("finalError"), "pi has given up trying again", tell);
                }
            }
            "compaction_end" | "auto_compaction_end" => {
                self.settle(!fields.is_true("willRetry"), now_ms);
                self.compactions_open = self.compactions_open.saturating_sub(1);
                self.compaction(kind, fields.get("result"), tell);
            }
            "entry_appended" => self.entry(fields, tell),
            "compaction_start" | "auto_compaction_start" => {
                self.clocks.settled_ms = None;
                self.compactions_open += 1;
            }
            "auto_retry_start" => self.retry(fields, tell),
            "turn_start" => self.turn_start(tell),
            "turn_end" => self.turn_end(fields, now_ms, tell),
            "message_start" => {
                self.clocks.settled_ms = None;
                let message = Fields::of(fields.get("message"));
                if is_assistant(&message) {
                    self.answer_begins(&message, now_ms, tell);
                }
            }
            "message_update" => {
                // Its type was not its first field.
                let update = fields.get("assistantMessageEvent").map(update_of);
                self.update(&update.unwrap_or_default(), now_ms, tell);
            }
            "message_end" => self.message_end(&Fields::of(fields.get("message")), now_ms, tell),
            "tool_execution_start" => {
                let id = fields.get("toolCallId");
                self.tool_use(id, fields.get("toolName"), fields.get("args"), tell);
                if self.tools_running.len() < AGENT_TOOL_IDS {
                    self.tools_running.push(hash(&name_of(id)));
                }
            }
            "tool_execution_end" => self.tool_result(fields, tell),
            _ => {}
        }
    }

    /// What was needed of a message_update.
    pub(super) fn update(&mut self, update: &Update<'_>, now_ms: u64, tell: Tell<'_>) {
        self.release_turn(tell);
        self.updated(update, now_ms);
        let ended = update.block_ended();
        if let Some(thinking) = ended {
            let block = Block { thinking, index: update.content_index };
            self.transcript.end_block(block, now_ms, tell);
        }
        let Some(value) = update.value else {
            self.transcript.pause(None, now_ms, tell);
            if !update.kind.is_empty() && !UPDATES.contains(&update.kind) {
                let kind = masked(self.settings.secret.as_ref(), update.kind);
                self.drift.event(&format!("message_update.{}", kind.trim_matches('"')));
            }
            return;
        };
        if update.kind == r#""toolcall_end""# {
            self.transcript.pause(None, now_ms, tell);
            let value = masked_value(self.settings.secret.as_ref(), value);
            let call = Fields::of(Some(&value));
            return self.tool_use(call.get("id"), call.get("name"), call.get("arguments"), tell);
        }
        let thinking = update.kind == r#""thinking_delta""#;
        let block = Block { thinking, index: update.content_index };
        self.transcript.delta(block, value, now_ms, tell);
    }

    /// What any message_update means.
    fn updated(&mut self, update: &Update<'_>, now_ms: u64) {
        self.came("message_update", now_ms);
        self.clocks.first_event_ms.get_or_insert(now_ms);
        self.answer_open = true;
        for (name, value) in &update.unknown {
            let secret = self.settings.secret.as_ref();
            let (name, value) = (masked(secret, name), masked_value(secret, value));
            self.drift.field("message_update", &name, &value);
        }
    }

    /// A line was too long to be kept: of its event nothing is known but the type.
    pub(super) fn skipped(&mut self, kind: &str, now_ms: u64, tell: Tell<'_>) {
        let Some((name, _)) = known(kind) else { return };
        match name {
            "agent_end" | "turn_end" => self.event(name, &Fields::of(None), now_ms, tell),
            // What these have used is in the sums, or the sums are wrong.
            "message_end" | "entry_appended" | "compaction_end" | "auto_compaction_end" => {
                self.came(name, now_ms);
                self.release_turn(tell);
                let mib = AGENT_LINE_MAX_BYTES / (1024 * 1024);
                self.wire_fault(format!("a {name} of more than {mib} MiB was skipped"), tell);
            }
            _ => self.came(name, now_ms),
        }
    }

    /// The run may be done, `if_final`; it is once its agent has ended.
    fn settle(&mut self, if_final: bool, now_ms: u64) {
        if !if_final {
            self.clocks.settled_ms = None;
        } else if self.agent_ended {
            self.clocks.settled_ms.get_or_insert(now_ms);
        }
    }

    fn retry(&mut self, fields: &Fields<'_>, tell: Tell<'_>) {
        self.clocks.settled_ms = None;
        let number = |name| fields.get(name)?.get().parse().ok();
        let (attempt, max_attempts) = (number("attempt"), number("maxAttempts"));
        self.retries.count += 1;
        self.retries.max_attempts = max_attempts.or(self.retries.max_attempts);
        let message = string(fields.get("errorMessage"), AGENT_ERROR_BYTES);
        let message = message.as_deref();
        tell(&Told { event: "retry", attempt, max_attempts, message, ..Told::default() });
    }

    /// A tool call, told once whichever event tells of it first.
    fn tool_use(
        &mut self,
        id: Option<&RawValue>,
        name: Option<&RawValue>,
        input: Option<&RawValue>,
        tell: Tell<'_>,
    ) {
        let (id, name) = (name_of(id), name_of(name));
        if !id.is_empty() {
            let id = hash(&id);
            if self.tools_told.contains(&id) {
                return;
            }
            if self.tools_told.len() < AGENT_TOOL_IDS {
                self.tools_told.push(id);
            }
        }
        if ATTEMPTS.contains(&name.as_ref()) {
            self.first_attempt_ms.get_or_insert(self.clocks.last_event_ms);
        }
        self.tool_call_count += 1;
        let known = self.tool_calls.contains_key(name.as_ref());
        let counted = known || self.tool_calls.len() < AGENT_TOOL_NAMES;
        count(&mut self.tool_calls, if counted { &name } else { OTHER_TOOLS });
        let input = input.unwrap_or(RawValue::NULL);
        let whole_bytes = input.get().len();
        let json = (whole_bytes <= AGENT_TOOL_OUTPUT_BYTES)
            .then(|| mended(input.get(), AGENT_JSON_DEPTH))
            .flatten();
        let shown = json.as_deref().and_then(|json| serde_json::from_str(json).ok());
        tell(&Told {
            event: "tool_use",
            id: Some(&id),
            name: Some(&name),
            input: Some(shown.unwrap_or(RawValue::NULL)),
            omitted_bytes: shown.is_none().then_some(whole_bytes as u64),
            ..Told::default()
        });
    }

    fn tool_result(&mut self, fields: &Fields<'_>, tell: Tell<'_>) {
        let (id, name) = (name_of(fields.get("toolCallId")), name_of(fields.get("toolName")));
        let hash = hash(&id);
        if let Some(at) = self.tools_running.iter().position(|running| *running == hash) {
            self.tools_running.swap_remove(at);
        }
        let mut output = Bounded::new(AGENT_TOOL_OUTPUT_BYTES);
        if let Some(result) = fields.get("result").filter(|result| !append(result, &mut output)) {
            let content = Fields::of(Some(result)).get("content");
            if let Some(content) = content.filter(|content| !append(content, &mut output)) {
                append_blocks(content, &mut output);
            }
        }
        tell(&Told {
            event: "tool_result",
            id: Some(&id),
            name: Some(&name),
            output: Some(&output.text),
            is_error: Some(fields.is_true("isError")),
            omitted_bytes: (output.omitted_bytes > 0).then_some(output.omitted_bytes),
            ..Told::default()
        });
    }
}

/// The texts of blocks, each on lines of its own; of what is no text its type. Blocks behind a full
/// output are not looked at.
fn append_blocks(content: &RawValue, output: &mut Bounded) {
    let mut first = true;
    let behind = each_item(content, &mut |block| {
        let block = Fields::of(Some(block));
        if !std::mem::take(&mut first) {
            output.push("\n");
        }
        let kind = name_of(block.get("type"));
        if kind != "text" {
            output.push(&format!("[{kind}]"));
        } else if let Some(text) = block.get("text") {
            append(text, output);
        }
        output.omitted_bytes == 0
    });
    output.omitted_bytes += behind as u64;
}

/// JSON of a message_update, whose line is read as pi wrote it, with the secret masked in it.
fn masked<'a>(secret: Option<&Secret>, json: &'a str) -> Cow<'a, str> {
    let bytes = secret.and_then(|secret| secret.masked(json.as_bytes()));
    bytes.map_or(Cow::Borrowed(json), |bytes| {
        Cow::Owned(String::from_utf8(bytes).unwrap_or_default())
    })
}

/// The same of a value.
fn masked_value<'a>(secret: Option<&Secret>, value: &'a RawValue) -> Cow<'a, RawValue> {
    match masked(secret, value.get()) {
        Cow::Borrowed(_) => Cow::Borrowed(value),
        Cow::Owned(text) => {
            RawValue::from_string(text).map_or(Cow::Borrowed(RawValue::NULL), Cow::Owned)
        }
    }
}

/// A name or an id; empty if there is none.
pub(super) fn name_of(value: Option<&RawValue>) -> Cow<'_, str> {
    string(value, AGENT_NAME_BYTES).unwrap_or_default()
}

pub(super) fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
