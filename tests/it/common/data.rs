//! Bytes for tests: seeded random ones, and comparing a log with what was written, however
//! large, without holding either in memory.

#[path = "../../../src/pure/tests_random.rs"]
mod tests_random;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use tests_random::Random;

use super::{Execd, send_signal};

impl Random {
    /// One of them.
    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// The bytes in pieces of up to `longest`.
    pub fn pieces<'a>(&mut self, mut bytes: &'a [u8], longest: usize) -> Vec<&'a [u8]> {
        let mut pieces = Vec::new();
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at((1 + self.below(longest)).min(bytes.len()));
            pieces.push(piece);
            bytes = rest;
        }
        pieces
    }

    /// Bytes of every value.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let words = (0..count.div_ceil(8)).flat_map(|_| self.bits().to_le_bytes());
        words.take(count).collect()
    }

    /// Letters and digits only: a terminal in its usual mode leaves them as they are.
    pub fn letters(&mut self, count: usize) -> Vec<u8> {
        const ALPHABET: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        self.bytes(count).into_iter().map(|byte| ALPHABET[usize::from(byte & 63)]).collect()
    }

    /// The items in another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

/// Puts bytes into a file in the directory that execd was started in.
pub fn write_file(execd: &Execd, name: &str, bytes: &[u8]) -> PathBuf {
    let path = execd.file(name);
    std::fs::write(&path, bytes).expect("the working directory is writable");
    path
}

/// Shows that two byte strings are the same, without printing megabytes when they are not.
pub fn assert_same(what: &str, got: &[u8], wanted: &[u8]) {
    if got == wanted {
        return;
    }
    let differs = got.iter().zip(wanted).position(|(one, other)| one != other);
    let at = differs.unwrap_or(got.len().min(wanted.len()));
    let around = |bytes: &[u8]| {
        let from = at.saturating_sub(16).min(bytes.len());
        String::from_utf8_lossy(&bytes[from..bytes.len().min(at + 16)]).into_owned()
    };
    panic!(
        "{what}: {} bytes instead of {}; the first difference is at {at}: {:?} instead of {:?}",
        got.len(),
        wanted.len(),
        around(got),
        around(wanted)
    );
}

/// Fills as much of the buffer as there is; how much that was.
fn fill(source: &mut impl Read, buffer: &mut [u8]) -> usize {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]).expect("both sides can be read") {
            0 => break,
            count => filled += count,
        }
    }
    filled
}

/// Shows that a file holds exactly what a shell command prints, run apart from execd.
pub fn assert_prints(path: &Path, cmd: &str) {
    let mut command = Command::new("bash");
    let mut writer = command.args(["-c", cmd]).stdout(Stdio::piped()).spawn().expect("bash starts");
    let mut wanted = writer.stdout.take().expect("stdout is a pipe");
    let mut got = File::open(path).expect("the log exists");
    let (mut ours, mut theirs) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    let mut offset = 0;
    loop {
        let (one, other) = (fill(&mut got, &mut ours), fill(&mut wanted, &mut theirs));
        let what = format!("{} from byte {offset}", path.display());
        assert_same(&what, &ours[..one], &theirs[..other]);
        offset += one;
        if one < ours.len() {
            break;
        }
    }
    drop(wanted);
    writer.wait().expect("bash is our child");
}

/// A named pipe that commands wait at until the test lets them go on.
pub struct Gate(PathBuf);

impl Gate {
    /// Makes the named pipe in the directory that execd was started in.
    pub fn new(execd: &Execd, name: &str) -> Self {
        let path = execd.file(name);
        let text = std::ffi::CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
        // SAFETY: the path is a string with a NUL at its end that lives during the call.
        assert_eq!(unsafe { libc::mkfifo(text.as_ptr(), 0o600) }, 0, "mkfifo {name}");
        Self(path)
    }

    /// What a command does to wait here.
    pub fn wait(&self) -> String {
        format!("read -r _ < {}", self.0.display())
    }

    /// Lets one waiting command go on. (Opening the pipe waits for the command to come.)
    pub fn open(&self) {
        std::fs::write(&self.0, "go\n").expect("the command waits here");
    }
}

/// A process that stands still (SIGSTOP) until this goes out of scope, also when a test fails.
pub struct Stopped(i32);

impl Stopped {
    /// Stops the process.
    pub fn new(pid: i32) -> Self {
        send_signal(pid, libc::SIGSTOP);
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        send_signal(self.0, libc::SIGCONT);
    }
}
