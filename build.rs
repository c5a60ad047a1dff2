//! What the linker leaves out of the release binary: tables for unwinding, which a program that
//! ends at a panic never reads, second copies of equal functions, and the 4,000 places that the
//! loader would have to mend if the program could be loaded anywhere (docs/performance.md says what
//! that costs). Test programs unwind, and are linked as ever.

use std::env::{var, var_os};

/// The target whose linker is known: rustc brings rust-lld for it, and the packages are built for
/// it. Elsewhere the binary is larger, and the same in all else.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// What stands in flags that ask for another linker.
const OTHER_LINKER: [&str; 2] = ["linker", "fuse-ld"];
/// A script with INSERT only adds to the linker's own.
const SCRIPT: &str = "SECTIONS { /DISCARD/ : { *(.eh_frame) *(.gcc_except_table \
                      .gcc_except_table.*) } } INSERT AFTER .text;\n";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| var(name).is_ok_and(|found| found == value);
    let flags = var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let chosen = var_os("RUSTC_LINKER").is_some();
    let other = chosen || OTHER_LINKER.iter().any(|word| flags.contains(word));
    if other || !is("PROFILE", "release") || !is("TARGET", TARGET) {
        return;
    }
    let script = var("OUT_DIR").expect("cargo names a directory") + "/no_unwind_tables.ld";
    std::fs::write(&script, SCRIPT).expect("cargo's directory can be written to");
    for flag in [&format!("-T,{script}"), "--no-eh-frame-hdr", "--icf=all"] {
        println!("cargo:rustc-link-arg-bins=-Wl,{flag}");
    }
    // Beside the -static-pie of a static build this makes a program that asks for a loader and
    // crashes; there -Crelocation-model=static does it.
    let features = var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    if !features.split(',').any(|feature| feature == "crt-static") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
