//! Params: one table per method says what there is; a request is checked against it so that
//! every error names the field and quotes the value, and `--describe` prints the same table.

mod names;

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;
use serde_json::{Map, Value};

use super::{Int, Reason, RpcError, wanted};
use crate::limits::QUOTED_VALUE_BYTES;
use crate::pure::json::fields::Fields;
use crate::pure::process::marks::is_mark;
use crate::pure::text::utf8::floor_boundary;

pub use names::known as known_param;

/// Longest name of a session, which lists and notifications repeat, also when it has ended.
const MAX_LABEL_BYTES: usize = 1_024;

/// Params that have this may have a secret in them.
const SECRET: &str = "\"secret\"";

/// The type of a param.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string without NUL.
    Text,
    /// A string without NUL that is not empty.
    NonEmptyText,
    /// A string without NUL that is kept as long as what it names: of bounded length.
    Label,
    /// A string of any characters.
    Chars,
    /// A whole number (250, 250.0 and 1e3 are).
    Integer,
    /// A number that may have a fraction.
    Number,
    /// true or false.
    Bool,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// An object of strings (set) and nulls (unset).
    Env,
    /// A request's id: string, number or null.
    Id,
    /// A signal: its name, or its number.
    Signal,
    /// Bytes: a string, or an object with base64.
    Data,
    /// An array of strings.
    Words,
    /// A string, or an array of strings.
    Strings,
    /// A TCP port: its number, or "any" or 0.
    Port,
    /// A status of HTTP, or an array of the lowest and the highest.
    Statuses,
    /// true, or a kind of input.
    InputKind,
    /// A session's id.
    Session,
    /// Sessions: an array of their ids, or "all".
    Sessions,
    /// An object of these fields.
    Object(&'static [Param]),
}

/// One param of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name on the wire.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether it must be there.
    pub required: bool,
    /// What it does, its unit, range and default.
    pub doc: &'static str,
    /// Other names that are taken for it: those that other tools have for the same.
    pub aliases: &'static [&'static str],
}

impl Param {
    /// A param that must be there.
    pub const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, required: true, doc, aliases: &[] }
    }

    /// A param that may be left out.
    pub const fn optional(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, required: false, doc, aliases: &[] }
    }

    /// The same, by other names too.
    #[must_use]
    pub const fn or(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }
}

/// The bytes of a base64 text; whitespace in it is fine.
pub fn decode_base64(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    let compact: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    // Padding may be left out: what is meant is still one value.
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(&STANDARD, config).decode(compact)
}

/// A JSON text as an error message quotes it: as given, cut when it is long.
pub fn quoted(raw: &str) -> String {
    if raw.len() <= QUOTED_VALUE_BYTES {
        return raw.to_owned();
    }
    format!("{}… ({} bytes)", &raw[..floor_boundary(raw, QUOTED_VALUE_BYTES)], raw.len())
}

/// Params that are declared once, by [`params!`](crate::wire::params): the struct that a handler
/// gets, and the table that requests are checked against and that `--describe` prints.
pub trait Declared: DeserializeOwned {
    /// The table, in the order of the declaration.
    const TABLE: &'static [Param];
}

/// Declares the params of a method: of each the field of the struct, its name on the wire, its
/// type, whether it is required or optional, its kind and its text, and behind `or` other names
/// that are taken for it. What may be left out has a type with a default (`Option`, `bool`, a
/// list).
#[macro_export]
macro_rules! params {
    ($vis:vis struct $Name:ident {
        $($field:ident $wire:literal: $ty:ty = $need:ident($kind:expr, $doc:expr $(,)?)
            $(or $alias:literal)*;)*
    }) => {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        $vis struct $Name {
            // The table is checked before the fields are read: what is required is there. A param
            // may be declared to be checked, and read by those who make the reply.
            $(#[allow(dead_code)] #[serde(rename = $wire, default)] $field: $ty,)*
        }

        impl $Name {
            /// The table of the params.
            $vis const TABLE: &'static [$crate::wire::Param] =
                &[$($crate::wire::Param::$need($wire, $kind, $doc).or(&[$($alias),*])),*];
        }

        impl $crate::wire::Declared for $Name {
            const TABLE: &'static [$crate::wire::Param] = Self::TABLE;
        }
    };
}

pub use params;

/// Reads params as they are declared. Errors: see [`read`].
pub fn read_params<T: Declared>(raw: &str) -> Result<T, RpcError> {
    read(raw, T::TABLE)
}

/// Whether params are as they are declared; acts on nothing. Errors: see [`read`].
pub fn check_params<T: Declared>(raw: &str) -> Result<(), RpcError> {
    read_params::<T>(raw).map(drop)
}

/// Reads params into `T`, whose fields are those of `table`. Gives -32602 naming the field that
/// is missing, unknown, given twice or of a wrong type, with its value as given.
pub(super) fn read<T: DeserializeOwned>(raw: &str, table: &[Param]) -> Result<T, RpcError> {
    // Beside a secret no value is quoted.
    let secret = raw.contains(SECRET);
    let fields = checked_fields(raw, table, "")
        .map_err(|error| if secret { error.without_value() } else { error })?;
    // From the fields at hand: a second parser of the whole text in each method would make the
    // program a good deal larger.
    let values = fields.0.iter().map(|(name, value)| (name.as_ref(), *value));
    T::deserialize(MapDeserializer::new(values)).map_err(|fault| match secret {
        true => RpcError::invalid_param("params", "params: they cannot be read"),
        false => unreadable(fault),
    })
}

fn unreadable(fault: serde_json::Error) -> RpcError {
    RpcError::invalid_param("params", format!("params: {fault}"))
}

pub(super) fn fields_of(raw: &str) -> Result<Fields<'_>, RpcError> {
    Fields::parse(raw).map_err(unreadable)
}

/// The fields of an object, held against its table and by the names that the table has for them.
/// `inside` is the path of the object itself, with a dot at its end: errors name a field of a param
/// by its whole path.
pub(super) fn checked_fields<'a>(
    raw: &'a str,
    table: &[Param],
    inside: &str,
) -> Result<Fields<'a>, RpcError> {
    let mut fields = fields_of(raw)?;
    let mut taken: Vec<(&str, String)> = Vec::new();
    for (name, value) in &mut fields.0 {
        let Some(param) = names::known(table, name) else {
            return Err(names::unknown(name, table, inside));
        };
        let path = format!("{inside}{}", param.name);
        if let Some((_, earlier)) = taken.iter().find(|(known, _)| *known == param.name) {
            return Err(names::twice(&path, earlier, name, inside));
        }
        check(param.kind, &path, value.get())?;
        taken.push((param.name, name.to_string()));
        if *name != param.name {
            *name = Cow::Borrowed(param.name);
        }
    }
    for param in table.iter().filter(|param| param.required) {
        if !taken.iter().any(|(name, _)| *name == param.name) {
            let path = format!("{inside}{}", param.name);
            let message = format!("{path} is required: {}", param.doc);
            return Err(RpcError::invalid_param(&path, message));
        }
    }
    Ok(fields)
}

fn check(kind: Kind, path: &str, raw: &str) -> Result<(), RpcError> {
    let fault = |wanted: &str| misfit(path, wanted, raw);
    match kind {
        Kind::Text | Kind::NonEmptyText | Kind::Label => {
            match serde_json::from_str::<String>(raw) {
                Err(_) => fault("a string"),
                Ok(text) if text.is_empty() && kind == Kind::NonEmptyText => {
                    fault("a string that is not empty")
                }
                Ok(text) if text.len() > MAX_LABEL_BYTES && kind == Kind::Label => {
                    fault(&format!("a string of at most {MAX_LABEL_BYTES} bytes"))
                }
                Ok(text) => no_nul(path, &text, path),
            }
        }
        Kind::Chars => serde_json::from_str::<String>(raw).map(drop).or_else(|_| fault("a string")),
        Kind::Integer => {
            serde_json::from_str::<Int>(raw).map(drop).or_else(|_| fault("a whole number"))
        }
        Kind::Number => serde_json::from_str::<f64>(raw).map(drop).or_else(|_| fault("a number")),
        Kind::Bool => {
            serde_json::from_str::<bool>(raw).map(drop).or_else(|_| fault("true or false"))
        }
        Kind::Choice(words) => match serde_json::from_str::<String>(raw) {
            Ok(word) if words.contains(&word.as_str()) => Ok(()),
            _ => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                fault(&words.join(" or "))
            }
        },
        Kind::Id => match raw.as_bytes().first() {
            Some(b'"' | b'-' | b'n' | b'0'..=b'9') => Ok(()),
            _ => fault("the id of a request: a string, a number or null"),
        },
        Kind::Signal => match raw.as_bytes().first() {
            Some(b'"' | b'-' | b'0'..=b'9') => Ok(()),
            _ => fault("the name or number of a signal"),
        },
        Kind::Data => match serde_json::from_str::<Value>(raw) {
            Ok(Value::String(_)) => Ok(()),
            Ok(Value::Object(data))
                if data.len() == 1 && data.get("base64").is_some_and(Value::is_string) =>
            {
                Ok(())
            }
            _ => fault("a string, or {\"base64\": \"…\"}"),
        },
        Kind::Env => match serde_json::from_str::<Map<String, Value>>(raw) {
            Ok(env) => check_env(path, &env),
            Err(_) => fault("an object of strings, or null to unset"),
        },
        Kind::Words => serde_json::from_str::<Vec<String>>(raw)
            .map(drop)
            .or_else(|_| fault("an array of strings")),
        Kind::Strings if raw.starts_with('"') => check(Kind::Chars, path, raw),
        Kind::Strings => serde_json::from_str::<Vec<String>>(raw)
            .map(drop)
            .or_else(|_| fault("a string or an array of strings")),
        Kind::Port => wanted::port(raw).map(drop).ok_or(()).or_else(|()| fault(wanted::PORT)),
        Kind::Statuses => {
            wanted::statuses(raw).map(drop).ok_or(()).or_else(|()| fault(wanted::STATUSES))
        }
        Kind::InputKind => {
            wanted::input(raw).map(drop).ok_or(()).or_else(|()| fault(wanted::INPUT))
        }
        Kind::Session | Kind::Sessions => check_ids(kind, path, raw),
        Kind::Object(table) if raw.starts_with('{') => {
            checked_fields(raw, table, &format!("{path}.")).map(drop)
        }
        Kind::Object(_) => fault("an object"),
    }
}

fn misfit(path: &str, wanted: &str, raw: &str) -> Result<(), RpcError> {
    let message = format!("{path} must be {wanted}, not {}", quoted(raw));
    Err(RpcError::invalid_param(path, message))
}

/// A negative number is the id of no session, and is told as it was given.
fn check_ids(kind: Kind, path: &str, raw: &str) -> Result<(), RpcError> {
    let (ids, says): (Vec<Int>, _) = match kind {
        _ if raw == r#""all""# && kind == Kind::Sessions => return Ok(()),
        Kind::Sessions => match serde_json::from_str(raw) {
            Ok(ids) => (ids, format!("{path}: unknown session_id")),
            Err(_) => return misfit(path, "an array of session ids, or \"all\"", raw),
        },
        _ => {
            check(Kind::Integer, path, raw)?;
            (serde_json::from_str(raw).into_iter().collect(), format!("unknown {path}"))
        }
    };
    let Some(Int(id)) = ids.into_iter().find(|id| id.0 < 0) else { return Ok(()) };
    let error = RpcError::failed(Reason::UnknownSession, format!("{says}: {id}"));
    // Of one session it is told as of a positive number that is none.
    Err(if kind == Kind::Sessions { error.with("param", path.into()) } else { error })
}

fn no_nul(path: &str, text: &str, what: &str) -> Result<(), RpcError> {
    if text.contains('\0') {
        let message = format!("{what} must not contain NUL: no program can be given one");
        return Err(RpcError::invalid_param(path, message));
    }
    Ok(())
}

fn check_env(path: &str, env: &Map<String, Value>) -> Result<(), RpcError> {
    for (name, value) in env {
        let shown = quoted(name);
        let value = match value {
            Value::Null => "",
            Value::String(text) => text,
            other => {
                let other = quoted(&other.to_string());
                let message =
                    format!("{path}[{shown:?}] must be a string, or null to unset it, not {other}");
                return Err(RpcError::invalid_param(path, message));
            }
        };
        no_nul(path, name, "a name in env")?;
        no_nul(path, value, "a value in env")?;
        if is_mark(name) {
            let message = format!("{path}: {name} is set by execd itself");
            return Err(RpcError::invalid_param(path, message));
        }
        if name.is_empty() || name.contains('=') {
            let message =
                format!("{path}: a variable's name must not be empty or contain '=': {shown:?}");
            return Err(RpcError::invalid_param(path, message));
        }
    }
    Ok(())
}

/// The schema of a kind, but for those that have parts of their own.
fn plain_schema(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Label | Kind::Chars | Kind::Choice(_) => r#"{"type":"string"}"#,
        Kind::NonEmptyText => r#"{"type":"string","minLength":1}"#,
        Kind::Integer | Kind::Session => r#"{"type":"integer"}"#,
        Kind::Number => r#"{"type":"number"}"#,
        Kind::Bool => r#"{"type":"boolean"}"#,
        Kind::Words => r#"{"type":"array","items":{"type":"string"}}"#,
        Kind::Strings => {
            r#"{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}"#
        }
        Kind::Port => {
            r#"{"oneOf":[{"type":"integer","minimum":0,"maximum":65535},
                {"type":"string","enum":["any"]}]}"#
        }
        Kind::Statuses => {
            r#"{"oneOf":[{"type":"integer"},{"type":"array","items":{"type":"integer"},
                "minItems":2,"maxItems":2}]}"#
        }
        Kind::InputKind => {
            r#"{"oneOf":[{"type":"boolean","const":true},
                {"type":"string","enum":["line","password","key"]}]}"#
        }
        Kind::Env => r#"{"type":"object","additionalProperties":{"type":["string","null"]}}"#,
        Kind::Id => r#"{"type":["string","number","null"]}"#,
        Kind::Signal => r#"{"type":["string","integer"]}"#,
        Kind::Data => {
            r#"{"oneOf":[{"type":"string"},{"type":"object","required":["base64"],
                "additionalProperties":false,"properties":{"base64":{"type":"string"}}}]}"#
        }
        Kind::Sessions => {
            r#"{"oneOf":[{"type":"array","items":{"type":"integer"},"minItems":1},
                {"type":"string","enum":["all"]}]}"#
        }
        Kind::Object(_) => r#"{"type":"object"}"#,
    }
}

/// The table as a JSON Schema object, for `--describe`.
pub fn schema(table: &[Param]) -> Value {
    let property = |param: &Param| {
        let mut field = match param.kind {
            Kind::Object(table) => schema(table),
            // The texts above are JSON, which a test sees.
            kind => serde_json::from_str(plain_schema(kind)).unwrap_or_default(),
        };
        if let Kind::Choice(words) = param.kind {
            field["enum"] = words.iter().copied().collect();
        }
        field["description"] = param.doc.into();
        if !param.aliases.is_empty() {
            field["aliases"] = param.aliases.iter().copied().collect();
        }
        (param.name.to_owned(), field)
    };
    let properties: Map<String, Value> = table.iter().map(property).collect();
    let required = table.iter().filter(|param| param.required).map(|param| param.name);
    let mut whole = Map::new();
    whole.insert("type".to_owned(), "object".into());
    whole.insert("properties".to_owned(), properties.into());
    whole.insert("required".to_owned(), required.collect());
    whole.insert("additionalProperties".to_owned(), false.into());
    whole.into()
}
