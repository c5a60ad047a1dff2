//! Which session a process without a parent counts for. It has left its session by setsid(2) and a
//! second fork (pg_ctl, nginx), so nothing links it to one any more: it counts for the session that
//! began last before it.

use std::collections::VecDeque;

/// Starts of sessions that are remembered: an orphan counts for the one that began last before it.
const STARTS_REMEMBERED: usize = 1_024;

/// The latest starts of sessions.
#[derive(Debug, Default)]
pub struct Starts {
    /// When each began, in clock ticks since boot, and its id; in order.
    all: VecDeque<(u64, u64)>,
}

impl Starts {
    /// A session begins.
    pub fn note(&mut self, start_ticks: u64, session: u64) {
        if self.all.len() >= STARTS_REMEMBERED {
            self.all.pop_front();
        }
        self.all.push_back((start_ticks, session));
    }

    /// The session that began last before a process that started then. None: no session did, or it
    /// was long ago.
    pub fn last_before(&self, start_ticks: u64) -> Option<u64> {
        let behind = self.all.partition_point(|one| one.0 <= start_ticks);
        behind.checked_sub(1).and_then(|at| self.all.get(at)).map(|one| one.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rule: waits.md, Listening: An orphan that has left its session counts for the session that
    ///   began last before it
    #[test]
    fn a_process_counts_for_the_session_that_began_last_before_it() {
        let mut starts = Starts::default();
        assert_eq!(starts.last_before(u64::MAX), None);
        for (ticks, session) in [(10, 1), (20, 2), (20, 3), (35, 4)] {
            starts.note(ticks, session);
        }
        let cases =
            [(9, None), (10, Some(1)), (19, Some(1)), (20, Some(3)), (34, Some(3)), (99, Some(4))];
        for (ticks, session) in cases {
            assert_eq!(starts.last_before(ticks), session, "{ticks}");
        }
    }

    #[test]
    fn only_the_latest_starts_are_remembered() {
        let mut starts = Starts::default();
        (0..5_000).for_each(|at| starts.note(at, at));
        assert_eq!(starts.all.len(), STARTS_REMEMBERED);
        assert_eq!(starts.last_before(100), None, "nobody knows any more");
        assert_eq!(starts.last_before(4_999), Some(4_999));
    }
}
