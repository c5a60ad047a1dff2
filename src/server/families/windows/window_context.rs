//! The object `context` of bash and tmux: what the caller's settings are. Every field may
//! be left out; then the default holds. What the settings lead to is decided by `bash` and `tmux`.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::limits::{
    DEFAULT_MAX_BYTES, DEFAULT_MAX_LINES, MAX_CONFIGURABLE_POLL_MS, PROGRESS_INTERVAL_MS,
    WINDOW_TEXT_MAX_BYTES,
};
use crate::server::families::unified::exec_command::with_prefix;
use crate::server::families::windows::text::INSPECTING;
use crate::server::families::windows::window::{PollSpec, Scope};
use crate::wire::{Int, Kind, Param, RpcError, known_param};

/// Bytes of a string of a context that a window keeps.
const WINDOW_FIELD_BYTES: usize = 4 * 1024;

/// Most characters of it that may be configured.
const WINDOW_NAME_MAX_CHARS: u64 = 200;

/// Characters of a window's name.
const WINDOW_NAME_CHARS: u64 = 30;

/// Most lines of any text of a window.
const WINDOW_LINES_MAX: u64 = 100_000;

/// Lines of a background command's completion.
const WINDOW_COMPLETED_LINES: u64 = 20;

/// Lines of a poll.
const WINDOW_POLL_LINES: u64 = 30;

/// Seconds between two polls that are given to a model, unless the context says otherwise.
const WINDOW_POLL_MIN_S: f64 = 10.0;

/// Pause between two progress notifications of bash: shortest and longest.
const BASH_UPDATE_RANGE_MS: (u64, u64) = (50, 60_000);

/// Shortest time that may be waited for, and between two polls of a window.
const BASH_SHORTEST_MS: u64 = 100;

/// See [`BASH_TIMEOUT_S`].
const BASH_TIMEOUT_MAX_S: f64 = 60.0;

/// Foreground seconds of bash when none are given, and the most that may be asked for, unless the
/// context says otherwise.
const BASH_TIMEOUT_S: f64 = 30.0;

/// The fields of `scope`.
const SCOPE: &[Param] = &[
    Param::optional("piSession", Kind::Text, "pi's session, any word that names it"),
    Param::optional("gitRoot", Kind::Text, "the git root of its directory"),
];

/// The fields of `context`.
pub(crate) const CONTEXT: &[Param] = &[
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

/// Fields that a window keeps as long as it lives.
const KEPT: [&str; 2] = ["tmuxToolName", "attachCommand"];

/// The object as it came. Its types were checked against the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context(Map<String, Value>);

/// Fields by the names that their table has for them.
fn by_own_names(table: &[Param], given: Map<String, Value>) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, value) in given {
        let own = known_param(table, &name).map_or(name, |param| param.name.to_owned());
        fields.insert(own, value);
    }
    fields
}

/// A whole number, or the nearest that fits.
fn integer(value: &Value) -> Option<Int> {
    #[allow(clippy::cast_possible_truncation)] // `as` saturates, which is what is wanted.
    let whole = |number: f64| number as i64;
    value.as_i64().or_else(|| value.as_f64().map(whole)).map(Int)
}

/// Seconds as milliseconds that a clock can wait for.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates.
fn waitable_ms(seconds: f64) -> u64 {
    ((seconds * 1_000.0).round() as u64).clamp(BASH_SHORTEST_MS, MAX_CONFIGURABLE_POLL_MS)
}

/// A number of lines or bytes, clamped to 1..`most`.
fn clamped(given: Option<Int>, default: u64, most: u64) -> usize {
    let count = given.map_or(default, |given| given.clamped(1, most));
    usize::try_from(count).unwrap_or(usize::MAX)
}

impl Context {
    /// Reads a context that was checked against the table. What a window keeps of it is bounded.
    pub(crate) fn read(raw: Option<&RawValue>) -> Result<Self, RpcError> {
        let Some(raw) = raw else { return Ok(Self::default()) };
        let given: Map<String, Value> = serde_json::from_str(raw.get())
            .map_err(|fault| RpcError::invalid_param("context", format!("context: {fault}")))?;
        let mut fields = by_own_names(CONTEXT, given);
        if let Some(Value::Object(scope)) = fields.get_mut("scope") {
            *scope = by_own_names(SCOPE, std::mem::take(scope));
        }
        let context = Self(fields);
        let scope = SCOPE.iter().map(|param| (param.name, context.scope_text(param.name)));
        let kept = KEPT.iter().map(|name| (*name, context.text(name)));
        for (name, text) in kept.chain(scope) {
            if text.is_some_and(|text| text.len() > WINDOW_FIELD_BYTES) {
                let message =
                    format!("context: {name} must be at most {WINDOW_FIELD_BYTES} bytes long");
                return Err(RpcError::invalid_param("context", message));
            }
        }
        Ok(context)
    }

    fn get(&self, name: &str) -> Option<&Value> {
        debug_assert!(CONTEXT.iter().any(|param| param.name == name), "{name} is no field");
        self.0.get(name)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).and_then(Value::as_bool)
    }

    fn seconds(&self, name: &str) -> Option<f64> {
        self.get(name).and_then(Value::as_f64)
    }

    fn count(&self, name: &str, default: u64, most: u64) -> usize {
        clamped(self.get(name).and_then(integer), default, most)
    }

    fn scope_text(&self, name: &str) -> Option<&str> {
        self.get("scope").and_then(|scope| scope.get(name)).and_then(Value::as_str)
    }

    /// What the command gets: directory, environment, shell, a line before it, a terminal.
    pub(crate) fn cwd(&self) -> Option<String> {
        self.text("cwd").map(str::to_owned)
    }

    pub(crate) fn env(&self) -> Vec<(String, Option<String>)> {
        let env = self.get("env").and_then(Value::as_object);
        let pair =
            |(name, value): (&String, &Value)| (name.clone(), value.as_str().map(str::to_owned));
        env.into_iter().flatten().map(pair).collect()
    }

    pub(crate) fn shell(&self) -> String {
        self.text("shellPath").unwrap_or("bash").to_owned()
    }

    /// The command as its shell gets it.
    pub(crate) fn whole(&self, command: &str) -> String {
        with_prefix(self.text("shellCommandPrefix"), command)
    }

    pub(crate) fn tty(&self) -> bool {
        self.flag("tty").unwrap_or(false)
    }

    /// Whose a window is that is started now.
    pub(crate) fn scope(&self) -> Scope {
        let text = |name| self.scope_text(name).map(str::to_owned);
        Scope { pi_session: text("piSession"), git_root: text("gitRoot") }
    }

    /// Whether an action sees a window of this scope.
    pub(crate) fn sees(&self, window: &Scope) -> bool {
        let (pi_session, git_root) = (self.scope_text("piSession"), self.scope_text("gitRoot"));
        let (its_session, its_root) = (window.pi_session.as_deref(), window.git_root.as_deref());
        match self.text("windowScope") {
            Some("pi-session") => its_session == pi_session,
            Some("git-root") => its_root == git_root,
            Some(_) => true,
            None => {
                let fits = |wanted: Option<&str>, has| wanted.is_none() || wanted == has;
                fits(pi_session, its_session) && fits(git_root, its_root)
            }
        }
    }

    /// How long the foreground lasts.
    pub(crate) fn timeout_ms(&self, given: Option<f64>) -> u64 {
        let most = self.seconds("maxTimeoutSeconds").unwrap_or(BASH_TIMEOUT_MAX_S);
        let wanted = given.or_else(|| self.seconds("defaultTimeoutSeconds"));
        waitable_ms(wanted.unwrap_or(BASH_TIMEOUT_S).min(most))
    }

    /// A poll; none where the interval is none.
    pub(crate) fn poll(&self, interval_s: Option<f64>, lines: Option<Int>) -> Option<PollSpec> {
        let wanted = interval_s.filter(|seconds| *seconds > 0.0)?;
        let display = self.text("pollDelivery") == Some("display");
        let least = self.seconds("minimumPollIntervalSeconds").unwrap_or(WINDOW_POLL_MIN_S);
        let interval_ms = waitable_ms(if display { wanted } else { wanted.max(least) });
        let lines = match lines {
            Some(_) => clamped(lines, WINDOW_POLL_LINES, WINDOW_LINES_MAX),
            None => self.count("pollContextLines", WINDOW_POLL_LINES, WINDOW_LINES_MAX),
        };
        Some(PollSpec { interval_ms, lines, display })
    }

    pub(crate) fn lines(&self) -> usize {
        self.count("bashContextLines", DEFAULT_MAX_LINES as u64, WINDOW_LINES_MAX)
    }

    pub(crate) fn completed_lines(&self) -> usize {
        self.count("completedContextLines", WINDOW_COMPLETED_LINES, WINDOW_LINES_MAX)
    }

    pub(crate) fn peek_lines(&self) -> usize {
        self.count("peekContextLines", DEFAULT_MAX_LINES as u64, WINDOW_LINES_MAX)
    }

    pub(crate) fn max_bytes(&self) -> usize {
        self.count("maxOutputBytes", DEFAULT_MAX_BYTES as u64, WINDOW_TEXT_MAX_BYTES as u64)
    }

    pub(crate) fn always_log_path(&self) -> bool {
        self.flag("alwaysShowOutputFilePath").unwrap_or(false)
    }

    pub(crate) fn update_interval_ms(&self) -> u64 {
        let (shortest, longest) = BASH_UPDATE_RANGE_MS;
        let given = self.get("updateIntervalMs").and_then(integer);
        given.map_or(PROGRESS_INTERVAL_MS, |given| given.clamped(shortest, longest))
    }

    pub(crate) fn auto_close(&self) -> bool {
        self.flag("autoCloseWindowsOnCompletion").unwrap_or(true)
    }

    pub(crate) fn name_template(&self) -> &str {
        self.text("windowNameTemplate").unwrap_or("{{nameOrCommand}}")
    }

    pub(crate) fn name_chars(&self) -> usize {
        self.count("maxWindowNameLength", WINDOW_NAME_CHARS, WINDOW_NAME_MAX_CHARS)
    }

    pub(crate) fn marker(&self) -> &str {
        self.text("displayCommandStartMarker").unwrap_or("# SHIM_END")
    }

    pub(crate) fn tool(&self) -> String {
        self.text("tmuxToolName").unwrap_or("tmux").to_owned()
    }

    /// The actions that texts name, of those that they know.
    pub(crate) fn actions(&self) -> Vec<&'static str> {
        let given = self.get("tmuxEnabledActions").and_then(Value::as_array);
        let usable = |action: &&str| {
            given.is_none_or(|given| given.iter().any(|one| one.as_str() == Some(action)))
        };
        INSPECTING.into_iter().filter(usable).collect()
    }

    pub(crate) fn attach(&self) -> String {
        self.text("attachCommand").unwrap_or("execd attach @123").to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(raw: &str) -> Context {
        let raw: Box<RawValue> = serde_json::from_str(raw).expect("JSON");
        Context::read(Some(&raw)).expect("a context")
    }

    #[test]
    fn what_a_window_keeps_is_bounded() {
        let long = "x".repeat(WINDOW_FIELD_BYTES + 1);
        for raw in [
            format!(r#"{{"attachCommand":"{long}"}}"#),
            format!(r#"{{"scope":{{"gitRoot":"{long}"}}}}"#),
        ] {
            let raw: Box<RawValue> = serde_json::from_str(&raw).expect("JSON");
            let error = Context::read(Some(&raw)).expect_err("too long");
            assert!(error.message.ends_with("at most 4096 bytes long"), "{}", error.message);
        }
    }

    #[test]
    fn polls_for_a_model_have_a_shortest_interval() {
        let poll = |raw, interval| context(raw).poll(Some(interval), None);
        let interval = |raw, interval| poll(raw, interval).map(|poll| poll.interval_ms);
        assert_eq!(interval("{}", 2.0), Some(10_000));
        assert_eq!(interval("{}", 20.0), Some(20_000));
        assert_eq!(interval("{}", 0.0), None);
        assert_eq!(interval("{}", -1.0), None);
        assert_eq!(interval(r#"{"minimumPollIntervalSeconds":1}"#, 0.5), Some(1_000));
        assert_eq!(interval(r#"{"pollDelivery":"display"}"#, 0.5), Some(500));
        let lines = |raw, lines| context(raw).poll(Some(1.0), lines).map(|poll| poll.lines);
        assert_eq!(lines("{}", None), Some(30));
        assert_eq!(lines(r#"{"pollContextLines":7}"#, None), Some(7));
        assert_eq!(lines(r#"{"pollContextLines":7}"#, Some(Int(3))), Some(3));
    }
}
