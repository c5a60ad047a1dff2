//! A family for tests alone, which shows what a family needs (architecture.md, To add something).
//! Its one method, `echo`, starts a session that prints a text, waits for its end, answers with
//! what came, tells everybody of the end, and remembers what came.

#[cfg(test)]
mod tests;

use serde_json::json;

use super::{Cx, Engine, Entry, Family, Method, Numbered};
use crate::limits::NS_PER_S;
use crate::pure::buffer::remembered::Remembered;
use crate::server::engine::contract::{Answer, Call};
use crate::server::engine::launch::{LaunchSpec, Stdin};
use crate::server::session::output::Source;
use crate::server::session::wait::{Wait, WaitKind, Why};
use crate::server::session::{Session, Ways};
use crate::wire::{self, Kind, RpcError};

/// The rows of the table of methods.
pub const METHODS: &[Method] = &[Method {
    name: "echo",
    summary: "Prints a text by a command of its own, and answers with what came of it.",
    params: Params::TABLE,
    other_params: None,
    waits: true,
    starts: true,
    while_closing: false,
    models: &[],
    check: wire::check::<Params>,
    call,
}];

wire::params! {
    struct Params {
        text "text": String = required(Kind::Text, "what to print");
    }
}

/// What is kept of a session: what came of its output.
#[derive(Debug, Default)]
pub struct Echo(String);

impl Family for Echo {
    type Books = Remembered<String>;

    fn take(own: Option<&mut Self>, _: &mut Session, (_, length): (Source, usize), cx: &mut Cx) {
        if let Some(own) = own {
            own.0.push_str(&String::from_utf8_lossy(&cx.reading.buffer[..length]));
        }
    }

    fn answer(
        own: Option<&mut Self>,
        core: &mut Session,
        wait: Wait,
        why: Why,
        cx: &mut Cx,
    ) -> bool {
        let said = own.map(|own| own.0.clone()).unwrap_or_default();
        if let Some(pending) = cx.take_pending(wait.ticket) {
            let result = json!({ "session_id": core.id, "said": said, "why": why.wait_status() });
            cx.clients.reply(&pending, &result);
        }
        true
    }

    fn remember(own: Option<&mut Self>, core: &mut Session, _: &str, cx: &mut Cx) {
        if let Some(own) = own {
            cx.books.echo.insert(core.id, own.0.clone(), cx.now_ns, 2);
        }
    }
}

fn call(engine: &mut Engine, call: &Call<'_>) -> Result<Answer, RpcError> {
    let Params { text } = wire::read_params(call.params)?;
    let spec = LaunchSpec {
        program: "printf".to_owned(),
        arguments: vec!["%s".into(), text.clone().into()],
        own_program: None,
        command: format!("printf {text}"),
        name: None,
        workdir: None,
        env: vec![],
        stdin: Stdin::Null,
        tty: None,
        split: false,
        whole: false,
    };
    let id = match engine.launch(&spec) {
        Ok(id) => id,
        Err(failure) => return Ok(Answer::of(&json!({ "failure": failure }))),
    };
    if let Some(Entry { core, family }) = engine.sessions.get_mut(id) {
        core.ways = Ways { own_cap: true, listed_early: true, ..core.ways };
        *family = Echo::default().into();
    }
    Ok(engine.wait_for(call, id, |ticket, now_ns| Wait {
        due_ns: Some(now_ns + 10 * NS_PER_S),
        ..Wait::new(ticket, Echo::ID, WaitKind::Start, now_ns)
    }))
}
