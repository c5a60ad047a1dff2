//! wait_for (waits.md): one request that waits for several sessions, whoever started them. Each of
//! these has a wait of this family, judged like any other; `group` puts together what has become of
//! them, and `reply` makes the answer. When all of it is over is decided in `pure/group.rs`.
//!
//! Once a group is over, the wait of each session is answered when that session is judged: this
//! makes the session's row. The last row sends the reply, so there is exactly one.

pub mod group;
pub mod reply;
pub mod row;
pub mod wait_for;

use super::{Cx, Family, Method, Numbered, State};
use crate::pure::group::One;
use crate::pure::process::life::ExitStatus;
use crate::server::engine::contract::cx::Effect;
use crate::server::engine::judge;
use crate::server::session::Session;
use crate::server::session::asked::OutcomeKind;
use crate::server::session::view::{Text, TextLimits};
use crate::server::session::wait::{Moment, Wait, Why};
use group::{End, Groups};

/// The rows of the table of methods.
pub const METHODS: &[Method] = &[wait_for::METHOD];

/// What the family keeps of a session: nothing, since it starts none.
#[derive(Debug)]
pub struct Waits;

impl Family for Waits {
    type Books = Groups;

    /// Notes what has become of the session for those who wait for it and others.
    fn step(_own: Option<&mut Self>, core: &mut Session, cx: &mut Cx) {
        for at in 0..core.waits.len() {
            if core.waits[at].asked_by == Self::ID {
                learn(core, at, cx);
            }
        }
    }

    fn verdict(
        _own: Option<&Self>,
        core: &Session,
        wait: &Wait,
        _at: &Moment,
        cx: &Cx,
    ) -> Option<Why> {
        let group = cx.books.waits.get(wait.ticket)?;
        let why = match group.end()? {
            End::Early(why) => why,
            End::By(..) => Why::Deadline,
        };
        // Whoever is told of an exit is told it with the whole of its log.
        let told = core.life.finished() && !group.is_unheard();
        Some(if told { Why::Completed } else { why })
    }

    fn points_at_log(_own: Option<&Self>, core: &Session, wait: &Wait, why: Why, cx: &Cx) -> bool {
        let group = cx.books.waits.get(wait.ticket);
        let tells = group.is_some_and(|group| group.tells(core.id));
        tells && (why == Why::Completed || core.view.may_be_cut(cx.config.text))
    }

    /// The engine answers through [`answer`], which sees what the session's own family keeps.
    fn answer(
        _own: Option<&mut Self>,
        _core: &mut Session,
        _wait: Wait,
        _why: Why,
        _cx: &mut Cx,
    ) -> bool {
        false
    }
}

/// What has become of a session, as far as one of its waits is concerned.
fn became(core: &Session, wait: &Wait, why: Why) -> One {
    let exited = || One::Exited { failed: core.status() != Some(ExitStatus::Code(0)) };
    match (wait.outcome.as_ref().map(|outcome| outcome.kind), why) {
        (Some(OutcomeKind::Matched), _) => One::Matched,
        (Some(OutcomeKind::Stopped), _) => One::Stopped,
        (_, Why::Completed | Why::ShellGone) => exited(),
        (Some(OutcomeKind::Impossible), _) => One::Stuck,
        (None, _) => One::Waits,
    }
}

/// Notes what has become of a session for the group of one of its waits, and whether the group is
/// over with that.
fn learn(core: &mut Session, at: usize, cx: &mut Cx) {
    let (now_ns, wait) = (cx.now_ns, &core.waits[at]);
    let why = core.verdict(wait, &judge::moment(core, wait, cx));
    let ticket = wait.ticket;
    let one = why.map_or(One::Waits, |why| became(core, wait, why));
    let failed = core.status().is_some_and(|status| status != ExitStatus::Code(0));
    let failed = one == One::Matched && core.life.finished() && failed;
    let late = wait.due_ns.is_some_and(|due| due <= now_ns);
    let Some(group) = cx.books.waits.get_mut(ticket) else { return };
    if group.end().is_some() {
        return group.learn(core.id, one, now_ns);
    }
    match why {
        Some(Why::Cancelled) => group.cancel(&wait.cancel),
        Some(why @ Why::ShuttingDown) => group.end_early(why),
        _ => group.learn(core.id, one, now_ns),
    }
    if failed {
        group.learn(core.id, One::Exited { failed }, now_ns);
    }
    if matches!(why, Some(Why::Matched | Why::Stopped)) && wait.is_asked_for_password() {
        group.end_for_password(core.id);
    }
    if late {
        group.end_early(Why::Deadline);
    }
    let (over, decided) = (group.end().is_some(), group.is_decided(core.id));
    if over {
        return cx.effects.push(Effect::TouchWaiting(Waits::ID));
    }
    let wait = &mut core.waits[at];
    if one == One::Stuck {
        // Another client may still give it input: what it does is looked at again.
        let outcome = wait.outcome.take();
        if let Some(group) = cx.books.waits.get_mut(ticket) {
            group.note_stuck(core.id, outcome);
        }
    }
    core.waits[at].parked = decided && core.is_over(now_ns);
}

/// Tells the output of a session that no call has told, in at most about `most` bytes.
pub fn tell_view(core: &mut Session, most: usize, cx: &mut Cx) -> Text {
    let over = core.life.finished();
    let log_path = cx.keeper.status(core.id).and_then(|log| log.in_footer(over));
    cx.text_bytes += core.view.retained_bytes();
    let limits = cx.config.text;
    let limits = TextLimits { max_bytes: limits.max_bytes.min(most), ..limits };
    core.view.take(limits, false, core.life.finished(), log_path.as_deref())
}

/// Answers a wait of the family: makes the session's row, and sends the reply where it is the last
/// one.
pub fn answer(state: &mut State, core: &mut Session, mut wait: Wait, cx: &mut Cx) -> bool {
    let Some(mut group) = cx.books.waits.take(wait.ticket) else { return false };
    let tells = group.tells(core.id);
    wait.outcome = wait.outcome.take().or_else(|| group.stuck_by(core.id));
    let row = reply::row((state, core), &wait, &mut group, cx);
    let exited = row.exited && !group.is_unheard();
    group.put(row);
    if group.is_whole() {
        if let Some(pending) = cx.take_pending(wait.ticket) {
            // Those that were over when the call came are told by this answer too.
            let told = group.told();
            told.iter().for_each(|(id, ended)| cx.tell_own_to(pending.client, *id, *ended));
            let tells = group.tells_events && !group.is_unheard();
            let events = if tells { cx.take_events(pending.client) } else { Vec::new() };
            let others_run = cx.others_run(core.id);
            cx.clients.reply(&pending, &reply::reply(group, events, others_run));
        }
    } else {
        cx.books.waits.put_back(wait.ticket, group);
    }
    core.observed |= exited && tells;
    exited && core.life.finished()
}
