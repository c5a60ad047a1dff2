//! What the commands print, and the exit statuses that several of them have.

use std::io::Write;

use crate::pure::text::visible;

/// The exit status of a failure; what failed is said on stderr.
pub const EXIT_FAILED: i32 = 1;
/// The exit status of a failure of execd's own and for flags that make no sense, as env(1) and
/// timeout(1) have it.
pub const EXIT_USAGE: i32 = 125;
/// The exit status after a timeout, as timeout(1) has it.
pub const EXIT_TIMEOUT: i32 = 124;

/// Prints what was asked for; gives the exit status. That the reader is gone is not complained of.
pub fn say(text: &str) -> i32 {
    say_bytes(text.as_bytes())
}

/// Prints bytes, as [`say`] prints text.
pub fn say_bytes(bytes: &[u8]) -> i32 {
    let mut out = std::io::stdout();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    if let Err(error) = &written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        complain(&format!("execd: stdout cannot be written: {error}"));
    }
    i32::from(written.is_err())
}

/// Prints a line for people on stderr.
pub fn complain(line: &str) {
    // The line may quote what others have written.
    let _ = writeln!(std::io::stderr(), "{}", visible::lines(line));
}
