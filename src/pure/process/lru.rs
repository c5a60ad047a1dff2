//! Which session is evicted when the session table is full.

use std::cmp::Reverse;

/// What eviction needs to know of a session in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The session's id; ids rise, so of two equally used sessions the lower id is older.
    pub id: u64,
    /// The value of a rising counter when a call last named the session.
    pub last_used: u64,
    /// The session has exited and is only waiting to be observed.
    pub exited: bool,
    /// A request is waiting on the session.
    pub pending: bool,
}

/// The session to evict so that one which is not among `candidates` may enter a table of
/// `max_sessions`: the least recently used exited one, else the least recently used. Never one
/// with a pending request, never one of the min(`protected_count`, `max_sessions` − 1) most
/// recently used, exited or not. None when nobody can be evicted; whether the table is full is
/// the caller's to know.
pub fn victim(
    candidates: &[Candidate],
    max_sessions: usize,
    protected_count: usize,
) -> Option<u64> {
    let protected = protected_count.min(max_sessions.saturating_sub(1));
    let mut newest_first: Vec<&Candidate> = candidates.iter().collect();
    newest_first.sort_by_key(|one| Reverse((one.last_used, one.id)));
    let evictable = newest_first.into_iter().skip(protected).filter(|one| !one.pending);
    evictable.min_by_key(|one| (!one.exited, one.last_used, one.id)).map(|one| one.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::Random;

    fn session(id: u64, last_used: u64, exited: bool, pending: bool) -> Candidate {
        Candidate { id, last_used, exited, pending }
    }

    /// Removes the protected ones one by one, then looks for the oldest in two passes.
    fn naive(candidates: &[Candidate], max_sessions: usize, protected_count: usize) -> Option<u64> {
        let mut left = candidates.to_vec();
        for _ in 0..protected_count {
            if left.is_empty() || candidates.len() - left.len() + 1 >= max_sessions {
                break;
            }
            let newest = left.iter().max_by_key(|one| (one.last_used, one.id)).unwrap().id;
            left.retain(|one| one.id != newest);
        }
        for exited_only in [true, false] {
            let mut oldest: Option<Candidate> = None;
            for one in left.iter().filter(|one| !one.pending && (one.exited || !exited_only)) {
                if oldest.is_none_or(|old| (one.last_used, one.id) < (old.last_used, old.id)) {
                    oldest = Some(*one);
                }
            }
            if let Some(one) = oldest {
                return Some(one.id);
            }
        }
        None
    }

    /// rule: unified-exec.md, Early exit, shell gone, LRU: Registering a 65th session evicts the
    ///   oldest exited one first
    /// rule: unified-exec.md, Early exit, shell gone, LRU: Eviction never takes one of the min(8,
    ///   max − 1) most recently used
    #[test]
    fn same_as_two_naive_passes() {
        let mut random = Random(0x1234_5678_9abc_def1);
        let mut below = |bound: u64| random.below(bound);
        for _ in 0..7_000 {
            let count = below(12);
            let candidates: Vec<Candidate> =
                (0..count).map(|id| session(id, below(15), below(3) == 0, below(3) == 0)).collect();
            let max = usize::try_from(below(14)).unwrap();
            let protected = usize::try_from(below(10)).unwrap();
            assert_eq!(
                victim(&candidates, max, protected),
                naive(&candidates, max, protected),
                "{candidates:?} max {max} protected {protected}"
            );
        }
    }
}
