//! execd itself: its start, which `execd run` has too, and serving requests on stdin and stdout.

use super::say::complain;
use crate::config::{Config, SocketPlace};
use crate::server::families::Engine;
use crate::server::front;
use crate::sys::stdio;

/// Starts execd with its control socket, and says what execd has to do without. Gives a reason for
/// people where execd cannot start. `quiet`: what it has to do without is not said.
pub fn start(config: Config, quiet: bool) -> Result<Engine, String> {
    let asked_for = matches!(config.socket, SocketPlace::At(_));
    let started =
        Engine::start(config, front::METHODS).and_then(|mut engine| match engine.listen() {
            Err(reason) if asked_for => Err(reason),
            Err(_) if quiet => Ok(engine),
            Err(reason) => {
                complain(&format!("execd: nobody can attach: {reason}"));
                Ok(engine)
            }
            Ok(()) => Ok(engine),
        });
    let engine = started.map_err(|reason| format!("cannot start: {reason}"))?;
    for lack in engine.degraded.lacks.iter().filter(|_| !quiet) {
        complain(&format!("execd: does without {lack}"));
    }
    Ok(engine)
}

/// Serves requests on stdin and stdout until execd ends; gives the exit status. `one_session`:
/// there will be one session, for which there is room on any machine.
pub fn main(config: Config, one_session: bool) -> Result<i32, String> {
    if stdio::was_closed(1) {
        return Err("stdout is closed: answers need a place, >/dev/null say".to_owned());
    }
    let marker = config.marker.clone();
    let mut engine = start(config, false)?;
    if let Some(word) = marker {
        // What was printed before may not have ended its line.
        engine.begin_with(format!("\n=== execd {word} ===\n").as_bytes());
    }
    if let Some(shrunk) = engine.degraded.shrunk.as_ref().filter(|_| !one_session) {
        complain(&format!("execd: {shrunk}"));
    }
    if stdio::is_terminal(0) {
        complain(
            "execd runs commands that you can come back to; it reads JSON-RPC requests, one a \
             line. Type for example:",
        );
        complain(r#"{"id":1,"method":"exec_command","params":{"cmd":"echo hi"}}   (Ctrl-D ends)"#);
    }
    Ok(engine.run())
}
