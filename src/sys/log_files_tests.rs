//! Tests of the log directory: what is refused, what is deleted, what is left alone.

use super::*;
use crate::sys::keeper_calls::testing::give_away;
use std::fs;
use std::os::unix::fs::symlink;

const DAY: Duration = Duration::from_secs(SECONDS_PER_DAY);

fn set_age(path: &Path, age: Duration) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

#[test]
fn a_log_name_is_matched_exactly() {
    for good in ["execd-1-0123abcd.log", "execd-18446744073709551615-ffffffff.log"] {
        assert!(is_log_name(good.as_bytes()), "{good}");
    }
    let bad = [
        "",
        "execd",
        "execd--.log",
        "execd--0123abcd.log",
        "execd-1-0123abc.log",
        "execd-1-0123abcde.log",
        "execd-1-0123abcg.log",
        "execd-1-0123ABCD.log",
        "execd-1-0123abcd.log~",
        "execd-1-0123abcd.txt",
        "xexecd-1-0123abcd.log",
        "execd-1a-0123abcd.log",
        "execd-1-2-0123abcd.log",
        "execd-1-0123abcd",
        "execd-.log",
        "execd-1-0123abcd.log\n",
        "execd-\u{661}-0123abcd.log",
    ];
    for bad in bad {
        assert!(!is_log_name(bad.as_bytes()), "{bad}");
    }
}

#[test]
fn deletes_old_logs_and_nothing_else() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    let make = |name: &str, age: Duration| {
        fs::write(at(name), "x").unwrap();
        set_age(&at(name), age);
    };
    make("execd-1-00000001.log", DAY * 8);
    make("execd-2-00000002.log", DAY * 6);
    make("execd-3-00000003.log", DAY * 8);
    make("execd-4-00000004.log", DAY * 8);
    make("execd-5-00000005.txt", DAY * 8);
    make("execd-6-000000006.log", DAY * 8);
    make("target", DAY * 8);
    symlink(at("target"), at("execd-7-00000007.log")).unwrap();
    fs::create_dir(at("execd-8-00000008.log")).unwrap();
    let foreign = give_away(&at("execd-4-00000004.log"));
    let dir = LogDir::open(temp.path()).unwrap();
    let held = dir.reopen("execd-3-00000003.log").unwrap();

    assert_eq!(dir.delete_old(0), 0);
    assert_eq!(dir.delete_old(u64::MAX), 0);
    assert_eq!(dir.delete_old(7), if foreign { 1 } else { 2 });
    assert!(!at("execd-1-00000001.log").exists());
    for left in ["execd-2-00000002.log", "execd-3-00000003.log", "execd-5-00000005.txt"] {
        assert!(at(left).exists(), "{left}");
    }
    for left in ["execd-6-000000006.log", "execd-7-00000007.log", "execd-8-00000008.log", "target"]
    {
        assert!(at(left).symlink_metadata().is_ok(), "{left}");
    }
    assert_eq!(at("execd-4-00000004.log").exists(), foreign);
    drop(held);
    assert_eq!(dir.delete_old(7), 1);
}

#[test]
fn creates_private_files_and_follows_no_links() {
    let temp = tempfile::tempdir().unwrap();
    let dir = LogDir::open(temp.path()).unwrap();
    let log = dir.create("a").unwrap();
    assert_eq!(log.append(b"hello"), (5, Ok(())));
    assert_eq!(fs::metadata(temp.path().join("a")).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(errno_of(&dir.create("a").unwrap_err()), libc::EEXIST);
    assert_eq!(dir.reopen("a").unwrap().append(b"!"), (1, Ok(())));
    assert_eq!(log.size().unwrap(), 6);

    symlink("a", temp.path().join("link")).unwrap();
    assert_eq!(errno_of(&dir.create("link").unwrap_err()), libc::EEXIST);
    assert_eq!(errno_of(&dir.reopen("link").unwrap_err()), libc::ELOOP);
    fs::create_dir(temp.path().join("d")).unwrap();
    assert!(dir.reopen("d").is_err());

    assert!(!log.is_deleted());
    fs::remove_file(temp.path().join("a")).unwrap();
    assert!(log.is_deleted());
    let moved = temp.path().with_extension("moved");
    fs::rename(temp.path(), &moved).unwrap();
    dir.create("b").unwrap();
    assert!(moved.join("b").exists());
    fs::remove_dir_all(&moved).unwrap();
    assert_eq!(errno_of(&dir.create("c").unwrap_err()), libc::ENOENT);
}

#[test]
fn a_private_directory_is_created_or_the_reason_given() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let logs = root.join("logs");
    assert_eq!(ensure_private_dir(&logs), Ok(logs.clone()));
    assert_eq!(fs::metadata(&logs).unwrap().mode() & 0o7777, 0o700);
    assert_eq!(ensure_private_dir(&root.join("logs/.//")), Ok(logs.clone()));

    let reason = |path: PathBuf| ensure_private_dir(&path).unwrap_err();
    symlink(&logs, root.join("link")).unwrap();
    assert!(reason(root.join("link")).contains("symbolic link"));
    assert!(reason(root.join("link/")).contains("symbolic link"));
    assert!(reason(root.join("no/such")).contains("parent does not exist"));
    assert!(reason(root.join("logs/..")).contains("without .."));
    assert!(reason(PathBuf::new()).contains("empty"));
    fs::write(root.join("file"), "").unwrap();
    assert!(reason(root.join("file")).contains("no directory"));
    for mode in [0o710, 0o701, 0o777] {
        fs::set_permissions(&logs, Permissions::from_mode(mode)).unwrap();
        assert!(reason(logs.clone()).contains("chmod 700"), "{mode:o}");
    }
    fs::set_permissions(&logs, Permissions::from_mode(0o700)).unwrap();
    if give_away(&logs) {
        assert!(reason(logs).contains("belongs to uid 12345"));
    }
}
