//! The release binary, for what only it has to keep to: its size, its memory, its instructions.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long building it may take, other builds that hold cargo's lock included.
const BUILD_PATIENCE: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_millis(20);

/// The path of the release binary, which is built into the target directory of this test where
/// it is not there yet. Tests that run beside this one wait for cargo's lock, and find it made.
pub fn binary() -> PathBuf {
    let tested = Path::new(env!("CARGO_BIN_EXE_execd"));
    if !cfg!(debug_assertions) {
        return tested.to_owned();
    }
    let target = tested.ancestors().nth(2).expect("TARGET/PROFILE/execd");
    let mut build = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--quiet", "--bin", "execd", "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .spawn()
        .expect("cargo starts");
    let deadline = Instant::now() + BUILD_PATIENCE;
    let status = loop {
        if let Some(status) = build.try_wait().expect("cargo is our child") {
            break status;
        }
        if Instant::now() >= deadline {
            let _ = build.kill();
            panic!("the release binary was not built in {BUILD_PATIENCE:?}");
        }
        std::thread::sleep(PAUSE);
    };
    assert!(status.success(), "cargo build --release: {status}");
    target.join("release/execd")
}
