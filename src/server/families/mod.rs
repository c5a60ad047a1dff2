//! The families of tools, each in a folder of its own: its methods, its state, its reports, its
//! notices, and what it remembers (architecture.md, The contract). A family is one folder with its
//! `mod`, and one line in the table at the end of this file, which makes the engine's `Families` of
//! all of them. When a hook is called is left to the engine.

pub mod agent;
pub mod attach;
#[cfg(test)]
pub mod echo;
pub mod reading;
pub mod stream;
pub mod unified;
pub mod waits;
pub mod windows;

use crate::server::engine::contract::Families;
use crate::server::engine::pages::{KeptBytes, PageSpec, Part};
use crate::server::session::asked::{Asked, Conditions};
use crate::server::session::output::Source;
use crate::server::session::report::TruncationReport;
use crate::server::session::view::Text;
use crate::server::session::wait::{FamilyId, Moment, Wait, Why};
use crate::server::session::{Session, Ticket};

/// The engine as the families know it.
pub type Engine = crate::server::engine::Engine<State>;
/// What a session is judged in.
pub type Cx = crate::server::engine::contract::cx::Cx<State>;
/// A session and what its family keeps of it.
pub type Entry = crate::server::engine::sessions::Entry<State>;
/// One row of the table of methods.
pub type Method = crate::server::engine::contract::Method<State>;

/// One family of tools. A value is what the family keeps of a session that it started. Hooks that
/// take `own` are called whoever started the session: `own` is `None` for a session of another
/// family. Hooks that take `self` are called for the family's own sessions alone.
/// `engine::contract` says when each is called.
pub trait Family: Sized {
    /// What the family remembers besides its sessions.
    type Books: std::fmt::Debug + Default;

    /// Output came on `source`: the first `length` bytes of `cx.reading.buffer`.
    fn take(_own: Option<&mut Self>, _core: &mut Session, _from: (Source, usize), _cx: &mut Cx) {}

    /// The program of a session of its own has said the first bytes of `cx.reading.buffer`, so
    /// many, to the family alone.
    fn hear(&mut self, _core: &mut Session, _length: usize, _cx: &mut Cx) {}

    /// When a session of its own is to be looked at although nothing happens.
    fn due_ns(&self, _core: &Session) -> Option<u64> {
        None
    }

    /// A session is judged, before its waits are.
    fn step(_own: Option<&mut Self>, _core: &mut Session, _cx: &mut Cx) {}

    /// Why a wait that the family asked for is over.
    fn verdict(
        _own: Option<&Self>,
        core: &Session,
        wait: &Wait,
        at: &Moment,
        _cx: &Cx,
    ) -> Option<Why> {
        core.verdict(wait, at)
    }

    /// Whether the answer of a wait that the family asked for points at the log.
    fn points_at_log(_own: Option<&Self>, core: &Session, _wait: &Wait, why: Why, cx: &Cx) -> bool {
        why == Why::Completed || core.view.may_be_cut(cx.config.text)
    }

    /// The text of progress for a wait that the family asked for.
    fn progress(
        _own: Option<&Self>,
        core: &Session,
        _cx: &mut Cx,
    ) -> (String, Option<TruncationReport>) {
        (crate::server::engine::notices::tail_text(core), None)
    }

    /// Answers a wait that the family asked for. Whether the answer tells the session's end.
    fn answer(
        own: Option<&mut Self>,
        core: &mut Session,
        wait: Wait,
        why: Why,
        cx: &mut Cx,
    ) -> bool;

    /// What a poll of a session of its own is to wait for: it looks at what the poll would tell.
    fn asked(&self, core: &Session, conditions: Conditions, cx: &Cx) -> Option<Box<Asked>> {
        Asked::of_unread(conditions, core, cx.now_ns)
    }

    /// Tells what a poll of a session of its own tells, in at most about `most` bytes; from then on
    /// that is told.
    fn tell(&mut self, core: &mut Session, most: usize, cx: &mut Cx) -> Text {
        waits::tell_view(core, most, cx)
    }

    /// The waits of a session of its own that were over are answered.
    fn settle(&mut self, _core: &mut Session, _cx: &mut Cx) {}

    /// The end of a session of its own is about to be told to everybody.
    fn tell_end(&mut self, _core: &mut Session, _cx: &mut Cx) {}

    /// Whether nobody is to know of a session of its own.
    fn is_hidden(&self) -> bool {
        false
    }

    /// A session is over: what is remembered of it is put into the books. `family`: the name of the
    /// family that started it.
    fn remember(_own: Option<&mut Self>, _core: &mut Session, _family: &'static str, _cx: &mut Cx) {
    }
}

/// A family by its number, which a wait has to say who asked.
pub trait Numbered {
    /// The number.
    const ID: FamilyId;
}

/// What one family keeps of a session, to change it.
macro_rules! own {
    ($state:expr, $Name:ident) => {
        if let State::$Name(own) = $state { Some(&mut **own) } else { None }
    };
}

macro_rules! families {
    ($($(#[$only:meta])* $module:ident: $Name:ident,)+) => {
        /// What the family that started a session keeps of it.
        #[derive(Debug, Default)]
        pub enum State {
            /// No family has taken it, or the session is over.
            #[default]
            Nobody,
            $($(#[$only])*
            #[doc = concat!("A session of ", stringify!($module), ".")]
            $Name(Box<$module::$Name>),)+
        }

        /// The families in their order: where each stands is its number.
        enum Number { $($(#[$only])* $Name,)+ }

        $($(#[$only])*
        impl Numbered for $module::$Name {
            const ID: FamilyId = FamilyId(Number::$Name as u8);
        }

        $(#[$only])*
        impl From<$module::$Name> for State {
            fn from(state: $module::$Name) -> Self {
                Self::$Name(Box::new(state))
            }
        })+

        /// What the families remember besides their sessions.
        #[derive(Debug, Default)]
        pub struct Books {
            $($(#[$only])*
            #[doc = concat!("Those of ", stringify!($module), ".")]
            pub $module: <$module::$Name as Family>::Books,)+
        }

        impl State {
            $($(#[$only])*
            #[doc = concat!("What ", stringify!($module), " keeps of it, where it is its own.")]
            pub fn $module(&self) -> Option<&$module::$Name> {
                if let Self::$Name(own) = self { Some(own) } else { None }
            })+

            /// The family that started the session, in a word.
            pub fn name(&self) -> &'static str {
                match self {
                    Self::Nobody => "none",
                    $($(#[$only])* Self::$Name(_) => stringify!($module),)+
                }
            }

            /// What a poll of the session is to wait for.
            pub fn asked(
                &self,
                core: &Session,
                conditions: Conditions,
                cx: &Cx,
            ) -> Option<Box<Asked>> {
                match self {
                    Self::Nobody => Asked::of_unread(conditions, core, cx.now_ns),
                    $($(#[$only])* Self::$Name(own) => own.asked(core, conditions, cx),)+
                }
            }

            /// Tells what a poll of the session tells.
            pub fn tell(&mut self, core: &mut Session, most: usize, cx: &mut Cx) -> Text {
                match self {
                    Self::Nobody => waits::tell_view(core, most, cx),
                    $($(#[$only])* Self::$Name(own) => own.tell(core, most, cx),)+
                }
            }
        }

        impl Families for State {
            type Books = Books;
            const FRONT: FamilyId = <unified::Unified as Numbered>::ID;

            fn take(&mut self, core: &mut Session, source: Source, length: usize, cx: &mut Cx) {
                $($(#[$only])* {
                    let own = own!(self, $Name);
                    <$module::$Name as Family>::take(own, core, (source, length), cx);
                })+
            }

            fn hear(&mut self, core: &mut Session, length: usize, cx: &mut Cx) {
                match self {
                    Self::Nobody => {}
                    $($(#[$only])* Self::$Name(own) => own.hear(core, length, cx),)+
                }
            }

            fn due_ns(&self, core: &Session) -> Option<u64> {
                match self {
                    Self::Nobody => None,
                    $($(#[$only])* Self::$Name(own) => own.due_ns(core),)+
                }
            }

            fn step(&mut self, core: &mut Session, cx: &mut Cx) {
                $($(#[$only])* <$module::$Name as Family>::step(own!(self, $Name), core, cx);)+
            }

            fn verdict(&self, core: &Session, wait: &Wait, at: &Moment, cx: &Cx) -> Option<Why> {
                $($(#[$only])*
                if wait.asked_by == $module::$Name::ID {
                    return <$module::$Name as Family>::verdict(self.$module(), core, wait, at, cx);
                })+
                core.verdict(wait, at)
            }

            fn points_at_log(&self, core: &Session, wait: &Wait, why: Why, cx: &Cx) -> bool {
                $($(#[$only])*
                if wait.asked_by == $module::$Name::ID {
                    let own = self.$module();
                    return <$module::$Name as Family>::points_at_log(own, core, wait, why, cx);
                })+
                false
            }

            fn progress(
                &self,
                core: &Session,
                wait: &Wait,
                cx: &mut Cx,
            ) -> (String, Option<TruncationReport>) {
                $($(#[$only])*
                if wait.asked_by == $module::$Name::ID {
                    return <$module::$Name as Family>::progress(self.$module(), core, cx);
                })+
                Default::default()
            }

            fn answer(
                &mut self,
                core: &mut Session,
                wait: Wait,
                why: Why,
                cx: &mut Cx,
            ) -> bool {
                if wait.asked_by == waits::Waits::ID {
                    return waits::answer(self, core, wait, cx);
                }
                $($(#[$only])*
                if wait.asked_by == $module::$Name::ID {
                    let own = own!(self, $Name);
                    return <$module::$Name as Family>::answer(own, core, wait, why, cx);
                })+
                false
            }

            fn settle(&mut self, core: &mut Session, cx: &mut Cx) {
                match self {
                    Self::Nobody => {}
                    $($(#[$only])* Self::$Name(own) => own.settle(core, cx),)+
                }
            }

            fn tell_end(&mut self, core: &mut Session, cx: &mut Cx) {
                match self {
                    Self::Nobody => {}
                    $($(#[$only])* Self::$Name(own) => own.tell_end(core, cx),)+
                }
            }

            fn remember(&mut self, core: &mut Session, cx: &mut Cx) {
                let name = self.name();
                $($(#[$only])* {
                    let own = own!(self, $Name);
                    <$module::$Name as Family>::remember(own, core, name, cx);
                })+
            }

            fn family_name(&self) -> Option<&'static str> {
                let hidden = match self {
                    Self::Nobody => false,
                    $($(#[$only])* Self::$Name(own) => own.is_hidden(),)+
                };
                (!hidden).then(|| self.name())
            }

            fn came(engine: &mut Engine, ticket: Ticket, came: Result<Part, String>) {
                reading::came(engine, ticket, came);
            }

            fn go_on(engine: &mut Engine) {
                reading::go_on(engine);
            }

            fn kept(
                live: Option<(&Self, &Session)>,
                spec: &PageSpec,
                books: &Books,
            ) -> Option<KeptBytes> {
                stream::kept_of(live.map(|(state, core)| (state.stream(), core)), spec, books)
            }
        }

        /// The rows of each family in the table of methods.
        pub const METHODS: &[&[Method]] = &[$($(#[$only])* $module::METHODS),+];
    };
}

families! {
    unified: Unified,
    waits: Waits,
    stream: Stream,
    windows: Window,
    agent: Agent,
    attach: Attach,
    reading: Reading,
    #[cfg(test)]
    echo: Echo,
}
