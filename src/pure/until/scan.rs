//! Finds, in whole lines at a time, those that may match: the rest is never looked at closer.

use std::ops::Range;

use memchr::{memchr, memrchr};

use super::Pattern;

/// Goes through the lines of a text in which a pattern may match, in order.
pub(super) struct Scan<'a> {
    text: &'a str,
    /// Of each probe: the pattern, the probe's number, and where it says yes next.
    probes: Vec<(&'a Pattern, usize, Option<usize>)>,
    /// The start of the line where the search goes on.
    from: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str, patterns: impl Iterator<Item = &'a Pattern>) -> Self {
        let probes = patterns
            .flat_map(|pattern| {
                (0..pattern.probes()).map(move |n| (pattern, n, pattern.probe(n, text, 0)))
            })
            .collect();
        Scan { text, probes, from: 0 }
    }
}

impl Iterator for Scan<'_> {
    type Item = Range<usize>;

    /// The next line that may match, without its newline.
    fn next(&mut self) -> Option<Range<usize>> {
        let text = self.text.as_bytes();
        let at = self.probes.iter().filter_map(|(_, _, at)| *at).min()?;
        let start = memrchr(b'\n', &text[self.from..at]).map_or(self.from, |n| self.from + n + 1);
        let end = memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n);
        self.from = end + 1;
        for (pattern, number, next) in &mut self.probes {
            if next.is_some_and(|at| at <= end) {
                let rest = self.from <= text.len();
                *next = if rest { pattern.probe(*number, self.text, self.from) } else { None };
            }
        }
        Some(start..end)
    }
}
