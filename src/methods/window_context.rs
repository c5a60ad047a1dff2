//! The object `context` of bash and tmux: what the caller's settings are (bash-windows.md). Every
//! field may be left out; then the default holds.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::limits::{
    BASH_SHORTEST_MS, BASH_TIMEOUT_MAX_S, BASH_TIMEOUT_S, BASH_UPDATE_RANGE_MS, DEFAULT_MAX_BYTES,
    DEFAULT_MAX_LINES, MAX_CONFIGURABLE_POLL_MS, PROGRESS_INTERVAL_MS, WINDOW_COMPLETED_LINES,
    WINDOW_LINES_MAX, WINDOW_NAME_CHARS, WINDOW_NAME_MAX_CHARS, WINDOW_POLL_LINES,
    WINDOW_POLL_MIN_S, WINDOW_TEXT_MAX_BYTES,
};
use crate::session::window::{PollSpec, Scope};
use crate::wire::{Int, Kind, Param};

/// The fields of `scope`.
const SCOPE: &[Param] = &[
    Param::optional("piSession", Kind::Text, "pi's session, any word that names it"),
    Param::optional("gitRoot", Kind::Text, "the git root of its directory"),
];

/// The fields of `context`.
pub(super) const CONTEXT: &[Param] = &[
    Param::optional("cwd", Kind::NonEmptyText, "working directory; default execd's own"),
    Param::optional("env", Kind::Env, "variables to set (a string) or to unset (null)"),
    Param::optional("scope", Kind::Object(SCOPE), "whose a window is, and whose tmux sees"),
    Param::optional(
        "windowScope",
        Kind::Choice(&["pi-session", "git-root", "all"]),
        "which windows tmux sees; default: those with each string of scope that is given",
    ),
    Param::optional("shellPath", Kind::NonEmptyText, "run as SHELLPATH -c; default bash"),
    Param::optional(
        "shellCommandPrefix",
        Kind::Text,
        "a line before the command, which no text shows",
    ),
    Param::optional("tty", Kind::Bool, "gives the command a terminal of 120 × 30; default false"),
    Param::optional("defaultTimeoutSeconds", Kind::Number, "where no timeout is given; default 30"),
    Param::optional("maxTimeoutSeconds", Kind::Number, "no timeout is longer; default 60"),
    Param::optional("bashContextLines", Kind::Integer, "lines of bash's text; default 2000"),
    Param::optional("completedContextLines", Kind::Integer, "lines of a completion; default 20"),
    Param::optional("pollContextLines", Kind::Integer, "lines of a poll; default 30"),
    Param::optional("peekContextLines", Kind::Integer, "lines of a peek; default 2000"),
    Param::optional("maxOutputBytes", Kind::Integer, "bytes of any text; default 51200"),
    Param::optional(
        "alwaysShowOutputFilePath",
        Kind::Bool,
        "names the log although nothing was cut; default false",
    ),
    Param::optional("updateIntervalMs", Kind::Integer, "pause between progress; default 250"),
    Param::optional(
        "pollDelivery",
        Kind::Choice(&["model", "display"]),
        "\"model\" (default), or \"display\": only what has changed",
    ),
    Param::optional(
        "minimumPollIntervalSeconds",
        Kind::Number,
        "shortest interval of polls for a model; default 10",
    ),
    Param::optional(
        "autoCloseWindowsOnCompletion",
        Kind::Bool,
        "false keeps windows that have ended listed; default true",
    ),
    Param::optional(
        "windowNameTemplate",
        Kind::Text,
        "of {{nameOrCommand}}, {{name}}, {{command}}; default \"{{nameOrCommand}}\"",
    ),
    Param::optional("maxWindowNameLength", Kind::Integer, "characters of a name; default 30"),
    Param::optional(
        "displayCommandStartMarker",
        Kind::Text,
        "the command is shown from behind the last line that is this; default \"# SHIM_END\"",
    ),
    Param::optional("tmuxToolName", Kind::NonEmptyText, "as texts call it; default \"tmux\""),
    Param::optional(
        "tmuxEnabledActions",
        Kind::Words,
        "the actions that texts name; default list, peek, kill",
    ),
    Param::optional(
        "attachCommand",
        Kind::Text,
        "with @123 for the window; default \"execd attach @123\"; \"\": not told",
    ),
];

/// The object as it came.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub(super) struct Context {
    pub cwd: Option<String>,
    pub env: BTreeMap<String, Option<String>>,
    scope: ScopeField,
    window_scope: Option<String>,
    pub shell_path: Option<String>,
    pub shell_command_prefix: Option<String>,
    pub tty: bool,
    default_timeout_seconds: Option<f64>,
    max_timeout_seconds: Option<f64>,
    bash_context_lines: Option<Int>,
    completed_context_lines: Option<Int>,
    poll_context_lines: Option<Int>,
    peek_context_lines: Option<Int>,
    max_output_bytes: Option<Int>,
    pub always_show_output_file_path: bool,
    update_interval_ms: Option<Int>,
    poll_delivery: Option<String>,
    minimum_poll_interval_seconds: Option<f64>,
    auto_close_windows_on_completion: Option<bool>,
    window_name_template: Option<String>,
    max_window_name_length: Option<Int>,
    display_command_start_marker: Option<String>,
    tmux_tool_name: Option<String>,
    tmux_enabled_actions: Option<Vec<String>>,
    attach_command: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct ScopeField {
    pi_session: Option<String>,
    git_root: Option<String>,
}

/// A number of lines or bytes, clamped to 1..`most`.
fn count(given: Option<Int>, default: u64, most: u64) -> usize {
    let count = given.map_or(default, |given| given.clamped(1, most));
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Seconds that a clock can wait for.
fn waitable(seconds: f64) -> f64 {
    #[allow(clippy::cast_precision_loss)] // Both are far below what a mantissa holds.
    let (shortest, longest) =
        (BASH_SHORTEST_MS as f64 / 1_000.0, MAX_CONFIGURABLE_POLL_MS as f64 / 1_000.0);
    seconds.clamp(shortest, longest)
}

impl Context {
    /// Whose a window is that is started now.
    pub(super) fn scope(&self) -> Scope {
        let ScopeField { pi_session, git_root } = self.scope.clone();
        Scope { pi_session, git_root }
    }

    /// Whether an action sees a window of this scope.
    pub(super) fn sees(&self, window: &Scope) -> bool {
        let (pi_session, git_root) = (&self.scope.pi_session, &self.scope.git_root);
        match self.window_scope.as_deref() {
            Some("pi-session") => window.pi_session == *pi_session,
            Some("git-root") => window.git_root == *git_root,
            Some(_) => true,
            None => {
                let fits = |wanted: &Option<String>, has: &Option<String>| {
                    wanted.is_none() || wanted == has
                };
                fits(pi_session, &window.pi_session) && fits(git_root, &window.git_root)
            }
        }
    }

    /// The foreground's seconds.
    pub(super) fn timeout_s(&self, given: Option<f64>) -> f64 {
        let most = waitable(self.max_timeout_seconds.unwrap_or(BASH_TIMEOUT_MAX_S));
        let wanted = given.or(self.default_timeout_seconds).unwrap_or(BASH_TIMEOUT_S);
        waitable(wanted.min(most))
    }

    /// A poll; none where the interval is none.
    pub(super) fn poll(&self, interval_s: Option<f64>, lines: Option<Int>) -> Option<PollSpec> {
        let wanted = interval_s.filter(|seconds| *seconds > 0.0)?;
        let display = self.poll_delivery.as_deref() == Some("display");
        let least = self.minimum_poll_interval_seconds.unwrap_or(WINDOW_POLL_MIN_S);
        let interval_s = waitable(if display { wanted } else { wanted.max(least) });
        let lines = lines.or(self.poll_context_lines);
        Some(PollSpec {
            interval_s,
            lines: count(lines, WINDOW_POLL_LINES, WINDOW_LINES_MAX),
            display,
        })
    }

    pub(super) fn lines(&self) -> usize {
        count(self.bash_context_lines, DEFAULT_MAX_LINES as u64, WINDOW_LINES_MAX)
    }

    pub(super) fn completed_lines(&self) -> usize {
        count(self.completed_context_lines, WINDOW_COMPLETED_LINES, WINDOW_LINES_MAX)
    }

    pub(super) fn peek_lines(&self) -> usize {
        count(self.peek_context_lines, DEFAULT_MAX_LINES as u64, WINDOW_LINES_MAX)
    }

    pub(super) fn max_bytes(&self) -> usize {
        count(self.max_output_bytes, DEFAULT_MAX_BYTES as u64, WINDOW_TEXT_MAX_BYTES as u64)
    }

    pub(super) fn update_interval_ms(&self) -> u64 {
        let (shortest, longest) = BASH_UPDATE_RANGE_MS;
        let given = self.update_interval_ms;
        given.map_or(PROGRESS_INTERVAL_MS, |given| given.clamped(shortest, longest))
    }

    pub(super) fn auto_close(&self) -> bool {
        self.auto_close_windows_on_completion.unwrap_or(true)
    }

    pub(super) fn name_template(&self) -> &str {
        self.window_name_template.as_deref().unwrap_or("{{nameOrCommand}}")
    }

    pub(super) fn name_chars(&self) -> usize {
        count(self.max_window_name_length, WINDOW_NAME_CHARS, WINDOW_NAME_MAX_CHARS)
    }

    pub(super) fn marker(&self) -> &str {
        self.display_command_start_marker.as_deref().unwrap_or("# SHIM_END")
    }

    pub(super) fn tool(&self) -> String {
        self.tmux_tool_name.clone().unwrap_or_else(|| "tmux".to_owned())
    }

    pub(super) fn actions(&self) -> Vec<String> {
        let all = || ["list", "peek", "kill"].map(str::to_owned).to_vec();
        self.tmux_enabled_actions.clone().unwrap_or_else(all)
    }

    pub(super) fn attach(&self) -> String {
        self.attach_command.clone().unwrap_or_else(|| "execd attach @123".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(raw: &str) -> Context {
        serde_json::from_str(raw).expect("a context")
    }

    #[test]
    fn scopes_decide_what_is_seen() {
        let window = context(r#"{"scope":{"piSession":"s1","gitRoot":"/a"}}"#).scope();
        let bare = Scope::default();
        for (raw, sees, sees_bare) in [
            (r#"{}"#, true, true),
            (r#"{"scope":{"piSession":"s1"}}"#, true, false),
            (r#"{"scope":{"piSession":"s2"}}"#, false, false),
            (r#"{"scope":{"gitRoot":"/a"}}"#, true, false),
            (r#"{"scope":{"piSession":"s1","gitRoot":"/b"}}"#, false, false),
            (
                r#"{"windowScope":"pi-session","scope":{"piSession":"s1","gitRoot":"/b"}}"#,
                true,
                false,
            ),
            (
                r#"{"windowScope":"git-root","scope":{"piSession":"s2","gitRoot":"/a"}}"#,
                true,
                false,
            ),
            (r#"{"windowScope":"git-root","scope":{"piSession":"s1"}}"#, false, true),
            (r#"{"windowScope":"all","scope":{"piSession":"s2","gitRoot":"/b"}}"#, true, true),
        ] {
            assert_eq!(context(raw).sees(&window), sees, "{raw}");
            assert_eq!(context(raw).sees(&bare), sees_bare, "{raw}");
        }
    }

    #[test]
    #[allow(clippy::float_cmp)] // These are the numbers given.
    fn timeouts_are_capped() {
        for (raw, given, expected) in [
            ("{}", None, 30.0),
            ("{}", Some(5.0), 5.0),
            ("{}", Some(600.0), 60.0),
            ("{}", Some(0.000_1), 0.1),
            (r#"{"defaultTimeoutSeconds":7}"#, None, 7.0),
            (r#"{"maxTimeoutSeconds":3}"#, None, 3.0),
            (r#"{"maxTimeoutSeconds":900}"#, Some(600.0), 600.0),
            (r#"{"maxTimeoutSeconds":1e300}"#, Some(1e299), 315_360_000.0),
            (r#"{"maxTimeoutSeconds":-1}"#, Some(5.0), 0.1),
        ] {
            assert_eq!(context(raw).timeout_s(given), expected, "{raw} {given:?}");
        }
    }

    #[test]
    fn polls_for_a_model_have_a_shortest_interval() {
        let poll = |raw, interval| context(raw).poll(Some(interval), None);
        let interval = |raw, interval| poll(raw, interval).map(|poll| poll.interval_s);
        assert_eq!(interval("{}", 2.0), Some(10.0));
        assert_eq!(interval("{}", 20.0), Some(20.0));
        assert_eq!(interval("{}", 0.0), None);
        assert_eq!(interval("{}", -1.0), None);
        assert_eq!(interval(r#"{"minimumPollIntervalSeconds":1}"#, 0.5), Some(1.0));
        assert_eq!(interval(r#"{"pollDelivery":"display"}"#, 0.5), Some(0.5));
        let lines = |raw, lines| context(raw).poll(Some(1.0), lines).map(|poll| poll.lines);
        assert_eq!(lines("{}", None), Some(30));
        assert_eq!(lines(r#"{"pollContextLines":7}"#, None), Some(7));
        assert_eq!(lines(r#"{"pollContextLines":7}"#, Some(Int(3))), Some(3));
    }
}
