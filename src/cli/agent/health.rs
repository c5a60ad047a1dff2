//! `execd agent --health`: whether pi is there, and which (docs/agent.md, Is pi there).

use std::ffi::OsString;

use serde_json::{Value, json};

use super::flags::{HealthOptions, as_of_flags};
use crate::cli::agent::HELP;
use crate::cli::say::{EXIT_FAILED, EXIT_USAGE, complain, say};
use crate::client::connection::message_of;
use crate::client::fresh::Fresh;
use crate::pure::text::visible::one_line;

/// Asks pi for its version; gives the exit status: 0 where pi can be run, 1 where it cannot.
pub fn main(options: &HealthOptions) -> Result<i32, String> {
    // Nobody could find the execd's socket in its short life.
    let flags = [OsString::from("--no-socket")].into_iter().chain(options.flags.clone());
    let mut execd = Fresh::start(flags.collect())?;
    let params = json!(options.params);
    let health = match execd.connection.call("agent_health", &params, None)? {
        Ok(health) => health,
        Err(error) => {
            let reason = as_of_flags(&message_of(&error));
            complain(&format!("execd: {reason} (try {HELP})"));
            return Ok(EXIT_USAGE);
        }
    };
    let ok = health["ok"] == true;
    let said = match (options.json, ok) {
        (true, _) => say(&format!("{{{}}}\n", fields(&health).join(","))),
        (false, true) => say(&line(&health)),
        (false, false) => {
            complain(&format!("execd: {}", health["error"].as_str().unwrap_or("pi is not there")));
            0
        }
    };
    Ok(if ok { said } else { EXIT_FAILED })
}

/// The fields of pi's health as JSON, in the order of the docs.
fn fields(health: &Value) -> Vec<String> {
    let names = ["ok", "version", "path", "error"].iter();
    names.filter_map(|name| Some(format!("\"{name}\":{}", health.get(name)?))).collect()
}

/// pi's health in a line.
fn line(health: &Value) -> String {
    let field = |name: &str| one_line(health[name].as_str().unwrap_or_default());
    format!("pi {} at {}: ok\n", field("version"), field("path"))
}
