//! Turns of waits whose answers are due at one time (waits.md, State): each looks at its session
//! before its answer, and they look one after another.

use crate::limits::{DOING_SLOT_MS, DOING_SLOTS, DOING_SLOTS_SPAN_MS, DOING_SPANS_MAX, NS_PER_MS};

/// How many waits are over in each span of time to come.
#[derive(Debug, Default)]
pub struct Slots {
    /// The number of a span, and how many waits are over in it.
    spans: Vec<(u64, u64)>,
}

impl Slots {
    /// How long before all others a wait has its looks that is over at `due_ns`: nothing where it
    /// is the first one for that time.
    pub fn take_ms(&mut self, due_ns: u64, now_ns: u64) -> u64 {
        let span = |at_ns: u64| at_ns / (DOING_SLOTS_SPAN_MS * NS_PER_MS);
        self.spans.retain(|one| one.0 >= span(now_ns));
        let taken = match self.spans.iter_mut().find(|one| one.0 == span(due_ns)) {
            Some((_, taken)) => {
                *taken += 1;
                *taken
            }
            None => {
                if self.spans.len() < DOING_SPANS_MAX {
                    self.spans.push((span(due_ns), 0));
                }
                0
            }
        };
        taken % DOING_SLOTS * DOING_SLOT_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_that_are_over_together_look_one_after_another() {
        let mut slots = Slots::default();
        let at = |ms: u64| ms * NS_PER_MS;
        let due = DOING_SLOTS_SPAN_MS * 10;
        let mut take = |due_ms, now_ms| slots.take_ms(at(due_ms), at(now_ms));
        assert_eq!(take(due, 0), 0);
        assert_eq!(take(due + 1, 0), DOING_SLOT_MS);
        assert_eq!(take(2 * due, 0), 0, "another time");
        for one in 2..DOING_SLOTS {
            assert_eq!(take(due, 5), one * DOING_SLOT_MS);
        }
        assert_eq!(take(due, 5), 0, "there are no more slots");
        assert_eq!(take(due, due + DOING_SLOTS_SPAN_MS), 0, "what is over is forgotten");
        for span in 0..2 * DOING_SPANS_MAX as u64 {
            assert_eq!(take(3 * due + span * DOING_SLOTS_SPAN_MS, 0), 0, "far too many times");
        }
        assert!(slots.spans.len() <= DOING_SPANS_MAX);
    }
}
