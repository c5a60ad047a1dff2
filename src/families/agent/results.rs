//! What runs have come to whose request was answered before their end: kept for agent_result, also
//! for one that asks a second time. A result that agent_execute has answered with is not kept.

use std::collections::VecDeque;

use crate::limits::{AGENT_RESULTS_BYTES, AGENT_RESULTS_KEPT};
use crate::session::SessionId;

/// Results as JSON, by the ids of their sessions: the newest last.
#[derive(Debug, Default)]
pub struct Results(VecDeque<(SessionId, Vec<u8>)>);

impl Results {
    /// Keeps a result, for which the oldest make room. A single one always has room: what a result
    /// may be is bounded by itself.
    pub(super) fn keep(&mut self, id: SessionId, result: Vec<u8>) {
        self.0.push_back((id, result));
        while self.0.len() > 1
            && (self.0.len() > AGENT_RESULTS_KEPT || self.bytes() > AGENT_RESULTS_BYTES)
        {
            self.0.pop_front();
        }
    }

    /// The result of a run.
    pub(super) fn get(&self, id: SessionId) -> Option<&Vec<u8>> {
        self.0.iter().find(|(own, _)| *own == id).map(|(_, result)| result)
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|(_, result)| result.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_bytes_bound_what_is_kept_and_the_newest_is() {
        let mut results = Results::default();
        let count = AGENT_RESULTS_KEPT as u64;
        for id in 0..=count {
            results.keep(id, b"{}".to_vec());
        }
        assert_eq!((results.get(0), results.get(1)), (None, Some(&b"{}".to_vec())));
        results.keep(1_000, vec![b' '; AGENT_RESULTS_BYTES - 4]);
        assert_eq!((results.0.len(), results.get(count).is_some()), (3, true));
        results.keep(1_001, vec![b' '; AGENT_RESULTS_BYTES + 1]);
        assert_eq!((results.0.len(), results.get(1_001).is_some()), (1, true));
    }
}
