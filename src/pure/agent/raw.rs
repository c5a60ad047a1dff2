//! The raw events of a run, kept for its report where that was asked for (agent.md, The result).

use std::str;

use serde_json::value::RawValue;

use super::run::AgentRun;
use crate::limits::{AGENT_EVENTS_BYTES, AGENT_JSON_DEPTH};
use crate::pure::json::text::mended;

impl AgentRun {
    /// The raw events that are kept; None if they were not asked for.
    pub(super) fn raw_events(&self) -> Option<Vec<&RawValue>> {
        let lines = self.events.lines().filter_map(|line| serde_json::from_str(line).ok());
        self.settings.keep_events.then(|| lines.collect())
    }

    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.settings.keep_events && self.events.len() + bytes < AGENT_EVENTS_BYTES
    }

    pub(super) fn leave_out_event(&mut self) {
        self.events_left_out += u64::from(self.settings.keep_events);
    }

    /// Keeps a raw event, which may have been too long to be there; `whole`: what it tells is there
    /// as a whole.
    pub(super) fn keep_raw(&mut self, raw: Option<&[u8]>, whole: bool) {
        match raw {
            _ if !whole && self.settings.secret.is_some() => self.leave_out_event(),
            Some(line) => self.keep_event(line),
            None => self.events_dropped += u64::from(self.settings.keep_events),
        }
    }

    /// Keeps a raw event, if that was asked for.
    pub(super) fn keep_event(&mut self, line: &[u8]) {
        if !self.settings.keep_events {
            return;
        }
        // Of a line that was told by its beginning nobody knows yet that it is JSON to its end.
        let text = str::from_utf8(line).ok().filter(|_| self.has_room(line.len()));
        let raw = text.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        match raw.and_then(|raw| mended(raw.get(), AGENT_JSON_DEPTH)) {
            Some(json) => {
                let needed = self.events.len() + json.len() + 1;
                if needed > self.events.capacity() {
                    let room = (2 * needed).min(AGENT_EVENTS_BYTES) - self.events.len();
                    self.events.reserve_exact(room);
                }
                self.events.push_str(&json);
                self.events.push('\n');
            }
            None => self.events_dropped += 1,
        }
    }
}
