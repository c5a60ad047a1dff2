//! Tests of the log directory: what is refused, how files are made.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn a_log_name_is_matched_exactly() {
    for good in ["execd-1-0123abcd.log", "execd-18446744073709551615-ffffffff.log"] {
        assert!(is_log_name(good.as_bytes()), "{good}");
    }
    let all = "|execd--0123abcd.log|execd-1-0123abc.log|execd-1-0123abcde.log|execd-1-0123abcg.log|\
        execd-1-0123ABCD.log|execd-1-0123abcd.log~|execd-1-0123abcd.txt|xexecd-1-0123abcd.log|\
        execd-1a-0123abcd.log|execd-1-2-0123abcd.log|execd-.log|execd-\u{661}-0123abcd.log";
    for bad in all.split('|') {
        assert!(!is_log_name(bad.as_bytes()), "{bad}");
    }
}

/// rule: architecture.md, The keeper: The log's name is `execd-<session_id>-<8 hex>.log`, its mode
///   0600
#[test]
fn creates_private_files_and_follows_no_links() {
    let temp = tempfile::tempdir().unwrap();
    let dir = LogDir::open(temp.path()).unwrap();
    let log = dir.create("a").unwrap();
    assert_eq!(log.append(b"hello"), (5, Ok(())));
    assert_eq!(fs::metadata(temp.path().join("a")).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(dir.create("a").unwrap_err(), libc::EEXIST);
    assert_eq!(dir.reopen("a").unwrap().append(b"!"), (1, Ok(())));
    assert_eq!(log.size().unwrap(), 6);

    symlink("a", temp.path().join("link")).unwrap();
    assert_eq!(dir.create("link").unwrap_err(), libc::EEXIST);
    assert_eq!(dir.reopen("link").unwrap_err(), libc::ELOOP);
    fs::create_dir(temp.path().join("d")).unwrap();
    assert!(dir.reopen("d").is_err());

    assert!(dir.is_in_place() && dir.holds("a", &log) && !dir.holds("d", &log));
    fs::remove_file(temp.path().join("a")).unwrap();
    assert!(!dir.holds("a", &log));
    let moved = temp.path().with_extension("moved");
    fs::rename(temp.path(), &moved).unwrap();
    assert!(!dir.is_in_place());
    dir.create("b").unwrap();
    assert!(moved.join("b").exists());
    fs::remove_dir_all(&moved).unwrap();
    assert_eq!(dir.create("c").unwrap_err(), libc::ENOENT);
}
