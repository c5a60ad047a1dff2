//! The facts beside each log, `execd-3-ab12cd34.meta`: one line of JSON that says which command the
//! session has, where and when it was started and how it ended, for who looks at logs of execds
//! that are gone (logs.md, Facts beside each log). execd tells them in Facts frames (`frames`).

use super::one_log::{Beside, Log};
use crate::limits::NS_PER_MS;
use crate::sys::log_files::LogDir;
use serde::Deserialize;
use std::collections::VecDeque;

/// Lines of facts that wait at most: above, the oldest one is written at once.
const LOG_FACTS_WAITING_MAX: usize = 64;

/// How long facts wait at most, where the log writer has no pause.
const LOG_FACTS_LATEST_MS: u64 = 1_000;

/// How long facts wait at least: those of a command that ends meanwhile are written once.
const LOG_FACTS_DELAY_MS: u64 = 50;

/// Whether what stands where an ended log should be is the file that its log writer wrote, as far
/// as the facts beside it say that. Errors: [`LogDir::check`]; ENOENT where nothing stands there.
pub(super) fn check(dir: &LogDir, log: &str) -> Result<(), i32> {
    #[derive(Deserialize)]
    struct Known {
        file_id: Option<u64>,
    }
    let known =
        dir.read_meta(log).ok().and_then(|line| serde_json::from_slice::<Known>(&line).ok());
    dir.check(log, known.and_then(|known| known.file_id))
}

/// Facts that are not written yet, oldest first; a log has one line among them at most.
#[derive(Debug, Default)]
pub(super) struct Waiting(VecDeque<Facts>);

#[derive(Debug)]
struct Facts {
    /// The log's name.
    log: String,
    line: Vec<u8>,
    beside: Beside,
    since_ns: u64,
    /// The log itself, where nothing more comes for it: it stays locked until its facts are there.
    held: Option<Log>,
}

impl Waiting {
    /// Takes in a line for a log, in the place of an older one, and what is added to it. Whether
    /// there are too many now.
    pub(super) fn note(
        &mut self,
        (log, beside): (&str, Beside),
        line: Vec<u8>,
        now_ns: u64,
    ) -> bool {
        match self.of(log) {
            Some(one) => (one.line, one.beside) = (line, beside),
            None => {
                let log = log.to_owned();
                let facts = Facts { log, line, beside, since_ns: now_ns, held: None };
                self.0.push_back(facts);
            }
        }
        self.0.len() > LOG_FACTS_WAITING_MAX
    }

    fn of(&mut self, log: &str) -> Option<&mut Facts> {
        self.0.iter_mut().find(|one| one.log == log)
    }

    /// Nothing more comes for a log: it is closed when its facts are written, or now.
    pub(super) fn hold(&mut self, log: Log) {
        if let Some(one) = self.of(&log.name) {
            one.held = Some(log);
        }
    }

    /// When the oldest are due where nothing else waits.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.0.front().map(|one| one.since_ns + LOG_FACTS_DELAY_MS * NS_PER_MS)
    }

    /// Whether the oldest are due; later where something else waits.
    pub(super) fn are_due(&self, now_ns: u64, idle: bool) -> bool {
        let delay_ms = if idle { LOG_FACTS_DELAY_MS } else { LOG_FACTS_LATEST_MS };
        self.0.front().is_some_and(|one| one.since_ns + delay_ms * NS_PER_MS <= now_ns)
    }

    /// Writes the oldest with `write`, which gets the log's name and the line. Whether there were
    /// any.
    pub(super) fn write(&mut self, write: impl FnOnce(&str, &[u8])) -> bool {
        self.0.pop_front().map(|one| one.write(write)).is_some()
    }

    /// Writes those of a log, in the same way, where some wait.
    pub(super) fn write_of(&mut self, log: &str, write: impl FnOnce(&str, &[u8])) {
        let at = self.0.iter().position(|one| one.log == log);
        if let Some(one) = at.and_then(|at| self.0.remove(at)) {
            one.write(write);
        }
    }
}

impl Facts {
    fn write(self, write: impl FnOnce(&str, &[u8])) {
        write(&self.log, &with_beside(self.line, self.beside));
    }
}

/// The line with what execd does not know of.
fn with_beside(mut line: Vec<u8>, beside: Beside) -> Vec<u8> {
    let file_id = beside.file_id.map(|id| format!("\"file_id\":{id}"));
    let truncated = beside.truncated.then(|| "\"log_truncated\":true".to_owned());
    for field in [file_id, truncated].into_iter().flatten() {
        if line.pop_if(|last| *last == b'}').is_some() {
            line.extend_from_slice(format!(",{field}}}").as_bytes());
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rule: logs.md, Facts beside each log: A command that ends at once costs one write, at its
    ///   end
    #[test]
    fn a_line_takes_the_place_of_the_one_before_and_waits_for_a_pause() {
        let (mut waiting, none) = (Waiting::default(), Beside::default());
        let known = Beside { file_id: Some(u64::MAX), truncated: true };
        assert_eq!(waiting.due_ns(), None);
        assert!(!waiting.note(("a", none), b"{}".to_vec(), 0));
        let delay_ns = LOG_FACTS_DELAY_MS * NS_PER_MS;
        assert!(!waiting.note(("a", known), br#"{"exit_code":1}"#.to_vec(), delay_ns - 1));
        assert!(!waiting.are_due(delay_ns - 1, true) && waiting.are_due(delay_ns, true));
        let latest_ns = LOG_FACTS_LATEST_MS * NS_PER_MS;
        assert!(!waiting.are_due(latest_ns - 1, false) && waiting.are_due(latest_ns, false));
        let line = br#"{"exit_code":1,"file_id":18446744073709551615,"log_truncated":true}"#;
        let line = &line[..];
        assert!(waiting.write(|log, written| assert_eq!((log, written), ("a", line))));
        assert!(!waiting.write(|_, _| ()));
        for log in ["a", "b"] {
            waiting.note((log, none), b"{}".to_vec(), 0);
        }
        let mut written = Vec::new();
        for log in ["b", "b", "c"] {
            waiting.write_of(log, |log, _| written.push(log.to_owned()));
        }
        assert_eq!(written, ["b"]);
        assert!(waiting.write(|log, _| assert_eq!(log, "a")));
        let names: Vec<String> = (0..=LOG_FACTS_WAITING_MAX).map(|n| n.to_string()).collect();
        let full: Vec<bool> =
            names.iter().map(|name| waiting.note((name, none), vec![], 0)).collect();
        assert_eq!(full.iter().filter(|full| **full).count(), 1);
        assert!(waiting.write(|log, _| assert_eq!(log, "0")));
    }
}
