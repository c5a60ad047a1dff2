//! What answers and lists say of what a session is doing (waits.md, State).

use serde::Serialize;

use super::doing::{Seen, State};

/// Declares a report of a state, once for each way in which its fields are spelt.
macro_rules! state_report {
    ($Name:ident, $Detail:ident, $case:literal, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Debug, Serialize)]
        #[serde(rename_all = $case)]
        pub struct $Name {
            /// What a running session does: see waits.md.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub state: Option<&'static str>,
            /// The process that waits for input.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub state_detail: Option<$Detail>,
            /// True: a program has taken the whole screen.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub full_screen: Option<bool>,
            /// The state for people; none of a session that just runs.
            #[serde(skip)]
            pub line: Option<String>,
        }

        #[doc = "Who waits for input."]
        #[derive(Clone, Debug, Serialize)]
        #[serde(rename_all = $case)]
        pub struct $Detail {
            pub pid: i32,
            pub command: String,
            /// `tty` or `stdin`.
            pub fd: &'static str,
            pub since_ms: u64,
            /// `text`: only its prompt tells.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub by: Option<&'static str>,
        }

        impl From<&Seen> for $Name {
            fn from(seen: &Seen) -> Self {
                Self {
                    state: seen.state.map(State::word),
                    state_detail: seen.detail.as_ref().map(|detail| $Detail {
                        pid: detail.pid,
                        command: detail.command.clone(),
                        fd: if detail.terminal { "tty" } else { "stdin" },
                        since_ms: detail.since_ms,
                        by: detail.by_text.then_some("text"),
                    }),
                    full_screen: seen.full_screen.then_some(true),
                    line: seen.line(),
                }
            }
        }
    };
}

state_report!(StateReport, StateDetail, "snake_case", "What a session is doing.");
state_report!(
    StateReportCamel,
    StateDetailCamel,
    "camelCase",
    "The same, as the stream and bash families spell it."
);

impl Seen {
    /// The state for people; none of a session that just runs.
    pub fn line(&self) -> Option<String> {
        Some(match self.state? {
            State::Running => return None,
            State::Stopped => "stopped".to_owned(),
            State::Held => "shell exited, output held".to_owned(),
            State::Waits(input) => {
                let command = self.detail.as_ref().map_or("", |detail| &detail.command);
                format!("waiting for {} ({command})", input.words())
            }
        })
    }
}
