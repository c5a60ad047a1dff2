//! A real terminal: tmux draws it, and a test types into it and reads its screen.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

use super::{PATIENCE, eventually, left_out, looks_within};

const PAUSE: Duration = Duration::from_millis(20);

/// A tmux of its own with one window, in which a shell runs.
pub struct Tmux {
    dir: TempDir,
    /// Put before every command.
    socket: String,
}

/// Whether tmux is there; says so where it is not, and insists on it on CI.
pub fn can_draw() -> bool {
    let there = Command::new("tmux").arg("-V").output().is_ok_and(|done| done.status.success());
    assert!(there || std::env::var_os("CI").is_none(), "tmux is not installed on CI");
    if !there {
        left_out("tmux is not installed");
    }
    there
}

impl Tmux {
    /// A terminal of this size whose shell has these variables, with `wrapper` before it. Its
    /// prompt is `$ `.
    pub fn new(size: (u16, u16), envs: &[(&str, &Path)], wrapper: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("execd-tmux-").tempdir().expect("a directory");
        let socket = dir.path().join("tmux").to_string_lossy().into_owned();
        let tmux = Self { dir, socket };
        let (cols, rows) = (size.0.to_string(), size.1.to_string());
        let mut command = tmux.command();
        command.args(["-f", "/dev/null", "new-session", "-d", "-x", &cols, "-y", &rows]);
        for (name, value) in envs {
            command.args(["-e", &format!("{name}={}", value.display())]);
        }
        command.args(["-e", "PS1=$ ", "-e", "HISTFILE=/dev/null"]).args(wrapper);
        command.args(["bash", "--norc", "--noprofile"]);
        let done = command.output().expect("tmux starts");
        assert!(done.status.success(), "{done:?}");
        tmux.tmux(&["set-option", "-g", "status", "off"]);
        tmux.until("$");
        tmux
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8").args(["-S", &self.socket]);
        command
    }

    /// One tmux command.
    pub fn tmux(&self, words: &[&str]) -> Output {
        let done = self.command().args(words).output().expect("tmux runs");
        assert!(done.status.success(), "tmux {words:?}: {done:?}");
        done
    }

    /// Types text, and Enter behind it.
    pub fn line(&self, text: &str) {
        self.typed(text);
        self.key("Enter");
    }

    /// Types text as it is.
    pub fn typed(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", text]);
    }

    /// Presses a key by tmux's name for it.
    pub fn key(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// The keys that detach.
    pub fn detach(&self) {
        self.tmux(&["send-keys", "C-\\", "C-d"]);
    }

    /// Gives the terminal another size.
    pub fn resize(&self, cols: u16, rows: u16) {
        self.tmux(&["resize-window", "-x", &cols.to_string(), "-y", &rows.to_string()]);
    }

    /// What the screen shows.
    pub fn screen(&self) -> String {
        let done = self.tmux(&["capture-pane", "-p"]);
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// The terminal's modes that tmux knows: alternate screen, cursor, mouse, keypad, cursor keys.
    pub fn modes(&self) -> String {
        let flags = "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_flag} \
                     #{keypad_cursor_flag} #{scroll_region_upper}";
        let done = self.tmux(&["display-message", "-p", flags]);
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// The pid of the shell.
    pub fn shell(&self) -> i32 {
        let done = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        String::from_utf8_lossy(&done.stdout).trim().parse().expect("a pid")
    }

    /// Waits until the screen fits.
    pub fn until_screen(&self, what: &str, mut fits: impl FnMut(&str) -> bool) -> String {
        let mut screen = String::new();
        let came = looks_within(PATIENCE, PAUSE, || {
            screen = self.screen();
            fits(&screen)
        });
        assert!(came, "waited for {what}; the screen is:\n{screen}");
        screen
    }

    /// Waits until the screen shows this text.
    pub fn until(&self, text: &str) -> String {
        self.until_screen(&format!("{text:?}"), |screen| screen.contains(text))
    }

    /// The settings of the terminal, as the shell's `stty -a` prints them into a file. The shell
    /// is at its prompt.
    pub fn settings(&self, name: &str) -> String {
        let file = self.dir.path().join(name);
        self.line(&format!(" stty -a >{0}.new; mv {0}.new {0}", file.display()));
        eventually("the shell has printed its settings", || file.exists());
        let settings = std::fs::read_to_string(&file).expect("settings");
        std::fs::remove_file(file).expect("it is there");
        settings
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command().arg("kill-server").output();
    }
}
