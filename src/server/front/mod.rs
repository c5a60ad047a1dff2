//! The table of methods, made of the families' rows and of those that are no family's; `cli` hands
//! the table to the engine at its start, and `execd --describe` prints it. This file decides the
//! order of the table; what a method takes and does is left to the method's own file
//! (architecture.md, To add something).

mod cancel;
mod events;
pub mod models;
mod ping;
mod reserve_session_ids;
mod server_info;
mod shutdown;
#[cfg(test)]
mod table_tests;

use serde_json::{Value, json};

use crate::limits::PROTOCOL_REVISION;
use crate::server::engine::contract::Methods;
use crate::server::families::{METHODS as METHODS_OF_FAMILIES, Method, State};
use crate::wire::{self, RpcError};

pub use models::describe as describe_models;

/// All methods, in the order of the documentation: the families' rows, and those that are no
/// family's.
pub const METHODS: Methods<State> = &{
    let mut all: [&[Method]; METHODS_OF_FAMILIES.len() + 1] = [OWN; METHODS_OF_FAMILIES.len() + 1];
    let mut at = 0;
    while at < METHODS_OF_FAMILIES.len() {
        all[at] = METHODS_OF_FAMILIES[at];
        at += 1;
    }
    all
};

/// The methods that are no family's.
const OWN: &[Method] = &[
    cancel::METHOD,
    events::METHOD,
    reserve_session_ids::METHOD,
    ping::METHOD,
    server_info::METHOD,
    shutdown::METHOD,
];

/// All methods.
fn all() -> impl Iterator<Item = &'static Method> {
    METHODS.iter().copied().flatten()
}

/// The method of this name.
pub fn find(name: &str) -> Option<&'static Method> {
    all().find(|method| method.name == name)
}

/// Whether a method would take these params (JSON text of an object): what it can refuse without
/// looking at a session.
pub fn check_params(method: &str, raw: &str) -> Result<(), RpcError> {
    let method = find(method).ok_or_else(|| RpcError::unknown_method(method, &names()))?;
    (method.check)(raw)
}

/// The names of all methods.
pub fn names() -> Vec<&'static str> {
    all().map(|method| method.name).collect()
}

/// The table as JSON, for `execd --describe`.
pub fn describe() -> Value {
    let methods: Vec<Value> = all()
        .map(|method| {
            json!({
                "name": method.name,
                "summary": method.summary,
                "params": wire::schema(method.params),
                "otherParams": method.other_params.map(wire::schema),
            })
        })
        .collect();
    json!({
        "name": "execd",
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": PROTOCOL_REVISION,
        "methods": methods,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_row_has_its_text() {
        for (at, method) in all().enumerate() {
            assert!(!all().take(at).any(|other| other.name == method.name));
            assert!(method.summary.ends_with('.'), "{}", method.name);
            for param in method.params {
                assert!(!param.doc.is_empty(), "{} {}", method.name, param.name);
            }
        }
        assert_eq!(find("ping").map(|method| method.name), Some("ping"));
        assert!(find("Ping").is_none());
    }
}
