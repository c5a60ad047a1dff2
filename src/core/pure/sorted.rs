//! A map and a set as sorted lists.
//!
//! The trees of the standard library are compiled anew for every type that they hold, some 6 KB
//! each. What execd keeps by key is small (sessions, waits, processes), mostly grows at its end,
//! since ids rise, and is looked up far more often than it changes: a binary search in one piece of
//! memory serves all of that. An insertion or removal in the middle moves what stands behind it, so
//! values of more than some ten words are to be boxed.

use std::borrow::Borrow;
use std::ops::RangeFrom;

use super::order;

/// A map that keeps its keys in order. Its methods do what those of
/// [`std::collections::BTreeMap`] do; insertion and removal take time in proportion to the number
/// of greater keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedMap<K, V> {
    /// By key, each key once.
    pairs: Vec<(K, V)>,
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> SortedMap<K, V> {
    /// An empty map, without memory of its own.
    pub const fn new() -> Self {
        Self { pairs: Vec::new() }
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.pairs.clear();
    }

    /// All keys and values, by key.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> + ExactSizeIterator + Clone {
        self.pairs.iter().map(|(key, value)| (key, value))
    }

    /// All keys and values, by key, the values to change them.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&K, &mut V)> {
        self.pairs.iter_mut().map(|(key, value)| (&*key, value))
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator + Clone {
        self.pairs.iter().map(|(key, _)| key)
    }

    /// All values, by key.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.pairs.iter().map(|(_, value)| value)
    }

    /// All values, by key, to change them.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.pairs.iter_mut().map(|(_, value)| value)
    }

    /// The values alone, by key.
    pub fn into_values(self) -> impl Iterator<Item = V> {
        self.pairs.into_iter().map(|(_, value)| value)
    }

    /// The smallest key, with its value.
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.pairs.first().map(|(key, value)| (key, value))
    }

    /// The greatest key, with its value.
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.pairs.last().map(|(key, value)| (key, value))
    }

    /// Takes the smallest key out, with its value.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        (!self.pairs.is_empty()).then(|| self.pairs.remove(0))
    }

    /// Takes out what `take` says true of.
    pub fn extract(&mut self, mut take: impl FnMut(&K, &mut V) -> bool) -> Vec<(K, V)> {
        self.pairs.extract_if(.., |(key, value)| take(key, value)).collect()
    }

    /// Keeps what `keep` says true of.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.pairs.retain_mut(|(key, value)| keep(key, value));
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    /// Where the key stands (Ok), or would stand (Err).
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        // Keys that rise, which most do, are new ones behind all others.
        if self.pairs.last().is_none_or(|(last, _)| last.borrow() < key) {
            return Err(self.pairs.len());
        }
        self.pairs.binary_search_by(|(one, _)| one.borrow().cmp(key))
    }

    /// The key's value.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|at| &self.pairs[at].1)
    }

    /// The key's value, to change it.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|at| &mut self.pairs[at].1)
    }

    /// Whether the key is there.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).is_ok()
    }

    /// Gives the key a value; returns the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.pairs[at].1, value)),
            Err(at) => {
                self.pairs.insert(at, (key, value));
                None
            }
        }
    }

    /// The key's value, which is made by `make` where there is none.
    pub fn or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let at = match self.place(&key) {
            Ok(at) => at,
            Err(at) => {
                self.pairs.insert(at, (key, make()));
                at
            }
        };
        &mut self.pairs[at].1
    }

    /// The key's value, which is the default one where there is none.
    pub fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.or_insert_with(key, V::default)
    }

    /// Forgets the key; returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|at| self.pairs.remove(at).1)
    }

    /// Keys at or after the range's start, with their values, by key.
    pub fn range(&self, from: RangeFrom<K>) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        let at = self.place(&from.start).unwrap_or_else(|at| at);
        self.pairs[at..].iter().map(|(key, value)| (key, value))
    }
}

/// Of equal keys the last one counts.
impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut pairs: Vec<(K, V)> = pairs.into_iter().collect();
        order::sort_by(&mut pairs, |a, b| a.0.cmp(&b.0));
        // Equal keys stand in the order in which they came: what is kept is overwritten.
        pairs.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                std::mem::swap(&mut later.1, &mut kept.1);
            }
            same
        });
        Self { pairs }
    }
}

impl<K: Ord, V> Extend<(K, V)> for SortedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, pairs: I) {
        for (key, value) in pairs {
            self.insert(key, value);
        }
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.pairs.into_iter()
    }
}

/// A set that keeps its elements in order, as [`SortedMap`] keeps its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedSet<T> {
    map: SortedMap<T, ()>,
}

impl<T> Default for SortedSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> SortedSet<T> {
    /// An empty set, without memory of its own.
    pub const fn new() -> Self {
        Self { map: SortedMap::new() }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.map.clear();
    }

    /// All elements, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator + Clone {
        self.map.keys()
    }

    /// The greatest element.
    pub fn last(&self) -> Option<&T> {
        self.map.last_key_value().map(|(element, ())| element)
    }

    /// Takes the smallest element out.
    pub fn pop_first(&mut self) -> Option<T> {
        self.map.pop_first().map(|(element, ())| element)
    }

    /// Keeps what `keep` says true of.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.map.retain(|element, ()| keep(element));
    }
}

impl<T: Ord> SortedSet<T> {
    /// Whether the element is there.
    pub fn contains(&self, element: &T) -> bool {
        self.map.contains_key(element)
    }

    /// Puts the element in; whether it is new.
    pub fn insert(&mut self, element: T) -> bool {
        self.map.insert(element, ()).is_none()
    }

    /// Takes the element out; whether it was there.
    pub fn remove(&mut self, element: &T) -> bool {
        self.map.remove(element).is_some()
    }

    /// Elements at or after the range's start, in order.
    pub fn range(&self, from: RangeFrom<T>) -> impl DoubleEndedIterator<Item = &T> {
        self.map.range(from).map(|(element, ())| element)
    }
}

impl<T: Ord> FromIterator<T> for SortedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Self { map: elements.into_iter().map(|element| (element, ())).collect() }
    }
}

impl<T: Ord> Extend<T> for SortedSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        for element in elements {
            self.insert(element);
        }
    }
}

impl<T> IntoIterator for SortedSet<T> {
    type Item = T;
    type IntoIter = std::iter::Map<std::vec::IntoIter<(T, ())>, fn((T, ())) -> T>;

    fn into_iter(self) -> Self::IntoIter {
        self.map.into_iter().map(|(element, ())| element)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::pure::tests_random::Random;

    /// Random steps on few keys, each beside the standard library's map.
    #[test]
    fn a_map_does_what_that_of_the_standard_library_does() {
        let mut random = Random(41);
        for _ in 0..300 {
            let (mut ours, mut model) = (SortedMap::new(), BTreeMap::new());
            for step in 0..120_u64 {
                let key = random.below(24);
                match random.below(9) {
                    0..=2 => assert_eq!(ours.insert(key, step), model.insert(key, step)),
                    3 => assert_eq!(ours.remove(&key), model.remove(&key)),
                    4 => assert_eq!(ours.pop_first(), model.pop_first()),
                    5 => assert_eq!(
                        ours.or_insert_with(key, || step),
                        model.entry(key).or_insert(step)
                    ),
                    6 => {
                        let out = ours.extract(|one, _| one % 7 == key % 7);
                        assert!(out.iter().all(|(one, _)| one % 7 == key % 7));
                        model.retain(|one, _| one % 7 != key % 7);
                        ours.retain(|one, _| one % 5 != key % 5);
                        model.retain(|one, _| one % 5 != key % 5);
                    }
                    7 => {
                        ours.extend([(key, step), (key + 1, step)]);
                        model.extend([(key, step), (key + 1, step)]);
                    }
                    _ => {
                        let (ours, model) = (ours.get_mut(&key), model.get_mut(&key));
                        assert_eq!(ours, model);
                        ours.into_iter().chain(model).for_each(|value| *value += 1);
                    }
                }
                assert_eq!(ours.get(&key), model.get(&key));
                assert_eq!(ours.contains_key(&key), model.contains_key(&key));
                assert!(ours.iter().eq(model.iter()) && ours.len() == model.len());
                assert!(ours.range(key..).eq(model.range(key..)));
                assert_eq!(ours.first_key_value(), model.first_key_value());
                assert_eq!(ours.last_key_value(), model.last_key_value());
            }
            assert!(ours.keys().eq(model.keys()) && ours.values().eq(model.values()));
            assert!(ours.iter_mut().eq(model.iter_mut()));
            assert!(ours.values_mut().eq(model.values_mut()));
            assert!(ours.clone().into_values().eq(model.clone().into_values()));
            assert!(ours.into_iter().eq(model));
        }
    }

    #[test]
    fn what_is_collected_is_in_order_and_the_last_of_equal_keys_counts() {
        let mut random = Random(42);
        for len in 0..80 {
            let pairs: Vec<(u64, u64)> = (0..len).map(|at| (random.below(30), at)).collect();
            let ours: SortedMap<u64, u64> = pairs.iter().copied().collect();
            let model: BTreeMap<u64, u64> = pairs.iter().copied().collect();
            assert!(ours.iter().eq(model.iter()), "{pairs:?}");
            let mut ours: SortedSet<u64> = pairs.iter().map(|pair| pair.0).collect();
            let mut model: BTreeSet<u64> = pairs.iter().map(|pair| pair.0).collect();
            assert!(ours.iter().eq(model.iter()) && ours.len() == model.len(), "{pairs:?}");
            assert_eq!((ours.last(), ours.is_empty()), (model.last(), model.is_empty()));
            for key in 0..30 {
                assert_eq!(ours.insert(key * 2), model.insert(key * 2));
                assert_eq!(ours.remove(&(key * 3)), model.remove(&(key * 3)));
                assert_eq!(ours.contains(&key), model.contains(&key));
                assert!(ours.range(key..).eq(model.range(key..)));
            }
            ours.extend([7, 5]);
            model.extend([7, 5]);
            ours.retain(|one| one % 3 != 0);
            model.retain(|one| one % 3 != 0);
            assert_eq!(ours.pop_first(), model.pop_first());
            assert!(ours.into_iter().eq(model));
        }
    }
}
