//! The flags of `execd agent` as params of agent_execute, whose values execd checks.

use std::ffi::OsString;

use serde_json::{Map, Number, Value as Json};

use crate::cli::arguments::Argument::{Flag, Word};
use crate::cli::arguments::{Arguments, Reason, text};
use crate::cli::settings::{pass_on, setting};
use crate::config::Config;

/// Settings that are not passed on to the execd of a run: they are about a client that sends
/// several requests.
const NOT_PASSED_ON: [&str; 3] = ["--max-line-bytes", "--on-eof", "--exit-after-silence"];

/// What `execd agent` is to do.
#[derive(Debug)]
pub struct AgentOptions {
    /// The params of agent_execute.
    pub params: Map<String, Json>,
    /// Prints events and result as NDJSON instead of the text.
    pub json: bool,
    /// The longest request line that was asked for, in bytes.
    pub max_line_bytes: usize,
    /// Flags that are passed on to the execd that is started for the run.
    pub flags: Vec<OsString>,
}

/// Reads the flags of `execd agent`: they become params of agent_execute, which looks at their
/// values. None: help is asked for.
pub fn parse(words: Vec<OsString>, mut config: Config) -> Result<Option<AgentOptions>, Reason> {
    let mut options =
        AgentOptions { params: Map::new(), json: false, max_line_bytes: 0, flags: Vec::new() };
    let mut arguments = Arguments::new(words);
    while let Some(argument) = arguments.next()? {
        let params = &mut options.params;
        let flag = match argument {
            Flag(flag) => flag,
            Word(word) => {
                if params.insert("prompt".to_owned(), text(word)?.into()).is_some() {
                    return Err("agent takes one prompt: quote it, or - for stdin".to_owned());
                }
                continue;
            }
        };
        match flag.as_str() {
            "-h" | "--help" => return Ok(None),
            "--json" => options.json = true,
            "--no-tools" => _ = params.insert("allowed_tools".to_owned(), Json::Array(vec![])),
            "--max-tokens" => {
                let tokens = arguments.number(&flag, 0, i64::MAX.unsigned_abs())?;
                params.insert("max_tokens".to_owned(), tokens.into());
            }
            flag if param_of(flag).is_some() => take(params, flag, text(arguments.value()?)?)?,
            flag if NOT_PASSED_ON.contains(&flag) => {
                setting(flag, &mut arguments, &mut config)?;
            }
            flag => pass_on(flag, &mut arguments, &mut config, &mut options.flags)?,
        }
    }
    if !options.params.contains_key("prompt") {
        let message = "agent needs a prompt: execd agent --model p/m 'Do it' (- is stdin)";
        return Err(message.to_owned());
    }
    options.max_line_bytes = config.max_line_bytes;
    Ok(Some(options))
}

/// What agent_execute calls the param of a flag with a value.
fn param_of(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "--model" => "model",
        "--workspace" => "workspace",
        "--thinking" => "thinking",
        "--session" => "session",
        "--system-prompt" | "--append-system-prompt" => "system_prompt",
        "--pi" => "pi_path",
        "--timeout" => "timeout_ms",
        "--idle-timeout" => "idle_timeout_ms",
        "--first-event-timeout" => "first_event_timeout_ms",
        "--max-cost" => "max_cost_usd",
        "--tools" => "allowed_tools",
        "-e" | "--extension" => "extensions",
        _ => return None,
    })
}

/// Makes a param of a flag's value.
fn take(params: &mut Map<String, Json>, flag: &str, text: String) -> Result<(), Reason> {
    let Some(name) = param_of(flag) else { return Ok(()) };
    let value: Json = match flag {
        "--timeout" | "--idle-timeout" | "--first-event-timeout" => {
            let wanted = || format!("{flag} must be a time (600s, 10m), not {text:?}");
            span_ms(&text).ok_or_else(wanted)?.into()
        }
        "--max-cost" => {
            let wanted = || format!("--max-cost must be a number of dollars, not {text:?}");
            text.parse().ok().and_then(Number::from_f64).ok_or_else(wanted)?.into()
        }
        "--tools" => text.split(',').map(str::trim).collect(),
        "-e" | "--extension" => {
            let words = params.entry(name).or_insert_with(|| Json::Array(vec![]));
            if let Some(words) = words.as_array_mut() {
                words.push(text.into());
            }
            return Ok(());
        }
        _ => text.into(),
    };
    params.insert(name.to_owned(), value);
    if flag == "--append-system-prompt" {
        params.insert("append_system_prompt".to_owned(), true.into());
    }
    Ok(())
}

/// A span of time in milliseconds: `600`, `600s`, `1.5m`, `2h`, `500ms`. A bare number is seconds.
pub fn span_ms(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let factor = match &text[digits.len()..] {
        "ms" => 1.0,
        "" | "s" => 1_000.0,
        "m" => 60_000.0,
        "h" => 3_600_000.0,
        _ => return None,
    };
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let ms = digits.parse::<f64>().ok().filter(|_| plain)? * factor;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates.
    (ms >= 1.0).then_some(ms as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rule: agent.md, execd agent: Its flags; `-` is stdin
    #[test]
    fn spans_have_units() {
        for (text, ms) in [
            ("600", Some(600_000)),
            ("600s", Some(600_000)),
            ("1.5m", Some(90_000)),
            ("2h", Some(7_200_000)),
            ("250ms", Some(250)),
            ("0", None),
            ("", None),
            ("s", None),
            ("-1s", None),
            ("1e3", None),
            ("1d", None),
            ("1.2.3", None),
        ] {
            assert_eq!(span_ms(text), ms, "{text:?}");
        }
    }
}
