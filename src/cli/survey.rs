//! Which execds run, and which sessions they have. All are asked at once, and none is waited for
//! longer than a moment. What is done with a session that was found is left to the commands.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::say::complain;
use crate::client::connection::{Connection, message_of};
use crate::limits::{CLIENT_WAIT_MS, NS_PER_MS};
use crate::pure::text::visible::one_line;
use crate::sys::{clock, host, proc, socket};

/// Bytes of a command line read from /proc for such a name.
const PROCESS_COMMAND_BYTES: usize = 256;

/// The user id of root.
const ROOT: u32 = 0;
/// Characters of a command that are shown where its session is named in a sentence.
pub const NAMED_CHARS: usize = 40;

/// Which execds are meant.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The execd with this process id.
    pub pid: Option<i32>,
    /// The execd that listens here.
    pub socket: Option<PathBuf>,
    /// The execd whose socket is called this, without the ending `.sock`. Where none is, the name's
    /// part before the dash is looked for, and the execd is asked whether the rest is its instance.
    pub name: Option<String>,
    /// Also those of other users, which only root may ask.
    pub all_users: bool,
}

impl Place {
    /// Whether no execd in particular is meant.
    pub const fn is_any(&self) -> bool {
        self.pid.is_none() && self.socket.is_none() && self.name.is_none()
    }
}

/// An execd that has answered.
#[derive(Debug)]
pub struct Execd {
    /// Its process id.
    pub pid: i64,
    /// Its random name.
    pub instance: String,
    /// Whose it is, where that could be told.
    pub uid: Option<u32>,
    /// The rows of list_sessions.
    pub sessions: Vec<Value>,
    /// What is left of sessions that have ended.
    pub left: Vec<Value>,
    /// The way to the execd.
    pub connection: Connection,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Survey {
    /// The execds that have answered.
    pub execds: Vec<Execd>,
    /// Why others have not answered.
    pub silent: Vec<String>,
}

impl Survey {
    /// Says who could not be asked.
    pub fn tell_of_silent(&self) {
        for reason in &self.silent {
            complain(&format!("execd: {reason}"));
        }
    }
}

impl Execd {
    /// A session that is shown in itself would show what it shows, for ever.
    pub fn refuse_itself(&self, id: u64) -> Result<(), String> {
        let is = |name: &str, value: &str| host::variable(name).is_some_and(|own| own == value);
        if is("EXECD_SESSION_ID", &id.to_string()) && is("EXECD_INSTANCE", &self.instance) {
            return Err(format!("this is session @{id}: it cannot be shown in itself"));
        }
        Ok(())
    }
}

/// A session's command on one line, with the session's name before it; cut to `most` characters.
pub fn shortened(row: &Value, most: usize) -> String {
    let command = one_line(row["command"].as_str().unwrap_or_default());
    let text = match row["name"].as_str() {
        Some(name) if !command.starts_with(name) => format!("{}: {command}", one_line(name)),
        _ => command,
    };
    if text.chars().count() <= most {
        return text;
    }
    let mut cut: String = text.chars().take(most.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// The sockets of the execds that are meant. `refused` takes in why other places are not looked at.
pub fn sockets(place: &Place, refused: &mut Vec<String>) -> Result<Vec<PathBuf>, String> {
    if let Some(path) = &place.socket {
        return Ok(vec![path.clone()]);
    }
    let (places, open) = if place.all_users {
        if host::uid() != ROOT {
            return Err("--all-users is for root: the execds of others refuse you".to_owned());
        }
        socket::places_of_all()
    } else {
        socket::places()
    };
    for dir in open.into_iter().filter(|dir| !socket::in_directory(dir).is_empty()) {
        let shown = dir.display();
        refused.push(format!("{shown}: others may enter it, so it is not looked at: chmod 700 it"));
    }
    let all = places.into_iter().flat_map(|dir| socket::in_directory(&dir));
    if let Some(name) = &place.name {
        let all: Vec<PathBuf> = all.collect();
        let called = |name: &str| -> Vec<PathBuf> {
            let is_it = |path: &&PathBuf| path.file_stem().is_some_and(|stem| stem == name);
            all.iter().filter(is_it).cloned().collect()
        };
        let process = name.split_once('-').map(|(pid, _)| pid);
        let of_it = Some(called(name)).filter(|of_it| !of_it.is_empty());
        let of_it = of_it.or_else(|| process.map(called)).unwrap_or_default();
        if of_it.is_empty() {
            return Err(nobody_is(name));
        }
        return Ok(of_it);
    }
    let Some(pid) = place.pid else { return Ok(all.collect()) };
    let of_it: Vec<PathBuf> = all.filter(|path| socket::pid_in_name(path) == Some(pid)).collect();
    if of_it.is_empty() {
        let none = "has a socket: execd ls shows those that have";
        let mut why = vec![format!("no execd of yours with pid {pid} {none}")];
        why.append(refused);
        return Err(why.join("; "));
    }
    Ok(of_it)
}

fn nobody_is(name: &str) -> String {
    format!("no execd of yours is called execd-{name}: execd ls shows what runs")
}

/// Whether the execd has this name: its socket's name, or its process id and its instance.
fn is_called(execd: &Execd, name: &str) -> bool {
    let stem = execd.connection.path().and_then(Path::file_stem);
    let instance = name.split_once('-').map(|(_, instance)| instance);
    stem.is_some_and(|stem| stem == name) || instance == Some(execd.instance.as_str())
}

/// execd names the processes of a row by their short names: people get the command lines of those
/// that are still the same.
fn tell_command_lines(row: &mut Value, is_process: bool) {
    let detached = row.get_mut("detached").and_then(Value::as_array_mut);
    let mut processes: Vec<&mut Value> = detached.into_iter().flatten().collect();
    if is_process {
        processes = vec![row];
    }
    for one in processes {
        let pid = one["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0);
        let line = proc::command_line(pid, PROCESS_COMMAND_BYTES);
        if one["command"] == proc::name(pid).as_str() && !line.is_empty() {
            one["command"] = json!(line);
        }
    }
}

/// Asks the execds that are meant for their sessions.
pub fn survey(place: &Place) -> Result<Survey, String> {
    let named = !place.is_any();
    let mut found = Survey::default();
    let mut asked = Vec::new();
    for path in sockets(place, &mut found.silent)? {
        match Connection::open(&path) {
            Ok(mut connection) => {
                let info = connection.send("server_info", &json!({}));
                let list = connection.send("list_sessions", &json!({"peek": true}));
                asked.push((connection, info, list));
            }
            // An execd that was killed has left its socket behind, one that has ended since the
            // directory was read has taken it along: there is nobody to answer.
            Err(_) if !named && (socket::is_abandoned(&path) || !path.exists()) => {}
            Err(reason) => found.silent.push(reason),
        }
    }
    // One deadline holds for all, so that slow execds do not add up.
    let due_ns = clock::now_ns() + CLIENT_WAIT_MS * NS_PER_MS;
    for (mut connection, info, list) in asked {
        let left_ms = || Some(due_ns.saturating_sub(clock::now_ns()).div_ceil(NS_PER_MS));
        let info = connection.answer(info, left_ms());
        let list = info.and_then(|info| Ok((info, connection.answer(list, left_ms())?)));
        match list {
            Ok((Ok(info), Ok(mut list))) => {
                let mut rows = |name: &str| match list[name].take() {
                    Value::Array(mut rows) => {
                        rows.iter_mut().for_each(|row| tell_command_lines(row, name == "left"));
                        rows
                    }
                    _ => Vec::new(),
                };
                found.execds.push(Execd {
                    uid: connection.path().and_then(socket::owner),
                    pid: info["pid"].as_i64().unwrap_or_default(),
                    instance: info["instance"].as_str().unwrap_or_default().to_owned(),
                    sessions: rows("sessions"),
                    left: rows("left"),
                    connection,
                });
            }
            Ok((Err(error), _) | (_, Err(error))) => found.silent.push(message_of(&error)),
            Err(reason) => found.silent.push(reason),
        }
    }
    if let Some(name) = &place.name {
        found.execds.retain(|execd| is_called(execd, name));
        if found.execds.is_empty() && found.silent.is_empty() {
            found.silent.push(nobody_is(name));
        }
    }
    if named && found.execds.is_empty() {
        return Err(found.silent.join("; "));
    }
    Ok(found)
}

/// The newest session that runs, of the execd that is meant.
pub fn newest(place: &Place) -> Result<u64, String> {
    let survey = survey(place)?;
    let rows = survey.execds.iter().flat_map(|execd| &execd.sessions);
    let running = rows.filter(|row| row["running"] == true);
    running
        .filter_map(|row| row["session_id"].as_u64())
        .max()
        .ok_or_else(|| "no session runs there: execd ls shows what there is".to_owned())
}

/// Which session is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// That of this number.
    Id(u64),
    /// That of this name.
    Name(String),
}

impl Which {
    fn is(&self, row: &Value) -> bool {
        match self {
            Self::Id(id) => row["session_id"] == *id,
            Self::Name(name) => row["name"] == **name,
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "@{id}"),
            Self::Name(name) => write!(f, "{name:?}"),
        }
    }
}

/// A session that was asked for.
#[derive(Debug)]
pub struct Found {
    /// The execd that has the session.
    pub execd: Execd,
    /// The session's row. The row of a session of which only processes are left has session_id, pid
    /// and command only.
    pub row: Value,
    /// Other execds have not answered, and none in particular was meant: they may have a session of
    /// the same number or name.
    pub doubtful: bool,
}

/// Finds the session that is meant, where there is only one such. Of those of a name one that runs
/// is meant rather than one that has ended. `left`: a session counts too of which only processes
/// are left.
pub fn find(which: &Which, place: &Place, left: bool) -> Result<Found, String> {
    let mut survey = survey(place)?;
    survey.tell_of_silent();
    let mut found: Vec<(usize, Value)> = Vec::new();
    for (at, execd) in survey.execds.iter().enumerate() {
        let more = execd.left.iter().filter(|_| left);
        let rows = execd.sessions.iter().chain(more).filter(|row| which.is(row));
        found.extend(rows.map(|row| (at, row.clone())));
    }
    if matches!(which, Which::Name(_)) && found.iter().any(|(_, row)| row["running"] == true) {
        found.retain(|(_, row)| row["running"] == true);
    }
    if found.len() > 1 {
        return Err(several(which, &survey.execds, &found));
    }
    let count = survey.execds.len();
    let Some((at, row)) = found.pop() else {
        return Err(match count {
            0 => format!("no session {which}: no execd of yours runs that could be asked"),
            _ => format!("no session {which}: execd ls shows what there is"),
        });
    };
    let doubtful = place.is_any() && !survey.silent.is_empty();
    Ok(Found { execd: survey.execds.swap_remove(at), row, doubtful })
}

/// That several sessions may be meant, and how each is named.
fn several(which: &Which, execds: &[Execd], found: &[(usize, Value)]) -> String {
    let shares_pid = |pid: i64| execds.iter().filter(|one| one.pid == pid).count() > 1;
    let each: Vec<String> = found
        .iter()
        .map(|(at, row)| {
            let Execd { pid, instance, .. } = &execds[*at];
            let id = &row["session_id"];
            // Execds in different pid namespaces may have the same process id, and two sessions of
            // one execd the same name.
            let named = match which {
                _ if shares_pid(*pid) => format!("execd-{pid}-{instance}:@{id}"),
                Which::Id(_) => format!("--pid {pid}"),
                Which::Name(_) => format!("execd-{pid}:@{id}"),
            };
            format!("{named} ({})", shortened(row, NAMED_CHARS))
        })
        .collect();
    let what = match which {
        Which::Id(id) => format!("several execds have a session @{id}"),
        Which::Name(name) => format!("several sessions are called {name:?}"),
    };
    format!("{what}: say {}", each.join(" or "))
}
