//! The control socket: where it is, and who is let in (attach.md, The control socket).

use std::path::Path;

use mio::Interest;

use super::client::Client;
use super::logs::errno_text;
use super::{Daemon, LISTENER, Owner};
use crate::config::SocketPlace;
use crate::limits::{
    ACCEPT_RETRY_MS, ACCEPTS_PER_TURN, CLIENT_IDLE_MS, NS_PER_MS, SOCKET_CLIENTS_MAX,
};
use crate::session::ClientId;
use crate::sys::socket::{self, Knock, Listener};
use crate::sys::{host, log_files};
use crate::wire::{self, Reason, RequestId, RpcError};

/// The user who may connect to everybody's.
const ROOT: u32 = 0;

impl Daemon {
    /// Whether people can attach: there is a control socket.
    pub fn can_be_attached(&self) -> bool {
        self.listener.is_some()
    }

    /// Opens the control socket where the settings want one. Gives a reason for people when that
    /// is impossible; execd can do without it, unless its place was asked for.
    pub fn listen(&mut self) -> Result<(), String> {
        let listener = match self.config.socket.clone() {
            SocketPlace::Off => return Ok(()),
            SocketPlace::At(path) => {
                let told = |errno| format!("the socket {}: {}", path.display(), errno_text(errno));
                // A relative path is one from here, whatever the directory is later.
                Listener::bind(&self.base_env.cwd.join(&path)).map_err(told)?
            }
            SocketPlace::Default => self.bind_default()?,
        };
        self.watch(listener.fd(), LISTENER, Interest::READABLE)
            .map_err(|error| format!("the socket: {error}"))?;
        self.listener = Some(listener);
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
        socket::other_name_of(host::pid(), &self.instance)
    }

    /// Where the control socket is, if there is one.
    pub fn socket_path(&self) -> Option<&Path> {
        self.listener.as_ref().map(Listener::path)
    }

    /// Step: lets in who has knocked, a bounded number.
    pub(super) fn accept_clients(&mut self) {
        for _ in 0..ACCEPTS_PER_TURN {
            if !self.accept_ready {
                return;
            }
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok(Some(knock)) => self.let_in(knock),
                Ok(None) => self.accept_ready = false,
                Err(errno) => {
                    // No descriptor or no memory: whoever waits is let in when there is.
                    self.debug(format_args!("socket: {}", errno_text(errno)));
                    self.accept_ready = false;
                    let due_ns = self.now_ns + ACCEPT_RETRY_MS * NS_PER_MS;
                    self.deadlines.set(Owner::Listener, Some(due_ns));
                }
            }
        }
    }

    fn let_in(&mut self, Knock { fd, uid }: Knock) {
        let ours = host::uid();
        let refusal = if uid != ours && uid != ROOT {
            let message = format!("this execd is uid {ours}'s: uid {uid} may not use it");
            RpcError::failed(Reason::NotYours, message)
        } else if self.clients.connected() >= SOCKET_CLIENTS_MAX && !self.make_room_for_client() {
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
        let id: ClientId = self.clients.next_id();
        let mut client = Client::of_connection(id, connection, self.config.max_line_bytes);
        client.note_activity(self.now_ns);
        if client.watch(self.poll.registry()).is_err() {
            // It can't be watched: dropping it hangs up, and it may try again.
            return;
        }
        self.debug(format_args!("client {id}: connected"));
        self.clients.insert(client);
    }
}
