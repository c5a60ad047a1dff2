//! The tools: which there are, what a model reads of them (the rows' own words), and from a call's
//! arguments to the params of a row.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::cancel::OnCancel;
use super::fields::{plain, value};
use super::progress::Progress;
use crate::config::Config;
use crate::limits::{MCP_AROUND_BYTES, MCP_OUTPUT_RANGE, MCP_TEXT_BYTES};
use crate::pure::time::rfc3339::parse_utc;
use crate::server::engine::contract::Model;
use crate::server::families::Method;
use crate::server::front::models;
use crate::server::session::view::{TextLimits, head_and_tail};
use crate::sys::clock;
use crate::wire::{Kind, Param, RpcError, known_param, quoted};

/// The schemas of the replies, by their tools (scripts/docs.py).
const REPLIES: &str = include_str!("replies.json");

/// What is said in the place of the words on logs where there are none.
const NO_LOGS: &str =
    "There are no log files: have long output filtered by the command itself (grep, tail).";

/// What asks for a message to the model that nobody has asked for.
const WAKES: &str = "on_exit";
/// Params that no call has here: reports that come by themselves, and what another one says.
const REPORTS: [&str; 3] = ["pollInterval", "pollLines", "maxOutputChars"];
/// Actions of tmux that are about such reports.
const REPORT_ACTIONS: [&str; 3] = ["list-polls", "poll", "unpoll"];
/// What the table says of how much is shown.
const SHOWN: [&str; 3] = [
    "the last 2000 lines or 50 KiB",
    "the last {{bashContextLines}} lines or {{maxOutputKb}}KB",
    "the last {{chars}} characters of stdout and of stderr",
];
/// What it says of a page of a log.
const PAGE: &str = "Default 30000";
/// How much output a result is to show.
const BUDGET: Param = Param::optional("max_output_bytes", Kind::Integer, "");
/// The tools whose results show output, and may show more or less of it; those that show it first.
const SHOW_OUTPUT: [&str; 11] = [
    "exec_command",
    "bash",
    "bash_stream",
    "agent_execute",
    "write_stdin",
    "kill_session",
    "wait_for",
    "poll_process",
    "kill_process",
    "tmux",
    "agent_result",
];
/// So many of them begin something: there the param is described.
const BEGINNERS: usize = 4;
const BUDGET_WORDS: &str =
    "Output shown, a fifth of it from the beginning. Default {{maxOutputBytes}}, 1024 to 51200.";
/// What Gemini CLI adds to the schema of each tool, and hands on: it has heeded it itself.
const HOSTS_OWN: &str = "wait_for_previous";
/// What stands in the place of words of the table, besides numbers of the settings.
const REPLACED: [(&str, &str); 11] = [
    (" list-polls: those with reports.", ""),
    ("\"list-polls\",", ""),
    (",\"poll\",\"unpoll\"", ""),
    (" poll: reports of its output. unpoll: no more reports.", ""),
    ("{{workdir}}", ""),
    ("{{defaultTimeoutSeconds}}", "30"),
    ("{{maxTimeoutSeconds}}", "60"),
    ("{{defaultTimeoutAction}}", "background"),
    ("{{tty}}", "false"),
    ("{{bashToolName}}", "bash"),
    (",\"description\":\"\"", ""),
];

/// The params that say how long a call waits: the milliseconds of one unit, and how many it waits
/// where they are not given, as far as that may be too long.
const WAITS: [(&str, u64, u64); 7] = [
    ("yield_time_ms", 1, 0),
    ("timeout_ms", 1, 30_000),
    ("waitMs", 1, 0),
    ("wait_ms", 1, u64::MAX),
    ("maxDrainMs", 1, 0),
    ("timeout", 1_000, 30_000),
    (STREAM_WAIT, 1, 0),
];
/// The param that execd clamps some of them by.
const CAP: &str = "max_empty_poll_ms";
/// The one whose default is a setting.
const STREAM_WAIT: &str = "yieldMs";
/// The params that end what is waited for once the wait is over: such a wait is not cut.
const ENDS: [(&str, &str); 2] = [("killIf", "timeout"), ("timeoutAction", "kill")];

/// How long a tool waits at most for a client that gave no progress token: the SDK of most clients
/// gives a request up after 60 s.
const MCP_MAX_WAIT_S: u64 = 50;

/// The sets of tools that there are.
pub const SETS: &[&str] = models::SETS;

/// A tool: a row of the table of methods, and what models read of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tool {
    pub row: &'static Method,
    pub model: &'static Model,
}

impl Tool {
    fn table(&self) -> &'static [Param] {
        models::table_of(self.row, self.model)
    }

    /// The params that the model gets, with their words.
    fn params(&self, has_channel: bool) -> Vec<(&'static str, &'static str)> {
        let shown = |name: &str| (has_channel || name != WAKES) && !REPORTS.contains(&name);
        let own = self.model.params.iter().copied().filter(|(name, _)| shown(name));
        let place = SHOW_OUTPUT.iter().position(|name| *name == self.row.name);
        // The other write_stdin shows nothing.
        let place = place.filter(|_| self.row.name != "write_stdin" || !self.model.of_other_form);
        let words = |place| if place < BEGINNERS { BUDGET_WORDS } else { "" };
        own.chain(place.map(|place| (BUDGET.name, words(place)))).collect()
    }
}

/// What the server goes by.
#[derive(Debug)]
pub struct Settings {
    /// The tools, set by set.
    tools: Vec<Tool>,
    /// Results have what execd answered as structured content, too.
    pub structured: bool,
    /// What becomes of the command of a cancelled call; the host's reason says it where this does
    /// not.
    pub on_cancel: Option<OnCancel>,
    /// How long a call without a progress token waits at most.
    pub max_wait_ms: u64,
    max_poll_ms: u64,
    /// How long bash_stream waits where nothing is said.
    stream_ms: u64,
    /// How much output a result shows.
    pub text: TextLimits,
    /// How long a result may become by what it tells of other calls.
    pub result_bytes: usize,
    /// Whether there are log files.
    has_logs: bool,
}

impl Settings {
    /// What goes by the settings of this execd: the tools of these sets, in this order.
    pub fn new(sets: &[&'static str], of: &Config) -> Self {
        let mut tools = Vec::new();
        for set in sets {
            tools.extend(models::tools(set).map(|(row, model)| Tool { row, model }));
        }
        Self {
            tools,
            structured: false,
            on_cancel: None,
            max_wait_ms: MCP_MAX_WAIT_S * 1_000,
            max_poll_ms: of.max_empty_poll_ms,
            stream_ms: of.stream.yield_ms,
            text: of.text,
            result_bytes: of.text.max_bytes.max(MCP_TEXT_BYTES) + MCP_AROUND_BYTES,
            has_logs: !of.logs.off,
        }
    }

    /// The tool that runs a command beside this one, and its param for the command.
    pub(super) fn shell_for(&self, tool: Tool) -> Option<(&'static str, &'static str)> {
        let shells = [("bash", "bash", "command"), ("unified", "exec_command", "cmd")];
        let own = shells.iter().find(|(set, ..)| *set == tool.model.set);
        let shell = own.or_else(|| shells.iter().rev().find(|(set, ..)| self.has(set)));
        shell.map(|(_, name, param)| (*name, *param))
    }

    fn has(&self, set: &str) -> bool {
        self.tools.iter().any(|tool| tool.model.set == set)
    }

    /// Text with the values of the settings in their places.
    fn filled(&self, mut text: String) -> String {
        let (head, tail) = head_and_tail(self.text.max_bytes);
        let shown = format!("the first {} and the last {} of output", size(head), size(tail));
        let numbers = [
            ("{{maxOutputBytes}}", self.text.max_bytes.to_string()),
            ("{{maxPollMs}}", self.max_poll_ms.to_string()),
            ("{{yieldMs}}", self.stream_ms.to_string()),
        ];
        let numbers = numbers.iter().map(|(name, value)| (*name, value.as_str()));
        text = text.replace(PAGE, &format!("Default {}", self.text.max_bytes));
        let numbers = numbers.chain(SHOWN.map(|words| (words, shown.as_str())));
        for (name, value) in numbers.chain(REPLACED) {
            text = text.replace(name, value);
        }
        text
    }
}

/// So many bytes for a model, exactly.
fn size(bytes: usize) -> String {
    match bytes % 1024 {
        0 => format!("{} KiB", bytes / 1024),
        _ => format!("{bytes} bytes"),
    }
}

/// The tool of this name; of two, the one that has all that is given.
pub(super) fn find(
    settings: &Settings,
    name: &str,
    given: &Map<String, Value>,
) -> Result<Tool, RpcError> {
    let has = |tool: &Tool, name: &str| tool.model.params.iter().any(|(own, _)| *own == name);
    let mut found: Option<Tool> = None;
    for tool in settings.tools.iter().filter(|tool| tool.row.name == name) {
        if found.is_none() || given.keys().all(|name| has(tool, name)) {
            found = Some(*tool);
        }
    }
    found.ok_or_else(|| {
        let names: Vec<&str> = settings.tools.iter().map(|tool| tool.row.name).collect();
        let shown = quoted(&Value::from(name).to_string());
        let message = format!("Unknown tool: {shown}; there are {}", names.join(", "));
        RpcError::invalid_param("name", message)
    })
}

/// Whether the replies of a tool carry the events that were not told yet.
pub(super) fn carries_events(tool: Tool) -> bool {
    let is_one = |param: &Param| param.name == "events" && matches!(param.kind, Kind::Bool);
    tool.row.name != "set_on_exit" && tool.table().iter().any(is_one)
}

/// The result of tools/list.
#[derive(Debug, Serialize)]
pub(super) struct List {
    tools: Vec<Listed>,
}

/// A tool as hosts are told of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: &'static str,
    title: &'static str,
    description: String,
    /// In the order in which models are to read the params.
    input_schema: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    annotations: Value,
}

/// All tools.
pub(super) fn list(settings: &Settings, has_channel: bool) -> List {
    let mut tools: Vec<Listed> = Vec::new();
    let replies = if settings.structured { value(REPLIES.as_bytes()) } else { Value::Null };
    for tool in &settings.tools {
        // Two sets may have a tool of one name: the first one's is told. What can do nothing but
        // arm a wake is of no use without somebody who can be woken.
        let useless =
            !has_channel && tool.table().iter().any(|one| one.required && one.name == WAKES);
        let known = tools.iter().any(|one| one.name == tool.row.name);
        if !useless && !known {
            let output_schema = replies.get(tool.row.name).cloned();
            tools.extend(listed(settings, *tool, has_channel, output_schema));
        }
    }
    List { tools }
}

fn listed(
    settings: &Settings,
    tool: Tool,
    has_channel: bool,
    output_schema: Option<Value>,
) -> Option<Listed> {
    let Tool { row, model } = tool;
    let logs = match model.logs {
        "" => "",
        logs if settings.has_logs => logs,
        _ => NO_LOGS,
    };
    let description = format!("{} {logs}", model.description);
    let table = [tool.table(), &[BUDGET]].concat();
    let schema = models::input_schema(&table, &tool.params(has_channel));
    Some(Listed {
        name: row.name,
        title: model.title,
        description: settings.filled(description.trim_end().to_owned()),
        input_schema: RawValue::from_string(settings.filled(schema)).ok()?,
        output_schema,
        annotations: models::annotations(model),
    })
}

/// What a call's arguments lead to.
#[derive(Debug)]
pub(super) struct CallParams {
    /// The params of the tool's row.
    pub params: Map<String, Value>,
    /// How much output the result shows.
    pub limits: TextLimits,
    /// What the result says of a time that was clamped.
    pub note: String,
}

/// Takes a call's arguments. Errors are for the model.
pub(super) fn params(
    settings: &Settings,
    tool: Tool,
    given: Map<String, Value>,
    (progress, has_channel): (Option<&Progress>, bool),
) -> Result<CallParams, String> {
    let table = tool.table();
    let shown = tool.params(has_channel);
    let mut params = Map::new();
    for (name, given) in given {
        let known = known_param(table, &name).or_else(|| known_param(&[BUDGET], &name));
        let own = known.map_or("", |param| param.name);
        if !shown.iter().any(|(one, _)| *one == own) {
            if name == HOSTS_OWN {
                continue;
            }
            let names: Vec<&str> = shown.iter().map(|(name, _)| *name).collect();
            let name = if name.len() <= 80 { &name } else { "what is given" };
            let (tool, names) = (tool.row.name, names.join(", "));
            return Err(format!("{name}: {tool} takes no such argument; it takes {names}"));
        }
        if !given.is_null() {
            // What is given twice keeps both names, and is refused by them.
            let name = if params.contains_key(own) { name } else { own.to_owned() };
            params.insert(name, known.map_or(Value::Null, |param| mended(param.kind, given)));
        }
    }
    let limits = limits(settings, params.remove(BUDGET.name))?;
    let action = params.get("action").and_then(Value::as_str).unwrap_or_default();
    if REPORT_ACTIONS.contains(&action) {
        let why = "nothing is reported here by itself; peek shows the output";
        return Err(format!("{action}: {why}"));
    }
    for param in table {
        let own = match (param.name, param.kind) {
            ("header", _) => Value::from("compact"),
            ("events", Kind::Bool) => Value::Bool(tool.row.name != "set_on_exit"),
            ("stream", Kind::Bool) => Value::Bool(progress.is_some()),
            ("context", _) => json!({
                "bashContextLines": limits.max_lines,
                "peekContextLines": limits.max_lines,
                "maxOutputBytes": limits.max_bytes,
            }),
            ("limit", _) if !params.contains_key("limit") => Value::from(limits.max_bytes),
            (name, Kind::Sessions) if !params.contains_key(name) => Value::from("all"),
            _ => continue,
        };
        params.insert(param.name.to_owned(), own);
    }
    let note = match progress {
        None => cut_waits(settings, table, &mut params),
        Some(_) => String::new(),
    };
    Ok(CallParams { params, limits, note })
}

/// How much output a result shows of a call that gives this number of bytes.
fn limits(settings: &Settings, given: Option<Value>) -> Result<TextLimits, String> {
    let Some(given) = given else { return Ok(settings.text) };
    let (low, high) = MCP_OUTPUT_RANGE;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // What is cut is no number.
    let bytes = given.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as usize);
    match bytes.filter(|bytes| (low..=high).contains(bytes)) {
        Some(max_bytes) => Ok(TextLimits { max_bytes, ..settings.text }),
        None => {
            let (name, given) = (BUDGET.name, quoted(&given.to_string()));
            Err(format!("{name} must be a whole number from {low} to {high}, not {given}"))
        }
    }
}

/// What a value of a loose type stands for: `"5"` for 5, `"true"`, `"@3"` for an id, one session
/// for a list of them. What stands for nothing else is left to the row, which refuses it.
fn mended(kind: Kind, given: Value) -> Value {
    let is_list = kind == Kind::Sessions;
    let meant = match given.as_str() {
        Some(text) => value(text.trim_start_matches(['@', '#']).as_bytes()),
        None if is_list => given.clone(),
        None => return given,
    };
    match (kind, meant) {
        (Kind::Sessions, Value::Array(mut ids)) => {
            for id in &mut ids {
                *id = mended(Kind::Integer, id.take());
            }
            Value::Array(ids)
        }
        (Kind::Sessions, Value::Number(id)) => Value::Array(vec![id.into()]),
        (Kind::Integer | Kind::Number | Kind::Session, meant @ Value::Number(_))
        | (Kind::Bool, meant @ Value::Bool(_))
        | (Kind::Words, meant @ Value::Array(_))
        | (Kind::Object(_) | Kind::Env, meant @ Value::Object(_)) => meant,
        _ => given,
    }
}

/// Cuts what a call waits to what its client certainly waits for an answer. Gives what is said of
/// that where execd does not say it.
fn cut_waits(settings: &Settings, table: &[Param], params: &mut Map<String, Value>) -> String {
    let mut note = String::new();
    let text = |params: &Map<String, Value>, name: &str| -> String {
        params.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    if ENDS.iter().any(|(name, word)| text(params, name) == *word) {
        return note;
    }
    let has = |name: &str| table.iter().any(|param| param.name == name);
    let has_cap = has(CAP);
    if has_cap {
        params.insert(CAP.to_owned(), settings.max_wait_ms.min(settings.max_poll_ms).into());
    }
    for (name, unit_ms, default_ms) in WAITS {
        // Beside a param for the wait alone, another time is the command's.
        if !has(name) || name == "timeout_ms" && has("wait_ms") {
            continue;
        }
        let unset_ms = if name == STREAM_WAIT { settings.stream_ms } else { default_ms };
        let most = settings.max_wait_ms / unit_ms;
        #[allow(clippy::cast_precision_loss)] // It is compared, not kept.
        let too_long = match params.get(name) {
            None => unset_ms / unit_ms > most,
            // execd clamps it, and says so.
            Some(_) if has_cap => false,
            Some(given) => given.as_f64().unwrap_or_default() > most as f64,
        };
        if too_long && let Some(given) = params.insert(name.to_owned(), Value::from(most)) {
            note += &format!("\n[{name} {given} was clamped to {most}]");
        }
    }
    let most_ms = i64::try_from(settings.max_wait_ms).unwrap_or(i64::MAX);
    if let Ok(stamp) = parse_utc(&text(params, "yield_until"))
        && stamp.unix_ms.saturating_sub(clock::wall_ms()) > most_ms
    {
        let until = params.remove("yield_until").unwrap_or_default();
        params.insert("yield_time_ms".to_owned(), Value::from(settings.max_wait_ms));
        let (until, most_s) = (plain(&until), settings.max_wait_ms / 1_000);
        note += &format!("\n[yield_until {until} was clamped to {most_s} s from now]");
    }
    note
}

/// What a model is told of all tools, in at most 600 characters.
pub(super) fn instructions(settings: &Settings) -> String {
    let unified = settings.has("unified");
    // Of two tools of one name the first set's is listed, and is spoken of here.
    let first = settings.tools.iter().map(|tool| tool.model.set).find(|set| *set != "more");
    let idioms = if first == Some("unified") || unified && !settings.has("stream") {
        "Server: exec_command with until {\"port\": 5173} and stop {\"regex\": \"rror\"}. Build, \
         tests: one write_stdin without chars and a long yield_time_ms; it answers when they end. \
         REPL: until {\"input\": true} with each line. "
    } else if settings.has("stream") {
        "Server: bash_stream with until {\"port\": 5173} and stop {\"regex\": \"rror\"}. Build, \
         tests: one poll_process with a long waitMs; it answers when they end. REPL: \
         poll_process with until {\"input\": true} after each line. "
    } else {
        ""
    };
    let has_agents = settings.has("agent");
    let has_commands = settings.tools.iter().any(|tool| tool.model.set != "agent");
    let agents = if has_agents {
        "Several agents at once: agent_execute with wait_ms 0 for each, then agent_result. "
    } else {
        ""
    };
    let logs = match settings.has_logs {
        true if has_commands => {
            "All output is in log files and in the resources execd://session/ID/log. "
        }
        true => "What runs write is in log files and in the resources execd://session/RUN_ID/log. ",
        false => "",
    };
    let cancelled = match has_commands {
        true if has_agents => {
            "A cancelled call leaves its command running unless the user cancels; one of agent_execute ends \
             its run. "
        }
        true => "A cancelled call leaves its command running unless the user cancels. ",
        false => "A cancelled agent_execute ends its run, a cancelled agent_result leaves it. ",
    };
    let all = if has_commands { "sessions" } else { "runs" };
    format!(
        "Never sleep to wait. {idioms}{agents}{logs}{cancelled}Ends of {all} come with the next \
         result (event:). All {all} end with this server."
    )
}
