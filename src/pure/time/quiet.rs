//! When the processes of a quiet session are looked at while somebody waits for it (waits.md, What
//! it costs). Looks come soon after the last output and ever more rarely; once two have found the
//! same, nothing is looked at but for a rare look that makes up for what no event tells.

use crate::limits::{
    DOING_BACKSTOP_MAX_MS, DOING_BACKSTOP_MS, DOING_FIRST_LOOK_MS, DOING_GAP_MAX_MS,
    DOING_WAKE_MIN_MS, DOING_WAKE_MS, NS_PER_MS,
};

/// The looks at one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quiet {
    /// When the next look is due; None while nobody wants any.
    due_ns: Option<u64>,
    /// The pause after the next look.
    gap_ms: u64,
    /// The pause before a look at a session that has settled.
    backstop_ms: u64,
    /// The shortest pause before a look because a sleep has passed.
    wake_min_ms: u64,
    settled: bool,
}

impl Quiet {
    /// Somebody waits who may be answered for what is seen. Looks that go on already are left as
    /// they are.
    pub fn begin(&mut self, now_ns: u64) {
        if self.due_ns.is_none() {
            self.moved(now_ns);
        }
    }

    /// Somebody else waits from now on, who may be answered for what is seen: a look comes soon,
    /// also where the session has settled for those who waited before.
    pub fn joined(&mut self, now_ns: u64) {
        let Some(due_ns) = self.due_ns else { return };
        if self.settled {
            return self.moved(now_ns);
        }
        self.due_ns = Some(due_ns.min(now_ns + DOING_FIRST_LOOK_MS * NS_PER_MS));
    }

    /// Something has moved: output came, input was given, a member has ended. Nothing is looked at
    /// before the session has been quiet again.
    pub fn moved(&mut self, now_ns: u64) {
        *self = Self {
            due_ns: Some(now_ns + DOING_FIRST_LOOK_MS * NS_PER_MS),
            gap_ms: 2 * DOING_FIRST_LOOK_MS,
            backstop_ms: DOING_BACKSTOP_MS,
            wake_min_ms: DOING_WAKE_MIN_MS,
            settled: false,
        };
    }

    /// A look was taken. `settled`: it found what the one before has found, and that is nothing to
    /// answer with. `keeps_on`: somebody waits for input, and is to be told of it soon.
    /// `wakes_in_ns`: a program sleeps or has a timeout, and goes on then.
    pub fn looked(&mut self, now_ns: u64, settled: bool, keeps_on: bool, wakes_in_ns: Option<u64>) {
        if self.settled && !settled {
            // Something has moved that no event has told: soon it will be seen what came of it.
            self.gap_ms = DOING_FIRST_LOOK_MS;
        }
        let pause_ms = if settled && !keeps_on {
            self.settled_pause_ms(wakes_in_ns)
        } else {
            let pause_ms = self.gap_ms;
            self.gap_ms = (pause_ms * 2).min(DOING_GAP_MAX_MS);
            pause_ms
        };
        self.settled = settled && !keeps_on;
        self.due_ns = Some(now_ns + pause_ms * NS_PER_MS);
    }

    /// The pause before a look at a session that has settled: until a sleep of its programs has
    /// passed, or a long one.
    fn settled_pause_ms(&mut self, wakes_in_ns: Option<u64>) -> u64 {
        let wake_ms = wakes_in_ns.map(|wakes_in_ns| {
            (wakes_in_ns.div_ceil(NS_PER_MS).saturating_add(DOING_WAKE_MS)).max(self.wake_min_ms)
        });
        if let Some(wake_ms) = wake_ms.filter(|wake_ms| *wake_ms < self.backstop_ms) {
            self.wake_min_ms = (self.wake_min_ms * 2).min(DOING_BACKSTOP_MAX_MS);
            return wake_ms;
        }
        let pause_ms = self.backstop_ms;
        self.backstop_ms = (pause_ms * 2).min(DOING_BACKSTOP_MAX_MS);
        pause_ms
    }

    /// Nobody wants looks any more.
    pub fn stop(&mut self) {
        *self = Self::default();
    }

    /// When the next look is due.
    pub fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// Whether nothing is looked at until something moves.
    pub fn is_settled(&self) -> bool {
        self.settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of looks in milliseconds, each of which finds `settled`.
    fn looks(quiet: &mut Quiet, found: &[(bool, bool)]) -> Vec<u64> {
        let mut at = Vec::new();
        for (settled, keeps_on) in found {
            let now_ns = quiet.due_ns().unwrap();
            at.push(now_ns / NS_PER_MS);
            quiet.looked(now_ns, *settled, *keeps_on, None);
        }
        at.push(quiet.due_ns().unwrap() / NS_PER_MS);
        at
    }

    /// rule: waits.md, What it costs: then after 40, 80, … up to 500 ms
    #[test]
    fn looks_come_soon_after_the_last_output_and_ever_more_rarely() {
        let mut quiet = Quiet::default();
        assert_eq!(quiet.due_ns(), None);
        quiet.begin(0);
        let busy = [(false, false); 7];
        assert_eq!(looks(&mut quiet, &busy), [20, 60, 140, 300, 620, 1_120, 1_620, 2_120]);
        quiet.begin(5_000_000_000);
        assert_eq!(quiet.due_ns(), Some(2_120_000_000), "looks that go on are left alone");
        quiet.moved(3_000_000_000);
        assert_eq!(looks(&mut quiet, &busy[..2]), [3_020, 3_060, 3_140]);
        quiet.stop();
        assert_eq!(quiet.due_ns(), None);
    }

    /// rule: waits.md, What it costs: Two looks that agree
    #[test]
    fn a_session_that_has_settled_is_left_alone_but_for_a_rare_look() {
        let mut quiet = Quiet::default();
        quiet.begin(0);
        let found = [(false, false), (true, false), (true, false), (true, false)];
        assert_eq!(looks(&mut quiet, &found), [20, 60, 60_060, 180_060, 420_060]);
        assert!(quiet.is_settled());
        quiet.moved(0);
        assert!(!quiet.is_settled());
        let asked = [(false, true), (true, true), (true, true), (true, true), (true, true)];
        assert_eq!(looks(&mut quiet, &asked), [20, 60, 140, 300, 620, 1_120]);
        assert!(!quiet.is_settled(), "who waits for input is told of it soon");
        quiet.joined(1_000_000_000);
        assert_eq!(quiet.due_ns(), Some(1_020_000_000), "who comes later is looked for soon");
        quiet.looked(1_020_000_000, true, false, None);
        quiet.joined(2_000_000_000);
        assert!(!quiet.is_settled());
        assert_eq!(quiet.due_ns(), Some(2_020_000_000), "also where it has settled for others");
        quiet.stop();
        quiet.joined(3_000_000_000);
        assert_eq!(quiet.due_ns(), None, "who wants no looks begins none");
        let mut quiet = Quiet { backstop_ms: DOING_BACKSTOP_MAX_MS, ..quiet };
        quiet.looked(0, true, false, None);
        assert_eq!(quiet.due_ns(), Some(DOING_BACKSTOP_MAX_MS * NS_PER_MS));
    }
    /// rule: waits.md, What it costs: when a sleep or a timeout of it has passed
    #[test]
    fn a_session_that_sleeps_is_looked_at_when_its_sleep_is_over() {
        let mut quiet = Quiet::default();
        quiet.begin(0);
        let mut found = |settled: bool, wakes_in_ms: Option<u64>| {
            let now_ns = quiet.due_ns().unwrap();
            quiet.looked(now_ns, settled, false, wakes_in_ms.map(|ms| ms * NS_PER_MS));
            (quiet.due_ns().unwrap() - now_ns) / NS_PER_MS
        };
        assert_eq!(found(false, Some(3_000)), 40, "nothing has settled");
        assert_eq!(found(true, Some(2_960)), 2_960 + DOING_WAKE_MS);
        assert_eq!(found(false, None), DOING_FIRST_LOOK_MS, "it has gone on: soon to be seen");
        assert_eq!(found(true, Some(61_000)), DOING_BACKSTOP_MS, "the rare look comes before");
        assert_eq!(found(true, Some(61_000)), 61_000 + DOING_WAKE_MS);
        assert_eq!(found(true, None), 2 * DOING_BACKSTOP_MS);
        assert_eq!(found(true, Some(u64::MAX / NS_PER_MS)), 4 * DOING_BACKSTOP_MS);
    }

    /// rule: waits.md, What it costs: A program that sleeps for moments is looked at ever more
    ///   rarely
    #[test]
    fn a_program_that_sleeps_for_moments_is_looked_at_ever_more_rarely() {
        let mut quiet = Quiet::default();
        quiet.begin(0);
        let mut looks = 0;
        while quiet.due_ns().unwrap() < DOING_BACKSTOP_MS * NS_PER_MS {
            let now_ns = quiet.due_ns().unwrap();
            quiet.looked(now_ns, looks % 2 == 1, false, Some(10 * NS_PER_MS));
            looks += 1;
        }
        assert!(looks < 30, "{looks}");
        quiet.moved(0);
        quiet.looked(0, true, false, Some(0));
        assert_eq!(quiet.due_ns(), Some(DOING_WAKE_MIN_MS * NS_PER_MS), "anew");
    }
}
