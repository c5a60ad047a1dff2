//! How long the output that others hold is waited for after a shell's end, before the end is told.

use crate::limits::{
    DRAIN_FIRST_LOOK_MS, DRAIN_GRID_MS, DRAIN_LOOK_MS, DRAIN_MAX_MS, NS_PER_MS,
    POST_EXIT_CLOSE_WAIT_MS,
};

/// Output that came after the shell is followed by more: so long it is waited for.
const DRAIN_OUTPUT_MS: u64 = 100;

/// The time between a shell's end and the answer that tells it. All times are monotonic.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    ended_ns: u64,
    /// When output last came since then.
    output_ns: Option<u64>,
    /// When the holders are looked at next.
    look_ns: u64,
    over: bool,
}

/// What is to be done about the wait at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing yet, or nothing any more.
    Nothing,
    /// Look at who holds the output.
    Look,
}

const GRID_NS: u64 = DRAIN_GRID_MS * NS_PER_MS;

impl Drain {
    /// The shell has ended.
    pub fn new(ended_ns: u64) -> Self {
        let look_ns = (ended_ns + DRAIN_FIRST_LOOK_MS * NS_PER_MS).next_multiple_of(GRID_NS);
        Self { ended_ns, output_ns: None, look_ns, over: false }
    }

    /// Output came.
    pub fn output(&mut self, now_ns: u64) {
        self.output_ns = Some(now_ns);
    }

    /// Whether nothing is waited for any more.
    pub fn over(&self) -> bool {
        self.over
    }

    /// Nothing is waited for any more.
    pub fn give_up(&mut self) {
        self.over = true;
    }

    /// When something is to be done about the wait.
    pub fn due_ns(&self) -> Option<u64> {
        (!self.over).then_some(self.look_ns)
    }

    /// What is to be done now.
    pub fn step(&mut self, now_ns: u64) -> Step {
        self.over |= self.after_ms(DRAIN_MAX_MS) <= now_ns;
        if self.over || now_ns < self.look_ns { Step::Nothing } else { Step::Look }
    }

    /// The holders were looked at: whether one is `busy`.
    pub fn looked(&mut self, now_ns: u64, busy: bool) {
        let more_ns = DRAIN_OUTPUT_MS * NS_PER_MS;
        let flows = self.output_ns.is_some_and(|at| now_ns < at + more_ns);
        self.over = !busy && !flows && self.after_ms(POST_EXIT_CLOSE_WAIT_MS) <= now_ns;
        // A look that came a little late does not move the next ones.
        let next_ns = (now_ns + DRAIN_LOOK_MS * NS_PER_MS) / GRID_NS * GRID_NS;
        self.look_ns = next_ns.min(self.after_ms(DRAIN_MAX_MS)).max(now_ns + 1);
    }

    fn after_ms(&self, ms: u64) -> u64 {
        self.ended_ns + ms * NS_PER_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When the answer goes, in milliseconds after the shell's end, and how many looks it took:
    /// output comes at the times of `output_ms`, and a holder is busy until `busy_ms`. Each look
    /// is half a millisecond late.
    fn over_after(output_ms: &[u64], busy_ms: u64) -> (u64, usize) {
        let mut drain = Drain::new(0);
        let mut looks = 0;
        for now_ms in 0..10_000 {
            let now_ns = now_ms * NS_PER_MS;
            if output_ms.contains(&now_ms) {
                drain.output(now_ns);
            }
            if drain.step(now_ns) == Step::Look {
                looks += 1;
                drain.looked(now_ns + NS_PER_MS / 2, now_ms <= busy_ms);
            }
            if drain.over() {
                assert_eq!((drain.due_ns(), drain.step(now_ns)), (None, Step::Nothing));
                return (now_ms, looks);
            }
            assert!(drain.due_ns().is_some_and(|due_ns| due_ns > now_ns), "it has a deadline");
        }
        panic!("it goes on");
    }

    /// rule: bash-stream.md, The stream family: The shell is gone: while output comes or a holder
    ///   works the answer waits, 2 s at most; bash too
    #[test]
    fn who_sleeps_is_left_after_fifty_milliseconds() {
        assert_eq!(over_after(&[], 0), (50, 2));
        assert_eq!(over_after(&[], 20), (50, 2), "the first look only begins to measure");
    }

    /// rule: bash-stream.md, The stream family: The shell is gone: while output comes or a holder
    ///   works the answer waits, 2 s at most; bash too
    #[test]
    fn who_works_or_writes_is_waited_for() {
        assert_eq!(over_after(&[], 60).0, 80);
        assert_eq!(over_after(&[], 500).0, 530);
        assert_eq!(over_after(&[5], 0).0, 110);
        assert_eq!(over_after(&[5, 100, 190], 0).0, 290);
    }

    #[test]
    fn nobody_is_waited_for_longer_than_two_seconds() {
        let always: Vec<u64> = (0..10_000).collect();
        for (output_ms, busy_ms) in [(&always[..], 0), (&[][..], 10_000), (&always[..], 10_000)] {
            let (ms, looks) = over_after(output_ms, busy_ms);
            assert_eq!(ms, 2_000);
            assert!((2_000 / 50..=2_000 / 10).contains(&(looks as u64)), "{looks} looks");
        }
    }
}
