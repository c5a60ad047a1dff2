//! What a run may be asked for, and how pi is called for that (agent.md, How pi is called).

use std::collections::BTreeMap;

use super::keys;
use super::run::{AgentSpec, Called};
use crate::limits::{
    AGENT_IDLE_TIMEOUT_MS, AGENT_SHOWN_CHARS, AGENT_TIMEOUT_MS, MAX_CONFIGURABLE_POLL_MS,
};
use crate::pure::agent::agent_files::is_plain_key;
use crate::pure::agent::mask::Secret;
use crate::pure::agent::program::{Version, mapped_tools};
use crate::pure::agent::{Asked, RunSettings, SoFar};
use crate::wire::{self, Int, Kind, RpcError};

/// What an api_key is replaced by wherever it could be seen.
const MASK: &str = "***";

/// The oldest pi that runs are started with, unless a call says otherwise.
const OLDEST: &str = "0.70.0";

/// A longer one is refused.
const AGENT_SECRET_MAX_BYTES: usize = 4_096;

/// A shorter api_key is not looked for in what pi writes.
const AGENT_SECRET_MIN_BYTES: usize = 8;

/// Bytes of the label of a run.
const AGENT_LABEL_MAX_BYTES: usize = 1024;

/// A shorter timeout of a run is refused: pi does not even start within it, and most often the
/// number was meant to be seconds.
const AGENT_TIMEOUT_MIN_MS: i64 = 100;

/// What pi's --thinking takes.
pub const THINKING: &[&str] = &["off", "minimal", "low", "medium", "high", "xhigh", "max"];
/// Whose agent directory a run of pi has: that of all, or its own.
const ISOLATION: &[&str] = &["shared", "run"];

wire::params! {
    pub(crate) struct AgentParams {
        prompt "prompt": String = required(Kind::NonEmptyText, "the task");
        model "model": String = required(
            Kind::NonEmptyText,
            "provider/id, as pi's --model takes it; pi's own default is google",
        );
        system_prompt "system_prompt": Option<String> = optional(
            Kind::Text,
            "put before the prompt, with a blank line between them",
        );
        append_system_prompt "append_system_prompt": bool = optional(
            Kind::Bool,
            "hands system_prompt to pi's --append-system-prompt instead",
        );
        workspace "workspace": Option<String> = optional(
            Kind::NonEmptyText,
            "working directory; default execd's own, against which a relative one is resolved",
        );
        allowed_tools "allowed_tools": Option<Vec<String>> = optional(
            Kind::Words,
            "tools by name, in any case; absent: pi's own defaults, empty: none at all",
        );
        thinking "thinking": Option<String> = optional(
            Kind::Choice(THINKING),
            "how much the model thinks",
        );
        session "session": Option<String> = optional(
            Kind::NonEmptyText,
            "the pi session to go on with, by its id; absent: none is kept",
        );
        env "env": BTreeMap<String, Option<String>> = optional(
            Kind::Env,
            "variables to set (a string) or to unset (null)",
        );
        pi_path "pi_path": Option<String> = optional(
            Kind::NonEmptyText,
            "pi's path, or its name on the PATH; default $EXECD_PI, else pi",
        );
        extra_args "extra_args": Vec<String> = optional(
            Kind::Words,
            "further arguments of pi, before the prompt",
        );
        api_key "api_key": Option<String> = optional(
            Kind::NonEmptyText,
            "handed to pi in its provider's variable, or in a file of its own; shown nowhere",
        );
        extensions "extensions": Vec<String> = optional(Kind::Words, "extensions to load, by path");
        timeout_ms "timeout_ms": Option<Int> = optional(
            Kind::Integer,
            "the run is ended after so many ms, 100 at least; default 600000",
        );
        idle_timeout_ms "idle_timeout_ms": Option<Int> = optional(
            Kind::Integer,
            "it is ended when no event came for so many ms and no tool runs; default 180000",
        );
        first_event_timeout_ms "first_event_timeout_ms": Option<Int> = optional(
            Kind::Integer,
            "it is ended when the model's first event took more ms; where more runs start at once \
             there is more time; default 30000",
        );
        max_cost_usd "max_cost_usd": Option<f64> = optional(
            Kind::Number,
            "it is ended when it has cost more; 0: it may cost nothing, absent: no limit",
        );
        max_tokens "max_tokens": Option<Int> = optional(
            Kind::Integer,
            "it is ended when input, cache writes and output are more tokens; 0: none may be \
             used, absent: no limit",
        );
        wait_ms "wait_ms": Option<Int> = optional(
            Kind::Integer,
            "answers after so many ms at the latest: the run goes on, and agent_result has what it \
             comes to; default: at its end",
        );
        stream "stream": Option<bool> = optional(
            Kind::Bool,
            "sends its events as they come; default true",
        );
        keep_events "keep_events": bool = optional(
            Kind::Bool,
            "keeps pi's raw events for the result",
        );
        raw_log "raw_log": bool = optional(
            Kind::Bool,
            "its log has pi's stream as pi wrote it, in place of its events; not with api_key",
        );
        strict_model "strict_model": Option<bool> = optional(
            Kind::Bool,
            "false: another model than the one asked for may answer; default true: then the run \
             is ended",
        );
        label "label": Option<String> = optional(
            Kind::Chars,
            "told again in each event and in the result; 1 KiB at most",
        );
        isolation "isolation": Option<String> = optional(
            Kind::Choice(ISOLATION),
            "run: pi has an agent directory of its own for this run; default shared",
        );
        keep_agent_dir "keep_agent_dir": bool = optional(
            Kind::Bool,
            "keeps that directory, and the result says where it is",
        );
        min_version "min_version": Option<String> = optional(
            Kind::NonEmptyText,
            "an older pi is not started, nor one that tells no version; default 0.70.0",
        );
    }
}

fn invalid(name: &str, wanted: &str) -> RpcError {
    RpcError::invalid_param(name, format!("{name} {wanted}"))
}

/// What an api_key must be: one that JSON writes otherwise could not be found in pi's stream to be
/// masked.
const KEY_WANTED: &str = "must be printable ASCII without blanks, quotes or backslashes, of at \
                          most 4096 bytes";

/// Reads the params of agent_execute. Errors: what is wrong with them.
pub(crate) fn read(raw: &str) -> Result<AgentParams, RpcError> {
    let params: AgentParams = wire::read_params(raw).map_err(|error| {
        if error.message.starts_with("model is required") {
            return invalid("model", "is required: pi's own default is google, name one");
        }
        // Errors quote what was given, and this is for nobody's eyes.
        let of_key = error.data.get("param").is_some_and(|param| param == "api_key");
        if of_key { invalid("api_key", KEY_WANTED) } else { error }
    })?;
    let (provider, id) = params.model.split_once('/').unwrap_or_default();
    if provider.is_empty() || id.is_empty() || params.model.starts_with('-') {
        return Err(invalid("model", "must be provider/id, anthropic/claude-haiku-4-5 say"));
    }
    let tools = params.allowed_tools.iter().flatten();
    if tools.clone().any(|name| name.trim().is_empty() || name.contains(',')) {
        return Err(invalid("allowed_tools", "must be names of tools, each its own string"));
    }
    let none = Vec::new();
    for (name, words) in [
        ("allowed_tools", params.allowed_tools.as_ref().unwrap_or(&none)),
        ("extensions", &params.extensions),
        ("extra_args", &params.extra_args),
    ] {
        if words.iter().any(|word| word.contains('\0')) {
            return Err(invalid(name, "must not contain NUL: no program can be given one"));
        }
    }
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    let fits = |key: &String| key.len() <= AGENT_SECRET_MAX_BYTES && key.bytes().all(plain);
    if params.api_key.as_ref().is_some_and(|key| !fits(key)) {
        return Err(invalid("api_key", KEY_WANTED));
    }
    if params.raw_log && params.api_key.is_some() {
        return Err(invalid("raw_log", "must not be given with api_key: pi may write the key"));
    }
    if params.timeout_ms.is_some_and(|ms| ms.0 < AGENT_TIMEOUT_MIN_MS) {
        return Err(invalid("timeout_ms", "must be 100 or more"));
    }
    if params.label.as_ref().is_some_and(|label| label.len() > AGENT_LABEL_MAX_BYTES) {
        return Err(invalid("label", "must be of at most 1024 bytes"));
    }
    let provider = params.model.split('/').next().unwrap_or_default();
    let isolated = params.isolation.as_deref() == Some("run");
    let in_a_file = keys::variable_of(provider).is_none() || isolated;
    if in_a_file && params.api_key.as_deref().is_some_and(|key| !is_plain_key(key)) {
        let wanted = "must not begin with ! nor have $ in it where it stands in pi's auth.json";
        return Err(invalid("api_key", wanted));
    }
    if params.max_cost_usd.is_some_and(|cost| cost < 0.0) {
        return Err(invalid("max_cost_usd", "must be 0 or more"));
    }
    if params.max_tokens.is_some_and(|tokens| tokens.0 < 0) {
        return Err(invalid("max_tokens", "must be 0 or more"));
    }
    version_param(params.min_version.as_deref())?;
    Ok(params)
}

/// pi's arguments before the prompt (agent.md, How pi is called).
fn arguments(params: &AgentParams) -> Vec<String> {
    let mut words = vec!["--mode", "json", "--model", &params.model];
    match &params.session {
        None => words.push("--no-session"),
        Some(session) => words.extend(["--session", session]),
    }
    words.push("-p");
    let tools = params.allowed_tools.as_ref().map(|tools| tools.join(","));
    match tools.as_deref() {
        None => {}
        Some("") => words.push("--no-tools"),
        Some(tools) => words.extend(["--tools", tools]),
    }
    if let Some(thinking) = &params.thinking {
        words.extend(["--thinking", thinking]);
    }
    if let Some(text) = params.system_prompt.as_ref().filter(|_| params.append_system_prompt) {
        words.extend(["--append-system-prompt", text]);
    }
    for extension in &params.extensions {
        words.extend(["-e", extension]);
    }
    words.extend(params.extra_args.iter().map(String::as_str));
    words.into_iter().map(str::to_owned).collect()
}

/// The task as pi is to read it. What begins with - or @ would be a flag or a file to pi, which
/// knows no way to quote it in all versions: a blank in front makes it text.
fn prompt(params: &AgentParams) -> String {
    let before = params
        .system_prompt
        .as_ref()
        .filter(|text| !params.append_system_prompt && !text.is_empty());
    let prompt = match before {
        Some(text) => format!("{text}\n\n{}", params.prompt),
        None => params.prompt.clone(),
    };
    if prompt.starts_with(['-', '@']) { format!(" {prompt}") } else { prompt }
}

/// A command line for lists: words that a shell would break are quoted, long ones are cut, and
/// the key is masked.
fn shown(words: &[String], key: Option<&str>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    let show = |word: &String| {
        let word = masked(word, key);
        let word = match word.char_indices().nth(AGENT_SHOWN_CHARS) {
            Some((at, _)) => format!("{}…", &word[..at]),
            None => word,
        };
        let bare = !word.is_empty() && (word == MASK || word.chars().all(plain));
        if bare { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    words.iter().map(show).collect::<Vec<String>>().join(" ")
}

/// The oldest version that a call takes.
pub fn version_param(given: Option<&str>) -> Result<Version, RpcError> {
    let wanted = "min_version must be a version, 0.70.0 say";
    let given = given.unwrap_or(OLDEST);
    Version::parse(given).ok_or_else(|| RpcError::invalid_param("min_version", wanted.to_owned()))
}

/// A word of a command line without the key.
pub(super) fn masked(word: &str, key: Option<&str>) -> String {
    key.map_or_else(|| word.to_owned(), |key| word.replace(key, MASK))
}

/// A run that may be started.
#[derive(Debug)]
pub(super) struct RunPlan {
    /// The arguments of pi, but for the prompt.
    pub words: Vec<String>,
    /// The last argument of pi: the task.
    pub prompt: String,
    /// Variables to set, or to unset.
    pub env: Vec<(String, Option<String>)>,
    /// What the run goes by.
    pub spec: AgentSpec,
    /// How its stream is read.
    pub settings: RunSettings,
    /// What the record tells of how pi is called.
    pub called: Called,
    /// What nobody may read in the output of pi: the key.
    pub key: Option<String>,
    /// The provider of a key that stands in a file of pi's.
    pub key_of: Option<String>,
    /// The run's own agent directory is kept.
    pub keep_agent_dir: bool,
}

impl AgentParams {
    /// The program of pi that is named.
    pub fn pi_path(&self) -> Option<&str> {
        self.pi_path.as_deref()
    }

    /// Where pi is to work.
    pub fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }

    /// The PATH on which pi is looked up, where the call sets it.
    pub fn path(&self) -> Option<&str> {
        self.env.get("PATH").and_then(Option::as_deref)
    }

    /// After how many milliseconds the call is answered at the latest.
    pub fn wait_ms(&self) -> Option<u64> {
        self.wait_ms.map(|ms| ms.clamped(0, MAX_CONFIGURABLE_POLL_MS))
    }

    /// The run is ended after so long.
    pub fn timeout_ms(&self) -> u64 {
        limited(self.timeout_ms, AGENT_TIMEOUT_MS)
    }

    /// Whether its events are sent as they come.
    pub fn streams(&self) -> bool {
        self.stream.unwrap_or(true)
    }

    /// What the client calls the run.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// The model that is asked.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// How far a run is that has just begun, as JSON.
    pub fn nothing_so_far(&self) -> Vec<u8> {
        wire::to_json(&SoFar { label: self.label(), ..SoFar::default() })
    }

    /// The command line of this program, as lists show it.
    pub fn command(&self, program: &str) -> String {
        let words = [vec![program.to_owned()], arguments(self), vec![prompt(self)]].concat();
        shown(&words, self.api_key.as_deref())
    }

    /// The oldest version that the call takes.
    pub(super) fn oldest(&self) -> Result<Version, RpcError> {
        version_param(self.min_version.as_deref())
    }

    /// Whether tools are named, which are held against those of pi.
    pub(super) fn names_tools(&self) -> bool {
        self.allowed_tools.as_ref().is_some_and(|tools| !tools.is_empty())
    }

    /// The environment of the program, as far as the call sets it.
    pub(super) fn env(&self) -> Vec<(String, Option<String>)> {
        self.env.clone().into_iter().collect()
    }

    /// Names the tools as pi does. A name that pi does not have may be an extension's, where one is
    /// named. Errors: the text for people.
    pub(super) fn map_tools(&mut self, tools: &[String], version: &Version) -> Result<(), String> {
        let Some(asked) = &self.allowed_tools else { return Ok(()) };
        let extra = self.extra_args.iter();
        let mut extra = extra.map(|word| word.split('=').next().unwrap_or_default());
        let extended =
            !self.extensions.is_empty() || extra.any(|word| matches!(word, "-e" | "--extension"));
        let mapped = mapped_tools(asked, tools, extended).map_err(|name| {
            let (name, known) = (wire::quoted(&format!("{name:?}")), tools.join(", "));
            format!("allowed_tools: pi {version} has no tool {name}: it has {known}")
        })?;
        self.allowed_tools = Some(mapped);
        Ok(())
    }

    /// From the params to what is started.
    pub(super) fn planned(self, version: Option<String>) -> RunPlan {
        let (words, prompt) = (arguments(&self), prompt(&self));
        let strict_model = self.strict_model.unwrap_or(true);
        let first_event = self.first_event_timeout_ms;
        let spec = AgentSpec {
            timeout_ms: self.timeout_ms(),
            idle_timeout_ms: limited(self.idle_timeout_ms, AGENT_IDLE_TIMEOUT_MS),
            first_event_timeout_ms: first_event.map(|ms| ms.clamped(1, MAX_CONFIGURABLE_POLL_MS)),
            max_cost_usd: self.max_cost_usd,
            max_tokens: self.max_tokens.map(|tokens| tokens.clamped(0, u64::MAX)),
            raw_log: self.raw_log,
            strict_model,
        };
        // A word that short is no key, and may well be a part of what pi writes of itself.
        let secret = self.api_key.as_deref().filter(|key| key.len() >= AGENT_SECRET_MIN_BYTES);
        let settings = RunSettings {
            keep_events: self.keep_events,
            asked: Asked::of(&self.model, strict_model),
            label: self.label,
            secret: secret.map(|key| Secret::new(key.as_bytes())),
        };
        let provider = settings.asked.provider.clone();
        let mut env: Vec<(String, Option<String>)> = self.env.into_iter().collect();
        if let Some(key) = &self.api_key {
            let rivals = keys::rivals_of(&provider).iter().map(|name| (*name, None));
            let variable = keys::variable_of(&provider).map(|name| (name, Some(key.clone())));
            env.extend(rivals.chain(variable).map(|(name, value)| (name.to_owned(), value)));
        }
        // In a file of the run's own it comes before what was copied there. (One that pi would not
        // take for a key there goes into the variable alone.)
        let plain = self.api_key.as_deref().is_some_and(is_plain_key);
        let called = Called {
            version,
            tools: self.allowed_tools,
            extensions: self.extensions,
            session: self.session,
            isolated: self.isolation.as_deref() == Some("run"),
            ..Called::default()
        };
        RunPlan {
            words,
            prompt,
            env,
            spec,
            settings,
            called,
            key: self.api_key,
            key_of: plain.then_some(provider),
            keep_agent_dir: self.keep_agent_dir,
        }
    }
}

fn limited(given: Option<Int>, default_ms: u64) -> u64 {
    given.map_or(default_ms, |given| given.clamped(1, MAX_CONFIGURABLE_POLL_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rule: agent.md, agent_execute, params: api_key goes into the provider's variable where that
    ///   is known, else into a file of pi's; never on a command line
    #[test]
    fn a_key_is_on_no_command_line() {
        for model in ["anthropic/x", "of-mine/y"] {
            let given = format!(r#"{{"prompt":"x","model":"{model}","api_key":"s3cret"}}"#);
            let words = arguments(&read(&given).expect("params")).join(" ");
            assert_eq!(words, format!("--mode json --model {model} --no-session -p"));
        }
    }

    /// rule: agent.md, agent_execute, params: api_key is masked in command, lists and logs
    #[test]
    fn lists_show_a_command_that_a_shell_would_take_without_its_key() {
        let words = ["pi", "-p", "it's s3cret", "", "--api-key", "s3cret"].map(str::to_owned);
        let expected = r"pi -p 'it'\''s ***' '' --api-key ***";
        assert_eq!(shown(&words, Some("s3cret")), expected);
        let long = shown(&["é".repeat(AGENT_SHOWN_CHARS + 1)], None);
        assert_eq!(long, format!("'{}…'", "é".repeat(AGENT_SHOWN_CHARS)));
    }
}
