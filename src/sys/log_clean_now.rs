//! Deleting logs because a person wants it: all at once, by age, or all that nobody uses.

use super::log_files::LogDir;
use super::log_walk::{
    Deleted, Names, Part, delete, exists, log_name, look_at, part_of, seconds_ago_ns,
};
use std::ffi::CString;

/// What became of the logs of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Logs that were deleted.
    pub logs: u64,
    /// What they and what belonged to them took on the disk.
    pub bytes: u64,
    /// Logs that are left because an execd uses them.
    pub used: u64,
    /// Logs that are left because they are for good.
    pub kept: u64,
    /// Logs that could not be deleted.
    pub failed: u64,
}

/// Deletes all logs that ended longer ago than this, but for those that an execd uses and those
/// that are for good; `None`: all that no execd uses. Errors: opendir(3).
pub fn clean_now(dir: &LogDir, older_than_s: Option<u64>) -> Result<Cleaned, i32> {
    let before_ns = older_than_s
        .map_or(i64::MAX, |seconds| seconds_ago_ns(i64::try_from(seconds).unwrap_or(i64::MAX)));
    let mut cleaned = Cleaned::default();
    let mut names = Names::open(dir)?;
    while let Some(name) = owned_next(&mut names) {
        let Some((Part::Log, _)) = part_of(name.to_bytes()) else { continue };
        let Some(found) = look_at(dir, &name).filter(|one| one.at_ns < before_ns) else { continue };
        if found.kept && older_than_s.is_some() {
            cleaned.kept += 1;
            continue;
        }
        match delete(dir, &name, before_ns) {
            Deleted::Freed(bytes) => {
                cleaned.logs += 1;
                cleaned.bytes += bytes;
            }
            Deleted::Used => cleaned.used += 1,
            Deleted::Left => cleaned.failed += 1,
            Deleted::Gone => {}
        }
    }
    // Then what is left of logs that are gone.
    names.seek(0);
    while let Some(name) = owned_next(&mut names) {
        let Some((part, stem)) = part_of(name.to_bytes()) else { continue };
        let old = look_at(dir, &name).is_some_and(|one| one.at_ns < before_ns);
        if part != Part::Log
            && old
            && !exists(dir, &log_name(stem))
            && let Deleted::Freed(bytes) = delete(dir, &name, before_ns)
        {
            cleaned.bytes += bytes;
        }
    }
    Ok(cleaned)
}

fn owned_next(names: &mut Names) -> Option<CString> {
    names.next().map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, OpenOptions, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, SystemTime};

    /// rule: logs.md, Cleaning: with `--all` all that no execd uses, those for good among them
    #[test]
    fn a_person_deletes_by_age_or_all_that_nobody_uses() {
        let temp = tempfile::tempdir().unwrap();
        let make = |name: &str, days: u64| {
            let path = temp.path().join(name);
            fs::write(&path, "x").unwrap();
            let at = SystemTime::now() - Duration::from_secs(days * 86_400);
            OpenOptions::new().write(true).open(&path).unwrap().set_modified(at).unwrap();
            path
        };
        let old = make("execd-1-00000001.log", 8);
        let meta = make("execd-1-00000001.meta", 8);
        let segment = make("execd-1-00000001.log.2", 8);
        let young = make("execd-2-00000001.log", 1);
        let held = make("execd-3-00000001.log", 9);
        let for_good = make("execd-4-00000001.log", 9);
        let other = make("notes.log", 9);
        fs::set_permissions(&for_good, Permissions::from_mode(0o1600)).unwrap();
        let dir = LogDir::open(temp.path()).unwrap();
        let file = dir.reopen("execd-3-00000001.log").unwrap();

        let found = clean_now(&dir, Some(7 * 86_400)).unwrap();
        let (logs, used, kept) = (found.logs, found.used, found.kept);
        assert_eq!((logs, used, kept, found.failed), (1, 1, 1, 0));
        assert!(found.bytes >= 3 * 512, "{found:?}");
        assert!(!old.exists() && !meta.exists() && !segment.exists());
        assert!(young.exists() && held.exists() && for_good.exists());

        let found = clean_now(&dir, None).unwrap();
        assert_eq!((found.logs, found.used, found.kept), (2, 1, 0));
        assert!(!young.exists() && held.exists() && !for_good.exists() && other.exists());
        drop(file);
        assert_eq!(clean_now(&dir, None).unwrap().logs, 1);
        assert_eq!(clean_now(&dir, None).unwrap(), Cleaned::default());
    }
}
