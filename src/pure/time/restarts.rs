//! When a helper process that died is started again: at once, unless it keeps dying young.

use crate::limits::NS_PER_MS;

/// The distance doubles up to this while the helper dies before it is over.
const KEEPER_RESTART_MAX_MS: u64 = 5_000;

/// Two starts of the guard, or of the log writer, are at least this far apart.
const KEEPER_RESTART_MIN_MS: u64 = 50;

/// The distance that two starts of one helper keep.
#[derive(Debug)]
pub struct Restarts {
    started_ns: u64,
    distance_ms: u64,
}

impl Default for Restarts {
    fn default() -> Self {
        Self { started_ns: 0, distance_ms: KEEPER_RESTART_MIN_MS }
    }
}

impl Restarts {
    /// The helper was started, or starting it was tried.
    pub fn started(&mut self, now_ns: u64) {
        self.started_ns = now_ns;
    }

    /// The helper has died, or could not be started: gives when it may be started again. A helper
    /// that lived longer than the distance is started at once; each that did not doubles it.
    pub fn died(&mut self, now_ns: u64) -> u64 {
        let due_ns = self.started_ns + self.distance_ms * NS_PER_MS;
        self.distance_ms = if now_ns < due_ns {
            (self.distance_ms * 2).min(KEEPER_RESTART_MAX_MS)
        } else {
            KEEPER_RESTART_MIN_MS
        };
        due_ns.max(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = NS_PER_MS;

    /// rule: architecture.md, The keeper: Guard or log writer gone: restarted at once, less often
    ///   the younger it dies, and told of all sessions
    #[test]
    fn who_dies_young_is_started_less_and_less_often() {
        let mut restarts = Restarts::default();
        for at_ms in [0, 60, 1_000, 1_050, 9_000] {
            restarts.started(at_ms * MS);
            let died_ns = (at_ms + KEEPER_RESTART_MIN_MS) * MS;
            assert_eq!(restarts.died(died_ns), died_ns, "it lived long enough");
        }
        let mut restarts = Restarts::default();
        let (mut now_ns, mut pauses_ms) = (7 * MS, Vec::new());
        for _ in 0..9 {
            restarts.started(now_ns);
            let due_ns = restarts.died(now_ns);
            pauses_ms.push((due_ns - now_ns) / MS);
            now_ns = due_ns;
        }
        assert_eq!(pauses_ms, [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        restarts.started(now_ns);
        now_ns += 6_000 * MS;
        assert_eq!(restarts.died(now_ns), now_ns);
        restarts.started(now_ns);
        assert_eq!(restarts.died(now_ns), now_ns + 50 * MS, "forgiven");
    }
}
