//! The control socket: where it is, and who is let in (people.md, The control socket). A client
//! that was let in may ask for whatever any other may.

use std::path::Path;

use mio::Interest;

use super::client::Client;
use super::contract::Families;
use super::watch::LISTENER;
use super::{Engine, Owner};
use crate::config::SocketPlace;
use crate::limits::{CLIENT_IDLE_MS, NS_PER_MS, SOCKET_CLIENTS_MAX};
use crate::server::session::ClientId;
use crate::sys::errno::errno_text;
use crate::sys::socket::{self, Knock, Listener};
use crate::sys::{host, log_files};
use crate::wire::{self, Reason, RequestId, RpcError};

/// How soon a connection is tried again that could not be taken for want of descriptors or memory.
const ACCEPT_RETRY_MS: u64 = 500;

/// Connections taken in one turn.
const ACCEPTS_PER_TURN: usize = 16;

/// The user who may connect to everybody's.
const ROOT: u32 = 0;

/// The control socket, where there is one.
#[derive(Debug, Default)]
pub struct Door {
    listener: Option<Listener>,
    /// Somebody may have knocked.
    pub knocked: bool,
}

impl Door {
    /// Whether there is a control socket.
    pub fn is_open(&self) -> bool {
        self.listener.is_some()
    }
}

impl<F: Families> Engine<F> {
    /// Whether people can attach: there is a control socket.
    pub fn can_be_attached(&self) -> bool {
        self.door.is_open()
    }

    /// Opens the control socket where the settings want one. Gives a reason for people when that
    /// is impossible; execd can do without it, unless its place was asked for.
    pub fn listen(&mut self) -> Result<(), String> {
        let listener = match self.cx.config.socket.clone() {
            SocketPlace::Off => return Ok(()),
            SocketPlace::At(path) => {
                let told = |errno| format!("the socket {}: {}", path.display(), errno_text(errno));
                // A relative path is one from here, whatever the directory is later.
                Listener::bind(&self.cx.cwd.join(&path)).map_err(told)?
            }
            SocketPlace::Default => self.bind_default()?,
        };
        self.cx
            .watch
            .add(listener.fd(), LISTENER, Interest::READABLE)
            .map_err(|error| format!("the socket: {error}"))?;
        self.door.listener = Some(listener);
        Ok(())
    }

    fn bind_default(&self) -> Result<Listener, String> {
        let dir = log_files::ensure_private_dir(&socket::directory())
            .map_err(|reason| format!("socket {reason}"))?;
        socket::remove_stale(&dir);
        let path = dir.join(socket::name_of(host::pid()));
        Listener::bind(&path)
            // Another pid namespace shares the directory: its process of our number lives.
            .or_else(|errno| match errno {
                socket::IN_USE => Listener::bind(&dir.join(self.other_name())),
                errno => Err(errno),
            })
            .map_err(|errno| format!("socket {}: {}", path.display(), errno_text(errno)))
    }

    fn other_name(&self) -> String {
        socket::other_name_of(host::pid(), &self.launcher.instance)
    }

    /// Where the control socket is, if there is one.
    pub fn socket_path(&self) -> Option<&Path> {
        self.door.listener.as_ref().map(Listener::path)
    }

    /// Step: lets in who has knocked, a bounded number.
    pub(crate) fn accept_clients(&mut self) {
        for _ in 0..ACCEPTS_PER_TURN {
            if !self.door.knocked {
                return;
            }
            let Some(listener) = &self.door.listener else { return };
            match listener.accept() {
                Ok(Some(knock)) => self.let_in(knock),
                Ok(None) => self.door.knocked = false,
                Err(errno) => {
                    // No descriptor or no memory: whoever waits is let in when there is.
                    self.cx.debug(format_args!("socket: {}", errno_text(errno)));
                    self.door.knocked = false;
                    let due_ns = self.cx.now_ns + ACCEPT_RETRY_MS * NS_PER_MS;
                    self.cx.deadlines.set(Owner::Listener, Some(due_ns));
                }
            }
        }
    }

    fn let_in(&mut self, Knock { fd, uid }: Knock) {
        let ours = host::uid();
        let refusal = if uid != ours && uid != ROOT {
            let message = format!("this execd is uid {ours}'s: uid {uid} may not use it");
            RpcError::failed(Reason::NotYours, message)
        } else if self.cx.clients.connected() >= SOCKET_CLIENTS_MAX && !self.make_room_for_client()
        {
            let message = format!(
                "{SOCKET_CLIENTS_MAX} clients are connected, as many as may be, and none of them \
                 has been idle for {} s: try again when one has gone",
                CLIENT_IDLE_MS / 1_000
            );
            RpcError::failed(Reason::TooManyClients, message)
        } else {
            return self.take_in(fd);
        };
        let mut line = Vec::new();
        wire::push_error(&mut line, &RequestId::null(), &refusal);
        // A fresh connection takes a line at once.
        let _ = socket::send(&fd, &line);
    }

    fn take_in(&mut self, connection: std::os::fd::OwnedFd) {
        let id: ClientId = self.cx.clients.next_id();
        let mut client = Client::of_connection(id, connection, self.cx.config.max_line_bytes);
        client.note_activity(self.cx.now_ns);
        if client.watch(self.cx.watch.registry()).is_err() {
            // A connection that can't be watched is dropped, which hangs up: the client may try
            // again.
            return;
        }
        self.cx.debug(format_args!("client {id}: connected"));
        client.events = self.cx.events.ledger.reader();
        self.cx.clients.insert(client);
    }
}
