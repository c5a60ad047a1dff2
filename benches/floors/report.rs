//! Samples, and the one table that everything ends in.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// What was measured, in the order in which it came.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Adds one.
    pub fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// The value that this part (0 to 1) of the samples does not exceed; 0 without samples.
    pub fn at(&self, part: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // An index.
        #[allow(clippy::cast_precision_loss)]
        let index = ((sorted.len().saturating_sub(1)) as f64 * part).round() as usize;
        sorted.get(index).copied().unwrap_or_default()
    }

    /// The median.
    pub fn p50(&self) -> Duration {
        self.at(0.5)
    }

    /// The 99th percentile.
    pub fn p99(&self) -> Duration {
        self.at(0.99)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// A duration as people read it.
pub fn shown(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    match us {
        ..1_000.0 => format!("{us:.0} µs"),
        1_000.0..1_000_000.0 => format!("{:.2} ms", us / 1e3),
        _ => format!("{:.2} s", us / 1e6),
    }
}

/// A quotient of durations.
pub fn ratio(ours: Duration, floor: Duration) -> f64 {
    ours.as_secs_f64() / floor.as_secs_f64().max(1e-9)
}

/// What a row claims.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// Ours is at most so many times the floor.
    Times(f64),
    /// Ours is at most so much more than the floor.
    Plus(Duration),
    /// Ours is at most this.
    AtMost(Duration),
}

/// The table while it grows.
#[derive(Debug)]
pub struct Report {
    quick: bool,
    rows: Vec<[String; 6]>,
    values: Vec<Value>,
    /// Something exact is wrong: the program fails.
    pub broken: bool,
}

impl Report {
    /// An empty table.
    pub fn new(quick: bool) -> Self {
        Self { quick, rows: Vec::new(), values: Vec::new(), broken: false }
    }

    /// A row of times. `samples` is for the JSON.
    pub fn time(
        &mut self,
        name: &str,
        (ours, floor): (Duration, Option<Duration>),
        goal: Option<Goal>,
        samples: usize,
    ) {
        let times = floor.map(|floor| ratio(ours, floor));
        let (goal_text, ok) = match goal {
            Some(Goal::Times(most)) => (format!("≤ {most}×"), times.map(|times| times <= most)),
            Some(Goal::Plus(most)) => {
                let over = ours.saturating_sub(floor.unwrap_or_default());
                (format!("≤ floor + {}", shown(most)), Some(over <= most))
            }
            Some(Goal::AtMost(most)) => (format!("≤ {}", shown(most)), Some(ours <= most)),
            None => (String::from("–"), None),
        };
        self.values.push(json!({
            "bench": name, "execd_us": ours.as_secs_f64() * 1e6,
            "floor_us": floor.map(|floor| floor.as_secs_f64() * 1e6),
            "ratio": times, "goal": goal_text, "ok": ok, "samples": samples,
        }));
        let floor = floor.map_or_else(|| String::from("–"), shown);
        let times = times.map_or_else(|| String::from("–"), |times| format!("{times:.2}"));
        self.row([name.into(), shown(ours), floor, times, goal_text, answer(ok)]);
    }

    /// A row of something exact: `ours` against a bound, each with its unit in the text.
    pub fn exact(&mut self, name: &str, ours: (f64, &str), most: f64) {
        let ok = ours.0 <= most;
        self.broken |= !ok;
        self.plain(name, ours, Some(most), Some(ok));
    }

    /// A row of a figure that may miss its bound without being wrong.
    pub fn plain(&mut self, name: &str, ours: (f64, &str), most: Option<f64>, ok: Option<bool>) {
        let (value, unit) = ours;
        let text = |value: f64| {
            let digits = usize::from(value.fract() != 0.0) * 2;
            format!("{value:.digits$} {unit}").trim_end().to_owned()
        };
        let goal = most.map_or_else(|| String::from("–"), |most| format!("≤ {}", text(most)));
        self.values.push(json!({
            "bench": name, "execd": value, "unit": unit, "goal": goal, "ok": ok,
        }));
        self.row([name.into(), text(value), "–".into(), "–".into(), goal, answer(ok)]);
    }

    /// A row that is not measured, and why.
    pub fn note(&mut self, name: &str, floor: String, why: &str) {
        self.values.push(json!({"bench": name, "floor": floor, "note": why}));
        self.row([name.into(), why.into(), floor, "–".into(), "–".into(), answer(None)]);
    }

    /// Something exact that did not hold.
    pub fn wrong(&mut self, name: &str, what: &str) {
        self.broken = true;
        self.note(name, "–".into(), &format!("WRONG: {what}"));
    }

    fn row(&mut self, row: [String; 6]) {
        self.rows.push(row);
    }

    /// The table in Markdown.
    pub fn table(&self) -> String {
        let head = ["bench", "execd", "floor", "ratio", "goal", "ok"].map(String::from);
        let rows: Vec<&[String; 6]> = std::iter::once(&head).chain(&self.rows).collect();
        let width = |column: usize| {
            rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..6).map(width).collect();
        let mut out = String::new();
        for (at, row) in rows.iter().enumerate() {
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(out, "| {cell:width$} ");
            }
            out.push_str("|\n");
            if at == 0 {
                widths.iter().for_each(|width| out.push_str(&format!("|{:-<1$}", "", width + 2)));
                out.push_str("|\n");
            }
        }
        out
    }

    /// The same as JSON, with the machine it was measured on.
    pub fn json(&self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let first = |path: &str, key: &str| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default();
            line.split_once(':').map_or(line, |(_, value)| value).trim().to_owned()
        };
        let machine = json!({
            "kernel": first("/proc/sys/kernel/osrelease", ""),
            "cpu": first("/proc/cpuinfo", "model name"),
            "memory": first("/proc/meminfo", "MemTotal"),
            "cores": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        });
        let whole = json!({
            "execd": env!("CARGO_PKG_VERSION"), "unix_time_s": now, "quick": self.quick,
            "machine": machine, "rows": self.values,
        });
        format!("{whole:#}\n")
    }
}

fn answer(ok: Option<bool>) -> String {
    String::from(match ok {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "–",
    })
}
