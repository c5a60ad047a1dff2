//! What the answer of wait_for says of one session (waits.md).

use serde::Serialize;

use crate::server::session::SessionId;
use crate::server::session::listening::Listening;
use crate::server::session::report::TruncationReport;
use crate::server::session::state_report::StateDetail;
use crate::server::session::wait_report::WaitReport;

/// What the answer says of one session.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)] // What has no comment is as in other replies (docs/methods.md).
pub struct Row {
    pub session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub command: String,
    pub family: &'static str,
    /// What it does, or `exited`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_detail: Option<StateDetail>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_screen: Option<bool>,
    /// The state for people.
    #[serde(skip)]
    pub state_line: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listening: Vec<Listening>,
    /// `pending`, `matched`, `stopped`, `exited` or `impossible`.
    pub outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_complete: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_truncated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<TruncationReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footer: Option<String>,
    /// Whether the session is over.
    #[serde(skip)]
    pub exited: bool,
    /// Whether the row tells how the session has ended.
    #[serde(skip)]
    pub tells_end: bool,
}

impl Row {
    /// Whether the log is worth a line: what is not in the answer is there.
    pub fn needs_log(&self) -> bool {
        let failed = self.exit_code.is_some_and(|code| code != 0)
            || self.signal.is_some()
            || self.failure_message.is_some();
        let cut = self.truncation.is_some() || self.omitted_bytes.is_some();
        !self.exited || failed || cut
    }

    /// The row of a session that was over when the call came.
    pub fn over() -> Self {
        let (exited, tells_end) = (true, true);
        Self { exited, tells_end, state: Some("exited"), outcome: "exited", ..Self::default() }
    }
}
