//! Which logs lie in a log directory, newest first (logs.md, Reading by people).

use super::log_files::{LogDir, is_log_name};
use super::log_walk::look_at;
use crate::limits::NS_PER_MS;
use std::ffi::CString;

/// A log in the directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// When it was written last, in milliseconds of the wall clock.
    pub at_ms: i64,
    /// Its file's name.
    pub name: String,
}

/// The newest logs whose name begins with `head`, newest first, at most so many; and how many there
/// are. Keeps twice as many in memory, however many there are. Errors: opendir(3).
pub fn newest(dir: &LogDir, head: &str, most: usize) -> std::io::Result<(Vec<Listed>, usize)> {
    let (mut found, mut count): (Vec<Listed>, usize) = (Vec::new(), 0);
    for entry in std::fs::read_dir(dir.path())?.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !is_log_name(name.as_bytes()) || !name.starts_with(head) {
            continue;
        }
        // Something else of that name, or somebody else's file, is no log that can be read.
        let Some(log) = CString::new(name.as_str()).ok().and_then(|name| look_at(dir, &name))
        else {
            continue;
        };
        count += 1;
        found.push(Listed { at_ms: log.at_ns.div_euclid(NS_PER_MS.cast_signed()), name });
        if found.len() >= most.saturating_mul(2) {
            keep_newest(&mut found, most);
        }
    }
    keep_newest(&mut found, most);
    Ok((found, count))
}

fn keep_newest(found: &mut Vec<Listed>, most: usize) {
    found.sort();
    found.reverse();
    found.truncate(most);
}
