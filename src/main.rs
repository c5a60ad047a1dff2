//! The program: arguments in, exit status out. Everything else is the library's.

use std::process::ExitCode;

fn main() -> ExitCode {
    let status = execd::cli::main(std::env::args_os().skip(1).collect());
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}
