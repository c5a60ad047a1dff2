//! Bounds of what is read about processes and where their files lie.

/// Processes named in the line that tells what the command of `execd run` has left running.
pub const LEFT_NAMED: usize = 4;
/// Processes named in a note, in detached, left or survivors.
pub const NAMED_PROCESSES: usize = 16;
/// Bytes of a command line read from /proc for such a name.
pub const PROCESS_COMMAND_BYTES: usize = 256;
/// Starts of sessions that are remembered: an orphan counts for the one that began last before it.
pub const STARTS_REMEMBERED: usize = 1_024;
/// Bytes of a process's environment searched for execd's marks.
pub const ENVIRON_BYTES: usize = 2 * 1024 * 1024;
/// Longest single argument that execve takes: MAX_ARG_STRLEN, 32 pages, see execve(2).
pub const MAX_ARG_BYTES: usize = 128 * 1024;

/// Longest name of a file: NAME_MAX, see pathconf(3).
pub const NAME_MAX_BYTES: usize = 255;

/// Looks for orphans that are to end with execd, and the pause between two of them.
pub const ORPHAN_LOOKS: usize = 200;
/// See [`ORPHAN_LOOKS`].
pub const ORPHAN_PAUSE_MS: u64 = 5;
/// Orphans that have left their sessions, of which it is asked in a turn which session that was.
pub const ADOPTED_ASKED_MAX: usize = 256;

/// Processes of a session that a walk down from its leader looks at.
pub const TREE_PROCESSES: usize = 512;
/// Threads of a process that such a walk looks at.
pub const TREE_THREADS: usize = 64;
/// Bytes read of the list of a thread's children: more than the pids of all that execd may start.
pub const CHILDREN_BYTES: u64 = 256 * 1024;
/// Threads of a session that such a walk looks at in all.
pub const TREE_THREADS_ALL: usize = 512;
/// Bytes read of a file of /proc that tells what a thread or a descriptor is at.
pub const DOING_LINE_BYTES: usize = 16 * 1024;
/// Descriptors of a poll or an epoll instance that are looked at.
pub const POLLED_MAX: usize = 256;
/// Descriptors of a select: FD_SETSIZE, see select(2).
pub const SELECTED_MAX: usize = 1_024;
/// Descriptors of a process outside a session that are looked through for the session's.
pub const STRANGER_FDS: usize = 256;
