//! What the commands print, and the exit statuses that several of them have.

use std::io::Write;

use crate::pure::text::visible;

/// A failure that has its line on stderr.
pub const EXIT_FAILED: i32 = 1;
/// Flags that make no sense.
pub const EXIT_USAGE: i32 = 2;
/// A timeout, as timeout(1) has it.
pub const EXIT_TIMEOUT: i32 = 124;
/// A signal's number is added to this, as shells do.
pub const EXIT_SIGNAL: i32 = 128;

/// Prints what was asked for; gives the exit status. A reader that is gone wants no more.
pub fn say(text: &str) -> i32 {
    say_bytes(text.as_bytes())
}

/// The same for bytes.
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

/// One line on stderr for people.
pub fn complain(line: &str) {
    // The line may quote what others have written.
    let _ = writeln!(std::io::stderr(), "{}", visible::lines(line));
}
