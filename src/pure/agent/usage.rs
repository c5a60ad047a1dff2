//! Tokens and costs as a usage of pi tells them, and what is wrong with them (agent.md, The
//! result). Which events have one that is settled is known to answers.rs.

use serde_json::value::RawValue;

use super::told::{Cost, UsageReport};
use crate::pure::json::fields::Fields;

/// Sums over answers. Tokens are as they are on the wire: reasoning is part of output.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// How many answers there were.
    pub answers: u64,
    input: u64,
    output: u64,
    reasoning: u64,
    cache_read: u64,
    cache_write: u64,
    total: u64,
    /// What they have cost.
    pub cost: Cost,
}

impl Totals {
    /// Adds those of another sum. What would be more than a number holds stays the largest one.
    pub fn add(&mut self, more: &Self) {
        for (sum, more) in [
            (&mut self.answers, more.answers),
            (&mut self.input, more.input),
            (&mut self.output, more.output),
            (&mut self.reasoning, more.reasoning),
            (&mut self.cache_read, more.cache_read),
            (&mut self.cache_write, more.cache_write),
            (&mut self.total, more.total),
        ] {
            *sum = sum.saturating_add(more);
        }
        for (sum, more) in [
            (&mut self.cost.input, more.cost.input),
            (&mut self.cost.output, more.cost.output),
            (&mut self.cost.cache_read, more.cost.cache_read),
            (&mut self.cost.cache_write, more.cost.cache_write),
            (&mut self.cost.total, more.cost.total),
        ] {
            *sum = (*sum + more).min(f64::MAX);
        }
    }

    /// Whether no token is in it.
    pub fn is_nothing(&self) -> bool {
        [self.input, self.output, self.cache_read, self.cache_write, self.total] == [0; 5]
    }

    /// What counts for max_tokens: all that was not read from a cache.
    pub fn budget_tokens(&self) -> u64 {
        self.input.saturating_add(self.cache_write).saturating_add(self.output)
    }

    /// Tokens that the model has written.
    pub fn written_tokens(&self) -> u64 {
        self.output
    }

    /// As it is told: without its reasoning in the output.
    pub fn report(&self) -> UsageReport {
        UsageReport {
            input_tokens: self.input,
            output_tokens: self.output - self.reasoning.min(self.output),
            reasoning_tokens: self.reasoning,
            cache_read_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            total_tokens: self.total,
        }
    }
}

/// The tokens and cost of one answer, given by the fields of its message. With them comes the first
/// thing that is wrong: then the sums would be, and the run must say so.
pub fn of_answer(message: &Fields<'_>) -> (Totals, Option<String>) {
    let (used, fault) = of_usage(message.get("usage"));
    (Totals { answers: 1, ..used }, fault)
}

/// The tokens and cost that a usage tells, and the first thing that is wrong with it.
pub fn of_usage(raw: Option<&RawValue>) -> (Totals, Option<String>) {
    if raw.is_none_or(|raw| !raw.get().starts_with('{')) {
        return (Totals::default(), Some(wrong("usage", raw, "an object")));
    }
    let usage = Fields::of(raw);
    let costs = Fields::of(usage.get("cost"));
    let mut fault = None;
    let mut needed = |path: &str, raw: Option<&RawValue>| {
        let number = number(raw);
        if number.is_none() && fault.is_none() {
            fault = Some(wrong(path, raw, "a number that is not negative"));
        }
        number.unwrap_or_default()
    };
    let (input, output) = (
        whole(needed("usage.input", usage.get("input"))),
        whole(needed("usage.output", usage.get("output"))),
    );
    let total_cost = needed("usage.cost.total", costs.get("total"));
    let tokens = |name| whole(number(usage.get(name)).unwrap_or_default());
    let cost = |name| number(costs.get(name)).unwrap_or_default();
    let (cache_read, cache_write) = (tokens("cacheRead"), tokens("cacheWrite"));
    let all = [input, output, cache_read, cache_write];
    let all = all.into_iter().fold(0, u64::saturating_add);
    let totals = Totals {
        answers: 0,
        input,
        output,
        reasoning: tokens("reasoning").min(output),
        cache_read,
        cache_write,
        total: number(usage.get("totalTokens")).map_or(all, whole),
        cost: Cost {
            input: cost("input"),
            output: cost("output"),
            cache_read: cost("cacheRead"),
            cache_write: cost("cacheWrite"),
            total: total_cost,
        },
    };
    (totals, fault)
}

fn number(raw: Option<&RawValue>) -> Option<f64> {
    serde_json::from_str(raw?.get()).ok().filter(|number: &f64| *number >= 0.0)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates.
fn whole(number: f64) -> u64 {
    number as u64
}

fn wrong(path: &str, raw: Option<&RawValue>, wanted: &str) -> String {
    match raw {
        Some(_) => format!("{path} is not {wanted}"),
        None => format!("{path} is missing"),
    }
}
