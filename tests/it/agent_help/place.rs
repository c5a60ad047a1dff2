//! A directory with a pi of our own, and `execd agent` in it.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::{ndjson, write_pi};
use crate::common::{eventually, execd_command, outside};

/// A directory with a pi of our own.
pub struct Place(TempDir);

impl Place {
    /// Our pi writes these lines, and goes on with this script. Its arguments are in `argv`.
    pub fn new(lines: &[Value], then: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("execd-test-").tempdir().expect("a directory");
        std::fs::write(dir.path().join("lines"), ndjson(lines)).expect("a stream");
        let note = "printf '%s\\0' \"$@\" > argv; echo $$ > pid; cat lines";
        write_pi(&dir.path().join("pi"), &format!("{note}; {then}"));
        Self(dir)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// `execd agent` with these words.
    pub fn command(&self, words: &[&str]) -> Command {
        self.execd(&[&["agent", "--model", "fake/scripted"], words].concat())
    }

    /// execd with these words.
    pub fn execd(&self, words: &[&str]) -> Command {
        let mut command = execd_command();
        command.args(words).current_dir(self.path()).env("TMPDIR", self.path());
        command.env("XDG_RUNTIME_DIR", self.path()).env("EXECD_PI", self.path().join("pi"));
        command.env("LC_ALL", "C").env_remove("NO_COLOR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The same, started.
    pub fn spawn(&self, words: &[&str]) -> Child {
        self.command(words).spawn().expect("execd starts")
    }

    /// What execd says to these words: its status and its two streams.
    pub fn said(&self, words: &[&str]) -> (i32, String, String) {
        told(self.command(words).output().expect("it runs"))
    }

    /// A file of this directory; nothing where there is none.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// pi's process, once it runs.
    pub fn pi(&self) -> i32 {
        eventually("pi runs", || self.read("pid").ends_with('\n'));
        self.read("pid").trim().parse().expect("a pid")
    }
}

/// The execd that `execd agent` has started: its only child.
pub fn execd_of(agent: &Child) -> i32 {
    let children = outside::children(i32::try_from(agent.id()).expect("a pid"));
    let [(execd, _)] = children[..] else { panic!("one child: {children:?}") };
    execd
}

/// How a program ended: its status and its two streams.
pub fn told(output: Output) -> (i32, String, String) {
    let Output { status, stdout, stderr } = output;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (status.code().expect("no signal"), text(stdout), text(stderr))
}
