//! When the processes of a quiet session are looked at while somebody waits for what looks tell
//! (waits.md, What it costs): soon after the last output, and then ever more rarely.

use crate::limits::{LOOKS_AFTER_MS, NS_PER_MS};

/// The pause between all further looks.
const LOOK_PAUSE_MS: u64 = 500;

/// The looks at one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quiet {
    /// When the session moved last.
    since_ns: u64,
    /// How many of the first looks were taken since then.
    taken: usize,
    /// When the next look is due; None while nobody wants any.
    due_ns: Option<u64>,
}

impl Quiet {
    /// Somebody waits for what looks tell. Looks that go on already are left as they are.
    pub fn begin(&mut self, now_ns: u64) {
        if self.due_ns.is_none() {
            self.moved(now_ns);
        }
    }

    /// Somebody else waits from now on: looks begin anew, and the next one is no later for it.
    pub fn joined(&mut self, now_ns: u64) {
        if let Some(due_ns) = self.due_ns {
            self.moved(now_ns);
            self.due_ns = self.due_ns.min(Some(due_ns));
        }
    }

    /// Something has moved: output came, or input was given. Nothing is looked at before the
    /// session has been quiet again.
    pub fn moved(&mut self, now_ns: u64) {
        let due_ns = Some(now_ns + LOOKS_AFTER_MS[0] * NS_PER_MS);
        *self = Self { since_ns: now_ns, taken: 0, due_ns };
    }

    /// A look was taken.
    pub fn looked(&mut self, now_ns: u64) {
        self.taken += 1;
        let first = LOOKS_AFTER_MS.get(self.taken).map(|ms| self.since_ns + ms * NS_PER_MS);
        // A look that came late is no reason to take the next one too soon for the two to agree.
        let first = first.map(|at_ns| at_ns.max(now_ns + LOOKS_AFTER_MS[0] * NS_PER_MS));
        self.due_ns = first.or(Some(now_ns + LOOK_PAUSE_MS * NS_PER_MS));
    }

    /// Nobody wants looks any more.
    pub fn stop(&mut self) {
        *self = Self::default();
    }

    /// When the next look is due.
    pub fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of the next looks in milliseconds.
    fn looks(quiet: &mut Quiet, count: usize) -> Vec<u64> {
        let mut at = Vec::new();
        for _ in 0..count {
            let now_ns = quiet.due_ns().unwrap();
            at.push(now_ns / NS_PER_MS);
            quiet.looked(now_ns);
        }
        at
    }

    /// rule: waits.md, What it costs: 15, 50 and 150 ms after the last output, then every 500 ms
    #[test]
    fn looks_come_soon_after_the_last_output_and_then_rarely() {
        let mut quiet = Quiet::default();
        assert_eq!(quiet.due_ns(), None);
        quiet.begin(0);
        assert_eq!(looks(&mut quiet, 5), [15, 50, 150, 650, 1_150]);
        quiet.begin(1_200 * NS_PER_MS);
        assert_eq!(quiet.due_ns(), Some(1_650 * NS_PER_MS), "looks that go on are left alone");
        quiet.moved(1_300 * NS_PER_MS);
        assert_eq!(looks(&mut quiet, 4), [1_315, 1_350, 1_450, 1_950]);
        quiet.stop();
        assert_eq!(quiet.due_ns(), None);
    }

    #[test]
    fn a_look_that_comes_late_puts_off_the_next_one() {
        let mut quiet = Quiet::default();
        quiet.begin(0);
        quiet.looked(48 * NS_PER_MS);
        assert_eq!(looks(&mut quiet, 3), [63, 150, 650]);
    }

    #[test]
    fn whoever_comes_later_is_looked_for_soon() {
        let mut quiet = Quiet::default();
        quiet.joined(0);
        assert_eq!(quiet.due_ns(), None, "a wait that wants no looks begins none");
        quiet.begin(0);
        quiet.joined(10 * NS_PER_MS);
        assert_eq!(looks(&mut quiet, 4), [15, 60, 160, 660]);
        quiet.joined(1_000 * NS_PER_MS);
        assert_eq!(looks(&mut quiet, 2), [1_015, 1_050]);
    }
}
