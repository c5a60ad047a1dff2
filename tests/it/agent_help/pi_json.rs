//! The captured streams (tests/fixtures/pi-json) with what scripts/pi_totals.py has added up.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A stream of a real pi.
pub struct Captured {
    /// Version and scenario, as its file is called.
    pub name: String,
    pub bytes: Vec<u8>,
    /// What agent_execute must say of it.
    pub totals: Value,
}

/// Where they are.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pi-json")
}

/// All of them, in order.
pub fn captured() -> Vec<Captured> {
    let text = std::fs::read_to_string(fixtures().join("totals.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let all = all.as_object().unwrap().iter();
    all.map(|(name, totals)| Captured {
        name: name.clone(),
        bytes: std::fs::read(fixtures().join(format!("{name}.ndjson"))).unwrap(),
        totals: totals.clone(),
    })
    .collect()
}

impl Captured {
    /// The model that the run has asked for.
    pub fn asked(&self) -> String {
        format!("{}/{}", self.text("provider"), self.text("model"))
    }

    /// pi's exit code.
    pub fn exit_code(&self) -> i32 {
        i32::try_from(self.totals["exit_code"].as_i64().unwrap()).unwrap()
    }

    /// Its lines, each with its end.
    pub fn lines(&self) -> Vec<&[u8]> {
        self.bytes.split_inclusive(|byte| *byte == b'\n').collect()
    }

    fn text(&self, field: &str) -> &str {
        self.totals[field].as_str().unwrap()
    }
}

/// A line as a value; halves of surrogate pairs are replaced, as it has no whole ones.
pub fn parsed(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap_or_else(|_| {
        let mut text = String::from_utf8(line.to_vec()).unwrap();
        while let Some(at) = text.find("\\ud") {
            text.replace_range(at + 2..at + 6, "fffd");
        }
        serde_json::from_str(&text).unwrap()
    })
}

/// The fields of a result that are sums.
const SUMS: [&str; 7] = [
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "total_tokens",
    "cost_usd",
];

/// Whether a result's tokens and cost are these; else says which is not.
pub fn same_totals(result: &Value, totals: &Value) -> Result<(), String> {
    for field in SUMS {
        let (found, wanted) = (result[field].as_f64(), totals[field].as_f64());
        let apart = found.zip(wanted).map_or(f64::MAX, |(found, wanted)| (found - wanted).abs());
        if apart > 1e-12 {
            return Err(format!("{field} is {found:?}, not {wanted:?}"));
        }
    }
    for (part, wanted) in totals["cost"].as_object().unwrap() {
        let (found, wanted) = (result["cost"][part].as_f64(), wanted.as_f64());
        let apart = found.zip(wanted).map_or(f64::MAX, |(found, wanted)| (found - wanted).abs());
        if apart > 1e-12 {
            return Err(format!("cost.{part} is {found:?}, not {wanted:?}"));
        }
    }
    Ok(())
}

/// Says where a result differs from what is expected of it; what only an event has is left out.
pub fn differences(result: &Value, expected: &Value) -> Vec<String> {
    let mut found: Vec<String> = same_totals(result, expected).err().into_iter().collect();
    for (field, value) in expected.as_object().unwrap() {
        let told = match field.as_str() {
            "what" | "thinking" | "tool_errors" | "cost" | "cost_usd" => continue,
            "first_attempt" => {
                if value.is_null() != result.get("first_attempt_ms").is_none() {
                    found.push(format!("the first attempt is {value}"));
                }
                continue;
            }
            "compactions" => &result["provider_data"]["compactions"],
            "retries" => {
                let retries = &result["provider_data"]["retries"];
                for part in ["count", "exhausted"] {
                    if retries[part] != value[part] {
                        found.push(format!("retries.{part} is {}", retries[part]));
                    }
                }
                let most = retries.get("max_attempts").map_or(0, |most| most.as_u64().unwrap());
                if value["max_attempts"] != most {
                    found.push(format!("retries.max_attempts is {most}"));
                }
                continue;
            }
            _ => &result[field],
        };
        if told != value {
            found.push(format!("{field} is {told}, not {value}"));
        }
    }
    found
}
