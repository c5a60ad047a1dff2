//! Values of `until` and `stop` that are of more than one type of JSON.

use serde_json::value::RawValue;

use super::Int;
use crate::pure::until::{InputWanted, PortWanted};

/// Statuses that HTTP knows (RFC 9110, 15).
const HTTP_STATUS_RANGE: (u16, u16) = (100, 599);

pub(super) const PORT: &str = "a port from 1 to 65535, or \"any\" or 0 for any";
pub(super) const STATUSES: &str = "a status from 100 to 599, or [lowest, highest]";
pub(super) const INPUT: &str = "true, \"line\", \"password\" or \"key\"; leave it out for none";

pub(super) fn port(raw: &str) -> Option<PortWanted> {
    if serde_json::from_str::<String>(raw).is_ok_and(|word| word == "any") {
        return Some(PortWanted::Any);
    }
    match u16::try_from(serde_json::from_str::<Int>(raw).ok()?.0).ok()? {
        0 => Some(PortWanted::Any),
        number => Some(PortWanted::Number(number)),
    }
}

pub(super) fn statuses(raw: &str) -> Option<(u16, u16)> {
    let one = |raw: &str| {
        let status = u16::try_from(serde_json::from_str::<Int>(raw).ok()?.0).ok()?;
        (HTTP_STATUS_RANGE.0..=HTTP_STATUS_RANGE.1).contains(&status).then_some(status)
    };
    if !raw.starts_with('[') {
        let status = one(raw)?;
        return Some((status, status));
    }
    let [low, high] = serde_json::from_str::<[&RawValue; 2]>(raw).ok()?;
    let (low, high) = (one(low.get())?, one(high.get())?);
    (low <= high).then_some((low, high))
}

pub(super) fn input(raw: &str) -> Option<InputWanted> {
    if raw == "true" {
        return Some(InputWanted::Any);
    }
    match serde_json::from_str::<String>(raw).ok()?.as_str() {
        "line" => Some(InputWanted::Line),
        "password" => Some(InputWanted::Password),
        "key" => Some(InputWanted::Key),
        _ => None,
    }
}
