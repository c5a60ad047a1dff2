//! The release binary, for what only it has to keep to: its size, its memory, its instructions.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::EXECD;
use super::outside::end_within;

/// How long building it may take, other builds that hold cargo's lock included.
const BUILD_PATIENCE: Duration = Duration::from_secs(600);

/// The path of the release binary, which is built into the target directory of this test where
/// it is not there yet. Tests that run beside this one wait for cargo's lock, and find it made.
pub fn binary() -> PathBuf {
    let tested = Path::new(EXECD);
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
    let status = end_within(&mut build, BUILD_PATIENCE);
    assert!(status.success(), "cargo build --release: {status}");
    target.join("release/execd")
}
