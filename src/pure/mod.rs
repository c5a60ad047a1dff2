//! Pure logic: bytes, times and facts in, decisions out. No I/O, no clock, no descriptor
//! (architecture.md, The rooms; tests/tidy.rs keeps it so). This is where bugs hide, so this is
//! what can be tested against naive models and fuzzed.

pub mod agent;
pub mod arrival;
pub mod byte_queue;
pub mod clean;
pub mod clean_stamp;
pub mod deadlines;
pub mod detach_keys;
pub mod drain;
pub mod head_tail;
pub mod interleave;
pub mod json_fields;
pub mod json_guard;
pub mod json_text;
pub mod life;
pub mod lines;
pub mod log_index;
pub mod lru;
pub mod marks;
pub mod mask;
pub mod mounts;
pub mod news;
pub mod outbox;
pub mod restarts;
pub mod rfc3339;
pub mod run_mark;
pub mod signal_names;
pub mod source;
pub mod stdin_asked;
pub mod stream_queue;
pub mod term_answers;
pub mod term_modes;
pub mod term_queries;
pub mod truncate;
pub mod tty_line;
pub mod unescape;
pub mod utf8;
pub mod visible;
pub mod window_name;
pub mod window_text;
