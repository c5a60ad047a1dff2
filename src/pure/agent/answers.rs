//! The answers of the model: which one it comes from, how it ended, and what it has used; and what
//! else pi pays for (agent.md, The result). Counted is what pi's own session statistics count: the
//! usage of answers, of results of tools, of compactions and of entries of the session.

use super::event::is_assistant;
use super::meaning::{hash, name_of};
use super::model::Answered;
use super::run::AgentRun;
use super::told::{Compactions, Failure, Tell, Told, Totals, of_answer, of_usage};
use crate::limits::{AGENT_ERROR_BYTES, AGENT_NAME_BYTES, AGENT_TOOL_IDS};
use crate::pure::json::fields::{Fields, each_item};
use crate::pure::json::text::string;
use serde_json::value::RawValue;
use std::borrow::Cow;

impl AgentRun {
    /// A turn is told when it is known who answers, or when there is something else to tell of it.
    pub(super) fn turn_start(&mut self, tell: Tell<'_>) {
        self.release_turn(tell);
        self.unsettled(tell);
        self.clocks.settled_ms = None;
        self.turn_starts += 1;
        self.turn = Totals::default();
        (self.turn_answered, self.turn_ended) = (false, None);
        // Some providers count their calls anew in each answer.
        self.tools_told.clear();
        self.tools_paid.clear();
        self.tools_running.clear();
        self.held_turn = Some(self.turn_starts);
    }

    /// Tells the turn that has begun, if that is not told yet. Nobody has answered in it.
    pub(super) fn release_turn(&mut self, tell: Tell<'_>) {
        self.tell_turn(None, tell);
    }

    fn tell_turn(&mut self, answered: Option<&Answered>, tell: Tell<'_>) {
        let Some(turn) = self.held_turn.take() else { return };
        let asked = self.settings.asked.known();
        tell(&Told {
            event: "turn_start",
            turn: Some(turn),
            provider: asked.map(|asked| asked.provider.as_str()),
            model: asked.map(|asked| asked.model.as_str()),
            response_provider: answered.and_then(|one| one.provider.as_deref()),
            response_model: answered.and_then(Answered::model),
            ..Told::default()
        });
    }

    /// The beginning of an assistant's message.
    pub(super) fn answer_begins(&mut self, message: &Fields<'_>, now_ms: u64, tell: Tell<'_>) {
        self.answered_by(message, tell);
        self.unsettled(tell);
        self.answer_open = true;
        self.clocks.first_event_ms.get_or_insert(now_ms);
        self.answer_began_ms = Some(now_ms);
        self.transcript.next_message(now_ms, tell);
    }

    /// An assistant's message tells which model it comes from.
    pub(super) fn answered_by(&mut self, message: &Fields<'_>, tell: Tell<'_>) {
        let answered = Answered::by(message);
        if self.other_model.is_none() && self.settings.asked.is_other(&answered) {
            self.other_model = Some(answered.clone());
        }
        self.tell_turn(Some(&answered), tell);
        if answered != Answered::default() {
            self.answered = answered;
        }
    }

    /// The end of a message: of an answer, or of another that may say what was paid for it.
    pub(super) fn message_end(&mut self, message: &Fields<'_>, now_ms: u64, tell: Tell<'_>) {
        if is_assistant(message) {
            // Where pi tells nothing before it, the model has answered all the same.
            self.clocks.first_event_ms.get_or_insert(now_ms);
            self.answered_by(message, tell);
            self.answer("message_end", message, now_ms, tell);
        } else if message.get("role").is_some_and(|role| role.get() == r#""toolResult""#) {
            self.tool_spent("message_end", message, tell);
        }
    }

    /// The end of a turn repeats its answer, and the results of its tools.
    pub(super) fn turn_end(&mut self, fields: &Fields<'_>, now_ms: u64, tell: Tell<'_>) {
        let message = Fields::of(fields.get("message"));
        let ended =
            is_assistant(&message).then(|| hash(fields.get("message").map_or("", RawValue::get)));
        let repeats = ended.is_some() && self.turn_ended == ended;
        if repeats && !self.answer_open && !self.turn_answered {
            return;
        }
        self.turn_ended = ended;
        if is_assistant(&message) {
            if std::mem::replace(&mut self.turn_answered, true) {
                self.stopped_by(&message);
            } else {
                // The answer's own end was lost, or nobody could read it.
                self.recovered += 1;
                self.answered_by(&message, tell);
                self.answer("turn_end", &message, now_ms, tell);
            }
        }
        self.turn_answered = false;
        self.release_turn(tell);
        self.tools_spent(fields.get("toolResults"), tell);
        self.turn_ends += 1;
        let turn = std::mem::take(&mut self.turn);
        let known = turn.answers > 0;
        tell(&Told {
            event: "turn_end",
            turn: Some(self.turn_starts.max(self.turn_ends)),
            usage: known.then(|| turn.report()),
            cost_usd: known.then_some(turn.cost.total),
            ..Told::default()
        });
    }

    /// The end of pi's agent repeats all messages: the last answer is taken from there where both
    /// ends of it were lost.
    pub(super) fn last_resort(&mut self, messages: Option<&RawValue>, now_ms: u64, tell: Tell<'_>) {
        let Some(messages) = messages.filter(|_| self.answer_open) else { return };
        let mut last = None;
        each_item(messages, &mut |message| {
            let message = Fields::of(Some(message));
            if is_assistant(&message) {
                last = Some(message);
            }
            true
        });
        let Some(message) = last else { return };
        self.recovered += 1;
        self.answered_by(&message, tell);
        self.answer("agent_end", &message, now_ms, tell);
    }

    /// The end of an answer, as the event has it that is named: here alone its tokens and costs
    /// are settled.
    pub(super) fn answer(
        &mut self,
        event: &str,
        message: &Fields<'_>,
        now_ms: u64,
        tell: Tell<'_>,
    ) {
        self.answer_open = false;
        self.turn_answered = true;
        self.transcript.whole(message.get("content"), now_ms, tell);
        self.transcript.next_message(now_ms, tell);
        let (used, fault) = of_answer(message);
        self.totals.add(&used);
        self.turn.add(&used);
        if let Some(began_ms) = self.answer_began_ms.take() {
            self.answers_ms += now_ms.saturating_sub(began_ms);
            self.answers_tokens = self.answers_tokens.saturating_add(used.written_tokens());
        }
        self.failure = None;
        self.raw_stop_reason = None;
        match self.stopped_by(message).as_deref() {
            Some("error") => self.fail(message.get("errorMessage"), "the model failed", tell),
            Some("aborted") => self.fail(message.get("errorMessage"), "pi has aborted", tell),
            _ => {}
        }
        if let Some(fault) = fault {
            let number = self.totals.answers;
            let text = format!("{fault} in the {event} of the assistant's message {number}");
            self.wire_fault(text, tell);
        }
    }

    /// The result of a tool, as the event has it that is named: a tool that asks a model of its own
    /// says what that has used. True if that is counted now.
    pub(super) fn tool_spent(&mut self, event: &str, result: &Fields<'_>, tell: Tell<'_>) -> bool {
        let name = name_of(result.get("toolCallId"));
        let (id, own) = (hash(&name), event == "message_end");
        let full = self.tools_paid.len() == AGENT_TOOL_IDS;
        // Results without an id cannot be told apart, but each of their own ends is another one's.
        let known = self.tools_paid.contains(&id) && !(own && name.is_empty());
        if known || (full && !own) {
            return false;
        }
        let text = format!("the {event} of a tool's result");
        let spent = self.spend(&text, result.get("usage"), tell);
        if spent && !full {
            self.tools_paid.push(id);
        }
        spent
    }

    /// The end of a turn repeats what its tools have used: it is taken from there where their own
    /// message_ends were lost.
    fn tools_spent(&mut self, results: Option<&RawValue>, tell: Tell<'_>) {
        let Some(results) = results else { return };
        each_item(results, &mut |result| {
            let result = Fields::of(Some(result));
            self.recovered += u64::from(self.tool_spent("turn_end", &result, tell));
            true
        });
        self.tools_paid.clear();
    }

    /// The stream has ended: says what is missing of it that may have cost something.
    pub(super) fn incomplete(&mut self, tell: Tell<'_>) {
        if self.compactions_open > 0 && self.tells_retries {
            self.wire_fault(String::from("the end of a compaction is missing"), tell);
        }
    }

    /// What comes now is not the answer that has begun: its end was lost wherever it could be.
    pub(super) fn unsettled(&mut self, tell: Tell<'_>) {
        if !std::mem::take(&mut self.answer_open) {
            return;
        }
        let number = self.totals.answers + 1;
        let text = format!("the end of the assistant's message {number} is missing");
        self.wire_fault(text, tell);
    }

    /// Keeps the first thing that makes the sums wrong, and tells it.
    pub(super) fn wire_fault(&mut self, text: String, tell: Tell<'_>) {
        if self.wire_fault.is_none() {
            tell(&Told { event: "error", message: Some(&text), ..Told::default() });
            self.wire_fault = Some(text);
        }
    }

    /// Takes the stopReason of a message, if it has a settled one, and gives it.
    fn stopped_by(&mut self, message: &Fields<'_>) -> Option<String> {
        let raw = string(message.get("rawStopReason"), AGENT_NAME_BYTES);
        if let Some(raw) = raw.filter(|raw| !raw.is_empty()) {
            self.raw_stop_reason = Some(raw.into_owned());
        }
        let reason = string(message.get("stopReason"), AGENT_NAME_BYTES)?.into_owned();
        if reason != "pending" && !reason.is_empty() {
            self.stop_reason = Some(reason.clone());
        }
        Some(reason)
    }

    /// Tells an error, in pi's words if it has some, and keeps it for the report.
    pub(super) fn fail(&mut self, words: Option<&RawValue>, otherwise: &str, tell: Tell<'_>) {
        let words = string(words, AGENT_ERROR_BYTES).filter(|words| !words.is_empty());
        let told = words.is_some();
        let text = words.map_or_else(|| otherwise.to_owned(), Cow::into_owned);
        tell(&Told { event: "error", message: Some(&text), ..Told::default() });
        self.failure = Some(Failure { text, told });
    }

    /// A compaction has ended. One that gave no result has told nothing that was paid for.
    pub(super) fn compaction(&mut self, event: &str, result: Option<&RawValue>, tell: Tell<'_>) {
        let result = Fields::of(result);
        if result.0.is_empty() {
            return;
        }
        let paid = self.spend(event, result.get("usage"), tell);
        let compactions = self.compactions.get_or_insert_with(Compactions::default);
        compactions.count += 1;
        compactions.without_usage += u64::from(!paid);
    }

    /// An entry was added to pi's session: what it has paid for besides its answers.
    pub(super) fn entry(&mut self, fields: &Fields<'_>, tell: Tell<'_>) {
        let entry = Fields::of(fields.get("entry"));
        match entry.get("type").map(RawValue::get) {
            Some(r#""compaction""#) => {
                self.compaction("entry_appended", fields.get("entry"), tell);
            }
            Some(r#""usage""# | r#""branch_summary""#) => {
                self.spend("entry_appended", entry.get("usage"), tell);
            }
            _ => {}
        }
    }

    /// Counts what was used besides the answers; false if nothing is told of that.
    pub(super) fn spend(&mut self, event: &str, usage: Option<&RawValue>, tell: Tell<'_>) -> bool {
        let Some(usage) = usage.filter(|usage| usage.get() != "null") else { return false };
        let (used, fault) = of_usage(Some(usage));
        self.totals.add(&used);
        self.turn.add(&used);
        if let Some(fault) = fault {
            self.wire_fault(format!("{fault} in {event}"), tell);
        }
        true
    }
}
