//! One queue of deadlines with one entry per owner.
//!
//! One timer is armed to the head of this queue (architecture.md, The turn). There is no periodic
//! timer: deadlines, grace periods, throttles and polls are all entries here.

use std::collections::BTreeMap;

/// Who is due when. Times are CLOCK_MONOTONIC nanoseconds, any u64.
///
/// Two ordered maps instead of a heap: an entry that is replaced is gone at once, so the head
/// is always a deadline that somebody still wants, and the timer never fires for nothing.
#[derive(Clone, Debug)]
pub struct Deadlines<O: Ord + Copy> {
    /// By time, then in order of arming.
    queue: BTreeMap<(u64, u64), O>,
    /// The key in `queue` of each owner.
    of: BTreeMap<O, (u64, u64)>,
    armed: u64,
}

impl<O: Ord + Copy> Deadlines<O> {
    /// An empty queue.
    pub const fn new() -> Self {
        Self { queue: BTreeMap::new(), of: BTreeMap::new(), armed: 0 }
    }

    /// Sets the owner's only deadline; None removes it. Setting the time that is set already
    /// changes nothing, also not the owner's place among equal times.
    pub fn set(&mut self, owner: O, due_ns: Option<u64>) {
        if self.due_of(owner) == due_ns {
            return;
        }
        if let Some(key) = self.of.remove(&owner) {
            self.queue.remove(&key);
        }
        if let Some(due) = due_ns {
            let key = (due, self.armed);
            self.armed = self.armed.wrapping_add(1);
            self.queue.insert(key, owner);
            self.of.insert(owner, key);
        }
    }

    /// The earliest deadline, which the timer is to be armed to.
    pub fn head(&self) -> Option<u64> {
        self.queue.first_key_value().map(|(key, _)| key.0)
    }

    /// Removes the earliest deadline at or before `now_ns` and gives its owner. Equal times
    /// come in the order of arming.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<O> {
        if self.head()? > now_ns {
            return None;
        }
        let (_, owner) = self.queue.pop_first()?;
        self.of.remove(&owner);
        Some(owner)
    }

    /// The owner's deadline, if one is set.
    fn due_of(&self, owner: O) -> Option<u64> {
        self.of.get(&owner).map(|key| key.0)
    }
}

impl<O: Ord + Copy> Default for Deadlines<O> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::Random;

    /// rule: architecture.md, A session: One timer, armed for the earliest deadline
    #[test]
    fn same_as_a_sorted_list() {
        let mut random = Random(77);
        for _ in 0..200 {
            let mut deadlines: Deadlines<u64> = Deadlines::default();
            // In order of arming; a stable sort by time keeps that order among equals.
            let mut model: Vec<(u64, u64)> = Vec::new();
            for _ in 0..200 {
                let owner = random.below(12);
                let time = random.below(20);
                match random.below(4) {
                    0 => {
                        deadlines.set(owner, None);
                        model.retain(|entry| entry.1 != owner);
                    }
                    1 => {
                        let due = model.iter().position(|entry| entry.0 <= time);
                        let expected = due.map(|index| model.remove(index).1);
                        assert_eq!(deadlines.pop_due(time), expected);
                    }
                    _ => {
                        deadlines.set(owner, Some(time));
                        if !model.contains(&(time, owner)) {
                            model.retain(|entry| entry.1 != owner);
                            model.push((time, owner));
                            model.sort_by_key(|entry| entry.0);
                        }
                    }
                }
                assert_eq!(deadlines.head(), model.first().map(|entry| entry.0));
                assert_eq!(deadlines.of.len(), model.len());
                let of = model.iter().find(|entry| entry.1 == owner).map(|entry| entry.0);
                assert_eq!(deadlines.due_of(owner), of);
                assert_eq!(deadlines.queue.len(), deadlines.of.len());
            }
        }
    }
}
