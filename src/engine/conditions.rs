//! What waits are for besides their time and the exit: looked at each time a session is judged,
//! before its waits are (waits.md). A condition that comes true leaves its [`Outcome`] in the wait;
//! the verdict follows from that. A session is judged for a condition when output matched, or when
//! a look is due that the condition asked for.

use super::contract::Families;
use super::contract::cx::Cx;
use crate::limits::{NS_PER_MS, QUIET_MS};
use crate::pure::process::life::Stream;
use crate::session::Session;
use crate::session::asked::Outcome;
use crate::session::wait::Wait;

/// Looks at the conditions of a session's waits.
pub fn step<F: Families>(core: &mut Session, cx: &mut Cx<F>) {
    if !core.waits.iter().any(Wait::wants_look) {
        return;
    }
    let mut waits = std::mem::take(&mut core.waits);
    for wait in &mut waits {
        wait.look_ns = None;
        if wait.wants_look() {
            look_at_text(core, wait, cx.now_ns);
        }
    }
    core.waits = waits;
}

/// Whether a pattern matched. The end of an unfinished line is told by quiet, or by the end of the
/// output.
fn look_at_text(core: &Session, wait: &mut Wait, now_ns: u64) {
    let Some(asked) = &mut wait.asked else { return };
    let Some(text) = &mut asked.text else { return };
    if text.hit().is_none() && core.life.stream == Stream::Ended {
        text.end();
    }
    asked.quiet_asked = text.hit().is_none() && text.wants_quiet();
    if asked.quiet_asked {
        let quiet_ns = core.output_ns + QUIET_MS * NS_PER_MS;
        if quiet_ns > now_ns {
            return wait.look_at(quiet_ns);
        }
        text.quiet();
        asked.quiet_asked = false;
    }
    if let Some(hit) = text.hit() {
        wait.outcome = Some(Box::new(Outcome::of_hit(hit, wait.began_total)));
    }
}
