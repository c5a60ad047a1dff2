//! A wait for several sessions at once (waits.md, wait_for): what has become of each of them, and
//! when all of it is over. Who the sessions are, and what is told of them, is left to the family.

/// What a wait for several sessions waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One of them.
    Any,
    /// All of them.
    All,
    /// The first one that fails; all of them where none does.
    FirstFailure,
}

/// What has become of one session, as far as the wait is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum One {
    /// Nothing yet.
    Waits,
    /// Nothing can become of the session any more, as far as is known now.
    Stuck,
    /// What was waited for came true.
    Matched,
    /// What was to stop the wait came true.
    Stopped,
    /// The session has ended; `failed`: not with 0.
    Exited {
        /// See above.
        failed: bool,
    },
}

/// How a wait for several sessions is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// What was waited for came true.
    Matched,
    /// What was to stop the wait came true.
    Stopped,
    /// It is the end of sessions that decided.
    Exited,
    /// What is waited for can't come any more.
    Impossible,
}

impl Mode {
    /// What is known of a session that `was` this once `now` is learnt of it: what has been decided
    /// stays so, but that a failure is still one behind a match where failures are waited for. One
    /// that could not go on stays so too once the wait is `over`, where nothing new is known.
    pub fn learn(self, was: One, now: One, over: bool) -> One {
        match (was, now) {
            (One::Stuck, One::Waits) if over => was,
            (One::Waits | One::Stuck, _) => now,
            (One::Matched, One::Stopped) => was,
            (One::Matched, One::Exited { failed: true }) if self == Self::FirstFailure => now,
            _ => was,
        }
    }

    /// How the wait is over, and which session decided that; `None` while it goes on. `latest` is
    /// the session of which something was learnt last.
    pub fn over(self, all: &[One], latest: usize) -> Option<(Over, usize)> {
        let decides = |wanted: &dyn Fn(One) -> bool| {
            let is_latest = all.get(latest).is_some_and(|one| wanted(*one));
            let first = || all.iter().position(|one| wanted(*one));
            if is_latest { Some(latest) } else { first() }
        };
        if let Some(at) = decides(&|one| one == One::Stopped) {
            return Some((Over::Stopped, at));
        }
        let exited = |one| matches!(one, One::Exited { .. });
        let first = match self {
            Self::Any => decides(&|one| one == One::Matched || exited(one)),
            Self::All => None,
            Self::FirstFailure => decides(&|one| one == One::Exited { failed: true }),
        };
        if let Some(at) = first {
            let matched = all[at] == One::Matched;
            return Some((if matched { Over::Matched } else { Over::Exited }, at));
        }
        let waits = all.contains(&One::Waits);
        let stuck = decides(&|one| one == One::Stuck);
        if let Some(at) = stuck.filter(|_| self == Self::All || !waits) {
            return Some((Over::Impossible, at));
        }
        if waits {
            return None;
        }
        let (over, at) = match decides(&exited) {
            Some(at) => (Over::Exited, at),
            None => (Over::Matched, latest),
        };
        Some((over, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::tests_random::Random;

    const OK: One = One::Exited { failed: false };
    const BAD: One = One::Exited { failed: true };
    use One::{Matched, Stopped, Stuck, Waits};

    #[test]
    fn what_was_decided_of_a_session_stays_so() {
        for (mode, was, now, then) in [
            (Mode::All, Waits, Matched, Matched),
            (Mode::All, Stuck, Waits, Waits),
            (Mode::All, Stuck, OK, OK),
            (Mode::All, Matched, BAD, Matched),
            (Mode::All, Matched, Stopped, Matched),
            (Mode::FirstFailure, Matched, BAD, BAD),
            (Mode::FirstFailure, Matched, OK, Matched),
            (Mode::Any, BAD, Matched, BAD),
            (Mode::Any, Stopped, BAD, Stopped),
            (Mode::Any, OK, Waits, OK),
        ] {
            assert_eq!(mode.learn(was, now, false), then, "{mode:?} {was:?} {now:?}");
        }
        for (was, now, then) in
            [(Stuck, Waits, Stuck), (Stuck, OK, OK), (Waits, Waits, Waits), (Waits, Stuck, Stuck)]
        {
            assert_eq!(Mode::Any.learn(was, now, true), then, "over: {was:?} {now:?}");
        }
    }

    /// What the modes say in words, asked anew of all that has happened.
    fn naive(mode: Mode, all: &[One]) -> bool {
        let done = |one: &One| matches!(one, Matched | One::Exited { .. });
        let some_stop = all.contains(&Stopped);
        let last_chance = !all.contains(&Waits);
        some_stop
            || match mode {
                Mode::Any => all.iter().any(done) || all.iter().all(|one| *one == Stuck),
                Mode::All => all.iter().all(done) || all.contains(&Stuck),
                Mode::FirstFailure => all.contains(&BAD) || last_chance,
            }
    }

    /// rule: waits.md, wait_for: `any` ends with the first session that is done, `all` with the
    ///   last, `first_failure` with the first that fails or else with the last; `stop` ends each
    #[test]
    fn random_stories_of_sessions_end_where_the_words_say_so_and_never_earlier() {
        let mut random = Random(18);
        for _ in 0..17_000 {
            let mode = [Mode::Any, Mode::All, Mode::FirstFailure][random.below(3_usize)];
            let mut all = vec![Waits; 1 + random.below(5_usize)];
            for _ in 0..20 {
                let at = random.below(all.len());
                let now = [Waits, Stuck, Stuck, Matched, OK, BAD, Stopped][random.below(7_usize)];
                all[at] = mode.learn(all[at], now, false);
                let over = mode.over(&all, at);
                assert_eq!(over.is_some(), naive(mode, &all), "{mode:?} {all:?}");
                let Some((over, by)) = over else { continue };
                let fits = match over {
                    Over::Matched => all[by] == Matched,
                    Over::Stopped => all[by] == Stopped,
                    Over::Exited => matches!(all[by], One::Exited { .. }),
                    Over::Impossible => all[by] == Stuck,
                };
                assert!(fits, "{mode:?} {all:?}: {over:?} by {by}");
                break;
            }
        }
    }
}
