//! Help, man pages and completions, as they are printed and as `make install` puts them: read by
//! man, bash, zsh and fish themselves (cli.md, Help).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::agent_help::place::told;
use crate::common::tmux::{Tmux, can_draw};
use crate::common::{Execd, missing};
use tempfile::TempDir;

use crate::common::EXECD;

fn said(words: &[&str]) -> (i32, String, String) {
    told(Command::new(EXECD).args(words).stdin(Stdio::null()).output().expect("it runs"))
}

fn printed(words: &[&str]) -> String {
    let (status, out, err) = said(words);
    assert_eq!((status, err.as_str()), (0, ""), "{words:?}");
    out
}

/// What `execd help` takes: the commands, and execd's own flags.
fn pages() -> Vec<String> {
    let names = printed(&["help", "--names"]);
    names.lines().chain(["flags"]).map(str::to_owned).collect()
}

// ---- Help -------------------------------------------------------------------------------

/// rule: cli.md, Help: `execd help run`, `execd run --help` tell that command alone with two
///   examples
/// rule: cli.md, Help: `execd --help` fits a screen
/// rule: agent.md, execd agent: Its help fits a screen and has the exit statuses
#[test]
fn help_of_one_command_is_the_same_asked_in_any_way_and_fits_a_screen() {
    for name in pages() {
        let screen = printed(&["help", &name]);
        assert!(screen.lines().count() < 24, "{name}:\n{screen}");
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{name}:\n{screen}");
        assert!(screen.is_ascii() && !screen.contains('\x1b'), "{name}: no colour");
        if name != "flags" {
            let words: Vec<&str> = name.split('-').collect();
            for flag in ["--help", "-h"] {
                assert_eq!(printed(&[&words[..], &[flag]].concat()), screen, "{name}");
            }
            assert_eq!(printed(&[&["help"], &words[..]].concat()), screen, "{name}");
        }
    }
    let statuses = printed(&["help", "agent"]).replace("\n  ", " ");
    for status in ["0 success", "1 failure", "125 refused", "124 timeout", "130 Ctrl-C", "128+N"] {
        assert!(statuses.contains(status), "{status}");
    }
    let overview = printed(&["--help"]);
    assert!(overview.lines().count() < 24, "{overview}");
    assert_eq!(printed(&["help"]), overview);
}

/// rule: cli.md, Help: Typos get the nearest command or flag
/// rule: cli.md, Help: A known flag in the wrong place is told where it goes
#[test]
fn typos_get_the_nearest_and_misplaced_flags_their_place() {
    for (words, reason) in [
        (vec!["rnu", "x"], "unknown command \"rnu\": did you mean run? (try execd --help)"),
        (
            vec!["run", "--tmeout", "1", "x"],
            "unknown flag --tmeout: did you mean --timeout? (try execd run --help)",
        ),
        (
            vec!["--timeout", "1"],
            "unknown flag --timeout: it goes with execd run, execd agent (try execd --help)",
        ),
        (
            vec!["--no-log", "run", "x"],
            "run comes first, its flags behind it: execd run [FLAGS] (try execd --help)",
        ),
        (
            vec!["logs", "--older-than", "1d"],
            "unknown flag --older-than: it goes with execd logs clean (try execd logs --help)",
        ),
    ] {
        let (status, out, err) = said(&words);
        assert!(status != 0 && out.is_empty(), "{words:?}");
        assert_eq!(err, format!("execd: {reason}\n"), "{words:?}");
    }
}

// ---- Man pages --------------------------------------------------------------------------

fn page(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(format!("{name}.1"));
    std::fs::write(&path, printed(&["help", "--man", name])).expect("written");
    path
}

/// rule: cli.md, Help: Man pages (`execd(1)`, `execd-run(1)`, …) come from the same table, and
///   `execd help --man run` prints one
#[test]
fn man_finds_no_fault_with_any_page() {
    if missing("man") || missing("groff") {
        return;
    }
    let dir = TempDir::new().expect("a directory");
    for name in pages() {
        let page = page(dir.path(), &name);
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"]).arg(&page);
        man.env("LC_ALL", "C.UTF-8").env("MANROFFSEQ", "").env("MANWIDTH", "80");
        let done = man.stdin(Stdio::null()).output().expect("man runs");
        assert!(done.status.success() && done.stderr.is_empty(), "{name}: {done:?}");
    }
}

// ---- make install -----------------------------------------------------------------------

fn make(target: &str, prefix: &str, dest: &Path, binary: &str) -> Output {
    let mut command = Command::new("make");
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    command.arg(target).arg(format!("PREFIX={prefix}")).arg(format!("BIN={binary}"));
    command.arg(format!("DESTDIR={}", dest.display()));
    command.stdin(Stdio::null()).output().expect("make runs")
}

/// The files below a directory, by their names from there.
fn files_in(dir: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut left = vec![dir.to_owned()];
    while let Some(one) = left.pop() {
        for entry in std::fs::read_dir(&one).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                left.push(path);
            } else {
                let name = path.strip_prefix(dir).expect("below it");
                all.insert(name.to_string_lossy().into_owned());
            }
        }
    }
    all
}

/// rule: cli.md, Help: Man pages and completions are in the package
#[test]
fn make_install_puts_all_of_it_below_the_prefix_and_uninstall_takes_it_away() {
    if missing("make") {
        return;
    }
    let dir = TempDir::new().expect("a directory");
    let done = make("install", "/usr", dir.path(), EXECD);
    assert!(done.status.success(), "{done:?}");
    let mut expected: BTreeSet<String> = [
        "bin/execd",
        "share/bash-completion/completions/execd",
        "share/doc/execd/LICENSE",
        "share/fish/vendor_completions.d/execd.fish",
        "share/man/man1/execd.1",
        "share/zsh/site-functions/_execd",
    ]
    .map(str::to_owned)
    .into();
    let names = printed(&["help", "--names"]);
    expected.extend(names.lines().map(|name| format!("share/man/man1/execd-{name}.1")));
    let usr = dir.path().join("usr");
    assert_eq!(files_in(&usr), expected);
    let read = |name: &str| std::fs::read_to_string(usr.join(name)).expect("it is there");
    assert_eq!(read("share/man/man1/execd-run.1"), printed(&["help", "--man", "run"]));
    assert_eq!(read("share/man/man1/execd.1"), printed(&["help", "--man"]));
    for (shell, file) in [
        ("bash", "share/bash-completion/completions/execd"),
        ("zsh", "share/zsh/site-functions/_execd"),
        ("fish", "share/fish/vendor_completions.d/execd.fish"),
    ] {
        assert_eq!(read(file), printed(&["completions", shell]), "{shell}");
    }
    let installed = usr.join("bin/execd");
    let version = Command::new(&installed).arg("--version").output().expect("it runs");
    assert_eq!(version.stdout, printed(&["--version"]).into_bytes());
    // What others have put there is left.
    std::fs::write(usr.join("share/man/man1/execd-like.1"), "").expect("written");
    let done = make("uninstall", "/usr", dir.path(), EXECD);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(files_in(&usr), BTreeSet::from(["share/man/man1/execd-like.1".to_owned()]));
}

// ---- Completions ------------------------------------------------------------------------

fn on_path() -> TempDir {
    let dir = TempDir::new().expect("a directory");
    std::os::unix::fs::symlink(EXECD, dir.path().join("execd")).expect("a link");
    dir
}

/// rule: cli.md, Help: Completions for bash, zsh, fish come from the same table
#[test]
fn fish_offers_commands_flags_values_methods_and_ids() {
    if missing("fish") {
        return;
    }
    let mut execd = Execd::start();
    execd.open_all(&["exec sleep 1000"]);
    let dir = on_path();
    let file = dir.path().join("execd.fish");
    std::fs::write(&file, printed(&["completions", "fish"])).expect("written");
    let offered = |line: &str| -> Vec<String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let script = format!("source {}; complete -C '{line}'", file.display());
        let done = Command::new("fish")
            .args(["--no-config", "-c", &script])
            .env("PATH", format!("{}:{path}", dir.path().display()))
            .env("HOME", dir.path())
            .env("XDG_RUNTIME_DIR", execd.runtime_dir())
            .stdin(Stdio::null())
            .output()
            .expect("fish runs");
        assert!(done.status.success() && done.stderr.is_empty(), "{line}: {done:?}");
        let out = String::from_utf8(done.stdout).expect("UTF-8");
        out.lines().filter_map(|row| row.split('\t').next()).map(str::to_owned).collect()
    };
    for (typed, completed) in COMPLETED {
        let word = completed.trim_end().rsplit(' ').next().expect("a word");
        let found = offered(typed);
        // Others of this user may have sessions too.
        let alone = found.len() == 1 || word == "@1";
        assert!(found.iter().any(|one| one == word) && alone, "{typed}: {found:?}");
    }
    assert!(offered("execd logs --old").is_empty(), "a flag of another command");
    let commands = offered("execd ");
    let names = printed(&["help", "--names"]);
    let names: Vec<&str> = names.lines().filter(|name| !name.contains('-')).collect();
    assert!(names.iter().all(|name| commands.iter().any(|one| one == name)), "{commands:?}");
}

/// What both shells complete of a line: what is typed, and the line then.
const COMPLETED: [(&str, &str); 10] = [
    ("execd com", "execd completions "),
    ("execd run --idle", "execd run --idle-timeout "),
    ("execd --for-m", "execd --for-models "),
    ("execd run --signal KI", "execd run --signal KILL "),
    ("execd --on-eof w", "execd --on-eof wait "),
    ("execd call list_s", "execd call list_sessions "),
    ("execd kill @1 KI", "execd kill @1 KILL "),
    ("execd logs clean --old", "execd logs clean --older-than "),
    ("execd help com", "execd help completions "),
    ("execd attach @1", "execd attach @1 "),
];

fn complete_in(tmux: &Tmux) {
    for (typed, completed) in COMPLETED {
        tmux.typed(typed);
        tmux.key("Tab");
        // zsh takes its blank back before some signs.
        tmux.typed("X");
        tmux.until(&format!("$ {completed}X"));
        tmux.key("C-c");
        tmux.until_screen("a prompt", |screen| screen.trim_end().ends_with("\n$"));
    }
}

/// A terminal whose shell finds execd, and the completions for a shell at `$C`.
fn terminal(execd: &Execd, dir: &Path, name: &str, shell: &str) -> Tmux {
    let file = dir.join(name);
    std::fs::write(&file, printed(&["completions", shell])).expect("written");
    let runtime = execd.runtime_dir();
    let envs = [("XDG_RUNTIME_DIR", &*runtime), ("D", dir), ("HOME", dir), ("C", &*file)];
    Tmux::new((100, 40), &envs, &[])
}

/// rule: cli.md, Help: Completions for bash, zsh, fish come from the same table
#[test]
fn bash_completes_what_is_typed() {
    if !can_draw() {
        return;
    }
    let mut execd = Execd::start();
    execd.open_all(&["exec sleep 1000"]);
    let dir = on_path();
    let tmux = terminal(&execd, dir.path(), "execd.bash", "bash");
    tmux.line("PATH=$D:$PATH; source $C; clear");
    tmux.until_screen("a clear screen", |screen| screen.trim() == "$");
    complete_in(&tmux);
}

/// As a file on `$fpath`, which zsh reads when it completes for the first time: the script once
/// only defined its functions then, and the first Tab completed nothing.
///
/// rule: cli.md, Help: Completions for bash, zsh, fish come from the same table
#[test]
fn zsh_completes_what_is_typed_from_the_first_time_on() {
    if !can_draw() || missing("zsh") {
        return;
    }
    let mut execd = Execd::start();
    execd.open_all(&["exec sleep 1000"]);
    let dir = on_path();
    let tmux = terminal(&execd, dir.path(), "_execd", "zsh");
    tmux.line("exec zsh -f");
    tmux.until_screen("another prompt", |screen| screen.trim_end().ends_with("\n$"));
    tmux.line(
        "PS1='$ '; PATH=$D:$PATH; fpath=($D $fpath); autoload -Uz compinit; compinit -u -D; clear",
    );
    tmux.until_screen("a clear screen", |screen| screen.trim() == "$");
    complete_in(&tmux);
}
