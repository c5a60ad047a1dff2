//! The poll and what is in it: whose event a token is, and how interest in a descriptor changes.

use std::io;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};

use crate::server::session::{ClientId, SessionId};

/// Tokens of what is neither a session's nor a client's.
pub const REQUESTS: Token = Token(0);
/// stdout, or the connection that stands for it.
pub const REPLIES: Token = Token(1);
/// The signalfd.
pub const SIGNALS: Token = Token(2);
/// The timer of deadlines.
pub const CLOCK: Token = Token(3);
/// The timer of the wall clock's deadlines.
pub const WALL_CLOCK: Token = Token(4);
/// The pipe to the log writer.
pub const KEEPER_LOG: Token = Token(5);
/// The pipe from the log writer.
pub const KEEPER_ACKS: Token = Token(6);
/// The pipe to the guard.
pub const KEEPER_GUARD: Token = Token(7);
/// stderr, where it is a command's.
pub const ERRORS: Token = Token(8);
/// The control socket.
pub const LISTENER: Token = Token(9);
/// Session tokens: the id above three bits that say which of its descriptors it is.
const FIRST_SESSION_TOKEN: usize = 16;
const PORT_BITS: u32 = 3;
/// Client tokens: the client's number above all sessions' tokens.
const FIRST_CLIENT_TOKEN: usize = 1 << (usize::BITS - 1);

/// A session's descriptors in the poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// The output's pipe, or a PTY, which takes the input too.
    Output,
    /// The stdin pipe.
    Input,
    /// The leader's pidfd.
    Leader,
    /// The pidfd of a member that is being ended.
    Member,
    /// The pipe of stderr, where it is apart from stdout.
    Errors,
    /// What tells of a leader's way to its program.
    Start,
    /// A question to one of its servers.
    Probe,
}

/// The ports by their number in a token.
const PORTS: [Port; 7] =
    [Port::Output, Port::Input, Port::Leader, Port::Member, Port::Errors, Port::Start, Port::Probe];

/// The token of a client of the control socket.
pub fn client_token(id: ClientId) -> Token {
    Token(FIRST_CLIENT_TOKEN | usize::try_from(id).unwrap_or(FIRST_CLIENT_TOKEN))
}

/// Which client a token is of.
pub fn client_of(token: Token) -> Option<ClientId> {
    Some(token.0.checked_sub(FIRST_CLIENT_TOKEN)? as ClientId)
}

/// The token of one of a session's descriptors.
pub fn token_of(id: SessionId, port: Port) -> Token {
    let id = usize::try_from(id).unwrap_or(usize::MAX >> PORT_BITS);
    Token(FIRST_SESSION_TOKEN + ((id << PORT_BITS) | port as usize))
}

/// Which session a token is of, and which of its descriptors.
pub fn session_of(token: Token) -> Option<(SessionId, Port)> {
    let packed = token.0.checked_sub(FIRST_SESSION_TOKEN)?;
    let port = *PORTS.get(packed & ((1 << PORT_BITS) - 1))?;
    Some(((packed >> PORT_BITS) as SessionId, port))
}

/// The poll.
#[derive(Debug)]
pub struct Watch(Poll);

impl Watch {
    /// An empty one. Errors: what epoll_create1(2) says.
    pub fn new() -> io::Result<Self> {
        Poll::new().map(Self)
    }

    /// Waits for events, `timeout` at most. An interrupted wait has the events that are there: a
    /// deadline that is over by then must not overtake the output that came before it.
    pub fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) {
        let mut done = self.0.poll(events, timeout);
        if done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
            done = self.0.poll(events, Some(Duration::ZERO));
        }
        if done.is_err() {
            events.clear();
        }
    }

    /// Where descriptors are registered.
    pub fn registry(&self) -> &Registry {
        self.0.registry()
    }

    /// Begins to watch a descriptor. Errors: what epoll_ctl(2) says.
    pub fn add(&self, fd: i32, token: Token, interest: Interest) -> io::Result<()> {
        self.registry().register(&mut SourceFd(&fd), token, interest)
    }

    /// Watches one of our standard descriptors; true when it is of a kind that the poll refuses
    /// because it never blocks (EPERM, epoll_ctl(2)).
    pub fn add_or_always(&self, fd: i32, token: Token, interest: Interest) -> io::Result<bool> {
        match self.add(fd, token, interest) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(true),
            other => other.map(|()| false),
        }
    }

    /// Changes what a descriptor is watched for. Errors: as above.
    pub fn change(&self, fd: i32, token: Token, interest: Interest) -> io::Result<()> {
        self.registry().reregister(&mut SourceFd(&fd), token, interest)
    }

    /// Watches a descriptor no more. One that is not there any more needs no taking out.
    pub fn remove(&self, fd: i32) {
        let _ = self.registry().deregister(&mut SourceFd(&fd));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_name_a_session_and_its_descriptor() {
        for id in [1, 2, 77, 1 << 40] {
            for port in PORTS {
                assert_eq!(session_of(token_of(id, port)), Some((id, port)));
            }
        }
        assert_eq!(session_of(KEEPER_GUARD), None);
        assert_eq!(client_of(client_token(77)), Some(77));
        assert_eq!(client_of(token_of(1 << 40, Port::Errors)), None);
    }
}
