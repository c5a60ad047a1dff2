//! `until` and `stop`: the objects that say what a wait may end by (waits.md, until and stop).

use std::rc::Rc;

use serde_json::value::RawValue;

use super::params::{Kind, Param, checked_fields, fields_of, quoted};
use super::{Int, Reason, RpcError, wanted};
use crate::pure::json::fields::Fields;
use crate::pure::until::{Condition, HttpWanted, Pattern, PatternError};
use crate::sys::proc_view;

/// Statuses that `http` takes for an answer when none are given.
const HTTP_STATUS_DEFAULT: (u16, u16) = (200, 399);

/// Bytes of the path of `http`.
const UNTIL_PATH_BYTES: usize = 2_048;

/// Shortest and longest `idle_ms`.
const UNTIL_IDLE_RANGE_MS: (u64, u64) = (1, 3_600_000);

/// Largest `count`.
const UNTIL_COUNT_MAX: u64 = 1_000_000;

/// Patterns of one call, `until` and `stop` together.
const UNTIL_PATTERNS_MAX: usize = 16;

/// How a family writes the names of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// idle_ms.
    Snake,
    /// idleMs.
    Camel,
}

const TEXT: Param = Param::optional(
    "text",
    Kind::Strings,
    "this string, or any of these, stands in a line of the clean output",
);
const REGEX: Param = Param::optional(
    "regex",
    Kind::Strings,
    "this pattern, or any of these, matches a line of the clean output; no look-around, no \
     back-references; (?i) and (?m) are allowed",
);
const COUNT: Param = Param::optional(
    "count",
    Kind::Integer,
    "with text or regex: which match counts, 1..1000000; default 1",
);
const PORT: Param = Param::optional(
    "port",
    Kind::Port,
    "a process of the session listens on this TCP port; 0 or \"any\": on any port",
);
const HTTP: Param = Param::optional(
    "http",
    Kind::Object(HTTP_FIELDS),
    "a listener of the session answers a GET on loopback",
);
const INPUT: Param = Param::optional(
    "input",
    Kind::InputKind,
    "the session waits for input: true for any, or this kind",
);
const IDLE: &str = "no output for so many milliseconds, and no CPU time used by the session's \
                    processes; clamped to 1..3600000";
const IDLE_CPU: &str = "with the idle time: true leaves the CPU time aside";
const TREE_EXIT: &str = "true: everything that the session started has gone, not the shell alone";

/// The fields of `http`.
pub const HTTP_FIELDS: &[Param] = &[
    Param::optional("port", Kind::Port, "where to ask; default any port of the session"),
    Param::required("path", Kind::NonEmptyText, "the path, which begins with /"),
    Param::optional(
        "status",
        Kind::Statuses,
        "the status that will do, or [lowest, highest]; default [200, 399]",
    ),
];

/// The fields of `until` and of `stop`.
pub const UNTIL: &[Param] = &[
    TEXT,
    REGEX,
    COUNT,
    PORT,
    HTTP,
    INPUT,
    Param::optional("idle_ms", Kind::Integer, IDLE),
    Param::optional("idle_cpu", Kind::Bool, IDLE_CPU),
    Param::optional("tree_exit", Kind::Bool, TREE_EXIT),
];

/// The same for the families that write names in camelCase.
pub const UNTIL_CAMEL: &[Param] = &[
    TEXT,
    REGEX,
    COUNT,
    PORT,
    HTTP,
    INPUT,
    Param::optional("idleMs", Kind::Integer, IDLE),
    Param::optional("idleCpu", Kind::Bool, IDLE_CPU),
    Param::optional("treeExit", Kind::Bool, TREE_EXIT),
];

/// The two conditions of one call.
pub type Conditions = (Option<Rc<Condition>>, Option<Rc<Condition>>);

/// Reads both objects. Gives -32602 with the path of the field that is wrong; of a regex also the
/// character where it is.
pub fn read(
    until: Option<&RawValue>,
    stop: Option<&RawValue>,
    spelling: Spelling,
) -> Result<Conditions, RpcError> {
    let one = |name: &'static str, raw: Option<&RawValue>| {
        raw.map(|raw| Reading::new(name, raw, spelling)?.condition()).transpose()
    };
    let (until, stop) = (one("until", until)?, one("stop", stop)?);
    let patterns = |side: &Option<Condition>| side.as_ref().map_or(0, |side| side.patterns.len());
    let count = patterns(&until) + patterns(&stop);
    if count > UNTIL_PATTERNS_MAX {
        let message = format!("until and stop have {count} patterns, at most {UNTIL_PATTERNS_MAX}");
        let at_fault = if patterns(&until) > 0 { "until" } else { "stop" };
        return Err(RpcError::invalid_param(at_fault, message));
    }
    Ok((until.map(Rc::new), stop.map(Rc::new)))
}

/// One object that is read.
struct Reading<'a> {
    /// until or stop.
    name: &'static str,
    fields: Fields<'a>,
    spelling: Spelling,
}

impl<'a> Reading<'a> {
    fn new(name: &'static str, raw: &'a RawValue, spelling: Spelling) -> Result<Self, RpcError> {
        let table = match spelling {
            Spelling::Snake => UNTIL,
            Spelling::Camel => UNTIL_CAMEL,
        };
        if !raw.get().starts_with('{') {
            let message = format!("{name} must be an object, not {}", quoted(raw.get()));
            return Err(RpcError::invalid_param(name, message));
        }
        let fields = checked_fields(raw.get(), table, &format!("{name}."))?;
        Ok(Reading { name, fields, spelling })
    }

    fn condition(&self) -> Result<Condition, RpcError> {
        let (idle_ms, idle_cpu, tree_exit) = match self.spelling {
            Spelling::Snake => ("idle_ms", "idle_cpu", "tree_exit"),
            Spelling::Camel => ("idleMs", "idleCpu", "treeExit"),
        };
        let mut patterns = self.patterns("text", Pattern::text)?;
        patterns.append(&mut self.patterns("regex", Pattern::regex)?);
        let count = self.count(patterns.is_empty())?;
        let idle = self.in_range(idle_ms, UNTIL_IDLE_RANGE_MS)?;
        let idle_cpu_counts = idle.is_some() && !self.fields.is_true(idle_cpu);
        let needs_proc = ["port", "http", "input"].into_iter().find(|name| self.has(name));
        let needs_proc = needs_proc.or(idle_cpu_counts.then_some(idle_ms));
        if let Some((field, why)) = needs_proc.zip(proc_view::lack()) {
            let message = format!(
                "{}.{field} cannot be waited for: /proc does not tell what processes do, for \
                 {why}; text, regex, {tree_exit}, and {idle_ms} with {idle_cpu} can be",
                self.name
            );
            return Err(RpcError::failed(Reason::System, message));
        }
        let condition = Condition {
            patterns,
            count,
            port: self.fields.get("port").and_then(|raw| wanted::port(raw.get())),
            http: self.http()?,
            input: self.fields.get("input").and_then(|raw| wanted::input(raw.get())),
            idle_ms: idle,
            idle_cpu: self.fields.is_true(idle_cpu),
            tree_exit: self.fields.is_true(tree_exit),
        };
        if condition.idle_cpu && condition.idle_ms.is_none() {
            return Err(self.wrong(idle_cpu, &format!("goes with {idle_ms}, which is not there")));
        }
        let nothing = condition.patterns.is_empty()
            && condition.port.is_none()
            && condition.http.is_none()
            && condition.input.is_none()
            && condition.idle_ms.is_none()
            && !condition.tree_exit;
        if nothing {
            let name = self.name;
            let message = format!(
                "{name} names nothing to wait for: give it text, regex, port, http, input, \
                 {idle_ms} or {tree_exit}, or leave {name} out"
            );
            return Err(RpcError::invalid_param(name, message));
        }
        Ok(condition)
    }

    /// An error of a field, whose path begins the message.
    fn wrong(&self, field: &str, what: &str) -> RpcError {
        let path = format!("{}.{field}", self.name);
        RpcError::invalid_param(&path, format!("{path} {what}"))
    }

    fn has(&self, field: &str) -> bool {
        self.fields.get(field).is_some()
    }

    fn integer(&self, field: &str) -> Option<Int> {
        serde_json::from_str(self.fields.get(field)?.get()).ok()
    }

    /// A whole number from `low` to `high`, where the field is there.
    fn in_range(&self, field: &str, (low, high): (u64, u64)) -> Result<Option<u64>, RpcError> {
        let Some(given) = self.integer(field) else { return Ok(None) };
        match u64::try_from(given.0) {
            Ok(number) if (low..=high).contains(&number) => Ok(Some(number)),
            _ => {
                let what = format!("must be from {low} to {high}, not {}", given.0);
                Err(self.wrong(field, &what))
            }
        }
    }

    fn count(&self, no_patterns: bool) -> Result<u32, RpcError> {
        if no_patterns && self.has("count") {
            return Err(self.wrong("count", "goes with text or regex, which are not there"));
        }
        let count = self.in_range("count", (1, UNTIL_COUNT_MAX))?.unwrap_or(1);
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    fn patterns(
        &self,
        field: &str,
        make: fn(usize, &str) -> Result<Pattern, PatternError>,
    ) -> Result<Vec<Pattern>, RpcError> {
        let Some(raw) = self.fields.get(field) else { return Ok(Vec::new()) };
        let raw = raw.get();
        let listed = raw.starts_with('[');
        // The table has been checked: it is one or the other.
        let sources: Vec<String> = if listed {
            serde_json::from_str(raw).unwrap_or_default()
        } else {
            serde_json::from_str(raw).into_iter().collect()
        };
        if sources.is_empty() {
            return Err(self.wrong(field, "must name at least one pattern, or be left out"));
        }
        if sources.len() > UNTIL_PATTERNS_MAX {
            let what = format!("has {} patterns, at most {UNTIL_PATTERNS_MAX}", sources.len());
            return Err(self.wrong(field, &what));
        }
        let made = sources.iter().enumerate().map(|(index, source)| {
            make(index, source).map_err(|fault| {
                let place = if listed { format!("{field}[{index}]") } else { field.to_owned() };
                let path = format!("{}.{place}", self.name);
                RpcError::invalid_param(&path, format!("{path}: {fault}"))
            })
        });
        made.collect()
    }

    fn http(&self) -> Result<Option<HttpWanted>, RpcError> {
        let Some(raw) = self.fields.get("http") else { return Ok(None) };
        let fields = fields_of(raw.get())?;
        let path = fields.get("path").and_then(|raw| serde_json::from_str(raw.get()).ok());
        let path: String = path.unwrap_or_default();
        if !path.starts_with('/') {
            let what = format!("must begin with /, not be {}", quoted(&format!("{path:?}")));
            return Err(self.wrong("http.path", &what));
        }
        if path.len() > UNTIL_PATH_BYTES {
            let what = format!("has {} bytes, at most {UNTIL_PATH_BYTES}", path.len());
            return Err(self.wrong("http.path", &what));
        }
        // What is not of this would end the request line, or is no part of one (RFC 9112, 3).
        if let Some(c) = path.chars().find(|c| !c.is_ascii_graphic()) {
            let what = format!("must be written with %XX instead of {c:?}");
            return Err(self.wrong("http.path", &what));
        }
        let status = fields.get("status").and_then(|raw| wanted::statuses(raw.get()));
        Ok(Some(HttpWanted {
            port: fields.get("port").and_then(|raw| wanted::port(raw.get())),
            path,
            status: status.unwrap_or(HTTP_STATUS_DEFAULT),
        }))
    }
}
