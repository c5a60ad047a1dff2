//! What is answered of a session that somebody else has ended than whoever asks: how, by whom, its
//! last output and its log.

use super::tool_time_utc;
use crate::limits::{LIST_COMMAND_CHARS, NS_PER_MS};
use crate::pure::process::killed::who;
use crate::pure::process::life::ExitStatus;
use crate::pure::text::visible::one_line;
use crate::server::engine::contract::Call;
use crate::server::engine::judge::status_fields;
use crate::server::engine::ledger::age;
use crate::server::engine::sessions::past::LastSeen;
use crate::server::families::{Engine, Entry};
use crate::server::session::report::{ExecReport, KillReport};
use crate::server::session::{Listing, SessionId};
use crate::sys::clock;
use crate::wire::RpcError;

/// A session that somebody else has ended.
#[derive(Debug, Default)]
pub struct Ended {
    last: LastSeen,
    status: Option<ExitStatus>,
    /// By whom, as a word of the protocol.
    pub killed_by: &'static str,
    /// The family that started it.
    pub family: &'static str,
    /// How long ago.
    ago_ms: u64,
    total: u64,
    /// Its log.
    pub log_path: Option<String>,
}

/// What is known of the session of this id, where it has left the table because somebody else has
/// ended it than this client.
pub fn find(engine: &Engine, call: &Call<'_>, id: SessionId) -> Option<Ended> {
    let Engine { sessions, cx, .. } = engine;
    let others =
        |killer: Option<u64>, word: &str| killer != Some(call.client) && who(word).is_some();
    if let Some(entry) = sessions.get(id) {
        // It has left the table, and is about to be forgotten.
        let core = &entry.core;
        let gone = core.listing == Listing::Gone && core.life.finished();
        let killed_by = core.killed_by().filter(|_| gone)?;
        let ended_ns = core.finished_ns.unwrap_or(cx.now_ns);
        return others(core.noted.killer, killed_by).then(|| Ended {
            last: LastSeen::new(core),
            status: core.status(),
            killed_by,
            family: entry.family.name(),
            ago_ms: (cx.now_ns - ended_ns) / NS_PER_MS,
            total: core.output_bytes_total(),
            log_path: cx.log_path(id),
        });
    }
    let past = sessions.past.get(id)?;
    let killed_by = past.killed_by.filter(|word| others(past.killer, word))?;
    let ended_ms = past.started_wall_ms + i64::try_from(past.elapsed_ms).unwrap_or(0);
    Some(Ended {
        last: sessions.past.last(id).cloned().unwrap_or(LastSeen { id, ..LastSeen::default() }),
        status: past.status,
        killed_by,
        family: past.family,
        ago_ms: u64::try_from(clock::wall_ms() - ended_ms).unwrap_or(0),
        total: past.total,
        log_path: past.log.as_deref().and_then(|log| cx.keeper.path_of(log)),
    })
}

/// The session of this id as used now; one that has left the table and is being ended is waited
/// for as any other.
pub fn reach(engine: &mut Engine, id: SessionId) -> Result<&mut Entry, RpcError> {
    let sessions = &mut engine.sessions;
    let is_ending = sessions.get(id).is_some_and(|one| {
        let core = &one.core;
        core.listing == Listing::Gone && !core.life.finished() && core.is_killed_by().is_some()
    });
    if is_ending {
        let unknown = sessions.unknown_session(id);
        return sessions.get_mut(id).ok_or(unknown);
    }
    sessions.use_session(id)
}

impl Ended {
    /// Who has ended it, and when, in a line.
    pub fn line(&self) -> String {
        let command = one_line(&self.last.command);
        let shown: String = command.chars().take(LIST_COMMAND_CHARS).collect();
        let dots = if shown.len() < command.len() { "…" } else { "" };
        let name = if shown.is_empty() { String::new() } else { format!(" ({shown}{dots})") };
        let by = who(self.killed_by).unwrap_or(self.killed_by);
        let ago = age(i64::try_from(self.ago_ms).unwrap_or(i64::MAX));
        format!("session {}{name} was ended by {by} {ago}", self.last.id)
    }

    /// How its leader has ended.
    pub fn exit(&self) -> (Option<i32>, Option<String>) {
        status_fields(self.status)
    }

    /// Its number.
    pub fn id(&self) -> SessionId {
        self.last.id
    }

    /// Its command, cut where it is long.
    pub fn command(&self) -> String {
        self.last.command.to_string()
    }

    /// The end of its output.
    pub fn output(&self) -> String {
        self.last.output.to_string()
    }

    /// The answer of a poll, or of a write that gave it input.
    pub fn exec_report(&self, wrote: bool, engine: &mut Engine) -> ExecReport {
        let (exit_code, signal) = self.exit();
        let lost = "the session has exited: the bytes were not delivered";
        ExecReport {
            exit_code,
            signal,
            killed_by: Some(self.killed_by),
            status: Some("killed"),
            ended_ms_ago: Some(self.ago_ms),
            failure_message: wrote.then(|| lost.to_owned()),
            note: Some(self.line()),
            log_path: self.log_path.clone(),
            cwd: self.last.cwd.to_string(),
            tty: self.last.tty,
            command: self.command(),
            chunk_id: engine.cx.chunk_id(),
            output_bytes_total: self.total,
            output: self.output(),
            wait_status: Some("completed"),
            wait_mode: Some("relative"),
            effective_wait_ms: Some(0),
            tool_time_utc: engine.cx.others_run(self.last.id).then(tool_time_utc),
            ..ExecReport::default()
        }
    }

    /// The answer of kill_session.
    pub fn kill_report(&self) -> KillReport {
        let (exit_code, signal) = self.exit();
        KillReport {
            found: true,
            session_id: self.last.id,
            killed: Some(true),
            escalated: Some(false),
            exit_code,
            signal,
            killed_by: Some(self.killed_by),
            status: Some("killed"),
            ended_ms_ago: Some(self.ago_ms),
            log_path: self.log_path.clone(),
            final_output: Some(self.output()),
            summary: Some(self.line()),
            ..KillReport::default()
        }
    }
}
