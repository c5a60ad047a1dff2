//! The contracts of the engine: what the engine asks of the families of tools, and what a method is
//! (architecture.md, The contract). The engine knows no family: it is generic over one type that
//! stands for all of them.

pub mod cx;

use std::fmt::Debug;

use serde::Serialize;

use cx::Cx;

use super::Engine;
use super::ledger::kept::By;
use super::pages::{KeptBytes, PageSpec, Part};
use crate::pure::process::killed::KilledBy;
use crate::server::session::output::Source;
use crate::server::session::report::TruncationReport;
use crate::server::session::wait::{FamilyId, Moment, Wait, Why};
use crate::server::session::{ClientId, Session, SessionId, Ticket};
use crate::wire::{self, Int, Param, RequestId, RpcError};

/// All families of tools. A value is what one of them keeps of one session (or nothing, of a
/// session that none has taken); the hooks are called for each session, whoever started it.
pub trait Families: Debug + Default + 'static {
    /// What families remember besides their sessions.
    type Books: Debug + Default;
    /// Whose wait the command of `execd run` has.
    const FRONT: FamilyId;

    /// Output came on `source`: the first `length` bytes of `cx.reading.buffer`. The session's own
    /// buffers and its log have these bytes already.
    fn take(&mut self, core: &mut Session, source: Source, length: usize, cx: &mut Cx<Self>);

    /// The program of a session that [speaks](crate::server::session::Ways::speaks) to its family
    /// has said the first `length` bytes of `cx.reading.buffer`, of which nobody else knows.
    fn hear(&mut self, core: &mut Session, length: usize, cx: &mut Cx<Self>);

    /// When the session is to be looked at although nothing happens to it, on the monotonic clock.
    fn due_ns(&self, core: &Session) -> Option<u64>;

    /// Something happened to the session, or a deadline is over: before its waits are judged.
    fn step(&mut self, core: &mut Session, cx: &mut Cx<Self>);

    /// Why a wait is over; `None` while the wait goes on.
    fn verdict(&self, core: &Session, wait: &Wait, at: &Moment, cx: &Cx<Self>) -> Option<Why>;

    /// Whether the answer of a wait points at the log, which must be complete then.
    fn points_at_log(&self, core: &Session, wait: &Wait, why: Why, cx: &Cx<Self>) -> bool;

    /// The text of a progress notification for a wait, and what was cut from it.
    fn progress(
        &self,
        core: &Session,
        wait: &Wait,
        cx: &mut Cx<Self>,
    ) -> (String, Option<TruncationReport>);

    /// Answers a wait, whoever started the session. True: the answer tells the session's end, so
    /// everybody hears of the end now, and nobody needs to be woken for it. Whether the session
    /// leaves the table is `core.observed`'s to say.
    fn answer(&mut self, core: &mut Session, wait: Wait, why: Why, cx: &mut Cx<Self>) -> bool;

    /// The waits that were over are answered.
    fn settle(&mut self, core: &mut Session, cx: &mut Cx<Self>);

    /// The end of the session is about to be told to everybody.
    fn tell_end(&mut self, core: &mut Session, cx: &mut Cx<Self>);

    /// The session is over, nobody waits for it any more, and its log is complete (or was given
    /// up): what is remembered of it is put into the books now.
    fn remember(&mut self, core: &mut Session, cx: &mut Cx<Self>);

    /// The family that started the session, in a word; none where nobody is to know of the session.
    fn family_name(&self) -> Option<&'static str>;

    /// A part of a session's output has come that `ticket` asked for, or why it could not be read.
    fn came(engine: &mut Engine<Self>, ticket: Ticket, came: Result<Part, String>);

    /// The sessions are judged: what the families have left for then is done.
    fn go_on(engine: &mut Engine<Self>);

    /// What memory has of one stream of a session, which may be over: then only the books know it.
    fn kept(
        live: Option<(&Self, &Session)>,
        spec: &PageSpec,
        books: &Self::Books,
    ) -> Option<KeptBytes>;
}

/// A request as a method sees it.
#[derive(Debug)]
pub struct Call<'a> {
    /// The client that asks.
    pub client: ClientId,
    /// The request's id; absent for a request that is never answered.
    pub id: Option<RequestId>,
    /// JSON text of the request's params: an object.
    pub params: &'a str,
    /// The number of the request's line on its connection, from 1; 0 where it has none.
    pub line: u64,
    /// The request was kept until its turn, which has come.
    pub in_turn: bool,
    /// Since when sessions were looked at, where a list is asked again behind that.
    pub looked_since_ns: Option<u64>,
}

impl Call<'_> {
    /// The request as the one that asks for a session's end.
    pub fn by(&self, reason: KilledBy) -> By<'_> {
        // Who gets no answer is told by none.
        let client = self.id.as_ref().map(|_| self.client);
        By { reason, client, request: self.id.as_ref() }
    }
}

/// What a method leads to at once.
#[derive(Debug)]
pub enum Answer {
    /// The result, as JSON text.
    Json(Vec<u8>),
    /// The request waits: a [`Wait`] stands for it, and its family answers it later.
    Waits,
}

impl Answer {
    /// A result from a value.
    pub fn of(result: &impl Serialize) -> Self {
        Self::Json(wire::to_json(result))
    }
}

/// What a model reads of a method that it may call: the words of every host, in
/// which `{{name}}` stands for a value that the host knows.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The set of tools that the method is in.
    pub set: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What it does.
    pub description: &'static str,
    /// What is said of logs, behind the description, where the model can read them as files.
    pub logs: &'static str,
    /// The params that the model gets, in their order, each with its words; no words where the name
    /// says enough.
    pub params: &'static [(&'static str, &'static str)],
    /// The params are those of the method's other form.
    pub of_other_form: bool,
    /// It changes nothing.
    pub reads_only: bool,
    /// It may destroy something.
    pub destroys: bool,
    /// What it does may reach anything, and not only sessions.
    pub is_open_world: bool,
}

/// One row of the table of methods.
#[derive(Clone, Copy, Debug)]
pub struct Method<F: Families> {
    /// Its name on the wire.
    pub name: &'static str,
    /// What the method does, in a sentence.
    pub summary: &'static str,
    /// Its params.
    pub params: &'static [Param],
    /// The params of its other form, where the method has two.
    pub other_params: Option<&'static [Param]>,
    /// Whether a request of it may wait, so that it counts against the limit of pending requests.
    pub waits: bool,
    /// Whether a request of it starts a command, so that `--jobs` may have it wait for its turn.
    pub starts: bool,
    /// Whether the method is still carried out while execd is ending.
    pub while_closing: bool,
    /// What models read of it, one for each set of tools; none of a method that is not for models.
    pub models: &'static [Model],
    /// Reads params without acting on them: the error that they would be refused with.
    pub check: fn(&str) -> Result<(), RpcError>,
    /// Its handler.
    pub call: fn(&mut Engine<F>, &Call<'_>) -> Result<Answer, RpcError>,
}

impl<F: Families> Method<F> {
    /// Whether a reply of the method goes before what is unsent: such a reply tells whether execd
    /// lives, and says nothing of any session, whose history stays in order.
    pub fn overtakes(&self) -> bool {
        matches!(self.name, "ping" | "server_info")
    }
}

/// The table of methods: the rows of each family, and the front's own.
pub type Methods<F> = &'static [&'static [Method<F>]];

/// A session id from its number on the wire; a number that can't be an id names no session.
pub fn session_id(number: Int) -> SessionId {
    SessionId::try_from(number.0).unwrap_or(0)
}
