//! The mark of a run of pi that all of its processes carry, whatever they do: a resource limit.
//!
//! Limits are inherited by every child and kept by exec, setsid and an emptied environment, and
//! who has no privileges can only lower a hard one. RLIMIT_RTTIME bounds the CPU time of real-time
//! threads alone (getrlimit(2)); the values used here are 146,000 years of it, so they bound
//! nobody, and no other program has a reason to choose one of them.
//!
//! | bits | what |
//! |---|---|
//! | 63–61 | 0, 1, 0: it is a mark |
//! | 60–32 | the execd, by its id |
//! | 31–16 | the run, by its session |
//! | 15–0 | all ones; or a run of an execd that is itself inside a run |

/// The limit of who has none (RLIM_INFINITY).
const UNLIMITED: u64 = u64::MAX;
const FLAG: u64 = 1 << 62;
const FLAG_BITS: u64 = 0b111 << 61;
const INSTANCE_SHIFT: u32 = 32;
const INSTANCE_BITS: u64 = (1 << 29) - 1;
const RUN_SHIFT: u32 = 16;
const RUN_BITS: u64 = 0xFFFF;
/// The lowest bits of a mark inside which nobody has set another yet.
const OUTERMOST: u64 = 0xFFFF;

/// The marks that one execd gives to its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunMarks {
    base: u64,
    /// This execd is inside a run of another one: that one's mark stays readable in its own.
    inside: bool,
}

/// What the processes of a run have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunMark {
    limit: u64,
    /// So many of the lowest bits may be anything.
    open_bits: u32,
}

impl RunMarks {
    /// Those of the execd with this id (hexadecimal), which has itself the hard limit `own`. None
    /// where there are none: somebody has lowered it, or three execds are inside each other. Then
    /// processes of a run are known by their parents and by pi's session alone.
    pub fn new(instance: &str, own: u64) -> Option<Self> {
        if own == UNLIMITED {
            let id = u64::from_str_radix(instance, 16).ok()?;
            let base = FLAG | (id & INSTANCE_BITS) << INSTANCE_SHIFT | OUTERMOST;
            return Some(Self { base, inside: false });
        }
        let outermost = own & FLAG_BITS == FLAG && own & OUTERMOST == OUTERMOST;
        outermost.then_some(Self { base: own & !OUTERMOST, inside: true })
    }

    /// The mark of the run with this session's number. Numbers that have the same one are so far
    /// apart that no two such runs live at once.
    pub fn of_run(self, session: u64) -> RunMark {
        if self.inside {
            return RunMark { limit: self.base | (session % OUTERMOST), open_bits: 0 };
        }
        let limit = self.base | (session & RUN_BITS) << RUN_SHIFT;
        RunMark { limit, open_bits: RUN_SHIFT }
    }

    /// What all runs of this execd have, those inside of them included; None where another execd
    /// may give the same marks.
    pub fn of_all_runs(self) -> Option<RunMark> {
        (!self.inside).then_some(RunMark { limit: self.base, open_bits: INSTANCE_SHIFT })
    }
}

impl RunMark {
    /// The limit to set.
    pub fn limit(self) -> u64 {
        self.limit
    }

    /// Whether a process with this hard limit is one of the run.
    pub fn is_on(self, limit: u64) -> bool {
        limit >> self.open_bits == self.limit >> self.open_bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_its_own_and_those_inside_of_it_are_its_too() {
        let outer = RunMarks::new("00000000deadbeef", UNLIMITED).unwrap();
        let all = outer.of_all_runs().unwrap();
        let (one, two) = (outer.of_run(1), outer.of_run(2));
        assert!(one.is_on(one.limit()) && !one.is_on(two.limit()) && !two.is_on(one.limit()));
        assert!(all.is_on(one.limit()) && all.is_on(two.limit()));
        assert!(!one.is_on(UNLIMITED) && !all.is_on(UNLIMITED));
        let other = RunMarks::new("00000000deadbeee", UNLIMITED).unwrap();
        assert!(!all.is_on(other.of_run(1).limit()) && !one.is_on(other.of_run(1).limit()));

        let inside = RunMarks::new("0123456789abcdef", one.limit()).unwrap();
        assert_eq!(inside.of_all_runs(), None);
        let (third, fourth) = (inside.of_run(3), inside.of_run(4));
        assert!(third.is_on(third.limit()) && !third.is_on(fourth.limit()));
        assert!(!third.is_on(one.limit()), "the execd inside has the outer mark itself");
        assert!(third.limit() < one.limit(), "a hard limit can only be lowered");
        assert!(one.is_on(third.limit()) && all.is_on(third.limit()));
        assert!(!two.is_on(third.limit()));
    }

    #[test]
    fn a_limit_that_somebody_else_has_lowered_leaves_no_room_for_marks() {
        let outer = RunMarks::new("ffffffffffffffff", UNLIMITED).unwrap();
        let inside = RunMarks::new("1", outer.of_run(u64::MAX).limit()).unwrap();
        for own in [0, 200_000, i64::MAX as u64, u64::MAX - 1, inside.of_run(65_534).limit()] {
            assert_eq!(RunMarks::new("1", own), None, "{own:x}");
        }
        assert_eq!(RunMarks::new("no id", UNLIMITED), None);
    }
}
