//! Putting lists in order. The sorts of the standard library are compiled anew, up to 10 KB each,
//! for every type they sort; here one of them sorts places, and the elements follow.

use std::cmp::Ordering;

/// Puts the elements in order; those that are equal keep theirs.
pub fn sort<T: Ord>(list: &mut [T]) {
    let order = order_of(list.len(), &|a, b| list[a].cmp(&list[b]));
    follow(list, &order);
}

/// Puts the elements in the order of their keys; those of equal keys keep theirs.
pub fn sort_by_key<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    let order = order_of(list.len(), &|a, b| key(&list[a]).cmp(&key(&list[b])));
    follow(list, &order);
}

/// Puts the elements in the order that `compare` says; those that are equal keep theirs.
pub fn sort_by<T>(list: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let order = order_of(list.len(), &|a, b| compare(&list[a], &list[b]));
    follow(list, &order);
}

/// Which element comes first, which second, and so on.
fn order_of(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|&a, &b| compare(a, b));
    order
}

/// Moves each element to its place, with one swap at most for each.
fn follow<T>(list: &mut [T], order: &[usize]) {
    let mut place_of = vec![0; order.len()];
    for (place, &from) in order.iter().enumerate() {
        place_of[from] = place;
    }
    for at in 0..list.len() {
        while place_of[at] != at {
            let to = place_of[at];
            list.swap(at, to);
            place_of.swap(at, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::Random;

    #[test]
    fn lists_are_in_order_as_the_standard_library_puts_them() {
        let mut random = Random(3);
        for len in (0..70_u64).chain([1_000]) {
            // Few keys: many are equal, and keep their order.
            let list: Vec<(u64, u64)> =
                (0..len).map(|at| (random.below(1 + len / 3), at)).collect();
            let (mut ours, mut theirs) = (list.clone(), list.clone());
            sort_by_key(&mut ours, |one| one.0);
            theirs.sort_by_key(|one| one.0);
            assert_eq!(ours, theirs);
            let (mut ours, mut theirs) = (list.clone(), list);
            ours.reverse();
            sort(&mut ours);
            theirs.sort_unstable();
            assert_eq!(ours, theirs);
            ours.reverse();
            sort_by(&mut ours, |a, b| a.cmp(b));
            assert_eq!(ours, theirs);
        }
    }
}
