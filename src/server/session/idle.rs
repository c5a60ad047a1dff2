//! The wait for a session to be idle: no output for so long, and no CPU time used by its processes
//! meanwhile (waits.md, until and stop). Output is known without a look; the CPU time is looked at
//! once output is quiet, and a few times until the time is over.

use crate::limits::{HOLDER_BUSY_NS, NS_PER_MS, QUIET_MS};

/// So many looks are taken in the time for which a session is to be idle: CPU time that was used in
/// one of these parts begins the time anew at its end.
const IDLE_LOOKS: u64 = 4;

/// Two looks at the CPU time of a session's processes are at least so far apart.
const IDLE_LOOK_MIN_MS: u64 = 20;

/// What one wait knows of a session's quiet.
#[derive(Debug)]
pub struct Idle {
    /// Whether it is `stop` that asked.
    pub by_stop: bool,
    /// For how long the session is to be idle.
    for_ns: u64,
    /// Whether the CPU time counts.
    by_cpu: bool,
    /// Since when the session has been idle, as far as is known: not before the wait began.
    since_ns: u64,
    /// When the CPU time was looked at last, and what was found.
    looked: Option<(u64, Vec<Used>)>,
}

/// A process and the CPU time that it has used.
pub type Used = (i32, u64);

/// What a step leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The session has been idle for the time asked for.
    Idle,
    /// Nothing before this time.
    At(u64),
}

impl Idle {
    /// A wait that began at `began_ns` and asks for `idle_ms` without output, and without use of
    /// CPU time where that counts (`by_cpu`).
    pub fn new(by_stop: bool, idle_ms: u64, by_cpu: bool, began_ns: u64) -> Self {
        Self { by_stop, for_ns: idle_ms * NS_PER_MS, by_cpu, since_ns: began_ns, looked: None }
    }

    /// What is to be done at `now_ns` in a session whose last output came at `output_ns`; `look`
    /// gives the CPU time of each of its processes, or None where it can't be told of all.
    pub fn step(
        &mut self,
        now_ns: u64,
        output_ns: u64,
        look: impl FnOnce() -> Option<Vec<Used>>,
    ) -> Step {
        if output_ns > self.since_ns {
            (self.since_ns, self.looked) = (output_ns, None);
        }
        if !self.by_cpu {
            return self.over_or_at(now_ns, self.since_ns + self.for_ns);
        }
        let min_ns = IDLE_LOOK_MIN_MS * NS_PER_MS;
        let pause_ns = (self.for_ns / IDLE_LOOKS).max(min_ns);
        let due_ns = match &self.looked {
            None => self.since_ns + (QUIET_MS * NS_PER_MS).min(self.for_ns),
            Some((at_ns, _)) => at_ns + pause_ns,
        };
        if due_ns > now_ns {
            return Step::At(due_ns);
        }
        let found = look();
        let known = self.looked.take().zip(found.as_ref());
        if !known.is_some_and(|((_, before), now)| rests(&before, now)) {
            // What was used before the first look is not known, so the time begins with it.
            self.since_ns = now_ns;
        }
        self.looked = Some((now_ns, found.unwrap_or_default()));
        self.over_or_at(now_ns, (self.since_ns + self.for_ns).max(now_ns + min_ns))
            .sooner(now_ns + pause_ns)
    }

    fn over_or_at(&self, now_ns: u64, at_ns: u64) -> Step {
        if self.since_ns + self.for_ns <= now_ns { Step::Idle } else { Step::At(at_ns) }
    }
}

impl Step {
    fn sooner(self, at_ns: u64) -> Self {
        match self {
            Self::Idle => self,
            Self::At(due_ns) => Self::At(due_ns.min(at_ns)),
        }
    }
}

/// Whether the same processes are there, and none has used more CPU time than one that wakes by a
/// timer only to sleep again.
fn rests(before: &[Used], now: &[Used]) -> bool {
    let same = |(one, other): (&Used, &Used)| one.0 == other.0 && other.1 < one.1 + HOLDER_BUSY_NS;
    !now.is_empty() && before.len() == now.len() && before.iter().zip(now).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = NS_PER_MS;

    /// Steps at the times that the wait asks for, until the session is idle.
    fn idle_at(idle: &mut Idle, output_ns: u64, mut used: impl FnMut(u64) -> u64) -> (u64, u32) {
        let (mut now, mut looks) = (0, 0);
        for _ in 0..10_000 {
            let step = idle.step(now, output_ns, || {
                looks += 1;
                Some(vec![(7, used(now))])
            });
            match step {
                Step::Idle => return (now, looks),
                Step::At(at) => {
                    assert!(at > now, "a look in the past");
                    now = at;
                }
            }
        }
        panic!("never idle");
    }

    /// rule: waits.md, until and stop: no output came for so long, and the session's processes used
    ///   no CPU time meanwhile
    #[test]
    fn a_session_at_rest_is_idle_after_its_time_and_few_looks() {
        let (at, looks) = idle_at(&mut Idle::new(false, 1_000, true, 0), 0, |_| 5);
        assert!((1_000 * MS..=1_250 * MS).contains(&at), "{at}");
        assert!(looks <= 6, "{looks}");
        let (at, _) = idle_at(&mut Idle::new(false, 1, true, 0), 0, |_| 5);
        assert!(at <= 2 * IDLE_LOOK_MIN_MS * MS + MS, "{at}");
    }

    #[test]
    fn work_begins_the_time_anew_and_so_does_a_new_process_and_output() {
        let until = |now: u64| now.min(600 * MS);
        let (at, _) = idle_at(&mut Idle::new(false, 400, true, 0), 0, until);
        assert!((1_000 * MS..=1_200 * MS).contains(&at), "{at}");
        let mut idle = Idle::new(false, 40, true, 0);
        let mut now = 0;
        for processes in 1..50 {
            let used = || Some((0..processes).map(|pid| (pid, 0)).collect());
            let Step::At(at) = idle.step(now, 0, used) else { panic!("idle at {now}") };
            now = at;
        }
        let mut idle = Idle::new(false, 40, true, 0);
        for output in 1..50 {
            let step = idle.step(output * 19 * MS, output * 19 * MS, || Some(vec![(1, 0)]));
            assert_ne!(step, Step::Idle);
        }
    }

    #[test]
    fn who_cannot_be_looked_at_is_never_idle() {
        let mut idle = Idle::new(false, 40, true, 0);
        let mut now = 0;
        for _ in 0..50 {
            let Step::At(at) = idle.step(now, 0, || None) else { panic!("idle at {now}") };
            now = at;
        }
    }
}
