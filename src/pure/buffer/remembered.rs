//! What is remembered of sessions after their end: by id, within bounds on number and age. What
//! a value takes in memory is its owner's to bound: [`Remembered::oldest`] finds whom to shrink.

use std::collections::BTreeMap;

/// A value, and since when it is remembered.
#[derive(Clone, Debug)]
struct Kept<T> {
    value: T,
    since_ns: u64,
}

/// Values by the ids of their sessions.
#[derive(Clone, Debug)]
pub struct Remembered<T> {
    by_id: BTreeMap<u64, Kept<T>>,
    forgotten: u64,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self { by_id: BTreeMap::new(), forgotten: 0 }
    }
}

impl<T> Remembered<T> {
    /// Remembers a value from `now_ns` on, and forgets the oldest where there are more than
    /// `most`.
    pub fn insert(&mut self, id: u64, value: T, now_ns: u64, most: usize) {
        self.by_id.insert(id, Kept { value, since_ns: now_ns });
        while self.by_id.len() > most {
            let oldest = self.by_id.iter().min_by_key(|(_, one)| one.since_ns).map(|(id, _)| *id);
            let Some(_) = oldest.and_then(|id| self.by_id.remove(&id)) else { break };
            self.forgotten += 1;
        }
    }

    /// Forgets what is remembered since before `since_ns`.
    pub fn expire(&mut self, since_ns: u64) {
        let before = self.by_id.len();
        self.by_id.retain(|_, one| one.since_ns >= since_ns);
        self.forgotten += (before - self.by_id.len()) as u64;
    }

    /// Forgets one that nobody is to be told of any more; it does not count as forgotten.
    pub fn remove(&mut self, id: u64) {
        self.by_id.remove(&id);
    }

    /// The value of this id.
    pub fn get(&self, id: u64) -> Option<&T> {
        self.by_id.get(&id).map(|one| &one.value)
    }

    /// The value of this id, to change it.
    pub fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        self.by_id.get_mut(&id).map(|one| &mut one.value)
    }

    /// All values, by id.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.by_id.values().map(|one| &one.value)
    }

    /// The one that has been remembered longest, of those that `may`.
    pub fn oldest(&mut self, may: impl Fn(&T) -> bool) -> Option<&mut T> {
        let some = self.by_id.values_mut().filter(|one| may(&one.value));
        some.min_by_key(|one| one.since_ns).map(|one| &mut one.value)
    }

    /// How many had to be forgotten for their number or their age.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_age_bound_what_is_remembered_and_what_is_forgotten_is_counted() {
        let mut some = Remembered::default();
        for (id, now_ns) in [(5, 10), (3, 20), (4, 30)] {
            some.insert(id, id * 100, now_ns, 2);
        }
        assert_eq!((some.get(5), some.get(3), some.forgotten()), (None, Some(&300), 1));
        assert_eq!(some.oldest(|_| true), Some(&mut 300));
        assert_eq!(some.oldest(|value| *value > 300), Some(&mut 400));
        some.expire(30);
        assert_eq!(some.values().collect::<Vec<_>>(), [&400]);
        some.remove(4);
        assert_eq!((some.get(4), some.forgotten()), (None, 2), "nobody misses it");
    }
}
