//! Many commands from a pipe, so many at once, against `xargs -P`.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Scale;
use super::client::{program, scratch};
use super::report::{Goal, Report, Samples};

/// Commands at once.
const AT_ONCE: &str = "2";

/// How long a command takes whose stdin is this file.
fn timed(mut command: Command, input: &Path) -> Duration {
    let stdin = File::open(input).expect("it was written");
    let begun = Instant::now();
    let status = command.stdin(stdin).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.expect("it starts").success(), "{command:?}");
    begun.elapsed()
}

/// `exec_command true`, a line each, with `--jobs 2`, against `xargs -P2` with `bash -c true`.
pub fn jobs(scale: Scale, report: &mut Report) {
    let (dir, count) = (scratch(), scale.of(1_000, 200));
    let (requests, items) = (dir.path().join("requests"), dir.path().join("items"));
    let mut to = [&requests, &items].map(|path| File::create(path).expect("a file"));
    for id in 0..count {
        let line = r#""method":"exec_command","params":{"cmd":"true"}}"#;
        writeln!(to[0], "{{\"id\":{id},{line}").expect("written");
        writeln!(to[1], "{id}").expect("written");
    }
    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    for _ in 0..scale.of(9, 3) {
        let mut xargs = Command::new("xargs");
        xargs.args(["-P", AT_ONCE, "-n1", "bash", "-c", "true"]);
        bare.push(timed(xargs, &items));
        let mut execd = Command::new(program());
        execd.args(["--jobs", AT_ONCE]).env("TMPDIR", dir.path());
        execd.env("XDG_RUNTIME_DIR", dir.path());
        ours.push(timed(execd, &requests));
    }
    let name = format!("{count} × `true`, {AT_ONCE} at once");
    let goal = Some(Goal::Times(1.15));
    report.time(&name, (ours.p50(), Some(bare.p50())), goal, ours.len());
}
