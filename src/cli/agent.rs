//! `execd agent`: pi on one task, for people and scripts (agent.md).

use std::ffi::OsString;
use std::io::Read;

use lexopt::prelude::*;
use serde_json::{Map, Number, Value as Json};

use super::flags::{Command, Reason, number, setting};
use super::{EXIT_START, EXIT_USAGE, complain};
use crate::config::Config;
use crate::daemon::agents::AgentEnd;
use crate::limits::MAX_LINE_BYTES;

/// What `execd agent` is to do.
#[derive(Debug)]
pub struct AgentOptions {
    /// The params of agent_execute.
    pub params: Map<String, Json>,
    /// Prints events and result as NDJSON instead of the text.
    pub json: bool,
    /// execd's settings.
    pub config: Config,
}

/// Runs pi; gives the exit status: 0 for a success, 124 after a timeout, 130 after Ctrl-C.
pub fn main(options: AgentOptions) -> i32 {
    let AgentOptions { mut params, json, config } = options;
    if params.get("prompt").and_then(Json::as_str) == Some("-") {
        match prompt_of_stdin() {
            Ok(prompt) => params.insert("prompt".to_owned(), prompt.into()),
            Err(reason) => {
                complain(&format!("execd: {reason}"));
                return EXIT_USAGE;
            }
        };
    }
    let Some(mut daemon) = super::start(config) else { return EXIT_START };
    let params = Json::Object(params).to_string();
    let end = match daemon.run_agent_in_front(&params, json) {
        Err(reason) => {
            complain(&format!("execd: {reason} (try execd --help)"));
            return EXIT_USAGE;
        }
        Ok(Some(end)) => {
            if json {
                super::say_bytes(&end.event());
            }
            Some((end, None))
        }
        Ok(None) => {
            let status = daemon.run();
            let ended = daemon.take_front_agent();
            ended.map(|(end, front)| (AgentEnd { status, ..end }, Some(front)))
        }
    };
    let mut lines = Vec::new();
    if daemon.clients.stdin.reader_gone {
        lines.push("execd: stdout takes no more: the run was ended for that".to_owned());
    }
    let (status, front) = match end {
        None => (EXIT_START, None),
        Some((end, front)) => {
            let said = end.lines.iter().filter(|_| !json);
            lines.extend(said.map(|line| format!("execd: {line}")));
            (end.status, front)
        }
    };
    match front {
        Some(front) => front.say_last(&lines),
        None => lines.iter().for_each(|line| complain(line)),
    }
    status
}

/// The prompt that stdin has, to its end.
fn prompt_of_stdin() -> Result<String, String> {
    let mut bytes = Vec::new();
    let most = MAX_LINE_BYTES as u64;
    let read = std::io::stdin().take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("the prompt could not be read from stdin: {error}"))?;
    if bytes.len() > MAX_LINE_BYTES {
        return Err(format!("the prompt on stdin is longer than {MAX_LINE_BYTES} bytes"));
    }
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| "the prompt on stdin is not UTF-8".to_owned())?;
    // What echo and here-documents put behind it is no part of the task.
    let prompt = text.trim_end_matches(['\n', '\r']);
    if prompt.is_empty() {
        Err("the prompt on stdin is empty".to_owned())
    } else {
        Ok(prompt.into())
    }
}

/// Reads the flags of `execd agent`: they become params of agent_execute, which looks at their
/// values.
pub fn parse(arguments: Vec<OsString>, config: Config) -> Result<Command, Reason> {
    let mut options = AgentOptions { params: Map::new(), json: false, config };
    let mut parser = lexopt::Parser::from_args(arguments.into_iter().skip(1));
    while let Some(argument) = parser.next().map_err(|fault| fault.to_string())? {
        let params = &mut options.params;
        let name = match argument {
            Long("help") | Short('h') => return Ok(Command::Help),
            Short('e') => "extension".to_owned(),
            Long(name) => name.to_owned(),
            Short(other) => return Err(format!("unknown flag -{other}")),
            Value(word) => {
                let word = word.into_string().map_err(|word| format!("{word:?} is not UTF-8"))?;
                if params.insert("prompt".to_owned(), word.into()).is_some() {
                    return Err("agent takes one prompt: quote it, or - for stdin".to_owned());
                }
                continue;
            }
        };
        match name.as_str() {
            "json" => options.json = true,
            "no-tools" => {
                params.insert("allowed_tools".to_owned(), Json::Array(vec![]));
            }
            "max-tokens" => {
                let tokens = number(&name, &mut parser, 0, i64::MAX.unsigned_abs())?;
                params.insert("max_tokens".to_owned(), tokens.into());
            }
            _ if param_of(&name).is_some() => {
                let text = parser.value().map_err(|fault| fault.to_string())?;
                let text = text.into_string().map_err(|text| format!("{text:?} is not UTF-8"))?;
                take(params, &name, text)?;
            }
            _ => {
                setting(&name, &mut parser, &mut options.config)?;
            }
        }
    }
    if !options.params.contains_key("prompt") {
        let message = "agent needs a prompt: execd agent --model p/m 'Do it' (- is stdin)";
        return Err(message.to_owned());
    }
    Ok(Command::Agent(Box::new(options)))
}

/// What agent_execute calls the param of a flag with a value.
fn param_of(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "model" => "model",
        "workspace" => "workspace",
        "thinking" => "thinking",
        "session" => "session",
        "system-prompt" | "append-system-prompt" => "system_prompt",
        "pi" => "pi_path",
        "timeout" => "timeout_ms",
        "idle-timeout" => "idle_timeout_ms",
        "first-event-timeout" => "first_event_timeout_ms",
        "max-cost" => "max_cost_usd",
        "tools" => "allowed_tools",
        "extension" => "extensions",
        _ => return None,
    })
}

/// Makes a param of a flag's value.
fn take(params: &mut Map<String, Json>, flag: &str, text: String) -> Result<(), Reason> {
    let Some(name) = param_of(flag) else { return Ok(()) };
    let value: Json = match flag {
        "timeout" | "idle-timeout" | "first-event-timeout" => {
            let wanted = || format!("--{flag} must be a time (600s, 10m), not {text:?}");
            span_ms(&text).ok_or_else(wanted)?.into()
        }
        "max-cost" => {
            let wanted = || format!("--max-cost must be a number of dollars, not {text:?}");
            text.parse().ok().and_then(Number::from_f64).ok_or_else(wanted)?.into()
        }
        "tools" => text.split(',').map(str::trim).collect(),
        "extension" => {
            let words = params.entry(name).or_insert_with(|| Json::Array(vec![]));
            if let Some(words) = words.as_array_mut() {
                words.push(text.into());
            }
            return Ok(());
        }
        _ => text.into(),
    };
    params.insert(name.to_owned(), value);
    if flag == "append-system-prompt" {
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
