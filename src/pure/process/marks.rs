//! The variables by which execd knows the processes of its sessions again: whoever ends processes
//! by these marks must be able to trust them, so nobody else may set them.

/// Names the execd.
pub const INSTANCE_VARIABLE: &str = "EXECD_INSTANCE";
/// Names the session.
pub const SESSION_VARIABLE: &str = "EXECD_SESSION_ID";
/// Settings that are about one execd alone: its stdin, its socket, its numbers. Its children do not
/// inherit these variables, for they may start an execd too.
pub const OWN_SETTINGS: [&str; 7] = [
    "EXECD_JOBS",
    "EXECD_LENIENT",
    "EXECD_ON_EOF",
    "EXECD_LEASE",
    "EXECD_EXIT_AFTER_SILENCE",
    "EXECD_FIRST_SESSION_ID",
    "EXECD_SOCKET",
];

/// Whether a variable of this name is a mark, be it that of an execd further out.
pub fn is_mark(name: &str) -> bool {
    name == INSTANCE_VARIABLE || name == SESSION_VARIABLE
}
