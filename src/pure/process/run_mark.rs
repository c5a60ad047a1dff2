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
//! | 31–16 | the run, by a number that no other living run of that execd has |
//! | 15–0 | all ones; or a run of an execd that is itself inside a run |
//!
//! What any other session starts has a soft limit of the same kind, which leaves the hard one as it
//! is: the session's number below the execd's. It is lower than any hard limit that is a mark.

use std::collections::BTreeSet;

/// The limit of who has none (RLIM_INFINITY).
const UNLIMITED: u64 = u64::MAX;
const FLAG: u64 = 1 << 62;
const FLAG_BITS: u64 = 0b111 << 61;
const INSTANCE_SHIFT: u32 = 32;
const INSTANCE_BITS: u64 = (1 << 29) - 1;
const RUN_SHIFT: u32 = 16;
/// The lowest bits of a mark inside which nobody has set another yet.
const OUTERMOST: u64 = 0xFFFF;

/// Marks the soft limit of what a session has started.
const SESSION_FLAG: u64 = 1 << 61;
const SESSION_BITS: u64 = (1 << 32) - 1;

/// The soft limits by which an execd knows whose the orphans are that have left their sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionMarks {
    base: u64,
}

impl SessionMarks {
    /// The marks of the execd with this id, which has itself these limits. None: the hard one is
    /// too low for a mark, or the soft one bounds the user's real-time threads, and a mark would
    /// not.
    pub fn new(instance: &str, soft: u64, hard: u64) -> Option<Self> {
        let id = u64::from_str_radix(instance, 16).ok()?;
        let base = SESSION_FLAG | (id & INSTANCE_BITS) << INSTANCE_SHIFT;
        (soft >= SESSION_FLAG && base | SESSION_BITS <= hard).then_some(Self { base })
    }

    /// The soft limit of what this session starts.
    pub fn limit(self, session: u64) -> u64 {
        self.base | session & SESSION_BITS
    }

    /// Whether a process with this soft limit was started by that session.
    pub fn is_of(self, limit: u64, session: u64) -> bool {
        limit == self.limit(session)
    }
}

/// The marks that one execd gives to its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunMarks {
    base: u64,
    /// Whether this execd is inside a run of another execd, whose mark stays readable in its own.
    inside: bool,
}

/// What the processes of a run have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunMark {
    limit: u64,
    /// So many of the lowest bits may be anything.
    open_bits: u32,
}

impl RunMarks {
    /// The marks of the execd with this id (hexadecimal), which has itself the hard limit `own`.
    /// None where it can give none: somebody has lowered it, or three execds are inside each other.
    /// Then processes of a run are known by their parents and by pi's session alone.
    pub fn new(instance: &str, own: u64) -> Option<Self> {
        if own == UNLIMITED {
            let id = u64::from_str_radix(instance, 16).ok()?;
            let base = FLAG | (id & INSTANCE_BITS) << INSTANCE_SHIFT | OUTERMOST;
            return Some(Self { base, inside: false });
        }
        let outermost = own & FLAG_BITS == FLAG && own & OUTERMOST == OUTERMOST;
        outermost.then_some(Self { base: own & !OUTERMOST, inside: true })
    }

    /// The mark of a run that begins, and the number to go on from for the next one: the first
    /// from `number` on, once round, that none of the living has. None: they have all of them.
    pub fn next(self, number: u16, living: &BTreeSet<RunMark>) -> Option<(RunMark, u16)> {
        (0..=u16::MAX).find_map(|ahead| {
            let number = number.wrapping_add(ahead);
            let mark = self.numbered(number);
            (!living.contains(&mark)).then_some((mark, number.wrapping_add(1)))
        })
    }

    fn numbered(self, number: u16) -> RunMark {
        let number = u64::from(number);
        if self.inside {
            return RunMark { limit: self.base | (number % OUTERMOST), open_bits: 0 };
        }
        RunMark { limit: self.base | number << RUN_SHIFT, open_bits: RUN_SHIFT }
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

    /// rule: agent.md, Ends: What has left the run by setsid, env -i and a second fork is ended
    ///   too, in each of these ways, and a run inside the run
    #[test]
    fn each_run_has_its_own_and_those_inside_of_it_are_its_too() {
        let outer = RunMarks::new("00000000deadbeef", UNLIMITED).unwrap();
        let all = outer.of_all_runs().unwrap();
        let (one, two) = (outer.numbered(1), outer.numbered(2));
        assert!(one.is_on(one.limit()) && !one.is_on(two.limit()) && !two.is_on(one.limit()));
        assert!(all.is_on(one.limit()) && all.is_on(two.limit()));
        assert!(!one.is_on(UNLIMITED) && !all.is_on(UNLIMITED));
        let other = RunMarks::new("00000000deadbeee", UNLIMITED).unwrap();
        assert!(!all.is_on(other.numbered(1).limit()) && !one.is_on(other.numbered(1).limit()));

        let inside = RunMarks::new("0123456789abcdef", one.limit()).unwrap();
        assert_eq!(inside.of_all_runs(), None);
        let (third, fourth) = (inside.numbered(3), inside.numbered(4));
        assert!(third.is_on(third.limit()) && !third.is_on(fourth.limit()));
        assert!(!third.is_on(one.limit()), "the execd inside has the outer mark itself");
        assert!(third.limit() < one.limit(), "a hard limit can only be lowered");
        assert!(one.is_on(third.limit()) && all.is_on(third.limit()));
        assert!(!two.is_on(third.limit()));
    }

    #[test]
    fn a_limit_that_somebody_else_has_lowered_leaves_no_room_for_marks() {
        let outer = RunMarks::new("ffffffffffffffff", UNLIMITED).unwrap();
        let inside = RunMarks::new("1", outer.numbered(u16::MAX).limit()).unwrap();
        for own in [0, 200_000, i64::MAX as u64, u64::MAX - 1, inside.numbered(65_534).limit()] {
            assert_eq!(RunMarks::new("1", own), None, "{own:x}");
        }
        assert_eq!(RunMarks::new("no id", UNLIMITED), None);
    }

    /// Marks were the session's number modulo 65,536: after reserve_session_ids had moved the
    /// numbers on by that much, the end of a run ended what another one had running.
    /// rule: agent.md, Ends: Nothing of another run that lives is ended, whatever their ids are
    #[test]
    fn no_run_gets_the_mark_of_a_living_one() {
        let outer = RunMarks::new("00000000deadbeef", UNLIMITED).unwrap();
        let inside = RunMarks::new("0123456789abcdef", outer.numbered(1).limit()).unwrap();
        for (marks, all) in [(outer, 65_536), (inside, 65_535)] {
            let (first, mut number) = marks.next(0, &BTreeSet::new()).unwrap();
            let mut living = BTreeSet::from_iter([first]);
            for _ in 0..70_000 {
                let (mark, next) = marks.next(number, &living).unwrap();
                assert_ne!(mark, first);
                number = next;
            }
            living.extend((0..u16::MAX).map(|number| marks.numbered(number)));
            living.insert(marks.numbered(u16::MAX));
            assert_eq!(living.len(), all);
            assert_eq!(marks.next(number, &living), None, "parents alone tell whose it is");
            living.remove(&marks.numbered(7));
            assert_eq!(marks.next(8, &living), Some((marks.numbered(7), 8)));
        }
    }

    #[test]
    fn sessions_are_told_apart_below_every_mark_of_a_run() {
        let marks = SessionMarks::new("00000000deadbeef", UNLIMITED, UNLIMITED).unwrap();
        let other = SessionMarks::new("00000000deadbeee", UNLIMITED, UNLIMITED).unwrap();
        assert!(marks.is_of(marks.limit(7), 7) && !marks.is_of(marks.limit(7), 8));
        assert!(!marks.is_of(other.limit(7), 7) && !marks.is_of(UNLIMITED, 7));
        let run = RunMarks::new("00000000deadbeef", UNLIMITED).unwrap().numbered(7);
        assert!(marks.limit(7) < run.limit() && !run.is_on(marks.limit(7)));
        assert!(!marks.is_of(run.limit(), 7));
        let inside = SessionMarks::new("0123456789abcdef", other.limit(7), run.limit()).unwrap();
        assert!(inside.limit(7) < run.limit());
        for (soft, hard) in [(1_000, 1_000), (1_000, UNLIMITED), (1_000, run.limit())] {
            let marks = SessionMarks::new("00000000deadbeef", soft, hard);
            assert_eq!(marks, None, "a limit that bounds");
        }
    }
}
